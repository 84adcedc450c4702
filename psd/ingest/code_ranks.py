"""How many records have smaller codes, without sorting all of them. Private side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["CodeRanks"]

# Fewer codes than this are sorted at once.
_FEW = 2**17

# Fewer cells fit into a cache; the smallest cells of most trees have more records than this.
_PER_CELL = 8

# Codes whose cells are counted together; they fit into the cache of a processor.
_CHUNK = 2**16

# Where more than this share of all codes would be sorted, all are.
_LARGEST_PART = 4


class CodeRanks:
    """Ranks of codes in quadrant order: the number of records with a smaller code. Private.

    A tree asks for the codes at which its cells begin. Those of cells down to a certain level are
    counted in an array with a number for each of the cells of this level, of which there are at
    most an eighth as many as records. For smaller cells the records near them are sorted, which
    are few in most trees. So most records are never sorted. The ranks are those of a search among
    all codes in ascending order.

    Parameters
    ----------
    codes : ndarray, shape (n,), int64 or uint32
        Codes of records or occupied cells, in any order. The array may be sorted in place. Private.
    levels : int
        All codes are below 4^levels. Public.
    is_sorted : bool
        Whether the codes are in ascending order.
    """

    def __init__(self, codes: NDArray[np.integer], levels: int, *, is_sorted: bool) -> None:
        self._codes, self._is_sorted = codes, is_sorted
        top = min(levels, max((len(codes) // _PER_CELL).bit_length() - 1, 0) // 2)
        self._shift = 2 * (levels - top)
        self._cells = 4**top
        self._below: NDArray[np.integer] | None = None
        # The codes in some cells, ascending, and which cells these are.
        self._part, self._has_part = codes[:0], np.zeros(0, bool)

    def __len__(self) -> int:
        return len(self._codes)

    def __repr__(self) -> str:
        return "<CodeRanks: private>"

    def ascending(self) -> NDArray[np.integer]:
        """All codes in ascending order."""
        if not self._is_sorted:
            self._codes.sort()
            self._is_sorted, self._below = True, None
            self._part, self._has_part = self._codes[:0], np.zeros(0, bool)
        return self._codes

    def ranks(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count the records with a code below each of some codes.

        Parameters
        ----------
        codes : ndarray, shape (m,), int64
            Codes of the lattice. Public.

        Returns
        -------
        ndarray, shape (m,), int64
        """
        if self._is_sorted or len(self._codes) < _FEW:
            return _search(self.ascending(), codes)
        cells = codes >> self._shift
        ranks: NDArray[np.int64] = self._counts_below()[cells].astype(np.int64)
        inside = np.flatnonzero(codes != cells << self._shift)
        if not len(inside):
            return ranks
        if not self._sort_cells(cells[inside]):
            return _search(self.ascending(), codes)
        first = cells[inside] << self._shift
        ranks[inside] += _search(self._part, codes[inside]) - _search(self._part, first)
        return ranks

    def _counts_below(self) -> NDArray[np.integer]:
        """Number of records before each cell of the level, and of all records."""
        if self._below is not None:
            return self._below
        # Half the memory, and two thirds of the time.
        kind = np.int32 if len(self._codes) < 2**31 else np.int64
        counts: NDArray[np.integer] = np.zeros(self._cells + 1, kind)
        for start in range(0, len(self._codes), _CHUNK):
            cells = (self._codes[start : start + _CHUNK] >> self._shift).astype(np.intp)
            np.add.at(counts[1:], cells, kind(1))
        self._below = np.cumsum(counts, out=counts)
        return counts

    def _sort_cells(self, cells: NDArray[np.int64]) -> bool:
        """Sort the codes in some cells; False if these are too many of all codes."""
        if len(self._has_part) and self._has_part[cells].all():
            return True
        is_wanted = np.zeros(self._cells, bool)
        is_wanted[cells] = True
        number = int(np.diff(self._counts_below())[is_wanted].sum(dtype=np.int64))
        if number * _LARGEST_PART > len(self._codes):
            return False
        part, end = np.empty(number, self._codes.dtype), 0
        for start in range(0, len(self._codes), _CHUNK):
            codes = self._codes[start : start + _CHUNK]
            codes = codes[is_wanted[codes >> self._shift]]
            part[end : end + len(codes)] = codes
            end += len(codes)
        part.sort()
        self._part, self._has_part = part, is_wanted
        return True


def _search(ascending: NDArray[np.integer], codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of ascending values below each code; of one type, so that nothing is copied."""
    ranks: NDArray[np.int64] = np.searchsorted(ascending, codes.astype(ascending.dtype))
    return ranks
