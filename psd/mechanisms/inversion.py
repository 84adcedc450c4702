"""Draws by inversion of certified thresholds, one 63-bit word each."""

import numpy as np
from numpy.typing import NDArray

from psd.mechanisms.certified_thresholds import WORD_BITS, Law, Survival, thresholds
from psd.mechanisms.random_words import random_words

_UNIT = Survival(1, 1, two_sided=False)


def invert(words: NDArray[np.uint64], law: Law) -> NDArray[np.int64]:
    """Turn uniform 63-bit words into draws of a law, up to the length of its table.

    words: (n,) uint64, uniform over [0, 2**63); returns (n,) int64. For a law with a geometric
    excess it is the law of min(X, m), m the length of the table; a draw of m needs an independent
    excess, see `psd.mechanisms.certified_thresholds.Survival`.

    P1. The law is exact. Take a word W as the first 63 bits of a uniform real number R in [0, 1),
    and let S_k = P(X >= k). By inversion [1]_ the number of k with R < S_k has the law. Let T_k be
    the floor of 2**63 * S_k. If W < T_k then R < (W + 1) / 2**63 <= S_k; if W > T_k then R >= W /
    2**63 >= (T_k + 1) / 2**63 > S_k. So only W = T_k leaves k undecided. Then more bits of R are
    read until they differ from the expansion of S_k. If R < S_k, k + 1 may be undecided as well,
    where entries are equal or the table has ended.

    References
    ----------
    .. [1] L. Devroye, "Non-Uniform Random Variate Generation", Springer, 1986,
       doi:10.1007/978-1-4613-8643-8, section III.2 (inversion) and chapter XV (random bits).
    """
    table = thresholds(law)
    not_above = np.searchsorted(table, words, side="right")
    values = table.size - not_above
    last = table.size if law.has_geometric_excess else None
    for tie in np.flatnonzero(table[not_above - 1] == words):
        values[tie] = _settle(int(words[tie]), int(values[tie]), law, last)
    return values


def unit_geometric(size: int) -> NDArray[np.int64]:
    """Draw V with P(V >= k) = exp(-k) exactly, shape (size,)."""
    values = np.zeros(size, dtype=np.int64)
    beyond = np.arange(size)
    while beyond.size:
        capped = invert(random_words(beyond.size) >> np.uint64(1), _UNIT)
        values[beyond] += capped
        beyond = beyond[capped == thresholds(_UNIT).size]
    return values


def _settle(prefix: int, value: int, law: Law, last: int | None) -> int:
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
