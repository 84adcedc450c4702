"""Currencies: texts of amounts, and the epsilon that an amount pays for."""

from fractions import Fraction

import numpy as np
import pytest

from psd.privacy.currency import EPSILON, RHO
from psd.privacy.epsilon import NANO

PICO = 10**12
AMOUNTS = [1, 7, 999_999, 24_355_970_359, PICO, 1_000 * PICO]


@pytest.mark.parametrize(
    ("currency", "amount", "text"),
    [
        (EPSILON, NANO, "1"),
        (EPSILON, 1, "0.000000001"),
        (RHO, 1, "0.000000000001"),
        (RHO, 5 * PICO // 2, "2.5"),
        (RHO, 0, "0"),
    ],
)
def test_texts(currency, amount, text):
    assert currency.text(amount) == text
    assert str(Fraction(currency.decimal(amount))) == str(Fraction(amount, currency.parts))


def test_epsilon_pays_for_itself():
    amounts = np.array([1, NANO])
    assert EPSILON.of_selections(amounts) is amounts
    assert EPSILON.of_pure(amounts) is amounts
    assert EPSILON.is_pure
    assert not RHO.is_pure
    assert (EPSILON.one_text, RHO.one_text) == ("an epsilon", "a rho")


def test_amounts_keep_their_shape_and_type():
    table = np.array([[PICO // 2, 2 * PICO], [2 * PICO, PICO // 2]])
    assert RHO.of_pure(table).tolist() == [[NANO, 2 * NANO], [2 * NANO, NANO]]
    assert RHO.of_pure(np.zeros(0, np.int64)).dtype == np.int64


@pytest.mark.parametrize("times", [8, 2])
def test_rho_pays_for_the_largest_epsilon_that_does_not_cost_more(times):
    """E^2 / 8 for selections, e^2 / 2 for all others, exactly, one nano-epsilon more costs more."""
    bought = RHO.of_selections if times == 8 else RHO.of_pure
    nano = bought(np.array(AMOUNTS))
    for amount, e in zip(AMOUNTS, nano.tolist(), strict=True):
        rho = Fraction(amount, PICO)
        assert Fraction(e, NANO) ** 2 / times <= rho < Fraction(e + 1, NANO) ** 2 / times


def test_the_most_that_a_release_may_have():
    assert EPSILON.largest == 1_000 * NANO
    assert RHO.largest == 1_000 * PICO
