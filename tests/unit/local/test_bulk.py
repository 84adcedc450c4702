"""Many devices at once give the reports that each device gives from the same words."""

import numpy as np
import pytest

from psd.local.bulk import (
    ManyWords,
    draw_groups,
    find_answers,
    format_reports,
    randomise_group,
)
from psd.local.device import NANO, WINDOWS, draw_report
from support.local import GRID, HASHING, KARY, Listed, campaign

PROTOCOLS = [
    KARY,
    HASHING,
    {"name": "hashing", "modulus": 2},
    {"name": "subset", "size": 1},
    {"name": "subset", "size": 6},
    {"name": "unary", "form": "optimised"},
    {"name": "unary", "form": "symmetric"},
    {"name": "rappor", "encoding": "one-hot", "flips": 40},
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


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
@pytest.mark.parametrize("nano", [NANO // 10, 3 * NANO])
def test_the_same_words_give_the_same_reports(protocol, nano):
    one = campaign(((1_000_000, GRID, protocol),), nano_epsilon=nano)
    fixed = Fixed(4)
    words = ManyWords(DEVICES, fixed)
    answers = np.arange(DEVICES) % 17
    lines = format_reports(one, randomise_group(one, 0, answers, words))
    alone = [draw_report(one, 0, int(a), fixed.of(i)) for i, a in enumerate(answers)]
    assert lines == alone


@pytest.mark.parametrize("name", WINDOWS)
def test_the_same_words_give_the_same_numbers(name):
    protocol = {"name": name, **({"window": 300} if WINDOWS[name] else {})}
    one = campaign(((1_000_000, ["0", "100"], protocol),), question="numbers", domain=None)
    fixed = Fixed(4)
    values = np.array([0, 100, 50, -5, 200, np.nan, 31.4] * 6)
    answers = find_answers(one, 0, values, values)
    lines = format_reports(one, randomise_group(one, 0, answers, ManyWords(len(answers), fixed)))
    alone = [draw_report(one, 0, one.answer_of(0, v), fixed.of(i)) for i, v in enumerate(values)]
    assert lines == alone


def test_the_same_words_give_the_same_reports_of_texts():
    sizes = {"bits": 21, "hashes": 3, "cohorts": 5}
    protocol = {"name": "rappor", "encoding": "bloom", "flips": 40, **sizes}
    one = campaign(((1_000_000, [], protocol),), question="words", domain=None)
    fixed = Fixed(4)
    texts = np.array(["seoul", "", "서울", "a" * 999, "seoul"] * 40, object)
    answers = find_answers(one, 0, texts, texts)
    lines = format_reports(one, randomise_group(one, 0, answers, ManyWords(len(texts), fixed)))
    alone = [draw_report(one, 0, one.answer_of(0, t), fixed.of(i)) for i, t in enumerate(texts)]
    assert lines == alone


def test_groups_and_answers_are_those_of_the_device():
    three = campaign(
        ((200_000, GRID, KARY), (0, GRID, KARY), (800_000, ["0", "1", "2", "3"], KARY))
    )
    fixed = Fixed(5)
    groups = draw_groups(three, ManyWords(DEVICES, fixed))
    assert groups.tolist() == [three.draw_group(fixed.of(i)) for i in range(DEVICES)]
    generator = np.random.default_rng(6)
    x, y = generator.uniform(-1, 9, 500), generator.uniform(-1, 5, 500)
    x[:3] = np.nan, np.inf, 8.0
    for group in (0, 2):
        expected = [
            three.answer_of(group, a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)
        ]
        assert find_answers(three, group, x, y).tolist() == expected
