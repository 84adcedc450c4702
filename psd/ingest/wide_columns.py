"""Columns of a wider lattice, in which the stratum of a record is a part of its column.

A record that is counted by strata has a lattice cell and a stratum. Column c of stratum s is column
s W + c of a lattice with W columns for each stratum. So what is done with cells of records (hashes
that choose the kept records of a user, sorted codes, occurrence numbers) is done with pairs of a
cell and a stratum: records of one cell in two strata are different records. Private side.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Integer = TypeVar("Integer", bound=np.integer)

__all__ = ["split_columns", "widen_columns"]


def widen_columns(
    columns: NDArray[np.integer], stratum: NDArray[np.integer] | None, width: int
) -> NDArray[np.integer]:
    """Columns of the wider lattice; the columns themselves without strata.

    Parameters
    ----------
    columns : ndarray, shape (n,), int
        Columns of the lattice. Private.
    stratum : ndarray, shape (n,), int, or None
        Stratum of each record. Private.
    width : int
        Columns of the lattice. Public.

    Examples
    --------
    >>> widen_columns(np.array([5, 5]), np.array([0, 2]), 8)
    array([ 5, 21])
    """
    return columns if stratum is None else stratum.astype(np.int64) * width + columns


def split_columns(
    columns: NDArray[Integer], width: int
) -> tuple[NDArray[Integer], NDArray[Integer]]:
    """Columns of the lattice, and the stratum of each.

    Examples
    --------
    >>> split_columns(np.array([5, 21]), 8)
    (array([5, 5]), array([0, 2]))
    """
    stratum = columns // width
    return np.asarray(columns - stratum * width), np.asarray(stratum)
