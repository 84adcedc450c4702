"""psd check compare: PRIVATE on screen and in files, refusals, and nothing left by an interrupt."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from psd.apps.evaluation.comparison import COMPARISON_NOTICE
from support.cli_runner import Terminal, cli, fails, files, passes, process

pytestmark = pytest.mark.deep

BOUNDS = ("--bounds", 0, 0, 10, 10)
SMALL = ("--methods", "grid,quadtree", "--set", "quadtree.height=3", "--set", "grid.size=4")
QUICK = (*BOUNDS, *SMALL, "--runs", 2, "--jobs", 1)
COMPARE = "check compare visits.csv -o e.csv"
PLOTTED = f"{COMPARE} --plot e.png"


@pytest.fixture(autouse=True)
def visits(here):
    rows = "".join(f"u{i % 7},{i % 97 / 10},{i % 89 / 9}\n" for i in range(2_000))
    (here / "visits.csv").write_text("user_id,lon,lat\n" + rows)


def compared(*args, **options):
    """Table of a comparison, and what was printed."""
    told = passes(f"{COMPARE} --overwrite", *args)
    return pd.read_csv("e.csv", comment="#", **options), told


def rows_of(text):
    """Lines of the table on screen, without its headings."""
    return [line.split() for line in text.splitlines() if line.startswith(("grid", "quadtree"))]


def modes(folder):
    return {path.stat().st_mode & 0o777 for path in folder.glob("e.*")}


def test_table_csv_and_plot(here):
    told = passes(PLOTTED, *QUICK)
    rows = rows_of(told)
    assert [row[:2] for row in rows] == [[m, e] for e in ("0.1", "1") for m in ("grid", "quadtree")]
    assert {len(row) for row in rows} == {13}
    assert told.startswith("PRIVATE: ")
    assert told.count("reveals something about the data that the epsilon of a later release") == 1
    assert told.endswith("wrote e.csv (PRIVATE)\nwrote e.png (PRIVATE)\n")
    assert (here / "e.csv").read_text().splitlines()[0] == f"# {COMPARISON_NOTICE}"
    table = pd.read_csv("e.csv", comment="#")
    assert table.shape == (4, 13)
    assert table.columns[-3:].tolist() == ["score", "score_error", "runs"]
    for row, score in zip(rows, table["score"], strict=True):
        assert row[10].rstrip("*") == f"{score:.4f}"
    assert (here / "e.png").stat().st_size > 20_000
    assert modes(here) == {0o600}
    assert files(here) == ["e.csv", "e.png", "visits.csv"]


def test_the_best_of_each_column_has_a_star():
    table, told = compared(*QUICK, dtype={"epsilon": str})
    for epsilon, group in table.groupby("epsilon"):
        shown = [row for row in rows_of(told) if row[1] == epsilon]
        for place, name in enumerate([*table.columns[2:10], "score"], 2):
            starred = [row[0] for row in shown if row[place].endswith("*")]
            assert starred == [group.loc[group[name].idxmin(), "method"]]
    again, _ = compared(*QUICK, dtype={"epsilon": str})
    assert (table["score"] != again["score"]).all()  # another run has other noise
    _, alone = compared(*BOUNDS, "--methods", "grid")
    assert not any("*" in cell for row in rows_of(alone) for cell in row)


def test_terminals(monkeypatch):
    """Each is told the number of finished builds, and a narrow one has less columns."""
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    assert cli(COMPARE, *QUICK, stderr=terminal).code == 0
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    assert "8/8" in shown
    told = set(re.findall(r"[a-z]+|\d+", re.sub(r"\b\d+ s\b", "s", shown)))  # of any time
    assert told <= {"reading", "builds", "finished", "s", *map(str, range(9))}
    monkeypatch.setattr(
        "psd_cli.output.tables.open_console", lambda: Console(width=80, highlight=False)
    )
    outcome = cli(COMPARE, *QUICK, "--overwrite")
    assert outcome.code == 0
    assert "too narrow for runs, uniform 0.1 %" in outcome.err
    table = outcome.out.split("PRIVATE: true errors")[0]
    assert max(map(len, table.splitlines())) <= 80
    assert all(re.fullmatch(r"\d\.\d{4}\*?", cell) for row in rows_of(table) for cell in row[2:])


def test_users_are_bounded_and_coordinates_rounded(here):
    user = ("--user", "user_id", "--max-contributions", 2)
    bounded, _ = compared(*QUICK, "--epsilons", 1000, *user)
    free, _ = compared(*QUICK, "--epsilons", 1000)
    assert bounded["on data 10 %"].min() > 0.9 > free["on data 10 %"].max()
    rows = "".join(f"{i % 97 / 10},{i % 89 / 10}\n" for i in range(2_000))
    (here / "visits.csv").write_text("lon,lat\n" + rows)
    exact = ("--methods", "grid", "--set", "grid.size=101", "--epsilons", 1000, "--jobs", 1)
    errors = [
        compared(*BOUNDS, *exact, *step, "--runs", 1)[0]["score"][0]
        for step in ((), ("--coordinate-resolution", "0.1"))
    ]
    # Every value has its cell, so that no box is off.
    assert errors[1] < 0.001 < errors[0]


def test_other_columns_and_crs(here):
    (here / "visits.csv").write_text("a,b\n" + "950000,1950000\n" * 50)
    where = "--crs EPSG:5179 --x a --y b --bounds 900000 1900000 1000000 2000000"
    table, told = compared(*where.split(), "--methods", "grid", "--epsilons", "1", "--runs", 1)
    assert rows_of(told)[0][-2:] == ["-", "1"]  # one run shows no standard error
    assert table["score_error"].isna().all()


def test_settings_reach_their_method_also_in_a_process():
    """A quadtree of one cell knows nothing of places, whatever epsilon."""
    args = (*BOUNDS, "--methods", "quadtree", "--epsilons", "1000", "--runs", 1, "--set")
    coarse, fine = (compared(*args, f"quadtree.height={h}")[0]["score"][0] for h in (0, 6))
    assert coarse > 1.5 * fine
    ended = process(f"{COMPARE} --overwrite", *BOUNDS, *SMALL, "--runs", 2, "--jobs", 2)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert len(rows_of(ended.stdout)) == 4


def test_overwrite_rules(here, monkeypatch):
    args = (f"{COMPARE} --plot e.svg", *QUICK, "--epsilons", "1")
    csv = here / "e.csv"
    csv.write_text("mine")
    csv.chmod(0o644)
    assert "exists" in fails(6, *args)
    assert csv.read_text() == "mine"
    passes(*args, "--overwrite")
    assert csv.read_text().startswith("# PRIVATE")
    assert modes(here) == {0o600}
    monkeypatch.setattr(
        "psd.apps.evaluation.comparison.read", lambda *a: pytest.fail("the input was read")
    )
    assert "exists" in fails(6, *args)
    same = ("check compare visits.csv --overwrite", *QUICK, "-o")
    assert "two outputs have the same path" in fails(6, *same, "e.svg", "--plot", "e.svg")
    assert "read as an input" in fails(6, *same, "visits.csv")
    assert "read as an input" in fails(6, *same, "e.csv", "--plot", "visits.csv")


@pytest.mark.parametrize(
    "place", ["psd.apps.evaluation.figures.plot_comparison", "psd._util.atomic_write._sync"]
)
def test_an_interrupt_or_a_missing_library_leaves_no_file(here, monkeypatch, place):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(place, interrupted)
    assert cli(PLOTTED, *QUICK).code == 130
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert ".[plot]" in fails(7, PLOTTED, *QUICK)
    assert files(here) == ["visits.csv"]


def group(leader):
    """Processes of a group that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, pgrp = path.read_text().rpartition(")")[2].split()[:3]
            found += [path] if int(pgrp) == leader and state not in "ZX" else []
    return found


