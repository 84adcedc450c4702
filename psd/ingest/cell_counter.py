"""Count records per cell, as they are read. Private side."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from psd.errors import ResourceError
from psd.ingest.quadrant_codes import CellCounts, run_starts

__all__ = ["CellCounter", "cell_counter", "is_dense"]

# A dense array of this many cells takes 128 MB.
_MAX_DENSE = 2**24

# Codes that are collected before they are sorted and counted. They take up to 512 MB.
_PENDING = 2**26

# Size of the buffer of a small input.
_FIRST_BUFFER = 2**20

# Bytes per code while two sorted lists are merged into one.
_MERGE_BYTES = 64


class CellCounter(Protocol):
    """Counts codes of cells."""

    def add(self, codes: NDArray[np.int64], weights: NDArray[np.int64] | None = None) -> None:
        """Count records, each once or with its weight."""

    def counts(self) -> CellCounts:
        """Return the occupied cells and their counts."""

    def entries(self) -> tuple[NDArray[np.integer], NDArray[np.int64] | None]:
        """Return the occupied cells and their counts; or a code for each record, and None.

        Codes of records are in any order. It can be called once, instead of `counts`.
        """


def is_dense(cells: int, memory: int | None = None) -> bool:
    """Whether all cells are counted in an array, which takes up to an eighth of the memory."""
    return cells <= (_MAX_DENSE if memory is None else min(_MAX_DENSE, memory // 64))


def cell_counter(cells: int, memory: int | None = None) -> CellCounter:
    """Make a counter: an array if `is_dense`, else sorted codes.

    Parameters
    ----------
    cells : int
        Number of cells; all codes are below it. Public.
    memory : int, optional
        Limit in bytes.
    """
    if is_dense(cells, memory):
        return _Dense(cells)
    return _Sparse(cells, _PENDING if memory is None else min(_PENDING, memory // 128), memory)


class _Dense:
    """An array with one number per cell."""

    def __init__(self, cells: int) -> None:
        self._counts = np.zeros(cells, np.int64)

    def add(self, codes: NDArray[np.int64], weights: NDArray[np.int64] | None = None) -> None:
        np.add.at(self._counts, codes, 1 if weights is None else weights)

    def counts(self) -> CellCounts:
        codes = np.flatnonzero(self._counts)
        return codes, self._counts[codes]

    def entries(self) -> CellCounts:
        return self.counts()


class _Sparse:
    """Codes of records in a buffer, and sorted codes with counts once the buffer has been full.

    Parameters
    ----------
    cells : int
        Number of cells.
    pending : int
        Codes that are collected before they are sorted. The buffer grows up to about so many; the
        system gives memory to the part that is written to.
    memory : int, optional
        Limit in bytes.
    """

    def __init__(self, cells: int, pending: int, memory: int | None = None) -> None:
        self._limit, self._memory = pending, memory
        self._codes, self._counts = np.empty(0, np.int64), np.empty(0, np.int64)
        self._buffer: NDArray[np.integer] = np.empty(0, np.uint32 if cells <= 2**32 else np.int64)
        self._weighted: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._rows = self._weighted_rows = 0

    def add(self, codes: NDArray[np.int64], weights: NDArray[np.int64] | None = None) -> None:
        if weights is not None:
            self._weighted.append((codes, weights))
            self._weighted_rows += len(codes)
        else:
            self._append(codes)
        # The work stays linear, since the occupied cells double between two sorts.
        if self._rows + self._weighted_rows > max(self._limit, len(self._codes)):
            self._sort_in()

    def _append(self, codes: NDArray[np.int64]) -> None:
        """Copy codes to the buffer."""
        end = self._rows + len(codes)
        if end > len(self._buffer):
            larger = max(_FIRST_BUFFER, 4 * len(self._buffer), end)
            buffer = np.empty(min(larger, max(self._limit, 2 * end)), self._buffer.dtype)
            buffer[: self._rows] = self._buffer[: self._rows]
            self._buffer = buffer
        self._buffer[self._rows : end] = codes
        self._rows = end

    def counts(self) -> CellCounts:
        self._sort_in()
        # Records of a user with more records than its weight have weight 0.
        occupied = self._counts > 0
        if occupied.all():
            return self._codes, self._counts
        return self._codes[occupied], self._counts[occupied]

    def entries(self) -> tuple[NDArray[np.integer], NDArray[np.int64] | None]:
        if len(self._codes) or self._weighted_rows or self._exceeds(self._rows):
            return self.counts()
        return self._buffer[: self._rows], None

    def _sort_in(self) -> None:
        """Merge the waiting records into the sorted codes."""
        waiting = self._buffer[: self._rows]
        waiting.sort()
        parts = [_runs(waiting)]
        if parts[0][0] is waiting:
            self._buffer = self._buffer[:0]
        parts += self._weighted
        self._weighted, self._rows, self._weighted_rows = [], 0, 0
        codes, counts = parts[0] if len(parts) == 1 else _sum_by_code(parts)
        if self._exceeds(len(self._codes) + len(codes)):
            raise ResourceError(
                "the occupied cells exceed the memory limit; raise memory=SIZE, use a coarser "
                "lattice, or a method whose cells do not depend on data, such as quadtree"
            )
        if len(self._codes):
            codes, counts = _sum_by_code([(self._codes, self._counts), (codes, counts)])
        self._codes, self._counts = codes, counts

    def _exceeds(self, cells: int) -> bool:
        """Whether cells may exceed the memory limit."""
        return self._memory is not None and cells * _MERGE_BYTES > self._memory


def _runs(codes: NDArray[np.integer]) -> CellCounts:
    """Distinct codes of ascending ones, and how often each occurs."""
    if (codes[1:] != codes[:-1]).all():  # as on fine lattices: nothing is selected, or copied
        return codes.astype(np.int64, copy=False), np.ones(len(codes), np.int64)
    starts = run_starts(codes)
    return codes[starts].astype(np.int64), np.diff(np.append(starts, len(codes)))


def _sum_by_code(parts: list[CellCounts]) -> CellCounts:
    """Distinct codes in ascending order, and the sum of the counts of each."""
    codes = np.concatenate([codes for codes, _ in parts])
    counts = np.concatenate([counts for _, counts in parts])
    order = np.argsort(codes, kind="stable")  # merges parts that are sorted
    codes = codes[order]
    starts = run_starts(codes)
    return codes[starts], np.add.reduceat(counts[order], starts) if len(starts) else counts
