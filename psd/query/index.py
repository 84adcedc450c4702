"""The query index: the fit of a release, and arrays that make its queries fast."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats
from psd.errors import InternalError
from psd.estimation.fit import Fit, fit, fit_least_squares
from psd.estimation.fit_cache import FitCache
from psd.query.flat_tree import FlatTree, flatten_tree
from psd.query.summed_area import Mesh, leaf_mesh
from psd.release.record import ReleaseRecord
from psd.space.region_tree import RegionTree

__all__ = ["QueryIndex"]

# Questions about a few boxes that are answered from a fit near them. The fit of all cells takes
# five times as long, and then answers every later one in milliseconds.
_NEAR_QUESTIONS = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class QueryIndex:
    """A release without time with what its queries read, computed when first used."""

    record: ReleaseRecord  # what was published
    cache: FitCache | None = None  # where the fit is kept between processes
    _questions: Iterator[int] = field(default_factory=count, init=False, repr=False)

    @cached_property
    def fit(self) -> Fit:
        """Fit of all cells."""
        return fit(self.record, cache=self.cache)

    def fit_near(self, boxes: Floats) -> Fit:
        """Fit that answers some boxes, shape (m, 4), in lattice units.

        The first questions of a process are answered from the cells near their boxes, where that is
        faster.
        """
        if "fit" in vars(self) or next(self._questions) >= _NEAR_QUESTIONS:
            return self.fit
        near = fit(self.record, boxes, cache=self.cache)
        if near.zone is None:
            vars(self)["fit"] = near
        return near

    @cached_property
    def total(self) -> float:
        """Estimated number of (kept) records, or of users, in the whole domain.

        No cell but the root is fitted, unless counts are rounded together.
        """
        if "fit" in vars(self) or self.record.post_processing.estimate == "integer":
            return self.fit.total
        return max(float(fit_least_squares(self.record).signed[0]), 0.0)

    @cached_property
    def mesh(self) -> Mesh | None:
        """The leaves as rows and columns, or None; see `psd.query.summed_area`."""
        if isinstance(self.record.tree, RegionTree):
            return None
        return leaf_mesh(self.record.tree, self.fit.density)

    @cached_property
    def summed_area(self) -> NDArray[np.float64]:
        """Summed-area table of the estimates; only where there is a mesh."""
        if self.mesh is None:
            raise InternalError("the leaves are not rows and columns")
        return self.mesh.table(self.fit.estimates.count)

    @cached_property
    def flat_tree(self) -> FlatTree:
        """Arrays for the compiled walk; see `psd.query.flat_tree`."""
        return flatten_tree(self.fit)
