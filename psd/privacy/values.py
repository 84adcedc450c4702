"""Values: numbers of records, such as fares, whose sums and means a release has. Public.

A value in public bounds is two whole weights, m towards the upper and M - m towards the lower one,
that together are one record. With A and B the sums of both over a cell, it has N = (A + B) / M
records, the sum of their values is (upper A + lower B) / M, and their mean lower + (upper - lower)
A / (A + B). `psd.curator.curator.Curator.count` has their cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd._util.instances import shown
from psd.errors import ParameterError
from psd.privacy.unit import WEIGHT

__all__ = ["WEIGHT", "Value", "check_values", "count_factor", "noise_sentence"]

MAX_VALUES: Final = 6
"""Values of one release; each gets an equal part of epsilon."""

ENDINGS: Final = (
    *("", "_error", "_lower", "_upper", "_quality"),
    *("_perturbation_error", "_nonuniformity_error"),
)
"""What names of columns of answers have after the name of a value."""

_LARGEST = 1e15

_LONGEST = 100

# Bounds are apart by so much of the larger one, so that floats between them differ.
_LEAST_WIDTH = 2.0**-30


@dataclass(frozen=True, slots=True)
class Value:
    """A number of each record, and the public bounds to which it is clamped.

    Parameters
    ----------
    name : str
        Name of the column, which the release states.
    lower, upper : float
        Bounds in the unit of the column; public, so never those of the data.

    Raises
    ------
    ParameterError
        If the name has not 1 to 100 printable characters, or the bounds are not finite, not in
        order, or too near to each other for floats.

    Examples
    --------
    >>> Value("fare", 0, 60).weights(np.array([-1.0, 0, 15, 60, 99])).tolist()
    [0, 0, 180180, 720720, 720720]
    """

    name: str
    lower: float
    upper: float

    def __post_init__(self) -> None:
        """Check the name, which a file has to keep, and the bounds."""
        name: object = self.name
        if not (isinstance(name, str) and 0 < len(name) <= _LONGEST and name.isprintable()):
            raise ParameterError(
                f"values must have names of 1 to {_LONGEST} printable characters, got "
                f"{shown(name)}; rename the column"
            )
        bounds = float(self.lower), float(self.upper)
        for side, bound in zip(("lower", "upper"), bounds, strict=True):
            object.__setattr__(self, side, bound)
        if not (all(map(math.isfinite, bounds)) and max(map(abs, bounds)) <= _LARGEST):
            raise ParameterError(
                f"value {self.name!r} must have finite bounds, of at most {_LARGEST:g} in size, "
                f"got {self.lower:g} and {self.upper:g}"
            )
        if not self.upper - self.lower > _LEAST_WIDTH * max(map(abs, bounds)):
            cause = "were they exchanged?" if self.lower > self.upper else "all values would be one"
            raise ParameterError(
                f"value {self.name!r} must have a lower and a larger upper bound, got "
                f"{self.lower:g} and {self.upper:g}; {cause}"
            )

    @property
    def width(self) -> float:
        """Upper less lower bound."""
        return self.upper - self.lower

    def weights(self, values: Floats) -> Integers:
        """Weight m of each value, none missing, to the upper bound, 0 to `WEIGHT`; private."""
        share = (np.clip(values, self.lower, self.upper) - self.lower) / self.width
        weights: Integers = np.floor(share * WEIGHT).astype(np.int64)
        return np.clip(weights, 0, WEIGHT)


def count_factor(values: int, *, is_pure: bool) -> int:
    """Variance of counts from sums of V values, over that without values.

    Each of the 2V sums is in records a count whose variance is `part_factor` times as large, and a
    count is the mean over the values of two of them.
    """
    return 2 * part_factor(values, is_pure=is_pure) // values


def noise_sentence(values: int, *, is_pure: bool) -> str:
    """Say what V values cost counts."""
    times, law = count_factor(values, is_pure=is_pure) ** 0.5, "Laplace" if is_pure else "Gaussian"
    return f"counts have {times:.2f} times the {law} noise of a release without values"


def part_factor(values: int, *, is_pure: bool) -> int:
    """Variance of sums of weights over counts' without: V^2 in epsilon (L1), V in rho."""
    return values**2 if is_pure else values


def check_values(values: Sequence[Value]) -> tuple[Value, ...]:
    """Refuse too many values, and two of one name or with columns of answers of one name."""
    if len(values) > MAX_VALUES:
        raise ParameterError(
            f"values must be at most {MAX_VALUES}, got {len(values)}; each gets an equal part of "
            "epsilon, so make several releases"
        )
    names = [value.name for value in values]
    if len(set(names)) < len(names):
        raise ParameterError(f"values must have different names, got {', '.join(names)}")
    columns = [name + ending for name in names for ending in ENDINGS]
    if len(set(columns)) < len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        raise ParameterError(
            f"values must have names whose columns differ, got {', '.join(names)}; answers would "
            f"have two columns mean_{twice}"
        )
    return tuple(values)


def value_weights(values: Sequence[Value], numbers: NDArray[np.float64]) -> Integers:
    """Weights of all values of records, (n, V) int64; numbers: (n, V) float64, private."""
    weights = np.zeros(numbers.shape, np.int64)
    for column, value in enumerate(values):
        weights[:, column] = value.weights(numbers[:, column])
    return weights
