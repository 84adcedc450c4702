"""Discrete Gaussian noise: which sampler draws, exact probabilities, and what is refused."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from psd.accounting import PICO
from psd.errors import ParameterError
from psd.mechanisms import bernoulli, gaussian
from psd.mechanisms.bernoulli import bernoulli_exp_of_any
from psd.mechanisms.certified_thresholds import GaussianSurvival, thresholds
from psd.mechanisms.gaussian import GaussianMechanism, discrete_gaussian, discrete_gaussian_each
from support.noise_paths import Tape, enumerate_paths

BIG = 10**40


def anything(values):
    """An array of Python integers, which may be of any size."""
    return np.array(values, dtype=object)


@pytest.fixture
def handed(monkeypatch):
    """What the samplers are handed: their name and sigma^2 of each draw."""
    calls = []

    def table(numerator, denominator, size):
        calls.append(("table", [Fraction(numerator, denominator)] * size))
        return np.zeros(size, np.int64)

    def rejection(numerator, denominators):
        calls.append(("rejection", [Fraction(numerator, d) for d in denominators.tolist()]))
        return np.zeros(denominators.size, np.int64)

    monkeypatch.setattr(gaussian, "_by_table", table)
    monkeypatch.setattr(gaussian, "_by_rejection", rejection)
    return calls


def test_a_table_serves_a_small_sigma_and_many_draws(handed):
    for variance, size, sampler in [
        (Fraction(10), 3, "table"),
        (Fraction(1, 10**9), 3, "table"),
        (Fraction(1, 6), 2, "table"),
        (Fraction(102**2), 1000, "table"),  # about 1,020 entries, for any number of draws
        (Fraction(103**2), 1000, "rejection"),
        (Fraction(103**2), 2000, "table"),
        (Fraction(4096**2), 40_960, "table"),
        (Fraction(4096**2), 40_959, "rejection"),
        (Fraction(4096**2 + 1), 10**5, "rejection"),
        (Fraction(10**30, 7), 3, "rejection"),
    ]:
        handed.clear()
        noise = discrete_gaussian(2 * variance.numerator, 2 * variance.denominator, size)
        assert noise.shape == (size,)
        assert noise.dtype == np.int64
        assert {name for name, _ in handed} == {sampler}
        assert [each for _, some in handed for each in some] == [variance] * size


def test_few_parameters_are_drawn_one_after_another_and_many_by_rejection(handed):
    denominators = np.tile([3, 1, 2], 1000)
    assert not discrete_gaussian_each(60, denominators).any()
    drawn = [(name, some[0], len(some)) for name, some in handed]
    assert drawn == [("table", sigma, 1000) for sigma in (60, 30, 20)]
    handed.clear()
    discrete_gaussian(1, 3, 2)
    many = np.array([2**62, 2**62 - 1, 2**61 + 5])
    assert discrete_gaussian_each(BIG, many).dtype == np.int64
    found = ("rejection", [Fraction(BIG, d) for d in many.tolist()])
    assert handed == [("table", [Fraction(1, 3)] * 2), found]


def test_draws_return_to_their_elements(monkeypatch):
    def numbered(n, d, size):
        return 1000 * d + np.arange(size)

    monkeypatch.setattr(gaussian, "discrete_gaussian", numbered)
    denominators = np.resize([7, 5, 5, 9], 4000)
    noise = discrete_gaussian_each(1, denominators)
    assert (noise // 1000 >= denominators).all()
    assert noise[denominators == 7].tolist() == list(range(7000, 8000))
    assert noise[denominators == 5].tolist() == list(range(5000, 7000))


def test_blocks_are_drawn_in_order(monkeypatch):
    monkeypatch.setattr(gaussian, "_BLOCK", 4)
    sizes = []

    def rejection(numerator, denominators):
        sizes.append(denominators.size)
        assert denominators.dtype == object
        return denominators.astype(np.int64)

    monkeypatch.setattr(gaussian, "_by_rejection", rejection)
    denominators = np.arange(1, 12)
    assert discrete_gaussian_each(10**6, denominators).tolist() == denominators.tolist()
    assert discrete_gaussian(10**9 * BIG, BIG, 5).tolist() == [1] * 5
    assert sizes == [4, 4, 3, 4, 1]


def test_the_last_bit_of_a_word_is_the_sign_and_the_others_the_magnitude(monkeypatch):
    table = thresholds(GaussianSurvival(10, 1))
    for k in range(1, 15):
        just_k = 2 * (int(table[-k]) - 1)  # the largest word below the threshold
        tape = Tape(monkeypatch, just_k, just_k + 1, 2**64 - 1, 2**64 - 2)
        assert discrete_gaussian(10, 1, 4).tolist() == [k, -k, 0, 0]
        assert not tape.left


# The last has a scale of 49 bits: its square is beyond 64 bits.
VARIANCES = [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(50), Fraction(10**30, 7)]


def test_kept_draws_have_the_law(monkeypatch):
    """Probability of a proposal times that of keeping it, over the law: the same for all."""
    found = []

    def coins(numerators, denominators):
        found.append(Fraction(int(numerators[0]), int(denominators[0])))
        return np.array([True])

    monkeypatch.setattr(gaussian, "bernoulli_exp_of_any", coins)
    draws = [*range(-30, 31), 2**53 + 1]  # the last is no float
    for variance, factor, x in itertools.product(VARIANCES, (1, BIG), draws):
        t = math.isqrt(int(variance)) + 1

        def proposal(scales, ones, x=x, t=t):
            assert scales.dtype == ones.dtype == np.int64
            assert (scales.tolist(), ones.tolist()) == ([t], [1])
            return np.array([x])

        monkeypatch.setattr(gaussian, "discrete_laplace_each", proposal)
        shape = variance.numerator * factor, anything([variance.denominator * factor])
        assert gaussian._by_rejection(*shape).tolist() == [x]
        exponent = Fraction(abs(x), t) + found[-1] - Fraction(x * x) / (2 * variance)
        assert exponent == variance / (2 * t * t)


def test_draws_that_are_not_kept_are_drawn_again_and_large_ones_refused(monkeypatch):
    monkeypatch.setattr(gaussian, "discrete_laplace_each", lambda n, d: np.arange(n.size) + 5)
    keeps = iter([[False, True, False], [False, True], [True]])
    monkeypatch.setattr(gaussian, "bernoulli_exp_of_any", lambda n, d: np.array(next(keeps)))
    assert gaussian._by_rejection(100, anything([1, 2, 3])).tolist() == [5, 6, 6]
    monkeypatch.setattr(gaussian, "discrete_laplace_each", lambda n, d: np.array([2**62]))
    monkeypatch.setattr(gaussian, "bernoulli_exp_of_any", lambda n, d: np.array([True]))
    with pytest.raises(OverflowError, match="2\\*\\*62"):
        gaussian._by_rejection(2**110, anything([1]))


@pytest.mark.parametrize("factor", [1, BIG])
def test_coins_of_any_size_have_their_probability(monkeypatch, factor):
    """With coins of the rest by enumeration; the next test sees to those coins."""
    # A float takes the last quotient for 3, and its rest is almost 1.
    quotients = [(0, 1), (1, 2), (2, 3), (1, 1), (7, 2), (3 * 10**40 - 1, 10**40)]
    for numerator, denominator in quotients:
        rest = Fraction(numerator, denominator) % 1
        shape = anything([numerator * factor]), anything([denominator * factor])

        def run(script, rest=rest, shape=shape):
            def words(size):
                if not rest:
                    return np.full(size, 2**63, np.uint64)
                hit = script.choose([1 - float(rest), float(rest)])
                return np.array([0 if hit else 2**64 - 1], np.uint64)

            monkeypatch.setattr(bernoulli, "uniform_below", script.uniform_below)
            monkeypatch.setattr(bernoulli, "unit_geometric", script.unit_geometric)
            monkeypatch.setattr(bernoulli, "random_words", words)
            return bool(bernoulli_exp_of_any(*shape)[0])

        paths = list(enumerate_paths(run, smallest=1e-10))
        true = sum(weight for outcome, weight in paths if outcome)
        assert true == pytest.approx(math.exp(-numerator / denominator), abs=1e-5)


def test_a_tie_of_a_coin_is_decided_by_the_next_word_or_a_later_one(monkeypatch):
    prefix, *digits = [2 ** (63 + 64 * place) // 3 % 2**64 for place in (0, 1, 2)]
    for more, below in ((-1, True), (1, False)):
        tape = Tape(monkeypatch, digits[0], digits[1] + more)
        assert bernoulli._settle(1, 3) is below
        assert not tape.left
    found = []

    def keep(integer, coin):
        found.append(coin(np.array([0])).tolist())
        return integer == 0

    monkeypatch.setattr(bernoulli, "_bernoulli_exp", keep)
    for more in (-1, 0, 1):
        words = [2 * (prefix + more)] if more else [2 * prefix, digits[0] - 1]
        tape = Tape(monkeypatch, *words)
        bernoulli_exp_of_any(anything([BIG]), anything([3 * BIG]))
        assert found.pop() == [more <= 0]
        assert not tape.left


def test_a_sigma_that_could_pass_the_limit_is_refused_before_a_draw(handed):
    sentence = r"^sigma must be below 2\*\*56, got about 2\*\*56; the budget is too small"
    with pytest.raises(ParameterError, match=sentence):
        discrete_gaussian(2**112, 1, 1)
    for numerator, denominators in (
        (2**113, [1, 2, 3]),
        (2**gaussian.MAX_VARIANCE_BITS, [2**62, 1]),
    ):
        with pytest.raises(ParameterError, match=sentence):
            discrete_gaussian_each(numerator, np.array(denominators))
    for numerator, denominator in ((0, 1), (-1, 1), (1, 0), (1, -1)):
        with pytest.raises(ParameterError, match="sigma must be above 0"):
            discrete_gaussian(numerator, denominator, 1)
    assert handed == []
    discrete_gaussian(2**112 - 1, 1, 1)
    discrete_gaussian_each(2**112 - 1, np.array([1, 2, 3]))
    assert [name for name, _ in handed] == ["rejection"] * 2
    assert discrete_gaussian_each(5, np.zeros(0, np.int64)).shape == (0,)
    assert discrete_gaussian(5, 1, 0).shape == (0,)


def test_noise_of_its_own_parameter_is_added_to_the_count(handed, monkeypatch):
    rho = np.array([PICO, PICO // 4])
    counts = GaussianMechanism(true=np.array([5, 7]), rho=rho, squared_sensitivity=6)
    assert counts.sample().tolist() == [5, 7]
    assert handed == [("rejection", [3, 12])]
    monkeypatch.setattr(gaussian, "discrete_gaussian_each", lambda n, d: np.array([3, -4]))
    assert counts.sample().tolist() == [8, 3]


def test_probabilities_are_those_of_the_law_and_the_public_part_has_no_count():
    for parameter in (Fraction(1, 3), 1, Fraction(29, 10), 3, 50):
        rho = np.array([math.floor(PICO / (2 * parameter))])
        counts = GaussianMechanism(true=np.array([2]), rho=rho, squared_sensitivity=1)
        values = np.arange(-200, 201)
        found = np.array([counts.log_probability(np.array([2 + x]))[0] for x in values])
        weights = -(values**2) / (2 * float(parameter))
        assert found == pytest.approx(weights - np.logaddexp.reduce(weights), abs=1e-6)
    first, second = GaussianMechanism.neighbours()
    assert all(np.array_equal(a, b) for a, b in zip(first.public, second.public, strict=True))
    assert (first.cost == first.rho).all()
