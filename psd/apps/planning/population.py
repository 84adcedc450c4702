"""Synthetic populations and study areas, from public assumptions alone.

An assumed density divides the records of a square cell among its quarters, from the domain down to
the lattice: a random multiplicative cascade (Mandelbrot, J. Fluid Mech. 62, 1974).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from psd._util.arrays import Floats, Integers, sum_by
from psd._util.instances import check_choice, type_text
from psd.apps.planning._constants import (
    CLUSTERING,
    EXTRA_COVARIATE_LEVELS,
    MAX_GROUPS,
    REGION_POINTS,
    REGION_ROUNDS,
)
from psd.errors import DomainError, ParameterError
from psd.ingest.tally import Area, Tally, add_tallies
from psd.regions.files import CellRegions, RegionFiles, read_polygons
from psd.regions.hierarchy import RegionHierarchy, id_texts
from psd.regions.polygon_hierarchy import ELSEWHERE
from psd.space.boundary import bounds_of
from psd.space.covariate import Covariate
from psd.space.crs import check_plane_crs, metres_per_unit
from psd.space.domain import DEFAULT_LATTICE, DEFAULT_MIN_CELL, Domain
from psd.space.ground_areas import area_unit, ground_areas, shape_ground_areas

DENSITIES = ("uniform", *CLUSTERING)

# Number of times that each side is halved down to a lattice cell.
_LEVELS = 20

# Added to the weights of quarters: if the parameter is small, all four may underflow to 0.
_TINY = 1e-250

_EAST, _NORTH = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumedDensity:
    """Rule that divides the records of a cell among its quarters. Public.

    ``uniform`` gives all the same share. Shares of the others have a Dirichlet distribution:
    ``clustered`` is equally unequal on every level; ``coastal`` most on the first levels, like land
    with empty seas; ``places`` most on the last, like records that share addresses or masts. A
    covariate gives the shares down to the cells of its raster, the kind those below.
    """

    kind: str
    covariate: Covariate | None = None

    def __post_init__(self) -> None:
        check_choice("density", self.kind, DENSITIES)

    @property
    def coarse_levels(self) -> int:
        """Number of levels whose cells are larger than those of the covariate's raster."""
        if self.covariate is None:
            return 0
        return int(np.ceil(np.log2(max(self.covariate.columns, self.covariate.rows))))

    @property
    def covariate_levels(self) -> int:
        """Number of levels whose shares follow the covariate, more if cells cross raster lines."""
        if self.covariate is None:
            return 0
        halvings = 2**self.coarse_levels
        if halvings % self.covariate.columns == 0 == halvings % self.covariate.rows:
            return self.coarse_levels
        return self.coarse_levels + EXTRA_COVARIATE_LEVELS

    def over(self, domain: Domain) -> AssumedDensity:
        """Return the same density over the same bounds with another lattice."""
        if self.covariate is None:
            return self
        return replace(self, covariate=replace(self.covariate, domain=domain))

    def draw_shares(
        self, columns: Integers, rows: Integers, level: int, random: np.random.Generator
    ) -> Floats:
        """Draw (n, 4) shares of the quarters SW, SE, NW, NE of cells at columns and rows (n,)."""
        weights = np.ones((len(columns), 4))
        if self.kind != "uniform" and level >= self.coarse_levels:
            profile = CLUSTERING[self.kind]
            parameter = profile[min(level, len(profile) - 1)]
            weights = random.standard_gamma(parameter, weights.shape) + _TINY
        if self.covariate is not None and level < self.covariate_levels:
            # Mass of the covariate in the four quarters of each cell, (n, 4).
            side = 2 ** (_LEVELS - level - 1)
            west = (2 * columns[:, None] + _EAST).ravel() * side
            south = (2 * rows[:, None] + _NORTH).ravel() * side
            boxes = np.stack([west, south, west + side, south + side], axis=1)
            weights *= self.covariate.mass(boxes).reshape(-1, 4)
        shares: Floats = weights / weights.sum(axis=1, keepdims=True)
        return shares


