"""The occupied lattice cells, sorted so that those of each node are contiguous. Private side.

Exact integers, from which the curator computes its questions. Nodes of repeated halves are ranges
of ranks (`HalvedNodes`, `SlicedNodes`); other cuts give entries new nodes and sort nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import ranges
from psd._util.processes import even_parts, in_threads
from psd.curator.candidate_scores import Divisions, Entries
from psd.ingest.quadrant_codes import CodeRanks, QuadrantCodes, QuadrantOrder
from psd.ingest.tally import Tally
from psd.mechanisms.exponential_mechanism import Candidates
from psd.space.grids import BinGrid
from psd.space.growing_tree import Cut
from psd.space.region_tree import RegionFrame

# Entries looked at together; few enough for the cache of a processor.
_CHUNK = 2**15

_ENTRIES_PER_THREAD = 2**17

LatticeCells = Callable[[slice | NDArray[np.int64]], tuple[NDArray[np.integer], ...]]
"""Gives the columns and rows of some entries, and their cells of further axes."""


class EntryNodes:
    """Node of each entry, (n,) int32, which has not been cut, and how many there are. Private."""

    def __init__(
        self,
        cells: LatticeCells,
        counts: NDArray[np.int64] | None,
        node: NDArray[np.int32],
        nodes: int,
    ) -> None:
        self._cells, self._counts = cells, counts
        self._node, self._nodes = node, nodes

    def cut(self, cuts: Sequence[Cut]) -> NDArray[np.int64]:
        """Give entries of nodes to the children; true counts of these, (children,), in order."""
        found = [self._cut_run([*run]) for _, run in groupby(cuts, _further_axes)]
        return np.concatenate(found)

    def _cut_run(self, cuts: Sequence[Cut]) -> NDArray[np.int64]:
        """Do cuts that divide the plane, or axes beside it; those of several levels at once."""
        axes = _further_axes(cuts[0])
        parts_of: _Grids | _Spans | None = None
        if len(cuts) > 1 and not axes:
            grids = _Grids(cuts, self._nodes)
            parts_of = grids if grids.are_even else None
        elif len(cuts) > 1 and len(axes) == 1 and axes[0] > 1:
            parts_of = _Spans(cuts, self._nodes, axes[0])
        if parts_of is None:
            return np.concatenate([self._divide(_Quadrants(cut, self._nodes)) for cut in cuts])
        first, number = self._nodes, self._divide(parts_of)
        # The finest parts were counted; children that were cut again are sums of them.
        for cut in reversed(cuts):
            again = cut.nodes >= first
            for child in cut.child[again].T:
                there = child >= 0
                number[cut.nodes[again][there] - first] += number[child[there] - first]
        return number

    def _divide(self, parts_of: _Quadrants | _Grids | _Spans) -> NDArray[np.int64]:
        """Move the entries of nodes to their parts; count the records of each new node."""
        parts = even_parts(len(self._node), _ENTRIES_PER_THREAD)
        number, *more = in_threads(partial(self._move, parts_of), parts)
        for others in more:
            number += others
        self._nodes += parts_of.children
        return number

    def _move(self, parts_of: _Quadrants | _Grids | _Spans, part: slice) -> NDArray[np.int64]:
        """Move some entries."""
        number = np.zeros(parts_of.children, np.int64)
        for start in range(part.start, part.stop, _CHUNK):
            moved: slice | NDArray[np.int64] = slice(start, min(start + _CHUNK, part.stop))
            # Entries of nodes that are not cut stay where they are.
            is_cut = parts_of.is_cut.take(self._node[moved])
            if not is_cut.all():
                moved = start + np.flatnonzero(is_cut)
            below = parts_of.below(self._node[moved], *self._cells(moved))
            np.add.at(number, below, 1 if self._counts is None else self._counts[moved])
            self._node[moved] = below + self._nodes
        return number


def _further_axes(cut: Cut) -> tuple[int, ...]:
    """Axes that a cut divides if one of them is beside the plane; none of a cut of the plane."""
    if cut.spans is None:
        return ()
    high = np.concatenate([cut.boxes[:, 2:], cut.spans[:, 1::2]], axis=1)
    axes = tuple(np.flatnonzero((cut.lines < high).any(axis=0)).tolist())
    return axes if max(axes, default=0) > 1 else ()


def _cut_nodes(cuts: Sequence[Cut], nodes: int) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Which older node each node lies in, -1 if not cut, and which are not cut again."""
    # Only nodes that were there before the cuts have entries by their number.
    old = np.concatenate([cut.nodes[cut.nodes < nodes] for cut in cuts])
    size = nodes + sum(cut.children for cut in cuts)
    owner, is_part = np.full(size, -1, np.int32), np.ones(size, bool)
    owner[old] = np.arange(len(old))
    # Children of a node that is cut again have its older node, since cuts come in order.
    for cut in cuts:
        is_part[cut.nodes] = False
        for child in cut.child.T:
            owner[child[child >= 0]] = owner[cut.nodes[child >= 0]]
    return owner, is_part


