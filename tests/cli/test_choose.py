"""psd choose: what is printed, charged and refused, and what is never printed."""

import json
import re

import pytest

from psd.accounting import pure_rho, rho_of
from psd.ledger.ledger import Ledger
from psd.privacy.delta import parse_delta
from psd.privacy.epsilon import NANO
from psd.privacy.loss import rho_text
from support.cli_runner import cli, fails, files, passes, write_points
from support.postgres import execute

SITES = ("choose", "site", "v.csv", "--candidates", "s.csv", "--radius", 2, "--crs", "EPSG:3857")
PAY = ("--epsilon", 100, "--ledger", "l", "--dataset", "v")
NOTES = """\
shortfall: at most 0.01099 records below the best candidate on average, and at most 0.04099 with \
probability 0.95
alike: candidates within 0.01 records of each other are hardly told apart
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Seven records around a, four around b, none around c."""
    monkeypatch.chdir(tmp_path)
    places = [(2, 2)] * 7 + [(8, 8)] * 4
    rows = [(x, y, f"u{i % 5}") for i, (x, y) in enumerate(places)]
    write_points(tmp_path / "v.csv", rows, "lon,lat,user")
    write_points(tmp_path / "s.csv", [("a", 2, 2), ("b", 8, 8), ("c", 14, 2)], "id,lon,lat")
    ledger = Ledger.create(tmp_path / "l")
    ledger.register("v", 1000)

    return tmp_path


def left():
    return Ledger("l").state().left("v")


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


def test_a_choice_of_other_records_prints_the_same_but_for_the_choice(folder):
    first = passes(*SITES, *PAY).splitlines()[2:-1]
    write_points(folder / "v.csv", [(8, 8)] * 3 + [(90, 90)] * 9)
    second = passes(*SITES, *PAY).splitlines()
    assert second[1].rstrip() == "   1  b"
    assert second[2:-1] == first


