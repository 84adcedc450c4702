"""Exact loss on small spaces: all answers of selections and thresholds, and their odds.

All shapes of a build are enumerated, and the signed log-ratios of the probabilities of answers are
added up. Counts are bounded as in `psd.testing.transcripts`: their noise allows every answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from psd._util.arrays import Integers
from psd.curator.curator import ChargedQuestion
from psd.decompositions import Decomposition
from psd.ingest.tally import Tally
from psd.privacy.loss import NANO
from psd.space.domain import Domain
from psd.space.grids import lattice_codes
from psd.testing.data import data_sets, neighbours, small_domain, small_tally
from psd.testing.transcripts import (
    ROUNDING,
    SCRIPTS,
    Draw,
    LeakError,
    RecordingSampler,
    ReplayingSampler,
    Script,
    answer_ratio,
    run_method,
)


class WalkingSampler(RecordingSampler):
    """Answers selections and comparisons by a list of choices, and by the first option after it."""

    def __init__(self, script: Script, choices: Sequence[int]) -> None:
        super().__init__(script)
        self.left, self.options, self.taken = list(choices), list[int](), list[int]()

    def answer(self, draw: Draw) -> Any:
        """Answer by the choices, or by the script if there is no choice to make."""
        answer = super().answer(draw)
        if draw.kind == "select":
            for index in range(len(draw.loss)):
                lines = draw.line[draw.group == index]
                answer[index] = lines[self.choose(len(lines))]
        elif draw.kind == "threshold":
            answer = np.array([self.choose(2) for _ in draw.true], bool)
        return answer

    def choose(self, options: int) -> int:
        """Return the index of the next option, and store it."""
        choice = self.left.pop(0) if self.left else 0
        self.options.append(options)
        self.taken.append(choice)
        return choice


def walks(
    method: Decomposition, tally: Tally, domain: Domain, script: Script, *, epsilon: int = NANO
) -> Iterator[WalkingSampler]:
    """Yield the samplers of all builds that differ in a selection or a comparison.

    Examples
    --------
    >>> import psd
    >>> from psd.testing import SCRIPTS, small_domain, small_tally
    >>> method = psd.decompositions.Quadtree(height=1)
    >>> len(list(walks(method, small_tally(2, [0]), small_domain(2), SCRIPTS[0])))
    1
    """
    pending: list[list[int]] = [[]]
    while pending:
        choices = pending.pop()
        sampler = WalkingSampler(script, choices)
        run_method(method, tally, domain, epsilon, sampler)
        # Depth first: each choice that took its first option has its other options to come.
        for index in range(len(choices), len(sampler.options)):
            rest = range(1, sampler.options[index])
            pending += [[*sampler.taken[:index], choice] for choice in rest]
        yield sampler


def exact_loss(
    method: Decomposition,
    *,
    side: int = 2,
    size: int = 1,
    k: int = 1,
    epsilon: int = NANO,
    scripts: Sequence[Script] = SCRIPTS,
) -> float:
    """Compute the largest loss over all small data sets, added users with k records, and shapes.

    Parameters
    ----------
    method : Decomposition
        Method whose parameters suit a small lattice.
    side : int
        Columns and rows of the lattice.
    size : int
        Largest number of records of a data set.
    k : int
        Number of records of the added user.
    epsilon : int
        Nano-epsilon of each build.
    scripts : sequence of Script
        Rules that answer counts.

    Raises
    ------
    LeakError
        If the loss exceeds epsilon by more than rounding.

    Examples
    --------
    >>> import psd
    >>> float(exact_loss(psd.decompositions.Quadtree(height=1, budget="leaf"))) <= 1
    True
    """
    domain, worst = small_domain(side), 0.0
    users = [rows for rows in neighbours(side, k) if len(rows) == k]
    for rows in data_sets(side, size):
        for script in scripts:
            for first in walks(method, small_tally(side, rows, k), domain, script, epsilon=epsilon):
                for user in users:
                    second = ReplayingSampler(first.draws)
                    run_method(method, small_tally(side, rows + user, k), domain, epsilon, second)
                    worst = max(worst, _pair_loss(first.draws, second.draws))
    if worst > epsilon / NANO + ROUNDING:
        raise LeakError(f"loss {worst} above the epsilon {epsilon / NANO} of the build")
    return worst


def _pair_loss(draws: Sequence[Draw], others: Sequence[Draw]) -> float:
    """Absolute log-ratio of one transcript between two data sets."""
    shape, counts = 0.0, Fraction(0)
    for a, b in zip(draws, others, strict=True):
        # Noise allows every answer, so counts are bounded; other answers are exact.
        if a.kind == "count":
            change = np.abs(a.true - b.true)
            scales = [
                Fraction(int(s) * NANO, int(e)) for s, e in zip(a.sensitivity, a.loss, strict=True)
            ]
            counts += sum((int(c) / s for c, s in zip(change, scales, strict=True)), Fraction(0))
        else:
            shape += answer_ratio(a, b)
    return abs(shape) + float(counts)


def spent_by_cell(questions: Iterable[ChargedQuestion], side: int) -> Integers:
    """Sum the nano-epsilons of all questions at each cell of a small lattice.

    Parameters
    ----------
    questions : iterable of ChargedQuestion
        From `Curator.questions`.
    side : int
        Columns and rows of the lattice.

    Returns
    -------
    ndarray, shape (side, side), int64
        By column and row.

    Examples
    --------
    >>> import psd
    >>> from psd.testing import RecordingSampler, run_method, small_domain, small_tally
    >>> method = psd.decompositions.Quadtree(height=1)
    >>> run = run_method(method, small_tally(2, [0]), small_domain(2), 1_000, RecordingSampler())
    >>> spent_by_cell(run.curator.questions, 2).tolist()
    [[1000, 1000], [1000, 1000]]
    """
    column, row = (axis.ravel() for axis in np.indices((side, side)))
    total = np.zeros(side * side, np.int64)
    for question in questions:
        x, y = column, row
        if question.curve:
            x, y = lattice_codes(column, row, (side, side), question.curve), np.zeros_like(row)
        # Each box against each lattice cell, (questions, cells).
        x0, y0, x1, y1 = question.boxes.T[:, :, None]
        inside = (x >= x0) & (x < x1) & (y >= y0) & (y < y1)
        total += (inside * question.loss[:, None]).sum(axis=0)
    return total.reshape(side, side)
