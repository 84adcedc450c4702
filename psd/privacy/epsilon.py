"""Epsilon as an integer number of 1e-9, and the ways to share it out.

Floats cannot keep a budget: 0.1 + 0.2 > 0.3 refuses what is allowed and 1.0 + 1e-17 == 1.0
spends for nothing. Here epsilon is an integer count of nano-epsilon, read from decimal text,
and every share is rounded down with the remainder going to the last level, so that the shares
of a path sum to exactly the whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from psd.errors import ParameterError

__all__ = [
    "MAX_EPSILON",
    "NANO",
    "cube_root",
    "epsilon_text",
    "geometric_shares",
    "parse_epsilon",
    "parse_share",
    "split_total",
    "uniform_shares",
    "weighted_shares",
]

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
        If the text is no decimal number or out of range.

    Examples
    --------
    >>> parse_epsilon("0.1"), parse_epsilon(1)
    (100000000, 1000000000)
    """
    number = _decimal("epsilon", value)
    if number <= 0:
        raise ParameterError(f"epsilon {value} is not above 0; usual values are 0.1 to 10")
    if number > MAX_EPSILON:
        raise ParameterError(
            f"epsilon {value} is above {MAX_EPSILON:,}; usual values are 0.1 to 10"
        )
    nano = Fraction(number) * NANO
    if nano.denominator != 1:
        raise ParameterError(
            f"epsilon {value} has more than nine decimals; round it down, for instance to nine"
        )
    return nano.numerator


def parse_share(name: str, value: str | float | Decimal) -> Fraction:
    """Read a share of epsilon, a decimal in [0, 1), as an exact fraction.

    Raises
    ------
    ParameterError
        If the value is no decimal number in [0, 1).
    """
    number = _decimal(name, value)
    if not 0 <= number < 1:
        raise ParameterError(f"{name} {value} is not in [0, 1); it is a share of epsilon")
    return Fraction(number)


def _decimal(name: str, value: str | float | Decimal) -> Decimal:
    """Decimal of plain ASCII text; exponents stay small, so no number explodes."""
    text = str(value)  # of a float, as few digits as tell it from all others
    if isinstance(value, bool) or not _DECIMAL.fullmatch(text):
        raise ParameterError(f"{name} {text!r} is not a decimal number such as 0.5")
    return Decimal(text)


def epsilon_text(nano: int) -> str:
    """Shortest decimal text of a nano-epsilon number.

    Examples
    --------
    >>> epsilon_text(100_000_000), epsilon_text(2_000_000_000)
    ('0.1', '2')
    """
    return f"{nano // NANO}.{nano % NANO:09d}".rstrip("0").rstrip(".")


def weighted_shares(total: int, weights: Sequence[int]) -> tuple[int, ...]:
    """Share ``total`` in proportion to integer weights, the remainder to the last one.

    Guarantees
    ----------
    - Every share but the last is rounded down; the shares sum to exactly ``total``.

    Parameters
    ----------
    total : int
        Nano-epsilon to share out, at least 0.
    weights : sequence of int
        Non-negative, not all zero, from the root to the leaves.

    Returns
    -------
    tuple of int
        Nano-epsilon of each level.

    Examples
    --------
    >>> weighted_shares(10, (1, 1, 1))
    (3, 3, 4)
    """
    whole = sum(weights)
    if total < 0 or whole <= 0 or min(weights) < 0:
        raise ParameterError("shares need a total of at least 0 and weights that sum above 0")
    shares = [total * weight // whole for weight in weights[:-1]]
    return (*shares, total - sum(shares))


def split_total(epsilon: int, share: Decimal) -> tuple[int, int]:
    """Nano-epsilon for the method, and for a noisy total that sets its size; at least one each.

    Raises
    ------
    ParameterError
        If epsilon is one nano-epsilon, which cannot be split.

    Examples
    --------
    >>> split_total(1_000, Decimal("0.02"))
    (980, 20)
    """
    if epsilon < 2:
        raise ParameterError("epsilon 1e-9 cannot be split; give the size of the method")
    paid = max(1, int(epsilon * Fraction(share)))
    return epsilon - paid, paid


def uniform_shares(total: int, levels: int) -> tuple[int, ...]:
    """Give every level the same share of epsilon.

    Examples
    --------
    >>> uniform_shares(9, 3)
    (3, 3, 3)
    """
    return weighted_shares(total, (1,) * levels)


def geometric_shares(total: int, levels: int, *, fanout: int = 4) -> tuple[int, ...]:
    """Share epsilon so that each level gets cbrt(fanout / 2) times the level above.

    With fan-out 4 the ratio is 2^(1/3), the optimum for rectangles, which touch about twice as
    many maximal nodes on each level down; with fan-out 2 two binary levels make one such step.

    Parameters
    ----------
    total : int
        Nano-epsilon to share out.
    levels : int
        Number of levels from the root (level 0) to the leaves, at least 1.
    fanout : int
        Number of children of a node, 4 or 2.

    Returns
    -------
    tuple of int
        Nano-epsilon of each level, root first.

    References
    ----------
    .. [1] Cormode, Procopiuc, Srivastava, Shen, Yu. "Differentially Private Spatial
       Decompositions." ICDE 2012, section 4.2. https://doi.org/10.1109/ICDE.2012.16

    Examples
    --------
    >>> geometric_shares(1_000_000_000, 3)
    (259921049, 327480002, 412598949)
    """
    doublings = Fraction(1) if fanout == 4 else Fraction(1, 2)
    return weighted_shares(total, [_cube_root_power(level * doublings) for level in range(levels)])


def cube_root(value: int) -> int:
    """floor(value^(1/3) * 2^64), by integers, the same everywhere.

    Examples
    --------
    >>> cube_root(8) == 2 << 64
    True
    """
    return _integer_root(value << 3 * 64, 3)


def _cube_root_power(exponent: Fraction) -> int:
    """floor(2^(exponent / 3) * 2^64) for a multiple of 1/2, by integers, the same everywhere."""
    sixths = int(exponent * 2)
    return _integer_root(1 << (sixths + 6 * 64), 6)


def _integer_root(value: int, degree: int) -> int:
    """Largest integer whose ``degree``-th power is at most ``value`` (Newton from above)."""
    guess = 1 << -(-value.bit_length() // degree)
    while True:
        better = ((degree - 1) * guess + value // guess ** (degree - 1)) // degree
        if better >= guess:
            return guess
        guess = better
