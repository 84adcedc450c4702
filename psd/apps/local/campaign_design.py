"""Design a campaign from public numbers: groups, grids, regions, protocols.

A cell of a group of regions is a text ``ID|LEVEL|RING|RING...`` for each lowest region: the id of
its region of the level, and closed rings ``x y x y ...``. Numbers are the shortest decimals of the
doubles of the outline, so campaign, device and release decide by the same ones.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from psd._util.declared_parameters import integer_between
from psd.apps.local.answer_design import resolve_law
from psd.apps.local.campaigns import campaign_of
from psd.apps.local.device import DEPTH, MAX_ANSWERS, SHARES, Campaign, Partition
from psd.apps.local.protocols import best_protocol, protocol_content
from psd.errors import DomainError, ParameterError
from psd.privacy.loss import NANO
from psd.regions.files import CellRegions, RegionFiles, read_polygons
from psd.regions.hierarchy import RegionHierarchy, RegionLevel
from psd.regions.kinds.polygons import PolygonRegions
from psd.space.boundary import bounds_of
from psd.space.domain import Domain

__all__ = ["PLANS", "design"]

# Groups that are asked together: a mean cell of the finest grid has this many standard deviations,
# and each level has 1.5 times the devices of the one above.
_TOGETHER = 1.5
_GROWTH = 1.5
_COARSEST = 2
_FINEST = (3, 7)

# Levels of the first grid of several rounds.
_FIRST = (1, 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a campaign of some rounds asks."""

    shares: tuple[float, ...]  # share of the devices of each round
    # Standard deviations of a mean cell of the first grid; an integer is its level.
    first: float | int
    # Standard deviations that a cell shall have in the end, with the devices that are left.
    target: float
    least: float  # standard deviations that a cell's own measurements must have for a cut


PLANS: Final = {
    2: Plan(shares=(0.35, 0.65), first=3.0, target=2.0, least=2.0),
    3: Plan(shares=(0.15, 0.25, 0.6), first=4.0, target=2.0, least=2.0),
    4: Plan(shares=(0.15, 0.2, 0.25, 0.4), first=4.0, target=1.4, least=2.0),
    7: Plan(shares=(1 / 7,) * 7, first=2, target=0.0, least=5**0.5),
}
"""Plans by their number of rounds; a target of 0 cuts one level a round."""


