"""Loss of a shape: the worst path, every shape of small lattices, and bugs in the rule.

The worst path has 20 levels and counts that a dynamic programme chose; it is then built for
real, by the curator on the default lattice, on the data set and on its neighbour.
"""

import itertools
import math
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
import pytest
from replay import SCRIPTS, Recorder, Replayer, Script, Violation, compare, loss, run
from shapes import ROUNDING, answers_log_probability, worst_path

import psd.curator
import psd.shape
from psd.domain import Domain
from psd.epsilon import NANO
from psd.tally import Tally

LEVELS = 20
EPSILONS = (0.5, 1, 1.1, 1.65, 2, 6.5, 8, 20)
PLAIN = Domain(bounds=(0, 0, 1, 1), crs="EPSG:3857")
PATH = replace(SCRIPTS[0], name="path", split=lambda step, biased: np.arange(len(biased)) == 0)


@dataclass(frozen=True)
class ShapeAlone:
    """All of epsilon for a shape."""

    height: int = LEVELS

    def build(self, curator):
        curator.shape(curator.root(), curator.epsilon, height=self.height)
        return curator.tree()


def rule_of(epsilon, k):
    """Scale and delta as the curator has them, whatever was planted there."""
    rule = psd.curator.split_rule(np.array([round(epsilon * NANO)]), k)
    return rule.numerator / int(rule.denominator[0]), rule.delta[0]


def at_points(places, k):
    """Tally of numbers of records at lattice cells, in the order of the cells."""
    kept = [(x, y, n) for (x, y), n in places if n]
    columns, rows, counts = np.array(kept, np.int64).reshape(-1, 3).T
    return Tally(
        columns=columns.astype(np.int32), rows=rows.astype(np.int32), counts=counts, contributions=k
    )


def on_path(counts, k, more=0):
    """Data whose nodes in the south-west corner have the counts, the root's first."""
    off = [(2 ** (LEVELS - 1 - d),) * 2 for d in range(len(counts) - 1)]
    left = [int(n) for n in -np.diff(counts)]
    return at_points([((0, 0), counts[-1] + more), *zip(off[::-1], left[::-1], strict=True)], k)


def path_loss(epsilon, k):
    """Loss of the worst path as built, and as worked out."""
    scale, delta = rule_of(epsilon, k)
    worst, counts = worst_path(scale, delta, records=k)
    recorder, method, nano = Recorder(PATH), ShapeAlone(), round(epsilon * NANO)
    first = run(method, on_path(counts, k), PLAIN, nano, recorder)
    replayer = Replayer(recorder.calls)
    compare(first, run(method, on_path(counts, k, k), PLAIN, nano, replayer))
    assert len(recorder.calls) == LEVELS
    return loss(recorder.calls, replayer.calls), worst


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_worst_path_stays_below_its_charge(epsilon, k):
    built, worst = path_loss(epsilon, k)
    # 3/7 for each of two nodes is always reached by one record; the whole only in the limit.
    assert (6 / 7 if k == 1 else 0.6) * epsilon <= built + ROUNDING
    assert built == pytest.approx(worst, rel=1e-9)
    assert built <= epsilon


@pytest.mark.parametrize("k", [1, 2, 3, 10])
def test_no_path_of_any_epsilon_passes_it(k):
    for epsilon in np.geomspace(0.2, 200, 60):
        scale, delta = rule_of(epsilon, k)
        assert worst_path(scale, int(delta), records=k)[0] <= round(epsilon * NANO) / NANO


@pytest.mark.parametrize(
    ("name", "to_whole", "losses"),
    [
        ("exact", float, (0.94, 0.95, 0.93, 0.86, 0.92, 1.29, 1.29, 3.00)),
        ("down", math.floor, (0.95, 0.95, 1.01, 1.10, 1.03, 0.87, 0.86, 0.86)),
        ("up", math.ceil, (0.93, 0.91, 0.93, 0.93, 0.91, 0.87, 0.86, 0.86)),
    ],
)
def test_why_delta_is_rounded_up(name, to_whole, losses):
    """Loss over epsilon of the worst path for the three ways to take delta from lambda ln 4."""
    for epsilon, expected in zip(EPSILONS, losses, strict=True):
        scale = 7 / (3 * epsilon)
        least = 0.0 if name == "exact" else 1
        delta = max(to_whole(scale * math.log(4)), least)
        assert worst_path(scale, delta)[0] / epsilon == pytest.approx(expected, abs=0.006)


class Given(Recorder):
    """Splits as given, and no more after that."""

    def __init__(self, given: list[bool]) -> None:
        super().__init__(Script("given", *[None] * 3))
        self.left, self.taken = list(given), []

    def exceeds(self, biased, numerator, denominator):
        answer = np.array([self.left.pop(0) if self.left else False for _ in biased], bool)
        self.taken += answer.tolist()
        self.script = replace(self.script, split=lambda *_: answer)
        return super().exceeds(biased, numerator, denominator)


def probabilities(tally, domain, nano):
    """Log-probability of every shape."""
    found, pending = {}, [[]]
    while pending:
        given = pending.pop()
        noise = Given(given)
        run(ShapeAlone(), tally, domain, nano, noise)
        taken = noise.taken
        found[tuple(taken)] = sum(map(answers_log_probability, noise.calls))
        pending += [[*taken[:place], True] for place in range(len(given), len(taken))]
    return found


