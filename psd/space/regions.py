"""Regions of a caller: parsed from tables, geometries, GeoJSON and WKT, checked and reprojected.

Text and nested lists are untrusted: size and depth are checked before a parser reads them, polygons
by counting before GEOS, which some would take long. The CRS is never guessed. Outlines that cross
themselves can be repaired in ways that differ in area: nothing is repaired unless asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import sum_by
from psd.errors import DomainError, ParameterError
from psd.space.bounds import beyond_the_world, world_width
from psd.space.crs import beyond_world, explain_proj_errors, half_turn, parse_crs
from psd.space.shape_transforms import clip_shapes, metres_of, transform_shapes

if TYPE_CHECKING:
    import geopandas
    from pyproj import CRS

    from psd.space.domain import Domain

__all__ = ["regions_table", "to_release_crs"]


TOLERANCE = 2.0**-24
"""Part of the longer side of the domain within which reprojected lines keep their place."""

MAX_VERTICES = 500_000
"""Limit of the vertices of a polygon, also after its lines are divided."""

MAX_PAIRS = 100_000_000
"""Limit of pairs of sides above or beside each other; the time of GEOS grows with them."""

MAX_OUTLINE_LENGTHS = 1000
"""Limit of the length of an outline inside the domain, in widths or heights of it: queries visit
every cell that it passes."""

# A polygon of fewer vertices has fewer than `MAX_PAIRS` pairs of sides: n (n - 1) / 2.
_FEW_VERTICES = 14_000

_POLYGONS = (3, 6)

# Surroundings of a domain within which regions are reprojected, in sides of it: the widest that the
# world of its CRS has.
_REACHES = (1.0, 0.1, 0.01)

_ADVICE = "repair it first (psd query --repair, or shapely.make_valid)"


def region_text(index: int, names: Sequence[str] | None = None) -> str:
    """How a message names a region: by the caller's id, or by its number counted from 1."""
    return f"region {index + 1}" if names is None else f"region {names[index][:80]!r}"


def to_release_crs(
    shapes: geopandas.GeoSeries,
    domain: Domain,
    advice: str = _ADVICE,
    names: Sequence[str] | None = None,
) -> NDArray[np.object_]:
    """Check shapes and reproject them to the CRS of the domain, (n,); those far from it are empty.

    `advice` ends the message about a polygon that is not valid; `names`: the caller's ids, for it.
    P1. A polygon that is not valid is refused with the reason, not repaired.
    P2. A polygon that would take GEOS seconds is refused by its size first.
    Heights are ignored. Lines keep their place to `TOLERANCE` of the domain, and the result is
    checked again. Where the CRS of the domain is cut, at longitude 180 or elsewhere, a region is
    cut as well; where that of the region is cut and the other is not, its parts are joined.
    """
    import shapely

    original = np.asarray(shapes.array, dtype=object)
    _check(original, names, advice=advice)
    moved = reproject(shapes, domain)
    is_near = ~shapely.is_empty(moved)
    is_finite = ~is_near | np.isfinite(shapely.bounds(moved)).all(axis=1)
    if not is_finite.all():
        raise DomainError(
            f"{_first(~is_finite, names)} cannot be expressed in {domain.crs}; "
            + beyond_world(domain.crs)
            + ", or pass crs= if it is in another CRS"
        )
    _check(np.where(is_near, moved, original), names, " in the CRS of the release")
    # Refuse outlines that pass through too many cells.
    lengths = outline_lengths(moved, domain)
    is_long = lengths > MAX_OUTLINE_LENGTHS
    if is_long.any():
        raise ParameterError(
            f"{_first(is_long, names)} must have an outline of at most {MAX_OUTLINE_LENGTHS:,} "
            f"widths of the domain inside it, got {lengths[is_long.argmax()]:,.0f}; simplify it"
        )
    return moved


