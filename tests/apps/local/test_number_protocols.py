"""Every protocol of numbers: its exact law, its privacy, its errors, and the device's draws."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from psd.apps.local.device import NANO, STEPS, WINDOWS, NumberDraw, Words
from psd.apps.local.protocols import list_protocols, protocol_class
from psd.apps.local.protocols.numbers import (
    NumberProtocol,
    SingleValueProtocol,
    UnbiasedProtocol,
    half_width,
)
from support.goodness_of_fit import holds
from support.local import epsilon_of, law_of, log_ratio

EPSILONS = (NANO // 1000, NANO // 10, NANO // 2, NANO, 2 * NANO, 4 * NANO, 12 * NANO)
MEANS = ("duchi", "hybrid", "piecewise")
SINGLE = ("bounded-laplace", "bounded-staircase", "staircase")
STEPS_OF_SMALL = 8

# Windows of a range of 8 steps: the least, some in between, and the largest.
SMALL = {
    "bounded-laplace": (0,),
    "bounded-staircase": (0, 2, 3, 4, 6),
    "duchi": (0,),
    "hybrid": (0, 1, 4),
    "piecewise": (1, 4, 8),
    "square-wave": (1, 4, 8),
    "staircase": (1, 3, 7),
}
CASES = [(name, window) for name, windows in SMALL.items() for window in windows]


def small(name, window, nano):
    return protocol_class(name).at(nano, STEPS_OF_SMALL, window)


def laws(protocol):
    return [protocol.chances(answer) for answer in range(protocol.answers)]


def test_every_protocol_of_numbers_has_a_small_range():
    kinds = {name: protocol_class(name) for name in list_protocols()}
    numbers = {name for name, kind in kinds.items() if issubclass(kind, NumberProtocol)}
    assert numbers == SMALL.keys() == WINDOWS.keys()
    for use, names, kind in (
        ("means", MEANS, UnbiasedProtocol),
        ("single values", SINGLE, SingleValueProtocol),
    ):
        assert {name for name in numbers if kinds[name].use == use} == {*names}
        assert all(issubclass(kinds[name], kind) for name in names)


def test_privacy_of_numbers_is_exact(subtests):
    for (name, window), nano in product(CASES, EPSILONS):
        with subtests.test(f"{name}, window {window}, {nano}"):
            columns = zip(*laws(small(name, window, nano)), strict=True)
            worst = max(max(column) / min(column) for column in columns)
            assert epsilon_of(nano) - epsilon_of(2) < log_ratio(worst) <= epsilon_of(nano)


def test_law_of_numbers_is_what_the_device_draws(subtests):
    for name, window in CASES:
        protocol = small(name, window, NANO)
        with subtests.test(f"{name}, window {window}"):
            for answer in range(protocol.answers):
                drawn = law_of(lambda words, a=answer, p=protocol: p.draw.randomise(a, words))
                assert drawn == dict(protocol.law(answer))
                assert sum(drawn.values()) == 1
                chances = [float(chance) for chance in protocol.chances(answer)]
                assert np.allclose(protocol.matrix()[answer], chances)


@pytest.mark.parametrize("name", WINDOWS)
def test_weights_of_all_steps_fit_into_a_word(name):
    kind = protocol_class(name)
    epsilons = (NANO // 1000, NANO, 12 * NANO)
    protocols = [kind.best(nano) for nano in epsilons]
    protocols += [kind.at(nano, STEPS, w) for nano in epsilons for w in WINDOWS[name]]
    for protocol in protocols:
        for answer in (0, 1, STEPS // 2, STEPS - 1):
            runs = protocol.draw.runs(answer)
            assert sum(size * weight for size, weight in runs) <= 2**63
            assert all(size >= 0 and weight > 0 for size, weight in runs)
            assert sum(size for size, _ in runs) == protocol.outputs


@pytest.mark.deep
@pytest.mark.parametrize("name", ["bounded-laplace", "bounded-staircase"])
def test_the_worst_pair_of_all_steps_is_within_epsilon(name):
    """At 1,024 steps, the ends against every step; all pairs are enumerated at 8 steps."""
    protocol = protocol_class(name).best(NANO)
    totals = [sum(size * weight for size, weight in protocol.draw.runs(a)) for a in range(STEPS)]
    rows = [
        [weight for size, weight in protocol.draw.runs(answer) for _ in range(size)]
        for answer in range(STEPS)
    ]
    ratios = [
        Fraction(rows[0][y] * total, row[y] * totals[0])
        for row, total in zip(rows, totals, strict=True)
        for y in (0, 400, STEPS - 1)
    ]
    worst = max(max(ratios), 1 / min(ratios))
    assert worst <= Fraction(math.e)
    assert log_ratio(worst) <= 1


def test_decoded_numbers_are_exactly_unbiased_and_of_the_stated_variance(subtests):
    for name, nano in product(MEANS, EPSILONS):
        for protocol in (small(name, window, nano) for window in SMALL[name]):
            values = protocol.decoded()
            with subtests.test(str(protocol)):
                for answer, chances in enumerate(laws(protocol)):
                    pairs = list(zip(chances, values, strict=True))
                    assert sum(chance * value for chance, value in pairs) == answer
                    variance = sum(chance * (value - answer) ** 2 for chance, value in pairs)
                    assert protocol.variances()[answer] == pytest.approx(float(variance), rel=1e-9)


def test_errors_of_single_values_are_those_of_the_law(subtests):
    for protocol in (small(name, window, NANO) for name in SINGLE for window in SMALL[name]):
        with subtests.test(str(protocol)):
            exact = [
                sum(chance * (y - t) ** 2 for y, chance in enumerate(law))
                for t, law in enumerate(laws(protocol))
            ]
            assert protocol.squared_errors() == pytest.approx([float(error) for error in exact])
            if protocol.draw.law == "bounded-laplace":
                continue
            mean = float(sum(exact) / len(exact))
            assert protocol.mean_squared_error() == pytest.approx(mean)
            assert type(protocol).best(NANO, STEPS_OF_SMALL).mean_squared_error() <= mean
            # Means of single values are biased towards the middle: they are no protocol of means.
            assert sum(chance * y for y, chance in enumerate(laws(protocol)[0])) > 1


# Weight of the bounded staircase on 24 steps, as its logarithm: epsilon, window.
LATTICE = {
    (1, 2): 0.901842973, (1, 6): 0.797177941, (1, 11): 0.723876783, (1, 12): 0.746349824,
    (1, 16): 0.842419779, (2, 20): 1.923354292, (4, 6): 3.429655150,
}  # fmt: skip


def test_the_weight_of_the_bounded_staircase_is_the_largest_within_epsilon(subtests):
    for (epsilon, window), logarithm in LATTICE.items():
        draw = NumberDraw(epsilon * NANO, 24, "bounded-staircase", window)
        inside, outside = draw.weights
        with subtests.test(f"epsilon {epsilon}, window {window}"):
            assert math.log(inside / outside) == pytest.approx(logarithm, abs=1e-9)
            losses = []
            for weight in (inside, inside + 1):
                draw.__dict__["weights"] = (weight, outside)
                columns = zip(*laws(protocol_class("bounded-staircase")(draw=draw)), strict=True)
                losses.append(log_ratio(max(max(column) / min(column) for column in columns)))
            assert losses[0] <= epsilon < losses[1]


def test_the_best_window_of_square_wave():
    widths = [half_width(nano) for nano in (NANO // 2, NANO, 4 * NANO)]
    assert np.allclose(widths, [0.358155, 0.256083, 0.030428], rtol=0, atol=1e-6)


def test_worst_variances_of_means_are_those_of_the_formulas():
    """Squared halves of the range; 1,025 steps."""

    def worst(name, nano):
        variances = protocol_class(name).best(nano, 1025).variances()
        return round(float(variances.max()) * (2 / 1024) ** 2, 4)

    epsilons = (NANO // 2, NANO, 2 * NANO, 4 * NANO)
    assert [worst("piecewise", e) for e in epsilons] == [21.2209, 5.2217, 1.2256, 0.2395]
    assert [worst("duchi", e) for e in epsilons] == [16.6708, 4.6827, 1.7241, 1.0760]
    hybrid = [worst("hybrid", e) for e in epsilons]
    least = [16.6708, 4.6827, 1.2256, 0.2395]  # of the two
    assert hybrid[0] == least[0]
    assert hybrid[1] < least[1]
    assert all(h < 1.5 * one for h, one in zip(hybrid, least, strict=True))


SAMPLES = 4000


@pytest.mark.parametrize("name", SMALL)
def test_real_devices_have_the_law_of_numbers_and_other_epsilons_are_rejected(name):
    window = SMALL[name][-1]

    def p_value(nano):
        words, draw = Words(), small(name, window, NANO).draw
        drawn = [int(draw.randomise(0, words)[1:-1]) for _ in range(SAMPLES)]
        expected = np.array([float(c) for c in small(name, window, nano).chances(0)]) * SAMPLES
        return stats.chisquare(np.bincount(drawn, minlength=len(expected)), expected).pvalue

    assert holds(lambda: p_value(NANO))
    if name not in ("bounded-staircase", "staircase"):  # whose largest windows hold nearly all
        assert p_value(2 * NANO) < 1e-6