def wait_for(condition, seconds=900):
    """Wait until something is so, also where the machine is slow."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("signal_number", "whole_group", "delay"),
    [
        (signal.SIGINT, True, 0),  # Ctrl-C while they start
        (signal.SIGINT, True, 1.5),  # and while they build
        (signal.SIGTERM, False, 1.5),
        (signal.SIGKILL, False, 1.5),
    ],
)
def test_an_interrupt_leaves_no_file_and_no_process(here, signal_number, whole_group, delay):
    line = [*f"{PLOTTED} --runs 500 --jobs 2".split(), *map(str, BOUNDS)]
    running = subprocess.Popen(
        [str(Path(sys.executable).with_name("psd")), *line],
        stdout=-1, stderr=-1, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        # The command, the process that tracks resources, and two workers.
        wait_for(lambda: len(group(running.pid)) >= 4)
        time.sleep(delay)
        (os.killpg if whole_group else os.kill)(running.pid, signal_number)
        out, err = running.communicate(timeout=900)
    finally:
        running.poll() is None and os.killpg(running.pid, signal.SIGKILL)
    wait_for(lambda: not group(running.pid))
    assert files(here) == ["visits.csv"]
    if signal_number != signal.SIGKILL:
        expected = "psd: error: interrupted; no file is half-written\n"
        assert (running.returncode, out, err) == (130, "", expected)
