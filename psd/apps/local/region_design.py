"""Campaigns that ask for the region of a place: one group of devices for each level of regions.

The cells of a group are texts, one for each of the lowest regions: ``ID|LEVEL|RING|RING...``, where
the id is that of the region of the level in which it is, and a ring is ``x y x y ...``, closed. The
numbers are the shortest decimals that give the doubles of the outline, so the campaign, the device
and the release decide by the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd._util.declared_parameters import integer_between
from psd.apps.local.campaign_design import MAX_DEVICES, campaign_content
from psd.apps.local.campaign_groups import split_shares
from psd.apps.local.campaigns import campaign_of
from psd.apps.local.device import MAX_ANSWERS, Campaign, Partition
from psd.apps.local.protocols import best_protocol, protocol_content
from psd.apps.local.stated_laws import resolve_law
from psd.errors import DomainError, ParameterError
from psd.regions.files import read_polygons
from psd.regions.hierarchy import RegionHierarchy, RegionLevel
from psd.regions.inputs import CellRegions, RegionFiles
from psd.regions.kinds.polygons import PolygonRegions
from psd.space.boundary import bounds_of
from psd.space.domain import Domain

__all__ = ["answers_of_parts", "design_regions", "read_regions", "regions_of_campaign"]

# Devices of a level, as a multiple of those of the level above.
_GROWTH = 1.5

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
    west, south, east, north = _extent(files, crs) if bounds is None else bounds
    return files.read(Domain(bounds=(west, south, east, north), crs=crs, min_cell=None))


def _extent(files: RegionFiles, crs: str) -> Sequence[float]:
    """Bounds of all polygons of files."""
    table = read_polygons(Path(files.paths[-1]), "regions")
    if table.crs is None:
        raise DomainError("regions have no CRS; assign it (set_crs, or in your GIS)")
    return bounds_of(table, crs, "regions")


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
    domain = Domain(bounds=campaign.bounds, crs=campaign.crs, min_cell=None)
    polygons = np.array([_polygon(rings) for rings in outlines.pop()], dtype=object)
    _check_polygons(polygons, [name for name, *_ in parts[-1]], domain)
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
    return [
        "|".join(ring for part in shapely.get_parts(shape) for ring in _rings_of(part))
        for shape in geometry.polygons
    ]


def _rings_of(part: Any) -> list[str]:
    """Vertices of the outer ring of a polygon and of its holes."""
    import shapely

    rings = []
    for is_hole, ring in enumerate([part.exterior, *part.interiors]):
        vertices = shapely.get_coordinates(ring)
        turned = bool(shapely.is_ccw(ring)) == bool(is_hole)
        numbers = (vertices[::-1] if turned else vertices).ravel()
        rings.append(" ".join(np.format_float_positional(k + 0.0, trim="-") for k in numbers))
    return rings


def _polygon(text: str) -> Any:
    """Polygon of its rings."""
    import shapely

    parts: list[tuple[Any, list[Any]]] = []
    for ring in text.split("|"):
        vertices = np.array(ring.split(), np.float64).reshape(-1, 2)
        if (vertices[0] != vertices[-1]).any():
            raise ParameterError(_DAMAGED)
        line = shapely.linearrings(vertices)
        if shapely.is_ccw(line):
            parts.append((line, []))
        elif parts:
            parts[-1][1].append(line)
    polygons = [shapely.polygons(outer, holes or None) for outer, holes in parts]
    return polygons[0] if len(polygons) == 1 else shapely.multipolygons(polygons)


def _check_polygons(polygons: NDArray[np.object_], ids: Sequence[str], domain: Domain) -> None:
    """Refuse polygons that are not valid, or lie outside the bounds."""
    import shapely

    sound = shapely.is_valid(polygons) & (shapely.area(polygons) > 0)
    sound &= shapely.intersects(polygons, shapely.box(*domain.bounds))
    if not sound.all():
        name = ids[int((~sound).argmax())]
        raise ParameterError(
            f"region {name[:80]!r} must be a valid polygon in the bounds; the campaign is damaged"
        )
