"""Answers of a cube: areas in windows of time.

An answer takes of each leaf of the joint layer the part of its records that lies in the area and in
the window: the share of the area in the mass of the plane in the leaf's box, times the share of the
window in the leaf's slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, sum_by
from psd.estimation.cube import CubeFit
from psd.estimation.nonuniformity import cell_ceiling
from psd.query.areas import Areas
from psd.query.totals import QueryTotals, concatenate
from psd.query.traversal import Fraction, Traversal, perturbation_variance, traverse

__all__ = ["Windows", "cube_totals"]

# Pairs of an area and a window asked of the joint layer together.
_QUERIES_PER_BATCH = 2**12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Windows:
    """Sets of slices, each answered as one."""

    # (windows, slices + 1) int64; slices of each window before each edge of a slice.
    before: Integers

    @classmethod
    def of_slices(cls, windows: Sequence[Sequence[int]], slices: int) -> Windows:
        """Windows of the numbers of their slices."""
        inside = np.zeros((len(windows), slices + 1), np.int64)
        for number, window in enumerate(windows):
            inside[number, np.asarray(window, np.int64) + 1] = 1
        return cls(before=np.cumsum(inside, axis=1))

    def __len__(self) -> int:
        return len(self.before)

    def shares(self, window: Integers, spans: NDArray[np.int32]) -> Floats:
        """Part of each span that lies in a window, (n,) float64."""
        first, stop = spans.T
        inside = self.before[window, stop] - self.before[window, first]
        share: Floats = inside / (stop - first)
        return share


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Plane:
    """Parts of nodes of the plane that lie in areas, for all nodes that an area cuts or meets."""

    traversal: Traversal
    key: Integers  # (n,) int64, ascending; area and node
    pair: Integers  # (n,) int64; place of each in the levels of the traversal, one after another
    share: Floats  # (n,) float64; covered part of the records of the plane, by `pair`
    area: Floats  # (n,) float64; covered part of the area, by `pair`

    def find(self, area: Integers, node: Integers, nodes: int) -> Integers:
        """Pair of each area and node; -1 inside of a node that an area covers."""
        key = area * nodes + node
        at = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
        return np.where(self.key[at] == key, self.pair[at], -1)


def _plane_parts(fit: CubeFit, traversal: Traversal) -> _Plane:
    """Parts of the nodes of the plane in areas, from the leaves up."""
    count = np.maximum(fit.plane.estimates.count, 0.0)
    tree, shares, areas = fit.plane.tree, [], []
    below = None
    for level in reversed(traversal.levels):
        share, area = level.fraction.copy(), level.area.copy()
        if below is not None:
            lower, of_share, of_area = below
            size = len(level.node)
            mass = sum_by(lower.parent, count[lower.node] * of_share, size)
            cells = tree.area.astype(np.float64)
            ground = sum_by(lower.parent, cells[lower.node] * of_area, size)
            opened = level.opened
            whole = count[level.node]
            part = ground[opened] / cells[level.node[opened]]
            area[opened] = part
            records = whole[opened]
            known = records > 0
            share[opened] = np.where(
                known, mass[opened] / np.where(known, records, 1.0), part
            )
        shares.append(share)
        areas.append(area)
        below = level, share, area
    share, area = np.concatenate(shares[::-1]), np.concatenate(areas[::-1])
    key = np.concatenate([level.query * len(tree) + level.node for level in traversal.levels])
    order = np.argsort(key)
    return _Plane(
        traversal=traversal,
        key=key[order],
        pair=order,
        share=np.clip(share, 0.0, 1.0),
        area=area,
    )


def cube_totals(fit: CubeFit, areas: Areas, windows: Windows) -> list[QueryTotals]:
    """Totals of areas in each window, (areas,) each."""
    regions, number = areas.overlaps(fit.plane), len(windows)
    parts: list[list[QueryTotals]] = [[] for _ in range(number)]
    for _, traversal in regions.traversals():
        plane = _plane_parts(fit, traversal)
        size = traversal.queries
        queries = np.arange(size * number)  # window by window
        batches = range(0, len(queries), _QUERIES_PER_BATCH)
        totals = concatenate(
            [
                _batch_totals(fit, plane, queries[start : start + _QUERIES_PER_BATCH], windows)
                for start in batches
            ]
        )
        for window in range(number):
            parts[window].append(totals[np.arange(window * size, (window + 1) * size)])
    return [concatenate(each) for each in parts]


def _batch_totals(
    fit: CubeFit, plane: _Plane, queries: Integers, windows: Windows
) -> QueryTotals:
    """Totals of some areas in some windows."""
    size, tree = plane.traversal.queries, fit.tree
    window, area = queries // size, queries % size
    traversal = traverse(tree, len(queries), _joint_fraction(fit, plane, area, window, windows))
    estimates, number = fit.estimates, len(queries)
    estimate, signed, leaf_variance, beyond = np.zeros((4, number))
    phi, clusters, phi_time = (
        fit.dispersion.overdispersion, fit.dispersion.cluster_size, fit.time_overdispersion
    )
    for level in traversal.levels:
        met = np.flatnonzero(~level.opened & (level.area > 0))
        query, node, fraction = level.query[met], level.node[met], level.fraction[met]
        estimate += sum_by(query, fraction * estimates.count[node], number)
        signed += sum_by(query, fraction * estimates.signed[node], number)
        cut = np.flatnonzero(level.area[met] < 1)
        query, node, fraction = query[cut], node[cut], fraction[cut]
        records = np.maximum(estimates.count[node], 0.0)
        of_time = windows.shares(window[query], tree.spans[node])
        of_space = fraction / np.where(of_time > 0, of_time, 1.0)
        uneven = clusters * records * fraction * (1 - fraction)
        uneven += records**2 * phi[node] * of_space * (1 - of_space) * of_time**2
        uneven += records**2 * phi_time[node] * of_time * (1 - of_time) * of_space**2
        leaf_variance += sum_by(query, uneven, number)
        left = cell_ceiling(records, estimates.variance[node]) * (1 - fraction)
        beyond += sum_by(query, left, number)
    nothing = np.zeros(number)
    return QueryTotals(
        estimate=estimate,
        signed=signed,
        perturbation_variance=perturbation_variance(traversal, estimates),
        published_variance=perturbation_variance(traversal, fit.published_covariance),
        leaf_variance=leaf_variance,
        shift=nothing,
        line_variance=nothing,
        beyond=beyond,
    )


def _joint_fraction(
    fit: CubeFit, plane: _Plane, area: Integers, window: Integers, windows: Windows
) -> Fraction:
    """Covered parts of joint nodes: of their records, and of their area and slices."""
    nodes, spans, size = fit.nodes, fit.tree.spans, len(fit.plane.tree)

    def fraction(query: Integers, node: Integers) -> tuple[Floats, Floats]:
        pair = plane.find(area[query], nodes[node], size)
        inside = pair < 0
        of_time = windows.shares(window[query], spans[node])
        share = np.where(inside, 1.0, plane.share[pair]) * of_time
        covered = np.where(inside, 1.0, plane.area[pair]) * of_time
        return share, covered

    return fraction
