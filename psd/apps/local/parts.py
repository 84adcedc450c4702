"""Parts: reports of a campaign in Parquet, sorted by their random nonces, each nonce once.

A part holds no time, no address and no id. Its name is a digest of its content, so that a part
that is written again, after a crash, takes its own place.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from psd._util.atomic_write import write_file
from psd._util.strict_json import strict_json
from psd.apps.local.device import Campaign, canonical_json
from psd.apps.local.lines import Reports
from psd.errors import InputDataError, PsdError

__all__ = ["SCHEMA", "PartWriter", "open_parts"]

KEY: Final = b"psd-local"

SCHEMA: Final = pa.schema(
    [
        pa.field("nonce_high", pa.uint64(), nullable=False),
        pa.field("nonce_low", pa.uint64(), nullable=False),
        pa.field("group", pa.int16(), nullable=False),
        pa.field("code", pa.int32(), nullable=False),
        pa.field("mask", pa.binary()),
    ]
)
"""Columns of a part. Nonces are random, so they are written as they are; code is 0 where the
report is a set, and mask is null where it is not."""

_ROWS = 2**20
_BYTES = 2**27
_ROW_GROUP = 2**17
_LAYOUT: dict[str, Any] = {
    "compression": {name: "none" if "nonce" in name else "zstd" for name in SCHEMA.names},
    "use_dictionary": ["group"],
    "store_schema": False,
    "write_page_checksum": True,
}


@dataclass
class PartWriter:
    """Writes reports into a folder, a part for each million.

    P1. A part is complete under its name or not there: after a crash, reading the lines again gives
    the same parts, and a nonce counts once.
    """

    campaign: Campaign  # of the reports
    folder: Path  # where parts are written

    def write(self, reports: Iterable[Reports]) -> tuple[int, int]:
        """Write all reports; gives the number that was written and that of repeated nonces."""
        pending: list[Reports] = []
        written = repeated = 0
        for batch in reports:
            pending.append(batch)
            if sum(len(b.codes) for b in pending) >= _ROWS or (
                sum(b.codes.nbytes for b in pending) >= _BYTES
            ):
                rows, dropped = self._flush(pending)
                written, repeated, pending = written + rows, repeated + dropped, []
        rows, dropped = self._flush(pending)
        return written + rows, repeated + dropped

    def _flush(self, batches: Sequence[Reports]) -> tuple[int, int]:
        """Write a part."""
        if not any(len(batch.codes) for batch in batches):
            return 0, 0
        table = pa.concat_tables([_table(batch) for batch in batches])
        table, repeated = drop_repeated(table)
        footer = canonical_json({"campaign": self.campaign.digest, "version": 1})
        sink = io.BytesIO()
        with pq.ParquetWriter(sink, SCHEMA, **_LAYOUT) as out:
            out.write_table(table, row_group_size=_ROW_GROUP)
            out.add_key_value_metadata({KEY: footer.encode()})
        content = sink.getvalue()
        name = f"part-{hashlib.sha256(content).hexdigest()[:32]}.parquet"
        write_file(self.folder / name, content, overwrite=True)
        return len(table), repeated


def _table(reports: Reports) -> pa.Table:
    """Columns of reports of one group."""
    rows = len(reports.codes)
    is_mask = reports.codes.ndim == 2
    code = np.zeros(rows, np.int32) if is_mask else reports.codes.astype(np.int32)
    mask = pa.nulls(rows, pa.binary())
    if is_mask:
        width = reports.codes.shape[1]
        fixed = pa.Array.from_buffers(
            pa.binary(width), rows, [None, pa.py_buffer(np.ascontiguousarray(reports.codes))]
        )
        mask = fixed.cast(pa.binary())
    group = np.full(rows, reports.group, np.int16)
    columns = [*(pa.array(half) for half in reports.nonce.T), pa.array(group), pa.array(code), mask]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def drop_repeated(table: pa.Table) -> tuple[pa.Table, int]:
    """Sort by nonce; of reports with one nonce keep the least, in any order of arrival."""
    high, low, group, code = (column.to_numpy() for column in table.columns[:4])
    # By nonce, then by group and code; by set too where nonces repeat.
    order = np.lexsort((code, group, low, high))
    same = (high[order][1:] == high[order][:-1]) & (low[order][1:] == low[order][:-1])
    if not same.any():
        return table.take(order), 0
    order = _order_sets(table, order, same)
    keep = np.concatenate([[True], ~same])
    return table.take(order[keep]), int(same.sum())


def _order_sets(
    table: pa.Table, order: NDArray[np.int64], same: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Order with repeated nonces sorted by their sets too."""
    order, masks = order.copy(), table.column("mask")
    group, code = table.column("group").to_numpy(), table.column("code").to_numpy()
    starts = np.flatnonzero(same & ~np.concatenate([[False], same[:-1]]))
    for start in starts:
        end = start + 1
        while end < len(order) and same[end - 1]:
            end += 1
        run = order[start:end]
        rank = [(group[i], code[i], masks[int(i)].as_py() or b"") for i in run]
        order[start:end] = run[sorted(range(len(run)), key=rank.__getitem__)]
    return order


def open_parts(campaign: Campaign, folder: Path) -> list[pq.ParquetFile]:
    """Parts of a campaign in a folder, by their names."""
    paths = sorted(folder.glob("part-*.parquet"))
    if not paths:
        raise InputDataError("folder must have parts of reports, got none; collect writes them")
    return [_open_part(campaign, path) for path in paths]


def _open_part(campaign: Campaign, path: Path) -> pq.ParquetFile:
    """Open a part and check its columns and its campaign."""
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True, memory_map=True)
        footer = strict_json((file.metadata.metadata or {}).get(KEY, b""))
        if not file.schema_arrow.remove_metadata().equals(SCHEMA):
            raise ValueError
    except (pa.ArrowException, OSError, ValueError, PsdError):
        raise InputDataError("a part of the folder is damaged or of another kind") from None
    if footer != {"campaign": campaign.digest, "version": 1}:
        raise InputDataError(
            "folder must have parts of this campaign alone, got one of another campaign; collect "
            "each campaign into a folder of its own"
        )
    return file
