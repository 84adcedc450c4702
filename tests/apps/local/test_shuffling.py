"""Shuffled reports: the pair of the clone theorem, against plain sums, goldens and coins."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from psd.apps.local.description import check_delta, shuffled_delta, shuffled_epsilon
from psd.errors import ParameterError

GOLDENS = [
    (0.5, 10**5, 1e-6, 0.005813), (1, 10**4, 1e-6, 0.053005), (1, 10**5, 1e-6, 0.015282),
    (1, 10**6, 1e-6, 0.004335), (2, 10**6, 1e-6, 0.012958), (4, 10**6, 1e-6, 0.049307),
    (1, 10**7, 1e-8, 0.001809),
]  # fmt: skip


@pytest.mark.parametrize(
    "goldens", [GOLDENS[:-1], pytest.param(GOLDENS[-1:], marks=pytest.mark.deep)], ids=len
)
def test_goldens(goldens):
    """local.md, section H."""
    for epsilon, reports, delta, expected in goldens:
        result = shuffled_epsilon(epsilon, reports, delta)
        assert round(result, 6) == expected
        assert shuffled_delta(result, epsilon, reports) <= delta


def plain_delta(central, epsilon, reports):
    growth, keep, total = math.exp(central), math.exp(epsilon) / (math.exp(epsilon) + 1), 0.0
    for c in range(reports):
        a = np.arange(c + 2)
        f, g = binom.pmf(a - 1, c, 0.5), binom.pmf(a, c, 0.5)
        excess = keep * f + (1 - keep) * g - growth * ((1 - keep) * f + keep * g)
        total += binom.pmf(c, reports - 1, math.exp(-epsilon)) * np.maximum(excess, 0).sum()
    return total


def test_two_tails_are_the_plain_sum():
    """Numbers of clones that are not summed are added as if they told all: never below."""
    for question in product((0, 0.1, 0.29, 0.7), (0.3, 1, 3), (1, 2, 60)):
        assert -1e-13 < shuffled_delta(*question) - plain_delta(*question) < 1e-10
    assert shuffled_epsilon(1000.0, 10**6, 1e-6) == 1000
    assert shuffled_epsilon(1e-9, 10**6, 0.5) == 0
    assert shuffled_epsilon(4.0, 100, 1e-9) <= 4
    assert check_delta("1e-6") == 1e-6
    for delta in (None, 0, 1, -1e-6, "nan", "x", math.inf):
        with pytest.raises(ParameterError, match="delta must be a number above 0"):
            check_delta(delta)


@pytest.mark.deep
def test_one_report_is_not_shuffled_and_the_largest_number_is_a_limit():
    assert shuffled_epsilon(1.0, 1, 1e-6) == pytest.approx(1, abs=1e-5)
    assert shuffled_epsilon(1.0, 10**8, 1e-6) == shuffled_epsilon(1.0, 10**12, 1e-6)
