"""Simultaneous confidence intervals: the level that each of them needs."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from psd._util.arrays import Floats

__all__ = ["simultaneous_level"]


# Number of directions, limited so that they have at most _COORDINATES coordinates in all.
_DIRECTIONS = 1 << 14
_COORDINATES = 1 << 24

# Keeps the factor of a correlation that is singular; far below what directions resolve.
_JITTER = 1e-10

_SEED = 20_240_229


def simultaneous_level(correlation: Floats, confidence: float) -> float:
    """Compute the level of each interval so that all of them hold together.

    correlation: (m, m) float64, of errors that are taken to be jointly normal; returns 2 Phi(c) -
    1, where |z_i| <= c for all i with the confidence.

    P1. Not below the confidence asked for, and not above what independent answers would need (Sidak
    [1]_), which is below Bonferroni's and enough whatever the correlation.

    P2. The same for the same correlation: the directions are fixed.

    A normal vector is a length times a direction. For a direction the length may grow until the
    first |z_i| reaches c, so the probability is the mean over directions of a chi distribution,
    which is smooth in c and exact for one answer. Directions are from a scrambled Sobol sequence.

    References
    ----------
    .. [1] Sidak. "Rectangular Confidence Regions for the Means of Multivariate Normal
       Distributions." Journal of the American Statistical Association 62(318), 1967.
    """
    from scipy import optimize, stats

    size = len(correlation)
    if size <= 1:
        return confidence
    longest = _largest_components(correlation)

    def beyond(c: float) -> float:
        return float(stats.chi.cdf(c / longest, size).mean()) - confidence

    single, apart = (_critical_value(level) for level in (confidence, confidence ** (1 / size)))
    if beyond(single) >= 0 or single >= apart:
        return confidence
    if beyond(apart) <= 0:
        return float(confidence ** (1 / size))
    critical = optimize.brentq(beyond, single, apart, xtol=1e-6)
    return float(np.clip(_level_of(critical), confidence, confidence ** (1 / size)))


def _critical_value(level: float) -> float:
    """The c of a level."""
    return -NormalDist().inv_cdf((1 - level) / 2)


def _level_of(critical: float) -> float:
    """The level of a c."""
    return 1 - 2 * NormalDist().cdf(-critical)


def _largest_components(correlation: Floats) -> Floats:
    """Largest |z_i| in each of some directions of length 1, shape (directions,)."""
    from scipy import special
    from scipy.stats import qmc

    size = len(correlation)
    factor = np.linalg.cholesky((correlation + _JITTER * np.eye(size)) / (1 + _JITTER))
    sequence = qmc.Sobol(size, scramble=True, seed=_SEED)
    directions = min(_DIRECTIONS, max(1 << 10, _COORDINATES // size))
    reached = []
    for _ in range(max(1, directions >> 10)):
        inside = np.clip(sequence.random(1 << 10), 1e-12, 1 - 1e-12)
        normal = special.ndtri(inside)
        length = np.linalg.norm(normal, axis=1)
        reached.append(np.abs(normal @ factor.T).max(axis=1) / length)
    return np.concatenate(reached)
