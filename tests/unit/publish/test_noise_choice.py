"""Which law auto chooses, and the variance of the leaves by which it chooses for quadtrees."""

from fractions import Fraction

import numpy as np
import pytest

from psd.decompositions import method as method_of
from psd.decompositions.quadtree import Quadtree
from psd.privacy.count_noise import CountNoise
from psd.privacy.unit import PrivacyUnit
from psd.publish.noise_choice import NoisePlan, chosen_law, leaf_variance

DELTA = Fraction(1, 10**6)


def plan(epsilon, slices, rows=1, delta=DELTA):
    return NoisePlan(
        epsilon=int(epsilon * 10**9),
        delta=delta,
        contributions=slices * rows,
        per_question=rows,
        slices=slices,
    )


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize(
    ("epsilon", "slices", "law"),
    [
        (0.3, 1, "laplace"),
        (0.3, 4, "laplace"),
        (0.3, 5, "gaussian"),
        (0.3, 52, "gaussian"),
        (1, 1, "laplace"),
        (1, 4, "laplace"),
        (1, 12, "gaussian"),
        (1, 52, "gaussian"),
        (3, 4, "laplace"),
        (3, 12, "gaussian"),
    ],
)
@pytest.mark.parametrize("name", ["auto", "cascade"])
def test_the_rule_of_cascades(name, epsilon, slices, law, rows):
    assert chosen_law(method_of(name, {}), plan(epsilon, slices, rows)) == law


@pytest.mark.parametrize(
    ("slices", "law"), [(1, "laplace"), (4, "gaussian"), (12, "gaussian"), (52, "gaussian")]
)
def test_the_leaves_of_a_quadtree_decide(slices, law):
    assert chosen_law(Quadtree(), plan(1, slices)) == law
    alone = Quadtree(budget="leaf")  # one count on each path gains later
    assert chosen_law(alone, plan(1, 4)) == "laplace"
    assert chosen_law(alone, plan(1, 12)) == "gaussian"


def test_a_very_large_epsilon_has_no_variance():
    """Gaussian noise of a very large rho has a variance of 0 in floating point."""
    assert leaf_variance((0, 900 * 10**12), CountNoise.gaussian(1)) == 0


def test_other_methods_need_less_noise_in_one_count():
    grid = method_of("grid", {})
    assert chosen_law(grid, plan(3, 12)) == "laplace"  # .99 of epsilon
    assert chosen_law(grid, plan(3, 13)) == "gaussian"


def test_without_delta_or_slices_it_is_laplace():
    assert chosen_law(Quadtree(), plan(1, 52, delta=None)) == "laplace"
    assert chosen_law(Quadtree(), plan(0.001, 1, delta=Fraction(9, 10**4))) == "laplace"
    least = Fraction(1, 10**300)  # rho is below 1e-12
    tiny = NoisePlan(epsilon=1, delta=least, contributions=52, slices=52)
    assert (tiny.rho, chosen_law(Quadtree(), tiny)) == (0, "laplace")


@pytest.mark.parametrize(
    ("unit", "scope", "limits"),
    [
        (PrivacyUnit(), "series", (1, 1)),
        (PrivacyUnit(kind="user", max_contributions=9), "series", (9, 9)),
        (PrivacyUnit(kind="user", max_contributions=9, max_per_slice=2), "series", (9, 2)),
        (PrivacyUnit(kind="user", max_contributions=2), "slice", (24, 2)),
        (PrivacyUnit(kind="user", weight=720_720), "series", (720_720, 720_720)),
    ],
)
def test_k_and_the_records_that_one_question_sees(unit, scope, limits):
    found = NoisePlan.of(10**9, DELTA, unit, scope, 12)
    assert (found.contributions, found.per_question) == limits
    assert found.gaussian.squared_sensitivity == limits[0] * limits[1]
    assert found.laplace.squared_sensitivity == limits[0] ** 2


@pytest.mark.parametrize("noise", [CountNoise.laplace(3), CountNoise.gaussian(12)])
@pytest.mark.parametrize("budget", ["geometric", "uniform", "leaf"])
def test_the_variance_of_leaves_is_that_of_least_squares(budget, noise):
    shares = Quadtree(height=3, budget=budget).level_shares(10**10)
    by_level = leaf_variance(shares, noise)
    assert by_level == pytest.approx(dense_variance(shares, noise), rel=1e-12)


def dense_variance(shares, noise):
    """Variance of a leaf by the normal equations of all counts of a complete tree."""
    height, leaves = len(shares) - 1, 4 ** (len(shares) - 1)
    precision = 1 / noise.variance(np.array(shares, np.int64))
    equations = np.zeros((leaves, leaves))
    for level, each in enumerate(precision):
        size = 4 ** (height - level)
        for first in range(0, leaves, size):
            equations[first : first + size, first : first + size] += each
    return float(np.linalg.inv(equations)[0, 0])
