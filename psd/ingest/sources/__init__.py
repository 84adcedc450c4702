"""Sources of points, one file per kind of input. Private side.

A file ``psd/ingest/sources/<name>.py`` implements `Source`; the first that accepts an item reads
it, and gets all files of its kind together, expanded and checked. A source only parses:
`psd.ingest.tally_builder` bounds and counts. Another package registers one by an entry point of the
group ``psd.sources``, imported only for what no source of this package accepts.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from psd._util import plugins
from psd._util.wall_clock import check_zone
from psd.errors import InputDataError, ParameterError
from psd.ingest.columns import Columns
from psd.ingest.input_paths import (
    STDIN,
    expand_paths,
    has_known_ending,
    is_path,
    pattern_of_mixed_folder,
    resolve_inputs,
)
from psd.ingest.sources._copies import CopyCheck, OnCopy, refuse_copy
from psd.ingest.sources._csv_file import HeaderError

if TYPE_CHECKING:
    from psd.ingest.tally import Batch
    from psd.space.domain import Domain

__all__ = [
    "Columns",
    "OnCopy",
    "Source",
    "check_input",
    "check_repeatable",
    "files_of",
    "read",
    "refuse_copy",
    "resolve_inputs",
    "sources",
]

_KIND = "source"

# Options that only some sources use.
_TEXT_OPTIONS = {
    "wkt": "a table",
    "delimiter": "a CSV file",
    "decimal": "a CSV file or a workbook",
    "encoding": "a CSV file",
    "skip_rows": "a CSV file or a workbook",
}


class Source(Protocol):
    """Interface of the module of a source. Private side."""

    USES: tuple[str, ...]
    """Fields of `Columns` that it uses in addition to column names, such as geometry or layer. With
    ``"where"`` each batch has `psd.ingest.selection.matches` of the columns of the filter."""

    SUFFIXES: tuple[str, ...]
    """Endings of the names of its files, such as ``(".kml",)``; for sources of other packages."""

    def accepts(self, item: Any) -> bool:
        """Whether it reads the item: a path, or an object in memory."""

    def batches(self, items: list[Any], columns: Columns, domain: Domain) -> Iterator[Batch]:
        """Yield the records of the items, batch by batch, inside the bounds and outside.

        Raises
        ------
        InputDataError
            If the form of an item cannot be read, wherever its records lie. No message quotes a
            value of a record. A lack of memory or disk is a `psd.errors.ResourceError`.
        """


def read(
    data: Any, columns: Columns, domain: Domain, *, on_copy: OnCopy | None = refuse_copy
) -> Iterator[Batch]:
    """Read an input, batch by batch.

    data: files, folders and patterns of names, tables in memory, relations of DuckDB, tables of
    PostGIS, or a list of them, private; all else public. Geometries are reprojected to the CRS of
    the domain. `on_copy` is called with a private message if two files have equal content; by
    default they are refused, and None compares nothing, see `psd.ingest.sources._copies`.

    Whatever cannot be read stops the build, and so does an input that changes while it is read.
    """
    items, paths, groups = _sources_of(data, columns)
    try:
        for source, group in groups:
            # Files of one source are compared with each other.
            copies = None if on_copy is None else CopyCheck(on_copy, columns)
            if getattr(source, "STATES_LENGTHS", False):
                csv: Any = source
                batches: Iterator[Batch] = csv.batches(group, columns, domain, copies=copies)
            else:
                if copies is not None:
                    copies.add_files(Path(item) for item in group if is_path(item))
                batches = source.batches(group, columns, domain)
            for batch in batches:
                for name, is_lacking in (
                    ("where", columns.where is not None and batch.match is None),
                    ("values", bool(columns.values) and batch.values is None),
                    ("category", columns.category is not None and batch.label is None),
                ):
                    if is_lacking:
                        raise InputDataError(
                            f"{name}= must be left out with this input, whose source reads no "
                            f"{name}; a table of its records in memory, or a CSV file, can be read"
                        )
                yield batch
    except HeaderError as error:
        pattern = pattern_of_mixed_folder(items)
        if pattern is None:
            raise
        raise HeaderError(
            f"{error}; a folder stands for all its files: use {pattern!r} for those of one kind"
        ) from None
    if files_of(items) != paths:
        raise InputDataError(
            "files were added or removed while they were read; nothing was published"
        )


def check_input(data: Any, columns: Columns) -> None:
    """Check the paths and the kind of an input before a record is read."""
    _sources_of(data, columns)


def _sources_of(
    data: Any, columns: Columns
) -> tuple[list[Any], list[Path], list[tuple[Source, list[Any]]]]:
    """Items of an input, files among them, and the source of each group of items."""
    if len(set(columns.roles)) < len(columns.roles):
        raise ParameterError(
            f"x, y, user, time, bid and category must be different columns, got "
            f"{', '.join(columns.roles)}"
        )
    check_zone(columns.time_zone)
    items = list(data) if isinstance(data, list | tuple) else [data]
    others = [item for item in items if not is_path(item)]
    if len(set(map(_identity, others))) < len(others):
        raise InputDataError("an input is repeated; its records would count twice")
    paths = files_of(items)

    # Group items by the source that reads them.
    by_source: dict[int, tuple[Source, list[Any]]] = {}
    for item in [*paths, *others]:
        source = _source_of(item)
        by_source.setdefault(id(source), (source, []))[1].append(item)
    if not by_source:
        raise InputDataError("data must hold at least one input, got an empty list")
    groups = list(by_source.values())

    # Refuse a layer or a geometry that no input uses.
    used = {name for user, _ in groups for name in user.USES}
    if columns.layer is not None and "layer" not in used:
        raise ParameterError(
            "layer= must be left out unless an input is a GeoPackage, another vector file or a "
            "workbook"
        )
    default = Columns()
    for name, which in _TEXT_OPTIONS.items():
        if getattr(columns, name) != getattr(default, name) and name not in used:
            raise ParameterError(f"{name} must be left out unless an input is {which}")
    if columns.geometry is not None and "geometry" not in used:
        raise ParameterError(
            "geometry= must be left out unless an input has a column of points; name coordinates "
            "(x=NAME, y=NAME)"
        )
    if columns.where is not None and not all("where" in source.USES for source, _ in groups):
        raise ParameterError(
            "where must be left out with an input whose source has no filter; select its records "
            "before, or convert the input",
            name="where",
        )
    return items, paths, groups


def _identity(item: Any) -> Any:
    """Key of an input that is not a file: its address, or the identity of the object."""
    is_address = isinstance(item, str) or (is_dataclass(item) and isinstance(item, Hashable))
    return item if is_address else id(item)


def check_repeatable(data: Any) -> None:
    """Refuse an input that cannot be read twice."""
    for item in data if isinstance(data, list | tuple) else [data]:
        is_stream = hasattr(item, "read_next_batch") or hasattr(item, "__next__")
        if str(item) == STDIN if is_path(item) else is_stream:
            raise InputDataError(
                "private bounds read the input twice, and standard input or a stream can be read "
                "only once; write it to a file first, or give public bounds="
            )


def files_of(items: Iterable[Any]) -> list[Path]:
    """Expand the paths among inputs to files, each checked; other inputs are left out."""
    return expand_paths(item for item in items if is_path(item))


def sources() -> tuple[str, ...]:
    """Return the names of all sources: those of this package, then those of others."""
    return plugins.names(__name__)


def _source_of(item: Any) -> Source:
    """Find the source that reads an item."""
    faults: list[str] = []
    if is_path(item) and not has_known_ending(item):
        suffix = Path(item).suffix.lower()
        for source in _others(faults):
            if suffix and suffix in source.SUFFIXES:
                return source
    for name in plugins.own_names(__name__):
        builtin: Source = plugins.load(__name__, _KIND, name)
        if builtin.accepts(item):
            return builtin
    for source in _others(faults):
        if source.accepts(item):
            return source
    raise InputDataError(_unreadable(item) + "".join(f"; {fault}" for fault in faults))


def _unreadable(item: Any) -> str:
    """Explain which input to give instead."""
    name = type(item).__name__
    if isinstance(item, str) and "://" in item:
        scheme = item.partition("://")[0][:20]
        return (
            f"{scheme}:// addresses are not read; download the file, or pass a table, in Python "
            f"such as pandas.read_csv('{scheme}://...')"
        )
    return (
        f"cannot read an input of type {name}; pass a file (CSV, Parquet, GeoPackage, Shapefile, "
        "FlatGeobuf, GeoJSON, XLSX), a folder or a list of them, a table in memory, a relation of "
        "DuckDB, or the address of a PostGIS database"
    )


def _others(faults: list[str]) -> Iterator[Source]:
    """Yield sources of other packages; collect messages about those that cannot be loaded."""
    builtin = plugins.own_names(__name__)
    for name in plugins.names(__name__)[len(builtin) :]:
        try:
            source: Source = plugins.load(__name__, _KIND, name)
        except ParameterError as error:
            faults.append(str(error))
            continue
        missing = [each for each in _MEMBERS if not hasattr(source, each)]
        if missing:
            faults.append(f"source {name!r} must have {', '.join(missing)}; see Source")
        else:
            yield source


_MEMBERS = ("USES", "SUFFIXES", "accepts", "batches")
