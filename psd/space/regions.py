"""Parse regions: tables, geometries, GeoJSON and WKT, and their CRS.

Text and nested lists are untrusted, so their size and depth are checked before a parser or GEOS
reads them. The CRS comes from the caller or the format and is never guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd.errors import DomainError, ParameterError
from psd.space.crs import parse_crs
from psd.space.region_checks import MAX_VERTICES

if TYPE_CHECKING:
    import geopandas

    from psd.space.domain import Domain

__all__ = ["MAX_TEXT", "check_box_crs", "is_region", "regions_table"]

MAX_TEXT = 50_000_000
"""Limit of the characters of a text; larger regions belong in a GIS file."""

# MULTIPOLYGON(((x y, ...))) is the deepest nesting of polygons.
_MAX_DEPTH = 3

_GEOJSON_CRS = "EPSG:4326"

_EWKT = re.compile(r"\s*SRID\s*=\s*(\d{1,9})\s*;", re.IGNORECASE)
_NO_CRS = (
    "regions have no CRS; pass crs=, such as release.domain.crs, or set it in their table, since "
    "it is never guessed"
)


def is_region(regions: Any) -> bool:
    """Whether regions are meant as polygons, not boxes."""
    if isinstance(regions, list | tuple | np.ndarray):
        first = next((region for region in regions if region is not None), None)
        return first is not None and _is_single(first)
    return _is_single(regions)


def _is_single(region: Any) -> bool:
    """Whether a value is one region."""
    # For a table, hasattr of this interface would convert all its shapes.
    named = isinstance(region, str | Mapping) or hasattr(region, "geom_type")
    return named or hasattr(region, "__geo_interface__")


def check_box_crs(crs: Any, domain: Domain) -> None:
    """Refuse a CRS of boxes other than that of the release."""
    if crs is None:
        return
    if not _common_crs([crs], None).equals(domain.crs, ignore_axis_order=True):
        raise DomainError(
            f"crs of boxes must be that of the release, {domain.crs}; for another CRS give polygons"
        )


def regions_table(regions: Any, crs: Any = None) -> geopandas.GeoSeries:
    """Parse regions to geometries with their CRS, in their order.

    A region is a shapely geometry, an object with ``__geo_interface__``, GeoJSON as text or as a
    mapping (a geometry, Feature or FeatureCollection), WKT or EWKT. `crs` is that of regions that
    state none; another one than they state is refused.
    """
    import geopandas as gpd

    if isinstance(regions, gpd.GeoDataFrame | gpd.GeoSeries):
        shapes = regions.geometry
        common = _common_crs([shapes.crs], crs)
        return shapes if shapes.crs is not None else shapes.set_crs(common)
    sequence = regions if isinstance(regions, list | tuple | np.ndarray) else [regions]
    # A CRS of the caller takes precedence over the default of GeoJSON.
    default = _GEOJSON_CRS if crs is None else None
    pairs = [
        pair
        for number, region in enumerate(sequence, 1)
        for pair in _parse_region(number, region, default)
    ]
    shapes = np.empty(len(pairs), object)
    shapes[:] = [shape for shape, _ in pairs]
    stated = [crs for shape, crs in pairs if shape is not None] if pairs else [_GEOJSON_CRS]
    return gpd.GeoSeries(shapes, crs=_common_crs(stated, crs))


def _common_crs(stated: list[Any], argument: Any) -> Any:
    """The CRS of all regions, from what they state and from the argument of the caller."""
    parsed: list[Any] = []
    for crs in [argument, *stated]:
        if crs is None or any(crs is earlier for earlier, _ in parsed):
            continue
        parsed.append((crs, parse_crs(crs)))
    if not parsed or (argument is None and any(crs is None for crs in stated)):
        raise DomainError(_NO_CRS)
    for _, other in parsed[1:]:
        if not other.equals(parsed[0][1], ignore_axis_order=True):
            raise DomainError(
                f"regions must have one CRS, got {parsed[0][1].name} and {other.name}"
            )
    return parsed[0][1]


def _parse_region(number: int, region: Any, default: str | None) -> list[tuple[Any, Any]]:
    """Geometries of a region, several for a collection of features, each with its CRS.

    The default is the CRS of GeoJSON that states none.
    """
    if isinstance(region, str):
        if len(region) > MAX_TEXT:
            raise ParameterError(
                f"region {number} must have at most {MAX_TEXT:,} characters, got {len(region):,}; "
                "simplify it, or read it from a GIS file"
            )
        if region.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
            return _geojson(number, _parse_json(number, region), default)
        return [_wkt(number, region)]
    if isinstance(region, Mapping):
        return _geojson(number, region, default)
    if region is None or hasattr(region, "geom_type"):
        srid = 0 if region is None else _srid(region)
        return [(region, f"EPSG:{srid}" if srid else None)]
    if not hasattr(region, "__geo_interface__"):
        raise ParameterError(
            f"region {number} must be a polygon, GeoJSON or WKT, got a {type(region).__name__}"
        )
    return _geojson(number, region.__geo_interface__, None)


def _srid(shape: Any) -> int:
    """SRID of a geometry, 0 if it has none."""
    import shapely

    return int(shapely.get_srid(shape))


def _wkt(number: int, text: str) -> tuple[Any, Any]:
    """Parse WKT or EWKT, after a check of its depth."""
    import shapely

    srid = _EWKT.match(text)
    body = text[srid.end() :] if srid else text
    characters = np.frombuffer(body.encode("utf-8", "replace"), np.uint8)
    steps = (characters == ord("(")).astype(np.int32) - (characters == ord(")"))
    depth = int(np.cumsum(steps).max(initial=0))
    if depth > _MAX_DEPTH:
        raise ParameterError(
            f"region {number} must have brackets at most {_MAX_DEPTH} deep, got {depth:,}"
        )
    vertices = int((characters == ord(",")).sum()) + 1
    if vertices > MAX_VERTICES:
        raise ParameterError(
            f"region {number} must have at most {MAX_VERTICES:,} vertices, got {vertices:,}; "
            "simplify it, or divide it"
        )
    try:
        with np.errstate(all="ignore"):
            shape = shapely.from_wkt(body)
    except (shapely.errors.ShapelyError, UnicodeError, NotImplementedError) as error:
        reason = re.sub(r"^\w+Exception: ", "", str(error))[:120]
        raise ParameterError(
            f"region {number} cannot be read as GeoJSON or WKT ({reason}); a file is named by a "
            "path that exists"
        ) from None
    return shape, f"EPSG:{srid[1]}" if srid else None


def _parse_json(number: int, text: str) -> Any:
    """Parse the JSON of a region."""
    try:
        return json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)[:80]
        raise ParameterError(f"region {number} cannot be read as GeoJSON ({reason})") from None


def _geojson(number: int, value: Any, crs: Any) -> list[tuple[Any, Any]]:
    """Geometries of a GeoJSON value and their CRS."""
    if not isinstance(value, Mapping):
        raise ParameterError(f"region {number} must be a GeoJSON object")
    if value.get("crs") is not None:
        crs = _named_crs(number, value["crs"])
    if value.get("type") == "FeatureCollection":
        features = value.get("features")
        if not isinstance(features, list | tuple):
            raise ParameterError(f"region {number} must have features in its collection")
        return [(_feature(number + index, item), crs) for index, item in enumerate(features)]
    return [(_feature(number, value), crs)]


def _named_crs(number: int, member: Any) -> str:
    """Read the "crs" member of GeoJSON before RFC 7946."""
    properties = member.get("properties") if isinstance(member, Mapping) else None
    name = properties.get("name") if isinstance(properties, Mapping) else None
    if not isinstance(name, str):
        raise DomainError(f'region {number} must have a name in its "crs" member')
    return name


def _feature(number: int, value: Any) -> Any:
    """Geometry of a GeoJSON Feature or geometry, None if it is null."""
    if isinstance(value, Mapping) and value.get("type") == "Feature":
        value = value.get("geometry")
    if value is None:
        return None
    kind = value.get("type") if isinstance(value, Mapping) else None
    if kind not in ("Polygon", "MultiPolygon"):
        label = str(kind)[:40] if kind else "another object"
        raise ParameterError(f"region {number} must be a polygon, got {label}")
    return _polygons(number, value.get("coordinates"), several=kind == "MultiPolygon")


def _polygons(number: int, coordinates: Any, *, several: bool) -> Any:
    """Make a polygon or multi-polygon of nested lists."""
    import shapely

    parts = coordinates if several else [coordinates]
    if not isinstance(parts, list | tuple):
        raise ParameterError(f"region {number} must have lists as coordinates")
    polygons = [_polygon(number, rings) for rings in parts]
    return shapely.MultiPolygon(polygons) if several else polygons[0]


def _polygon(number: int, rings: Any) -> Any:
    """Make a polygon of a list of rings."""
    import shapely

    if not isinstance(rings, list | tuple):
        raise ParameterError(f"region {number} must have lists as coordinates")
    shell, *holes = [_ring(number, ring) for ring in rings] or [None]
    return shapely.polygons(shell, holes or None) if shell is not None else shapely.Polygon()


def _ring(number: int, ring: Any) -> Any:
    """Make a closed ring of a list of vertices; heights are ignored."""
    import shapely

    vertices = _vertices(ring)
    if vertices is None:
        raise ParameterError(f"region {number} must have rings that are lists of vertices x, y")
    if not np.isfinite(vertices).all():
        raise ParameterError(f"region {number} must have finite coordinates")
    if len(vertices) < 4 or (vertices[0] != vertices[-1]).any():
        raise ParameterError(
            f"region {number} must have closed rings of four or more vertices, the last equal to "
            f"the first; got a ring of {len(vertices)}"
        )
    return shapely.linearrings(vertices)


def _vertices(ring: Any) -> NDArray[np.float64] | None:
    """Vertices x, y of a ring, or None if they cannot be read."""
    try:
        vertices = np.asarray(ring, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return vertices[:, :2] if vertices.ndim == 2 and vertices.shape[1] >= 2 else None
