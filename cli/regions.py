"""Query regions from files: boxes in a CSV, polygons in any vector format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from psd.errors import InputDataError

if TYPE_CHECKING:
    import geopandas
    import pandas

__all__ = ["read_boxes", "read_polygons"]


def read_boxes(path: Path) -> pandas.DataFrame:
    """Table with west, south, east, north and maybe id, in the order of the file.

    Raises
    ------
    InputDataError
        If the file is missing or malformed.
    """
    import pandas as pd

    from psd.query.boxes import SIDES

    _check_file(path)
    try:
        table = pd.read_csv(path, dtype=str, encoding="utf-8-sig", keep_default_na=False)
    except (ValueError, OSError):
        raise InputDataError(
            f"boxes {path} is no UTF-8 CSV file with a first line of names"
        ) from None
    if not isinstance(table.index, pd.RangeIndex):  # pandas took the surplus fields as an index
        raise InputDataError(f"boxes {path} has rows with more fields than its first line")
    table.columns = table.columns.str.strip()
    for side in SIDES:
        if side not in table.columns:
            raise InputDataError(f"boxes {path} has no column {side}; needed: {', '.join(SIDES)}")
        numbers = pd.to_numeric(table[side].str.strip(), errors="coerce")
        if numbers.isna().any():
            line = int(numbers.isna().to_numpy().argmax()) + 2
            raise InputDataError(f"boxes {path} line {line}: {side} is not a number")
        table[side] = numbers.astype(float)
    return table


def read_polygons(path: Path, name: str = "polygons") -> geopandas.GeoDataFrame:
    """Polygons of a vector file, with its attributes and CRS; messages call it by the name.

    Raises
    ------
    InputDataError
        If the file is missing or holds no geometries.
    """
    import geopandas as gpd
    import pyarrow as pa
    import pyogrio
    from pyogrio.errors import DataSourceError

    _check_file(path)
    try:
        if path.suffix.lower() == ".parquet":
            return gpd.read_parquet(path)
        layers = pyogrio.list_layers(path)[:, 0].tolist()
        if len(layers) > 1:
            raise InputDataError(
                f"{name} {path} has several layers ({', '.join(layers)}); save one of them alone"
            )
        table = gpd.read_file(path, engine="pyogrio")
    except (DataSourceError, pa.ArrowException, ValueError, OSError):
        raise InputDataError(f"{name} {path} is no vector file that can be read") from None
    if not isinstance(table, gpd.GeoDataFrame):
        raise InputDataError(f"{name} {path} holds a table without geometries")
    return table


def _check_file(path: Path) -> None:
    """Refuse what is no file."""
    if not path.is_file():
        raise InputDataError(f"{path} does not exist or is no file")
