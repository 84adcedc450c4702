"""Support counts of a campaign from its parts: each nonce once, in memory that does not grow."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from psd.apps.local.collection import drop_repeated, open_parts
from psd.apps.local.device import Campaign
from psd.apps.local.protocols import ReportProtocol, report_protocol_of
from psd.errors import InputDataError

_RANGE_BYTES = 2**28
"""About as many bytes of reports are in memory at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCounts:
    """Support counts of a group."""

    group: int
    protocol: ReportProtocol
    reports: int
    support: NDArray[np.int64]  # (answers,) int64; reports that support each; the last is *outside*


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportCounts:
    """Support counts of all open groups of a campaign."""

    groups: tuple[GroupCounts, ...]  # open ones, in their order
    repeated: int  # reports that were dropped because their nonce was there already


def count_support(campaign: Campaign, folder: Path) -> SupportCounts:
    """Count the support of each answer in all parts of a folder.

    P1. The counts depend on the set of reports alone, not on parts or their order.
    """
    files = open_parts(campaign, folder)
    protocols = {
        number: report_protocol_of(group)
        for number, group in enumerate(campaign.groups)
        if group.draw is not None
    }
    tables: dict[int, NDArray[np.int64]] = {}
    reports = dict.fromkeys(protocols, 0)
    repeated = 0
    for low, high in _ranges(files):
        batch, dropped = _drop_repeated([_read_range(file, low, high) for file in files])
        repeated += dropped
        for number, codes in _by_group(batch, protocols):
            reports[number] += len(codes)
            table = protocols[number].tabulate(codes)
            tables[number] = tables[number] + table if number in tables else table
    return SupportCounts(
        groups=tuple(
            _group_counts(number, protocol, reports[number], tables.get(number))
            for number, protocol in protocols.items()
        ),
        repeated=repeated,
    )


def _group_counts(
    number: int, protocol: ReportProtocol, reports: int, table: NDArray[np.int64] | None
) -> GroupCounts:
    """Counts of a group from its table, which is None without a report."""
    if table is None:
        is_mask = protocol.report == "mask"
        empty: Any = np.zeros((0, protocol.width), np.uint8) if is_mask else np.zeros(0, np.int64)
        table = protocol.tabulate(empty)
    support = protocol.support(table)
    return GroupCounts(group=number, protocol=protocol, reports=reports, support=support)


def _ranges(files: list[pq.ParquetFile]) -> list[tuple[int, int]]:
    """Ranges of the upper half of nonces, so that the reports of each fit into memory."""
    total = sum(
        file.metadata.row_group(i).total_byte_size
        for file in files
        for i in range(file.metadata.num_row_groups)
    )
    count = -(-total // _RANGE_BYTES)
    return list(pairwise(2**64 * i // count for i in range(count + 1)))


def _read_range(file: pq.ParquetFile, low: int, high: int) -> pa.Table:
    """Reports of a part whose nonce is in a range; only row groups that meet it are read."""
    chosen = []
    for i in range(file.metadata.num_row_groups):
        statistics = file.metadata.row_group(i).column(0).statistics
        if statistics is None or (statistics.max >= low and statistics.min < high):
            chosen.append(i)
    try:
        table = file.read_row_groups(chosen)
    except (pa.ArrowException, OSError):
        raise InputDataError("a part of the folder is damaged or of another kind") from None
    if low > 0 or high < 2**64:
        nonce = table.column("nonce_high").to_numpy()
        table = table.filter(pa.array((nonce >= np.uint64(low)) & (nonce <= np.uint64(high - 1))))
    return table


def _drop_repeated(parts: list[pa.Table]) -> tuple[pa.Table, int]:
    """All parts without repeated nonces; within a part there are none."""
    table = pa.concat_tables(parts)
    if len(parts) == 1:
        return table, 0
    # Half of a nonce decides almost always: only where two halves agree is the rest compared.
    high = table.column("nonce_high").to_numpy()
    ordered = np.sort(high)
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(twice):
        return table, 0
    suspect = np.isin(high, twice)
    clean, repeated = drop_repeated(table.filter(pa.array(suspect)))
    return pa.concat_tables([table.filter(pa.array(~suspect)), clean]), repeated


def _by_group(table: pa.Table, protocols: dict[int, ReportProtocol]) -> list[tuple[int, Any]]:
    """Codes or sets of each group, checked."""
    group = table.column("group").to_numpy()
    counts = np.bincount(group[group >= 0], minlength=1)
    if (group < 0).any() or not set(np.flatnonzero(counts)) <= protocols.keys():
        raise InputDataError("a part holds a report of a group that is not open in the campaign")
    answers = []
    for number in np.flatnonzero(counts).tolist():
        mine = table if counts[number] == len(table) else table.filter(pa.array(group == number))
        answers.append((number, _codes(protocols[number], mine)))
    return answers


def _codes(protocol: ReportProtocol, table: pa.Table) -> NDArray[Any]:
    """Codes or sets of the reports of a group."""
    if protocol.report != "mask":
        codes: NDArray[np.int64] = table.column("code").to_numpy().astype(np.int64)
        first, end = protocol.codes
        _check(codes.min() >= first and codes.max() < end)
        return codes
    width = protocol.width
    sets = table.column("mask").combine_chunks()
    sizes = pc.binary_length(sets)
    _check(sets.null_count == 0 and pc.all(pc.equal(sizes, width)).as_py())
    fixed = sets.cast(pa.binary(width))
    masks = np.frombuffer(fixed.buffers()[1], np.uint8)[fixed.offset * width :]
    rows: NDArray[np.uint8] = masks[: len(fixed) * width].reshape(-1, width)
    _check(protocol.read_masks(rows).all())
    return rows


def _check(holds: Any) -> None:
    """Refuse a part with an answer that its protocol does not have."""
    if not holds:
        raise InputDataError("a part holds an answer that its protocol does not have")
