"""Cover polygons by pieces of a public raster.

A box is divided along raster lines, recursively, where the outline of its polygon passes; parts
entirely inside or outside are not divided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from psd._util.arrays import Floats, Integers
from psd.space.box_tree import quadrants
from psd.space.polygon_areas import ClippedPolygons, divide_outlines

__all__ = ["RasterOverlay", "cover_by_pieces"]


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
        fraction, lines = outlines.fraction, _lines(boxes)
        further = outlines.cut & (fraction < 1) & (lines > boxes[:, :2]).any(axis=1)
        done = (fraction > 0) & ~further
        yield RasterOverlay(owner=owner[done], boxes=boxes[done], fraction=fraction[done])
        parent, boxes = _divide_boxes(boxes, lines, np.flatnonzero(further))
        owner = owner[parent]


def _lines(boxes: Floats) -> Floats:
    """Raster lines nearest to the middle of boxes; their low edges if no line is inside."""
    low, high = boxes[:, :2], boxes[:, 2:]
    first, last = np.floor(low) + 1, np.ceil(high) - 1
    return np.where(first <= last, np.floor((first + last + 1) / 2), low)


def _divide_boxes(boxes: Floats, lines: Floats, which: Integers) -> tuple[Integers, Floats]:
    """Divide boxes; give the parts and the number of the box of each."""
    parts = quadrants(boxes[which], lines[which]).reshape(-1, 4)
    filled = (parts[:, :2] < parts[:, 2:]).all(axis=1)
    return np.repeat(which, 4)[filled], parts[filled]
