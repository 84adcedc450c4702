"""Every registered method on all small data sets and all their neighbours."""

from fractions import Fraction

import pytest
from replay import small_methods, worst_loss

METHODS = [pytest.param(method, id=str(method)) for method in small_methods()]

# Lattice side, k, part of the neighbours checked in one run of the CI, pairs in all.
SPACES = [
    pytest.param(3, 1, 1, 1_980, id="3x3-record"),
    pytest.param(3, 2, 1, 11_880, id="3x3-two-rows"),
    pytest.param(3, 3, 10, 48_180, id="3x3-three-rows-a-tenth"),
    pytest.param(4, 1, 1, 15_504, id="4x4-record"),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("side", "k", "every", "pairs"), SPACES)
def test_no_answer_tells_more_than_epsilon(method, side, k, every, pairs):
    worst, checked = worst_loss(method, side, k, every=every)
    assert abs(checked - pairs / every) <= pairs / every * 0.01
    # The promise is used up: a bound far below it would mean that the check sees too little.
    assert worst == Fraction(1)


@pytest.mark.nightly
@pytest.mark.parametrize("method", METHODS)
def test_three_rows_per_user_in_full(method):
    worst, checked = worst_loss(method, 3, 3)
    assert (worst, checked) == (1, 48_180)
