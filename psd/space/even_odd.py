"""Points in polygons by the even-odd rule, exactly, for many points and polygons at once.

A point is inside if a ray to the east crosses an odd number of sides. A side holds its south end
and not its north end; a point on it does not cross it. So a point on an outline is in the polygon
just east of it, or north of a side along x: polygons with common sides share and omit no point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, ranges, sum_by
from psd.space.polygon_areas import clip_near_sides, polygon_sides

__all__ = ["CertainCells"]


# Pairs of a point or box and a side that are looked at together: their arrays stay in the cache.
_PAIRS_PER_BATCH = 2**17

# Strips of a polygon along y: so many that its sides are entered four times or less.
_ENTRIES_PER_SIDE = 3

# Rounding error of a difference of two products of differences, relative to their sum [1]_.
_ERROR = (3 + 16 * 2.0**-53) * 2.0**-53

# Below it products may lose digits by underflow.
_TINY = 1e-280


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgeIndex:
    """Sides of polygons, entered into strips along y of each polygon.

    P1. Each decision on a point is exact: by comparisons, by doubles where their rounding cannot
    matter, else by fractions [1]_. It depends on this point and on the polygons alone.

    .. [1] Shewchuk. "Adaptive Precision Floating-Point Arithmetic and Fast Robust Geometric
       Predicates." Discrete & Computational Geometry 18, 1997.
    """

    sides: Floats  # (5, m) float64; see `psd.space.polygon_areas.polygon_sides`
    owner: Integers  # (m,) int64; polygon of each side, ascending
    low: Floats  # (m,) float64; south end of each side, and north end
    high: Floats
    south: Floats  # (n,) float64; south end of the strips of each polygon
    scale: Floats  # (n,) float64; strips per unit of y
    first_strip: Integers  # (n + 1,) int64; number of the first strip of each polygon
    begin: Integers  # (strips + 1,) int64; first entry of each strip
    # (strips + 1,) int64; as `begin`, of entries that are left to sides that begin in the strip.
    new: Integers
    # (k + m,) int64; sides of each strip, ascending; then those alone that begin in each strip.
    entries: Integers

    @classmethod
    def from_polygons(cls, shapes: NDArray[np.object_]) -> Self:
        """Index valid polygons and multi-polygons, (n,). Public."""
        import shapely

        sides, owner = polygon_sides(shapes)
        _, south, _, north = np.nan_to_num(shapely.bounds(shapes)).reshape(-1, 4).T
        rise = sum_by(owner, np.abs(sides[3] - sides[1]), len(shapes))
        number = np.bincount(owner, minlength=len(shapes))
        height = north - south
        # As many strips of equal height as give a side a few entries; a flat polygon has one.
        strips = np.ones(len(shapes), np.int64)
        tall = (rise > 0) & (height > 0)
        strips[tall] = np.maximum(
            _ENTRIES_PER_SIDE * number[tall] * (height[tall] / rise[tall]), 1
        ).astype(np.int64)
        scale = np.divide(strips, height, out=np.zeros(len(shapes)), where=tall)
        first_strip = np.concatenate([[0], np.cumsum(strips)])
        low, high = np.minimum(sides[1], sides[3]), np.maximum(sides[1], sides[3])
        # Each side is entered into the strips from its south end to its north end, then strips are
        # put together.
        begin_at = _strip_of(low, owner, south, scale, first_strip)
        length = _strip_of(high, owner, south, scale, first_strip) - begin_at + 1
        strip = ranges(begin_at, length)
        entries = np.repeat(np.arange(len(owner)), length)[np.argsort(strip, kind="stable")]
        # (2, strips); entries of each strip, and sides that begin in it.
        number = np.stack([np.bincount(each, minlength=strips.sum()) for each in (strip, begin_at)])
        ends = np.concatenate([[[0], [0]], number.cumsum(axis=1)], axis=1)
        return cls(
            sides=sides,
            owner=owner,
            low=low,
            high=high,
            south=south,
            scale=scale,
            first_strip=first_strip,
            begin=ends[0],
            new=ends[1] + len(entries),
            entries=np.concatenate([entries, np.argsort(begin_at, kind="stable")]),
        )

    def contains(self, polygon: NDArray[np.integer], x: Floats, y: Floats) -> NDArray[np.bool_]:
        """Whether each finite point (n,), perhaps private, is in its polygon (n,): (n,) bool."""
        strip = self._strips(y, polygon)
        inside = np.zeros(len(x), bool)
        for part, point, side in self._pairs(strip, strip):
            # Inside if an odd number of sides lies to the east.
            crossed = self._crosses_east(side, x[point], y[point])
            odd = np.bincount(point[crossed] - part.start, minlength=part.stop - part.start) & 1
            inside[part] = odd.astype(bool)
        return inside

    def meets(self, polygon: NDArray[np.integer], boxes: Floats) -> NDArray[np.bool_]:
        """Whether the interior of each box (n, 4), with an area, may meet its polygon (n,).

        P2. False only if the interiors have no point in common, whatever rounding does.
        """
        # Where no side passes through the interior, the south-west corner decides, since the rule
        # decides by what lies just north-east of it.
        met = self.contains(polygon, boxes[:, 0], boxes[:, 1])
        rest = np.flatnonzero(~met)
        polygon, boxes = polygon[rest], boxes[rest]
        low, high = (self._strips(boxes[:, side], polygon) for side in (1, 3))
        passed = np.zeros(len(rest), bool)
        for _, box, side in self._pairs(low, high):
            box, side = self._beside(box, side, boxes)
            # A side with an end in the interior passes through it; lines of others are looked at.
            passed[box[self._ends_in(side, boxes[box])]] = True
            unclear = ~passed[box]
            box, side = box[unclear], side[unclear]
            passed[box[self._passes_through(side, boxes[box])]] = True
        met[rest] = passed
        return met

    def fractions(self, polygon: NDArray[np.integer], boxes: Floats) -> Floats:
        """Share (n,) of each box (n, 4), with an area, that its polygon (n,) covers."""
        share = np.zeros(len(boxes))
        is_cut = np.zeros(len(boxes), bool)
        west, south, east, north = np.ascontiguousarray(boxes.T)
        low, high = (self._strips(each, polygon) for each in (south, north))
        x0, _, x1, _, sign = self.sides
        for part, box, side in self._pairs(low, high):
            # Sides west of a box do not matter, those east of it only where they pass its south.
            kept = x1[side] > west[box]
            box, side = box[kept], side[kept]
            beside = x0[side] <= east[box]
            far, far_box = side[~beside], box[~beside]
            box, side = box[beside], side[beside]
            near = (self.low[side] < north[box]) & (self.high[side] > south[box])
            box, side = box[near], side[near]
            # Boxes that a side comes near to have the exact share of their clipped sides.
            is_cut[box[x0[side] < east[box]]] = True
            cut = part.start + np.flatnonzero(is_cut[part])
            number = np.cumsum(is_cut[part]) - 1
            passing = (self.low[far] <= south[far_box]) & (south[far_box] < self.high[far])
            passing &= is_cut[far_box]
            far, far_box = far[passing], far_box[passing]
            rising = np.where(self.sides[1, far] < self.sides[3, far], sign[far], -sign[far])
            base = sum_by(number[far_box - part.start], rising, len(cut))
            near = is_cut[box]
            box, side = box[near], side[near]
            owner = number[box - part.start]
            share[cut] = clip_near_sides(self.sides[:, side], owner, base, boxes[cut]).fraction
        # Others are inside or outside, as their middle is.
        clear = np.flatnonzero(~is_cut)
        middle = (boxes[clear, :2] + boxes[clear, 2:]) / 2
        share[clear] = self.contains(polygon[clear], middle[:, 0], middle[:, 1])
        return share

    def _strips(self, y: Floats, polygon: NDArray[np.integer]) -> Integers:
        """Strip of each height in its polygon; the outermost beyond its ends."""
        return _strip_of(y, polygon, self.south, self.scale, self.first_strip)

    def _pairs(self, low: Integers, high: Integers) -> Iterator[tuple[slice, Integers, Integers]]:
        """Yield items and the sides in their strips, each side once, items batch by batch."""
        # Of its lowest strip all entries, of strips above it the sides that begin there.
        first = np.stack([self.begin[low], self.new[low + 1]], axis=1)
        length = np.stack([self.begin[low + 1], self.new[high + 1]], axis=1) - first
        # Batches have about as many pairs, at least one item.
        pairs = length.sum(axis=1)
        ends = np.cumsum(pairs)
        start = 0
        while start < len(low):
            before = ends[start] - pairs[start]
            stop = max(int(np.searchsorted(ends, before + _PAIRS_PER_BATCH, "right")), start + 1)
            part = slice(start, stop)
            item = np.repeat(np.arange(start, stop), pairs[part])
            yield part, item, self.entries[ranges(first[part].ravel(), length[part].ravel())]
            start = stop

    def _crosses_east(self, side: Integers, x: Floats, y: Floats) -> NDArray[np.bool_]:
        """Whether a ray from each point to the east crosses its side."""
        x0, y0, x1, y1, _ = self.sides
        # Half-open rows: a ray through a vertex crosses one of its two sides.
        rows = (self.low[side] <= y) & (y < self.high[side])
        crossed: NDArray[np.bool_] = rows & (x < x0[side])
        # Only points beside the slope of a side need the exact turn.
        unclear = np.flatnonzero(rows & ~crossed & (x < x1[side]))
        side, x, y = side[unclear], x[unclear], y[unclear]
        turn = _turns(x0[side], y0[side], x1[side], y1[side], x, y)
        rises = y1[side] > y0[side]
        crossed[unclear] = np.where(rises, turn > 0, turn < 0)
        return crossed

    def _beside(self, box: Integers, side: Integers, boxes: Floats) -> tuple[Integers, Integers]:
        """Those pairs in which the box around the side has a part in the interior of the box."""
        west, south, east, north = np.ascontiguousarray(boxes.T)
        # One axis after the other, since each leaves few sides for the next.
        met = (self.sides[0, side] < east[box]) & (self.sides[2, side] > west[box])
        box, side = box[met], side[met]
        met = (self.low[side] < north[box]) & (self.high[side] > south[box])
        return box[met], side[met]

    def _ends_in(self, side: Integers, boxes: Floats) -> NDArray[np.bool_]:
        """Whether an end of each side lies in the interior of its box."""
        west, south, east, north = boxes.T
        x0, y0, x1, y1, _ = self.sides
        inside = [
            (west < x[side]) & (x[side] < east) & (south < y[side]) & (y[side] < north)
            for x, y in ((x0, y0), (x1, y1))
        ]
        return np.asarray(inside[0] | inside[1])

    def _passes_through(self, side: Integers, boxes: Floats) -> NDArray[np.bool_]:
        """Whether the line of each side passes through the interior of its box."""
        x0, y0, x1, y1, _ = self.sides[:, side]
        ends = x0, y0, x1, y1
        west, south, east, north = boxes.T
        # A line passes through a box that has corners on both of its sides.
        corners = [_turns(*ends, *at) for at in ((west, south), (east, south), (west, north))]
        corners.append(_turns(*ends, east, north))
        passed = (np.minimum.reduce(corners) < 0) & (np.maximum.reduce(corners) > 0)
        return np.asarray(passed)


def _strip_of(
    y: Floats,
    polygon: NDArray[np.integer],
    south: Floats,
    scale: Floats,
    first_strip: Integers,
) -> Integers:
    """Strip of each height; rounding keeps the order of heights, so no side is missed."""
    first = first_strip[polygon]
    last = first_strip[1:][polygon] - first - 1
    number = np.clip((y - south[polygon]) * scale[polygon], 0, last)
    return np.asarray(first + number.astype(np.int64))


def _turns(x0: Floats, y0: Floats, x1: Floats, y1: Floats, x: Floats, y: Floats) -> Floats:
    """Sign of the side of a line on which each point is: 1 to the left, -1 to the right, or 0."""
    # Twice the signed area, as a difference of products, and the size that bounds its rounding.
    run, rise, up, along = x1 - x0, y1 - y0, y - y0, x - x0
    left, right = run * up, along * rise
    difference, size = left - right, np.abs(left) + np.abs(right)
    sign = np.sign(difference)
    clear = (np.abs(difference) > _ERROR * size) & (size > _TINY)
    # Differences of equal numbers are exactly 0.
    clear |= ((run == 0) | (up == 0)) & ((along == 0) | (rise == 0))
    unclear = np.flatnonzero(~clear)
    for index in unclear:
        a, b, c, d, e, f = (Fraction(float(v[index])) for v in (x0, y0, x1, y1, x, y))
        exact = (c - a) * (f - b) - (e - a) * (d - b)
        sign[index] = (exact > 0) - (exact < 0)
    return np.asarray(sign)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CertainCells:
    """Cells of a raster, all of whose points are in one part of the domain, or all in none.

    P1. A point whose cell is listed has the part of the cell, by the rule that decides points. Its
    cell is floor((y - south) scale_y) side + floor((x - west) scale_x) in doubles, each factor at
    most side - 1.
    """

    origin: tuple[float, float]  # south-west corner
    scale: tuple[float, float]  # cells per unit of x and of y
    side: int  # columns, and rows, of the raster
    cell: Integers  # (n,) int64; cells
    part: Integers  # (n,) int64; the part of each, such as a region; -1 for none