def worst_of_all_shapes(lattice, places, numbers, epsilon, k):
    """Largest log-ratio over all shapes, data sets of given numbers at places, and neighbours."""
    domain, seen = replace(PLAIN, lattice=lattice), {}

    def shapes(counts):
        if counts not in seen:
            tally = at_points(zip(places, counts, strict=True), k)
            seen[counts] = probabilities(tally, domain, round(epsilon * NANO))
            assert math.fsum(map(math.exp, seen[counts].values())) == pytest.approx(1, rel=1e-9)
        return seen[counts]

    users = [m for m in itertools.product(range(k + 1), repeat=len(places)) if 0 < sum(m) <= k]
    return max(
        abs(before - after)
        for counts, user in itertools.product(itertools.product(*numbers), users)
        for before, after in zip(
            shapes(counts).values(),
            shapes(tuple(a + b for a, b in zip(counts, user, strict=True))).values(),
            strict=True,
        )
    )


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("epsilon", [0.5, 1.65, 8])
def test_every_shape_of_a_small_lattice(epsilon, k):
    """4 x 4: two levels, 17 shapes; the user's records in one quarter or in two."""
    delta = int(rule_of(epsilon, k)[1])
    numbers = ((0, delta - 1, delta, 2 * delta), (0, delta))
    worst = worst_of_all_shapes((4, 4), ((0, 0), (2, 2)), numbers, epsilon, k)
    assert 0.6 * epsilon <= worst <= epsilon


@pytest.mark.parametrize("epsilon", [1.65, 8])
def test_every_shape_of_a_thin_lattice(epsilon):
    """8 x 1: three levels of halves, 26 shapes."""
    delta = int(rule_of(epsilon, 1)[1])
    numbers = ((0, delta, 2 * delta), (0, delta))
    worst = worst_of_all_shapes((8, 1), ((0, 0), (3, 0)), numbers, epsilon, 1)
    assert 0.8 * epsilon <= worst <= epsilon


@pytest.mark.nightly
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_every_shape_over_more_data(epsilon, k):
    delta = int(rule_of(epsilon, k)[1])
    numbers = ((0, 1, delta - 1, delta, delta + 1, 2 * delta), (0, 1, delta), (0, delta))
    places = ((0, 0), (2, 0), (2, 2))
    worst = worst_of_all_shapes((4, 4), places, numbers, epsilon, k)
    assert 0.6 * epsilon <= worst <= epsilon


def with_rule(change):
    """The curator's rule, changed."""
    original = psd.shape.split_rule
    return [(psd.curator, "split_rule", lambda nano, k: change(original, nano, k))]


def real_delta(rule):
    return rule.numerator / rule.denominator * math.log(4)


PLANTED = {
    "delta rounded down": (
        lambda rule, nano, k: replace(
            r := rule(nano, k), delta=np.maximum(np.floor(real_delta(r)).astype(np.int64), 1)
        ),
        (1.65, 1),
        1.10,
    ),
    "delta that is no integer": (
        lambda rule, nano, k: replace(r := rule(nano, k), delta=real_delta(r)),
        (8, 1),
        1.29,
    ),
    "delta without k": (
        lambda rule, nano, k: replace(rule(nano, k), delta=rule(nano, 1).delta),
        (1, 4),
        1.18,
    ),
    "lambda without k": (
        lambda rule, nano, k: replace(rule(nano, k), numerator=rule(nano, 1).numerator),
        (1, 4),
        2.53,
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_rule_is_caught(name, monkeypatch):
    change, (epsilon, k), expected = PLANTED[name]
    path_loss(epsilon, k)
    for where in with_rule(change):
        monkeypatch.setattr(*where)
    scale, delta = rule_of(epsilon, k)
    assert worst_path(scale, delta, records=k)[0] / epsilon == pytest.approx(expected, abs=0.006)
    with pytest.raises(Violation, match="a shape tells"):
        path_loss(epsilon, k)


class HandsBackMargins:
    """Planted: the noisy number that was compared with 0 is published, node by node."""

    def __init__(self, noise):
        self.noise = noise

    def exceeds(self, biased, numerator, denominator):
        return self.noise.count(biased, denominator, numerator // NANO) > 0


def test_margins_handed_back_are_caught():
    """On five nodes above the floor they cost 5 * 3/7 of the charge."""
    counts, height = [200] * 5, 5
    handed = []
    for noise in (Recorder(PATH), None):
        noise = noise or Replayer(handed[0].calls)
        with ExitStack() as stack:
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            grow = psd.shape.grow
            patch.setattr(
                psd.curator,
                "grow",
                lambda *a, grow=grow: grow(*a[:5], HandsBackMargins(a[5]), *a[6:]),
            )
            run(ShapeAlone(height), on_path(counts, 1, len(handed)), PLAIN, NANO, noise)
        handed.append(noise)
    told = loss(*(noise.calls for noise in handed))
    assert told == pytest.approx(5 * 3 / 7)
    assert told > 1
