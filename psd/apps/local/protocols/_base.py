"""What a protocol offers to the collector."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from psd.apps.local.device import MAX_MASK
from psd.errors import ParameterError

__all__ = [
    "Codes",
    "LocalProtocol",
    "MaskProtocol",
    "Masks",
    "ReportProtocol",
    "count_masks",
    "noise_variance",
    "within",
]

Codes = NDArray[np.int64]
"""An integer for each report."""

Masks = NDArray[np.uint8]
"""Bytes of the set of each report, one row each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportProtocol(ABC):
    """A law by which devices randomise an answer, and how its reports are read and counted.

    P1. `law` is what `draw` draws, in fractions; its largest log-ratio is at most epsilon.
    """

    draw: Any  # part of the device: what it draws with

    name: ClassVar[str]
    report: ClassVar[Literal["mask", "integer", "pair"]]
    """Form of the answer of a report: a set, an integer, or two integers."""
    stated: ClassVar[tuple[str, ...]] = ()
    """Settings that a user may state in place of epsilon: probabilities, as decimals."""

    @property
    def nano_epsilon(self) -> int:
        """Nano-epsilon of a report."""
        nano: int = self.draw.nano
        return nano

    @property
    def answers(self) -> int:
        """Number of answers."""
        answers: int = self.draw.answers
        return answers

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Settings, as a campaign states them."""

    @property
    def codes(self) -> tuple[int, int]:
        """First code of a report, and the one after the last; often a code is an answer."""
        return 0, self.answers

    @abstractmethod
    def law(self, answer: int) -> Iterator[tuple[str, Fraction]]:
        """Every report and its probability."""

    def read(self, first: Codes, second: Codes) -> tuple[Codes, NDArray[np.bool_]]:
        """Code of reports of one or two integers, (n,) int64, and which of them are valid."""
        return first, (first >= 0) & (first < self.codes[1])

    @property
    def width(self) -> int:
        """Bytes of a report that is a set."""
        return (self.answers + 7) // 8

    def read_masks(self, masks: Masks) -> NDArray[np.bool_]:
        """Which sets are valid reports; without an own form of report, no set is."""
        return np.zeros(len(masks), bool)

    def tabulate(self, codes: Any) -> NDArray[np.int64]:
        """Table of codes or masks; tables of parts of the reports add up."""
        return np.bincount(codes, minlength=self.codes[1])

    def support(self, table: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number of reports in a table that support each answer; often the table itself."""
        return table


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalProtocol(ReportProtocol):
    """A protocol of one of a number of answers, whose shares are estimated.

    P2. ``(support / reports - q) / (p - q)`` is an unbiased estimate of the share of an answer; its
    variance for a fixed set of answers is `variance` of the share, divided by the reports.
    """

    @property
    @abstractmethod
    def p(self) -> Fraction:
        """Probability that a report supports the true answer."""

    @property
    @abstractmethod
    def q(self) -> Fraction:
        """Probability that a report supports another answer."""

    def variance(self, share: Fraction | int) -> Fraction:
        """Variance of an estimate from one report, at a share of the answer."""
        return noise_variance(self.p, self.q, share)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskProtocol(LocalProtocol):
    """A protocol whose report is a set of answers, which it supports, as the bits of bytes."""

    report: ClassVar[Literal["mask"]] = "mask"

    @classmethod
    def check_answers(cls, answers: int) -> None:
        """Check that a report has room for a bit for each answer."""
        if answers > MAX_MASK:
            raise ParameterError(
                f"protocol {cls.name} must have at most {MAX_MASK:,} answers, got {answers:,}; "
                "use hashing"
            )

    @property
    def codes(self) -> tuple[int, int]:
        """No code is a report."""
        return 0, 0

    def read(self, first: Codes, second: Codes) -> tuple[Codes, NDArray[np.bool_]]:
        """No integer is a report."""
        return first, np.zeros(len(first), bool)

    def read_masks(self, masks: Masks) -> NDArray[np.bool_]:
        """Which sets hold no answer beyond the last one."""
        if masks.shape[1] != self.width:
            return np.zeros(len(masks), bool)
        return within(masks, self.answers)

    def tabulate(self, codes: Masks) -> NDArray[np.int64]:
        """Number of sets that hold each answer."""
        return count_masks(codes, self.answers)


def noise_variance(p: Fraction, q: Fraction, share: Fraction | int) -> Fraction:
    """Variance of the estimate of a share from one report.

    P3. Of n devices, f n have the answer. The support is a sum of f n Bernoulli variables of p and
    (1 - f) n of q. Its variance, divided by n (p - q)^2, is ``q (1 - q) / (p - q)^2 + f (1 - p - q)
    / (p - q)``.
    """
    return q * (1 - q) / (p - q) ** 2 + share * (1 - p - q) / (p - q)


def within(masks: Masks, answers: int) -> NDArray[np.bool_]:
    """Which sets have no bit beyond the last answer."""
    beyond = -answers % 8
    return masks[:, -1] >> (8 - beyond) == 0 if beyond else np.ones(len(masks), bool)


def count_masks(masks: Masks, answers: int) -> NDArray[np.int64]:
    """Number of sets that hold each answer."""
    # A mask has the lowest answer in the lowest bit of its first byte.
    total = np.zeros(answers, np.int64)
    step = max(1, 2**24 // max(answers, 1))  # of bits in memory at once
    for start in range(0, len(masks), step):
        bits = np.unpackbits(masks[start : start + step], axis=1, count=answers, bitorder="little")
        total += bits.sum(axis=0, dtype=np.int64)
    return total
