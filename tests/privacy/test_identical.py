"""With the answers replayed on D and D', all that a successful build leaves is the same.

Every command runs through its entry point, as on a terminal. Files and their permissions, standard
output, standard error, what progress shows and all log records are compared byte by byte, so
no exact total, box, file name or row count can hide in metadata or messages.
"""

import contextlib
import io
import json
import logging
import re

import geopandas as gpd
import numpy as np
import pyarrow.parquet as pq
import pytest
import rich.progress
import shapely

import psd
from psd_cli import main as entry
from support.cli_runner import REQUEST_WARNINGS, Terminal
from support.privacy.replay import answers_of_the_first

PLACE = ["--bounds", "126.4", "37", "127.6", "38"]

# D, a neighbour, and data sets that differ in size, place, time, order and malformed rows.
DATA = {
    "d.csv": "a,127.0,37.5,2024-01-05\nb,127.1,37.6,2024-03-05\n",
    "one-more-user.csv": "a,127.0,37.5,2024-01-05\nb,127.1,37.6,2024-03-05\n"
    + "".join(f"c,127.1,37.6,2024-0{month}-07\n" for month in range(1, 6)),
    "a-secret-clinic.csv": "".join(
        f"u{i},126.{i},37.1,1997-11-{i % 28 + 1:02}T08:00\n" for i in range(40, 90)
    ),
    "empty.csv": "",
    "outside-and-missing.csv": "a,12.0,37.5,2024-01-05\nb,,,2024-01-06\nc,127.1,37.6,2024-01-07\n",
}
NEAR = ("d.csv", "one-more-user.csv", "a-secret-clinic.csv")
FEW = ("d.csv", "one-more-user.csv", "a-secret-clinic.csv", "empty.csv")

# So that trees are small where nothing follows from their size.
SMALL = {
    "quadtree": ["--set", "height=3"],
    "kd-cell": ["--set", "height=4", "--set", "resolution=16"],
    "kd-hybrid": ["--set", "height=4", "--set", "private_levels=2"],
    "kd-standard": ["--set", "height=4"],
}

USER = ["--user", "user_id", "--max-contributions"]
SLICED = ["--time", "at", "--slices", "2024-01..2024-03"]
UNITS = {
    "record": ["--per", "record"],
    "user": [*USER, "3"],
    "users": ["--user", "user_id", "--count", "users"],
    "days": [*USER, "1", "--per", "day", "--time", "at"],
}
WAYS = {
    "auto bound": [*PLACE, *USER, "auto"],
    "boundary": [*PLACE, "--boundary", "../plot.geojson"],
    "private bounds": ["--bounds", "private", "--bounds-share", "0.2"],
    "private bounds, rounded": ["--bounds", "private", "--coordinate-resolution", "0.01"],
    "rounded coordinates": [*PLACE, "--coordinate-resolution", "0.01"],
    "covariate": [*PLACE, "--covariate", "../land.npy"],
    "covariate, not as density": [
        *PLACE, "--covariate", "../land.npy", "--density", "uniform", *USER, "2",
    ],
    "series": [*PLACE, *SLICED, *USER, "2"],
    "series of records": [*PLACE, *SLICED],
    "some records": [*PLACE, *USER, "2", "--where", "NOT user_id = 'c' AND at < DATE '2024-03-01'"],
    "bound per slice": [*PLACE, *SLICED, *USER, "2", "--per", "slice"],
}  # fmt: skip


class Stages(contextlib.nullcontext):
    """What stands in for the line of progress: notes all that it would show but the clock."""

    def __init__(self, notes):
        super().__init__(self)
        self.notes = notes

    def update(self, task, **how):
        self.notes.append((task, sorted(how.items())))

    add_task = update


@pytest.fixture
def world(tmp_path, monkeypatch, caplog):
    """The data sets, public inputs beside them, and a way to build from each in its own folder."""
    replayed = answers_of_the_first(monkeypatch)
    (tmp_path / "private").mkdir()
    for name, rows in DATA.items():
        (tmp_path / "private" / name).write_text(f"user_id,lon,lat,at\n{rows}")
    np.save(tmp_path / "land.npy", np.array([[0, 1, 1], [0, 0, 7]]))
    plot = gpd.GeoSeries([shapely.box(126.5, 37.1, 127.5, 37.7)], crs="EPSG:4326")
    plot.to_file(tmp_path / "plot.geojson")
    monkeypatch.setattr(entry.signal, "signal", lambda *_: None)
    monkeypatch.setenv("OGR_CURRENT_DATE", "2000-01-01T00:00:00Z")  # or GeoPackage says when

    def left_by(name, commands):
        folder = tmp_path / f"of-{name}"
        folder.mkdir()
        monkeypatch.chdir(folder)
        shown = []
        monkeypatch.setattr(rich.progress, "Progress", lambda *_, **__: Stages(shown))
        caplog.clear()
        with caplog.at_level(logging.DEBUG), replayed():
            said = [run(command) for command in commands]
        logged = [(one.name, one.levelno, one.getMessage()) for one in caplog.records]
        return {"said": said, "shown": shown, "logged": logged, "files": contents(folder)}

    return left_by


