"""Objects in the stores s3:// and gs://, by the file systems of pyarrow. Private side.

Credentials come from the environment or files of the stores, never from an address. Of Parquet only
needed columns are fetched; text is copied to an unnamed file, because it is scanned first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from psd.errors import InputDataError
from psd.ingest.input_paths import ending_kind
from psd.ingest.sources import csv, parquet
from psd.ingest.sources._csv_file import stored_stream

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.ingest.tally import Batch
    from psd.space.domain import Domain


_SCHEMES = ("s3://", "gs://")


USES: tuple[str, ...] = tuple(dict.fromkeys((*parquet.USES, *csv.USES)))
"""Fields of `psd.ingest.sources.Columns` that this source uses in addition to column names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Object:
    """An object of a store."""

    address: str
    system: Any
    key: str
    state: Any

    @property
    def name(self) -> Path:
        """Bucket and key, as messages and values in names of folders have them."""
        return Path(PurePosixPath(self.key))


def accepts(item: Any) -> bool:
    """Whether the item is the address of an object."""
    return isinstance(item, str) and item.lower().startswith(_SCHEMES)


def batches(items: list[str], columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Read objects: Parquet by its ending, other text as CSV."""
    objects = [_find(address) for address in items]
    for each in objects:  # all are checked before a record is read
        if _kind(each) == "parquet":
            with _open(each) as handle, parquet.open_file(each.name, handle) as file:
                parquet.find_layout(each.name, file, columns, domain)
    for each in objects:
        read = _read_parquet if _kind(each) == "parquet" else _read_text
        yield from read(each, columns, domain)
        if _state(each.system, each.key) != each.state:
            raise InputDataError(f"{each.name} changed while it was read; nothing was published")


def _find(address: str) -> _Object:
    """Look up an object."""
    import pyarrow as pa
    from pyarrow import fs

    scheme, _, rest = address.partition("://")
    if "@" in rest:
        raise InputDataError(
            f"an address {scheme}:// must have no user and no password; the environment has them, "
            "such as AWS_ACCESS_KEY_ID or GOOGLE_APPLICATION_CREDENTIALS"
        )
    try:
        system, key = fs.FileSystem.from_uri(address)
        state = _state(system, key)
    except (pa.ArrowException, OSError, ValueError):
        pass  # the message has headers of requests
    else:
        if state is not None:
            return _Object(address=address, system=system, key=key, state=state)
        raise InputDataError(
            f"the input {scheme}:// must be an object; name each object, not a folder or a pattern"
        )
    raise InputDataError(
        f"the input {scheme}:// cannot be reached; are the network, the bucket, its region and the "
        "credentials right? Else download it, or pass a table"
    )


def _state(system: Any, key: str) -> tuple[int, int] | None:
    """Size and time of an object; None if it is not one."""
    from pyarrow import fs

    info = system.get_file_info(key)
    return (info.size, info.mtime_ns) if info.type == fs.FileType.File else None


def _kind(each: _Object) -> str:
    """Format by the ending of the key."""
    kind = ending_kind(each.name)
    if kind in ("parquet", "csv"):
        return kind
    raise InputDataError(f"{each.name} must be Parquet or CSV at an address; download it")


@contextmanager
def _open(each: _Object) -> Iterator[Any]:
    """Open an object; what the store says may have headers of requests."""
    import pyarrow as pa

    try:
        handle = each.system.open_input_file(each.key)
    except (pa.ArrowException, OSError):
        handle = None
    if handle is None:
        raise InputDataError(f"{each.name} cannot be opened; may these credentials read it?")
    with handle:
        yield handle


def _read_parquet(each: _Object, columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Read the columns of a Parquet file."""
    with _open(each) as handle, parquet.open_file(each.name, handle) as file:
        layout = parquet.find_layout(each.name, file, columns, domain)
        yield from layout.batches(parquet.read_records(each.name, file, layout))


def _read_text(each: _Object, columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Copy text to an unnamed file, and read it."""
    with _open(each) as handle, stored_stream(str(each.name), handle) as path:
        yield from csv.batches([path], columns, domain)
