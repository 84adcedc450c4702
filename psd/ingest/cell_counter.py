"""Rows per cell, while they stream by. Private side."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from psd.errors import ParameterError

__all__ = ["CellCounter", "cell_counter"]

# A dense array of so many cells takes 128 MB.
_MOST_DENSE = 2**24

# Codes are collected before they are sorted, so that each is sorted a few times in all.
_PENDING = 2**24

# Bytes per code while two sorted lists are merged into one.
_MERGING = 64

Counted = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Codes of occupied cells, ascending, and their counts."""


class CellCounter(Protocol):
    """Counts codes of cells."""

    def add(self, codes: NDArray[np.int64], weights: NDArray[np.int64] | None = None) -> None:
        """Count some rows, each once or with its weight."""

    def counted(self) -> Counted:
        """Occupied cells and their counts."""


def cell_counter(cells: int, memory: int | None = None) -> CellCounter:
    """A dense array where all cells fit into an eighth of the memory, else sorted codes.

    Parameters
    ----------
    cells : int
        Number of cells there are. Public.
    memory : int, optional
        Cap in bytes.
    """
    if memory is None:
        return _Dense(cells) if cells <= _MOST_DENSE else _Sparse(_PENDING)
    if cells <= min(_MOST_DENSE, memory // 64):
        return _Dense(cells)
    return _Sparse(min(_PENDING, memory // 128), memory)


class _Dense:
    """One number per cell."""

    def __init__(self, cells: int) -> None:
        self._counts = np.zeros(cells, np.int64)

    def add(self, codes: NDArray[np.int64], weights: NDArray[np.int64] | None = None) -> None:
        np.add.at(self._counts, codes, 1 if weights is None else weights)

    def counted(self) -> Counted:
        codes = np.flatnonzero(self._counts)
        return codes, self._counts[codes]


class _Sparse:
    """Sorted codes with counts, and rows that wait to be sorted in."""

    def __init__(self, pending: int, memory: int | None = None) -> None:
        self._limit, self._memory = pending, memory
        self._codes, self._counts = np.empty(0, np.int64), np.empty(0, np.int64)
        self._waiting: list[tuple[NDArray[np.int64], NDArray[np.int64] | None]] = []
        self._rows = 0

    def add(self, codes: NDArray[np.int64], weights: NDArray[np.int64] | None = None) -> None:
        self._waiting.append((codes, weights))
        self._rows += len(codes)
        # Sorting in no sooner than the occupied cells have doubled keeps the work linear.
        if self._rows > max(self._limit, len(self._codes)):
            self._sort_in()

    def counted(self) -> Counted:
        self._sort_in()
        occupied = self._counts > 0  # rows of a user with more of them than its weight weigh 0
        return self._codes[occupied], self._counts[occupied]

    def _sort_in(self) -> None:
        """Merge the waiting rows into the sorted codes."""
        codes, counts = _summed(self._waiting)
        self._waiting, self._rows = [], 0
        together = len(self._codes) + len(codes)
        if self._memory is not None and together * _MERGING > self._memory:
            raise ParameterError(
                "the occupied cells do not fit into the memory that is allowed; raise --memory, "
                "take a coarser lattice, or a method whose cells do not depend on data, such as "
                "quadtree"
            )
        if len(self._codes):
            codes, counts = _summed([(self._codes, self._counts), (codes, counts)])
        self._codes, self._counts = codes, counts


def _summed(parts: list[tuple[NDArray[np.int64], NDArray[np.int64] | None]]) -> Counted:
    """Different codes in ascending order, and the sum of the weights of each."""
    codes = np.concatenate([part for part, _ in parts] or [np.empty(0, np.int64)])
    if all(weights is None for _, weights in parts):
        codes.sort()
        starts = _starts(codes)
        return codes[starts], np.diff(np.append(starts, len(codes)))
    weights = np.concatenate([np.ones(len(c), np.int64) if w is None else w for c, w in parts])
    order = np.argsort(codes)
    codes = codes[order]
    starts = _starts(codes)
    return codes[starts], np.add.reduceat(weights[order], starts) if len(starts) else weights


def _starts(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where runs of equal codes begin."""
    is_first = np.ones(len(codes), bool)
    is_first[1:] = codes[1:] != codes[:-1]
    return np.flatnonzero(is_first)
