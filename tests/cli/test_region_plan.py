"""psd plan --regions: tables, files, a solved epsilon, and refusals."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from support.cli_runner import as_json, as_table, check_refusals, fails, passes

PEOPLE = "--regions population=people"
OF_WARDS = "--regions wards.gpkg --regions id=ward"
PLACE = f"--bounds -4 -4 4 4 {OF_WARDS}"
LEVELS = f"{PLACE} --regions parent=borough"
PLAN = f"plan {LEVELS} {PEOPLE}"
ONE = f"{PLAN} --epsilon 1"

pytestmark = pytest.mark.usefixtures("wards")


def test_a_table_of_levels():
    told = passes(f"{PLAN} --epsilon 0.1,1 --methods none")
    assert told.startswith("Expected errors of regions: 5,600 records; each record is protected.")
    rows = [line.split() for line in told.splitlines() if " ward " in line or " borough " in line]
    assert [row[:3] for row in rows[:2]] == [["0.1", "borough", "2"], ["0.1", "ward", "4"]]
    assert "no record was read" in told.replace("\n", " ")


def test_files_have_the_numbers_of_the_library():
    line = f"{ONE} --max-contributions 3"
    table = as_table(line, dtype={"epsilon": str})
    expected = psd.plan_regions(
        psd.RegionFiles(paths=("wards.gpkg",), ids=("ward",), parents=("borough",)),
        domain=psd.Domain(bounds=(-4, -4, 4, 4)),
        epsilons=["1"],
        populations="people",
        max_contributions=3,
    )
    pd.testing.assert_frame_equal(table, expected.table)
    content = as_json(line)
    assert content["count"] == 5_600
    assert content["solved_epsilon"] is None
    assert content["expected"][1]["mean_error"] == pytest.approx(table.mean_error[1])
    passes(f"{line} -o p.csv")
    assert "exists" in fails(6, f"{line} -o p.csv")


def test_settings_move_epsilon_between_levels():
    alike, more = (
        as_table(f"{ONE} --methods none {weights}").set_index("level").error
        for weights in ("", "--set weights=1,16")
    )
    assert more["ward"] < alike["ward"]
    assert more["borough"] > alike["borough"]


@pytest.mark.deep
@pytest.mark.parametrize("ending", ["png", "svg", "html"])
def test_plots_are_of_the_levels(here, ending):
    gpd.read_file("wards.gpkg").assign(borough=["$w"] * 2 + ["<e>"] * 2).to_file("wards.gpkg")
    line = f"{PLAN} --epsilon 0.1,1 --plot p.{ending}"
    assert passes(line).endswith(f"wrote p.{ending}\n")
    content = (here / f"p.{ending}").read_bytes()
    assert len(content) > 10_000
    if ending == "html":
        assert b"PRIVATE" not in content
        assert b"default-src 'none'" in content
        assert b"<td>borough</td>" in content
    assert "exists" in fails(6, line)


def test_a_covariate_and_a_boundary_are_those_of_the_build():
    corner = gpd.GeoDataFrame(geometry=[shapely.box(-4, -4, 4, -3.5)], crs="EPSG:4326")
    corner.to_file("corner.gpkg")
    options = ("", "--covariate corner.gpkg", "--boundary corner.gpkg")
    tables = [as_table(f"{ONE} {each}").set_index("level") for each in options]
    for table in tables:
        assert table["mean_population"].tolist() == [2_800, 1_400]
        assert np.isfinite(table["error"]).all()
    assert len({table.error["ward"] for table in tables}) == 3


def test_epsilon_for_an_error():
    line = f"{PLAN} --count 50000 --for-relative-error"
    content = as_json(f"{line} 5% --level borough")
    rows = {row["level"]: row for row in content["expected"]}
    assert rows["borough"]["epsilon"] == content["solved_epsilon"]
    assert 0.045 < rows["borough"]["mean_error"] <= 0.05
    assert rows["ward"]["mean_error"] > 0.05
    assert "gives this relative error" in passes(f"{line} 0.05")


SOLVED = f"{LEVELS} {PEOPLE} --for-relative-error"
GIVEN = f"{PLACE} {PEOPLE} --epsilon 1"
AREA = "--area 9 --epsilon 1 --count 9"
REFUSED = [
    (2, f"{LEVELS} --epsilon 1", "--count must be the expected number of records"),
    (2, f"{LEVELS} {PEOPLE}", "--epsilon or --for-relative-error must be given"),
    (2, f"{LEVELS} {PEOPLE} --epsilon 1 --level ward", "with --for-relative-error"),
    (2, f"{SOLVED} 5% --level street", "--level must be one of borough, ward, got 'street'"),
    (2, f"{SOLVED} 0%", "above 0 % and at most 100 %"),
    (2, f"{SOLVED} 120%", "above 0 % and at most 100 %"),
    (2, f"{SOLVED} much", "'much' is not a number"),
    (2, f"{SOLVED} 0.01% --epsilon 1", "on level ward, which epsilon 1 gives, got 0.01 %"),
    (2, f"{SOLVED} 5% --epsilon 1,2", "must be one"),
    (2, f"{LEVELS} --regions population=bad --epsilon 1", "got '-2' for region 'b'"),
    (2, f"{LEVELS} --regions population=gaps --epsilon 1", "for region 'b'"),
    (
        2,
        f"{LEVELS} --regions population=none --epsilon 1",
        "--regions population must be a column of the regions (ward, borough, people",
    ),
    (2, f"{GIVEN} --sizes 1%", "--sizes must be left out with"),
    (2, f"{GIVEN} --plot p.pdf", "--plot must end in .png"),
    (2, f"{AREA} --boundary b", "given with --regions"),
    (2, f"{GIVEN} --boundary wards.gpkg:fix=yes", "'fix' does not"),
    (2, f"{OF_WARDS} {PEOPLE} --epsilon 1 --area 9", "--area must be left out with"),
    (2, f"{GIVEN} --methods none,auto", "--methods must be one of"),
    (2, f"{GIVEN} --methods grid", "must be one of"),
    (
        2,
        f"--bounds 0 0 8 8 --crs EPSG:3857 --regions tiles=24 {PEOPLE} --epsilon 1",
        "--regions population must be a column of files",
    ),
    (2, f"{AREA} --level a", "given with --regions"),
    (2, f"{AREA} --set a=1", "given with --regions"),
]


def test_what_is_refused(here, subtests):
    check_refusals(subtests, REFUSED, "plan")
    (here / "points.csv").write_text("lon,lat\n1,1\n")
    of_build = [(2, f"{PLACE} {PEOPLE}", "population")]
    check_refusals(subtests, of_build, "build points.csv -o r --epsilon 1")
