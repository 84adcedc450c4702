"""Files of tariffs: a price for each region, or one for all."""

from decimal import Decimal

import pytest

from psd.errors import InputDataError, ParameterError
from psd.space.tariff_files import read_tariffs


def text(folder, content):
    path = folder / "t.csv"
    path.write_text(content)
    return path


def test_prices_stand_in_the_order_of_the_regions(tmp_path):
    path = text(tmp_path, "tariff,east,west\ntoday,3,2.50\nnext,3.5,2\n")
    names, prices = read_tariffs(path, ["west", "east"])
    assert names == ("today", "next")
    assert prices == ((Decimal("2.5"), Decimal(3)), (Decimal(2), Decimal("3.5")))


def test_one_price_for_all(tmp_path):
    path = text(tmp_path, "tariff,price\ntoday,3\nnext,3.5\n")
    assert read_tariffs(path)[1] == ((Decimal(3),), (Decimal("3.5"),))


@pytest.mark.parametrize(
    ("content", "regions", "kind", "told"),
    [
        ("name,price\na,1\n", None, InputDataError, "no column tariff"),
        ("tariff,west\na,1\n", None, ParameterError, "one column price"),
        ("tariff,west\na,1\n", ["west", "east"], ParameterError, "none for 'east'"),
        ("tariff,west,east\na,1,2\n", ["west"], ParameterError, "'east', which is"),
        ("tariff,price\na,1\nb,x\n", None, InputDataError, "line 3"),
        ("tariff,price\na,1\nb,\n", None, InputDataError, "line 3"),
        ("tariff,price\na,0\nb,1\n", None, InputDataError, "line 2"),
        ("tariff,price\na,-1\nb,1\n", None, InputDataError, "line 2"),
        ("tariff,price\na,nan\nb,1\n", None, InputDataError, "line 2"),
        ("tariff,price\na,1e999999\nb,1\n", None, InputDataError, "line 2"),
        ("tariff,price\na,0.0000000000001\nb,1\n", None, InputDataError, "12 decimals"),
    ],
)
def test_wrong_files_are_refused(tmp_path, content, regions, kind, told):
    with pytest.raises(kind, match=told):
        read_tariffs(text(tmp_path, content), regions)
