"""Planted bugs of the noise: other laws than the release claims, and noise that is known."""

import math
import os
import random
from dataclasses import replace
from functools import wraps
from types import SimpleNamespace

import numpy as np

from privacy.planted_bugs.bug import around, instead, like, planted, replaced, together
from psd.mechanisms.bernoulli import geometric_each
from psd.mechanisms.random_words import random_bits, random_words
from psd.privacy.loss import NANO

LAW = "tests/statistical/"
BUILDS = LAW + "test_build_noise.py::test_noise_is_discrete_laplace"
COUNTS = BUILDS + "_of_scale_k_over_epsilon[2000000000-1]"
SPLITS = LAW + "test_exceeds.py::test_splits_have_their_probability[7/3]"
LAWS = LAW + "test_discrete_laplace.py::"
GAUSSIAN = LAW + "test_discrete_gaussian.py::"
EXACT = "tests/privacy/test_exact_loss.py::test_loss_beside_no_row"
UNIT = "tests/unit/mechanisms/"

FACTORS = "a wrong scale, by a factor that an average would not show"
FLOATS = "float samplers (Mironov 2012)"


def noise_is(law):
    """Make a patch by which all noise of scale numerator / denominator is that of another law."""
    targets = (f"psd.mechanisms.{name}.noise_of_scales" for name in ("laplace", "threshold"))
    patches = [around(target)(law) for target in targets]
    return wraps(law)(lambda: together(*(patch() for patch in patches)))


def scaled(tenths):
    return noise_is(lambda original, n, d: original(n * tenths, d * 10))()


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
@noise_is
def noise_cut_off(original, numerator, denominator):
    """Noise is cut off at five scales: some counts are possible on one data set alone."""
    limit = 5 * numerator // denominator
    return np.clip(original(numerator, denominator), -limit, limit)


@planted(test=COUNTS, like=FLOATS + ", and randomness that can be predicted")
@noise_is
def noise_floats_rounded(_, numerator, denominator):
    """Noise is a float of NumPy, rounded to an integer."""
    floats = np.random.default_rng().laplace(scale=numerator / denominator)
    return np.rint(floats).astype(np.int64)


@planted(test=UNIT + "test_sampler.py::test_no_question_draws_nothing", like=FLOATS)
@noise_is
def noise_floats(original, numerator, denominator):
    """Noisy counts are floats, whose last bits tell where they came from."""
    return original(numerator, denominator) + 0.0


@planted(test=UNIT + "test_sampler.py::test_a_release_never_draws_by_floats", like=FLOATS)
@instead("psd.mechanisms.sampler.SecureSampler.draw")
def release_draws_by_floats(self, mechanism):
    """A release is drawn as by a sampler with a seed, from floats of the operating system."""
    return mechanism.approximate(lambda size: (random_words(size) + 0.5) / 2.0**64)


@planted(test=LAWS + "test_a_scale_per_draw_has_the_laws[rejection-large]")
@like("two-sided noise made of a one-sided draw and a sign")
@instead("psd.mechanisms.laplace._by_rejection")
def noise_zero_twice(numerators, denominators):
    """Zero and minus zero are both taken, so that zero is too frequent."""
    signs = np.where(random_bits(numerators.size), -1, 1)
    return signs * geometric_each(numerators, denominators)


@planted(test=LAWS + "test_one_scale_has_the_law[1]")
@like("one-sided noise, which rules out all smaller counts")
def noise_one_sided():
    """The sign of the noise is left out: a noisy count is never below the true one."""
    return replaced("psd.mechanisms.laplace._signed", lambda magnitudes, negative: magnitudes)


def words_of(source):
    return replaced("psd.mechanisms.random_words.os", SimpleNamespace(urandom=source))


@planted(test=UNIT + "test_random_words.py::test_words_are_those_of_the_operating_system")
@like("releases with a seed, which anybody can subtract")
def noise_seeded():
    """The generator starts from a fixed seed at each draw."""
    return words_of(lambda size: random.Random(7).randbytes(size))


@planted(test=UNIT + "test_laplace.py::test_forked_children_draw_different_noise")
@like("equal noise of two workers, which cancels when their counts are subtracted")
def noise_shared_by_forks():
    """The generator has a state in memory, which forked workers inherit."""
    return words_of(random.Random(os.urandom(8)).randbytes)


@planted(test=EXACT + "[quadtree,height=2,budget=uniform]")
@like("sensitivity 1 where a user has k = 2 rows")
@around("psd.mechanisms.laplace.LaplaceMechanism.sample")
def noise_for_one_record(sample, self):
    """The noise is that of one record, for every sensitivity."""
    return sample(replace(self, sensitivity=1))


@planted(test=EXACT + "[quadtree,height=2,budget=uniform]")
@like("rounding in the cheap direction")
@around("psd.mechanisms.laplace.LaplaceMechanism.sample")
def noise_epsilon_rounded_up(sample, self):
    """Epsilon is rounded up to a tenth before it becomes a scale."""
    tenth = NANO // 10
    return sample(replace(self, epsilon=-(-self.epsilon // tenth) * tenth))


@planted(test=GAUSSIAN + "test_one_parameter_has_the_law[10000-table]")
@like("a parameter sigma taken for sigma^2, or the other way round")
@around("psd.mechanisms.gaussian.discrete_gaussian")
def noise_sigma_for_sigma_squared(original, numerator, denominator, size):
    """Gaussian noise of sigma^2 is drawn with sigma in its place."""
    return original(math.isqrt(numerator), math.isqrt(denominator), size)


@planted(test=GAUSSIAN + "test_one_parameter_has_the_law[41/2-rejection]")
@like("a rejection sampler without its last step")
@instead("psd.mechanisms.gaussian.bernoulli_exp_of_any")
def noise_gaussian_all_kept(numerators, denominators):
    """Every proposal of the rejection sampler is kept, so that Gaussian noise is Laplace noise."""
    return np.ones(len(numerators), np.bool_)
