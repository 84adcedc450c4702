"""Tables in memory: pandas DataFrames and GeoDataFrames of points. Private side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd.errors import DomainError, InputDataError
from psd.tally import Batch

if TYPE_CHECKING:
    from psd.domain import Domain
    from psd.sources import Columns

__all__ = ["accepts", "batches"]


def accepts(data: Any) -> bool:
    """Whether the input is a DataFrame or a GeoDataFrame."""
    import pandas as pd

    return isinstance(data, pd.DataFrame)


def batches(data: Any, columns: Columns, domain: Domain) -> Iterator[Batch]:
    """One batch with all rows of the table.

    Raises
    ------
    InputDataError
        If a column is missing or of the wrong type.
    DomainError
        If a GeoDataFrame has no CRS.
    """
    import geopandas as gpd

    is_geo = isinstance(data, gpd.GeoDataFrame)
    needed = [columns.user] if is_geo else list(columns)
    for name in filter(None, needed):
        if list(data.columns).count(name) != 1:
            raise InputDataError(f"the table has no single column {name!r}")
    x, y = _points(data, domain) if is_geo else (_numbers(data, name) for name in list(columns)[:2])
    yield Batch(x=x, y=y, user=_ids(data[columns.user]) if columns.user else None)


def _points(data: Any, domain: Domain) -> tuple[NDArray[np.float64], ...]:
    """Coordinates of point geometries in the CRS of the domain."""
    import shapely

    if data.crs is None:
        raise DomainError("the GeoDataFrame has no CRS; set it with set_crs, it is never guessed")
    shapes = data.geometry.to_crs(domain.crs)
    present = ~(shapely.is_missing(shapes.array) | shapely.is_empty(shapes.array))
    if not (shapes[present].geom_type == "Point").all():
        raise InputDataError("the GeoDataFrame holds geometries that are no points")
    x, y = np.full(len(data), np.nan), np.full(len(data), np.nan)
    x[present], y[present] = shapes[present].x, shapes[present].y
    # Where the projection does not reach is outside of any bounds.
    return np.where(np.isfinite(x), x, np.nan), np.where(np.isfinite(y), y, np.nan)


def _numbers(data: Any, name: str) -> NDArray[np.float64]:
    """Column of coordinates as floats; missing ones are NaN."""
    column = data[name]
    if column.dtype.kind not in "iuf":
        raise InputDataError(
            f"column {name!r} is of type {column.dtype}, not of numbers; convert it first"
        )
    return _finite(name, column.to_numpy(dtype=np.float64, na_value=np.nan))


def _finite(name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Refuse infinite coordinates; they come from a division or an overflow."""
    if np.isinf(values).any():
        raise InputDataError(f"column {name!r} holds infinite values; remove or repair them")
    return values


def _ids(column: Any) -> Any:
    """Ids as Arrow text; floats are refused, since they have lost digits or leading zeros."""
    import pandas as pd
    import pyarrow as pa

    values = column.astype(column.cat.categories.dtype) if hasattr(column, "cat") else column
    kind = pd.api.types.infer_dtype(values, skipna=True)
    if kind not in ("string", "integer", "empty"):
        raise InputDataError(
            f"column {column.name!r} of user ids holds {kind} values; read ids as text, so that no "
            "digit and no leading zero is lost"
        )
    try:
        return pa.array(values.astype("string"), type=pa.string())
    except (UnicodeError, pa.ArrowException):
        pass
    raise InputDataError(f"column {column.name!r} of user ids holds text that is not Unicode")