def run(words):
    """What a command says, through the entry point, on a terminal; it has to succeed."""
    out, err = io.StringIO(), Terminal()
    said = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
    with said[0], said[1], pytest.raises(SystemExit) as ended:
        entry.main(words)
    assert ended.value.code == 0, err.getvalue()
    return out.getvalue(), err.getvalue()


def contents(folder):
    """Every file, hidden ones too, with its permissions."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def build(name, words):
    return ["build", f"../private/{name}", "-o", "r.psd.parquet", "--epsilon", "0.5", *words]


def all_left(world, words, names=FEW, then=()):
    """What builds from each data set leave, and commands after them."""
    return {name: world(name, [build(name, words), *then]) for name in names}


def same(left):
    """Whether all are as the first; names the one that is not."""
    first = next(iter(left.values()))
    for name, found in left.items():
        differing = [kind for kind in first if found[kind] != first[kind]]
        assert not differing, f"{differing} of {name} are not as of the first data set"
    return first


DEEP = pytest.mark.deep
FAST = ("grid", "kd-cell", "privtree")  # that count, select and grow shapes
METHODS = [name if name in FAST else pytest.param(name, marks=DEEP) for name in psd.methods()]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("method", METHODS)
def test_builds_differ_in_nothing_but_the_answers(method, unit, world):
    words = ["--method", method, *SMALL.get(method, []), *PLACE, *UNITS[unit]]
    first = same(all_left(world, words, DATA if unit == "record" else FEW))
    assert list(first["files"]) == ["r.psd.parquet"]
    assert REQUEST_WARNINGS.sub("", first["said"][0][1]).strip() == ""
    stages = [dict(how).get("description", task) for task, how in first["shown"]]
    assert stages == ["starting", "reading", "counting with noise", "writing"]


@DEEP
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method", psd.methods())
def test_builds_of_every_place_and_slice_do_not_either(method, way, world):
    words = ["--method", method, *SMALL.get(method, []), *WAYS[way]]
    first = same(all_left(world, words, NEAR))
    content = first["files"]["r.psd.parquet"][1]
    assert not any(name in content for name in (b"plot", b"land", b"private/", b".csv"))
    assert (b"2024-03" in content) == ("--slices" in words)
    assert (b"psd-covariate" in content) == (way.split(",")[0] in ("boundary", "covariate"))


@DEEP
@pytest.mark.parametrize("method", psd.methods())
def test_what_is_made_of_releases_does_not_either(method, world):
    suffixes, release = ("gpkg", "parquet", "geojson", "csv"), "r.psd.parquet"
    then = [["export", release, f"cells.{suffix}"] for suffix in suffixes]
    then += [["export", release, "cells.npy", "--size", "4", "4"], ["info", release]]
    then += [
        ["sign", "check", release],
        ["query", release, "--box", "126.9", "37.4", "127.2", "37.7"],
    ]
    words = ["--method", method, *SMALL.get(method, []), *PLACE]
    # Libraries log what they look up for the first time in a process, such as a CRS.
    world("once", [build("d.csv", words), *then])
    first = same(all_left(world, words, ("d.csv", "a-secret-clinic.csv"), then))
    assert len(first["files"]) == 2 + len(suffixes)


@DEEP
@pytest.mark.parametrize("how", [[], ["--carry-users"]])
def test_builds_of_tallies_say_nothing_of_them(how, world, tmp_path):
    """Neither keys, ids and digests nor names and numbers of rows get from tallies to a release."""
    tallies, key = {}, ["--key", str(tmp_path / "private" / "key")]
    for name in DATA:
        source = str(tmp_path / "private" / name)
        tallies[name] = f"{source}.tally"
        run(["tally", source, "-o", tallies[name], *PLACE, *USER, "3", *key, *how])
    words = ["-o", "r.psd.parquet", "--epsilon", "0.5"]
    left = {name: world(name, [["build", tally, *words]]) for name, tally in tallies.items()}
    assert list(same(left)["files"]) == ["r.psd.parquet"]


@DEEP
def test_releases_that_a_ledger_paid_differ_in_the_id_of_the_charge_alone(world, tmp_path):
    ledger = ["--ledger", "../city.ledger", "--dataset", "rows"]
    run(["ledger", "create", str(tmp_path / "city.ledger")])
    run(["ledger", "register", str(tmp_path / "city.ledger"), "rows", "--budget", "10"])
    left = all_left(world, ["--method", "grid", *PLACE, *ledger])
    for number, found in enumerate(left.values()):
        mode, content = found["files"]["r.psd.parquet"]
        footer = pq.ParquetFile(io.BytesIO(content)).metadata.metadata
        charge = json.loads(footer[b"psd"])["parameters"]["charge"]
        for value in (charge.encode(), footer[b"psd-digest"]):  # which follows from the id
            assert content.count(value) == 1
            content = content.replace(value, b"0" * len(value))
        found["files"]["r.psd.parquet"] = (mode, content)
        # Each build adds two entries; their hash covers the random id of the charge.
        head = re.compile(rf"^ledger head {4 + 2 * number} [0-9a-f]{{64}}$", re.M)
        assert sum(len(head.findall(out)) for out, _ in found["said"]) == 1
        found["said"] = [(head.sub("", out), err) for out, err in found["said"]]
    assert list(same(left)["files"]) == ["r.psd.parquet"]
