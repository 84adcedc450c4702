"""Names by which a ledger recognises the inputs of a dataset. Private side, reads no records.

A file is named by device and inode: renamed or linked it keeps its name, a copy has another one.
With a second hard link it has no name if records may depend on its path, or who reads it by another
link could choose its ids: a vector file has files beside it, and folders such as ``user=ann`` may
give ids and times (Parquet; CSV with Spark). A database table is named by its address, a tally by
random numbers of the runs that counted its parts. A table in memory has no name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from psd._util.postgres import display_name
from psd.errors import InputDataError, PsdError
from psd.ingest.input_paths import (
    STDIN,
    expand_paths,
    file_kind,
    has_partition_values,
    is_path,
)
from psd.ingest.partial_tally import PartialTally, PartOrigin
from psd.ingest.sources.postgis import PostGIS

if TYPE_CHECKING:
    import os
    from pathlib import Path

__all__ = ["NamedInput"]

NAMELESS = ""
"""Name of an input that cannot be recognised; no dataset registers it."""


class NamedInput(ABC):
    """Base class of inputs that name themselves, since any attribute may be a column of records."""

    __slots__ = ()

    @property
    @abstractmethod
    def input_name(self) -> str:
        """Name by which a ledger recognises it, equal for equal records. Reads no record."""


def input_names(data: Any, *, has_tallies: bool = False) -> tuple[str, ...]:
    """Name all inputs, private, in order: each file, table, address and part of a tally."""
    items = data if isinstance(data, list | tuple) else [data]
    return tuple(name for item in items for name in _names_of(item, has_tallies=has_tallies))


def tally_names(origins: Iterable[PartOrigin]) -> tuple[str, ...]:
    """Name the parts of a tally."""
    return tuple(f"tally {origin.run}" for origin in origins)


def _names_of(item: Any, *, has_tallies: bool) -> Iterator[str]:
    """Names of one input."""
    if isinstance(item, PartialTally):
        yield from tally_names(item.origins)
    elif isinstance(item, PostGIS):
        try:
            yield _table_name(item.with_schema())
        except PsdError:  # refused when it is read
            yield NAMELESS
    elif isinstance(item, NamedInput):
        yield item.input_name
    elif is_path(item) and str(item) != STDIN:
        yield from _file_names(item, has_tallies=has_tallies)
    elif isinstance(item, str) and "://" in item and "@" not in item:
        yield f"address {item}"
    else:
        yield NAMELESS


def _file_names(path: str | os.PathLike[str], *, has_tallies: bool) -> Iterator[str]:
    """Names of the files of a path, a folder or a pattern; of the parts of the file of a tally."""
    from psd.ingest.tally_file import is_tally, read_origins

    try:
        for file in expand_paths([path]):
            if has_tallies and is_tally(file):
                yield from tally_names(read_origins([file])[1])
                continue
            # Device and inode of a file whose records do not depend on which hard link is read.
            state = file.stat()
            is_fixed = state.st_nlink == 1 or not _depends_on_path(file)
            yield f"{state.st_dev} {state.st_ino}" if is_fixed else NAMELESS
    except (InputDataError, OSError):  # refused when it is read
        yield NAMELESS


def _depends_on_path(file: Path) -> bool:
    """Whether files beside a file, or the names of its folders, may decide its records."""
    return file_kind(file) == "vector" or has_partition_values(file)


def _table_name(source: PostGIS) -> str:
    """Name of a table or a query of a database, without a user or a password."""
    authority, slash, database = source.url.partition("://")[2].partition("/")
    if display_name(source.url) == "the database" or "password" in database.lower():
        return NAMELESS
    rows = source.table if source.query is None else f"query {source.query}"
    return f"table {authority.rpartition('@')[2]}{slash}{database} {rows}"
