"""Where points come from, one file per kind of input. Private side.

A file ``psd/ingest/sources/<name>.py`` offers ``accepts(item)`` and ``batches(items, columns,
domain)``; the first that accepts an item reads it. Files come to it expanded and checked, all of
its kind together. A source only parses: bounding and counting are done once, for all of them, in
`psd.ingest.tally`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from psd._util import plugins as registry
from psd._util.wall_clock import checked_zone
from psd.errors import InputDataError, ParameterError
from psd.ingest.sources._paths import STDIN, expanded, is_path

if TYPE_CHECKING:
    from psd.ingest.tally import Batch
    from psd.space.domain import Domain

__all__ = ["Columns", "check_repeatable", "files_of", "read"]


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
    checked_zone(columns.time_zone)
    items = list(data) if isinstance(data, list | tuple) else [data]
    if len({id(item) for item in items if not is_path(item)}) < sum(not is_path(i) for i in items):
        raise InputDataError("an input is given twice; its rows would count double")
    paths = files_of(items)
    groups = _groups([*paths, *(item for item in items if not is_path(item))])
    _check_used(columns, {source.__name__.rpartition(".")[2] for source, _ in groups})
    for source, group in groups:
        yield from source.batches(group, columns, domain)
    if files_of(items) != paths:
        raise InputDataError("files came or went while the input was read; nothing was published")


def _check_used(columns: Columns, kinds: set[str]) -> None:
    """Refuse names that no input has a use for."""
    if columns.layer is not None and "vector" not in kinds:
        raise ParameterError(
            "layer (--layer) names one of a GeoPackage or another vector file, and no input is one"
        )
    if columns.geometry is not None and kinds == {"csv"}:
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


def _groups(items: list[Any]) -> list[tuple[ModuleType, list[Any]]]:
    """What each source has to read."""
    groups: dict[ModuleType, list[Any]] = {}
    for item in items:
        groups.setdefault(_source_of(item), []).append(item)
    if not groups:
        raise InputDataError("an empty list is none that can be read; give at least one input")
    return list(groups.items())


def _source_of(item: Any) -> ModuleType:
    """Source that reads an item."""
    for name in registry.names(__name__):
        source = registry.load(__name__, "source", name)
        if source.accepts(item):
            return source
    raise InputDataError(
        f"input of type {type(item).__name__} is none that can be read: a file (CSV, Parquet, "
        "GeoPackage, Shapefile, FlatGeobuf, GeoJSON), a folder or a list of them, a table in "
        "memory, a relation of DuckDB, or the address of a PostGIS database"
    )
