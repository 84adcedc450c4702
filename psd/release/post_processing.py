"""What is made of the noisy counts of a release: choices that cost nothing and change answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psd.errors import ParameterError

__all__ = ["DENSITIES", "ESTIMATES", "INFERENCE_VERSION", "View"]

INFERENCE_VERSION = 1
"""Version of the estimates, stated in the file: other estimates get another number."""

ESTIMATES = ("least-squares", "posterior", "signed")
DENSITIES = ("uniform", "smooth", "covariate")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """How estimates are made from a tree. Public; post-processing.

    Parameters
    ----------
    estimate : {"least-squares", "posterior", "signed"}
        Projection of least squares onto counts that are not negative
        (`psd.estimation.least_squares`), or medians under a prior that knows empty cells
        (`psd.estimation.posterior`), or least squares as it is, where a cell may be negative and
        an answer is not.
    density : {"uniform", "smooth", "covariate"}
        Points lie evenly in a leaf, or smoothly from leaf to leaf (`psd.estimation.density`), or
        as a public covariate says (`psd.space.covariate`).
    prune : int
        Below a cell of at most so many estimated records, parts are taken to hold their share
        of its area; 0 prunes nothing.

    Raises
    ------
    ParameterError
        If a choice is unknown.
    """

    estimate: str = "least-squares"
    density: str = "uniform"
    prune: int = 0

    def __post_init__(self) -> None:
        """Check the choices."""
        for name, options in (("estimate", ESTIMATES), ("density", DENSITIES)):
            value: Any = getattr(self, name)
            if value not in options:
                raise ParameterError(f"{name} {str(value)!r} is none of {', '.join(options)}")
        if type(self.prune) is not int or not 0 <= self.prune < 2**53:
            raise ParameterError(f"prune {str(self.prune)!r} is not a whole number of at least 0")
