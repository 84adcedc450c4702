"""Release on the command line: build, query, info, export and the rest, slice by slice."""

import io
import json

import geopandas as gpd
import pandas as pd
import pytest
import shapely

import psd
from psd.ledger.ledger import Ledger
from psd.privacy.loss import NANO
from support.cli_runner import as_json, check_refusals, cli, fails, passes
from support.visits_of_months import (
    BOUNDS,
    LIMIT,
    MONTHS,
    SLICES,
    SURE,
    TIMES,
    TREE,
    USER,
    build,
    built,
    link,
    prepare,
    truth,
)

ALL = "query s --box 0 0 8 8"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Folder of the visits, of their series and of a single release."""
    folder = tmp_path_factory.mktemp("prepared")
    prepare(folder)
    return folder


@pytest.fixture(autouse=True)
def folder(prepared, here):
    """Links to these, in a folder of its own."""
    link(prepared, here)
    return here


def totals(series):
    return [round(release.total) for release in series._releases]


def test_users_of_all_slices_or_of_each(subtests):
    for per, told, total in (
        ("", "epsilon 1000 per user, at most 2 records of each\n", 9 * 2),
        ("--per day", "records of each; a user of T days has T epsilon\n", 9 * 2 * 3),
        (
            "--per slice",
            "epsilon 999.999999999 per user, at most 2 records of each in each slice\n",
            9 * 2 * 3,
        ),
    ):
        with subtests.test(per):
            text, series = built(f"{SURE} {USER} {per} --overwrite")
            assert text.endswith(told)
            total_found = round(sum(release.total for release in series._releases))
            assert total_found == total  # one day in each month
            table = cli("query made --box 0 0 8 8 --each slice")
            assert ("in each slice" in table.err) == ("slice" in per)
            assert table.out.count("2024-0") == 3
    facts = as_json("info made")
    assert facts["guarantee"] in text
    assert facts["counts"] == "kept records, at most 2 of each user in each slice"


def test_users_of_all_slices_with_a_limit_in_each():
    """Three records of a user in all, and one in each slice: at most nine users in a slice."""
    words = "at most 3 records of each, at most 1 of them in each time slice"
    told, series = built(f"{SURE} {LIMIT}")
    assert told.endswith(f"epsilon 1000 per user, {words}\n")
    assert totals(series) == [9, 9, 9]
    assert series.unit.max_per_slice == series["2024-02"].unit.max_per_slice == 1
    facts = as_json("info made")
    assert (facts["max_contributions"], facts["max_per_slice"]) == (3, 1)
    assert facts["guarantee"] == f"epsilon 1000 per user, {words}"


def tally(name, options):
    passes(f"tally {name}.csv -o {name}.tally --overwrite {BOUNDS} {TIMES} {SLICES} {options}")


def test_a_limit_in_each_slice_by_recipe_and_by_tally(folder):
    """The recipe, and the tallies of parts with the same key, keep what the build keeps."""
    limit = f"{USER} --max-per-slice 1"
    told = build(f"{SURE} {limit} --dry-run --save-recipe r.toml", output="made")
    assert "max_per_slice = 1" in told
    passes("build r.toml")
    assert psd.load("made").unit.max_per_slice == 1
    keyed = "--key k.key --carry-users"
    rows = (folder / "v.csv").read_text().splitlines(keepends=True)
    for name, part in (("a", rows[1::2]), ("b", rows[2::2]), ("all", rows[1:])):
        (folder / f"{name}.csv").write_text(rows[0] + "".join(part))
        tally(name, f"{limit} {keyed}")
    passes(f"build a.tally b.tally -o parts {SURE}")
    passes(f"build all.tally -o whole {SURE}")
    parts, whole = (psd.load(name) for name in ("parts", "whole"))
    assert parts.record.guarantee_text == whole.record.guarantee_text
    assert "at most 2 records of each, at most 1 of them" in whole.record.guarantee_text
    cells = [(c, 0, c + 1, 8) for c in range(8)]
    answers = [
        series.query(cells, each="slice")["estimate"].round().tolist() for series in (parts, whole)
    ]
    assert answers[0] == answers[1]
    assert round(sum(release.total for release in whole._releases)) == 9 * 2
    tally("b", f"{USER} --max-per-slice 2 {keyed}")
    told = fails(8, f"build a.tally b.tally -o no {SURE}")
    assert "different numbers of records per user and slice" in told


def test_limits_in_each_slice_add_up_and_are_charged_like_none(folder):
    for name in "ab":
        rows = (folder / "v.csv").read_text()
        (folder / f"{name}.csv").write_text(rows + f"u{name},1,1,2024-02-01T00:00:00Z\n")
        tally(name, LIMIT)
    told = passes(f"build a.tally b.tally -o parts {SURE}")
    assert "at most 6 records of each, at most 2 of them in each time slice" in told
    passes("ledger create city.ledger")
    unit = "--unit user --max-contributions 3 --user user"
    passes(f"ledger register city.ledger people --budget 3 {unit} {TIMES}")
    paid = f"--ledger city.ledger --dataset people --epsilon 1 {TREE}"
    build(f"{LIMIT} {paid}", output="with")
    build(f"{LIMIT.partition(' --max-per')[0]} {paid}", output="without")
    assert Ledger("city.ledger").state().spent("people") == 2 * NANO


SINGLE = (
    "query s --box 0 0 4 4 --explain",
    "query s --box 0 0 4 4 --box 4 4 8 8 --joint",
    "info s",
    "query s --top 2",
    "query s --quantiles --size 4 4",
    "export s cells.csv",
    "query s --difference s --box 0 0 8 8 --other-slice 2024-01",
)


def test_one_slice_is_a_release_to_every_command(subtests):
    for line in SINGLE:
        with subtests.test(line):
            option = "--when" if line.startswith("query") else "--slice"
            assert passes(f"{line} {option} 2024-02")
    february = truth()["2024-02"]
    assert round(as_json("info s --slice 2024-02")["estimated_total"]) == february
    assert round(pd.read_csv("cells.csv")["estimate"].sum()) == february
    psd.load("s")["2024-02"].save("feb")
    own = passes("query feb --box 0 0 4 4 --format csv")
    named = passes("query s --box 0 0 4 4 --format csv --when 2024-02")
    assert named == "".join(
        f"{n},{row}" for n, row in zip(["when", "2024-02"], own.splitlines(True), strict=True)
    )


def test_means_of_a_series_are_of_its_slices(folder):
    rows = pd.DataFrame({"lon": [1.0, 1, 7, 7], "lat": 1.0, "fare": [10.0, 10, 30, 30]})
    rows["t"] = ["2024-01-05T10:00", "2024-01-06T10:00", "2024-01-05T11:00", "2024-02-05T10:00"]
    rows = pd.concat([rows] * 50)
    rows.to_csv("fares.csv", index=False)
    passes("build fares.csv -o fares --epsilon 1000 --bounds 0 0 8 8 --crs EPSG:3857 "
           "--time t --time-zone UTC --slices 2024-01..2024-02 --method quadtree --set height=1 "
           "--value fare 0 60 --per record")  # fmt: skip
    line = "query fares --box 0 0 8 8 --mean fare"
    assert "20" in passes(line)
    assert round(as_json(line)[0]["mean_fare"], 1) == 20.0
    joint = as_json(f"{line} --box 0 0 4 8 --joint")
    assert joint["total"] is None
    assert joint["covariance"][0][1] > 0
    assert round(joint["answers"][1]["mean_fare"], 1) == 10.0
    told = passes(f"{line} --box 0 0 4 8 --joint")
    assert "correlation" in told
    assert "total" not in told
    sums = as_json("query fares --box 0 0 4 8 --box 4 0 8 8 --sum fare --joint")
    assert round(sums["total"]["estimate"], -1) == 4000
    assert "one --mean or --sum, got 2" in fails(2, f"{line} --sum fare --joint")
    means = [round(row["mean_fare"], 1) for row in as_json(f"{line} --each slice")]
    assert means == [pytest.approx(50 / 3, abs=0.1), 30.0]
    assert round(as_json(f"{line} --when 2024-02")[0]["mean_fare"], 1) == 30.0


def test_answers_and_sums_are_of_the_slices_of_the_wall_clock(folder):
    boxes = f"{ALL} --box 0 0 4 4"
    answers = as_json(boxes)
    assert [answer["id"] for answer in answers] == [1, 2]
    assert "slice" not in answers[0]
    assert round(answers[0]["estimate"]) == sum(truth().values())
    answers = as_json(f"{boxes} --when 2024-02..2024-03")
    assert round(answers[0]["estimate"]) == truth()["2024-02"] + truth()["2024-03"]
    assert "a.csv" in passes(f"{boxes} --when 2024-02 -o a.csv")
    psd.load("s")["2024-02"].save("february")
    own = passes("query february --box 0 0 8 8 --box 0 0 4 4 --format csv")
    named = pd.read_csv("a.csv", dtype=str)
    assert set(named.pop("when")) == {"2024-02"}
    assert named.equals(pd.read_csv(io.StringIO(own), dtype=str))
    assert "flag" in passes(f"{boxes} --unreliable mark")
    passes(f"{boxes} -o a.gpkg")
    gpd.GeoSeries([shapely.box(0, 0, 8, 8)], crs="EPSG:3857").to_file("shape.gpkg")
    answers = as_json("query s --polygons shape.gpkg")
    assert round(answers[0]["estimate"]) == sum(truth().values())
    assert {
        row["slice"]: round(row["estimate"]) for row in as_json(f"{ALL} --each slice")
    } == truth()
    assert min(truth().values()) > 10
    line = f"{ALL} --box 1 1 2 2 --each slice"
    passes(f"{line} -o all.csv")
    table = pd.read_csv("all.csv")
    assert table.columns[:2].tolist() == ["slice", "id"]
    assert table["slice"].tolist() == [n for n in MONTHS for _ in range(2)]
    features = json.loads(passes(f"{line} --format geojson"))["features"]
    assert [f["properties"]["slice"] for f in features] == table["slice"].tolist()
    assert [f["geometry"] for f in features[:2]] == [f["geometry"] for f in features[2:4]]


def test_windows_are_rows(folder):
    """With joint answers, and in every kind of output."""
    boxes = f"{ALL} --box 0 0 4 4"
    windows = "--when 2024-01 --when 2024-01..2024-02"
    rows = as_json(f"{boxes} {windows}")
    assert [(row["when"], row["id"]) for row in rows] == [
        (name, number) for name in ("2024-01", "2024-01..2024-02") for number in (1, 2)
    ]
    assert round(rows[2]["estimate"]) == truth()["2024-01"] + truth()["2024-02"]
    told = passes(f"{boxes} {windows}")
    assert told.count("2024-01..2024-02") == 2
    assert passes(f"{boxes} {windows} --format csv").startswith("when,id,estimate,")
    each = pd.DataFrame(as_json(f"{ALL} {windows} --each slice"))
    assert each[["when", "slice"]].to_numpy().tolist() == [
        ["2024-01", "2024-01"],
        ["2024-01..2024-02", "2024-01"],
        ["2024-01..2024-02", "2024-02"],
    ]
    passes(f"{boxes} {windows} -o windows.html")
    assert "<th>when" in (folder / "windows.html").read_text().replace('<th scope="col">', "<th>")
    joint = as_json(f"{boxes} {windows} --joint")
    assert [row["when"] for row in joint["answers"]] == [row["when"] for row in rows]
    assert joint["covariance"][0][2] > 0
    assert joint["total"] is None
    header = passes(f"{ALL} {windows} --joint --format csv").partition("\n")[0]
    assert header.endswith("covariance_2024-01,covariance_2024-01..2024-02")
    told = passes(f"{ALL} --each slice --joint")
    assert "2024-01" in told.partition("correlation")[2]
    assert "\ntotal " in told


def test_a_change_of_clocks_is_told(folder):
    hours = [f"2026-10-{day}T{hour:02}:30" for day in (24, 25) for hour in range(24)]
    pd.DataFrame({"lon": 1.0, "lat": 1.0, "t": hours}).to_csv("hours.csv", index=False)
    passes("build hours.csv -o hours --epsilon 1000 --bounds 0 0 8 8 --crs EPSG:3857 --time t "
           "--time-zone Europe/Berlin --slices 2026-10-24T00..2026-10-25T23 --per record "
           "--method quadtree --set height=1")  # fmt: skip
    line = "query hours --box 0 0 8 8 --format csv --when"
    told = cli(f"{line} 2026-10-25T01..2026-10-25T04")
    assert told.code == 0
    assert (
        "--when has a change of clocks in it, in Europe/Berlin: the hour 2026-10-25T02 " in told.err
    )
    assert told.err.count("\n") == 1
    assert round(pd.read_csv(io.StringIO(told.out))["estimate"].iloc[0]) == 3
    assert cli(f"{line} 2026-10-24").err == ""


BOX = "--box 0 0 1 1"
BUILD = f"build v.csv -o x --epsilon 1 {BOUNDS}"
REFUSED = [
    (2, f"query s {BOX} --when 2024-04", "must be in the slices, from 2024-01-01 until before"),
    (2, f"query s {BOX} --when 2024-02..2024-05", "--when must begin and end where slices do"),
    (2, f"query s {BOX} --when 2024-01-01", "; try --when 2024-01\n"),
    (2, f"query s {BOX} --when 2024-03..2024-01", "--when must run forward"),
    (2, f"query s {BOX} --when 2024-1", "--when must be a year, month, week, day or hour"),
    (2, f"query s {BOX} --when weekdays", "; try --when 2024-01\n"),
    (2, f"query s {BOX} --when 2024-01 --when 2023", "must be in the slices"),
    (2, f"query s {BOX} --slice 2024-01", "--slice is now --when WINDOW"),
    (2, f"query s {BOX} --slices 2024-01", "--slices is now --when FIRST..LAST"),
    (2, f"query s {BOX} --sum fare", "--sum must be one of the release, which has none"),
    (2, f"query one {BOX} --when 2024-01", "--when must be left out, got '2024-01'"),
    (2, f"query one {BOX} --each slice", "--each must be left out, got 'slice'"),
    (2, f"query one {BOX} --when 2024-01 --when 2024-02", "--when must be left out, got"),
    (2, "query one --top 2 --when 2024-01", "--when must be given with a series"),
    (
        2,
        "query s --top 2 --when 2024-01 --when 2024-02",
        "one time slice for this question, got 2 windows",
    ),
    (2, f"query s {BOX} --explain", "--when must be one time slice for explanations"),
    (2, f"query s {BOX} --nested --when 2024-01..2024-02", "--when must be one time slice"),
    (2, "query s --top 2 --when 2024-01..2024-02", "--when must be one time slice"),
    (5, f"query s {BOX} --nested", "single release; give one of its 3, such as --when 2024-01\n"),
    (5, "export s x.csv", "--slice 2024-01, or write regions of all slices by psd query s --p"),
    (5, "query s --top 10", "series of time slices"),
    (5, "query s --quantiles", "series of time slices"),
    (5, f"query s --difference one {BOX}", "series of time slices"),
    (2, "info one --slice 2024-01", "must be given with a series"),
    (5, "info v.csv --slice 2024-01", "cannot be read as a release"),
    (2, f"{BUILD} --per slice", "--slices must be given with --per slice"),
    (2, f"{BUILD} --slices 2024-01", "--time must name"),
    (2, f"{BUILD} {TIMES} --slices 2024-1", "months, weeks, days or hours"),
    (2, f"{BUILD} {TIMES} --slices 2024-1-1", "months, weeks, days or hours"),
    (2, f"{BUILD} {TIMES} --slices 2024-01,2024-02-01", "of the form 2024-01 "),
    (2, f"{BUILD} {TIMES} --slices 2024-01 --per slice", "--per slice"),
    (
        2,
        f"build v.csv -o x --epsilon 1 --bounds private {TIMES} --slices 2024-01",
        "--bounds must be public with slices",
    ),
    (
        2,
        f"{BUILD} {TIMES} --slices 2024-01 --user user --per slice --max-contributions auto",
        "--max-contributions must be a number",
    ),
    (
        2,
        f"build v.csv -o x --epsilon 0.000000001 {BOUNDS} {TIMES} {USER} {SLICES} --per slice",
        "epsilon must be at least",
    ),
    (8, f"{BUILD} --time user --slices 2024-01-01", "time"),
]


def test_refusals(subtests):
    check_refusals(subtests, REFUSED)


def test_a_series_states_its_slices_and_its_bound():
    build(f"{SURE} {USER} --keep-tally kept", output="made")
    facts = as_json("info made")
    assert (facts["epsilon"], facts["bound_per"]) == ("1000", "series")
    assert facts["time_zone"] == "Asia/Seoul"
    assert [row["slice"] for row in facts["slices"]] == MONTHS
    assert facts["guarantee"] == "epsilon 1000 per user, at most 2 records of each"
    assert "2024-03" in passes("info made")


def write_west(name, east):
    """A boundary from the west side to some longitude."""
    ring = [[0, 0], [east, 0], [east, 8], [0, 8], [0, 0]]
    crs = {"type": "name", "properties": {"name": "EPSG:3857"}}
    with open(name, "w") as file:
        json.dump({"type": "Polygon", "crs": crs, "coordinates": [ring]}, file)


GOES = {
    "--user user --count users": "per user, counts are users",
    "--user user --max-contributions auto": "per user, at most",
    f"{USER} --boundary west.geojson": "per user, at most 2 records",
    "--boundary west.geojson": "per record",
}


@pytest.mark.parametrize("words", GOES)
def test_slices_go_with_units_and_boundaries(words):
    write_west("west.geojson", 4)
    told, series = built(f"{SURE} {words} --keep-tally kept")
    assert GOES[words] in told
    if "--count" in words:
        assert sum(r.total for r in series._releases) == pytest.approx(9, abs=0.25)  # sd 0.02
    if "--boundary" in words:
        assert all(release.record.boundary for release in series._releases)
        assert series.query([(4.5, 0, 8, 8)])["estimate"].max() == 0
