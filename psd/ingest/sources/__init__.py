"""Where points come from, one file per kind of input. Private side.

A file ``psd/ingest/sources/<name>.py`` has the form of `Source`; the first that accepts an item
reads it. Files come to it expanded and checked, all of its kind together. A source only parses:
bounding and counting are done once, for all of them, in `psd.ingest.tally`. A module of another
package is a source too, by an entry point of the group ``psd.sources``; it is imported only for an
item that no source of this package accepts, or for a file whose ending they do not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from psd._util import plugins
from psd._util.wall_clock import check_zone
from psd.errors import InputDataError, ParameterError
from psd.ingest.sources._paths import STDIN, expanded, has_known_ending, is_path

if TYPE_CHECKING:
    from psd.ingest.tally import Batch
    from psd.space.domain import Domain

__all__ = ["Columns", "Source", "check_repeatable", "files_of", "read", "sources"]

_KIND = "source"


class Source(Protocol):
    """Form of the module of a source. Private side."""

    USES: tuple[str, ...]
    """Fields of `Columns` that it has a use for beside the column names: geometry, layer."""

    SUFFIXES: tuple[str, ...]
    """Endings of the names of its files, such as ``(".kml",)``; for sources of other packages."""

    def accepts(self, item: Any) -> bool:
        """Whether it reads the item: a path, or an object in memory."""

    def batches(self, items: list[Any], columns: Columns, domain: Domain) -> Iterator[Batch]:
        """Rows of the items, batch by batch.

        Raises
        ------
        InputDataError
            If an item cannot be read as asked. No message quotes a value of a row.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Names of the columns to read.

    Parameters
    ----------
    x, y : str
        Coordinates in the CRS of the domain; not used where the input has geometries.
    user : str, optional
        Opaque id of the person or device.
    time : str, optional
        Moment of the row.
    time_zone : str
        Zone of the wall clock that moments are brought to; those without a zone are on it.
    geometry : str, optional
        Points, in place of x and y; needed where an input has several such columns.
    layer : str, optional
        Layer of a file; needed where there are several.
    memory : int, optional
        Bytes that the reader may take.
    """

    x: str = "lon"
    y: str = "lat"
    user: str | None = None
    time: str | None = None
    time_zone: str = "UTC"
    geometry: str | None = None
    layer: str | None = None
    memory: int | None = None

    def __iter__(self) -> Iterator[str]:
        yield from (name for name in (self.x, self.y, self.user, self.time) if name is not None)


def read(data: Any, columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Rows of an input, batch by batch.

    Parameters
    ----------
    data : object or list of objects
        Files, folders and patterns of names, tables in memory, relations of DuckDB, tables of
        PostGIS; the rows of all that a list holds are one input. Private.
    columns : Columns
        Names of the columns. Public.
    domain : Domain
        Public; geometries are brought to its CRS.

    Yields
    ------
    Batch

    Raises
    ------
    InputDataError
        If no source accepts the input, it cannot be read as asked, or it changes meanwhile.
    ParameterError
        If one column is named for two things, the time zone is unknown, or a layer or a column
        of points is named and no input can have one.
    """
    if len(set(columns)) < len(list(columns)):
        raise ParameterError(
            f"{', '.join(columns)}: x, y, user and time have to be different columns"
        )
    check_zone(columns.time_zone)
    items = list(data) if isinstance(data, list | tuple) else [data]
    if len({id(item) for item in items if not is_path(item)}) < sum(not is_path(i) for i in items):
        raise InputDataError("an input is given twice; its rows would count double")
    paths = files_of(items)
    groups = _groups([*paths, *(item for item in items if not is_path(item))])
    _check_used(columns, {name for source, _ in groups for name in source.USES})
    for source, group in groups:
        yield from source.batches(group, columns, domain)
    if files_of(items) != paths:
        raise InputDataError("files came or went while the input was read; nothing was published")


def _check_used(columns: Columns, used: set[str]) -> None:
    """Refuse names that no input has a use for."""
    if columns.layer is not None and "layer" not in used:
        raise ParameterError(
            "layer (--layer) names one of a GeoPackage or another vector file, and no input is one"
        )
    if columns.geometry is not None and "geometry" not in used:
        raise ParameterError(
            "geometry (--geometry) names a column of points, which CSV has not; name its "
            "coordinates (--x, --y)"
        )


def check_repeatable(data: Any) -> None:
    """Refuse an input that cannot be read twice.

    Raises
    ------
    InputDataError
        If it is standard input, or a stream that is used up by reading.
    """
    for item in data if isinstance(data, list | tuple) else [data]:
        if str(item) == STDIN if is_path(item) else _is_stream(item):
            raise InputDataError(
                "private bounds read the input twice, and standard input or a stream can be read "
                "once; write it to a file first, or give public bounds (--bounds)"
            )


def _is_stream(item: Any) -> bool:
    """Whether an object is used up by reading."""
    return hasattr(item, "read_next_batch") or hasattr(item, "__next__")


def files_of(items: Iterable[Any]) -> list[Path]:
    """Files that inputs stand for, each checked; what is no file is left out.

    Raises
    ------
    InputDataError
        If a file is missing, may not be read, or is given twice.
    """
    return expanded(item for item in items if is_path(item))


def sources() -> tuple[str, ...]:
    """Names of all sources: those of this package, then those of others."""
    return plugins.names(__name__)


def _groups(items: list[Any]) -> list[tuple[Source, list[Any]]]:
    """What each source has to read."""
    groups: dict[int, tuple[Source, list[Any]]] = {}
    for item in items:
        source = _source_of(item)
        groups.setdefault(id(source), (source, []))[1].append(item)
    if not groups:
        raise InputDataError("an empty list is none that can be read; give at least one input")
    return list(groups.values())


def _source_of(item: Any) -> Source:
    """Source that reads an item."""
    faults: list[str] = []
    if is_path(item) and not has_known_ending(item):
        suffix = Path(item).suffix.lower()
        for source in _others(faults):
            if suffix and suffix in source.SUFFIXES:
                return source
    for name in plugins.own_names(__name__):
        module: Source = plugins.load(__name__, _KIND, name)
        if module.accepts(item):
            return module
    for source in _others(faults):
        if source.accepts(item):
            return source
    raise InputDataError(
        f"input of type {type(item).__name__} is none that can be read: a file (CSV, Parquet, "
        "GeoPackage, Shapefile, FlatGeobuf, GeoJSON), a folder or a list of them, a table in "
        "memory, a relation of DuckDB, or the address of a PostGIS database"
        + "".join(f"; {fault}" for fault in faults)
    )


def _others(faults: list[str]) -> Iterator[Source]:
    """Sources of other packages; the sentences about those that cannot be loaded are noted."""
    number = len(plugins.own_names(__name__))
    for name in plugins.names(__name__)[number:]:
        try:
            yield _checked(name, plugins.load(__name__, _KIND, name))
        except ParameterError as error:
            faults.append(str(error))


def _checked(name: str, source: Any) -> Source:
    """Refuse a module that has not the form of a source."""
    missing = [each for each in _FORM if not hasattr(source, each)]
    if missing:
        raise ParameterError(f"source {name!r} must have {', '.join(missing)}; see Source")
    checked: Source = source
    return checked


_FORM = ("USES", "SUFFIXES", "accepts", "batches")
