"""Law of the exponential mechanism, by chi-square; wrong rates are rejected."""

import numpy as np
import pytest
from scipy import stats

from psd.curator.curator import Curator
from psd.mechanisms.exponential_mechanism import Candidates, exponential
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.epsilon import NANO
from psd.testing import small_domain, small_tally
from support.goodness_of_fit import ALPHA, holds
from support.privacy.selection_law import draws, p_value


@pytest.mark.parametrize("sensitivity", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [NANO // 10, NANO, 3 * NANO])
def test_law(epsilon, sensitivity):
    assert holds(lambda: p_value(draws(epsilon, sensitivity), epsilon, sensitivity))


@pytest.mark.parametrize("factor", [0.7, 1.3, 2.0])
def test_wrong_rates_are_rejected(factor):
    assert p_value(draws(NANO, 1), NANO, 1, factor) < ALPHA


def test_law_on_intervals_as_long_as_a_curve():
    """Interval by interval, and whether the line inside one is uniform."""
    length = np.array([2**35 - 7, 2, 2**34 + 5, 1, 2**34, 2**20])
    score = np.array([-30, 0, -29, -1, -29, -16])
    first, size = np.cumsum(length) - length, 20_000
    found = Candidates(
        group=np.repeat(np.arange(size), len(length)),
        first=np.tile(first, size),
        length=np.tile(length, size),
        score=np.tile(score, size),
    )
    # Rate 3 / 4, so that long intervals far below the best weigh about as much as short ones.
    weights = length * np.exp(0.75 * score)

    def fresh():
        lines = exponential(found, np.full(size, 3 * NANO), np.full(size, 2))
        place = np.searchsorted(first, lines, side="right") - 1
        by_interval = np.bincount(place, minlength=len(length))
        inside = np.bincount((lines - first[place])[place == 0] * 8 // length[0], minlength=8)
        parts = (by_interval, size * weights / weights.sum()), (inside, np.full(8, inside.mean()))
        return min(stats.chisquare(*part).pvalue for part in parts)

    assert holds(fresh)


def test_division_of_the_curator():
    """From points to the drawn line, against weights exp(-epsilon o / 4), o bin by bin."""
    side, rows = 8, (0, 0, 0, 1, 1, 3, 5, 5, 6, 7)
    counts = np.zeros((side, side))
    np.add.at(counts, (np.array(rows) % side, np.array(rows) // side), 1)
    uneven = [
        sum(np.floor(np.abs(part - part.mean()).sum()) for part in (counts[:s], counts[s:]))
        for s in range(1, side)
    ]
    weights = np.exp(-2 * np.array(uneven) / 4)

    def fresh():
        lines = []
        for _ in range(4_000):
            curator = Curator(
                small_tally(side, rows),
                small_domain(side),
                budget=Budget(2 * NANO),
                sampler=SecureSampler(),
            )
            root = curator.root()
            lines += curator.homogeneous_split(
                root, axis=0, epsilon=2 * NANO, bins=8, lines=7
            ).tolist()
        observed = np.bincount(lines, minlength=side)[1:]
        return stats.chisquare(observed, 4_000 * weights / weights.sum()).pvalue

    assert holds(fresh)


@pytest.mark.parametrize(("p", "q"), [(1, 2), (1, 3), (2, 3)])
def test_quantile_of_the_curator(p, q):
    """From points to the drawn line, against the law worked out line by line."""
    side, rows = 12, (0, 1, 1, 2, 5, 5, 5, 7, 9, 11, 11)
    weights = [
        np.exp(-abs(q * sum(r < line for r in rows) - p * len(rows)) / (2 * max(p, q - p)))
        for line in range(1, side)
    ]

    def fresh():
        lines = []
        for _ in range(4_000):
            curator = Curator(
                small_tally(side, rows),
                small_domain(side),
                budget=Budget(NANO),
                sampler=SecureSampler(),
            )
            lines.append(int(curator.quantile(curator.root(), axis=0, epsilon=NANO, p=p, q=q)[0]))
        observed = np.bincount(lines, minlength=side)[1:]
        return stats.chisquare(observed, 4_000 * np.array(weights) / sum(weights)).pvalue

    assert holds(fresh)
