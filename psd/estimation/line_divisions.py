"""What lines do to the divisions of single cells, from the noisy counts.

Where `psd.estimation.line_moments` sees records along lines, the children of a cell deviate from
their shares for this reason as well, and tell where in the cell the line is.
"""

from __future__ import annotations

import numpy as np

from psd._util.arrays import Floats
from psd.estimation._constants import PAIRS_ERRORS
from psd.estimation.families import Divisions
from psd.estimation.line_moments import WIDTHS, halvings
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
        variance = common[axis][halvings(tree, divided.node, axis, lattice)]
        variance = 4 * divided.share * (1 - divided.share) * variance
        result[divided.node] += 2 * parts[1 - axis, divided.node] * variance
    halved = tree.children == 2 ** is_divided.sum(axis=0)
    return np.where(halved, result, 0.0)


def side_factors(tree: Tree, divisions: Divisions, axis: int, lattice: tuple[int, int]) -> Floats:
    """Estimate how much more cuts err where lines are on the sides of cells.

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
        Factors of the variance of a cut by halvings of the domain, in [1, 2].

    Notes
    -----
    A cut anywhere in a cell whose records are on a line at u of its width is wrong by u^3 / 3 +
    (1 - u)^3 / 3 of the squared records, in the mean: 1/6 for lines at any u, and 1/3 for lines on
    a side, as those of a grid of 2^k columns are. There the records of a cell are in one half, and
    in this half on the same side again. So the product of the deviations of a cell and of its
    children, over that of their counts, tells how far lines are on sides. It is 0 for lines at any
    u, and below 0 for lines in the middle, which are taken to be anywhere. It counts as far as it
    is several standard errors above 0.
    """
    index = np.full(len(tree), -1)
    index[divisions.node] = np.arange(len(divisions.node))
    above = index[np.maximum(tree.parent[divisions.node], 0)]
    below = np.flatnonzero((above >= 0) & (divisions.node > 0))
    above = above[below]
    products = 4 * divisions.deviation[above] * divisions.deviation[below]
    counts = divisions.count[above] * divisions.count[below]
    width = halvings(tree, divisions.node[above], axis, lattice)
    total, of_counts, square = (
        np.bincount(width, values, WIDTHS)[:WIDTHS] for values in (products, counts, products**2)
    )
    least = total - PAIRS_ERRORS * np.sqrt(square)
    seen = (least > 0) & (of_counts > 0)
    return 1.0 + np.minimum(np.where(seen, least, 0.0) / np.where(seen, of_counts, 1.0), 1.0)
