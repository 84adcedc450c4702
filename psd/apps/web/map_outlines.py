"""Outlines on a map page: countries around a release, and its named regions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats
from psd.api.release import Release
from psd.errors import InternalError, ParameterError
from psd.query.region_overlaps import Polygons
from psd.space.countries import border_arcs
from psd.space.crs import metres_per_unit, offline, parse_crs
from psd.space.domain import Domain
from psd.space.ground_areas import shape_ground_areas
from psd.space.region_tree import ELSEWHERE, RegionTree
from psd.space.regions import regions_table, to_release_crs

if TYPE_CHECKING:
    import geopandas


# Widths of the domain around it in which outlines are shown.
_AROUND = 0.6

# Sides longer than this, in metres or in degrees, come of the edge of a projection.
_LONGEST = (2e6, 30.0)

# Outlines are rounded to this part of the domain, and to the coarser file from this width on.
_STEPS = 4000
_COARSE = 60.0


def country_outlines(domain: Domain) -> list[list[list[float]]]:
    """Lines of borders and coasts around a domain, [x, y] in its CRS; none off the earth."""
    import shapely

    if parse_crs(domain.crs).is_engineering:
        return []
    coarse = domain.geographic and domain.width >= _COARSE
    lines = _lines_in(border_arcs(coarse=coarse), domain)
    west, south, east, north = domain.bounds
    x, y = (max(domain.width, domain.height) * _AROUND,) * 2
    clipped = shapely.clip_by_rect(lines, west - x, south - y, east + x, north + y)
    # Vertices are left out, and numbers rounded, by about a step.
    step = max(domain.width, domain.height) / _STEPS
    parts = shapely.get_parts(shapely.simplify(clipped, step))
    decimals = max(0, 1 - int(np.floor(np.log10(step))))  # as many as the step has
    return [
        np.round(shapely.get_coordinates(part), decimals).tolist()
        for part in parts[shapely.length(parts) > 0]
    ]


def _lines_in(arcs: tuple[Floats, ...], domain: Domain) -> Any:
    """Lines of arcs in the CRS of a domain; broken where it has no coordinates, or they jump."""
    import shapely
    from pyproj import Transformer
    from pyproj.exceptions import ProjError

    owner = np.repeat(np.arange(len(arcs)), [len(arc) for arc in arcs])
    longitude, latitude = np.concatenate(arcs).T
    with offline():
        try:
            transformer = Transformer.from_crs("EPSG:4326", parse_crs(domain.crs), always_xy=True)
            x, y = map(np.asarray, transformer.transform(longitude, latitude))
        except ProjError:  # a CRS of another body than the earth
            x = y = np.full(len(owner), np.nan)
    longest = _LONGEST[1] if domain.geographic else _LONGEST[0] / (metres_per_unit(domain.crs) or 1)
    step = np.hypot(np.diff(x), np.diff(y))
    # A line ends where the next vertex is of another arc, has no coordinates, or is too far away.
    is_break = (np.diff(owner) != 0) | ~np.isfinite(step) | (step > longest)
    line = np.concatenate([[0], np.cumsum(is_break)])  # of each vertex
    # A vertex by itself makes no line.
    is_drawn = np.isfinite(x) & np.isfinite(y) & (np.bincount(line)[line] > 1)
    _, line = np.unique(line[is_drawn], return_inverse=True)
    return shapely.linestrings(np.column_stack([x[is_drawn], y[is_drawn]]), indices=line)


MAX_MAP_REGIONS = 5_000
"""Limit of the regions of a level on a page: each is listed and drawn."""

# Outlines that are only drawn are rounded to this part of the domain.
_REGION_STEPS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegionGroup:
    """Regions of one level."""

    name: str  # of the level; empty for regions that are not of the release
    ids: Sequence[str]  # one of each region
    names: Sequence[str]
    shapes: NDArray[np.object_]  # (n,) geometries in the CRS of the release
    areas: Floats  # (n,) float64; on the ground
    nodes: list[int] | None  # those of the tree that are the regions, if any are
    overlaps: list[list[int]]  # pairs with area in common

    def to_json(self) -> dict[str, Any]:
        """Values of the page; outlines are arrays."""
        return {
            "name": self.name,
            "ids": list(self.ids),
            "names": list(self.names),
            "rest": self.ids.index(ELSEWHERE) if ELSEWHERE in self.ids else None,
            "areas": [float(f"{area:.12g}") for area in self.areas],
            "nodes": self.nodes,
            "overlaps": self.overlaps,
        }


def given_regions(release: Release, table: geopandas.GeoDataFrame) -> RegionGroup:
    """Regions of a table of polygons, for a release without named regions."""
    import shapely

    if not 1 <= len(table) <= MAX_MAP_REGIONS:
        raise ParameterError(
            f"regions must be 1 to {MAX_MAP_REGIONS:,} on a map page, got {len(table):,}"
        )
    # Row numbers stand for ids, and ids for names. No other column is read.
    ids = _texts(table, "id") or [str(number) for number in range(1, len(table) + 1)]
    if len(set(ids)) < len(ids):
        raise ParameterError("regions must have different ids in the column id")
    shapes = to_release_crs(regions_table(table, None), release.domain, names=ids)
    pairs = Polygons(fit=release.index.fit, shapes=shapes).overlapping_pairs()
    # Records were counted inside the bounds alone.
    inside = shapely.intersection(shapes, shapely.box(*release.domain.bounds))
    return RegionGroup(
        name="",
        ids=ids,
        names=_texts(table, "name") or ids,
        shapes=_turned(shapes),
        areas=shape_ground_areas(release.domain, np.asarray(inside, object)),
        nodes=None,
        overlaps=pairs.tolist(),
    )


def _texts(table: geopandas.GeoDataFrame, column: str) -> list[str] | None:
    """Texts of a column; None without it."""
    return [str(value) for value in table[column]] if column in table.columns else None


def release_regions(release: Release) -> list[RegionGroup]:
    """Regions of each level of a release, the lowest one first."""
    import shapely

    tree = _tree_of(release)
    regions, step = tree.regions, max(release.domain.width, release.domain.height) / _REGION_STEPS
    groups = []
    for tier, level in reversed(list(enumerate(regions.levels))):
        if len(level.ids) > MAX_MAP_REGIONS:
            continue
        shapes = regions.shapes(tier)
        groups.append(
            RegionGroup(
                name=level.name,
                ids=list(level.ids),
                names=list(level.ids),
                shapes=_turned(shapely.simplify(shapes, step)),
                areas=shape_ground_areas(release.domain, shapes),
                nodes=tree.named(tier).tolist(),
                overlaps=[],
            )
        )
    if not groups:
        raise ParameterError(
            f"release must have a level of at most {MAX_MAP_REGIONS:,} regions for a map page"
        )
    return groups


def answers_drawn_areas(release: Release) -> bool:
    """Whether the engine of the page answers areas that are drawn over a release."""
    if not release.levels:
        return True
    # It needs the outlines of the lowest regions, if they are named, and cells of equal size.
    few = _tree_of(release).regions.size <= MAX_MAP_REGIONS
    return few and release.domain.coordinate_resolution is None


def lowest_outlines(release: Release) -> dict[str, NDArray[Any]]:
    """Outlines of the lowest regions with all digits, by which cells are clipped."""
    parts = _outlines(_turned(_tree_of(release).region_shapes))
    return dict(zip(("begin", "ends", "x", "y"), parts, strict=True))


def _tree_of(release: Release) -> RegionTree:
    """Tree of a release with regions."""
    if not isinstance(release.tree, RegionTree):
        raise InternalError("the tree has no regions")
    return release.tree


def _turned(shapes: NDArray[np.object_]) -> NDArray[np.object_]:
    """Polygons whose outer rings are turned to the left."""
    import shapely

    turned: NDArray[np.object_] = shapely.orient_polygons(shapes, exterior_cw=False)
    return turned


def outline_arrays(groups: Sequence[RegionGroup]) -> dict[str, NDArray[Any]]:
    """Outlines of groups: of each its rings by region, where they end, and their vertices."""
    arrays: dict[str, NDArray[Any]] = {}
    for number, group in enumerate(groups):
        # Rings are not closed; the outer ring of a polygon stands before its holes.
        parts = _outlines(group.shapes)
        for name, values in zip(("begin", "ends", "x", "y"), parts, strict=True):
            arrays[f"{name}{number}"] = values
    return arrays


def _outlines(shapes: NDArray[np.object_]) -> tuple[NDArray[Any], ...]:
    """First ring of each region, end of each ring, and the vertices."""
    import shapely

    polygons, of_shape = shapely.get_parts(shapes, return_index=True)
    rings, of_polygon = shapely.get_rings(polygons, return_index=True)
    vertices, ring = shapely.get_coordinates(rings, return_index=True)
    is_end = np.append(ring[1:] != ring[:-1], True)  # of a ring, which it closes
    begin = np.searchsorted(of_shape[of_polygon], np.arange(len(shapes) + 1)).astype(np.int32)
    # The last vertex of a ring is its first one again, and is left out.
    ends = np.cumsum(np.bincount(ring[~is_end], minlength=len(rings))).astype(np.int32)
    return begin, ends, vertices[~is_end, 0].copy(), vertices[~is_end, 1].copy()
