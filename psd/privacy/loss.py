"""What a charge costs: pure epsilon, or rho of zero-concentrated privacy with (epsilon, delta).

A budget with a delta counts in both currencies, see `psd.ledger.state`. Sums of either are exact:
epsilon is a whole number of 1e-9, and rho one of 1e-12.

What the loss of a release is counted in: epsilon of pure privacy, or rho of zCDP.

The curator, the decompositions and the release file move integers of one measure. Nothing but
`LossMeasure` says what a part of it is worth.

Epsilon as an integer number of 1e-9, read from decimal text.

Floats cannot represent a budget: 0.1 + 0.2 > 0.3 would refuse a valid charge, and 1.0 + 1e-17 ==
1.0 would spend without a charge. `psd.privacy.budget` divides epsilon.

Delta as an exact fraction, read from decimal text.

Delta is the probability with which the bound that epsilon gives may fail. It has to be far below
one over the number of users, so numbers from 1e-3 on are refused.
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

from psd.accounting import PICO, pure_rho, rho_of
from psd.errors import ParameterError

__all__ = [
    "EPSILON",
    "LEAST_DELTA",
    "MAX_DELTA",
    "MAX_EPSILON",
    "NANO",
    "RHO",
    "Loss",
    "LossMeasure",
    "delta_text",
    "epsilon_decimal",
    "epsilon_text",
    "failure_text",
    "largest_pure_epsilon",
    "parse_decimal",
    "parse_delta",
    "parse_epsilon",
    "rho_text",
    "rho_within",
]

MAX_DELTA = Fraction(1, 1_000)
LEAST_DELTA = Fraction(1, 10**300)
_DIGITS = 15  # a float keeps every decimal number of 15 digits


def parse_delta(value: str | float | Decimal) -> Fraction:
    """Read delta as an exact fraction.

    Parameters
    ----------
    value : str, float or Decimal
        Delta as decimal text; a float counts as its ``repr``. Above 0 and below 1e-3, with at most
        15 digits. Public.

    Returns
    -------
    Fraction
        Delta, exactly.

    Raises
    ------
    ParameterError
        If the text is not a decimal number, out of range, or has more digits.

    Examples
    --------
    >>> parse_delta("1e-6")
    Fraction(1, 1000000)
    """
    number = parse_decimal("delta", value, example="1e-6")
    delta = Fraction(number)
    if not 0 < delta < MAX_DELTA:
        raise _refusal("above 0 and below 0.001", value, "usual values are 1e-9 to 1e-5")
    if delta < LEAST_DELTA:
        raise _refusal("at least 1e-300", value, "usual values are 1e-9 to 1e-5")
    if len(_digits(number)) > _DIGITS:
        raise _refusal(f"of at most {_DIGITS} digits", value, "round it down")
    return delta


def delta_text(delta: Fraction) -> str:
    """Shortest decimal text of a delta, with an exponent.

    Examples
    --------
    >>> delta_text(Fraction(1, 1_000_000)), delta_text(Fraction(25, 10**9))
    ('1e-6', '2.5e-8')
    """
    number = Decimal(delta.numerator) / Decimal(delta.denominator)
    digits = _digits(number)
    point = "." if digits[1:] else ""
    return f"{digits[0]}{point}{digits[1:]}e{number.adjusted()}"


def failure_text(delta: Fraction) -> str:
    """What may happen with the probability delta.

    An (epsilon, delta)-private draw equals one that keeps epsilon, but for an event of probability
    at most delta [1]_.

    References
    ----------
    .. [1] C. Dwork, G. Rothblum, S. Vadhan, "Boosting and Differential Privacy", FOCS 2010,
       lemma III.3.

    Examples
    --------
    >>> failure_text(Fraction(1, 1_000_000))
    'with a probability of at most 1e-6 it may reveal more than epsilon allows'
    """
    return (
        f"with a probability of at most {delta_text(delta)} it may reveal more than epsilon allows"
    )


def _digits(number: Decimal) -> str:
    """Digits of a number without the zeros around them."""
    return "".join(map(str, number.as_tuple().digits)).strip("0")


def _refusal(rule: str, value: object, cause: str) -> ParameterError:
    """Refuse a delta; the value is public."""
    return ParameterError(
        f"delta must be {rule}, got {value}; {cause}", name="delta", value=str(value)
    )


NANO = 10**9
MAX_EPSILON = 1_000

_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)


def parse_epsilon(value: str | float | Decimal) -> int:
    """Read epsilon as an integer number of nano-epsilon.

    Parameters
    ----------
    value : str, int, float or Decimal
        Epsilon as decimal text; a float counts as its ``repr``. Greater than 0, at most 1,000,
        with at most nine decimals. Public.

    Returns
    -------
    int
        Epsilon in units of 1e-9.

    Raises
    ------
    ParameterError
        If the text is not a decimal number, or out of range.

    Examples
    --------
    >>> parse_epsilon("0.1"), parse_epsilon(1)
    (100000000, 1000000000)
    """
    number = parse_decimal("epsilon", value)
    if number <= 0:
        raise ParameterError(
            f"epsilon must be above 0, got {value}; usual values are 0.1 to 10",
            name="epsilon",
            value=value,
        )
    if number > MAX_EPSILON:
        raise ParameterError(
            f"epsilon must be at most {MAX_EPSILON:,}, got {value}; usual values are 0.1 to 10",
            name="epsilon",
            value=value,
        )
    nano = Fraction(number) * NANO
    if nano.denominator != 1:
        raise ParameterError(
            f"epsilon must have at most nine decimals, got {value}; round it down",
            name="epsilon",
            value=value,
        )
    return nano.numerator


def parse_decimal(name: str, value: str | float | Decimal, *, example: str = "0.5") -> Decimal:
    """Decimal from plain ASCII text; exponents have at most four digits."""
    text = str(value)  # of a float, the shortest text that reads back as it
    if isinstance(value, bool) or not _DECIMAL.fullmatch(text):
        raise ParameterError(
            f"{name} must be a decimal number such as {example}, got {text!r}",
            name=name,
            value=text,
        )
    return Decimal(text)


def epsilon_decimal(nano: int) -> Decimal:
    """Epsilon of a nano-epsilon number.

    Examples
    --------
    >>> epsilon_decimal(100_000_000)
    Decimal('0.1')
    """
    return Decimal(epsilon_text(nano))


def epsilon_text(nano: int) -> str:
    """Shortest decimal text of a nano-epsilon number.

    Examples
    --------
    >>> epsilon_text(100_000_000), epsilon_text(2_000_000_000)
    ('0.1', '2')
    """
    return f"{nano // NANO}.{nano % NANO:09d}".rstrip("0").rstrip(".")


# A ledger asks for the same few numbers at every charge.
_pure_rho = lru_cache(maxsize=1024)(pure_rho)
_rho_of = lru_cache(maxsize=1024)(rho_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Privacy loss of what is drawn for one charge. Public.

    Guarantees
    ----------
    - A pure loss holds what is epsilon-differentially private, so it is rho-zCDP too.
    - A Gaussian loss holds what is rho-zCDP, and rho is small enough for (epsilon, delta).

    Parameters
    ----------
    epsilon : int
        Nano-epsilon.
    rho : int
        Rho in units of 1e-12.
    delta : Fraction, optional
        Delta of a Gaussian loss; None for a pure one.

    Raises
    ------
    ParameterError
        If rho is not that of a pure loss, or is above what (epsilon, delta) allow.

    Notes
    -----
    A pure epsilon is rho-zCDP with rho = epsilon tanh(epsilon / 2), `psd.accounting.pure_rho`. The
    smaller epsilon^2 / 8 holds for the exponential mechanism alone, and no charge counts it, since
    a release has other draws too.

    Examples
    --------
    >>> Loss.pure(1_000_000_000).rho
    462117157261
    >>> Loss.gaussian(1_000_000_000, Fraction(1, 1_000_000)).rho
    24355970359
    """

    epsilon: int
    rho: int
    delta: Fraction | None = None

    def __post_init__(self) -> None:
        """Check that rho belongs to epsilon and delta."""
        if self.delta is None:
            if self.rho != _pure_rho(self.epsilon):
                raise ParameterError("rho of a pure loss must be that of its epsilon")
        elif not 0 < self.rho <= _rho_of(self.epsilon, self.delta):
            raise ParameterError(
                "rho must be above 0 and at most that of epsilon "
                f"{epsilon_text(self.epsilon)} and delta {delta_text(self.delta)}, got "
                f"{rho_text(self.rho)}; epsilon may be too small for Gaussian noise"
            )

    @classmethod
    def pure(cls, epsilon: int) -> Loss:
        """Loss of a mechanism of pure epsilon.

        Parameters
        ----------
        epsilon : int
            Nano-epsilon.
        """
        return cls(epsilon=epsilon, rho=_pure_rho(epsilon))

    @classmethod
    def gaussian(cls, epsilon: int, delta: Fraction, rho: int | None = None) -> Loss:
        """Loss of Gaussian noise that is (epsilon, delta)-private.

        Parameters
        ----------
        epsilon : int
            Nano-epsilon.
        delta : Fraction
            Above 0, below 1.
        rho : int, optional
            Rho in units of 1e-12; by default the largest that epsilon and delta allow.

        Raises
        ------
        ParameterError
            If rho is 0, or above what epsilon and delta allow.
        """
        largest = _rho_of(epsilon, delta) if rho is None else rho
        return cls(epsilon=epsilon, rho=largest, delta=delta)

    @property
    def is_pure(self) -> bool:
        """Whether no delta is spent."""
        return self.delta is None

    @property
    def failure_note(self) -> str:
        """What may happen with the probability delta, to be read after a guarantee.

        Examples
        --------
        >>> Loss.gaussian(1_000_000_000, Fraction(1, 1_000_000)).failure_note
        '; with a probability of at most 1e-6 it may reveal more than epsilon allows'
        """
        return "" if self.delta is None else f"; {failure_text(self.delta)}"

    @property
    def text(self) -> str:
        """Both numbers of a Gaussian loss, or the epsilon of a pure one.

        Examples
        --------
        >>> Loss.pure(500_000_000).text
        'epsilon 0.5'
        >>> Loss.gaussian(1_000_000_000, Fraction(1, 1_000_000)).text
        'epsilon 1 and delta 1e-6 (rho 0.024355970359)'
        """
        if self.delta is None:
            return f"epsilon {epsilon_text(self.epsilon)}"
        return (
            f"epsilon {epsilon_text(self.epsilon)} and delta {delta_text(self.delta)} "
            f"(rho {rho_text(self.rho)})"
        )