def outline_lengths(shapes: NDArray[np.object_], domain: Domain) -> NDArray[np.float64]:
    """Lengths of outlines (n,) inside the domain, in its widths along x and heights along y."""
    # An oblique line that leaves the domain may count for more than its part inside.
    import shapely

    vertices, owner = shapely.get_coordinates(shapes, return_index=True)
    rings = shapely.get_rings(shapely.get_parts(shapes))
    _, ring = shapely.get_coordinates(rings, return_index=True)
    # Sides from vertex to vertex; the step from a ring to the next one is no side.
    low, high = np.minimum(vertices[1:], vertices[:-1]), np.maximum(vertices[1:], vertices[:-1])
    inside = np.minimum(high, domain.bounds[2:]) - np.maximum(low, domain.bounds[:2])
    is_inside = (ring[1:] == ring[:-1]) & (inside >= 0).all(axis=1)
    length = (inside / (domain.width, domain.height)).sum(axis=1)
    return sum_by(owner[1:][is_inside], length[is_inside], len(shapes))


def reproject(shapes: geopandas.GeoSeries, domain: Domain) -> NDArray[np.object_]:
    """Reproject shapes to the CRS of the domain, exact inside it; far away they may be cut off."""
    original = np.asarray(shapes.array, dtype=object)
    tolerance = max(domain.width, domain.height) * metres_of(domain.crs) * TOLERANCE
    with explain_proj_errors("a region", domain.crs):
        near = _clip_near(original, parse_crs(shapes.crs), domain)
        return transform_shapes(near, shapes.crs, domain.crs, tolerance, most=MAX_VERTICES)


def _clip_near(shapes: NDArray[np.object_], source: CRS, domain: Domain) -> NDArray[np.object_]:
    """Shapes without what lies far from the domain, where its CRS may have no place for them."""
    # The pole opposite to that of a polar CRS has none, and far from its meridian a transverse
    # projection puts places anywhere. Nothing inside the domain changes.
    import shapely

    if domain.geographic or source.equals(parse_crs(domain.crs), ignore_axis_order=True):
        return shapes
    west, south, east, north = domain.bounds
    widest = world_width(domain.crs) or np.inf
    # The largest surroundings of the domain that its CRS has places for, all around it.
    for reach in _REACHES:
        x, y = reach * domain.width, reach * domain.height
        around = (west - x, south - y, east + x, north + y)
        if domain.width + 2 * x < widest and not beyond_the_world(around, domain.crs):
            break
    else:
        return shapes
    (near,) = transform_shapes(np.array([shapely.box(*around)]), domain.crs, source)
    if not np.isfinite(shapely.bounds(near)).all() or not shapely.is_valid(near):
        return shapes
    is_usable = np.ones(len(shapes), bool)
    if source.is_geographic:  # longitudes may go on beyond 180; no latitude is beyond a pole
        turn = 2 * half_turn(source)
        turns = np.array([[-turn, 0], [0, 0], [turn, 0]])
        near = shapely.union_all(
            [shapely.transform(near, lambda xy, by=by: xy + by) for by in turns]
        )
        is_usable = (np.abs(shapely.bounds(shapes)[:, 1::2]) <= turn / 4).all(axis=1)
    return clip_shapes(shapes, near, is_usable)


def _check(
    shapes: NDArray[np.object_],
    names: Sequence[str] | None,
    where: str = "",
    advice: str = _ADVICE,
) -> None:
    """Refuse shapes that are not polygons, then large ones, then invalid ones."""
    import shapely

    check_kinds(shapes, names)
    check_sizes(shapes, names)
    is_invalid = ~shapely.is_valid(shapes)
    if is_invalid.any():
        reason = shapely.is_valid_reason(shapes[is_invalid.argmax()])
        raise ParameterError(
            f"{_first(is_invalid, names)} is not valid{where} ({reason}); {advice}"
        )


def check_kinds(shapes: NDArray[np.object_], names: Sequence[str] | None = None) -> None:
    """Refuse shapes that are not polygons, and empty ones."""
    import shapely

    kinds = shapely.get_type_id(shapes)
    other = ~np.isin(kinds, _POLYGONS)
    if other.any():
        shape = shapes[other.argmax()]
        kind = "missing" if shape is None else shape.geom_type
        raise ParameterError(f"{_first(other, names)} must be a polygon, got {kind}")
    is_empty = shapely.is_empty(shapes)
    if is_empty.any():
        raise ParameterError(f"{_first(is_empty, names)} must not be empty")


