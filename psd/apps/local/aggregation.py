"""From the reports of a campaign to counts, each nonce once, and to a release and its tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from psd._util.declared_parameters import NO_PARAMETERS
from psd.api.release import Release
from psd.apps.local.campaign_design import grow_tree, regions_of_campaign
from psd.apps.local.campaigns import explain_device, load_campaign
from psd.apps.local.collection import drop_repeated, open_parts
from psd.apps.local.device import DEPTH, PLACES, Campaign, Group, check_group
from psd.apps.local.protocols import ReportProtocol, protocol_of, report_protocol_of
from psd.errors import InputDataError, ParameterError
from psd.privacy.unit import PrivacyUnit
from psd.release.post_processing import PostProcessing
from psd.release.record import LevelReports, LocalReports, ReleaseRecord
from psd.space.bounds import beyond_the_world
from psd.space.box_tree import Tree
from psd.space.covariate import Covariate
from psd.space.domain import Domain
from psd.space.region_tree import RegionTree, region_frame

__all__ = ["Counted", "release_of"]


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
    # By ranges of nonces, so that all copies of a report are in one batch.
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
    if protocol.report != "mask":
        codes: NDArray[np.int64] = table.column("code").to_numpy().astype(np.int64)
        first, end = protocol.codes
        _check(codes.min() >= first and codes.max() < end)
        return codes
    width = protocol.width
    sets = table.column("mask").combine_chunks()
    sizes = pc.binary_length(sets)
    _check(sets.null_count == 0 and pc.all(pc.equal(sizes, width)).as_py())
    # All sets as rows of bytes, without a copy; a slice of a table begins at an offset.
    fixed = sets.cast(pa.binary(width))
    masks = np.frombuffer(fixed.buffers()[1], np.uint8)[fixed.offset * width :]
    rows: NDArray[np.uint8] = masks[: len(fixed) * width].reshape(-1, width)
    _check(protocol.read_masks(rows).all())
    return rows


def _check(holds: Any) -> None:
    """Refuse a part with an answer that its protocol does not have."""
    if not holds:
        raise InputDataError("a part holds an answer that its protocol does not have")


Counts = Sequence[NDArray[np.int64]]


def grid_tree(
    campaign: Campaign, cells: Sequence[Sequence[str]], support: Counts
) -> tuple[Tree, Sequence[int]]:
    """Tree of partitions, each at least as fine as the one before, and the level of each."""
    grown = grow_tree(cells)
    count, epsilon = _on_levels(campaign, support, grown.level, grown.at)
    tree = Tree(
        boxes=grown.boxes, parent=grown.parent, level=grown.level, count=count, loss=epsilon
    )
    return tree, grown.at


def region_tree(
    campaign: Campaign, cells: Sequence[Sequence[str]], support: Counts
) -> tuple[RegionTree, Sequence[int]]:
    """Tree of the named regions of a campaign, and the level of each group; see `grid_tree`."""
    regions = regions_of_campaign(campaign)
    frame = region_frame(regions, (2**DEPTH, 2**DEPTH))
    # Virtual nodes stand between levels of regions, so these are not one below the other.
    at = [int(frame.level[frame.named(tier)[0]]) for tier in range(len(cells))]
    count, epsilon = _on_levels(campaign, support, frame.level, at)
    tree = RegionTree(
        boxes=frame.boxes.astype(np.int32),
        parent=frame.parent.astype(np.int32),
        level=frame.level.astype(np.int16),
        count=count,
        loss=epsilon,
        regions=regions,
    )
    return tree, at


def _on_levels(
    campaign: Campaign, support: Counts, level: NDArray[np.integer], at: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Counts and epsilons of the nodes: of each group, those of its level."""
    count, epsilon = np.zeros((2, len(level)), np.int64)
    for counts, number in zip(support, at, strict=True):
        # Reports of a group count the cells of one level; others stay unmeasured.
        count[level == number] = counts
        epsilon[level == number] = campaign.nano_epsilon
    return count, epsilon


METHOD = "local"

