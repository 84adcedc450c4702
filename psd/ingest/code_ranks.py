"""How many records have smaller codes, without sorting all of them. Private side."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["CodeRanks"]

# Fewer codes than this are sorted at once.
_FEW = 2**17

# Fewer cells fit into a cache; the smallest cells of most trees have more records than this.
_PER_CELL = 8

# Codes that are looked at together.
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
        self._below: NDArray[np.int64] | None = None
        self._part: tuple[NDArray[np.bool_], NDArray[np.integer]] | None = None

    def __len__(self) -> int:
        return len(self._codes)

    def __repr__(self) -> str:
        return "<CodeRanks: private>"

    def ascending(self) -> NDArray[np.integer]:
        """All codes in ascending order."""
        if not self._is_sorted:
            self._codes.sort()
            self._is_sorted = True
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
        ranks: NDArray[np.int64] = self._counts_below()[cells]
        inside = np.flatnonzero(codes != cells << self._shift)
        if not len(inside):
            return ranks
        part = self._codes_in(cells[inside])
        if part is None:
            return _search(self.ascending(), codes)
        ranks[inside] += _search(part, codes[inside])
        ranks[inside] -= _search(part, cells[inside] << self._shift)
        return ranks

    def _counts_below(self) -> NDArray[np.int64]:
        """Number of records before each cell of the level, and of all records."""
        if self._below is None:
            counts = np.zeros(self._cells + 1, np.int64)
            for codes in self._chunks():
                np.add.at(counts[1:], (codes >> self._shift).astype(np.intp), 1)
            np.cumsum(counts, out=counts)
            self._below = counts
        return self._below

    def _codes_in(self, cells: NDArray[np.int64]) -> NDArray[np.integer] | None:
        """Ascending codes in some cells, and maybe others; None if these are too many of all."""
        if self._part is not None and self._part[0][cells].all():
            return self._part[1]
        is_wanted = np.zeros(self._cells, bool)
        is_wanted[cells] = True
        if np.diff(self._counts_below())[is_wanted].sum() * _LARGEST_PART > len(self._codes):
            return None
        chunks = (codes[is_wanted[codes >> self._shift]] for codes in self._chunks())
        part = np.sort(np.concatenate([self._codes[:0], *chunks]))
        self._part = is_wanted, part
        return part

    def _chunks(self) -> Iterator[NDArray[np.integer]]:
        """Parts of the codes that fit into the cache of a processor."""
        for start in range(0, len(self._codes), _CHUNK):
            yield self._codes[start : start + _CHUNK]


def _search(ascending: NDArray[np.integer], codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of ascending values below each code; of one type, so that nothing is copied."""
    ranks: NDArray[np.int64] = np.searchsorted(ascending, codes.astype(ascending.dtype))
    return ranks
