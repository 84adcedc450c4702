"""Accounting: golden numbers, an oracle, and the exact loss of discrete Gaussian noise."""

import math
from fractions import Fraction
from itertools import product
from math import inf

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, norm

from psd import accounting
from psd.accounting import PICO, SampledGaussian
from psd.errors import ParameterError
from psd.privacy.loss import NANO
from support.cli_runner import as_json

EPSILONS = (0.1, 0.3, 0.5, 1, 2, 3, 5)
RHOS = {
    5: (432993729, 3302986550, 8505530591, 30556595197, 108256363823, 224249168246, 550973474939),
    6: (321047690, 2539642523, 6641524356, 24355970359, 88152688379, 185069840653, 463064990138),
    9: (177138447, 1476745361, 3953191141, 14973057673, 56130501796, 120582428911, 311693261607),
}
MILLIONTH = Fraction(1, 10**6)
SAMPLED = [
    (Fraction(1, 100), 1, 1000, 2.1014),
    (Fraction(2, 100), Fraction(11, 10), 3000, 6.3949),
    (Fraction(2, 100), Fraction(6, 10), 400, 10.8655),  # its best order is between 2 and 3
]


def nano(epsilon):
    return round(epsilon * NANO)


def exact_delta(variance, shift, epsilon):
    """Exact delta of discrete Gaussian noise of sigma^2 and an integer shift ([2], Theorem 7)."""
    reach = int(40 * math.sqrt(variance)) + 60 + shift
    values = np.arange(-reach, reach + 1)
    mass = np.exp(-(values**2) / (2 * float(variance)))
    above = np.cumsum((mass / mass.sum())[::-1])[::-1]  # P[Y >= value]

    def beyond(bound):
        at = math.floor(bound) + 1 + reach
        return above[at] if at < len(above) else 0.0

    middle = epsilon * float(variance) / shift
    return beyond(middle - shift / 2) - math.exp(epsilon) * beyond(middle + shift / 2)


def test_rhos_and_epsilons_are_the_golden_ones_and_rounded_safely():
    for digits, golden in RHOS.items():
        found = [accounting.rho_of(nano(e), Fraction(1, 10**digits)) for e in EPSILONS]
        assert found == list(golden)
    rhos = [10**9, 10**10, 5 * 10**10, 10**11, 5 * 10**11, 10**12, 2 * 10**12]
    found = [accounting.epsilon_of(rho, MILLIONTH) / NANO for rho in rhos]
    golden = [0.182895, 0.621693, 1.471595, 2.141939, 5.221534, 7.766217, 11.688596]
    assert found == pytest.approx(golden, abs=6e-7)
    epsilons = (1, 10**3, 10**6, 10**8, NANO, 37 * NANO, 1000 * NANO)
    for epsilon, exponent in product(epsilons, (4, 6, 12, 300)):
        delta = Fraction(1, 10**exponent)
        rho = accounting.rho_of(epsilon, delta)
        assert accounting.epsilon_of(rho, delta) <= epsilon
        assert accounting.epsilon_of(rho + 1, delta) >= epsilon


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1, 2, 5])
def test_randomised_response_reaches_the_rho_of_pure_epsilon(epsilon):
    """Its divergence over the order grows to the claim as the order goes to 1."""
    p, q = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    claim = accounting.pure_rho(nano(epsilon)) / PICO
    assert claim == pytest.approx(epsilon * math.tanh(epsilon / 2), rel=1e-9)
    ratios = []
    for order in 1 + np.exp(np.linspace(-7, 5, 200)):
        logs = [order * math.log(a) + (1 - order) * math.log(b) for a, b in ((p, q), (q, p))]
        ratios.append(np.logaddexp(*logs) / (order - 1) / order)
    assert max(ratios) <= claim + 1e-9
    assert max(ratios) == pytest.approx(claim, rel=2e-3)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 5])
