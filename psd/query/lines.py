"""Errors along the sides of boxes, where records lie along lines.

A side of a box cuts leaves, and the records beside it in all of them may be on its other side
together: their errors add up, while those of different lines do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, sum_by
from psd.query.constants import SHARE_ROUNDING
from psd.query.traversal import Traversal

if TYPE_CHECKING:
    from psd.estimation.fit import Fit

__all__ = ["cut_deviation", "cut_pairs", "divides_records", "line_variance", "side_deviations"]

# Pairs of a box and a leaf worked on together; bounds the memory, not the result.
_PAIRS_PER_BATCH = 2**18


def cut_deviation(fit: Fit, axis: int, node: Integers, share: Floats, width: Floats) -> Floats:
    """Deviation of the records beside a line that cuts leaves from side to side.

    axis: 0 for lines of constant x, 1 of constant y; node: (n,) int64, leaves; share: (n,) float64,
    part of each leaf on the west or south of the line; width: (n,) float64, of the leaves across
    the line in lattice units, 0 where the line cuts no single column; returns (n,) float64,
    records. The `line_deviation` of the fit is not None.

    Where the lattice was chosen, all records of a column are in its middle: a line at p of the
    column leaves none or all of them on one side, in place of the part p. It is wrong by the
    smaller of p and 1 - p.
    """
    deviation: NDArray[np.float64] | None = fit.line_deviation
    assert deviation is not None  # only a release with lines across its leaves is asked
    result: Floats = deviation[axis, node] * np.sqrt(share * (1 - share))
    columns = fit.column_records
    if columns is None:
        return result
    offset = share * width % 1.0
    wrong: Floats = columns[axis, node] * np.minimum(offset, 1 - offset)
    return np.hypot(result, wrong)


def side_deviations(fit: Fit, node: Integers, cells: Floats, boxes: Floats) -> Floats:
    """Deviation of the records in the part of each leaf that a box covers, for each side.

    node: (n,) int64, leaves; cells, boxes: (n, 4) float64, the leaves and the boxes in lattice
    units; returns (n, 4) float64, records, for the west, south, east and north side; 0 for a side
    that misses the leaf. The `line_deviation` of the fit is not None.
    """
    size = cells[:, 2:] - cells[:, :2]
    low = np.clip((boxes[:, :2] - cells[:, :2]) / size, 0.0, 1.0)
    high = np.clip((boxes[:, 2:] - cells[:, :2]) / size, 0.0, 1.0)
    result = np.empty((len(node), 4))
    for side, cut in enumerate((low, low, high, high)):
        axis = side % 2
        share, other = cut[:, axis], 1 - axis
        along = high[:, other] - low[:, other]
        result[:, side] = cut_deviation(fit, axis, node, share, size[:, axis]) * along
    return result


def divides_records(share: Floats, area: Floats) -> NDArray[np.bool_]:
    """Whether leaves are cut, and not just where a density knows that no records are.

    share, area: (n,) float64, covered shares of the records and of the area; returns (n,) bool.
    """
    is_cut = (area > 0) & (area < 1)
    return is_cut & (share > SHARE_ROUNDING) & (share < 1 - SHARE_ROUNDING)


def cut_pairs(traversal: Traversal) -> tuple[Integers, Integers]:
    """Queries and the leaves whose records they divide, shape (n,) each."""
    query, node = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for level in traversal.levels:
        cut = ~level.opened & divides_records(level.fraction, level.area)
        query.append(level.query[cut])
        node.append(level.node[cut])
    return np.concatenate(query), np.concatenate(node)


def line_variance(fit: Fit, traversal: Traversal, boxes: Floats) -> Floats:
    """Variance of the answers to boxes by records along their sides.

    boxes: (queries, 4) float64, lattice units; returns (queries,) float64, records squared.
    """
    total = np.zeros((4, traversal.queries))
    cells = fit.tree.boxes
    if fit.line_deviation is None:
        return np.zeros(traversal.queries)
    queries, nodes = cut_pairs(traversal)
    for start in range(0, len(nodes), _PAIRS_PER_BATCH):
        batch = slice(start, start + _PAIRS_PER_BATCH)
        node, query = nodes[batch], queries[batch]
        sides = side_deviations(fit, node, cells[node].astype(np.float64), boxes[query])
        for side in range(4):
            total[side] += sum_by(query, sides[:, side], traversal.queries)
    variance: Floats = (total**2).sum(axis=0)
    return variance
