"""What a caller may give as polygons: tables, geometries, GeoJSON and WKT, and their CRS.

Text and nested lists come from anybody, so their size and depth are judged before a parser or
GEOS sees them; a CRS is said by the caller or by the format, and never guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd.errors import DomainError, ParameterError
from psd.space.crs import known_crs
from psd.space.region_checks import MAX_VERTICES

if TYPE_CHECKING:
    import geopandas

    from psd.space.domain import Domain

__all__ = ["MOST_TEXT", "is_region", "refuse_crs", "regions_table", "with_crs"]

MOST_TEXT = 50_000_000
"""Characters of text; more is a file for a GIS format."""

# MULTIPOLYGON(((x y, ...))) is as deep as polygons go.
_DEEPEST = 3

_GEOJSON_CRS = "EPSG:4326"

_EWKT = re.compile(r"\s*SRID\s*=\s*(\d{1,9})\s*;", re.IGNORECASE)
_NO_CRS = (
    "regions have no CRS; say it with crs= (--polygons-crs), such as release.domain.crs, or in "
    "their table; it is never guessed"
)


def is_region(regions: Any) -> bool:
    """Whether regions are polygons, or what is meant for them, rather than boxes."""
    if isinstance(regions, list | tuple | np.ndarray):
        some = next((region for region in regions if region is not None), None)
        return some is not None and _is_one(some)
    return _is_one(regions)


def _is_one(region: Any) -> bool:
    """Whether this is a region by itself."""
    # A table would write out all its shapes to say whether it has this interface.
    named = isinstance(region, str | Mapping) or hasattr(region, "geom_type")
    return named or hasattr(region, "__geo_interface__")


def refuse_crs(crs: Any, domain: Domain) -> None:
    """Boxes are in the CRS of the release; refuse another one."""
    if crs is None:
        return
    if not _agreed([crs], None).equals(domain.crs, ignore_axis_order=True):
        raise DomainError(
            f"crs is for polygons; boxes are in the CRS of the release, {domain.crs}, where their "
            "sides are straight"
        )


def with_crs(regions: Any, crs: Any, domain: Domain) -> Any:
    """The same regions, polygons with their CRS; see `regions_table` for what is refused."""
    if not is_region(regions):
        refuse_crs(crs, domain)
        return regions
    shapes = regions_table(regions, crs)
    return regions.set_geometry(shapes) if hasattr(regions, "columns") else shapes


def regions_table(regions: Any, crs: Any = None) -> geopandas.GeoSeries:
    """Geometries with their CRS, in their order.

    Parameters
    ----------
    regions : GeoDataFrame, GeoSeries, region or sequence of regions
        A region is a shapely geometry, an object with ``__geo_interface__``, GeoJSON as text
        or as a mapping (a geometry, Feature or FeatureCollection), WKT or EWKT.
    crs : any CRS that pyproj understands, optional
        Of what carries none.

    Returns
    -------
    GeoSeries

    Raises
    ------
    ParameterError
        If text is too large, too deep, or neither WKT nor GeoJSON, or a ring is no ring.
    DomainError
        If the CRS is missing, unknown, or said twice and differently.
    """
    import geopandas as gpd

    if isinstance(regions, gpd.GeoDataFrame | gpd.GeoSeries):
        shapes = regions.geometry
        agreed = _agreed([shapes.crs], crs)
        return shapes if shapes.crs is not None else shapes.set_crs(agreed)
    given = regions if isinstance(regions, list | tuple | np.ndarray) else [regions]
    # A caller who says the CRS of GeoJSON knows it better than the format's default does.
    default = _GEOJSON_CRS if crs is None else None
    read = [one for place, region in enumerate(given, 1) for one in _read(place, region, default)]
    shapes = np.empty(len(read), object)
    shapes[:] = [shape for shape, _ in read]
    own = [own for shape, own in read if shape is not None] if read else [_GEOJSON_CRS]
    return gpd.GeoSeries(shapes, crs=_agreed(own, crs))


def _agreed(own: list[Any], said: Any) -> Any:
    """The one CRS of all regions, from what they carry and from what the caller says."""
    found: list[Any] = []
    for crs in [said, *own]:
        if crs is None or any(crs is known for known, _ in found):
            continue
        found.append((crs, known_crs(crs)))
    if not found or (said is None and any(crs is None for crs in own)):
        raise DomainError(_NO_CRS)
    for _, other in found[1:]:
        if not other.equals(found[0][1], ignore_axis_order=True):
            raise DomainError(
                f"regions are in {found[0][1].name} and in {other.name}; give one CRS at a time"
            )
    return found[0][1]


def _read(number: int, region: Any, default: str | None) -> list[tuple[Any, Any]]:
    """Geometries of one region, a collection of features being several, and their CRS.

    The default is the CRS of GeoJSON that says none.
    """
    if isinstance(region, str):
        if len(region) > MOST_TEXT:
            raise ParameterError(
                f"region {number} is a text of {len(region):,} characters, above {MOST_TEXT:,}; "
                "simplify it, or give a file of a GIS format"
            )
        if region.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
            return _geojson(number, _parsed(number, region), default)
        return [_wkt(number, region)]
    if isinstance(region, Mapping):
        return _geojson(number, region, default)
    if region is None or hasattr(region, "geom_type"):
        srid = 0 if region is None else _srid(region)
        return [(region, f"EPSG:{srid}" if srid else None)]
    if not hasattr(region, "__geo_interface__"):
        raise ParameterError(f"region {number} is neither a polygon nor GeoJSON nor WKT")
    return _geojson(number, region.__geo_interface__, None)


def _srid(shape: Any) -> int:
    """SRID that a geometry carries, 0 if none."""
    import shapely

    return int(shapely.get_srid(shape))


def _wkt(number: int, text: str) -> tuple[Any, Any]:
    """Geometry of WKT or EWKT, once it is known not to be too deep for the parser."""
    import shapely

    srid = _EWKT.match(text)
    body = text[srid.end() :] if srid else text
    marks = np.frombuffer(body.encode("utf-8", "replace"), np.uint8)
    steps = (marks == ord("(")).astype(np.int32) - (marks == ord(")"))
    depth = int(np.cumsum(steps).max(initial=0))
    if depth > _DEEPEST:
        raise ParameterError(
            f"region {number} is WKT with brackets {depth:,} deep; polygons need {_DEEPEST}"
        )
    vertices = int((marks == ord(",")).sum()) + 1
    if vertices > MAX_VERTICES:
        raise ParameterError(
            f"region {number} is WKT of {vertices:,} vertices, above {MAX_VERTICES:,}; simplify "
            "it, or divide it"
        )
    try:
        with np.errstate(all="ignore"):
            shape = shapely.from_wkt(body)
    except (shapely.errors.ShapelyError, UnicodeError, NotImplementedError) as error:
        reason = re.sub(r"^\w+Exception: ", "", str(error))[:120]
        raise ParameterError(
            f"region {number} is neither GeoJSON nor WKT that can be read ({reason}); a file is "
            "read with geopandas.read_file"
        ) from None
    return shape, f"EPSG:{srid[1]}" if srid else None


def _parsed(number: int, text: str) -> Any:
    """JSON of a text."""
    try:
        return json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)[:80]
        raise ParameterError(f"region {number} is no GeoJSON that can be read ({reason})") from None


def _geojson(number: int, value: Any, crs: Any) -> list[tuple[Any, Any]]:
    """Geometries of a GeoJSON value and their CRS."""
    if not isinstance(value, Mapping):
        raise ParameterError(f"region {number} is no GeoJSON object")
    if value.get("crs") is not None:
        crs = _named_crs(number, value["crs"])
    if value.get("type") == "FeatureCollection":
        features = value.get("features")
        if not isinstance(features, list | tuple):
            raise ParameterError(f"region {number} is a FeatureCollection without features")
        return [(_feature(number + place, one), crs) for place, one in enumerate(features)]
    return [(_feature(number, value), crs)]


def _named_crs(number: int, member: Any) -> str:
    """CRS of the "crs" member of GeoJSON before RFC 7946."""
    properties = member.get("properties") if isinstance(member, Mapping) else None
    name = properties.get("name") if isinstance(properties, Mapping) else None
    if not isinstance(name, str):
        raise DomainError(f'region {number} has a "crs" member without a name')
    return name


def _feature(number: int, value: Any) -> Any:
    """Geometry of a GeoJSON Feature or geometry, None where it is null."""
    if isinstance(value, Mapping) and value.get("type") == "Feature":
        value = value.get("geometry")
    if value is None:
        return None
    kind = value.get("type") if isinstance(value, Mapping) else None
    if kind not in ("Polygon", "MultiPolygon"):
        named = str(kind)[:40] if kind else "no GeoJSON geometry"
        raise ParameterError(f"region {number} is {named}; queries take polygons")
    return _polygons(number, value.get("coordinates"), several=kind == "MultiPolygon")


def _polygons(number: int, coordinates: Any, *, several: bool) -> Any:
    """Polygon or multi-polygon of nested lists."""
    import shapely

    parts = coordinates if several else [coordinates]
    if not isinstance(parts, list | tuple):
        raise ParameterError(f"region {number} has coordinates that are no lists")
    made = [_polygon(number, rings) for rings in parts]
    return shapely.multipolygons(made) if several else made[0]


def _polygon(number: int, rings: Any) -> Any:
    """Polygon of a list of rings."""
    import shapely

    if not isinstance(rings, list | tuple):
        raise ParameterError(f"region {number} has coordinates that are no lists")
    shell, *holes = [_ring(number, ring) for ring in rings] or [None]
    return shapely.polygons(shell, holes or None) if shell is not None else shapely.Polygon()


def _ring(number: int, ring: Any) -> Any:
    """Closed ring of a list of places; heights are left out."""
    import shapely

    places = _places(ring)
    if places is None:
        raise ParameterError(f"region {number} has a ring that is no list of places x, y")
    if not np.isfinite(places).all():
        raise ParameterError(f"region {number} has a coordinate that is not a finite number")
    if len(places) < 4 or (places[0] != places[-1]).any():
        raise ParameterError(
            f"region {number} has a ring of {len(places)} places that is not closed; the last "
            "place has to be the first, and rings have four or more"
        )
    return shapely.linearrings(places)


def _places(ring: Any) -> NDArray[np.float64] | None:
    """Places x, y of a ring, or None if they are none."""
    try:
        places = np.asarray(ring, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return places[:, :2] if places.ndim == 2 and places.shape[1] >= 2 else None
