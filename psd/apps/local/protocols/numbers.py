"""Protocols of numbers, from steps of the range to outputs: law on the lattice, matrix, errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np

from psd._util.arrays import Floats
from psd.apps.local.device import NANO, STEPS, WINDOWS, NumberDraw
from psd.apps.local.protocols.answers import ReportProtocol


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberProtocol(ReportProtocol):
    """An output on a lattice, drawn by integer weights that follow from the step of a number.

    P1. As of `ReportProtocol`; the weights are those of `psd.apps.local.device.NumberDraw`.
    """

    draw: NumberDraw

    report: ClassVar[Literal["integer"]] = "integer"
    use: ClassVar[Literal["single values", "means", "distributions"]]
    """What its reports are for."""

    @classmethod
    def best(cls, nano_epsilon: int, answers: int = STEPS) -> Self:
        """Protocol with the best window for an epsilon, for kinds that have one."""
        return cls.at(nano_epsilon, answers)

    @classmethod
    def at(cls, nano_epsilon: int, answers: int, window: int = 0) -> Self:
        """Protocol with a window."""
        return cls(draw=NumberDraw(nano_epsilon, answers, cls.name, window))

    @property
    def settings(self) -> dict[str, Any]:
        """Settings, as a campaign states them."""
        return {"window": self.draw.window} if WINDOWS[self.name] else {}

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return sum(size for size, _ in self.draw.runs(0))

    @property
    def codes(self) -> tuple[int, int]:
        """First code of a report, and the one after the last."""
        return 0, self.outputs

    def chances(self, answer: int) -> list[Fraction]:
        """Probability of each output at a step."""
        runs = self.draw.runs(answer)
        total = sum(size * weight for size, weight in runs)
        return [Fraction(weight, total) for size, weight in runs for _ in range(size)]

    def law(self, answer: int) -> Iterator[tuple[str, Fraction]]:
        """Every report and its probability."""
        for output, chance in enumerate(self.chances(answer)):
            yield f"[{output}]", chance

    def matrix(self) -> Floats:
        """Probabilities as floats: a row for each step, a column for each output."""
        rows = []
        for answer in range(self.answers):
            sizes, weights = zip(*self.draw.runs(answer), strict=True)
            # Outputs of one weight come in runs, a few of them at each step.
            rows.append(np.repeat(np.array(weights, np.float64), sizes))
        table: Floats = np.stack(rows)
        chances: Floats = table / table.sum(axis=1, keepdims=True)
        return chances

    def squares_of(self, values: Floats) -> Floats:
        """Mean squared error at each step, in squared steps, if outputs have these values."""
        steps = np.arange(self.answers, dtype=np.float64)
        errors: Floats = (self.matrix() * (values - steps[:, None]) ** 2).sum(axis=1)
        return errors


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleValueProtocol(NumberProtocol):
    """A protocol whose outputs are steps of the range: the output stands for the number."""

    # No output leaves the range: errors of single values are small, and means and distributions are
    # biased towards the middle, by more than chance.
    use: ClassVar[Literal["single values"]] = "single values"

    def squared_errors(self) -> Floats:
        """Mean squared error at each step, in squared steps."""
        return self.squares_of(np.arange(self.answers, dtype=np.float64))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnbiasedProtocol(NumberProtocol):
    """A protocol whose outputs are decoded so that their mean is the number.

    P2. The mean of `decoded` under the law of a step is that step, exactly.
    """

    use: ClassVar[Literal["means"]] = "means"

    def decoded(self) -> list[Fraction]:
        """Step that each output stands for."""
        last = self.answers - 1
        return decode_evenly(self.chances(0), self.chances(last), last)

    def variances(self) -> Floats:
        """Variance of the decoded output at each step, in squared steps."""
        # Decoded without bias, so the mean squared error is the variance.
        return self.squares_of(np.array([float(value) for value in self.decoded()]))


def decode_evenly(first: list[Fraction], last: list[Fraction], steps: int) -> list[Fraction]:
    """Values of outputs in even distances, by their chances at the first and at the last step."""
    low, high = (
        sum((i * chance for i, chance in enumerate(row)), Fraction(0)) / sum(row)
        for row in (first, last)
    )
    # The mean grows from 0 at the first step to `steps` at the last.
    return [(i - low) * steps / (high - low) for i in range(len(first))]


def sum_squares(number: Floats) -> Floats:
    """Sum of the squares of the integers up to a number."""
    return number * (number + 1) * (2 * number + 1) / 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Duchi(UnbiasedProtocol):
    """One bit; the best one for means up to epsilon 1 (Duchi, Jordan, Wainwright, JASA 2018).

    P1. The largest ratio of a law is at most exp(epsilon). The upper output has weight A t + B (K -
    1 - t), the lower one the rest of (A + B) (K - 1): the ratio is at most A / B <= exp(epsilon).
    """

    name: ClassVar[str] = "duchi"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piecewise(UnbiasedProtocol):
    """An output near the number is likelier; the best one for means from epsilon 1 or 2.

    P1. The largest ratio of a law is at most exp(epsilon). All windows have w + 1 of K + w outputs,
    so laws have one sum of weights, and the ratio is that of the weights, at most exp(epsilon).
    P2. The mean of the outputs grows evenly with the number, so decoding is exactly unbiased. (Wang
    et al., ICDE 2019, algorithm 2.)
    """

    name: ClassVar[str] = "piecewise"

    @classmethod
    def best(cls, nano_epsilon: int, answers: int = STEPS) -> Self:
        """Window of the continuous mechanism, rounded."""
        return cls.at(nano_epsilon, answers, piecewise_window(nano_epsilon, answers))


def piecewise_window(nano_epsilon: int, answers: int) -> int:
    """Window w with w / (K - 1) near exp(-epsilon / 2)."""
    return max(1, round((answers - 1) * exp(-nano_epsilon / NANO / 2)))


# Up to this epsilon, duchi alone has the least worst variance.
_DUCHI: Final = 61 * NANO // 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Hybrid(UnbiasedProtocol):
    """Outputs of piecewise, and then the two of duchi: which one was drawn is part of the report.

    P1. The largest ratio of a law is at most exp(epsilon). Each part has one sum of weights for all
    numbers, so a device chooses one without its number. (Wang et al., ICDE 2019, section III-C.)
    """

    name: ClassVar[str] = "hybrid"

    @classmethod
    def best(cls, nano_epsilon: int, answers: int = STEPS) -> Self:
        """Window of piecewise above epsilon 0.61; without a window it is duchi alone."""
        is_window = nano_epsilon > _DUCHI
        window = piecewise_window(nano_epsilon, answers) if is_window else 0
        return cls.at(nano_epsilon, answers, window)

    def decoded(self) -> list[Fraction]:
        """Step that each output stands for, within its part."""
        last = self.answers - 1
        first_row, last_row = self.chances(0), self.chances(last)
        # The last two outputs are those of duchi; each part is decoded by its own chances.
        parts = (slice(0, -2), slice(-2, None)) if self.draw.window else (slice(None),)
        return [
            value
            for part in parts
            for value in decode_evenly(first_row[part], last_row[part], last)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedLaplace(SingleValueProtocol):
    """A step of the range; weights fall by exp(-epsilon) from one end to the other.

    P1. The largest ratio of a law is at most exp(epsilon). The range is the sensitivity, so the
    scale needs no correction: the worst pair is the two ends, whose sums of weights are equal.
    Weights are rounded down from those of epsilon - 1e-9, which leaves room for what is rounded.
    (Holohan et al., Journal of Privacy and Confidentiality 2020.)
    """

    name: ClassVar[str] = "bounded-laplace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Staircase(SingleValueProtocol):
    """A step of the range: the number with noise whose density falls in stairs as long as it.

    P1. The largest ratio of a law is at most exp(epsilon). A distance below the window has weight
    A, and each next K - 1 distances have B / A times the weight, B / A >= exp(-epsilon). Another
    number changes a distance by at most K - 1, one stair. The ends take the sum of all stairs
    beyond them, rounded up in both laws, which makes no ratio larger. (Geng, Kairouz, Oh,
    Viswanath, IEEE Journal of Selected Topics in Signal Processing 2015.)
    """

    name: ClassVar[str] = "staircase"

    @classmethod
    def best(cls, nano_epsilon: int, answers: int = STEPS) -> Self:
        """Window with the least mean squared error of a uniform number."""
        choices = (cls.at(nano_epsilon, answers, window) for window in range(1, answers))
        return min(choices, key=lambda protocol: protocol.mean_squared_error())

    def mean_squared_error(self) -> float:
        """Mean squared error of a uniform number, in squared steps, by sums of squares."""
        inside, outside = map(float, self.draw.weights)
        window, last = self.draw.window, self.answers - 1
        tail = last * inside * outside / (inside - outside)
        error = np.zeros(self.answers)
        # Both sides of the number: outputs below it, and those above.
        for to in (np.arange(self.answers, dtype=np.float64), np.arange(last, -1.0, -1.0)):
            near = np.minimum(np.maximum(to - 1, 0), window - 1)
            error += outside * sum_squares(np.maximum(to - 1, 0)) + (
                inside - outside
            ) * sum_squares(near)
            error += to**2 * (tail + (window - to) * np.where(to < window, inside, outside))
        return float(error.mean() / ((2 * window - 1) * inside + 2 * tail))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedStaircase(SingleValueProtocol):
    """A step of the range, likelier within the window; see `docs/reference/local-numbers.md`.

    P1. The largest ratio of a law is at most exp(epsilon). With weight E in the window and 1 beside
    it, the sum of weights is E w + K - w for a window of w outputs. The ratio is largest between a
    number at an end, w1 = window + 1, and one with the widest window that leaves out an output, w2
    = min(2 window + 1, K - 1): it is E (E w2 + K - w2) / (E w1 + K - w1), and E is the largest
    weight for which this is at most exp(epsilon).
    """

    name: ClassVar[str] = "bounded-staircase"

    @classmethod
    def best(cls, nano_epsilon: int, answers: int = STEPS) -> Self:
        """Window with the least mean squared error of a uniform number."""
        choices = (cls.at(nano_epsilon, answers, window) for window in range(answers - 1))
        return min(choices, key=lambda protocol: protocol.mean_squared_error())

    def mean_squared_error(self) -> float:
        """Mean squared error of a uniform number, in squared steps, by sums of squares."""
        inside, outside = map(float, self.draw.weights)
        window, last = self.draw.window, self.answers - 1
        steps = np.arange(self.answers, dtype=np.float64)
        # At the ends of the range the window is cut off.
        below, above = np.minimum(steps, window), np.minimum(last - steps, window)
        near = sum_squares(below) + sum_squares(above)
        total = outside * (last + 1) + (inside - outside) * (below + above + 1)
        every = sum_squares(steps) + sum_squares(last - steps)
        return float(((outside * every + (inside - outside) * near) / total).mean())


@dataclass(frozen=True, slots=True, kw_only=True)
class SquareWave(NumberProtocol):
    """An output near the number is likelier; all laws differ, so distributions can be decoded.

    P1. The largest ratio of a law is at most exp(epsilon). All windows have w + 1 of K + w outputs,
    so laws have one sum of weights, and the ratio is that of the weights, at most exp(epsilon).
    (Li, Wang, Lopuhaa-Zwakenberg, Li, Skoric, SIGMOD 2020.)
    """

    name: ClassVar[str] = "square-wave"
    use: ClassVar[Literal["distributions"]] = "distributions"

    @classmethod
    def best(cls, nano_epsilon: int, answers: int = STEPS) -> Self:
        """Window 2 b K that has the most mutual information with a uniform number."""
        return cls.at(nano_epsilon, answers, 2 * max(1, round(half_width(nano_epsilon) * answers)))


def half_width(nano_epsilon: int) -> float:
    """Half of the best window, as a share of the range."""
    epsilon = nano_epsilon / NANO
    growth = exp(epsilon)
    return (epsilon * growth - growth + 1) / (2 * growth * (growth - 1 - epsilon))
