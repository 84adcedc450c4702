"""Contribution bounding: at most k rows of each unit, or rows that share one user. Private side.

Which rows of a unit are kept depends on its own rows and a key alone, so that removing a user
changes no other user's kept rows, and the order of the rows is nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from psd.ingest.row_hash import PRIME, row_hashes

__all__ = ["keep_smallest", "rows_per_unit", "running_number", "user_weights"]

_MARK_BITS = PRIME.bit_length()


def rows_per_unit(units: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of each unit, by unit."""
    return np.bincount(units)


def user_weights(units: NDArray[np.int64], weight: int) -> NDArray[np.int64]:
    """Weight floor(M / k_u) of each row, k_u being the rows of its unit.

    Guarantees
    ----------
    The weights of one unit's rows add up to at most M.
    """
    found: NDArray[np.int64] = (weight // rows_per_unit(units))[units]
    return found


def keep_smallest(
    units: NDArray[np.int64],
    salt: NDArray[np.int64],
    cells: tuple[NDArray[np.int64], NDArray[np.int64]],
    time: NDArray[np.int64],
    k: int,
) -> NDArray[np.int64]:
    """Places of the k rows of each unit with the smallest marks.

    Equal rows of a unit are told apart by their occurrence number, so nothing depends on where
    a row stood; rows of a unit with the same mark are ordered by cell, time and occurrence.

    Parameters
    ----------
    units : ndarray, shape (n,), int64
        Number of each row's unit, below 2^32. Private.
    salt : ndarray, shape (3, n), int64
        Numbers of each row's user, see `psd.ingest.row_hash`. Private.
    cells : tuple of ndarray, shape (n,), int64
        Columns and rows of the full lattice. Private.
    time : ndarray, shape (n,), int64
        Microseconds of the wall clock; 0 without. Private.
    k : int
        The most rows kept of a unit. Public.
    """
    is_crowded = (rows_per_unit(units) > k)[units]
    if is_crowded.all():
        return _smallest(units, salt, *cells, time, k=k)
    crowded = np.flatnonzero(is_crowded)
    kept = _smallest(units[crowded], salt[:, crowded], *(v[crowded] for v in (*cells, time)), k=k)
    return np.concatenate([np.flatnonzero(~is_crowded), crowded[kept]])


def _smallest(
    units: NDArray[np.int64],
    salt: NDArray[np.int64],
    columns: NDArray[np.int64],
    rows: NDArray[np.int64],
    time: NDArray[np.int64],
    *,
    k: int,
) -> NDArray[np.int64]:
    """Places of the k smallest marks of each unit."""
    ties = (columns, rows, time)
    mark = row_hashes(salt, *ties, np.broadcast_to(np.int64(0), len(units)))
    order, tied = _sorted(units, mark, ties)
    # Equal rows have equal marks, so they stand among those that are tied.
    among = order[tied]
    occurrence = running_number([units[among], mark[among], *(v[among] for v in ties)])
    again = among[occurrence > 0]
    if len(again):
        more = occurrence[occurrence > 0]
        mark[again] = row_hashes(salt[:, again], columns[again], rows[again], time[again], more)
        number = np.zeros(len(units), np.int64)
        number[among] = occurrence
        order, _ = _sorted(units, mark, (*ties, number))
    return order[running_number([units[order]]) < k]


def _sorted(
    units: NDArray[np.int64], mark: NDArray[np.int64], ties: tuple[NDArray[np.int64], ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Order by unit, mark, then the ties; and the places in it where ties were looked at."""
    key = units << _MARK_BITS | mark
    order = np.argsort(key)
    key = key[order]
    same = np.zeros(len(key), bool)
    same[1:] = key[1:] == key[:-1]
    same[:-1] |= same[1:].copy()
    tied = np.flatnonzero(same)
    among = order[tied]
    resolved = np.lexsort((*(values[among] for values in reversed(ties)), key[tied]))
    order[tied] = among[resolved]
    return order, tied


def running_number(keys: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """0, 1, 2, ... within each run of equal keys."""
    size = len(keys[0])
    starts = np.ones(size, bool)
    starts[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    first = np.flatnonzero(starts)
    return np.arange(size) - np.repeat(first, np.diff(np.append(first, size)))
