"""The exponential mechanism over intervals: weights, coins, support, degenerate scores."""

import itertools
import math
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest

from psd.mechanisms import exponential_mechanism as selection
from psd.mechanisms.exponential_mechanism import Candidates, ExponentialMechanism, exponential
from psd.privacy.loss import NANO
from support.noise_paths import Tape

getcontext().prec = 80


def candidates(*groups):
    """Candidates from lists of (first, length, score), one list per group."""
    rows = [(g, *interval) for g, intervals in enumerate(groups) for interval in intervals]
    group, first, length, score = np.array(rows, np.int64).T
    return Candidates(group=group, first=first, length=length, score=score)


def select(found, epsilon=NANO, sensitivity=1):
    groups = int(found.group.max()) + 1
    return exponential(found, np.full(groups, epsilon), np.full(groups, sensitivity))


def test_weights_are_upper_bounds_and_tight_and_coins_floors_of_their_ratio():
    for bits in (26, 31, 41, 60):
        weights = selection._weights(bits).tolist()
        assert len(weights) == selection._DEEPEST + 1
        for depth, weight in enumerate(weights):
            exact = Decimal(2) ** bits * Decimal(-depth).exp()
            assert exact <= weight < exact + 2
            for precision in (64, 128) if depth and bits < 60 else ():
                ratio = int(exact * 2**precision / weight)
                assert selection._coin_floor(depth, bits, precision) == ratio


def test_a_tie_of_the_coin_reads_on_and_a_vague_enclosure_has_more_bits(monkeypatch):
    bits = 41
    for depth, (more, below) in itertools.product((1, 3, 64), ((-1, True), (1, False))):
        first, longer = (selection._coin_floor(depth, bits, p) for p in (64, 128))
        tape = Tape(monkeypatch, first, longer - (first << 64) + more)
        assert selection._coins(np.array([depth]), bits).tolist() == [below]
        assert not tape.left

    def vague(*asked):
        low, high = enclosure(*asked)
        return low - 2**70, high + 2**70

    enclosure = selection.exp_enclosure
    exact = Decimal(2) ** (37 + 64) * Decimal(-64).exp() / selection._weights(37).tolist()[64]
    monkeypatch.setattr(selection, "exp_enclosure", vague)
    assert selection._coin_floor(64, 37, 64) == int(exact)  # of bits that nothing else asks for


FOUND = {
    "one candidate": candidates([(5, 1, 0)]),
    "all scores equal": candidates([(5, 4, -3)]),
    "empty intervals": candidates([(5, 0, 99), (5, 2, -3), (7, 0, 50)]),
    "far below zero": candidates([(5, 3, -(10**15))]),
    "all lines of a curve": candidates([(1, 2**36 - 1, 0)]),
    "several groups": candidates([(0, 1, 0)], [(3, 2, 0)], [(9, 1, -1)]),
}
ONE_GOOD_LINE = candidates([(1, 2**35, -50), (2**35 + 1, 1, 0), (2**35 + 2, 2**35 - 2, -50)])


def selects_candidates(found, epsilon):
    """Whether 20 selections are lines of candidates."""
    for lines in [select(found, epsilon).tolist() for _ in range(20)]:
        for group, line in enumerate(lines):
            mine = found.group == group
            first, length = found.first[mine], found.length[mine]
            if not ((first <= line) & (line < first + length)).any():
                return False
    return True


def test_only_candidates_are_selected(subtests):
    for (name, found), epsilon in itertools.product(FOUND.items(), (1, NANO, 1_000 * NANO)):
        with subtests.test(name, epsilon=epsilon):
            assert selects_candidates(found, epsilon)
    found = candidates([(0, 2**20 - 1, -2), (2**20 - 1, 1, 0), (2**20, 50, -1)])
    assert {int(select(found, 200 * NANO)[0]) for _ in range(50)} == {2**20 - 1}
    # Running totals pass 2**64 when there are many groups; each group is still its own.
    one = [(0, 2**19, 0), (2**19, 2**19, -1)]
    found = candidates(*[[(first + 2**20 * g, n, s) for first, n, s in one] for g in range(200)])
    lines = select(found)
    assert (lines >> 20).tolist() == list(range(200))


