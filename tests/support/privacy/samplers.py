"""Samplers of tests: without noise, or with another mechanism than was asked for."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from psd.mechanisms.base import Mechanism, Sampler
from psd.mechanisms.exponential_mechanism import ExponentialMechanism
from psd.mechanisms.laplace import LaplaceMechanism
from psd.mechanisms.sampler import SecureSampler
from psd.mechanisms.threshold import ThresholdMechanism


class ExactSampler:
    """Counts without noise; everything else has the noise of a release."""

    def draw(self, mechanism):
        if isinstance(mechanism, LaplaceMechanism):
            return mechanism.true.copy()
        return mechanism.sample()


class Echo(ExactSampler):
    """The same, and the questions about counts are noted."""

    def __init__(self):
        self.counts = []

    def draw(self, mechanism):
        if isinstance(mechanism, LaplaceMechanism):
            self.counts.append(mechanism)
        return super().draw(mechanism)


@dataclass
class AlteredSampler:
    """Draws another mechanism than the one that it is asked for."""

    change: Callable[[Mechanism[Any]], Mechanism[Any]]
    sampler: Sampler = field(default_factory=SecureSampler)

    def draw(self, mechanism):
        return self.sampler.draw(self.change(mechanism))


def counts(true, epsilon, sensitivity):
    """Noisy counts as a release has them."""
    mechanism = LaplaceMechanism(true=true, epsilon=epsilon, sensitivity=sensitivity)
    return SecureSampler().draw(mechanism)


def selected(candidates, epsilon, sensitivity):
    """Selections as a release has them."""
    mechanism = ExponentialMechanism(
        candidates=candidates, epsilon=epsilon, sensitivity=sensitivity
    )
    return SecureSampler().draw(mechanism)


def exceeds(values, numerator, denominator):
    """Comparisons with 0 as a release has them."""
    return SecureSampler().draw(
        ThresholdMechanism(
            values=values, numerator=numerator, denominator=denominator, cost=denominator
        )
    )
