"""With the answers replayed on D and D', all that a successful build leaves is the same.

Files, standard output, standard error and log messages are compared byte by byte, so no exact
total, box, file name or row count can hide in metadata or messages.
"""

import logging

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from psd.noise import SecureNoise
from psd_cli.main import run

BOUNDS = ["--bounds", "126.4", "37", "127.6", "38"]

# D, a neighbour, and data sets that differ in size, place, order and malformed rows.
DATA = {
    "d.csv": "user_id,lon,lat\na,127.0,37.5\nb,127.1,37.6\n",
    "one-more-user.csv": "user_id,lon,lat\na,127.0,37.5\nb,127.1,37.6\nc,126.5,37.9\n",
    "a-secret-clinic.csv": "user_id,lon,lat\n"
    + "".join(f"u{i},126.{i},37.1\n" for i in range(40, 90)),
    "empty.csv": "user_id,lon,lat\n",
    "outside-and-missing.csv": "user_id,lon,lat\na,12.0,37.5\nb,,\nc,127.1,37.6\n",
}
UNITS = {
    "record": [],
    "user": ["--user", "user_id", "--max-contributions", "3"],
}


def artefacts(path, folder, arguments, capsys, caplog, bounds=BOUNDS):
    """Release bytes, exports, and everything that was said, of one build."""
    target = folder / "out.psd.parquet"
    with caplog.at_level(logging.DEBUG):
        code = run(["build", str(path), "-o", str(target), "--epsilon", "0.5", *bounds, *arguments])
    said = capsys.readouterr()
    assert code == 0, said.err
    messages = [record.getMessage() for record in caplog.records]
    return {
        "release": target.read_bytes(),
        "stdout": said.out.replace(str(folder), ""),
        "stderr": said.err,
        "log": messages,
        "files": sorted(entry.name for entry in folder.iterdir()),
    }


@pytest.fixture
def replayed(monkeypatch):
    """Every build gets the answers of the first one."""
    recorded, position = [], [0]

    def replaying(draw):
        def answer(*question):
            if position[0] == len(recorded):
                recorded.append(draw(*question))
            position[0] += 1
            return recorded[position[0] - 1]

        return answer

    for kind in ("count", "select", "exceeds"):
        monkeypatch.setattr(SecureNoise, kind, replaying(getattr(SecureNoise, kind)))
    return lambda: position.__setitem__(0, 0)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("method", psd.methods())
def test_builds_differ_in_nothing_but_the_answers(method, unit, tmp_path, replayed, capsys, caplog):
    left = {}
    for name, text in DATA.items():
        folder = tmp_path / f"of-{name}"
        folder.mkdir()
        (tmp_path / name).write_text(text)
        caplog.clear()
        replayed()
        arguments = ["--method", method, *UNITS[unit]]
        left[name] = artefacts(tmp_path / name, folder, arguments, capsys, caplog)
    first = left["d.csv"]
    for name, found in left.items():
        assert found == first, name
    assert first["files"] == ["out.psd.parquet"]
    assert first["stderr"] == ""


