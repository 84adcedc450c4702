"""psd compare: PRIVATE on screen and in files, refusals, and nothing left by an interrupt."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

import psd
from psd.evaluation.compare import COMPARISON_NOTICE
from support.cli_runner import Terminal, cli, fails, files, passes, process

BOUNDS = ("--bounds", 0, 0, 10, 10)
SMALL = ("--methods", "grid,quadtree", "--set", "quadtree.height=3", "--set", "grid.size=4")
QUICK = (*BOUNDS, *SMALL, "--runs", 2, "--jobs", 1)


@pytest.fixture
def visits(tmp_path):
    path = tmp_path / "visits.csv"
    rows = "".join(f"u{i % 7},{i % 97 / 10},{i % 89 / 9}\n" for i in range(2_000))
    path.write_text("user_id,lon,lat\n" + rows)
    return path


def rows_of(text):
    """Lines of the table on screen, without its headings."""
    return [line.split() for line in text.splitlines() if line.startswith(("grid", "quadtree"))]


def test_methods_are_compared_on_rounded_coordinates(tmp_path):
    path, out = tmp_path / "visits.csv", tmp_path / "e.csv"
    rows = "".join(f"{i % 97 / 10},{i % 89 / 10}\n" for i in range(2_000))
    path.write_text("lon,lat\n" + rows)
    exact = ("--methods", "grid", "--set", "grid.size=101", "--epsilons", 1000, "--jobs", 1)
    errors = []
    for step in ((), ("--coordinate-resolution", "0.1")):
        passes("compare", path, "-o", out, *BOUNDS, *exact, *step, "--runs", 1, "--overwrite")
        errors.append(pd.read_csv(out, comment="#")["score"][0])
    # Every value has its cell, so that no box is off.
    assert errors[1] < 0.001 < errors[0]


def test_table_csv_and_plot(visits, tmp_path):
    csv, plot = tmp_path / "e.csv", tmp_path / "e.png"
    told = passes("compare", visits, "-o", csv, "--plot", plot, *QUICK)
    rows = rows_of(told)
    assert [row[:2] for row in rows] == [[m, e] for e in ("0.1", "1") for m in ("grid", "quadtree")]
    assert {len(row) for row in rows} == {13}
    assert told.startswith("PRIVATE: ")
    assert told.count("reveals something about the data that the epsilon of a later release") == 1
    assert told.endswith(f"wrote {csv} (PRIVATE)\nwrote {plot} (PRIVATE)\n")
    assert csv.read_text().splitlines()[0] == f"# {COMPARISON_NOTICE}"
    table = pd.read_csv(csv, comment="#")
    assert (len(table), len(table.columns), table.columns[-3:].tolist()) == (
        4,
        13,
        ["score", "score_error", "runs"],
    )
    for row, score in zip(rows, table["score"], strict=True):
        assert row[10].rstrip("*") == f"{score:.4f}"
    assert plot.stat().st_size > 20_000
    assert {path.stat().st_mode & 0o777 for path in (csv, plot)} == {0o600}
    assert files(tmp_path) == ["e.csv", "e.png", "visits.csv"]


@pytest.mark.slow
def test_the_best_of_each_column_has_a_star(visits, tmp_path):
    told = passes("compare", visits, "-o", tmp_path / "e.csv", *QUICK)
    table = pd.read_csv(tmp_path / "e.csv", comment="#", dtype={"epsilon": str})
    for epsilon, group in table.groupby("epsilon"):
        shown = [row for row in rows_of(told) if row[1] == epsilon]
        for place, name in enumerate([*table.columns[2:10], "score"], 2):
            starred = [row[0] for row in shown if row[place].endswith("*")]
            assert starred == [group.loc[group[name].idxmin(), "method"]]
    alone = passes("compare", visits, "-o", tmp_path / "f.csv", *BOUNDS, "--methods", "grid")
    assert not any("*" in cell for row in rows_of(alone) for cell in row)


def test_one_run_shows_no_standard_error(visits, tmp_path):
    args = (*BOUNDS, "--methods", "grid", "--epsilons", "1", "--runs", 1)
    told = passes("compare", visits, "-o", tmp_path / "e.csv", *args)
    assert rows_of(told)[0][-2:] == ["-", "1"]
    assert pd.read_csv(tmp_path / "e.csv", comment="#")["score_error"].isna().all()


def test_a_narrow_terminal_drops_columns_and_says_so(visits, tmp_path, monkeypatch):
    from rich.console import Console

    monkeypatch.setattr(
        "psd_cli.output.columns.open_console", lambda: Console(width=80, highlight=False)
    )
    outcome = cli("compare", visits, "-o", tmp_path / "e.csv", *QUICK)
    assert outcome.code == 0
    assert "too narrow for runs, uniform 0.1 %" in outcome.err
    table = outcome.out.split("PRIVATE: true errors")[0]
    assert max(map(len, table.splitlines())) <= 80
    assert all(re.fullmatch(r"\d\.\d{4}\*?", cell) for row in rows_of(table) for cell in row[2:])


def test_users_are_bounded(visits, tmp_path):
    user = ("--user", "user_id", "--max-contributions", 2)
    passes("compare", visits, "-o", tmp_path / "u.csv", *QUICK, "--epsilons", 1000, *user)
    passes("compare", visits, "-o", tmp_path / "r.csv", *QUICK, "--epsilons", 1000)
    bounded, free = (pd.read_csv(tmp_path / f"{name}.csv", comment="#") for name in "ur")
    assert bounded["on data 10 %"].min() > 0.9 > free["on data 10 %"].max()


def test_other_columns_and_crs(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("a,b\n" + "950000,1950000\n" * 50)
    where = ("--crs", "EPSG:5179", "--read", "x=a", "--read", "y=b")
    bounds = ("--bounds", 900_000, 1_900_000, 1_000_000, 2_000_000)
    args = ("--methods", "grid", "--epsilons", "1", "--runs", 1)
    passes("compare", path, "-o", tmp_path / "e.csv", *bounds, *where, *args)


def test_two_runs_have_other_noise(visits, tmp_path):
    for name in "ab":
        passes("compare", visits, "-o", tmp_path / f"{name}.csv", *QUICK)
    first, second = (pd.read_csv(tmp_path / f"{name}.csv", comment="#") for name in "ab")
    assert (first["score"] != second["score"]).all()


def test_settings_reach_their_method(visits, tmp_path):
    """A quadtree of one cell knows nothing of places, whatever epsilon."""
    args = (*BOUNDS, "--methods", "quadtree", "--epsilons", "1000", "--runs", 1)
    for height in (0, 6):
        out = tmp_path / f"{height}.csv"
        passes("compare", visits, "-o", out, *args, "--set", f"quadtree.height={height}")
    coarse, fine = (pd.read_csv(tmp_path / f"{h}.csv", comment="#")["score"][0] for h in (0, 6))
    assert coarse > 1.5 * fine


@pytest.mark.slow
def test_all_methods_run(visits, tmp_path):
    args = (*BOUNDS, "--epsilons", "1", "--runs", 1)
    passes("compare", visits, "-o", tmp_path / "e.csv", *args)
    table = pd.read_csv(tmp_path / "e.csv", comment="#")
    assert tuple(table["method"]) == psd.methods()


def test_a_terminal_is_told_the_number_of_finished_builds(visits, tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    outcome = cli("compare", visits, "-o", tmp_path / "e.csv", *QUICK, stderr=terminal)
    assert outcome.code == 0
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    assert "8/8" in shown
    words = set(re.findall(r"[a-z]+|\d+", shown))
    assert words <= {"reading", "builds", "finished", *map(str, range(9))}


def test_overwrite_rules(visits, tmp_path, monkeypatch):
    csv, plot = tmp_path / "e.csv", tmp_path / "e.svg"
    args = ("compare", visits, "-o", csv, "--plot", plot, *QUICK, "--epsilons", "1")
    csv.write_text("mine")
    csv.chmod(0o644)
    assert "exists" in fails(6, *args)
    assert csv.read_text() == "mine"
    passes(*args, "--overwrite")
    assert csv.read_text().startswith("# PRIVATE")
    assert {path.stat().st_mode & 0o777 for path in (csv, plot)} == {0o600}
    monkeypatch.setattr("psd.evaluation.compare.read", lambda *a: pytest.fail("the input was read"))
    assert "exists" in fails(6, *args)
    same = ("compare", visits, *QUICK, "--overwrite")
    assert "two outputs have the same path" in fails(6, *same, "-o", plot, "--plot", plot)
    assert "read as an input" in fails(6, *same, "-o", visits)
    assert "read as an input" in fails(6, *same, "-o", csv, "--plot", visits)


def test_a_plot_needs_its_extra(visits, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    args = ("-o", tmp_path / "e.csv", "--plot", tmp_path / "e.png", *QUICK)
    assert "psd-publisher[plot]" in fails(7, "compare", visits, *args)
    assert files(tmp_path) == ["visits.csv"]


@pytest.mark.parametrize(
    "place", ["psd.evaluation.reporting.plots.plot_comparison", "psd._util.atomic_write._sync"]
)
def test_an_interrupt_while_writing_leaves_no_file(visits, tmp_path, monkeypatch, place):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(place, interrupted)
    args = ("-o", tmp_path / "e.csv", "--plot", tmp_path / "e.png", *QUICK)
    assert cli("compare", visits, *args).code == 130
    assert files(tmp_path) == ["visits.csv"]


def group(leader):
    """Processes of a group that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, pgrp = path.read_text().rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if int(pgrp) == leader and state not in "ZX":
            found.append(int(path.parent.name))
    return found


