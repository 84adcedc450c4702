"""Records that move together along a lattice line, from the noisy counts.

If coordinates are rounded, or lie on streets, the records near a line lie on the same side of it
all along the line. Then cells that the same line divides deviate from their shares in the same
direction. Deviations of different cells have independent noise, so the mean of their products needs
no correction for it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

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

__all__ = [
    "WIDTHS",
    "common_variance_by_width",
    "has_unshared_lines",
    "levels_halved",
    "line_squares",
    "side_factors",
]

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

    Returns (`WIDTHS`,) float64, by halvings of the domain (`levels_halved`), in [0, 1/4]: 1/4 where
    a line has all records of a cell on one side of it.

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

    This is so where cells are divided at quantiles of their records. Where at least half of them
    are divided in the middle, lines are common, however few cells there are.
    """
    number = sum(len(divided.node) for divided in along)
    middle = 0
    for axis, divided in enumerate(along):
        low, high = (tree.boxes[divided.node, side].astype(np.int64) for side in (axis, axis + 2))
        off = np.abs(2 * divided.line - low - high)
        middle += int(np.count_nonzero(off <= np.maximum((high - low) // _MIDDLE, 1)))
    if number < _DIVISIONS or 2 * middle >= number:
        return False
    pairs = sum(
        len(first)
        for axis, divided in enumerate(along)
        for first, _ in _pairs(tree, divided, axis, lattice)
    )
    return pairs < APART_PAIRS * number


def _profile(product: Floats, counts: Floats, error: Floats, pairs: Floats) -> Floats:
    """Common variance by width: the pattern that fits the products best, if it is seen."""
    usable = np.flatnonzero((pairs >= PAIRS_ENOUGH) & (counts > 0) & (error > 0))
    mean, deviation = product[usable] / counts[usable], error[usable] / counts[usable]
    share, best, strength = 0.0, np.zeros(WIDTHS), LINE_ERRORS
    for saturated in range(1, WIDTHS):
        # All of the variance in cells of some width and narrower ones, a quarter of it for each
        # doubling.
        pattern = MAX_SHARE_VARIANCE * 4.0 ** np.minimum(np.arange(WIDTHS) - saturated, 0)
        for fitted in (usable >= saturated, np.ones(len(usable), bool)):
            expected = np.where(fitted, pattern[usable], 0.0) / deviation
            length = float(np.sqrt((expected**2).sum()))
            # How many standard errors the means have along the pattern, of `length` for all
            # records.
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
            # How many places after each code the one is that is larger by each lag; 0 without one.
            # Codes ascend and are different, so it is at most the lag.
            places = np.zeros((len(LAGS), len(code)), np.int8)
            for step in range(1, min(max(LAGS), len(code) - 1) + 1):
                larger = code[step:] - code[:-step]
                for row, lag in zip(places, LAGS, strict=True):
                    if step <= lag:
                        row[np.flatnonzero(larger == lag)] = step
            for later in places:
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


# --- where in cells lines are -------------------------------------------------------------------


def line_squares(
    tree: Tree, along: tuple[Divisions, Divisions], common: Floats, lattice: tuple[int, int]
) -> Floats:
    """Compute the squared deviations of the children of cells that lines explain.

    common: (2, `WIDTHS`) float64, by axis, of `common_variance_by_width`; returns (nodes,) float64,
    the sum over the children of a cell, per squared record of the cell; 0 for cells that are not
    divided in two parts along x, along y, or along both.

    P1. They have a sum of squares of 2 Q times the variance of a half. A line leaves the share g of
    a cell on one side of it, with a variance of 4 g (1 - g) times that of a half. The records that
    it moves leave the children on one side, by their shares, for those on the other. Q is the sum
    of the squares of these shares: 1 where there is one child on each side, a half where there are
    two equal ones.
    """
    result, is_divided = np.zeros(len(tree)), np.zeros((2, len(tree)), bool)
    parts = np.ones((2, len(tree)))
    for axis, divided in enumerate(along):
        is_divided[axis, divided.node] = True
        parts[axis, divided.node] = divided.share**2 + (1 - divided.share) ** 2
    for axis, divided in enumerate(along):
        variance = common[axis][levels_halved(tree, divided.node, axis, lattice)]
        variance = 4 * divided.share * (1 - divided.share) * variance
        result[divided.node] += 2 * parts[1 - axis, divided.node] * variance
    halved = tree.children == 2 ** is_divided.sum(axis=0)
    return np.where(halved, result, 0.0)


def side_factors(tree: Tree, divisions: Divisions, axis: int, lattice: tuple[int, int]) -> Floats:
    """Estimate how much more or less cuts err by where in cells lines are.

    Returns (`WIDTHS`,) float64: factors of the variance of a cut by halvings of the domain, in
    [1/2, 2].

    P2. The factor is 1/2 + 3/2 (2 u - 1)^2 for lines at u of the width. A cut anywhere in a cell
    whose records are on a line at u of its width is wrong by u^3 / 3 + (1 - u)^3 / 3 of the squared
    records, in the mean: 1/6 for lines at any u, 1/3 for lines on a side, as those of a grid of 2^k
    columns are, and 1/12 for lines in the middle.

    The half in which the line is, the half of that half, and so on are the binary digits of u. Each
    agrees with the one before it, or does not, as `_agreement` tells, and the mean square of 2 u -
    1 follows. The size of the agreement is the share of the records for which this holds; the
    others are on lines at any u.
    """
    agreement = _agreement(tree, divisions, axis, lattice)
    seen, factor = np.flatnonzero(agreement), np.ones(WIDTHS)
    if not len(seen):
        return factor
    # `square` is the mean of (2 u - 1)^2 at a width, and `first` that of 2 u - 1 times its first
    # digit, as 1 or -1. Narrower cells than those that tell are taken to go on as they do.
    agrees = np.sign(agreement)
    first = 1 / (2 - agrees[seen[-1]])
    square = (1 + 2 * agrees[seen[-1]] * first) / 3
    for width in range(seen[-1], -1, -1):
        square = (1 + square + 2 * agrees[width] * first) / 4
        first = (1 + agrees[width] * first) / 2
        factor[width] += abs(agreement[width]) * 1.5 * (square - 1 / 3)
    return factor


def _agreement(tree: Tree, divisions: Divisions, axis: int, lattice: tuple[int, int]) -> Floats:
    """How often the half of a cell with its records, and the half of that half, are on one side.

    By halvings of the domain, from -1 (never) to 1 (always); 0 for lines at any place. It is the
    product of the deviations of a cell and of its children over that of their counts, as far as it
    is several standard errors from 0.
    """
    # Divisions whose parent is divided along the same axis as well, and that of the parent.
    index = np.full(len(tree), -1)
    index[divisions.node] = np.arange(len(divisions.node))
    above = index[np.maximum(tree.parent[divisions.node], 0)]
    below = np.flatnonzero((above >= 0) & (divisions.node > 0))
    above = above[below]
    products = 4 * divisions.deviation[above] * divisions.deviation[below]
    counts = divisions.count[above] * divisions.count[below]
    width = levels_halved(tree, divisions.node[above], axis, lattice)
    total, of_counts, square = (
        np.bincount(width, values, WIDTHS)[:WIDTHS] for values in (products, counts, products**2)
    )
    least = np.maximum(np.abs(total) - PAIRS_ERRORS * np.sqrt(square), 0.0)
    mean = np.where(of_counts > 0, least, 0.0) / np.where(of_counts > 0, of_counts, 1.0)
    return np.copysign(np.minimum(mean, 1.0), total)
