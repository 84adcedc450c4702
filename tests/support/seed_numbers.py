"""Continuous mechanisms of the source documents by exact integrals, and RAPPOR by enumeration.

Numbers are on [0, 1]; gamma is the half-width of the window of the staircase. The heights of seed
000 are a normal distribution that is clipped to its range, with an atom at each end.
"""

from fractions import Fraction
from itertools import combinations
from math import exp, log, sqrt

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

LOW, HIGH, MEAN, DEVIATION = 1.67, 1.85, 1.758, 0.0538
EPSILONS = (0.2, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 10)
GAMMAS = (0.16, 0.18, 0.20, 0.22)

_NODES, _WEIGHTS = leggauss(60)


def corrected_epsilon(gamma, epsilon):
    """Epsilon of the stairs for which the mechanism, cut off at the range, has epsilon."""
    growth = exp(epsilon)
    if gamma >= 0.5:
        b = gamma * growth
        return log((b + sqrt(b * b + 4 * (1 - gamma) * growth)) / 2)
    b = gamma * growth - 1 + 2 * gamma
    return log((b + sqrt(b * b + 8 * gamma * (1 - gamma) * growth)) / (4 * gamma))


def printed_epsilon(gamma, epsilon):
    """Row 2 of the theorem of seed 000 as it is printed, for gamma from one half."""
    b = gamma * exp(epsilon)
    return log(2 * (1 - gamma) * exp(epsilon) / (sqrt(b * b + 4 * b * (1 - gamma)) - b))


def staircase_loss(gamma, stairs):
    """Largest log-ratio of the bounded staircase with stairs of an epsilon, in closed form.

    It is between a number at an end and one with the widest window that leaves out an output.
    """
    rest = exp(-stairs)
    widest = min(2 * gamma, 1)
    return stairs + log((widest + rest * (1 - widest)) / (gamma + rest * (1 - gamma)))


def staircase_density(y, t, gamma, epsilon):
    """Density of an output of the corrected staircase."""
    rest = exp(-corrected_epsilon(gamma, epsilon))
    window = min(t + gamma, 1) - max(t - gamma, 0)
    return (1 if abs(y - t) < gamma else rest) / (window + rest * (1 - window))


def staircase_error(t, gamma, epsilon):
    """Mean squared error of the corrected staircase at numbers."""
    rest = exp(-corrected_epsilon(gamma, epsilon))
    below, above = np.minimum(t, gamma), np.minimum(1 - t, gamma)
    near, every = (below**3 + above**3) / 3, (t**3 + (1 - t) ** 3) / 3
    return ((1 - rest) * near + rest * every) / ((1 - rest) * (below + above) + rest)


def laplace_error(t, epsilon):
    """Mean squared error of the bounded Laplace mechanism at numbers."""
    b = 1 / epsilon

    def half(a):
        return b * b * (2 - np.exp(-a / b) * ((a / b) ** 2 + 2 * a / b + 2)) / 2

    return (half(t) + half(1 - t)) / (1 - np.exp(-t / b) / 2 - np.exp(-(1 - t) / b) / 2)


def _nodes(gamma):
    """Nodes and weights between the kinks at gamma and 1 - gamma."""
    edges = np.unique([0.0, min(gamma, 1 - gamma), max(gamma, 1 - gamma), 1.0])
    half, middle = np.diff(edges)[:, None] / 2, (edges[1:] + edges[:-1])[:, None] / 2
    return (middle + half * _NODES).ravel(), (half * _WEIGHTS).ravel()


def mean_error(error, gamma=0.0):
    """Mean squared error of heights, in square metres."""
    length = HIGH - LOW
    t, weights = _nodes(gamma)
    density = norm.pdf(LOW + length * t, MEAN, DEVIATION) * length
    at_low, at_high = norm.cdf((LOW - MEAN) / DEVIATION), norm.sf((HIGH - MEAN) / DEVIATION)
    ends = error(np.array([0.0, 1.0])) @ np.array([at_low, at_high])
    return float((ends + weights @ (density * error(t))) * length**2)


def laplace_heights(epsilon):
    """Mean squared error of the bounded Laplace mechanism for heights."""
    return mean_error(lambda t: laplace_error(t, epsilon))


def staircase_heights(gamma, epsilon):
    """Mean squared error of the corrected staircase for heights."""
    return mean_error(lambda t: staircase_error(t, gamma, epsilon), gamma)


def best_gamma(epsilon, error=staircase_heights):
    """Window with the least error, and that error."""
    found = minimize_scalar(
        lambda gamma: error(gamma, epsilon), bounds=(0.005, 0.49), method="bounded",
        options={"xatol": 1e-7},
    )  # fmt: skip
    return found.x, found.fun


def uniform_error(gamma, epsilon):
    """Mean squared error of the corrected staircase for a uniform number."""
    t, weights = _nodes(gamma)
    return float(weights @ staircase_error(t, gamma, epsilon))


def winning_gammas():
    """Ends of the windows that beat bounded Laplace at all epsilons from 0.2 to 10."""
    epsilons = np.geomspace(0.2, 10, 25)
    peers = [laplace_heights(epsilon) for epsilon in epsilons]

    def worst(gamma):
        pairs = zip(epsilons, peers, strict=True)
        return max(staircase_heights(gamma, epsilon) / peer for epsilon, peer in pairs) - 1

    return brentq(worst, 0.12, 0.19, xtol=1e-6), brentq(worst, 0.19, 0.3, xtol=1e-6)


def worst_errors(epsilon, gamma):
    """Largest mean squared errors over the range, of bounded Laplace and the staircase."""
    t, length = np.linspace(0, 1, 2001), HIGH - LOW
    laplace, stairs = laplace_error(t, epsilon).max(), staircase_error(t, gamma, epsilon).max()
    return float(laplace) * length**2, float(stairs) * length**2


def rappor_epsilons(bits, hashes, f, p, q):
    """Epsilons of the permanent response and of one report, over all pairs of Bloom masks."""
    f, p, q = Fraction(f), Fraction(p), Fraction(q)
    masks = [set(m) for r in range(1, hashes + 1) for m in combinations(range(bits), r)]
    permanent = {True: 1 - f / 2, False: f / 2}
    report = {one: rate * q + (1 - rate) * p for one, rate in permanent.items()}

    def loss(rates):
        # Bits are independent, so the worst report takes the worse value of each bit.
        ratios = {}
        for one in rates:
            for other in rates:
                x, y = rates[one], rates[other]
                ratios[one, other] = max(x / y, (1 - x) / (1 - y))
        worst = Fraction(0)
        for a in masks:
            for b in masks:
                ratio = Fraction(1)
                for i in range(bits):
                    ratio *= ratios[i in a, i in b]
                worst = max(worst, ratio)
        return log(worst)

    return loss(permanent), loss(report)


def rappor_formulas(hashes, f, p, q):
    """Epsilons by the corrected formulas, and the one that seed 002 prints."""
    p_star, q_star = f / 2 * (p + q) + (1 - f) * p, f / 2 * (p + q) + (1 - f) * q
    bit = log((1 - f / 2) / (f / 2))
    once = hashes * log(q_star * (1 - p_star) / (p_star * (1 - q_star)))
    return 2 * hashes * bit, once, bit
