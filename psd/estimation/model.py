"""The count model: estimates of every cell from the noisy counts of a record. Post-processing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from psd.estimation._constants import MEDIAN_REACH
from psd.estimation.alignment import line_deviation
from psd.estimation.covariate_density import CovariateDensity, parent_shares
from psd.estimation.density import Density, smooth_density
from psd.estimation.least_squares import Estimates, infer_counts, prune_counts
from psd.estimation.nonuniformity import overdispersion_by_level
from psd.estimation.published_covariance import published_covariance
from psd.estimation.unevenness import Unevenness, fit_unevenness, fixed_unevenness
from psd.release.post_processing import SETTLED_SINCE, PostProcessing
from psd.release.record import ReleaseRecord
from psd.space.box_tree import Tree
from psd.space.domain import Domain

__all__ = ["CountModel"]


@dataclass(frozen=True, kw_only=True, eq=False)
class CountModel:
    """Estimates, variances and densities of a record, each computed once when first used.

    Guarantees
    ----------
    - A function of the record alone: it costs no epsilon.

    Parameters
    ----------
    record : ReleaseRecord
        What was published.

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    >>> tree = psd.grid_tree(domain, 2)
    >>> release = psd.Release.from_counts(tree, [5, 1, 0, 2], 1.0, domain=domain)
    >>> round(CountModel(record=release.record).total, 1)
    8.0
    """

    record: ReleaseRecord

    @property
    def tree(self) -> Tree:
        """Cells and noisy counts."""
        return self.record.tree

    @property
    def domain(self) -> Domain:
        """Bounds, CRS and lattice."""
        return self.record.domain

    @property
    def post_processing(self) -> PostProcessing:
        """Post-processing of the counts."""
        return self.record.post_processing

    @cached_property
    def outside(self) -> NDArray[np.bool_] | None:
        """Mask of the cells entirely outside the boundary; None without a boundary."""
        return self.record.outside

    @cached_property
    def estimates(self) -> Estimates:
        """Consistent estimates of every cell with variances; counts by the post-processing."""
        tree, unit, choice = self.tree, self.record.unit, self.post_processing
        empty = None if self.outside is None else self.outside & tree.is_leaf
        estimates = infer_counts(
            tree,
            unit.contributions,
            unit.scale,
            empty,
            settled=self.record.inference >= SETTLED_SINCE,
        )
        if choice.estimate == "posterior":
            # Imports scipy.optimize, which most sessions do without.
            from psd.estimation.posterior import posterior_counts

            counts = posterior_counts(
                tree,
                estimates,
                unit.contributions,
                unit.scale,
                empty,
                reach=None if self.record.inference == 1 else MEDIAN_REACH,
            )
            estimates = replace(estimates, count=counts)
        if choice.estimate == "signed":
            estimates = replace(estimates, count=estimates.signed)
        if choice.prune:
            counts = prune_counts(tree, estimates, choice.prune, self.parent_shares)
            estimates = replace(estimates, count=counts)
        return estimates

    @cached_property
    def published_covariance(self) -> Estimates:
        """Estimates with the covariance of the published counts."""
        if self.post_processing.estimate == "signed":
            return self.estimates
        return published_covariance(self.tree, self.estimates)

    @cached_property
    def density(self) -> Density | None:
        """Density of the records inside the leaves; None where it is uniform."""
        if self.post_processing.density == "uniform":
            return None
        covariate = self.record.covariate
        if covariate is not None and self.post_processing.density == "covariate":
            return CovariateDensity(covariate=covariate)
        counts = np.maximum(self.estimates.count, 0.0)
        return smooth_density(
            self.tree, counts, self.domain.lattice, within=self.record.inference == 1
        )

    @property
    def parent_shares(self) -> NDArray[np.float64]:
        """Share of its parent's records that each cell has before counts are known."""
        has_mass = self.post_processing.density == "covariate" or self.record.boundary
        return parent_shares(self.tree, self.record.covariate if has_mass else None)

    @cached_property
    def unevenness(self) -> Unevenness:
        """Variance of the records in a part of a cell."""
        tree, estimates = self.tree, self.estimates
        if self.record.inference == 1:
            by_level = overdispersion_by_level(tree, estimates, self.parent_shares)
            return fixed_unevenness(tree, by_level)
        return fit_unevenness(tree, estimates, self.parent_shares)

    @cached_property
    def line_deviation(self) -> NDArray[np.float64] | None:
        """Deviation of cuts along each axis, shape (2, nodes); None where nothing is seen.

        None with a coordinate resolution: the sides of boxes then lie between values.
        """
        if self.record.inference == 1 or self.domain.coordinate_resolution is not None:
            return None
        return line_deviation(self.tree, self.estimates, self.parent_shares, self.domain)

    @property
    def total(self) -> float:
        """Estimated number of (kept) records, or of users, in the whole domain."""
        return max(float(self.estimates.count[0]), 0.0)
