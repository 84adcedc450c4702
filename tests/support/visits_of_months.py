"""Visits in three months, a series of them and a single release, for commands of slices."""

import os

import numpy as np
import pandas as pd
import pytest

import psd
from support.cli_runner import passes

BOUNDS = "--bounds 0 0 8 8 --crs EPSG:3857"
TIMES = "--time time --time-zone Asia/Seoul"
SLICES = "--slices 2024-01,2024-02..2024-03"
USER = "--user user --max-contributions 2"
LIMIT = "--user user --max-contributions 3 --max-per-slice 1"
TREE = "--method quadtree --set budget=leaf --set height=3"
SURE = f"--epsilon 1000 {TREE}"
MONTHS = ["2024-01", "2024-02", "2024-03"]


def prepare(folder):
    """Visits in three months and after them, some at the very end of a month in Seoul; releases."""
    rng = np.random.default_rng(2)
    lines = [
        f"u{u},{x:.3f},{y:.3f},{np.datetime64('2024-01-31T15:00', 's') + np.timedelta64(t, 's')}Z"
        for u, x, y, t in zip(
            rng.integers(0, 9, 300),
            rng.uniform(0, 8, 300),
            rng.uniform(0, 8, 300),
            rng.choice([-1, 0, 40 * 86_400, 80 * 86_400], 300),
            strict=True,
        )
    ]
    (folder / "v.csv").write_text("user,lon,lat,time\n" + "\n".join(lines) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        told = build(SURE)
        assert told == "wrote s: quadtree, 3 slices, epsilon 1000 per record\n"
        passes(f"build v.csv -o one {BOUNDS} {SURE}")


def link(prepared, here):
    """Links to the visits, the series s and the single release one, in a folder of its own."""
    for name in ("v.csv", "s", "one"):
        os.symlink(prepared / name, here / name)
    (here / "boxes.csv").write_text("west,south,east,north\n0,0,8,8\n")


def build(options, output="s"):
    return passes(f"build v.csv -o {output} {BOUNDS} {TIMES} {SLICES} {options}")


def built(options, output="made"):
    """What a build says, and its series."""
    return build(options, output), psd.load(output)


def truth():
    """Rows of each slice: midnight in Seoul is 15:00 UTC the day before."""
    rows = pd.read_csv("v.csv")
    local = pd.to_datetime(rows["time"]).dt.tz_convert("Asia/Seoul").dt.strftime("%Y-%m")
    return {name: int((local == name).sum()) for name in MONTHS}