def wait_for(condition, seconds=900):
    """Wait until something is so, also where the machine is slow."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc to see processes in")
@pytest.mark.parametrize(
    ("signal_number", "whole_group", "delay"),
    [
        pytest.param(signal.SIGINT, True, 0, id="ctrl-c while they start"),
        pytest.param(signal.SIGINT, True, 1.5, id="ctrl-c while they build"),
        pytest.param(signal.SIGTERM, False, 1.5, id="terminated"),
        pytest.param(signal.SIGKILL, False, 1.5, id="killed"),
    ],
)
def test_an_interrupt_leaves_no_file_and_no_process(
    visits, tmp_path, signal_number, whole_group, delay
):
    args = ["visits.csv", "-o", "e.csv", "--plot", "e.png", *BOUNDS, "--runs", 500, "--jobs", 2]
    command = [str(Path(sys.executable).with_name("psd")), "compare", *map(str, args)]
    running = subprocess.Popen(
        command, cwd=tmp_path, stdout=-1, stderr=-1, text=True, start_new_session=True
    )
    try:
        # The command, the process that tracks resources, and two workers.
        wait_for(lambda: len(group(running.pid)) >= 4)
        time.sleep(delay)
        (os.killpg if whole_group else os.kill)(running.pid, signal_number)
        out, err = running.communicate(timeout=900)
    finally:
        running.poll() is None and os.killpg(running.pid, signal.SIGKILL)
    wait_for(lambda: not group(running.pid))
    assert files(tmp_path) == ["visits.csv"]
    if signal_number != signal.SIGKILL:
        expected = "psd: error: interrupted; no file is half-written\n"
        assert (running.returncode, out, err) == (130, "", expected)


def test_compare_as_a_process(visits, tmp_path):
    args = ("visits.csv", "-o", "e.csv", *BOUNDS, *SMALL, "--runs", 2, "--jobs", 2)
    ended = process("compare", *args, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert len(rows_of(ended.stdout)) == 4