def group_size(count: int) -> int:
    """Limit of the records that share coordinates in a population; 1 up to a million records."""
    return -(-count // MAX_GROUPS)


def draw_population(
    count: int,
    domain: Domain,
    density: AssumedDensity,
    random: np.random.Generator,
    *,
    contributions: int = 1,
) -> Tally:
    """Draw a population of an exact number of records on the lattice; all arguments are public.

    P1. Reads no data; the same generator state gives the same population. Of more than a million
    records, groups of at most `group_size` share coordinates, so that memory stays bounded.
    P2. The records of all cells of a level are divided among their quarters by multinomial draws,
    until a cell has at most one group, which gets a random position in the cell. For single records
    that is their exact distribution: alone in a cell, all positions are equally likely.
    """
    if domain.coordinate_resolution is not None:
        even = Domain(bounds=domain.bounds, crs=domain.crs)
        people = draw_population(
            count, even, density.over(even), random, contributions=contributions
        )
        # Each lattice cell moves to the value next to its centre.
        x, y = even.centres(0, people.columns), even.centres(1, people.rows)
        columns, rows, _ = domain.quantise(x, y)
        moved = np.stack([columns.astype(np.int64), rows.astype(np.int64), people.counts])
        return _sum_cells(moved, people.contributions, domain.lattice[0])
    if domain.lattice != DEFAULT_LATTICE:
        raise ParameterError("domain must have the default lattice to draw a population on it")
    group = group_size(count)
    # Cells of a level, (2, cells): column and row; and their records, (cells,).
    cells = np.zeros((2, 1), np.int64)
    records = np.array([count], np.int64)
    groups: list[Integers] = []
    for level in range(_LEVELS + 1):
        # A cell of one group is final: the group lies at random in it.
        final = (records <= group) & (level >= density.covariate_levels) | (level == _LEVELS)
        side = 2 ** (_LEVELS - level)
        positions = cells[:, final] * side + random.integers(0, side, (2, int(final.sum())))
        groups.append(np.concatenate([positions, records[None, final]]))
        # The other cells are divided among their quarters, of which the occupied ones go on.
        cells, records = cells[:, ~final], records[~final]
        if not len(records):
            break
        shares = density.draw_shares(cells[0], cells[1], level, random)
        parts = random.multinomial(records, shares).ravel()
        columns, rows = 2 * cells[0][:, None] + _EAST, 2 * cells[1][:, None] + _NORTH
        cells = np.stack([columns.ravel(), rows.ravel()])[:, parts > 0]
        records = parts[parts > 0]
    return _sum_cells(np.concatenate(groups, axis=1), contributions)


def _sum_cells(groups: Integers, contributions: int, width: int = DEFAULT_LATTICE[0]) -> Tally:
    """Tally of groups, (3, n): column, row and records; each occupied lattice cell, in order."""
    columns, rows, records = groups
    codes, inverse = np.unique(rows * width + columns, return_inverse=True)
    counts = np.zeros(len(codes), np.int64)
    np.add.at(counts, inverse, records)
    return Tally(
        columns=(codes % width).astype(np.int32),
        rows=(codes // width).astype(np.int32),
        counts=counts,
        contributions=contributions,
    )


MAX_KM2 = 5.2e8
"""Limit of a study area, a little more than the surface of the Earth."""


def square_domain(area_km2: float) -> Domain:
    """Return a square of an area, in metres, for plans that do not depend on a location."""
    if not 0 < area_km2 <= MAX_KM2:
        raise ParameterError(
            f"area must be above 0 and at most {MAX_KM2:,.0f}, the surface of the Earth, "
            f"got {area_km2:g}"
        )
    side = 1_000 * float(np.sqrt(area_km2))
    local = Domain(bounds=(0, 0, side, side), crs='LOCAL_CS["study area",UNIT["metre",1]]')
    return local.with_min_cell(DEFAULT_MIN_CELL)


def km2_of(area: Any, crs: str | None = None) -> float | None:
    """Square kilometres as given, or of public polygons on the ellipsoid; overlaps count once."""
    if area is None or isinstance(area, Real):
        return None if area is None else float(area)
    if isinstance(area, str | os.PathLike):
        area = read_polygons(Path(area), "area")
    elif hasattr(area, "geom_type") and not hasattr(area, "geometry"):
        import geopandas

        area = geopandas.GeoSeries([area], crs=crs or "EPSG:4326")
    if not hasattr(area, "geometry"):
        raise ParameterError(
            f"area must be square kilometres or public polygons, got {type_text(area)}; bounds= "
            "takes west, south, east and north",
            name="area",
        )
    if area.crs is None:
        raise DomainError("area must have a CRS; set it with set_crs", name="area")
    crs, _ = check_plane_crs(area.crs)
    domain = Domain(bounds=bounds_of(area, crs, "area"), crs=crs, lattice=(1, 1))
    union = np.array([area.geometry.union_all()], object)
    return _in_km2(domain, float(shape_ground_areas(domain, union)[0]))


def domain_area_km2(domain: Domain) -> float:
    """Square kilometres inside the bounds: on the ground, or in the plane of a local CRS."""
    return _in_km2(domain, float(ground_areas(domain, np.array([[0.0, 0, *domain.lattice]]))[0]))


def _in_km2(domain: Domain, area: float) -> float:
    """Square kilometres of an area on the ground, or in the plane of a local CRS."""
    if area_unit(domain) == "km2":
        return area
    return area * (metres_per_unit(domain.crs) or 1.0) ** 2 / 1e6


Populations = str | Mapping[str, float] | Sequence[float] | None
"""Column of the lowest regions, or number by id, or in their order; else all alike."""

MAX_POPULATION = 1e12


def read_populations(regions: Any, column: str, ids: Sequence[str] = ()) -> dict[str, float]:
    """Numbers of a column of the table of the lowest regions, by id; `ids` are its id columns."""
    if isinstance(regions, CellRegions):
        raise ParameterError(
            f"population must be a column of files of regions, got {column[:80]!r}; regions of "
            f"kind {regions.kind} have no columns"
        )
    if isinstance(regions, RegionFiles):
        table, ids = read_polygons(Path(regions.paths[-1]), "regions"), regions.ids
    else:
        table = regions[-1] if isinstance(regions, list | tuple) else regions
    id_column = ids[-1] if ids else column
    columns = [str(name) for name in table.columns if name != table.geometry.name]
    for name in (column, id_column):
        if name not in columns:
            raise ParameterError(
                f"population must be a column of the regions ({', '.join(columns)[:200]}), got "
                f"{name[:80]!r}"
            )
    names = id_texts(table[id_column], id_column)
    return dict(zip(names, _numbers(table[column], names), strict=True))


def _numbers(values: Any, ids: Sequence[str]) -> list[float]:
    """Populations of a column or a sequence."""
    numbers = []
    for name, value in zip(ids, values, strict=True):
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = np.nan
        if not 0 <= number <= MAX_POPULATION:
            raise ParameterError(
                f"population must be numbers from 0 to {MAX_POPULATION:.0e}, got "
                f"{str(value)[:80]!r} for region {str(name)[:80]!r}; a missing one must be stated "
                "as 0"
            )
        numbers.append(number)
    return numbers


def region_populations(
    hierarchy: RegionHierarchy, populations: Populations, count: int | None
) -> Floats:
    """Expected records of each lowest region, in the order of the hierarchy, scaled to a count."""
    ids = list(hierarchy.levels[-1].ids)
    if populations is None:
        if count is None:
            raise ParameterError(
                "count must be the expected number of records, or populations those of each "
                "region, got neither",
                name="count",
            )
        numbers = [1.0] * len(ids)
    elif isinstance(populations, Mapping):
        stated = {ELSEWHERE: 0.0, **{str(name): each for name, each in populations.items()}}
        missing = [name for name in ids if name not in stated]
        if missing:
            raise ParameterError(
                f"population must have a number for each lowest region, got none for "
                f"{missing[0][:80]!r} ({len(missing):,} of {len(ids):,} have none)"
            )
        numbers = _numbers([stated[name] for name in ids], ids)
    else:
        if isinstance(populations, str) or len(populations) != len(ids):
            raise ParameterError(
                f"population must be one number for each of {len(ids):,} lowest regions"
            )
        numbers = _numbers(populations, ids)
    expected = np.array(numbers, np.float64)
    total = float(expected.sum())
    if total <= 0:
        raise ParameterError("population must have a sum above 0")
    return expected if count is None else expected * (count / total)


def draw_region_population(
    hierarchy: RegionHierarchy,
    expected: Floats,
    random: np.random.Generator,
    contributions: int,
    *,
    covariate: Covariate | None = None,
    area: Area | None = None,
) -> Tally:
    """Draw positions in each lowest region, evenly over its area, for its expected records (n,).

    P1. Reads no data. A region has its expected number of records, rounded. There are at most about
    `REGION_POINTS` positions, or one for each region; records share them.

    covariate: density of the records, which is even in regions where it is 0; area: of positions.
    """
    domain, number = hierarchy.domain, np.rint(expected).astype(np.int64)
    each = max(REGION_POINTS // hierarchy.size, 1)
    # A limited number of positions, which the records of a region share.
    points_of = np.minimum(number, each)
    region, columns, rows = _draw_positions(hierarchy, points_of, random, area)
    drawn = np.bincount(region, minlength=hierarchy.size)
    missed = np.flatnonzero((number > 0) & (drawn == 0))
    if len(missed):
        # A region that is too small for a draw has a point of its surface.
        import shapely

        points = shapely.point_on_surface(hierarchy.geometry.shapes(missed))
        more_columns, more_rows, inside = domain.quantise(
            shapely.get_x(points), shapely.get_y(points)
        )
        region = np.concatenate([region, missed[inside]])
        columns = np.concatenate([columns, more_columns])
        rows = np.concatenate([rows, more_rows])
    order = np.argsort(region, kind="stable")
    region, columns, rows = region[order], columns[order], rows[order]
    # The records of a region are shared evenly among its positions; the first ones get the rest.
    size = np.bincount(region, minlength=hierarchy.size)
    rank = np.arange(len(region)) - (np.cumsum(size) - size)[region]
    counts = number[region] // size[region] + (rank < (number % np.maximum(size, 1))[region])
    if covariate is not None:
        cells = np.stack([columns, rows, columns + 1, rows + 1], axis=1)
        counts = _weighted_counts(number, region, covariate.mass(cells))
    is_filled = counts > 0
    tally = Tally(
        columns=columns[is_filled].astype(np.int32),
        rows=rows[is_filled].astype(np.int32),
        counts=counts[is_filled],
        region=region[is_filled].astype(np.int32),
    )
    return replace(add_tallies([tally]), contributions=contributions)


def _weighted_counts(number: Integers, region: Integers, weight: Floats) -> Integers:
    """Records of positions in proportion to their weights; those of a region sum to its number."""
    # Positions are ordered by region; those of a region without weight share its records evenly.
    total = sum_by(region, weight, len(number))
    weight = np.where(total[region] > 0, weight, 1.0)
    first, last = (np.searchsorted(region, region, side) for side in ("left", "right"))
    below = np.append(0.0, np.cumsum(weight))
    in_all = below[last] - below[first]
    # Running shares are rounded, and a position has the difference of two, so that none is lost.
    index = np.arange(len(region))
    low, high = (
        np.rint((below[line] - below[first]) / in_all * number[region])
        for line in (index, index + 1)
    )
    counts: Integers = (high - low).astype(np.int64)
    return counts


def _draw_positions(
    hierarchy: RegionHierarchy, points: Integers, random: np.random.Generator, area: Area | None
) -> tuple[Integers, Integers, Integers]:
    """Region, column and row of positions: lattice cells in the box of a region that are its."""
    domain, boxes = hierarchy.domain, hierarchy.boxes
    parts, missing = [], points.copy()
    for _ in range(REGION_ROUNDS):
        # Twice as many as are missing, since some lie outside of their region.
        region = np.repeat(np.arange(hierarchy.size), 2 * missing)
        box = boxes[region]
        cells = [random.integers(box[:, axis], box[:, axis + 2]) for axis in (0, 1)]
        x, y = (domain.centres(axis, cells[axis]) for axis in (0, 1))
        inside = hierarchy.assign(x, y) == region
        if area is not None:
            inside &= area.contains(x, y)
        parts.append(np.stack([region[inside], cells[0][inside], cells[1][inside]]))
        missing = np.maximum(missing - np.bincount(region[inside], minlength=len(points)), 0)
        if not missing.any():
            break
    region, columns, rows = np.concatenate(parts, axis=1)
    return region, columns, rows
