"""Polygons against a public raster: areas only where a boundary passes.

A box is divided along raster lines, again and again, where the boundary of its polygon passes;
parts wholly inside or outside are never divided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from psd._util.arrays import Floats, Integers
from psd.space.boxes import quadrants
from psd.space.polygon_areas import Outlines, divided

__all__ = ["Pieces", "pieces"]


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
    whole: Outlines, parent: Integers, boxes: Floats, place: Callable[[Floats], Floats]
) -> Iterator[Pieces]:
    """Cover polygons by pieces, each of one density.

    Parameters
    ----------
    whole : Outlines
        Polygons in boxes.
    parent : ndarray, shape (n,), int64
        Which of these each box lies in.
    boxes : ndarray, shape (n, 4), float64
        Where to look, in units of raster cells.
    place : callable
        Coordinates of boxes that are in units of raster cells.

    Yields
    ------
    Pieces
        Disjoint for each owner.
    """
    owner = np.arange(len(boxes))
    while len(boxes):
        whole = divided(whole, parent, place(boxes))
        fraction, lines = whole.fraction, _lines(boxes)
        further = whole.cut & (fraction < 1) & (lines > boxes[:, :2]).any(axis=1)
        done = (fraction > 0) & ~further
        yield Pieces(owner=owner[done], boxes=boxes[done], fraction=fraction[done])
        parent, boxes = _divide_boxes(boxes, lines, np.flatnonzero(further))
        owner = owner[parent]


def _lines(boxes: Floats) -> Floats:
    """Raster lines nearest to the middle of boxes, or their low edges if none is inside."""
    low, high = boxes[:, :2], boxes[:, 2:]
    first, last = np.floor(low) + 1, np.ceil(high) - 1
    return np.where(first <= last, np.floor((first + last + 1) / 2), low)


def _divide_boxes(boxes: Floats, lines: Floats, which: Integers) -> tuple[Integers, Floats]:
    """Number of the divided box, and box, of every part of some boxes."""
    parts = quadrants(boxes[which], lines[which]).reshape(-1, 4)
    filled = (parts[:, :2] < parts[:, 2:]).all(axis=1)
    return np.repeat(which, 4)[filled], parts[filled]