class _Quadrants:
    """Lines of nodes that are cut, and their children, by the number of the node. Public."""

    def __init__(self, cut: Cut, nodes: int) -> None:
        self.children = cut.children
        # Lines and children by node, so that an entry finds its part by two look-ups.
        self.is_cut = np.zeros(nodes, bool)
        self.is_cut[cut.nodes] = True
        self._lines = np.zeros((cut.lines.shape[1], nodes), np.int32)
        self._lines[:, cut.nodes] = cut.lines.T
        child = np.zeros((nodes, cut.child.shape[1]), np.int32)
        child[cut.nodes] = cut.child - nodes
        self._child = child.ravel()

    def below(self, node: NDArray[np.int32], *cells: NDArray[np.integer]) -> NDArray[np.int32]:
        """Child of each entry, 0 for the first one of the cut."""
        quadrant = node.astype(np.int64)
        lines = [each.take(quadrant) for each in self._lines]
        # A bit for each axis, the last one first: north of the y line, then east of the x line.
        for line, cell in zip(reversed(lines), reversed(cells), strict=True):
            quadrant <<= 1
            quadrant |= cell >= line
        below: NDArray[np.int32] = self._child.take(quadrant)
        return below


class _Grids:
    """Nodes that several cuts divide together, maybe into even grids. Public."""

    def __init__(self, cuts: Sequence[Cut], nodes: int) -> None:
        self.children = sum(cut.children for cut in cuts)
        # Each node that was there before has a grid; its parts are the children that stay whole.
        grid, is_part = _cut_nodes(cuts, nodes)
        old = np.concatenate([cut.boxes[cut.nodes < nodes] for cut in cuts])
        west, south, east, north = old.T.astype(np.int64, order="C")
        self._grid, self.is_cut = grid[:nodes], grid[:nodes] >= 0

        parts = []
        for cut in cuts:
            for start in range(0, len(cut.nodes), _CHUNK):
                made = cut[start : start + _CHUNK].cells
                made = made[is_part[made.nodes]]
                boxes = made.boxes.T.astype(np.int32, order="C")  # lattice lines are below 2^31
                parts.append((np.int32(made.nodes - nodes), grid[made.nodes], boxes))

        # Line i of n in a node of w lattice columns is floor(i w / n) from its west edge, as in
        # `psd.space.grids.cut_grids`: at or below column c if i w < (c + 1) n, so c is in column
        # floor(((c + 1) n - 1) / w) of the grid. All these numbers are below 2^62.
        # A grid has as many columns as parts on its south edge, and as many rows as on its west.
        columns, rows = np.zeros((2, len(west)), np.int64)
        for _, of, (left, low, _, _) in parts:
            np.add.at(columns, of[low == south[of]], 1)
            np.add.at(rows, of[left == west[of]], 1)
        self._x, self._y = (west - 1, columns, east - west), (south - 1, rows, north - south)
        self._columns, cells = columns, columns * rows
        self._first = np.cumsum(cells) - cells
        # They are its cells if each is inside of one cell, and there are as many.
        self.are_even = int(cells.sum()) == np.count_nonzero(is_part[nodes:])
        if self.are_even:
            self._part = np.zeros(int(cells.sum()), np.intp)
            for part, of, (left, low, right, high) in parts:
                cell = self._cell(of, left, low)
                self.are_even &= np.array_equal(cell, self._cell(of, right - 1, high - 1))
                self._part[cell] = part

    def below(
        self,
        node: NDArray[np.int32],
        columns: NDArray[np.integer],
        rows: NDArray[np.integer],
        *_: NDArray[np.integer],
    ) -> NDArray[np.intp]:
        """Part that each entry is in, 0 for the first child of the cuts."""
        below: NDArray[np.intp] = self._part.take(self._cell(self._grid.take(node), columns, rows))
        return below

    def _cell(
        self, grid: NDArray[np.int32], columns: NDArray[np.integer], rows: NDArray[np.integer]
    ) -> NDArray[np.int64]:
        """Cell of the grid that each lattice cell is in, by grid, row and column."""
        cell = _place(rows, grid, *self._y)
        cell *= _of(self._columns, grid)
        cell += _place(columns, grid, *self._x)
        cell += _of(self._first, grid)
        return cell


