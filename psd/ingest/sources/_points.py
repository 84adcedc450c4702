"""Point geometries as coordinates in the CRS of the domain. Private side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd.errors import DomainError, InputDataError
from psd.space.crs import parse_crs

if TYPE_CHECKING:
    from psd.space.domain import Domain

__all__ = ["Coordinates", "Projection", "coordinates", "decoded", "finite", "projection"]

Coordinates = tuple[NDArray[np.float64], NDArray[np.float64]]
Projection = Callable[[Coordinates], Coordinates]

# Layouts of points in the plane that need no parser, by their length: the WKB of the OGC, and that
# of PostGIS, which has an SRID.
_HEAD = [("order", "u1"), ("kind", "<u4")]
_PLACE = [("x", "<f8"), ("y", "<f8")]
_PLAIN = {
    21: (np.dtype([*_HEAD, *_PLACE]), 1),
    25: (np.dtype([*_HEAD, ("srid", "<u4"), *_PLACE]), 0x20000001),
}

_NO_CRS = "{what} has no CRS; it is never guessed: write it into the input (in geopandas, set_crs)"


def projection(crs: Any, domain: Domain, what: str) -> Projection:
    """How coordinates come to the CRS of the domain.

    Parameters
    ----------
    crs : object
        Anything that names a CRS; None if the input has none.
    domain : Domain
        Public.
    what : str
        What messages call the input.

    Raises
    ------
    DomainError
        If there is no CRS, or none that is known.
    """
    from pyproj import Transformer
    from pyproj.exceptions import ProjError

    if crs is None:
        raise DomainError(_NO_CRS.format(what=what))
    try:
        source, target = parse_crs(crs), parse_crs(domain.crs)
        if source.equals(target, ignore_axis_order=True):
            return lambda here: here
        transformer = Transformer.from_crs(source, target, always_xy=True)
    except (DomainError, ProjError):
        raise DomainError(
            f"{what} has a CRS that cannot be brought to {domain.crs}; is it a local one?"
        ) from None

    def project(here: Coordinates) -> Coordinates:
        x, y = transformer.transform(*here)
        # Where the projection does not reach is outside of any bounds.
        return np.where(np.isfinite(x), x, np.nan), np.where(np.isfinite(y), y, np.nan)

    return project


def finite(name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Refuse infinite coordinates; they come from a division or an overflow."""
    if np.isinf(values).any():
        raise InputDataError(f"column {name!r} holds infinite values; remove or repair them")
    return values


def decoded(array: Any, name: str) -> Coordinates:
    """Coordinates of an Arrow array of points, in WKB or as plain numbers.

    Raises
    ------
    InputDataError
        If it holds anything else.
    """
    import pyarrow as pa

    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        array, kind = array.storage, array.type.storage_type
    if pa.types.is_struct(kind) and {"x", "y"} <= {field.name for field in kind}:
        x, y = (_of_struct(array, axis) for axis in ("x", "y"))
    elif pa.types.is_fixed_size_list(kind) and pa.types.is_floating(kind.value_type):
        values = array.fill_null([np.nan] * kind.list_size) if array.null_count else array
        flat = values.flatten().to_numpy(zero_copy_only=False).reshape(-1, kind.list_size)
        x, y = flat[:, 0].astype(np.float64), flat[:, 1].astype(np.float64)
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or kind == pa.binary_view():
        return _of_bytes(array, name)
    else:
        raise InputDataError(f"column {name!r} is of type {kind}, which holds no points")
    return finite(name, x), finite(name, y)


def _of_struct(array: Any, axis: str) -> NDArray[np.float64]:
    """One coordinate of points that are kept as plain numbers, NaN where there is no point."""
    import pyarrow.compute as pc

    values = pc.struct_field(array, axis).to_numpy(zero_copy_only=False).astype(np.float64)
    present = array.is_valid().to_numpy(zero_copy_only=False)
    return np.where(present, values, np.nan)


def _of_bytes(array: Any, name: str) -> Coordinates:
    """Coordinates of well-known bytes."""
    import pyarrow as pa
    import shapely

    try:
        array.validate(full=True)  # a faulty producer may let one value run into another
        array = array.cast(pa.large_binary())
        plain = _plain(array.drop_null())
        if plain is None:
            return coordinates(shapely.from_wkb(array.to_numpy(zero_copy_only=False)), name)
    except (shapely.errors.ShapelyError, pa.ArrowException):
        pass  # the message may quote the bytes
    else:
        present = array.is_valid().to_numpy(zero_copy_only=False)
        x, y = np.full(len(array), np.nan), np.full(len(array), np.nan)
        x[present], y[present] = plain
        return finite(name, x), finite(name, y)
    raise InputDataError(f"column {name!r} holds bytes that are no geometries in WKB")


def _plain(array: Any) -> Coordinates | None:
    """Coordinates of bytes that are all laid out as a point in the plane; None if they are not."""
    if len(array) == 0:
        return np.empty(0), np.empty(0)
    _, offsets, data = array.buffers()
    edges = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    layout, kind = _PLAIN.get(int(edges[1] - edges[0]), (None, 0))
    if layout is None or (np.diff(edges) != layout.itemsize).any():
        return None
    points = np.frombuffer(data, layout, count=len(array), offset=int(edges[0]))
    if (points["order"] != 1).any() or (points["kind"] != kind).any():
        return None
    return points["x"], points["y"]


def coordinates(shapes: Any, name: str) -> Coordinates:
    """Coordinates of an array of shapely points; NaN where one is missing or empty.

    Raises
    ------
    InputDataError
        If there are geometries that are no points.
    """
    import shapely

    present = ~(shapely.is_missing(shapes) | shapely.is_empty(shapes))
    if not (shapely.get_type_id(shapes[present]) == shapely.GeometryType.POINT).all():
        raise InputDataError(
            f"column {name!r} holds geometries that are no points; a release counts points, so "
            "take for instance their centroids"
        )
    x, y = np.full(len(shapes), np.nan), np.full(len(shapes), np.nan)
    x[present], y[present] = shapely.get_x(shapes[present]), shapely.get_y(shapes[present])
    return finite(name, x), finite(name, y)
