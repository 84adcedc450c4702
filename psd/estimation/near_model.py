"""A count model near a few boxes, for a process that answers one request.

All noisy counts have a say in every estimate, but the medians and the smooth density of most cells
are used by no answer. Post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats
from psd.estimation.density import Density, smooth_density_near
from psd.estimation.fit_cache import LEAST_NODES
from psd.estimation.least_squares import Estimates
from psd.estimation.model import CountModel
from psd.estimation.near_zone import NearZone, near_zone
from psd.estimation.published_covariance import published_covariance
from psd.release.post_processing import WITH_PRIOR
from psd.space.region_tree import RegionTree

__all__ = ["NearModel", "near_model"]

# Boxes whose surroundings are looked at; the cells of more are met by a fit of all cells.
_FEW = 16

# Nodes of a release whose fit is read from the cache in less time than it is computed near boxes.
_CACHE_FROM = 2**19


def near_model(model: CountModel, boxes: Floats) -> CountModel:
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
        or model.record.inference == 1
        or choice.estimate == "integer"
        or choice.prune
        or choice.density == "covariate"
        or isinstance(model.tree, RegionTree)
        or model.is_fitted
        or (len(model.tree) >= _CACHE_FROM and model.is_cached)
    ):
        return model
    smooth = choice.density == "smooth"
    zone = near_zone(model.tree, model.domain.lattice, boxes, smooth=smooth)
    if zone is None:
        return model
    near = NearModel(record=model.record, cache=model.cache, zone=zone)
    vars(near)["least_squares"] = model.least_squares
    return near


@dataclass(frozen=True, kw_only=True, eq=False)
class NearModel(CountModel):
    """Estimates, variances and densities of a record near some boxes.

    Counts of other cells are not a number. Nothing of what is near is kept in the cache.

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
        return replace(self.least_squares, count=self._medians(self.zone.opened))

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

    @cached_property
    def line_deviation(self) -> NDArray[np.float64] | None:
        """Deviation of cuts along each axis; see `CountModel.line_deviation`."""
        return self._fit_lines()
