"""Which law of noise a build has: by public parameters alone, so the choice costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from psd.accounting import PICO, rho_of
from psd.decompositions.quadtree import Quadtree
from psd.privacy.count_noise import CountNoise
from psd.privacy.loss import NANO
from psd.space.cube_tree import SliceCap

if TYPE_CHECKING:
    from psd.decompositions import Decomposition
    from psd.privacy.unit import ContributionScope, PrivacyUnit

__all__ = ["Law", "NoisePlan", "chosen_law"]

Law: TypeAlias = Literal["laplace", "gaussian"]
"""Laws of the noise of counts."""

LEVEL_FACTORS = {"auto": 0.7, "cascade": 0.7, "cube": 0.4}
"""Gaussian noise is chosen if 2 sqrt(rho k / cap) is above this multiple of epsilon.

Both sides are the noise of one count: with L counts on each path, discrete Laplace noise pays L
times epsilon and discrete Gaussian noise sqrt(L) times, so the factor is about 1 / sqrt(L). The
factor of the cascade was fitted to `python lab/gaussian.py --data FOLDER`: scores are
about equal at .6 to .7, and in one of four cells at .67 that of Gaussian noise was 1.1 times as
large. That of the cube was fitted to made-up towns of 56 and 168 hours: by `python lab/gaussian.py
--cubes --runs 2` the mean ratio of scores is 1.00 (.80 to 1.12) below .4, and .88 (.69 to 1.08)
above. The factor is 1 of other methods, where a single count has less noise already.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisePlan:
    """What decides between the laws. Public."""

    epsilon: int  # nano-epsilon of the release or the series
    delta: Fraction | None  # delta that may be spent
    contributions: int = 1  # k, the largest number of records of one unit in all slices together
    # Cap, the largest number of records of one unit that one question sees: those of one slice.
    per_question: int = 1
    slices: int = 1  # number of time slices; 1 for a single release

    @classmethod
    def of(
        cls,
        epsilon: int,
        delta: Fraction | None,
        unit: PrivacyUnit,
        scope: ContributionScope = "series",
        slices: int = 1,
    ) -> NoisePlan:
        """Plan of a unit; where its bound holds in each slice, k is that of all slices."""
        each = unit.contributions
        if scope == "slice":
            return cls(
                epsilon=epsilon,
                delta=delta,
                contributions=each * slices,
                per_question=each,
                slices=slices,
            )
        return cls(
            epsilon=epsilon,
            delta=delta,
            contributions=each,
            per_question=unit.max_per_slice or each,
            slices=slices,
        )

    @property
    def of_axis(self) -> float:
        """Cap of a method that divides time: the geometric mean of those of 1, 2, 4, ... slices."""
        cap = SliceCap(most=self.contributions, per_slice=self.per_question)
        lengths = [2**power for power in range(self.slices.bit_length())]
        squares = [cap.squared_sensitivity(length) for length in lengths]
        return float(np.exp(np.log(np.array(squares) / self.contributions).mean()))

    @property
    def rho(self) -> int:
        """Rho in units of 1e-12 that epsilon and delta allow; 0 without delta."""
        return 0 if self.delta is None else rho_of(self.epsilon, self.delta)

    @property
    def laplace(self) -> CountNoise:
        """Discrete Laplace noise of all slices together."""
        return CountNoise.laplace(self.contributions)

    @property
    def gaussian(self) -> CountNoise:
        """Discrete Gaussian noise of all slices together."""
        return CountNoise.gaussian(self.contributions * self.per_question)


def chosen_law(method: Decomposition, plan: NoisePlan) -> Law:
    """Law of the noise of a build.

    A single release, and a build without delta, has discrete Laplace noise: then no delta is spent.
    For a complete quadtree the variances of the leaves are compared, after least squares; for other
    methods the noise of one count with a factor of `LEVEL_FACTORS`, in a cube by the caps of cells
    of all lengths of time.
    """
    if plan.slices == 1 or plan.rho == 0:
        return "laplace"
    if isinstance(method, Quadtree):
        laplace = leaf_variance(method.level_shares(plan.epsilon), plan.laplace)
        gaussian = leaf_variance(method.level_shares(plan.rho), plan.gaussian)
        return "gaussian" if gaussian < laplace else "laplace"
    cap = plan.of_axis if "time" in getattr(method, "axes", ()) else plan.per_question
    signal = 2 * (plan.rho / PICO * plan.contributions / cap) ** 0.5
    factor = LEVEL_FACTORS.get(method.name, 1.0)
    return "gaussian" if signal > factor * plan.epsilon / NANO else "laplace"


def leaf_variance(shares: Sequence[int], noise: CountNoise) -> float:
    """Variance of the leaves of a complete quadtree after least squares.

    shares: loss of each level, root first, 0 where a level is not counted; the last is above 0.
    With e_l the variance of a cell of level l by the counts at and below it, and v_l that of its
    own count, 1 / e_l = 1 / v_l + 1 / (4 e_(l+1)), and e_h = v_h. With all counts the sum of four
    children is corrected to its parent, of variance s_l, by the same amount each, uncorrelated with
    the parent: s_(l+1) = e_(l+1) - (4 e_(l+1) - s_l) / 16, with s_0 = e_0 [1]_.

    .. [1] Hay, Rastogi, Miklau, Suciu. "Boosting the Accuracy of Differentially Private Histograms
       through Consistency." PVLDB 2010, section 4.
    """
    with np.errstate(divide="ignore"):  # noise of a very large epsilon has a variance of 0
        # From the leaves to the root, then back.
        precisions = 1 / noise.variance(np.array(shares, np.int64))
        below = [1 / precisions[-1]]
        for precision in precisions[-2::-1]:
            below.append(1 / (precision + 1 / (4 * below[-1])))
    variance = below.pop()
    while below:
        children = below.pop()
        variance = children - (4 * children - variance) / 16
    return float(variance)
