"""Totals over the cells that make up a query; boxes and polygons share them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, sum_by
from psd.errors import InternalError
from psd.estimation.fit import Fit
from psd.estimation.nonuniformity import cell_ceiling, nonuniformity_variance
from psd.query.lines import Sides, cut_pairs, line_variance, side_variance
from psd.query.traversal import Traversal, edge_squares, perturbation_variance

__all__ = ["WindowFit"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueryTotals:
    """Totals over the cells of each query: (queries,) float64, variances in records squared."""

    estimate: NDArray[np.float64]  # records; negative where the estimates of cells are signed
    signed: NDArray[np.float64]  # answer of unprojected least squares
    perturbation_variance: NDArray[np.float64]  # of the signed answer, by the noise
    # Of the published counts, by the noise; see
    # `psd.estimation.least_squares.published_covariance`.
    published_variance: NDArray[np.float64]
    leaf_variance: NDArray[np.float64]  # from points in partly covered leaves
    # Records that the density adds to the query, compared with a uniform one, times its relative
    # error (`psd.estimation.fit.Fit.shift_share`). A leaf beside a dense one holds its points near
    # that one. A smooth density knows this, but not how strongly, and is wrong in the same
    # direction along the whole edge of a query.
    shift: NDArray[np.float64]
    line_variance: NDArray[np.float64]  # from records along the sides of boxes; 0 for polygons
    # Of the weights of a value, from cells along the edge; 0 of records, see
    # `psd.query.value_edges`.
    edge_variance: NDArray[np.float64]
    # Records that partly covered leaves may hold outside the query, a bound of the answer
    # (`psd.estimation.nonuniformity.cell_ceiling`).
    beyond: NDArray[np.float64]

    def __getitem__(self, which: Integers) -> QueryTotals:
        """Totals of some of the queries."""
        return QueryTotals(
            **{field.name: getattr(self, field.name)[which] for field in fields(self)}
        )

    @property
    def nonuniformity_variance(self) -> NDArray[np.float64]:
        """Variance from partly covered leaves, the shift of a density, and lines."""
        return self.leaf_variance + self.shift**2 + self.line_variance

    def noise_variance(self, published: bool) -> NDArray[np.float64]:
        """Variance from the noise, of the published counts or of the signed ones."""
        return self.published_variance if published else self.perturbation_variance


@dataclass(frozen=True, kw_only=True, eq=False)
class WindowFit(Fit):
    """Fit of the cells of a cube in a window of time; see `psd.query.cube_views`.

    P1. Cells have the answers to their boxes. These know more than the fit does: that records of a
    cell may lie in other slices, and elsewhere than those of all time.
    """

    cells: QueryTotals  # of every cell
    totals: Callable[[Floats], QueryTotals]  # of boxes in the CRS of the release, (n, 4) float64
    of_areas: Callable[[Any], QueryTotals]  # of `psd.query.areas.Areas`, such as named regions


def query_totals(
    fit: Fit,
    traversal: Traversal,
    boxes: NDArray[np.float64] | None = None,
    sides: Sides | None = None,
) -> QueryTotals:
    """Totals of queries from their traversal; boxes: (queries, 4) in lattice units."""
    estimates, count, number = fit.estimates, fit.estimates.count, traversal.queries
    estimate, signed, leaf_variance, shift, beyond = np.zeros((5, number))
    rounding: Floats | float = 0.0
    for level in traversal.levels:
        # What a query takes of the cells that it meets and does not open.
        met = np.flatnonzero(~level.opened & (level.area > 0))
        query, node = level.query.take(met), level.node.take(met)
        fraction = level.fraction.take(met)
        records = count.take(node)
        estimate += sum_by(query, fraction * records, number)
        if estimates.signed is not count:
            signed += sum_by(query, fraction * estimates.signed.take(node), number)
        if fit.rounding_variance is not None:
            # As if the cells of an answer were rounded independently of each other. Neighbours are
            # rounded in opposite directions, so that the variance of a union is smaller.
            part = fraction**2 * fit.rounding_variance[node]
            rounding = rounding + sum_by(query, part, number)

        # Of these, the cells that are cut: where in them their records lie is not known.
        cut = np.flatnonzero(level.area[met] < 1)
        area, query, node = level.area.take(met.take(cut)), query.take(cut), node.take(cut)
        fraction, records = fraction.take(cut), records.take(cut)
        overdispersion = fit.dispersion.overdispersion.take(fit.tree.end.take(node))
        cluster_size = fit.dispersion.cluster_size
        uneven = nonuniformity_variance(records, fraction, area, overdispersion, cluster_size)
        leaf_variance += sum_by(query, uneven, number)
        moved = fit.shift_share * np.maximum(records, 0.0) * (fraction - area)
        shift += sum_by(query, moved, number)
        left_out = cell_ceiling(records, estimates.variance.take(node)) * (1 - fraction)
        beyond += sum_by(query, left_out, number)
    along_lines = np.zeros(number)
    if boxes is not None:
        along_lines = line_variance(fit, traversal, boxes)
    elif sides is not None:
        along_lines = side_variance(fit, *cut_pairs(traversal), sides, number)
    noise = published = perturbation_variance(traversal, estimates) + rounding
    if fit.published_covariance is not estimates:
        covariance = fit.published_covariance
        published = perturbation_variance(traversal, covariance) + rounding
    along_edges = np.zeros(number)
    if fit.edge_factor:
        along_edges = fit.edge_factor * edge_squares(traversal, estimates)
    return QueryTotals(
        estimate=estimate,
        signed=estimate if estimates.signed is count else signed,
        perturbation_variance=noise,
        published_variance=published,
        leaf_variance=leaf_variance,
        shift=shift,
        line_variance=along_lines,
        edge_variance=along_edges,
        beyond=beyond,
    )


def node_totals(fit: Fit, nodes: Integers) -> QueryTotals:
    """Totals of queries that are nodes of the tree; they are whole, so nothing is uneven."""
    if isinstance(fit, WindowFit):
        return fit.cells[nodes]
    nothing = np.zeros(len(nodes))
    return QueryTotals(
        estimate=fit.estimates.count[nodes],
        signed=fit.estimates.signed[nodes],
        perturbation_variance=fit.estimates.variance[nodes],
        published_variance=fit.published_covariance.variance[nodes],
        leaf_variance=nothing,
        shift=nothing,
        line_variance=nothing,
        edge_variance=nothing,
        beyond=nothing,
    )


def concatenate(parts: Sequence[QueryTotals]) -> QueryTotals:
    """Append the totals of several batches of queries, in order."""
    return QueryTotals(
        **{
            field.name: np.concatenate([np.empty(0), *(getattr(p, field.name) for p in parts)])
            for field in fields(QueryTotals)
        }
    )


class SliceSum:
    """Totals of sums over slices, of those of the same queries in each slice, added one by one.

    P1. The sum over one slice is the answer of that slice.

    P2. The error of unevenness is at least that of the sum, whatever the slices have in common: the
    largest standard deviation of a sum, that of slices which are all wrong in one direction
    (Minkowski), is taken, for edges as well.
    """

    def __init__(self) -> None:
        self._first: QueryTotals | None = None
        self._sums: Floats | None = None  # of several slices

    def add(self, totals: QueryTotals) -> None:
        """Add one more slice."""
        if self._first is None:
            self._first = totals
            return
        if self._sums is None:
            self._sums = _summands(self._first)
        self._sums += _summands(totals)

    @property
    def totals(self) -> QueryTotals:
        """Totals of the slices that were added, at least one."""
        if self._first is None:
            raise InternalError("a sum over slices needs one")
        if self._sums is None:
            return self._first
        # Noise is independent, so variances add up. Signed answers are added: published ones, never
        # negative, would add up to a bias of about .4 standard deviations for each nearly empty
        # slice.
        signed, noise, beyond, uneven, edges = self._sums
        nothing = np.zeros(len(signed))
        return QueryTotals(
            estimate=signed,
            signed=signed,
            perturbation_variance=noise,
            published_variance=noise,
            leaf_variance=uneven**2,
            shift=nothing,
            line_variance=nothing,
            edge_variance=edges**2,
            beyond=beyond,
        )


def _summands(totals: QueryTotals) -> Floats:
    """What is added up over slices, shape (5, queries), deviations of unevenness and edges last."""
    uneven, edges = np.sqrt(totals.nonuniformity_variance), np.sqrt(totals.edge_variance)
    return np.stack([totals.signed, totals.perturbation_variance, totals.beyond, uneven, edges])
