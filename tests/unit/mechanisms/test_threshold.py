"""Comparisons with noise: what they return, and the law that they state."""

from itertools import product

import numpy as np
import pytest

from psd.mechanisms.threshold import ThresholdMechanism
from psd.privacy.loss import NANO


def comparisons(values, numerator=2 * NANO, denominator=NANO):
    scales = np.full(len(values), denominator)
    law = {"numerator": numerator, "denominator": scales, "cost": scales}
    return ThresholdMechanism(values=np.array(values), **law)


def upper_tail(n, scale):
    """P(L >= n) of discrete Laplace noise, by adding up the law itself."""
    q = np.exp(-1 / scale)
    law = (1 - q) / (1 + q) * q ** np.abs(np.arange(-400, 400))
    return law[np.arange(-400, 400) >= n].sum()


def test_the_probability_of_above_is_that_of_the_sum_of_the_law():
    for value, scale in product((-5, -1, 0, 1, 2, 30), (1, 2, 7)):
        mechanism = comparisons([value], scale * NANO)
        answers = np.array([True]), np.array([False])
        above, below = (np.exp(mechanism.log_probability(answer))[0] for answer in answers)
        assert above == pytest.approx(upper_tail(1 - value, scale), rel=1e-12)
        assert above + below == pytest.approx(1)
    mechanism = comparisons([-(10**6), 10**6])
    assert [mechanism.sample().tolist() for _ in range(20)] == [[False, True]] * 20
    assert mechanism.log_probability(np.array([False, True])).tolist() == [0, 0]
    of_no_noise = comparisons([0, 1], numerator=1).approximate(lambda size: np.full(size, 0.5))
    assert of_no_noise.tolist() == [False, True]
    name, numerator, denominator = mechanism.public
    assert (name, numerator, denominator.tolist()) == ("threshold", 2 * NANO, [NANO, NANO])
    other = comparisons([-9, 40])
    assert all(np.array_equal(a, b) for a, b in zip(mechanism.public, other.public, strict=True))
    assert "values" not in repr(other)
