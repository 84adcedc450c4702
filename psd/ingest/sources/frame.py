"""pandas DataFrames, and GeoDataFrames of points. Private side."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.wall_clock import wall_clock
from psd.errors import InputDataError
from psd.ingest.columns import check_roles, refuse_two_pairs, resolve_columns
from psd.ingest.points import (
    check_finite,
    column_projection,
    make_projection,
    point_coordinates,
    srid_of,
    stated_crs,
)
from psd.ingest.selection import selected_values, typed_parts
from psd.ingest.sources._arrow import MAX_BATCH_ROWS, check_names
from psd.ingest.sources._point_text import decode_point_text
from psd.ingest.tally import Batch
from psd.ingest.tally_marks import refuse_tally_columns

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.space.domain import Domain


USES: tuple[str, ...] = ("geometry", "wkt", "where")
"""Fields of `psd.ingest.sources.Columns` that this source uses in addition to column names."""


def accepts(item: Any) -> bool:
    """Whether the item is a DataFrame or a GeoDataFrame."""
    pandas = sys.modules.get("pandas")  # where it was not imported there is no DataFrame
    return pandas is not None and isinstance(item, pandas.DataFrame)


def batches(items: list[Any], columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Read tables."""
    import pandas as pd

    for data in items:
        what, geometry = f"the {type(data).__name__}", _geometry(data, columns)
        names = [str(name) for name in data.columns]
        refuse_tally_columns(what, names)
        chosen = resolve_columns(columns, names)
        if geometry is None:
            refuse_two_pairs(what, chosen, names)
        points = [*chosen] if geometry is None else [geometry, *chosen.others]
        check_names(what, names, [*points, *chosen.filtered])
        check_roles(what, chosen)
        if chosen.user is not None:
            # Refuse floats, which lose digits and leading zeros, and values of several types.
            kind = pd.api.types.infer_dtype(_values(data[chosen.user]), skipna=True)
            if kind not in ("string", "integer", "empty"):
                raise InputDataError(
                    f"column {chosen.user!r} of user ids must be text or integers, got {kind} "
                    "values; read ids as text, so that digits and leading zeros are kept"
                )
        for start in range(0, max(len(data), 1), MAX_BATCH_ROWS):
            yield _batch(data.iloc[start : start + MAX_BATCH_ROWS], chosen, geometry, domain)


def _geometry(data: Any, columns: Columns) -> str | None:
    """Column of points of a GeoDataFrame: the named one, or the active one."""
    import geopandas as gpd

    if not isinstance(data, gpd.GeoDataFrame) or columns.wkt is not None:
        return columns.geometry
    name = columns.geometry or data.active_geometry_name
    if name is None:
        raise InputDataError("the GeoDataFrame has no active geometry; set it with set_geometry")
    return str(name)


def _batch(data: Any, columns: Columns, geometry: str | None, domain: Domain) -> Batch:
    """Convert a part of a table."""
    if geometry is None and columns.wkt is not None:
        x, y = decode_point_text(
            _texts(data[columns.wkt]), columns.wkt, srid_of(domain.crs, columns.input_crs)
        )
        x, y = column_projection(columns, domain, "the DataFrame")((x, y))
    elif geometry is None:
        x, y = (_numbers(data, name) for name in (columns.x, columns.y))
        x, y = column_projection(columns, domain, "the DataFrame")((x, y))
    else:
        # Coordinates of point geometries in the CRS of the domain.
        import geopandas as gpd

        column = data[geometry]
        if not isinstance(column, gpd.GeoSeries):
            raise InputDataError(
                f"column {geometry!r} of the {type(data).__name__} must hold geometries; make it a "
                "GeoDataFrame"
            )
        crs = stated_crs(column.crs, columns, "the GeoDataFrame")
        project = make_projection(crs, domain, "the GeoDataFrame")
        x, y = project(point_coordinates(np.asarray(column.array), geometry))
    return Batch(
        x=x,
        y=y,
        user=None if columns.user is None else _ids(data[columns.user]),
        time=None if columns.time is None else _times(data[columns.time], columns),
        bid=None if columns.bid is None else _bids(data[columns.bid]),
        **selected_values(columns, {name: data[name] for name in columns.filtered}),
    )


def _numbers(data: Any, name: str) -> NDArray[np.float64]:
    """Convert a column of coordinates to floats; missing values become NaN."""
    column = data[name]
    if column.dtype.kind not in "iuf" and not _is_arrow_decimal(column.dtype):
        raise InputDataError(
            f"column {name!r} must be numeric, got type {column.dtype}; convert it first"
        )
    return check_finite(name, column.to_numpy(dtype=np.float64, na_value=np.nan))


def _times(column: Any, columns: Columns) -> NDArray[np.datetime64]:
    """Convert a column of times to local ones, (n,) datetime64[us], each object by its own type."""
    # Arrow gives all objects the type of the first one: after a date, all times would be days.
    times = np.full(len(column), np.datetime64("NaT", "us"))
    for index, array in typed_parts(column):
        times[index] = wall_clock(array, columns.time_zone, column=str(columns.time))
    return times


def _bids(column: Any) -> NDArray[np.float64]:
    """Convert bids to floats; whatever is not a number becomes NaN."""
    import pandas as pd

    values = _values(column)
    if values.dtype.kind not in "iuf" and not _is_arrow_decimal(values.dtype):
        texts = [value if isinstance(value, int | float) else str(value) for value in values]
        values = pd.to_numeric(pd.Series(texts, dtype=object).map(_within), errors="coerce")
    return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))


def _within(value: int | float | str) -> float | str:
    """Number as a float; an integer beyond all floats is infinite."""
    try:
        return value if isinstance(value, str) else float(value)
    except OverflowError:
        return np.inf


def _is_arrow_decimal(kind: Any) -> bool:
    """Whether a column of pandas holds decimals of Arrow."""
    return str(kind).startswith("decimal") and str(kind).endswith("[pyarrow]")


def _values(column: Any) -> Any:
    """Decode the categories of a column."""
    # Categories that are whole numbers have no missing one, and their type would refuse it.
    return column.astype(object) if hasattr(column, "cat") else column


def _texts(column: Any) -> Any:
    """Convert points in WKT to Arrow text."""
    import pandas as pd
    import pyarrow as pa

    if pd.api.types.infer_dtype(_values(column), skipna=True) in ("string", "empty"):
        try:
            return pa.array(_values(column).astype("string"), type=pa.large_string())
        except (UnicodeError, pa.ArrowException):
            pass
    raise InputDataError(f"column {column.name!r} must hold points in WKT as Unicode text")


def _ids(column: Any) -> Any:
    """Convert ids to Arrow text."""
    import pyarrow as pa

    try:
        return pa.array(_values(column).astype("string"), type=pa.string())
    except (UnicodeError, pa.ArrowException):
        pass
    raise InputDataError(f"column {column.name!r} of user ids must be Unicode text")
