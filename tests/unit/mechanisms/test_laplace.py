"""Geometric magnitudes and signs: exact laws, guards against wrapping, and what is refused."""

import math
import multiprocessing
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psd.mechanisms import bernoulli, laplace
from psd.mechanisms.bernoulli import LIMIT, _scaled, geometric_each, refuse_beyond_limit
from psd.mechanisms.certified_thresholds import Survival, thresholds
from psd.mechanisms.laplace import (
    LaplaceMechanism,
    discrete_laplace,
    discrete_laplace_each,
    noise_of_scales,
)
from psd.privacy.loss import NANO
from support.noise_paths import Tape, enumerate_paths

TOP = 2**63 - 1
SCALES = [(1, 1), (2, 3), (3, 2), (5, 1)]


class Refused(Exception):
    """The attempt was not kept."""


def once(draw):
    """A draw without its repetition: repeating makes the law conditional on being kept."""
    calls = []

    def first(*args):
        if calls:
            raise Refused
        calls.append(args)
        return draw(*args)

    return first


def law_of(run):
    """The law of run(script) given that its attempt is kept, as a dictionary."""

    def outcome(script):
        try:
            return int(run(script)[0])
        except Refused:
            return None

    weights = {}
    for value, weight in enumerate_paths(outcome, smallest=1e-10):
        weights[value] = weights.get(value, 0.0) + weight
    refused = weights.pop(None, 0.0)
    return {value: weight / (1 - refused) for value, weight in weights.items()}


@pytest.mark.parametrize(("numerator", "denominator"), SCALES)
def test_geometric_law_is_exact(monkeypatch, numerator, denominator):
    def run(script):
        monkeypatch.setattr(bernoulli, "uniform_below", once(script.uniform_below))
        for name in ("bernoulli_exp", "unit_geometric"):
            monkeypatch.setattr(bernoulli, name, getattr(script, name))
        return geometric_each(np.array([numerator]), np.array([denominator]))

    law, q = law_of(run), math.exp(-denominator / numerator)
    for k in range(12):
        assert law[k] == pytest.approx((1 - q) * q**k, abs=1e-8)


def test_two_sided_law_is_exact_and_zero_is_not_doubled(monkeypatch):
    for numerator, denominator in SCALES:
        q = math.exp(-denominator / numerator)

        def run(script, shape=(numerator, denominator), q=q):
            magnitudes = once(lambda n, d: script.geometric(q, n.size))
            monkeypatch.setattr(laplace, "geometric_each", magnitudes)
            monkeypatch.setattr(laplace, "random_bits", script.bits)
            return laplace._by_rejection(*np.array(shape)[:, None])

        law = law_of(run)
        for x in range(-12, 13):
            assert law[x] == pytest.approx((1 - q) / (1 + q) * q ** abs(x), abs=1e-8)


def test_the_last_bit_of_a_word_is_the_sign_and_beyond_the_table_comes_an_excess(monkeypatch):
    table = thresholds(Survival(10, 1, two_sided=True))
    for k in range(1, 20):
        just_k = 2 * (int(table[-k]) - 1)  # the largest word below the threshold
        tape = Tape(monkeypatch, just_k, just_k + 1, 2**64 - 1, 2**64 - 2)
        assert discrete_laplace(10, 1, 4).tolist() == [k, -k, 0, 0]
        assert not tape.left
    length = thresholds(Survival(10, 1, two_sided=True)).size
    monkeypatch.setattr(laplace, "geometric_each", lambda n, d: np.arange(7, 7 + n.size))
    Tape(monkeypatch, 0, 2**64 - 1, 1)
    assert discrete_laplace(10, 1, 3).tolist() == [length + 7, 0, -(length + 8)]
    monkeypatch.setattr(laplace, "geometric_each", lambda n, d: np.full(n.size, LIMIT - 1))
    Tape(monkeypatch, 0)
    with pytest.raises(OverflowError):
        discrete_laplace(10, 1, 1)


T = st.integers(1, TOP) | st.integers(2**53 - 3, 2**53 + 3) | st.just(TOP)
ROWS = st.tuples(T, st.floats(0, 1), st.integers(0, 60), st.integers(16, TOP) | st.just(2**10))


