"""Arrow record batches as rows of a source; every engine that speaks Arrow comes through here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.wall_clock import wall_clock
from psd.errors import InputDataError
from psd.ingest.sources._points import Coordinates, Projection, decoded, finite, projection
from psd.ingest.tally import Batch

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.space.domain import Domain

__all__ = ["ROWS", "Layout", "check_names", "geometries", "layout"]

ROWS = 1_000_000
"""Most rows of a batch."""

_LISTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where in Arrow batches of one schema the points, users and times are.

    Parameters
    ----------
    what : str
        What messages call the input.
    columns : Columns
        Names asked for.
    geometry : str, optional
        Column of points; x and y are used where there is none.
    project : callable
        Brings points to the CRS of the domain.
    """

    what: str
    columns: Columns
    geometry: str | None
    project: Projection

    @property
    def names(self) -> list[str]:
        """Columns to read, each once."""
        columns = self.columns
        places = [columns.x, columns.y] if self.geometry is None else [self.geometry]
        return [*places, *(name for name in (columns.user, columns.time) if name is not None)]

    def batches(self, records: Iterable[Any]) -> Iterator[Batch]:
        """Rows of record batches, in batches that are not too large."""
        for record in records:
            for start in range(0, max(record.num_rows, 1), ROWS):
                yield self._batch(record.slice(start, ROWS))

    def _batch(self, record: Any) -> Batch:
        """One record batch."""
        fields = {name: record.column(record.schema.get_field_index(name)) for name in self.names}
        x, y = self._places(fields)
        columns = self.columns
        return Batch(
            x=x,
            y=y,
            user=None if columns.user is None else ids(fields[columns.user], columns.user),
            time=None
            if columns.time is None
            else wall_clock(fields[columns.time], columns.time_zone, column=columns.time),
        )

    def _places(self, fields: Mapping[str, Any]) -> Coordinates:
        """Coordinates in the CRS of the domain."""
        if self.geometry is not None:
            return self.project(decoded(fields[self.geometry], self.geometry))
        x, y = (numbers(fields[name], name) for name in (self.columns.x, self.columns.y))
        return x, y


def layout(
    what: str, schema: Any, columns: Columns, domain: Domain, found: Mapping[str, Any]
) -> Layout:
    """Find the columns of an input and check them before a row is read.

    Parameters
    ----------
    what : str
        What messages call the input.
    schema : pyarrow.Schema
        All columns.
    columns : Columns
        Names asked for. Public.
    domain : Domain
        Public.
    found : dict
        Columns of geometries and the CRS of each, None where there is none.

    Raises
    ------
    InputDataError
        If a column is missing, doubled or of another type.
    DomainError
        If the geometries have no CRS.
    """
    geometry = columns.geometry
    if geometry is None and found:
        if len(found) > 1:
            raise InputDataError(
                f"{what} has several columns of geometries: {', '.join(found)}; say which one "
                "(--geometry)"
            )
        (geometry,) = found
    chosen = Layout(what=what, columns=columns, geometry=geometry, project=lambda here: here)
    check_names(what, schema.names, chosen.names)
    _check_types(schema, chosen)
    if geometry is None:
        return chosen
    project = projection(found.get(geometry), domain, what)
    return Layout(what=what, columns=columns, geometry=geometry, project=project)


def check_names(what: str, names: list[str], wanted: Iterable[str]) -> None:
    """Refuse missing and doubled columns, with the likely cause."""
    for name in wanted:
        if names.count(name) > 1:
            raise InputDataError(f"{what} has {names.count(name)} columns named {name!r}")
        if name not in names:
            raise InputDataError(f"{what} has no column {name!r}; {_likely_cause(name, names)}")


def _likely_cause(name: str, names: list[str]) -> str:
    """Why a column is not found; names of columns are structure, and seen by the holder alone."""
    alike = [other for other in names if other.strip().casefold() == name.strip().casefold()]
    if alike:
        return f"it has {alike[0]!r}: names are taken letter by letter"
    listed = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
    return f"its columns are {listed or 'none'}; see --x, --y, --user, --time, --geometry"


def _check_types(schema: Any, chosen: Layout) -> None:
    """Refuse columns of types that no row of can be read."""
    import pyarrow as pa

    empty = {name: pa.array([], schema.field(name).type) for name in chosen.names}
    columns = chosen.columns
    if chosen.geometry is None:
        numbers(empty[columns.x], columns.x), numbers(empty[columns.y], columns.y)
    else:
        decoded(empty[chosen.geometry], chosen.geometry)
    if columns.user is not None:
        ids(empty[columns.user], columns.user)
    if columns.time is not None:
        wall_clock(empty[columns.time], columns.time_zone, column=columns.time)


def numbers(array: Any, name: str) -> NDArray[np.float64]:
    """Column of coordinates as floats; missing ones are NaN.

    Raises
    ------
    InputDataError
        If it is no column of numbers, or holds infinite ones.
    """
    import pyarrow as pa

    array, kind = _plain(array)
    known = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    if not any(is_kind(kind) for is_kind in known):
        raise InputDataError(
            f"column {name!r} is of type {kind}, not of numbers; convert it first, so that nothing "
            "is left out in silence"
        )
    values = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return finite(name, values.astype(np.float64))


def ids(array: Any, name: str) -> Any:
    """Column of user ids as Arrow text; floats are refused, since they have lost digits.

    Raises
    ------
    InputDataError
        If it is neither text nor whole numbers.
    """
    import pyarrow as pa

    array, kind = _plain(array)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_whole = pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0)
    if not (is_text or is_whole or kind == pa.string_view() or pa.types.is_null(kind)):
        raise InputDataError(
            f"column {name!r} of user ids is of type {kind}; give ids as text or whole numbers, so "
            "that no digit and no leading zero is lost"
        )
    try:
        array.validate(full=True)
        return array.cast(pa.string())
    except pa.ArrowException:
        pass  # the message quotes a value
    raise InputDataError(f"column {name!r} of user ids holds text that is not in UTF-8")


def _plain(array: Any) -> tuple[Any, Any]:
    """An array without its dictionary, and its type."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array, array.type


def geometries(schema: Any) -> dict[str, Any]:
    """Columns that say themselves, as GeoArrow does, that they are geometries, and their CRS."""
    return {field.name: crs for field in schema for crs in _geoarrow(field)}


def _geoarrow(field: Any) -> list[Any]:
    """CRS of a column of geometries, None where it has none; empty for other columns."""
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
        return [json.loads(stated or b"{}").get("crs")]
    except (ValueError, AttributeError):
        return [None]
