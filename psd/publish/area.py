"""The area of a request: bounds of a text or a file, and the CRS that the caller's objects state.

Only names of columns and the CRS are read, which are public. Bounds in degrees are of the CRS of
the points if that has degrees, else of EPSG:4326. Other bounds are in the one CRS in metres that
the points state, or polygons given as bounds, regions or boundary. The release has the CRS of the
points: EPSG:4326 in files and in columns named as longitude and latitude, else that of the numbers,
or one that must be given if polygons are in metres.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from psd._util.file_endings import file_of
from psd.errors import DomainError, ParameterError
from psd.ingest.columns import coordinate_names, unit_of_names
from psd.ingest.id_columns import header_in_memory
from psd.ingest.input_paths import is_path
from psd.ingest.sources import Columns
from psd.regions.files import read_polygons
from psd.regions.hierarchy import RegionHierarchy
from psd.space.boundary import bounds_of
from psd.space.bounds import check_bounds, check_degrees, snap_outward
from psd.space.crs import (
    check_plane_crs,
    explain_proj_errors,
    half_turn,
    offline,
    parse_crs,
    prime_meridian,
)
from psd.space.shape_transforms import seam_longitude

__all__ = ["bounds_from_file", "with_stated_crs"]


_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+", re.ASCII)
_BOX = re.compile(rf"\[?\s*({_NUMBER}(?:(?:\s*,\s*|\s+){_NUMBER}){{3}})\s*\]?")

# Steps to which transformed sides are moved outward, in degrees and in units of other CRS. Versions
# of PROJ differ by less, so that a text has the same bounds everywhere.
_DEGREES, _UNITS = "0.000001", "1"

# Places along each side at which the inside of bounds is looked at, and the share of the sides by
# which it may lie beyond their transformed outline: that of longitudes at the seam is rounded.
_PROBES, _SLACK = 33, 1e-3

Bounds = tuple[float, float, float, float]


def bounds_from_text(text: str) -> Bounds | None:
    """Return the four numbers of a text, separated by commas; None if it has others."""
    match = _BOX.fullmatch(text.strip())
    if match is None:
        return None
    west, south, east, north = map(float, re.split(r"\s*,\s*|\s+", match[1]))
    return west, south, east, north


def bounds_from_file(path: str, crs: str) -> Bounds:
    """Bounds of the polygons in a public file, in the CRS of a release."""
    file = Path(file_of(path))
    if not (file.exists() or re.fullmatch(r"\.[A-Za-z]\w*", file.suffix)):
        comma = "; write a decimal point, as in 126.4" if _COMMA.fullmatch(path) else ""
        raise ParameterError(
            "bounds must be west, south, east and north, a file of polygons, area-of-use or "
            f"private, got {path[:80]!r}{comma}",
            name="bounds",
        )
    return bounds_from_polygons(read_polygons(Path(path), "bounds"), crs)


def bounds_from_polygons(polygons: Any, crs: str, name: str = "bounds") -> Bounds:
    """Bounds of public polygons of a table, or a series, in the CRS of a release."""
    bounds = bounds_of(polygons, crs, name)
    is_same = parse_crs(polygons.crs).equals(parse_crs(crs), ignore_axis_order=True)
    return bounds if is_same else _move_outward(bounds, crs)


def transform_bounds(bounds: Bounds, source: str, target: str) -> Bounds:
    """Transform bounds (west, south, east, north) to another CRS: a box around their outline."""
    from pyproj import Transformer

    source, is_degrees = check_plane_crs(source, "bounds_crs")
    is_same = parse_crs(source).equals(parse_crs(target), ignore_axis_order=True)
    if is_degrees and not is_same:
        # Longitudes 170 to 190, or -190 to -170, are 170 to -170.
        (west, south, east, north), half = bounds, half_turn(source)
        if west < half < east < west + 2 * half:
            bounds = west, south, east - 2 * half, north
        elif west < -half < east < west + 2 * half:
            bounds = west + 2 * half, south, east, north
    # Of degrees, west above east crosses longitude 180, if the way across it is the shorter one.
    is_across = is_degrees and not is_same and bounds[0] - bounds[2] > half_turn(source)
    half = half_turn(source) if is_degrees else math.inf
    turn = 2 * half if is_across else 0.0
    west, south, east, north = check_bounds((bounds[0], bounds[1], bounds[2] + turn, bounds[3]))
    bounds = (west, south, east - turn, north)
    if is_degrees:
        check_degrees(bounds, source)
        _check_uncut((west, east), source, target)
    elif not is_same and (base := parse_crs(source).geodetic_crs) is not None:
        with explain_proj_errors("the bounds", source), offline():
            degrees = Transformer.from_crs(parse_crs(source), base, always_xy=True)
            low, _, high, _ = _box_around(degrees, bounds, half_turn(base))
        # A pole inside has all longitudes.
        if math.isfinite(high - low):
            whole = 2 * half_turn(base)
            _check_uncut((low, high if low < high else high + whole), base, target)
    if is_same:
        return bounds
    with explain_proj_errors("the bounds", target), offline():
        transformer = Transformer.from_crs(parse_crs(source), parse_crs(target), always_xy=True)
        # Both sides of longitude 180 by themselves: of grads, PROJ takes them for the world.
        sides = [(west, min(east, half)), (-half, east - turn)][: 1 + is_across]
        turn_half = half_turn(target) if parse_crs(target).is_geographic else math.inf
        parts = [
            _box_around(transformer, (low, south, high, north), turn_half)
            for low, high in sides
            if low < high
        ]
        lows, highs = np.min(parts, axis=0).tolist(), np.max(parts, axis=0).tolist()
        moved: Bounds = (lows[0], lows[1], highs[2], highs[3])
        seam = seam_longitude(target)
        if is_degrees and seam is not None and east - west >= 2 * half:
            # The world: its outline passes the seam between two of the points.
            ends = np.array([seam - 360 + 1e-9, seam - 1e-9]) + _between_meridians(source, target)
            ends *= half / 180
            x, _ = transformer.transform(ends, np.full(2, np.clip(0, south, north)))
            if parse_crs(target).is_geographic:
                x = np.array([-1, 1]) * half_turn(target)
            moved = (min(moved[0], *x), moved[1], max(moved[2], *x), moved[3])
    # The sides of the result are those of the outline: not if a pole is inside that has no place.
    x, y = np.meshgrid(np.linspace(west, east, _PROBES), np.linspace(south, north, _PROBES))
    inside = np.column_stack(transformer.transform(x.ravel(), y.ravel()))
    slack = _SLACK * (np.array(moved[2:]) - moved[:2])
    beyond = (inside < moved[:2] - slack) | (inside > moved[2:] + slack)
    if not all(map(math.isfinite, moved)) or beyond[np.isfinite(inside)].any():
        raise DomainError(
            f"bounds {bounds} in {source} cannot be transformed to {target}; do they hold a pole, "
            "or lie where it is not used?",
            name="bounds",
            value=bounds,
        )
    # Sides lie beyond the outline, on whole units or millionths of a degree.
    return _move_outward(moved, target)


def _box_around(transformer: Any, bounds: Bounds, half: float) -> Bounds:
    """Box around the transformed outline, west above east across 180; `half` a turn or infinity."""
    along = np.linspace(0, 1, 10_001)
    x = bounds[0] + (bounds[2] - bounds[0]) * along
    y = bounds[1] + (bounds[3] - bounds[1]) * along
    sides = [(x, np.full_like(x, side)) for side in bounds[1::2]]
    sides += [(np.full_like(y, side), y) for side in bounds[::2]]
    outline = np.array(transformer.transform(*np.concatenate(sides, axis=1)))
    x, y = outline[:, np.isfinite(outline).all(axis=0)]
    west, south, east, north, turn = math.inf, math.inf, -math.inf, -math.inf, 0.0
    if math.isfinite(half):
        # PROJ finds poles and longitude 180. From 9.6.2 on it looks at a square of places, which
        # takes minutes if they are as many as those of the outline.
        west, south, east, north = transformer.transform_bounds(*bounds, densify_pts=99)
        turn = 2 * half if west > east else 0.0
        x = x - 2 * half * np.rint((x - (west + east + turn) / 2) / (2 * half))
        east += turn
    box = (x.min(initial=west), y.min(initial=south), x.max(initial=east), y.max(initial=north))
    return float(box[0]), float(box[1]), float(box[2] - turn), float(box[3])


def _between_meridians(source: Any, target: Any) -> float:
    """Degrees from the meridian at which longitudes of a CRS begin to that of another one."""
    return prime_meridian(target) - prime_meridian(source)


def _check_uncut(sides: tuple[float, float], source: Any, target: str) -> None:
    """Refuse longitudes on both sides of the meridian at which a CRS is cut; the world is whole."""
    seam = seam_longitude(target)
    west, east = (side * 180 / half_turn(source) for side in sides)
    if seam is None or east - west >= 360:
        return
    seam += _between_meridians(source, target)
    within = (seam - west) % 360
    if 1e-9 < within < east - west - 1e-9:
        raise DomainError(
            f"bounds must not cross longitude {180 - (180 - seam) % 360:g} in {target[:80]}, which "
            "is cut there; take another CRS, or split the domain in two",
            name="bounds",
        )


def _move_outward(bounds: Bounds, crs: str) -> Bounds:
    """Move sides outward to round numbers."""
    is_degrees = check_plane_crs(crs)[1]
    half = half_turn(crs) if is_degrees else math.inf
    step, limits = _DEGREES if is_degrees else _UNITS, (-half, -half / 2, half, half / 2)
    west, south, east, north = bounds
    return check_bounds(snap_outward((west, south, east, north), step, limits))


_LON_LAT = "EPSG:4326"
_STATED = ("crs", "domain", "input_crs", "wkt")


def with_stated_crs(values: Mapping[str, Any], data: Any = None) -> dict[str, Any]:
    """Arguments with ``crs``, and ``bounds_crs``, where objects state them; refused if ambiguous.

    Of `data`, points, the CRS and the names of their columns are public; without them polygons
    alone state a CRS.
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
    # Of a table with a column of points that is named, this column states the CRS.
    column = found.get("geometry")
    geometries = [
        item[column] if column in getattr(item, "columns", ()) else item for item in items
    ]
    stated = [_crs_of(item) for item in geometries]
    points = stated[0] if stated and len({*stated}) == 1 else None
    regions = found.get("regions")
    tables = regions if isinstance(regions, list | tuple) else [regions]
    publics = [bounds, *tables, found.get("boundary")]
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
            f'write crs="{metric[0][:80]}" if the points are in it, or crs="{_LON_LAT}" if they '
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
    if is_geographic and crs.equals(_LON_LAT, ignore_axis_order=True):
        return _LON_LAT
    return text


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
    """Unit of coordinates by names of columns; None, the default, if open or for geometries."""
    if isinstance(item, np.ndarray) and item.dtype.names is None:
        return None
    header = header_in_memory(item)
    stated = {name: values[name] for name in "xy" if values.get(name) is not None}
    pair = None if header.has_geometries else coordinate_names(Columns(**stated), header.names)
    return "degrees" if pair is None else unit_of_names(pair)
