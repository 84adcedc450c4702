"""Parquet and GeoParquet files by row groups, with text columns of Hive's folders. Private side."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd.errors import InputDataError
from psd.ingest.input_paths import file_kind, partition_values, refuse_changes
from psd.ingest.sources._arrow import Layout, fault_class, find_columns, geometry_columns
from psd.ingest.tally_marks import refuse_private_footer

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.ingest.tally import Batch
    from psd.space.domain import Domain


_ROWS = 250_000

_BUFFER = 2**22
"""Bytes of a column that are read at once; a row group may be as large as the file."""

_LONLAT = "OGC:CRS84"
"""CRS of a GeoParquet column that states none."""


USES: tuple[str, ...] = ("geometry", "wkt", "where")
"""Fields of `psd.ingest.sources.Columns` that this source uses in addition to column names."""


def accepts(item: Any) -> bool:
    """Whether the item is the path of a Parquet file."""
    return file_kind(item) == "parquet"


def batches(items: list[Path], columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Read Parquet files, each with its own schema and CRS."""
    for path in items:  # all files are checked before a record is read
        with open_file(path) as file:
            find_layout(path, file, columns, domain)
    for path in items:
        with refuse_changes([path]), open_file(path) as file:
            chosen = find_layout(path, file, columns, domain)
            yield from chosen.batches(read_records(path, file, chosen))


def have_same_rows(first: Path, second: Path, columns: Columns) -> bool:
    """Whether files of equal content have rows, and the same ids and times in their folders."""
    with open_file(first) as file:
        values = [_folder_values(path, file, columns) for path in (first, second)]
        return file.metadata.num_rows > 0 and values[0] == values[1]


def open_file(path: Path, content: Any = None) -> Any:
    """Open a Parquet file, or `content` under its name; its footer must not mark it as private."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(
            path if content is None else content,
            pre_buffer=False,
            buffer_size=_BUFFER,
            page_checksum_verification=True,
        )
        keys = {**(file.metadata.metadata or {}), **(file.schema_arrow.metadata or {})}
    except (pa.ArrowException, OSError) as error:
        fault = fault_class(error)  # the message may quote the content
    else:
        refuse_private_footer(path, keys)
        return file
    raise fault(f"{path} cannot be read as Parquet; is it truncated or incomplete?")


def find_layout(path: Path, file: Any, columns: Columns, domain: Domain) -> Layout:
    """Find the columns, including those in the names of folders."""
    import pyarrow as pa

    schema = file.schema_arrow
    for name in _folder_values(path, file, columns):
        schema = schema.append(pa.field(name, pa.string()))
    return find_columns(str(path), schema, columns, domain, _geometries(path, schema, columns))


def _folder_values(path: Path, file: Any, columns: Columns) -> dict[str, str | None]:
    """Users, times and columns of the filter that are only in the names of folders."""
    stated = (columns.user, columns.time, *columns.filtered)
    names = dict.fromkeys(name for name in stated if name is not None)
    missing = [name for name in names if name not in file.schema_arrow.names]
    return {name: value for name in missing for value in partition_values(path, name)}


def _geometries(path: Path, schema: Any, columns: Columns) -> dict[str, Any]:
    """Geometry columns and their CRS, by GeoParquet (primary or named one), else by GeoArrow."""
    stated = (schema.metadata or {}).get(b"geo")
    if stated is None:
        return geometry_columns(schema)
    try:
        geo = json.loads(stated)
        name = geo["primary_column"] if columns.geometry is None else columns.geometry
        return {name: geo["columns"][name].get("crs", _LONLAT)} if name in geo["columns"] else {}
    except (ValueError, KeyError, AttributeError, TypeError):
        pass
    raise InputDataError(f"{path} has unreadable GeoParquet metadata; write the file again")


def read_records(path: Path, file: Any, chosen: Layout) -> Iterator[Any]:
    """Yield record batches with the columns of the folders."""
    import pyarrow as pa

    extra = _folder_values(path, file, chosen.columns)
    names = [name for name in chosen.names if name not in extra]
    try:
        for record in file.iter_batches(_ROWS, columns=names):
            for name, value in extra.items():
                repeated = pa.repeat(pa.scalar(value, pa.string()), record.num_rows)
                record = record.append_column(name, repeated)
            yield record
    except (pa.ArrowException, OSError) as error:
        fault = fault_class(error)  # raised below, so no context carries a message with values
    else:
        return
    raise fault(f"{path} is damaged, so nothing was published; write the file again")
