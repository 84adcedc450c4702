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
    kind: str
    epsilon: np.ndarray
    sensitivity: int
    true: np.ndarray
    answer: np.ndarray


class Recorder:
    """Noise that answers by a script and notes the questions."""

    def __init__(self, script: Callable[[int, np.ndarray], np.ndarray]) -> None:
        self.script, self.calls = script, []

    def count(self, true, epsilon, sensitivity):
        answer = self.script(len(self.calls), true)
        self.calls.append(Call("count", epsilon.copy(), sensitivity, true.copy(), answer))
        return answer


class Replayer:
    """Noise that gives recorded answers back as long as the same questions come."""

    def __init__(self, recorded: list[Call]) -> None:
        self.recorded, self.calls = recorded, []

    def count(self, true, epsilon, sensitivity):
        if len(self.calls) == len(self.recorded):
            raise Violation("more questions than on the other data set")
        call = self.recorded[len(self.calls)]
        same = (
            call.kind == "count"
            and call.sensitivity == sensitivity
            and np.array_equal(call.epsilon, epsilon)
        )
        if not same:
            raise Violation("another question than on the other data set")
        self.calls.append(Call("count", epsilon, sensitivity, true.copy(), call.answer))
        return call.answer


# Three scripts: a true echo, an offset that moves every size drawn from a total, and a jumble.
SCRIPTS = (
    lambda step, true: true,
    lambda step, true: true + 40,
    lambda step, true: (95 if step == 0 else -3) + true * 7 % 5 + np.arange(len(true)) % 4,
)


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
    """Largest log-ratio of the probability of these answers on the two data sets."""
    total = Fraction(0)
    for a, b in zip(calls, others, strict=True):
        change = np.abs(a.true - b.true)
        if int(change.sum()) > a.sensitivity:
            raise Violation(f"answers change by {change.sum()}, sensitivity {a.sensitivity}")
        total += Fraction(int((a.epsilon * change).sum()), a.sensitivity * NANO)
    return total


def worst_loss(method, side: int, k: int, *, epsilon: int = NANO, every: int = 1, shift: int = 0):
    """Check all data sets of at most three rows and all their neighbours; give the worst loss.

    With ``every`` above 1 a fixed part of the neighbours is checked, starting at ``shift``.
    """
    domain, extra = small_domain(side), additions(side, k)
    worst, pairs = Fraction(0), 0
    for number, rows in enumerate(data_sets(side)):
        recorded = [
            (
                recorder := Recorder(script),
                run(method, small_tally(side, rows, k), domain, epsilon, recorder),
            )
            for script in SCRIPTS
        ]
        for more in extra[(number + shift) % every :: every]:
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
    "grid": ({}, {"size": "2"}),
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
