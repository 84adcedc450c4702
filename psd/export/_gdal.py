"""Vector files of GDAL, written in memory first."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import geopandas

__all__ = ["finite_errors", "layer_bytes"]


def finite_errors(table: geopandas.GeoDataFrame) -> geopandas.GeoDataFrame:
    """Table without the infinite relative errors of estimates that are 0."""
    names = [name for name in table.columns if str(name).startswith("relative_")]
    finite = {
        name: table[name].where(np.isfinite(table[name]))
        for name in names
        if table[name].dtype.kind == "f"
    }
    errors = table.assign(**finite)
    errors.attrs = table.attrs
    return errors


def layer_bytes(table: geopandas.GeoDataFrame, driver: str, **options: Any) -> bytes:
    """Content of a file in a format of GDAL; GDAL itself does not always report a full disk.

    Infinite relative errors have no value: JSON has no infinity, and databases sort it variously.
    """
    content = io.BytesIO()
    table = finite_errors(table)
    table.to_file(content, driver=driver, engine="pyogrio", **options)
    return content.getvalue()