def test_a_dataset_with_a_delta_takes_choices_of_pure_epsilon(folder):
    """Epsilon 0.5 costs 0.1224593 in rho, and (5, 1e-6) has 0.463."""
    ledger = Ledger("l")
    ledger.register("d", 5, delta="1e-6")
    pay = ("--epsilon", "0.5", "--ledger", "l", "--dataset", "d")
    told = passes(*SITES, *pay)
    assert "epsilon 0.5 per record; 3 candidates" in told
    assert "delta" not in told
    (charge,) = Ledger("l").state().charges.values()
    assert (charge.loss.epsilon, charge.loss.delta) == (500_000_000, None)
    build = ("build", "v.csv", "--epsilon", 1, "--bounds", 0, 0, 9, 9, "--crs", "EPSG:3857",
             "--delta", "1e-6", "--noise", "gaussian", "--method", "grid", *pay[2:])  # fmt: skip
    passes(*build, "-o", "g.psd.parquet")
    passes(*SITES, *pay)  # after Gaussian noise the rhos are added
    told = fails(4, *SITES, "--epsilon", 2, *pay[2:])
    left_rho = rho_text(rho_of(5 * NANO, parse_delta("1e-6")) - 2 * pure_rho(NANO // 2)
                        - rho_of(NANO, parse_delta("1e-6")))  # fmt: skip
    assert f"left for a pure charge, rho {left_rho} for Gaussian noise" in told
    assert "No such option '--delta'" in fails(2, *SITES, *pay, "--delta", "1e-6")


@pytest.mark.parametrize("form", ["csv", "json"])
def test_tables_for_programs(form):
    told = passes(*SITES, *PAY, "--best", 3, "--cover", "--format", form)
    rows = json.loads(told) if form == "json" else [
        dict(zip(("rank", "id"), (int(line.split(",")[0]), line.split(",")[1]), strict=True))
        for line in told.splitlines()[1:]
    ]  # fmt: skip
    assert rows == [{"rank": 1, "id": "a"}, {"rank": 2, "id": "b"}, {"rank": 3, "id": "c"}]


def test_a_target():
    assert "   1  b \n" in passes(*SITES, *PAY, "--target", 4)
    assert "   1  c \n" in passes(*SITES, *PAY, "--target", 0)


def test_bounds_of_the_domain():
    assert "   1  b \n" in passes(*SITES, *PAY, "--bounds", 3.5, 0, 20, 20)


def test_each_choice_is_charged(folder):
    for _ in range(10):
        passes(*SITES, *PAY)
    assert "psd: error: " in fails(4, *SITES, *PAY)


def test_private_numbers_are_on_stderr_if_asked_for():
    outcome = cli(*SITES, *PAY, "--report-private")
    assert outcome.code == 0
    assert outcome.err == (
        "PRIVATE, do not publish: records read 11, without coordinates 0, outside 0, kept 11\n"
    )
    printed = [line for line in outcome.out.splitlines() if not line.startswith("ledger head ")]
    assert len(printed) < len(outcome.out.splitlines())
    assert " 7" not in "\n".join(printed)  # rows of the best site


@pytest.mark.parametrize(
    ("code", "options", "told"),
    [
        (2, ["--radius", "0"], "--radius must be a number of metres above 0, got 0"),
        (2, ["--radius", "-5"], "--radius must be"),
        (2, ["--radius", "nan"], "--radius must be"),
        (2, ["--best", "0"], "--best must be"),
        (2, ["--best", "4"], "--best must be"),
        (2, ["--cover"], "--cover must be left out for one site"),
        (2, ["--target", "-1"], "--target must be"),
        (2, ["--target", "1", "--best", "2"], "--target must be left out"),
        (3, ["--bounds", "0", "0", "5", "5"], "'b' outside"),
        (3, ["--bounds", "5", "0", "0", "5"], "--bounds"),
        (3, ["--crs", "EPSG:0"], "--crs must be"),
        (8, ["--candidates", "none.csv"], "none.csv does not exist"),
        (8, ["--candidates", "t.csv"], "column id"),
        (2, ["--candidates", "v.csv"], "must not be an input of records"),
        (2, ["--epsilon", "0"], "--epsilon must be"),
        (2, ["--max-contributions", "2"], "--user must name"),
    ],
)
def test_wrong_options_cost_nothing(code, options, told, folder):
    line = [str(part) for part in (*SITES, *PAY)]
    for name in {option for option in options if option.startswith("--")} & set(line):
        at = line.index(name)
        del line[at : at + 2]
    write_points(folder / "t.csv", [(2, 2)])
    before = files(folder)
    assert told in fails(code, *line, *options)
    assert files(folder) == before


@pytest.mark.parametrize(
    ("rows", "code", "told"),
    [
        ([], 2, "at least 2, got 0"),
        ([("a", 2, 2)], 2, "at least 2, got 1"),
        ([("a", 2, 2), ("a", 3, 3)], 2, "got 'a' twice"),
        ([("a", 2, 2), ("", 3, 3)], 2, "an empty one"),
        ([("a", 2, 2), ("b", "x", 3)], 8, "line 3"),
    ],
)
def test_wrong_candidates_cost_nothing(rows, code, told, folder):
    write_points(folder / "s.csv", rows, "id,lon,lat")
    assert told in fails(code, *SITES, *PAY)


def test_records_are_no_candidates(folder):
    write_points(folder / "v.csv", [("a", 2, 2), ("b", 3, 3)], "id,lon,lat")
    line = ("choose", "site", "v.csv", "--candidates", "v.csv", "--radius", 2)
    assert "must not be an input of records" in fails(2, *line, *PAY)


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
    line = ("choose", "site", records, "--candidates", "v.csv", "--radius", 2)
    shown = fails(9 if registered else 2, *line, *PAY)
    assert told in shown
    assert "kim" not in shown
    assert not Ledger("l").state().charges


def test_a_ledger_is_required():
    assert "psd choose charges a ledger" in fails(2, *SITES, "--epsilon", 1)


def test_the_command_alone_prints_its_help():
    assert "psd choose site" in passes("choose")


BIDS = ["1", "2", "2", "3", "9", "", "x", "nan", "-4", "1e6"]
AREA = ("--crs", "EPSG:3857")
BOUNDS = ("--bounds", 0, 0, 4, 4)
ONE = ("choose", "price", "b.csv", "--bid", "bid", "--prices", "1,2,3,5", *AREA, *BOUNDS)
LISTED = ("choose", "tariff", "b.csv", "--bid", "bid", "--tariffs", "t.csv", *AREA)
WKT = "SRID=3857;POLYGON(({0} 0,{1} 0,{1} 4,{0} 4,{0} 0))"


@pytest.fixture
def bids(folder):
    """Bids in the west, two more outside, regions and tariffs."""
    rows = [(1, 1, bid, f"u{i}") for i, bid in enumerate(BIDS)] + [(9, 9, 5, "v")] * 2
    write_points(folder / "b.csv", rows, "lon,lat,bid,user")
    shapes = [f'"{WKT.format(*ends)}"' for ends in ((0, 2), (2, 4))]
    write_points(folder / "z.csv", zip(("west", "east"), shapes, strict=True), "id,wkt")
    write_points(folder / "t.csv", [("today", 1, 5), ("next", 3, 1)], "tariff,west,east")
    return folder


def test_a_price(bids):
    told = passes(*ONE, *PAY)
    # 5 earns 10, 3 earns 9, 2 earns 10 and 1 earns 6: ties are broken by chance.
    assert told.splitlines()[1].strip() in ("2", "5")
    assert "epsilon 100 per record; 4 candidates" in told
    assert "shortfall: at most 0.06931 of revenue below the best candidate on average" in told


def test_the_report_of_bids_is_private(bids):
    outcome = cli(*ONE, *PAY, "--report-private")
    assert outcome.err == (
        "PRIVATE, do not publish: records read 12, without coordinates 0, outside 2, "
        "without a bid 3, kept 7\n"
    )


def test_a_tariff(bids):
    told = passes(*LISTED, "--regions", "z.csv", *PAY)
    assert told.splitlines()[1].strip() == "next"  # 9 against 6
    write_points(bids / "t.csv", [("today", 1), ("next", 2)], "tariff,price")
    assert passes(*LISTED, *BOUNDS, *PAY).splitlines()[1].strip() == "next"


def test_a_market_without_a_bid_is_answered_like_any_other(bids):
    write_points(bids / "b.csv", [(1, 1, "")], "lon,lat,bid")
    assert passes(*ONE, *PAY).splitlines()[1].strip() in ("1", "2", "3", "5")
    write_points(bids / "b.csv", [], "lon,lat,bid")
    passes(*LISTED, "--regions", "z.csv", *PAY)


@pytest.mark.parametrize(
    ("code", "line", "told"),
    [
        (2, [*ONE, "--prices", "2,1"], "--prices must be"),
        (2, [*ONE, "--prices", "1,1"], "--prices must be"),
        (2, [*ONE, "--prices", "0,1"], "--prices must be"),
        (2, [*ONE, "--prices", "0.5..2000000/0.5"], "--prices must be at most 1,000,000"),
        (2, [*ONE, "--prices", "cheap"], "--prices must be"),
        (3, [*ONE, "--bounds", "0", "0", "0", "4"], "--bounds"),
        (2, [*ONE, "--prices", "1"], "--prices must be at least 2, got 1"),
        (2, [*ONE, "--prices", "1,1e1000000"], "--prices must be"),
        (2, [*LISTED], "--bounds or --regions must be given"),
        (8, [*LISTED, "--regions", "none.gpkg"], "none.gpkg"),
        (8, [*LISTED, *BOUNDS, "--tariffs", "none.csv"], "none.csv does not exist"),
        (2, [*LISTED, *BOUNDS], "one column price, got none for 'price'"),
        (2, [*LISTED, "--regions", "z.csv", "--coordinate-resolution", "1"], "left out"),
    ],
)
def test_wrong_prices_cost_nothing(code, line, told, bids):
    texts = [str(part) for part in line]
    for option, width in (("--prices", 2), ("--tariffs", 2), ("--bounds", 5)):
        if texts.count(option) > 1:
            at = texts.index(option)
            del texts[at : at + width]
    before = files(bids)
    assert told in fails(code, *texts, *PAY)
    assert files(bids) == before


@pytest.mark.parametrize(
    ("rows", "names", "told"),
    [
        ([("today", 1)], "tariff,west", "none for 'east'"),
        ([("today", 1, 2, 3)], "tariff,west,east,north", "'north', which is not a region"),
        ([("today", 1, 2)], "tariff,west,east", "at least 2, got 1"),
        ([("today", 1, 2), ("today", 2, 2)], "tariff,west,east", "'today'"),
    ],
)
def test_a_list_that_does_not_cover_the_regions_is_refused_before_the_bids(rows, names, told, bids):
    write_points(bids / "t.csv", rows, names)
    (bids / "b.csv").unlink()
    assert told in fails(2, *LISTED, "--regions", "z.csv", *PAY)


def test_bids_of_a_database(bids, postgis):
    """The same choice as from the file, and the same notes."""
    execute(
        postgis,
        "CREATE TABLE bids (lon float8, lat float8, bid numeric)",
        "INSERT INTO bids VALUES (1, 1, 2), (1, 1, 2), (1, 1, 1e400), (1, 1, NULL), (9, 9, 5)",
    )
    write_points(bids / "b.csv", [(1, 1, 2), (1, 1, 2), (1, 1, "1e400"), (1, 1, ""), (9, 9, 5)],
                 "lon,lat,bid")  # fmt: skip
    line = [postgis if part == "b.csv" else part for part in ONE]
    outcomes = [cli(*each, *PAY, "--report-private") for each in
                ((*line, "--read", "table=bids"), ONE)]  # fmt: skip
    assert outcomes[0].code == 0
    assert outcomes[0].err == outcomes[1].err
    assert "without a bid 2, kept 2" in outcomes[0].err
    assert outcomes[0].out.splitlines()[:-1] == outcomes[1].out.splitlines()[:-1]
    assert "could not be read to its end" in fails(
        8, *[part if part != "bid" else "offer" for part in line], "--read", "table=bids", *PAY
    )


def test_bids_are_not_counted_on_a_cluster(bids):
    told = fails(2, *ONE, *PAY, "--read", "engine=spark://host:7077")
    assert "--read engine must be left out; psd build alone counts on a cluster" in told
    assert "write the records to Parquet" in told


def test_a_missing_column_of_bids_is_withheld(bids):
    line = [part if part != "bid" else "offer" for part in ONE]
    assert "could not be read to its end" in fails(8, *line, *PAY)


MAPS = ("choose", "prices", "b.csv", "--bid", "bid", "--prices", "1,2,3,5", *AREA)


@pytest.fixture
def zoned(bids):
    """Bids of 5 in the west, and of 2 in the east; regions with a public order."""
    rows = [(1, y % 4, 5) for y in range(9)] + [(3, y % 4, 2) for y in range(9)]
    write_points(bids / "b.csv", rows, "lon,lat,bid")
    shapes = [f'"{WKT.format(*ends)}"' for ends in ((0, 2), (2, 3), (3, 4))]
    table = zip(("west", "middle", "east"), (3, 1, 2), shapes, strict=True)
    write_points(bids / "z.csv", table, "id,far,wkt")
    return bids


def test_zones_of_a_map(zoned):
    told = passes(*MAPS, *BOUNDS, "--zones", 2, "--zone-depth", 1, *PAY, "-o", "m.geojson")
    rows = [line.split() for line in told.splitlines()[:3]]
    assert rows[0] == ["zone", "price", "west", "south", "east", "north"]
    assert rows[1:] == [["1", "5", "0", "0", "2", "4"], ["2", "2", "2", "0", "4", "4"]]
    assert told.endswith("wrote m.geojson\n")
    features = json.loads((zoned / "m.geojson").read_text())["features"]
    assert [feature["properties"]["price"] for feature in features] == ["5", "2"]
    assert features[0]["geometry"]["type"] == "Polygon"
    assert "exists" in fails(6, *MAPS, *BOUNDS, "--zones", 2, "--zone-depth", 1, *PAY,
                             "-o", "m.geojson")  # fmt: skip


def test_zones_along_an_order(zoned):
    line = (*MAPS, "--regions", "z.csv", "--order", "far", "--zones", "1..3")
    told = passes(*line, *PAY, "-o", "m.csv")
    assert (zoned / "m.csv").read_text() in (
        "zone,price,regions\n1,2,middle east\n2,5,west\n",
        # Bids are in the regions west and east alone, so the zone of the other may be any.
        *(f"zone,price,regions\n1,{p},middle\n2,2,east\n3,5,west\n" for p in (1, 2, 3, 5)),
    )
    assert "candidates" in told


@pytest.mark.parametrize(
    ("code", "line", "told"),
    [
        (2, [*BOUNDS, "--zones", 0, "--zone-depth", 1], "--zones"),
        (2, [*BOUNDS, "--zones", 5, "--zone-depth", 1], "--zones must be"),
        (2, [*BOUNDS, "--zones", "3..2", "--zone-depth", 1], "--zones"),
        (2, [*BOUNDS, "--zones", "few", "--zone-depth", 1], "'--zones': it must be a number from"),
        (2, [*BOUNDS, "--zones", 1, "--zone-depth", 9], "--zone-depth"),
        (2, [*BOUNDS, "--zones", 1, "--zone-depth", -1], "--zone-depth"),
        (2, [*BOUNDS, "--zones", 1], "--zone-depth must be given"),
        (2, ["--zones", 1, "--zone-depth", 1], "--bounds must be given"),
        (2, ["--zones", 1, "--regions", "z.csv"], "--order must be given"),
        (8, ["--zones", 1, "--regions", "z.csv", "--order", "near"], "no column near"),
        (2, ["--zones", 4, "--regions", "z.csv", "--order", "far"], "--zones must be"),
        (2, [*BOUNDS, "--zones", 1, "--zone-depth", 1, "-o", "m.pdf"], "--output must end in"),
        (6, [*BOUNDS, "--zones", 1, "--zone-depth", 1, "-o", "no/m.csv"], "no"),
    ],
)
def test_wrong_zones_cost_nothing(code, line, told, zoned):
    before = files(zoned)
    assert told in fails(code, *MAPS, *line, *PAY)
    assert files(zoned) == before


@pytest.mark.parametrize("name", ["b.csv", "z.csv", "ledger.csv"])
def test_no_file_that_is_read_is_overwritten(name, zoned):
    Ledger.create(zoned / "ledger.csv").register("v", 1000)
    before = (zoned / name).read_bytes()
    line = (*MAPS, "--regions", "z.csv", "--order", "far", "--zones", 2, "-o", name, "--overwrite")
    pay = ("--epsilon", 100, "--ledger", "ledger.csv", "--dataset", "v")
    assert "is read as an input too" in fails(6, *line, *pay)
    assert (zoned / name).read_bytes() == before


@pytest.mark.parametrize(
    ("far", "told"), [((1, 1, 2), "without ties"), ((1, "", 2), "none for 'middle'")]
)
def test_an_order_with_ties_or_gaps_is_refused(far, told, zoned):
    shapes = [f'"{WKT.format(*ends)}"' for ends in ((0, 2), (2, 3), (3, 4))]
    table = zip(("west", "middle", "east"), far, shapes, strict=True)
    write_points(zoned / "z.csv", table, "id,far,wkt")
    line = (*MAPS, "--regions", "z.csv", "--order", "far", "--zones", 2)
    assert told in fails(2, *line, *PAY)
