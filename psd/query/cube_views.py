"""A cube in a window of time, as cells of its plane: for tables, pictures, exports and points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from psd._util.arrays import Floats, Integers, sum_by
from psd.estimation.cube import CubeFit
from psd.estimation.fit import Fit, predicts_published
from psd.estimation.least_squares import Estimates, project_non_negative
from psd.query.areas import Areas, BoxAreas, NamedAreas
from psd.query.cubes import Windows, cube_totals, told_by_times
from psd.query.index import CubeIndex, CubeWindow, QueryIndex
from psd.query.region_nodes import NamedQueries
from psd.query.totals import QueryTotals, WindowFit
from psd.release.cube import WindowRecord, window_record
from psd.space.region_tree import RegionTree
from psd.space.time_slices import TimeWindow

# Least part of a parent that its other children are taken to have, so that variances are finite.
_LEAST_REST = 1e-3

_TINY = 1e-300


def cells_index(asked: QueryIndex | CubeWindow) -> QueryIndex:
    """Index of the cells of a release, or of one window of a cube."""
    if isinstance(asked, QueryIndex):
        return asked
    window = TimeWindow(name="when", numbers=asked.window)
    return window_index(asked.index, window_record(asked.index.record, window))


def window_index(cube: CubeIndex, record: WindowRecord) -> QueryIndex:
    """Index of the cells of a cube in a window, with the answers to their boxes."""
    windows = Windows.of_cells([record.window.numbers], record.cube.sizes)

    def of_areas(areas: Areas) -> QueryTotals:
        [found] = cube_totals(cube.fit, areas, windows)
        return found

    def totals(boxes: Floats) -> QueryTotals:
        return of_areas(BoxAreas(given=None, boxes=boxes, ids=list(range(len(boxes)))))

    tree = record.tree
    if isinstance(tree, RegionTree):  # boxes around regions overlap
        cells = of_areas(every_node(tree))
    else:
        cells = totals(record.domain.from_lattice(tree.boxes.astype(np.float64)))
    variance = cells.noise_variance(predicts_published(record))
    estimates = window_estimates(cube.fit, record.window.numbers, variance)
    facts = _facts(cube.fit, record) | {"estimates": estimates, "published_covariance": estimates}
    return _index_of(cube.fit, WindowFit(**facts, cells=cells, totals=totals, of_areas=of_areas))


def every_node(tree: RegionTree) -> NamedAreas:
    """The regions of each node of a tree that has no cells inside them, as areas."""
    ends = zip(tree.frame.first.tolist(), tree.frame.stop.tolist(), strict=True)
    rows = tuple(tuple(range(first, stop)) for first, stop in ends)
    queries = NamedQueries(
        tier=len(tree.regions.levels) - 1, rows=rows, labels=tuple(map(str, range(len(tree))))
    )
    return NamedAreas(given=None, tree=tree, queries=queries)


@dataclass(frozen=True, slots=True, eq=False)
class WindowCounts(Mapping[str, QueryIndex]):
    """Counts of the cells of a cube in windows by their names, made when they are asked for."""

    cube: CubeIndex
    windows: Mapping[str, TimeWindow]

    def __len__(self) -> int:
        return len(self.windows)

    def __iter__(self) -> Iterator[str]:
        return iter(self.windows)

    def __getitem__(self, name: str) -> QueryIndex:
        cube, window = self.cube.fit, self.windows[name]
        count, signed = window_counts(cube, window.numbers)
        estimates = replace(cube.plane.estimates, count=count, signed=signed)
        made = {"estimates": estimates, "published_covariance": estimates}
        # Without errors it takes a hundredth of the time; nothing is kept.
        return _index_of(cube, Fit(**_facts(cube, window_record(cube.record, window)) | made))


def window_counts(cube: CubeFit, numbers: Integers) -> tuple[Floats, Floats]:
    """Counts and signed counts of the cells of the plane in a window, (cells,) float64 each.

    numbers: of the cells of the window, see `psd.query.cubes.Windows`.

    P1. The signed count of a cell is the signed answer to its box; see `psd.query.cubes`.
    """
    category, cells = cube.record.category, cube.record.cells
    if category is not None and len(numbers) == int(np.prod(cube.record.sizes)):
        plane = cube.plane.estimates  # records of all categories in all time
        return plane.count, plane.signed
    if cube.parts:
        slices, labels = np.divmod(numbers, len(cube.parts))
        found = [
            window_counts(cube.parts[each], slices[labels == each]) for each in np.unique(labels)
        ]
        count, signed = (np.sum([each[which] for each in found], axis=0) for which in (0, 1))
        if len(found) > 1:
            count = project_non_negative(cells, signed, cube.plane.parent_shares)
        return count, signed
    tree = cube.tree
    inside, sizes = np.ones(len(tree)), cube.record.sizes
    for axis, window in enumerate(np.unravel_index(numbers, sizes)):
        before = np.zeros(sizes[axis] + 1, np.int64)
        before[window + 1] = 1
        before, span = np.cumsum(before), tree.spans[:, 2 * axis : 2 * axis + 2].T
        inside *= (before[span[1]] - before[span[0]]) / tree.lengths[:, axis]
    signed = _cell_counts(cube, cube.estimates.signed, inside)
    # One cell has the published counts, several have the unbiased ones, family by family without
    # negative ones: so the total is that of answers.
    is_one = len(numbers) == 1
    count = _cell_counts(cube, cube.estimates.count, inside) if is_one else signed
    told = told_by_times(cube, Windows.of_cells([numbers], sizes))
    if told.weight.any():
        part = cube.common_overdispersion * inside * (1 - inside)
        deviation = np.sqrt(part) * np.maximum(cube.estimates.count, 0.0)
        common = told.weight * _cell_counts(cube, deviation, np.where(inside > 0, 1.0, 0.0))
        signed = signed + common * told.signed_gap
        count = count + common * told.gap if is_one else signed
    return project_non_negative(cells, count, cube.plane.parent_shares), signed


def _cell_counts(cube: CubeFit, values: Floats, inside: Floats) -> Floats:
    """Values of joint leaves, of each the part that is inside, by cell of the plane, (cells,)."""
    # A joint leaf gives each cell of the plane in its box what `psd.query.cubes` says of the cell's
    # box: its share of the mass of the plane there, and where that is mostly noise of the area.
    tree, cells = cube.tree, cube.record.cells
    leaf = np.flatnonzero(tree.is_leaf & (inside > 0))
    met = sum_by(cube.nodes[leaf], values[leaf] * inside[leaf], len(cells))
    mass = np.maximum(cube.plane.estimates.count, 0.0)
    area, noise = cube.ground, cube.plane.noise_covariance.variance
    weight = mass**2 / np.maximum(mass**2 + noise, _TINY)
    # From the root down: what a cell has by the mass of the cells around it, and by their area.
    by_mass, by_area = met, np.zeros(len(cells))
    for level in cells.levels[1:]:
        above = cells.parent[level]
        passed = by_mass[above] * weight[above] / np.maximum(mass[above], _TINY)
        by_mass[level] += passed * mass[level]
        # Without mass in a cell, records lie evenly.
        even = by_mass[above] * (1 - weight[above]) / np.maximum(area[above], 1.0)
        by_area[level] = by_area[above] + even
    count = np.where(cells.is_leaf, by_mass + by_area * area, 0.0)
    for level in reversed(cells.levels[1:]):
        np.add.at(count, cells.parent[level], count[level])
    return count


def window_estimates(cube: CubeFit, numbers: Integers, variance: Floats) -> Estimates:
    """Estimates of the cells of the plane in a window.

    variance: (cells,) float64, of each cell by the noise, as answers have it.

    P2. A cell has the stated variance; what it owes to its parent is its share of the parent's
    records, as far as its own variance allows.
    """
    count, signed = window_counts(cube, numbers)
    cells = cube.record.cells
    above, total = cells.parent[1:], count[cells.parent[1:]]
    # What a cell owes to its parent is its share of the parent's records.
    slope = np.ones(len(cells))
    even = cube.plane.parent_shares[1:]
    slope[1:] = np.where(total > 0, count[1:] / np.where(total > 0, total, 1.0), even)
    own = np.zeros(len(cells))  # of a cell beyond its parent
    rest = np.maximum(variance[1:] - slope[1:] ** 2 * variance[above], 0.0)
    own[1:] = rest / np.maximum(1 - slope[1:], _LEAST_REST)
    own[0] = variance[0]
    return Estimates(
        signed=signed, count=count, upward=signed, upward_variance=own, slope=slope,
        variance=variance,
    )  # fmt: skip


def _facts(cube: CubeFit, record: WindowRecord) -> dict[str, Any]:
    """Fields of a fit of the cells of a cube, with those of its plane."""
    plane = {each.name: getattr(cube.plane, each.name) for each in fields(Fit)}
    return plane | {"record": record, "cache": None}


def _index_of(cube: CubeFit, made: Fit) -> QueryIndex:
    """Index of a fit of a window; inside cells records lie as those of all time do."""
    vars(made).update(inside=cube.plane.inside, density=cube.plane.density)
    return QueryIndex.of_fit(made, is_kept=False)
