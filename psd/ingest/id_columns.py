"""Columns whose names are those of ids of people or devices. Private side, reads no record.

A release per record protects a person with many records less than its epsilon states. The names
of the columns decide, never their values, and a message shows names of the list below alone: what
a file without a header has in its first line is shown nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd.errors import PsdError
from psd.ingest.sources import files_of
from psd.ingest.sources._csv_header import read_header
from psd.ingest.sources._paths import STDIN, file_kind, is_path

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


def id_columns(data: Any, columns: Columns) -> tuple[str, ...]:
    """Names in `ID_NAMES` that the inputs have; empty for inputs whose names are not known.

    Parameters
    ----------
    data : object or list of objects
        As in `psd.build`: files of CSV in UTF-8, Parquet and vector files and tables in memory are
        looked at, each at its names alone. What cannot be read is left to the reader. Private.
    columns : Columns
        Names of the columns to read. Public.

    Examples
    --------
    >>> import pandas as pd
    >>> from psd.ingest.sources import Columns
    >>> id_columns(pd.DataFrame(columns=["lon", "lat", "User-ID", "id"]), Columns())
    ('userid',)
    """
    items = list(data) if isinstance(data, list | tuple) else [data]
    names = [name for item in items for name in _names_of(item, columns)]
    plain = (re.sub(r"[^a-z0-9]", "", name.lower()) for name in names)
    return tuple(dict.fromkeys(name for name in plain if name in ID_NAMES))


def _names_of(item: Any, columns: Columns) -> Sequence[str]:
    """Names of the columns of an input."""
    if is_path(item):
        if str(item) == STDIN:
            return ()
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
                return read_header(path, columns).names
            case "parquet":
                import pyarrow.parquet as pq

                return list(pq.read_schema(path).names)
            case "vector":
                import pyogrio

                return list(pyogrio.read_info(path, layer=columns.layer)["fields"])
    except (PsdError, OSError, RuntimeError, ValueError, pa.ArrowException):
        pass
    return ()
