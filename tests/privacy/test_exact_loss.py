"""Exact loss of the real mechanisms: from the scales that reach the samplers, enumerated.

Where record and replay trusts the noise object to use the scale it was asked for, this check
reads the scales off the sampler calls of `SecureNoise` and sums the exact log-ratios of the
discrete Laplace law over all small data sets, neighbours and answers that steer the shape.
"""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from replay import (
    SCRIPTS,
    Recorder,
    additions,
    data_sets,
    run,
    small_domain,
    small_methods,
    small_tally,
)

import psd.noise
from psd.epsilon import NANO
from psd.noise import SecureNoise

METHODS = [pytest.param(method, id=str(method)) for method in small_methods()]


def scales(noise, epsilon: np.ndarray, sensitivity: int) -> list[Fraction]:
    """Scale of the noise of each answer, as handed to the samplers."""
    seen: list[Fraction] = []

    def one(numerator, denominator, size):
        seen.extend([Fraction(int(numerator), int(denominator))] * size)
        return np.zeros(size, np.int64)

    def each(numerators, denominators):
        seen.extend(Fraction(int(n), int(d)) for n, d in zip(numerators, denominators, strict=True))
        return np.zeros(len(numerators), np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psd.noise, "discrete_laplace", one)
        patch.setattr(psd.noise, "discrete_laplace_each", each)
        noise.count(np.zeros(len(epsilon), np.int64), epsilon, sensitivity)
    return seen


def worst_exact_loss(method, side: int, k: int, noise) -> Fraction:
    """Largest sum of |change| / scale over all small neighbours: P ratios of discrete Laplace
    are exp(|change| / scale) at most, and that is attained outside the two counts."""
    domain = small_domain(side)
    known = cache(lambda epsilon, sensitivity: scales(noise, np.array(epsilon), sensitivity))
    worst = Fraction(0)
    for rows in data_sets(side):
        for script in SCRIPTS:
            first = Recorder(script)
            run(method, small_tally(side, rows, k), domain, NANO, first)
            for more in additions(side, k):
                if len(more) < k:
                    continue  # fewer rows of the user move the answers less
                answers = iter([call.answer for call in first.calls])
                second = Recorder(lambda step, true, answers=answers: next(answers))
                run(method, small_tally(side, rows + more, k), domain, NANO, second)
                total = Fraction(0)
                for a, b in zip(first.calls, second.calls, strict=True):
                    change = np.abs(a.true - b.true)
                    moved = np.flatnonzero(change)
                    scale = known(tuple(a.epsilon.tolist()), a.sensitivity)
                    total += sum((int(change[i]) / scale[i] for i in moved), Fraction(0))
                worst = max(worst, total)
    return worst


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [1, 2])
def test_loss_is_exactly_epsilon(method, k):
    assert worst_exact_loss(method, 3 if k == 1 else 2, k, SecureNoise()) == 1


class ScaleTooSmall(SecureNoise):
    """Noise of 0.7 times the scale."""

    def count(self, true, epsilon, sensitivity):
        return super().count(true, epsilon * 10 // 7, sensitivity)


class ForgetsK(SecureNoise):
    """Noise for one record, whatever the sensitivity."""

    def count(self, true, epsilon, sensitivity):
        return super().count(true, epsilon, 1)


class RoundsEpsilonUp(SecureNoise):
    """Epsilon rounded up to the next tenth before it becomes a scale."""

    def count(self, true, epsilon, sensitivity):
        tenth = NANO // 10
        return super().count(true, -(-epsilon // tenth) * tenth, sensitivity)


@pytest.mark.parametrize(
    ("noise", "k"), [(ScaleTooSmall(), 1), (ForgetsK(), 2), (RoundsEpsilonUp(), 1)]
)
def test_planted_scales_are_caught(noise, k):
    method = small_methods()[-2]
    assert worst_exact_loss(method, 2, k, noise) > 1


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(10, 3)])
def test_ratio_of_the_law_is_attained(scale):
    """The largest log-ratio between a count and its neighbour is exactly 1 / scale."""
    x = np.arange(-60, 61)
    log_p, log_q = -np.abs(x) / float(scale), -np.abs(x - 1) / float(scale)
    assert np.isclose(np.abs(log_p - log_q).max(), 1 / float(scale), rtol=1e-12)
