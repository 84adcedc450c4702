"""rappor: the law of settled and of randomised bits, both epsilons, and the bits of words."""

from collections import defaultdict
from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from scipy import stats

from psd.apps.local.device import NANO, UNIT, RapporDraw, Words, exp_lower, keyed_words
from psd.apps.local.protocols.rappor import Rappor, fewest_flips
from support.goodness_of_fit import holds
from support.local import epsilon_of, law_of, log_ratio, worst_ratio


class AnyBits(RapporDraw):
    """An answer is the tuple of its bits, so that all sets are answers."""

    def bits(self, answer, cohort):
        return set(answer)


def draw_of(bits, hashes, flips, *, nano=NANO, rates=("0", "0")):
    """A draw of sets of bits; with p and q of its own, or those that follow from epsilon."""
    p, q = (int(Fraction(rate) * NANO) for rate in rates)
    return AnyBits(nano, bits, "bloom", flips, hashes, p=p, q=q)


def answers_of(draw):
    """Sets of bits that hashes may have, of which some may fall together."""
    sizes = range(1, draw.hashes + 1)
    return [bits for size in sizes for bits in combinations(range(draw.answers), size)]


def settled_laws(draw):
    """Exact law of the settled bits of every answer, from the device."""
    return [law_of(lambda w, a=a: tuple(draw.settle(a, w))) for a in answers_of(draw)]


def report_laws(draw):
    """Exact law of one report of every answer: both steps multiplied out."""
    reports = {}
    laws = []
    for settled in settled_laws(draw):
        law = defaultdict(Fraction)
        for kept, chance in settled.items():
            if kept not in reports:
                reports[kept] = law_of(lambda w, kept=kept: draw.randomise(list(kept), w))
            for report, rate in reports[kept].items():
                law[report] += chance * rate
        laws.append(dict(law))
    return laws


# Bits, hashes, flips of 128, p, q of the second step; epsilon of all reports, and of one.
GOLDEN = [
    (6, 2, 64, "0.5", "0.75", 4.394449, 1.074286),
    (6, 3, 64, "0.5", "0.75", 6.591674, 1.611429),
    (4, 1, 64, "0.5", "0.75", 2.197225, 0.537143),
    (6, 2, 32, "0.35", "0.65", 7.783641, 1.831332),
    (5, 2, 96, "0.25", "0.75", 2.043302, 1.005258),
    (3, 2, 64, "0.5", "0.75", 3.295837, 0.873615),  # two sets of two of three bits share one
]


@pytest.mark.deep
def test_both_epsilons_of_six_bits_are_the_enumerated_ones(subtests):
    check_both_epsilons([row for row in GOLDEN if row[0] == 6], subtests)


def test_both_epsilons_are_the_enumerated_ones(subtests):
    check_both_epsilons([row for row in GOLDEN if row[0] < 6], subtests)


def check_both_epsilons(rows, subtests):
    for bits, hashes, flips, p, q, forever, once in rows:
        draw = draw_of(bits, hashes, flips, rates=(p, q))
        with subtests.test(str(draw)):
            assert round(float(log_ratio(worst_ratio(settled_laws(draw)))), 6) == forever
            loss = log_ratio(worst_ratio(report_laws(draw)))
            assert round(float(loss), 6) == once
            if bits >= 2 * hashes:
                assert round(draw.lifetime / NANO, 6) == forever
                assert epsilon_of(draw.once - 2) < loss <= epsilon_of(draw.once)
            else:  # which the device does not count on
                assert loss < epsilon_of(draw.once)


