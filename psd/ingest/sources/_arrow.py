"""Read records from Arrow record batches, for all sources that give Arrow.

Whether an input is malformed does not depend on where its records lie. A lack of memory does: it
occurs earlier if more records are counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import nulls_as_zeros
from psd._util.wall_clock import wall_clock
from psd.errors import InputDataError, ResourceError
from psd.ingest.columns import check_roles, may_be_values, refuse_two_pairs, resolve_columns
from psd.ingest.points import (
    Coordinates,
    Projection,
    check_finite,
    column_projection,
    decode_points,
    make_projection,
    srid_of,
    stated_crs,
)
from psd.ingest.selection import selected_values
from psd.ingest.sources._point_text import decode_point_text
from psd.ingest.tally import Batch

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.space.domain import Domain


MAX_BATCH_ROWS = 1_000_000
"""Limit of the records of a batch."""

_LISTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Columns of points, users and times in Arrow batches of one schema."""

    columns: Columns  # names to read
    geometry: str | None  # column of points; without it x and y are used
    project: Projection  # reprojects points to the CRS of the domain
    srid: int | None = None  # SRID that points in text may state, see `psd.ingest.points`
    # Whether the columns are properties of GeoJSON, see `psd.ingest.selection.Rules`.
    is_json: bool = False

    @property
    def names(self) -> list[str]:
        """Columns to read, each once."""
        return _names(self.columns, self.geometry)

    def batches(self, records: Iterable[Any]) -> Iterator[Batch]:
        """Yield record batches as batches of limited size."""
        for record in records:
            for start in range(0, max(record.num_rows, 1), MAX_BATCH_ROWS):
                yield self._batch(record.slice(start, MAX_BATCH_ROWS))

    def _batch(self, record: Any) -> Batch:
        """Convert one record batch."""
        fields = {name: record.column(record.schema.get_field_index(name)) for name in self.names}
        x, y = self._coordinates(fields)
        columns = self.columns
        return Batch(
            x=x,
            y=y,
            user=None if columns.user is None else ids(fields[columns.user], columns.user),
            time=None
            if columns.time is None
            else wall_clock(fields[columns.time], columns.time_zone, column=columns.time),
            bid=None if columns.bid is None else bids(fields[columns.bid]),
            **selected_values(columns, fields, is_json=self.is_json),
        )

    def _coordinates(self, fields: Mapping[str, Any]) -> Coordinates:
        """Coordinates in the CRS of the domain."""
        if self.geometry is not None:
            return self.project(decode_points(fields[self.geometry], self.geometry))
        if self.columns.wkt is not None:
            points = fields[self.columns.wkt]
            return self.project(decode_point_text(points, self.columns.wkt, self.srid))
        x, y = (numbers(fields[name], name) for name in (self.columns.x, self.columns.y))
        return self.project((x, y))


def _names(columns: Columns, geometry: str | None) -> list[str]:
    """Columns to read, each once."""
    names = [*columns] if geometry is None else [geometry, *columns.others]
    return list(dict.fromkeys([*names, *columns.filtered]))


def find_columns(
    what: str, schema: Any, columns: Columns, domain: Domain, geometries: Mapping[str, Any]
) -> Layout:
    """Find and check columns before a row is read; geometries: their CRS, or None."""
    geometry, columns = columns.geometry, resolve_columns(columns, schema.names)
    if geometry is None and geometries and columns.wkt is None:
        if len(geometries) > 1:
            raise InputDataError(
                f"{what} has several columns of geometries: {', '.join(geometries)}; choose one "
                "with geometry=NAME"
            )
        (geometry,) = geometries
    chosen = _names(columns, geometry)
    if geometry is None:
        refuse_two_pairs(what, columns, schema.names)
    check_names(what, schema.names, chosen)
    check_roles(what, columns)
    # The types are known before a record is read: empty columns refuse those that cannot be read.
    import pyarrow as pa

    empty = {name: pa.nulls(0, schema.field(name).type) for name in chosen}
    if geometry is None and columns.wkt is not None:
        decode_point_text(empty[columns.wkt], columns.wkt, None)
    elif geometry is None:
        numbers(empty[columns.x], columns.x), numbers(empty[columns.y], columns.y)
    else:
        decode_points(empty[geometry], geometry)
    if columns.user is not None:
        ids(empty[columns.user], columns.user)
    if columns.time is not None:
        wall_clock(empty[columns.time], columns.time_zone, column=columns.time)
    if geometry is None:
        project = column_projection(columns, domain, what)
    else:
        project = make_projection(stated_crs(geometries.get(geometry), columns, what), domain, what)
    srid = srid_of(domain.crs, columns.input_crs)
    return Layout(columns=columns, geometry=geometry, project=project, srid=srid)


