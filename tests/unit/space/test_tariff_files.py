"""Files of tariffs: a price for each region, or one for all."""

from decimal import Decimal

from psd.errors import InputDataError, ParameterError
from psd.space.tariff_files import read_tariffs
from support.tables import refused, refused_calls


def text(folder, content):
    path = folder / "t.csv"
    path.write_text(content)
    return path


def test_prices_stand_in_the_order_of_the_regions(tmp_path):
    path = text(tmp_path, "tariff,east,west\ntoday,3,2.50\nnext,3.5,2\n")
    names, prices = read_tariffs(path, ["west", "east"])
    assert names == ("today", "next")
    assert prices == ((Decimal("2.5"), Decimal(3)), (Decimal(2), Decimal("3.5")))
    path = text(tmp_path, "tariff,price\ntoday,3\nnext,3.5\n")
    assert read_tariffs(path)[1] == ((Decimal(3),), (Decimal("3.5"),))


def test_wrong_files_are_refused(tmp_path, subtests):
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
