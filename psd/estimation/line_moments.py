"""Records that move together along a lattice line, from the noisy counts.

If coordinates are rounded, or lie on streets, the records near a line lie on the same side of it
all along the line. Then cells that the same line divides deviate from their shares in the same
direction. Deviations of different cells have independent noise, so the mean of their products needs
no correction for it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from psd._util.arrays import Floats, Integers
from psd.estimation._constants import (
    LAGS,
    MAX_GRADIENT_VARIANCE,
    MAX_SHARE_VARIANCE,
    PAIRS_ENOUGH,
    PAIRS_ERRORS,
)
from psd.estimation.families import Divisions
from psd.space.box_tree import Tree

__all__ = ["common_variance_by_width", "halvings"]

_BINS = 64


def halvings(tree: Tree, node: Integers, axis: int, lattice: tuple[int, int]) -> Integers:
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
    ndarray, shape (64,), float64
        By halvings of the domain (`halvings`), in [0, 1/4]: 1/4 where a line has all records of a
        cell on one side of it.

    Notes
    -----
    The mean of d_i d_j over that of n_i n_j, d the deviations and n the counts of cells of one
    width on one line, several cells apart: neighbours are alike for other reasons as well. It
    counts where it is several standard errors above 0 and larger than in wider cells, or larger
    than a density that changes linearly can be: what moves by a fixed distance moves more of a
    narrow cell, and a gradient less. Where a width has too few pairs it is four times that of the
    width above.
    """
    halved = halvings(tree, divisions.node, axis, lattice)
    product, counts, square, pairs = np.zeros((4, _BINS))
    for first, second in _pairs(tree, divisions, axis, lattice):
        value = divisions.deviation[first] * divisions.deviation[second]
        for total, values in (
            (product, value),
            (counts, divisions.count[first] * divisions.count[second]),
            (square, value**2),
            (pairs, np.ones(len(first))),
        ):
            total += np.bincount(halved[first], values, _BINS)[:_BINS]
    return _profile(product, counts, np.sqrt(square), pairs)


def _profile(product: Floats, counts: Floats, error: Floats, pairs: Floats) -> Floats:
    """Common variance by width, from wide to narrow, where it grows as cells get narrower."""
    result, last, above, grows = np.zeros(_BINS), 0.0, MAX_GRADIENT_VARIANCE, False
    for width in range(_BINS):
        if pairs[width] >= PAIRS_ENOUGH and counts[width] > 0:
            mean, deviation = (values[width] / counts[width] for values in (product, error))
            if mean > PAIRS_ERRORS * deviation:
                grows = grows or mean > min(above, MAX_GRADIENT_VARIANCE)
                last = mean
            elif mean + PAIRS_ERRORS * deviation < last:
                last, grows = 0.0, False
            else:
                last = min(4 * last, max(mean, 0.0) + PAIRS_ERRORS * deviation)
            above = max(mean, 0.0) + 2 * deviation
        else:
            last *= 4
        last = min(last, MAX_SHARE_VARIANCE)
        result[width] = last if grows else 0.0
    return result


def _pairs(
    tree: Tree, divisions: Divisions, axis: int, lattice: tuple[int, int]
) -> Iterator[tuple[Integers, Integers]]:
    """Indices of divisions of one size on one line, some cells apart."""
    across, along = (halvings(tree, divisions.node, a, lattice) for a in (axis, 1 - axis))
    low = tree.boxes[divisions.node, 1 - axis].astype(np.float64)
    rank = np.rint(low / lattice[1 - axis] * 2.0**along).astype(np.int64)
    order = np.lexsort((rank, along, across, divisions.line))
    key = np.stack([divisions.line, across, along], axis=1)[order]
    rank = rank[order]
    group = np.concatenate([[0], np.cumsum((np.diff(key, axis=0) != 0).any(axis=1))])
    if not len(order):
        return
    code = group * (int(rank.max()) + max(LAGS) + 1) + rank
    for lag in LAGS:
        match = np.minimum(np.searchsorted(code, code + lag), len(code) - 1)
        hit = np.flatnonzero((code[match] == code + lag) & (group[match] == group))
        yield order[hit], order[match[hit]]
