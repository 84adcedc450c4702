"""Totals over the cells that make up a query; boxes and polygons share them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, sum_by
from psd.estimation.nonuniformity import cell_ceiling, nonuniformity_variance, shift_variance
from psd.query.lines import cut_pairs, line_variance
from psd.query.polygon_sides import Sides, side_variance
from psd.query.traversal import Traversal, cut_leaf_total, perturbation_variance, weighted_total

if TYPE_CHECKING:
    from psd.estimation.fit import Fit

__all__ = ["QueryTotals", "concatenate", "query_totals"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueryTotals:
    """Totals over the cells of each query.

    Parameters
    ----------
    estimate : ndarray, shape (queries,), float64
        Records; negative where the estimates of cells are signed.
    signed : ndarray, shape (queries,), float64
        Answer of unprojected least squares.
    perturbation_variance : ndarray, shape (queries,), float64
        Variance of the signed answer that the noise causes, in records squared.
    published_variance : ndarray, shape (queries,), float64
        The same for the published counts; see `psd.estimation.least_squares.published_covariance`.
    leaf_variance : ndarray, shape (queries,), float64
        Variance from points in partly covered leaves, in records squared.
    shift : ndarray, shape (queries,), float64
        Records that the density adds to the query, compared with a uniform one, times the
        relative error of that density (`psd.estimation.fit.Fit.shift_share`).
    line_variance : ndarray, shape (queries,), float64
        Variance from records along the sides of boxes, in records squared; 0 for polygons.
    beyond : ndarray, shape (queries,), float64
        Records that partly covered leaves may hold outside the query, which bound the answer: see
        `psd.estimation.nonuniformity.cell_ceiling`.
    """

    estimate: NDArray[np.float64]
    signed: NDArray[np.float64]
    perturbation_variance: NDArray[np.float64]
    published_variance: NDArray[np.float64]
    leaf_variance: NDArray[np.float64]
    shift: NDArray[np.float64]
    line_variance: NDArray[np.float64]
    beyond: NDArray[np.float64]

    @property
    def nonuniformity_variance(self) -> NDArray[np.float64]:
        """Variance from partly covered leaves, the shift of a density, and lines."""
        return self.leaf_variance + shift_variance(self.shift) + self.line_variance

    def noise_variance(self, published: bool) -> NDArray[np.float64]:
        """Variance from the noise, of the published counts or of the signed ones."""
        return self.published_variance if published else self.perturbation_variance


def query_totals(
    fit: Fit,
    traversal: Traversal,
    boxes: NDArray[np.float64] | None = None,
    sides: Sides | None = None,
) -> QueryTotals:
    """Compute the totals of queries from their traversal.

    Parameters
    ----------
    fit : Fit
        Fit of the cells.
    traversal : Traversal
        Cells of the queries.
    boxes : ndarray, shape (queries, 4), float64, optional
        The queries in lattice units, if they are boxes.
    sides : Sides, optional
        Sides of the queries, if they are polygons.
    """
    estimates, overdispersion, cluster_size = (
        fit.estimates,
        fit.dispersion.overdispersion,
        fit.dispersion.cluster_size,
    )
    count = estimates.count

    def uneven(
        node: NDArray[np.int64], fraction: NDArray[np.float64], area: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return nonuniformity_variance(
            count[node], fraction, area, overdispersion[node], cluster_size
        )

    def moved(
        node: NDArray[np.int64], fraction: NDArray[np.float64], area: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return fit.shift_share * np.maximum(count[node], 0.0) * (fraction - area)

    def left_out(
        node: NDArray[np.int64], fraction: NDArray[np.float64], area: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return cell_ceiling(count[node], estimates.variance[node]) * (1 - fraction)

    rounding = _rounding_total(fit, traversal)
    return QueryTotals(
        estimate=weighted_total(traversal, count),
        signed=weighted_total(traversal, estimates.signed),
        perturbation_variance=perturbation_variance(traversal, estimates) + rounding,
        published_variance=perturbation_variance(traversal, fit.published_covariance) + rounding,
        leaf_variance=cut_leaf_total(traversal, uneven),
        shift=cut_leaf_total(traversal, moved) if fit.shift_share else np.zeros(traversal.queries),
        line_variance=_line_variance(fit, traversal, boxes, sides),
        beyond=cut_leaf_total(traversal, left_out),
    )


def _line_variance(
    fit: Fit, traversal: Traversal, boxes: Floats | None, sides: Sides | None
) -> Floats:
    """Variance by records along the sides of boxes or of polygons."""
    if boxes is not None:
        return line_variance(fit, traversal, boxes)
    if sides is None:
        return np.zeros(traversal.queries)
    return side_variance(fit, *cut_pairs(traversal), sides, traversal.queries)


def _rounding_total(fit: Fit, traversal: Traversal) -> NDArray[np.float64] | float:
    """Variance of each answer that rounding to integers causes.

    As if the cells of an answer were rounded independently of each other. Neighbours are rounded in
    opposite directions, so that the variance of a union is smaller.
    """
    total, variance = np.zeros(traversal.queries), fit.rounding_variance
    if variance is None:
        return 0.0
    for level in traversal.levels:
        part = np.where(level.opened, 0.0, level.fraction) ** 2 * variance[level.node]
        total += sum_by(level.query, part, traversal.queries)
    return total


def concatenate(parts: Sequence[QueryTotals]) -> QueryTotals:
    """Append the totals of several batches of queries, in order."""
    return QueryTotals(
        **{
            field.name: np.concatenate([np.empty(0), *(getattr(p, field.name) for p in parts)])
            for field in fields(QueryTotals)
        }
    )
