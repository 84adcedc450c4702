"""Populations of regions: public figures by region, and synthetic records that have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from psd._util.arrays import Floats, Integers, sum_by
from psd.apps.planning._constants import REGION_POINTS, REGION_ROUNDS
from psd.errors import ParameterError
from psd.ingest.tally import Area, Tally, add_tallies
from psd.regions.files import read_polygons
from psd.regions.hierarchy import RegionHierarchy, id_texts
from psd.regions.inputs import CellRegions, RegionFiles
from psd.regions.polygon_hierarchy import ELSEWHERE
from psd.space.covariate import Covariate

Populations = str | Mapping[str, float] | Sequence[float] | None
"""Column of the lowest regions, or number by id, or in their order; else all alike."""

MAX_POPULATION = 1e12


def read_populations(regions: Any, column: str, ids: Sequence[str] = ()) -> dict[str, float]:
    """Numbers of a column of the file or table of the lowest regions, by id.

    `regions` are files, or tables, of which `ids` are the columns of ids.

    Raises
    ------
    ParameterError
        If the regions have no columns, or the column does not exist or is not of numbers.
    InputDataError
        If the file cannot be read.
    """
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
    """Expected records of each lowest region, in the order of the hierarchy.

    Parameters
    ----------
    hierarchy : RegionHierarchy
        Public.
    populations : mapping, sequence or None
        Numbers by id or in the order of the lowest regions; alike for all regions by default.
        The region ``elsewhere`` has 0 unless it is stated.
    count : int, optional
        Number of all records, to which populations are scaled; by default their sum.

    Raises
    ------
    ParameterError
        If a number is missing or negative, their sum is 0, or there is neither of both.
    """
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
    """Draw positions in each lowest region, evenly over its area, for its expected records.

    Guarantees
    ----------
    - Reads no data. The records of a region are its expected number, rounded.
    - At most about `REGION_POINTS` positions, or one for each region; records share them.

    Parameters
    ----------
    hierarchy : RegionHierarchy
        Public.
    expected : ndarray, shape (n,), float64
        Records of each lowest region.
    random : Generator
        Draws the positions.
    contributions : int
        Records of one user.
    covariate : Covariate, optional
        Positions have records as this density says; evenly in a region where it is 0 everywhere.
    area : Area, optional
        Part of the domain in which positions lie. A region without any part of it has its records
        at one point of the region.
    """
    domain, number = hierarchy.domain, np.rint(expected).astype(np.int64)
    each = max(REGION_POINTS // hierarchy.size, 1)
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
