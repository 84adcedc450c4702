"""Polygons against a public raster: areas only where a boundary passes.

A box is divided along raster lines, again and again, where the boundary of its polygon passes;
parts wholly inside or outside are never divided. Each step clips the polygon to the parts, so
that the polygons get smaller together with the boxes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Pieces", "pieces"]

# Fractions this close to nothing or all are rounding.
_ROUNDING = 1e-12

_POLYGONS = (3, 6)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pieces:
    """Boxes that a polygon covers, or cuts within one raster cell.

    Parameters
    ----------
    owner : ndarray, shape (n,), int64
        Which of the given boxes each piece is part of.
    boxes : ndarray, shape (n, 4), float64
        In units of raster cells.
    fraction : ndarray, shape (n,), float64
        Covered fraction of the area, above 0.
    """

    owner: Integers
    boxes: Floats
    fraction: Floats


def pieces(
    shapes: NDArray[np.object_], boxes: Floats, place: Callable[[Floats], Floats]
) -> Iterator[Pieces]:
    """Cover polygons by pieces, each of one density.

    Parameters
    ----------
    shapes : ndarray of geometries, shape (n,)
        Valid polygons, one for each box.
    boxes : ndarray, shape (n, 4), float64
        Where to look, in units of raster cells.
    place : callable
        Coordinates of boxes that are in units of raster cells.

    Yields
    ------
    Pieces
        Disjoint for each owner.
    """
    import shapely

    owner = np.arange(len(boxes))
    while len(boxes):
        there = shapely.box(*place(boxes).T)
        clipped = shapely.intersection(shapes, there)
        fraction = shapely.area(clipped) / shapely.area(there)
        fraction[fraction > 1 - _ROUNDING] = 1.0
        lines = _lines(boxes)
        met = fraction > _ROUNDING
        further = met & (fraction < 1) & (lines > boxes[:, :2]).any(axis=1)
        done = met & ~further
        yield Pieces(owner=owner[done], boxes=boxes[done], fraction=fraction[done])
        # What only touches a part leaves lines or points, which cannot be clipped again.
        kind = shapely.get_type_id(clipped)
        shapes = np.where(np.isin(kind, _POLYGONS), clipped, shapes)
        parent, boxes = _quarters(boxes, lines, np.flatnonzero(further))
        owner, shapes = owner[parent], shapes[parent]


def _lines(boxes: Floats) -> Floats:
    """Raster lines nearest to the middle of boxes, or their low edges if none is inside."""
    low, high = boxes[:, :2], boxes[:, 2:]
    first, last = np.floor(low) + 1, np.ceil(high) - 1
    return np.where(first <= last, np.floor((first + last + 1) / 2), low)


def _quarters(boxes: Floats, lines: Floats, which: Integers) -> tuple[Integers, Floats]:
    """Number of the divided box, and box, of every part of some boxes."""
    (x0, y0, x1, y1), (x, y) = boxes[which].T, lines[which].T
    parts = [(x0, y0, x, y), (x, y0, x1, y), (x0, y, x, y1), (x, y, x1, y1)]
    quarters = np.stack([np.stack(part, axis=1) for part in parts], axis=1).reshape(-1, 4)
    filled = (quarters[:, :2] < quarters[:, 2:]).all(axis=1)
    return np.repeat(which, 4)[filled], quarters[filled]