def check_names(what: str, names: list[str], required: Iterable[str]) -> None:
    """Refuse missing and repeated columns, with the likely cause."""
    for name in required:
        if names.count(name) > 1:
            raise InputDataError(f"{what} has {names.count(name)} columns named {name!r}")
        if name not in names:
            raise InputDataError(f"{what} has no column {name!r}; {_likely_cause(name, names)}")


_NAMING = (
    "name it by x=NAME, y=NAME, user=NAME, time=NAME or geometry=NAME, or correct it in where= or "
    "values="
)


def _likely_cause(name: str, names: list[str]) -> str:
    """Explain why a column is missing; names that may be a record are not shown."""
    if may_be_values(names):
        return _NAMING
    others = [other for other in names if other.strip().casefold() == name.strip().casefold()]
    if others:
        return f"it has {', '.join(map(repr, others))}; choose one by its exact name"
    listed = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
    return f"its columns are {listed or 'none'}; {_NAMING}"


def numbers(array: Any, name: str) -> NDArray[np.float64]:
    """Convert a column of coordinates to finite floats; missing values become NaN."""
    import pyarrow as pa

    array, kind = _plain(array)
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    if not any(is_kind(kind) for is_kind in numeric):
        raise InputDataError(f"column {name!r} must be numeric, got type {kind}; convert it first")
    return check_finite(name, _floats(array))


def _floats(array: Any) -> NDArray[np.float64]:
    """Numbers as floats, NaN if missing; not by Arrow's conversion, which slowly imports pandas."""
    import pyarrow as pa

    if array.type != pa.float64():
        array = array.cast(pa.float64(), safe=False)
    values, is_null = nulls_as_zeros(array)
    return np.where(is_null, np.nan, values) if is_null.any() else values


def bids(array: Any) -> NDArray[np.float64]:
    """Bids as floats, NaN for others of any type: the types of a file may depend on its records."""
    import pandas as pd
    import pyarrow as pa

    array, kind = _plain(array)
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if is_number:
        return _floats(array)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()
    if not is_text:
        return np.full(len(array), np.nan)
    texts = pd.Series(array.to_pylist(), dtype=object)
    return np.asarray(pd.to_numeric(texts, errors="coerce").to_numpy(np.float64))


def ids(array: Any, name: str) -> Any:
    """Convert a column of user ids to Arrow text; floats are refused, since they lose digits."""
    import pyarrow as pa

    array, kind = _plain(array)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_integer = pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0)
    if not (is_text or is_integer or kind == pa.string_view() or pa.types.is_null(kind)):
        raise InputDataError(
            f"column {name!r} of user ids must be text or integers, got type {kind}; floats lose "
            "digits and leading zeros"
        )
    try:
        array.validate(full=True)
        return array.cast(pa.string())
    except pa.ArrowException:
        pass  # the message quotes a value
    raise InputDataError(f"column {name!r} of user ids holds text that is not in UTF-8")


def _plain(array: Any) -> tuple[Any, Any]:
    """Decode the dictionary of an array; return the array and its type."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array, array.type


def geometry_columns(schema: Any) -> dict[str, Any]:
    """Find the columns that GeoArrow metadata marks as geometries, and their CRS."""
    return {field.name: crs for field in schema for crs in _geoarrow(field)}


def _geoarrow(field: Any) -> list[Any]:
    """CRS of a column of geometries, or None, in a list; an empty list for other columns."""
    import pyarrow as pa

    if isinstance(field.type, pa.ExtensionType):  # where a library has registered the types
        name = field.type.extension_name
        stated = field.type.__arrow_ext_serialize__()
    else:
        notes = field.metadata or {}
        name = notes.get(b"ARROW:extension:name", b"").decode()
        stated = notes.get(b"ARROW:extension:metadata", b"")
    if not name.startswith(("geoarrow.", "ogc.wkb")):
        return []
    try:
        return [json.loads(stated).get("crs")]
    except (ValueError, AttributeError):
        return [None]


# Parts of messages of libraries about memory, in errors without a class for it.
_SHORTAGES = ("out of memory", "failed to allocate", "cannot allocate", "bad_alloc", "malloc of")


def fault_class(error: Exception) -> type[InputDataError]:
    """Choose the class of the error that replaces an error of a library and its message."""
    # An error of the operating system has an errno; an error about a damaged file has none.
    is_shortage = isinstance(error, MemoryError) or (
        isinstance(error, OSError) and error.errno is not None
    )
    text = str(error).lower()
    if is_shortage or any(words in text for words in _SHORTAGES):
        return ResourceError
    return InputDataError
