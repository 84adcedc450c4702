"""Shares of epsilon: exact fractions that sum to the whole."""

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import isqrt

import numpy as np
import pytest

from psd.errors import ParameterError
from psd.privacy.epsilon import NANO
from psd.privacy.shares import (
    _cube_root_power,
    cube_root,
    geometric_shares,
    parse_share,
    root_shares,
    share,
    split_total,
    uniform_shares,
    weighted_shares,
)


@pytest.mark.parametrize(
    ("value", "exact"),
    [("0", 0), ("0.02", Fraction(1, 50)), (np.float64(0.3), Fraction(3, 10)), (0.1, "1/10")],
)
def test_share_is_exact(value, exact):
    decimal = share("total_share", value)
    assert type(decimal) is Decimal
    assert decimal == Fraction(exact)
    assert parse_share("total_share", value) == Fraction(exact)


@pytest.mark.parametrize("read", [share, parse_share])
@pytest.mark.parametrize("value", ["1", "-0.1", "2", "nan", "1/3", True])
def test_bad_share_is_refused_by_name(read, value):
    with pytest.raises(ParameterError, match="total_share"):
        read("total_share", value)


def test_weighted_shares_round_down_and_leave_the_rest_to_the_leaves():
    assert weighted_shares(100, (1, 1, 1)) == (33, 33, 34)
    assert weighted_shares(10, (0, 0, 3)) == (0, 0, 10)
    assert weighted_shares(2, (1, 1, 1, 1)) == (0, 0, 0, 2)
    assert weighted_shares(0, (1, 1)) == (0, 0)


@pytest.mark.parametrize(
    ("total", "weights"),
    [
        pytest.param(-1, (1, 1), id="negative total"),
        pytest.param(1, (), id="no level"),
        pytest.param(1, (0, 0), id="no weight"),
        pytest.param(1, (2, -1), id="negative weight"),
    ],
)
def test_shares_of_nothing_are_refused(total, weights):
    with pytest.raises(ParameterError):
        weighted_shares(total, weights)


def test_uniform_shares_are_equal_but_for_the_rest():
    assert uniform_shares(NANO, 3) == (333_333_333, 333_333_333, 333_333_334)


@pytest.mark.parametrize(("fanout", "ratio"), [(4, 2 ** (1 / 3)), (2, 2 ** (1 / 6))])
@pytest.mark.parametrize("levels", range(2, 14))
def test_geometric_shares_grow_by_the_cube_root(fanout, ratio, levels):
    shares = geometric_shares(10**15, levels, fanout=fanout)
    for above, below in pairwise(shares):
        assert below / above == pytest.approx(ratio, rel=1e-9)


def test_geometric_shares_are_the_floor_of_the_exact_ones():
    # 2^(level / 3) for three levels, by integers: cube roots of 1, 2 and 4 with 60 digits.
    roots = [_cube_root(n * 10**180) for n in (1, 2, 4)]
    total, whole = 987_654_321, sum(roots)
    expected = [total * root // whole for root in roots[:-1]]
    assert geometric_shares(total, 3) == (*expected, total - sum(expected))


@pytest.mark.parametrize("value", [1, 2, 3, 8, 10**6, 10**6 + 1])
def test_cube_roots_are_the_floor_of_the_exact_ones(value):
    root = cube_root(value)
    assert type(root) is int
    assert root == _cube_root(value * 2**192)


@pytest.mark.parametrize("sixths", range(8))
def test_powers_are_the_floor_of_the_exact_ones(sixths):
    power = _cube_root_power(Fraction(sixths, 2))
    assert type(power) is int
    assert power**6 <= 2 ** (sixths + 384) < (power + 1) ** 6


@pytest.mark.parametrize(
    ("epsilon", "fraction", "parts"),
    [
        (2, "0.02", (1, 1)),
        (3, "0", (2, 1)),
        (1_000, "0.02", (980, 20)),
        (1_001, "0.5", (501, 500)),
        (NANO, "0.333", (667_000_000, 333_000_000)),
    ],
)
def test_a_total_is_split_and_nothing_lost(epsilon, fraction, parts):
    assert split_total(epsilon, Decimal(fraction)) == parts


def test_one_nano_epsilon_is_not_split():
    with pytest.raises(ParameterError, match="cannot be split"):
        split_total(1, Decimal("0.5"))


def _cube_root(n):
    low, high = 0, n
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**3 <= n else (low, middle - 1)
    return low


def test_root_shares_follow_roots_of_32_binary_places():
    total, one = 10**18, 2**32
    two = isqrt(2 * one**2)
    assert root_shares(total, [Decimal(2), Decimal(1)], 2)[0] == total * two // (two + one)
    assert root_shares(900, [Decimal(8), Decimal(1)], 3) == (600, 300)
    assert root_shares(900, [Decimal("0.25"), Decimal("0.0625")], 2) == (600, 300)
    assert sum(root_shares(total, [Decimal(3), Decimal(7), Decimal(5)], 3)) == total
