"""Record on one data set, replay on its neighbour: the checker of the privacy tests.

A build is run on D with scripted answers, then on D' with the same answers given back. If any
public argument, cut or box differs, data steered the build past the curator. If not, the loss
between the two is at most the sum, over questions and cells, of epsilon times the change of the
true answer over the sensitivity, which must not pass the epsilon that was promised.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

import psd
from psd.curator import Curator
from psd.domain import Domain
from psd.epsilon import NANO
from psd.tally import Tally


class Violation(AssertionError):
    """The build leaks: what the checker raises and planted bugs must provoke."""


@dataclass
class Call:
    """One question: public arguments, the private input, and the answer.

    The input of a selection is the score of every candidate, line by line.
    """

    kind: str
    epsilon: np.ndarray
    sensitivity: np.ndarray
    true: np.ndarray
    answer: np.ndarray
    group: np.ndarray
    lines: np.ndarray


@dataclass(frozen=True)
class Script:
    """How a recorder answers: true counts plus something, and one of the candidates."""

    name: str
    count: Callable[[int, np.ndarray], np.ndarray]
    pick: Callable[[int, np.ndarray], int]


# A true echo with the best cut, an offset that moves every size drawn from a total with the
# first cut, and a jumble.
SCRIPTS = (
    Script("echo", lambda step, true: true, lambda step, scores: int(scores.argmax())),
    Script("offset", lambda step, true: true + 40, lambda step, scores: 0),
    Script(
        "jumble",
        lambda step, true: (95 if step == 0 else -3) + true * 7 % 5 + np.arange(len(true)) % 4,
        lambda step, scores: (5 * step + 3) % len(scores),
    ),
)


def expanded(candidates):
    """Group, line and score of every single candidate."""
    group = np.repeat(candidates.group, candidates.length)
    first = np.repeat(candidates.first, candidates.length)
    before = np.repeat(np.cumsum(candidates.length) - candidates.length, candidates.length)
    return (
        group,
        first + np.arange(len(group)) - before,
        np.repeat(candidates.score, candidates.length),
    )


class Recorder:
    """Noise that answers by a script and notes the questions."""

    def __init__(self, script: Script) -> None:
        self.script, self.calls = script, []

    def count(self, true, epsilon, sensitivity):
        answer = self.script.count(len(self.calls), true)
        group = np.arange(len(true))
        each = np.full(len(true), sensitivity)
        self.calls.append(Call("count", epsilon, each, true.copy(), answer, group, group))
        return answer

    def select(self, candidates, epsilon, sensitivity):
        group, lines, scores = expanded(candidates)
        starts = np.searchsorted(group, np.arange(len(epsilon) + 1))
        picks = [
            a + self.script.pick(len(self.calls), scores[a:b])
            for a, b in itertools.pairwise(starts)
        ]
        answer = lines[np.array(picks, np.int64)]
        self.calls.append(Call("select", epsilon, sensitivity, scores, answer, group, lines))
        return answer


class Replayer:
    """Gives recorded answers back as long as the same questions come."""

    def __init__(self, recorded: list[Call]) -> None:
        self.recorded, self.calls = recorded, []

    def count(self, true, epsilon, sensitivity):
        group = np.arange(len(true))
        return self._replay("count", epsilon, np.full(len(true), sensitivity), true, group, group)

    def select(self, candidates, epsilon, sensitivity):
        group, lines, scores = expanded(candidates)
        return self._replay("select", epsilon, sensitivity, scores, group, lines)

    def _replay(self, kind, epsilon, sensitivity, true, group, lines):
        if len(self.calls) == len(self.recorded):
            raise Violation("more questions than on the other data set")
        call = self.recorded[len(self.calls)]
        public = ((call.epsilon, epsilon), (call.sensitivity, sensitivity))
        public += ((call.group, group), (call.lines, lines))
        if call.kind != kind or not all(np.array_equal(a, b) for a, b in public):
            raise Violation("another question than on the other data set")
        self.calls.append(Call(kind, epsilon, sensitivity, true.copy(), call.answer, group, lines))
        return call.answer


def small_domain(side: int) -> Domain:
    return Domain(bounds=(0, 0, side, side), crs="EPSG:3857", lattice=(side, side))


def small_tally(side: int, cells: tuple[int, ...], k: int = 1) -> Tally:
    codes, counts = np.unique(np.array(cells, np.int64), return_counts=True)
    return Tally(
        columns=(codes % side).astype(np.int32),
        rows=(codes // side).astype(np.int32),
        counts=counts.astype(np.int64),
        contributions=k,
    )


def data_sets(side: int, rows: int = 3) -> Iterator[tuple[int, ...]]:
    """All multisets of at most so many rows on a lattice."""
    for size in range(rows + 1):
        yield from itertools.combinations_with_replacement(range(side * side), size)


def additions(side: int, k: int) -> list[tuple[int, ...]]:
    """All ways in which one more user can contribute 1 to k rows."""
    cells = range(side * side)
    return [
        rows
        for size in range(1, k + 1)
        for rows in itertools.combinations_with_replacement(cells, size)
    ]


def run(method, tally: Tally, domain: Domain, epsilon: int, noise):
    curator = Curator(tally, domain, epsilon=epsilon, noise=noise)
    return curator, method.build(curator)


def compare(first, second) -> None:
    """Refuse any difference in what was asked or built."""
    (curator, tree), (other, other_tree) = first, second
    if len(curator.questions) != len(other.questions):
        raise Violation("fewer questions than on the other data set")
    for a, b in zip(curator.questions, other.questions, strict=True):
        if a.kind != b.kind or not np.array_equal(a.boxes, b.boxes):
            raise Violation("questions about other cells than on the other data set")
    for name in ("boxes", "parent", "count", "epsilon"):
        if not np.array_equal(getattr(tree, name), getattr(other_tree, name)):
            raise Violation(f"{name} of the tree depend on the data")


def loss(calls: list[Call], others: list[Call]) -> Fraction:
    """Largest log-ratio of the probability of these answers on the two data sets.

    Each cell's answer pays epsilon times its change over the sensitivity; the change of a
    selection is that of the candidate whose score moves most.
    """
    total = Fraction(0)
    for a, b in zip(calls, others, strict=True):
        change = np.zeros(len(a.epsilon), np.int64)
        np.maximum.at(change, a.group, np.abs(a.true - b.true))
        moved = np.flatnonzero(change)
        parts = [Fraction(int(change[i]), int(a.sensitivity[i])) for i in moved]
        if sum(parts) > 1:
            raise Violation(f"{a.kind} changes by {sum(parts)} times its sensitivity")
        total += sum(
            Fraction(int(a.epsilon[i]), NANO) * part for i, part in zip(moved, parts, strict=True)
        )
    return total


def worst_loss(method, side: int, k: int, *, epsilon: int = NANO, every: int = 1, shift: int = 0):
    """Check all data sets of at most three rows and all their neighbours; give the worst loss.

    With ``every`` above 1 a fixed part of the neighbours is checked, starting at ``shift``.
    """
    domain, extra = small_domain(side), additions(side, k)
    worst, pairs = Fraction(0), 0
    for number, rows in enumerate(data_sets(side)):
        neighbours = extra[(number + shift) % every :: every]
        if not neighbours:
            continue
        recorded = [
            (
                recorder := Recorder(script),
                run(method, small_tally(side, rows, k), domain, epsilon, recorder),
            )
            for script in SCRIPTS
        ]
        for more in neighbours:
            neighbour = small_tally(side, rows + more, k)
            pairs += 1
            for recorder, first in recorded:
                replayer = Replayer(recorder.calls)
                compare(first, run(method, neighbour, domain, epsilon, replayer))
                worst = max(worst, loss(recorder.calls, replayer.calls))
    if worst > Fraction(epsilon, NANO):
        raise Violation(f"loss {worst} above the promised {Fraction(epsilon, NANO)}")
    return worst, pairs


# Settings with which each method is exercised on small lattices; a new method runs with its
# defaults until it is listed here.
SMALL_SETTINGS = {
    "adaptive-grid": ({}, {"size": "2", "first_share": "0.3"}),
    "grid": ({}, {"size": "2"}),
    "htree": ({}, {"size": "2"}, {"size": "3"}),
    # With this share, some of the small data sets look uniform to the grid and some do not.
    "kd-cell": ({"resolution": "4", "height": "3", "structure_share": "0.55"},),
    "kd-hybrid": ({"height": "3", "private_levels": "1"},),
    "kd-standard": ({"height": "2"},),
    "quadtree": (
        {"height": "2"},
        {"height": "2", "budget": "uniform"},
        {"height": "1", "budget": "leaf"},
    ),
}


def small_methods() -> list:
    """Every registered method, small."""
    return [
        psd.method(name, settings)
        for name in psd.methods()
        for settings in SMALL_SETTINGS.get(name, ({},))
    ]


def has_selections(method) -> bool:
    """Whether a method selects as well as counts."""
    recorder = Recorder(SCRIPTS[1])
    run(method, small_tally(3, (0, 4)), small_domain(3), NANO, recorder)
    return any(call.kind == "select" for call in recorder.calls)


def is_adaptive(method) -> bool:
    """Whether counts of cells within the domain say which cells a method asks about next."""

    def boxes(factor):
        script = Script(
            "made up",
            lambda _, true: np.arange(len(true)) ** 2 * factor if len(true) > 1 else true + 40,
            lambda _, scores: 0,
        )
        run_of = run(method, small_tally(32, (0, 4)), small_domain(32), NANO, Recorder(script))
        return [question.boxes.tolist() for question in run_of[0].questions]

    return boxes(0) != boxes(1)
