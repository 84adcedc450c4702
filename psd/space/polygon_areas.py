"""Exact areas of polygons inside boxes, from the sides of the polygons, without overlays.

On a line along x, the length inside a box is the sum of what upward sides cut off from the west
edge, less what downward sides cut off; integrated over y, each side contributes by itself. Of a
side east of the box only the heights of its ends matter; where it ends the next begins, so nearly
all cancel, and a small box stores few steps. Boxes are divided recursively where an outline passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, ranges, sum_by
from psd.space.box_tree import quadrants

# Fractions this close to 0 or 1 are rounding errors.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClippedPolygons:
    """Sides of polygons inside boxes: pair i is polygon i in box i.

    .. [1] Bockman. "Generalizing the Formula for Areas of Polygons to Moments." The American
       Mathematical Monthly 96(2), 1989: areas as sums over sides, by Green's theorem.
    """

    boxes: Floats  # (n, 4) float64; west, south, east, north in the CRS of the polygons
    base: Floats  # (n,) float64; 1 if the south end of the east edge is inside the polygon, else 0
    # (5, m) float64; west end and east end of each side inside a box, x before y; then 1 if the
    # interior is to the left of the side from west to east, -1 if to the right. No side runs along
    # x.
    sides: Floats
    owner: Integers  # (m,) int64; box of each side, ascending
    steps: Floats  # (2, k) float64; heights on the east edges, and the change of coverage at each
    step_owner: Integers  # (k,) int64; box of each step, ascending

    @property
    def cut(self) -> NDArray[np.bool_]:
        """Whether an outline passes through each box; other boxes are inside or outside."""
        is_cut = np.zeros(len(self.boxes), bool)
        is_cut[self.owner] = is_cut[self.step_owner] = True
        return is_cut

    @property
    def fraction(self) -> Floats:
        """Covered fractions of the areas of the boxes, in [0, 1]."""
        west, _, _, north = self.boxes.T
        width, height = (self.boxes[:, 2:] - self.boxes[:, :2]).T
        x0, y0, x1, y1, sign = self.sides
        origin, size = west[self.owner], width[self.owner] * height[self.owner]
        # Area between each side and the west edge, a trapezium, as a share of its box.
        strip = sign * (y1 - y0) * ((x0 - origin) + (x1 - origin)) / (2 * size)
        y, change = self.steps
        # A step changes the coverage from its height up to the north edge.
        above = change * (north[self.step_owner] - y) / height[self.step_owner]
        fraction = self.base + sum_by(self.owner, strip, len(width))
        fraction += sum_by(self.step_owner, above, len(width))
        fraction[fraction < _ROUNDING] = 0.0
        fraction[fraction > 1 - _ROUNDING] = 1.0
        return fraction


def clip_outlines(shapes: NDArray[np.object_], boxes: Floats) -> ClippedPolygons:
    """Clip valid (multi-)polygons (n,) to boxes (n, 4), one for each, in the same CRS."""
    sides, owner = polygon_sides(shapes)
    is_rising = sides[1] != sides[3]
    no_steps = np.zeros((2, 0)), np.zeros(0, np.int64)
    return _clip(sides[:, is_rising], owner[is_rising], *no_steps, np.zeros(len(boxes)), boxes)


def clip_near_sides(sides: Floats, owner: Integers, base: Floats, boxes: Floats) -> ClippedPolygons:
    """Clip sides (5, m) of closed outlines that are not east of their box to boxes (n, 4).

    base: (n,), sum over those that are, and pass the height of the south edge: 1 with the interior
    to their west, -1 to their east. Sides with an end on the east line are here, those along x too.
    P1. The fractions are those of `clip_outlines`: no step is left out. Beyond the east
    line, where one side ends the next begins, so steps cancel, but at the south edge, below which
    sides are cut off. Of a side along x the steps of its neighbours do, so one that passes the east
    line has the step of the neighbour that is left out there.
    """
    _, y0, x1, y1, sign = sides
    is_rising = y0 != y1
    flat = np.flatnonzero(~is_rising & (x1 > boxes[owner, 2]))
    steps = np.stack([y0[flat], sign[flat]])
    is_rising = np.flatnonzero(is_rising)
    return _clip(
        sides[:, is_rising], owner[is_rising], steps, owner[flat], base, boxes, is_closed=True
    )


def divide_outlines(larger: ClippedPolygons, parent: Integers, boxes: Floats) -> ClippedPolygons:
    """Clip outlines to boxes (n, 4) in their CRS, each in the larger box `parent` (n,)."""
    side, owner = _inherit(larger.owner, parent, len(larger.boxes))
    step, step_owner = _inherit(larger.step_owner, parent, len(larger.boxes))
    west, south, _, north = np.ascontiguousarray(boxes.T)
    _, y0, x1, y1, _ = larger.sides
    # Sides to the west, south or north of a box have no part in it; those to its east become
    # steps. One condition after another, since each leaves few sides for the next.
    for ends, beyond in ((x1, west), (np.maximum(y0, y1), south)):
        met = ends[side] > beyond[owner]
        side, owner = side[met], owner[met]
    met = np.minimum(y0, y1)[side] < north[owner]
    side, owner = side[met], owner[met]
    steps = larger.steps[:, step]
    return _clip(larger.sides[:, side], owner, steps, step_owner, larger.base[parent], boxes)


def _inherit(owner: Integers, parent: Integers, parents: int) -> tuple[Integers, Integers]:
    """Copy items of parents to their children: number of the item, and of the child."""
    items = np.bincount(owner, minlength=parents)
    first = np.cumsum(items) - items
    length = items[parent]
    return ranges(first[parent], length), np.repeat(np.arange(len(parent)), length)


def polygon_sides(shapes: NDArray[np.object_]) -> tuple[Floats, Integers]:
    """Sides (5, m) of valid polygons (n,), those along x included, and owners (m,), ascending.

    Of a side: west end, east end, x before y; 1 if the interior is to its left eastward, or -1.
    """
    import shapely

    parts, of_shape = shapely.get_parts(shapes, return_index=True)
    rings, of_part = shapely.get_rings(parts, return_index=True)
    vertices, ring = shapely.get_coordinates(rings, return_index=True)
    if not len(vertices):
        return np.zeros((5, 0)), np.zeros(0, np.int64)
    # The first ring of a part is its shell, others are holes; a vertex and the next one of its ring
    # are a side.
    outer = np.ones(len(rings), bool)
    outer[1:] = of_part[1:] != of_part[:-1]
    along = ring[1:] == ring[:-1]
    start, stop, ring = vertices[:-1][along], vertices[1:][along], ring[1:][along]
    # From the first vertex of the ring, so that no digits are lost far from 0.
    first = vertices[np.searchsorted(ring, np.arange(len(rings))) + np.arange(len(rings))]
    a, b = start - first[ring], stop - first[ring]
    twice_area = sum_by(ring, a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0], len(rings))
    # The interior is to the left of shells that turn counterclockwise, and of holes that do not.
    turn = np.where((twice_area > 0) == outer, 1.0, -1.0)[ring]
    eastward = start[:, 0] <= stop[:, 0]
    west, east = (np.where(eastward[:, None], *ends) for ends in ((start, stop), (stop, start)))
    sides = np.stack([*west.T, *east.T, np.where(eastward, turn, -turn)])
    return sides, of_shape[of_part[ring]]


def _clip(
    sides: Floats,
    owner: Integers,
    steps: Floats,
    step_owner: Integers,
    base: Floats,
    boxes: Floats,
    is_closed: bool = False,
) -> ClippedPolygons:
    """Clip sides and steps that may reach beyond the boxes; see `clip_near_sides`."""
    edges = np.ascontiguousarray(boxes.T)
    sides, owner = _clip_to_rows(sides, owner, edges)
    west, east = edges[0][owner], edges[2][owner]
    x0, _, x1, y1, sign = sides
    # Heights at the west and the east line of the box, or at the nearer end of a side.
    enter, leave = _height_at(sides, west), _height_at(sides, east)
    is_inner = (x0 < east) & (x1 > west) & (enter != leave)
    # The part of a side east of the box: all that counts are the heights where it begins and ends.
    begins = ends = leave != y1
    if is_closed:
        begins = begins | (x1 > east)
        ends = begins & ((x1 <= east) | (y1 <= edges[1][owner]))
    y = np.concatenate([steps[0], leave[begins], y1[ends]])
    change = np.concatenate([steps[1], sign[begins], -sign[ends]])
    steps, step_owner, settled = _merge_steps(
        y, change, np.concatenate([step_owner, owner[begins], owner[ends]]), edges
    )
    within = np.stack([np.maximum(x0, west), enter, np.minimum(x1, east), leave, sign])
    return ClippedPolygons(
        boxes=boxes,
        base=base + settled,
        sides=within[:, is_inner],
        owner=owner[is_inner],
        steps=steps,
        step_owner=step_owner,
    )


def _clip_to_rows(sides: Floats, owner: Integers, edges: Floats) -> tuple[Floats, Integers]:
    """Clip sides to the range between south and north of their boxes."""
    # Only sides that reach beyond their box change.
    south, north = edges[1][owner], edges[3][owner]
    low, high = np.minimum(sides[1], sides[3]), np.maximum(sides[1], sides[3])
    reaching = np.flatnonzero((low < south) | (high > north))
    x0, y0, x1, y1, _ = sides[:, reaching]
    below, above = south[reaching], north[reaching]
    start, stop = np.clip(y0, below, above), np.clip(y1, below, above)
    # An end that is cut off moves along its side; rounding never takes it past the other end.
    slope = (x1 - x0) / (y1 - y0)
    west = np.where(start == y0, x0, np.clip(x0 + (start - y0) * slope, x0, x1))
    east = np.where(stop == y1, x1, np.clip(x0 + (stop - y0) * slope, west, x1))
    within = sides.copy()
    within[:4, reaching] = west, start, east, stop
    is_rising = within[1] != within[3]
    return within[:, is_rising], owner[is_rising]


def _height_at(sides: Floats, x: Floats) -> Floats:
    """Height of each side at x; that of its nearer end if x is outside the side."""
    height: Floats = np.where(x <= sides[0], sides[1], sides[3])
    crossed = np.flatnonzero((sides[0] < x) & (x < sides[2]))
    x0, y0, x1, y1, _ = sides[:, crossed]
    between = y0 + (x[crossed] - x0) * ((y1 - y0) / (x1 - x0))
    height[crossed] = np.clip(between, np.minimum(y0, y1), np.maximum(y0, y1))
    return height


def _merge_steps(
    y: Floats, change: Floats, owner: Integers, edges: Floats
) -> tuple[Floats, Integers, Floats]:
    """Merge steps of equal height inside each box; sum those at or below its south edge."""
    # Steps at or below the south edge hold for all of the box; those above it have no effect.
    below, inside = y <= edges[1][owner], y < edges[3][owner]
    settled = sum_by(owner[below], change[below], edges.shape[1])
    inside &= ~below
    y, change, owner = y[inside], change[inside], owner[inside]
    # Sorted by box and height, equal heights are a run.
    order = np.lexsort((y, owner))
    y, change, owner = y[order], change[order], owner[order]
    first = np.ones(len(y), bool)
    first[1:] = (y[1:] != y[:-1]) | (owner[1:] != owner[:-1])
    # Steps of one height are one step; those that cancel are none.
    total = np.add.reduceat(change, np.flatnonzero(first)) if len(y) else change
    changing = total != 0
    steps = np.stack([y[first], total])[:, changing]
    return steps, owner[first][changing], settled


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RasterOverlay:
    """Boxes that a polygon covers, or cuts within one raster cell."""

    owner: Integers  # (n,) int64; which box each piece is part of
    boxes: Floats  # (n, 4) float64; in units of raster cells
    fraction: Floats  # (n,) float64; covered fraction of the area, above 0


def cover_by_pieces(
    outlines: ClippedPolygons, parent: Integers, boxes: Floats, to_crs: Callable[[Floats], Floats]
) -> Iterator[RasterOverlay]:
    """Cover boxes by pieces, each of one density; those of one owner are disjoint.

    parent: (n,) int64, box of the outlines that each box lies in; boxes: (n, 4) float64, units of
    raster cells, which `to_crs` converts to coordinates.
    """
    owner = np.arange(len(boxes))
    while len(boxes):
        outlines = divide_outlines(outlines, parent, to_crs(boxes))
        fraction = outlines.fraction
        # Raster lines nearest to the middle of boxes; their low edges if no line is inside.
        low, high = boxes[:, :2], boxes[:, 2:]
        first, last = np.floor(low) + 1, np.ceil(high) - 1
        lines = np.where(first <= last, np.floor((first + last + 1) / 2), low)
        further = outlines.cut & (fraction < 1) & (lines > low).any(axis=1)
        done = (fraction > 0) & ~further
        yield RasterOverlay(owner=owner[done], boxes=boxes[done], fraction=fraction[done])
        # Boxes are divided at these lines; a part without width or height is none.
        parts = quadrants(boxes[further], lines[further]).reshape(-1, 4)
        filled = (parts[:, :2] < parts[:, 2:]).all(axis=1)
        parent, boxes = np.repeat(np.flatnonzero(further), 4)[filled], parts[filled]
        owner = owner[parent]
