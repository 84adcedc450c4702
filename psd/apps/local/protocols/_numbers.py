"""What the protocols of numbers share: the law on the lattice, its matrix, and its errors.

Steps are those of the range of a campaign; outputs are what a report states.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import numpy as np

from psd._util.arrays import Floats
from psd.apps.local.device import STEPS, WINDOWS, NumberDraw
from psd.apps.local.protocols._base import ReportProtocol

__all__ = [
    "NumberProtocol",
    "SingleValueProtocol",
    "UnbiasedProtocol",
    "decode_evenly",
    "sum_squares",
]


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
    @abstractmethod
    def best(cls, nano_epsilon: int, answers: int = STEPS) -> Self:
        """Protocol with the best window for an epsilon."""

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
    """A protocol whose outputs are steps of the range: the output stands for the number.

    The errors of single values are small, since no output leaves the range. For the same reason
    outputs are biased towards the middle, so means and distributions of them are wrong by more
    than chance.
    """

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
    total: Floats = number * (number + 1) * (2 * number + 1) / 6
    return total