@pytest.mark.deep
@pytest.mark.parametrize("epsilon", [1, NANO, 1_000 * NANO])
def test_one_good_line_of_a_curve_is_selected(epsilon):
    assert selects_candidates(ONE_GOOD_LINE, epsilon)


def log_law(scores, epsilon, sensitivity):
    """Log-probability of candidates of a line each."""
    group = [(first, 1, score) for first, score in enumerate(scores)]
    mechanism = mechanism_of(group, epsilon=[epsilon], sensitivity=[sensitivity])
    answers = [np.array([first]) for first in range(len(group))]
    return np.array([mechanism.log_probability(answer)[0] for answer in answers])


def test_ratio_of_two_neighbours_stays_within_epsilon():
    """Scores that move by the sensitivity, in any direction, change no probability by more."""
    random = np.random.default_rng(3)
    for sensitivity in (1, 2, 3):
        for _ in range(100):
            scores = random.integers(-40, 1, 6)
            moved = scores + random.integers(-sensitivity, sensitivity + 1, 6)
            laws = [log_law(row, NANO, sensitivity) for row in (scores, moved)]
            assert np.abs(laws[0] - laws[1]).max() <= 1 + 1e-12
    # 1,491 points at one place and epsilon 1: float weights underflow to 0, these do not.
    assert math.exp(-1491) == 0.0
    assert log_law([-1491, 0], 2 * NANO, 1).min() > -700
    assert selection._weights(50).min() >= 1
    found = candidates([(0, 5, -1491), (5, 1, 0)])
    depths, _, _ = selection._depths(found, np.array([2 * NANO]), np.array([1]))
    assert depths.max() == selection._DEEPEST


def candidates_of(lengths, scores):
    """One group of intervals, with a hundred lines between each two."""
    lengths = np.array(lengths, np.int64)
    return Candidates(
        group=np.zeros(len(lengths), np.int64),
        first=np.cumsum(lengths) - lengths + 100 * np.arange(len(lengths)),
        length=lengths,
        score=np.array(scores, np.int64),
    )