class _Spans:
    """Nodes that cuts divide along an axis beside the plane; part of each of its cells. Public."""

    def __init__(self, cuts: Sequence[Cut], nodes: int, axis: int) -> None:
        self.children, self._axis = sum(cut.children for cut in cuts), axis
        owner, is_part = _cut_nodes(cuts, nodes)
        self._owner, self.is_cut = owner[:nodes], owner[:nodes] >= 0
        side = slice(2 * (axis - 2), 2 * (axis - 1))
        spans = [c.spans[c.nodes < nodes, side] for c in cuts if c.spans is not None]
        # One table for all nodes: the part that each of their cells along the axis lies in.
        first, stop = np.concatenate(spans).T
        # Places in the table less the first cell, so that a cell is added to them.
        self._start = np.cumsum(stop - first) - (stop - first) - first
        self._part = np.zeros(int((stop - first).sum()), np.intp)
        for cut in cuts:
            cells = cut.cells
            cells = cells[is_part[cells.nodes]]
            assert cells.spans is not None  # of a layer over the axis
            low, high = cells.spans[:, side].T
            at = ranges(self._start[owner[cells.nodes]] + low, high - low)
            self._part[at] = np.repeat(cells.nodes - nodes, high - low)

    def below(self, node: NDArray[np.int32], *cells: NDArray[np.integer]) -> NDArray[np.intp]:
        """Part that each entry is in, 0 for the first child of the cuts."""
        place = self._start.take(self._owner.take(node))
        place += cells[self._axis]
        below: NDArray[np.intp] = self._part.take(place)
        return below


