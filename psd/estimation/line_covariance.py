"""Records that move together along a lattice line, from the noisy counts.

If coordinates are rounded, or lie on streets, the records near a line lie on the same side of it
all along the line. Then cells that the same line divides deviate from their shares in the same
direction. Deviations of different cells have independent noise, so the mean of their products needs
no correction for it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, distinct_values
from psd.estimation.constants import (
    APART_PAIRS,
    LAGS,
    LINE_ERRORS,
    LINE_SHARES,
    MAX_SHARE_VARIANCE,
    PAIRS_ENOUGH,
    PAIRS_ERRORS,
)
from psd.estimation.sibling_splits import Divisions
from psd.space.box_tree import Tree

__all__ = ["WIDTHS", "common_variance_by_width", "has_unshared_lines", "levels_halved"]

WIDTHS = 64
"""Widths of cells that are told apart, by halvings of the domain."""

# Fewer divisions have few pairs on any tree.
_DIVISIONS = 500

# A line is in the middle if it is off by less than this part of half the width.
_MIDDLE = 32


def levels_halved(tree: Tree, node: Integers, axis: int, lattice: tuple[int, int]) -> Integers:
    """Number of times that the domain was halved for the width of each cell, shape (n,)."""
    width = (tree.boxes[node, axis + 2] - tree.boxes[node, axis]).astype(np.float64)
    halved: Integers = np.rint(np.log2(lattice[axis] / width)).astype(np.int64)
    return halved


def common_variance_by_width(
    tree: Tree, divisions: Divisions, axis: int, lattice: tuple[int, int]
) -> Floats:
    """Estimate the variance of a half's share that cells along a line have in common.

    Parameters
    ----------
    tree : Tree
        Cells.
    divisions : Divisions
        Along the axis.
    axis : int
        0 for x, 1 for y.
    lattice : tuple of int
        Columns and rows of the lattice.

    Returns
    -------
    ndarray, shape (`WIDTHS`,), float64
        By halvings of the domain (`levels_halved`), in [0, 1/4]: 1/4 where a line has all records
        of a cell on one side of it.

    Notes
    -----
    The mean of d_i d_j over that of n_i n_j, d the deviations and n the counts of cells of one
    width on one line, several cells apart: neighbours are alike for other reasons as well. Records
    that move by a fixed distance are a share of 1/w^2 of this variance in cells of the width w, and
    all of it in cells that are narrower than the distance. So this pattern, from some width on, is
    fitted to the means of all widths. It counts where it is several standard errors above 0, and
    where its share of the records is not that of a density that changes gradually. The pattern is
    fitted to the narrow cells alone as well: the lines of wide ones may all pass between the values
    that coordinates have, as on a grid, and tell nothing. A width whose own mean is well above 0
    has that mean if it is larger.
    """
    halved = levels_halved(tree, divisions.node, axis, lattice)
    product, counts, square, pairs = np.zeros((4, WIDTHS))
    for first, second in _pairs(tree, divisions, axis, lattice):
        value = divisions.deviation[first] * divisions.deviation[second]
        for total, values in (
            (product, value),
            (counts, divisions.count[first] * divisions.count[second]),
            (square, value**2),
            (pairs, np.ones(len(first))),
        ):
            total += np.bincount(halved[first], values, WIDTHS)[:WIDTHS]
    return _profile(product, counts, np.sqrt(square), pairs)


def has_unshared_lines(
    tree: Tree, along: tuple[Divisions, Divisions], lattice: tuple[int, int]
) -> bool:
    """Whether hardly any two cells are divided by one line, so that products tell nothing.

    Parameters
    ----------
    tree : Tree
        Cells.
    along : tuple of Divisions
        Along x, and along y.
    lattice : tuple of int
        Columns and rows of the lattice.

    Notes
    -----
    This is so where cells are divided at quantiles of their records. Where at least half of them
    are divided in the middle, lines are common, however few cells there are.
    """
    number = sum(len(divided.node) for divided in along)
    middle = sum(_halved(tree, divided, axis) for axis, divided in enumerate(along))
    if number < _DIVISIONS or 2 * middle >= number:
        return False
    pairs = sum(
        len(first)
        for axis, divided in enumerate(along)
        for first, _ in _pairs(tree, divided, axis, lattice)
    )
    return pairs < APART_PAIRS * number


def _halved(tree: Tree, divided: Divisions, axis: int) -> int:
    """Number of cells that a line divides in the middle."""
    low, high = (tree.boxes[divided.node, side].astype(np.int64) for side in (axis, axis + 2))
    off = np.abs(2 * divided.line - low - high)
    return int(np.count_nonzero(off <= np.maximum((high - low) // _MIDDLE, 1)))


def _profile(product: Floats, counts: Floats, error: Floats, pairs: Floats) -> Floats:
    """Common variance by width: the pattern that fits the products best, if it is seen."""
    usable = np.flatnonzero((pairs >= PAIRS_ENOUGH) & (counts > 0) & (error > 0))
    mean, deviation = product[usable] / counts[usable], error[usable] / counts[usable]
    share, best, strength = 0.0, np.zeros(WIDTHS), LINE_ERRORS
    for saturated in range(1, WIDTHS):
        pattern = MAX_SHARE_VARIANCE * 4.0 ** np.minimum(np.arange(WIDTHS) - saturated, 0)
        for fitted in (usable >= saturated, np.ones(len(usable), bool)):
            expected = np.where(fitted, pattern[usable], 0.0) / deviation
            length = float(np.sqrt((expected**2).sum()))
            along = float((expected * mean / deviation).sum()) / length if length > 0 else 0.0
            if along > strength and along < LINE_SHARES[1] * length:
                share, best, strength = along / length, pattern, along
    if share < LINE_SHARES[0]:
        return np.zeros(WIDTHS)
    result = min(share, 1.0) * best
    seen = mean > PAIRS_ERRORS * deviation
    result[usable] = np.maximum(result[usable], np.where(seen, mean, 0.0))
    return np.minimum(result, MAX_SHARE_VARIANCE)


def _pairs(
    tree: Tree, divisions: Divisions, axis: int, lattice: tuple[int, int]
) -> Iterator[tuple[Integers, Integers]]:
    """Indices of divisions of one size on one line, some cells apart."""
    across, along = (levels_halved(tree, divisions.node, a, lattice) for a in (axis, 1 - axis))
    low = tree.boxes[divisions.node, 1 - axis].astype(np.float64)
    rank = np.rint(low / lattice[1 - axis] * 2.0**along).astype(np.int64)
    if not len(rank):
        return
    # The same line, and cells of the same size: three numbers of 31, 6 and 6 bits.
    key = divisions.line << 12 | across << 6 | along
    apart = int(rank.max()) + max(LAGS) + 1
    if int(key.max()) < 2**62 // apart:
        code = key * apart + rank
        order = np.argsort(code)
        code = code[order]
        if (code[1:] > code[:-1]).all():
            for later in _partners(code):
                hit = np.flatnonzero(later)
                yield order[hit], order[hit + later[hit]]
            return
    code = distinct_values(key)[1] * apart + rank
    order = np.argsort(code)
    code = code[order]
    for lag in LAGS:
        match = np.minimum(np.searchsorted(code, code + lag), len(code) - 1)
        hit = np.flatnonzero(code[match] == code + lag)
        yield order[hit], order[match[hit]]


def _partners(code: Integers) -> NDArray[np.int8]:
    """How many places after each code the one is that is larger by each lag; 0 without one.

    Codes ascend and are different, so it is at most the lag.
    """
    later = np.zeros((len(LAGS), len(code)), np.int8)
    for step in range(1, min(max(LAGS), len(code) - 1) + 1):
        larger = code[step:] - code[:-step]
        for row, lag in zip(later, LAGS, strict=True):
            if step <= lag:
                row[np.flatnonzero(larger == lag)] = step
    return later
