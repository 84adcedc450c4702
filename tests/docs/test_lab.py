"""The page of the lab names each of its scripts, and each script says what it measures."""

import re
import runpy
import subprocess
import sys

import pandas as pd
import pytest

from support.pages import ROOT

pytestmark = pytest.mark.deep

LAB = ROOT / "lab"
PAGE = (LAB / "README.md").read_text("utf-8")
SCRIPTS = sorted(
    path.name for path in LAB.glob("*.py") if "__main__" in path.read_text(encoding="utf-8")
)


def run(name, *words, most=0):
    """Standard output of a script, whose exit code is at most this."""
    command = [sys.executable, str(LAB / name), *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode <= most, done.stderr
    return done.stdout


def test_scripts_of_the_table_are_those_that_exist():
    rows = re.findall(
        r"^\| `(\w+\.py)` \| ([^|]+) \| ([^|]*) \| ([^|]*) \| ([^|]+) \|$", PAGE, re.M
    )
    assert [name for name, *_ in rows] == SCRIPTS
    modules = {path.name for path in LAB.glob("*.py")} - set(SCRIPTS)
    assert modules <= set(re.findall(r"`(\w+\.py)`", PAGE.rpartition("Modules without")[2]))


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_script_has_help(name):
    assert f"python lab/{name}" in run(name, "--help")


def test_pages_and_sources_name_scripts_that_exist():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "psd").rglob("*.py")]
    named = {name for page in pages for name in re.findall(r"\blab/(\w+\.py)", page.read_text())}
    assert len(named) > 30
    assert named <= {path.name for path in LAB.glob("*.py")}


def test_all_runs_every_script_of_the_table():
    everything = set(re.findall(r'Study\("(\w+)"', (LAB / "all.py").read_text("utf-8")))
    assert {f"{name}.py" for name in everything} == {*SCRIPTS} - {
        "all.py",
        "holdout_sets.py",
        "net.py",
    }


def test_each_of_the_eight_speeds_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    speeds = runpy.run_path(str(LAB / "asv" / "benchmarks.py"))["Speeds"]()
    speeds.rows, speeds.boxes, speeds.hours = 2000, 1000, 2
    speeds.setup_cache()
    speeds.setup()
    names = [name for name in dir(speeds) if name.startswith("time_")]
    assert len(names) == 8
    for name in names:
        getattr(speeds, name)()
    assert (tmp_path / "cells.gpkg").stat().st_size > 0


def test_a_speed_that_misses_its_bar_fails(tmp_path):
    code = (
        f"import sys; sys.path.insert(0, {str(LAB)!r}); import speed\n"
        "costs = iter([(3, 9, 50), (2, 3, 90), (5, 9, 50), (2, 3, 90), (4, 9, 50), (1, 3, 90)])\n"
        "run = lambda: speed.Cost(*next(costs), '')\n"
        "bars = 'CPU <= 4 s; memory <= 60 MB; CPU <= 2.4 b; wall <= 3 b'\n"
        "missed, rows = [], {'a': speed.Row('A', run, bars, ('b',)), 'b': speed.Row('B', run)}\n"
        "print([*speed.lines(rows, ['a'], 3, missed)], missed)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own, peer = ["4.00", "9.00", "52"], ["2.00", "3.00", "94"]
    table = [
        ["a", "A", *own, "", "", "", "CPU <= 4 s; memory <= 60 MB", "yes"],
        ["a", "B", *peer, "2.50", "3.00", "0.56", "CPU <= 2.4 b; wall <= 3 b", "no"],
    ]
    assert done.stdout.strip() == f"{table} {['a, CPU <= 2.4 b: 2.5']}"


def test_sets_of_a_folder_have_bounds_of_their_own_or_around_their_points(tmp_path):
    points = pd.DataFrame({"x": [3.0, 17.0] * 200, "y": [4.0, 11.0] * 200})
    points.to_csv(tmp_path / "a.csv", index=False)
    points.to_csv(tmp_path / "b.csv", index=False)
    (tmp_path / "sets.toml").write_text("[b]\nbounds = [0, 0, 20, 20]\n", encoding="utf-8")
    code = (
        f"import sys; sys.path.insert(0, {str(LAB)!r}); from pathlib import Path; import data_sets;"
        f"print([one.bounds for one in data_sets.folder_sets(Path({str(tmp_path)!r}))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[(3.0, 4.0, 18.0, 12.0), (0, 0, 20, 20)]"


def test_the_accuracy_page_has_figures_of_others_beside_the_scores(tmp_path):
    random = pd.Series(range(3000))
    table = pd.DataFrame({"lon": -7 + (random * 7 % 89) / 10, "lat": 50 + (random % 101) / 10})
    table.to_csv(tmp_path / "uk_road_accidents.csv", index=False)
    words = ["--methods", "grid,quadtree", "--epsilons", "0.1,2", "--runs", "2", "--jobs", "1"]
    text = run("accuracy.py", "--data", str(tmp_path), *words)
    assert "python lab/accuracy.py --data FOLDER --methods" in text
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| uk_road")]
    assert [row[1:3] for row in rows] == [
        [e, m] for e in ("0.1", "2") for m in ("grid", "quadtree")
    ]
    assert {len(row) for row in rows} == {18}
    assert [row[14] for row in rows] == [".0594", ".0594", "", ""]
    assert [sum("**" in row[3] for row in rows[i : i + 2]) for i in (0, 2)] == [1, 1]


def test_the_study_of_values_has_figures_of_both_and_of_cut_areas():
    words = ["--sets", "constant", "--epsilons", "1"]
    few = ["--districts", "30", "--answers", "60", "--opendp", "plain"]
    # So few answers may miss a bar.
    rows = [line.split(" | ") for line in run("values.py", *words, *few, most=1).splitlines()]
    assert len(rows) == 3
    assert rows[2][:4] == ["| constant", "30", "1", "2"]
    number, total, mean = (float(cell.strip("*")) for cell in rows[2][5:8])
    assert 0 < number < 1.2
    assert 0 < mean < total < 1
    cut = run("values.py", "--cut", *words, "--runs", "1").splitlines()[2:]
    rows = [line.split(" | ") for line in cut]
    assert [row[1:4:2] for row in rows] == [
        [kind, areas] for kind in ("cells", "districts, cells") for areas in ("squares", "polygons")
    ]
    assert all(float(row[7]) > 0 for row in rows)
