"""Many devices at once give the reports that each device gives from the same words."""

import numpy as np
import pytest

from psd.apps.local.device import NANO, WINDOWS, Words, draw_report
from psd.apps.local.randomization import (
    ManyWords,
    draw_groups,
    find_answers,
    format_reports,
    randomise_group,
    system_words,
)
from support.local import GRID, KARY, Listed, campaign
from support.seeded_system import check_repeated

PROTOCOLS = [
    KARY,
    *({"name": "hashing", "modulus": modulus} for modulus in (3, 2)),
    *({"name": "subset", "size": size} for size in (1, 6)),
    *({"name": "unary", "form": form} for form in ("optimised", "symmetric")),
    {"name": "rappor", "encoding": "one-hot", "flips": 40},
    {"name": "rappor", "encoding": "one-hot", "flips": 40, "p": NANO // 2, "q": NANO // 100 * 51},
]
DEVICES = 300


class Fixed:
    """Words of each device, which tests repeat."""

    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)
        self.blocks = []

    def __call__(self, rows, columns):
        block = self.generator.integers(0, 2**64, (rows, columns), dtype=np.uint64)
        if not self.blocks:
            block[:3, :4] |= np.uint64(2**64 - 2**16)  # drawn again, for many limits
        self.blocks.append(block)
        return block

    def of(self, device):
        return Listed([int(word) for block in self.blocks for word in block[device]])


def same_reports(one, values):
    """Whether devices with the same words give the same reports together and each alone."""
    fixed = Fixed(4)
    answers = find_answers(one, 0, values, values)
    lines = format_reports(one, randomise_group(one, 0, answers, ManyWords(len(values), fixed)))
    alone = [draw_report(one, 0, one.answer_of(0, v), fixed.of(i)) for i, v in enumerate(values)]
    return lines == alone


@pytest.mark.parametrize("nano", [NANO // 10, 3 * NANO])
def test_the_same_words_give_the_same_reports(nano, subtests):
    for protocol in PROTOCOLS:
        with subtests.test(str(protocol)):
            one, fixed = campaign(((1_000_000, GRID, protocol),), nano_epsilon=nano), Fixed(4)
            answers = np.arange(DEVICES) % 17
            reports = randomise_group(one, 0, answers, ManyWords(DEVICES, fixed))
            alone = [draw_report(one, 0, int(a), fixed.of(i)) for i, a in enumerate(answers)]
            assert format_reports(one, reports) == alone


def test_the_same_words_give_the_same_groups_numbers_and_texts(subtests):
    values = np.array([0, 100, 50, -5, 200, np.nan, 31.4] * 6)
    for name, window in WINDOWS.items():
        with subtests.test(name):
            protocol = {"name": name, **({"window": 300} if window else {})}
            group = (1_000_000, ["0", "100"], protocol)
            assert same_reports(campaign((group,), question="numbers", domain=None), values)
    sizes = {"bits": 21, "hashes": 3, "cohorts": 5}
    protocol = {"name": "rappor", "encoding": "bloom", "flips": 40, **sizes}
    texts = np.array(["seoul", "", "서울", "a" * 999, "seoul"] * 40, object)
    for rates in ({}, {"p": NANO // 2, "q": NANO // 4 * 3}):
        group = (1_000_000, [], protocol | rates)
        asked = {"question": "words", "domain": None, "nano_epsilon": 3 * NANO}
        assert same_reports(campaign((group,), **asked), texts)
    coarse = ["0", "1", "2", "3"]
    three = campaign(((200_000, GRID, KARY), (0, GRID, KARY), (800_000, coarse, KARY)))
    fixed = Fixed(5)
    groups = draw_groups(three, ManyWords(DEVICES, fixed))
    assert groups.tolist() == [three.draw_group(fixed.of(i)) for i in range(DEVICES)]
    generator = np.random.default_rng(6)
    x, y = generator.uniform(-1, 9, 500), generator.uniform(-1, 5, 500)
    x[:3] = np.nan, np.inf, 8.0
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    for group in (0, 2):
        expected = [three.answer_of(group, *pair) for pair in pairs]
        assert find_answers(three, group, x, y).tolist() == expected


def test_draws_repeat_with_their_seed():
    check_repeated(lambda: system_words(2, 2).ravel().tolist())
    check_repeated(lambda: [Words().word() for _ in range(4)])