def rho_within(epsilon: int, delta: Fraction) -> int:
    """Largest rho that epsilon and delta allow, rounded down; 0 if it is below 1e-12.

    Parameters
    ----------
    epsilon : int
        Nano-epsilon, above 0.
    delta : Fraction
        Above 0, below 1.

    Examples
    --------
    >>> rho_within(2_000_000_000, Fraction(1, 1_000_000))
    88152688379
    """
    return _rho_of(epsilon, delta)


def largest_pure_epsilon(rho: int) -> int:
    """Largest nano-epsilon whose pure mechanisms cost at most a rho.

    Parameters
    ----------
    rho : int
        Rho in units of 1e-12; nothing is left of one below 0.

    Examples
    --------
    >>> largest_pure_epsilon(462_117_157_261), largest_pure_epsilon(-1)
    (1000000000, 0)
    """
    low, high = 0, MAX_EPSILON * NANO
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if pure_rho(middle) <= rho else (low, middle - 1)
    return low


def rho_text(pico: int) -> str:
    """Shortest decimal text of a rho.

    Parameters
    ----------
    pico : int
        Rho in units of 1e-12.

    Examples
    --------
    >>> rho_text(24_355_970_359), rho_text(PICO)
    ('0.024355970359', '1')
    """
    return f"{pico // PICO}.{pico % PICO:012d}".rstrip("0").rstrip(".")


