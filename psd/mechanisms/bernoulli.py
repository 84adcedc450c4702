"""Exact coins of probability exp(-x), x rational, and exact geometric variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers
from psd.mechanisms.certified_thresholds import WORD_BITS, Law, Survival, thresholds
from psd.mechanisms.random_words import random_words, uniform_below

_UNIT = Survival(1, 1, two_sided=False)


def invert(words: NDArray[np.uint64], law: Law) -> NDArray[np.int64]:
    """Turn uniform 63-bit words into draws of a law, up to the length of its table.

    words: (n,) uint64, uniform over [0, 2**63); returns (n,) int64. With a geometric excess it is
    the law of min(X, m), m the length of the table; a draw of m needs an independent excess, see
    `psd.mechanisms.certified_thresholds.Survival`.

    P1. The law is exact. Let W be the first 63 bits of a real R, uniform in [0, 1), S_k = P(X >= k)
    and T_k the floor of 2**63 * S_k. By inversion [1]_ the number of k with R < S_k has the law. If
    W < T_k then R < (W + 1) / 2**63 <= S_k; if W > T_k then R >= W / 2**63 >= (T_k + 1) / 2**63 >
    S_k. So only W = T_k leaves k undecided. Then more bits of R are read until they differ from the
    expansion of S_k. If R < S_k, k + 1 may be undecided as well, where entries are equal or the
    table has ended.

    .. [1] L. Devroye, "Non-Uniform Random Variate Generation", Springer, 1986,
       doi:10.1007/978-1-4613-8643-8, section III.2 (inversion) and chapter XV (random bits).
    """
    table = thresholds(law)
    not_above = np.searchsorted(table, words, side="right")
    values = table.size - not_above
    # A word equal to a threshold says nothing yet: its next bits decide, see `_settle_draw`.
    last = table.size if law.has_geometric_excess else None
    for tie in np.flatnonzero(table[not_above - 1] == words):
        values[tie] = _settle_draw(int(words[tie]), int(values[tie]), law, last)
    return values


def unit_geometric(size: int) -> NDArray[np.int64]:
    """Draw V with P(V >= k) = exp(-k) exactly, shape (size,)."""
    values = np.zeros(size, dtype=np.int64)
    beyond = np.arange(size)
    while beyond.size:
        # The law has no memory: a draw at the end of the table begins anew there.
        capped = invert(random_words(beyond.size) >> np.uint64(1), _UNIT)
        values[beyond] += capped
        beyond = beyond[capped == thresholds(_UNIT).size]
    return values


def _settle_draw(prefix: int, value: int, law: Law, last: int | None) -> int:
    """Count the k with R < S_k, up to the last; R starts with the prefix, and bits are read."""
    bits = WORD_BITS
    while value != last:
        threshold = law.floor(value + 1, bits)
        if prefix > threshold:
            break
        if prefix < threshold:
            value += 1
        else:
            prefix, bits = prefix << 64 | int(random_words(1)[0]), bits + 64
    return value


Coin = Callable[[NDArray[np.intp]], NDArray[np.bool_]]


def bernoulli_exp(
    numerators: NDArray[np.int64], denominators: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Flip coins, (n,) bool, that are true with probability exp(-numerator / denominator).

    numerators, denominators: (n,) int64, at least 0 and at least 1. Time is not constant.

    P2. The probability is exact, by integer arithmetic on words of the operating system.

    P3. No two inputs are multiplied, so no fraction of 64-bit integers overflows.

    Algorithm 1 of [1]_. Write x = integer + rest with rest in [0, 1). The coin is true if a run of
    coins of probability exp(-1) reaches the length `integer`, a geometric variable with P(V >= k) =
    exp(-k), drawn at once, and a coin of probability exp(-rest) is true. For that, flip coins of
    probability rest / k, k = 1, 2, ..., up to the first that is false, of number K. Since P(K > k)
    = rest**k / k!, P(K is odd) is the sum of (-rest)**k / k!, which is exp(-rest). A coin of
    probability rest / k is true if coins of probability rest and 1 / k both are.

    .. [1] C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy",
       NeurIPS 2020, arXiv:2004.00010, section 5.1, Algorithm 1.
    """
    numerators, denominators = checked_pair(numerators, denominators, least_numerator=0)
    integer, rest = np.divmod(numerators, denominators)
    return _bernoulli_exp(integer, lambda going: uniform_below(denominators[going]) < rest[going])


