"""Exact loss of the real mechanisms, enumerated over data sets, neighbours and shapes."""

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from psd.mechanisms import exponential_mechanism as selection
from psd.mechanisms import laplace
from psd.mechanisms.laplace import LaplaceMechanism
from psd.mechanisms.sampler import SecureSampler
from psd.mechanisms.threshold import ThresholdMechanism
from psd.privacy.loss import NANO
from psd.testing import (
    SCRIPTS,
    ReplayingSampler,
    data_sets,
    neighbours,
    run_method,
    small_domain,
    small_tally,
    walks,
)
from support.privacy.shapes import answers_log_probability

ROUNDING = 1e-9


@cache
def count_scales(epsilon, sensitivity) -> list[Fraction]:
    """Scale of the noise of each count."""
    zeros, epsilons = np.zeros(len(epsilon), np.int64), np.array(epsilon)
    return sampler_scales(LaplaceMechanism(true=zeros, epsilon=epsilons, sensitivity=sensitivity))


def sampler_scales(mechanism) -> list[Fraction]:
    """Scale of each draw of a mechanism, as handed to the samplers."""
    seen: list[Fraction] = []

    def one(numerator, denominator, size):
        seen.extend([Fraction(int(numerator), int(denominator))] * size)
        return np.zeros(size, np.int64)

    def each(numerators, denominators):
        seen.extend(Fraction(int(n), int(d)) for n, d in zip(numerators, denominators, strict=True))
        return np.zeros(len(numerators), np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(laplace, "discrete_laplace", one)
        patch.setattr(laplace, "discrete_laplace_each", each)
        SecureSampler().draw(mechanism)
    return seen


def chosen_log_probability(call) -> float:
    """Log-probability of the lines that were selected, from the rates of the real mechanism."""
    total = 0.0
    rates = selection._rates(call.loss, call.sensitivity) / 2.0**selection._RATE_BITS
    for place, rate in enumerate(rates):
        here = call.group == place
        scores, lines = call.true[here], call.line[here]
        weights = [math.exp(rate * int(score - scores.max())) for score in scores]
        total += math.log(weights[int(np.flatnonzero(lines == call.answer[place])[0])])
        total -= math.log(math.fsum(weights))
    return total


@cache
def split_scales(numerator, denominator) -> np.ndarray:
    """Scale of the noise of each split."""
    zeros, scales = np.zeros(len(denominator), np.int64), np.array(denominator)
    how = {"numerator": numerator, "denominator": scales, "cost": scales}
    mechanism = ThresholdMechanism(values=zeros, **how)
    return np.array([float(scale) for scale in sampler_scales(mechanism)])


def shape_log_probability(call) -> float:
    if call.kind == "select":
        return chosen_log_probability(call)
    if call.kind == "threshold":
        numerator = int(call.sensitivity[0]) if len(call.true) else 1
        scales = split_scales(numerator, tuple(call.loss.tolist()))
        return answers_log_probability(call, scales)
    return float(call.mechanism.log_probability(call.answer).sum())


def pair_loss(calls, others) -> float:
    """Largest absolute log-ratio of this transcript between two data sets."""
    shape, counts = 0.0, Fraction(0)
    for a, b in zip(calls, others, strict=True):
        if a.kind != "count":
            shape += shape_log_probability(a) - shape_log_probability(b)
            continue
        change = np.abs(a.true - b.true)
        scale = count_scales(tuple(a.loss.tolist()), int(a.sensitivity[0]) if len(change) else 1)
        counts += sum((int(change[i]) / scale[i] for i in np.flatnonzero(change)), Fraction(0))
    return abs(shape) + float(counts)


def worst_exact_loss(method, *, side: int, rows: int, k: int, scripts=SCRIPTS, places=None):
    """Largest loss over all data sets, users with k rows more, and transcripts.

    With ``places``, rows are in these cells alone.
    """
    allowed = set(range(side * side) if places is None else places)
    users = [more for more in neighbours(side, k) if len(more) == k and allowed.issuperset(more)]
    pairs = [
        (data, [data + more for more in users])
        for data in filter(allowed.issuperset, data_sets(side, rows))
    ]
    return _worst_of(method, pairs, side, k, scripts)


def worst_loss_of_a_move(method, *, side: int, rows: int) -> float:
    """Largest loss where one row is replaced by another, beside so many rows that stay."""
    cells = range(side * side)
    pairs = [
        ((*data, here), [(*data, there) for there in cells if there > here])
        for data, here in itertools.product(data_sets(side, rows), cells)
    ]
    return _worst_of(method, pairs, side, 1, SCRIPTS[:1])


def _worst_of(method, pairs, side, k, scripts) -> float:
    """Largest loss between a data set and the others that it is beside."""
    domain, worst = small_domain(side), 0.0
    for (data, others), script in itertools.product(pairs, scripts):
        for first in walks(method, small_tally(side, data, k), domain, script):
            for other in others:
                second = ReplayingSampler(first.draws)
                run_method(method, small_tally(side, other, k), domain, NANO, second)
                worst = max(worst, pair_loss(first.draws, second.draws))
    return worst


@dataclass(frozen=True)
class OneCut:
    """A single cut in x at the quantile p/q, for nearly all of epsilon, then counts."""

    p: int
    q: int

    def build(self, curator):
        share = curator.loss * 999 // 1000
        root = curator.root()
        line = curator.quantile(root, axis=0, loss=share, p=self.p, q=self.q)
        curator.count(curator.cut(root, x=line), curator.loss - share)
        return curator.tree()
