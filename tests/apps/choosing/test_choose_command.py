"""psd choose: what is printed, charged and refused, and what is never printed."""

import json
import re

import pytest

from psd.accounting import pure_rho, rho_of
from psd.ledger.ledger import Ledger
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.loss import NANO, parse_delta, rho_text
from support.cli_runner import as_json, as_table, check_refusals, cli, fails, passes, write_points

OF_SITES = ("choose site v.csv", "--crs", "EPSG:3857")
SITES = (*OF_SITES, "--candidates", "s.csv", "--radius", 2)
LEDGER = ("--ledger", "l", "--dataset", "v")
PAY = ("--epsilon", 100, *LEDGER)
NOTES = """\
shortfall: at most 0.01099 records below the best candidate on average, and at most 0.04099 with \
probability 0.95
resolution: candidates within 0.01 records of each other are hardly told apart
"""


@pytest.fixture(autouse=True)
def folder(here):
    """Seven records around a, four around b, none around c."""
    places = [(2, 2)] * 7 + [(8, 8)] * 4
    rows = [(x, y, f"u{i % 5}") for i, (x, y) in enumerate(places)]
    write_points(here / "v.csv", rows, "lon,lat,user")
    sites(("a", 2, 2), ("b", 8, 8), ("c", 14, 2), folder=here)
    Ledger.create(here / "l").register("v", 1000)
    return here


def sites(*rows, folder):
    write_points(folder / "s.csv", rows, "id,lon,lat")


def test_a_site_with_what_public_numbers_say():
    told = passes(*SITES, *PAY)
    assert [line.rstrip() for line in told.splitlines()[:3]] == [
        "rank  id",
        "   1  a",
        "epsilon 100 per record; 3 candidates",
    ]
    assert NOTES in told
    assert re.search(r"a liar gains at most 2.69e\+43 times their largest utility", told)
    assert re.search(r"^ledger head 4 [0-9a-f]{64}$", told, re.MULTILINE)
    assert "psd choose site" in passes("choose")


def test_a_choice_of_other_records_prints_the_same_but_for_the_choice(folder):
    first = passes(*SITES, *PAY).splitlines()[2:-1]
    write_points(folder / "v.csv", [(8, 8)] * 3 + [(90, 90)] * 9)
    second = passes(*SITES, *PAY).splitlines()
    assert second[1].rstrip() == "   1  b"
    assert second[2:-1] == first