def bernoulli_exp_of_parts(
    integer: NDArray[np.int64], rest: NDArray[np.int64], denominators: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Coins of probability exp(-integer - rest / denominator), (n,), rest at most denominator."""
    return _bernoulli_exp(integer, lambda going: uniform_below(denominators[going]) < rest[going])


def bernoulli_exp_of_any(numerators: NDArray[Any], denominators: NDArray[Any]) -> NDArray[np.bool_]:
    """Coins as `bernoulli_exp` of Python integers, (n,) object; quotients are below 2**62."""
    # Quotients below 2^62 fit in 64 bits; rests and denominators may be longer.
    integer = (numerators // denominators).astype(np.int64)
    rest = numerators % denominators
    # First 63 bits of each rest over its denominator; ties with a word are settled by more bits.
    prefixes = ((rest << WORD_BITS) // denominators).astype(np.uint64)

    def coin(going: NDArray[np.intp]) -> NDArray[np.bool_]:
        # 63 random bits against the first 63 of the probability.
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
    coins = np.ones(integer.size, dtype=np.bool_)
    if integer.any():
        coins = unit_geometric(integer.size) >= integer

    # Of probability exp(-rest), rest in [0, 1], for those that are left: true if K is odd.
    going = np.flatnonzero(coins)
    odd = np.ones(integer.size, dtype=np.bool_)
    k = 1
    while going.size:
        if k > 1:
            # The coin of probability 1 / k first: few are left for the other one.
            going = going[uniform_below(np.full(going.size, k, dtype=np.int64)) == 0]
        going = going[coin(going)]
        odd[going] ^= True
        k += 1
    return coins & odd


def _settle(rest: int, denominator: int) -> bool:
    """Whether a uniform number, whose first 63 bits are those of the quotient, lies below it."""
    # Long division, 64 binary digits at a time: the first digit that differs decides.
    rest = (rest << WORD_BITS) % denominator
    while True:
        digit, rest = divmod(rest << 64, denominator)
        if (word := int(random_words(1)[0])) != digit:
            return word < digit


LIMIT = 2**62
_MAX = 2**63 - 1


def geometric_each(numerators: Integers, denominators: Integers) -> Integers:
    """Draw G with P(G >= k) = exp(-k * denominator / numerator), each with its own scale.

    numerators, denominators: (n,) int64, positive, public; returns (n,) int64, below 2**62.

    P4. The law is exact, in lowest terms or not. From Algorithm 2 of [1]_. For the scale t / s, let
    U be uniform over [0, t) and accepted with probability exp(-U / t), and P(V >= k) = exp(-k).
    Then P(U + t V = x) is proportional to exp(-x / t) for every x >= 0, so P(U + t V >= x) = exp(-x
    / t), and G = floor((U + t V) / s) has P(G >= k) = P(U + t V >= k s) = exp(-k s / t).

    .. [1] C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy",
       NeurIPS 2020, arXiv:2004.00010, section 5.2, Algorithm 2.
    """
    # Uniform U below t, kept with the probability exp(-U / t).
    remainders = np.empty(numerators.size, dtype=np.int64)
    pending = np.arange(numerators.size)
    while pending.size:
        bounds = numerators[pending]
        # Only those that were refused are drawn again, whatever the others gave.
        candidates = uniform_below(bounds)
        accepted = bernoulli_exp(candidates, bounds)
        remainders[pending[accepted]] = candidates[accepted]
        pending = pending[~accepted]
    draws = _scaled(remainders, numerators, unit_geometric(numerators.size), denominators)
    refuse_beyond_limit(int(draws.max()))
    return draws


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
    # Few draws are so large; those alone are computed with integers of any size.
    wraps = v > (_MAX - u) // t
    values = (u + t * np.where(wraps, 0, v)) // s
    for i in np.flatnonzero(wraps):
        value = (int(u[i]) + int(t[i]) * int(v[i])) // int(s[i])
        refuse_beyond_limit(value)
        values[i] = value
    return values