def test_selections_stay_below_an_eighth_of_the_square(epsilon):
    """Two outcomes whose log-ratios are epsilon apart, at all splits between them."""
    claim = accounting.selection_rho(nano(epsilon)) / PICO
    assert claim == pytest.approx(epsilon**2 / 8, rel=1e-9)
    worst = 0.0
    for odds in np.linspace(-3 * epsilon - 2, 3 * epsilon + 2, 101):
        p, q = 1 / (1 + math.exp(-odds)), 1 / (1 + math.exp(-odds + epsilon))
        for order in (1.001, 1.1, 2, 5, 20):
            total = p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)
            worst = max(worst, math.log(total) / (order - 1) / order)
    assert 0.5 * claim < worst <= claim + 1e-9


@pytest.mark.parametrize("shift", range(1, 17))
def test_exact_delta_of_discrete_noise_is_below_the_claim(shift):
    for sigma in range(1, 101):
        rho = math.ceil(Fraction(PICO * shift**2, 2 * sigma**2))
        for exponent in (5, 6, 9):
            delta = Fraction(1, 10**exponent)
            epsilon = accounting.epsilon_of(rho, delta) / NANO
            assert exact_delta(sigma**2, shift, epsilon) <= float(delta) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_noise_of_the_rho_of_a_budget_keeps_it(epsilon):
    """The way of a build: a budget, its rho, the variance of that rho, and its exact delta."""
    for shift, exponent in product((1, 2, 4, 16), (5, 6, 9)):
        rho = accounting.rho_of(nano(epsilon), Fraction(1, 10**exponent))
        variance = Fraction(shift**2 * PICO, 2 * rho)
        assert exact_delta(variance, shift, epsilon) <= 10**-exponent
        assert exact_delta(Fraction(9, 10) ** 4 * variance, shift, epsilon) > 0


@pytest.mark.deep
def test_an_oracle_agrees_on_all_costs():
    """The safe way costs 7 % of the noise of many Gaussians, for any number of draws."""
    from dp_accounting import dp_event, pld, rdp

    orders = 1 + np.exp(np.linspace(-5, 8, 40_000))
    for exponent, delta in product(range(9, 14), (1e-4, 1e-6, 1e-12)):
        rho = 10**exponent
        oracle, _ = rdp.compute_epsilon(orders, orders * rho / PICO, delta)
        found = accounting.epsilon_of(rho, Fraction(str(delta))) / NANO
        assert found == pytest.approx(oracle, rel=1e-6)
        assert found <= oracle + 1e-9, "the orders of the oracle are some of all orders"
    settings = product((0.001, 0.01, 0.1), (0.6, 1, 2), (1, 100, 1000))
    for rate, multiplier, steps in [(0.02, 0.6, 400), (0.5, 1, 100), *settings]:
        training = sampled(rate=Fraction(str(rate)), multiplier=str(multiplier), steps=steps)
        found = accounting.epsilon_with_samples(0, [training], Fraction(1, 10**5)) / NANO
        draw = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(multiplier))
        event = dp_event.SelfComposedDpEvent(draw, steps)
        assert found <= 1.0001 * rdp.RdpAccountant().compose(event).get_epsilon(1e-5)
        tightest = pld.PLDAccountant(value_discretization_interval=1e-3).compose(event)
        assert found >= 0.99 * tightest.get_epsilon(1e-5)
    multiplier = 4.2247 * math.sqrt(52)
    event = dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(multiplier), 52)
    exact = pld.PLDAccountant(value_discretization_interval=1e-3).compose(event).get_epsilon(1e-6)
    rho = 52 * accounting.gaussian_rho(Fraction(multiplier))
    assert 1.0 < accounting.epsilon_of(rho, MILLIONTH) / NANO / exact < 1.1


