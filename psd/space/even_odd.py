"""Points in polygons by the even-odd rule, exactly, for many points and polygons at once.

A point is in a polygon if a ray from it to the east crosses an odd number of sides. A side holds
its south end and not its north end, and a point on a side does not cross it. So a point on an
outline is in the polygon that continues just east of it, and along a side from west to east just
north of it: polygons that share their sides share no point and leave none out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, ranges, sum_by
from psd.space.polygon_areas import ClippedPolygons, clip_sides, polygon_sides

__all__ = ["CertainCells"]


# Pairs of a point or box and a side that are looked at together, about 300 MB.
_PAIRS_PER_BATCH = 2**21

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
    south: Floats  # (n,) float64; south end of the strips of each polygon
    scale: Floats  # (n,) float64; strips per unit of y
    first_strip: Integers  # (n + 1,) int64; number of the first strip of each polygon
    begin: Integers  # (strips + 1,) int64; first entry of each strip
    entries: Integers  # (k,) int64; sides of each strip
    # (k,) bool; whether the strip of an entry is the first one of its side.
    begins: NDArray[np.bool_]

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
        end_at = _strip_of(high, owner, south, scale, first_strip)
        length = end_at - begin_at + 1
        strip = ranges(begin_at, length)
        order = np.argsort(strip, kind="stable")
        per_strip = np.bincount(strip, minlength=int(first_strip[-1]))
        entries = np.repeat(np.arange(len(owner)), length)[order]
        return cls(
            sides=sides,
            owner=owner,
            south=south,
            scale=scale,
            first_strip=first_strip,
            begin=np.concatenate([[0], np.cumsum(per_strip)]),
            entries=entries,
            begins=strip[order] == begin_at[entries],
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

        P2. It is false only if the interior of the box and that of the polygon have no point in
        common, whatever rounding does.
        """
        # Where no side passes through the interior, the south-west corner decides, since the rule
        # decides by what lies just north-east of it.
        met = self.contains(polygon, boxes[:, 0], boxes[:, 1])
        rest = np.flatnonzero(~met)
        polygon, boxes = polygon[rest], boxes[rest]
        low, high = (self._strips(boxes[:, side], polygon) for side in (1, 3))
        for part, box, side in self._pairs(low, high):
            passed = box[self._passes_through(side, boxes[box])]
            number = np.bincount(passed - part.start, minlength=part.stop - part.start)
            met[rest[part]] = number > 0
        return met

    def fractions(self, polygon: NDArray[np.integer], boxes: Floats) -> Floats:
        """Share (n,) of each box (n, 4), with an area, that its polygon (n,) covers."""
        share = np.zeros(len(boxes))
        is_cut = np.zeros(len(boxes), bool)
        low, high = (self._strips(boxes[:, side], polygon) for side in (1, 3))
        for part, box, side in self._pairs(low, high):
            # Boxes that a side comes near to have the exact share of their clipped sides.
            is_cut[box[self._is_near(side, box, boxes)]] = True
            cut = part.start + np.flatnonzero(is_cut[part])
            pairs = np.flatnonzero(is_cut[box])
            owner = np.searchsorted(cut, box[pairs])
            outlines: ClippedPolygons = clip_sides(self.sides[:, side[pairs]], owner, boxes[cut])
            share[cut] = outlines.fraction
        # Others are inside or outside, as their middle is.
        clear = np.flatnonzero(~is_cut)
        middle = (boxes[clear, :2] + boxes[clear, 2:]) / 2
        share[clear] = self.contains(polygon[clear], middle[:, 0], middle[:, 1])
        return share

    def _is_near(self, side: Integers, box: Integers, boxes: Floats) -> NDArray[np.bool_]:
        """Whether the box around each side has a part in the interior of its box."""
        x0, y0, x1, y1, _ = self.sides
        west, south, east, north = np.ascontiguousarray(boxes.T)
        near = (x0[side] < east[box]) & (x1[side] > west[box])
        first, last = y0[side], y1[side]
        near &= np.minimum(first, last) < north[box]
        near &= np.maximum(first, last) > south[box]
        return np.asarray(near)

    def _strips(self, y: Floats, polygon: NDArray[np.integer]) -> Integers:
        """Strip of each height in its polygon; the outermost beyond its ends."""
        return _strip_of(y, polygon, self.south, self.scale, self.first_strip)

    def _pairs(self, low: Integers, high: Integers) -> Iterator[tuple[slice, Integers, Integers]]:
        """Yield items and the sides in their strips, each side once, items batch by batch."""
        # Entries of each item in its strips; batches have about as many pairs, at least one item.
        length = self.begin[high + 1] - self.begin[low]
        ends = np.cumsum(length)
        start = 0
        while start < len(low):
            before = ends[start] - length[start]
            stop = max(int(np.searchsorted(ends, before + _PAIRS_PER_BATCH, "right")), start + 1)
            part = slice(start, stop)
            item = np.repeat(np.arange(start, stop), length[part])
            entry = ranges(self.begin[low[part]], length[part])
            side = self.entries[entry]
            if (low[part] != high[part]).any():
                # The entry of a side in the strip where it begins, or in the lowest strip here.
                lowest = self.begin[low[part] + 1]
                first = self.begins[entry]
                first |= entry < np.repeat(lowest, length[part])
                item, side = item[first], side[first]
            yield part, item, side
            start = stop

    def _crosses_east(self, side: Integers, x: Floats, y: Floats) -> NDArray[np.bool_]:
        """Whether a ray from each point to the east crosses its side."""
        x0, y0, x1, y1, _ = self.sides
        first, last = y0[side], y1[side]
        # Half-open rows: a ray through a vertex crosses one of its two sides.
        rows = (np.minimum(first, last) <= y) & (y < np.maximum(first, last))
        crossed: NDArray[np.bool_] = rows & (x < x0[side])
        # Only points beside the slope of a side need the exact turn.
        unclear = np.flatnonzero(rows & ~crossed & (x < x1[side]))
        side, x, y = side[unclear], x[unclear], y[unclear]
        turn = _turns(x0[side], y0[side], x1[side], y1[side], x, y)
        rises = y1[side] > y0[side]
        crossed[unclear] = np.where(rises, turn > 0, turn < 0)
        return crossed

    def _passes_through(self, side: Integers, boxes: Floats) -> NDArray[np.bool_]:
        """Whether each side passes through the interior of its box; true where unclear."""
        x0, y0, x1, y1, _ = self.sides[:, side]
        west, south, east, north = boxes.T
        near = (x0 < east) & (x1 > west)
        near &= (np.minimum(y0, y1) < north) & (np.maximum(y0, y1) > south)
        which = np.flatnonzero(near)
        ends = x0[which], y0[which], x1[which], y1[which]
        west, south, east, north = boxes[which].T
        # A line passes through a box that has corners on both of its sides.
        corners = [_turns(*ends, *at) for at in ((west, south), (east, south), (west, north))]
        corners.append(_turns(*ends, east, north))
        passed = np.zeros(len(side), bool)
        passed[which] = (np.minimum.reduce(corners) < 0) & (np.maximum.reduce(corners) > 0)
        return passed


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
