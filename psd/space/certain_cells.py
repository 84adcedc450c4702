"""Cells of a public raster that decide for all of their points, so that an engine can join them."""

from __future__ import annotations

from dataclasses import dataclass

from psd._util.arrays import Integers

__all__ = ["CertainCells"]


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
