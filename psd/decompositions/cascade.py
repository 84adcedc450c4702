"""Cascade: noisy counts decide how far cells are divided, and are measurements as well.

References
----------
.. [1] Qardaji, Yang, Li. "Differentially Private Grids for Geospatial Data." ICDE 2013,
   sections IV-A and IV-B: cells sized by a noisy count, which is a measurement as well.
   https://doi.org/10.1109/ICDE.2013.6544872
.. [2] Cormode, Procopiuc, Srivastava, Shen, Yu. "Differentially Private Spatial
   Decompositions." ICDE 2012: a node that stops early spends what the levels below it would
   have had. https://doi.org/10.1109/ICDE.2012.16
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
    CASCADE_FIRST_LEVELS,
    CASCADE_LAST_LEVELS,
    CASCADE_MAX_ROUGHNESS,
    CASCADE_ROUGHNESS,
    CASCADE_SIGNAL,
    CASCADE_STEP_SHARE,
    TOTAL_SHARE,
)
from psd.errors import ParameterError
from psd.privacy.budget import share, split_total
from psd.release.post_processing import PostProcessing
from psd.space.growing_tree import Cells

if TYPE_CHECKING:
    from psd.decompositions._base import Curator
    from psd.privacy.count_noise import CountNoise
    from psd.space.box_tree import Tree

# A cell with less of it inside its region is not divided further for that.
_LEAST_INSIDE = 1 / 16

_TINY = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True)
class Cascade:
    """Adaptive quadtree whose counts serve both as structure and as measurements.

    A node with a noisy count n and an epsilon e left below it can afford j = log2(n e / signal) / 2
    more levels. If j is at most 2, the descendants round(j) levels below are counted with all of e.
    Otherwise those ceil(j / 2) levels below are counted with a share of e, and each decides again
    with the rest. The first tier is at least two levels below the root. This is the idea of
    adaptive grids [1]_, with as many tiers as the counts justify, on the cells of a quadtree [2]_.

    Guarantees
    ----------
    - Decisions read noisy counts only. Each tier passes on all epsilon that it does not take, so
      the epsilons on every path sum to exactly epsilon.
    - A tier is one family of disjoint cells below its node; skipped levels cost nothing.

    Parameters
    ----------
    signal : int
        n e in a finished cell, 1 to 1,000,000: its expected count over the scale of its noise.
        Smaller cells are noisier, larger ones less uniform. Public.
    step_share : decimal in [0, 1)
        Share of the epsilon left that a tier before the last one takes. Public.
    total_share : decimal in (0, 1)
        Share of epsilon for the total, which decides the first tier. Public.
    height : int
        Largest number of levels below the root, 0 to 20. Public.

    Notes
    -----
    If siblings have very different counts, records are not uniform there and smaller cells are
    better: with h the variance of four sibling counts less that of their noise, over their squared
    mean, signal is multiplied by sqrt(0.3 / h), limited to 1/2 to 2. With at most k records per
    user, e is e / k in these rules; with noise of another law than discrete Laplace, it is sqrt(2)
    over the standard deviation.

    A public covariate (`psd.space.covariate`) has two effects. A cell where it is 0 is counted with
    all that is left and not divided. Sibling counts are compared with their shares of the
    covariate instead of their mean, so that the covariate does not count as roughness.

    Of a cell that the outline of a region cuts, signal is multiplied by the share of its area
    inside the region, where all of its records are.

    References
    ----------
    .. [1] Qardaji, Yang, Li, ICDE 2013, section IV-B.
    .. [2] Cormode et al., ICDE 2012.

    Examples
    --------
    >>> Cascade(signal=6)
    Cascade(signal=6, step_share=Decimal('0.2'), total_share=Decimal('0.02'), height=20)
    """

    signal: int = public_field(
        CASCADE_SIGNAL,
        integer_between(1, 1_000_000),
        "expected count of a finished cell over the scale of its noise",
    )
    step_share: Decimal = public_field(CASCADE_STEP_SHARE, share, "share of a tier before the last")
    total_share: Decimal = public_field(TOTAL_SHARE, share, "share of epsilon for the total")
    height: int = public_field(
        20, integer_between(0, 20), "largest number of levels below the root"
    )

    name: ClassVar[str] = "cascade"
    post_processing: ClassVar[PostProcessing] = PostProcessing(
        estimate="posterior", density="smooth"
    )
    paper: ClassVar[str] = "after Qardaji et al., ICDE 2013, and Cormode et al., ICDE 2012"

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.total_share == 0:
            raise ParameterError(
                "total_share must be above 0; the first tier follows from the total"
            )

    def build(self, curator: Curator) -> Tree:
        """Count the total, then divide the domain by it."""
        left, total, root = curator.loss, 0, curator.root()
        if left > 1:
            left, paid = split_total(left, self.total_share)
            total = int(curator.count(root, paid)[0])
        self.descend(curator, root, totals=np.array([total]), loss=left)
        return curator.tree()

    def descend(
        self,
        curator: Curator,
        cells: Cells,
        *,
        totals: NDArray[np.int64],
        loss: int,
        first_levels: int = CASCADE_FIRST_LEVELS,
    ) -> None:
        """Divide level by level, and count each tier when its level is reached.

        totals: (n,) int64, noisy or public records of cells; loss: for every path below them.
        """
        depth, noise = 0, curator.noise
        # Below the smallest cells there is nothing to divide, and a count would be repeated.
        step = np.array(curator.domain.cell_step)
        longest = (cells.boxes[:, 2:] - cells.boxes[:, :2]) / step
        height = min(self.height, (math.ceil(longest.max(initial=1)) - 1).bit_length())
        left, inside = np.full(len(cells), loss), _share_inside(curator, cells)
        plan = self._plan(totals, left, inside, noise, first_levels, height)
        # All cells of a level are cut together, whatever tier each is in.
        while len(cells):
            # Quarter cells, or give them one child that is counted again. An axis is divided only
            # if both halves keep the smallest cell.
            low, high = cells.boxes[:, :2], cells.boxes[:, 2:]
            divided = (plan.steps > 0)[:, None] & (high - low >= 2 * step)
            x, y = (np.where(divided[:, a], cells.middle(a), low[:, a]) for a in (0, 1))
            parts = (1 + (x > low[:, 0])) * (1 + (y > low[:, 1]))
            owner = np.repeat(np.arange(len(cells)), parts)
            cells = curator.cut(cells, x=x, y=y)
            plan, depth = plan.below(owner), depth + 1
            # Mass of the cells about which something is left to decide; 1 of the others.
            is_open = (plan.steps > 0) | (plan.later > 0)
            weight = np.ones(len(cells))
            weight[is_open] = curator.mass(cells[is_open])
            # Nobody can be where the covariate is 0, so nothing is kept for below.
            plan = plan.ended_at(weight == 0)
            due = plan.steps == 0
            counts = curator.count(cells[due], plan.now[due])
            # A cell that spent all its loss is finished; others are planned anew by their counts.
            onward = np.flatnonzero(due)[plan.later[due] > 0]
            counts = counts[plan.later[due] > 0]
            variance = noise.variance(plan.now[onward])
            # Siblings of very different counts say that records are not uniform here.
            rough = family_roughness(counts, owner[onward], variance, weight[onward])
            rough *= _share_inside(curator, cells[onward])
            decided = self._plan(counts, plan.later[onward], rough, noise, 0, height - depth)
            cells = Cells.join([cells[~due], cells[onward]])
            plan = _Plan.join([plan[~due], decided])

    def _plan(
        self,
        counts: NDArray[np.int64],
        left: NDArray[np.int64],
        rough: NDArray[np.float64],
        noise: CountNoise,
        least: int,
        max_steps: int,
    ) -> _Plan:
        """Levels down to the next tier of each node, the loss of that tier, and the rest."""
        signal = noise.signal_to_noise(counts, left)
        # A level quarters a cell and its count: as many as leave the wanted count in each cell.
        levels = 0.5 * np.log2(np.maximum(signal / (self.signal * rough), 0.25))
        levels = np.maximum(levels, least)
        # Loss of a tier out of what is left; computed once for each distinct value.
        values, index = np.unique(left, return_inverse=True)
        shares = [int(e * Fraction(self.step_share)) for e in values.tolist()]
        now = np.array(shares, np.int64)[index]
        # Half of the way down now, and the rest by what these counts will say.
        last = (levels <= CASCADE_LAST_LEVELS) | (now == 0) | (np.ceil(levels / 2) >= max_steps)
        steps = np.where(last, np.rint(levels), np.ceil(levels / 2))
        return _Plan(
            steps=np.clip(steps, 0, max(max_steps, 0)).astype(np.int64),
            now=np.where(last, left, now),
            later=np.where(last, 0, left - now),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Plan:
    """For each open node: levels down to its next tier, loss of that tier, and the rest."""

    steps: NDArray[np.int64]
    now: NDArray[np.int64]
    later: NDArray[np.int64]

    def __getitem__(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> _Plan:
        return _Plan(steps=self.steps[which], now=self.now[which], later=self.later[which])

    def below(self, owner: NDArray[np.int64]) -> _Plan:
        """Plan of children, one level down; ``owner`` has the index of each one's parent."""
        parents = self[owner]
        return _Plan(steps=np.maximum(parents.steps - 1, 0), now=parents.now, later=parents.later)

    def ended_at(self, which: NDArray[np.bool_]) -> _Plan:
        """Plan in which the selected nodes spend all that is left at once."""
        return _Plan(
            steps=np.where(which, 0, self.steps),
            now=np.where(which, self.now + self.later, self.now),
            later=np.where(which, 0, self.later),
        )

    @staticmethod
    def join(plans: list[_Plan]) -> _Plan:
        """Concatenate plans."""
        return _Plan(
            steps=np.concatenate([plan.steps for plan in plans]),
            now=np.concatenate([plan.now for plan in plans]),
            later=np.concatenate([plan.later for plan in plans]),
        )


