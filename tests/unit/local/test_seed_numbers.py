"""The numbers of the source documents, from exact integrals and enumerations."""

from fractions import Fraction
from math import log

import numpy as np
import pytest

from psd.local.device import NANO, STEPS
from psd.local.protocols import protocol_class
from support import seed_numbers as seeds

# Mean squared errors of heights in 1e-3 square metres: bounded Laplace, gammas .16 to .22, and the
# best gamma with its error.
FIGURE_2 = {
    0.2: (4.9065, 4.9040, 4.8876, 4.8738, 4.8624, 0.3191, 4.8381),
    0.5: (4.5743, 4.5365, 4.4996, 4.4691, 4.4447, 0.3077, 4.3997),
    1: (4.0510, 3.8865, 3.8270, 3.7801, 3.7446, 0.2878, 3.6958),
    1.5: (3.5710, 3.2253, 3.1579, 3.1078, 3.0728, 0.2668, 3.0413),
    2: (3.1378, 2.5930, 2.5303, 2.4876, 2.4621, 0.2449, 2.4515),
    3: (2.4137, 1.5395, 1.5107, 1.5022, 1.5110, 0.1993, 1.5022),
    4: (1.8630, 0.8622, 0.8760, 0.9060, 0.9500, 0.1554, 0.8617),
    6: (1.1507, 0.3642, 0.4235, 0.4922, 0.5696, 0.0864, 0.2504),
    8: (0.7565, 0.2823, 0.3506, 0.4267, 0.5102, 0.0454, 0.0676),
    10: (0.5274, 0.2709, 0.3405, 0.4176, 0.5020, 0.0234, 0.0179),
}


@pytest.mark.parametrize("epsilon", FIGURE_2)
def test_figure_2_of_seed_000_to_four_digits(epsilon):
    gamma, least = seeds.best_gamma(epsilon)
    errors = [seeds.staircase_heights(each, epsilon) for each in seeds.GAMMAS]
    found = [1e3 * error for error in (seeds.laplace_heights(epsilon), *errors)]
    assert tuple(round(number, 4) for number in (*found, gamma, least * 1e3)) == FIGURE_2[epsilon]


def test_figure_1_and_the_gammas_that_win_are_those_of_the_document():
    assert seeds.corrected_epsilon(0.3, 1) == pytest.approx(0.7702961969, abs=1e-10)
    places = [(y - 10) / 10 for y in (15.5, 18, 19.9, 11)]
    density = [seeds.staircase_density(place, 0.8, 0.3, 1) / 10 for place in places]
    assert density == pytest.approx([0.136716993] * 3 + [0.063283007], abs=1e-9)
    errors = [*seeds.worst_errors(0.2, 0.16), *seeds.worst_errors(1, 0.16)]
    assert [round(1e3 * error, 3) for error in errors] == [10.264, 10.494, 8.232, 8.970]
    low, high = seeds.winning_gammas()
    assert (round(low, 4), round(high, 4)) == (0.1572, 0.2257)
    assert (np.ceil(low * 100) / 100, np.floor(high * 100) / 100) == (0.16, 0.22)


CORRECTED = {
    (0.1, 0.5): 0.4479005287, (0.1, 1): 0.8829378183, (0.1, 4): 3.4397476604,
    (0.3, 0.5): 0.3838957556, (0.3, 1): 0.7702961969, (0.3, 4): 3.3617978183,
    (0.5, 0.5): 0.3430951157, (0.5, 1): 0.7075424818, (0.5, 4): 3.3416209076,
    (0.7, 0.5): 0.3966133288, (0.7, 1): 0.8167496125, (0.7, 4): 3.6543546596,
}  # fmt: skip


def test_corrected_epsilons_are_tight_and_others_not_private():
    for (gamma, epsilon), corrected in CORRECTED.items():
        stairs = seeds.corrected_epsilon(gamma, epsilon)
        assert stairs == pytest.approx(corrected, abs=1e-10)
        assert seeds.staircase_loss(gamma, stairs) == pytest.approx(epsilon)
    for gamma, realised in PRINTED.items():
        loss = seeds.staircase_loss(gamma, seeds.printed_epsilon(gamma, 1))
        assert round(loss, 4) == realised
        assert loss == pytest.approx(1 + log(1 / gamma))
    losses = [seeds.staircase_loss(*pair) for pair in ((0.3, 1), (0.2, 2), (0.16, 10))]
    assert [round(loss, 5) for loss in losses] == [1.29278, 2.44532, 10.69301]


PRINTED = {0.5: 1.6931, 0.6: 1.5108, 0.7: 1.3567, 0.8: 1.2231, 0.9: 1.1054, 0.99: 1.0101}
BEST = {0.5: 0.3134, 1: 0.2922, 2: 0.2462, 4: 0.1530, 10: 0.0225}


def test_the_best_window_on_the_lattice_is_the_continuous_one():
    for epsilon, gamma in BEST.items():
        assert round(seeds.best_gamma(epsilon, seeds.uniform_error)[0], 4) == gamma
        best = protocol_class("bounded-staircase").best(int(epsilon * NANO))
        assert (best.draw.window + 0.5) / STEPS == pytest.approx(gamma, abs=1e-3)


# Bits, hashes, f, p, q: epsilons of the permanent response and of one report.
RAPPOR = {
    (6, 2, "1/2", "1/2", "3/4"): (4.394449, 1.074286),
    (6, 3, "1/2", "1/2", "3/4"): (6.591674, 1.611429),
    (4, 1, "1/2", "1/2", "3/4"): (2.197225, 0.537143),
    (6, 2, "1/4", "7/20", "13/20"): (7.783641, 1.831332),
    (8, 2, "3/4", "1/4", "3/4"): (2.043302, 1.005258),
}


def test_epsilons_of_rappor_have_the_factor_that_seed_002_omits():
    for (bits, hashes, *rates), expected in RAPPOR.items():
        epsilons = seeds.rappor_epsilons(bits, hashes, *rates)
        assert tuple(round(e, 6) for e in epsilons) == expected
        shares = (float(Fraction(rate)) for rate in rates)
        forever, once, printed = seeds.rappor_formulas(hashes, *shares)
        assert epsilons == pytest.approx((forever, once))
        assert forever == pytest.approx(2 * hashes * printed)
    # Fewer bits than two masks need cost less.
    epsilons = seeds.rappor_epsilons(3, 2, "1/2", "1/2", "3/4")
    assert [round(e, 6) for e in epsilons] == [3.295837, 0.873615]
