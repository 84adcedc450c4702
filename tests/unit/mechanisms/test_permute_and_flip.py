"""Permute-and-flip: rates, exact exponents, ties, far candidates, and its law as a value."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from psd.mechanisms import permute_and_flip
from psd.mechanisms.base import MAX_SENSITIVITY
from psd.mechanisms.choice_laws import permute_and_flip_probabilities
from psd.mechanisms.permute_and_flip import PermuteAndFlip, choice_rate
from psd.privacy.loss import NANO


def choice(scores, epsilon=NANO, sensitivity=1, is_monotone=True):
    law = {"epsilon": epsilon, "sensitivity": sensitivity, "is_monotone": is_monotone}
    return PermuteAndFlip(scores=np.array(scores, np.int64), **law)


def test_the_rate_is_exact():
    epsilons, sensitivities = (1, 7, NANO // 3, NANO, 1_000 * NANO), (1, 3, 100, MAX_SENSITIVITY)
    for epsilon, sensitivity, half in product(epsilons, sensitivities, (1, 2)):
        numerator, denominator = choice_rate(epsilon, sensitivity, half == 1)
        assert Fraction(numerator, denominator) == Fraction(epsilon, half * sensitivity * NANO)
        assert math.gcd(numerator, denominator) == 1
        assert denominator < 2**63


@pytest.mark.parametrize("is_monotone", [True, False])
def test_exponents_are_exact(is_monotone):
    for epsilon, sensitivity, scores in [
        (NANO, 1, [5, 5, 4, -3]),
        (NANO // 3, 7, [0, -1, -(10**6)]),
        (999 * NANO + 1, MAX_SENSITIVITY, [2**40, 0, 2**40 - 1]),  # products beyond 64 bits
        (NANO + 1, MAX_SENSITIVITY, [2**63 - 1, -(2**63), 0]),  # gaps beyond 63 bits
        (1, 1, [2**63 - 1, -(2**63)]),
    ]:
        drawn = choice(scores, epsilon, sensitivity, is_monotone)
        rate = Fraction(*choice_rate(epsilon, sensitivity, is_monotone))
        for score, whole, rest, below in zip(scores, *drawn._exponents(), strict=True):
            exact = rate * (max(scores) - score)
            assert exact == int(whole) + Fraction(int(rest), int(below))
            assert 0 <= rest < below
    whole, _, _ = choice([2**63 - 1, -(2**63)], epsilon=1_000 * NANO)._exponents()
    assert whole.tolist() == [0, 2**62]


def test_each_true_coin_has_its_turn(monkeypatch):
    bounds = []
    three, one = [1, 0, 1, 1], [0, 1, 0, 0]
    for true, number, chosen in ((three, 0, 0), (three, 1, 2), (three, 2, 3), (one, 0, 1)):

        def turn(limits, number=number):
            bounds.append(limits.tolist())
            return limits * 0 + number

        monkeypatch.setattr(
            permute_and_flip, "bernoulli_exp_of_parts", lambda *_, t=true: np.array(t, bool)
        )
        monkeypatch.setattr(permute_and_flip, "uniform_below", turn)
        assert choice([3, 3, 2, 1]).sample().tolist() == [chosen]
    assert bounds == [[3], [3], [3], [1]]


def test_one_candidate_and_the_best_are_chosen_and_one_far_below_may_be():
    for score in (5, -(2**63), 2**63 - 1):
        assert choice([score]).sample().tolist() == [0]
        assert choice([score]).log_probability(np.array([0])) == pytest.approx([0])
    assert {int(choice([0, 200, 0]).sample()[0]) for _ in range(50)} == {1}
    # Float weights underflow to 0 from about 745 units; these do not, and ratios stay right.
    first, second = choice([10_000, 0]), choice([10_001, 0])
    logs = [float(each.log_probability(np.array([1]))[0]) for each in (first, second)]
    assert logs == pytest.approx([-10_000 - math.log(2), -10_001 - math.log(2)])
    whole, rest, _ = first._exponents()
    assert whole.tolist() == [0, 10_000]
    assert rest.tolist() == [0, 0]


def test_log_probability_is_the_law_at_the_stated_rate():
    scores = [4, 9, 9, -5]
    for is_monotone, half in ((True, 1), (False, 2)):
        law = permute_and_flip_probabilities(0.5 / (3 * half) * (9.0 - np.array(scores)))
        value = choice(scores, NANO // 2, 3, is_monotone)
        logs = [value.log_probability(np.array([i]))[0] for i in range(4)]
        assert np.exp(logs) == pytest.approx(law)
    value = choice([10, 20, 30], NANO, 7, False)
    for answer in (-1, 3, 10**9):
        assert value.log_probability(np.array([answer])).tolist() == [-np.inf]
    assert value.public == ("permute-and-flip", 3, NANO, 7, False)
    assert value.cost.tolist() == [NANO]