def level_groups(
    nano: int, devices: int, protocol: str | None, settings: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Groups that are asked together, one for each level of a quadtree."""
    finest = grid_level(_TOGETHER, sigma(nano, devices), *_FINEST)
    levels = range(_COARSEST, finest + 1)
    shares = split_shares([_GROWTH**i for i in range(len(levels))])
    return [
        open_group(share, grid_cells(level), nano, protocol, settings)
        for level, share in zip(levels, shares, strict=True)
    ]


def round_groups(
    nano: int, devices: int, rounds: int, protocol: str | None, settings: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Groups that are asked one after another; the first one has a grid, others have no cells."""
    plan = PLANS[rounds]
    shares = split_shares(plan.shares)
    level = plan.first
    if isinstance(level, float):
        level = grid_level(level, sigma(nano, devices * plan.shares[0]), *_FIRST)
    first = open_group(shares[0], grid_cells(level), nano, protocol, settings)
    return [first, *(closed_group(share) for share in shares[1:])]


def closed_group(share: int) -> dict[str, Any]:
    """Content of a group that is asked later."""
    return {"share": share, "cells": None, "protocol": None, "counted": None}


def open_group(
    share: int,
    cells: Sequence[str],
    nano: int,
    protocol: str | None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Content of a group that is asked; the settings take the place of the best ones."""
    best = best_protocol(nano, len(cells) + 1, protocol)
    return {
        "share": share,
        "cells": list(cells),
        "protocol": protocol_content(best, settings or {}),
        "counted": None,
    }


def split_shares(weights: Sequence[float]) -> list[int]:
    """Shares in parts of a million in proportion to weights; the first takes what is left over."""
    total = sum(weights)
    shares = [int(SHARES * weight / total) for weight in weights]
    shares[0] += SHARES - sum(shares)
    return shares


def sigma(nano: int, devices: float) -> float:
    """Standard deviation of the share of a rare answer, with optimised unary encoding."""
    growth = math.expm1(min(nano / NANO, 300.0))
    return math.sqrt(4 * (growth + 1) / growth**2 / devices)


def grid_level(factor: float, deviation: float, lowest: int, highest: int) -> int:
    """Level of a grid whose mean cell has about ``factor`` standard deviations of devices."""
    return min(max(round(math.log2(1 / (factor * deviation)) / 2), lowest), highest)


MAX_DEVICES = 10**12


def design(
    bounds: Sequence[float],
    epsilon: str | float | None,
    devices: int,
    *,
    crs: str = "EPSG:4326",
    title: str = "",
    rounds: int = 4,
    protocol: str | None = None,
    settings: Mapping[str, int | str] | None = None,
) -> Campaign:
    """Design a campaign, and give its first round.

    With one round, groups of devices are asked together, each for the cell of a grid of another
    size. With several, the first group is asked for the cell of a coarse grid, and `next_round`
    cuts the cells with many devices for the group after it.

    Guarantees
    ----------
    - A device answers in one group, so the campaign costs epsilon, which is not divided.

    Parameters
    ----------
    bounds : sequence of float
        West, south, east, north. Public, never derived from the points.
    epsilon : str or float, optional
        Epsilon of a report. None if the settings ``p``, ``q`` and ``flips`` of ``rappor`` state
        its law.
    devices : int
        Expected number of devices; it decides how fine the cells are.
    crs : str
        Reference system of the bounds.
    title : str
        What people read about the campaign.
    rounds : int
        1, 2, 3, 4 or 7.
    protocol : str, optional
        Protocol of the groups; the one with the least variance by default.
    settings : mapping, optional
        Settings of the protocol of all groups, in place of the best ones; see `design_options`.

    Raises
    ------
    ParameterError
        If epsilon, the number of devices or of rounds, or the protocol is not valid.
    DomainError
        If the bounds are not valid.

    Examples
    --------
    >>> campaign = design((126.4, 37, 127.6, 38), 1, 100_000, rounds=1)
    >>> [(len(g.partition.cells), g.share) for g in campaign.groups]
    [(16, 400000), (64, 600000)]
    """
    nano, stated = resolve_law(epsilon, protocol, settings)
    count = integer_between(1, MAX_DEVICES)("devices", devices)
    if rounds == 1:
        groups = level_groups(nano, count, protocol, stated)
    elif rounds in PLANS:
        groups = round_groups(nano, count, rounds, protocol, stated)
    else:
        raise ParameterError(f"rounds must be 1, 2, 3, 4 or 7, got {rounds!r}", name="rounds")
    return campaign_of(campaign_content(bounds, crs, title, nano, count, groups))


def campaign_content(
    bounds: Sequence[float],
    crs: str,
    title: str,
    nano: int,
    devices: int,
    groups: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Content of the first campaign of its rounds."""
    if len(bounds) != 4:
        raise DomainError("bounds must be four numbers: west, south, east, north", name="bounds")
    west, south, east, north = bounds
    domain = Domain(bounds=(west, south, east, north), crs=crs, min_cell=None)
    return {
        "psd-campaign": 1,
        "question": "places",
        "title": title,
        "domain": {
            "bounds": [repr(float(edge)) for edge in domain.bounds],
            "crs": domain.crs,
            "lattice": [2**DEPTH, 2**DEPTH],
        },
        "nano_epsilon": nano,
        "devices": devices,
        "groups": list(groups),
        "earlier": [],
    }


# Of all regions of a campaign: about 20 MB in a level.
_MAX_VERTICES = 2**19

_DAMAGED = "campaign must state its regions as `psd local design` writes them; it is damaged"


def design_regions(
    regions: RegionHierarchy,
    epsilon: str | float | None,
    devices: int,
    *,
    title: str = "",
    protocol: str | None = None,
    settings: Mapping[str, int | str] | None = None,
) -> Campaign:
    """Design a campaign that asks for the region of a place, or *outside*.

    Guarantees
    ----------
    - The device gives the region that `RegionHierarchy.assign` gives for the regions of the
      campaign. A point in none of them is *outside*, an answer like any other.
    - A device answers for one level, so the campaign costs epsilon, which is not divided.

    Parameters
    ----------
    regions : RegionHierarchy
        Polygons in levels, each of which is a group of devices. Public.
    epsilon : str or float, optional
        Epsilon of a report. None if the settings ``p``, ``q`` and ``flips`` of ``rappor`` state
        its law.
    devices : int
        Expected number of devices.
    title : str
        What people read about the campaign.
    protocol : str, optional
        Protocol of the groups; the one with the least variance by default.
    settings : mapping, optional
        Settings of the protocol of all groups, in place of the best ones; see `design_options`.

    Raises
    ------
    ParameterError
        If an argument is not valid, or regions are not polygons, too many, or too small.

    Examples
    --------
    >>> import geopandas, shapely
    >>> from psd.regions.polygon_hierarchy import hierarchy_from_polygons
    >>> shapes = [shapely.box(0, 0, 1, 2), shapely.box(1, 0, 2, 2)]
    >>> table = geopandas.GeoDataFrame({"ward": ["a", "b"]}, geometry=shapes, crs=4326)
    >>> wards = hierarchy_from_polygons(table, Domain(bounds=(0, 0, 2, 2)), ids="ward")
    >>> design_regions(wards, 1, 1000).groups[0].partition.names
    ['a', 'b']
    """
    nano, stated = resolve_law(epsilon, protocol, settings)
    count = integer_between(1, MAX_DEVICES)("devices", devices)
    rings = _rings(regions)
    shares = split_shares([_GROWTH**i for i in range(len(regions.levels))])
    groups = []
    for number, (share, level) in enumerate(zip(shares, regions.levels, strict=True)):
        # One answer more than there are regions: outside.
        content = protocol_content(best_protocol(nano, len(level) + 1, protocol), stated)
        heads = [f"{level.ids[index]}|{level.name}" for index in regions.ancestors(number).tolist()]
        cells = ["|".join(pair) for pair in zip(heads, rings, strict=True)]
        groups.append({"share": share, "cells": cells, "protocol": content, "counted": None})
    domain = regions.domain
    places = campaign_content(domain.bounds, domain.crs, title, nano, count, groups)
    campaign = campaign_of({**places, "question": "regions"})
    regions_of_campaign(campaign)
    return campaign


def read_regions(
    files: RegionFiles | CellRegions, crs: str, bounds: Sequence[float] | None = None
) -> RegionHierarchy:
    """Read regions for a campaign, in the CRS in which devices know their points."""
    if isinstance(files, CellRegions):
        raise ParameterError(f"regions of a campaign must be files of polygons, got {files.kind}")
    if bounds is None:
        table = read_polygons(Path(files.paths[-1]), "regions")
        if table.crs is None:
            raise DomainError("regions have no CRS; assign it (set_crs, or in your GIS)")
        bounds = bounds_of(table, crs, "regions")
    west, south, east, north = bounds
    return files.read(Domain(bounds=(west, south, east, north), crs=crs, min_cell=None))


def regions_of_campaign(campaign: Campaign) -> RegionHierarchy:
    """Hierarchy of the regions of a campaign, whose assignment is that of its devices."""
    parts = [
        [cell.split("|", 2) for cell in group.partition.cells]
        for group in campaign.groups
        if group.partition is not None
    ]
    outlines = {tuple(rings for *_, rings in cells) for cells in parts}
    if len(parts) != len(campaign.groups) or len(outlines) != 1:
        raise ParameterError(_DAMAGED)
    import shapely

    domain = Domain(bounds=campaign.bounds, crs=campaign.crs, min_cell=None)
    polygons = np.array([_polygon(rings) for rings in outlines.pop()], dtype=object)
    is_sound = shapely.is_valid(polygons) & (shapely.area(polygons) > 0)
    is_sound &= shapely.intersects(polygons, shapely.box(*domain.bounds))
    if not is_sound.all():
        name = parts[-1][int((~is_sound).argmax())][0]
        raise ParameterError(
            f"region {name[:80]!r} must be a valid polygon in the bounds; the campaign is damaged"
        )
    return RegionHierarchy(
        domain=domain,
        levels=_levels(parts),
        geometry=PolygonRegions(domain=domain, polygons=polygons, margin=0.0, elsewhere=False),
    )


def answers_of_parts(partition: Partition) -> NDArray[np.int64]:
    """Answer of each of the lowest regions, and at the end, which is -1, *outside*."""
    number = {name: answer for answer, name in enumerate(partition.names)}
    answers = [number[cell.split("|")[0]] for cell in partition.cells]
    return np.array([*answers, len(number)], np.int64)


def _levels(parts: Sequence[Sequence[Sequence[str]]]) -> tuple[RegionLevel, ...]:
    """Levels of the regions above each lowest one."""
    levels, above = [], np.zeros(len(parts[0]), np.int32)
    for cells in parts:
        # A run of lowest regions with one id and level is a region of this level; `number` is that
        # of each lowest region, and `above` that of the level before.
        runs = [list(run) for _, run in groupby(cells, lambda cell: cell[:2])]
        starts = np.cumsum([0, *map(len, runs[:-1])])
        number = np.repeat(np.arange(len(runs), dtype=np.int32), [*map(len, runs)])
        names = {name for _, name, _ in cells}
        is_nested = bool((above == above[starts][number]).all())
        if not is_nested or len(names) != 1 or len({run[0][0] for run in runs}) != len(runs):
            raise ParameterError(_DAMAGED)
        ids = tuple(run[0][0] for run in runs)
        levels.append(RegionLevel(name=names.pop(), ids=ids, parent=above[starts]))
        above = number
    if len(levels[-1]) != len(parts[-1]):
        raise ParameterError(_DAMAGED)
    return tuple(levels)


def _rings(regions: RegionHierarchy) -> list[str]:
    """Rings of each lowest region: outer ones are counterclockwise, each before its holes."""
    import shapely

    geometry = regions.geometry
    if not isinstance(geometry, PolygonRegions) or geometry.elsewhere:
        raise ParameterError(
            f"regions must be polygons, with gaps outside, got {regions.kind}; a device decides by "
            "outlines"
        )
    if len(geometry) >= MAX_ANSWERS:
        raise ParameterError(
            f"regions must be at most {MAX_ANSWERS - 1:,}, got {len(geometry):,}; merge some"
        )
    vertices = int(shapely.get_num_coordinates(geometry.polygons).sum())
    if vertices > _MAX_VERTICES:
        raise ParameterError(
            f"regions must have at most {_MAX_VERTICES:,} vertices in a campaign, got "
            f"{vertices:,}; simplify them"
        )
    for level in regions.levels:
        if any("|" in text or not text.isprintable() for text in (level.name, *level.ids)):
            raise ParameterError("ids of regions in a campaign must be printable and without |")
    outlines = []
    for shape in geometry.polygons:
        rings = []
        for part in shapely.get_parts(shape):
            for number, ring in enumerate([part.exterior, *part.interiors]):
                vertices = shapely.get_coordinates(ring)
                is_hole = number > 0
                if bool(shapely.is_ccw(ring)) == is_hole:
                    vertices = vertices[::-1]
                # Adding 0 turns -0 into 0, so that a number has one text.
                texts = (np.format_float_positional(k + 0.0, trim="-") for k in vertices.ravel())
                rings.append(" ".join(texts))
        outlines.append("|".join(rings))
    return outlines


def _polygon(text: str) -> Any:
    """Polygon of its rings."""
    import shapely

    parts: list[tuple[Any, list[Any]]] = []
    for ring in text.split("|"):
        vertices = np.array(ring.split(), np.float64).reshape(-1, 2)
        if (vertices[0] != vertices[-1]).any():
            raise ParameterError(_DAMAGED)
        line = shapely.linearrings(vertices)
        # A counterclockwise ring is an outer one, and the next ones are its holes.
        if shapely.is_ccw(line):
            parts.append((line, []))
        elif parts:
            parts[-1][1].append(line)
    polygons = [shapely.polygons(outer, holes or None) for outer, holes in parts]
    return polygons[0] if len(polygons) == 1 else shapely.multipolygons(polygons)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTree:
    """Nodes in level order, and the level of each partition."""

    keys: tuple[str, ...]  # cell of each node
    parent: NDArray[np.int32]  # (n,) int32; as in `psd.space.box_tree.Tree`
    level: NDArray[np.int16]
    at: tuple[int, ...]  # level whose nodes are the cells of each partition, in their order

    @property
    def boxes(self) -> NDArray[np.int32]:
        """Lattice lines of each node, shape (n, 4)."""
        return np.array([box_of(key) for key in self.keys], np.int32)


def grid_cells(level: int) -> tuple[str, ...]:
    """Cells of a grid of 2^level columns and rows, in the order of their keys."""
    cells = [""]
    for _ in range(level):
        cells = [cell + digit for cell in cells for digit in "0123"]
    return tuple(cells)


def box_of(key: str) -> tuple[int, int, int, int]:
    """West, south, east and north lattice line of a cell."""
    column = row = 0
    for digit in map(int, key):
        column, row = column << 1 | digit & 1, row << 1 | digit >> 1
    side = 1 << DEPTH - len(key)
    return column * side, row * side, (column + 1) * side, (row + 1) * side


def grow_tree(partitions: Sequence[Sequence[str]]) -> PartitionTree:
    """Tree whose levels hold the partitions, each at least as fine as the one before."""
    keys, parent, level, at = [""], [-1], [0], []
    frontier = [0]
    # A cell that is not cut between two partitions stands below itself, so that all cells of a
    # partition are on one level.
    for cells in partitions:
        depths = [_depth_below(keys[node], cells) for node in frontier]
        for remaining in range(max(1, *depths), 0, -1):
            # The next level: cells that must be cut now have four children, others themselves.
            above, above_depths, number = frontier, depths, level[-1] + 1
            frontier, depths = [], []
            for node, depth in zip(above, above_depths, strict=True):
                is_cut = depth == remaining
                for key in [keys[node] + digit for digit in "0123"] if is_cut else [keys[node]]:
                    frontier.append(len(keys))
                    depths.append(_depth_below(key, cells) if is_cut else depth)
                    keys.append(key)
                    parent.append(node)
                    level.append(number)
        at.append(level[-1])
    return PartitionTree(
        keys=tuple(keys),
        parent=np.array(parent, np.int32),
        level=np.array(level, np.int16),
        at=tuple(at),
    )


def _depth_below(key: str, cells: Sequence[str]) -> int:
    """Levels from a cell down to the deepest one of a partition that is inside it."""
    start, end = bisect_left(cells, key), bisect_left(cells, key + "4")
    if start == end:
        raise ParameterError("a partition must be at least as fine as the one before it")
    return max(len(cell) for cell in cells[start:end]) - len(key)
