"""Names of columns, and which are those of ids of people or devices. Private side, reads no record.

A release per record protects a person with many records less than its epsilon states. Only names of
the list below are shown, so that the first line of a file without a header is not.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd.errors import PsdError
from psd.ingest.input_paths import STDIN, file_kind, is_path
from psd.ingest.sources import files_of
from psd.ingest.sources._arrow import geometry_columns
from psd.ingest.sources._csv_file import plain_file, read_header

if TYPE_CHECKING:
    from psd.ingest.sources import Columns


_PEOPLE = (
    "user", "person", "people", "customer", "client", "member", "subscriber", "patient",
    "passenger", "rider", "driver", "visitor", "guest", "employee", "student", "citizen",
    "resident", "participant", "respondent", "owner", "household", "account", "card", "device",
    "vehicle", "phone", "sim", "mac", "imei", "imsi", "msisdn", "advertiser", "advertising",
    "nhs", "national", "passport", "medicalrecord", "socialsecurity", "insurance", "tax", "staff",
    "worker", "courier", "pupil", "tenant", "voter", "traveller", "traveler", "cardholder",
)  # fmt: skip
_ENDINGS = ("id", "ids", "no", "nr", "num", "number", "key", "ref", "uid", "uuid", "hash", "code")
_WORDS = (
    "uid", "uuid", "user", "username", "person", "imei", "imsi", "msisdn", "idfa", "gaid", "maid",
    "mac", "macaddress", "email", "phone", "phonenumber", "ssn", "licenceplate", "licenseplate",
    "customer", "client", "member", "subscriber", "patient", "passenger", "rider", "driver",
    "visitor", "employee", "student", "citizen", "participant", "respondent", "device", "nino",
    "mrn", "nhs", "chi", "ipaddress",
)  # fmt: skip

ID_NAMES = frozenset({*_WORDS, *(person + end for person in _PEOPLE for end in _ENDINGS)})
"""Names of ids in small letters, without what separates their words. ``id`` alone is none of them:
it often numbers the records."""

_SPELLED = re.compile(r"[A-Za-z0-9]+(?:[ _.-][A-Za-z0-9]+)*")


def id_columns(headers: Iterable[Header]) -> tuple[str, ...]:
    """Names of columns that are in `ID_NAMES`, each once."""
    names = [name for header in headers for name in header.names]
    plain = [(name, re.sub(r"[^a-z0-9]", "", name.lower())) for name in names]
    shown = (name if _SPELLED.fullmatch(name) else key for name, key in plain if key in ID_NAMES)
    return tuple(dict.fromkeys(shown))


@dataclass(frozen=True, slots=True)
class Header:
    """Names of the columns of a table, and whether it has geometries, which are then its points."""

    names: Sequence[str] = ()
    has_geometries: bool = False


def headers_of(data: Any, columns: Columns) -> list[Header]:
    """Headers of files one by one, of standard input and tables in memory, by their names alone."""
    headers = []
    for item in data if isinstance(data, list | tuple) else [data]:
        if not is_path(item):
            headers.append(header_in_memory(item))
        elif str(item) == STDIN:
            headers.append(_header_of_standard_input(columns))
        else:
            with suppress(PsdError):
                headers += [_header_of_file(path, columns) for path in files_of([item])]
    return headers


def header_in_memory(item: Any) -> Header:
    """Header of a table in memory; without names for anything else."""
    names: Any = getattr(item, "columns", ())  # of pandas, Polars and relations of DuckDB
    schema = getattr(item, "schema", None)
    has_geometries = hasattr(item, "to_crs")  # of GeoPandas
    if not _is_plain(names) or not all(isinstance(name, str) for name in names):
        names = getattr(schema, "names", ())  # of Arrow
        has_geometries |= hasattr(schema, "metadata") and bool(geometry_columns(schema))
    if not _is_plain(names) or not len(names):
        names = getattr(getattr(item, "dtype", None), "names", None) or ()  # of NumPy
    plain = [name for name in names if isinstance(name, str)] if _is_plain(names) else []
    return Header(plain, has_geometries)


def _is_plain(names: object) -> bool:
    """Whether a value is a collection, and not a function or a stream."""
    return isinstance(names, Sized) and isinstance(names, Iterable)


def _header_of_file(path: Path, columns: Columns) -> Header:
    """Header of a file; without names if it cannot be read."""
    import pyarrow as pa

    # Each kind imports its own reader: that of layers takes as long as a build of few records.
    try:
        match file_kind(path):
            case "csv":
                with plain_file(path, columns, rows=False) as plain:
                    return Header(read_header(plain, columns).names)
            case "xlsx":
                from psd.ingest.sources.xlsx import header_names

                return Header(header_names(path, columns))
            case "parquet":
                import pyarrow.parquet as pq

                schema = pq.read_schema(path)
                has_geometries = b"geo" in (schema.metadata or {}) or geometry_columns(schema)
                return Header(list(schema.names), bool(has_geometries))
            case "vector":
                import pyogrio

                info = pyogrio.read_info(path, layer=columns.layer)
                # Names of GeoJSON are those of its features, so one of them would decide.
                is_json = info["driver"].startswith("GeoJSON")
                return Header([] if is_json else list(info["fields"]), has_geometries=True)
    except (PsdError, OSError, RuntimeError, ValueError, pa.ArrowException):
        pass
    return Header()


def _header_of_standard_input(columns: Columns) -> Header:
    """Header in what standard input has ready, which stays there for the reader."""
    peek = getattr(getattr(sys.stdin, "buffer", None), "peek", None)
    start: bytes = b"" if peek is None else peek()
    end = start.rfind(b"\n") + 1
    if not end:
        return Header()
    if not hasattr(os, "memfd_create"):  # other systems than Linux would write rows to a disk
        return Header()
    try:
        with open(os.memfd_create("header"), "wb", buffering=0) as file:
            file.write(start[: end + (start[:2] == b"\xff\xfe")])
            return _header_of_file(Path(f"/dev/fd/{file.fileno()}"), columns)
    except OSError:  # no room; the reader says so
        return Header()
