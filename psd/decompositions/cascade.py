"""Cascade: noisy counts decide how far to divide, and serve as measurements at the same time.

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

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from psd._util.fields import check_parameters, integer_between, public_field
from psd.errors import ParameterError
from psd.privacy.epsilon import NANO
from psd.privacy.noise_variance import noise_variance
from psd.privacy.shares import share, split_total
from psd.release.post_processing import View
from psd.space.growing_tree import Cells

if TYPE_CHECKING:
    from psd.decompositions._base import Curator
    from psd.space.box_tree import Tree

__all__ = ["Cascade", "method"]

_STEP_SHARE = Decimal("0.2")
_TOTAL_SHARE = Decimal("0.02")

# So many levels or fewer are left to the last measurement.
_LAST = 2

# The first tier is at least so far down: where epsilon is small the total may be all noise.
_FIRST = 2

# Relative variance among four siblings at which cells get the size that `signal` says; rougher
# neighbourhoods get smaller ones, by at most this factor in area.
_ROUGHNESS = 0.3
_ROUGHEST = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cascade:
    """Adaptive quadtree whose counts pay for structure and measurement at once.

    A node with a noisy count n and an epsilon e left below it can afford
    j = log2(n e / signal) / 2 more levels. If j is at most 2, the descendants round(j) levels
    below are counted with all of e. Otherwise those ceil(j / 2) levels below are counted with
    a share of e, and each decides again with the rest. The first tier is at least two levels
    below the root. The idea of adaptive grids [1]_ in as
    many tiers as the counts pay for, on the cells of a quadtree [2]_.

    Guarantees
    ----------
    - Decisions read noisy counts alone. What is left after a share is taken is handed on
      whole, so the epsilons on every path sum to exactly epsilon.
    - A tier is one family of disjoint cells below its node; levels that are skipped cost
      nothing.

    Parameters
    ----------
    signal : int
        n e in a finished cell, 1 to 1,000,000: its expected count over the scale of its noise.
        Smaller cells are noisier, larger ones less uniform. Public.
    step_share : decimal in [0, 1)
        Share of the epsilon left that a tier before the last one takes. Public.
    total_share : decimal in (0, 1)
        Share of epsilon for the total, from which the first tier follows. Public.
    height : int
        Most levels below the root, 0 to 20. Public.

    Notes
    -----
    Siblings of very different counts tell of rough ground, where smaller cells pay: with h the
    variance of four sibling counts less that of their noise, over their squared mean, signal is
    multiplied by sqrt(0.3 / h), kept between 1/2 and 2. With at most k records per user, e is
    e / k in these rules.

    A public covariate (`psd.space.covariate`) steers: a cell where it is 0 is counted with all that
    is left and not divided; and sibling counts are compared not with their mean but with
    their shares of the covariate, so that ground is even where the covariate explains it.

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
        5, integer_between(1, 1_000_000), "expected count of a finished cell over its noise"
    )
    step_share: Decimal = public_field(_STEP_SHARE, share, "share of a tier before the last")
    total_share: Decimal = public_field(_TOTAL_SHARE, share, "share of epsilon for the total")
    height: int = public_field(20, integer_between(0, 20), "most levels below the root")

    name: ClassVar[str] = "cascade"
    view: ClassVar[View] = View(estimate="posterior", density="smooth")
    paper: ClassVar[str] = "after Qardaji et al., ICDE 2013, and Cormode et al., ICDE 2012"

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_parameters(self)
        if self.total_share == 0:
            raise ParameterError("total_share 0 pays for no total, from which the tiers follow")

    def build(self, curator: Curator) -> Tree:
        """Count the total, then go down from it."""
        left, total, root = curator.epsilon, 0, curator.root()
        if left > 1:
            left, paid = split_total(left, self.total_share)
            total = int(curator.count(root, paid)[0])
        return self.descend(curator, root, total=total, epsilon=left)

    def descend(self, curator: Curator, root: Cells, *, total: int, epsilon: int) -> Tree:
        """Go down level by level, counting the tiers as they fall due.

        Parameters
        ----------
        curator : Curator
            Asked for counts.
        root : Cells
            The whole domain; counted before or not.
        total : int
            Noisy or public number of records.
        epsilon : int
            Nano-epsilon for every path below the root.
        """
        cells, depth = root, 0
        plan = self._plan(
            np.array([total]), np.array([epsilon]), np.ones(1), curator.contributions, depth
        )
        while len(cells):
            cells, owner = _divide(curator, cells, plan.steps > 0)
            weight = _weight(curator, cells)
            plan, depth = plan.below(owner).ending(weight == 0), depth + 1
            due = plan.steps == 0
            counts = curator.count(cells[due], plan.now[due])
            onward = np.flatnonzero(due)[plan.later[due] > 0]
            counts, k = counts[plan.later[due] > 0], curator.contributions
            rough = _roughness(counts, owner[onward], plan.now[onward], k, weight[onward])
            decided = self._plan(counts, plan.later[onward], rough, k, depth)
            cells = Cells.join([cells[~due], cells[onward]])
            plan = _Plan.join([plan[~due], decided])
        return curator.tree()

    def _plan(
        self,
        counts: NDArray[np.int64],
        left: NDArray[np.int64],
        rough: NDArray[np.float64],
        contributions: int,
        depth: int,
    ) -> _Plan:
        """How far below each node its next tier is, with what epsilon, and what remains."""
        told = np.maximum(counts, 0) * (left / (NANO * contributions))
        levels = 0.5 * np.log2(np.maximum(told / (self.signal * rough), 0.25))
        levels = np.maximum(levels, 0 if depth else _FIRST)
        now = self._tier_share(left)
        room = self.height - depth
        last = (levels <= _LAST) | (now == 0) | (np.ceil(levels / 2) >= room)
        steps = np.where(last, np.rint(levels), np.ceil(levels / 2))
        return _Plan(
            steps=np.clip(steps, 0, max(room, 0)).astype(np.int64),
            now=np.where(last, left, now),
            later=np.where(last, 0, left - now),
        )

    def _tier_share(self, left: NDArray[np.int64]) -> NDArray[np.int64]:
        """Nano-epsilon of a tier out of what is left, which takes few different values."""
        some, which = np.unique(left, return_inverse=True)
        shares = [int(e * Fraction(self.step_share)) for e in some.tolist()]
        return np.array(shares, np.int64)[which]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Plan:
    """For each open node: levels down to its next tier, epsilon of that tier, and the rest."""

    steps: NDArray[np.int64]
    now: NDArray[np.int64]
    later: NDArray[np.int64]

    def __getitem__(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> _Plan:
        return _Plan(steps=self.steps[which], now=self.now[which], later=self.later[which])

    def below(self, owner: NDArray[np.int64]) -> _Plan:
        """The plan one level down, for children of the given nodes."""
        own = self[owner]
        return _Plan(steps=np.maximum(own.steps - 1, 0), now=own.now, later=own.later)

    def ending(self, which: NDArray[np.bool_]) -> _Plan:
        """The plan with all that is left spent at once on some nodes."""
        return _Plan(
            steps=np.where(which, 0, self.steps),
            now=np.where(which, self.now + self.later, self.now),
            later=np.where(which, 0, self.later),
        )

    @staticmethod
    def join(plans: list[_Plan]) -> _Plan:
        """Plans one after another."""
        return _Plan(
            steps=np.concatenate([plan.steps for plan in plans]),
            now=np.concatenate([plan.now for plan in plans]),
            later=np.concatenate([plan.later for plan in plans]),
        )


def _divide(
    curator: Curator, cells: Cells, quarter: NDArray[np.bool_]
) -> tuple[Cells, NDArray[np.int64]]:
    """Quarter cells, or give them one child where they are counted once more; who owns which."""
    lines = [np.where(quarter, cells.middle(a), cells.boxes[:, a]) for a in (0, 1)]
    parts = 1 + np.stack([lines[a] > cells.boxes[:, a] for a in (0, 1)])
    owner = np.repeat(np.arange(len(cells)), parts.prod(axis=0))
    return curator.cut(cells, x=lines[0], y=lines[1]), owner


def _weight(curator: Curator, cells: Cells) -> NDArray[np.float64]:
    """What the covariate expects in each cell, relative to its siblings; 0 where nobody is."""
    if curator.covariate is None:
        return np.ones(len(cells))
    return curator.covariate.mass(cells.boxes)


def _roughness(
    counts: NDArray[np.int64],
    owner: NDArray[np.int64],
    epsilon: NDArray[np.int64],
    contributions: int,
    weight: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Factor on the signal of each cell, from how much its family's counts are not as expected."""
    _, family, size = np.unique(owner, return_inverse=True, return_counts=True)
    total, whole = np.bincount(family, counts), np.bincount(family, weight)
    mean, expected = total / size, total[family] * weight / whole[family]
    spread = np.bincount(family, (counts - expected) ** 2) / np.maximum(size - 1, 1)
    excess = spread[family] - noise_variance(epsilon, contributions)
    known = (size > 1)[family] & (mean[family] > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.sqrt(_ROUGHNESS * mean[family] ** 2 / np.maximum(excess, 0))
    return np.where(known, np.clip(factor, 1 / _ROUGHEST, _ROUGHEST), 1.0)


method = Cascade
