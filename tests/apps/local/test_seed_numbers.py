"""The numbers of the source documents: identities, and the protocols that follow from them.

`tests/docs` compares their values with the page that has them.
"""

from fractions import Fraction
from itertools import product
from math import log

import pytest

from psd.apps.local.device import NANO, STEPS
from psd.apps.local.protocols import protocol_class
from support import seed_numbers as seeds


def test_corrected_epsilons_are_tight_and_others_not_private():
    for gamma, epsilon in product((0.1, 0.3, 0.5, 0.7), (0.5, 1, 4)):
        stairs = seeds.corrected_epsilon(gamma, epsilon)
        assert seeds.staircase_loss(gamma, stairs) == pytest.approx(epsilon)
    for gamma in (0.5, 0.6, 0.7, 0.8, 0.9, 0.99):
        loss = seeds.staircase_loss(gamma, seeds.printed_epsilon(gamma, 1))
        assert loss == pytest.approx(1 + log(1 / gamma))
    losses = [seeds.staircase_loss(*pair) for pair in ((0.3, 1), (0.2, 2), (0.16, 10))]
    assert [round(loss, 5) for loss in losses] == [1.29278, 2.44532, 10.69301]


BEST = {0.5: 0.3134, 1: 0.2922, 2: 0.2462, 4: 0.1530, 10: 0.0225}


def test_the_best_window_on_the_lattice_is_the_continuous_one():
    for epsilon, gamma in BEST.items():
        assert round(seeds.best_gamma(epsilon, seeds.uniform_error)[0], 4) == gamma
        best = protocol_class("bounded-staircase").best(int(epsilon * NANO))
        assert (best.draw.window + 0.5) / STEPS == pytest.approx(gamma, abs=1e-3)


# Bits, hashes, f, p, q.
RAPPOR = [
    *((bits, hashes, "1/2", "1/2", "3/4") for bits, hashes in ((6, 2), (6, 3), (4, 1))),
    (6, 2, "1/4", "7/20", "13/20"),
    (8, 2, "3/4", "1/4", "3/4"),
]


def test_epsilons_of_rappor_have_the_factor_that_seed_002_omits():
    for bits, hashes, *rates in RAPPOR:
        epsilons = seeds.rappor_epsilons(bits, hashes, *rates)
        shares = (float(Fraction(rate)) for rate in rates)
        forever, once, printed = seeds.rappor_formulas(hashes, *shares)
        assert epsilons == pytest.approx((forever, once))
        assert forever == pytest.approx(2 * hashes * printed)
    # Fewer bits than two masks need cost less.
    epsilons = seeds.rappor_epsilons(3, 2, "1/2", "1/2", "3/4")
    assert [round(e, 6) for e in epsilons] == [3.295837, 0.873615]
