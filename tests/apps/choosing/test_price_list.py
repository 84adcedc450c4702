"""Lists of prices, and files of tariffs: steps, which prices a bid reaches, and what is refused."""

from decimal import Decimal

import numpy as np
import pytest

from psd.apps.choosing.files import MAX_PRICES, PriceList, parse_price, read_tariffs
from psd.errors import InputDataError, ParameterError
from support.tables import refused, refused_calls


def test_prices_are_multiples_of_their_largest_step_and_others_are_refused(subtests):
    for text, multiples, step in (
        ("1..4/1", (1, 2, 3, 4), Decimal(1)),
        ("0.5..2/0.5", (1, 2, 3, 4), Decimal("0.5")),
        ("0.5..2.2/0.5", (1, 2, 3, 4), Decimal("0.5")),
        ("10,20,50", (1, 2, 5), Decimal(10)),
        ("1, 2.5, 10", (2, 5, 20), Decimal("0.5")),
        ("0.10,0.25", (2, 5), Decimal("0.05")),
        ("1e2,2e2", (1, 2), Decimal(100)),
        ("7", (1,), Decimal(7)),
    ):
        prices = PriceList.parse(text)
        with subtests.test(text):
            assert (prices.multiples, prices.step) == (multiples, step)
            assert prices.largest == multiples[-1]
            assert list(map(prices.price, range(len(prices)))) == [m * step for m in multiples]
    lists = [
        *("", ",", "1,", "x", "1,x", "nan", "inf", "1_0", "\u0661", "0,1", "-1,2", "2,1", "1,1"),
        *("1..2", "1..2/0", "1..2/-1", "2..1/1", "0..2/1", "1..2/x", "..2/1", "1../1", "1.5.2"),
        *("0.0000000000001,1", "1e-12,1000000", f"1..{MAX_PRICES + 1}/1", "1..1e99/1e-9"),
        *("1,1e1000000", "1e31", "1,1e30"),
    ]
    prices = "1e1000000", "1e-1000000", "-1", "x", "1_0", "nan"
    refused(subtests, ParameterError, [("prices must be", *lists)], PriceList.parse)
    refused(subtests, ParameterError, [("prices must be", *prices)], parse_price)
    refused(subtests, ParameterError, [("prices must be 1 to", [])], PriceList.of)


def test_a_bid_reaches_the_prices_up_to_it():
    prices = PriceList.parse("0.1..1/0.1")
    bids = np.array([0.1, 0.3, 0.7, 0.69999, 1.0, 5, 1e300, 0.0999, 0, -3, np.nan, np.inf, -np.inf])
    assert prices.levels(bids).tolist() == [1, 3, 7, 6, 10, 10, 10, 0, 0, 0, -1, -1, -1]


@pytest.mark.deep
def test_a_million_prices_are_a_list():
    assert len(PriceList.parse(f"1..{MAX_PRICES}/1")) == MAX_PRICES


def text(folder, content):
    path = folder / "t.csv"
    path.write_text(content)
    return path


def test_tariffs_stand_in_the_order_of_the_regions_and_wrong_files_are_refused(tmp_path, subtests):
    path = text(tmp_path, "tariff,east,west\ntoday,3,2.50\nnext,3.5,2\n")
    names, prices = read_tariffs(path, ["west", "east"])
    assert names == ("today", "next")
    assert prices == ((Decimal("2.5"), Decimal(3)), (Decimal(2), Decimal("3.5")))
    path = text(tmp_path, "tariff,price\ntoday,3\nnext,3.5\n")
    assert read_tariffs(path)[1] == ((Decimal(3),), (Decimal("3.5"),))

    def use(content, regions=None):
        return read_tariffs(text(tmp_path, content), regions)

    table = [
        ("no column tariff", "name,price\na,1\n"),
        ("line 3", *(f"tariff,price\na,1\nb,{n}\n" for n in ("x", ""))),
        ("line 2", *(f"tariff,price\na,{n}\nb,1\n" for n in (0, -1, "nan", "1e999999"))),
        ("12 decimals", "tariff,price\na,0.0000000000001\nb,1\n"),
    ]
    refused(subtests, InputDataError, table, use)
    table = [
        ("one column price", "tariff,west\na,1\n", None),
        ("none for 'east'", "tariff,west\na,1\n", ["west", "east"]),
        ("'east', which is", "tariff,west,east\na,1,2\n", ["west"]),
    ]
    refused_calls(subtests, ParameterError, table, use)
