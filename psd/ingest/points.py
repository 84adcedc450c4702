"""Points as coordinates in the CRS of the domain, of geometries and of text. Private side.

All engines read numbers, and points in WKT and EWKT, by these rules. No text is quoted. The SRID of
a text must be that of the column, by public parameters alone, so that no text moves a record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from psd.errors import DomainError, InputDataError
from psd.space.crs import offline, parse_crs

if TYPE_CHECKING:
    from psd.ingest.columns import Columns

__all__ = [
    "DECIMAL",
    "FINITE_RULE",
    "MISSING",
    "SPACES",
    "Projection",
    "column_projection",
    "empty_pattern",
    "number_rule",
    "point_pattern",
    "same_points",
    "srid_of",
]

Coordinates = tuple[NDArray[np.float64], NDArray[np.float64]]
Projection = Callable[[Coordinates], Coordinates]

FINITE_RULE = "must be finite; remove or repair infinite values"
"""Rule for a column of coordinates that are numbers, for messages."""


class Plane(Protocol):
    """What a transformation needs to know of a domain: its CRS and its coordinate resolution."""

    @property
    def crs(self) -> str:
        """Canonical text of the CRS."""

    @property
    def coordinate_resolution(self) -> str | None:
        """Step of the coordinates, in units of the CRS."""


# Layouts of two-dimensional points that need no parser, by their length: the WKB of the OGC, and
# that of PostGIS, which has an SRID.
_HEAD = [("order", "u1"), ("kind", "<u4")]
_POINT = [("x", "<f8"), ("y", "<f8")]
_PLAIN = {
    21: (np.dtype([*_HEAD, *_POINT]), 1),
    25: (np.dtype([*_HEAD, ("srid", "<u4"), *_POINT]), 0x20000001),
}

_NO_CRS = (
    "{what} has no CRS; write it into the input (in geopandas, set_crs), since it is never guessed"
)


def same_points(points: Coordinates) -> Coordinates:
    """Transformation of coordinates that are in the CRS of the domain."""
    return points


def column_projection(columns: Columns, domain: Plane, what: str) -> Projection:
    """Make the projection of columns of coordinates, by default in the CRS of the domain."""
    if columns.input_crs is None:
        return same_points
    return make_projection(columns.input_crs, domain, what)


def stated_crs(crs: Any, columns: Columns, what: str) -> Any:
    """CRS of geometries: what the input states, else `Columns.input_crs`."""
    if crs is None or columns.input_crs is None:
        return columns.input_crs if crs is None else crs
    if not parse_crs(crs).equals(parse_crs(columns.input_crs), ignore_axis_order=True):
        raise DomainError(
            f"input_crs must be left out, since {what} states another CRS than {columns.input_crs}",
            name="input_crs",
        )
    return crs


def make_projection(crs: Any, domain: Plane, what: str) -> Projection:
    """Make a function that transforms coordinates to the CRS of the domain.

    P1. The result of a point is a function of its own coordinates, of both CRS, and of the PROJ
    that is installed. Other points, their number and their order have no effect.
    P2. A point without a valid result is infinite: outside of any bounds, and it stops no build.
    P3. PROJ fetches nothing over the network.
    Proof: PROJ chooses an operation between two CRS by the coordinates of each point alone, and
    keeps no state that other points change. So the transformation maps single records, by public
    functions: two inputs that differ in one unit of privacy differ in the same unit after it, with
    as many records. All that is proved for records at their coordinates holds at the images too.
    """
    from pyproj import Transformer
    from pyproj.exceptions import ProjError

    if crs is None:
        raise DomainError(_NO_CRS.format(what=what))
    try:
        source, target = parse_crs(crs), parse_crs(domain.crs)
    except DomainError as error:
        raise DomainError(f"{what} has a CRS that is refused: {error}", name="crs") from None
    try:
        if source.equals(target, ignore_axis_order=True):
            return same_points
        with offline():
            transformer = Transformer.from_crs(source, target, always_xy=True)
    except ProjError:
        raise DomainError(
            f"{what} has a CRS that cannot be transformed to {domain.crs}; is it a local CRS?"
        ) from None

    # Refuse to transform coordinates that are rounded: the step is in the CRS of the input.
    if domain.coordinate_resolution is not None:
        raise DomainError(
            f"coordinate_resolution must be left out where coordinates are transformed, and {what} "
            f"has another CRS than the bounds, {domain.crs}; give bounds in the CRS of the input",
            name="coordinate_resolution",
        )

    def project(points: Coordinates) -> Coordinates:
        with offline():
            # 0.0 and -0.0 are one coordinate, also where PROJ takes an angle of it. pyproj is never
            # asked for one point: with NumPy before 2.4 it would warn where there is one record.
            count = len(points[0])
            asked = np.resize(points[0], max(count, 2)), np.resize(points[1], max(count, 2))
            x, y = transformer.transform(asked[0] + 0.0, asked[1] + 0.0)
            x, y = x[:count], y[:count]
        valid = np.isfinite(x) & np.isfinite(y)
        # Points where the projection is not defined are outside of any bounds.
        missing = np.isnan(points[0]) | np.isnan(points[1])
        elsewhere = np.where(missing, np.nan, np.inf)
        return np.where(valid, x, elsewhere), np.where(valid, y, elsewhere)

    return project


def check_finite(name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Refuse infinite coordinates, which come from a division or an overflow."""
    if np.isinf(values).any():
        raise InputDataError(f"column {name!r} {FINITE_RULE}")
    return values