def _share_inside(curator: Curator, cells: Cells) -> NDArray[np.float64]:
    """Share of each cell inside its region: its records are that much denser there."""
    if curator.regions is None:
        return np.ones(len(cells))
    mass, covariate = curator.mass(cells), curator.covariate
    if covariate is not None:
        mass = mass / np.maximum(covariate.mass(cells.boxes), _TINY)
    return np.clip(mass, _LEAST_INSIDE, 1.0)


def family_roughness(
    counts: NDArray[np.int64],
    owner: NDArray[np.int64],
    variance: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Factor on the signal of each cell, by how far its family's counts are from expected."""
    # Number, total and mass of each family, (families,).
    _, family, size = np.unique(owner, return_inverse=True, return_counts=True)
    total, mass = np.bincount(family, counts), np.bincount(family, weight)
    # Of even density the counts of a family differ from their shares of its total by noise alone.
    mean, expected = total / size, total[family] * weight / mass[family]
    spread = np.bincount(family, (counts - expected) ** 2) / np.maximum(size - 1, 1)
    # Variance beyond the noise: the more of it, the rougher the family and the lower its factor.
    excess = spread[family] - variance
    is_comparable = (size > 1)[family] & (mean[family] > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.sqrt(CASCADE_ROUGHNESS * mean[family] ** 2 / np.maximum(excess, 0))
    return np.where(
        is_comparable, np.clip(factor, 1 / CASCADE_MAX_ROUGHNESS, CASCADE_MAX_ROUGHNESS), 1.0
    )


method = Cascade
