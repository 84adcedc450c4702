"""Compiled shares of leaves that boxes cover, of the area and of the records.

Each takes a list of boxes and one leaf; `psd.query.compiled_walk` goes from leaf to leaf.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from psd._util.arrays import Floats, Integers
from psd.estimation.density import PARTS

__all__ = ["apply_covariate", "apply_smooth", "measure_area"]

_step = njit(nogil=True, error_model="numpy")


@_step
def measure_area(
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
def apply_smooth(
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
        left, right = (x0[i] - west) * across, (x1[i] - west) * across
        low, high = (y0[i] - south) * up, (y1[i] - south) * up
        total = 0.0
        for row in range(PARTS):
            line = 0.0
            for column in range(PARTS):
                wide = max(min(right, column + 1.0) - max(left, float(column)), 0.0)
                line += wide * parts[leaf, row, column]
            total += line * max(min(high, row + 1.0) - max(low, float(row)), 0.0)
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
    mass = 0.0
    for y in range(3):
        for x in range(3):
            upper = surface[rows[y + 1], columns[x + 1]] - surface[rows[y + 1], columns[x]]
            lower = surface[rows[y], columns[x + 1]] - surface[rows[y], columns[x]]
            mass += (upper - lower) * across[x] * up[y]
    return mass


@_step
def apply_covariate(
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
            mass = _box_mass(
                inside.surface,
                max(x0[i], float(boxes[node, 0])) * columns / wide,
                max(y0[i], float(boxes[node, 1])) * rows / tall,
                min(x1[i], float(boxes[node, 2])) * columns / wide,
                min(y1[i], float(boxes[node, 3])) * rows / tall,
            )
            share[i] = min(mass / leaf_mass, 1.0)
