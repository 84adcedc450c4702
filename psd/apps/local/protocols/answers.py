"""Protocols of one of a number of answers: what each offers to the collector, and its law."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from psd.apps.local.device import (
    MAX_MASK,
    MAX_TABLE,
    UNIT,
    HashingDraw,
    KaryDraw,
    SubsetDraw,
    UnaryDraw,
    digits_for,
    mask_text,
)
from psd.errors import ParameterError

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
    def p(self) -> Fraction:
        """Probability that a report supports the true answer."""
        return Fraction(self.draw.threshold, UNIT)

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
    """Variance of the estimate of a share f from one report.

    P3. Of n devices f n have the answer, so the support is a sum of f n Bernoulli variables of p
    and (1 - f) n of q. The result is its variance, divided by n (p - q)^2.
    """
    return q * (1 - q) / (p - q) ** 2 + share * (1 - p - q) / (p - q)


def within(masks: Masks, answers: int) -> NDArray[np.bool_]:
    """Which sets have no bit beyond the last answer."""
    beyond = -answers % 8
    # Only the last byte can have room for more bits than there are answers.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Kary(LocalProtocol):
    """The true answer with probability e / (e + k - 1), e = exp(epsilon), or one of the others.

    P1. The largest ratio of a law is at most exp(epsilon). Two answers give a report with
    probabilities p and (1 - p) / (k - 1), whose ratio is at most e by `keep_threshold`. (Warner,
    JASA 1965; Kairouz, Bonawitz, Ramage, ICML 2016.)
    """

    draw: KaryDraw

    name: ClassVar[str] = "k-ary"
    stated: ClassVar[tuple[str, ...]] = ("truth",)
    report: ClassVar[Literal["integer"]] = "integer"

    @classmethod
    def best(cls, nano_epsilon: int, answers: int) -> Kary:
        """Only protocol of its kind."""
        return cls(draw=KaryDraw(nano_epsilon, answers))

    @property
    def settings(self) -> dict[str, Any]:
        """Settings, as a campaign states them."""
        return {}

    @property
    def q(self) -> Fraction:
        """Probability of each other answer."""
        return (1 - self.p) / (self.answers - 1)

    def law(self, answer: int) -> Iterator[tuple[str, Fraction]]:
        """Every report and its probability."""
        for i in range(self.answers):
            yield f"[{i}]", self.p if i == answer else self.q


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary(MaskProtocol):
    """A 1 with probability p at the true answer, and with probability q at each other one.

    P1. The largest ratio of a law is at most exp(epsilon). Two answers differ in two bits, so the
    largest ratio is p (1 - q) / ((1 - p) q). Symmetric: (p / (1 - p))^2 with bits at half of
    epsilon. Optimised: p = 1/2, so (1 - q) / q, with the bit of another answer at all of epsilon.
    (Wang, Blocki, Li, Jha, USENIX Security 2017, sections 4.2 and 4.3: SUE and OUE.)
    """

    draw: UnaryDraw

    name: ClassVar[str] = "unary"

    @classmethod
    def best(cls, nano_epsilon: int, answers: int) -> Unary:
        """Optimised form, which has the smaller variance of rare answers."""
        cls.check_answers(answers)
        return cls(draw=UnaryDraw(nano_epsilon, answers, "optimised"))

    @property
    def settings(self) -> dict[str, Any]:
        """Settings, as a campaign states them."""
        return {"form": self.draw.form}

    @property
    def p(self) -> Fraction:
        """Probability of a 1 at the true answer."""
        return Fraction(self.draw.thresholds[1], UNIT)

    @property
    def q(self) -> Fraction:
        """Probability of a 1 at another answer."""
        return Fraction(self.draw.thresholds[0], UNIT)

    def law(self, answer: int) -> Iterator[tuple[str, Fraction]]:
        """Every report and its probability."""
        for mask in range(2**self.answers):
            chance = Fraction(1)
            for i in range(self.answers):
                rate = self.p if i == answer else self.q
                chance *= rate if mask >> i & 1 else 1 - rate
            yield mask_text(mask, self.answers), chance


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset(MaskProtocol):
    """A uniform set of w answers with the true one, or a uniform set of w others.

    P1. The largest ratio of a law is at most exp(epsilon). A set has probability p / C(d - 1, w -
    1) if it holds the true answer, and (1 - p) / C(d - 1, w) if not. Their ratio is p (d - w) / ((1
    - p) w), at most exp(epsilon) by `keep_threshold`. (Ye, Barg, IEEE Transactions on Information
    Theory 2018; Wang et al., "Mutual Information Optimally Local Private Discrete Distribution
    Estimation", 2016.)
    """

    draw: SubsetDraw

    name: ClassVar[str] = "subset"

    @classmethod
    def best(cls, nano_epsilon: int, answers: int) -> Subset:
        """Size with the least variance of a rare answer."""
        cls.check_answers(answers)
        # The best size is near d / (exp(epsilon) + 1), below one half.
        sizes = (cls(draw=SubsetDraw(nano_epsilon, answers, w)) for w in range(1, answers // 2 + 1))
        return min(sizes, key=lambda subset: float(subset.variance(0)))

    @property
    def settings(self) -> dict[str, Any]:
        """Settings, as a campaign states them."""
        return {"size": self.draw.size}

    @property
    def q(self) -> Fraction:
        """Probability that the set holds another answer."""
        size = self.draw.size
        # Besides the true answer a set has size - 1 others, without it all of its size.
        return (self.p * (size - 1) + (1 - self.p) * size) / (self.answers - 1)

    def law(self, answer: int) -> Iterator[tuple[str, Fraction]]:
        """Every report and its probability."""
        size, others = self.draw.size, self.answers - 1
        inside, beside = self.p / comb(others, size - 1), (1 - self.p) / comb(others, size)
        for members in combinations(range(self.answers), size):
            mask = sum(1 << i for i in members)
            yield mask_text(mask, self.answers), inside if answer in members else beside

    def read_masks(self, masks: Masks) -> NDArray[np.bool_]:
        """Which sets are valid reports: those of the right size."""
        members = np.unpackbits(masks, axis=1).sum(axis=1, dtype=np.int64)
        valid: NDArray[np.bool_] = MaskProtocol.read_masks(self, masks) & (
            members == self.draw.size
        )
        return valid


@dataclass(frozen=True, slots=True, kw_only=True)
class Hashing(LocalProtocol):
    """A function a, uniform among those that are not zero, and its value at the answer or another.

    P1. The largest ratio of a law is at most exp(epsilon). The function is drawn before the answer
    is looked at, and its value is k-ary with g answers (g = 2: the 1-bit Hadamard response).
    P2. Another answer has the value of the true one with probability (D/g - 1) / (D - 1), where D
    is the number of functions with the zero function: so q is exact. (Wang, Blocki, Li, Jha, USENIX
    Security 2017, section 4.4; Bassily et al., NeurIPS 2017: counting by a fast transform.)
    """

    draw: HashingDraw

    name: ClassVar[str] = "hashing"
    report: ClassVar[Literal["pair"]] = "pair"

    @classmethod
    def best(cls, nano_epsilon: int, answers: int) -> Hashing:
        """Prime with the least variance of a rare answer, see `MAX_TABLE`."""
        primes = (
            g
            # A table of all functions and values is counted, so their number has a limit.
            for g in range(2, math.isqrt(MAX_TABLE) + 1)
            if g ** (digits_for(answers, g) + 1) <= MAX_TABLE
            and all(g % divisor for divisor in range(2, math.isqrt(g) + 1))
        )
        choices = (cls(draw=HashingDraw(nano_epsilon, answers, g, "")) for g in primes)
        return min(choices, key=lambda hashing: float(hashing.variance(0)))

    @property
    def settings(self) -> dict[str, Any]:
        """Settings, as a campaign states them."""
        return {"modulus": self.draw.modulus}

    @property
    def codes(self) -> tuple[int, int]:
        """First code of a report, and the one after the last."""
        return self.draw.modulus, self.draw.functions * self.draw.modulus

    @property
    def q(self) -> Fraction:
        """Probability of the value of another answer."""
        g, functions = self.draw.modulus, self.draw.functions
        # 1 / g of the functions give two answers one value; the zero function is not drawn.
        meet = Fraction(functions // g - 1, functions - 1)
        return self.p * meet + (1 - self.p) * (1 - meet) / (g - 1)

    def law(self, answer: int) -> Iterator[tuple[str, Fraction]]:
        """Every report and its probability."""
        g, functions = self.draw.modulus, self.draw.functions
        other = (1 - self.p) / (g - 1)
        for function in range(1, functions):
            true = self.draw.value(function, self.draw.codes[answer])
            for value in range(g):
                chance = self.p if value == true else other
                yield f"[{function},{value}]", chance / (functions - 1)

    def read(self, first: Codes, second: Codes) -> tuple[Codes, NDArray[np.bool_]]:
        """Code of reports, function times g plus value, and which are valid."""
        valid = (first >= 1) & (first < self.draw.functions)
        valid &= (second >= 0) & (second < self.draw.modulus)
        return first * self.draw.modulus + second, valid

    def support(self, table: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number of reports that support each answer, by fast Fourier transforms.

        P3. The numbers are exact. Let T(a, y) be the number of reports (a, y). The support of a
        code v is sum_a T(a, <a, v>) = (1/g) sum_k sum_a F_k(a) w^(k <a, v>), with w = exp(2 pi i /
        g) and F_k(a) = sum_y T(a, y) w^(-k y). For each k the sum over a is a discrete Fourier
        transform over digits in base g, at the code whose digits are k times those of v. The terms
        of k and g - k are conjugate. The sums are integers, so they are rounded.
        """
        g, functions = self.draw.modulus, self.draw.functions
        # F_k(a), (functions, g // 2 + 1): the other half is conjugate.
        by_value = np.fft.rfft(table.reshape(functions, g), axis=1)
        count = digits_for(self.answers, g)
        place_values = g ** np.arange(count)
        digits = np.asarray(self.draw.codes)[:, None] // place_values % g  # (answers, digits)
        # Frequency 0: every report supports each answer with 1 / g.
        support = np.full(self.answers, by_value[:, 0].sum().real / g)
        for k in range(1, g // 2 + 1):
            shape = (g,) * count
            # Functions are numbers of `count` digits base g, so the sum over them is a transform.
            sums = np.fft.ifftn(by_value[:, k].reshape(shape)).reshape(-1) * functions
            # k times the digits of each answer is where its sum stands.
            terms = sums[(digits * k % g) @ place_values].real
            support += terms * (1 if 2 * k == g else 2) / g
        counts: NDArray[np.int64] = np.rint(support).astype(np.int64)
        return counts
