"""Answers that a cube would give without noise, for its true errors. Private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd.errors import InternalError
from psd.estimation.cube import CubeFit
from psd.estimation.fit import Fit
from psd.estimation.least_squares import Estimates
from psd.ingest.tally import Tally
from psd.query.areas import Areas
from psd.query.cubes import Windows, cube_totals
from psd.release.cube import CubeRecord
from psd.space.box_tree import MAX_CHILDREN, Tree, locate
from psd.space.cube_tree import CubeTree
from psd.space.region_tree import RegionTree

__all__ = ["cells_of", "exact_answers", "in_window"]


def cells_of(counts: Tally, record: CubeRecord) -> Integers:
    """Number of the cell of all axes of each count, as windows number them; (n,) int64."""
    numbers = np.zeros(len(counts.counts), np.int64) if counts.slice is None else counts.slice
    if record.category is None:
        return numbers
    assert counts.region is not None  # counted by categories
    return numbers * record.category.size + counts.region


def in_window(counts: Tally, cells: Integers, window: Integers) -> Tally:
    """The part of a tally that is in a window; cells: of all its counts."""
    kept = np.isin(cells, window)
    return Tally(
        columns=counts.columns[kept],
        rows=counts.rows[kept],
        counts=counts.counts[kept],
        region=None if counts.region is None else counts.region[kept],
        contributions=counts.contributions,
    )


def exact_answers(
    fit: CubeFit, counts: Tally, windows: Sequence[Integers], areas: Areas, scale: int
) -> list[Floats]:
    """Answers of the cells of a cube in each window if their counts were exact, (areas,) each."""
    found = cube_totals(
        _exact_fit(fit, counts, scale), areas, Windows.of_cells(windows, fit.record.sizes)
    )
    return [totals.estimate for totals in found]


def _exact_fit(fit: CubeFit, counts: Tally, scale: int) -> CubeFit:
    """The fit as if its counts were exact, and those of the cube of each category."""
    numbers: list[NDArray[Any]] = [
        *np.unravel_index(cells_of(counts, fit.record), fit.record.sizes)
    ]
    if isinstance(fit.plane.tree, RegionTree):
        assert counts.region is not None  # counted by regions
        numbers.append(counts.region)
    joint = _summed(fit.tree, _locate(fit.tree, counts, numbers), counts) / scale
    plane = _exact_plane(fit.plane, counts, scale)
    is_own = fit.own_plane is not fit.plane
    exact = CubeFit(
        record=fit.record,
        plane=plane,
        own_plane=_exact_plane(fit.own_plane, counts, scale) if is_own else plane,
        estimates=replace(fit.estimates, count=joint, signed=joint),
        published_covariance=fit.published_covariance,
    )
    parts = []
    for label, part in enumerate(fit.parts):
        of_label = counts.region == label
        names = ("columns", "rows", "counts", "slice")
        kept = {name: getattr(counts, name)[of_label] for name in names}
        parts.append(_exact_fit(part, replace(counts, **kept, region=None), scale))
    vars(exact)["parts"] = tuple(parts)
    return exact


def _exact_plane(plane: Fit, counts: Tally, scale: int) -> Fit:
    """The fit of a plane as if its counts were exact; inside of leaves records lie as before."""
    if isinstance(plane.tree, RegionTree):
        assert counts.region is not None  # counted by regions
        leaf = plane.tree.frame.lowest[counts.region]
    else:
        leaf = locate(plane.tree, counts.columns, counts.rows)
    count = _summed(plane.tree, leaf, counts) / scale
    exact = replace(
        plane,
        estimates=_exact(plane.estimates, count),
        published_covariance=_exact(plane.published_covariance, count),
    )
    vars(exact).update(inside=plane.inside, density=plane.density)
    return exact


def _exact(estimates: Estimates, count: Floats) -> Estimates:
    """Estimates with these counts, which have no noise."""
    return replace(estimates, count=count, signed=count, variance=np.zeros(len(count)))


def _summed(tree: Tree, leaf: Integers, counts: Tally) -> Floats:
    """Exact count of each node, from the leaves of the counts."""
    exact = np.zeros(len(tree))
    np.add.at(exact, leaf, counts.counts)
    for level in reversed(tree.levels[1:]):  # from the leaves up, each cell adds to its parent
        np.add.at(exact, tree.parent[level], exact[level])
    return exact


def _locate(tree: CubeTree, counts: Tally, numbers: Sequence[NDArray[Any]]) -> Integers:
    """Leaf of each count in a tree over space and axes; numbers: (n,) int64, cells of each axis."""
    node = np.zeros(len(counts.counts), np.int64)
    moving = np.flatnonzero(~tree.is_leaf[node])
    # Down a level at a time, those that are not in a leaf yet.
    while len(moving):
        above = node[moving]
        column, row = counts.columns[moving], counts.rows[moving]
        for part in range(MAX_CHILDREN):
            # Nodes with fewer children look at their last one again.
            child = tree.first_child[above] + np.minimum(part, tree.children[above] - 1)
            box, span = tree.boxes[child], tree.spans[child]
            inside = (column >= box[:, 0]) & (column < box[:, 2])
            inside &= (row >= box[:, 1]) & (row < box[:, 3])
            for axis, number in enumerate(numbers):
                first, stop = span[:, 2 * axis], span[:, 2 * axis + 1]
                inside &= (number[moving] >= first) & (number[moving] < stop)
            node[moving[inside]] = child[inside]
        if (node[moving] == above).any():
            raise InternalError("a record lies in no child of its cell")
        moving = moving[~tree.is_leaf[node[moving]]]
    return node
