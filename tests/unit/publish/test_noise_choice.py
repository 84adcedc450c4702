"""Which law auto chooses, and the variance of the leaves by which it chooses for quadtrees."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from psd.decompositions import method as method_of
from psd.decompositions.quadtree import Quadtree
from psd.privacy.count_noise import CountNoise
from psd.privacy.unit import PrivacyUnit
from psd.publish.noise_choice import NoisePlan, chosen_law, leaf_variance

DELTA = Fraction(1, 10**6)


def plan(epsilon, slices, rows=1, delta=DELTA, nano=10**9):
    numbers = {"contributions": slices * rows, "per_question": rows, "slices": slices}
    return NoisePlan(epsilon=int(epsilon * nano), delta=delta, **numbers)


def test_the_rule_of_cascades(subtests):
    laws = {
        **dict.fromkeys([(0.3, 1), (0.3, 4), (1, 1), (1, 4), (3, 4)], "laplace"),
        **dict.fromkeys([(0.3, 5), (0.3, 52), (1, 12), (1, 52), (3, 12)], "gaussian"),
    }
    for (epsilon, slices), law in laws.items():
        for name, rows in itertools.product(("auto", "cascade"), (1, 4)):
            with subtests.test(name, epsilon=epsilon, slices=slices, rows=rows):
                assert chosen_law(method_of(name, {}), plan(epsilon, slices, rows)) == law


def test_of_a_cube_all_lengths_of_time_decide():
    cube = method_of("cube", {})
    caps = [1, 2, 4, 8, 12, 12]  # of 1, 2, 4, ..., 32 slices
    own = NoisePlan(epsilon=10**9, delta=DELTA, contributions=12, slices=48)
    assert own.of_axis == pytest.approx(np.prod(caps) ** (1 / 6))
    laws = {k: chosen_law(cube, replace(own, contributions=k)) for k in (1, 4, 8, 48)}
    assert laws == {1: "laplace", 4: "laplace", 8: "gaussian", 48: "gaussian"}
    # Without a bound in each slice, one slice may hold all records of a user.
    assert chosen_law(cube, replace(own, contributions=48, per_question=48)) == "laplace"
    assert chosen_law(cube, replace(own, contributions=48, slices=1)) == "laplace"


def test_the_leaves_of_a_quadtree_decide():
    laws = {1: "laplace", 4: "gaussian", 12: "gaussian", 52: "gaussian"}
    assert {slices: chosen_law(Quadtree(), plan(1, slices)) for slices in laws} == laws
    alone = Quadtree(budget="leaf")  # one count on each path gains later
    assert chosen_law(alone, plan(1, 4)) == "laplace"
    assert chosen_law(alone, plan(1, 12)) == "gaussian"
    # Gaussian noise of a very large rho has a variance of 0 in floating point.
    assert leaf_variance((0, 900 * 10**12), CountNoise.gaussian(1)) == 0
    grid = method_of("grid", {})  # one count needs less noise
    assert chosen_law(grid, plan(3, 12)) == "laplace"  # .99 of epsilon
    assert chosen_law(grid, plan(3, 13)) == "gaussian"
    # Without delta or slices it is Laplace.
    assert chosen_law(Quadtree(), plan(1, 52, delta=None)) == "laplace"
    assert chosen_law(Quadtree(), plan(0.001, 1, delta=Fraction(9, 10**4))) == "laplace"
    tiny = plan(1, 52, delta=Fraction(1, 10**300), nano=1)  # rho is below 1e-12
    assert (tiny.rho, chosen_law(Quadtree(), tiny)) == (0, "laplace")


def test_k_and_the_records_that_one_question_sees(subtests):
    for unit, scope, limits in (
        ({}, "series", (1, 1)),
        ({"kind": "user", "max_contributions": 9}, "series", (9, 9)),
        ({"kind": "user", "max_contributions": 9, "max_per_slice": 2}, "series", (9, 2)),
        ({"kind": "user", "max_contributions": 2}, "slice", (24, 2)),
        ({"kind": "user", "weight": 720_720}, "series", (720_720, 720_720)),
    ):
        with subtests.test(unit=unit):
            found = NoisePlan.of(10**9, DELTA, PrivacyUnit(**unit), scope, 12)
            assert (found.contributions, found.per_question) == limits
            assert found.gaussian.squared_sensitivity == limits[0] * limits[1]
            assert found.laplace.squared_sensitivity == limits[0] ** 2


def test_the_variance_of_leaves_is_that_of_least_squares(subtests):
    for budget in ("geometric", "uniform", "leaf"):
        shares = Quadtree(height=3, budget=budget).level_shares(10**10)
        for noise in (CountNoise.laplace(3), CountNoise.gaussian(12)):
            with subtests.test(budget, noise=noise):
                expected = pytest.approx(dense_variance(shares, noise), rel=1e-12)
                assert leaf_variance(shares, noise) == expected


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
