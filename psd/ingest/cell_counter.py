"""Count records per cell, as they are read. Private side."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from psd.errors import ResourceError

__all__ = ["CellCounter", "cell_counter"]

# A dense array of this many cells takes 128 MB.
_MAX_DENSE = 2**24

# Codes that are collected before they are sorted, so that each is sorted only a few times.
_PENDING = 2**24

# Bytes per code while two sorted lists are merged into one.
_MERGE_BYTES = 64

CellCounts = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Codes of occupied cells, ascending, and their counts."""


class CellCounter(Protocol):
    """Counts codes of cells."""

    def add(self, codes: NDArray[np.int64], weights: NDArray[np.int64] | None = None) -> None:
        """Count records, each once or with its weight."""

    def counts(self) -> CellCounts:
        """Return the occupied cells and their counts."""


def cell_counter(cells: int, memory: int | None = None) -> CellCounter:
    """Make a counter: dense if all cells fit into an eighth of the memory, else sorted codes.

    Parameters
    ----------
    cells : int
        Number of cells. Public.
    memory : int, optional
        Limit in bytes.
    """
    if memory is None:
        return _Dense(cells) if cells <= _MAX_DENSE else _Sparse(_PENDING)
    if cells <= min(_MAX_DENSE, memory // 64):
        return _Dense(cells)
    return _Sparse(min(_PENDING, memory // 128), memory)


class _Dense:
    """An array with one number per cell."""

    def __init__(self, cells: int) -> None:
        self._counts = np.zeros(cells, np.int64)

    def add(self, codes: NDArray[np.int64], weights: NDArray[np.int64] | None = None) -> None:
        np.add.at(self._counts, codes, 1 if weights is None else weights)

    def counts(self) -> CellCounts:
        codes = np.flatnonzero(self._counts)
        return codes, self._counts[codes]


class _Sparse:
    """Sorted codes with counts, and a list of records to be sorted in."""

    def __init__(self, pending: int, memory: int | None = None) -> None:
        self._limit, self._memory = pending, memory
        self._codes, self._counts = np.empty(0, np.int64), np.empty(0, np.int64)
        self._waiting: list[tuple[NDArray[np.int64], NDArray[np.int64] | None]] = []
        self._rows = 0

    def add(self, codes: NDArray[np.int64], weights: NDArray[np.int64] | None = None) -> None:
        self._waiting.append((codes, weights))
        self._rows += len(codes)
        # The work stays linear, since the occupied cells double between two sorts.
        if self._rows > max(self._limit, len(self._codes)):
            self._sort_in()

    def counts(self) -> CellCounts:
        self._sort_in()
        occupied = (
            self._counts > 0
        )  # records of a user with more records than its weight have weight 0
        return self._codes[occupied], self._counts[occupied]

    def _sort_in(self) -> None:
        """Merge the waiting records into the sorted codes."""
        codes, counts = _sum_by_code(self._waiting)
        self._waiting, self._rows = [], 0
        together = len(self._codes) + len(codes)
        if self._memory is not None and together * _MERGE_BYTES > self._memory:
            raise ResourceError(
                "the occupied cells exceed the memory limit; raise memory=, use a coarser lattice, "
                "or a method whose cells do not depend on data, such as quadtree"
            )
        if len(self._codes):
            codes, counts = _sum_by_code([(self._codes, self._counts), (codes, counts)])
        self._codes, self._counts = codes, counts


def _sum_by_code(parts: list[tuple[NDArray[np.int64], NDArray[np.int64] | None]]) -> CellCounts:
    """Distinct codes in ascending order, and the sum of the weights of each."""
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
    """Indices where runs of equal codes start."""
    is_first = np.ones(len(codes), bool)
    is_first[1:] = codes[1:] != codes[:-1]
    return np.flatnonzero(is_first)
