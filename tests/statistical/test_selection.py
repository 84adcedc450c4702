"""Law of the exponential mechanism, by chi-square; wrong rates are rejected."""

import numpy as np
import pytest
from goodness import ALPHA, holds
from replay import small_domain, small_tally
from scipy import stats

from psd.curator import Curator
from psd.epsilon import NANO
from psd.noise import SecureNoise, selection
from psd.noise.selection import Candidates, exponential

DRAWS = 50_000
SCORES = np.array([-9, -5, -4, -2, -1, 0, 0, -1, -3, -4, -6, -7, -8, -12, -20, -40])
LENGTHS = np.array([1, 2, 1, 1, 3, 1, 1, 1, 1, 5, 1, 1, 1, 1, 1, 1])


def p_value(lines, epsilon, sensitivity, factor=1.0):
    """P-value of selected lines against the law at a rate."""
    weights = np.exp(factor * epsilon / NANO * np.repeat(SCORES, LENGTHS) / (2 * sensitivity))
    expected = DRAWS * weights / weights.sum()
    observed = np.bincount(lines, minlength=len(expected))
    common = expected >= 5
    groups = [np.append(values[common], values[~common].sum()) for values in (observed, expected)]
    if groups[1][-1] < 5:
        groups = [np.append(g[:-2], g[-2:].sum()) for g in groups]
    return stats.chisquare(groups[0], groups[1]).pvalue


def draws(epsilon, sensitivity):
    first = np.cumsum(LENGTHS) - LENGTHS
    found = Candidates(
        group=np.repeat(np.arange(DRAWS), len(SCORES)),
        first=np.tile(first, DRAWS),
        length=np.tile(LENGTHS, DRAWS),
        score=np.tile(SCORES, DRAWS),
    )
    return exponential(found, np.full(DRAWS, epsilon), np.full(DRAWS, sensitivity))


@pytest.mark.parametrize("sensitivity", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [NANO // 10, NANO, 3 * NANO])
def test_law(epsilon, sensitivity):
    assert holds(lambda: p_value(draws(epsilon, sensitivity), epsilon, sensitivity))


@pytest.mark.parametrize("factor", [0.7, 1.3, 2.0])
def test_wrong_rates_are_rejected(factor):
    assert p_value(draws(NANO, 1), NANO, 1, factor) < ALPHA


def test_a_planted_factor_two_is_rejected(monkeypatch):
    original = selection._rates
    monkeypatch.setattr(selection, "_rates", lambda e, s: 2 * original(e, s))
    assert p_value(draws(NANO, 1), NANO, 1) < ALPHA


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
                small_tally(side, rows), small_domain(side), epsilon=NANO, noise=SecureNoise()
            )
            lines.append(int(curator.quantile(curator.root(), axis=0, epsilon=NANO, p=p, q=q)[0]))
        observed = np.bincount(lines, minlength=side)[1:]
        return stats.chisquare(observed, 4_000 * np.array(weights) / sum(weights)).pvalue

    assert holds(fresh)
