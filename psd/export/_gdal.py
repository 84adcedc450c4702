"""Vector files of GDAL, written in memory first."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.column_kinds import held_columns
from psd.query.answer_table import COLUMNS

if TYPE_CHECKING:
    import geopandas

__all__ = ["finite_errors", "layer_bytes"]


def finite_errors(table: geopandas.GeoDataFrame) -> geopandas.GeoDataFrame:
    """Table in which infinite errors of answers, such as those relative to 0, have no value."""
    names = [name for name in COLUMNS if name in table and table[name].dtype.kind == "f"]
    finite = {name: table[name].where(np.isfinite(table[name])) for name in names}
    errors = table.assign(**finite)
    errors.attrs = table.attrs
    return errors


def layer_bytes(table: geopandas.GeoDataFrame, driver: str, form: str, **options: Any) -> bytes:
    """Content of a file in a format of GDAL; GDAL itself does not always report a full disk.

    Infinite relative errors have no value: JSON has no infinity, and databases sort it variously.
    By Arrow, dates and bytes keep their type.
    """
    content = io.BytesIO()
    table = held_columns(finite_errors(table), form)
    table.to_file(content, driver=driver, engine="pyogrio", use_arrow=True, **options)
    return content.getvalue()
