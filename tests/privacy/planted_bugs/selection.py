"""Planted bugs of selections: wrong weights, sensitivities, scores and candidates."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np

from privacy.planted_bugs.bug import around, instead, like, planted
from psd.mechanisms.random_words import random_words
from psd.privacy.loss import NANO
from support.privacy.samplers import AlteredSampler

EXACT = "tests/privacy/test_exact_loss.py::test_one_cut_tells_no_more_than_epsilon"
LAW = "tests/statistical/test_selection.py::test_law[1000000000-1]"
REPLAY = "tests/privacy/test_replay.py::test_no_answer_of_a_few_pairs_tells_more_than_epsilon"
SAMPLER = "tests/unit/mechanisms/test_sampler.py::"
H_TREE = REPLAY + "[record-htree]"
HTF = REPLAY + "[record-htf]"

FACTOR = "a wrong factor in the exponential mechanism"
QUANTILES = "quantiles other than the median (h-trees, private bounds)"


def rates_times(numerator, denominator):
    @around("psd.mechanisms.exponential_mechanism._rates")
    def rates(original, epsilon, sensitivity):
        return original(epsilon, sensitivity) * numerator // denominator

    return rates()


@planted(test=EXACT + "[1-2-1]")
@like("the mechanism of McSherry and Talwar, whose epsilon is half of its loss")
def selection_without_factor_2():
    """Weights are exp(epsilon score / sensitivity), the factor 2 is forgotten."""
    return rates_times(2, 1)


@planted(test=LAW, like=FACTOR)
def selection_times_1_3():
    """The rate of the exponential mechanism is 1.3 of what it should be."""
    return rates_times(13, 10)


@planted(test=LAW, like=FACTOR)
def selection_times_0_7():
    """The rate of the exponential mechanism is 0.7 of what is paid for."""
    return rates_times(7, 10)


@planted(test=SAMPLER + "test_a_candidate_far_below_the_best_can_be_selected")
@like("float weights, 0 from about 745 units below the best")
@instead("psd.mechanisms.exponential_mechanism.exponential")
def selection_underflow(candidates, epsilon, sensitivity):
    """Weights are floats that become 0, so that a far candidate rules a data set out."""
    rate = epsilon[candidates.group] / (2.0 * NANO * sensitivity[candidates.group])
    best = np.maximum.reduceat(candidates.score, np.searchsorted(candidates.group, [0]))
    total = np.cumsum(candidates.length * np.exp(rate * (candidates.score - best[0])))
    point = random_words(1)[0] / 2.0**64 * total[-1]
    return candidates.first[np.searchsorted(total, [point], side="right")]


def asked_with(name, change):
    """A question of the curator by another mechanism, made of the usual one and its arguments."""

    @around(f"psd.curator.curator.Curator.{name}")
    def question(original, self, cells, *given, **options):
        sampler = self._sampler
        other = AlteredSampler(lambda usual: change(usual, self, cells, options), sampler)
        with patch.object(self, "_sampler", other):
            return original(self, cells, *given, **options)

    return question()


def half_as_sensitivity_of_every_quantile():
    """The sensitivity of the median, q / 2 of the integer score, for every quantile."""

    def change(mechanism, curator, cells, options):
        q = np.broadcast_to(np.asarray(options.get("q", 2), np.int64), cells.nodes.shape)
        return replace(mechanism, sensitivity=np.maximum(q // 2, 1) * curator.contributions)

    return asked_with("quantile", change)


@planted(test=EXACT + "[1-3-1]", like=QUANTILES)
def quantile_sensitivity_of_the_median():
    """The sensitivity 1/2 of the median is taken for the quantile 1/3."""
    return half_as_sensitivity_of_every_quantile()


@planted(test=H_TREE, like=QUANTILES)
def quantile_sensitivity_in_h_trees():
    """The sensitivity of the median is taken for the slabs of an h-tree of fan-out 3."""
    return half_as_sensitivity_of_every_quantile()


@planted(test=H_TREE, like="a question that reads more than its own cell")
@around("psd.curator.points.Points.rank_scores")
def quantile_among_all_records(original, self, nodes, ends, axis, p, q):
    """The quantile of a slab is relative to the number of all records."""
    candidates = original(self, nodes, ends, axis, p, q)
    moved = p * (int(self.count(np.array([0]))[0]) - self.count(nodes))
    return replace(candidates, score=candidates.score - moved[candidates.group])


@planted(test=H_TREE, like="bounds from the data, which a warning of a library excuses")
@around("psd.curator.points.Points.rank_scores")
def quantile_bounds_of_the_data(original, self, nodes, ends, axis, p, q):
    """The candidates of a slab lie between its outermost points."""
    candidates = original(self, nodes, ends, axis, p, q)
    group, length = candidates.group, candidates.length
    last = np.append(group[1:] != group[:-1], True)
    inner = np.where(last & (self.count(nodes) > 0)[group], 0, length)
    empty = np.bincount(group, inner, len(nodes)) == 0
    return replace(candidates, length=np.where(last & empty[group], length, inner))


@planted(test=HTF, like="scores without a usable sensitivity: variance, entropy, squared errors")
@instead("psd.curator.candidate_scores.deviations")
def division_by_squared_deviations(part, count, times, bins):
    """The unevenness of a part is its sum of squared deviations."""
    total, squares = np.zeros((2, len(bins)), np.int64)
    np.add.at(total, part, count * times)
    np.add.at(squares, part, count * count * times)
    return (squares * bins - total * total) // bins


@planted(test=HTF, like="a sensitivity that forgets what a normalisation does")
def division_of_sensitivity_1():
    """A division is drawn as if a record moved its bin and not the mean."""

    def change(mechanism, *_):
        return replace(mechanism, sensitivity=mechanism.sensitivity // 2)

    return asked_with("homogeneous_split", change)
