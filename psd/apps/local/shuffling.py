"""What local reports are worth in the central model once a shuffler mixed them.

A shuffler is a party between the devices and the collector: it passes on the reports of a group in
a random order, without anything that tells who sent which. Then each report hides among the others.

References
----------
.. [1] Feldman, McMillan, Talwar. "Hiding Among the Clones: A Simple and Nearly Optimal Analysis
   of Privacy Amplification by Shuffling." FOCS 2021, theorem 3.1 and its proof.
   https://doi.org/10.1109/FOCS52979.2021.00094
"""

from __future__ import annotations

import math

import numpy as np

from psd.errors import ParameterError

# Fewer reports give a larger epsilon, so a result for this many holds for more.
_REPORTS = 10**8

# exp(-epsilon) is below a float's step beyond; no report hides there.
_LARGEST = 30.0

# Standard deviations of the number of clones that are summed; the rest is added as if it told all.
_DEVIATIONS = 9.0


def shuffled_epsilon(epsilon: float, reports: int, delta: float) -> float:
    """Central epsilon, at a delta, of reports of one epsilon that are shuffled in one group.

    P1. Replacing the answer of one device changes the law of the shuffled reports by at most
    (result, delta), whatever the protocol, if each report is epsilon-locally private.
    """
    from scipy.optimize import brentq

    count = min(reports, _REPORTS)
    if epsilon > _LARGEST or shuffled_delta(0.0, epsilon, count) <= delta:
        return epsilon if epsilon > _LARGEST else 0.0

    def beyond(candidate: float) -> float:
        return math.log(max(shuffled_delta(candidate, epsilon, count), 1e-300) / delta)

    if beyond(epsilon) >= 0:
        return epsilon
    result = float(brentq(beyond, 0.0, epsilon, xtol=1e-13, rtol=1e-12))
    step = 1e-12
    while beyond(result) > 0:
        result, step = result + step, 2 * step
    return min(result, epsilon)


def shuffled_delta(central: float, epsilon: float, reports: int) -> float:
    """Delta of shuffled reports at a central epsilon, for the pair of the clone theorem.

    P2. The pair is P = (A + D, C - A + 1 - D) and Q = (A + 1 - D, C - A + D) with C ~ Bin(n - 1,
    e^-epsilon), A ~ Bin(C, 1/2) and D ~ Bern(r), r = e^epsilon / (e^epsilon + 1). For C = c the
    first number is a with probability r f(a) + (1 - r) g(a) under P, and (1 - r) f(a) + r g(a)
    under Q, where f(a) = Bin(a - 1; c, 1/2), g(a) = Bin(a; c, 1/2) and f / g = a / (c + 1 - a).
    With E = e^central, P > E Q iff this quotient is above x = (E r - (1 - r)) / (r - E (1 - r)); so
    the sum over a of P - E Q is two binomial tails. The pair is symmetric, so delta is the same in
    both directions.
    """
    from scipy.stats import binom

    growth, keep = math.exp(central), 1 / (1 + math.exp(-epsilon))
    if keep <= growth * (1 - keep):
        return 0.0
    quotient = (growth * keep - (1 - keep)) / (keep - growth * (1 - keep))
    clones, chance = reports - 1, math.exp(-epsilon)
    # Numbers of clones c beyond some deviations are left out, and their probability is added.
    wide = _DEVIATIONS * math.sqrt(clones * chance * (1 - chance)) + 1
    low, high = max(0, int(clones * chance - wide)), min(clones, int(clones * chance + wide) + 1)
    c = np.arange(low, high + 1)
    # The least a with f / g above the quotient, and the tails of g and f from there, (c,).
    first = np.floor(quotient * (c + 1) / (1 + quotient)) + 1
    g = binom.sf(first - 1, c, 0.5)
    f = g + binom.pmf(first - 1, c, 0.5)
    excess = (keep - growth * (1 - keep)) * f + ((1 - keep) - growth * keep) * g
    summed = (binom.pmf(c, clones, chance) * np.maximum(excess, 0)).sum()
    left_out = binom.cdf(low - 1, clones, chance) + binom.sf(high, clones, chance)
    return float(summed + left_out)


def check_delta(delta: float | str | None) -> float:
    """Delta as a number."""
    try:
        number = float(delta) if delta is not None else math.nan
    except (TypeError, ValueError):
        number = math.nan
    if not 0 < number < 1:
        raise ParameterError(
            f"delta must be a number above 0 and below 1, got {delta!r}; a usual one is 1e-6",
            name="delta",
        )
    return number
