"""Noise of OpenDP and of this package has one law, and noise of another scale has another."""

import numpy as np
import opendp.prelude as dp
import pytest

from psd.mechanisms.gaussian import discrete_gaussian
from psd.mechanisms.laplace import discrete_laplace
from support.goodness_of_fit import ALPHA, holds, two_sample_p_value

pytestmark = pytest.mark.deep

N = 100_000


@pytest.mark.parametrize(
    ("make", "distance", "draw", "right", "wrong"),
    [
        (dp.m.make_laplace, dp.l1_distance, discrete_laplace, 10, (7, 13)),
        (dp.m.make_gaussian, dp.l2_distance, discrete_gaussian, 100, (49, 169, 85)),
    ],
    ids=["laplace", "gaussian"],
)
def test_agrees_with_opendp(make, distance, draw, right, wrong):
    """Of OpenDP's scale 10, which is the root of the parameter of Gaussian noise."""
    dp.enable_features("contrib")
    domain, metric = dp.vector_domain(dp.atom_domain(T="i64")), distance(T="i64")
    measurement = make(domain, metric, scale=10.0)

    def p_value(parameter=right):
        return two_sample_p_value(np.array(measurement([0] * N)), draw(parameter, 1, N))

    assert holds(p_value)
    for parameter in wrong:
        assert p_value(parameter) < ALPHA