@given(st.lists(ROWS, min_size=1, max_size=8))
def test_scaled_equals_python_integers(rows):
    t, parts, v, s = zip(*rows, strict=True)
    u = [min(int(part * t), t - 1) for t, part in zip(t, parts, strict=True)]
    naive = [(a + b * c) // d for a, b, c, d in zip(u, t, v, s, strict=True)]
    arrays = [np.array(column, dtype=np.int64) for column in (u, t, v, s)]
    if max(naive) >= 2**63:
        with pytest.raises(OverflowError):
            _scaled(*arrays)
    elif max(naive) < LIMIT:
        assert _scaled(*arrays).tolist() == naive


def test_a_draw_of_2_to_62_is_refused(monkeypatch):
    for unit in (4, 5, 1000):  # the largest that int64 holds, and two that it does not
        monkeypatch.setattr(bernoulli, "unit_geometric", lambda size, v=unit: np.full(size, v))
        with pytest.raises(OverflowError, match="2\\*\\*62"):
            geometric_each(np.array([2**60, 1]), np.array([1, 1]))
        assert geometric_each(np.array([2**58]), np.array([2**10])).max() < LIMIT
    refuse_beyond_limit(LIMIT - 1)
    for magnitude in (LIMIT, 2**80):
        with pytest.raises(OverflowError, match="does not depend on the data"):
            refuse_beyond_limit(magnitude)


def test_extreme_scales(subtests):
    for numerator, denominator in [
        (1, 10**12),  # next to no noise
        (10**9 + 7, 10**18 + 9),
        (10**18, 10**10),
        (10**9 * 10**9, 10**6),
        (2**42, 1),
        (10**30, 10**29),  # in lowest terms 10
        (TOP, TOP - 1),
    ]:
        with subtests.test(numerator=numerator, denominator=denominator):
            noise = discrete_laplace(numerator, denominator, 200)
            assert noise.dtype == np.int64
            assert np.abs(noise).max() < 60 * max(numerator / denominator, 1)
            if max(numerator, denominator) <= TOP:
                fractions = np.array([[numerator, denominator]] * 200).T.copy()
                fractions[0, ::2] -= numerator > 1  # no two neighbours alike
                each = discrete_laplace_each(*fractions)
                assert each.dtype == np.int64
                assert np.abs(each).max() < 60 * max(numerator / denominator, 1)


def test_sizes_and_scales_that_are_refused():
    for size in (0, 1, laplace._BLOCK, laplace._BLOCK + 1):
        assert discrete_laplace(1, 2, size).shape == (size,)
        scales = np.arange(1, size + 1)
        assert discrete_laplace_each(scales, np.ones(size, dtype=int)).shape == (size,)
    assert noise_of_scales(1, np.ones(0, dtype=int)).shape == (0,)
    for numerator, denominator in ((0, 1), (1, 0), (-1, -1), (2**63, 1), (1, 2**63)):
        with pytest.raises(ValueError, match="numerator and denominator must be"):
            discrete_laplace(numerator, denominator, 1)
    for numerator, denominator in ((1.0, 1), (1, "1")):
        with pytest.raises(TypeError):
            discrete_laplace(numerator, denominator, 1)
    one = np.array([1])
    for numerators, denominators in ((one, one * 0), (one * 0, one), (np.array([1, 2]), one)):
        with pytest.raises(ValueError, match="numerators"):
            discrete_laplace_each(numerators, denominators)
    with pytest.raises(TypeError, match="int64"):
        discrete_laplace_each(np.array([1.5]), one)


def test_equal_scales_are_drawn_run_by_run_or_scale_by_scale(monkeypatch):
    calls = []

    def record(numerator, denominator, size):
        calls.append((numerator, denominator, size))
        return 10**6 * len(calls) + np.arange(size)

    monkeypatch.setattr(laplace, "discrete_laplace", record)
    runs = np.array([[3, 1], [3, 2], [5, 2]]).repeat([2000, 1, 2000], axis=0)
    noise = discrete_laplace_each(*runs.T)
    assert calls == [(3, 1, 2000), (3, 2, 1), (5, 2, 2000)]
    assert noise.tolist() == [
        *range(10**6, 10**6 + 2000),
        2 * 10**6,
        *range(3 * 10**6, 3 * 10**6 + 2000),
    ]
    calls.clear()
    scales = np.array([[5, 2], [3, 1], [3, 2]])
    which = np.random.default_rng(0).permutation(np.repeat(np.arange(3), 2000))
    noise = discrete_laplace_each(*scales[which].T)
    assert calls == [(3, 1, 2000), (3, 2, 2000), (5, 2, 2000)]
    for scale, number in ((0, 3), (1, 1), (2, 2)):
        assert noise[which == scale].tolist() == [*range(10**6 * number, 10**6 * number + 2000)]
    calls.clear()
    many = np.random.default_rng(0).permutation(np.arange(1, 2001))  # drawn by rejection
    assert discrete_laplace_each(many, np.ones(2000, int)).shape == (2000,)
    assert calls == []


def _draw_in_child(_):
    each = discrete_laplace_each(np.arange(1000, 1020), np.ones(20, dtype=int))
    return os.getpid(), discrete_laplace(10**6, 1, 20).tolist(), each.tolist()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of fork beside threads
def test_forked_children_draw_different_noise():
    discrete_laplace(10**6, 1, 1)  # warm every cache that the children could share
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        first, second = pool.map(_draw_in_child, range(2), chunksize=1)
    for one, other in zip(first, second, strict=True):
        assert one != other


def counts(true=(3, 0, -2), epsilon=(NANO, NANO // 2, 2 * NANO), sensitivity=3):
    return LaplaceMechanism(true=np.array(true), epsilon=np.array(epsilon), sensitivity=sensitivity)


def test_probabilities_of_counts_are_those_of_the_law_and_the_public_part_has_no_count():
    mechanism, q = counts(), np.exp(-np.array([1, 0.5, 2]) / 3)
    for answer in ((3, 0, -2), (0, 5, 7), (4, -1, -2)):
        noise = np.abs(np.array(answer) - [3, 0, -2])
        expected = np.log((1 - q) / (1 + q)) + noise * np.log(q)
        assert mechanism.log_probability(np.array(answer)) == pytest.approx(expected)
    assert mechanism.public == ("counts", "discrete-laplace", mechanism.epsilon, 3)
    assert mechanism.cost is mechanism.epsilon
