"""Epsilon and delta from text, and back; shares of epsilon, which sum to the whole."""

import re
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product
from math import isqrt

import numpy as np
import pytest

from psd.errors import ParameterError
from psd.privacy.budget import (
    _cube_root_power,
    cube_root,
    geometric_shares,
    root_shares,
    share,
    split_total,
    uniform_shares,
    weighted_shares,
)
from psd.privacy.loss import (
    NANO,
    delta_text,
    epsilon_decimal,
    epsilon_text,
    is_delta,
    parse_decimal,
    parse_delta,
    parse_epsilon,
)


def test_epsilon_is_read_exactly(subtests):
    for nano, values in {
        # Text, a float as its repr, and zeros beyond nine decimals.
        100_000_000: ("0.1", 0.1, np.float64(0.1), "0.1000000000000"),
        NANO: (1,),
        2 * NANO: (np.int64(2), "2."),
        250_000_000: (Decimal("0.25"),),
        1_001_000_000: ("1.001",),  # above its float in nano-units
        290_000_000: ("0.29",),  # below its float in nano-units
        1: ("1e-9", 1e-9),
        1000 * NANO: ("1000", "1E3"),
        NANO // 2: ("+.5",),
    }.items():
        for value in values:
            with subtests.test(value=value):
                assert parse_epsilon(value) == nano
                assert type(parse_epsilon(value)) is int


def test_bad_epsilon_is_refused_with_one_sentence(subtests):
    above, most = "be above 0, got {}; {}", "be at most 1,000, got {}; {}"
    places = "have at most nine decimals, got {}; round it down"
    number = "be a decimal number such as 0.5, got '{}'"
    for rule, values in {
        places: ("0.1234567891", 0.1 + 0.2, "1e-400"),
        above: ("0", "-0.5"),
        most: ("1000.000000001", "1e9"),
        number: (
            *("nan", float("nan"), Decimal("NaN"), "inf", float("inf")),
            *("abc", "0,5", "1/3", "1_0", "1e99999", "\u0660.\u0665", " 1", "1\n", ""),
            *(True, np.True_, None),
        ),
    }.items():
        for value in values:
            with subtests.test(value=value):
                with pytest.raises(ParameterError) as refusal:
                    parse_epsilon(value)
                shown = repr(str(value))[1:-1] if rule == number else value
                said = rule.format(shown, "usual values are 0.1 to 10")
                assert str(refusal.value) == f"epsilon must {said}"


def test_text_of_epsilon_is_read_back():
    texts = {1: "0.000000001", 100_000_000: "0.1", 100 * NANO + 1: "100.000000001"}
    for nano, text in {**texts, NANO: "1", 10 * NANO: "10", 1000 * NANO: "1000"}.items():
        assert epsilon_text(nano) == text
        assert epsilon_decimal(nano) == Decimal(text)
        assert parse_epsilon(text) == nano
    with pytest.raises(ParameterError, match=r"number such as 0\.5, got 'half'"):
        parse_decimal("epsilon", "half")


def test_delta_is_read_exactly(subtests):
    for text, exact in (
        ("1e-6", Fraction(1, 10**6)),
        ("0.000001", Fraction(1, 10**6)),
        (".00099999", Fraction(99999, 10**8)),
        ("0.00000100000000000000000000", Fraction(1, 10**6)),
        (1e-9, Fraction(1, 10**9)),
        (Decimal("2.5E-8"), Fraction(25, 10**9)),
        ("1e-300", Fraction(1, 10**300)),
    ):
        with subtests.test(text=text):
            assert parse_delta(text) == exact
    for text in ("1e-6", "2.5e-8", "9.99999999999999e-4", "1e-300", "1.2e-10"):
        assert delta_text(parse_delta(text)) == text
        assert is_delta(text)
    others = ("0.000001", "1E-6", "1.0e-6", "1e-06", "1e-2", "abc", "", "1" * 41, 1e-6, 5, None)
    assert [other for other in others if is_delta(other)] == []


