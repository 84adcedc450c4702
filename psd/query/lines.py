"""Errors along the sides of boxes, where records lie along lines.

A side of a box cuts leaves, and the records beside it in all of them may be on its other side
together: their errors add up, while those of different lines do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psd._util.arrays import Floats, Integers, sum_by
from psd.query.traversal import Traversal

if TYPE_CHECKING:
    from psd.estimation.model import CountModel

__all__ = ["cut_pairs", "line_variance", "side_deviations"]


def side_deviations(deviation: Floats, node: Integers, cells: Floats, boxes: Floats) -> Floats:
    """Deviation of the records in the part of each leaf that a box covers, for each side.

    Parameters
    ----------
    deviation : ndarray, shape (2, nodes), float64
        Of cuts along each axis; see `psd.estimation.alignment.line_deviation`.
    node : ndarray, shape (n,), int64
        Leaves.
    cells, boxes : ndarray, shape (n, 4), float64
        The leaves and the boxes, in lattice units.

    Returns
    -------
    ndarray, shape (n, 4), float64
        Records, for the west, south, east and north side; 0 for a side that misses the leaf.
    """
    size = cells[:, 2:] - cells[:, :2]
    low = np.clip((boxes[:, :2] - cells[:, :2]) / size, 0.0, 1.0)
    high = np.clip((boxes[:, 2:] - cells[:, :2]) / size, 0.0, 1.0)
    result = np.empty((len(node), 4))
    for side, cut in enumerate((low, low, high, high)):
        axis = side % 2
        share, other = cut[:, axis], 1 - axis
        along = high[:, other] - low[:, other]
        result[:, side] = deviation[axis, node] * np.sqrt(share * (1 - share)) * along
    return result


def cut_pairs(traversal: Traversal) -> tuple[Integers, Integers]:
    """Queries and the leaves that they cut, shape (n,) each."""
    query, node = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for level in traversal.levels:
        cut = ~level.opened & (level.area > 0) & (level.area < 1)
        query.append(level.query[cut])
        node.append(level.node[cut])
    return np.concatenate(query), np.concatenate(node)


def line_variance(model: CountModel, traversal: Traversal, boxes: Floats) -> Floats:
    """Variance of the answers to boxes by records along their sides.

    Parameters
    ----------
    model : CountModel
        Model of the cells.
    traversal : Traversal
        Of the boxes.
    boxes : ndarray, shape (queries, 4), float64
        In lattice units.

    Returns
    -------
    ndarray, shape (queries,), float64
        Records squared.
    """
    total = np.zeros((4, traversal.queries))
    deviation, cells = model.line_deviation, model.tree.boxes
    if deviation is None:
        return np.zeros(traversal.queries)
    for level in traversal.levels:
        cut = np.flatnonzero(~level.opened & (level.area > 0) & (level.area < 1))
        node, query = level.node[cut], level.query[cut]
        sides = side_deviations(deviation, node, cells[node].astype(np.float64), boxes[query])
        for side in range(4):
            total[side] += sum_by(query, sides[:, side], traversal.queries)
    variance: Floats = (total**2).sum(axis=0)
    return variance