def test_rates_and_depths_are_exact_and_points_in_their_interval(monkeypatch):
    losses = (1, 7, NANO // 3, NANO, 99 * NANO + 1, 999 * NANO + 1, 1_000 * NANO)
    pairs = list(itertools.product(losses, (1, 3, 7, 562_949, 10**9)))
    rates = [min((loss << 50) // (2 * NANO * bound), 64 << 50) for loss, bound in pairs]
    several = np.array(pairs[::-1] + pairs)
    assert selection._rates(several[:, 0], several[:, 1]).tolist() == rates[::-1] + rates
    for (epsilon, sensitivity), rate in zip(pairs, rates, strict=True):
        asked = np.array([epsilon]), np.array([sensitivity])
        assert selection._rates(*asked).tolist() == [rate]
        deepest = max((64 << 50) // max(rate, 1), 1)
        for gap in (1, 5, 2**20 + 1, 2**57):
            whole, rest, _ = selection._depths(candidates_of([1, 1], [0, -gap]), *asked)
            depth = rate * min(gap, deepest)
            assert whole.tolist() == [0, depth >> 50]
            assert rest.tolist() == [0, depth % 2**50]
    # Below 2^61 points, a quotient of floats would be one line too far for the last one.
    monkeypatch.setattr(selection, "bernoulli_exp", lambda n, d: np.ones(len(n), bool))
    for lengths, at, parts, line in [
        ([1, 1], 0, 2, 0),
        ([1, 1], 1, 2, 101),  # the first point of the second interval
        ([3, 1, 4], 3, 8, 103),
        ([3, 1, 4], 4, 8, 204),
        ([3, 1, 4], 7, 8, 207),
        ([2**35], 0, 1, 0),
        ([2**35], None, 1, 2**35 - 1),
    ]:

        def point(bounds, at=at, parts=parts):
            last = bounds - np.uint64(1)
            return (last if at is None else bounds // parts * at).view(np.int64)

        monkeypatch.setattr(selection, "uniform_below", point)
        found = candidates_of(lengths, [0] * len(lengths))
        assert exponential(found, np.array([NANO]), np.array([1])).tolist() == [line]


def mechanism_of(*groups, epsilon, sensitivity):
    law = {"epsilon": np.array(epsilon), "sensitivity": np.array(sensitivity)}
    return ExponentialMechanism(candidates=candidates(*groups), **law)


GROUPS = (
    [(5, 2, -3), (0, 1, 0), (9, 0, 50), (3, 1, -1)],  # 9 is the first of no candidate
    [(-4, 3, 7)],
    [(0, 1, -500), (1, 1, 0), (2, 1, -1)],  # 0 lies beyond the deepest gap
)
LEVELS = {"epsilon": [NANO, 2 * NANO, 3 * NANO], "sensitivity": [1, 2, 3]}


def law_of_group(group, epsilon, sensitivity):
    """Probability of each candidate of a group by its definition."""
    rate = Fraction(epsilon, 2 * NANO * sensitivity)
    deepest = max(math.floor(selection._DEEPEST / rate), 1)
    best = max(score for _, length, score in group if length)
    weights = {
        first + step: math.exp(-rate * min(best - score, deepest))
        for first, length, score in group
        for step in range(length)
    }
    return {answer: weight / sum(weights.values()) for answer, weight in weights.items()}


def test_probabilities_are_those_of_the_definition():
    mechanism = mechanism_of(*GROUPS, **LEVELS)
    laws = [law_of_group(*each) for each in zip(GROUPS, *LEVELS.values(), strict=True)]
    for answers in itertools.product(range(-6, 11), repeat=2):
        for third in range(-1, 4):
            answer = np.array([*answers, third])
            probability = np.exp(mechanism.log_probability(answer))
            expected = [law.get(int(n), 0.0) for law, n in zip(laws, answer, strict=True)]
            assert probability == pytest.approx(expected, rel=1e-12, abs=0)
    assert log_law([0, -1, -9], 200 * NANO, 1) == pytest.approx([0, -100, -100])


def test_a_seed_selects_by_the_weights_of_the_law():
    """The largest of log-weights plus Gumbel noise; no noise makes up for no candidate."""
    even = mechanism_of(*GROUPS, **LEVELS).approximate(lambda size: np.full(size, 0.5))
    assert even.tolist() == [0, -3, 1]
    mechanism = mechanism_of([(0, 1, 0), (1, 1, -10)], epsilon=[NANO], sensitivity=[1])
    for gumbel, selected in ((4.9, 0), (5.1, 1)):
        floats = iter((np.exp(-np.exp([0, -gumbel])), np.ones(1)))
        assert mechanism.approximate(lambda _, floats=floats: next(floats)).tolist() == [selected]


def test_a_mechanism_samples_by_its_own_arguments_and_its_public_part_has_no_score(monkeypatch):
    calls = []
    monkeypatch.setattr(selection, "exponential", lambda *given: calls.append(given) or "answer")
    mechanism = mechanism_of(*GROUPS, **LEVELS)
    assert mechanism.sample() == "answer"
    assert calls == [(mechanism.candidates, mechanism.epsilon, mechanism.sensitivity)]
    assert mechanism_of(GROUPS[0], epsilon=[NANO], sensitivity=[1]).sample() == "answer"
    of_none = mechanism_of(GROUPS[0], epsilon=[], sensitivity=[]).sample()
    assert (of_none.shape, of_none.dtype) == ((0,), np.int64)
    assert mechanism.public == ("selection", mechanism.epsilon, mechanism.sensitivity)
    assert mechanism.cost is mechanism.epsilon
