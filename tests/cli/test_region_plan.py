"""psd plan --regions: tables, files, a solved epsilon, and refusals."""

import io
import json
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from support.cli_runner import fails, files, passes

PLACE = ("--bounds", -4, -4, 4, 4, "--regions", "wards.gpkg", "--regions", "id=ward")
LEVELS = (*PLACE, "--regions", "parent=borough")
PEOPLE = ("--regions", "population=people")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Four wards in two boroughs."""
    monkeypatch.chdir(tmp_path)
    gpd.GeoDataFrame(
        {
            "ward": list("abcd"),
            "borough": ["west", "west", "east", "east"],
            "people": [100, 200, 300, 5_000],
            "bad": [100, -2, 300, 5_000],
            "gaps": [100.0, None, 300.0, 5_000.0],
        },
        geometry=[shapely.box(x, -4, x + 2, 4) for x in (-4, -2, 0, 2)],
        crs="EPSG:4326",
    ).to_file("wards.gpkg")
    return tmp_path


def test_a_table_of_levels():
    told = passes("plan", *LEVELS, *PEOPLE, "--epsilon", "0.1,1", "--methods", "none")
    assert told.startswith("Expected errors of regions: 5,600 records; each record is protected.")
    rows = [line.split() for line in told.splitlines() if " ward " in line or " borough " in line]
    assert [row[:3] for row in rows[:2]] == [["0.1", "borough", "2"], ["0.1", "ward", "4"]]
    assert "no record was read" in told.replace("\n", " ")


def test_files_have_the_numbers_of_the_library():
    args = ("plan", *LEVELS, *PEOPLE, "--epsilon", 1, "--max-contributions", 3)
    table = pd.read_csv(io.StringIO(passes(*args, "--format", "csv")), dtype={"epsilon": str})
    regions = psd.RegionFiles(paths=("wards.gpkg",), ids=("ward",), parents=("borough",))
    expected = psd.plan_regions(
        regions,
        domain=psd.Domain(bounds=(-4, -4, 4, 4)),
        epsilons=["1"],
        populations="people",
        max_contributions=3,
    )
    pd.testing.assert_frame_equal(table, expected.table)
    content = json.loads(passes(*args, "--format", "json"))
    assert content["count"] == 5_600
    assert content["solved_epsilon"] is None
    assert content["expected"][1]["mean_error"] == pytest.approx(table.mean_error[1])
    passes(*args, "-o", "p.csv")
    assert "exists" in fails(6, *args, "-o", "p.csv")


def test_settings_move_epsilon_between_levels():
    args = ("plan", *LEVELS, *PEOPLE, "--epsilon", 1, "--methods", "none", "--format", "csv")
    alike, more = (
        pd.read_csv(io.StringIO(passes(*args, *extra))).set_index("level").error
        for extra in ((), ("--set", "weights=1,16"))
    )
    assert more["ward"] < alike["ward"]
    assert more["borough"] > alike["borough"]


@pytest.mark.parametrize("ending", ["png", "svg", "html"])
def test_plots_are_of_the_levels(ending):
    gpd.read_file("wards.gpkg").assign(borough=["$w"] * 2 + ["<e>"] * 2).to_file("wards.gpkg")
    told = passes("plan", *LEVELS, *PEOPLE, "--epsilon", "0.1,1", "--plot", f"p.{ending}")
    assert told.endswith(f"wrote p.{ending}\n")
    content = Path(f"p.{ending}").read_bytes()
    assert len(content) > 10_000
    if ending == "html":
        assert b"PRIVATE" not in content
        assert b"default-src 'none'" in content
        assert b"<td>borough</td>" in content
    assert "exists" in fails(6, "plan", *LEVELS, *PEOPLE, "--epsilon", 1, "--plot", f"p.{ending}")


def test_a_covariate_and_a_boundary_are_those_of_the_build():
    args = ("plan", *LEVELS, *PEOPLE, "--epsilon", 1, "--format", "csv")
    corner = gpd.GeoDataFrame(geometry=[shapely.box(-4, -4, 4, -3.5)], crs="EPSG:4326")
    corner.to_file("corner.gpkg")
    tables = [
        pd.read_csv(io.StringIO(passes(*args, *extra))).set_index("level")
        for extra in ((), ("--covariate", "corner.gpkg"), ("--boundary", "corner.gpkg"))
    ]
    for table in tables:
        assert table["mean_population"].tolist() == [2_800, 1_400]
        assert np.isfinite(table["error"]).all()
    assert len({table.error["ward"] for table in tables}) == 3


def test_epsilon_for_an_error():
    args = ("plan", *LEVELS, *PEOPLE, "--count", 50_000)
    told = passes(*args, "--for-relative-error", "5%", "--level", "borough", "--format", "json")
    content = json.loads(told)
    rows = {row["level"]: row for row in content["expected"]}
    assert rows["borough"]["epsilon"] == content["solved_epsilon"]
    assert 0.045 < rows["borough"]["mean_error"] <= 0.05
    assert rows["ward"]["mean_error"] > 0.05
    words = passes(*args, "--for-relative-error", "0.05")
    assert "gives this relative error" in words


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((*LEVELS, "--epsilon", 1), "--count must be the expected number of records"),
        ((*LEVELS, *PEOPLE), "--epsilon or --for-relative-error must be given"),
        ((*LEVELS, *PEOPLE, "--epsilon", 1, "--level", "ward"), "with --for-relative-error"),
        (
            (*LEVELS, *PEOPLE, "--for-relative-error", "5%", "--level", "street"),
            "--level must be one of borough, ward, got 'street'",
        ),
        ((*LEVELS, *PEOPLE, "--for-relative-error", "0%"), "above 0 % and at most 100 %"),
        ((*LEVELS, *PEOPLE, "--for-relative-error", "120%"), "above 0 % and at most 100 %"),
        ((*LEVELS, *PEOPLE, "--for-relative-error", "much"), "'much' is not a number"),
        (
            (*LEVELS, *PEOPLE, "--for-relative-error", "0.01%", "--epsilon", 1),
            "on level ward, which epsilon 1 gives, got 0.01 %",
        ),
        ((*LEVELS, *PEOPLE, "--for-relative-error", "5%", "--epsilon", "1,2"), "must be one"),
        ((*LEVELS, "--regions", "population=bad", "--epsilon", 1), "got '-2' for region 'b'"),
        ((*LEVELS, "--regions", "population=gaps", "--epsilon", 1), "for region 'b'"),
        (
            (*LEVELS, "--regions", "population=seats", "--epsilon", 1),
            "--regions population must be a column of the regions (ward, borough, people",
        ),
        ((*PLACE, *PEOPLE, "--epsilon", 1, "--sizes", "1%"), "--sizes must be left out with"),
        ((*PLACE, *PEOPLE, "--epsilon", 1, "--plot", "p.pdf"), "--plot must end in .png"),
        (("--area", 9, "--epsilon", 1, "--count", 9, "--boundary", "b"), "given with --regions"),
        ((*PLACE, *PEOPLE, "--epsilon", 1, "--boundary", "wards.gpkg:fix=yes"), "'fix' does not"),
        ((*PLACE[5:], *PEOPLE, "--epsilon", 1, "--area", 9), "--area must be left out with"),
        ((*PLACE, *PEOPLE, "--epsilon", 1, "--methods", "none,auto"), "--methods must be one of"),
        ((*PLACE, *PEOPLE, "--epsilon", 1, "--methods", "grid"), "must be one of"),
        (
            ("--bounds", 0, 0, 8, 8, "--crs", "EPSG:3857", "--regions", "tiles=24", *PEOPLE,
             "--epsilon", 1),
            "--regions population must be a column of files",
        ),
        (("--area", 9, "--epsilon", 1, "--count", 9, "--level", "a"), "given with --regions"),
        (("--area", 9, "--epsilon", 1, "--count", 9, "--set", "a=1"), "given with --regions"),
    ],
)  # fmt: skip
def test_what_is_refused(folder, args, words):
    assert words in fails(2, "plan", *args)
    assert files(folder) == ["wards.gpkg"]


def test_a_population_is_no_key_of_a_build(folder):
    (folder / "points.csv").write_text("lon,lat\n1,1\n")
    told = fails(2, "build", "points.csv", "-o", "r", "--epsilon", 1, *PLACE, *PEOPLE)
    assert "population" in told
