"""What the mechanisms of a release hand to the samplers, and what they make of the draws."""

import os

import numpy as np
import pytest

from psd.mechanisms import exponential_mechanism, laplace, mechanisms
from psd.mechanisms.exponential_mechanism import Candidates
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.loss import NANO
from support.privacy.samplers import counts, exceeds, selected

DRAWS = np.array([3, -2, 0, -7])


@pytest.fixture
def asked(monkeypatch):
    """Arguments of the samplers, which draw the same numbers every time."""
    seen = []

    def one(numerator, denominator, size):
        seen.append(("one", numerator, denominator, size))
        return DRAWS[:size]

    def each(numerators, denominators):
        seen.append(("each", numerators.tolist(), denominators.tolist()))
        return DRAWS[: len(numerators)]

    monkeypatch.setattr(laplace, "discrete_laplace", one)
    monkeypatch.setattr(laplace, "discrete_laplace_each", each)
    return seen


def test_no_question_draws_nothing(asked):
    above = exceeds(np.array([-3, 3, 1, 7]), 7, np.array([2, 2, 2, 2]))
    assert asked.pop() == ("one", 7, 2, 4)
    assert above.tolist() == [False, True, True, False]
    none = np.zeros(0, np.int64)
    candidates = Candidates(group=none, first=none, length=none, score=none)
    for answer in (counts(none, none, 1), selected(candidates, none, none)):
        assert (answer.shape, answer.dtype) == ((0,), np.int64)
    assert exceeds(none, 1, none).tolist() == []
    assert asked == []
    for size in (1, 2, 4):
        true = np.array([10, 20, 30, 40])[:size]
        noisy = counts(true, np.full(size, 5), 3)
        assert asked.pop() == ("one", 3 * NANO, 5, size)
        assert noisy.tolist() == (true + DRAWS[:size]).tolist()
    for epsilon in ([5, 5, 5, 6], [6, 5, 5, 5], [1, 2, 3, 4]):
        noisy = counts(np.array([10, 20, 30, 40]), np.array(epsilon), 2)
        assert asked.pop() == ("each", [2 * NANO] * 4, epsilon)
        assert noisy.tolist() == [13, 18, 30, 33]


def test_selections_are_those_of_the_exponential_mechanism(monkeypatch):
    monkeypatch.setattr(exponential_mechanism, "exponential", lambda *question: question)
    question = (object(), np.array([1]), np.array([2]))
    assert selected(*question) == question


def test_a_candidate_far_below_the_best_can_be_selected(monkeypatch):
    """Float weights are 0 from 745 units below the best, and lead past it whatever the bits are."""
    monkeypatch.setattr(os, "urandom", bytes)  # all bits 0: the first candidate
    group, each = np.zeros(2, np.int64), np.ones(2, np.int64)
    found = Candidates(group=group, first=np.arange(2), length=each, score=np.array([-2_000, 0]))
    assert selected(found, np.array([NANO]), np.array([1])).tolist() == [0]


def test_a_release_never_draws_by_floats(monkeypatch, subtests):
    for name, kind in mechanisms().items():
        monkeypatch.setattr(kind, "approximate", lambda self, uniform: "by floats")
        monkeypatch.setattr(kind, "sample", lambda self: "exact")
        with subtests.test(name):
            assert SecureSampler().draw(kind.neighbours()[0]) == "exact"
