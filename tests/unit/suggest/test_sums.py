"""Tables of sums, and the noise that they get."""

import numpy as np
import pytest

from psd.suggest.sums import Statistic, deviation, fill_symmetric, triangle


def test_a_triangle_holds_each_number_once_and_a_statistic_has_the_noise_of_its_share():
    matrix = np.random.default_rng(0).normal(size=(4, 5, 5))
    matrix += matrix.transpose(0, 2, 1)
    assert triangle(matrix).shape == (4, 15)
    assert fill_symmetric(triangle(matrix), 5) == pytest.approx(matrix)
    table = [Statistic(name="a", rows=1, width=1), Statistic(name="b", rows=2, width=3, share=3)]
    assert deviation(table, 0, 8 * 10**12) == pytest.approx(0.5)
    assert deviation(table, 1, 8 * 10**12) == pytest.approx((1 / 12) ** 0.5)
