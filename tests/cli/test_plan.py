"""psd plan: a table, words, files and pictures from public parameters; refusals."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from support.cli_runner import Terminal, cli, fails, files, passes

PLACE = ("--area", 605)
QUICK = ("--count", 5_000, "--methods", "quadtree", "--runs", 1)
EVEN = ("--density", "uniform")


def test_table_and_words():
    told = passes("plan", *PLACE, *QUICK, "--epsilon", "0.1,2")
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


def test_a_plan_of_rounded_coordinates_says_so():
    words = json.loads(
        passes("plan", *PLACE, *QUICK, *EVEN, "--epsilon", 1000, "--coordinate-resolution", 100,
               "--format", "json")
    )  # fmt: skip
    assert words["coordinate_resolution"] == "100"
    assert words["words"][-1].startswith("coordinates are rounded to steps of 100: no cell is")
    # At this epsilon every value has its cell, so that no query is off.
    assert max(row["mean_records_off"] for row in words["expected"]) < 1


def test_csv_json_and_output_say_the_same(tmp_path):
    args = ("plan", *PLACE, *QUICK, *EVEN, "--epsilon", 1000, "--sizes", "6.05,10%")
    # With nearly no noise all runs are alike.
    table = pd.read_csv(io.StringIO(passes(*args, "--format", "csv")), dtype={"epsilon": str})
    assert table["size_km2"].unique() == pytest.approx([6.05, 60.5])
    assert table["size_share"].unique() == pytest.approx([0.01, 0.1])
    found = json.loads(passes(*args, "--format", "json"))
    assert (found["area_km2"], found["count"], found["runs"]) == (605, 5_000, 1)
    assert len(found["words"]) == 1
    expected = pd.DataFrame(found["expected"])
    assert np.allclose(expected["mean_count"], table["mean_count"])
    assert np.allclose(expected["mean_error"], table["mean_error"], rtol=0.05)
    passes(*args, "-o", tmp_path / "p.csv")
    assert len(pd.read_csv(tmp_path / "p.csv")) == len(table)
    assert "exists" in fails(6, *args, "-o", tmp_path / "p.csv")


@pytest.mark.parametrize("ending", ["png", "svg", "html"])
def test_plot(tmp_path, ending):
    path = tmp_path / f"p.{ending}"
    told = passes("plan", *PLACE, *QUICK, *EVEN, "--epsilon", 1, "--plot", path)
    assert told.endswith(f"wrote {path}\n")
    assert path.stat().st_size > 10_000
    if ending == "html":
        assert "PRIVATE" not in path.read_text()
        assert "default-src 'none'" in path.read_text()


def test_bounds_and_covariate(tmp_path):
    np.save(tmp_path / "people.npy", np.array([[1, 0], [0, 3]]))
    where = ("--bounds", 126.4, 37, 127.6, 38, "--covariate", f"{tmp_path}/people.npy:size=2")
    args = (*QUICK, *EVEN, "--epsilon", 1000, "--sizes", "25%")
    told = passes("plan", *where, *args, "--format", "json")
    found = json.loads(told)
    assert found["area_km2"] == pytest.approx(11_791, rel=0.01)
    counts = {row["centres"]: row["mean_count"] for row in found["expected"]}
    assert counts["on data"] > 1.3 * counts["anywhere"]


def test_users_are_more_expensive():
    args = ("plan", *PLACE, *QUICK, *EVEN, "--epsilon", 1, "--format", "csv")
    one, many = (
        pd.read_csv(io.StringIO(passes(*args, *k)))["mean_records_off"].mean()
        for k in ((), ("--max-contributions", 10))
    )
    assert many > 3 * one


def test_a_narrow_terminal_drops_columns_and_says_so(monkeypatch):
    from rich.console import Console

    monkeypatch.setattr(
        "psd_cli.output.columns.open_console", lambda: Console(width=70, highlight=False)
    )
    outcome = cli("plan", *PLACE, *QUICK, "--epsilon", 1)
    assert outcome.code == 0
    assert "too narrow for error in records" in outcome.err


def test_a_terminal_is_told_the_number_of_finished_builds(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    assert cli("plan", *PLACE, *QUICK, "--epsilon", 1, stderr=terminal).code == 0
    assert "4/4" in terminal.getvalue()


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ((), 2, "one of --area"),
        ((*PLACE, "--bounds", 0, 0, 1, 1), 2, "one of --area"),
        (("--area", 0), 2, "--area must be above 0"),
        (("--area", "nan"), 2, "--area must be above 0"),
        (("--area", "6e8"), 2, "the surface of the Earth, got 6e+08"),
        (("--bounds", 1, 0, 0, 1), 3, "west"),
        ((*PLACE, "--sizes", "700"), 2, "--sizes must be at most the area"),
        ((*PLACE, "--sizes", "0"), 2, "--sizes must be above 0 %"),
        ((*PLACE, "--sizes", "nan"), 2, "--sizes must be above 0 %"),
        ((*PLACE, "--sizes", "101%"), 2, "--sizes must be above 0 %"),
        ((*PLACE, "--sizes", "big"), 2, "not a number"),
        ((*PLACE, "--epsilon", "0"), 2, "epsilon"),
        ((*PLACE, "--count", "0"), 2, "--count must be"),
        ((*PLACE, "--count", "1e6"), 2, "not a whole number"),
        ((*PLACE, "--methods", "magic"), 2, "magic"),
        ((*PLACE, "--density", "even"), 2, "must be one of uniform"),
        ((*PLACE, "--covariate", "x.npy"), 2, "give --bounds"),
        ((*PLACE, "--covariate", "x.npy:colum=y"), 2, "did you mean 'column'?"),
        ((*PLACE, "--plot", "p.pdf"), 2, "--plot must end in .png, .svg or .html, got p.pdf"),
        ((*PLACE, "-o", "p.txt"), 2, "--format csv or json"),
    ],
)
def test_refusals(words, code, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = [] if "--epsilon" in words else ["--epsilon", 1]
    given += [] if "--count" in words else ["--count", 100]
    assert told in fails(code, "plan", *given, *words)
    assert files(tmp_path) == []
