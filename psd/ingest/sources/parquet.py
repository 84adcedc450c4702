"""Parquet and GeoParquet files, a row group after another. Private side.

A column that the files do not have may be said by the names of their folders, as Hive does
(``day=2024-01-31/part-0.parquet``); it is text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd.errors import InputDataError
from psd.ingest.sources._arrow import Layout, geometries, layout
from psd.ingest.sources._paths import kind, partition, unchanged

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.ingest.tally import Batch
    from psd.space.domain import Domain

__all__ = ["accepts", "batches"]

_ROWS = 250_000

_PART = 2**22
"""Bytes of a column that are read at once; a row group may be as large as the file."""

_LONLAT = "OGC:CRS84"
"""CRS of a GeoParquet column that states none."""


USES: tuple[str, ...] = ("geometry",)
"""Fields of `psd.ingest.sources.Columns` that a file or table of this kind has a use for."""


def accepts(item: Any) -> bool:
    """Whether the item is the path of a Parquet file."""
    return kind(item) == "parquet"


def batches(items: list[Path], columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Rows of Parquet files, each with its own schema and CRS.

    Raises
    ------
    InputDataError
        If a file is truncated, lacks a column or changes while it is read.
    DomainError
        If geometries have no CRS.
    """
    for path in items:  # all files are looked at before a row is read
        with _opened(path) as file:
            _layout(path, file, columns, domain)
    for path in items:
        with unchanged([path]), _opened(path) as file:
            chosen = _layout(path, file, columns, domain)
            yield from chosen.batches(_records(path, file, chosen))


def _opened(path: Path) -> Any:
    """Parquet file with a sound footer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(
            path, pre_buffer=False, buffer_size=_PART, page_checksum_verification=True
        )
    except (pa.ArrowException, OSError):
        pass  # the message may quote the content
    raise InputDataError(f"{path} is no sound Parquet file; is it truncated, or still written?")


def _layout(path: Path, file: Any, columns: Columns, domain: Domain) -> Layout:
    """Where the columns are, those of the folders with them."""
    import pyarrow as pa

    schema = file.schema_arrow
    for name in _of_folders(path, file, columns):
        schema = schema.append(pa.field(name, pa.string()))
    return layout(str(path), schema, columns, domain, _geometries(path, schema, columns))


def _of_folders(path: Path, file: Any, columns: Columns) -> dict[str, str | None]:
    """Users and times that are written in the names of folders alone."""
    asked = (name for name in (columns.user, columns.time) if name is not None)
    known = file.schema_arrow.names
    return {name: v for name in asked if name not in known for v in partition(path, name)}


def _geometries(path: Path, schema: Any, columns: Columns) -> dict[str, Any]:
    """Columns of geometries and their CRS: as GeoParquet says, else as Arrow says.

    Of several the primary one of GeoParquet counts alone, unless another is asked for.
    """
    stated = (schema.metadata or {}).get(b"geo")
    if stated is None:
        return geometries(schema)
    try:
        geo = json.loads(stated)
        name = geo["primary_column"] if columns.geometry is None else columns.geometry
        return {name: geo["columns"][name].get("crs", _LONLAT)} if name in geo["columns"] else {}
    except (ValueError, KeyError, AttributeError, TypeError):
        pass
    raise InputDataError(f"{path} has GeoParquet metadata that cannot be read; write it again")


def _records(path: Path, file: Any, chosen: Layout) -> Iterator[Any]:
    """Record batches with the columns of the folders."""
    import pyarrow as pa

    extra = _of_folders(path, file, chosen.columns)
    names = [name for name in chosen.names if name not in extra]
    try:
        for record in file.iter_batches(_ROWS, columns=names):
            for name, value in extra.items():
                told = pa.repeat(pa.scalar(value, pa.string()), record.num_rows)
                record = record.append_column(name, told)
            yield record
    except (pa.ArrowException, OSError):
        fault = True  # raised outside, where no context carries a message that quotes
    else:
        fault = False
    if fault:
        raise InputDataError(f"{path} is damaged; write it again, nothing was published")
