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


def binomial_p_value(happened, chance):
    """P-value of how often something happened, of a known chance."""
    return stats.binomtest(int(np.sum(happened)), np.size(happened), chance).pvalue


def pooled_p_value(observed, expected):
    """P-value of the chi-square statistic; what is rare counts together."""
    common = expected >= LEAST_EXPECTED
    pairs = [np.append(v[common], v[~common].sum()) for v in (observed, expected)]
    if pairs[1][-1] < LEAST_EXPECTED:
        pairs = [np.append(p[:-2], p[-2:].sum()) for p in pairs]
    return stats.chisquare(*pairs).pvalue


def independence_p_value(draws):
    """P-value of draws that are independent of each other, with fair signs."""
    signs = np.sign(draws)
    pairs = [
        (draws[:-1], draws[1:]),  # one draw and the next
        (draws[:-2], draws[2:]),
        (signs, np.abs(draws)),  # sign and magnitude of one word
        (signs[:-1], signs[1:]),
    ]
    p_values = [stats.pearsonr(*pair).pvalue for pair in pairs]
    p_values.append(binomial_p_value(draws[draws != 0] > 0, 0.5))
    return min(p_values) * len(p_values)


def discrete_laplace_p_value(draws, scale):
    """P-value of the chi-square statistic of draws against the discrete Laplace law."""
    edges = _edges(draws.size, scale)
    return _p_value(draws, edges, _survival(edges, scale))


def discrete_gaussian_p_value(draws, variance):
    """P-value of the chi-square statistic of draws against the law of parameter sigma^2."""
    sigma = float(variance) ** 0.5
    step = max(1, round(sigma / 4))
    edges = np.arange(-40 * step + 1, 40 * step + 1, step)
    survival = _gaussian_survival(edges, float(variance))
    wide = np.minimum(survival, 1 - survival) * draws.size >= LEAST_EXPECTED
    return _p_value(draws, edges[wide], survival[wide])


def _gaussian_survival(x, variance):
    """P(X >= x) of the discrete Gaussian law; of the normal law if no sum can tell."""
    if variance > 2**12:
        return stats.norm.sf((x - 0.5) / variance**0.5)
    values = np.arange(-int(40 * variance**0.5) - 60, int(40 * variance**0.5) + 61)
    mass = np.exp(-(values**2) / (2 * variance))
    above = np.cumsum(mass[::-1])[::-1] / mass.sum()
    return above[x - values[0]]


def _p_value(draws, edges, survival):
    """P-value of the numbers of draws between edges, of which P(X >= edge) is known."""
    expected = -np.diff([1.0, *survival, 0.0]) * draws.size
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
