"""Which rows of a user are kept: those with the smallest marks. Private side.

A mark is a keyed hash of the row's user, lattice cell, time, and occurrence number among equal
rows, made of products and remainders below 2^62, so that every engine of 64-bit integers works
it out alike. It reads nothing but the user's own row and the key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

__all__ = ["PRIME", "SALTS", "TIME_OFFSET", "row_hashes", "user_salts"]

# The Mersenne prime 2^31 - 1: products of two remainders stay below 2^62.
PRIME = 2**31 - 1

# Numbers of a user's own, 28 bits each.
SALTS = 3

# Rows whose numbers stay in the cache of a processor while they are worked out.
_TOGETHER = 2**14

# Makes microseconds of any year positive.
TIME_OFFSET = 2**61


def user_salts(names: Iterable[str], key: bytes) -> NDArray[np.int64]:
    """Three numbers below 2^28 for each id, from MD5 of the key, a bar, and the id.

    They are digits 1 to 7, 9 to 15 and 17 to 23 of the 32 hexadecimal ones. MD5 is there for
    being known to every engine; privacy does not rest on it.

    Parameters
    ----------
    names : iterable of str
        Ids. Private.
    key : bytes
        Independent of the data; its hexadecimal digits are hashed.

    Returns
    -------
    ndarray, shape (3, n), int64
    """
    start = hashlib.md5(f"{key.hex()}|".encode(), usedforsecurity=False)
    digests = bytearray()
    for name in names:
        one = start.copy()
        one.update(name.encode())
        digests += one.digest()
    words = np.frombuffer(digests, ">u4").reshape(-1, 4)[:, :SALTS] >> 4
    return words.T.astype(np.int64)


def row_hashes(
    salt: NDArray[np.int64],
    columns: NDArray[np.int64],
    rows: NDArray[np.int64],
    time: NDArray[np.int64],
    occurrence: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Marks of rows, 0 to 2^31 - 2: a polynomial of the user's own, scrambled by a fifth power.

    x = salt0; x = (x salt1 + v) mod p for v = column, row, t div 2^31, t mod 2^31, occurrence
    with t = time + 2^61; the mark is (x^5 + salt2) mod p. The fifth power is one to one, since
    5 does not divide p - 1.

    Parameters
    ----------
    salt : ndarray, shape (3, n), int64
        Numbers of each row's user.
    columns, rows : ndarray, shape (n,), int64
        Cells of the full lattice.
    time : ndarray, shape (n,), int64
        Microseconds of the wall clock since 1970; 0 where rows have no time.
    occurrence : ndarray, shape (n,), int64
        0, 1, ... among rows of one user that agree in all else.
    """
    found = np.empty(len(columns), np.int64)
    for start in range(0, len(found), _TOGETHER):
        here = slice(start, start + _TOGETHER)
        values = (columns[here], rows[here], time[here], occurrence[here])
        found[here] = _marks(salt[:, here], *values)
    return found


def _marks(
    salt: NDArray[np.int64],
    columns: NDArray[np.int64],
    rows: NDArray[np.int64],
    time: NDArray[np.int64],
    occurrence: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Marks of some rows."""
    moment = time + TIME_OFFSET
    x = salt[0]
    for value in (columns, rows, moment >> 31, moment & PRIME, occurrence):
        # One fold leaves less than 2^32, which times a salt stays below 2^60.
        x = _folded(x * salt[1] + value)
    x = _remainder(x)
    square = _remainder(x * x)
    return _remainder(_remainder(square * square) * x + salt[2])


def _remainder(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Remainders by the prime, without a division."""
    values = _folded(_folded(values))
    values[values == PRIME] = 0
    return values


def _folded(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same remainders in fewer bits, since 2^31 leaves 1."""
    folded: NDArray[np.int64] = values & PRIME
    folded += values >> 31
    return folded
