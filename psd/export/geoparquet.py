"""GeoParquet: columns for analysis; cells have a covering of boxes for quick spatial filters."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

from psd._util.column_kinds import held_columns

if TYPE_CHECKING:
    import geopandas

__all__ = ["SUFFIX", "write"]

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
