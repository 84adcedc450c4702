"""What lines do to the divisions of single cells, from the noisy counts.

Where `psd.estimation.line_covariance` sees records along lines, the children of a cell deviate from
their shares for this reason as well, and tell where in the cell the line is.
"""

from __future__ import annotations

import numpy as np

from psd._util.arrays import Floats
from psd.estimation.constants import PAIRS_ERRORS
from psd.estimation.line_covariance import WIDTHS, levels_halved
from psd.estimation.sibling_splits import Divisions
from psd.space.box_tree import Tree

__all__ = ["line_squares", "side_factors"]


def line_squares(
    tree: Tree, along: tuple[Divisions, Divisions], common: Floats, lattice: tuple[int, int]
) -> Floats:
    """Compute the squared deviations of the children of cells that lines explain.

    Parameters
    ----------
    tree : Tree
        Cells.
    along : tuple of Divisions
        Along x, and along y.
    common : ndarray, shape (2, `WIDTHS`), float64
        Variance that cells along a line have in common (`common_variance_by_width`), by axis.
    lattice : tuple of int
        Columns and rows of the lattice.

    Returns
    -------
    ndarray, shape (nodes,), float64
        Sum over the children of a cell, per squared record of the cell. 0 for cells that are not
        divided in two parts along x, along y, or along both.

    Notes
    -----
    A line leaves the share g of a cell on one side of it, with a variance of 4 g (1 - g) times that
    of a half. The records that it moves leave the children on one side, by their shares, for those
    on the other. Let Q be the sum of the squares of these shares: 1 where there is one child on
    each side, a half where there are two equal ones. Then the deviations have a sum of squares of
    2 Q times the variance.
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
        Factors of the variance of a cut by halvings of the domain, in [1/2, 2].

    Notes
    -----
    A cut anywhere in a cell whose records are on a line at u of its width is wrong by u^3 / 3 +
    (1 - u)^3 / 3 of the squared records, in the mean: 1/6 for lines at any u, 1/3 for lines on a
    side, as those of a grid of 2^k columns are, and 1/12 for lines in the middle. So the factor is
    1/2 + 3/2 (2 u - 1)^2. The half in which the line is, the half of that half, and so on are the
    binary digits of u. Each agrees with the one before it, or does not, as `_agreement` tells, and
    the mean square of 2 u - 1 follows. The size of the agreement is the share of the records for
    which this holds; the others are on lines at any u.
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
