"""The law of what a curator draws: its answers on one data set, and their odds on another.

For audits of synthetic data. A build on D is recorded, and the same answers are given back to a
build on D'. If the two ask the same, the log-ratio of the probabilities of these answers is the
loss of the transcript, worked out here from the scales that were asked for; whether the noise
keeps to them is for an audit to find out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd.privacy.epsilon import NANO

if TYPE_CHECKING:
    from psd.mechanisms import Noise
    from psd.mechanisms.exponential_mechanism import Candidates

__all__ = ["DivergenceError", "Recorded", "Replayed"]


class DivergenceError(Exception):
    """Two data sets were asked different questions, although they had given the same answers."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Draw:
    """One draw: what anybody may know of it, the private input, and the answer."""

    public: tuple[Any, ...]
    true: Any
    answer: NDArray[Any]


class Recorded:
    """Noise that notes what another noise is asked and answers.

    Parameters
    ----------
    noise : Noise
        Draws.
    """

    def __init__(self, noise: Noise) -> None:
        self._noise = noise
        self.draws: list[_Draw] = []

    def count(self, true: Integers, epsilon: Integers, sensitivity: int) -> Integers:
        """As of the noise."""
        answer = self._noise.count(true, epsilon, sensitivity)
        return self._noted(("count", epsilon, sensitivity), true, answer)

    def select(self, candidates: Candidates, epsilon: Integers, sensitivity: Integers) -> Integers:
        """As of the noise."""
        answer = self._noise.select(candidates, epsilon, sensitivity)
        return self._noted(("select", epsilon, sensitivity), candidates, answer)

    def exceeds(self, biased: Integers, numerator: int, denominator: Integers) -> NDArray[np.bool_]:
        """As of the noise."""
        answer = self._noise.exceeds(biased, numerator, denominator)
        return self._noted(("exceeds", denominator, numerator), biased, answer)

    def _noted(self, public: tuple[Any, ...], true: Any, answer: NDArray[Any]) -> NDArray[Any]:
        self.draws.append(_Draw(public=public, true=true, answer=answer.copy()))
        return answer


class Replayed:
    """Noise that gives recorded answers back, and adds up how much likelier they are here.

    Parameters
    ----------
    draws : list
        Of `Recorded`.

    Attributes
    ----------
    loss : float
        Log of the probability of the answers here over that where they were recorded.
    """

    def __init__(self, draws: list[_Draw]) -> None:
        self._left = list(draws)
        self.loss = 0.0

    def count(self, true: Integers, epsilon: Integers, sensitivity: int) -> Integers:
        """The recorded counts."""
        draw = self._next("count", epsilon, sensitivity)
        nearer = np.abs(draw.answer - draw.true) - np.abs(draw.answer - true)
        self.loss += float((nearer * (epsilon / (NANO * sensitivity))).sum())
        return draw.answer.copy()

    def select(self, candidates: Candidates, epsilon: Integers, sensitivity: Integers) -> Integers:
        """The recorded choices."""
        draw = self._next("select", epsilon, sensitivity)
        rate = epsilon / (2.0 * NANO * sensitivity)
        here, there = (_log_weights(c, rate, draw.answer) for c in (candidates, draw.true))
        self.loss += float((here - there).sum())
        return draw.answer.copy()

    def exceeds(self, biased: Integers, numerator: int, denominator: Integers) -> NDArray[np.bool_]:
        """The recorded answers."""
        draw = self._next("exceeds", denominator, numerator)
        scale = numerator / denominator
        here, there = (_log_above(b, scale, draw.answer) for b in (biased, draw.true))
        self.loss += float((here - there).sum())
        return draw.answer.copy()

    def close(self) -> None:
        """Refuse questions that were asked there and not here.

        Raises
        ------
        DivergenceError
        """
        if self._left:
            raise DivergenceError("fewer questions than on the other data set")

    def _next(self, *public: Any) -> _Draw:
        """The draw that was recorded for the same question."""
        if not self._left:
            raise DivergenceError("more questions than on the other data set")
        draw = self._left.pop(0)
        if not all(np.array_equal(a, b) for a, b in zip(draw.public, public, strict=True)):
            raise DivergenceError("another question than on the other data set")
        return draw


def _log_weights(candidates: Candidates, rate: Floats, chosen: Integers) -> Floats:
    """Log-probability of the candidate chosen in each group, by the exponential mechanism."""
    group, number = candidates.group, len(rate)
    best = np.full(number, np.iinfo(np.int64).min)
    some = candidates.length > 0
    np.maximum.at(best, group[some], candidates.score[some])
    exponent = -rate[group] * np.where(some, best[group] - candidates.score, 0)
    total = np.bincount(group, candidates.length * np.exp(exponent), number)
    offset = chosen[group] - candidates.first
    held = (offset >= 0) & (offset < candidates.length)
    if (np.bincount(group[held], minlength=number) != 1).any():
        raise DivergenceError("other candidates than on the other data set")
    chosen_exponent = np.empty(number)
    chosen_exponent[group[held]] = exponent[held]
    return chosen_exponent - np.log(total)


def _log_above(biased: Integers, scale: Floats, above: NDArray[np.bool_]) -> Floats:
    """Log-probability of b + L > 0, or of the contrary, for discrete Laplace noise L.

    P(b + L > 0) = P(L >= 1 - b), and the contrary is P(L >= b): the upper tail at n is
    q^n / (1 + q) for n above 0 and 1 - q^(1 - n) / (1 + q) else, q = exp(-1 / scale).
    """
    n = np.where(above, 1 - biased, biased)
    far = np.where(n > 0, n, 1 - n) / -scale - np.log1p(np.exp(-1 / scale))
    tail: Floats = np.where(n > 0, far, np.log1p(-np.exp(far)))
    return tail