def test_a_dataset_with_a_delta_takes_choices_of_pure_epsilon():
    """Epsilon 0.5 costs 0.1224593 in rho, and (5, 1e-6) has 0.463."""
    Ledger("l").register("d", 5, delta="1e-6")
    pay = ("--ledger", "l", "--dataset", "d", "--epsilon", "0.5")
    told = passes(*SITES, *pay)
    assert "epsilon 0.5 per record; 3 candidates" in told
    assert "delta" not in told
    (charge,) = Ledger("l").state().charges.values()
    assert (charge.loss.epsilon, charge.loss.delta) == (500_000_000, None)
    build = "build v.csv -o g.psd.parquet --epsilon 1 --bounds 0 0 9 9 --crs EPSG:3857"
    passes(f"{build} --delta 1e-6 --noise gaussian --method grid", *pay[:4])
    passes(*SITES, *pay)  # after Gaussian noise the rhos are added
    told = fails(4, *SITES, "--epsilon", 2, *pay[:4])
    gaussian = rho_of(NANO, parse_delta("1e-6"))
    left_rho = rho_text(rho_of(5 * NANO, parse_delta("1e-6")) - 2 * pure_rho(NANO // 2) - gaussian)
    assert f"left for a pure charge, rho {left_rho} for Gaussian noise" in told
    assert "No such option" in fails(2, *SITES, *pay, "--delta", "1e-6")


def test_tables_targets_bounds_and_private_numbers():
    line = (*SITES, *PAY, "--best", 3, "--cover")
    rows = as_json(*line)
    assert rows == [{"rank": rank, "id": name} for rank, name in enumerate("abc", 1)]
    assert as_table(*line).to_dict("records") == rows
    assert "   1  b \n" in passes(*SITES, *PAY, "--target", 4)
    assert "   1  c \n" in passes(*SITES, *PAY, "--target", 0)
    assert "   1  b \n" in passes(*SITES, *PAY, "--bounds", 3.5, 0, 20, 20)
    outcome = cli(*SITES, *PAY, "--report-private")
    assert outcome.code == 0
    assert outcome.err == (
        "PRIVATE, do not publish: records read 11, without coordinates 0, outside 0, kept 11\n"
    )
    printed = [line for line in outcome.out.splitlines() if not line.startswith("ledger head ")]
    assert len(printed) < len(outcome.out.splitlines())
    assert " 7" not in "\n".join(printed)  # rows of the best site


CANDIDATES, EPSILON = "--candidates s.csv", "--epsilon 100"
WRONG_SITES = [
    (2, f"{CANDIDATES} --radius 0 {EPSILON}", "--radius must be a number of metres above 0, got 0"),
    (8, f"--candidates none.csv --radius 2 {EPSILON}", "none.csv does not exist"),
    (8, f"--candidates t.csv --radius 2 {EPSILON}", "column id"),
    (2, f"--candidates v.csv --radius 2 {EPSILON}", "must not be an input of records"),
    (2, f"{CANDIDATES} --radius 2 --epsilon 0", "--epsilon must be"),
]
WRONG_OPTIONS = [
    (2, "--cover", "--cover must be left out for one site"),
    (2, "--max-contributions 2", "--user must name"),
]


def test_wrong_options_and_candidates_cost_nothing(subtests, folder):
    write_points(folder / "t.csv", [(2, 2)])
    check_refusals(subtests, WRONG_SITES, *OF_SITES, *LEDGER)
    check_refusals(subtests, WRONG_OPTIONS, *SITES, *PAY)
    crs = [(3, "--crs EPSG:0", "--crs must be")]
    check_refusals(subtests, crs, OF_SITES[0], *SITES[3:], *PAY)
    epsilon = [(2, "--epsilon 1", "psd choose charges a ledger")]
    check_refusals(subtests, epsilon, *SITES)
    for rows, code, told in (
        ([], 2, "at least 2, got 0"),
        ([("a", 2, 2)], 2, "at least 2, got 1"),
        ([("a", 2, 2), ("a", 3, 3)], 2, "got 'a' twice"),
        ([("a", 2, 2), ("", 3, 3)], 2, "an empty one"),
        ([("a", 2, 2), ("b", "x", 3)], 8, "line 3"),
    ):
        sites(*rows, folder=folder)
        check_refusals(subtests, [(code, "", told)], *SITES, *PAY)


@pytest.mark.parametrize("registered", [False, True])
def test_no_message_about_candidates_quotes_a_record(registered, folder):
    """Records that are named as candidates are refused before they are read, for nothing."""
    write_points(folder / "v.csv", [("kim", 2, 2), ("kim", 3, 3)], "id,lon,lat")
    write_points(folder / "w.csv", [("lee", 2, 2)], "id,lon,lat")
    told = "must not be an input of records"
    if registered:
        Ledger("l").register_inputs("v", ["v.csv", "w.csv"])
        told = "must not be inputs of a dataset of this ledger"
    records = "w.csv" if registered else "v.csv"
    line = f"choose site {records} --candidates v.csv --radius 2"
    shown = fails(9 if registered else 2, line, *PAY)
    assert told in shown
    assert "kim" not in shown
    assert not Ledger("l").state().charges


BIDS = ["1", "2", "2", "3", "9", "", "x", "nan", "-4", "1e6"]
AREA = ("--crs", "EPSG:3857")
BOUNDS = ("--bounds", 0, 0, 4, 4)
OF_BIDS = ("choose price b.csv --bid bid", *AREA)
ONE = (*OF_BIDS, "--prices", "1,2,3,5", *BOUNDS)
OF_TARIFFS = ("choose tariff b.csv --bid bid", *AREA)
LISTED = (*OF_TARIFFS, "--tariffs", "t.csv")
WKT = "SRID=3857;POLYGON(({0} 0,{1} 0,{1} 4,{0} 4,{0} 0))"


def regions(folder, names, ends, **columns):
    """Regions of the market, and a file of them, from the west to the east."""
    shapes = [f'"{WKT.format(*each)}"' for each in ends]
    rows = zip(names, *columns.values(), shapes, strict=True)
    write_points(folder / "z.csv", rows, ",".join(["id", *columns, "wkt"]))


@pytest.fixture
def bids(folder):
    """Bids in the west, two more outside, regions and tariffs."""
    rows = [(1, 1, bid, f"u{i}") for i, bid in enumerate(BIDS)] + [(9, 9, 5, "v")] * 2
    write_points(folder / "b.csv", rows, "lon,lat,bid,user")
    regions(folder, ("west", "east"), ((0, 2), (2, 4)))
    write_points(folder / "t.csv", [("today", 1, 5), ("next", 3, 1)], "tariff,west,east")
    return folder


def test_a_price_and_the_private_report_of_bids(bids):
    outcome = cli(*ONE, *PAY, "--report-private")
    # 5 earns 10, 3 earns 9, 2 earns 10 and 1 earns 6: ties are broken by chance.
    assert outcome.out.splitlines()[1].strip() in ("2", "5")
    assert "epsilon 100 per record; 4 candidates" in outcome.out
    told = "shortfall: at most 0.06931 of revenue below the best candidate on average"
    assert told in outcome.out
    assert outcome.err == (
        "PRIVATE, do not publish: records read 12, without coordinates 0, outside 2, "
        "without a bid 3, kept 7\n"
    )


def test_a_tariff_and_markets_without_a_bid(bids):
    told = passes(*LISTED, "--regions", "z.csv", *PAY)
    assert told.splitlines()[1].strip() == "next"  # 9 against 6
    write_points(bids / "t.csv", [("today", 1), ("next", 2)], "tariff,price")
    assert passes(*LISTED, *BOUNDS, *PAY).splitlines()[1].strip() == "next"
    for rows in ([(1, 1, "")], []):
        write_points(bids / "b.csv", rows, "lon,lat,bid")
        assert passes(*ONE, *PAY).splitlines()[1].strip() in ("1", "2", "3", "5")
        passes(*LISTED, *BOUNDS, *PAY)


WRONG_PRICES = [
    (2, "0.5..2000000/0.5", "--prices must be at most 1,000,000"),
    (2, "1", "--prices must be at least 2, got 1"),
]
WRONG_TARIFFS = [
    (2, "t.csv", "--bounds or --regions must be given"),
    (8, "t.csv --regions none.gpkg", "none.gpkg"),
    (8, "none.csv --bounds 0 0 4 4", "none.csv does not exist"),
    (2, "t.csv --bounds 0 0 4 4", "one column price, got none for 'price'"),
    (2, "t.csv --regions z.csv --coordinate-resolution 1", "left out"),
]


def test_wrong_prices_tariffs_and_columns_cost_nothing(subtests, bids):
    check_refusals(subtests, WRONG_PRICES, *OF_BIDS, *BOUNDS, *PAY, "--prices")
    check_refusals(subtests, [(3, "--bounds 0 0 0 4", "--bounds")], *ONE[:-5], *PAY)
    check_refusals(subtests, WRONG_TARIFFS, *OF_TARIFFS, *PAY, "--tariffs")
    told = fails(2, *ONE, *PAY, "--engine", "spark://host:7077")
    assert "--engine must be left out" in told  # psd build alone counts on a cluster
    line = "choose price b.csv --bid offer"
    assert "could not be read to its end" in fails(8, line, *ONE[1:], *PAY)
    (bids / "b.csv").unlink()
    for rows, names, told in (
        ([("today", 1)], "tariff,west", "none for 'east'"),
        ([("today", 1, 2, 3)], "tariff,west,east,north", "'north', which is not a region"),
        ([("today", 1, 2)], "tariff,west,east", "at least 2, got 1"),
        ([("today", 1, 2), ("today", 2, 2)], "tariff,west,east", "'today'"),
    ):
        write_points(bids / "t.csv", rows, names)
        check_refusals(subtests, [(2, "--regions z.csv", told)], *LISTED, *PAY)


MAPS = ("choose prices b.csv --bid bid --prices 1,2,3,5", *AREA)
ENDS = ((0, 2), (2, 3), (3, 4))
NAMES = ("west", "middle", "east")


@pytest.fixture
def zoned(bids):
    """Bids of 5 in the west, and of 2 in the east; regions with a public order."""
    rows = [(1, y % 4, 5) for y in range(9)] + [(3, y % 4, 2) for y in range(9)]
    write_points(bids / "b.csv", rows, "lon,lat,bid")
    regions(bids, NAMES, ENDS, far=(3, 1, 2))
    return bids


def test_zones_of_a_map_and_along_an_order(zoned):
    line = (*MAPS, *BOUNDS, "--zones", 2, "--zone-depth", 1, *PAY, "-o", "m.geojson")
    told = passes(*line)
    rows = [row.split() for row in told.splitlines()[:3]]
    assert rows[0] == ["zone", "price", "west", "south", "east", "north"]
    assert rows[1:] == [["1", "5", "0", "0", "2", "4"], ["2", "2", "2", "0", "4", "4"]]
    assert told.endswith("wrote m.geojson\n")
    features = json.loads((zoned / "m.geojson").read_text())["features"]
    assert [feature["properties"]["price"] for feature in features] == ["5", "2"]
    assert features[0]["geometry"]["type"] == "Polygon"
    assert "exists" in fails(6, *line)
    line = (*MAPS, "--regions", "z.csv", "--order", "far", "--zones", "1..3")
    told = passes(*line, *PAY, "-o", "m.csv")
    assert (zoned / "m.csv").read_text() in (
        "zone,price,regions\n1,2,middle east\n2,5,west\n",
        # Bids are in the regions west and east alone, so the zone of the other may be any.
        *(f"zone,price,regions\n1,{p},middle\n2,2,east\n3,5,west\n" for p in (1, 2, 3, 5)),
    )
    assert "candidates" in told


DEPTH = "--bounds 0 0 4 4 --zone-depth 1"
WRONG_ZONES = [
    (2, f"{DEPTH} --zones 5", "--zones must be"),
    (2, f"{DEPTH} --zones 3..2", "--zones"),
    (2, f"{DEPTH} --zones few", "'--zones': it must be a number from"),
    (2, "--bounds 0 0 4 4 --zones 1", "--zone-depth must be given"),
    (2, "--zones 1 --zone-depth 1", "--bounds must be given"),
    (2, "--zones 1 --regions z.csv", "--order must be given"),
    (8, "--zones 1 --regions z.csv --order near", "no column near"),
    (2, "--zones 4 --regions z.csv --order far", "--zones must be"),
    (2, f"{DEPTH} --zones 1 -o m.pdf", "--output must end in"),
    (6, f"{DEPTH} --zones 1 -o no/m.csv", "no"),
]


def test_wrong_outputs_and_zones_cost_nothing(subtests, zoned):
    Ledger.create(zoned / "ledger.csv").register("v", 1000)
    line = (*MAPS, "--regions", "z.csv", "--order", "far", "--zones", 2, "--overwrite")
    pay = ("--epsilon", 100, "--ledger", "ledger.csv", "--dataset", "v", "-o")
    table = [(6, name, "is read as an input too") for name in ("b.csv", "z.csv")]
    table.append((6, "ledger.csv", "is never overwritten"))
    check_refusals(subtests, table, *line, *pay)
    check_refusals(subtests, WRONG_ZONES, *MAPS, *PAY)
    for far, told in (((1, 1, 2), "without ties"), ((1, "", 2), "none for 'middle'")):
        regions(zoned, NAMES, ENDS, far=far)
        ties = [(2, "--regions z.csv --order far --zones 2", told)]
        check_refusals(subtests, ties, *MAPS, *PAY)


def test_choices_are_paid_before_they_are_drawn(here, monkeypatch):
    ledger = Ledger.create("paid.ledger")
    ledger.register("rows", 10)
    points = write_points(here / "rows.csv", [(0.5, 0.5), (1.5, -2.5)])
    write_points(here / "two.csv", [("a", 0, 0), ("b", 1, 1)], "id,lon,lat")
    watched, draw = [], SecureSampler.draw

    def watching(*question):
        watched.append(len(ledger.state().charges))
        return draw(*question)

    monkeypatch.setattr(SecureSampler, "draw", watching)
    line = "--candidates two.csv --radius 9000 --best 2 --ledger paid.ledger --dataset rows"
    assert cli(f"choose site {points} {line} --epsilon 1").code == 0
    assert watched == [1, 1]
    (charge,) = ledger.state().charges.values()
    assert (charge.loss.epsilon, charge.done) == (10**9, True)
