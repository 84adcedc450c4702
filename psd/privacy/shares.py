"""Shares of a loss, in integers.

Every share is rounded down and the remainder goes to the last level, so that the shares of a
path sum to exactly the total.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from psd.errors import ParameterError
from psd.privacy.epsilon import parse_decimal

__all__ = [
    "cube_root",
    "geometric_shares",
    "parse_share",
    "root_shares",
    "share",
    "split_total",
    "uniform_shares",
    "weighted_shares",
]


def share(name: str, value: str | float | Decimal) -> Decimal:
    """Read a share of epsilon, a decimal in [0, 1).

    Raises
    ------
    ParameterError
        If the value is not a decimal number in [0, 1).
    """
    number = parse_decimal(name, value)
    if not 0 <= number < 1:
        raise ParameterError(f"{name} must be in [0, 1), got {value}; it is a share of epsilon")
    return number


def parse_share(name: str, value: str | float | Decimal) -> Fraction:
    """Read a share of epsilon, as `share`, as an exact fraction."""
    return Fraction(share(name, value))


def weighted_shares(total: int, weights: Sequence[int]) -> tuple[int, ...]:
    """Share ``total`` in proportion to integer weights, the remainder to the last one.

    P1. Every share but the last is rounded down; the shares sum to exactly ``total``.
    """
    weight_sum = sum(weights)
    if total < 0 or weight_sum <= 0 or min(weights) < 0:
        raise ParameterError("shares need a total of at least 0 and weights that sum above 0")
    shares = [total * weight // weight_sum for weight in weights[:-1]]
    return (*shares, total - sum(shares))


def split_total(loss: int, share: Decimal) -> tuple[int, int]:
    """Split a loss into what is left for the method, and a share of it, at least 1 each.

    Parameters
    ----------
    loss : int
        In parts of its measure.
    share : Decimal
        Part of the loss, for example for a noisy total that decides the size of a method.

    Returns
    -------
    left, paid : int
        They sum to the loss.

    Raises
    ------
    ParameterError
        If the loss is 1, which cannot be split.

    Examples
    --------
    >>> split_total(1_000, Decimal("0.02"))
    (980, 20)
    """
    if loss < 2:
        raise ParameterError("epsilon 1e-9 cannot be split; give the size of the method")
    paid = max(1, int(loss * Fraction(share)))
    return loss - paid, paid


def uniform_shares(total: int, levels: int) -> tuple[int, ...]:
    """Give every level the same share of the loss.

    Examples
    --------
    >>> uniform_shares(9, 3)
    (3, 3, 3)
    """
    return weighted_shares(total, (1,) * levels)


def geometric_shares(total: int, levels: int, *, fanout: int = 4) -> tuple[int, ...]:
    """Share a loss so that each level gets cbrt(fanout / 2) times the level above.

    With fan-out 4 the ratio is 2^(1/3), the optimum for rectangles, which touch about twice as
    many maximal nodes on each level down; with fan-out 2 two binary levels make one such step.

    References
    ----------
    .. [1] Cormode, Procopiuc, Srivastava, Shen, Yu. "Differentially Private Spatial
       Decompositions." ICDE 2012, section 4.2. https://doi.org/10.1109/ICDE.2012.16
    """
    doublings = Fraction(1) if fanout == 4 else Fraction(1, 2)
    return weighted_shares(total, [_cube_root_power(level * doublings) for level in range(levels)])


def root_shares(total: int, weights: Sequence[Decimal], degree: int) -> tuple[int, ...]:
    """Share a loss in proportion to a root of weights, the remainder to the last one.

    P2. Minimises the sum of ``weight / share^(degree - 1)`` over shares of this total: at the
    optimum the derivatives ``weight / share^degree`` are equal, so a share is in proportion to the
    root of its weight. Counts with noise of scale 1 / share have a mean absolute error in
    proportion to 1 / share, so degree 2 minimises the sum of weighted absolute errors; they have a
    variance in proportion to 1 / share^2, so degree 3 minimises the sum of weighted squared errors.
    """
    roots = [_integer_root(int(weight * 2 ** (32 * degree)), degree) for weight in weights]
    return weighted_shares(total, roots)


def cube_root(value: int) -> int:
    """floor(value^(1/3) * 2^64), by integers, the same everywhere."""
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
