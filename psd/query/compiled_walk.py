"""Compiled traversal of the tree, for many boxes; it needs numba.

Each cell is read once for all queries that cut it: one pass over their list measures what they
cover of a child, and those that cut the child go on to it as a shorter list, without branches.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from psd._util.arrays import Floats, Integers
from psd.estimation import constants as estimation_constants
from psd.estimation import nonuniformity as uniformity
from psd.estimation.density import PARTS
from psd.query import constants as query_constants
from psd.query.constants import SHARE_ROUNDING
from psd.query.index import COVARIATE, SMOOTH, ChildRanges, Errors, FlatTree
from psd.query.totals import QueryTotals
from psd.space.box_tree import MAX_CHILDREN

# Most queries walked down together; a chunk takes less than a second, then Ctrl-C is heard.
_BOXES_PER_BATCH = 2**17

# Most entries of all lists from the root down: about 350 MB, of which few are ever touched.
_ROOM = 2**21

# Columns of the frames, one frame for each level: its list, and its children, done and to be done.
_BEGIN, _END, _FIRST, _NEXT, _LAST = range(5)
_FRAME = 5


class BoxLists(NamedTuple):
    """Lists of boxes in flat arrays, cheaper to cut than tables; `other` is of published counts.

    Sums along sides and edges are of the first list alone. Work space: how an answer grows with the
    estimate of a cell, and covered shares of area and points of a child.
    """

    west: Floats
    south: Floats
    east: Floats
    north: Floats
    estimate: Floats
    noise: Floats
    uneven: Floats
    shift: Floats
    signed: Floats
    published: Floats
    at_west: Floats
    at_south: Floats
    at_east: Floats
    at_north: Floats
    beyond: Floats
    edges: Floats
    slope: Floats
    other_slope: Floats
    area: Floats
    share: Floats
    other_share: Floats


def walk_query_totals(flat_tree: FlatTree, count: Floats, boxes: Floats) -> QueryTotals:
    """Totals of boxes, (n, 4) in lattice units, equal to `query_totals` to rounding."""
    children, errors = flat_tree.children, flat_tree.errors
    sums = _walk_in_batches(flat_tree, children, count, errors, boxes)
    estimate, noise, uneven, shift, signed, published, *sides, beyond, edges = sums
    return QueryTotals(
        estimate=estimate,
        signed=signed if errors.other else estimate,
        perturbation_variance=noise,
        published_variance=published if errors.other else noise,
        leaf_variance=uneven,
        shift=shift,
        line_variance=(np.array(sides) ** 2).sum(axis=0),
        edge_variance=errors.edge_factor * np.maximum(edges, 0.0),
        beyond=beyond,
    )


def walk_value_totals(flat_tree: FlatTree, values: Floats, boxes: Floats) -> Floats:
    """Sum of share times value over the cells of boxes, shape (n,); see `walk_query_totals`."""
    values = values.view()
    values.flags.writeable = False  # as arrays of a fit are: the walk is compiled for one kind
    total: Floats = _walk_in_batches(flat_tree, flat_tree.descendants, values, None, boxes)[0]
    return total


def _walk_in_batches(
    flat_tree: FlatTree, family: ChildRanges, values: Floats, errors: Errors | None, boxes: Floats
) -> Floats:
    """Totals of boxes, shape (12, n), computed in batches that fit the lists."""
    size = max(1, min(len(boxes), _BOXES_PER_BATCH, _ROOM // flat_tree.levels))
    room = size * flat_tree.levels
    sizes = [room] * (len(BoxLists._fields) - 2) + [MAX_CHILDREN * room] * 2
    lists = BoxLists._make(np.empty(entries) for entries in sizes)
    places = np.empty((2, room + size), np.int32)
    places[1, :size] = np.arange(size)
    # Lists and frames are made once for all batches.
    frames = np.empty((flat_tree.levels + 1, _FRAME), np.int64)
    sums = lists[4:16]  # from the estimate to edges
    has_edges = errors is not None and errors.edge_factor > 0
    along = np.empty((flat_tree.levels + 1, size if has_edges else 0))  # edges, level by level
    result = np.empty((len(sums), len(boxes)))
    for start in range(0, len(boxes), size):
        chunk = boxes[start : start + size]
        # The first four lists are the sides of the boxes; `sums` have rests of the batch before.
        for row, side in zip(lists, chunk.T, strict=False):
            row[: len(chunk)] = side
        for row in sums:
            row[: len(chunk)] = 0.0
        frames[0], along[:] = (0, len(chunk), 0, 0, 1), 0.0
        work = lists, places, frames, along
        _walk_down(flat_tree.boxes, family, flat_tree.inside, values, errors, *work)
        if has_edges:
            lists.edges[: len(chunk)] += (along[:, : len(chunk)] ** 2).sum(axis=0)
        for row, totals in zip(sums, result, strict=True):
            totals[start : start + size] = row[: len(chunk)]
    return result


_step = njit(nogil=True, error_model="numpy")
# Becomes part of the walk itself.
_part = njit(nogil=True, error_model="numpy", inline="always")
_nonuniformity_variance: Any = _step(uniformity.nonuniformity_variance)


@_step
def _add(value: float, share: Floats, sums: Floats) -> None:
    """Add to each sum its share of a value."""
    for i in range(len(share)):
        sums[i] += value * share[i]


@_step
def _add_whole(value: float, share: Floats, sums: Floats) -> None:
    """Add the value of an inner cell to the boxes that contain the cell."""
    for i in range(len(share)):
        sums[i] += value if share[i] >= 1 else 0.0


@_step
def _add_uneven(
    count: float,
    overdispersion: float,
    cluster_size: float,
    share: Floats,
    area: Floats,
    sums: Floats,
) -> None:
    """Add what a leaf adds to the non-uniformity variance; nothing where it is not cut."""
    for i in range(len(share)):
        sums[i] += _nonuniformity_variance(count, share[i], area[i], overdispersion, cluster_size)


@_step
def _add_left_out(ceiling: float, share: Floats, area: Floats, sums: Floats) -> None:
    """Add what a leaf may hold outside a box; nothing where it is not cut."""
    for i in range(len(share)):
        cut = (area[i] > 0) & (area[i] < 1)
        sums[i] += ceiling * (1 - share[i]) if cut else 0.0


@_part
def _cut_deviation(deviation: float, column: float, share: float, size: float) -> Any:
    """Deviation of the records beside a line across a leaf; see `psd.query.lines.cut_deviation`."""
    cut = deviation * np.sqrt(share * (1 - share))
    if column > 0:
        offset = share * size % 1.0
        cut = np.hypot(cut, column * min(offset, 1 - offset))
    return cut


@_step
def _add_cuts(leaf: Any, of_x: Any, of_y: Any, listed: Any, boxes: Any, sums: Any) -> None:
    """Add the deviations of a leaf along the sides of the boxes; see `psd.query.lines`.

    leaf: start and size by axis; of_x, of_y: deviation of a cut and records of a column or row;
    listed: entries that cut the leaf, their shares of its records, sides. Boxes are those of the
    first list.
    """
    (left, wide), (bottom, tall) = leaf
    right, top = left + wide, bottom + tall
    (off_x, column), (off_y, row) = of_x, of_y
    numbers, inside, x0, y0, x1, y1 = listed
    at_west, at_south, at_east, at_north = sums
    for i in numbers:
        # No side of a box passes through a leaf that it covers completely, or not at all.
        if inside[i] <= SHARE_ROUNDING or inside[i] >= 1 - SHARE_ROUNDING:
            continue
        box = boxes[i]
        # Lengths of the sides inside the leaf, in parts of its own.
        across = (min(x1[i], right) - max(x0[i], left)) / wide
        up = (min(y1[i], top) - max(y0[i], bottom)) / tall
        if x0[i] > left:
            at_west[box] += up * _cut_deviation(off_x, column, (x0[i] - left) / wide, wide)
        if x1[i] < right:
            at_east[box] += up * _cut_deviation(off_x, column, (x1[i] - left) / wide, wide)
        if y0[i] > bottom:
            at_south[box] += across * _cut_deviation(off_y, row, (y0[i] - bottom) / tall, tall)
        if y1[i] < top:
            at_north[box] += across * _cut_deviation(off_y, row, (y1[i] - bottom) / tall, tall)


@_step
def _list_cuts(share: Floats, places: Any) -> int:
    """List the boxes that cut a cell; return their number."""
    count = 0
    for i in range(len(share)):
        places[count] = i
        count += (share[i] > 0) & (share[i] < 1)
    return count


@_step
def _gather(places: Any, parent: Floats, child: Floats) -> None:
    """Copy the listed entries of a parent's list to a child's."""
    for i in range(len(places)):
        child[i] = parent[places[i]]


@_step
def _scatter(places: Any, child: Floats, parent: Floats) -> None:
    """Copy a child's list to the listed entries of its parent's."""
    for i in range(len(places)):
        parent[places[i]] = child[i]


@_step
def _scatter_add(places: Any, child: Floats, parent: Floats) -> None:
    """Add a child's list to the listed entries of its parent's."""
    for i in range(len(places)):
        parent[places[i]] += child[i]


@_step
def _add_noise(variance: float, share: Floats, mean: Floats, noise: Floats) -> None:
    """Add the variance of a child given its parent."""
    for i in range(len(share)):
        off = share[i] - mean[i]
        noise[i] += variance * off * off


@_part
def _close_family(
    slopes: Floats,
    variances: Floats,
    box_range: Any,
    family: Any,
    share: Floats,
    room: int,
    sums: Any,
) -> None:
    """Close a family of the recursion in `psd.query.traversal.perturbation_variance`."""
    (begin, end), (first, last), (slope, noise) = box_range, family, sums
    slope[:] = 0.0
    for child in range(first, last):
        at = (child - first) * room
        _add(slopes[child], share[at + begin : at + end], slope)
    for child in range(first, last):
        at = (child - first) * room
        _add_noise(variances[child], share[at + begin : at + end], slope, noise)


@_step
def _add_edges(
    variance: float, share: Floats, mean: Floats, numbers: Any, along: Floats, edges: Floats
) -> None:
    """Add a child to the sums of `psd.query.traversal.edge_squares`, less its own square."""
    for i in range(len(share)):
        inward = np.sqrt(variance) * max(share[i] - mean[i], 0.0)
        along[numbers[i]] += inward
        edges[numbers[i]] -= inward * inward


@_part
def _gather_sides(numbers: Any, sides: Any, west: Any, south: Any, east: Any, north: Any) -> None:
    """Start the list of those boxes of another list that cut a cell."""
    x0, y0, x1, y1 = sides
    _gather(numbers, x0, west)
    _gather(numbers, y0, south)
    _gather(numbers, x1, east)
    _gather(numbers, y1, north)


@_step
def _measure_area(
    boxes: Any, node: int, x0: Floats, y0: Floats, x1: Floats, y1: Floats, share: Floats
) -> None:
    """Covered shares of the area of a cell by a list of boxes: 0 outside, exactly 1 inside."""
    west, south = float(boxes[node, 0]), float(boxes[node, 1])
    east, north = float(boxes[node, 2]), float(boxes[node, 3])
    cell_area = (east - west) * (north - south)
    for i in range(len(share)):
        wide = max(min(x1[i], east) - max(x0[i], west), 0.0)
        tall = max(min(y1[i], north) - max(y0[i], south), 0.0)
        share[i] = wide * tall / cell_area


@_step
def _apply_smooth(
    inside: Any,
    boxes: Any,
    node: int,
    x0: Floats,
    y0: Floats,
    x1: Floats,
    y1: Floats,
    share: Floats,
) -> None:
    """Turn shares of the area of a leaf into shares of its points, which lie smoothly."""
    west, south = float(boxes[node, 0]), float(boxes[node, 1])
    across, up = PARTS / (boxes[node, 2] - west), PARTS / (boxes[node, 3] - south)
    parts, leaf = inside.share, inside.rank[node]
    for i in range(len(share)):
        # Sides of the box in parts of the leaf, PARTS x PARTS of them.
        left, right = (x0[i] - west) * across, (x1[i] - west) * across
        low, high = (y0[i] - south) * up, (y1[i] - south) * up
        total = 0.0
        for row in range(PARTS):
            line = 0.0
            for column in range(PARTS):
                wide = max(min(right, column + 1.0) - max(left, float(column)), 0.0)
                line += wide * parts[leaf, row, column]
            total += line * max(min(high, row + 1.0) - max(low, float(row)), 0.0)
        # Rounding must not change the share of a leaf that is covered completely, or not at all.
        cut = (share[i] > 0) & (share[i] < 1)
        share[i] = min(total, 1.0) if cut else share[i]


@_step
def _block_edges(low: float, high: float) -> tuple[Any, Any]:
    """Lines of the first, inner and last raster cells of an interval, and what is in each."""
    first, last = int(np.floor(low)), int(np.ceil(high))
    second = min(first + 1, last)
    third = max(last - 1, second)
    return (first, second, third, last), (min(high, float(second)) - low, 1.0, high - third)


@_step
def _box_mass(surface: Integers, west: float, south: float, east: float, north: float) -> float:
    """Mass of a box in units of raster cells; see `psd.space.covariate.Covariate.raster_mass`."""
    columns, across = _block_edges(west, east)
    rows, up = _block_edges(south, north)
    # First, inner and last cells along each axis: nine blocks, each of one density, by the corners
    # of the summed raster.
    mass = 0.0
    for y in range(3):
        for x in range(3):
            upper = surface[rows[y + 1], columns[x + 1]] - surface[rows[y + 1], columns[x]]
            lower = surface[rows[y], columns[x + 1]] - surface[rows[y], columns[x]]
            mass += (upper - lower) * across[x] * up[y]
    return mass


@_step
def _apply_covariate(
    inside: Any,
    boxes: Any,
    node: int,
    x0: Floats,
    y0: Floats,
    x1: Floats,
    y1: Floats,
    share: Floats,
) -> None:
    """Turn shares of the area of a leaf into shares of its points, by the covariate."""
    columns, rows, leaf_mass = inside.cells[0], inside.cells[1], inside.mass[node]
    wide, tall = inside.lattice[0], inside.lattice[1]
    for i in range(len(share)):
        if leaf_mass > 0 and 0 < share[i] < 1:
            # The part of the box inside the leaf, in cells of the raster.
            mass = _box_mass(
                inside.surface,
                max(x0[i], float(boxes[node, 0])) * columns / wide,
                max(y0[i], float(boxes[node, 1])) * rows / tall,
                min(x1[i], float(boxes[node, 2])) * columns / wide,
                min(y1[i], float(boxes[node, 3])) * rows / tall,
            )
            share[i] = min(mass / leaf_mass, 1.0)


def _compile_walk(source: str) -> Any:
    """The walk, compiled when first called, and cached on disk if a folder is writable."""
    # One function: passing arrays to another costs as much as reading a short list. The key of the
    # cache has the digest of the formula in other files.

    def walk_boxes(
        boxes: Any,
        family: Any,
        inside: Any,
        values: Any,
        errors: Any,
        lists: Any,
        both_places: Any,
        frames: Any,
        along: Any,
    ) -> None:
        source  # noqa: B018
        places, box_numbers = both_places
        west, south, east, north = lists.west, lists.south, lists.east, lists.north
        estimate, noise, uneven = lists.estimate, lists.noise, lists.uneven
        shift, signed, published = lists.shift, lists.signed, lists.published
        at_sides = lists.at_west, lists.at_south, lists.at_east, lists.at_north
        beyond, edges = lists.beyond, lists.edges
        slope, area, shares = lists.slope, lists.area, lists.share
        other_slope, other_shares = lists.other_slope, lists.other_share
        room, depth = len(west), 0
        while depth >= 0:
            a, b = frames[depth, _BEGIN], frames[depth, _END]
            start, node = frames[depth, _FIRST], frames[depth, _NEXT]
            if node == frames[depth, _LAST]:  # all children are done
                if errors is not None:
                    # Shares of the children give slope and noise of the boxes a:b in the cell they
                    # cut.
                    sums = slope[a:b], noise[a:b]
                    _close_family(
                        errors.slope, errors.variance, (a, b), (start, node), shares, room, sums
                    )
                    if errors.edge_factor > 0:
                        numbers = box_numbers[a:b]
                        for child in range(start, node):
                            at = (child - start) * room
                            share = shares[at + a : at + b]
                            variance = errors.variance[child]
                            _add_edges(variance, share, slope[a:b], numbers, along[depth], edges)
                    if errors.other:
                        slopes, variances = errors.other_slope, errors.other_variance
                        sums = other_slope[a:b], published[a:b]
                        _close_family(
                            slopes, variances, (a, b), (start, node), other_shares, room, sums
                        )
                # Back in the list c:d of the parent: sums are added, the slope is its share of this
                # child.
                depth -= 1
                if depth >= 0:
                    numbers, c, d = places[a:b], frames[depth, _BEGIN], frames[depth, _END]
                    _scatter_add(numbers, estimate[a:b], estimate[c:d])
                    if errors is not None:
                        _scatter_add(numbers, noise[a:b], noise[c:d])
                        _scatter_add(numbers, uneven[a:b], uneven[c:d])
                        _scatter_add(numbers, beyond[a:b], beyond[c:d])
                        at = (frames[depth, _NEXT] - 1 - frames[depth, _FIRST]) * room
                        _scatter(numbers, slope[a:b], shares[at + c : at + d])
                        if errors.shift_share > 0:
                            _scatter_add(numbers, shift[a:b], shift[c:d])
                        if errors.other:
                            _scatter_add(numbers, signed[a:b], signed[c:d])
                            _scatter_add(numbers, published[a:b], published[c:d])
                            _scatter(numbers, other_slope[a:b], other_shares[at + c : at + d])
                continue
            # The next child of this cell, and how much of it each of the boxes a:b covers.
            frames[depth, _NEXT] += 1
            at = (node - start) * room
            share = shares[at + a : at + b]
            x0, y0, x1, y1 = west[a:b], south[a:b], east[a:b], north[a:b]
            _measure_area(boxes, node, x0, y0, x1, y1, share)
            first, last = family.start[node], family.stop[node]
            if first == last:  # a leaf
                if errors is not None:
                    area[a:b] = share
                if inside.kind == SMOOTH:
                    _apply_smooth(inside, boxes, node, x0, y0, x1, y1, share)
                elif inside.kind == COVARIATE:
                    _apply_covariate(inside, boxes, node, x0, y0, x1, y1, share)
                _add(values[node], share, estimate[a:b])
                if errors is not None:
                    overdispersion = errors.overdispersion[node]
                    _add_uneven(
                        values[node],
                        overdispersion,
                        errors.cluster_size,
                        share,
                        area[a:b],
                        uneven[a:b],
                    )
                    _add_left_out(errors.ceiling[node], share, area[a:b], beyond[a:b])
                    if errors.aligned:
                        left, bottom = float(boxes[node, 0]), float(boxes[node, 1])
                        wide, tall = boxes[node, 2] - left, boxes[node, 3] - bottom
                        of_x = errors.lines[0, node], errors.columns[0, node]
                        of_y = errors.lines[1, node], errors.columns[1, node]
                        leaf = (left, wide), (bottom, tall)
                        # Behind the list there is room for the numbers of its boxes that cut the
                        # leaf.
                        numbers = places[b : b + _list_cuts(share, places[b:])]
                        listed = numbers, share, x0, y0, x1, y1
                        _add_cuts(leaf, of_x, of_y, listed, box_numbers[a:b], at_sides)
                    if errors.shift_share > 0:
                        # The density moves records in proportion to its share less that of the
                        # area.
                        moved = errors.shift_share * max(values[node], 0.0)
                        _add(moved, share, shift[a:b])
                        _add(-moved, area[a:b], shift[a:b])
                    if errors.other:
                        _add(errors.signed[node], share, signed[a:b])
                        other_shares[at + a : at + b] = share
                continue
            # An inner cell is taken whole by the boxes around it; those that cut it go on, as a
            # list.
            _add_whole(values[node], share, estimate[a:b])
            if errors is not None and errors.other:
                _add_whole(errors.signed[node], share, signed[a:b])
                other_shares[at + a : at + b] = share
            cuts = _list_cuts(share, places[b:])
            if cuts:
                depth, c = depth + 1, b + cuts
                frames[depth, _BEGIN], frames[depth, _END] = b, c
                frames[depth, _FIRST], frames[depth, _NEXT] = first, first
                frames[depth, _LAST] = last
                sides, numbers = (x0, y0, x1, y1), places[b:c]
                _gather_sides(numbers, sides, west[b:c], south[b:c], east[b:c], north[b:c])
                # Lists stand one behind the other, and the new one begins without sums.
                estimate[b:c] = 0.0
                if errors is not None:
                    noise[b:c] = 0.0
                    shift[b:c] = 0.0
                    signed[b:c] = 0.0
                    published[b:c] = 0.0
                    uneven[b:c] = 0.0
                    beyond[b:c] = 0.0
                    if errors.aligned or errors.edge_factor > 0:
                        _gather(numbers, box_numbers[a:b], box_numbers[b:c])

    try:
        return njit(nogil=True, error_model="numpy", cache=True)(walk_boxes)
    except RuntimeError:  # neither the folder of this file nor the home folder is writable
        return njit(nogil=True, error_model="numpy")(walk_boxes)


def _formula_digest() -> str:
    """Digest of the sources of what the walk calls from other files, constants included."""
    modules = (uniformity, estimation_constants, query_constants)
    sources = (Path(str(module.__file__)).read_bytes() for module in modules)
    return hashlib.sha256(b"".join(sources)).hexdigest()


_walk = _compile_walk(_formula_digest())


def _walk_down(*arguments: Any) -> None:
    """Run the walk; run it again if the compiled code cannot be cached, or the cache is stale."""
    try:
        _walk(*arguments)
    except OSError:  # the cache cannot be written; the compiled code is in memory
        _walk(*arguments)
    except (ImportError, AttributeError):  # it names types where another version has them
        _walk._cache.flush()  # noqa: SLF001 - numba has no public name for it
        _walk(*arguments)