def check_sizes(shapes: NDArray[np.object_], names: Sequence[str] | None = None) -> None:
    """Refuse shapes that GEOS must not get: too many vertices or pairs of sides, or NaN."""
    import shapely

    vertices = shapely.get_num_coordinates(shapes)
    is_large = vertices > MAX_VERTICES
    if is_large.any():
        raise ParameterError(
            f"{_first(is_large, names)} must have at most {MAX_VERTICES:,} vertices, got "
            f"{vertices[is_large.argmax()]:,}; simplify it, or divide it"
        )
    vertices_xy, owner = shapely.get_coordinates(shapes, return_index=True)
    lost = owner[~np.isfinite(vertices_xy).all(axis=1)]
    if len(lost):
        raise ParameterError(f"{region_text(int(lost[0]), names)} must have finite coordinates")
    # GEOS compares sides that lie beside each other: a zigzag may take minutes.
    for index in np.flatnonzero(vertices > _FEW_VERTICES):
        pairs = _count_pairs(shapes[index])
        if pairs > MAX_PAIRS:
            raise ParameterError(
                f"{region_text(int(index), names)} must have at most {MAX_PAIRS:,} pairs of sides "
                f"beside each other, got {pairs:,} of {vertices[index]:,} vertices; simplify it, "
                "or divide it"
            )


def _count_pairs(shape: Any) -> int:
    """Count pairs of sides whose ranges overlap, along x or along y, whichever are fewer."""
    import shapely

    rings = shapely.get_rings(shapely.get_parts(shape))
    vertices, ring = shapely.get_coordinates(rings, return_index=True)
    along = ring[1:] == ring[:-1]
    # Ranges of sides, (m, 2); the step from a ring to the next one is no side.
    low = np.minimum(vertices[1:], vertices[:-1])[along]
    high = np.maximum(vertices[1:], vertices[:-1])[along]
    # All pairs overlap but those where one range ends before the other begins.
    ended = [np.searchsorted(np.sort(high[:, axis]), low[:, axis]).sum() for axis in (0, 1)]
    return len(low) * (len(low) - 1) // 2 - int(max(ended))


def _first(is_faulty: NDArray[np.bool_], names: Sequence[str] | None) -> str:
    """How a message names the first faulty region."""
    return region_text(int(np.argmax(is_faulty)), names)


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
    """Geometries of a region, or of its features, each with its CRS; `default`: that of GeoJSON."""
    if isinstance(region, str):
        if len(region) > MAX_TEXT:
            raise ParameterError(
                f"region {number} must have at most {MAX_TEXT:,} characters, got {len(region):,}; "
                "simplify it, or read it from a GIS file"
            )
        if region.lstrip("\ufeff \t\r\n")[:1] not in ("{", "["):
            return [_wkt(number, region)]
        try:
            value = json.loads(region.lstrip("\ufeff"))
        except (ValueError, RecursionError) as error:
            reason = "nested too deep" if isinstance(error, RecursionError) else str(error)[:80]
            raise ParameterError(f"region {number} cannot be read as GeoJSON ({reason})") from None
        return _geojson(number, value, default)
    if isinstance(region, Mapping):
        return _geojson(number, region, default)
    if region is None or hasattr(region, "geom_type"):
        import shapely

        srid = 0 if region is None else int(shapely.get_srid(region))
        return [(region, f"EPSG:{srid}" if srid else None)]
    if not hasattr(region, "__geo_interface__"):
        raise ParameterError(
            f"region {number} must be a polygon, GeoJSON or WKT, got a {type(region).__name__}"
        )
    return _geojson(number, region.__geo_interface__, None)


def _wkt(number: int, text: str) -> tuple[Any, Any]:
    """Parse WKT or EWKT, after a check of its depth."""
    import shapely

    srid = _EWKT.match(text)
    body = text[srid.end() :] if srid else text
    # Brackets and commas are counted before a parser reads the text.
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


