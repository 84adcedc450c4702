"""Samplers that record what a build draws, and that replay the answers on another data set."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers
from psd.curator.curator import Curator
from psd.mechanisms.base import Answer, Mechanism
from psd.mechanisms.exponential_mechanism import Candidates, ExponentialMechanism
from psd.mechanisms.laplace import LaplaceMechanism
from psd.mechanisms.threshold import ThresholdMechanism

__all__ = ["SCRIPTS", "Draw", "LeakError", "RecordingSampler", "ReplayingSampler", "Script"]

Kind = Literal["count", "select", "threshold", "other"]


class LeakError(AssertionError):
    """A build leaks: its questions, its cells or its loss are not as its epsilon promises."""


@dataclass(kw_only=True, eq=False)
class Draw:
    """One draw of a build: its public arguments, its private input and its answer.

    Parameters
    ----------
    kind : {"count", "select", "threshold", "other"}
        Which mechanism it is.
    mechanism : Mechanism
        The mechanism itself.
    epsilon, sensitivity : ndarray, shape (n,)
        Of each answer. The scale of the noise of a threshold is their inverse quotient.
    true : ndarray
        Private input: counts, compared numbers, or the score of every candidate.
    group, line : ndarray
        Answer that each element of the input is for, and the candidate that a score is of.
    question, charge : int
        Number of the curator's question that the draw is for, and its largest epsilon.
    answer : ndarray
        What the sampler answered.
    """

    kind: Kind
    mechanism: Mechanism[Any]
    epsilon: Integers
    sensitivity: Integers
    true: Integers
    group: Integers
    line: Integers
    question: int = 0
    charge: int = 0
    answer: NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.int64))

    def differs_from(self, other: Draw) -> bool:
        """Whether a public argument of two draws differs."""
        pairs = (
            (self.epsilon, other.epsilon),
            (self.sensitivity, other.sensitivity),
            (self.group, other.group),
            (self.line, other.line),
            *itertools.zip_longest(self.mechanism.public, other.mechanism.public),
        )
        return self.kind != other.kind or not all(np.array_equal(a, b) for a, b in pairs)


@dataclass(frozen=True, slots=True)
class Script:
    """Rules by which a recording sampler answers; the first argument is the number of the draw.

    Parameters
    ----------
    name : str
        Shown by tests.
    count : callable
        Noisy counts from true ones.
    pick : callable
        Index of a candidate from the scores of all.
    compare : callable
        Which numbers are said to be above 0.
    """

    name: str
    count: Callable[[int, Integers], Integers]
    pick: Callable[[int, Integers], int]
    compare: Callable[[int, Integers], NDArray[np.bool_]] = lambda number, values: values > 0


SCRIPTS = (
    # No noise, the best cut.
    Script("echo", lambda number, true: true, lambda number, scores: int(scores.argmax())),
    # An offset that moves every size that follows from a total, the worst cut, the deepest shape.
    Script(
        "offset",
        lambda number, true: true + 40,
        lambda number, scores: int(scores.argmin()),
        lambda number, values: np.ones(len(values), np.bool_),
    ),
    Script(
        "jumble",
        lambda number, true: (95 if number == 0 else -3) + true * 7 % 5 + np.arange(len(true)) % 4,
        lambda number, scores: (5 * number + 3) % len(scores),
        lambda number, values: (np.arange(len(values)) + number) % 2 == 0,
    ),
)
"""Three ways to answer that lead a build to different cells."""


class _Notebook:
    """A sampler that notes its draws, and the question that each is for."""

    def __init__(self) -> None:
        self.draws: list[Draw] = []
        self.curator: Curator | None = None

    def draw(self, mechanism: Mechanism[Answer]) -> Answer:
        """Note the draw and answer it."""
        draw = _draw_of(mechanism)
        questions = () if self.curator is None else self.curator.questions
        draw.question = len(questions)
        draw.charge = int(questions[-1].epsilon.max(initial=0)) if questions else 0
        answer: Answer = self.answer(draw)
        draw.answer = answer
        self.draws.append(draw)
        return answer

    def answer(self, draw: Draw) -> Any:
        """Answer of a draw."""
        raise NotImplementedError


class RecordingSampler(_Notebook):
    """A sampler that answers by a script and notes the draws; its releases cannot be saved.

    A mechanism of another package is drawn by its own law.

    Parameters
    ----------
    script : Script, optional
        Rules of the answers; the true counts and the best candidates by default.

    Examples
    --------
    >>> from psd.testing import RecordingSampler, run_method, small_domain, small_tally
    >>> sampler = RecordingSampler()
    >>> import psd
    >>> method = psd.decompositions.Quadtree(height=1, budget="leaf")
    >>> tally = small_tally(2, [0, 0, 3])
    >>> tree = run_method(method, tally, small_domain(2), 1_000, sampler).tree
    >>> [draw.answer.tolist() for draw in sampler.draws]
    [[2, 0, 0, 1]]
    """

    def __init__(self, script: Script = SCRIPTS[0]) -> None:
        super().__init__()
        self.script = script

    def answer(self, draw: Draw) -> Any:
        """Answer by the script."""
        number = len(self.draws)
        if draw.kind == "count":
            return self.script.count(number, draw.true)
        if draw.kind == "threshold":
            return self.script.compare(number, draw.true)
        if draw.kind == "other":
            return draw.mechanism.sample()
        starts = np.searchsorted(draw.group, np.arange(len(draw.epsilon) + 1)).tolist()
        picks = [
            a + self.script.pick(number, draw.true[a:b]) for a, b in itertools.pairwise(starts)
        ]
        return draw.line[np.array(picks, np.int64)]


class ReplayingSampler(_Notebook):
    """A sampler that returns recorded answers while the same questions come.

    Parameters
    ----------
    recorded : sequence of Draw
        Draws of a `RecordingSampler`.

    Raises
    ------
    LeakError
        From a draw whose public arguments differ from the recorded ones.
    """

    def __init__(self, recorded: Sequence[Draw]) -> None:
        super().__init__()
        self.recorded = recorded

    def answer(self, draw: Draw) -> Any:
        """Recorded answer of the draw with this number."""
        if len(self.draws) == len(self.recorded):
            raise LeakError("more questions than on the other data set")
        first = self.recorded[len(self.draws)]
        if draw.differs_from(first):
            raise LeakError("another question than on the other data set")
        return first.answer


def _draw_of(mechanism: Mechanism[Any]) -> Draw:
    """Arguments of a draw in one form for all mechanisms."""
    if isinstance(mechanism, LaplaceMechanism):
        return _simple("count", mechanism, mechanism.epsilon, mechanism.sensitivity, mechanism.true)
    if isinstance(mechanism, ThresholdMechanism):
        scales = mechanism.denominator, mechanism.numerator
        return _simple("threshold", mechanism, *scales, mechanism.values)
    if isinstance(mechanism, ExponentialMechanism):
        group, line, score = _every_candidate(mechanism.candidates)
        return Draw(
            kind="select", mechanism=mechanism, epsilon=mechanism.epsilon,
            sensitivity=mechanism.sensitivity, true=score, group=group, line=line,
        )  # fmt: skip
    return _simple("other", mechanism, mechanism.cost, 1, np.zeros(len(mechanism.cost), np.int64))


def _simple(
    kind: Kind, mechanism: Mechanism[Any], epsilon: Integers, sensitivity: int, true: Integers
) -> Draw:
    """Draw of one answer for each element."""
    each = np.arange(len(true))
    return Draw(
        kind=kind, mechanism=mechanism, epsilon=epsilon,
        sensitivity=np.full(len(true), sensitivity), true=true.copy(), group=each, line=each,
    )  # fmt: skip


def _every_candidate(candidates: Candidates) -> Iterable[Integers]:
    """Group, line and score of every single candidate."""
    length = candidates.length
    group, first = np.repeat(candidates.group, length), np.repeat(candidates.first, length)
    before = np.repeat(np.cumsum(length) - length, length)
    line = first + np.arange(len(group)) - before
    return group, line, np.repeat(candidates.score, length)
