"""Law of the exponential mechanism, by chi-square."""

import numpy as np
from scipy import stats

from psd.mechanisms.exponential_mechanism import Candidates, exponential
from psd.privacy.epsilon import NANO

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
