"""Laws of private choices, for audits, tests and tables. They decide no draw.

With probabilities that follow from true scores, results are PRIVATE.
"""

from __future__ import annotations

import numpy as np

from psd._util.arrays import Floats

__all__ = ["permute_and_flip_log_probability", "permute_and_flip_probabilities"]

# Points of Gauss-Legendre quadrature on each panel, see `_panels`.
_POINTS = 40
_LAST_END = 0.75
# Candidates whose factors are multiplied at once, so that a table has some megabytes.
_CHUNK = 2**14


def permute_and_flip_probabilities(exponents: Floats) -> Floats:
    """Probability of each candidate by permute-and-flip.

    Parameters
    ----------
    exponents : ndarray, shape (m,), float64
        Rate times gap of each candidate: 0 for the best, positive for others.

    Returns
    -------
    ndarray, shape (m,), float64
        They add up to 1, to about 12 digits.

    Notes
    -----
    With p_s = exp(-exponent_s), the probability of i is p_i times the integral over t from 0 to 1
    of prod (1 - p_s t) over s other than i. The integrand falls about as exp(-t sum p). Each panel
    is as wide as its distance from 0, in units of 1 / sum p; beyond 128 of them the integrand is
    below 1e-50.

    Examples
    --------
    >>> permute_and_flip_probabilities(np.array([0.0, np.log(2)]))
    array([0.75, 0.25])
    """
    coins = np.exp(-exponents)
    points, weights, logs = _product(coins)
    probabilities = np.zeros(len(coins))
    for t, weight, log in zip(points, weights, logs, strict=True):
        probabilities += weight * np.exp(log - np.log1p(-coins * t)) * coins
    return probabilities


def permute_and_flip_log_probability(exponents: Floats, chosen: int) -> float:
    """Log-probability of one candidate, also of one whose probability is below 1e-300.

    Parameters
    ----------
    exponents : ndarray, shape (m,), float64
        Rate times gap of each candidate.
    chosen : int
        Number of the candidate.

    Returns
    -------
    float

    Examples
    --------
    >>> round(permute_and_flip_log_probability(np.array([0.0, 1e4]), 1), 6)
    -10000.693147
    """
    coins = np.exp(-exponents)
    points, weights, logs = _product(coins)
    integral = (weights * np.exp(logs - np.log1p(-coins[chosen] * points))).sum()
    return float(np.log(integral) - exponents[chosen])


def _product(coins: Floats) -> tuple[Floats, Floats, Floats]:
    """Points in 0 to 1, their weights, and the log of the product of all 1 - coin t at each."""
    points, weights = _panels(float(coins.sum()))
    logs = np.zeros(len(points))
    for start in range(0, len(coins), _CHUNK):
        logs += np.log1p(-coins[start : start + _CHUNK] * points[:, None]).sum(axis=1)
    return points, weights, logs


def _panels(total: float) -> tuple[Floats, Floats]:
    """Points and weights of quadrature over 0 to 1, on panels that double in width."""
    ends = np.append(0.0, 2.0 ** np.arange(8) / total)
    # A panel that is too narrow would have points that are rounded to 1.
    ends = np.append(ends[ends < _LAST_END], min(1.0, 2.0**7 / total))
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    width = np.diff(ends)[:, None] / 2
    return ((points + 1) * width + ends[:-1, None]).ravel(), (weights * width).ravel()
