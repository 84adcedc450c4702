"""Records along lines: errors along the sides of boxes and polygons, and what boxes share of them.

Records beside a side may be on its other side in all leaves that it cuts, so their errors add up;
those of different lines do not. Along a slanting side, neighbouring leaves hold their records, at
values of rounded coordinates, on one side of their middle: that shifts the whole side, by less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, sum_by
from psd.query.constants import LINE_PLACES, SHARE_ROUNDING, SIDE_SLANT, SLANTING_SHIFT
from psd.query.traversal import Traversal
from psd.space.domain import Domain

if TYPE_CHECKING:
    from scipy import sparse

    from psd.estimation.fit import Fit


# Pairs of a box and a leaf worked on together; bounds the memory, not the result.
_PAIRS_PER_BATCH = 2**18


def cut_deviation(fit: Fit, axis: int, node: Integers, share: Floats, width: Floats) -> Floats:
    """Deviation of the records beside a line that cuts leaves from side to side, (n,), records.

    axis: 0 for lines of constant x; share: part of each leaf west or south of the line; width: of
    leaves across it in lattice units, 0 where no single column is cut, (n,) each.
    """
    deviation: NDArray[np.float64] | None = fit.line_deviation
    assert deviation is not None  # only a release with lines across its leaves is asked
    result: Floats = deviation[axis, node] * np.sqrt(share * (1 - share))
    columns = fit.column_records
    if columns is None:
        return result
    # Where the lattice was chosen, all records of a column are in its middle: a line at p of it is
    # wrong by the smaller of p and 1 - p.
    offset = share * width % 1.0
    wrong: Floats = columns[axis, node] * np.minimum(offset, 1 - offset)
    return np.hypot(result, wrong)


def side_deviations(fit: Fit, node: Integers, cells: Floats, boxes: Floats) -> Floats:
    """Deviation of the records in the part of each leaf that a box covers, (n, 4), by side.

    cells, boxes: (n, 4) float64, lattice units; 0 for a side that misses the leaf.
    """
    size = cells[:, 2:] - cells[:, :2]
    # Sides of the box as shares of its leaf, (n, 2); a side beyond the leaf is on its edge.
    low = np.clip((boxes[:, :2] - cells[:, :2]) / size, 0.0, 1.0)
    high = np.clip((boxes[:, 2:] - cells[:, :2]) / size, 0.0, 1.0)
    result = np.empty((len(node), 4))
    for side, cut in enumerate((low, low, high, high)):
        axis = side % 2
        share, other = cut[:, axis], 1 - axis
        # Records beside a side are in proportion to its length in the leaf.
        along = high[:, other] - low[:, other]
        result[:, side] = cut_deviation(fit, axis, node, share, size[:, axis]) * along
    return result


def divides_records(share: Floats, area: Floats) -> NDArray[np.bool_]:
    """Whether shares of records and area, (n,), cut leaves, not just where no records can be."""
    is_cut = (area > 0) & (area < 1)
    return is_cut & (share > SHARE_ROUNDING) & (share < 1 - SHARE_ROUNDING)


def cut_pairs(traversal: Traversal) -> tuple[Integers, Integers]:
    """Queries and the leaves whose records they divide, shape (n,) each."""
    query, node = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for level in traversal.levels:
        # Cells that were opened have children in the next level.
        cut = ~level.opened & divides_records(level.fraction, level.area)
        query.append(level.query[cut])
        node.append(level.node[cut])
    return np.concatenate(query), np.concatenate(node)


def line_variance(fit: Fit, traversal: Traversal, boxes: Floats) -> Floats:
    """Variance of answers to boxes, (queries, 4) in lattice units, by records along their sides."""
    total = np.zeros((4, traversal.queries))
    cells = fit.tree.boxes
    if fit.line_deviation is None:
        return np.zeros(traversal.queries)
    queries, nodes = cut_pairs(traversal)
    for start in range(0, len(nodes), _PAIRS_PER_BATCH):
        batch = slice(start, start + _PAIRS_PER_BATCH)
        node, query = fit.tree.end[nodes[batch]], queries[batch]
        sides = side_deviations(fit, node, cells[node].astype(np.float64), boxes[query])
        for side in range(4):
            # Lines go on from leaf to leaf, so a side errs as a whole: its deviations are added
            # before they are squared.
            total[side] += sum_by(query, sides[:, side], traversal.queries)
    variance: Floats = (total**2).sum(axis=0)
    return variance


def line_matrix(fit: Fit, box: Integers, node: Integers, boxes: Floats) -> sparse.csr_array | None:
    """Deviations of boxes along lines: a sparse Z, (m, lines), or None without such records.

    box, node: (n,) int64, a box and a leaf that it cuts; boxes: (m, 4) float64, lattice units.

    P1. Z Z' is the covariance: records that are on the other side of a line are missing on one side
    and too many on the other. Different lines err independently.
    """
    from scipy import sparse  # boxes on their own need none of it

    if fit.line_deviation is None:
        return None
    cells = fit.tree.boxes[node].astype(np.float64)
    sides = side_deviations(fit, node, cells, boxes[box])
    rows, columns, values, first = [], [], [], 0
    for axis in (0, 1):
        # Boxes with a side on one line share its column. What the line lets in at a west side it
        # takes at an east side, so their signs differ.
        position = np.concatenate([boxes[box, axis], boxes[box, axis + 2]])
        lines, number = np.unique(position, return_inverse=True)
        rows.append(np.tile(box, 2))
        columns.append(first + number)
        values.append(np.concatenate([-sides[:, axis], sides[:, axis + 2]]))
        first += len(lines)
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return sparse.csr_array(entries, shape=(len(boxes), first))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sides:
    """Sides of regions, in lattice units."""

    region: Integers  # (n,) int64; number of the region that each side belongs to
    ends: Floats  # (n, 4) float64; x and y of both ends
    # (2, n) int64; number of the line that records are on the other side of, for shifts along x and
    # along y; sides of one line err together.
    line: Integers
    # (2, n) float64; part of the deviation of a cut along each axis: above 0 on the east or north
    # of a region, below 0 on its west or south.
    weight: Floats
    # (2, n) bool; whether each side is a line that cuts columns, and rows.
    straight: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.region)


def find_sides(shapes: NDArray[np.object_], domain: Domain) -> Sides:
    """Find the sides of valid polygons, (m,), in the CRS of the domain, clipped to it."""
    import shapely

    # Outlines of polygons in lattice units, between two corners each.
    parts, of_shape = shapely.get_parts(shapes, return_index=True)
    rings, of_part = shapely.get_rings(parts, return_index=True)
    points, of_ring = shapely.get_coordinates(rings, return_index=True)
    # A point and the next one are the ends of a part, unless a ring ends between them.
    within = np.flatnonzero(np.diff(of_ring) == 0)
    ring = of_ring[within]
    outer = np.append(True, np.diff(of_part) > 0)[: len(rings)]
    ends = domain.to_lattice(np.concatenate([points[within], points[within + 1]], axis=1))
    # 1 where the region is on the left, else -1.
    left = np.where(shapely.is_ccw(rings) == outer, 1.0, -1.0)[ring]
    change = ends[:, 2:] - ends[:, :2]
    number, line, weight, straight_on = 0, [], [], []
    for axis in (0, 1):
        along = change[:, 1 - axis]
        straight = (along != 0) & (np.abs(change[:, axis]) <= SIDE_SLANT * np.abs(along))
        slanting = ~straight & (np.abs(along) > SIDE_SLANT * np.abs(change[:, axis]))
        # The region is on the left of its outline: on the west of a side that goes north.
        sign = np.sign(along) * left * (1.0 if axis == 0 else -1.0)
        kind = np.where(straight, 1, np.where(slanting, 2, 0))
        run = _runs(ring, kind, sign)
        # Mean position of each run, weighted by length, for each of its members, (sides,).
        size = np.abs(along)
        total = np.maximum(np.bincount(run, size), np.finfo(float).tiny)
        middle = (ends[:, axis] + ends[:, 2 + axis]) / 2
        position: Floats = (np.bincount(run, size * middle) / total)[run]
        # Straight sides at one position are one line, also of several regions; others by run.
        key = np.where(straight, np.round(position, LINE_PLACES), run)
        _, numbers = np.unique(np.stack([kind, key]), axis=1, return_inverse=True)
        line.append(number + numbers.ravel())
        weight.append(sign * np.choose(kind, [0.0, 1.0, SLANTING_SHIFT]))
        straight_on.append(straight)
        # Lines of the other axis get the numbers after these.
        number = int(line[-1].max(initial=number - 1)) + 1
    return Sides(
        region=of_shape[of_part[ring]],
        ends=ends,
        line=np.stack(line),
        weight=np.stack(weight),
        straight=np.stack(straight_on),
    )


def _runs(ring: Integers, kind: Integers, sign: Floats) -> Integers:
    """Number of each run of neighbours in a ring that are of one kind and sign."""
    values = (ring, kind, sign)
    changes = np.any([np.diff(value) != 0 for value in values], axis=0)
    run: Integers = np.append(0, np.cumsum(changes))[: len(ring)]
    first = np.flatnonzero(np.diff(ring, prepend=-1))
    last = np.flatnonzero(np.diff(ring, append=-1))
    # A ring has no end: its last run and its first one are one if they are of one kind.
    closed = (kind[first] == kind[last]) & (sign[first] == sign[last])
    number = np.arange(len(run))
    number[run[last[closed]]] = run[first[closed]]
    return number[run]


def side_matrix(
    fit: Fit, region: Integers, node: Integers, sides: Sides, regions: int
) -> sparse.csr_array | None:
    """Deviations of regions along lines, as `line_matrix`; region, node: (n,), pairs."""
    import shapely
    from scipy import sparse

    if fit.line_deviation is None:
        return None
    cells = fit.tree.boxes[node].astype(np.float64)
    # Pairs of a cell of a region and a side of the same region that may meet it.
    # Regions lie beside each other here, so that a search finds sides of the same one alone.
    east, both = 2.0 * fit.domain.lattice[0], np.array([1, 0, 1, 0])
    ends = sides.ends + (east * sides.region)[:, None] * both
    moved = cells + (east * region)[:, None] * both
    tree = shapely.STRtree(shapely.linestrings(ends.reshape(-1, 2, 2)))
    pair, side = tree.query(shapely.box(*moved.T))
    parts = _parts_inside(sides.ends[side], cells[pair])
    rows, columns, values = [], [], []
    for axis in (0, 1):
        # A side cuts its cell at the middle of its part inside, and errs in proportion to its
        # length.
        share, other = (parts[:, axis] + parts[:, 2 + axis]) / 2, 1 - axis
        along = np.abs(parts[:, 2 + other] - parts[:, other])
        # A side that slants cuts columns at all places, wrong in either direction.
        width = np.where(sides.straight[axis, side], cells[pair, 2 + axis] - cells[pair, axis], 0.0)
        error = cut_deviation(fit, axis, node[pair], share, width) * along
        rows.append(sides.region[side])
        columns.append(sides.line[axis, side])
        values.append(sides.weight[axis, side] * error)
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return sparse.csr_array(entries, shape=(regions, int(sides.line.max(initial=-1)) + 1))


def side_variance(fit: Fit, region: Integers, node: Integers, sides: Sides, regions: int) -> Floats:
    """Variance of the records of regions by records along their sides, shape (m,)."""
    matrix = side_matrix(fit, region, node, sides, regions)
    if matrix is None:
        return np.zeros(regions)
    return np.asarray(matrix.power(2).sum(axis=1), np.float64)


def _parts_inside(ends: Floats, cells: Floats) -> Floats:
    """Ends of the parts of sides inside cells, as shares of the cells; equal ones where none is."""
    size = cells[:, 2:] - cells[:, :2]
    start, stop = (ends[:, :2] - cells[:, :2]) / size, (ends[:, 2:] - cells[:, :2]) / size
    change = stop - start
    # The part of the side, from 0 to 1, that is between both sides of the cell on each axis.
    still = change == 0
    steps = np.where(still, 1.0, change)
    first, last = -start / steps, (1 - start) / steps
    outside = still & ((start < 0) | (start > 1))
    # A side that stands still on an axis is inside the cell there all along, or nowhere.
    low = np.where(still, np.where(outside, 1.0, 0.0), np.minimum(first, last)).max(axis=1)
    high = np.where(still, np.where(outside, 0.0, 1.0), np.maximum(first, last)).min(axis=1)
    low = np.clip(low, 0.0, 1.0)
    high = np.maximum(np.clip(high, 0.0, 1.0), low)
    ends = np.concatenate([start + low[:, None] * change, start + high[:, None] * change], axis=1)
    return np.clip(ends, 0.0, 1.0)
