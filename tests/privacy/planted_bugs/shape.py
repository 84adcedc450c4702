"""Planted bugs of shapes: the rule by which a node is divided, and what is said of it."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

import psd.curator.curator
import psd.curator.privtree_split
from privacy.planted_bugs.bug import planted, replaced
from psd.mechanisms.laplace import LaplaceMechanism
from psd.privacy.epsilon import NANO

WORST = "tests/privacy/test_shape_loss.py::test_the_worst_path_stays_below_its_charge"
REPLAY = "tests/privacy/test_replay.py::test_no_answer_tells_more_than_epsilon"

WHOLE_COUNTS = "PrivTree with integer counts"
USERS = "PrivTree for users"


def rule_as(change):
    """The curator's rule for k records, changed with the help of the rule for one."""
    original = psd.curator.privtree_split.split_rule
    return replaced(
        psd.curator.curator,
        "split_rule",
        lambda nano, k: change(original(nano, k), original(nano, 1)),
    )


def real_delta(rule):
    return rule.numerator / rule.denominator * math.log(4)


@planted(test=WORST + "[1.65-1]", like=WHOLE_COUNTS)
def delta_rounded_down():
    """The decay of a shape is rounded down, and a path costs 1.10 of its charge."""

    def rounded_down(rule, _):
        delta = np.maximum(np.floor(real_delta(rule)).astype(np.int64), 1)
        return dataclasses.replace(rule, delta=delta)

    return rule_as(rounded_down)


@planted(test=WORST + "[8-1]", like=WHOLE_COUNTS)
def delta_not_an_integer():
    """The decay of a shape is no integer, and a path costs 1.29 of its charge."""
    return rule_as(lambda rule, _: dataclasses.replace(rule, delta=real_delta(rule)))


@planted(test=WORST + "[1-4]", like=USERS)
def delta_without_k():
    """The decay of a shape is that of one row, where a user has k = 4."""
    return rule_as(lambda rule, single: dataclasses.replace(rule, delta=single.delta))


@planted(test=WORST + "[1-4]", like=USERS)
def shape_noise_without_k():
    """The noise of a shape is that of one row, where a user has k = 4."""
    return rule_as(lambda rule, single: dataclasses.replace(rule, numerator=single.numerator))


@dataclass(frozen=True)
class HandsBackMargins:
    """Publishes the noisy number that was compared with 0, node by node."""

    sampler: object

    def draw(self, mechanism):
        count = LaplaceMechanism(
            true=mechanism.values,
            epsilon=mechanism.denominator,
            sensitivity=mechanism.numerator // NANO,
        )
        return self.sampler.draw(count) > 0


@planted(test=WORST + "[1-1]", like="reusing noise that was paid as a comparison")
def margins_handed_back():
    """The noisy number that was compared with 0 is published with the shape."""
    original = psd.curator.privtree_split.grow

    def grow(*arguments):
        return original(*arguments[:5], HandsBackMargins(arguments[5]), *arguments[6:])

    return replaced(psd.curator.curator, "grow", grow)


@planted(test=REPLAY + "[3x3-record-privtree]", like="pruning on true counts")
def empty_nodes_do_not_draw():
    """A node without records is a leaf for sure, to save a draw."""
    original = psd.curator.privtree_split.grow

    def grow(growing, points, cells, rule, height, sampler, inside_boundary):
        class Remembered:
            cut = points.cut

            def count(self, nodes):
                self.last = points.count(nodes)
                return self.last

        class Sparse:
            def draw(self, mechanism):
                occupied, answer = counts.last > 0, np.zeros(len(counts.last), bool)
                if occupied.any():
                    fields = ("values", "denominator", "cost")
                    of_occupied = {name: getattr(mechanism, name)[occupied] for name in fields}
                    answer[occupied] = sampler.draw(dataclasses.replace(mechanism, **of_occupied))
                return answer

        counts = Remembered()
        return original(growing, counts, cells, rule, height, Sparse(), inside_boundary)

    return replaced(psd.curator.curator, "grow", grow)
