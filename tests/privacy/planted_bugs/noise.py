"""Planted bugs of the noise: other laws than the release claims, and noise that is known."""

from __future__ import annotations

import os
import random
import warnings
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import numpy as np

import psd
import psd.mechanisms.random_words
from privacy.planted_bugs.mutant import Mutant, replaced
from psd.mechanisms import laplace, threshold
from psd.mechanisms.geometric import geometric_each
from psd.mechanisms.laplace import LaplaceMechanism
from psd.privacy.epsilon import NANO
from support.goodness_of_fit import discrete_laplace_p_value, holds
from support.privacy.exact_loss import ROUNDING, worst_exact_loss
from support.privacy.samplers import counts
from support.privacy.split_law import p_value

N = 100_000


# Checks


def law_of_counts(epsilon, _):
    """Counts have the noise that their epsilon says, in whole numbers."""
    nano = np.broadcast_to(np.array(epsilon), (N // len(epsilon), len(epsilon))).ravel()

    def fresh():
        noise = counts(np.zeros(N, np.int64), nano, 1)
        assert noise.dtype == np.int64
        return discrete_laplace_p_value(noise, NANO / epsilon[0])

    assert holds(fresh)


def law_of_splits(scale, _):
    assert holds(lambda: p_value(scale))


def exact_loss(k, _):
    """Scales are read off the calls of the samplers, and log-ratios summed exactly."""
    method = psd.Quadtree(height=2, budget="uniform")
    assert worst_exact_loss(method, side=2, rows=2, k=k) <= 1 + ROUNDING


def some_counts():
    return counts(np.zeros(64, np.int64), np.full(64, NANO // 1000), 1)


def draws_do_not_repeat(*_):
    assert (some_counts() != some_counts()).any()


def forks_differ(*_):
    """Two children of one process, which inherit all of its state."""
    drawn = []
    for _ in range(2):
        read, write = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of fork beside threads
            child = os.fork()
        if child == 0:
            os.write(write, some_counts().tobytes())
            os._exit(0)
        os.waitpid(child, 0)
        drawn.append(os.read(read, 512))
        os.close(read)
        os.close(write)
    assert len(drawn[0]) == 512
    assert drawn[0] != drawn[1]


# Bugs


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


def cut_off():
    """Noise stays within five scales, so that some counts tell their true value's side."""

    def within(original, numerator, denominator):
        limit = 5 * numerator // denominator
        return np.clip(original(numerator, denominator), -limit, limit)

    return noise_is(within)


def floats_rounded():
    random_state = np.random.default_rng()

    def rounded(original, numerator, denominator):
        return np.rint(random_state.laplace(scale=numerator / denominator)).astype(np.int64)

    return noise_is(rounded)


def floats():
    return noise_is(lambda original, n, d: original(n, d) + 0.0)


def zero_counted_twice():
    def by_rejection(numerators, denominators):
        signs = np.where(psd.mechanisms.random_words.random_bits(numerators.size), -1, 1)
        return signs * geometric_each(numerators, denominators)

    return replaced(laplace, "_by_rejection", by_rejection)


def one_sided():
    """The sign is left out: a noisy count is never below the true one."""
    return replaced(laplace, "_signed", lambda magnitudes, negative: magnitudes)


def words_of(source):
    return replaced(psd.mechanisms.random_words, "os", SimpleNamespace(urandom=source))


def seeded():
    return words_of(lambda size: random.Random(7).randbytes(size))


def shared_by_forks():
    return words_of(random.Random(os.urandom(8)).randbytes)


def _count(change):
    sample = LaplaceMechanism.sample

    def other(self):
        epsilon, sensitivity = change(self.epsilon, self.sensitivity)
        return sample(replace(self, epsilon=epsilon, sensitivity=sensitivity))

    return replaced(LaplaceMechanism, "sample", other)


def epsilon_rounded_up():
    tenth = NANO // 10
    return _count(lambda epsilon, sensitivity: (-(-epsilon // tenth) * tenth, sensitivity))


def noise_for_one_record():
    return _count(lambda epsilon, _: (epsilon, 1))


LAW = "tests/statistical/test_discrete_laplace.py::test_one_scale_has_the_law"
BUILD = (
    "tests/statistical/test_build_noise.py::test_noise_is_discrete_laplace_of_scale_k_over_epsilon"
)
WHOLE = "tests/unit/mechanisms/test_sampler.py::test_no_question_draws_nothing"
EACH = "tests/statistical/test_discrete_laplace.py::test_a_scale_per_draw_has_the_laws"
SPLITS = "tests/statistical/test_exceeds.py::test_splits_have_their_probability"
EXACT = "tests/privacy/test_exact_loss.py::test_loss_is_at_most_epsilon_and_uses_it"
FORKS = "tests/unit/mechanisms/test_laplace.py::test_forked_children_draw_different_noise"
COUNTS = {"check": law_of_counts, "sound": (NANO // 10,), "test": BUILD}
FACTORS = "a wrong scale, by a factor that an average would not show"

MUTANTS = (
    Mutant(
        id="noise-x0.7",
        wrong="the scale of the noise of counts is 0.7 of what it should be",
        like=FACTORS,
        plant=partial(scaled, 7),
        **COUNTS,
    ),
    Mutant(
        id="noise-x1.3",
        wrong="the scale of the noise of counts is 1.3 of what the release says",
        like=FACTORS,
        plant=partial(scaled, 13),
        **COUNTS,
    ),
    Mutant(
        id="split-noise-x0.7",
        wrong="the scale of the noise that divides a node is 0.7 of what it should be",
        like=FACTORS,
        plant=partial(scaled, 7),
        check=law_of_splits,
        sound=Fraction(7, 3),
        test=SPLITS,
    ),
    Mutant(
        id="split-noise-x1.3",
        wrong="the scale of the noise that divides a node is 1.3 of what it should be",
        like=FACTORS,
        plant=partial(scaled, 13),
        check=law_of_splits,
        sound=Fraction(7, 3),
        test=SPLITS,
    ),
    Mutant(
        id="noise-cut-off",
        wrong="noise is cut off at five scales, so that the counts of two data sets can be those "
        "of one alone",
        like="truncated noise, which has an infinite loss",
        plant=cut_off,
        **COUNTS,
    ),
    Mutant(
        id="noise-floats-rounded",
        wrong="noise is a float of numpy, rounded to a whole number",
        like="float samplers (Mironov 2012), and randomness that can be predicted",
        plant=floats_rounded,
        **{**COUNTS, "sound": (NANO,)},
    ),
    Mutant(
        id="noise-floats",
        wrong="noisy counts are floats, whose last bits tell where they came from",
        like="float samplers (Mironov 2012)",
        plant=floats,
        **{**COUNTS, "test": WHOLE},
    ),
    Mutant(
        id="noise-zero-twice",
        wrong="zero and minus zero are both kept, so that zero is too frequent",
        like="two-sided noise made of a one-sided draw and a sign",
        plant=zero_counted_twice,
        check=law_of_counts,
        sound=(NANO, NANO - 1),
        test=EACH,
    ),
    Mutant(
        id="noise-one-sided",
        wrong="the sign of the noise is left out",
        like="one-sided noise, which rules out all smaller counts",
        plant=one_sided,
        **{**COUNTS, "test": LAW},
    ),
    Mutant(
        id="noise-seeded",
        wrong="the generator starts from a fixed seed at each draw",
        like="releases with a seed, which anybody can subtract",
        plant=seeded,
        check=draws_do_not_repeat,
        test="tests/unit/mechanisms/test_random_words.py::test_words_are_those_of_the_operating_system",
    ),
    Mutant(
        id="noise-shared-by-forks",
        wrong="the generator has a state in memory, which forked workers inherit",
        like="equal noise of two workers, which cancels when their counts are subtracted",
        plant=shared_by_forks,
        check=forks_differ,
        test=FORKS,
    ),
    Mutant(
        id="noise-for-one-record",
        wrong="the noise is that of one record, whatever the sensitivity is",
        like="sensitivity 1 where a user has k = 2 rows",
        plant=noise_for_one_record,
        check=exact_loss,
        sound=2,
        test=EXACT,
    ),
    Mutant(
        id="noise-epsilon-rounded-up",
        wrong="epsilon is rounded up to a tenth before it becomes a scale",
        like="rounding in the cheap direction",
        plant=epsilon_rounded_up,
        check=exact_loss,
        sound=1,
        test=EXACT,
    ),
)
