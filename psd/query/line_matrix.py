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

    Parameters
    ----------
    fit : Fit
        Fit of the cells.
    box, node : ndarray, shape (n,), int64
        Pairs of a box and a leaf that it cuts.
    boxes : ndarray, shape (m, 4), float64
        In lattice units.

    Returns
    -------
    csr_array, shape (m, lines), float64, or None
        Z, such that Z Z' is the covariance: records that are on the other side of a line are
        missing on one side of it and too many on the other. Different lines err independently.
        None where no records lie along lines.
    """
    if fit.line_deviation is None:
        return None
    cells = fit.tree.boxes[node].astype(np.float64)
    sides = side_deviations(fit, node, cells, boxes[box])
    rows, columns, values, first = [], [], [], 0
    for axis in (0, 1):
        position = np.concatenate([boxes[box, axis], boxes[box, axis + 2]])
        lines, number = np.unique(position, return_inverse=True)
        rows.append(np.tile(box, 2))
        columns.append(first + number)
        values.append(np.concatenate([-sides[:, axis], sides[:, axis + 2]]))
        first += len(lines)
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return sparse.csr_array(entries, shape=(len(boxes), first))
