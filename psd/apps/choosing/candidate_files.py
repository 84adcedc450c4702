"""Candidates of a choice in public files: points with a radius, or polygons."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psd.apps.choosing.candidate_areas import CandidateAreas
from psd.errors import DomainError, InputDataError, ParameterError
from psd.regions.files import read_table
from psd.space.regions import regions_table
from psd.space.shape_transforms import transform_table

if TYPE_CHECKING:
    import pandas

__all__ = ["read_catchments"]

_PAIRS = (("lon", "lat"), ("longitude", "latitude"), ("x", "y"), ("easting", "northing"))

_WHAT = "candidates"


def read_catchments(
    path: Path, *, radius: float | None = None, crs: str = "EPSG:4326", ids: str = "id"
) -> CandidateAreas:
    """Read candidates from a public file: points with a radius in metres, or polygons."""
    table = read_table(path, _WHAT)
    if ids not in table.columns:
        raise InputDataError(f"{_WHAT} {path} has no column {ids}, which names each candidate")
    if table[ids].isna().any():
        raise ParameterError(f"{_WHAT} must have an id each, got an empty one")
    names = [str(name).strip() for name in table[ids]]
    # A CSV has two columns of coordinates or a column wkt, in the CRS. A vector format states its
    # own CRS and is transformed.
    points = None if hasattr(table, "geometry") else _coordinates(path, table)
    if points is not None:
        return CandidateAreas.around(names, points, _radius(radius), crs)
    shapes = _shapes(path, table, crs)
    return _of_shapes(names, shapes, radius, crs)


def _of_shapes(names: list[str], shapes: Any, radius: float | None, crs: str) -> CandidateAreas:
    """Candidates from geometries, all of them points or all of them polygons."""
    import shapely

    if len(shapes) and (shapely.get_type_id(shapes) == shapely.GeometryType.POINT).all():
        points = np.stack([shapely.get_x(shapes), shapely.get_y(shapes)], axis=1)
        return CandidateAreas.around(names, points, _radius(radius), crs)
    if radius is not None:
        raise ParameterError("radius must be left out for candidates that are polygons")
    return CandidateAreas(ids=tuple(names), crs=crs, polygons=shapes)


def _radius(radius: float | None) -> float:
    """Radius of points, which must be given."""
    if radius is None:
        raise ParameterError(
            "radius must be given for candidates that are points; it is in metres, such as 2000"
        )
    return radius


def _coordinates(path: Path, table: pandas.DataFrame) -> Any:
    """Numbers in the columns of coordinates; None for a table with WKT."""
    import pandas as pd

    spelled = {str(name).strip().lower(): name for name in table.columns}
    if "wkt" in spelled:
        return None
    pair = next((pair for pair in _PAIRS if set(pair) <= set(spelled)), None)
    if pair is None:
        raise InputDataError(
            f"{_WHAT} {path} has no columns lon and lat, nor a column wkt; name its columns so"
        )
    columns = [
        pd.to_numeric(table[spelled[name]].astype(str).str.strip(), errors="coerce")
        for name in pair
    ]
    points = np.stack([column.to_numpy(np.float64) for column in columns], axis=1)
    odd = ~np.isfinite(points).all(axis=1)
    if odd.any():
        line = int(odd.argmax()) + 2
        raise InputDataError(f"{_WHAT} {path} line {line}: a coordinate is not a number")
    return points


def _shapes(path: Path, table: Any, crs: str) -> Any:
    """Geometries in a CRS."""
    if not hasattr(table, "geometry"):
        column = next(name for name in table.columns if str(name).strip().lower() == "wkt")
        return _parsed(path, list(table[column]), crs)
    if table.crs is None:
        raise DomainError(
            f"{_WHAT} {path} has no CRS; write it into the file, since it is never guessed"
        )
    return np.asarray(transform_table(table, crs, f"{_WHAT} {path}").geometry.array)


def _parsed(path: Path, texts: list[Any], crs: str) -> Any:
    """Geometries of texts, one each."""
    try:
        shapes = regions_table(texts, crs).array
    except ParameterError:
        shapes = []
    if len(shapes) != len(texts):
        faults = ((line, _fault(text, crs)) for line, text in enumerate(texts, 2))
        line, fault = next((line, fault) for line, fault in faults if fault)
        raise InputDataError(
            f"{_WHAT} {path} line {line}: its wkt cannot be read as one geometry ({fault})"
        )
    return np.asarray(shapes)


def _fault(text: Any, crs: str) -> str:
    """Why a text is not one geometry; nothing if it is one."""
    try:
        return "" if len(regions_table([text], crs)) == 1 else "it has several"
    except ParameterError as error:
        return str(error).removeprefix("region 1 ")
