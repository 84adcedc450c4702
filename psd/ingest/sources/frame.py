"""pandas DataFrames, and GeoDataFrames of points. Private side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.wall_clock import wall_clock
from psd.errors import InputDataError
from psd.ingest.sources._arrow import ROWS, check_names
from psd.ingest.sources._points import Coordinates, coordinates, finite, projection
from psd.ingest.tally import Batch

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.space.domain import Domain

__all__ = ["accepts", "batches"]


USES: tuple[str, ...] = ("geometry",)
"""Fields of `psd.ingest.sources.Columns` that a file or table of this kind has a use for."""


def accepts(item: Any) -> bool:
    """Whether the item is a DataFrame or a GeoDataFrame."""
    import pandas as pd

    return isinstance(item, pd.DataFrame)


def batches(items: list[Any], columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Rows of tables.

    Raises
    ------
    InputDataError
        If a column is missing or of the wrong type.
    DomainError
        If a GeoDataFrame has no CRS.
    """
    for data in items:
        what, geometry = f"the {type(data).__name__}", _geometry(data, columns)
        places = [columns.x, columns.y] if geometry is None else [geometry]
        more = [name for name in (columns.user, columns.time) if name is not None]
        check_names(what, [str(name) for name in data.columns], [*places, *more])
        if columns.user is not None:
            _check_ids(data[columns.user])
        for start in range(0, max(len(data), 1), ROWS):
            yield _batch(data.iloc[start : start + ROWS], columns, geometry, domain)


def _geometry(data: Any, columns: Columns) -> str | None:
    """Column of points of a GeoDataFrame, its active one where none is named."""
    import geopandas as gpd

    if not isinstance(data, gpd.GeoDataFrame):
        return columns.geometry
    name = columns.geometry or data.active_geometry_name
    if name is None:
        raise InputDataError("the GeoDataFrame has no active geometry; set it with set_geometry")
    return str(name)


def _batch(data: Any, columns: Columns, geometry: str | None, domain: Domain) -> Batch:
    """Some rows of a table."""
    if geometry is None:
        x, y = (_numbers(data, name) for name in (columns.x, columns.y))
    else:
        x, y = _points(data, geometry, domain)
    return Batch(
        x=x,
        y=y,
        user=None if columns.user is None else _ids(data[columns.user]),
        time=None
        if columns.time is None
        else wall_clock(data[columns.time], columns.time_zone, column=columns.time),
    )


def _points(data: Any, geometry: str, domain: Domain) -> Coordinates:
    """Coordinates of point geometries in the CRS of the domain."""
    import geopandas as gpd

    column = data[geometry]
    if not isinstance(column, gpd.GeoSeries):
        raise InputDataError(
            f"column {geometry!r} of the {type(data).__name__} holds no geometries; make it a "
            "GeoDataFrame"
        )
    project = projection(column.crs, domain, "the GeoDataFrame")
    return project(coordinates(np.asarray(column.array), geometry))


def _numbers(data: Any, name: str) -> NDArray[np.float64]:
    """Column of coordinates as floats; missing ones are NaN."""
    column = data[name]
    if column.dtype.kind not in "iuf" and not _is_arrow_decimal(column.dtype):
        raise InputDataError(
            f"column {name!r} is of type {column.dtype}, not of numbers; convert it first"
        )
    return finite(name, column.to_numpy(dtype=np.float64, na_value=np.nan))


def _is_arrow_decimal(kind: Any) -> bool:
    """Whether a column of pandas holds decimals of Arrow."""
    return str(kind).startswith("decimal") and str(kind).endswith("[pyarrow]")


def _check_ids(column: Any) -> None:
    """Refuse floats, since they have lost digits or leading zeros, and values of several kinds."""
    import pandas as pd

    kind = pd.api.types.infer_dtype(_values(column), skipna=True)
    if kind not in ("string", "integer", "empty"):
        raise InputDataError(
            f"column {column.name!r} of user ids holds {kind} values; read ids as text, so that no "
            "digit and no leading zero is lost"
        )


def _values(column: Any) -> Any:
    """A column without its categories."""
    return column.astype(column.cat.categories.dtype) if hasattr(column, "cat") else column


def _ids(column: Any) -> Any:
    """Ids as Arrow text."""
    import pyarrow as pa

    try:
        return pa.array(_values(column).astype("string"), type=pa.string())
    except (UnicodeError, pa.ArrowException):
        pass
    raise InputDataError(f"column {column.name!r} of user ids holds text that is not Unicode")
