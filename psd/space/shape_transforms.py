"""Transform shapes to another CRS: sides stay where they are, also at longitude 180 and the poles.

1. Sides are halved until no point is further than a tolerance from its place; vertices become
longitudes and latitudes of the target, continuous along a ring, beyond 180 where they must be.
2. Rings are cut where they pass the meridian at which the plane of longitudes ends, the *seam*; a
ring around a pole is closed along the pole.
3. For a projected target, sides are halved again and projected. A projection that does not end at
the seam (polar, transverse) gets the parts of a shape joined again.

The library `antimeridian` cuts at 180 only, joins nothing, and gives an invalid polygon for a cell
with a corner at a pole, whose longitude is any number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd.errors import DomainError, ParameterError
from psd.space.crs import (
    beyond_world,
    explain_proj_errors,
    half_turn,
    metres_per_unit,
    offline,
    parse_crs,
    prime_meridian,
)

if TYPE_CHECKING:
    import geopandas
    from pyproj import CRS, Transformer

    Shapes = NDArray[np.object_]

__all__ = ["transform_table"]

_METRES_PER_DEGREE = 111_320.0

# Without a tolerance, sides keep their place to this share of the longer side of all shapes. Of
# sides longer than `_LONG` of it the quarters are looked at too: an S keeps its middle in place.
_SHARE, _LONG = 1e-5, 1 / 16

# Degrees within which a vertex is taken to be at the seam or a pole: a tenth of a millimetre. The
# parts of cut shapes are joined on a grid of this step.
_NEAR = 1e-9

# Least and most degrees, a centimetre and 11 m, by which a world is cut off inside its end: at the
# end itself rounded places are beyond it, in Robinson's tables by some metres.
_INSIDE = (1e-7, 1e-4)

# Turns of the earth to either side within which longitudes are places: each turn that a shape spans
# is cut off by itself.
_TURNS = 10

# Sides that go further around the earth, in degrees, are halved in any case.
_FAR = 120.0

# Shapes that are wide, in degrees before or in metres after they are projected, are looked at in so
# many places along each side. They are torn where more than this share of the places has moved in
# or out: no outline in the plane is that of the shape.
_WIDE, _LONG_WAY, _LOOKS, _TORN = 60.0, 5e6, 16, 0.05

# Where a projection has no pole, as Mercator's, shapes end at this latitude.
_LAST_LATITUDE = 89.9999

Project = Callable[[Floats], Floats]


def transform_table(
    table: geopandas.GeoDataFrame, crs: Any, what: str = "the release"
) -> geopandas.GeoDataFrame:
    """Table with its shapes in another CRS, empty if wholly beyond the world; `what`: its name."""
    target, shapes = parse_crs(crs), np.asarray(table.geometry.array, dtype=object)
    with explain_proj_errors(what, crs), offline():
        moved = transform_shapes(shapes, table.crs, target)
    is_lost = ~_is_finite(moved)
    if is_lost.any():
        raise DomainError(
            f"{what} must have coordinates in {str(crs)[:80]} everywhere, and row "
            f"{int(is_lost.argmax()) + 1} has none; does it reach beyond the world of its CRS?"
        )
    named: geopandas.GeoDataFrame = table.set_geometry(moved, crs=target)
    named.attrs = table.attrs
    return named


def transform_shapes(
    shapes: Shapes,
    source: Any,
    target: Any,
    tolerance: float | None = None,
    *,
    most: int | None = None,
) -> Shapes:
    """Transform polygons, whose sides are straight in their own CRS.

    shapes: (n,), (multi-)polygons; others by their vertices; tolerance: metres, by default
    1/100,000 of the longer side of all; most: vertices after sides are divided, beyond which a
    shape is refused.
    P1. No point of a side is further from its place than the tolerance in each of the two steps.
    P2. In degrees all parts are within longitudes -180 to 180, and no part passes the seam.
    P3. Shapes that share a side share its vertices.
    A shape with no place in the target is empty or has coordinates that are not finite. What lies
    beyond the world of the source, as at the rim of an oval, is cut off.
    """
    import shapely

    source, target = parse_crs(source), parse_crs(target)
    is_same = bool(source.equals(target, ignore_axis_order=True))
    if not len(shapes):
        return shapes
    if is_same:
        # Shapes of the same CRS stay, but for longitudes beyond the seam, which are turned back.
        longitudes = np.abs(shapely.bounds(shapes)[:, ::2])
        if not target.is_geographic or not (longitudes > half_turn(target)).any():
            return shapes
    result = np.array(shapes, dtype=object)
    is_usable = np.isin(shapely.get_type_id(result), (3, 6)) & ~shapely.is_empty(result)
    if not is_same and not is_usable.all():  # lines, points
        move = _transformer(source, target)
        result[~is_usable] = shapely.transform(
            result[~is_usable], lambda xy: np.column_stack(move.transform(*xy.T))
        )
    if source.is_geographic:
        reach = np.abs(shapely.bounds(result)[:, ::2]).max(axis=1)
        is_far = is_usable & (reach > 2 * _TURNS * half_turn(source))
        result[is_far] = shapely.transform(result[is_far], lambda xy: np.full_like(xy, np.inf))
        is_usable &= ~is_far
    if not is_usable.any():
        return result
    # One tolerance for all shapes: those that share a side divide it alike.
    box = shapely.total_bounds(result[is_usable])
    extent = float(max(box[2] - box[0], box[3] - box[1]))
    if not np.isfinite(extent):
        return result
    if tolerance is None:
        tolerance = _SHARE * extent * metres_of(source)
    steps = (tolerance / metres_of(source), extent * _LONG)
    result[is_usable] = _within_world(result[is_usable], source, tolerance)
    is_usable &= ~shapely.is_empty(result)
    if not is_usable.any():
        return result
    seam = seam_longitude(target)
    window = 180.0 if seam is None else seam
    moved, touched = _to_degrees(result[is_usable], source, target, tolerance, steps, window, most)
    if target.is_geographic:
        unit = _degrees_per_unit(target)
        result[is_usable] = moved if unit == 1 else shapely.transform(moved, lambda xy: xy / unit)
        return result
    degrees, moved = moved, _project(moved, target, tolerance, window, most)
    if seam is None:
        grid = tolerance / metres_of(target) / 1000
        for number in np.flatnonzero(touched & _is_finite(moved)):
            moved[number] = _joined(moved[number], grid)
    moved[_is_torn(degrees, moved, target)] = shapely.Polygon([[np.inf, np.inf]] * 4)
    result[is_usable] = moved
    return result


@cache
def _seam_of(wkt: str) -> tuple[float | None, bool]:
    """Meridian at which a projected CRS ends, see `seam_longitude`, and whether it is straight."""
    from pyproj import CRS

    crs = CRS.from_wkt(wkt)
    geodetic, operation = _geodetic(crs), crs.coordinate_operation
    if operation is None and crs.source_crs is not None:  # with a shift of its datum
        operation = crs.source_crs.coordinate_operation
    middle = 0.0
    for given in () if operation is None else operation.params:
        if "longitude" in given.name.lower() or "meridian" in given.name.lower():
            middle = float(np.degrees(float(given.value) * given.unit_conversion_factor))
            break
    seam = middle + 180.0
    latitude = np.array([-60.0, -20, 20, 60])
    with offline():
        move = _transformer(geodetic, crs)
    unit = _degrees_per_unit(geodetic)
    sides = [
        np.array(move.transform(np.full(4, beside) / unit, latitude / unit))
        for beside in (seam - 1e-5, seam - 360 + 1e-5)
    ]
    with np.errstate(invalid="ignore"):
        gap = np.hypot(*(sides[1] - sides[0])) * metres_of(crs)
        is_straight = bool(np.ptp(sides[0][0]) < 1e-6 * np.abs(gap).max())
    # Two metres apart on the ground.
    return (seam if (np.isfinite(gap) & (gap > 10_000)).any() else None), is_straight


def seam_longitude(crs: Any) -> float | None:
    """Meridian at which the plane of a CRS ends; None if it has no such end."""
    parsed = parse_crs(crs)
    if parsed.is_geographic:
        return 180.0
    return _seam_of(parsed.to_wkt())[0] if parsed.is_projected else None


def _middle_of_world(source: CRS, geodetic: CRS) -> float | None:
    """Middle longitude of the shapes that `_within_world` gives; None if it cuts nothing off."""
    if not source.is_projected:
        return None
    seam, is_straight = _seam_of(source.to_wkt())
    if seam is None or is_straight:
        return None
    return seam - 180 + prime_meridian(source) - prime_meridian(geodetic)


def _within_world(shapes: Shapes, crs: CRS, tolerance: float) -> Shapes:
    """Shapes of a projected CRS but what is no place: beyond an oval, in the gap of a cone."""
    import shapely

    seam, is_straight = _seam_of(crs.to_wkt()) if crs.is_projected else (None, True)
    # A projection may give longitudes and latitudes of other places there. Where the earth ends at
    # a straight line, or in a plane that has no end, nothing is cut off.
    if seam is None or is_straight:
        return shapes
    cut = float(np.clip(tolerance / _METRES_PER_DEGREE, *_INSIDE))
    earth = shapely.box(seam - 360 + cut, cut - 90, seam - cut, 90 - cut)
    (world,) = _project(np.array([earth]), crs, tolerance, seam, None)
    if not np.isfinite(shapely.bounds(world)).all() or not shapely.is_valid(world):
        return shapes  # of an interrupted map
    return clip_shapes(shapes, world)


def clip_shapes(shapes: Shapes, area: Any, is_usable: NDArray[np.bool_] | bool = True) -> Shapes:
    """Clip usable shapes (n,) to an area; what it covers stays, lines that are left over do not."""
    import shapely

    shapely.prepare(area)
    clipped = np.array(shapes, dtype=object)
    # Shapes that lie inside stay as they are, to the last bit.
    for number in np.flatnonzero(is_usable & ~shapely.covers(area, shapes)):
        parts = shapely.get_parts(shapely.intersection(shapes[number], area))
        parts = parts[shapely.get_type_id(parts) == 3]
        clipped[number] = parts[0] if len(parts) == 1 else shapely.MultiPolygon(list(parts))
    return clipped


def _geodetic(crs: CRS) -> CRS:
    """Longitudes and latitudes of a CRS, with its own shift of the datum if it states one."""
    from pyproj.crs import BoundCRS

    if not crs.is_bound or crs.source_crs is None:
        return crs.geodetic_crs or crs
    return BoundCRS(
        crs.source_crs.geodetic_crs or crs.source_crs, crs.target_crs, crs.coordinate_operation
    )


def _transformer(source: Any, target: Any) -> Transformer:
    """Transformation with x before y."""
    from pyproj import Transformer

    return Transformer.from_crs(source, target, always_xy=True)


def _degrees_per_unit(crs: CRS) -> float:
    """Degrees in a unit of a geographic CRS: 1, or .9 for grads."""
    axes = crs.axis_info
    return round(float(np.degrees(axes[0].unit_conversion_factor)), 12) if axes else 1.0


def metres_of(crs: Any) -> float:
    """Metres in a unit of a CRS, about; 1 if it does not state it."""
    crs = parse_crs(crs)
    if crs.is_geographic:
        return _METRES_PER_DEGREE * _degrees_per_unit(crs)
    return metres_per_unit(crs.to_wkt()) or 1.0


def _is_finite(shapes: Shapes) -> NDArray[np.bool_]:
    """Whether all coordinates of shapes are finite; those of empty ones are."""
    import shapely

    # A shape with one vertex that is not finite is not.
    vertices, owner = shapely.get_coordinates(shapes, return_index=True)
    is_finite = np.ones(len(shapes), bool)
    is_finite[owner[~np.isfinite(vertices).all(axis=1)]] = False
    return is_finite


# --- rings ----------------------------------------------------------------------------------


def _rings(shapes: Shapes) -> tuple[Floats, Integers, Integers, Integers]:
    """Vertices, the ring of each, the polygon of each ring, and the shape of each polygon."""
    import shapely

    parts, shape = shapely.get_parts(shapes, return_index=True)
    is_filled = ~shapely.is_empty(parts)
    parts, shape = parts[is_filled], shape[is_filled]
    rings, part = shapely.get_rings(parts, return_index=True)
    vertices, ring = shapely.get_coordinates(rings, return_index=True)
    return vertices, ring, part, shape


def _polygons(
    vertices: Floats, ring: Integers, part: Integers, shape: Integers, like: Shapes
) -> Shapes:
    """Shapes of vertices, of the kinds that others are of."""
    import shapely

    parts = shapely.polygons(shapely.linearrings(vertices, indices=ring), indices=part)
    # Parts of the shapes that were multi-polygons are collected again, also single ones.
    several = shapely.get_type_id(like) == 6
    made, in_several = np.empty(len(like), object), several[shape]
    made[shape[~in_several]] = parts[~in_several]
    if several.any():
        number = np.cumsum(several) - 1
        made[several] = shapely.multipolygons(parts[in_several], indices=number[shape[in_several]])
    return made


def _divided(
    vertices: Floats,
    ring: Integers,
    owner: Integers,
    project: Project,
    deviation: Callable[[Floats, Floats, Floats], Floats],
    tolerance: float,
    steps: tuple[float, float],
    most: int | None,
) -> tuple[Floats, Integers, Floats]:
    """Halve sides until their images are straight; vertices, their rings and their images."""
    # Sides not above the first step are never halved; those above the second are looked at in more
    # than one place.
    images = project(vertices)
    is_open = ring[1:] == ring[:-1]
    while (sides := np.flatnonzero(is_open)).size:
        a, b = vertices[sides], vertices[sides + 1]
        middles, length = (a + b) / 2, np.hypot(*(b - a).T)
        middle_images = project(middles)
        with np.errstate(invalid="ignore"):
            is_bent = deviation(images[sides], middle_images, images[sides + 1]) > tolerance
            long_sides = np.flatnonzero((length > steps[1]) & ~is_bent)
            for share in (0.25, 0.75) if long_sides.size else ():
                places = project(a[long_sides] + share * (b - a)[long_sides])
                ends = images[sides[long_sides]], images[sides[long_sides] + 1]
                is_bent[long_sides] |= deviation(ends[0], places, ends[1]) > tolerance
        halved = is_bent & (length > steps[0])
        if most is not None:
            # Vertices of each shape, with those that are added.
            every = np.concatenate([ring, ring[sides[halved]]])
            numbers = np.bincount(owner[every])
            if (numbers > most).any():
                raise ParameterError(
                    f"region {int(np.argmax(numbers > most)) + 1} must have at most {most:,} "
                    "vertices once its sides are divided to be reprojected; "
                    f"{beyond_world('that of the release')}, or simplify it"
                )
        at = sides[halved] + 1
        vertices = np.insert(vertices, at, middles[halved], axis=0)
        images = np.insert(images, at, middle_images[halved], axis=0)
        ring = np.insert(ring, at, ring[at])
        # Only the halves of a side are looked at again.
        new = at + np.arange(len(at))
        is_open = np.zeros(max(len(vertices) - 1, 0), bool)
        is_open[new - 1] = is_open[new] = True
    return vertices, ring, images


def _degrees_deviation(a: Floats, m: Floats, b: Floats) -> Floats:
    """Degrees, on a great circle near m, from m to the line a-b, which may pass seam or pole."""
    a, b = a.copy(), b.copy()
    for end, other in ((a, b), (b, a)):  # a pole has the longitude of the side that goes to it
        end[:, 0] = np.where(_at_pole(end), other[:, 0], end[:, 0])
    # Ends as seen from m: degrees east, narrowed by its latitude, and degrees north.
    scale = np.cos(np.radians(m[:, 1]))
    ends = [
        np.column_stack([_turned(end[:, 0] - m[:, 0]) * scale, end[:, 1] - m[:, 1]])
        for end in (a, b)
    ]
    # A pole on a side becomes a vertex, unless all of the side is there, as in a plane of degrees;
    # and where a side goes far around, its direction must show.
    through = _at_pole(m) & ~(_at_pole(a) & _at_pole(b))
    far = np.abs(_turned(a[:, 0] - m[:, 0])) + np.abs(_turned(b[:, 0] - m[:, 0])) > _FAR
    return np.where(through | far, np.inf, _distance(*ends))


def _distance(a: Floats, b: Floats) -> Floats:
    """Distance of the origin from the segments between a and b."""
    side = b - a
    squared = (side**2).sum(axis=1)
    along = np.clip(-(a * side).sum(axis=1) / np.where(squared > 0, squared, 1), 0, 1)
    distance: Floats = np.hypot(*(a + along[:, None] * side).T)
    return distance


def _turned(longitude: Floats) -> Floats:
    """Differences of longitudes as turns of -180 to 180."""
    return longitude - 360 * np.round(longitude / 360)


def _at_pole(degrees: Floats) -> NDArray[np.bool_]:
    """Whether vertices are at a pole."""
    return np.abs(degrees[:, 1]) >= 90 - _NEAR


# --- degrees --------------------------------------------------------------------------------


def _to_degrees(
    shapes: Shapes,
    source: CRS,
    target: CRS,
    tolerance: float,
    steps: tuple[float, float],
    seam: float,
    most: int | None,
) -> tuple[Shapes, NDArray[np.bool_]]:
    """Shapes in degrees of the target, from seam to seam; and which of them touch it."""
    import shapely

    geodetic, flat = _geodetic(target), source.is_geographic
    move, unit = _transformer(source, geodetic), _degrees_per_unit(geodetic)
    source_unit = _degrees_per_unit(source) if flat else 1.0
    middle = _middle_of_world(source, geodetic)

    def project(xy: Floats) -> Floats:
        degrees = np.column_stack(move.transform(*xy.T)) * unit
        if flat:
            # A source in degrees has those of its plane: from -180 to 180 is as wide as it says.
            own = xy[:, 0] * source_unit
            degrees[:, 0] = own + _turned(degrees[:, 0] - own)
        elif middle is not None:
            seen = np.isfinite(degrees[:, 0])
            degrees[seen, 0] = middle + _turned(degrees[seen, 0] - middle)
        return degrees

    vertices, ring, part, shape = _rings(shapes)
    degrees = vertices * unit
    if not source.equals(geodetic, ignore_axis_order=True):
        vertices, ring, degrees = _divided(
            vertices, ring, shape[part], project, _degrees_deviation,
            tolerance / _METRES_PER_DEGREE, steps, most,
        )  # fmt: skip
    raw, start = degrees.copy(), np.flatnonzero(np.diff(ring, prepend=-1))
    last = np.append(start[1:], len(ring)) - 1
    with np.errstate(invalid="ignore"):
        if not flat and middle is None:  # without jumps of a whole turn along a ring
            jumps = np.round(np.diff(degrees[:, 0], prepend=degrees[:1, 0]) / 360)
            jumps[start] = 0
            turns = np.cumsum(np.nan_to_num(jumps, posinf=0, neginf=0))
            degrees[:, 0] -= 360 * (turns - turns[start][ring])
        lowest = np.minimum.reduceat(degrees[:, 0], start)
        turns = np.floor((lowest - (seam - 360) + _NEAR) / 360)
        degrees[:, 0] -= 360 * np.nan_to_num(turns, posinf=0, neginf=0)[ring]
        degrees = _snapped(degrees, seam)
        is_cut = np.maximum.reduceat(degrees[:, 0], start) > seam
        is_cut |= np.abs(degrees[last, 0] - degrees[start, 0]) > 180  # around a pole
        # Where the source or the target is cut, parts of a shape may have to be joined.
        at_edge = _at_pole(degrees) | (_snapped(degrees, 180)[:, 0] % 360 == 180)
        at_edge |= np.abs(degrees[:, 0] - (seam - 180)) == 180
    owner = shape[part]
    touched, cut = np.zeros((2, len(shapes)), bool)
    touched[owner[ring[at_edge]]] = True
    if flat:  # parts may meet a whole turn apart, at longitudes 0 and 360
        west, _, east, _ = shapely.bounds(shapes).T * source_unit
        touched |= east - west >= 360 - _NEAR
    cut[owner[is_cut]] = True
    cut |= touched & (shapely.get_num_geometries(shapes) > 1)
    # No ring goes around a pole in a plane that ends at a meridian.
    poles = _poles(move) if seam_longitude(source) is None else []
    near = steps[0] / 1000
    for pole in poles:
        cut |= shapely.dwithin(shapes, pole, near)
    cut[owner[ring[~np.isfinite(degrees).all(axis=1)]]] = False
    made = _polygons(degrees, ring, part, shape, shapes)
    first = np.searchsorted(owner, np.arange(len(shapes) + 1))
    for number in np.flatnonzero(cut):
        filled: dict[int, Any] = {}
        for each in range(first[number], first[number + 1]):
            ends = slice(start[each], last[each] + 1)
            outline, of = shapely.Polygon(vertices[ends]), int(part[each])
            inside = [bool(shapely.dwithin(outline, pole, near)) for pole in poles]
            own = _filled(_with_poles(raw[ends]) if poles else degrees[ends], inside, seam)
            filled[of] = shapely.difference(filled[of], own) if of in filled else own
        made[number] = _as_one(list(filled.values()), seam)
    return made, touched | cut


def _poles(move: Transformer) -> list[Any]:
    """North and south pole in the plane of a projected source; empty where it has none."""
    import shapely
    from pyproj.enums import TransformDirection

    x, y = move.transform([0.0, 0.0], [90.0, -90.0], direction=TransformDirection.INVERSE)
    return [
        shapely.Point(each) if np.isfinite(each).all() else shapely.Point()
        for each in zip(x, y, strict=True)
    ]


def _filled(degrees: Floats, inside: list[bool], seam: float) -> Any:
    """Inside of a ring, by whether it holds each pole; `inside` is empty for a plane of degrees."""
    import shapely

    if inside:
        degrees[:, 0] = np.unwrap(degrees[:, 0], period=360)
        if abs(degrees[-1, 0] - degrees[0, 0]) > 180:  # around one pole
            pole = 90.0 if inside[0] else -90.0
            ends = [[degrees[-1, 0], pole], [degrees[0, 0], pole], degrees[0]]
            degrees, inside = np.vstack([degrees, ends]), []
    ring = shapely.Polygon(_snapped(degrees, seam))
    shape = shapely.make_valid(ring, method="structure", keep_collapsed=False)
    if shapely.is_empty(shape):
        return shape
    west, _, east, _ = shapely.bounds(shape)
    parts = []
    for turn in range(int((west - seam) // 360) + 1, int((east - seam) // 360) + 2):
        strip = shapely.box(seam - 360 + 360 * turn, -90, seam + 360 * turn, 90)
        part = shapely.intersection(shape, strip)
        parts.append(shapely.transform(part, lambda xy, k=turn: xy - [360 * k, 0]))
    filled = _as_one(parts, seam)
    if inside and all(inside):  # the ring goes around neither pole: its outside holds both
        return shapely.difference(shapely.box(seam - 360, -90, seam, 90), filled)
    return filled


def _with_poles(degrees: Floats) -> Floats:
    """Ring that reaches a pole along one meridian and leaves it along another."""
    first = int(np.argmin(_at_pole(degrees)))
    degrees = np.vstack([degrees[first:-1], degrees[: first + 1]])  # begins at no pole
    at_pole = _at_pole(degrees)
    which, other = np.flatnonzero(at_pole), np.flatnonzero(~at_pole)
    if not which.size or not other.size:
        return degrees
    # A pole has every longitude: its vertex takes that of the vertex before, and one more that of
    # the vertex after.
    place = np.searchsorted(other, which)
    leaving = degrees[which]
    degrees[which, 0], leaving[:, 0] = degrees[other[place - 1], 0], degrees[other[place], 0]
    return np.insert(degrees, which + 1, leaving, axis=0)


def _snapped(degrees: Floats, seam: float) -> Floats:
    """Vertices with those near the seam, a turn from it, or near a pole exactly there."""
    longitude, latitude = degrees.T
    at = seam + 360 * np.round((longitude - seam) / 360)
    return np.column_stack(
        [
            np.where(np.abs(longitude - at) < 2 * _NEAR, at, longitude),
            np.where(np.abs(np.abs(latitude) - 90) < 2 * _NEAR, np.sign(latitude) * 90, latitude),
        ]
    )


def _as_one(parts: list[Any], seam: float) -> Any:
    """Parts joined; no side is wider than 90 degrees, so that no reader takes it for a jump."""
    import shapely

    joined = _joined(shapely.GeometryCollection(parts), _NEAR)
    return shapely.transform(shapely.segmentize(joined, 90), lambda xy: _snapped(xy, seam))


def _joined(shape: Any, grid: float) -> Any:
    """Polygons of a shape joined where they touch on a grid; slits and slivers go."""
    import shapely

    parts = shapely.get_parts(shapely.get_parts(shape))
    parts = shapely.make_valid(
        parts[shapely.get_type_id(parts) == 3], method="structure", keep_collapsed=False
    )
    # On a grid, sides that differ by rounding meet, and leave no slit between parts.
    joined = shapely.get_parts(shapely.union_all(parts, grid_size=grid))
    kept = joined[(shapely.get_type_id(joined) == 3) & (shapely.area(joined) > grid**2)]
    return kept[0] if len(kept) == 1 else shapely.MultiPolygon(list(kept))


# --- projected targets ----------------------------------------------------------------------


def _project(
    shapes: Shapes, target: CRS, tolerance: float, seam: float, most: int | None
) -> Shapes:
    """Shapes of degrees in the plane of a projected target."""
    import shapely

    geodetic = _geodetic(target)
    move, unit = _transformer(geodetic, target), _degrees_per_unit(geodetic)
    west, south, east, north = shapely.total_bounds(shapes)
    made = np.array(shapes, dtype=object)
    # Where a pole has no place, shapes that come near it end at the last latitude.
    for pole in (90.0, -90.0):
        end = np.array(move.transform((seam - 180) / unit, pole / unit))
        if np.isfinite(end).all() and np.hypot(*end) * metres_of(target) < 1e8:
            continue
        reach = shapely.bounds(made)[:, 3 if pole > 0 else 1] * np.sign(pole)
        beyond = (reach > _LAST_LATITUDE) & (reach <= 90)
        inner = shapely.box(west, -_LAST_LATITUDE, east, _LAST_LATITUDE)
        made[beyond] = shapely.intersection(made[beyond], inner)

    def project(degrees: Floats) -> Floats:
        # A hundredth of a millimetre inside the seam, which PROJ may turn to its other end.
        longitude = np.clip(degrees[:, 0], seam - 360 + _NEAR / 10, seam - _NEAR / 10)
        return np.column_stack(move.transform(longitude / unit, degrees[:, 1] / unit))

    is_empty = shapely.is_empty(made)
    if not is_empty.all():
        vertices, ring, part, shape = _rings(made[~is_empty])
        steps = (tolerance / _METRES_PER_DEGREE, max(east - west, north - south) * _LONG)
        _, ring, images = _divided(
            vertices, ring, shape[part], project, lambda a, m, b: _distance(a - m, b - m),
            tolerance / metres_of(target), steps, most,
        )  # fmt: skip
        made[~is_empty] = _polygons(images, ring, part, shape, made[~is_empty])
    return made


def _is_torn(degrees: Shapes, moved: Shapes, target: CRS) -> NDArray[np.bool_]:
    """Whether places of shapes of degrees lie elsewhere in the plane of a projected target."""
    # A projection around a point tears a shape that holds the opposite point, an interrupted one a
    # shape across a gap; far from its meridian a transverse projection lays places over each other.
    import shapely

    geodetic, is_torn = _geodetic(target), np.zeros(len(degrees), bool)
    move, unit = _transformer(geodetic, target), _degrees_per_unit(geodetic)
    along = (np.arange(_LOOKS) + 0.5) / _LOOKS
    bounds = shapely.bounds(degrees)
    plane = shapely.bounds(moved)
    with np.errstate(invalid="ignore"):
        is_wide = (plane[:, 2:] - plane[:, :2] > _LONG_WAY / metres_of(target)).any(axis=1)
    is_wide |= bounds[:, 2] - bounds[:, 0] > _WIDE
    # Only wide shapes can be torn: places of a grid are then inside before and not after, or else.
    for number in np.flatnonzero(is_wide & _is_finite(moved) & ~shapely.is_empty(moved)):
        west, south, east, north = bounds[number]
        grid = np.meshgrid(west + along * (east - west), south + along * (north - south))
        places = [each.ravel() for each in grid]
        x, y = move.transform(*(each / unit for each in places))
        seen = np.isfinite(x) & np.isfinite(y)
        before = shapely.contains_xy(degrees[number], places[0][seen], places[1][seen])
        after = shapely.contains_xy(moved[number], x[seen], y[seen])
        is_torn[number] = (before != after).sum() > _TORN * max(before.sum(), 1)
    return is_torn
