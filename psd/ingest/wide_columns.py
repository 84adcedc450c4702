"""Columns of a wider lattice, in which the region of a record is a part of its column.

A record that is counted by regions has a lattice cell and a region. Column c of region r is column
r W + c of a lattice with W columns for each region. So what is done with cells of records (hashes
that choose the kept records of a user, sorted codes, occurrence numbers) is done with pairs of a
cell and a region: records of one cell in two regions are different records. Private side.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Integer = TypeVar("Integer", bound=np.integer)

__all__ = ["split_columns", "widen_columns"]


def widen_columns(
    columns: NDArray[np.integer], region: NDArray[np.integer] | None, width: int
) -> NDArray[np.integer]:
    """Columns of the wider lattice; the columns themselves without regions.

    Parameters
    ----------
    columns : ndarray, shape (n,), int
        Columns of the lattice. Private.
    region : ndarray, shape (n,), int, or None
        Lowest region of each record. Private.
    width : int
        Columns of the lattice. Public.

    Examples
    --------
    >>> widen_columns(np.array([5, 5]), np.array([0, 2]), 8)
    array([ 5, 21])
    """
    return columns if region is None else region.astype(np.int64) * width + columns


def split_columns(
    columns: NDArray[Integer], width: int
) -> tuple[NDArray[Integer], NDArray[Integer]]:
    """Columns of the lattice, and the region of each.

    Examples
    --------
    >>> split_columns(np.array([5, 21]), 8)
    (array([5, 5]), array([0, 2]))
    """
    region = columns // width
    return np.asarray(columns - region * width), np.asarray(region)
