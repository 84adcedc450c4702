"""The tally: exact counts per occupied lattice cell. Private; never shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Batch", "Tally"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Batch:
    """Some rows of a source.

    Parameters
    ----------
    x, y : ndarray, shape (n,), float64
        Coordinates in the CRS of the domain; NaN where the row has none. Private.
    user : pyarrow.Array of string, length n, or None
        Opaque ids; null where the row has none. Private.
    time : ndarray, shape (n,), datetime64[us], or None
        Wall-clock time in the zone of the columns; NaT where the row has none. Private.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    user: Any = None
    time: NDArray[np.datetime64] | None = None

    def __repr__(self) -> str:
        return "<Batch: private>"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Tally:
    """Counts of kept rows per occupied lattice cell, in order of the cell's code. Private.

    Parameters
    ----------
    columns, rows : ndarray, shape (n,), int32
        Occupied cells; the south-west one where several lattice cells are counted together.
    counts : ndarray, shape (n,), int64
        Rows in each, above 0, or what their users' weights add up to.
    contributions : int
        Most that one unit adds to the whole tally; 1 where a row is the unit.
    slice : ndarray, shape (n,), int64, or None
        Time slice of each count.
    report : dict of str to int
        Rows read, without coordinates, outside, dropped by the bound. Private, for
        ``--report-private``.
    """

    columns: NDArray[np.int32]
    rows: NDArray[np.int32]
    counts: NDArray[np.int64]
    contributions: int = 1
    slice: NDArray[np.int64] | None = None
    report: dict[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "<Tally: private>"
