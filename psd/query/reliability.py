"""Reliability of estimates: relative errors, three classes, and the flag.

Statistics offices classify estimates by their coefficient of variation, which is here the relative
error. Their limits differ: Statistics Canada warns above 16.5 % and does not publish above 33.3 %,
others use 12 % and 30 or 40 %. So the limits are arguments, and every file states them.

References
----------
.. [1] Statistics Canada. "Guidelines for the release of estimates": acceptable, marginal and
   unacceptable estimates by their coefficient of variation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd.errors import ParameterError
from psd.query.constants import GOOD_LIMIT

__all__ = [
    "QUALITIES",
    "RELATIVE_RULE",
    "Limits",
    "Reliability",
    "Threshold",
    "judge_estimates",
    "relative_text",
    "relative_to",
    "reliability_limits",
]

QUALITIES = ("good", "use with care", "poor")
"""Classes of estimates, the best first."""

RELATIVE_RULE = (
    "error / estimate; where the estimate is 0 and the error is not, it is infinite, or empty in "
    "formats that have no infinity"
)
"""What a relative error is, for people who read a file without this library."""

# An estimate of almost 0 has an error of any size in percent, whose digits say nothing.
_LARGEST_SHOWN = 10

Threshold: TypeAlias = float | tuple[float, float]
"""Largest relative error of a reliable estimate; or of a good one, and of a reliable one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Largest relative errors of the two upper classes."""

    good: float  # largest relative error of a good estimate, at most the next one
    reliable: float  # largest relative error of a reliable estimate

    @property
    def texts(self) -> Mapping[str, str]:
        """What the columns mean, for people who read a file without this library."""
        return {
            "relative_error": RELATIVE_RULE,
            "reliable": f"relative error at most {self.reliable:g}, and an interval above 0",
            "quality": f"good: reliable, with a relative error of at most {self.good:g}; "
            "use with care: other reliable estimates; poor: not reliable",
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reliability:
    """Which estimates are reliable, and their classes."""

    # Whether the relative error is at most the limit, and the interval above 0.
    reliable: NDArray[np.bool_]
    rank: Integers  # index of the class in `QUALITIES`; 2, poor, where an estimate is not reliable

    @property
    def quality(self) -> NDArray[np.object_]:
        """Name of the class of each estimate."""
        names: NDArray[np.object_] = np.array(QUALITIES, object)[self.rank]
        return names


def reliability_limits(threshold: Threshold) -> Limits:
    """Limits of the classes from the argument of a caller.

    A threshold is the largest relative error of a reliable estimate; or of a good one, and of a
    reliable one. By default an estimate is good up to 0.12, or up to the threshold if that is less.
    """
    numbers = threshold if isinstance(threshold, tuple | list) else (threshold,)
    if len(numbers) not in (1, 2):
        raise ParameterError(f"threshold must be one or two relative errors, got {len(numbers)}")
    for number in numbers:
        is_number = isinstance(number, int | float)
        if not is_number or not 0 < number <= 1:
            text = f"{number:g}" if is_number else str(number)[:80]
            raise ParameterError(
                f"threshold must be above 0 and at most 1, got {text}; it is a relative error, "
                "such as 0.3 for 30 %"
            )
    good, reliable = min(GOOD_LIMIT, numbers[-1]) if len(numbers) == 1 else numbers[0], numbers[-1]
    if good > reliable:
        raise ParameterError(
            f"threshold must be the limit of good estimates and then that of reliable ones, got "
            f"{good:g} before {reliable:g}"
        )
    return Limits(good=float(good), reliable=float(reliable))


def relative_to(estimate: Floats, error: Floats) -> Floats:
    """Errors divided by estimates; where an estimate is 0 or less, infinite, or 0 without error."""
    relative = np.where(np.asarray(error) > 0, np.inf, 0.0)
    positive = estimate > 0
    with np.errstate(over="ignore"):  # of an estimate that is almost 0
        np.divide(error, estimate, out=relative, where=positive)
    return relative


def relative_text(relative: float, digits: int = 3) -> str:
    """A relative error for people: in percent, of so many digits; above 1,000 % it says no more."""
    if math.isinf(relative):
        return "infinite"
    if relative > _LARGEST_SHOWN:
        return f"above {_LARGEST_SHOWN:,.0%}"
    return f"{float(f'{100 * relative:.{digits}g}'):,g}%"


def judge_estimates(relative: Floats, lower: Floats, limits: Limits) -> Reliability:
    """Classify estimates by their relative errors and the lower ends of their intervals.

    relative, lower: float64 of one shape.
    """
    reliable = (relative <= limits.reliable) & (lower > 0)
    rank = np.where(reliable, np.where(relative <= limits.good, 0, 1), 2)
    return Reliability(reliable=reliable, rank=rank.astype(np.int64))
