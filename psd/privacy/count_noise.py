"""The noise of counts: its law, and what the loss paid for each count means. Public."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING, Protocol, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd.errors import ParameterError
from psd.privacy.noise_laws import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE, NoiseLaw, noise_law

if TYPE_CHECKING:
    from psd.privacy.loss import LossMeasure

__all__ = [
    "CountNoise",
    "NoisySums",
    "PersonPart",
    "Statistic",
    "deviation",
    "fill_symmetric",
    "triangle",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CountNoise:
    """Law of the noise of counts, by the loss paid for each; no other module knows it. Public."""

    law: str = DISCRETE_LAPLACE  # name of a law of `psd.privacy.noise_laws`
    # Square of the largest change of the counts by one unit of privacy: k^2 for discrete Laplace
    # noise, k times the largest number of records that one question sees for discrete Gaussian
    # noise. Above 0.
    squared_sensitivity: int = 1
    # What the variance is multiplied by where counts were computed from noisy ones, such as running
    # totals; 1 where they were drawn. With another factor the likelihood is normal.
    factor: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        for name in ("squared_sensitivity", "factor"):
            if getattr(self, name) <= 0:
                raise ParameterError(f"{name} must be above 0, got {getattr(self, name)}")

    @classmethod
    def laplace(cls, contributions: int) -> CountNoise:
        """Discrete Laplace noise where one unit changes all counts together by at most k."""
        return cls(squared_sensitivity=contributions**2)

    @classmethod
    def gaussian(cls, squared_sensitivity: int) -> CountNoise:
        """Discrete Gaussian noise of a squared sensitivity."""
        return cls(law=DISCRETE_GAUSSIAN, squared_sensitivity=squared_sensitivity)

    def for_contributions(self, contributions: int) -> CountNoise:
        """The same noise for a unit that changes all counts together by at most k."""
        # In rho the squared sensitivity is stated, and does not follow from k.
        squared = contributions**2 if self.measure.is_pure else self.squared_sensitivity
        return replace(self, squared_sensitivity=squared)

    @property
    def measure(self) -> LossMeasure:
        """What the loss of a count is counted in."""
        return self._law.measure

    @property
    def sensitivity(self) -> int:
        """Square root of the squared sensitivity, rounded up; k of discrete Laplace noise."""
        return 1 + isqrt(self.squared_sensitivity - 1)

    def variance(self, loss: NDArray[np.int64]) -> NDArray[np.float64]:
        """Variance in records squared, for losses in parts, (n,) int64; infinite where it is 0."""
        variance = self._law.variance(loss, self.squared_sensitivity)
        return variance if self.factor == 1 else variance * float(self.factor)

    def log_density(
        self, noise: NDArray[np.integer | np.floating], loss: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Logarithm of the probability of noise where the loss is above 0."""
        if self.factor == 1:
            return self._law.log_density(noise, loss, self.squared_sensitivity)
        variance = self.variance(loss)
        return -0.5 * (np.log(2 * np.pi * variance) + noise**2 / variance)

    def rate(self, loss: NDArray[np.int64], scale: int = 1) -> NDArray[np.float64]:
        """Parameter of the likelihood of counts in units of ``scale``; 0 where the loss is 0."""
        if self.factor == 1:
            return self._law.rate(loss, self.squared_sensitivity, scale)
        return scale**2 / self.variance(loss)

    def negative_log_likelihood(
        self, distance: NDArray[np.float64], rate: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Minus the log-likelihood at distances from a noisy count, 0 at distance 0."""
        return self._likelihood.negative_log_likelihood(distance, rate)

    def inverse_variance(self, rate: NDArray[np.float64]) -> NDArray[np.float64]:
        """About the inverse of the variance of the noise; 0 where the rate is 0."""
        return self._likelihood.inverse_variance(rate)

    def tail_bound(self, loss: int, outside: float) -> int:
        """Least integer t that drawn noise exceeds in magnitude with at most a probability."""
        return self._law.tail_bound(loss, self.squared_sensitivity, outside)

    @overload
    def signal_to_noise(self, count: int, loss: int) -> float: ...

    @overload
    def signal_to_noise(
        self, count: NDArray[np.integer], loss: int | NDArray[np.int64]
    ) -> NDArray[np.float64]: ...

    def signal_to_noise(
        self, count: int | NDArray[np.integer], loss: int | NDArray[np.int64]
    ) -> float | NDArray[np.float64]:
        """Counts, at least 0, times sqrt(2) over the standard deviation of their noise."""
        least = max(count, 0) if isinstance(count, int) else np.maximum(count, 0)
        # For discrete Laplace noise it is n epsilon / k, the count over the scale of its noise, by
        # which methods size their cells.
        signal = self._law.signal_to_noise(least, loss, self.squared_sensitivity)
        signal = signal if self.factor == 1 else signal / float(self.factor) ** 0.5
        return float(signal) if isinstance(count, int) else signal

    @property
    def _law(self) -> NoiseLaw:
        """Law of the name."""
        return noise_law(self.law)

    @property
    def _likelihood(self) -> NoiseLaw:
        """Law of the likelihood: normal where counts were computed from noisy ones."""
        return self._law if self.factor == 1 else noise_law(DISCRETE_GAUSSIAN)


PersonPart: TypeAlias = Callable[[Integers], Sequence[tuple[Integers, Floats]]]
"""From the regions of one person's records to the rows and values that the person adds to each
statistic; the rows of a statistic are distinct. It reads one person and public numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """One table of sums over people. Public.

    Parameters
    ----------
    name : str
        What is summed, in one or two words.
    rows, width : int
        Size of the table.
    share : int
        Its part of rho, relative to those of the other statistics of the question.

    Examples
    --------
    >>> Statistic(name="visits", rows=64, width=1)
    Statistic(name='visits', rows=64, width=1, share=1)
    """

    name: str
    rows: int
    width: int
    share: int = 1


class NoisySums(Protocol):
    """How a model asks; `psd.curator.person_sums.PersonSums` answers.

    Examples
    --------
    >>> class Nobody:
    ...     rho = 10**12
    ...     def sums(self, part, statistics, rho):
    ...         return [np.zeros((each.rows, each.width)) for each in statistics]
    >>> visits = Statistic(name="visits", rows=2, width=1)
    >>> Nobody().sums(len, [visits], 10**12)[0].tolist()
    [[0.0], [0.0]]
    """

    @property
    def rho(self) -> int:
        """Rho in units of 1e-12 that is left for questions."""

    def sums(self, part: PersonPart, statistics: Sequence[Statistic], rho: int) -> list[Floats]:
        """Noisy sums of the clipped parts of all people, one table for each statistic."""


def deviation(statistics: Sequence[Statistic], index: int, rho: int) -> float:
    """Standard deviation of the noise of a statistic, whose parts have norm 1."""
    share = statistics[index].share / sum(statistic.share for statistic in statistics)
    return math.sqrt(1e12 / (2 * rho * share))


def triangle(matrix: Floats) -> Floats:
    """Upper triangle of symmetric matrices as rows."""
    return matrix[(..., *np.triu_indices(matrix.shape[-1]))]


def fill_symmetric(rows: Floats, size: int) -> Floats:
    """Symmetric matrices from the rows of `triangle`."""
    first, second = np.triu_indices(size)
    matrices = np.zeros((*rows.shape[:-1], size, size))
    matrices[..., first, second] = rows
    matrices[..., second, first] = rows
    return matrices
