"""The tally: exact counts per occupied lattice cell. Private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Batch", "Tally", "add_tallies"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Batch:
    """Records of a source, as arrays.

    Parameters
    ----------
    x, y : ndarray, shape (n,), float64
        Coordinates in the CRS of the domain; NaN if missing. Private.
    user : pyarrow.Array of string, length n, or None
        Opaque ids; null if missing. Private.
    time : ndarray, shape (n,), datetime64[us], or None
        Local times in the zone of the columns; NaT if missing. Private.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    user: Any = None
    time: NDArray[np.datetime64] | None = None

    def __repr__(self) -> str:
        return "<Batch: private>"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Tally:
    """Counts of kept records per occupied lattice cell, in the order of cell codes. Private.

    Parameters
    ----------
    columns, rows : ndarray, shape (n,), int32
        Occupied cells; the south-west one if several lattice cells are counted together.
    counts : ndarray, shape (n,), int64
        Records in each, above 0, or the sum of their weights.
    contributions : int
        Largest amount that one unit adds to the tally; 1 if a record is the unit.
    slice : ndarray, shape (n,), int64, or None
        Time slice of each count.
    report : dict of str to int
        Records read, without coordinates, outside, over the contribution limit. Private; for the
        private report.
    """

    columns: NDArray[np.int32]
    rows: NDArray[np.int32]
    counts: NDArray[np.int64]
    contributions: int = 1
    slice: NDArray[np.int64] | None = None
    report: dict[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "<Tally: private>"


def add_tallies(tallies: Sequence[Tally]) -> Tally:
    """Add counts by slice and cell."""
    slices = [np.zeros_like(t.counts) if t.slice is None else t.slice for t in tallies]
    columns = [np.concatenate(slices)]
    columns += [np.concatenate([getattr(t, name) for t in tallies]) for name in ("rows", "columns")]
    counts = np.concatenate([t.counts for t in tallies])
    order = np.lexsort(columns[::-1])
    slice_, rows, cells = (values[order] for values in columns)
    first = np.ones(len(order), bool)
    first[1:] = (np.diff(slice_) != 0) | (np.diff(rows) != 0) | (np.diff(cells) != 0)
    starts = np.flatnonzero(first)
    return Tally(
        columns=cells[starts].astype(np.int32),
        rows=rows[starts].astype(np.int32),
        counts=np.add.reduceat(counts[order], starts),
        slice=None if tallies[0].slice is None else slice_[starts],
    )
