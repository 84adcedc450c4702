"""Planted bugs of selections: wrong weights, sensitivities, scores and candidates."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np

import psd.mechanisms.random_words
from privacy.planted_bugs.checks import REPLAYED, Replayed
from privacy.planted_bugs.mutant import Mutant, replaced
from psd.curator import division_scores as heterogeneity
from psd.curator.curator import Curator
from psd.curator.points import Points
from psd.decompositions.htf import HTF
from psd.decompositions.htree import HTree
from psd.mechanisms import exponential_mechanism as selection
from psd.mechanisms.exponential_mechanism import Candidates
from psd.privacy.epsilon import NANO
from support.goodness_of_fit import holds
from support.privacy import selection_law
from support.privacy.exact_loss import ROUNDING, OneCut, one_cut_loss
from support.privacy.samplers import AlteredSampler, selected

# Checks


def exact_loss(method, _):
    """Log-ratios over all shapes, from the rates that the mechanism works with."""
    assert one_cut_loss(method) <= 1 + ROUNDING


def law(epsilon, _):
    assert holds(lambda: selection_law.p_value(selection_law.draws(epsilon, 1), epsilon, 1))


def every_candidate_can_be_selected(gap, _):
    """One far below the best is selected where all bits of the system are 0."""
    zero, both = np.zeros(2, np.int64), np.ones(2, np.int64)
    found = Candidates(group=zero, first=np.arange(2), length=both, score=np.array([-gap, 0]))
    source = SimpleNamespace(urandom=lambda size: bytes(size))
    with replaced(psd.mechanisms.random_words, "os", source):
        line = selected(found, np.array([NANO]), np.array([1]))
    assert line.tolist() == [0]


# Bugs


def rates_times(numerator, denominator):
    original = selection._rates

    def rates(epsilon, sensitivity):
        return original(epsilon, sensitivity) * numerator // denominator

    return replaced(selection, "_rates", rates)


def rates_without_the_factor_two():
    """Weights exp(epsilon score / sensitivity)."""
    return rates_times(2, 1)


def weights_that_underflow():
    """Float weights, 0 from 745 units below the best."""

    def exponential(candidates, epsilon, sensitivity):
        rate = epsilon[candidates.group] / (2.0 * NANO * sensitivity[candidates.group])
        best = np.maximum.reduceat(candidates.score, np.searchsorted(candidates.group, [0]))
        total = np.cumsum(candidates.length * np.exp(rate * (candidates.score - best[0])))
        point = psd.mechanisms.random_words.random_words(1)[0] / 2.0**64 * total[-1]
        return candidates.first[np.searchsorted(total, [point], side="right")]

    return replaced(selection, "exponential", exponential)


def _question_with(name, change):
    """A question of the curator at another sensitivity, by its arguments."""
    original = getattr(Curator, name)

    def question(self, cells, **options):
        def other(mechanism):
            sensitivity = change(self, cells, mechanism.sensitivity, options)
            return dataclasses.replace(mechanism, sensitivity=sensitivity)

        kept = self._sampler
        self._sampler = AlteredSampler(other, kept)
        try:
            return original(self, cells, **options)
        finally:
            self._sampler = kept

    return replaced(Curator, name, question)


def half_as_sensitivity_of_every_quantile():
    """The sensitivity of the median, q / 2 of the integer score, for every quantile."""

    def change(curator, cells, asked, options):
        q = np.broadcast_to(np.asarray(options.get("q", 2), np.int64), cells.nodes.shape)
        return np.maximum(q // 2, 1) * curator.contributions

    return _question_with("quantile", change)


def divisions_of_sensitivity_one():
    """A division as if a record moved one bin and not the mean."""
    return _question_with("homogeneous_split", lambda curator, cells, asked, options: asked // 2)


def rank_among_all_records():
    """A slab's quantile is relative to the number of all records."""
    original = Points.rank_scores

    def rank_scores(self, nodes, ends, axis, p, q):
        found = original(self, nodes, ends, axis, p, q)
        moved = p * (int(self.total[-1]) - self.count(nodes))
        return dataclasses.replace(found, score=found.score - moved[found.group])

    return replaced(Points, "rank_scores", rank_scores)


