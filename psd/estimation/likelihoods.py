"""Likelihoods of counts on short grids, and the likelihood of the sum of two parts.

Every step works row by row, so that a likelihood does not depend on those it is computed with.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd.estimation.constants import (
    LIKELIHOOD_POINTS,
    LIKELIHOOD_REACH,
    ONE_SIDED,
    SCALE_FREE,
)

__all__ = ["TINY", "Likelihood", "grid", "join_pair", "normalise", "points", "scale_free"]

TINY = 1e-300
"""Least divisor."""

# Numbers that numpy adds up side by side.
_LANES = 8

# Finest deviation of a count, in records, and, squared, relative to a large one: floats have no
# room for more points between two counts.
_FINEST = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Likelihood:
    """Likelihoods of the counts of some nodes at low, low + step, ...; the largest value is 1.

    Mean and deviation are those under a flat prior; they choose grids.
    """

    low: Floats
    step: Floats
    value: NDArray[np.float32]
    mean: Floats
    deviation: Floats

    def __getitem__(self, which: Integers | slice) -> Likelihood:
        return Likelihood(
            low=self.low[which],
            step=self.step[which],
            value=self.value[which],
            mean=self.mean[which],
            deviation=self.deviation[which],
        )

    @classmethod
    def empty(cls, size: int) -> Likelihood:
        """Empty likelihoods of this number of nodes."""
        low, step, mean, deviation = np.empty((4, size))
        value = np.empty((size, LIKELIHOOD_POINTS), np.float32)
        return cls(low=low, step=step, value=value, mean=mean, deviation=deviation)

    def put(self, which: Integers | slice, part: Likelihood) -> None:
        """Take in the likelihoods of some nodes."""
        for name in ("low", "step", "value", "mean", "deviation"):
            getattr(self, name)[which] = getattr(part, name)

    def at(self, x: Floats) -> Floats:
        """Values at counts x, shape (n, m): straight lines between the points, 0 beyond."""
        position = (x - self.low[:, None]) / self.step[:, None]
        start = np.arange(len(x))[:, None] * self.value.shape[1]
        return _interpolate(self.value, position, start, 1)

    def across(self, x: Floats) -> Floats:
        """Values at counts x, shape (m, n), points before nodes."""
        value = np.ascontiguousarray(self.value.T)
        position = (x - self.low) / self.step
        return _interpolate(value, position, np.arange(x.shape[1]), x.shape[1])


def grid(mean: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """Low end and step of points around a mean, none below zero, all of them different."""
    deviation = np.maximum(deviation, _FINEST * np.maximum(_FINEST * np.abs(mean), 1.0))
    low = np.maximum(mean - LIKELIHOOD_REACH * deviation, 0.0)
    return low, (np.maximum(mean, 0.0) + LIKELIHOOD_REACH * deviation - low) / (
        LIKELIHOOD_POINTS - 1
    )


def points(low: Floats, step: Floats, size: int = LIKELIHOOD_POINTS) -> Floats:
    """Counts at which likelihoods are given, shape (size, n)."""
    return low + step * np.arange(size, dtype=np.float64)[:, None]


def normalise(low: Floats, step: Floats, value: Floats) -> Likelihood:
    """Likelihood whose largest value is 1, with its moments.

    Values are passed point by point, shape (points, n): then each step is one pass over
    neighbouring numbers.
    """
    value = value / np.maximum(value.max(axis=0), TINY)
    # Floats of whole numbers: integers would be converted again and again.
    number = np.arange(len(value), dtype=np.float64)[:, None]
    total = np.maximum(_sum(value), TINY)
    position = _sum(value * number) / total
    spread = np.maximum(_sum(value * number**2) / total - position**2, 0.25)
    return Likelihood(
        low=low,
        step=step,
        # Half the memory, and far more digits than a likelihood needs.
        value=value.astype(np.float32).T,
        mean=low + step * position,
        deviation=step * np.sqrt(spread),
    )


def _sum(values: Floats) -> Floats:
    """Sum over points, shape (n,), in the order in which numpy adds up a row of them.

    Releases have the bits of earlier versions of this code, which had a row for each node.
    """
    even = len(values) - len(values) % _LANES
    lane = values[:_LANES].copy()
    for start in range(_LANES, even, _LANES):
        lane += values[start : start + _LANES]
    while len(lane) > 1:
        lane = lane[::2] + lane[1::2]
    total: Floats = lane[0]
    for row in values[even:]:
        total += row
    return total


def join_pair(a: Likelihood, b: Likelihood) -> Likelihood:
    """Likelihood of the sum of two parts under the prior of a division."""
    step = np.maximum(a.step, b.step)
    of_a, of_b = _resample(a, step), _resample(b, step)
    low = a.low + b.low
    sums = points(low, step, 2 * LIKELIHOOD_POINTS - 1)
    scale = np.minimum(sums, scale_free(a, b), out=sums)
    np.maximum(scale, step / 2, out=scale)
    zero_a = np.where(a.low == 0, of_a[0], 0.0)
    zero_b = np.where(b.low == 0, of_b[0], 0.0)
    one_sided = zero_a * of_b + zero_b * of_a
    value = _convolve(of_a, of_b)
    value[:LIKELIHOOD_POINTS] -= one_sided / 2  # the trapezium rule: all on one side counts half
    value *= np.divide(step, scale, out=scale)
    value[0] += zero_a * zero_b  # nothing is divided in one way only
    value *= 1 - ONE_SIDED
    value[:LIKELIHOOD_POINTS] += ONE_SIDED / 2 * one_sided
    return _crop(normalise(low, step, value))


def _crop(wide: Likelihood) -> Likelihood:
    """The same likelihood on the usual number of points, around its mean."""
    low, step = grid(wide.mean, wide.deviation)
    return normalise(low, step, wide.across(points(low, step)))


def scale_free(a: Likelihood, b: Likelihood) -> Floats:
    """Count of two parts together above which the prior is flat."""
    return SCALE_FREE * np.hypot(a.deviation, b.deviation)


def _resample(message: Likelihood, step: Floats) -> Floats:
    """Values on a coarser step from the same low end: means, so that nothing slips through."""
    size = len(step)
    sums = np.zeros((LIKELIHOOD_POINTS + 1, size))
    sums[1:] = np.cumsum(message.value.T, axis=0)
    if np.array_equal(step, message.step):
        # As below where edges are the points themselves.
        sums[-1] = sums[-2] + (sums[-1] - sums[-2])
        return np.asarray(np.diff(sums, axis=0))
    edges = (np.arange(LIKELIHOOD_POINTS + 1) - 0.5)[:, None] * (step / message.step) + 0.5
    edges[0] = 0.0
    below = _interpolate(sums, np.minimum(edges, LIKELIHOOD_POINTS), np.arange(size), size)
    mean: Floats = np.diff(below, axis=0) / np.diff(edges, axis=0)
    return mean


def _convolve(a: Floats, b: Floats) -> Floats:
    """Convolution of the likelihoods of each node."""
    value = np.zeros((2 * LIKELIHOOD_POINTS - 1, a.shape[1]))
    part = np.empty_like(b)
    for shift in range(LIKELIHOOD_POINTS):
        np.multiply(a[shift], b, out=part)
        value[shift : shift + LIKELIHOOD_POINTS] += part
    return value


def _interpolate(
    values: NDArray[np.floating], position: Floats, start: Integers, stride: int
) -> Floats:
    """Values at fractional places by straight lines; 0 outside.

    Numbers of a node begin at ``start`` and are ``stride`` apart.
    """
    last = values.size // len(start) - 1
    # Clipped before the cast: a contradiction of huge counts lies farther off than 64 bits count.
    base = np.clip(position, 0, last - 1)
    at = base.astype(np.int64)
    np.floor(base, out=base)
    at *= stride
    at += start
    flat = values.ravel()
    left = flat.take(at)
    at += stride
    line = (flat.take(at) - left) * np.subtract(position, base, out=base)
    line += left
    return np.where((position >= 0) & (position <= last), line, 0.0)