def decode_points(array: Any, name: str) -> Coordinates:
    """Decode an Arrow array of points, in WKB or as numbers; other values are refused."""
    import pyarrow as pa

    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        array, kind = array.storage, array.type.storage_type
    if pa.types.is_struct(kind) and {"x", "y"} <= {field.name for field in kind}:
        x, y = (_decode_struct(array, axis) for axis in ("x", "y"))
    elif pa.types.is_fixed_size_list(kind) and pa.types.is_floating(kind.value_type):
        values = array.fill_null([np.nan] * kind.list_size) if array.null_count else array
        flat = values.flatten().to_numpy(zero_copy_only=False).reshape(-1, kind.list_size)
        x, y = flat[:, 0].astype(np.float64), flat[:, 1].astype(np.float64)
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or kind == pa.binary_view():
        return _decode_wkb(array, name)
    else:
        raise InputDataError(f"column {name!r} must hold points, got type {kind}")
    return check_finite(name, x), check_finite(name, y)


def _decode_struct(array: Any, axis: str) -> NDArray[np.float64]:
    """One coordinate of points that are stored as numbers; NaN for missing points."""
    import pyarrow.compute as pc

    values = pc.struct_field(array, axis).to_numpy(zero_copy_only=False).astype(np.float64)
    present = array.is_valid().to_numpy(zero_copy_only=False)
    return np.where(present, values, np.nan)


def _decode_wkb(array: Any, name: str) -> Coordinates:
    """Decode points in WKB."""
    import pyarrow as pa
    import shapely

    try:
        array.validate(full=True)  # values of a faulty producer may overlap
        array = array.cast(pa.large_binary())
        plain = _decode_uniform_wkb(array.drop_null())
        if plain is None:
            return point_coordinates(shapely.from_wkb(array.to_numpy(zero_copy_only=False)), name)
    except (shapely.errors.ShapelyError, pa.ArrowException):
        pass  # the message may quote the bytes
    else:
        present = array.is_valid().to_numpy(zero_copy_only=False)
        x, y = np.full(len(array), np.nan), np.full(len(array), np.nan)
        x[present], y[present] = plain
        return check_finite(name, x), check_finite(name, y)
    raise InputDataError(f"column {name!r} must hold geometries in WKB")