_COUNTED = {"cells", "protocol", "reports", "support", "outside"}
_STATED = frozenset({"groups", "repeated"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Support counts of the cells of a group."""

    cells: tuple[str, ...]  # keys of the cells
    protocol: str
    settings: dict[str, Any]
    p: Fraction
    q: Fraction
    reports: int
    support: NDArray[np.int64]  # (cells,) int64; reports that support each cell
    outside: int  # reports that support the answer *outside*

    @classmethod
    def of(cls, group: Group, reports: int, support: NDArray[np.int64]) -> Counted:
        """Counts of a group by its answers, of which the last is *outside*."""
        protocol = protocol_of(group)
        assert group.partition is not None  # as the group is asked
        return cls(
            cells=group.partition.cells,
            protocol=protocol.name,
            settings=protocol.settings,
            p=protocol.p,
            q=protocol.q,
            reports=reports,
            support=support[:-1],
            outside=int(support[-1]),
        )


def aggregate(campaign: str, folder: str) -> Release:
    """Make the release of a campaign from its parts.

    Guarantees
    ----------
    - It reads reports alone, so it costs no epsilon; the file states the epsilon of a report.

    Parameters
    ----------
    campaign : str
        File of the campaign.
    folder : str
        Folder of its parts, which `psd.apps.local.collection` wrote.

    Raises
    ------
    ParameterError
        If the campaign is not valid.
    InputDataError
        If parts are missing, damaged or of another campaign, or there are fewer reports than cells.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from psd.apps import local
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name)
    >>> campaign = local.design((126.4, 37, 127.6, 38), 4, 2000, rounds=1)
    >>> local.write_campaign(campaign, path / "c.json")
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"lon": [127.0] * 2000, "lat": 37.5})
    >>> rows.to_csv(path / "rows.csv", index=False)
    >>> local.randomize(f"{path}/c.json", f"{path}/rows.csv", f"{path}/lines")
    2000
    >>> collected = local.collect(f"{path}/c.json", [f"{path}/lines"], f"{path}/parts")
    >>> release = local.aggregate(f"{path}/c.json", f"{path}/parts")
    >>> str(release.unit)
    "PrivacyUnit(kind='report', max_contributions=1, weight=0, time_zone=None, max_per_slice=None)"
    >>> folder.cleanup()
    """
    return aggregate_campaign(load_campaign(campaign), Path(folder))[0]


def aggregate_campaign(campaign: Campaign, folder: Path) -> tuple[Release, list[Counted]]:
    """Release of a campaign and its earlier rounds, and the counts of all of their groups."""
    if campaign.question not in PLACES:
        raise ParameterError(
            f"campaign must ask for places, got {campaign.question}; their answers are a table, "
            "which `tabulate` makes"
        )
    counts = count_support(campaign, folder)
    groups = [*earlier_groups(campaign), *counted_groups(campaign, counts.groups)]
    return release_of(campaign, groups, counts.repeated), groups


def earlier_groups(campaign: Campaign) -> list[Counted]:
    """Counts of earlier rounds, as the campaign states them."""
    groups = []
    wrong = ParameterError("campaign must state the counts of its earlier rounds; it is damaged")
    for value in (group["counted"] for group in campaign.content["groups"]):
        if value is None:  # a group of this round, or of a later one
            continue
        if not isinstance(value, dict) or value.keys() != _COUNTED:
            raise wrong
        if not isinstance(value["support"], list):
            raise wrong
        asked = {"cells": value["cells"], "protocol": value["protocol"]}
        with explain_device():
            group = check_group({**asked, "share": 0, "counted": None}, campaign.nano_epsilon, "")
        numbers = [value["reports"], value["outside"], *value["support"]]
        if group.partition is None or len(numbers) != len(group.partition.cells) + 2:
            raise wrong
        if not all(type(number) is int and 0 <= number <= numbers[0] < 2**53 for number in numbers):
            raise wrong
        # The answer *outside* comes last, as in the counts of a group.
        support = np.array([*numbers[2:], numbers[1]], np.int64)
        groups.append(Counted.of(group, numbers[0], support))
    return groups


def counted_content(group: Counted) -> dict[str, Any]:
    """JSON value of the counts of a group, as the campaign of the next round states them."""
    return {
        "cells": list(group.cells),
        "protocol": {"name": group.protocol, **group.settings},
        "reports": group.reports,
        "support": group.support.tolist(),
        "outside": group.outside,
    }


def counted_groups(campaign: Campaign, groups: Sequence[GroupCounts]) -> list[Counted]:
    """Counts of all groups of a campaign that have reports."""
    return [Counted.of(campaign.groups[c.group], c.reports, c.support) for c in groups]


def release_of(campaign: Campaign, groups: Sequence[Counted], repeated: int = 0) -> Release:
    """Release of the counts of all groups, each of which is at least as fine as the one before."""
    if not all(group.reports for group in groups):
        raise InputDataError("every open group must have reports; collect more lines")
    reports, cells = sum(g.reports for g in groups), max(len(g.support) for g in groups)
    if reports < cells:
        raise InputDataError(
            f"there must be at least as many reports as cells, got {reports:,} reports for "
            f"{cells:,} cells; design the campaign for fewer devices"
        )
    make = region_tree if campaign.question == "regions" else grid_tree
    tree, at = make(
        campaign, [group.cells for group in groups], [group.support for group in groups]
    )
    parameters = NO_PARAMETERS.with_statement(
        _STATED, {"groups": len(groups), "repeated": repeated}
    )
    domain = Domain(bounds=campaign.bounds, crs=campaign.crs, min_cell=None)
    # Regions end at the rim of an oval world by themselves; cells there are on earth in part.
    is_world = not isinstance(tree, RegionTree) and beyond_the_world(domain.bounds, domain.crs)
    density = "uniform" if isinstance(tree, RegionTree) else "smooth"
    names = ("protocol", "reports", "p", "q", "outside")
    levels = tuple(
        LevelReports(level=level, **{name: getattr(group, name) for name in names})
        for group, level in zip(groups, at, strict=True)
    )
    record = ReleaseRecord(
        tree=tree,
        domain=domain,
        covariate=Covariate.of_world(domain) if is_world else None,
        epsilon=campaign.nano_epsilon,
        method=METHOD,
        parameters=parameters,
        unit=PrivacyUnit(kind="report"),
        post_processing=PostProcessing(density="covariate" if is_world else density),
        source="local",
        local=LocalReports(campaign=campaign.digest, levels=levels),
    )
    return Release(record)
