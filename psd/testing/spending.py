"""Epsilon that the questions of a build spend at each lattice cell."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from psd._util.arrays import Integers
from psd.curator.curator import ChargedQuestion
from psd.space.hilbert import lattice_codes

__all__ = ["spent_by_cell"]


def spent_by_cell(questions: Iterable[ChargedQuestion], side: int) -> Integers:
    """Sum the nano-epsilons of all questions at each cell of a small lattice.

    Parameters
    ----------
    questions : iterable of ChargedQuestion
        From `Curator.questions`.
    side : int
        Columns and rows of the lattice.

    Returns
    -------
    ndarray, shape (side, side), int64
        By column and row.
    """
    column, row = (axis.ravel() for axis in np.indices((side, side)))
    total = np.zeros(side * side, np.int64)
    for question in questions:
        x, y = column, row
        if question.curve:
            x, y = lattice_codes(column, row, (side, side), question.curve), np.zeros_like(row)
        x0, y0, x1, y1 = question.boxes.T[:, :, None]
        inside = (x >= x0) & (x < x1) & (y >= y0) & (y < y1)
        total += (inside * question.loss[:, None]).sum(axis=0)
    by_cell: Integers = total.reshape(side, side)
    return by_cell
