"""Cubes with regions on the command line: build, ask, show and plan."""

import pandas as pd
import pytest

from support.cli_runner import as_json, as_table, check_refusals, passes
from support.cubes import town

BUILD = (
    "build visits.csv -o wards.psd.parquet --epsilon 1 --bounds 0 0 16 16 --crs EPSG:3857 "
    "--regions grid-cells=4,8 --time time --slices 2024-01-01T00..2024-01-02T23 --method cube "
    "--per record --input-crs EPSG:3857"
)
PLAN = "plan --bounds 0 0 16 16 --crs EPSG:3857 --regions grid-cells=4,8 --count 2000"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with records, and the working directory of this module."""
    where = tmp_path_factory.mktemp("wards")
    town(3_000).to_csv(where / "visits.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(where)
        assert "cube, 48 slices" in passes(BUILD)
        yield where


def test_wards_in_hours_are_built_and_asked(folder):
    facts = as_json("info wards.psd.parquet")
    assert facts["parameters"]["axes"] == "time,region"
    assert [layer["layer"] for layer in facts["layers"]] == ["space", "space, time and region"]
    when = "--when 2024-01-01T08 --when 2024-01-01"
    rows = as_table(f"query wards.psd.parquet --all-regions --level 8m {when}")
    assert len(rows) == 8
    day = "--level 8m --when 2024-01-01"
    assert "total" in passes(f"query wards.psd.parquet --all-regions {day} --joint")
    told = passes(f"query wards.psd.parquet --all-regions {day} --explain")
    assert "in the places of all time" in told


def test_windows_are_exported_and_compared(folder):
    passes("export wards.psd.parquet morning.csv --when 2024-01-01T06..2024-01-01T10")
    assert (folder / "morning.csv").read_text().count("\n") == 17
    # With --each a row of each region in each slice, and regions of any level.
    passes("export wards.psd.parquet hours.csv --when 2024-01-01 --each slice --level 8m")
    rows = pd.read_csv(folder / "hours.csv")
    asked = "query wards.psd.parquet --all-regions --level 8m --when 2024-01-01 --each slice"
    answers = as_table(asked)
    assert len(rows) == 24 * 4
    for name in ("slice", "id", "estimate", "error", "lower", "quality"):
        assert rows[name].tolist() == answers[name].tolist()
    days = "--when 2024-01-02 --other-slice 2024-01-01"
    change = as_table(
        f"query wards.psd.parquet --difference wards.psd.parquet {days} --all-regions"
    )
    assert len(change) == 16


@pytest.mark.app("planning")
def test_weeks_of_wards_are_planned_and_solved():
    cube = f"{PLAN} --methods cube --slices 6"
    table = as_json(f"{cube} --windows 1,6 --epsilon 1")["expected"]
    assert [row["window"] for row in table] == [1, 1, 6, 6]
    assert [row["level"] for row in table] == ["8m", "4m"] * 2
    assert table[2]["mean_population"] == pytest.approx(6 * table[0]["mean_population"])
    assert table[3]["mean_error"] < table[1]["mean_error"]
    solved = as_json(f"{cube} --windows 1 --for-relative-error 10%")
    assert 0 < float(solved["solved_epsilon"]) < 10
    [found] = [row for row in solved["expected"] if row["level"] == "4m"]
    assert 0.05 < found["mean_error"] <= 0.1
    assert "region to region" in " ".join(solved["words"])


def test_what_does_not_fit_is_refused(folder, subtests):
    table = [
        (2, f"{PLAN} --methods cube --epsilon 1", "slices must be given with method cube"),
        (
            2,
            f"{PLAN} --methods cube --slices 6 --for-relative-error 10%",
            "windows must be one with",
        ),
        (2, f"{PLAN} --methods none --slices 6 --windows 2 --epsilon 1", "must be left out"),
        (
            2,
            "export wards.psd.parquet hours.pmtiles --each slice",
            "each must be left out if output ends in .pmtiles",
        ),
    ]
    check_refusals(subtests, table)
