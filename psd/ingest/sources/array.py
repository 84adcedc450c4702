"""NumPy arrays: two columns of coordinates, or named fields. Private side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from psd.errors import InputDataError
from psd.ingest.sources import frame

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.ingest.tally import Batch
    from psd.space.domain import Domain


USES: tuple[str, ...] = ("where",)
"""Fields of `psd.ingest.sources.Columns` that this source uses in addition to column names."""


def accepts(item: Any) -> bool:
    """Whether the item is an array of NumPy."""
    return isinstance(item, np.ndarray)


def batches(items: list[Any], columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Read arrays of shape (n, 2), x before y, and structured arrays of shape (n,)."""
    yield from frame.batches([_table(item, columns) for item in items], columns, domain)


def _table(array: Any, columns: Columns) -> Any:
    """Table of the columns; values are checked where tables are."""
    import pandas as pd

    if array.dtype.names is not None and array.ndim == 1:
        return pd.DataFrame({name: _column(array[name]) for name in array.dtype.names})
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iuf":
        shape = ", ".join(["n", *map(str, array.shape[1:])][: array.ndim])
        raise InputDataError(
            "an array of NumPy must have the shape (n, 2) and numbers, x before y, or be a "
            f"structured array with named fields, got shape ({shape}) and type "
            f"{array.dtype.name}"
        )
    if columns.others:
        raise InputDataError(
            "an array of two columns has no users, times or bids; pass a structured array, or a "
            "DataFrame with these columns"
        )
    return pd.DataFrame({columns.x: _column(array[:, 0]), columns.y: _column(array[:, 1])})


def _column(values: Any) -> Any:
    """A column; masked values of coordinates are missing."""
    if isinstance(values, np.ma.MaskedArray) and values.dtype.kind in "iuf":
        return np.ma.filled(values.astype(np.float64), np.nan)
    return values
