"""Planted bugs of shapes: the rule by which a node is divided, and what is said of it."""

from __future__ import annotations

import dataclasses
import math
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

import psd.curator.curator
import psd.curator.privtree_split
from privacy.planted_bugs.checks import REPLAYED, Replayed
from privacy.planted_bugs.mutant import Mutant, replaced
from psd.decompositions.privtree import PrivTree
from psd.mechanisms.laplace import LaplaceMechanism
from psd.privacy.epsilon import NANO
from psd.testing import LeakError, RecordingSampler, ReplayingSampler, run_method, transcript_loss
from support.privacy.shape_paths import PATH, PLAIN, ShapeAlone, on_path, path_loss


@dataclass(frozen=True)
class WorstPath:
    """The worst path of 20 levels tells no more than its charge."""

    epsilon: float
    k: int

    def __call__(self, *_):
        built, _ = path_loss(self.epsilon, self.k)
        assert built <= self.epsilon


def five_nodes_tell_no_more_than_their_charge(*_):
    noise = RecordingSampler(PATH)
    run_method(ShapeAlone(5), on_path([200] * 5, 1), PLAIN, NANO, noise)
    other = ReplayingSampler(noise.draws)
    run_method(ShapeAlone(5), on_path([200] * 5, 1, 1), PLAIN, NANO, other)
    told = transcript_loss(noise.draws, other.draws)
    if told > 1:
        raise LeakError(f"a shape tells {told} and was charged 1")


def _rule(change):
    """The curator's rule, changed."""
    original = psd.curator.privtree_split.split_rule
    return replaced(
        psd.curator.curator,
        "split_rule",
        lambda nano, k: change(original(nano, k), original(nano, 1)),
    )


def _real_delta(rule):
    return rule.numerator / rule.denominator * math.log(4)


def _rounded_down(rule):
    return np.maximum(np.floor(_real_delta(rule)).astype(np.int64), 1)


def delta_rounded_down():
    return _rule(lambda rule, _: dataclasses.replace(rule, delta=_rounded_down(rule)))


def delta_not_whole():
    return _rule(lambda rule, _: dataclasses.replace(rule, delta=_real_delta(rule)))


def delta_without_k():
    return _rule(lambda rule, single: dataclasses.replace(rule, delta=single.delta))


def noise_without_k():
    return _rule(lambda rule, single: dataclasses.replace(rule, numerator=single.numerator))


@dataclass(frozen=True)
class _HandsBackMargins:
    """Publishes the noisy number that was compared with 0, node by node."""

    sampler: object

    def draw(self, mechanism):
        count = LaplaceMechanism(
            true=mechanism.values,
            epsilon=mechanism.denominator,
            sensitivity=mechanism.numerator // NANO,
        )
        return self.sampler.draw(count) > 0


def margins_handed_back():
    original = psd.curator.privtree_split.grow

    def grow(*arguments):
        return original(*arguments[:5], _HandsBackMargins(arguments[5]), *arguments[6:])

    return replaced(psd.curator.curator, "grow", grow)


@contextmanager
def empty_nodes_do_not_draw():
    """A node without records is a leaf of the shape for sure."""
    original = psd.curator.privtree_split.grow

    def grow(growing, points, cells, rule, height, sampler, inside_boundary):
        class Remembered:
            cut = points.cut

            def count(self, nodes):
                self.last = points.count(nodes)
                return self.last

        class Sparse:
            def draw(self, mechanism):
                some, answer = seen.last > 0, np.zeros(len(seen.last), bool)
                if some.any():
                    parts = ("values", "denominator", "cost")
                    parts = {name: getattr(mechanism, name)[some] for name in parts}
                    answer[some] = sampler.draw(dataclasses.replace(mechanism, **parts))
                return answer

        seen = Remembered()
        return original(growing, seen, cells, rule, height, Sparse(), inside_boundary)

    with replaced(psd.curator.curator, "grow", grow):
        yield


WORST = "tests/privacy/test_shape_loss.py::test_the_worst_path_stays_below_its_charge"

MUTANTS = (
    Mutant(
        id="delta-rounded-down",
        wrong="the decay of a shape is rounded down, and a path costs 1.10 of its charge",
        like="PrivTree with whole counts",
        plant=delta_rounded_down,
        check=WorstPath(1.65, 1),
        test=WORST,
    ),
    Mutant(
        id="delta-not-whole",
        wrong="the decay of a shape is no whole number, and a path costs 1.29 of its charge",
        like="PrivTree with whole counts",
        plant=delta_not_whole,
        check=WorstPath(8, 1),
        test=WORST,
    ),
    Mutant(
        id="delta-without-k",
        wrong="the decay of a shape is that of one row, where a user has k = 4",
        like="PrivTree for users",
        plant=delta_without_k,
        check=WorstPath(1, 4),
        test=WORST,
    ),
    Mutant(
        id="shape-noise-without-k",
        wrong="the noise of a shape is that of one row, where a user has k = 4",
        like="PrivTree for users",
        plant=noise_without_k,
        check=WorstPath(1, 4),
        test=WORST,
    ),
    Mutant(
        id="margins-handed-back",
        wrong="the noisy number that was compared with 0 is published with the shape",
        like="reusing noise that was paid as a comparison",
        plant=margins_handed_back,
        check=five_nodes_tell_no_more_than_their_charge,
        test=WORST,
    ),
    Mutant(
        id="empty-nodes-do-not-draw",
        wrong="a node without records is a leaf for sure, to save a draw",
        like="pruning on true counts",
        plant=empty_nodes_do_not_draw,
        check=Replayed(),
        sound=PrivTree(),
        test=REPLAYED,
    ),
)
