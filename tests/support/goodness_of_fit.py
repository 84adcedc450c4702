"""Goodness of fit of integer noise, and the rule under which a test may fail by chance."""

import numpy as np
from scipy import stats

ALPHA = 1e-6
LEAST_EXPECTED = 5


def holds(p_value):
    """Whether a p-value stays above ALPHA; below it, one second run with fresh randomness decides.

    So a right sampler fails with probability ALPHA squared, and both p-values are printed.
    """
    first = p_value()
    if first >= ALPHA:
        return True
    second = p_value()
    print(f"p-values: {first:.3g}, then {second:.3g}")
    return second >= ALPHA


def discrete_laplace_p_value(draws, scale):
    """P-value of the chi-square statistic of draws against the discrete Laplace law."""
    edges = _edges(draws.size, scale)
    expected = -np.diff([1.0, *_survival(edges, scale), 0.0]) * draws.size
    observed = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=edges.size + 1)
    statistic = ((observed - expected) ** 2 / expected).sum()
    return stats.chi2.sf(statistic, edges.size)


def two_sample_p_value(first, second):
    """P-value of the chi-square statistic of two samples against one unknown law."""
    edges = np.unique(np.quantile(np.concatenate([first, second]), np.linspace(0.001, 0.999, 60)))
    cells = [np.searchsorted(edges, draws, side="right") for draws in (first, second)]
    table = np.array([np.bincount(cell, minlength=edges.size + 1) for cell in cells])
    return stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue


def _survival(x, scale):
    """P(X >= x) of the discrete Laplace law."""
    q = np.exp(-1 / scale)
    upper = np.exp(-np.abs(x) / scale) / (1 + q)  # P(X >= |x|)
    return np.where(x > 0, upper, 1 - upper * q)  # P(X >= x) = 1 - P(X >= 1 - x)


def _edges(size, scale):
    """First values of the cells after the lower tail, about a quarter of the scale wide."""
    q = np.exp(-1 / scale)
    last = int(np.log(size / (LEAST_EXPECTED * (1 + q))) * scale)  # n P(X >= last) >= 5
    step = max(1, round(scale / 4))
    return np.arange(-last + 1, last + 1, step)
