"""Public lists of prices, as multiples of one step."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd.errors import ParameterError

MAX_PRICES = 1_000_000
"""Largest number of prices of a list."""

# Multiples of the step stay exact in scores of 2^32 bids.
_MAX_STEPS = 2**30

_MAX_DIGITS = 12

# Above all lists whose prices are multiples of a step of so many digits.
_LARGEST = Decimal(10) ** 30

_RULE = (
    "prices must be a range such as 0.5..100/0.5, or decimal numbers above 0 in ascending order "
    "such as 1,2.5,10"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """Prices in ascending order, as multiples of their largest common step.

    Guarantees
    ----------
    - `levels` decides each bid by itself.

    Parameters
    ----------
    multiples : tuple of int
        Multiples of the step, ascending, above 0. Public.
    step : Decimal
        Largest number of which all prices are multiples. Public.

    Raises
    ------
    ParameterError
        If there is no price, or a multiple is not above the one before, or too large.

    Examples
    --------
    >>> prices = PriceList.parse("1,2.5,10")
    >>> prices.multiples, prices.step
    ((2, 5, 20), Decimal('0.5'))
    >>> prices.levels(np.array([0.0, 1.0, 3.0, 99.0, np.nan])).tolist()
    [0, 1, 2, 3, -1]
    """

    multiples: tuple[int, ...]
    step: Decimal

    def __post_init__(self) -> None:
        """Check the multiples."""
        if not 1 <= len(self.multiples) <= MAX_PRICES:
            raise ParameterError(
                f"prices must be 1 to {MAX_PRICES:,}, got {len(self.multiples):,}; take a coarser "
                "step"
            )
        steps = np.array(self.multiples, np.float64)
        if steps[0] < 1 or (np.diff(steps) <= 0).any():
            raise ParameterError(f"{_RULE}; is one of them 0, given twice, or out of order?")
        if steps[-1] > _MAX_STEPS:
            raise ParameterError(
                f"prices must be at most {_MAX_STEPS:,} times their common step, {self.step:f}; "
                "round them"
            )

    @classmethod
    def parse(cls, text: str) -> PriceList:
        """Read ``FIRST..LAST/STEP``, or numbers with commas.

        Raises
        ------
        ParameterError
            If the text is neither, or a price is 0, given twice or out of order.
        """
        if ".." not in text:
            return cls.of(parse_price(part) for part in text.split(","))
        ends, _, step_text = text.partition("/")
        if not step_text:
            raise ParameterError(f"{_RULE}, got {text[:80]!r}; a range needs a step")
        first, last = (parse_price(part) for part in ends.split("..", 1))
        step = parse_price(step_text)
        if step == 0 or last < first:
            raise ParameterError(
                f"{_RULE}, got {text[:80]!r}; a range begins with its lowest price"
            )
        if (last - first) / step >= MAX_PRICES:
            raise ParameterError(
                f"prices must be at most {MAX_PRICES:,}, got {text[:80]!r}; take a coarser step"
            )
        return cls.of(first + step * i for i in range(int((last - first) / step) + 1))

    @classmethod
    def of(cls, prices: Iterable[Any]) -> PriceList:
        """List of decimal numbers, in ascending order.

        Raises
        ------
        ParameterError
            If a price is not a number, 0, given twice or out of order.
        """
        numbers = [
            price if isinstance(price, Decimal) else parse_price(str(price)) for price in prices
        ]
        scale = max((_decimals(number) for number in numbers), default=0)
        multiples = [int(number.scaleb(scale)) for number in numbers]
        common = math.gcd(*multiples) or 1
        step = Decimal(common).scaleb(-scale).normalize()
        if step == step.to_integral_value():  # without an exponent
            step = step.quantize(Decimal(1))
        return cls(multiples=tuple(n // common for n in multiples), step=step)

    def __len__(self) -> int:
        return len(self.multiples)

    @property
    def largest(self) -> int:
        """Largest price in steps."""
        return self.multiples[-1]

    def price(self, index: int) -> Decimal:
        """Price with a number, 0 for the lowest."""
        return self.multiples[index] * self.step

    def levels(self, bids: NDArray[np.float64]) -> NDArray[np.int32]:
        """Number of prices that each bid reaches; -1 for a bid that is not a finite number.

        A bid above all prices reaches all of them; a negative one reaches none.
        """
        step = Fraction(self.step)
        prices = np.array([float(multiple * step) for multiple in self.multiples])
        levels = np.searchsorted(prices, bids, side="right").astype(np.int32)
        levels[~np.isfinite(bids)] = -1
        return levels


def parse_price(text: str) -> Decimal:
    """Price in a text: a decimal number of at least 0."""
    try:
        number = Decimal(text.strip()) if text.isascii() and "_" not in text else Decimal("NaN")
    except InvalidOperation:
        number = Decimal("NaN")
    is_price = number.is_finite() and 0 <= number <= _LARGEST
    if not (is_price and _decimals(number) <= _MAX_DIGITS):
        raise ParameterError(f"{_RULE}, got {text.strip()[:80]!r}")
    return number


def _decimals(number: Decimal) -> int:
    """Digits after the point."""
    exponent = number.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0