def test_other_deltas_are_refused(subtests):
    usual = "; usual values"
    for text, sentence in (
        ("0", "above 0 and below 0.001, got 0; usual values are 1e-9 to 1e-5"),
        *((text, f"above 0 and below 0.001, got {text}{usual}") for text in ("1", "1e-2", "1e-3")),
        ("-1", f"above 0 and below 0.001, got -1{usual}"),
        ("NaN", "a decimal number such as 1e-6, got 'NaN'"),
        (float("inf"), "a decimal number such as 1e-6, got 'inf'"),
        ("1e-400", f"at least 1e-300, got 1e-400{usual}"),
        ("1e-12345", "a decimal number such as 1e-6, got '1e-12345'"),
        ("1.0000000000000001e-6", "of at most 15 digits, got 1.0000000000000001e-6; round it down"),
        ("", "a decimal number such as 1e-6, got ''"),
        (True, "a decimal number such as 1e-6, got 'True'"),
    ):
        words = "^" + re.escape(f"delta must be {sentence}")
        with subtests.test(text=text):
            with pytest.raises(ParameterError, match=words) as caught:
                parse_delta(text)
            assert (caught.value.name, caught.value.value) == ("delta", str(text))


# Shares of epsilon: exact fractions that sum to the whole


def test_share_is_exact(subtests):
    for value, exact in (("0", 0), ("0.02", "1/50"), (np.float64(0.3), "3/10"), (0.1, "1/10")):
        decimal = share("total_share", value)
        assert type(decimal) is Decimal
        assert decimal == Fraction(exact)
    for value in ("1", "-0.1", "2", "nan", "1/3", True):
        with subtests.test(value=value), pytest.raises(ParameterError, match="total_share"):
            share("total_share", value)


def test_weighted_shares_round_down_and_leave_the_rest_to_the_leaves():
    assert weighted_shares(100, (1, 1, 1)) == (33, 33, 34)
    assert weighted_shares(10, (0, 0, 3)) == (0, 0, 10)
    assert weighted_shares(2, (1, 1, 1, 1)) == (0, 0, 0, 2)
    assert weighted_shares(0, (1, 1)) == (0, 0)
    assert uniform_shares(NANO, 3) == (333_333_333, 333_333_333, 333_333_334)
    for nothing in ((-1, (1, 1)), (1, ()), (1, (0, 0)), (1, (2, -1))):
        with pytest.raises(ParameterError):
            weighted_shares(*nothing)


def _cube_root(n):
    low, high = 0, n
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**3 <= n else (low, middle - 1)
    return low


def test_geometric_shares_are_the_floor_of_the_exact_ones():
    # 2^(level / 3) for three levels, by integers: cube roots of 1, 2 and 4 with 60 digits.
    roots = [_cube_root(n * 10**180) for n in (1, 2, 4)]
    total, whole = 987_654_321, sum(roots)
    expected = [total * root // whole for root in roots[:-1]]
    assert geometric_shares(total, 3) == (*expected, total - sum(expected))
    # They grow by the cube root.
    for levels, (fanout, ratio) in product(range(2, 14), ((4, 2 ** (1 / 3)), (2, 2 ** (1 / 6)))):
        shares = geometric_shares(10**15, levels, fanout=fanout)
        for above, below in pairwise(shares):
            assert below / above == pytest.approx(ratio, rel=1e-9)


def test_cube_roots_and_their_powers_are_the_floor_of_the_exact_ones():
    for value in (1, 2, 3, 8, 10**6, 10**6 + 1):
        root = cube_root(value)
        assert type(root) is int
        assert root == _cube_root(value * 2**192)
    for sixths in range(8):
        power = _cube_root_power(Fraction(sixths, 2))
        assert type(power) is int
        assert power**6 <= 2 ** (sixths + 384) < (power + 1) ** 6


def test_a_total_is_split_and_nothing_lost():
    for epsilon, fraction, parts in (
        (2, "0.02", (1, 1)),
        (3, "0", (2, 1)),
        (1_000, "0.02", (980, 20)),
        (1_001, "0.5", (501, 500)),
        (NANO, "0.333", (667_000_000, 333_000_000)),
    ):
        assert split_total(epsilon, Decimal(fraction)) == parts
    with pytest.raises(ParameterError, match="cannot be split"):
        split_total(1, Decimal("0.5"))


def test_root_shares_follow_roots_of_32_binary_places():
    total, one = 10**18, 2**32
    two = isqrt(2 * one**2)
    assert root_shares(total, [Decimal(2), Decimal(1)], 2)[0] == total * two // (two + one)
    assert root_shares(900, [Decimal(8), Decimal(1)], 3) == (600, 300)
    assert root_shares(900, [Decimal("0.25"), Decimal("0.0625")], 2) == (600, 300)
    assert sum(root_shares(total, [Decimal(3), Decimal(7), Decimal(5)], 3)) == total
