"""Cells are written part by part: the files are those of whole tables, in a part of the memory."""

import resource
import sqlite3
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest

import psd
from psd.export import _cells, _formats
from support.trees import grid_release

pyogrio = pytest.importorskip("pyogrio")

COUNTS = np.arange(49).reshape(7, 7) ** 2


def styles_of(path):
    """Styles of a GeoPackage."""
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT styleName, styleQML FROM layer_styles").fetchall()


@pytest.mark.parametrize("ending", [".csv", ".fgb", ".gpkg"])
@pytest.mark.parametrize(
    "choice", [{}, {"cells": "all"}, {"unreliable": "drop", "threshold": 0.01}]
)
def test_files_of_parts_are_those_of_whole_tables(tmp_path, monkeypatch, ending, choice):
    release = grid_release(COUNTS)
    monkeypatch.setenv("OGR_CURRENT_DATE", "2026-01-01T00:00:00.000Z")
    monkeypatch.setattr(_cells, "_ROWS", 4)
    in_parts, whole = tmp_path / f"parts{ending}", tmp_path / f"whole{ending}"
    dropped = release.export(in_parts, **choice)
    monkeypatch.delattr(_formats.find_format(in_parts), "write_parts")
    if ending == ".csv":  # which writes whole tables as one part
        monkeypatch.undo()
    assert release.export(whole, **choice) == dropped
    assert (dropped > 4) == ("unreliable" in choice)
    if ending == ".gpkg":
        assert styles_of(in_parts) == styles_of(whole)
        assert pyogrio.read_info(in_parts, layer="cells")["layer_metadata"]
    if ending != ".csv":
        tables = [pyogrio.read_dataframe(path, layer="cells") for path in (in_parts, whole)]
        assert tables[0].equals(tables[1])
        assert tables[0].crs == tables[1].crs
    if ending != ".gpkg":
        assert in_parts.read_bytes() == whole.read_bytes()


def run(code, *arguments):
    """Result of a program."""
    return subprocess.run(
        [sys.executable, "-B", "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Release of 160,000 leaves."""
    path = tmp_path_factory.mktemp("large") / "r.psd.parquet"
    domain = psd.Domain(bounds=(0, 0, 400, 400), crs="EPSG:3857", lattice=(400, 400))
    counts = np.arange(400**2) % 97
    tree = psd.decompositions.grid_tree(domain, 400)
    psd.Release.from_counts(tree, counts, 1.0, domain=domain).save(path)
    return path


FULL = """
import resource, sys, psd
resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
psd.load(sys.argv[1]).export(sys.argv[2])
"""


@pytest.mark.deep
@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="no limit on the size of a file")
@pytest.mark.parametrize("ending", [".csv", ".fgb", ".gpkg"])
def test_a_full_disk_is_noticed(large, tmp_path, ending):
    outcome = run(FULL, large, tmp_path / f"cells{ending}")
    assert outcome.returncode == 1
    assert "WriteError: cannot write" in outcome.stderr
    assert list(tmp_path.iterdir()) == []


PEAK = """
import sys, psd
from psd.export import _formats
release = psd.load(sys.argv[1])
assert release.index.fit is not None
if sys.argv[3] == "whole":
    del _formats.find_format(sys.argv[2]).write_parts
release.export(sys.argv[2])
# Not ru_maxrss, which begins with the memory of the process that starts this one.
status = dict(line.split(":") for line in open("/proc/self/status"))
print(status["VmHWM"].split()[0])
"""


@pytest.mark.deep
@pytest.mark.parametrize("ending", [".fgb", ".gpkg"])
def test_parts_take_less_memory_than_a_table(large, tmp_path, ending):
    peaks = [
        int(run(PEAK, large, tmp_path / f"{way}{ending}", way).stdout) for way in ("parts", "whole")
    ]
    # Of 160,000 leaves: about 245 MB beside 450; most of the former is the fit and its imports.
    assert peaks[0] < 0.7 * peaks[1], peaks
