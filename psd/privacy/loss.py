"""What a charge costs: pure epsilon, or rho of zero-concentrated privacy with (epsilon, delta).

Epsilon is a whole number of 1e-9 from decimal text, rho one of 1e-12: with floats, 0.1 + 0.2 > 0.3
would refuse a valid charge, and 1.0 + 1e-17 == 1.0 would spend without one. Others move integers of
one measure; only `LossMeasure` says what they are worth.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from psd._util.instances import shown
from psd.accounting import PICO, pure_rho, rho_of
from psd.errors import ParameterError

__all__ = [
    "NANO",
    "RHO",
    "Loss",
    "delta_text",
    "epsilon_decimal",
    "epsilon_text",
    "failure_text",
    "parse_decimal",
    "parse_delta",
    "parse_epsilon",
]

# Delta is the probability with which the bound that epsilon gives may fail. It has to be far below
# one over the number of users, so numbers from 1e-3 on are refused.
MAX_DELTA = Fraction(1, 1_000)
LEAST_DELTA = Fraction(1, 10**300)
_DIGITS = 15  # a float keeps every decimal number of 15 digits


def parse_delta(value: str | float | Decimal) -> Fraction:
    """Read delta as an exact fraction, above 0 and below 1e-3; a float counts as its ``repr``."""
    number = parse_decimal("delta", value, example="1e-6")
    delta = Fraction(number)
    text, usual = str(value), "usual values are 1e-9 to 1e-5"
    if not 0 < delta < MAX_DELTA:
        raise _refusal("delta", "be above 0 and below 0.001", text, usual)
    if delta < LEAST_DELTA:
        raise _refusal("delta", "be at least 1e-300", text, usual)
    if len(_digits(number)) > _DIGITS:
        raise _refusal("delta", f"be of at most {_DIGITS} digits", text, "round it down")
    return delta


def delta_text(delta: Fraction) -> str:
    """Shortest decimal text of a delta, with an exponent."""
    number = Decimal(delta.numerator) / Decimal(delta.denominator)
    digits = _digits(number)
    point = "." if digits[1:] else ""
    return f"{digits[0]}{point}{digits[1:]}e{number.adjusted()}"


def is_delta(value: object) -> bool:
    """Whether a value is the shortest text of a delta, which has at most 40 characters."""
    if not isinstance(value, str) or len(value) > 40:
        return False
    try:
        return delta_text(parse_delta(value)) == value
    except ParameterError:
        return False


def failure_text(delta: Fraction) -> str:
    """What may happen with the probability delta: an event beside an epsilon-private draw [1]_.

    .. [1] C. Dwork, G. Rothblum, S. Vadhan, "Boosting and Differential Privacy", FOCS 2010, lemma
       III.3.
    """
    return (
        f"with a probability of at most {delta_text(delta)} it may reveal more than epsilon allows"
    )


def _digits(number: Decimal) -> str:
    """Digits of a number without the zeros around them."""
    return "".join(map(str, number.as_tuple().digits)).strip("0")


def _refusal(name: str, rule: str, value: object, cause: str) -> ParameterError:
    """Error of an epsilon or a delta; the value is public."""
    return ParameterError(f"{name} must {rule}, got {value}; {cause}", name=name, value=value)


NANO = 10**9
MAX_EPSILON = 1_000

_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)


def parse_epsilon(value: str | float | Decimal) -> int:
    """Read epsilon, above 0 and at most 1,000, as nano-epsilon; a float counts as its ``repr``."""
    number = parse_decimal("epsilon", value)
    usual = "usual values are 0.1 to 10"
    if number <= 0:
        raise _refusal("epsilon", "be above 0", value, usual)
    if number > MAX_EPSILON:
        raise _refusal("epsilon", f"be at most {MAX_EPSILON:,}", value, usual)
    nano = Fraction(number) * NANO
    if nano.denominator != 1:
        raise _refusal("epsilon", "have at most nine decimals", value, "round it down")
    return nano.numerator


def parse_decimal(name: str, value: str | float | Decimal, *, example: str = "0.5") -> Decimal:
    """Decimal from plain ASCII text; exponents have at most four digits."""
    text = str(value)  # of a float, the shortest text that reads back as it
    if isinstance(value, bool) or not _DECIMAL.fullmatch(text):
        raise ParameterError(
            f"{name} must be a decimal number such as {example}, got {shown(value)}",
            name=name,
            value=str(value)[:80],
        )
    return Decimal(text)


def epsilon_decimal(nano: int) -> Decimal:
    """Epsilon of a nano-epsilon number."""
    return Decimal(epsilon_text(nano))


def epsilon_text(nano: int) -> str:
    """Shortest decimal text of a nano-epsilon number."""
    return EPSILON.text(nano)


# A ledger asks for the same few numbers at every charge.
_pure_rho = lru_cache(maxsize=1024)(pure_rho)
rho_within = lru_cache(maxsize=1024)(rho_of)
"""Largest rho, in 1e-12, that nano-epsilon and delta allow, rounded down; 0 if below 1e-12."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Privacy loss of what is drawn for one charge. Public.

    P1. A pure loss holds what is epsilon-differentially private, so it is rho-zCDP too.

    P2. A Gaussian loss holds what is rho-zCDP, and rho is small enough for (epsilon, delta).

    A pure epsilon counts rho = epsilon tanh(epsilon / 2), `psd.accounting.pure_rho`, never
    epsilon^2 / 8, which holds for the exponential mechanism alone.
    """

    epsilon: int  # nano-epsilon
    rho: int  # in units of 1e-12
    delta: Fraction | None = None  # delta of a Gaussian loss; None for a pure one

    def __post_init__(self) -> None:
        """Check that rho belongs to epsilon and delta."""
        if self.delta is None:
            if self.rho != _pure_rho(self.epsilon):
                raise ParameterError("rho of a pure loss must be that of its epsilon")
        elif not 0 < self.rho <= rho_within(self.epsilon, self.delta):
            raise ParameterError(
                "rho must be above 0 and at most that of epsilon "
                f"{epsilon_text(self.epsilon)} and delta {delta_text(self.delta)}, got "
                f"{rho_text(self.rho)}; epsilon may be too small for Gaussian noise"
            )

    @classmethod
    def pure(cls, epsilon: int) -> Loss:
        """Loss of a mechanism of pure epsilon, in nano-epsilon."""
        return cls(epsilon=epsilon, rho=_pure_rho(epsilon))

    @classmethod
    def gaussian(cls, epsilon: int, delta: Fraction, rho: int | None = None) -> Loss:
        """Loss of Gaussian noise of a rho, by default the largest for epsilon and delta."""
        largest = rho_within(epsilon, delta) if rho is None else rho
        return cls(epsilon=epsilon, rho=largest, delta=delta)

    @property
    def is_pure(self) -> bool:
        """Whether no delta is spent."""
        return self.delta is None

    @property
    def failure_note(self) -> str:
        """What may happen with the probability delta, to be read after a guarantee."""
        return "" if self.delta is None else f"; {failure_text(self.delta)}"

    @property
    def text(self) -> str:
        """Both numbers of a Gaussian loss, or the epsilon of a pure one."""
        if self.delta is None:
            return f"epsilon {epsilon_text(self.epsilon)}"
        return (
            f"epsilon {epsilon_text(self.epsilon)} and delta {delta_text(self.delta)} "
            f"(rho {rho_text(self.rho)})"
        )


def largest_pure_epsilon(rho: int) -> int:
    """Largest nano-epsilon whose pure mechanisms cost at most a rho in 1e-12; 0 for one below 0."""
    low, high = 0, MAX_EPSILON * NANO
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if pure_rho(middle) <= rho else (low, middle - 1)
    return low


def rho_text(pico: int) -> str:
    """Shortest decimal text of a rho in units of 1e-12."""
    return RHO.text(pico)


@dataclass(frozen=True, slots=True, kw_only=True)
class LossMeasure:
    """A measure of privacy loss that adds up, in whole parts: epsilon, or rho of zCDP [1]_."""

    name: Literal["epsilon", "rho"]  # pure, or zero-concentrated differential privacy
    parts: int  # parts of 1: 1e9 of epsilon, 1e12 of rho

    @property
    def largest(self) -> int:
        """Largest amount that a release may have, in parts."""
        return MAX_EPSILON * self.parts

    @property
    def is_pure(self) -> bool:
        """Whether amounts are of pure differential privacy."""
        return self.name == "epsilon"

    @property
    def one_text(self) -> str:
        """One amount, with its article."""
        return "an epsilon" if self.is_pure else "a rho"

    @property
    def least_text(self) -> str:
        """The smallest amount above 0, such as 1e-9."""
        return f"1e-{len(str(self.parts)) - 1}"

    def text(self, amount: int) -> str:
        """Shortest decimal text of an amount."""
        places = len(str(self.parts)) - 1
        return f"{amount // self.parts}.{amount % self.parts:0{places}d}".rstrip("0").rstrip(".")

    def decimal(self, amount: int) -> Decimal:
        """Amount as a decimal number."""
        return Decimal(self.text(amount))

    def of_selections(self, amounts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Nano-epsilon of exponential mechanisms that cost these amounts, rounded down.

        P1. One of epsilon e costs e^2 / 8 in rho, since its log-ratios lie in an interval of length
        e [2]_.
        """
        return amounts if self.is_pure else self._roots(amounts, 8)

    def of_pure(self, amounts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Nano-epsilon of any pure mechanisms that cost these amounts, rounded down.

        P2. One of epsilon e costs at most e^2 / 2 in rho, by proposition 3.3 of [1]_.
        """
        return amounts if self.is_pure else self._roots(amounts, 2)

    def _roots(self, amounts: NDArray[np.int64], times: int) -> NDArray[np.int64]:
        """Integer parts of nano * sqrt(times * rho), computed once for each distinct amount."""
        different, which = np.unique(amounts, return_inverse=True)
        roots = [isqrt(times * amount * NANO**2 // self.parts) for amount in different.tolist()]
        return np.array(roots, np.int64)[which.reshape(amounts.shape)]


EPSILON: Final = LossMeasure(name="epsilon", parts=NANO)
"""Nano-epsilon of pure differential privacy."""

RHO: Final = LossMeasure(name="rho", parts=PICO)
"""Parts of 1e-12 of rho of zero-concentrated differential privacy."""
