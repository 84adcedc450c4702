"""Names by which a ledger recognises the inputs of a dataset. Private side, reads no records.

A file is named by device and inode, so a renamed or linked file keeps its name and a copy has
another name. A table of a database is named by its address, a tally by the random numbers of the
runs that counted its parts. An input that cannot be recognised again, such as a table in
memory, has no name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from psd._util.postgres import display_name
from psd.errors import InputDataError
from psd.ingest.engines._spark_tables import SparkTable
from psd.ingest.partial_tally import PartialTally, PartOrigin
from psd.ingest.sources._paths import STDIN, expand_paths, is_path
from psd.ingest.sources.postgis import PostGIS

if TYPE_CHECKING:
    import os

__all__ = ["NAMELESS", "input_names", "tally_names"]

NAMELESS = ""
"""Name of an input that cannot be recognised; no dataset registers it."""


def input_names(data: Any, *, has_tallies: bool = False) -> tuple[str, ...]:
    """Name all inputs, in order: one name for each file, table, address and part of a tally.

    Parameters
    ----------
    data : object or list of objects
        As in `psd.build`. Private.
    has_tallies : bool
        Whether files may be tallies, which are named by their parts; their headers are read.

    Examples
    --------
    >>> input_names(PostGIS("postgresql://ann:secret@db.example.org/city", table="public.visits"))
    ('table db.example.org/city public.visits',)
    >>> input_names("-") == (NAMELESS,)
    True
    """
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
        yield _table_name(item)
    elif isinstance(item, SparkTable):
        yield f"table of Spark {item.name}"
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
            else:
                state = file.stat()
                yield f"{state.st_dev} {state.st_ino}"
    except (InputDataError, OSError):  # refused when it is read
        yield NAMELESS


def _table_name(source: PostGIS) -> str:
    """Name of a table or a query of a database, without a user or a password."""
    authority, slash, database = source.url.partition("://")[2].partition("/")
    if display_name(source.url) == "the database" or "password" in database.lower():
        return NAMELESS
    rows = source.table if source.query is None else f"query {source.query}"
    return f"table {authority.rpartition('@')[2]}{slash}{database} {rows}"
