"""Lists of prices: their steps, which of them a bid reaches, and what is refused."""

from decimal import Decimal

import numpy as np
import pytest

from psd.errors import ParameterError
from psd.space.price_list import MAX_PRICES, PriceList, parse_price


@pytest.mark.parametrize(
    ("text", "multiples", "step"),
    [
        ("1..4/1", (1, 2, 3, 4), "1"),
        ("0.5..2/0.5", (1, 2, 3, 4), "0.5"),
        ("0.5..2.2/0.5", (1, 2, 3, 4), "0.5"),
        ("10,20,50", (1, 2, 5), "10"),
        ("1, 2.5, 10", (2, 5, 20), "0.5"),
        ("0.10,0.25", (2, 5), "0.05"),
        ("1e2,2e2", (1, 2), "100"),
        ("7", (1,), "7"),
    ],
)
def test_prices_are_multiples_of_their_largest_step(text, multiples, step):
    prices = PriceList.parse(text)
    assert (prices.multiples, prices.step) == (multiples, Decimal(step))
    assert prices.largest == multiples[-1]
    assert [prices.price(i) for i in range(len(prices))] == [m * Decimal(step) for m in multiples]


def test_a_bid_reaches_the_prices_up_to_it():
    prices = PriceList.parse("0.1..1/0.1")
    bids = np.array([0.1, 0.3, 0.7, 0.69999, 1.0, 5, 1e300, 0.0999, 0, -3, np.nan, np.inf, -np.inf])
    assert prices.levels(bids).tolist() == [1, 3, 7, 6, 10, 10, 10, 0, 0, 0, -1, -1, -1]


@pytest.mark.parametrize(
    "text",
    [
        *("", ",", "1,", "x", "1,x", "nan", "inf", "1_0", "\u0661", "0,1", "-1,2", "2,1", "1,1"),
        *("1..2", "1..2/0", "1..2/-1", "2..1/1", "0..2/1", "1..2/x", "..2/1", "1../1", "1.5.2"),
        *("0.0000000000001,1", "1e-12,1000000", f"1..{MAX_PRICES + 1}/1", "1..1e99/1e-9"),
        *("1,1e1000000", "1e31", "1,1e30"),
    ],
)
def test_wrong_lists_are_refused(text):
    with pytest.raises(ParameterError, match="prices must be"):
        PriceList.parse(text)


@pytest.mark.parametrize("text", ["1e1000000", "1e-1000000", "-1", "x", "1_0", "nan"])
def test_wrong_prices_are_refused_at_once(text):
    with pytest.raises(ParameterError, match="prices must be"):
        parse_price(text)


def test_a_million_prices_are_a_list_and_one_more_is_none():
    assert len(PriceList.parse(f"1..{MAX_PRICES}/1")) == MAX_PRICES
    with pytest.raises(ParameterError, match="prices must be 1 to"):
        PriceList.of([])
