"""The query index: arrays that make queries of one model fast, built once when first used."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from psd.errors import InternalError
from psd.estimation.model import CountModel
from psd.query.flat_tree import FlatTree, flatten_tree
from psd.query.summed_area import Mesh, leaf_mesh
from psd.space.region_tree import RegionTree

__all__ = ["QueryIndex"]


@dataclass(frozen=True, kw_only=True, eq=False)
class QueryIndex:
    """A model with the arrays that its queries read.

    Parameters
    ----------
    model : CountModel
        Estimates of every cell.
    once : bool
        Whether the process answers one request, so that a fit of the cells near it is faster.
    """

    model: CountModel
    once: bool = False

    @cached_property
    def mesh(self) -> Mesh | None:
        """The leaves as rows and columns, or None; see `psd.query.summed_area`."""
        if isinstance(self.model.tree, RegionTree):
            return None
        return leaf_mesh(self.model.tree, self.model.density)

    @cached_property
    def summed_area(self) -> NDArray[np.float64]:
        """Summed-area table of the estimates; only where there is a mesh.

        Raises
        ------
        InternalError
            If the leaves are not rows and columns.
        """
        if self.mesh is None:
            raise InternalError("the leaves are not rows and columns")
        return self.mesh.table(self.model.estimates.count)

    @cached_property
    def flat_tree(self) -> FlatTree:
        """Arrays for the compiled walk; see `psd.query.flat_tree`."""
        return flatten_tree(self.model)
