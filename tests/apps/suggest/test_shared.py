"""Features, the part of one person, and the weights that follow from sums."""

import numpy as np
import pytest

from psd.apps.suggest.models import (
    FEATURES,
    RegionGrid,
    differences,
    features,
    person_part,
    solve_weights,
)
from psd.privacy.count_noise import Statistic, deviation, fill_symmetric, triangle
from support.suggestions import city_release


@pytest.fixture(scope="module")
def grid():
    return RegionGrid.of_release(city_release(), 10)


def test_features_of_a_region_and_of_a_seen_one(grid):
    first, second, target = 3, 27, 14
    described = features(grid, np.array([first, second, second]), np.array([target, second]))
    near = grid.distances(np.array([first, second]), np.array([target]))[0]
    for index, scale in enumerate((1.5, 3, 6, 12)):
        assert described[0, index] == pytest.approx(np.log1p(4 * np.exp(-near / scale).sum()))
    assert described[:, 4].tolist() == [0, 1]
    assert described[0, 5] == pytest.approx(np.log1p(grid.count[target]))
    assert described.shape == (2, len(FEATURES))
    regions = np.array([5, 5, 60])
    rows = differences(grid, regions)
    assert rows.shape == (3 * 64, 6)
    assert (np.linalg.norm(rows, axis=1) <= 1 + 1e-12).all()
    described = features(grid, np.array([5, 5]), np.append(grid.contrasts, 60))
    unscaled = described[-1] - described[:-1]
    scaled = unscaled / np.maximum(np.linalg.norm(unscaled, axis=1), 1)[:, None]
    assert rows[-64:] == pytest.approx(scaled)


def test_the_part_of_a_person_is_least_squares_and_so_are_weights(grid):
    regions = np.array([5, 8, 60, 61])
    (row, gramian), (_, right) = person_part(grid, regions)
    rows = differences(grid, regions)
    assert row.tolist() == [0]
    assert fill_symmetric(gramian[0], 6) == pytest.approx(rows.T @ rows / 64)
    assert right[0] == pytest.approx(rows.sum(0) / 64)
    for regions in ([], [7]):
        part = person_part(grid, np.array(regions, np.int64))
        assert [(len(rows), values.shape) for rows, values in part] == [(0, (0, 21)), (0, (0, 6))]
    rows = np.random.default_rng(0).normal(size=(99, 6))
    solved = solve_weights(triangle(rows.T @ rows), rows.sum(0), 0)
    assert solved == pytest.approx(np.linalg.lstsq(rows, np.ones(99))[0])
    gramian = triangle(np.diag([1e4, 1e4, 1e4, 1e4, -3.0, 0.0]))
    weights = solve_weights(gramian, np.full(6, 40.0), 10.0)
    assert weights == pytest.approx([0.004] * 4 + [0.25] * 2)


def test_a_triangle_holds_each_number_once_and_a_statistic_has_the_noise_of_its_share():
    matrix = np.random.default_rng(0).normal(size=(4, 5, 5))
    matrix += matrix.transpose(0, 2, 1)
    assert triangle(matrix).shape == (4, 15)
    assert fill_symmetric(triangle(matrix), 5) == pytest.approx(matrix)
    table = [Statistic(name="a", rows=1, width=1), Statistic(name="b", rows=2, width=3, share=3)]
    assert deviation(table, 0, 8 * 10**12) == pytest.approx(0.5)
    assert deviation(table, 1, 8 * 10**12) == pytest.approx((1 / 12) ** 0.5)
