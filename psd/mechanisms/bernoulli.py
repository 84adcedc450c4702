"""Exact coins of probability exp(-x), x rational."""

import numpy as np
from numpy.typing import NDArray

from psd.mechanisms.inversion import unit_geometric
from psd.mechanisms.random_words import uniform_below


def bernoulli_exp(
    numerators: NDArray[np.int64], denominators: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Flip coins that are true with probability exp(-numerator / denominator).

    Guarantees
    ----------
    - The probability is exact, by integer arithmetic on words of the operating system.
    - No two inputs are multiplied, so no fraction of 64-bit integers overflows.

    Parameters
    ----------
    numerators : ndarray, shape (n,), int64
        Not negative.
    denominators : ndarray, shape (n,), int64
        Positive.

    Returns
    -------
    ndarray, shape (n,), bool
        Independent coins.

    Raises
    ------
    TypeError
        An array does not have integers that fit into int64.
    ValueError
        The shapes differ, a numerator is negative or a denominator is not positive.

    Notes
    -----
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

    Examples
    --------
    >>> bernoulli_exp(np.array([0, 10**9]), np.array([7, 1])).tolist()
    [True, False]
    """
    numerators, denominators = checked_pair(numerators, denominators, least_numerator=0)
    integer, rest = np.divmod(numerators, denominators)
    return bernoulli_exp_of_parts(integer, rest, denominators)


def bernoulli_exp_of_parts(
    integer: NDArray[np.int64], rest: NDArray[np.int64], denominators: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Flip coins that are true with probability exp(-integer - rest / denominator).

    So an exponent whose numerator exceeds 64 bits needs no rounding. Guarantees and law are those
    of `bernoulli_exp`.

    Parameters
    ----------
    integer, rest : ndarray, shape (n,), int64
        Not negative, rest at most its denominator.
    denominators : ndarray, shape (n,), int64
        Positive.

    Returns
    -------
    ndarray, shape (n,), bool
        Independent coins.

    Examples
    --------
    >>> bernoulli_exp_of_parts(np.array([0, 2**62]), np.array([0, 1]), np.array([1, 2])).tolist()
    [True, False]
    """
    if not integer.any():
        return _bernoulli_exp_below_one(rest, denominators)
    coins = unit_geometric(integer.size) >= integer
    open_ = np.flatnonzero(coins)
    coins[open_] = _bernoulli_exp_below_one(rest[open_], denominators[open_])
    return coins


def checked_pair(
    numerators: NDArray[np.int64], denominators: NDArray[np.int64], *, least_numerator: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return both arrays as int64, shape (n,), or raise the errors of `bernoulli_exp`."""
    numerators, denominators = np.asarray(numerators), np.asarray(denominators)
    if not all(np.can_cast(a.dtype, np.int64) for a in (numerators, denominators)):
        raise TypeError("numerators and denominators must be arrays of int64")
    if numerators.ndim != 1 or numerators.shape != denominators.shape:
        raise ValueError("numerators and denominators must be of one shape (n,)")
    if (numerators < least_numerator).any() or (denominators < 1).any():
        raise ValueError(f"numerators must be at least {least_numerator}, denominators at least 1")
    return numerators.astype(np.int64, copy=False), denominators.astype(np.int64, copy=False)


def _bernoulli_exp_below_one(
    numerators: NDArray[np.int64], denominators: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Flip coins of probability exp(-rest), rest in [0, 1]: true when K is odd."""
    odd = np.ones(numerators.size, dtype=np.bool_)
    going = np.arange(numerators.size)
    k = 1
    while going.size:
        if k > 1:
            going = going[uniform_below(np.full(going.size, k, dtype=np.int64)) == 0]
        going = going[uniform_below(denominators[going]) < numerators[going]]
        odd[going] ^= True
        k += 1
    return odd