@pytest.mark.deep
def test_laws_of_losses_are_composed():
    """Beside exact laws: of randomised responses, and of one step on a sample."""
    for nano_epsilon, times in ((10**8, 52), (10**9, 8), (123_456_789, 1000)):
        found = accounting.compose_losses([(nano_epsilon, times)], [], MILLIONTH)
        exact = exact_epsilon(nano_epsilon / NANO, times, 1e-6)
        assert exact <= found / NANO <= exact * 1.001
    for rate, multiplier in ((0.5, 1.0), (0.1, 0.7)):
        training = sampled(rate=Fraction(str(rate)), multiplier=str(multiplier), steps=1)
        found = accounting.compose_losses([], [training], MILLIONTH) / NANO
        for least, factor in ((True, 1), (False, 0.999)):
            delta = sampled_delta(rate, multiplier, found * factor)
            assert (delta <= 1e-6) == least
    training = sampled(rate=Fraction(1, 100), steps=1000)
    alone = accounting.compose_losses([], [training], Fraction(1, 10**5))
    assert alone / NANO == pytest.approx(1.8282, abs=1e-4)
    pure = [(10**8, 52)]
    both = accounting.compose_losses(pure, [training], MILLIONTH)
    one = accounting.compose_losses(pure, [], MILLIONTH)
    other = accounting.compose_losses([], [training], MILLIONTH)
    assert max(one, other) < both < one + other
    together = accounting.Composition.of(MILLIONTH, pure=pure, samples=[training])
    assert together.epsilon == together.composed == both < together.converted
    half = accounting.compose_losses(pure, [training], MILLIONTH / 2)
    together = accounting.Composition.of(MILLIONTH, pure=pure, samples=[training], rho=10**9)
    assert together.composed == half + accounting.epsilon_of(10**9, MILLIONTH / 2)
    assert accounting.compose_losses(pure, [training], Fraction(1, 10**10)) is None
    found = as_json("ledger account --delta 1e-5 --sampled 0.01,1,1000")
    assert found["smallest_bound"] == "losses composed"
    assert found["epsilon"] == found["losses_composed"]


def exact_epsilon(epsilon, times, delta):
    """Least epsilon of many randomised responses (Kairouz, Oh, Viswanath, 2015)."""
    kept = np.arange(times + 1)
    losses = (2 * kept - times) * epsilon
    chances = binom.pmf(kept, times, 1 / (1 + np.exp(-epsilon)))
    return brentq(lambda e: (chances * -np.expm1(np.minimum(e - losses, 0))).sum() - delta, 0, 99)


def sampled_delta(rate, multiplier, epsilon):
    """Delta of one step, of the neighbour that is worse: with the person, or without."""

    def beyond(point, mean):
        return norm.sf((point - mean) / multiplier)

    def crossing(grown):  # where one law has grown times the density of the other
        return 0.5 + multiplier**2 * math.log((grown - 1 + rate) / rate)

    high = crossing(math.exp(epsilon))
    mixed = rate * beyond(high, 1) + (1 - rate) * beyond(high, 0)
    deltas = [mixed - math.exp(epsilon) * beyond(high, 0)]
    if math.exp(-epsilon) > 1 - rate:
        low = crossing(math.exp(-epsilon))
        below = rate * (1 - beyond(low, 1)) + (1 - rate) * (1 - beyond(low, 0))
        deltas.append(1 - beyond(low, 0) - math.exp(epsilon) * below)
    return max(deltas)


def test_a_rho_and_samples_are_added_at_each_order():
    training = sampled(rate=Fraction(1, 100), steps=1000)
    alone = accounting.epsilon_with_samples(0, [training], MILLIONTH)
    both = accounting.epsilon_with_samples(10**10, [training], MILLIONTH)
    assert max(alone, accounting.epsilon_of(10**10, MILLIONTH)) < both
    assert both < alone + accounting.epsilon_of(10**10, MILLIONTH)
    assert accounting.epsilon_with_samples(0, [training, training], MILLIONTH) > alone
    for rho in (10**6, 10**9, 10**11, 10**12):  # orders of a table are never better than all
        exact = accounting.epsilon_of(rho, MILLIONTH)
        assert exact <= accounting.epsilon_with_samples(rho, [], MILLIONTH)


