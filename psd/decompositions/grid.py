"""Uniform grid (UG): square-ish cells whose number follows from a noisy total.

References
----------
.. [1] Qardaji, Yang, Li. "Differentially Private Grids for Geospatial Data." ICDE 2013,
   section IV-A. https://doi.org/10.1109/ICDE.2013.6544872
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar

from psd._util.declared_parameters import check_parameters, choice, integer_between, public_field
from psd.decompositions._base import noisy_total
from psd.decompositions._constants import (
    GRID_SIGNAL,
    GRID_TINY_EXPONENT,
    GRID_TINY_FACTOR,
    TOTAL_SHARE,
)
from psd.errors import ParameterError
from psd.privacy.budget import share
from psd.release.post_processing import PostProcessing
from psd.space.grids import cut_grid

if TYPE_CHECKING:
    from psd.decompositions._base import Curator
    from psd.space.box_tree import Tree

__all__ = ["Grid"]

_MAX_SIZE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Grid of m x m cells with one noisy count each, m = sqrt(N epsilon / 7.5).

    The uniform grid of [1]_. N is never read from the data: without a size, a noisy total takes a
    share of epsilon, sets the size, and is the measurement of the root.

    Guarantees
    ----------
    - The total is charged once to every point, and so are the counts of the disjoint cells; all
      shares sum to exactly epsilon.
    - Virtual nodes between the root and the cells have at most four children, and are not
      measured.

    Parameters
    ----------
    size : int, optional
        m, the number of cells per side, 1 to 4096; from the noisy total if left out. Public: a size
        derived from the data would cost epsilon.
    total_share : decimal in [0, 1)
        Share of epsilon for the total; not spent if the size is stated. A total that is mostly
        noise is counted once more, with a tenth of what is left. Public.
    workload : {"tiny"}, optional
        Declares that boxes will be tiny, 0.2 to 0.275 % of the domain's side: then
        m = 8 (N epsilon)^(2/5), a size must be left out, and estimates are signed. Public.

    Notes
    -----
    A box of side s meets about (s m)^2 cells, with noise of s m / epsilon in all, and cuts about s
    m of them, each with a count near N / m^2, which causes an error of N s^(1/2) m^(-3/2). The sum
    of both is smallest if m is proportional to (N epsilon)^(2/5).

    References
    ----------
    .. [1] Qardaji, Yang, Li, ICDE 2013, guideline 1: 10 in place of 7.5, where 5 to 15 are about
       equal for plain counts. With at most k records per user, epsilon in it is epsilon / k.

    Examples
    --------
    >>> Grid(size=64)
    Grid(size=64, total_share=Decimal('0.02'), workload=None)
    """

    size: int | None = public_field(
        None, integer_between(1, _MAX_SIZE), "cells per side; from a noisy total if left out"
    )
    total_share: Decimal = public_field(
        TOTAL_SHARE, share, "share of epsilon for the total, unless size is given"
    )
    workload: str | None = public_field(
        None, choice("tiny"), "tiny: boxes of queries will be tiny; excludes size"
    )

    name: ClassVar[str] = "grid"
    paper: ClassVar[str] = "UG: Qardaji et al., ICDE 2013"

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.size is None and self.total_share == 0:
            raise ParameterError("total_share must be above 0 unless the size of the grid is given")
        if self.size is not None and self.workload is not None:
            raise ParameterError(
                "size and workload must not both be given; each decides the number of cells"
            )

    @property
    def post_processing(self) -> PostProcessing:
        """Posterior medians; signed for tiny boxes, whose few cells have too small medians."""
        return PostProcessing(estimate="signed" if self.workload else "posterior", density="smooth")

    def step(self, lattice: tuple[int, int]) -> tuple[int, int]:
        """Lattice columns and rows of a cell, if the size is stated and divides the lattice."""
        columns, rows = (
            side // self.size if self.size is not None and side % self.size == 0 else 1
            for side in lattice
        )
        return columns, rows

    def build(self, curator: Curator) -> Tree:
        """Find the size by a noisy total unless it is stated, then count every cell once."""
        if self.size is None:
            root, left, total = noisy_total(curator, self.total_share)
            rule = tiny_size if self.workload else guideline_size
            side = rule(curator.noise.signal_to_noise(total, left))
            # The caller chose no size, so the smallest cell of the domain is a limit.
            columns, rows = (min(side, n) for n in curator.domain.blocks.coarse_lattice)
        else:
            root, left = curator.root(), curator.loss
            columns = rows = self.size
        curator.count(cut_grid(curator.cut, root, curator.domain.lattice, (columns, rows)), left)
        return curator.tree()


def guideline_size(signal: float) -> int:
    """M = sqrt(N epsilon / (7.5 k)), rounded, from a noisy total."""
    ideal = math.sqrt(signal / GRID_SIGNAL)
    return min(max(round(ideal), 1), _MAX_SIZE)


def tiny_size(signal: float) -> int:
    """M = 8 (N epsilon / k)^(2/5), rounded, from a noisy total."""
    return min(max(round(GRID_TINY_FACTOR * math.pow(signal, GRID_TINY_EXPONENT)), 1), _MAX_SIZE)


method = Grid
