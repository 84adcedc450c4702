"""Query regions from files: boxes in a CSV, polygons in any vector format or as WKT."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from psd.errors import DomainError, InputDataError

if TYPE_CHECKING:
    import geopandas
    import pandas

__all__ = ["read_boxes", "read_polygons", "read_table"]


def read_boxes(path: Path) -> pandas.DataFrame:
    """Table with west, south, east, north and maybe id, in the order of the file.

    Raises
    ------
    InputDataError
        If the file is missing or malformed.
    """
    import pandas as pd

    from psd.space.boxes import SIDES

    _check_file(path)
    table = _csv(path, "boxes")
    for side in SIDES:
        if side not in table.columns:
            raise InputDataError(f"boxes {path} has no column {side}; needed: {', '.join(SIDES)}")
        numbers = pd.to_numeric(table[side].str.strip(), errors="coerce")
        if numbers.isna().any():
            line = int(numbers.isna().to_numpy().argmax()) + 2
            raise InputDataError(f"boxes {path} line {line}: {side} is not a number")
        table[side] = numbers.astype(float)
    return table


def read_polygons(
    path: Path, name: str = "polygons", *, crs: str | None = None
) -> geopandas.GeoDataFrame:
    """Polygons of a file, with its attributes and CRS; messages call it by the name.

    A file ending in .wkt has one WKT or EWKT a line, one ending in .csv has them in a column
    wkt. These files, and others without a CRS, get the CRS of the argument.

    Raises
    ------
    InputDataError
        If the file is missing or holds no geometries.
    ParameterError
        If WKT cannot be read.
    DomainError
        If the CRS is missing, unknown, or differs between the file and the argument.
    """
    import geopandas as gpd

    from psd.space.regions import regions_table

    _check_file(path)
    if path.suffix.lower() == ".wkt":
        return regions_table(_lines(path, name), crs).to_frame("geometry")
    if path.suffix.lower() == ".csv":
        table = _csv(path, name)
        column = next((str(label) for label in table if str(label).lower() == "wkt"), None)
        if column is None:
            raise InputDataError(f"{name} {path} has no column wkt")
        return gpd.GeoDataFrame(table, geometry=regions_table(list(table.pop(column)), crs))
    table = _vector_file(path, name)
    return table if crs is None else table.set_geometry(regions_table(table, crs))


def read_table(path: Path, name: str = "table") -> pandas.DataFrame:
    """Table of a file, of texts if it is CSV; files of a GIS format have their geometries.

    Raises
    ------
    InputDataError
        If the file is missing or malformed.
    DomainError
        If the CRS of its geometries is unknown.
    """
    _check_file(path)
    return _csv(path, name) if path.suffix.lower() == ".csv" else _vector_file(path, name)


def _lines(path: Path, name: str) -> list[str]:
    """Lines of a text file that are not blank."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (UnicodeDecodeError, OSError):
        raise InputDataError(f"{name} {path} is not UTF-8 text") from None
    return [line for line in text.splitlines() if line.strip()]


def _vector_file(path: Path, name: str) -> geopandas.GeoDataFrame:
    """Table of a file in a GIS format; what GDAL warns of is refused later, by the query."""
    import warnings

    import geopandas as gpd
    import pyarrow as pa
    import pyogrio
    from pyogrio.errors import DataSourceError
    from pyproj.exceptions import CRSError
    from shapely.errors import ShapelyError

    refuse_pointers(path, name)
    try:
        if path.suffix.lower() == ".parquet":
            return gpd.read_parquet(path)
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
            # Tables without geometries, such as the styles of QGIS, are left alone.
            layers = [str(layer) for layer, kind in pyogrio.list_layers(path) if kind is not None]
            if len(layers) > 1:
                raise InputDataError(
                    f"{name} {path} has several layers ({', '.join(layers)}); save one of them "
                    "alone"
                )
            only = {"layer": layers[0]} if layers else {}
            table = gpd.read_file(path, engine="pyogrio", **only)
    except CRSError:
        raise DomainError(
            f"{name} {path} has a CRS that PROJ does not know; save it in another one"
        ) from None
    except ShapelyError as error:
        reason = str(error).partition(": ")[2]
        raise InputDataError(
            f"{name} {path} holds a geometry that cannot be read ({reason})"
        ) from None
    except (DataSourceError, pa.ArrowException, ValueError, OSError):
        raise InputDataError(f"{name} {path} cannot be read as a vector file") from None
    if not isinstance(table, gpd.GeoDataFrame):
        raise InputDataError(f"{name} {path} holds a table without geometries")
    return table


def _csv(path: Path, name: str) -> pandas.DataFrame:
    """Table of texts."""
    import pandas as pd

    try:
        table = pd.read_csv(path, dtype=str, encoding="utf-8-sig", keep_default_na=False)
    except (ValueError, OSError):
        raise InputDataError(
            f"{name} {path} is not a UTF-8 CSV file with a first line of names"
        ) from None
    if not isinstance(table.index, pd.RangeIndex):  # pandas took the surplus fields as an index
        raise InputDataError(f"{name} {path} has rows with more fields than its first line")
    table.columns = table.columns.str.strip()
    if not table.columns.is_unique:
        raise InputDataError(
            f"{name} {path} has columns whose names differ in spaces alone; remove one of them"
        )
    return table


def _check_file(path: Path) -> None:
    """Refuse a path that is not a file."""
    if not os.path.isfile(path):
        raise InputDataError(f"{path} does not exist or is not a file")


def refuse_pointers(path: Path, name: str) -> None:
    """Refuse a file that makes GDAL read other files, which may be private.

    Raises
    ------
    InputDataError
        If it is a virtual data set (VRT).
    """
    try:
        with path.open("rb") as file:
            start = file.read(2**16)
    except OSError:
        return  # the reader explains it
    if any(mark in start for mark in (b"OGRVRTDataSource", b"VRTDataset")):
        raise InputDataError(
            f"{name} {path} must hold its own data, got a virtual data set (VRT) that names "
            "other files; save it as GeoPackage or GeoTIFF"
        )
