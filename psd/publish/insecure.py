"""A sampler with a seed, for demonstrations and for reproducing faults.

Never use it for a release: anyone who guesses the seed can subtract the noise and get the exact
counts. A release that is built with it is therefore marked as insecure, cannot be saved or
exported, and is not charged to a ledger. The draws use floats and have nothing in common with those
of `psd.mechanisms`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from hashlib import shake_256
from operator import add
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psd._util.arrays import Integers
from psd._util.fields import integer_between
from psd.errors import ParameterError
from psd.mechanisms.base import Answer, Mechanism, Sampler
from psd.mechanisms.exponential_mechanism import ExponentialMechanism
from psd.mechanisms.gaussian import GaussianMechanism
from psd.mechanisms.laplace import LaplaceMechanism
from psd.mechanisms.permute_and_flip import PermuteAndFlip, choice_rate
from psd.mechanisms.price_maps import PriceMaps
from psd.mechanisms.threshold import ThresholdMechanism
from psd.mechanisms.zone_layouts import zone_layout
from psd.mechanisms.zone_maps import sums_over_maps
from psd.privacy.count_noise import CountNoise
from psd.privacy.epsilon import NANO

__all__ = ["SeededSampler", "refuse_paid"]


class SeededSampler:
    """Draws approximately from the law of each mechanism, with a seeded generator.

    Guarantees
    ----------
    - The same seed, data and parameters give the same answers. The records of a user that are kept
      are still selected at random.
    - A release built with it cannot be saved or exported, and is not charged to a ledger.

    Parameters
    ----------
    seed : int
        0 to 2^63 - 1.

    Examples
    --------
    >>> import pandas as pd, psd
    >>> points = pd.DataFrame({"lon": [126.98, 127.03], "lat": [37.57, 37.50]})
    >>> domain = psd.Domain(bounds=(126.40, 37.00, 127.60, 38.00))
    >>> how = {"domain": domain, "epsilon": 1, "method": psd.decompositions.Grid(size=2)}
    >>> first, again = (psd.build(points, **how, sampler=SeededSampler(7)) for _ in range(2))
    >>> bool((first.tree.count == again.tree.count).all()), first.source
    (True, 'insecure')
    """

    def __init__(self, seed: int) -> None:
        self.seed = integer_between(0, 2**63 - 1)("insecure_seed", seed)
        self._draws = 0

    def draw(self, mechanism: Mechanism[Answer]) -> Answer:
        """Draw the answer of a mechanism.

        Raises
        ------
        ParameterError
            If the mechanism is not supported.
        """
        approximation = self._APPROXIMATIONS.get(type(mechanism))
        if approximation is None:
            raise ParameterError(
                f"mechanism must be one that a seed can repeat, got {type(mechanism).__name__}"
            )
        return cast(Answer, approximation(self, mechanism))

    def _count(self, mechanism: LaplaceMechanism) -> Integers:
        """True counts plus noise of scale sensitivity / epsilon."""
        return mechanism.true + self._laplace(mechanism.sensitivity * NANO / mechanism.epsilon)

    def _count_gaussian(self, mechanism: GaussianMechanism) -> Integers:
        """True counts plus rounded normal noise of the variance of the law."""
        noise = CountNoise.gaussian(mechanism.squared_sensitivity)
        radius, angle = self._uniform(2 * len(mechanism.rho)).reshape(2, -1)
        normal = np.sqrt(-2 * np.log(radius)) * np.cos(2 * np.pi * angle)
        deviation = np.sqrt(noise.variance(mechanism.rho))
        noisy: Integers = mechanism.true + np.rint(deviation * normal).astype(np.int64)
        return noisy

    def _exceeds(self, mechanism: ThresholdMechanism) -> NDArray[np.bool_]:
        """Whether each number plus noise of its scale is above 0."""
        noise = self._laplace(mechanism.numerator / mechanism.denominator)
        above: NDArray[np.bool_] = mechanism.values + noise > 0
        return above

    def _select(self, mechanism: ExponentialMechanism) -> Integers:
        """One candidate per group: the largest of the log-weights plus Gumbel noise."""
        candidates, epsilon = mechanism.candidates, mechanism.epsilon
        group, number = candidates.group, len(epsilon)
        rate = (epsilon / (2.0 * NANO * mechanism.sensitivity))[group]
        weight = rate * candidates.score + np.log(np.maximum(candidates.length, 1e-300))
        keys = weight - np.log(-np.log(self._uniform(len(group))))
        order = np.lexsort((keys, group))
        last = order[np.searchsorted(group[order], np.arange(number), side="right") - 1]
        length = candidates.length[last]
        within = (self._uniform(number) * length).astype(np.int64)
        chosen: Integers = candidates.first[last] + np.minimum(within, length - 1)
        return chosen

    def _choose(self, mechanism: PermuteAndFlip) -> Integers:
        """Largest score plus exponential noise, which has the law of permute-and-flip."""
        rate = choice_rate(mechanism.epsilon, mechanism.sensitivity, mechanism.is_monotone)
        scores = mechanism.scores * (rate[0] / rate[1])
        return np.array([np.argmax(scores - np.log(self._uniform(len(scores))))])

    def _draw_map(self, mechanism: PriceMaps) -> Integers:
        """Map of zones with prices: numbers of zones, pairs and prices by sums in floats."""
        layout = zone_layout(mechanism.layout, len(mechanism.scores))
        rate = choice_rate(mechanism.epsilon, mechanism.sensitivity, mechanism.is_monotone)
        below = np.cumsum(np.pad(mechanism.scores, ((1, 0), (0, 0))), axis=0) * (rate[0] / rate[1])
        sums = sums_over_maps(
            layout, lambda zone: _log_sum(below[zone[1]] - below[zone[0]]), add, _log_sum
        )
        many, prices = (0, layout.bins), mechanism.scores.shape[1]
        maps = [math.log(layout.count(k)) + k * math.log(prices) for k in mechanism.zones]
        logs = [sums((k, *many)) - log for k, log in zip(mechanism.zones, maps, strict=True)]
        pending, chosen = (
            [(mechanism.zones[self._by_logs(logs)], *many)],
            np.empty((0, 2), np.int64),
        )
        while pending:
            number, first, stop = state = pending.pop()
            if number == 1:
                zone = chosen[-1, 0] + 1 if len(chosen) else 0
                price = self._by_logs(below[stop] - below[first])
                chosen = np.concatenate([chosen, np.tile([zone, price], (stop - first, 1))])
                continue
            pairs = layout.pairs(state)
            left, right = pairs[self._by_logs([sums(a) + sums(b) for a, b in pairs])]
            pending += [right, left]
        return chosen[None]

    def _by_logs(self, logs: ArrayLike) -> int:
        """Index with a probability in proportion to the exponential of its number."""
        numbers = np.asarray(logs, np.float64)
        return int(np.argmax(numbers - np.log(-np.log(self._uniform(len(numbers))))))

    _APPROXIMATIONS: ClassVar[dict[type[Any], Callable[..., NDArray[Any]]]] = {
        LaplaceMechanism: _count,
        GaussianMechanism: _count_gaussian,
        ThresholdMechanism: _exceeds,
        ExponentialMechanism: _select,
        PermuteAndFlip: _choose,
        PriceMaps: _draw_map,
    }

    def _laplace(self, scale: NDArray[np.float64]) -> Integers:
        """Difference of two geometric numbers."""
        first, second = self._uniform(2 * len(scale)).reshape(2, -1)
        parts = [np.floor(-np.log(uniform) * scale).astype(np.int64) for uniform in (first, second)]
        return parts[0] - parts[1]

    def _uniform(self, size: int) -> NDArray[np.float64]:
        """Draw numbers in (0, 1)."""
        self._draws += 1
        name = f"psd insecure {self.seed} {self._draws}".encode()
        words = np.frombuffer(shake_256(name).digest(8 * size), dtype="<u8")
        return ((words >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def _log_sum(logs: ArrayLike) -> float:
    """Logarithm of the sum of exponentials."""
    return float(np.logaddexp.reduce(np.asarray(logs)))


def refuse_paid(sampler: Sampler | None, account: object) -> None:
    """Refuse an account with a seeded sampler: nothing is published, so nothing is charged.

    Raises
    ------
    ParameterError
    """
    if account is not None and isinstance(sampler, SeededSampler):
        raise ParameterError(
            "account must be left out with a seeded sampler; its result is not a release"
        )
