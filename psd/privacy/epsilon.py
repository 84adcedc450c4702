"""Epsilon as an integer number of 1e-9, read from decimal text.

Floats cannot represent a budget: 0.1 + 0.2 > 0.3 would refuse a valid charge, and 1.0 + 1e-17 ==
1.0 would spend without a charge. `psd.privacy.shares` divides epsilon.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from psd.errors import ParameterError

__all__ = [
    "MAX_EPSILON",
    "NANO",
    "epsilon_decimal",
    "epsilon_text",
    "parse_decimal",
    "parse_epsilon",
]

NANO = 10**9
MAX_EPSILON = 1_000

_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)


def parse_epsilon(value: str | float | Decimal) -> int:
    """Read epsilon, above 0 and at most 1,000, as nano-epsilon; a float counts as its ``repr``."""
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
    """Epsilon of a nano-epsilon number."""
    return Decimal(epsilon_text(nano))


def epsilon_text(nano: int) -> str:
    """Shortest decimal text of a nano-epsilon number."""
    return f"{nano // NANO}.{nano % NANO:09d}".rstrip("0").rstrip(".")
