"""GeoParquet: columns for analysis; cells have a covering of boxes for quick spatial filters."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from psd._util.column_kinds import held_columns

if TYPE_CHECKING:
    import geopandas
    import pyarrow as pa


SUFFIX = ".parquet"


def write(table: geopandas.GeoDataFrame, path: Path) -> None:
    """Write GeoParquet 1.1; the metadata of the table stand under ``PANDAS_ATTRS`` in the file."""
    import pyarrow.parquet as pq

    covering = table.attrs.get("content", "cells") == "cells" and "bbox" not in table
    options = {"index": False, "schema_version": "1.1.0", "write_covering_bbox": covering}
    held = held_columns(table, "parquet")
    if not any("<" in str(kind) for kind in held.dtypes):
        held.to_parquet(path, **options)
        return
    # pandas cannot read the names that it gives to types of lists and structs.
    content = io.BytesIO()
    held.to_parquet(content, **options)
    arrow = pq.read_table(content)
    stated = json.loads(arrow.schema.metadata[b"pandas"])
    for column in stated["columns"]:
        if "<" in column["numpy_type"]:
            column["numpy_type"] = "object"
    metadata = {**arrow.schema.metadata, b"pandas": json.dumps(stated).encode()}
    pq.write_table(arrow.replace_schema_metadata(metadata), path)


def write_points(tables: Iterable[geopandas.GeoDataFrame], path: Path) -> None:
    """Write tables of points, one after the other, each as a row group; see `write`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    waiting = iter(tables)
    first = held_columns(next(waiting), "parquet")
    content = io.BytesIO()
    first.to_parquet(content, index=False, schema_version="1.1.0")
    schema = pq.read_schema(content)
    # The box around the points of the first table is not that of all.
    geo = json.loads(schema.metadata[b"geo"])
    for column in geo["columns"].values():
        column.pop("bbox", None)
    schema = schema.with_metadata({**schema.metadata, b"geo": json.dumps(geo).encode()})
    with pq.ParquetWriter(path, schema, use_dictionary=_texts(schema)) as file:
        for table in chain([first], waiting):
            held = held_columns(table, "parquet")
            rows = pa.table(held.to_arrow(index=False, geometry_encoding="WKB"))
            file.write_table(pa.table(rows.columns, names=schema.names).cast(schema))


def _texts(schema: pa.Schema) -> list[str]:
    """Columns of texts."""
    import pyarrow as pa

    kinds = (pa.string(), pa.large_string())
    return [field.name for field in schema if field.type in kinds]