def _decode_uniform_wkb(array: Any) -> Coordinates | None:
    """Decode WKB whose values all have one layout of a point; None for other WKB."""
    if len(array) == 0:
        return np.empty(0), np.empty(0)
    _, offsets, data = array.buffers()
    # A slice shares the buffers of the whole array, and begins at its offset.
    edges = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    # The first length decides on a layout, which all values must have.
    layout, kind = _PLAIN.get(int(edges[1] - edges[0]), (None, 0))
    if layout is None or (np.diff(edges) != layout.itemsize).any():
        return None
    points = np.frombuffer(data, layout, count=len(array), offset=int(edges[0]))
    if (points["order"] != 1).any() or (points["kind"] != kind).any():
        return None
    return points["x"], points["y"]


def point_coordinates(shapes: Any, name: str) -> Coordinates:
    """Return the coordinates of an array of shapely points; NaN for missing and empty points."""
    import shapely

    # A missing or empty geometry is a record without a place, whatever its type says.
    present = ~(shapely.is_missing(shapes) | shapely.is_empty(shapes))
    if not (shapely.get_type_id(shapes[present]) == shapely.GeometryType.POINT).all():
        raise InputDataError(
            f"column {name!r} must hold points, since a release counts points; use for instance "
            "centroids"
        )
    x, y = np.full(len(shapes), np.nan), np.full(len(shapes), np.nan)
    x[present], y[present] = shapely.get_x(shapes[present]), shapely.get_y(shapes[present])
    return check_finite(name, x), check_finite(name, y)


DECIMAL = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
"""Pattern of a plain decimal number."""

MISSING = {"", "na", "n/a", "nan", "-nan", "null", "none", "-", r"\n"}
"""What spreadsheets and databases write for a missing number or point, in lower case."""

SPACES = " \t\n\v\f\r"
"""What is removed around a number or a mark of a missing one: what DuckDB removes."""

_NUMBER = DECIMAL.replace("(", "(?:")

_KIND = r"[ \t]*POINT[ \t]*(?:ZM|Z|M)?"


def srid_of(crs: str, input_crs: str | None) -> int | None:
    """SRID that points in text may state: the EPSG code of their CRS; None if it has none."""
    authority, _, code = (input_crs or crs).partition(":")
    if (authority, code) == ("OGC", "CRS84"):  # the same points, longitude first, as all here
        return 4326
    return int(code) if authority == "EPSG" and code.isdecimal() else None


def _srid_pattern(srid: int | None) -> str:
    """Pattern of an SRID that may stand before a text; 0 states that there is none."""
    return rf"(?i)[ \t]*(?:SRID[ \t]*=[ \t]*{'0' if srid is None else f'(?:0|{srid})'}[ \t]*;)?"


def point_pattern(srid: int | None, x: str = "", y: str = "") -> str:
    """Pattern of a point in the syntax of RE2, Java and Rust; x, y: names as ``"?P<x>"``."""
    return (
        rf"{_srid_pattern(srid)}{_KIND}[ \t]*\([ \t]*({x}{_NUMBER})[ \t]+({y}{_NUMBER})"
        rf"(?:[ \t]+{_NUMBER}){{0,2}}[ \t]*\)[ \t]*"
    )


def empty_pattern(srid: int | None) -> str:
    """Pattern of a missing point."""
    return rf"{_srid_pattern(srid)}{_KIND}[ \t]+EMPTY[ \t]*"


def number_rule(columns: Columns, srid: int | None = None) -> str:
    """Rule for the text of coordinates, for messages."""
    if columns.wkt is not None:
        return point_rule(srid)
    sign = (
        'such as 127,01, as decimal="," holds for all columns, without'
        if columns.decimal == ","
        else 'such as 127.01, without decimal comma (unless decimal="," states it),'
    )
    return (
        f"must hold plain decimal numbers {sign} degrees and minutes (convert them to decimal "
        "degrees), or thousands separator"
    )


def point_rule(srid: int | None) -> str:
    """Rule for points in text."""
    stated = "without an SRID" if srid is None else f"without an SRID or with SRID={srid}"
    return (
        f"must hold points in WKT such as POINT (127.01 37.5), EWKT or hexadecimal WKB, {stated}; "
        "other geometries have no one position"
    )
