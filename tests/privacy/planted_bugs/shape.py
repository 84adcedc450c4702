"""Planted bugs of shapes: the rule by which a node is divided, and what is said of it."""

import math
from dataclasses import dataclass, replace

import numpy as np

from privacy.planted_bugs.bug import around, planted
from psd.mechanisms.laplace import LaplaceMechanism
from psd.privacy.loss import NANO

WORST = "tests/privacy/test_shape_loss.py::test_the_worst_path_stays_below_its_charge"
REPLAY = "tests/privacy/test_replay.py::test_no_answer_of_a_few_pairs_tells_more_than_epsilon"

WHOLE_COUNTS = "PrivTree with integer counts"
USERS = "PrivTree for users"


SPLIT_RULE = "psd.curator.curator.split_rule"


def real_delta(rule):
    return rule.numerator / rule.denominator * math.log(4)


@planted(test=WORST + "[1.65-1]", like=WHOLE_COUNTS)
@around(SPLIT_RULE)
def delta_rounded_down(original, nano, k):
    """The decay of a shape is rounded down, and a path costs 1.10 of its charge."""
    rule = original(nano, k)
    return replace(rule, delta=np.maximum(np.floor(real_delta(rule)).astype(np.int64), 1))


@planted(test=WORST + "[8-1]", like=WHOLE_COUNTS)
@around(SPLIT_RULE)
def delta_not_an_integer(original, nano, k):
    """The decay of a shape is no integer, and a path costs 1.29 of its charge."""
    rule = original(nano, k)
    return replace(rule, delta=real_delta(rule))


@planted(test=WORST + "[1-4]", like=USERS)
@around(SPLIT_RULE)
def delta_without_k(original, nano, k):
    """The decay of a shape is that of one row, where a user has k = 4."""
    return replace(original(nano, k), delta=original(nano, 1).delta)


@planted(test=WORST + "[1-4]", like=USERS)
@around(SPLIT_RULE)
def shape_noise_without_k(original, nano, k):
    """The noise of a shape is that of one row, where a user has k = 4."""
    return replace(original(nano, k), numerator=original(nano, 1).numerator)


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
@around("psd.curator.curator.grow")
def margins_handed_back(original, *arguments):
    """The noisy number that was compared with 0 is published with the shape."""
    return original(*arguments[:5], HandsBackMargins(arguments[5]), *arguments[6:])


@planted(test=REPLAY + "[record-privtree]", like="pruning on true counts")
@around("psd.curator.curator.grow")
def empty_nodes_do_not_draw(original, growing, points, cells, rule, height, sampler, *more):
    """A node without records is a leaf for sure, to save a draw."""

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
                answer[occupied] = sampler.draw(replace(mechanism, **of_occupied))
            return answer

    counts = Remembered()
    return original(growing, counts, cells, rule, height, Sparse(), *more)
