"""Law of the exponential mechanism, by chi-square."""

import numpy as np
import pytest
from scipy import stats

from psd.mechanisms.exponential_mechanism import Candidates, exponential
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.loss import NANO
from support.goodness_of_fit import holds, pooled_p_value
from support.privacy.curators import small_curator

DRAWS = 50_000
SCORES = np.array([-9, -5, -4, -2, -1, 0, 0, -1, -3, -4, -6, -7, -8, -12, -20, -40])
LENGTHS = np.array([1, 2, 1, 1, 3, 1, 1, 1, 1, 5, 1, 1, 1, 1, 1, 1])


def selected(scores, lengths, epsilon, sensitivity, size):
    """Lines that were selected among the same intervals, again and again."""
    found = Candidates(
        group=np.repeat(np.arange(size), len(lengths)),
        first=np.tile(np.cumsum(lengths) - lengths, size),
        length=np.tile(lengths, size),
        score=np.tile(scores, size),
    )
    return exponential(found, np.full(size, epsilon), np.full(size, sensitivity))


@pytest.mark.parametrize("sensitivity", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [NANO // 10, NANO, 3 * NANO])
def test_law(epsilon, sensitivity):
    weights = np.exp(epsilon / NANO * np.repeat(SCORES, LENGTHS) / (2 * sensitivity))

    def p_value():
        lines = selected(SCORES, LENGTHS, epsilon, sensitivity, DRAWS)
        observed = np.bincount(lines, minlength=len(weights))
        return pooled_p_value(observed, DRAWS * weights / weights.sum())

    assert holds(p_value)


@pytest.mark.deep
def test_law_on_intervals_as_long_as_a_curve():
    """Interval by interval, and whether the line inside one is uniform."""
    length = np.array([2**35 - 7, 2, 2**34 + 5, 1, 2**34, 2**20])
    score = np.array([-30, 0, -29, -1, -29, -16])
    first, size = np.cumsum(length) - length, 20_000
    # Rate 3 / 4, so that long intervals far below the best weigh about as much as short ones.
    weights = length * np.exp(0.75 * score)

    def fresh():
        lines = selected(score, length, 3 * NANO, 2, size)
        place = np.searchsorted(first, lines, side="right") - 1
        by_interval = np.bincount(place, minlength=len(length))
        inside = np.bincount((lines - first[place])[place == 0] * 8 // length[0], minlength=8)
        parts = (by_interval, size * weights / weights.sum()), (inside, np.full(8, inside.mean()))
        return min(stats.chisquare(*part).pvalue for part in parts)

    assert holds(fresh)


def lines_have_law(side, rows, epsilon, weights, ask):
    """Whether 4,000 lines that a curator draws have the law of these weights."""

    def fresh():
        lines = []
        for _ in range(4_000):
            curator, _ = small_curator(side, rows, budget=epsilon, sampler=SecureSampler())
            lines += ask(curator, curator.root()).tolist()
        observed = np.bincount(lines, minlength=side)[1:]
        return stats.chisquare(observed, 4_000 * np.array(weights) / sum(weights)).pvalue

    return holds(fresh)


@pytest.mark.deep
def test_division_of_the_curator():
    """From points to the drawn line, against weights exp(-epsilon o / 4), o bin by bin."""
    side, rows, epsilon = 8, (0, 0, 0, 1, 1, 3, 5, 5, 6, 7), 2 * NANO
    counts = np.zeros((side, side))
    np.add.at(counts, (np.array(rows) % side, np.array(rows) // side), 1)
    uneven = [
        sum(np.floor(np.abs(part - part.mean()).sum()) for part in (counts[:s], counts[s:]))
        for s in range(1, side)
    ]
    weights = np.exp(-2 * np.array(uneven) / 4)

    def ask(curator, root):
        return curator.homogeneous_split(root, axis=0, loss=epsilon, bins=8, lines=7)

    assert lines_have_law(side, rows, epsilon, weights, ask)


@pytest.mark.deep
@pytest.mark.parametrize(("p", "q"), [(1, 2), (1, 3), (2, 3)])
def test_quantile_of_the_curator(p, q):
    """From points to the drawn line, against the law worked out line by line."""
    side, rows = 12, (0, 1, 1, 2, 5, 5, 5, 7, 9, 11, 11)
    weights = [
        np.exp(-abs(q * sum(r < line for r in rows) - p * len(rows)) / (2 * max(p, q - p)))
        for line in range(1, side)
    ]

    def ask(curator, root):
        return curator.quantile(root, axis=0, loss=NANO, p=p, q=q)

    assert lines_have_law(side, rows, NANO, weights, ask)
