"""Counters: goldens of the matrices, and the variance of totals."""

from fractions import Fraction

import numpy as np
import pytest

from psd.streams import counters

# Squared sensitivity, last weight, and largest and mean variance of a total with unit noise.
GOLDEN = {
    52: (2553581050078, 82637, 5.394, 4.684),
    365: (3237021191281, 30997, 8.667, 7.737),
    8760: (4349523354709, 6321, 15.649, 14.390),
}
TREE = {52: (19.73, 10.61), 365: (43.21, 21.99), 8760: (102.25, 50.64)}


@pytest.mark.parametrize("steps", GOLDEN)
def test_goldens_of_the_square_root(steps):
    squared, last, largest, mean = GOLDEN[steps]
    weights = counters.toeplitz_weights(steps)
    assert weights[:3] == (2**20, 524288, 393216)[:steps]
    assert weights[-1] == last
    assert counters.toeplitz_squared_sensitivity(steps) == squared
    variances = np.array(counters.variance_factors("toeplitz", steps), float) * squared
    assert variances.max() == pytest.approx(largest, rel=1e-3)
    assert variances.mean() == pytest.approx(mean, rel=1e-3)


@pytest.mark.parametrize("steps", TREE)
def test_goldens_of_the_tree(steps):
    levels = counters.tree_levels(steps)
    variances = np.array(counters.variance_factors("tree", steps), float) * levels
    assert (variances.max(), variances.mean()) == pytest.approx(TREE[steps], rel=1e-3)


@pytest.mark.parametrize("steps", [1, 2, 7, 40])
def test_the_sensitivity_is_that_of_all_columns(steps):
    """No column of C has a larger norm, and the norm is that of a change of one step."""
    weights = np.array(counters.toeplitz_weights(steps), object)
    matrix = [[weights[t - s] if t >= s else 0 for s in range(steps)] for t in range(steps)]
    norms = [sum(row[s] ** 2 for row in matrix) for s in range(steps)]
    assert max(norms) == norms[0] == counters.toeplitz_squared_sensitivity(steps)


@pytest.mark.parametrize("steps", [1, 2, 7, 40])
def test_totals_of_the_square_root_are_running_totals(steps):
    weights, row = counters.toeplitz_weights(steps), counters.toeplitz_row(steps)
    x = np.arange(steps) % 5 + 1.0
    published = [sum(weights[t - s] * x[s] for s in range(t + 1)) for t in range(steps)]
    totals = [row[: t + 1][::-1] @ published[: t + 1] for t in range(steps)]
    assert totals == pytest.approx(np.cumsum(x), abs=1e-6)


@pytest.mark.parametrize("steps", [1, 5, 8, 37])
def test_blocks_fill_the_steps_and_end_where_they_are_closed(steps):
    covered = []
    for level, last in counters.blocks_of(steps):
        assert level in counters.blocks_closed(last)
        covered += range(last - 2**level + 1, last + 1)
    assert covered == list(range(steps))
    closed = [level for step in range(steps) for level in counters.blocks_closed(step)]
    assert max(closed) + 1 == counters.tree_levels(steps)
    assert closed.count(0) == steps


def test_variances_of_blocks_follow_from_those_of_their_halves():
    for level in range(1, 12):
        half = counters.block_variance(level - 1)
        assert counters.block_variance(level) == 1 / (1 + 1 / (2 * half))
    assert counters.variance_factors("slices", 2) == [Fraction(1), Fraction(2)]
