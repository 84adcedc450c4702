"""Planted bugs of the noise: other laws than the release claims, and noise that is known."""

from __future__ import annotations

import math
import os
import random
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np

import psd.mechanisms.random_words
from privacy.planted_bugs.bug import planted, replaced
from psd.mechanisms import gaussian, laplace, threshold
from psd.mechanisms.geometric import geometric_each
from psd.mechanisms.laplace import LaplaceMechanism
from psd.privacy.epsilon import NANO

COUNTS = (
    "tests/statistical/test_build_noise.py::test_noise_is_discrete_laplace_of_scale_k_over_epsilon"
)
SPLITS = "tests/statistical/test_exceeds.py::test_splits_have_their_probability"
LAWS = "tests/statistical/test_discrete_laplace.py::"
EXACT = "tests/privacy/test_exact_loss.py::test_loss_is_at_most_epsilon_and_uses_it"
UNIT = "tests/unit/mechanisms/"

FACTORS = "a wrong scale, by a factor that an average would not show"
FLOATS = "float samplers (Mironov 2012)"


@contextmanager
def noise_is(law):
    """All noise of scale numerator / denominator is that of another law."""
    original = laplace.noise_of_scales
    with (
        replaced(laplace, "noise_of_scales", partial(law, original)),
        replaced(threshold, "noise_of_scales", partial(law, original)),
    ):
        yield


def scaled(tenths):
    return noise_is(lambda original, n, d: original(n * tenths, d * 10))


@planted(test=COUNTS, like=FACTORS)
def noise_times_0_7():
    """The scale of the noise of counts is 0.7 of what it should be."""
    return scaled(7)


@planted(test=COUNTS, like=FACTORS)
def noise_times_1_3():
    """The scale of the noise of counts is 1.3 of what the release says."""
    return scaled(13)


@planted(test=SPLITS, like=FACTORS)
def split_noise_times_0_7():
    """The scale of the noise that divides a node is 0.7 of what it should be."""
    return scaled(7)


@planted(test=SPLITS, like=FACTORS)
def split_noise_times_1_3():
    """The scale of the noise that divides a node is 1.3 of what it should be."""
    return scaled(13)


@planted(test=COUNTS, like="truncated noise, which has an infinite loss")
def noise_cut_off():
    """Noise is cut off at five scales: some counts are possible on one data set alone."""

    def within(original, numerator, denominator):
        limit = 5 * numerator // denominator
        return np.clip(original(numerator, denominator), -limit, limit)

    return noise_is(within)


@planted(test=COUNTS, like=FLOATS + ", and randomness that can be predicted")
def noise_floats_rounded():
    """Noise is a float of NumPy, rounded to an integer."""
    random_state = np.random.default_rng()

    def rounded(original, numerator, denominator):
        return np.rint(random_state.laplace(scale=numerator / denominator)).astype(np.int64)

    return noise_is(rounded)


@planted(test=UNIT + "test_sampler.py::test_no_question_draws_nothing", like=FLOATS)
def noise_floats():
    """Noisy counts are floats, whose last bits tell where they came from."""
    return noise_is(lambda original, n, d: original(n, d) + 0.0)


@planted(
    test=LAWS + "test_a_scale_per_draw_has_the_laws",
    like="two-sided noise made of a one-sided draw and a sign",
)
def noise_zero_twice():
    """Zero and minus zero are both taken, so that zero is too frequent."""

    def by_rejection(numerators, denominators):
        signs = np.where(psd.mechanisms.random_words.random_bits(numerators.size), -1, 1)
        return signs * geometric_each(numerators, denominators)

    return replaced(laplace, "_by_rejection", by_rejection)


@planted(
    test=LAWS + "test_one_scale_has_the_law",
    like="one-sided noise, which rules out all smaller counts",
)
def noise_one_sided():
    """The sign of the noise is left out: a noisy count is never below the true one."""
    return replaced(laplace, "_signed", lambda magnitudes, negative: magnitudes)


def words_of(source):
    return replaced(psd.mechanisms.random_words, "os", SimpleNamespace(urandom=source))


@planted(
    test=UNIT + "test_random_words.py::test_words_are_those_of_the_operating_system",
    like="releases with a seed, which anybody can subtract",
)
def noise_seeded():
    """The generator starts from a fixed seed at each draw."""
    return words_of(lambda size: random.Random(7).randbytes(size))


@planted(
    test=UNIT + "test_laplace.py::test_forked_children_draw_different_noise",
    like="equal noise of two workers, which cancels when their counts are subtracted",
)
def noise_shared_by_forks():
    """The generator has a state in memory, which forked workers inherit."""
    return words_of(random.Random(os.urandom(8)).randbytes)


def counts_with(change):
    """Counts are drawn with another epsilon and sensitivity."""
    sample = LaplaceMechanism.sample

    def other(self):
        epsilon, sensitivity = change(self.epsilon, self.sensitivity)
        return sample(replace(self, epsilon=epsilon, sensitivity=sensitivity))

    return replaced(LaplaceMechanism, "sample", other)


@planted(
    test=EXACT + "[quadtree,height=2,budget=uniform-2-2]",
    like="sensitivity 1 where a user has k = 2 rows",
)
def noise_for_one_record():
    """The noise is that of one record, for every sensitivity."""
    return counts_with(lambda epsilon, _: (epsilon, 1))


@planted(
    test=EXACT + "[quadtree,height=2,budget=uniform-2-2]", like="rounding in the cheap direction"
)
def noise_epsilon_rounded_up():
    """Epsilon is rounded up to a tenth before it becomes a scale."""
    tenth = NANO // 10
    return counts_with(lambda epsilon, sensitivity: (-(-epsilon // tenth) * tenth, sensitivity))


GAUSSIAN = "tests/statistical/test_discrete_gaussian.py::"


@planted(
    test=GAUSSIAN + "test_one_parameter_has_the_law[10000-table]",
    like="a parameter sigma taken for sigma^2, or the other way round",
)
def noise_sigma_for_sigma_squared():
    """Gaussian noise of sigma^2 is drawn with sigma in its place."""
    original = gaussian.discrete_gaussian

    def root(numerator, denominator, size):
        return original(math.isqrt(numerator), math.isqrt(denominator), size)

    return replaced(gaussian, "discrete_gaussian", root)


@planted(
    test=GAUSSIAN + "test_one_parameter_has_the_law[41/2-rejection]",
    like="a rejection sampler without its last step",
)
def noise_gaussian_all_kept():
    """Every proposal of the rejection sampler is kept, so that Gaussian noise is Laplace noise."""
    return replaced(gaussian, "bernoulli_exp_of_any", lambda n, d: np.ones(len(n), np.bool_))