@pytest.mark.parametrize(("bits", "hashes"), [(2, 1), (4, 1), (4, 2), (5, 2), (6, 3)])
@pytest.mark.parametrize("flips", [1, 40, 100])
def test_privacy_of_rappor_is_exact(bits, hashes, flips):
    forever = draw_of(bits, hashes, flips).lifetime
    for nano in (forever // 10, forever // 3, forever):
        draw = draw_of(bits, hashes, flips, nano=nano)
        laws = [dict(Rappor(draw=draw).law(answer)) for answer in answers_of(draw)]
        loss = log_ratio(worst_ratio(laws))
        assert epsilon_of(nano) - epsilon_of(2) < loss <= epsilon_of(nano)
    settled = [settled_law(draw, answer) for answer in answers_of(draw)]
    loss = log_ratio(worst_ratio(settled))
    assert epsilon_of(forever) - epsilon_of(2) < loss <= epsilon_of(forever)


RATES = [("0.5", "0.75"), ("0.01", "0.99"), ("0.000000001", "0.999999999"), ("0.3", "0.300000001"),
         ("0.123456789", "0.5")]  # fmt: skip


@pytest.mark.parametrize("rates", RATES)
def test_a_report_by_p_and_q_costs_what_its_integer_law_says(rates):
    """The least nano-epsilon is above the loss, by less than two; one less is refused."""
    p, q = map(Fraction, rates)
    for bits, hashes, flips in ((2, 1, 1), (4, 2, 64), (4, 2, 127), (6, 3, 32)):
        draw = draw_of(bits, hashes, flips, rates=rates)
        low, high = (Fraction(rate, UNIT) for rate in draw.thresholds)
        assert 0 <= low - p < Fraction(1, UNIT)
        assert 0 <= q - high < Fraction(1, UNIT)
        laws = [dict(Rappor(draw=draw).law(answer)) for answer in answers_of(draw)]
        worst = worst_ratio(laws)
        assert Fraction(exp_lower(draw.once), 2**128) >= worst
        assert Fraction(exp_lower(draw.once - 1), 2**128) < worst
        assert 0 < draw.once <= draw.lifetime


def settled_law(draw, answer):
    """Law of the settled bits by the formula: a coin for f = flips / 128 of them."""
    wrong = Fraction(draw.flips, 256)
    rates = [1 - wrong if i in answer else wrong for i in range(draw.answers)]
    return {
        mask: np.prod([r if bit else 1 - r for bit, r in zip(mask, rates, strict=True)])
        for mask in product((0, 1), repeat=draw.answers)
    }


@pytest.mark.parametrize("rates", [("0", "0"), ("0.5", "0.75"), ("0.01", "0.6")])
@pytest.mark.parametrize(("bits", "hashes", "flips"), [(3, 1, 40), (4, 2, 1), (4, 2, 127)])
def test_law_of_settled_bits_and_of_reports_is_what_the_device_draws(bits, hashes, flips, rates):
    nano = min(NANO, draw_of(bits, hashes, flips).lifetime)
    draw = draw_of(bits, hashes, flips, nano=nano, rates=rates)
    for answer, settled in zip(answers_of(draw), settled_laws(draw), strict=True):
        by_bits = {
            (0, sum(bit << i for i, bit in enumerate(mask))): chance
            for mask, chance in settled_law(draw, answer).items()
        }
        assert settled == by_bits
    laws = report_laws(draw)
    assert laws == [dict(Rappor(draw=draw).law(answer)) for answer in answers_of(draw)]
    assert all(sum(law.values()) == 1 for law in laws)


def test_a_settled_1_is_0_as_often_as_a_settled_0_is_1():
    """Half of flips / 128, in the settled bits of real answers; a peer never flips a 1."""
    draw = RapporDraw(NANO, 200, "one-hot", 96)
    ones = {0: 0, 1: 0}
    for answer in range(100):
        _, mask = draw.settle(answer, Words())
        ones[1] += mask >> answer & 1
        ones[0] += mask >> (answer + 100) & 1
    assert stats.binomtest(ones[1], 100, 0.625).pvalue > 1e-7
    assert stats.binomtest(ones[0], 100, 0.375).pvalue > 1e-7


def test_the_epsilon_of_all_reports_is_the_least_that_covers_the_settled_bits():
    for flips, hashes in product((1, 32, 64, 127), (1, 2, 16)):
        nano = RapporDraw(1, 256, "bloom", flips, hashes).lifetime
        odds = Fraction(256 - flips, flips) ** (2 * hashes)
        assert Fraction(exp_lower(nano - 1), 2**128) < odds <= Fraction(exp_lower(nano), 2**128)


def test_bits_of_words_exist_for_every_text():
    """Those of words that the official client has are in `test_rappor_csv.py`."""
    draw = RapporDraw(NANO, 128, "bloom", 64, 2, 4)
    assert all(draw.bits(text, 1) for text in ("", "서울", "\ud800", "\0", "x" * 10**5))


def test_flips_keep_all_reports_within_the_cost_of_four():
    for nano, hashes in product((NANO // 100, NANO // 2, NANO, 3 * NANO), (1, 2, 5)):
        flips = fewest_flips(nano, hashes)
        costs = [RapporDraw(nano, 64, "bloom", n, hashes).lifetime for n in (flips, flips - 1)]
        assert nano <= costs[0] or flips == 127
        assert costs[0] <= 4 * nano < costs[1] or flips == 127


def test_words_of_a_secret_are_the_same_again_and_others_for_another_campaign():
    secret = "0123456789abcdef" * 4

    def first(count, *about):
        words = Words(keyed_words(*about))
        return [words.word() for _ in range(count)]

    many = first(4000, secret, "a")
    assert first(9, secret, "a") == many[:9]
    assert len({*many, *first(9, secret, "b"), *first(9, "ff" * 32, "a")}) == 4018
    bits = np.unpackbits(np.array(many, np.uint64).view(np.uint8))
    assert abs(bits.mean() - 0.5) < 0.01


SAMPLES = 4_000


@pytest.mark.deep
def test_real_reports_have_the_law_and_other_epsilons_are_rejected():
    def p_value(draw, protocol):
        table = np.zeros((4, 9), np.int64)
        for _ in range(SAMPLES):
            raw = bytes.fromhex(draw.randomise("seoul", Words())[1:-1])
            table += protocol.tabulate(np.frombuffer(raw, np.uint8)[None])
        expected = []
        for cohort in range(4):
            ones = draw.bits("seoul", cohort)
            chances = [float(protocol.p if i in ones else protocol.q) for i in range(8)]
            expected.append([c * table[cohort, -1] for c in chances])
        seen, mean = table[:, :-1], np.array(expected)
        spread = mean * (1 - mean / table[:, -1:])
        return float(stats.chi2.sf((((seen - mean) ** 2) / spread).sum(), seen.size))

    def draw(nano):
        return RapporDraw(nano, 8, "bloom", 8, 2, 4)

    usual = Rappor(draw=draw(2 * NANO))
    assert holds(lambda: p_value(draw(2 * NANO), usual))
    for other in (14 * NANO // 10, 26 * NANO // 10):
        assert p_value(draw(other), usual) < 1e-6


def test_a_changed_answer_would_cost_more_than_all_reports_of_one():
    """Two reports from bits that each answer settles anew: why a device keeps its first answer."""
    draw = draw_of(4, 1, 64, rates=("0.5", "0.75"))
    laws = dict(zip(answers_of(draw), settled_laws(draw), strict=True))
    step = {kept: law_of(lambda w, kept=kept: draw.randomise(list(kept), w))
            for kept in next(iter(laws.values()))}  # fmt: skip
    pairs = list(product(step[0, 0], repeat=2))

    def both(report, other, first, second):
        """Chance of two reports, of one answer or of two."""
        if first == second:
            return sum(c * step[s][report] * step[s][other] for s, c in laws[first].items())
        alone = [sum(c * step[s][r] for s, c in laws[a].items())
                 for r, a in ((report, first), (other, second))]  # fmt: skip
        return alone[0] * alone[1]

    kept = [{pair: both(*pair, a, a) for pair in pairs} for a in laws]
    changed = {pair: both(*pair, (0,), (1,)) for pair in pairs}
    forever = Fraction(3) ** 2
    assert worst_ratio(kept) <= forever
    assert worst_ratio([*kept, changed]) > worst_ratio(kept)


def test_reports_are_read_in_their_one_spelling():
    for encoding, cohorts, end, others in (
        ("one-hot", 1, [], []),
        ("bloom", 3, [2, 0], [[0, 0, 3, 0], [0, 0, 0, 1]]),
    ):
        protocol = Rappor(draw=RapporDraw(NANO, 12, encoding, 32, 1, cohorts))
        assert protocol.width == 2 + len(end)
        good = [[0, 0, *end], [255, 15, *end]]
        bad = [[0, 16, *end], [0, 128, *end], *others]
        assert protocol.read_masks(np.array(good, np.uint8)).all()
        assert not protocol.read_masks(np.array(bad, np.uint8)).any()
        assert not protocol.read_masks(np.zeros((2, protocol.width + 1), np.uint8)).any()


def test_more_epsilon_flips_fewer_bits():
    rates = [RapporDraw(nano, 8, "one-hot", 8).thresholds for nano in range(NANO, 6 * NANO, NANO)]
    assert all(a[1] < b[1] and a[0] + a[1] == UNIT for a, b in pairwise(rates))