def slab_bounds_from_the_data():
    """Candidates lie between the outermost points of a slab."""
    original = Points.rank_scores

    def rank_scores(self, nodes, ends, axis, p, q):
        found = original(self, nodes, ends, axis, p, q)
        last = np.append(found.group[1:] != found.group[:-1], True)
        length = np.where(last & (self.count(nodes) > 0)[found.group], 0, found.length)
        empty = np.bincount(found.group, length, len(nodes)) == 0
        length = np.where(last & empty[found.group], found.length, length)
        return dataclasses.replace(found, length=length)

    return replaced(Points, "rank_scores", rank_scores)


def squared_deviations():
    """Unevenness as squared deviations, which a record changes by twice its bin's count."""

    def deviations(part, count, alike, bins):
        total, squares = np.zeros((2, len(bins)), np.int64)
        np.add.at(total, part, count * alike)
        np.add.at(squares, part, count * count * alike)
        return (squares * bins - total * total) // bins

    return replaced(heterogeneity, "deviations", deviations)


EXACT = "tests/privacy/test_exact_loss.py::test_one_cut_tells_no_more_than_epsilon"
LAW = "tests/statistical/test_selection.py::test_law"
ALL = "tests/unit/mechanisms/test_sampler.py::test_a_candidate_far_below_the_best_can_be_selected"

MUTANTS = (
    Mutant(
        id="selection-without-factor-2",
        wrong="weights are exp(epsilon score / sensitivity), the factor 2 is forgotten",
        like="the mechanism of McSherry and Talwar, whose epsilon is half of its loss",
        plant=rates_without_the_factor_two,
        check=exact_loss,
        sound=OneCut(1, 2),
        test=EXACT,
    ),
    Mutant(
        id="selection-x1.3",
        wrong="the rate of the exponential mechanism is 1.3 of what it should be",
        like="a wrong factor in the exponential mechanism",
        plant=lambda: rates_times(13, 10),
        check=law,
        sound=NANO,
        test=LAW,
    ),
    Mutant(
        id="selection-x0.7",
        wrong="the rate of the exponential mechanism is 0.7 of what is paid for",
        like="a wrong factor in the exponential mechanism",
        plant=lambda: rates_times(7, 10),
        check=law,
        sound=NANO,
        test=LAW,
    ),
    Mutant(
        id="selection-underflow",
        wrong="weights are floats that become 0, so that a far candidate rules a data set out",
        like="float weights, 0 from about 745 units below the best",
        plant=weights_that_underflow,
        check=every_candidate_can_be_selected,
        sound=2_000,
        test=ALL,
    ),
    Mutant(
        id="quantile-sensitivity-of-the-median",
        wrong="the sensitivity 1/2 of the median is taken for the quantile 1/3",
        like="quantiles other than the median (h-trees, private bounds)",
        plant=half_as_sensitivity_of_every_quantile,
        check=exact_loss,
        sound=OneCut(1, 3),
        test=EXACT,
    ),
    Mutant(
        id="quantile-sensitivity-in-h-trees",
        wrong="the sensitivity of the median is taken for the slabs of an h-tree of fan-out 3",
        like="quantiles other than the median (h-trees, private bounds)",
        plant=half_as_sensitivity_of_every_quantile,
        check=Replayed(),
        sound=HTree(size=3),
        test=REPLAYED,
    ),
    Mutant(
        id="quantile-among-all-records",
        wrong="the quantile of a slab is relative to the number of all records",
        like="a question that reads more than its own cell",
        plant=rank_among_all_records,
        check=Replayed(),
        sound=HTree(size=2),
        test=REPLAYED,
    ),
    Mutant(
        id="quantile-bounds-of-the-data",
        wrong="the candidates of a slab lie between its outermost points",
        like="bounds from the data, which a warning of a library excuses",
        plant=slab_bounds_from_the_data,
        check=Replayed(),
        sound=HTree(size=2),
        test=REPLAYED,
    ),
    Mutant(
        id="division-by-squared-deviations",
        wrong="the unevenness of a part is its sum of squared deviations",
        like="scores without a usable sensitivity: variance, entropy, squared errors",
        plant=squared_deviations,
        check=Replayed(every=32),
        sound=HTF(height=1),
        test=REPLAYED,
    ),
    Mutant(
        id="division-of-sensitivity-1",
        wrong="a division is drawn as if a record moved its bin and not the mean",
        like="a sensitivity that forgets what a normalisation does",
        plant=divisions_of_sensitivity_one,
        check=Replayed(every=32),
        sound=HTF(height=1),
        test=REPLAYED,
    ),
)
