"""Columns whose names are those of ids of people or devices. Private side, reads no record.

A release per record protects a person with many records less than its epsilon states. The names
of the columns decide, never their values. A name is shown as the input spells it only where it is a
name of the list below with other separators and capitals: what a file without a header has in its
first line is shown nowhere.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd.errors import PsdError
from psd.ingest.input_paths import STDIN, file_kind, is_path
from psd.ingest.sources import files_of
from psd.ingest.sources._csv_header import header_file, read_header

if TYPE_CHECKING:
    from psd.ingest.sources import Columns

__all__ = ["ID_NAMES", "id_columns"]

_PEOPLE = (
    "user", "person", "people", "customer", "client", "member", "subscriber", "patient",
    "passenger", "rider", "driver", "visitor", "guest", "employee", "student", "citizen",
    "resident", "participant", "respondent", "owner", "household", "account", "card", "device",
    "vehicle", "phone", "sim", "mac", "imei", "imsi", "msisdn", "advertiser", "advertising",
)  # fmt: skip
_ENDINGS = ("id", "no", "nr", "number", "key", "uid", "uuid", "hash", "code")
_WORDS = (
    "uid", "uuid", "user", "username", "person", "imei", "imsi", "msisdn", "idfa", "gaid", "maid",
    "mac", "macaddress", "email", "phone", "phonenumber", "ssn", "licenceplate", "licenseplate",
)  # fmt: skip

ID_NAMES = frozenset({*_WORDS, *(person + end for person in _PEOPLE for end in _ENDINGS)})
"""Names of ids in small letters, without what separates their words. ``id`` alone is none of them:
it often numbers the records."""

_SPELLED = re.compile(r"[A-Za-z0-9]+(?:[ _.-][A-Za-z0-9]+)*")


def id_columns(data: Any, columns: Columns) -> tuple[str, ...]:
    """Names of columns that are in `ID_NAMES`; empty for inputs whose names are not known.

    Parameters
    ----------
    data : object or list of objects
        As in `psd.build`: files, standard input and tables in memory are looked at, each at its
        names alone. What cannot be read is left to the reader. Private.
    columns : Columns
        Names of the columns to read. Public.

    Examples
    --------
    >>> import pandas as pd
    >>> from psd.ingest.sources import Columns
    >>> id_columns(pd.DataFrame(columns=["lon", "lat", "User-ID", "id"]), Columns())
    ('User-ID',)
    """
    items = list(data) if isinstance(data, list | tuple) else [data]
    names = [name for item in items for name in _names_of(item, columns)]
    plain = [(name, re.sub(r"[^a-z0-9]", "", name.lower())) for name in names]
    shown = (name if _SPELLED.fullmatch(name) else key for name, key in plain if key in ID_NAMES)
    return tuple(dict.fromkeys(shown))


def _names_of(item: Any, columns: Columns) -> Sequence[str]:
    """Names of the columns of an input."""
    if is_path(item):
        if str(item) == STDIN:
            return _names_of_standard_input(columns)
        try:
            files = files_of([item])
        except PsdError:
            return ()
        return [name for path in files for name in _names_of_file(path, columns)]
    names: Any = getattr(item, "columns", ())  # of pandas, Polars and relations of DuckDB
    if not _is_plain(names) or not all(isinstance(name, str) for name in names):
        names = getattr(getattr(item, "schema", None), "names", ())  # of Arrow
    return [name for name in names if isinstance(name, str)] if _is_plain(names) else []


def _is_plain(names: object) -> bool:
    """Whether a value is a collection, and not a function or a stream."""
    return isinstance(names, Sized) and isinstance(names, Iterable)


def _names_of_file(path: Path, columns: Columns) -> Sequence[str]:
    """Names of the columns of a file; none if it cannot be read."""
    import pyarrow as pa

    # Each kind imports its own reader: that of layers takes as long as a build of few records.
    try:
        match file_kind(path):
            case "csv":
                with header_file(path, columns) as plain:
                    return read_header(plain, columns).names
            case "xlsx":
                from psd.ingest.sources.xlsx import header_names

                return header_names(path, columns)
            case "parquet":
                import pyarrow.parquet as pq

                return list(pq.read_schema(path).names)
            case "vector":
                import pyogrio

                return list(pyogrio.read_info(path, layer=columns.layer)["fields"])
    except (PsdError, OSError, RuntimeError, ValueError, pa.ArrowException):
        pass
    return ()


def _names_of_standard_input(columns: Columns) -> Sequence[str]:
    """Names in what standard input has ready, which stays there for the reader."""
    peek = getattr(getattr(sys.stdin, "buffer", None), "peek", None)
    start: bytes = b"" if peek is None else peek()
    end = start.rfind(b"\n") + 1
    if not end:
        return ()
    if not hasattr(os, "memfd_create"):  # other systems than Linux would write rows to a disk
        return ()
    try:
        with open(os.memfd_create("header"), "wb", buffering=0) as file:
            file.write(start[: end + (start[:2] == b"\xff\xfe")])
            return _names_of_file(Path(f"/dev/fd/{file.fileno()}"), columns)
    except OSError:  # no room; the reader says so
        return ()
