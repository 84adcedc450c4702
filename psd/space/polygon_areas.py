"""Polygons cut into boxes: exact areas from the sides of the polygons, without overlays.

On a line along x, the length of a polygon inside a box is the sum of what its upward sides cut
off from the west edge, less what its downward sides cut off. Summed over y this is an integral
along the sides: each side counts for itself, in the box or east of it. A side east of the box
leaves only the heights where it begins and ends, and where one side ends the next one begins,
so that nearly all of them cancel: a small box knows the sides inside it and little more. Boxes
are divided again and again, and their sides with them, so the work grows with the sides that a
box is cut by and not with those of the polygon.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, ranges, sum_by

__all__ = ["Outlines", "divided", "outlines"]

# Fractions this close to nothing or all are rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outlines:
    """What is needed of polygons inside boxes: one polygon and one box for each number.

    Parameters
    ----------
    boxes : ndarray, shape (n, 4), float64
        West, south, east, north in the CRS of the polygons.
    base : ndarray, shape (n,), float64
        What is covered at the south of the east edge: 1 inside the polygon, 0 outside.
    sides : ndarray, shape (5, m), float64
        West end and east end of each side inside a box, x before y, and 1 if the interior is
        to the left of it on the way, -1 if to the right. No side runs along x.
    owner : ndarray, shape (m,), int64
        Box of each side, ascending.
    steps : ndarray, shape (2, k), float64
        Heights on the east edges, and by how much what is covered changes there.
    step_owner : ndarray, shape (k,), int64
        Box of each step, ascending.

    References
    ----------
    .. [1] Bockman. "Generalizing the Formula for Areas of Polygons to Moments." The American
       Mathematical Monthly 96(2), 1989: areas as sums over sides, by Green's theorem.
    """

    boxes: Floats
    base: Floats
    sides: Floats
    owner: Integers
    steps: Floats
    step_owner: Integers

    @property
    def cut(self) -> NDArray[np.bool_]:
        """Which boxes a boundary passes through; the others are inside or outside."""
        found = np.zeros(len(self.boxes), bool)
        found[self.owner] = found[self.step_owner] = True
        return found

    @property
    def fraction(self) -> Floats:
        """Covered fractions of the areas of the boxes, in [0, 1]."""
        west, _, _, north = self.boxes.T
        width, height = (self.boxes[:, 2:] - self.boxes[:, :2]).T
        x0, y0, x1, y1, sign = self.sides
        origin, size = west[self.owner], width[self.owner] * height[self.owner]
        strip = sign * (y1 - y0) * ((x0 - origin) + (x1 - origin)) / (2 * size)
        y, change = self.steps
        above = change * (north[self.step_owner] - y) / height[self.step_owner]
        fraction = self.base + sum_by(self.owner, strip, len(width))
        fraction += sum_by(self.step_owner, above, len(width))
        fraction[fraction < _ROUNDING] = 0.0
        fraction[fraction > 1 - _ROUNDING] = 1.0
        return fraction


def outlines(shapes: NDArray[np.object_], boxes: Floats) -> Outlines:
    """Outlines of polygons in boxes.

    Parameters
    ----------
    shapes : ndarray of geometries, shape (n,)
        Valid polygons and multi-polygons.
    boxes : ndarray, shape (n, 4), float64
        A box for each of them, in their CRS.

    Examples
    --------
    >>> import shapely
    >>> triangle = np.array([shapely.Polygon([(0, 0), (2, 0), (0, 2)])])
    >>> outlines(triangle, np.array([[0.0, 0, 1, 2]])).fraction
    array([0.75])
    """
    sides, owner = _sides(shapes)
    nothing = np.zeros((2, 0)), np.zeros(0, np.int64)
    return _clipped(sides, owner, *nothing, np.zeros(len(boxes)), boxes)


def divided(whole: Outlines, parent: Integers, boxes: Floats) -> Outlines:
    """Outlines in boxes that lie inside those of other outlines.

    Parameters
    ----------
    whole : Outlines
        Of larger boxes.
    parent : ndarray, shape (n,), int64
        Number of the larger box that each box lies in.
    boxes : ndarray, shape (n, 4), float64
        In the CRS of the polygons.

    Returns
    -------
    Outlines
    """
    side, owner = _handed_down(whole.owner, parent, len(whole.boxes))
    step, step_owner = _handed_down(whole.step_owner, parent, len(whole.boxes))
    west, south, _, north = np.ascontiguousarray(boxes.T)
    _, y0, x1, y1, _ = whole.sides
    for ends, beyond in ((x1, west), (np.maximum(y0, y1), south)):
        met = ends[side] > beyond[owner]
        side, owner = side[met], owner[met]
    met = np.minimum(y0, y1)[side] < north[owner]
    side, owner = side[met], owner[met]
    steps = whole.steps[:, step]
    return _clipped(whole.sides[:, side], owner, steps, step_owner, whole.base[parent], boxes)


def _handed_down(owner: Integers, parent: Integers, parents: int) -> tuple[Integers, Integers]:
    """Things of the parents for each of their children: number of the thing, and of the child."""
    held = np.bincount(owner, minlength=parents)
    first = np.cumsum(held) - held
    length = held[parent]
    return ranges(first[parent], length), np.repeat(np.arange(len(parent)), length)


def _sides(shapes: NDArray[np.object_]) -> tuple[Floats, Integers]:
    """Sides of polygons, the interior to the left of their ring's direction or sign -1."""
    import shapely

    parts, of_shape = shapely.get_parts(shapes, return_index=True)
    rings, of_part = shapely.get_rings(parts, return_index=True)
    places, ring = shapely.get_coordinates(rings, return_index=True)
    if not len(places):
        return np.zeros((5, 0)), np.zeros(0, np.int64)
    outer = np.ones(len(rings), bool)
    outer[1:] = of_part[1:] != of_part[:-1]
    along = ring[1:] == ring[:-1]
    start, stop, ring = places[:-1][along], places[1:][along], ring[1:][along]
    first = places[np.searchsorted(ring, np.arange(len(rings))) + np.arange(len(rings))]
    a, b = start - first[ring], stop - first[ring]
    twice_area = sum_by(ring, a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0], len(rings))
    turn = np.where((twice_area > 0) == outer, 1.0, -1.0)[ring]
    eastward = start[:, 0] <= stop[:, 0]
    west, east = (np.where(eastward[:, None], *ends) for ends in ((start, stop), (stop, start)))
    sides = np.stack([*west.T, *east.T, np.where(eastward, turn, -turn)])
    rising = sides[1] != sides[3]
    return sides[:, rising], of_shape[of_part[ring]][rising]


