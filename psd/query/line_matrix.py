"""Errors that boxes have in common, where records lie along lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from psd._util.arrays import Floats, Integers
from psd.query.lines import side_deviations

if TYPE_CHECKING:
    from psd.estimation.fit import Fit

__all__ = ["line_matrix"]


def line_matrix(fit: Fit, box: Integers, node: Integers, boxes: Floats) -> sparse.csr_array | None:
    """Deviations of boxes along lines, for errors that different boxes have in common.

    box, node: (n,) int64, pairs of a box and a leaf that it cuts; boxes: (m, 4) float64, lattice
    units; returns a sparse Z, (m, lines) float64, None where no records lie along lines.

    P1. Z Z' is the covariance: records that are on the other side of a line are missing on one side
    of it and too many on the other. Different lines err independently.
    """
    if fit.line_deviation is None:
        return None
    cells = fit.tree.boxes[node].astype(np.float64)
    sides = side_deviations(fit, node, cells, boxes[box])
    rows, columns, values, first = [], [], [], 0
    for axis in (0, 1):
        # Boxes with a side on one line share its column. What the line lets in at a west side it
        # takes at an east side, so their signs differ.
        position = np.concatenate([boxes[box, axis], boxes[box, axis + 2]])
        lines, number = np.unique(position, return_inverse=True)
        rows.append(np.tile(box, 2))
        columns.append(first + number)
        values.append(np.concatenate([-sides[:, axis], sides[:, axis + 2]]))
        first += len(lines)
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return sparse.csr_array(entries, shape=(len(boxes), first))