# The same rows at a time, and one day's rows of a user more.
OPTIONS = {
    "days": ["--user", "user_id", "--max-contributions", "1", "--per", "day", "--time", "at"],
    "users": ["--user", "user_id", "--count", "users"],
    "auto": ["--user", "user_id", "--max-contributions", "auto"],
    "boundary": ["--boundary", "plot.geojson"],
    "private bounds": ["--private-bounds", "0.2"],
}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("method", ["cascade"])
def test_builds_of_every_unit_and_place_do_not_either(
    method, option, tmp_path, replayed, capsys, caplog, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    plot = gpd.GeoSeries([shapely.box(126.5, 37.1, 127.5, 37.7)], crs="EPSG:4326")
    plot.to_file("plot.geojson")
    bounds = [] if option == "private bounds" else BOUNDS
    left = {}
    for name, text in DATA.items():
        head, *rows = text.splitlines()
        timed = [f"{head},at", *(f"{row},2024-01-{i % 9 + 1:02}" for i, row in enumerate(rows))]
        folder = tmp_path / f"of-{name}"
        folder.mkdir()
        (tmp_path / name).write_text("\n".join(timed) + "\n")
        caplog.clear()
        replayed()
        arguments = ["--method", method, *OPTIONS[option]]
        left[name] = artefacts(tmp_path / name, folder, arguments, capsys, caplog, bounds)
    first = left["d.csv"]
    for name, found in left.items():
        assert found == first, name
    assert b"plot" not in first["release"]


@pytest.mark.parametrize("density", ["uniform", "covariate"])
@pytest.mark.parametrize("method", ["cascade", "quadtree"])
def test_builds_with_a_covariate_do_not_either(method, density, tmp_path, replayed, capsys, caplog):
    np.save(tmp_path / "land.npy", np.array([[0, 1, 1], [0, 0, 7]]))
    left = {}
    for name, text in DATA.items():
        folder = tmp_path / f"of-{name}"
        folder.mkdir()
        (tmp_path / name).write_text(text)
        caplog.clear()
        replayed()
        arguments = ["--method", method, "--density", density]
        arguments += ["--covariate", str(tmp_path / "land.npy")]
        left[name] = artefacts(tmp_path / name, folder, arguments, capsys, caplog)
    first = left["d.csv"]
    for name, found in left.items():
        assert found == first, name
    assert b"psd-covariate" in first["release"]
    assert b"land" not in first["release"]


@pytest.mark.parametrize("method", psd.methods())
def test_exports_differ_in_nothing_but_the_answers(method, tmp_path, replayed, monkeypatch):
    # GeoPackage stamps the time of writing, which is no data.
    monkeypatch.setenv("OGR_CURRENT_DATE", "2000-01-01T00:00:00Z")
    written = {}
    for name in ("d.csv", "a-secret-clinic.csv"):
        (tmp_path / name).write_text(DATA[name])
        replayed()
        release = psd.build(
            tmp_path / name,
            domain=psd.Domain(bounds=(126.4, 37, 127.6, 38)),
            epsilon="0.5",
            method=method,
        )
        folder = tmp_path / f"of-{name}"
        folder.mkdir()
        for suffix in ("gpkg", "parquet", "geojson", "csv"):
            release.export(folder / f"cells.{suffix}")
        written[name] = {entry.name: entry.read_bytes() for entry in sorted(folder.iterdir())}
    first, second = written.values()
    assert first == second


def test_the_comparison_sees_a_leak(tmp_path, replayed, capsys, caplog, monkeypatch):
    """Planted: a build that says how many rows it kept."""
    import psd.publish

    original = psd.publish.count_rows

    def talkative(*arguments, **options):
        counts = original(*arguments, **options)
        logging.getLogger("psd").info("kept %d rows", int(np.sum(counts.tally.counts)))
        return counts

    monkeypatch.setattr(psd.publish, "count_rows", talkative)
    left = []
    for name in ("d.csv", "one-more-user.csv"):
        folder = tmp_path / f"of-{name}"
        folder.mkdir()
        (tmp_path / name).write_text(DATA[name])
        caplog.clear()
        replayed()
        left.append(artefacts(tmp_path / name, folder, [], capsys, caplog))
    assert left[0] != left[1]


TIMED = {
    "d.csv": "user_id,lon,lat,time\na,127.0,37.5,2024-01-05\nb,127.1,37.6,2024-03-05\n",
    "one-more-user.csv": "user_id,lon,lat,time\na,127.0,37.5,2024-01-05\nb,127.1,37.6,2024-03-05\n"
    + "".join(f"c,127.1,37.6,2024-0{month}-07\n" for month in range(1, 6)),
    "a-secret-year.csv": "user_id,lon,lat,time\n"
    + "".join(f"u{i},126.5,37.1,1997-11-{i:02}T08:00\n" for i in range(1, 25)),
    "empty.csv": "user_id,lon,lat,time\n",
}
SLICED = ["--time", "time", "--by", "month", "--slices", "2024-01..2024-03"]


@pytest.mark.parametrize("per", [[], ["--per", "slice"]])
def test_series_differ_in_nothing_but_the_answers(per, tmp_path, replayed, capsys, caplog):
    left = {}
    for name, text in TIMED.items():
        folder = tmp_path / f"of-{name}"
        folder.mkdir()
        (tmp_path / name).write_text(text)
        caplog.clear()
        replayed()
        arguments = ["--method", "adaptive-grid", *SLICED, *UNITS["user"], *per]
        left[name] = artefacts(tmp_path / name, folder, arguments, capsys, caplog)
    first = left["d.csv"]
    for name, found in left.items():
        assert found == first, name
    assert b"2024-03" in first["release"]


@pytest.mark.parametrize("how", [[], ["--carry-users"], ["--residue", "0/2"]])
def test_builds_of_tallies_say_nothing_of_them(how, tmp_path, replayed, capsys, caplog):
    """Neither keys, ids and digests nor names and numbers of rows get from tallies to a release."""
    left, key = {}, ["--key", str(tmp_path / "key")]
    for name, text in DATA.items():
        folder = tmp_path / f"of-{name}"
        folder.mkdir()
        (tmp_path / name).write_text(text)
        tally = str(tmp_path / f"{name}.tally")
        words = ["tally", str(tmp_path / name), "-o", tally, *BOUNDS, *UNITS["user"], *key, *how]
        assert run(words) == 0
        target = folder / "out.psd.parquet"
        capsys.readouterr()
        caplog.clear()
        replayed()
        assert run(["build", tally, "-o", str(target), "--epsilon", "0.5"]) == 0
        said = capsys.readouterr()
        left[name] = (target.read_bytes(), said.out.replace(str(folder), ""), said.err)
        assert not caplog.records
    first = left["d.csv"]
    for name, found in left.items():
        assert found == first, name
    assert not {entry.name for entry in (tmp_path / "of-d.csv").iterdir()} - {"out.psd.parquet"}
