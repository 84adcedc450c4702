"""Records or occupied cells as codes in quadrant order. Private side.

Halving both axes of the lattice again and again gives each lattice cell a path: for each level the
quadrant that contains it, south-west, south-east, north-west or north-east. Its code is the path as
a number, two bits per level; in the order of the codes, all cells of repeated halves are ranges. On
a square lattice of 2^h columns it is the Morton code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers, morton_codes, morton_numbers
from psd.errors import ResourceError
from psd.space.domain import Blocks

# Cells that are computed at once: they fit into the cache of a processor.
_AT_ONCE = 2**14


class QuadrantOrder:
    """Codes of lattice cells by the quadrants that contain them. Public.

    P1. The codes of the lattice cells of a node of repeated halves, as `Cells.middle` cuts them,
    are the range of `size` codes that begins with the code of its south-west cell.
    P2. Codes are below 4^levels, and different cells have different codes.
    """

    def __init__(self, lattice: tuple[int, int]) -> None:
        self.lattice = lattice
        self._axes = tuple(_HalvedAxis(cells) for cells in lattice)
        self.levels = max(axis.levels for axis in self._axes)

    def codes(self, columns: NDArray[np.integer], rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Code of each lattice cell."""
        codes = np.empty(len(columns), np.int64)
        for start in range(0, len(codes), _AT_ONCE):
            block = slice(start, start + _AT_ONCE)
            codes[block] = morton_codes(
                *(
                    # Axes of fewer levels are cut first, so their paths end in zeros.
                    axis.paths(cells[block]) << self.levels - axis.levels
                    for axis, cells in zip(self._axes, (columns, rows), strict=True)
                )
            )
        return codes

    def cells(self, codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Columns and rows of codes of lattice cells."""
        columns, rows = (
            axis.numbers(paths >> self.levels - axis.levels)
            for axis, paths in zip(self._axes, morton_numbers(codes), strict=True)
        )
        return columns, rows

    def size(self, level: Integers) -> Integers:
        """Number of codes of a node that many halvings below the root."""
        return np.int64(1) << 2 * (self.levels - level)


class _HalvedAxis:
    """Paths of the cells of an axis through its repeated halves."""

    def __init__(self, cells: int) -> None:
        self._cells = cells
        self.levels = (cells - 1).bit_length()
        self._is_even = cells == 1 << self.levels
        if self._is_even:
            return
        # A part of w cells is divided into floor(w / 2) and the rest; one cell is the lower half.
        # So the path inside a part follows from its width, n or n + 1 on a level, and the offset.
        # The upper levels have an array of where each part starts, the lower ones a table of paths.
        upper = self.levels // 2
        starts = np.array([0, cells])
        for _ in range(upper):
            middles = (starts[:-1] + starts[1:]) // 2
            starts = np.append(np.stack([starts[:-1], middles], axis=1), cells)
        self._starts = starts
        self._lower = self.levels - upper
        self._narrow = int(np.diff(starts).min())
        # One table for both widths; the last path of the narrow one is not used.
        self._paths = np.zeros((2, self._narrow + 1), np.int64)
        self._offsets = np.zeros((2, 1 << self._lower), np.int64)
        for kind, width in enumerate((self._narrow, self._narrow + 1)):
            paths = _paths_inside(width, self._lower)
            self._paths[kind, :width] = paths
            self._offsets[kind, paths] = np.arange(width)

    def paths(self, cells: NDArray[np.integer]) -> NDArray[np.int64]:
        """Path of each cell, a number of `levels` bits that increases with the cell."""
        wide = cells.astype(np.int64)
        if self._is_even:
            return wide
        # Each start is below its share of all cells by less than the width of a part: by at most
        # a half per level. So a cell is in the part of this share or in the next one.
        part = (wide << self.levels - self._lower) // self._cells
        part += wide >= self._starts[part + 1]
        path: Integers = part << self._lower
        path |= self._paths[self._kind(part), wide - self._starts[part]]
        return path

    def numbers(self, paths: NDArray[np.int64]) -> NDArray[np.int64]:
        """Cell of each path."""
        if self._is_even:
            return paths
        part = paths >> self._lower
        inside = self._offsets[self._kind(part), paths & ((1 << self._lower) - 1)]
        return np.asarray(self._starts[part] + inside)

    def _kind(self, part: NDArray[np.int64]) -> NDArray[np.int64]:
        """Whether a part is wide."""
        width: Integers = self._starts[part + 1] - self._starts[part]
        return width - self._narrow


def _paths_inside(width: int, levels: int) -> NDArray[np.int64]:
    """Path of each offset in a part of a width."""
    offsets, paths = np.arange(width), np.zeros(width, np.int64)
    low, high = np.zeros(width, np.int64), np.full(width, width)
    for _ in range(levels):
        # A part of one cell is cut no further: its path goes on with zeros.
        middle = np.where(high - low > 1, (low + high) // 2, high)
        is_high = offsets >= middle
        low, high = np.where(is_high, middle, low), np.where(is_high, high, middle)
        paths = paths << 1 | is_high
    return paths


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

    codes: (n,) int64 or uint32, below 4^levels, in any order, private; may be sorted in place.
    """

    def __init__(self, codes: NDArray[np.integer], levels: int, *, is_sorted: bool) -> None:
        self._codes, self._is_sorted = codes, is_sorted
        # Down to a level whose cells are at most an eighth as many as records, an array has a
        # number for each cell; for smaller cells only the records near them are sorted.
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
        """Count records below each code: codes (m,) int64, public, to (m,) int64, private."""
        if self._is_sorted or len(self._codes) < _FEW:
            return _search(self.ascending(), codes)
        # A rank is that of the counted cell, plus the records of this cell with smaller codes.
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
                # Counted, not sorted: one pass over the codes, and a number for each cell.
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
        # Codes of a part are sorted apart only if they are few; else sorting all takes no longer.
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
    return np.searchsorted(ascending, codes.astype(ascending.dtype))


CellCounts = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Codes of occupied cells, ascending, and their counts."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class QuadrantCodes:
    """Codes of records, or of occupied cells with counts; a slice adds 4^levels each. Private."""

    # Order of the lattice; of a coarser one if lattice cells are counted together.
    order: QuadrantOrder
    entries: CodeRanks  # a code for each record, or the distinct ones
    # (n,) int64, count of each distinct code; None if each code stands for one record.
    counts: NDArray[np.int64] | None
    step: tuple[int, int] = (1, 1)  # lattice columns and rows of a cell of the order
    slices: int | None = None  # number of time slices, if codes have one

    @classmethod
    def of_ascending(
        cls, order: QuadrantOrder, codes: NDArray[np.integer], counts: NDArray[np.int64] | None
    ) -> QuadrantCodes:
        """Codes in ascending order, and the count of each if they are distinct."""
        return cls(
            order=order, entries=CodeRanks(codes, order.levels, is_sorted=True), counts=counts
        )

    @property
    def codes(self) -> NDArray[np.integer]:
        """The codes, ascending; they are sorted when this is first read."""
        return self.entries.ascending()

    def __repr__(self) -> str:
        return "<QuadrantCodes: private>"

    def distinct(self) -> QuadrantCodes:
        """Count the records of each distinct code."""
        if self.counts is not None:
            return self
        starts = run_starts(self.codes)
        counts = np.diff(np.append(starts, len(self.codes)))
        entries = CodeRanks(self.codes[starts], self.order.levels, is_sorted=True)
        return replace(self, entries=entries, counts=counts)

    def cells(
        self, part: slice | NDArray[np.int64] = slice(None)
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Lattice columns and rows of the codes; those of the south-west cell of several."""
        codes = self.codes[part].astype(np.int64)
        columns, rows = self.order.cells(codes & (4**self.order.levels - 1))
        return (columns * self.step[0]).astype(np.int32), (rows * self.step[1]).astype(np.int32)

    def of_slices(self, part: slice | NDArray[np.int64] = slice(None)) -> NDArray[np.int64]:
        """Slice of each code."""
        return self.codes[part].astype(np.int64) >> 2 * self.order.levels

    def of_the_plane(self) -> QuadrantCodes:
        """Codes without their slices."""
        # Without the bits of the slice, and in 32 bits where they fit.
        size = 4**self.order.levels
        codes: NDArray[np.integer] = np.empty(
            len(self.entries), np.uint32 if size <= 2**32 else np.int64
        )
        np.bitwise_and(self.codes, size - 1, out=codes, casting="unsafe")
        if self.counts is None:
            entries = CodeRanks(codes, self.order.levels, is_sorted=False)
            return replace(self, entries=entries, slices=None)
        # Counts of one cell in several slices become one count.
        codes, counts = _sum_by_code([(codes.astype(np.int64), self.counts)])
        return replace(QuadrantCodes.of_ascending(self.order, codes, counts), step=self.step)

    def is_of(self, blocks: Blocks) -> bool:
        """Whether the cells are these blocks."""
        return self.step == blocks.step and self.order.lattice == blocks.coarse_lattice

    def in_blocks(self, blocks: Blocks) -> QuadrantCodes:
        """Codes of blocks of lattice cells, on the coarser lattice of these blocks."""
        if self.is_of(blocks):
            return replace(self, step=(1, 1))
        order = QuadrantOrder(blocks.coarse_lattice)
        # Codes of the coarser lattice are others, so cells are taken apart and counted again.
        columns, rows = self.cells()
        codes = order.codes(blocks.to_blocks(columns, 0), blocks.to_blocks(rows, 1))
        if self.counts is None:
            entries = CodeRanks(codes, order.levels, is_sorted=False)
            return QuadrantCodes(order=order, entries=entries, counts=None)
        by_code = np.argsort(codes, kind="stable")
        codes, counts = codes[by_code], self.counts[by_code]
        starts = run_starts(codes)
        counts = np.add.reduceat(counts, starts) if len(starts) else counts
        return QuadrantCodes.of_ascending(order, codes[starts], counts)

    def by_row(
        self,
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        """Columns, rows, counts and slices of the distinct cells, by slice, row, then column."""
        distinct = self.distinct()
        (columns, rows), slices = distinct.cells(), distinct.of_slices()
        order = np.lexsort((columns, rows, slices))
        assert distinct.counts is not None  # `distinct` counts them
        return columns[order], rows[order], distinct.counts[order], slices[order]


def run_starts(codes: NDArray[np.integer]) -> NDArray[np.int64]:
    """Indices where runs of equal codes start."""
    is_first = np.ones(len(codes), bool)
    np.not_equal(codes[1:], codes[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)


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
        """Return occupied cells and counts, or unordered codes of records and None. Once only."""


def is_dense(cells: int, memory: int | None = None) -> bool:
    """Whether all cells are counted in an array, which takes up to an eighth of the memory."""
    return cells <= (_MAX_DENSE if memory is None else min(_MAX_DENSE, memory // 64))


def cell_counter(cells: int, memory: int | None = None) -> CellCounter:
    """Make a counter: an array if `is_dense`, else sorted codes; all codes are below `cells`."""
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
    """Codes of records in a buffer of about `pending`; once full, sorted codes with counts."""

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
            # Fourfold up to about the limit, so that few copies are made.
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
        # In place: a sorted copy would take as much memory again.
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
    starts = run_starts(codes)
    if len(starts) == len(codes):  # as on fine lattices: nothing is selected, or copied
        return codes.astype(np.int64, copy=False), np.ones(len(codes), np.int64)
    counts = np.empty(len(starts), np.int64)
    np.subtract(starts[1:], starts[:-1], out=counts[:-1])
    counts[-1:] = len(codes) - starts[-1:]
    return codes[starts].astype(np.int64, copy=False), counts


def _sum_by_code(parts: list[CellCounts]) -> CellCounts:
    """Distinct codes in ascending order, and the sum of the counts of each."""
    codes = np.concatenate([codes for codes, _ in parts])
    counts = np.concatenate([counts for _, counts in parts])
    order = np.argsort(codes, kind="stable")  # merges parts that are sorted
    codes = codes[order]
    starts = run_starts(codes)
    return codes[starts], np.add.reduceat(counts[order], starts) if len(starts) else counts
