"""psd plan: a table, words, files and pictures from public parameters; refusals."""

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from support.cli_runner import Terminal, as_json, as_table, check_refusals, cli, fails, passes

QUICK = "plan --area 605 --count 5000 --methods quadtree --runs 1"
EVEN = f"{QUICK} --density uniform"

pytestmark = pytest.mark.usefixtures("here")


def test_table_and_words():
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


def test_a_plan_of_rounded_coordinates_says_so():
    found = as_json(f"{EVEN} --epsilon 1000 --coordinate-resolution 100")
    assert found["coordinate_resolution"] == "100"
    assert found["words"][-1].startswith("coordinates are rounded to steps of 100: no cell is")
    # At this epsilon every value has its cell, so that no query is off.
    assert max(row["mean_records_off"] for row in found["expected"]) < 1


def test_csv_json_and_output_say_the_same():
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


@pytest.mark.deep
@pytest.mark.parametrize("ending", ["png", "svg", "html"])
def test_plot(here, ending):
    told = passes(f"{EVEN} --epsilon 1 --plot p.{ending}")
    assert told.endswith(f"wrote p.{ending}\n")
    content = (here / f"p.{ending}").read_bytes()
    assert len(content) > 10_000
    if ending == "html":
        assert b"PRIVATE" not in content
        assert b"default-src 'none'" in content


def test_bounds_covariates_and_users():
    np.save("people.npy", np.array([[1, 0], [0, 3]]))
    where = "--bounds 126.4 37 127.6 38 --covariate people.npy:size=2"
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


def test_terminals(monkeypatch):
    """A narrow one has less columns, and each one is told the number of finished builds."""
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    assert cli(f"{QUICK} --epsilon 1", stderr=terminal).code == 0
    assert "4/4" in terminal.getvalue()
    monkeypatch.setattr(
        "psd_cli.output.columns.open_console", lambda: Console(width=70, highlight=False)
    )
    outcome = cli(f"{QUICK} --epsilon 1")
    assert outcome.code == 0
    assert "too narrow for error in records" in outcome.err


AREA, EPSILON, COUNT = "--area 605", "--epsilon 1", "--count 100"
REFUSED = [
    (2, f"{EPSILON} {COUNT}", "one of --area"),
    (2, f"{AREA} {EPSILON} {COUNT} --bounds 0 0 1 1", "one of --area"),
    (2, f"--area 0 {EPSILON} {COUNT}", "--area must be above 0"),
    (2, f"--area nan {EPSILON} {COUNT}", "--area must be above 0"),
    (2, f"--area 6e8 {EPSILON} {COUNT}", "the surface of the Earth, got 6e+08"),
    (3, f"--bounds 1 0 0 1 {EPSILON} {COUNT}", "west"),
    (2, f"{AREA} --epsilon 0 {COUNT}", "epsilon"),
    (2, f"{AREA} {EPSILON} --count 0", "--count must be"),
    (2, f"{AREA} {EPSILON} --count 1e6", "not a whole number"),
]
REFUSED_OPTIONS = [
    (2, "--sizes 700", "--sizes must be at most the area"),
    (2, "--sizes 0", "--sizes must be above 0 %"),
    (2, "--sizes nan", "--sizes must be above 0 %"),
    (2, "--sizes 101%", "--sizes must be above 0 %"),
    (2, "--sizes big", "not a number"),
    (2, "--methods magic", "magic"),
    (2, "--density even", "must be one of uniform"),
    (2, "--covariate x.npy", "give --bounds"),
    (2, "--covariate x.npy:colum=y", "did you mean 'column'?"),
    (2, "--plot p.pdf", "--plot must end in .png, .svg or .html, got p.pdf"),
    (2, "-o p.txt", "--format csv or json"),
]


def test_refusals(subtests):
    check_refusals(subtests, REFUSED, "plan")
    check_refusals(subtests, REFUSED_OPTIONS, f"plan {AREA} {EPSILON} {COUNT}")