def test_golden_numbers():
    for rate, multiplier, steps, golden in SAMPLED:
        training = sampled(rate=rate, multiplier=multiplier, steps=steps)
        found = accounting.epsilon_with_samples(0, [training], Fraction(1, 10**5)) / NANO
        assert found == pytest.approx(golden, abs=6e-5)
    for steps, multiplier, golden in ((1024, 5, 3.3003), (365, 10, 1.3904), (8760, 20, 0.8379)):
        rho = accounting.tree_rho(steps, Fraction(multiplier))
        assert accounting.epsilon_of(rho, MILLIONTH) / NANO == pytest.approx(golden, abs=6e-5)


def test_nothing_costs_nothing_and_arguments_out_of_range_are_refused(subtests):
    assert accounting.epsilon_of(0, MILLIONTH) == 0
    assert accounting.pure_rho(0) == accounting.selection_rho(0) == 0
    assert accounting.pure_rho(1) == accounting.selection_rho(1) == 1
    assert accounting.rho_of(1, Fraction(1, 10**9)) == 0
    for call, sentence in OUT_OF_RANGE:
        with subtests.test(sentence), pytest.raises(ParameterError, match=sentence):
            call()


OUT_OF_RANGE = [
    (lambda: accounting.rho_of(0, MILLIONTH), "epsilon must be at least 1, got 0"),
    (lambda: accounting.rho_of(NANO, Fraction(0)), "delta must be above 0 and below 1, got 0"),
    (lambda: accounting.epsilon_of(-1, MILLIONTH), "rho must be at least 0, got -1"),
    (lambda: accounting.pure_rho(-1), "epsilon must be at least 0, got -1"),
    (lambda: accounting.gaussian_rho(Fraction(0)), "multiplier must be above 0, got 0"),
    (lambda: accounting.tree_rho(0, Fraction(1)), "steps must be at least 1, got 0"),
    (lambda: sampled(rate=Fraction(1)), "rate must be above 0 and below 1, got 1"),
    (lambda: sampled(steps=0), "steps must be at least 1, got 0"),
    (lambda: sampled(multiplier=Fraction(-1)), "multiplier must be above 0, got -1"),
]


def sampled(*, rate=Fraction(1, 10), multiplier=1, steps=1):
    return SampledGaussian(rate=rate, multiplier=Fraction(multiplier), steps=steps)


def test_many_pure_releases_have_two_bounds():
    for epsilon, times, added, converted in [
        *((0.1, 12, 1.2, 1.62), (0.05, 52, 2.6, 1.7)),
        *((0.1, 52, 5.2, 3.62), (0.05, 365, 18.25, 4.96)),
    ]:
        together = accounting.Composition.of(MILLIONTH, pure=[(nano(epsilon), times)])
        assert together.added / NANO == pytest.approx(added)
        assert together.converted / NANO == pytest.approx(converted, abs=6e-3)
        assert together.epsilon == min(together.added, together.converted, together.composed or inf)
    for epsilon, times in ((0.01, 17), (0.1, 24), (0.2, 28), (0.5, 42), (1, 82)):
        for number in (times - 1, times):
            together = accounting.Composition.of(MILLIONTH, pure=[(nano(epsilon), number)])
            assert (together.converted < together.added) is (number == times)


def test_rhos_and_samples_are_added_to_pure_releases():
    rho = accounting.gaussian_rho(Fraction(5))
    few = accounting.Composition.of(MILLIONTH, pure=[(nano(0.01), 1)], rho=rho)
    assert few.added == nano(0.01) + accounting.epsilon_of(rho, MILLIONTH)
    assert few.converted == accounting.epsilon_of(rho + accounting.pure_rho(nano(0.01)), MILLIONTH)
    assert few.rho == rho + accounting.pure_rho(nano(0.01))
    training = sampled(rate=Fraction(1, 100), steps=1000)
    more = accounting.Composition.of(MILLIONTH, pure=[(NANO, 2)], samples=[training])
    alone = accounting.epsilon_with_samples(0, [training], MILLIONTH)
    assert more.added == 2 * NANO + alone
    assert more.converted == accounting.epsilon_with_samples(more.rho, [training], MILLIONTH)
