"""Adaptive grid (AG): a coarse grid whose cells are divided as finely as their counts allow.

References
----------
.. [1] Qardaji, Yang, Li. "Differentially Private Grids for Geospatial Data." ICDE 2013,
   section IV-B. https://doi.org/10.1109/ICDE.2013.6544872
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from psd._util.declared_parameters import check_parameters, integer_between, public_field
from psd.decompositions._constants import (
    FIRST_GRID_COARSENING,
    FIRST_GRID_MIN_SIZE,
    FIRST_GRID_SHARE,
    FIRST_GRID_SIGNAL,
    SECOND_GRID_SIGNAL,
    TOTAL_SHARE,
)
from psd.errors import ParameterError
from psd.privacy.budget import share, split_total
from psd.release.post_processing import PostProcessing
from psd.space.grids import cut_grid, cut_grids

if TYPE_CHECKING:
    from psd.decompositions._base import Curator
    from psd.space.box_tree import Tree


# Public limits that no count can move: cells per side of the first grid, and of both together.
_MAX_FIRST_SIZE = 1024
_MAX_SIZE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveGrid:
    """m1 x m1 grid, each cell of which is cut again into m2 x m2, as in [1]_.

    m1 = max(10, ceil(sqrt(N epsilon / 10)) / 4); m2 = ceil(sqrt(N' (1 - alpha) epsilon / 5))
    with N' the noisy count of the first grid's cell and alpha the first grid's share. N is never
    read from the data: without a size, a noisy total takes a share of epsilon, sets the size, and
    is the measurement of the root.

    Guarantees
    ----------
    - The total is charged once to every point, and so is each of the two grids, whose cells are
      disjoint; the shares sum to exactly epsilon. m2 follows from noisy counts alone.
    - There are never more than 4096^2 cells: if noisy counts ask for more, all grids of the
      second level shrink by one factor.

    Parameters
    ----------
    size : int, optional
        m1, the first grid's cells per side, 1 to 1,024; from the noisy total if left out.
        Public: a size that follows from the data has to be paid for.
    first_share : decimal in [0, 1)
        alpha, the share of the first grid's counts in what the total leaves; if it rounds to 0,
        the first grid is not counted and no cell is cut again. Public.
    total_share : decimal in [0, 1)
        Share of epsilon for the total; not spent if the size is stated. Public.

    Notes
    -----
    The constrained inference of [1]_ is least squares on the tree of the two grids, which every
    release gets.

    References
    ----------
    .. [1] Qardaji, Yang, Li, ICDE 2013, guidelines 1 and 2 and section IV-B. The first size is
       rounded to the nearest whole number. With at most k records per user, epsilon in both
       sizes is epsilon / k.

    Examples
    --------
    >>> AdaptiveGrid(size=16)
    AdaptiveGrid(size=16, first_share=Decimal('0.5'), total_share=Decimal('0.02'))
    """

    size: int | None = public_field(
        None,
        integer_between(1, _MAX_FIRST_SIZE),
        "cells per side of the first grid; from a noisy total if left out",
    )
    first_share: Decimal = public_field(
        FIRST_GRID_SHARE, share, "share of the first grid in what the total leaves"
    )
    total_share: Decimal = public_field(
        TOTAL_SHARE, share, "share of epsilon for the total, unless size is given"
    )

    name: ClassVar[str] = "adaptive-grid"
    post_processing: ClassVar[PostProcessing] = PostProcessing(
        estimate="posterior", density="smooth"
    )
    paper: ClassVar[str] = "AG: Qardaji et al., ICDE 2013"

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.size is None and self.total_share == 0:
            raise ParameterError(
                "total_share must be above 0 unless the size of the first grid is given"
            )

    def build(self, curator: Curator) -> Tree:
        """Pay for the size unless it is stated; count the first grid; cut its cells; count."""
        root = curator.root()
        # A noisy total measures the root as well.
        size, left = self.size, curator.loss
        if size is None:
            left, paid = split_total(left, self.total_share)
            total = int(curator.count(root, paid)[0])
            size = first_size(curator.noise.signal_to_noise(total, left))
        cells = cut_grid(curator.cut, root, curator.domain.lattice, (size, size))
        first = int(left * Fraction(self.first_share))
        if first:
            # Cells of the first grid are cut as finely as their noisy counts allow.
            counts = curator.count(cells, first)
            finest = (cells.boxes[:, 2:] - cells.boxes[:, :2]).max(axis=1)
            sizes = second_sizes(curator.noise.signal_to_noise(counts, left - first), finest)
            cells = cut_grids(curator.cut, cells, sizes[:, None])
        curator.count(cells, left - first)
        return curator.tree()


def first_size(signal: float) -> int:
    """m1 = max(10, ceil(sqrt(N epsilon / (10 k))) / 4) from a noisy total."""
    ideal = math.sqrt(signal / FIRST_GRID_SIGNAL)
    return min(
        max(round(math.ceil(ideal) / FIRST_GRID_COARSENING), FIRST_GRID_MIN_SIZE), _MAX_FIRST_SIZE
    )


def second_sizes(signal: NDArray[np.float64], finest: NDArray[np.int64]) -> NDArray[np.int64]:
    """m2 = ceil(sqrt(N' epsilon_2 / (5 k))) of each cell, (n,), at least 1, squares at most 4096^2.

    signal: (n,), N' epsilon_2 / k; finest: (n,), lattice cells along the longer side.
    """
    sizes = np.ceil(np.sqrt(signal / SECOND_GRID_SIGNAL))
    # No grid is finer than the lattice.
    sizes = np.clip(sizes, 1, np.minimum(finest, _MAX_SIZE))
    number = (sizes**2).sum()
    if number > _MAX_SIZE**2:
        # One cell is set aside for each grid that shrinks below one.
        sizes = np.floor(sizes * math.sqrt((_MAX_SIZE**2 - len(sizes)) / number))
    return np.maximum(sizes, 1).astype(np.int64)


method = AdaptiveGrid