def _place(
    lines: NDArray[np.integer],
    grid: NDArray[np.int32],
    before: NDArray[np.int64],
    number: NDArray[np.int64],
    width: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Column of the grid that each lattice column is in, or row."""
    place = lines - _of(before, grid)
    place *= _of(number, grid)
    place -= 1
    place //= _of(width, grid)
    return place


def _of(values: NDArray[np.int64], grid: NDArray[np.int32]) -> NDArray[np.int64]:
    """Value of the grid of each entry; a single one if there is one grid."""
    return values if len(values) == 1 else values.take(grid)


class HalvedNodes:
    """Nodes of repeated halves, each a range of the codes of records or occupied cells, private."""

    def __init__(self, order: QuadrantOrder, entries: CodeRanks) -> None:
        self._order, self._entries = order, entries
        self._first, self._level = np.array([0]), np.array([0])
        self._is_cut = np.array([False])

    def cut(
        self, cut: Cut, start: NDArray[np.int64], stop: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Ranges of children in order, private, of halved nodes; None for other lines."""
        divided = _are_halved(cut)
        if divided is None:
            return None
        level = self._level[cut.nodes]
        # Numbers of a cell's quarters follow each other, so ranks of their first ones divide it.
        quarter = self._order.size(np.minimum(level + 1, self._order.levels))
        first = self._first[cut.nodes, None] + quarter[:, None] * np.arange(4)
        # Ends of four ranges, (n, 5); all is in the first one if a cell is not halved.
        ends = np.repeat(stop[:, None], 5, axis=1)
        ends[:, 0] = start
        ends[divided, 1:4] = self._entries.ranks(first[divided, 1:].ravel()).reshape(-1, 3)
        filled = cut.child >= 0
        self._first = np.append(self._first, first[filled])
        self._level = np.append(self._level, np.repeat(level + divided, filled.sum(axis=1)))
        self._is_cut[cut.nodes] = True
        self._is_cut = np.append(self._is_cut, np.zeros(cut.children, bool))
        return ends[:, :4][filled], ends[:, 1:][filled]

    def of_entries(self, start: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.int32]:
        """Node of each entry, ascending, that has not been cut, by ranges, (n,). Private."""
        whole = np.flatnonzero(~self._is_cut & (stop > start))
        whole = whole[np.argsort(start[whole])]
        return np.repeat(whole.astype(np.int32), (stop - start)[whole])


class SlicedNodes:
    """Nodes of halved planes or divided time, ranges of ranks, not empty, in slices. Private."""

    def __init__(self, codes: QuadrantCodes) -> None:
        assert codes.slices is not None
        self._order, self._codes = codes.order, codes.codes
        self._total = None if codes.counts is None else _running_total(codes.counts)
        # The end of the last slice may be one more than what a code can be.
        begin = self._ranks(np.arange(codes.slices) * 4**self._order.levels)
        ends = np.append(begin, len(self._codes))
        filled = np.flatnonzero(np.diff(ends))
        # Of each range: its slice, its node, which has not been cut, and its ends.
        self._slice, self._node = filled.astype(np.int32), np.zeros(len(filled), np.int32)
        self._start, self._stop = ends[filled], ends[filled + 1]
        # Of each node: the first code of its box, and how often it was halved.
        self._first, self._level = np.array([0]), np.array([0], np.int16)

    def _ranks(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.searchsorted(self._codes, codes.astype(self._codes.dtype))

    def cut(self, cut: Cut) -> NDArray[np.int64] | None:
        """Give ranges of nodes to children; their true counts, or None for other cuts. Private."""
        assert cut.spans is not None  # of a layer over time
        nodes, line, divided = len(self._first), cut.lines[:, 2], _are_halved(cut)
        if divided is None or (divided & (line < cut.spans[:, 1])).any():
            return None
        # Which cut node each range lies in, -1 if none.
        place = np.full(nodes, -1, np.int32)
        place[cut.nodes] = np.arange(len(cut.nodes))
        owner = place.take(self._node)
        moved = np.flatnonzero(owner >= 0)
        owner, child = owner[moved], cut.child.astype(np.int32)
        # What is not halved has one child, or one on each side of a line of time.
        self._node[moved] = child[owner, 4 * (self._slice[moved] >= line[owner])]
        level = self._level[cut.nodes] + divided
        quarter = self._order.size(level.astype(np.int64))
        first = self._first[cut.nodes, None] + quarter[:, None] * np.arange(4)
        halved = divided[owner]
        if halved.any():
            # A range of a halved node becomes up to four: the quarters in which it has entries.
            moved, owner = moved[halved], owner[halved]
            ends = np.empty((len(moved), 5), np.int64)
            ends[:, 0], ends[:, 4] = self._start[moved], self._stop[moved]
            slices = self._slice[moved].astype(np.int64) << 2 * self._order.levels
            ends[:, 1:4] = self._ranks((first[owner, 1:] + slices[:, None]).ravel()).reshape(-1, 3)
            filled = ends[:, 1:] > ends[:, :4]
            parts = filled.sum(axis=1)
            stays = np.ones(len(self._node), bool)
            stays[moved] = False
            for name, more in (
                ("_slice", np.repeat(self._slice[moved], parts)),
                ("_node", child[owner, :4][filled]),
                ("_start", ends[:, :4][filled]),
                ("_stop", ends[:, 1:][filled]),
            ):
                setattr(self, name, np.concatenate([getattr(self, name)[stays], more]))
        has_child = cut.child >= 0
        # The child after a line of time has the box of that before it.
        self._first = np.append(self._first, np.tile(first, (1, 2))[has_child])
        self._level = np.append(self._level, np.repeat(level, has_child.sum(axis=1)))
        return self._count_from(nodes)

    @property
    def number(self) -> NDArray[np.int64]:
        """Records of the root, (1,) int64, private."""
        return self._count_from(0)

    def _count_from(self, nodes: int) -> NDArray[np.int64]:
        """Records of the nodes from this number on."""
        new = np.flatnonzero(self._node >= nodes)
        start, stop = self._start[new], self._stop[new]
        if self._total is not None:
            # Of counted entries, records before each.
            start, stop = self._total[start], self._total[stop]
        number = np.zeros(len(self._first) - nodes, np.int64)
        np.add.at(number, self._node[new] - nodes, stop - start)
        return number

    def of_entries(self) -> NDArray[np.int32]:
        """Node of each entry that has not been cut."""
        order = np.argsort(self._start)
        return np.repeat(self._node[order], (self._stop - self._start)[order])


def _are_halved(cut: Cut) -> NDArray[np.bool_] | None:
    """Which nodes are halved on both axes, the others being left as they are; else None."""
    boxes, lines = cut.boxes, cut.lines[:, :2]
    is_middle = lines == (boxes[:, :2] + boxes[:, 2:]) // 2
    is_far = lines == boxes[:, 2:]
    # One lattice cell cannot be divided.
    is_thin = boxes[:, 2:] - boxes[:, :2] == 1
    divided: NDArray[np.bool_] = is_middle.any(axis=1)
    if not np.where(divided[:, None], is_middle | is_thin, is_far).all():
        return None
    return divided


class Points:
    """The occupied lattice cells, sorted so that those of each node are contiguous. Private.

    order: that of the lattice, public; or the code of each cell of the tally on a curve, its column
    on a line; others: cells of further axes, (n,) each, that nodes divide too; or `codes` with
    slices. While a tree consists of repeated halves, records of nodes are ranges of ranks in
    quadrant order, or one in each slice. From the first cut elsewhere, and of regions, each entry
    has its node (`EntryNodes`); cuts wait until a node is counted. Questions about lines sort the
    entries by node.
    """

    def __init__(
        self,
        tally: Tally,
        order: QuadrantOrder | NDArray[np.int64],
        others: tuple[NDArray[np.integer], ...] = (),
        *,
        codes: QuadrantCodes | None = None,
    ) -> None:
        self._sliced: SlicedNodes | None = None
        # The same cells with the sums of the weights of each value in place of counts.
        sums = () if tally.values is None else tally.values.T
        self.values = tuple(
            Points(replace(tally, counts=column, values=None), order, others) for column in sums
        )
        self._halves: HalvedNodes | None = None
        # Computed when a question needs it, since the nodes of regions do not.
        self._total: NDArray[np.int64] | None = None
        self._has_counts = False
        self._region: NDArray[np.int32] = np.zeros(0, np.int32)
        self._frame: RegionFrame | None = None
        self._nodes: EntryNodes | None = None
        self._number: NDArray[np.int64] = np.zeros(0, np.int64)
        self._cuts: list[Cut] = []
        self._counted = 0  # cuts whose nodes are counted
        self._others = others
        # Entries: codes with slices, cells with further axes, codes on a curve, regions, or
        # quadrants.
        if codes is not None:
            self._codes, entries = codes, len(codes.entries)
            self._sliced = SlicedNodes(codes)
            self._number = self._sliced.number
        elif others:
            entries = self._sort_cells(tally, slice(None), (tally.columns, tally.rows))
            cells = tally.columns, tally.rows, *others
            self._number = np.array([self._counts.sum()])
            self._nodes = EntryNodes(
                lambda part: tuple(each[part] for each in cells),
                self._counts,
                np.zeros(entries, np.int32),
                1,
            )
        elif not isinstance(order, QuadrantOrder):
            rows = np.zeros(len(order), np.int32)
            by_code = np.argsort(order) if tally.region is None else _order_of(tally.region)
            entries = self._sort_cells(tally, by_code, (order, rows))
        elif tally.region is not None:
            entries = self._sort_cells(tally, _order_of(tally.region), (tally.columns, tally.rows))
        else:
            self._codes = tally.quadrant_codes(order)
            self._halves = HalvedNodes(order, self._codes.entries)
            entries = len(self._codes.entries)
            if self._codes.counts is not None:
                self._total = _running_total(self._codes.counts)
        self.start, self.stop = np.array([0]), np.array([entries])

    def _sort_cells(
        self,
        tally: Tally,
        order: NDArray[np.int64] | slice,
        cells: tuple[NDArray[np.integer], NDArray[np.integer]],
    ) -> int:
        """Put the cells of a tally into an order; return their number."""
        if tally.region is not None:
            self._region = tally.region[order]
        self._set_cells(cells[0][order], cells[1][order], tally.counts[order])
        return len(self._counts)

    def _set_cells(
        self,
        columns: NDArray[np.integer],
        rows: NDArray[np.integer],
        counts: NDArray[np.int64],
    ) -> None:
        """Set the occupied cells, in an order in which those of each node are contiguous."""
        self._columns, self._rows, self._counts = columns, rows, counts
        self._total, self._has_counts = None, True

    def _unpack_codes(self) -> None:
        """Compute the occupied cells from their codes, and sort the entries by node."""
        if self._sliced is not None:
            self._leave_slices()
        if self._halves is None and self._nodes is not None:
            if self._frame is not None:
                self.start = np.searchsorted(self._region, self._frame.first)
                self.stop = np.searchsorted(self._region, self._frame.stop)
            cells = self._columns.copy(), self._rows.copy()
            self._set_cells(*cells, self._counts.copy())
            self._others = tuple(each.copy() for each in self._others)
        if self._halves is not None:
            distinct = self._codes.distinct()
            assert distinct.counts is not None  # `distinct` counts them
            if self._codes.counts is None:
                # All records of a cell are in the same nodes, so each end is the first of a cell.
                first = _running_total(distinct.counts)
                self.start, self.stop = (np.searchsorted(first, e) for e in (self.start, self.stop))
            self._set_cells(*distinct.cells(), distinct.counts.copy())
        self._halves = self._nodes = None
        for cut in self._cuts:
            self._cut_cells(cut)
        self._cuts = []

    def _leave_slices(self) -> None:
        """Give each entry the node that it is in, for cuts elsewhere."""
        assert self._sliced is not None
        codes, node = self._codes, self._sliced.of_entries()
        cells = (*codes.cells(), codes.of_slices())
        counts = np.ones(len(node), np.int64) if codes.counts is None else codes.counts
        self._set_cells(*cells[:2], counts)
        self._others, self._sliced = cells[2:], None
        self._nodes = EntryNodes(
            lambda part: tuple(each[part] for each in cells), counts, node, len(self._number)
        )

    def count(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """True number of records in each node."""
        # Cuts are counted when they are asked for, all that wait in one pass.
        if self._nodes is not None and (waiting := self._cuts[self._counted :]):
            self._number = np.append(self._number, self._nodes.cut(waiting))
            self._counted = len(self._cuts)
        if self._sliced is not None or self._nodes is not None:
            number: NDArray[np.int64] = self._number[nodes]
            return number
        if len(self.start) == 1 and self._has_counts:
            return np.full(len(nodes), self._counts.sum())
        # Records before each entry and after the last; None if each entry is one record.
        if self._total is None and self._has_counts:
            self._total = _running_total(self._counts)
        start, stop, total = self.start[nodes], self.stop[nodes], self._total
        if total is not None:
            start, stop = total[start], total[stop]
        true: NDArray[np.int64] = stop - start
        return true

    def cut_regions(self, frame: RegionFrame) -> None:
        """Record the entries of each node of a frame, which the root is cut into."""
        for points in self.values:
            points.cut_regions(frame)
        size = int(frame.stop[0])
        # Records of each lowest region, (size,); entries are in the order of regions.
        first = np.searchsorted(self._region, np.arange(size))
        filled = np.flatnonzero(np.diff(first, append=len(self._region)))
        number = np.zeros(size, np.int64)
        if len(filled):
            number[filled] = np.add.reduceat(self._counts, first[filled])
        # The lowest regions below any node are neighbours: its records are one difference.
        total = _running_total(number)
        self._number = total[frame.stop] - total[frame.first]
        node = frame.lowest.astype(np.int32)[self._region]
        columns, rows = self._columns, self._rows
        self._frame = frame
        self._nodes = EntryNodes(
            lambda part: (columns[part], rows[part]), self._counts, node, len(frame)
        )

    def cut(self, cut: Cut) -> None:
        """Find the range of each child, or let the cut wait until a node is counted."""
        for points in self.values:
            points.cut(cut)
        # Ranges of entries in slices, then those of halved cells, follow from numbers of cells
        # alone; any other line needs the cells of the entries.
        if self._sliced is not None:
            number = self._sliced.cut(cut)
            if number is not None:
                self._number = np.append(self._number, number)
                self._cuts.append(cut)
                self._counted = len(self._cuts)
                return
            self._leave_slices()
        if self._halves is not None and self._nodes is None:
            ends = self._halves.cut(cut, self.start[cut.nodes], self.stop[cut.nodes])
            if ends is not None:
                self.start = np.append(self.start, ends[0])
                self.stop = np.append(self.stop, ends[1])
                return
            # Entries are numbered by their nodes from here on, in their order.
            codes = self._codes
            codes.entries.ascending()
            self._number = self.count(np.arange(len(self.start)))
            node = self._halves.of_entries(self.start, self.stop)
            self._nodes = EntryNodes(codes.cells, codes.counts, node, len(self.start))
        if self._nodes is not None:
            self._cuts.append(cut)
        else:
            self._cut_cells(cut)

    def _cut_cells(self, cut: Cut) -> None:
        """Sort the entries of each cut node by quadrant, and record the range of each child."""
        lengths = self.stop[cut.nodes] - self.start[cut.nodes]
        index = ranges(self.start[cut.nodes], lengths)
        lines = np.repeat(cut.lines.astype(self._columns.dtype), lengths, axis=0)
        # Quadrants: 0 south-west, 1 south-east, 2 north-west, 3 north-east; a bit for each axis.
        quadrant, parts = np.zeros(len(index), np.int16), cut.child.shape[1]
        for axis, cells in enumerate((self._columns, self._rows, *self._others)):
            quadrant += (cells[index] >= lines[:, axis]).astype(np.int16) << axis
        # Entries by node and part, (nodes, parts); their running sums are the ends of children.
        owner = np.repeat(np.arange(len(cut.nodes)), lengths)
        sizes = np.bincount(owner * parts + quadrant, minlength=parts * len(cut.nodes))
        sizes = sizes.reshape(-1, parts)
        self._reorder(index, quadrant, sizes)
        ends = self.start[cut.nodes, None] + np.cumsum(sizes, axis=1)
        filled = cut.child >= 0
        self.start = np.append(self.start, (ends - sizes)[filled])
        self.stop = np.append(self.stop, ends[filled])

    def _reorder(
        self, index: NDArray[np.int64], quadrant: NDArray[np.int16], sizes: NDArray[np.int64]
    ) -> None:
        """Sort the entries of nodes stably by quadrant; ``sizes`` say where, without comparing."""
        # Where each quadrant of each node begins; its entries get the places from there, in order.
        first = (np.cumsum(sizes) - sizes.ravel()).reshape(sizes.shape)
        target = np.empty_like(index)
        for number in range(sizes.shape[1]):
            entries, size = np.flatnonzero(quadrant == number), sizes[:, number]
            # Entries of one part keep their order, and move to where their node has this part.
            shift = first[:, number] - (np.cumsum(size) - size)
            target[entries] = np.arange(len(entries)) + np.repeat(shift, size)
        target = index[target]
        for values in (self._columns, self._rows, *self._others, self._counts):
            values[target] = values[index]
        self._total = None

    def rank_scores(
        self,
        nodes: NDArray[np.int64],
        ends: NDArray[np.int64],
        axis: int,
        p: NDArray[np.int64],
        q: NDArray[np.int64],
    ) -> Candidates:
        """Scores -abs(q below(s) - p n) of the lattice lines s inside each node. Private.

        nodes, p, q: (n,) int64; ends: (n, 2) int64, first and last line of each on the axis.
        """
        self._unpack_codes()
        # n occupied cells of a node make n + 1 intervals of lines, with inclusive ends left and
        # right.
        # Lines between two occupied cells in a row have one score; these intervals have each line
        # of the node once.
        entries = self.stop[nodes] - self.start[nodes]
        group = np.repeat(np.arange(len(nodes)), entries + 1)
        stop = np.cumsum(entries + 1)
        is_first, is_last = np.zeros(len(group), bool), np.zeros(len(group), bool)
        is_first[stop - entries - 1] = is_last[stop - 1] = True
        line, counts = self._sorted(nodes, entries, axis)
        west, east = ends.T
        # Every entry ends one interval and begins the next; the ends of the node do the rest.
        left, right = np.empty(len(group), np.int64), np.empty(len(group), np.int64)
        left[is_first], left[~is_first] = west + 1, line + 1
        right[is_last], right[~is_last] = east - 1, line
        # A node one lattice cell thin has no line inside; its edge means "not cut".
        is_thin = east - west == 1
        left[is_first] -= is_thin
        right[is_first] = np.where(is_thin, left[is_first], right[is_first])
        # Records below each interval: a running total, less those of the nodes before.
        below = np.zeros(len(group), np.int64)
        below[~is_first] = counts
        inside = self.count(nodes)
        below = np.cumsum(below) - np.repeat(np.cumsum(inside) - inside, entries + 1)
        score = -np.abs(q[group] * below - (p * inside)[group])
        return Candidates(group=group, first=left, length=right - left + 1, score=score)

    def division_scores(
        self,
        nodes: NDArray[np.int64],
        boxes: NDArray[np.int64],
        axis: int,
        grid: BinGrid,
        max_lines: int,
    ) -> Candidates:
        """Scores of the bin lines inside each node; see `psd.curator.candidate_scores`."""
        self._unpack_codes()
        entries = self.stop[nodes] - self.start[nodes]
        index = ranges(self.start[nodes], entries)
        records = Entries(
            node=np.repeat(np.arange(len(nodes)), entries),
            cell=(self._columns[index], self._rows[index]),
            count=self._counts[index],
        )
        return Divisions(boxes, axis, grid, max_lines).candidates(records)

    def _sorted(
        self, nodes: NDArray[np.int64], entries: NDArray[np.int64], axis: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Lattice coordinates of the entries of each node in ascending order, and their counts."""
        index = ranges(self.start[nodes], entries)
        values = (self._columns, self._rows)[axis][index].astype(np.int64)
        # Sorted by one number, of the node and the line in it.
        owner = np.repeat(np.arange(len(nodes)), entries)
        # Lattice lines have up to 30 bits, codes of a curve up to 36. Nodes are in order, so merges
        # are faster than quicksort.
        order = np.argsort(owner << int(values.max(initial=0)).bit_length() | values, kind="stable")
        return values[order], self._counts[index][order]


def _order_of(region: NDArray[np.int32]) -> NDArray[np.int64] | slice:
    """Order by region; a slice where the entries of a tally are in it already."""
    if (region[1:] >= region[:-1]).all():
        return slice(None)
    return np.argsort(region, kind="stable")


def _running_total(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Counts before each entry and after the last, so that a node's is one difference."""
    return np.append(np.int64(0), np.cumsum(counts, dtype=np.int64))
