"""A cube in a window of time, as cells of its plane: for tables, pictures, exports and points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from psd._util.arrays import Floats
from psd.estimation.cube import CubeFit, window_counts, window_estimates
from psd.estimation.fit import Fit, predicts_published
from psd.query.areas import Areas, BoxAreas, NamedAreas
from psd.query.cubes import Windows, cube_totals
from psd.query.index import CubeIndex, CubeWindow, QueryIndex
from psd.query.region_nodes import NamedQueries
from psd.query.totals import QueryTotals, WindowFit
from psd.release.cube import WindowRecord, window_record
from psd.space.region_tree import RegionTree
from psd.space.time_slices import TimeWindow


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


def _facts(cube: CubeFit, record: WindowRecord) -> dict[str, Any]:
    """Fields of a fit of the cells of a cube, with those of its plane."""
    plane = {each.name: getattr(cube.plane, each.name) for each in fields(Fit)}
    return plane | {"record": record, "cache": None}


def _index_of(cube: CubeFit, made: Fit) -> QueryIndex:
    """Index of a fit of a window; inside cells records lie as those of all time do."""
    vars(made).update(inside=cube.plane.inside, density=cube.plane.density)
    return QueryIndex.of_fit(made, is_kept=False)
