"""Exact geometric variables, one scale per draw, by rejection."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers
from psd.mechanisms.bernoulli import bernoulli_exp
from psd.mechanisms.inversion import unit_geometric
from psd.mechanisms.random_words import uniform_below

LIMIT = 2**62
_MAX = 2**63 - 1

Attempt = Callable[[NDArray[np.intp]], tuple[Integers, NDArray[np.bool_]]]


def geometric_each(numerators: Integers, denominators: Integers) -> Integers:
    """Draw G with P(G >= k) = exp(-k * denominator / numerator), each with its own scale.

    numerators, denominators: (n,) int64, positive, public; returns (n,) int64, below 2**62.

    P1. The law is exact. From Algorithm 2 of [1]_. For the scale t / s, let U be uniform over [0,
    t) and accepted with probability exp(-U / t), and let P(V >= k) = exp(-k). Then P(U + t V = x)
    is proportional to exp(-x / t) for every x >= 0, so that P(U + t V >= x) = exp(-x / t), and G =
    floor((U + t V) / s) has P(G >= k) = P(U + t V >= k s) = exp(-k s / t). The fraction need not be
    in lowest terms.

    References
    ----------
    .. [1] C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy",
       NeurIPS 2020, arXiv:2004.00010, section 5.2, Algorithm 2.
    """

    def attempt(pending: NDArray[np.intp]) -> tuple[Integers, NDArray[np.bool_]]:
        bounds = numerators[pending]
        candidates = uniform_below(bounds)
        return candidates, bernoulli_exp(candidates, bounds)

    remainders = until_kept(numerators.size, attempt)
    draws = _scaled(remainders, numerators, unit_geometric(numerators.size), denominators)
    refuse_beyond_limit(int(draws.max()))
    return draws


def until_kept(size: int, attempt: Attempt) -> Integers:
    """Repeat an attempt on the elements, shape (size,), that it has not accepted yet."""
    values = np.empty(size, dtype=np.int64)
    pending = np.arange(size)
    while pending.size:
        drawn, accepted = attempt(pending)
        values[pending[accepted]] = drawn[accepted]
        pending = pending[~accepted]
    return values


def refuse_beyond_limit(magnitude: int) -> None:
    """Raise OverflowError from 2**62 on; counts can be added to smaller draws in int64."""
    if magnitude >= LIMIT:
        raise OverflowError(
            "a draw of noise reached 2**62; this happens by chance and does not depend on the data"
        )


def _scaled(u: Integers, t: Integers, v: Integers, s: Integers) -> Integers:
    """Compute floor((u + t * v) / s), where u < t, with no product that wraps."""
    if (int(v.max()) + 1) * int(t.max()) <= _MAX:
        return (u + t * v) // s
    wraps = v > (_MAX - u) // t
    values = (u + t * np.where(wraps, 0, v)) // s
    for i in np.flatnonzero(wraps):
        value = (int(u[i]) + int(t[i]) * int(v[i])) // int(s[i])
        refuse_beyond_limit(value)
        values[i] = value
    return values
