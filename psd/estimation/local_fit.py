"""A count model near a few boxes, for a process that answers one request.

All noisy counts have a say in every estimate, but the medians and the smooth density of most cells
are used by no answer. Post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from psd._util.arrays import Floats
from psd.estimation.density import Density, smooth_density_near
from psd.estimation.fit_cache import LEAST_NODES
from psd.estimation.least_squares import Estimates
from psd.estimation.model import CountModel
from psd.estimation.near_zone import NearZone, near_zone
from psd.estimation.published_covariance import published_covariance
from psd.release.post_processing import WITH_PRIOR
from psd.space.region_tree import RegionTree

__all__ = ["LocalFit", "local_fit"]

# Boxes whose surroundings are looked at; the cells of more are met by a fit of all cells.
_FEW = 16

# Cells near the boxes, beside all nodes, above which a fit of all is faster to read from the cache.
_MANY = 1 / 64


def local_fit(model: CountModel, boxes: Floats) -> CountModel:
    """Model of the cells near some boxes, or of all cells where that is as fast.

    Guarantees
    ----------
    - Totals of these boxes are those of ``model``, to rounding.

    Parameters
    ----------
    model : CountModel
        Of all cells.
    boxes : ndarray, shape (m, 4), float64
        In lattice units.
    """
    choice = model.post_processing
    if (
        len(boxes) > _FEW
        or len(model.tree) < LEAST_NODES
        or choice.estimate == "integer"
        or choice.prune
        or choice.density == "covariate"
        or isinstance(model.tree, RegionTree)
        or model.is_fitted
    ):
        return model
    smooth = choice.density == "smooth"
    zone = near_zone(model.tree, model.domain.lattice, boxes, smooth=smooth)
    if zone is None or (len(zone.opened) > _MANY * len(model.tree) and model.is_cached):
        return model
    near = LocalFit(record=model.record, cache=model.cache, zone=zone)
    vars(near)["least_squares"] = model.least_squares
    return near


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalFit(CountModel):
    """Estimates, variances and densities of a record near some boxes.

    Counts of other cells are not a number. The cache keeps what depends on all cells, such as the
    medians of the first levels, and nothing of what is near.

    Parameters
    ----------
    zone : NearZone
        Cells near the boxes.
    """

    zone: NearZone

    @cached_property
    def _real_estimates(self) -> Estimates:
        """Estimates; counts near the boxes."""
        if self.post_processing.estimate not in WITH_PRIOR:
            return self.least_squares
        return replace(self.least_squares, count=self._near_medians())

    def _near_medians(self) -> Floats:
        """Medians near the boxes. Those of the first levels depend on all cells and are kept."""
        opened, size = self.zone.opened, self._top_size
        if self.cache is None or not size:
            return self._medians(opened)
        top = self.cache.find_all(["top"], (size,))
        if top is not None:
            return self._medians(opened, top[0])
        above = self.tree.parent[1:size]
        medians = self._medians(np.union1d(opened, above))
        self._keep_top(medians)
        return medians

    @cached_property
    def published_covariance(self) -> Estimates:
        """Estimates with the covariance of the published counts; variance of the root alone."""
        if self.post_processing.estimate == "signed":
            return self.estimates
        return published_covariance(self.tree, self._real_estimates, of_nodes=False)

    @cached_property
    def density(self) -> Density | None:
        """Density in the leaves that the boxes cut."""
        if self.post_processing.density != "smooth" or not self.zone.passes:
            return super().density
        counts = np.maximum(self.estimates.count, 0.0)
        return smooth_density_near(self.tree, counts, self.domain.lattice, self.zone.passes)
