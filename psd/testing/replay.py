"""Record a build on one data set and replay it on a neighbour, to bound its privacy loss.

A method is built on D with scripted answers, then on D' with the same answers. If a public
argument, a cut or a cell differs, the build depends on the data in another way than by an answer.
If not, the loss between the two is at most the sum, over questions and cells, of epsilon times the
change of the true answer over the sensitivity, and must not exceed the epsilon of the release.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from psd.curator.curator import Curator
from psd.decompositions import Decomposition
from psd.ingest.tally import Tally
from psd.mechanisms.base import Sampler
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO, Loss
from psd.space.box_tree import Tree
from psd.space.covariate import Covariate
from psd.space.domain import Domain
from psd.space.region_frame import Regions
from psd.testing.small import neighbour_pairs, small_domain, small_tally
from psd.testing.transcripts import (
    SCRIPTS,
    Draw,
    LeakError,
    RecordingSampler,
    ReplayingSampler,
    Script,
    answer_ratio,
)

__all__ = ["ROUNDING", "Run", "compare_runs", "replay_loss", "run_method", "transcript_loss"]

ROUNDING = 1e-9
"""Log-probabilities are sums of a few dozen floats of magnitude 1."""


class Run(NamedTuple):
    """Curator and tree of one build; the curator has the questions."""

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
    for name in ("boxes", "parent", "count", "loss", "noise"):
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
