"""Draws by inversion of certified thresholds, one 63-bit word each."""

import numpy as np
from numpy.typing import NDArray

from psd.mechanisms.certified_thresholds import WORD_BITS, Survival, thresholds
from psd.mechanisms.random_words import random_words

_UNIT = Survival(1, 1, two_sided=False)


def invert(words: NDArray[np.uint64], law: Survival) -> NDArray[np.int64]:
    """Turn uniform 63-bit words into draws of a law, up to the length of its table.

    Parameters
    ----------
    words : ndarray, shape (n,), uint64
        Independent and uniform over [0, 2**63).
    law : Survival
        Law to draw from; its scale is at most `MAX_TABLE_SCALE`.

    Returns
    -------
    ndarray, shape (n,), int64
        Independent draws, each with exactly the law of min(X, m), where m is the length of the
        table. A draw of m needs an independent geometric excess, see `Survival`.

    Notes
    -----
    Take a word W as the first 63 bits of a uniform real number R in [0, 1), and let
    S_k = P(X >= k). By inversion [1]_ the number of k with R < S_k has the law. Let T_k be the
    floor of 2**63 * S_k. If W < T_k then R < (W + 1) / 2**63 <= S_k; if W > T_k then
    R >= W / 2**63 >= (T_k + 1) / 2**63 > S_k. So only W = T_k leaves k undecided. Then
    more bits of R are read until they differ from the expansion of S_k. Since the T_k are distinct,
    that happens for at most one k.

    References
    ----------
    .. [1] L. Devroye, "Non-Uniform Random Variate Generation", Springer, 1986,
       doi:10.1007/978-1-4613-8643-8, section III.2 (inversion) and chapter XV (random bits).
    """
    table = thresholds(law)
    not_above = np.searchsorted(table, words, side="right")
    values = table.size - not_above
    for tie in np.flatnonzero(table[not_above - 1] == words):
        values[tie] += _lies_below(int(words[tie]), int(values[tie]) + 1, law)
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


def _lies_below(prefix: int, k: int, law: Survival) -> bool:
    """Whether R < S_k, where R starts with the prefix; bits of R are read until they differ."""
    bits = WORD_BITS
    while prefix == (threshold := law.floor(k, bits)):
        prefix, bits = prefix << 64 | int(random_words(1)[0]), bits + 64
    return prefix < threshold
