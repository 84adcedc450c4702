"""Delta as an exact fraction, read from decimal text.

Delta is the probability with which the bound that epsilon gives may fail. It has to be far below
one over the number of users, so numbers from 1e-3 on are refused.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from psd.errors import ParameterError
from psd.privacy.epsilon import parse_decimal

__all__ = ["LEAST_DELTA", "MAX_DELTA", "delta_text", "failure_text", "parse_delta"]

MAX_DELTA = Fraction(1, 1_000)
LEAST_DELTA = Fraction(1, 10**300)
_DIGITS = 15  # a float keeps every decimal number of 15 digits


def parse_delta(value: str | float | Decimal) -> Fraction:
    """Read delta as an exact fraction, above 0 and below 1e-3; a float counts as its ``repr``."""
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
    """Shortest decimal text of a delta, with an exponent."""
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
