"""The count model: estimates of every cell from the noisy counts of a record. Post-processing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd.estimation.boundary_error import (
    PATTERN_SHAPE,
    LinePattern,
    column_records,
    fit_lines,
    line_deviation,
    step_overdispersion,
)
from psd.estimation.constants import MEDIAN_REACH, SHIFT_ERROR, SLOPE_OVERDISPERSION, SMOOTH_SHIFT
from psd.estimation.covariate_density import CovariateDensity, parent_shares, region_shares
from psd.estimation.covariate_error import covariate_error
from psd.estimation.density import (
    SURFACE_SHAPE,
    Density,
    SmoothDensity,
    least_mass,
    raster_scale,
    smooth_density,
)
from psd.estimation.dispersion import Dispersion, fit_dispersion
from psd.estimation.fit_cache import FitCache
from psd.estimation.integer_counts import round_counts, rounding_variance, uniform_of_digest
from psd.estimation.least_squares import Estimates, infer_counts, prune_counts
from psd.estimation.line_position import line_squares
from psd.estimation.local_measurements import measure_record
from psd.estimation.posterior import PART_NODES, posterior_counts
from psd.estimation.published_covariance import published_covariance
from psd.estimation.sibling_splits import divisions
from psd.estimation.subtree_parts import halfway_level
from psd.release.digest import content_digest
from psd.release.post_processing import WITH_PRIOR, PostProcessing
from psd.release.record import ReleaseRecord
from psd.release.schema import record_header
from psd.space.box_tree import Tree
from psd.space.domain import Domain
from psd.space.region_tree import RegionTree

__all__ = ["CountModel"]

_ESTIMATES = tuple(field.name for field in fields(Estimates))


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
    cache : FitCache, optional
        Where the numbers that take longest are kept between processes.

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    >>> tree = psd.decompositions.grid_tree(domain, 2)
    >>> release = psd.Release.from_counts(tree, [5, 1, 0, 2], 1.0, domain=domain)
    >>> round(CountModel(record=release.record).total, 1)
    8.0
    """

    record: ReleaseRecord
    cache: FitCache | None = None

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
        """Mask of the cells that no record can lie in; None without boundary and regions."""
        return self.record.outside

    @cached_property
    def estimates(self) -> Estimates:
        """Consistent estimates of every cell with variances; counts by the post-processing."""
        if self.post_processing.estimate != "integer":
            return self._real_estimates
        content = content_digest(b"psd", record_header(self.record), self.tree)
        counts = self._real_estimates.count
        rounded = round_counts(self.tree, counts, uniform_of_digest(content))
        return replace(self._real_estimates, count=rounded)

    @property
    def rounding_variance(self) -> NDArray[np.float64] | None:
        """Variance that rounding to integers adds to each cell; None without rounding."""
        if self.post_processing.estimate != "integer":
            return None
        return rounding_variance(self._real_estimates.count)

    @cached_property
    def least_squares(self) -> Estimates:
        """Least squares before a prior and pruning.

        The published counts are the signed ones where the post-processing has others.
        """
        tree, unit = self.tree, self.record.unit
        return infer_counts(
            tree,
            unit.scale,
            self._empty,
            settled=self.record.local is None,
            measured=measure_record(self.record),
            projected=self.post_processing.estimate == "least-squares",
        )

    @property
    def _empty(self) -> NDArray[np.bool_] | None:
        """Mask of the leaves that no record can lie in."""
        return None if self.outside is None else self.outside & self.tree.is_leaf

    @cached_property
    def _kept_estimates(self) -> Estimates | None:
        """Estimates in the cache."""
        if self.cache is None:
            return None
        values = self.cache.find_all(_ESTIMATES, (len(self.tree),))
        return None if values is None else Estimates(**dict(zip(_ESTIMATES, values, strict=True)))

    @property
    def is_fitted(self) -> bool:
        """Whether the estimates of all cells were computed, or read, before."""
        return "_real_estimates" in vars(self)

    @property
    def is_cached(self) -> bool:
        """Whether the estimates of all cells are in the cache."""
        return self._kept_estimates is not None

    @cached_property
    def _real_estimates(self) -> Estimates:
        """Estimates before counts are rounded to integers."""
        if self._kept_estimates is not None:
            return self._kept_estimates
        fitted = self._fit_estimates()
        if self.cache is not None:
            self.cache.keep_all({name: getattr(fitted, name) for name in _ESTIMATES})
        return fitted

    def _fit_estimates(self) -> Estimates:
        """Compute the estimates."""
        estimates, choice = self.least_squares, self.post_processing
        if choice.estimate in WITH_PRIOR:
            estimates = replace(estimates, count=self._medians())
            self._keep_top(estimates.count)
        if choice.prune:
            counts = prune_counts(self.tree, estimates, choice.prune, self.parent_shares)
            estimates = replace(estimates, count=counts)
        return estimates

    def _medians(self, opened: Integers | None = None, top: Floats | None = None) -> Floats:
        """Posterior medians of the counts, of all nodes or of the children of some."""
        return posterior_counts(
            self.tree,
            self.least_squares,
            self.record.unit.scale,
            self._empty,
            reach=MEDIAN_REACH,
            opened=opened,
            top=top,
        )

    @property
    def _top_size(self) -> int:
        """Nodes whose medians are kept, so that others can be computed one subtree at a time."""
        if self.cache is None or len(self.tree) <= PART_NODES:
            return 0
        return int(self.tree.levels[halfway_level(self.tree)].stop)

    def _keep_top(self, medians: Floats) -> None:
        """Keep the medians of the first levels."""
        if self.cache is not None and self._top_size:
            self.cache.keep_all({"top": medians[: self._top_size]})

    def _recall(self, name: str, shape: tuple[int, ...], compute: Callable[[], Floats]) -> Floats:
        """Numbers from the cache if there is one, else computed."""
        return compute() if self.cache is None else self.cache.recall(name, shape, compute)

    @cached_property
    def published_covariance(self) -> Estimates:
        """Estimates with the covariance of the published counts."""
        if self.post_processing.estimate == "signed":
            return self.estimates
        # Integers have the covariance of the counts that were rounded: rounding has its own term.
        counts = self._real_estimates
        return published_covariance(self.tree, counts)

    @property
    def predicts_published(self) -> bool:
        """Whether errors from the noise are predicted for the published counts.

        Posterior medians, and counts that must not be negative, hold empty cells near 0. Signed
        counts, and those of a local model, have the covariance of least squares.
        """
        return self.record.local is None and self.post_processing.estimate != "signed"

    @property
    def noise_covariance(self) -> Estimates:
        """Estimates with the covariance that predicts the errors from the noise."""
        return self.published_covariance if self.predicts_published else self.estimates

    @cached_property
    def density(self) -> Density | None:
        """Density of the records inside the leaves; None where it is uniform."""
        if self.post_processing.density == "uniform":
            return None
        covariate = self.record.covariate
        if covariate is not None and self.post_processing.density == "covariate":
            return CovariateDensity(covariate=covariate)
        tree, lattice = self.tree, self.domain.lattice

        def surface() -> Floats:
            counts = np.maximum(self.estimates.count, 0.0)
            return smooth_density(tree, counts, lattice).surface

        values = self._recall("surface", SURFACE_SHAPE, surface)
        return SmoothDensity(
            tree=tree,
            scale=raster_scale(lattice),
            surface=values,
            least=least_mass(np.maximum(self.estimates.count[:1], 0.0)),
        )

    @cached_property
    def parent_shares(self) -> NDArray[np.float64]:
        """Share of its parent's records that each cell has before counts are known."""
        if isinstance(self.tree, RegionTree):
            return region_shares(self.tree, self.record.covariate)
        has_mass = self.post_processing.density == "covariate" or self.record.boundary
        return parent_shares(self.tree, self.record.covariate if has_mass else None)

    @cached_property
    def shift_share(self) -> float:
        """Error of what the density moves inside leaves, over `SHIFT_ERROR`.

        A constant for a smooth density. For a covariate it follows from the counts; that of a
        boundary is right.
        """
        if self.post_processing.density == "smooth":
            return SMOOTH_SHIFT
        if self.record.boundary or not isinstance(self.density, CovariateDensity):
            return 0.0

        def compute() -> Floats:
            even = (
                region_shares(self.tree, None)
                if isinstance(self.tree, RegionTree)
                else parent_shares(self.tree, None)
            )
            error = covariate_error(self.tree, self.estimates, self.parent_shares, even)
            return np.array([error / SHIFT_ERROR])

        return float(self._recall("shift", (1,), compute)[0])

    @cached_property
    def dispersion(self) -> Dispersion:
        """Variance of the records in a part of a cell."""

        def compute() -> Floats:
            fitted = self._fit_dispersion()
            return np.append(fitted.overdispersion, fitted.cluster_size)

        if self.cache is None:
            return self._fit_dispersion()
        values = self.cache.recall("unevenness", (len(self.tree) + 1,), compute)
        return Dispersion(cluster_size=float(values[-1]), overdispersion=values[:-1])

    def _fit_dispersion(self) -> Dispersion:
        """Compute the variance of the records in a part of a cell."""
        tree, estimates = self.tree, self.estimates
        fitted = fit_dispersion(tree, estimates, self.parent_shares, self._line_squares)
        overdispersion = fitted.overdispersion
        if self.post_processing.density == "covariate" and not isinstance(tree, RegionTree):
            overdispersion = np.minimum(SLOPE_OVERDISPERSION * overdispersion, 1.0)
        if self._line_pattern is not None:
            by_step = step_overdispersion(tree, self._line_pattern.step, self.domain)
            overdispersion = np.maximum(overdispersion, by_step)
        return replace(fitted, overdispersion=overdispersion)

    @cached_property
    def _line_pattern(self) -> LinePattern | None:
        """How records lie along lines.

        None with a coordinate resolution: the sides of boxes then lie between values. None with
        regions, whose cells are not rows and columns.
        """
        is_coarse = self.domain.coordinate_resolution is not None
        if is_coarse or isinstance(self.tree, RegionTree):
            return None

        def fit() -> Floats:
            tree, estimates = self.tree, self.estimates
            return fit_lines(tree, estimates, self.parent_shares, self.domain).to_array()

        return LinePattern.from_array(self._recall("lines", PATTERN_SHAPE, fit))

    @property
    def _line_squares(self) -> Floats | None:
        """Squared deviations of children that lines explain; None where no lines are seen."""
        pattern = self._line_pattern
        if pattern is None or not np.any(pattern.common):
            return None
        along = divisions(self.tree, self.estimates, self.parent_shares)
        return line_squares(self.tree, along, pattern.common, self.domain.lattice)

    @cached_property
    def line_deviation(self) -> NDArray[np.float64] | None:
        """Deviation of cuts along each axis, shape (2, nodes); None where nothing is seen."""
        pattern = self._line_pattern
        if pattern is None:
            return None
        count, overdispersion = self.estimates.count, self.dispersion.overdispersion
        return line_deviation(self.tree, count, overdispersion, pattern, self.domain)

    @cached_property
    def column_records(self) -> NDArray[np.float64] | None:
        """Records in one column and one row of each leaf, shape (2, nodes).

        None unless the lattice was chosen; then a line inside a column has all of them on one side.
        """
        if self._line_pattern is None:
            return None
        return column_records(self.tree, self.estimates.count, self.domain)

    @property
    def total(self) -> float:
        """Estimated number of (kept) records, or of users, in the whole domain."""
        if self.post_processing.estimate == "integer" or self.is_fitted:
            return max(float(self.estimates.count[0]), 0.0)
        return max(float(self.least_squares.signed[0]), 0.0)  # that the root has in all of them