_PICO: Final = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class LossMeasure:
    """A measure of privacy loss that adds up, in whole parts.

    Parameters
    ----------
    name : {"epsilon", "rho"}
        Pure differential privacy, or zero-concentrated differential privacy [1]_.
    parts : int
        Parts of 1: 1e9 of epsilon, 1e12 of rho.

    References
    ----------
    .. [1] M. Bun, T. Steinke, "Concentrated Differential Privacy", TCC 2016, arXiv:1605.02065.

    Examples
    --------
    >>> RHO.text(24_355_970_359), EPSILON.text(500_000_000)
    ('0.024355970359', '0.5')
    """

    name: Literal["epsilon", "rho"]
    parts: int

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

        One of epsilon e costs e^2 / 8 in rho, since its log-ratios lie in an interval of length e
        [1]_.

        References
        ----------
        .. [1] M. Cesar, R. Rogers, "Bounding, Concentrating, and Truncating: Unifying Privacy Loss
           Composition for Data Analytics", ALT 2021, arXiv:2004.07223.

        Examples
        --------
        >>> RHO.of_selections(np.array([125_000_000_000])).tolist()
        [1000000000]
        """
        return amounts if self.is_pure else self._roots(amounts, 8)

    def of_pure(self, amounts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Nano-epsilon of any pure mechanisms that cost these amounts, rounded down.

        One of epsilon e costs at most e^2 / 2 in rho [1]_.

        References
        ----------
        .. [1] Bun, Steinke, TCC 2016, proposition 3.3.

        Examples
        --------
        >>> RHO.of_pure(np.array([500_000_000_000])).tolist()
        [1000000000]
        """
        return amounts if self.is_pure else self._roots(amounts, 2)

    def _roots(self, amounts: NDArray[np.int64], times: int) -> NDArray[np.int64]:
        """Integer parts of nano * sqrt(times * rho), computed once for each distinct amount."""
        different, which = np.unique(amounts, return_inverse=True)
        roots = [isqrt(times * amount * NANO**2 // self.parts) for amount in different.tolist()]
        return np.array(roots, np.int64)[which.reshape(amounts.shape)]


EPSILON: Final = LossMeasure(name="epsilon", parts=NANO)
"""Nano-epsilon of pure differential privacy."""

RHO: Final = LossMeasure(name="rho", parts=_PICO)
"""Parts of 1e-12 of rho of zero-concentrated differential privacy."""