def _geojson(number: int, value: Any, crs: Any) -> list[tuple[Any, Any]]:
    """Geometries of a GeoJSON value and their CRS."""
    if not isinstance(value, Mapping):
        raise ParameterError(f"region {number} must be a GeoJSON object")
    if value.get("crs") is not None:
        # A member of GeoJSON before RFC 7946.
        member = value["crs"]
        properties = member.get("properties") if isinstance(member, Mapping) else None
        crs = properties.get("name") if isinstance(properties, Mapping) else None
        if not isinstance(crs, str):
            raise DomainError(f'region {number} must have a name in its "crs" member')
    if value.get("type") == "FeatureCollection":
        features = value.get("features")
        if not isinstance(features, list | tuple):
            raise ParameterError(f"region {number} must have features in its collection")
        return [(_feature(number + index, item), crs) for index, item in enumerate(features)]
    return [(_feature(number, value), crs)]


def _feature(number: int, value: Any) -> Any:
    """Geometry of a GeoJSON Feature or geometry, None if it is null."""
    import shapely

    if isinstance(value, Mapping) and value.get("type") == "Feature":
        value = value.get("geometry")
    if value is None:
        return None
    kind = value.get("type") if isinstance(value, Mapping) else None
    if kind not in ("Polygon", "MultiPolygon"):
        label = str(kind)[:40] if kind else "another object"
        raise ParameterError(f"region {number} must be a polygon, got {label}")
    if kind == "Polygon":
        return _polygon(number, value.get("coordinates"))
    parts = value.get("coordinates")
    if not isinstance(parts, list | tuple):
        raise ParameterError(f"region {number} must have lists as coordinates")
    return shapely.MultiPolygon([_polygon(number, rings) for rings in parts])


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

    try:
        vertices = np.asarray(ring, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        vertices = np.empty(0)
    if vertices.ndim != 2 or vertices.shape[1] < 2:
        raise ParameterError(f"region {number} must have rings that are lists of vertices x, y")
    vertices = vertices[:, :2]
    if not np.isfinite(vertices).all():
        raise ParameterError(f"region {number} must have finite coordinates")
    if len(vertices) < 4 or (vertices[0] != vertices[-1]).any():
        raise ParameterError(
            f"region {number} must have closed rings of four or more vertices, the last equal to "
            f"the first; got a ring of {len(vertices)}"
        )
    return shapely.linearrings(vertices)


# Columns that name a row of a public file, the first that it has.
_NAMES = ("id", "code", "name")

_LONGEST = 80


def describe_polygon(table: Any, index: int, what: str) -> str:
    """Text that names a polygon of a public file: its number, and its id where it has one."""
    columns = {str(label).lower(): label for label in getattr(table, "columns", ())}
    label = next((columns[name] for name in _NAMES if name in columns), None)
    text = f"polygon {index + 1} of the {what}"
    if label is None:
        return text
    return f"{text} ({label} {str(table[label].iloc[index])[:_LONGEST]!r})"


def repair_polygons(table: Any, what: str) -> Any:
    """Make invalid polygons valid, by GEOS's ``GeometryFixer``; the others stay as they are."""
    import shapely

    shapes = np.array(table.geometry.array, dtype=object)
    check_kinds(shapes)
    check_sizes(shapes)
    invalid = np.flatnonzero(~shapely.is_valid(shapes))
    if not len(invalid):
        return table
    # Rings are made valid, shells joined, holes taken out. So parts that overlap count once, and
    # both sides of an outline that crosses itself are inside. Lines and points left over are
    # dropped.
    shapes[invalid] = shapely.make_valid(shapes[invalid], method="structure", keep_collapsed=False)
    # A line that goes back on itself is valid when it is repaired, and is no area.
    lost = invalid[shapely.area(shapes[invalid]) == 0]
    if len(lost):
        raise ParameterError(
            f"{describe_polygon(table, int(lost[0]), what)} has no area when it is repaired; "
            "remove it"
        )
    if hasattr(table, "set_geometry"):
        return table.set_geometry(shapes, crs=table.crs)
    return type(table)(shapes, index=table.index, crs=table.crs)
