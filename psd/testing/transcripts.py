"""Transcripts of builds: record the draws on D, and replay the answers on D'. Synthetic data only.

A method is built on D with scripted answers, then on D' with the same answers. If a public
argument, a cut or a cell differs, the build depends on the data in another way than by an answer.
If not, the loss is at most the sum, over questions and cells, of epsilon times the change of the
true answer over the sensitivity, and must not exceed the epsilon of the release. It is computed
from the public scales of the draws; audits tell whether samplers follow these.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers
from psd.curator.curator import Curator
from psd.decompositions import Decomposition
from psd.ingest.tally import Tally
from psd.mechanisms.base import Answer, Mechanism, Sampler
from psd.mechanisms.exponential_mechanism import ExponentialMechanism
from psd.mechanisms.gaussian import GaussianMechanism
from psd.mechanisms.laplace import LaplaceMechanism
from psd.mechanisms.threshold import ThresholdMechanism
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO, Loss
from psd.space.box_tree import Tree
from psd.space.covariate import Covariate
from psd.space.domain import Domain
from psd.space.region_tree import Regions
from psd.testing.data import neighbour_pairs, small_domain, small_tally

__all__ = ["Draw", "LeakError", "RecordingSampler", "ReplayingSampler"]


Kind = Literal["count", "gaussian", "select", "threshold", "other"]


class LeakError(AssertionError):
    """The questions, the cells or the loss of a build are not those that its epsilon allows."""


@dataclass(kw_only=True, eq=False)
class Draw:
    """One draw of a build: public arguments, private input and answer.

    Parameters
    ----------
    kind : {"count", "select", "threshold", "other"}
        Kind of mechanism.
    mechanism : Mechanism
        Mechanism with its arguments.
    loss, sensitivity : ndarray, shape (n,)
        Of each answer. The scale of the noise of a threshold is sensitivity over loss.
    true : ndarray
        Private input: counts, compared numbers, or the score of every candidate.
    group, line : ndarray
        Index of the answer and of the candidate of each element of the input.
    question, charge : int
        Number of the question of the curator, and its largest loss; 0 without a curator.
    answer : ndarray
        Answer of the sampler.

    Examples
    --------
    >>> import psd
    >>> from psd.testing import run_method, small_domain, small_tally
    >>> sampler = RecordingSampler()
    >>> method = psd.decompositions.Quadtree(height=1, budget="leaf")
    >>> run = run_method(method, small_tally(2, [0]), small_domain(2), 1_000, sampler)
    >>> sampler.draws[0].kind, sampler.draws[0].loss.tolist()
    ('count', [1000, 1000, 1000, 1000])
    """

    kind: Kind
    mechanism: Mechanism[Any]
    loss: Integers
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
            (self.loss, other.loss),
            (self.sensitivity, other.sensitivity),
            (self.group, other.group),
            (self.line, other.line),
            *itertools.zip_longest(self.mechanism.public, other.mechanism.public),
        )
        return self.kind != other.kind or not all(np.array_equal(a, b) for a, b in pairs)


@dataclass(frozen=True, slots=True)
class Script:
    """Rules that compute answers; the first argument of each rule is the number of the draw.

    Parameters
    ----------
    name : str
        Name in test reports.
    count : callable
        Noisy counts from true counts.
    pick : callable
        Index of a candidate from the scores of all candidates.
    compare : callable
        Answers of comparisons with 0.

    Examples
    --------
    >>> one_more = Script("one more", lambda draw, true: true + 1, lambda draw, scores: 0)
    >>> one_more.count(0, np.array([1, 2])).tolist()
    [2, 3]
    """

    name: str
    count: Callable[[int, Integers], Integers]
    pick: Callable[[int, Integers], int]
    compare: Callable[[int, Integers], NDArray[np.bool_]] = lambda number, values: values > 0


SCRIPTS = (
    # No noise, the best cut.
    Script("echo", lambda number, true: true, lambda number, scores: int(scores.argmax())),
    # An offset that changes every size derived from a total, the worst cut, the deepest shape.
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
"""Three sets of rules that lead a build to different cells."""


class _TranscriptSampler:
    """A sampler that stores its draws and the question of each."""

    def __init__(self) -> None:
        self.draws: list[Draw] = []
        self.curator: Curator | None = None

    def draw(self, mechanism: Mechanism[Answer]) -> Answer:
        """Answer a draw and store it."""
        draw = _describe_draw(mechanism)
        questions = () if self.curator is None else self.curator.questions
        draw.question = len(questions)
        draw.charge = int(questions[-1].loss.max(initial=0)) if questions else 0
        answer: Answer = self.answer(draw)
        draw.answer = answer.copy()
        self.draws.append(draw)
        return answer

    def answer(self, draw: Draw) -> Any:
        """Answer a draw."""
        raise NotImplementedError


class RecordingSampler(_TranscriptSampler):
    """A sampler that answers by a script or another sampler, and stores the draws.

    A script has no rule for mechanisms of other packages; they are drawn by their own law. Releases
    that are drawn by it cannot be saved.

    Parameters
    ----------
    source : Script or Sampler, optional
        Rules of the answers, or a sampler that draws them; by default true counts and the best
        candidates.

    Examples
    --------
    >>> from psd.testing import run_method, small_domain, small_tally
    >>> sampler = RecordingSampler()
    >>> import psd
    >>> method = psd.decompositions.Quadtree(height=1, budget="leaf")
    >>> tally = small_tally(2, [0, 0, 3])
    >>> tree = run_method(method, tally, small_domain(2), 1_000, sampler).tree
    >>> [draw.answer.tolist() for draw in sampler.draws]
    [[2, 0, 0, 1]]
    """

    def __init__(self, source: Script | Sampler = SCRIPTS[0]) -> None:
        super().__init__()
        self.source = source

    def answer(self, draw: Draw) -> Any:
        """Answer by the script or the sampler."""
        if not isinstance(self.source, Script):
            return self.source.draw(draw.mechanism)
        script, number = self.source, len(self.draws)
        if draw.kind in ("count", "gaussian"):
            return script.count(number, draw.true)
        if draw.kind == "threshold":
            return script.compare(number, draw.true)
        if draw.kind == "other":
            return draw.mechanism.sample()
        # Candidates stand group by group.
        starts = np.searchsorted(draw.group, np.arange(len(draw.loss) + 1)).tolist()
        picks = [a + script.pick(number, draw.true[a:b]) for a, b in itertools.pairwise(starts)]
        return draw.line[np.array(picks, np.int64)]


class ReplayingSampler(_TranscriptSampler):
    """A sampler that returns recorded answers as long as the questions are the same.

    Parameters
    ----------
    recorded : sequence of Draw
        Draws of a `RecordingSampler`.

    Raises
    ------
    LeakError
        From a draw whose public arguments differ from the recorded ones.

    Examples
    --------
    >>> import psd
    >>> from psd.testing import run_method, small_domain, small_tally
    >>> sampler = RecordingSampler()
    >>> method = psd.decompositions.Quadtree(height=1, budget="leaf")
    >>> first = run_method(method, small_tally(2, [0]), small_domain(2), 1_000, sampler)
    >>> again = ReplayingSampler(sampler.draws)
    >>> other = run_method(method, small_tally(2, [0, 3]), small_domain(2), 1_000, again)
    >>> other.tree.count.tolist() == first.tree.count.tolist()
    True
    """

    def __init__(self, recorded: Sequence[Draw]) -> None:
        super().__init__()
        self.recorded = recorded

    def answer(self, draw: Draw) -> Any:
        """Return the recorded answer of the draw with this number."""
        if len(self.draws) == len(self.recorded):
            raise LeakError("more questions than on the other data set")
        first = self.recorded[len(self.draws)]
        if draw.differs_from(first):
            raise LeakError("another question than on the other data set")
        return first.answer.copy()

    @property
    def loss(self) -> float:
        """Log of the probability of the answers so far, minus the same on the first data set.

        Raises
        ------
        LeakError
            If an answer of one of the data sets is impossible on the other.
        """
        loss = sum(
            answer_ratio(draw, first)
            for draw, first in zip(self.draws, self.recorded, strict=False)
        )
        if not np.isfinite(loss):
            raise LeakError("other candidates than on the other data set")
        return loss

    def close(self) -> None:
        """Check that all recorded draws were replayed.

        Raises
        ------
        LeakError
            If there were fewer questions than on the first data set.
        """
        if len(self.draws) < len(self.recorded):
            raise LeakError("fewer questions than on the other data set")


def answer_ratio(draw: Draw, other: Draw) -> float:
    """Compute the log-ratio of the probabilities of the first answer, by two laws of draws."""
    first, second = (d.mechanism.log_probability(draw.answer) for d in (draw, other))
    return float((first - second).sum())


def _describe_draw(mechanism: Mechanism[Any]) -> Draw:
    """Describe the arguments of a mechanism in the same form for all mechanisms."""
    if isinstance(mechanism, LaplaceMechanism):
        return _describe_elements(
            "count", mechanism, mechanism.epsilon, mechanism.sensitivity, mechanism.true
        )
    if isinstance(mechanism, GaussianMechanism):
        return _describe_elements(
            "gaussian", mechanism, mechanism.rho, mechanism.squared_sensitivity, mechanism.true
        )
    if isinstance(mechanism, ThresholdMechanism):
        scales = mechanism.denominator, mechanism.numerator
        return _describe_elements("threshold", mechanism, *scales, mechanism.values)
    if isinstance(mechanism, ExponentialMechanism):
        # Every integer of an interval is a candidate, one after another.
        candidates, length = mechanism.candidates, mechanism.candidates.length
        group = np.repeat(candidates.group, length)
        before = np.repeat(np.cumsum(length) - length, length)
        line = np.repeat(candidates.first, length) + np.arange(len(group)) - before
        return Draw(
            kind="select", mechanism=mechanism, loss=mechanism.epsilon, group=group, line=line,
            sensitivity=mechanism.sensitivity, true=np.repeat(candidates.score, length),
        )  # fmt: skip
    return _describe_elements(
        "other", mechanism, mechanism.cost, 1, np.zeros(len(mechanism.cost), np.int64)
    )


def _describe_elements(
    kind: Kind, mechanism: Mechanism[Any], loss: Integers, sensitivity: int, true: Integers
) -> Draw:
    """Draw of one answer for each element."""
    each = np.arange(len(true))
    return Draw(
        kind=kind, mechanism=mechanism, loss=loss,
        sensitivity=np.full(len(true), sensitivity), true=true.copy(), group=each, line=each,
    )  # fmt: skip


ROUNDING = 1e-9
"""Log-probabilities are sums of a few dozen floats of magnitude 1."""


class Run(NamedTuple):
    """Curator and tree of one build; the curator has the questions.

    Examples
    --------
    >>> import psd
    >>> from psd.testing import run_method, small_domain, small_tally
    >>> method = psd.decompositions.Quadtree(height=1, budget="leaf")
    >>> run = run_method(method, small_tally(2, [0]), small_domain(2), 1_000, RecordingSampler())
    >>> len(run.tree), len(run.curator.questions)
    (5, 1)
    """

    curator: Curator
    tree: Tree


def run_method(
    method: Decomposition,
    tally: Tally,
    domain: Domain,
    loss: int | Loss,
    sampler: Sampler,
    covariate: Covariate | None = None,
    regions: Regions | None = None,
) -> Run:
    """Build a method on exact counts through a sampler.

    Parameters
    ----------
    method : Decomposition
        With public parameters.
    tally, domain
        Such as `small_tally` and `small_domain`.
    loss : int or Loss
        Loss of the build; a number is nano-epsilon.
    sampler : Sampler
        `RecordingSampler`, `ReplayingSampler` or another one.
    covariate : Covariate, optional
        Public density of the domain.
    regions : Regions, optional
        Hierarchy that the tally was counted by.

    Examples
    --------
    >>> import psd
    >>> from psd.testing import small_domain, small_tally
    >>> method = psd.decompositions.Quadtree(height=1, budget="leaf")
    >>> run = run_method(method, small_tally(2, [0]), small_domain(2), 1_000, RecordingSampler())
    >>> run.tree.loss.tolist()
    [0, 1000, 1000, 1000, 1000]
    """
    curator = Curator(
        tally,
        domain,
        budget=Budget(loss),
        sampler=sampler,
        covariate=covariate,
        regions=regions,
    )
    if isinstance(sampler, RecordingSampler | ReplayingSampler):
        sampler.curator = curator
    return Run(curator, method.build(curator))


def compare_runs(first: Run, second: Run) -> None:
    """Check that two runs with the same answers have the same questions, declarations and cells.

    Raises
    ------
    LeakError
        If they differ.

    Examples
    --------
    >>> import psd
    >>> from psd.testing import run_method, small_domain, small_tally
    >>> sampler = RecordingSampler()
    >>> method = psd.decompositions.Quadtree(height=1, budget="leaf")
    >>> first = run_method(method, small_tally(2, [0]), small_domain(2), 1_000, sampler)
    >>> again = ReplayingSampler(sampler.draws)
    >>> compare_runs(first, run_method(method, small_tally(2, [3]), small_domain(2), 1_000, again))
    """
    (curator, tree), (other, other_tree) = first, second
    questions, others = curator.questions, other.questions
    if len(questions) != len(others):
        raise LeakError("fewer questions than on the other data set")
    for a, b in zip(questions, others, strict=True):
        if a.kind != b.kind or not np.array_equal(a.boxes, b.boxes):
            raise LeakError("questions about other cells than on the other data set")
    if curator.declared != other.declared:
        raise LeakError("the method declares another choice than on the other data set")
    for name in ("boxes", "parent", "count", "loss", "noise", "sums"):
        if not np.array_equal(getattr(tree, name), getattr(other_tree, name)):
            raise LeakError(f"{name} of the tree depend on the data")


def transcript_loss(draws: Sequence[Draw], others: Sequence[Draw]) -> Fraction | float:
    """Bound the log-ratio of the probabilities of the same answers on two data sets.

    A count costs epsilon times its change over the sensitivity. A selection costs the same for the
    candidate with the largest change of score, for all answers. Thresholds of one question and
    draws of other mechanisms cost the log-ratio of their answers.

    Raises
    ------
    LeakError
        If an input changes by more than its sensitivity, or thresholds cost more than their charge.

    Examples
    --------
    >>> import psd
    >>> from psd.testing import run_method, small_domain, small_tally
    >>> method = psd.decompositions.Quadtree(height=1, budget="leaf")
    >>> one, two = RecordingSampler(), RecordingSampler()
    >>> first = run_method(method, small_tally(2, [0]), small_domain(2), 10**9, one)
    >>> two = ReplayingSampler(one.draws)
    >>> other = run_method(method, small_tally(2, [0, 0]), small_domain(2), 10**9, two)
    >>> float(transcript_loss(one.draws, two.draws))
    1.0
    """
    total: Fraction | float = Fraction(0)
    thresholds: dict[tuple[int, int], float] = {}
    for a, b in zip(draws, others, strict=True):
        if a.kind == "threshold":
            key = (a.question, a.charge)
            thresholds[key] = thresholds.get(key, 0.0) + answer_ratio(a, b)
        elif a.kind == "other":
            total += abs(answer_ratio(a, b))
        else:
            total += _bound_draw(a, b)
    for (_, charge), ratio in thresholds.items():
        if abs(ratio) > charge / NANO + ROUNDING:
            raise LeakError(f"a question costs {abs(ratio)} and was charged {charge / NANO}")
        total += abs(ratio)
    return total


def _bound_draw(a: Draw, b: Draw) -> Fraction:
    """Bound the loss of a draw of several answers, each with a loss and a sensitivity."""
    change = np.zeros(len(a.loss), np.int64)
    # The largest change of a group's scores; a count is a group of its own.
    np.maximum.at(change, a.group, np.abs(a.true - b.true))
    parts = {
        int(i): Fraction(int(change[i]), int(a.sensitivity[i])) for i in np.flatnonzero(change)
    }
    if sum(parts.values()) > 1:
        raise LeakError(f"{a.kind} changes by {sum(parts.values())} times its sensitivity")
    costs = (Fraction(int(a.loss[i]), NANO) * part for i, part in parts.items())
    return sum(costs, Fraction(0))


def replay_loss(
    method: Decomposition,
    side: int,
    k: int = 1,
    *,
    epsilon: int = NANO,
    every: int = 1,
    shift: int = 0,
    covariate: Covariate | None = None,
    scripts: Sequence[Script] = SCRIPTS,
) -> tuple[Fraction | float, int]:
    """Compute the largest loss between all data sets of at most three records and their neighbours.

    Parameters
    ----------
    method : Decomposition
        Method whose parameters suit a small lattice.
    side : int
        Columns and rows of the lattice.
    k : int
        Largest number of records of one user; a neighbour has 1 to k further records.
    epsilon : int
        Nano-epsilon of each build.
    every, shift : int
        Select a part of the pairs; see `psd.testing.neighbour_pairs`.
    covariate : Covariate, optional
        Public density of the domain.
    scripts : sequence of Script
        Rules that answer.

    Returns
    -------
    worst : Fraction or float
        Largest loss.
    pairs : int
        Number of checked pairs.

    Raises
    ------
    LeakError
        If a build depends on the data other than by answers, or the loss exceeds epsilon.

    Examples
    --------
    >>> import psd
    >>> worst, pairs = replay_loss(psd.decompositions.Quadtree(height=1), 2, every=20)
    >>> float(worst) <= 1, pairs > 0
    (True, True)
    """
    domain, pairs = small_domain(side), 0
    worst: Fraction | float = Fraction(0)
    for rows, users in neighbour_pairs(side, k, every, shift):
        recorders = [RecordingSampler(script) for script in scripts]
        tally = small_tally(side, rows, k)
        runs = [run_method(method, tally, domain, epsilon, r, covariate) for r in recorders]
        # One recorded build serves all users that may be added to its data set.
        for user in users:
            pairs += 1
            tally = small_tally(side, rows + user, k)
            for recorder, first in zip(recorders, runs, strict=True):
                replayer = ReplayingSampler(recorder.draws)
                compare_runs(first, run_method(method, tally, domain, epsilon, replayer, covariate))
                worst = max(worst, transcript_loss(recorder.draws, replayer.draws))
    if worst > Fraction(epsilon, NANO):
        raise LeakError(f"loss {worst} above the epsilon {Fraction(epsilon, NANO)} of the build")
    return worst, pairs
