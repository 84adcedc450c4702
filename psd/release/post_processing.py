"""How estimates are computed from the noisy counts of a release; the choice costs no epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from psd._util.instances import check_choice
from psd.errors import ParameterError

__all__ = ["PostProcessing"]

INFERENCE_VERSION: Final = 3
"""Version of the estimates that are computed, which a file states. It also answers releases of
versions 1 and 2, whose estimates are the same: intervals of 1 did not know lines with regions and
with a declared resolution, and those of 2 held only a part of large biases of medians."""

ESTIMATES = ("least-squares", "posterior", "signed")
REGION_ESTIMATES = (*ESTIMATES, "integer")
"""Estimates of releases with regions."""

WITH_PRIOR = ("posterior", "integer")
"""Estimates that are medians under a prior."""

DENSITIES = ("uniform", "smooth", "covariate")


@dataclass(frozen=True, slots=True, kw_only=True)
class PostProcessing:
    """How estimates are computed from the noisy counts of a tree. Public.

    Guarantees
    ----------
    - The noisy counts stay; a release with another choice costs no epsilon.

    Parameters
    ----------
    estimate : {"least-squares", "posterior", "signed"}
        Least squares projected onto counts that are not negative
        (`psd.estimation.least_squares`); or medians under a prior with many empty cells
        (`psd.estimation.posterior`); or unprojected least squares, where a cell may be negative
        and an answer is not. In a release with regions also "integer": the medians, rounded so
        that they add up on every level (`psd.estimation.least_squares`).
    density : {"uniform", "smooth", "covariate"}
        Points are spread evenly in a leaf; or the density changes smoothly from leaf to leaf
        (`psd.estimation.density`); or it follows a public covariate (`psd.space.covariate`).
    prune : int
        Largest estimated count of a cell whose parts are replaced by their shares of its area; 0
        prunes nothing.

    Raises
    ------
    ParameterError
        If a choice is unknown.
    """

    estimate: str = "least-squares"
    density: str = "uniform"
    prune: int = 0

    def __post_init__(self) -> None:
        for name, options in (("estimate", REGION_ESTIMATES), ("density", DENSITIES)):
            check_choice(name, getattr(self, name), options)
        if type(self.prune) is not int or not 0 <= self.prune < 2**53:
            raise ParameterError(f"prune must be an integer of at least 0, got {str(self.prune)!r}")
