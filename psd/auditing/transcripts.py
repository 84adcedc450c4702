"""The law of what a curator draws: its answers on one data set, and their odds on another.

For audits of synthetic data. A build on D is recorded, and the same answers are given back to a
build on D'. If the two ask the same, the log-ratio of the probabilities of these answers is the
loss of the transcript, worked out here from the scales that were asked for; whether the draws
keep to them is for an audit to find out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from psd.mechanisms.base import Answer, Mechanism, Sampler

__all__ = ["DivergenceError", "RecordedDraw", "RecordingSampler", "ReplayingSampler"]


class DivergenceError(Exception):
    """Two data sets were asked different questions, although they had given the same answers."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RecordedDraw:
    """One draw, with its private input, and the answer.

    Parameters
    ----------
    mechanism : Mechanism
        As it was asked.
    answer : ndarray
        Of the sampler.
    """

    mechanism: Mechanism[Any]
    answer: NDArray[Any]


class RecordingSampler:
    """Records what another sampler is asked and answers.

    Parameters
    ----------
    sampler : Sampler
        Draws.

    Attributes
    ----------
    draws : list of RecordedDraw
        So far.
    """

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self.draws: list[RecordedDraw] = []

    def draw(self, mechanism: Mechanism[Answer]) -> Answer:
        """Answer of the sampler."""
        answer = self._sampler.draw(mechanism)
        self.draws.append(RecordedDraw(mechanism=mechanism, answer=answer.copy()))
        return answer


class ReplayingSampler:
    """Gives recorded answers back, and adds up how much likelier they are here.

    Parameters
    ----------
    draws : list of RecordedDraw
        Of `RecordingSampler`.

    Attributes
    ----------
    loss : float
        Log of the probability of the answers here over that where they were recorded.
    """

    def __init__(self, draws: list[RecordedDraw]) -> None:
        self._left = list(draws)
        self.loss = 0.0

    def draw(self, mechanism: Mechanism[Answer]) -> Answer:
        """Recorded answer to the same question.

        Raises
        ------
        DivergenceError
            If another question was recorded, or the answer is impossible here.
        """
        if not self._left:
            raise DivergenceError("more questions than on the other data set")
        draw = self._left.pop(0)
        if not _is_same(draw.mechanism.public, mechanism.public):
            raise DivergenceError("another question than on the other data set")
        answer = cast(Answer, draw.answer.copy())
        ratio = mechanism.log_probability(answer) - draw.mechanism.log_probability(answer)
        if not np.isfinite(ratio).all():
            raise DivergenceError("other candidates than on the other data set")
        self.loss += float(ratio.sum())
        return answer

    def close(self) -> None:
        """Refuse questions that were asked there and not here.

        Raises
        ------
        DivergenceError
        """
        if self._left:
            raise DivergenceError("fewer questions than on the other data set")


def _is_same(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    """Whether two questions agree in all that is public."""
    return len(first) == len(second) and all(
        np.array_equal(a, b) for a, b in zip(first, second, strict=True)
    )
