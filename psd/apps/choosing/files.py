"""Public files of a choice: candidates, tariffs and regions."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psd.apps.choosing.candidate_areas import CandidateAreas
from psd.apps.choosing.price_list import parse_price
from psd.errors import DomainError, InputDataError, ParameterError
from psd.publish.area import bounds_from_file
from psd.regions.files import read_polygons, read_table
from psd.regions.hierarchy import RegionHierarchy
from psd.regions.inputs import RegionFiles
from psd.space.domain import Domain
from psd.space.regions import regions_table
from psd.space.shape_transforms import transform_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas


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
    if points is None:
        import shapely

        shapes = _shapes(path, table, crs)
        if not len(shapes) or (shapely.get_type_id(shapes) != shapely.GeometryType.POINT).any():
            if radius is not None:
                raise ParameterError("radius must be left out for candidates that are polygons")
            return CandidateAreas(ids=tuple(names), crs=crs, polygons=shapes)
        points = np.stack([shapely.get_x(shapes), shapely.get_y(shapes)], axis=1)
    if radius is None:
        raise ParameterError(
            "radius must be given for candidates that are points; it is in metres, such as 2000"
        )
    return CandidateAreas.around(names, points, radius, crs)


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
    is_finite = np.isfinite(points).all(axis=1)
    if not is_finite.all():
        line = int((~is_finite).argmax()) + 2
        raise InputDataError(f"{_WHAT} {path} line {line}: a coordinate is not a number")
    return points


def _shapes(path: Path, table: Any, crs: str) -> Any:
    """Geometries in a CRS."""
    if not hasattr(table, "geometry"):
        column = next(name for name in table.columns if str(name).strip().lower() == "wkt")
        texts = list(table[column])
        try:
            shapes = regions_table(texts, crs).array
        except ParameterError:
            shapes = []
        # Only a file with a fault is read text by text, up to the first that has it.
        for line, text in enumerate(texts if len(shapes) != len(texts) else [], 2):
            try:
                fault = "" if len(regions_table([text], crs)) == 1 else "it has several"
            except ParameterError as error:
                fault = str(error).removeprefix("region 1 ")
            if fault:
                raise InputDataError(
                    f"{_WHAT} {path} line {line}: its wkt cannot be read as one geometry ({fault})"
                )
        return np.asarray(shapes)
    if table.crs is None:
        raise DomainError(
            f"{_WHAT} {path} has no CRS; write it into the file, since it is never guessed"
        )
    return np.asarray(transform_table(table, crs, f"{_WHAT} {path}").geometry.array)


_ID = "tariff"
_PRICE = "price"


def read_tariffs(
    path: Path, regions: Sequence[str] | None = None
) -> tuple[tuple[str, ...], tuple[tuple[Decimal, ...], ...]]:
    """Read the names of tariffs, and their prices in the order of the regions, if there are any."""
    table = read_table(path, "tariffs")
    if _ID not in table.columns:
        raise InputDataError(f"tariffs {path} has no column {_ID}, which names each of them")
    columns = [_PRICE] if regions is None else [*regions]
    others = [str(name) for name in table.columns if name != _ID]
    missing = [name for name in columns if name not in others]
    surplus = [name for name in others if name not in columns]
    if missing or surplus:
        kind = "one column price" if regions is None else "one column for each region"
        other = "is another column" if regions is None else "is not a region"
        what = f"none for {missing[0][:80]!r}" if missing else f"{surplus[0][:80]!r}, which {other}"
        raise ParameterError(f"tariffs must have {kind}, got {what}; the list must cover all")
    ids = tuple(str(name).strip() for name in table[_ID])
    texts = zip(*(table[name] for name in columns), strict=True)
    rows = []
    for line, row in enumerate(texts, 2):
        try:
            prices = tuple(parse_price(str(text)) for text in row)
        except ParameterError:
            prices = (Decimal(0),)
        if 0 in prices:
            raise InputDataError(
                f"tariffs {path} line {line}: a price must be a number above 0, of at most 12 "
                "decimals"
            )
        rows.append(prices)
    return ids, tuple(rows)


def read_public_regions(
    path: str,
    *,
    crs: str = "EPSG:4326",
    bounds: tuple[float, float, float, float] | None = None,
    ids: str = "id",
) -> RegionHierarchy:
    """Read polygons of one level; records in none of them, or beyond the bounds, do not count."""
    if bounds is None:
        bounds = bounds_from_file(path, crs)
    domain = Domain(bounds=bounds, crs=crs, min_cell=None)
    return RegionFiles(paths=(path,), ids=(ids,), gaps="outside").read(domain)


def read_order(
    path: str, column: str, regions: RegionHierarchy, *, ids: str = "id"
) -> tuple[int, ...]:
    """Numbers of the regions in ascending order of a column of numbers, such as a distance."""
    table = read_polygons(Path(path), "regions")
    if column not in table.columns:
        raise InputDataError(f"regions {path} has no column {column}; name one with order=")
    number_of = {str(name): value for name, value in zip(table[ids], table[column], strict=True)}
    numbers = []
    for name in regions.levels[-1].ids:
        try:
            numbers.append(float(str(number_of.get(name))))
        except ValueError:
            numbers.append(np.nan)
        if not np.isfinite(numbers[-1]):
            raise ParameterError(
                f"order must be a column with a number for each region, got none for {name[:80]!r}"
            )
    values = np.array(numbers)
    ascending = np.argsort(values, kind="stable")
    if (np.diff(values[ascending]) == 0).any():
        raise ParameterError(
            f"order must be a column without ties, got two regions with one number in {column!r}"
        )
    return tuple(ascending.tolist())
