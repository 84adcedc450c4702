"""The part of a person is clipped in whole steps, whatever it is."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from psd.curator.clipping import clip_to_steps

ANY = arrays(float, st.tuples(st.integers(0, 3), st.integers(1, 9)), elements=st.floats())


@given(ANY)
def test_the_squares_of_the_steps_sum_to_at_most_2_to_the_40(values):
    steps = clip_to_steps(values)
    assert steps.shape == values.shape
    assert steps.dtype == np.int64
    assert sum(step * step for step in steps.ravel().tolist()) <= 2**40
    assert (steps * np.sign(np.nan_to_num(values)) >= 0).all()


@given(arrays(float, st.integers(1, 9), elements=st.floats(-0.3, 0.3)))
def test_short_parts_are_rounded_towards_zero_and_not_scaled(values):
    assert clip_to_steps(values).tolist() == np.trunc(values * 2**20).tolist()


def test_long_parts_keep_their_direction():
    for size, scale in itertools.product((1, 3, 1000), (1.0, 7.0, 1e300)):
        values = np.random.default_rng(size).normal(size=size) * scale / size
        norm = max(np.linalg.norm(values / scale) * scale, 1)
        assert clip_to_steps(values) / 2**20 == pytest.approx(values / norm, abs=3e-6)
    # A part that is not finite adds nothing.
    for wrong in (np.nan, np.inf, -np.inf):
        assert clip_to_steps(np.array([0.5, wrong])).tolist() == [0, 0]
