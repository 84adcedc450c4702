"""The CRS of a request that names none: what the caller's objects state, never what they hold.

1. Bounds of numbers that are degrees are degrees: of the CRS of the points if that has degrees,
   else of EPSG:4326.
2. Other numbers are in the CRS in metres that is stated: by the points, or by polygons given as
   bounds, regions or boundary. Of two such CRS none is chosen.
3. The release has the CRS that the points state. Points in columns named as longitude and latitude,
   and in files, are in EPSG:4326; those in other columns of a table are in the CRS of the numbers,
   or in one that must be given if polygons are in metres.

Names of columns and the CRS are public, and no coordinate is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from psd.errors import DomainError, ParameterError
from psd.ingest.columns import coordinate_names, unit_of_names
from psd.ingest.id_columns import header_in_memory
from psd.ingest.input_paths import is_path
from psd.ingest.sources import Columns
from psd.publish.bounds_text import bounds_from_text
from psd.regions.hierarchy import RegionHierarchy
from psd.space.bounds import check_degrees
from psd.space.crs import check_plane_crs

__all__ = ["with_stated_crs"]

_DEGREES = "EPSG:4326"
_STATED = ("crs", "domain", "input_crs", "wkt")


def with_stated_crs(values: Mapping[str, Any], data: Any = None) -> dict[str, Any]:
    """Arguments with ``crs``, and ``bounds_crs``, where objects state them; see above.

    Of `data`, points, the CRS and the names of their columns are public; without them polygons
    alone state a CRS. Where two readings are possible, the arguments are refused.
    """
    found = dict(values)
    bounds = found.get("bounds")
    if bounds is not None and hasattr(bounds, "geom_type") and not hasattr(bounds, "geometry"):
        if bounds.geom_type not in ("Polygon", "MultiPolygon"):
            raise ParameterError(f"bounds must be a polygon, got a {bounds.geom_type}")
        found["bounds"] = bounds = tuple(bounds.bounds)
    has_domain = isinstance(found.get("regions"), RegionHierarchy)
    if has_domain or any(found.get(name) is not None for name in _STATED):
        return found
    items = data if isinstance(data, list | tuple) else [] if data is None else [data]
    stated = [_crs_of(_geometries(item, found.get("geometry"))) for item in items]
    points = stated[0] if stated and len({*stated}) == 1 else None
    publics = [bounds, *_tables(found.get("regions")), found.get("boundary")]
    polygons = dict.fromkeys(crs for crs in map(_crs_of, publics) if crs is not None)
    metric = [crs for crs in polygons if not check_plane_crs(crs)[1]]
    numbers = _numbers(bounds)
    if numbers is not None and _are_degrees(numbers):
        if points is not None and check_plane_crs(points)[1]:
            found["crs"] = points
        return found
    if numbers is not None and found.get("bounds_crs") is None:
        of_points = [] if points is None or check_plane_crs(points)[1] else [points]
        named = list(dict.fromkeys([*of_points, *metric]))
        if len(named) > 1:
            raise ParameterError(
                f"bounds_crs must be given with bounds of numbers, which may be in {named[0][:80]} "
                f"or in {named[1][:80]}; or give the polygons themselves as bounds"
            )
        if named and (points is not None or not _are_columns_of_degrees(items, found)):
            found["crs"] = named[0] if points is None else points
        if named and named[0] != found.get("crs"):
            found["bounds_crs"] = named[0]
    elif points is not None:
        found["crs"] = points
    elif data is None and len(polygons) == 1:
        found["crs"] = next(iter(polygons))
    elif metric and not _are_columns_of_degrees(items, found):
        if len(polygons) == 1 and {_unit_of(item, found) for item in items} == {"metres"}:
            found["crs"] = metric[0]
            return found
        raise ParameterError(
            f"crs must be given, since the points state none and polygons are in {metric[0][:80]}; "
            f'write crs="{metric[0][:80]}" if the points are in it, or crs="{_DEGREES}" if they '
            "are longitudes and latitudes"
        )
    return found


def _crs_of(item: Any) -> str | None:
    """CRS that a table or a series with geometries states; None of others."""
    crs = getattr(item, "crs", None) if hasattr(item, "to_crs") else None
    if crs is None:
        return None
    try:
        text, is_geographic = check_plane_crs(crs)
    except DomainError:  # whoever reads the geometries says so
        return None
    if is_geographic and crs.equals(_DEGREES, ignore_axis_order=True):
        return _DEGREES
    return text


def _geometries(item: Any, column: Any) -> Any:
    """The column of points that is named, of a table that has it; else the table."""
    return item[column] if column in getattr(item, "columns", ()) else item


def _tables(regions: Any) -> list[Any]:
    """Tables of regions."""
    return list(regions) if isinstance(regions, list | tuple) else [regions]


def _numbers(bounds: Any) -> tuple[float, ...] | None:
    """Four numbers of a text or a sequence; None of other bounds."""
    if isinstance(bounds, str):
        return bounds_from_text(bounds)
    if bounds is None or is_path(bounds) or hasattr(bounds, "geometry"):
        return None
    try:
        numbers = tuple(map(float, bounds))
    except (TypeError, ValueError):
        return None
    return numbers if len(numbers) == 4 else None


def _are_degrees(numbers: tuple[float, ...]) -> bool:
    """Whether bounds lie within 180 and 90 degrees."""
    try:
        check_degrees(numbers)  # type: ignore[arg-type]
    except DomainError:
        return False
    return True


def _are_columns_of_degrees(items: Any, values: Mapping[str, Any]) -> bool:
    """Whether points are in columns that are named as degrees, or in files or databases."""
    return all(_unit_of(item, values) == "degrees" for item in items)


def _unit_of(item: Any, values: Mapping[str, Any]) -> str | None:
    """Unit of the coordinates of a table by the names of its columns; None where these are open.

    What has geometries, or no names that are known here, keeps the default.
    """
    if isinstance(item, np.ndarray) and item.dtype.names is None:
        return None
    header = header_in_memory(item)
    stated = {name: values[name] for name in "xy" if values.get(name) is not None}
    pair = None if header.has_geometries else coordinate_names(Columns(**stated), header.names)
    return "degrees" if pair is None else unit_of_names(pair)
