"""psd plan: tables, words, files and pictures from public parameters, also of regions."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from rich.console import Console

import psd
from psd.apps.planning import plan as planning
from support.cli_runner import Terminal, as_json, as_table, check_refusals, cli, fails, passes
from support.narrow_terminals import SENTENCES, check_narrow, printed

QUICK = "plan --area 605 --count 5000 --methods quadtree --runs 1"
EVEN = f"{QUICK} --density uniform"

pytestmark = pytest.mark.usefixtures("wards")


@pytest.mark.deep
def test_table_words_and_terminals(monkeypatch):
    told = passes(f"{QUICK} --epsilon 0.1,2")
    assert told.startswith(
        "Expected relative errors: 5,000 records in 605 km2; each record is protected."
    )
    rows = [line.split() for line in told.splitlines() if " quadtree " in line[:20]]
    assert [row[0] for row in rows] == ["0.1"] * 4 + ["2"] * 4
    assert [row[2] for row in rows[:4]] == ["0.0605", "0.605", "6.05", "60.5"]
    assert "No data was read" in told
    words = [line for line in told.splitlines() if line.startswith("- ")]
    assert [line.split(",")[0] for line in words] == ["- at epsilon 0.1", "- at epsilon 2"]
    assert all("queries centred on people" in line for line in words)
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    assert cli(f"{QUICK} --epsilon 1", stderr=terminal).code == 0
    assert "4/4" in terminal.getvalue()
    monkeypatch.setattr(
        "psd_cli.output.tables.open_console", lambda: Console(width=70, highlight=False)
    )
    outcome = cli(f"{QUICK} --epsilon 1")
    assert outcome.code == 0
    assert "too narrow for error in records" in outcome.err


def test_numbers_are_the_same_in_csv_and_json():
    found = as_json(f"{EVEN} --epsilon 1000 --coordinate-resolution 100")
    assert found["coordinate_resolution"] == "100"
    assert found["words"][-1].startswith("coordinates are rounded to steps of 100: no cell is")
    # At this epsilon every value has its cell, so that no query is off.
    assert max(row["mean_records_off"] for row in found["expected"]) < 1
    line = f"{EVEN} --epsilon 1000 --sizes 6.05,10%"
    # With nearly no noise all runs are alike.
    table = as_table(line, dtype={"epsilon": str})
    assert table["size_km2"].unique() == pytest.approx([6.05, 60.5])
    assert table["size_share"].unique() == pytest.approx([0.01, 0.1])
    found = as_json(line)
    assert (found["area_km2"], found["count"], found["runs"]) == (605, 5_000, 1)
    assert len(found["words"]) == 1
    expected = pd.DataFrame(found["expected"])
    assert np.allclose(expected["mean_count"], table["mean_count"])
    assert np.allclose(expected["mean_error"], table["mean_error"], rtol=0.05)
    passes(f"{line} -o p.csv")
    assert len(pd.read_csv("p.csv")) == len(table)
    assert "exists" in fails(6, f"{line} -o p.csv")


def test_bounds_covariates_and_users():
    np.save("people.npy", np.array([[1, 0], [0, 3]]))
    where = "--bounds 126.4 37 127.6 38 --covariate people.npy --covariate-size 2"
    found = as_json(f"{EVEN.replace('--area 605', where)} --epsilon 1000 --sizes 25%")
    assert found["area_km2"] == pytest.approx(11_791, rel=0.01)
    counts = {row["centres"]: row["mean_count"] for row in found["expected"]}
    assert counts["on data"] > 1.3 * counts["anywhere"]
    # Users are more expensive.
    one, many = (
        as_table(f"{EVEN} --epsilon 1 {limit}")["mean_records_off"].mean()
        for limit in ("", "--max-contributions 10")
    )
    assert many > 3 * one


def test_refusals(subtests):
    check_refusals(subtests, REFUSED, "plan")
    check_refusals(subtests, REFUSED_OPTIONS, f"plan {AREA} {EPSILON} {COUNT}")


AREA, EPSILON, COUNT = "--area 605", "--epsilon 1", "--count 100"
REFUSED = [
    (2, f"{EPSILON} {COUNT}", "one of --area"),
    (2, f"{AREA} {EPSILON} {COUNT} --bounds 0 0 1 1", "one of --area"),
    (2, f"--area 6e8 {EPSILON} {COUNT}", "the surface of the Earth, got 6e+08"),
    (3, f"--bounds 1 0 0 1 {EPSILON} {COUNT}", "west"),
    (2, f"{AREA} {EPSILON} --count 1e6", "not a whole number"),
]
REFUSED_OPTIONS = [
    (2, "--sizes 700", "--sizes must be at most the area"),
    (2, "--sizes big", "not a number"),
    (2, "--covariate x.npy", "give --bounds"),
    (2, "--covariate x.npy:column=y", "is now --covariate-column"),
    (2, "--plot p.pdf", "--plot must end in .png, .svg or .html, got p.pdf"),
    (2, "-o p.txt", "--format csv or json"),
]


PEOPLE = "--population people"
OF_WARDS = "--regions wards.gpkg --region-id ward"
PLACE = f"--bounds -4 -4 4 4 {OF_WARDS}"
LEVELS = f"{PLACE} --region-parent borough"
PLAN = f"plan {LEVELS} {PEOPLE}"
ONE = f"{PLAN} --epsilon 1"


def test_a_table_of_levels_and_epsilon_for_an_error():
    told = passes(f"{PLAN} --epsilon 0.1,1 --methods none")
    assert told.startswith("Expected errors of regions: 5,600 records; each record is protected.")
    rows = [line.split() for line in told.splitlines() if " ward " in line or " borough " in line]
    assert [row[:3] for row in rows[:2]] == [["0.1", "borough", "2"], ["0.1", "ward", "4"]]
    assert "no record was read" in told.replace("\n", " ")
    line = f"{PLAN} --count 50000 --for-relative-error"
    content = as_json(f"{line} 5% --level borough")
    rows = {row["level"]: row for row in content["expected"]}
    assert rows["borough"]["epsilon"] == content["solved_epsilon"]
    assert 0.045 < rows["borough"]["mean_error"] <= 0.05
    assert rows["ward"]["mean_error"] > 0.05
    assert "gives this error" in passes(f"{line} 0.05")


WEEKLY = "--slices 52 --max-per-slice 2 --max-contributions 60 --delta 1e-6 --methods none"


FARE = "--value fare 0 60"


def test_errors_of_means_and_sums_are_solved_for():
    solved = as_json(f"{PLAN} {FARE} --for-mean-error fare 2 --level borough")
    rows = [row for row in solved["expected"] if row["level"] == "borough"]
    assert 1.9 < rows[0]["mean_fare_error"] <= 2


def test_errors_of_means_and_sums_are_planned():
    told = passes(f"{ONE} {FARE}")
    assert "counts have 1.41 times the Laplace noise of a release without values" in told
    assert "off: mean absolute error of means and sums" in passes(
        f"plan --area 9 --count 900 --epsilon 1 --methods quadtree --runs 1 {FARE}"
    )


def test_weekly_wards_are_planned_with_users_and_a_delta():
    told = passes(f"{PLAN} --for-relative-error 20% {WEEKLY}")
    assert "5,600 records in each of 52 time slices; users are protected" in told
    assert "(at most 60 records, at most 2 in a slice)" in told
    words = told.replace("\n", " ")
    assert "a sum over n slices has sqrt(n) times the error" in words
    assert "by itself a build chooses Gaussian noise at epsilon" in words
    content = as_json(f"{PLAN} --for-relative-error 20% {WEEKLY}")
    assert (content["slices"], content["max_per_slice"], content["delta"]) == (52, 2, "1e-6")
    [chosen] = content["chosen"]
    assert (chosen["noise"], chosen["epsilon"]) == ("gaussian", content["solved_epsilon"])
    rows = {(row["noise"], row["level"]): row for row in content["expected"]}
    assert 0.19 < rows["gaussian", "ward"]["mean_error"] <= 0.2
    assert rows["laplace", "ward"]["error"] > rows["gaussian", "ward"]["error"]


@pytest.mark.deep
def test_a_page_of_weekly_wards_has_both_laws(here):
    passes(f"{PLAN} --epsilon 1 {WEEKLY} --plot p.html")
    assert "<td>gaussian</td>" in (here / "p.html").read_text()


def test_files_have_the_numbers_of_the_library():
    line = f"{ONE} --max-contributions 3"
    table = as_table(line, dtype={"epsilon": str})
    expected = psd.apps.planning.plan_regions(
        psd.regions.RegionFiles(paths=("wards.gpkg",), ids=("ward",), parents=("borough",)),
        domain=psd.Domain(bounds=(-4, -4, 4, 4)),
        epsilon=["1"],
        population="people",
        max_contributions=3,
    )
    pd.testing.assert_frame_equal(table, expected.table)
    content = as_json(line)
    assert content["count"] == 5_600
    assert content["solved_epsilon"] is None
    assert content["expected"][1]["mean_error"] == pytest.approx(table.mean_error[1])
    passes(f"{line} -o p.csv")
    assert "exists" in fails(6, f"{line} -o p.csv")
    alike, more = (
        as_table(f"{ONE} --methods none {weights}").set_index("level").error
        for weights in ("", "--set weights=1,16")
    )
    assert more["ward"] < alike["ward"]
    assert more["borough"] > alike["borough"]
    corner = gpd.GeoDataFrame(geometry=[shapely.box(-4, -4, 4, -3.5)], crs="EPSG:4326")
    corner.to_file("corner.gpkg")
    options = ("", "--covariate corner.gpkg", "--boundary corner.gpkg")
    tables = [as_table(f"{ONE} {each}").set_index("level") for each in options]
    for table in tables:
        assert table["mean_population"].tolist() == [2_800, 1_400]
        assert np.isfinite(table["error"]).all()
    assert len({table.error["ward"] for table in tables}) == 3


@pytest.mark.deep
@pytest.mark.parametrize("ending", ["png", "svg", "html"])
def test_plots(here, ending):
    told = passes(f"{EVEN} --epsilon 1 --plot q.{ending}")
    assert told.endswith(f"wrote q.{ending}\n")
    gpd.read_file("wards.gpkg").assign(borough=["$w"] * 2 + ["<e>"] * 2).to_file("wards.gpkg")
    line = f"{PLAN} --epsilon 0.1,1 --plot p.{ending}"
    assert passes(line).endswith(f"wrote p.{ending}\n")
    pages = [(here / f"{name}.{ending}").read_bytes() for name in "qp"]
    assert min(map(len, pages)) > 10_000
    if ending == "html":
        assert all(b"PRIVATE" not in page and b"default-src 'none'" in page for page in pages)
        assert b"<td>borough</td>" in pages[1]
    assert "exists" in fails(6, line)


SOLVED = f"{LEVELS} {PEOPLE} --for-relative-error"
GIVEN = f"{PLACE} {PEOPLE} --epsilon 1"
OF_AREA = "--area 9 --epsilon 1 --count 9"
WRONG_REGIONS = [
    (2, f"{LEVELS} --epsilon 1", "--count must be the expected number of records"),
    (2, f"{LEVELS} {PEOPLE}", "--epsilon or --for-relative-error must be given"),
    (2, f"{LEVELS} {PEOPLE} --for-mean-error fare 1", "a column that --value names"),
    (2, f"{LEVELS} {PEOPLE} --for-sum-error fare x --value fare 0 1", "'x' is not a number"),
    (2, "--area 9 --count 9 --epsilon 1 --for-mean-error fare 1", "given with --regions"),
    (2, f"{LEVELS} {PEOPLE} --epsilon 1 --level ward", "with --for-relative-error"),
    (2, f"{SOLVED} much", "'much' is not a number"),
    (2, f"{LEVELS} --population bad --epsilon 1", "got '-2' for region 'b'"),
    (2, f"{LEVELS} --population gaps --epsilon 1", "for region 'b'"),
    (
        2,
        f"{LEVELS} --population none --epsilon 1",
        "--population must be a column of the regions (ward, borough, people",
    ),
    (2, f"{GIVEN} --sizes 1%", "--sizes must be left out with"),
    (2, f"{OF_AREA} --boundary b", "given with --regions"),
    (2, f"{GIVEN} --boundary wards.gpkg:repair=yes", "is now --repair"),
    (2, f"{OF_WARDS} {PEOPLE} --epsilon 1 --area 9", "--area must be left out with"),
    (2, f"{GIVEN} --methods none,auto", "--methods must be one of"),
    (
        2,
        f"--bounds 0 0 8 8 --crs EPSG:3857 --regions tiles=24 {PEOPLE} --epsilon 1",
        "--population must be a column of files",
    ),
    (2, f"{OF_AREA} --level a", "given with --regions"),
]


def test_what_is_refused(here, subtests):
    check_refusals(subtests, WRONG_REGIONS, "plan")
    (here / "points.csv").write_text("lon,lat\n1,1\n")
    of_build = [(2, f"{PLACE} {PEOPLE}", "population")]
    check_refusals(subtests, of_build, "build points.csv -o r --epsilon 1")


OF_SLICES = "plan --area 100 --count 500 --epsilon 1"
COARSE = "--methods grid --runs 1 --density uniform"


@pytest.mark.deep
def test_plans_show_both_laws():
    told = passes(f"{OF_SLICES} --slices 52 --delta 1e-6 {COARSE} --sizes 10%")
    assert told.count("laplace") == told.count("gaussian") == 1
    assert "by itself a build chooses" in told
    plan = as_json(f"{OF_SLICES} --slices 12 --max-per-slice 4 --delta 1e-6 {COARSE}")
    assert (plan["slices"], plan["max_per_slice"], plan["max_contributions"]) == (12, 4, 48)
    assert plan["chosen"] == [{"epsilon": "1", "method": "grid", "noise": "gaussian"}]


@pytest.mark.deep
def test_a_plan_takes_the_smallest_cell():
    plan = "plan --count 500 --runs 1 --epsilon 1 --methods auto --sizes 10%"
    told = as_json(f"{plan} --area 100 --min-cell 70")
    assert told["min_cell"] == "70"
    assert "no cell of a method that adapts to the data is below 70 m a side" in told["words"]
    assert as_json(f"{plan} --bounds 126.4 37 127.6 38")["min_cell"] == "5"
    assert "at most the sides of the bounds" in fails(3, f"{plan} --area 1 --min-cell 2000")


@pytest.mark.deep
def test_no_number_or_heading_is_cut_on_narrow_terminals(monkeypatch, subtests):
    plans, real = [], planning.plan

    def plan_once(*args, **options):
        plans[:] = plans or [real(*args, **options)]  # another one has other noise
        return plans[0]

    monkeypatch.setattr(planning, "plan", plan_once)
    line = "plan --area 605 --count 5000 --methods quadtree,grid --runs 1 --density uniform"
    check_narrow(f"{line} --epsilon 0.1,1", monkeypatch, subtests, may_leave_out=True)
    lines = printed(f"{line} --epsilon 0.1,1", 80, monkeypatch).out.splitlines()
    assert max(len(line) for line in lines if not line.startswith(SENTENCES)) <= 80


def test_numbers_of_slices_are_checked(subtests):
    table = [
        (2, "many", "'--slices': 'many' is not a whole number"),
        (2, "12:max_per_slice=2", "is now --max-per-slice"),
        (2, "0", "--slices must be between 1 and"),
        (
            2,
            "2024-01-01T00..",
            "--slices must have both ends of FIRST..LAST, got '2024-01-01T00..'",
        ),
        (2, "2024-01-01..2024-13-01", "--slices must be of the form 2024-01-31 by day"),
    ]
    check_refusals(subtests, table, f"{OF_SLICES} --slices")


@pytest.mark.deep
def test_many_slices_are_planned_as_they_are_built():
    line = f"{OF_SLICES} --runs 1 --density uniform --sizes 10%"
    by_names = as_json(f"{line} --slices 2024-01-01..2024-01-09")
    assert by_names["slices"] == 9
    assert {(row["method"], row["window"]) for row in by_names["expected"]} == {
        ("cube", window) for window in (1, 3, 9)
    }
    words = "a plan that names none is of one"
    assert words in passes(f"{line} --slices 9 --methods grid")
    told = passes(f"{line} --slices 8")
    assert "quadtree" in told
    assert words not in told
    found = as_json(f"{line} --slices 9 --windows 9 --for-relative-error 60%")
    assert found["solved_epsilon"]