def _clipped(
    sides: Floats,
    owner: Integers,
    steps: Floats,
    step_owner: Integers,
    base: Floats,
    boxes: Floats,
) -> Outlines:
    """Outlines in boxes, from sides and steps that reach beyond them."""
    edges = np.ascontiguousarray(boxes.T)
    sides, owner = _in_rows(sides, owner, edges)
    west, east = edges[0][owner], edges[2][owner]
    x0, _, x1, y1, sign = sides
    enter, leave = _height_at(sides, west), _height_at(sides, east)
    inner = (x0 < east) & (x1 > west) & (enter != leave)
    beyond = leave != y1
    y = np.concatenate([steps[0], leave[beyond], y1[beyond]])
    change = np.concatenate([steps[1], sign[beyond], -sign[beyond]])
    steps, step_owner, settled = _settled(
        y, change, np.concatenate([step_owner, owner[beyond], owner[beyond]]), edges
    )
    within = np.stack([np.maximum(x0, west), enter, np.minimum(x1, east), leave, sign])
    return Outlines(
        boxes=boxes,
        base=base + settled,
        sides=within[:, inner],
        owner=owner[inner],
        steps=steps,
        step_owner=step_owner,
    )


def _in_rows(sides: Floats, owner: Integers, edges: Floats) -> tuple[Floats, Integers]:
    """Parts of sides between the south and the north of their boxes."""
    south, north = edges[1][owner], edges[3][owner]
    low, high = np.minimum(sides[1], sides[3]), np.maximum(sides[1], sides[3])
    reaching = np.flatnonzero((low < south) | (high > north))
    x0, y0, x1, y1, _ = sides[:, reaching]
    below, above = south[reaching], north[reaching]
    start, stop = np.clip(y0, below, above), np.clip(y1, below, above)
    slope = (x1 - x0) / (y1 - y0)
    west = np.where(start == y0, x0, np.clip(x0 + (start - y0) * slope, x0, x1))
    east = np.where(stop == y1, x1, np.clip(x0 + (stop - y0) * slope, west, x1))
    within = sides.copy()
    within[:4, reaching] = west, start, east, stop
    kept = within[1] != within[3]
    return within[:, kept], owner[kept]


def _height_at(sides: Floats, x: Floats) -> Floats:
    """Height of each side at a place along x, of its nearer end if it is not there."""
    height: Floats = np.where(x <= sides[0], sides[1], sides[3])
    crossed = np.flatnonzero((sides[0] < x) & (x < sides[2]))
    x0, y0, x1, y1, _ = sides[:, crossed]
    between = y0 + (x[crossed] - x0) * ((y1 - y0) / (x1 - x0))
    height[crossed] = np.clip(between, np.minimum(y0, y1), np.maximum(y0, y1))
    return height


def _settled(
    y: Floats, change: Floats, owner: Integers, edges: Floats
) -> tuple[Floats, Integers, Floats]:
    """Steps inside their boxes, one for each height, and the sum of those at or below the south."""
    below, inside = y <= edges[1][owner], y < edges[3][owner]
    settled = sum_by(owner[below], change[below], edges.shape[1])
    inside &= ~below
    y, change, owner = y[inside], change[inside], owner[inside]
    order = np.lexsort((y, owner))
    y, change, owner = y[order], change[order], owner[order]
    first = np.ones(len(y), bool)
    first[1:] = (y[1:] != y[:-1]) | (owner[1:] != owner[:-1])
    total = np.add.reduceat(change, np.flatnonzero(first)) if len(y) else change
    kept = total != 0
    return np.stack([y[first], total])[:, kept], owner[first][kept], settled
