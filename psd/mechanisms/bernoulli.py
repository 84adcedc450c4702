"""Exact coins of probability exp(-x), x rational."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd.mechanisms.certified_thresholds import WORD_BITS
from psd.mechanisms.inversion import unit_geometric
from psd.mechanisms.random_words import random_words, uniform_below

Coin = Callable[[NDArray[np.intp]], NDArray[np.bool_]]


def bernoulli_exp(
    numerators: NDArray[np.int64], denominators: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Flip coins that are true with probability exp(-numerator / denominator).

    numerators, denominators: (n,) int64, at least 0 and at least 1; returns (n,) bool.

    P1. The probability is exact, by integer arithmetic on words of the operating system.

    P2. No two inputs are multiplied, so no fraction of 64-bit integers overflows.

    Algorithm 1 of [1]_. Write x = integer + rest with rest in [0, 1). The coin is true if a run of
    coins of probability exp(-1) reaches the length `integer` and a coin of probability exp(-rest)
    is true. The length of the run is a geometric variable with P(V >= k) = exp(-k), drawn at once.

    For the rest, flip coins of probability rest / k, k = 1, 2, ..., up to the first that is
    false, which has number K. Since P(K > k) = rest**k / k!, P(K is odd) is the sum of
    (-rest)**k / k!, which is exp(-rest). A coin of probability rest / k is true if a coin of
    probability rest and one of probability 1 / k are both true.

    The number of rounds depends on the outcome: time is not constant.

    References
    ----------
    .. [1] C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy",
       NeurIPS 2020, arXiv:2004.00010, section 5.1, Algorithm 1.
    """
    numerators, denominators = checked_pair(numerators, denominators, least_numerator=0)
    integer, rest = np.divmod(numerators, denominators)
    return bernoulli_exp_of_parts(integer, rest, denominators)


def bernoulli_exp_of_parts(
    integer: NDArray[np.int64], rest: NDArray[np.int64], denominators: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Flip coins that are true with probability exp(-integer - rest / denominator).

    All (n,) int64, rest at most its denominator: no exponent needs rounding whose numerator exceeds
    64 bits. Returns (n,) bool, by the law of `bernoulli_exp`.
    """
    return _bernoulli_exp(integer, lambda going: uniform_below(denominators[going]) < rest[going])


def bernoulli_exp_of_any(numerators: NDArray[Any], denominators: NDArray[Any]) -> NDArray[np.bool_]:
    """Flip coins that are true with probability exp(-numerator / denominator), of any size.

    Both (n,) object: Python integers, so that no product wraps, with quotients below 2**62. Returns
    (n,) bool, by the law of `bernoulli_exp`.
    """
    integer = (numerators // denominators).astype(np.int64)
    rest = numerators % denominators
    prefixes = ((rest << WORD_BITS) // denominators).astype(np.uint64)

    def coin(going: NDArray[np.intp]) -> NDArray[np.bool_]:
        words = random_words(going.size) >> np.uint64(1)
        coins: NDArray[np.bool_] = words < prefixes[going]
        for tie in np.flatnonzero(words == prefixes[going]):
            at = going[tie]
            coins[tie] = _settle(int(rest[at]), int(denominators[at]))
        return coins

    return _bernoulli_exp(integer, coin)


def checked_pair(
    numerators: NDArray[np.int64], denominators: NDArray[np.int64], *, least_numerator: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return both arrays as int64, shape (n,), or raise TypeError or ValueError."""
    numerators, denominators = np.asarray(numerators), np.asarray(denominators)
    if not all(np.can_cast(a.dtype, np.int64) for a in (numerators, denominators)):
        raise TypeError("numerators and denominators must be arrays of int64")
    if numerators.ndim != 1 or numerators.shape != denominators.shape:
        raise ValueError("numerators and denominators must be of one shape (n,)")
    if (numerators < least_numerator).any() or (denominators < 1).any():
        raise ValueError(f"numerators must be at least {least_numerator}, denominators at least 1")
    return numerators.astype(np.int64, copy=False), denominators.astype(np.int64, copy=False)


def _bernoulli_exp(integer: NDArray[np.int64], coin: Coin) -> NDArray[np.bool_]:
    """Flip coins of probability exp(-(integer + rest)); ``coin`` flips those of the rest."""
    if not integer.any():
        return _bernoulli_exp_below_one(np.arange(integer.size), integer.size, coin)
    coins = unit_geometric(integer.size) >= integer
    return coins & _bernoulli_exp_below_one(np.flatnonzero(coins), integer.size, coin)


def _bernoulli_exp_below_one(going: NDArray[np.intp], size: int, coin: Coin) -> NDArray[np.bool_]:
    """Flip coins of probability exp(-rest), rest in [0, 1], for some elements: true if K is odd."""
    odd = np.ones(size, dtype=np.bool_)
    k = 1
    while going.size:
        if k > 1:
            going = going[uniform_below(np.full(going.size, k, dtype=np.int64)) == 0]
        going = going[coin(going)]
        odd[going] ^= True
        k += 1
    return odd


def _settle(rest: int, denominator: int) -> bool:
    """Whether a uniform number, whose first 63 bits are those of the quotient, lies below it."""
    rest = (rest << WORD_BITS) % denominator
    while True:
        digit, rest = divmod(rest << 64, denominator)
        if (word := int(random_words(1)[0])) != digit:
            return word < digit
