"""Synthetic points as tables and files: formats, columns, seeds, sizes, and what is refused."""

import json
import subprocess
import sys

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.errors import ParameterError, WriteError
from psd.export._views import MOST_HELD
from psd.regions.polygon_hierarchy import hierarchy_from_polygons
from psd.release.post_processing import PostProcessing
from support.local import campaign, local_release, places
from support.releases import as_drawn, changed
from support.trees import grid_release

COUNTS = [[10, 20, 30], [40, 0, -60], [70, 80, 90]]
READ = {
    ".parquet": gpd.read_parquet,
    ".gpkg": lambda path: gpd.read_file(path, layer="points"),
    ".fgb": gpd.read_file,
    ".geojson": gpd.read_file,
    # By Python's floats: before version 3, pandas is off by the last digit.
    ".csv": lambda path: pd.read_csv(path, dtype=dict.fromkeys("xy", str)).astype(
        dict.fromkeys("xy", float)
    ),
}
NOTE = "no people"


def series(**more):
    days = psd.TimeSlices.parse("day", "2026-03-01..2026-03-03")
    counts = [np.full((3, 3), 9), np.zeros((3, 3), int), [[5, 1, 7], [0, 0, 0], [3, 0, 0]]]
    return psd.Release.from_slices(days, [grid_release(each, **more) for each in counts])


def by_ward(level="borough"):
    boxes = [shapely.box(x, y, x + 2, y + 2) for y in (0, 2) for x in (0, 2)]
    table = gpd.GeoDataFrame({"ward": ["=a", "b", "c", "d"], level: list("mmnn")}, geometry=boxes)
    domain = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(64, 64))
    regions = hierarchy_from_polygons(
        table.set_crs("EPSG:3857"), domain, ids="ward", parents=[level]
    )
    x, y = np.random.default_rng(1).uniform(0, 4, (2, 400))
    return psd.build(
        pd.DataFrame({"x": x, "y": y}), regions=regions, epsilon=3, method="cascade", x="x", y="y"
    )


KINDS = {
    "given": lambda: grid_release(COUNTS),
    "drawn": lambda: as_drawn(grid_release(COUNTS)),
    "series": series,
    "regions": by_ward,
    "empty": lambda: grid_release([[-9, -9], [-9, -9]]),
    "empty series": lambda: changed_series(),
}


def changed_series():
    days = psd.TimeSlices.parse("day", "2026-03-01..2026-03-02")
    return psd.Release.from_slices(days, [grid_release([[-9, -9], [-9, -9]])] * 2)


@pytest.mark.parametrize("ending", READ)
@pytest.mark.parametrize("kind", KINDS)
def test_every_format_holds_the_points(kind, ending, tmp_path):
    release, path = KINDS[kind](), tmp_path / f"p{ending}"
    points = release.to_points(seed=5)
    assert release.export(path, points=True, seed=5) == len(points)
    found = READ[ending](path)
    names = {
        "given": ["release_source"],
        "drawn": [],
        "series": ["slice", "release_source"],
        "regions": ["borough", "ward"],
        "empty": ["release_source"],
        "empty series": ["slice", "release_source"],
    }[kind]
    assert list(points.columns) == [*names, "geometry"]
    if ending == ".csv":
        assert list(found.columns) == [*names, "x", "y"]
        for name in names:  # a spreadsheet would run "=a"
            marked = [f"'{text}" if text[:1] == "=" else text for text in points[name]]
            assert found[name].tolist() == marked
        xy = found[["x", "y"]].to_numpy()
    else:
        has_columns = len(points) > 0 or ending != ".geojson"  # which has columns by features
        assert set(found.columns) == {*(names if has_columns else []), "geometry"}
        assert found.crs == ("EPSG:4326" if ending == ".geojson" else points.crs)
        there = points.to_crs(found.crs)
        xy, points = shapely.get_coordinates(found.geometry), there
    expected = shapely.get_coordinates(points.geometry)
    near = 1e-6 if ending == ".geojson" else 0.0
    assert len(xy) == len(expected)
    if len(expected):
        assert np.abs(xy - expected).max() <= near
        for name in names:
            texts = found[name].astype(str).str.removeprefix("'").tolist()
            assert texts == points[name].tolist()


@pytest.mark.parametrize("ending", [".parquet", ".gpkg", ".fgb", ".geojson"])
def test_the_file_says_what_points_are(ending, tmp_path):
    pyogrio = pytest.importorskip("pyogrio")
    release, path = grid_release(COUNTS), tmp_path / f"p{ending}"
    release.export(path, points=True, n=50)
    if ending == ".parquet":
        stated = str(gpd.read_parquet(path).attrs)
        assert gpd.read_parquet(path).attrs["epsilon"] == "1"
    elif ending == ".geojson":
        stated = json.loads(path.read_text())["metadata"]["points"]
    else:
        stated = str(pyogrio.read_info(path, layer="points")["layer_metadata"])
    for words in (NOTE, "error of drawing", "psd query alone"):
        assert words in stated
    assert release.to_points(5).attrs["digest"] == release.digest


def test_slices_have_their_own_numbers():
    release = series()
    points = release.to_points()
    found = points["slice"].value_counts()
    for name in release:
        one = release[name]
        assert abs(found.get(name, 0) - one.total) < 1
        mine = points[points["slice"] == name].geometry
        for x in range(3):
            inside = int(((mine.x >= x) & (mine.x < x + 1)).sum())
            assert abs(inside - one.query((x, 0, x + 1, 3)).table["estimate"][0]) < 3
    assert points["slice"].is_monotonic_increasing
    assert len(release.to_points(1_000)) == 1_000
    some = release.to_points(10_000)["slice"].value_counts() / 10_000
    totals = np.array([release[name].total for name in release])
    shares = some.reindex(list(release), fill_value=0).to_numpy()
    np.testing.assert_allclose(shares, totals / totals.sum(), atol=2e-4)


def test_seeds_repeat_points_and_others_do_not(tmp_path):
    release = grid_release(COUNTS)
    one, again, other = (release.to_points(seed=seed) for seed in (7, 7, 8))
    assert one.geometry.equals(again.geometry)
    assert not one.geometry.equals(other.geometry)
    assert len(one) == len(other)
    fresh = [release.to_points().geometry for _ in range(2)]
    assert not fresh[0].equals(fresh[1])
    # The numbers of another machine.
    first = psd.Release(release.record).to_points(3, seed=2024).geometry
    assert [(x.hex(), y.hex()) for x, y in zip(first.x, first.y, strict=True)] == GOLDEN


GOLDEN = [
    ("0x1.724694de3141bp-6", "0x1.b1970474657a8p+0"),
    ("0x1.9d8a13ada46f2p-1", "0x1.37a56d8559487p+1"),
    ("0x1.77a5c94f05c55p+1", "0x1.02f2d71dc6aebp+1"),
]

ALONE = """
import sys, psd
psd.load("r.psd.parquet").export("p.csv", points=True, seed=4)
private = ("psd.curator", "psd.ingest", "psd.mechanisms", "psd.publish", "psd.ledger")
sys.exit(str([name for name in sys.modules if name.startswith(private)] or ""))
"""


def test_points_need_the_release_file_alone(tmp_path):
    release = by_ward()
    release.save(tmp_path / "r.psd.parquet")
    done = subprocess.run(
        [sys.executable, "-B", "-c", ALONE], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stderr.strip() in ("", "[]")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.csv", "r.psd.parquet"]
    release.export(tmp_path / "again.csv", points=True, seed=4)
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "p.csv").read_bytes()


def test_points_in_another_crs(tmp_path):
    release = grid_release(np.array(COUNTS) * 10)
    release.export(tmp_path / "a.csv", points=True, seed=1)
    release.export(tmp_path / "b.csv", points=True, seed=1, crs="EPSG:4326")
    a, b = (pd.read_csv(tmp_path / name) for name in ("a.csv", "b.csv"))
    moved = gpd.GeoSeries(gpd.points_from_xy(a.x, a.y), crs="EPSG:3857").to_crs("EPSG:4326")
    np.testing.assert_allclose(moved.x, b.x, rtol=1e-9)
    with pytest.raises(ParameterError, match=r"crs must be EPSG:4326, or left out, if output ends"):
        release.export(tmp_path / "a.geojson", points=True, crs="EPSG:3857")


def test_signed_views_and_local_releases_have_points():
    release = grid_release(COUNTS).replace(post_processing=PostProcessing(estimate="signed"))
    points = release.to_points()
    projected = release.replace(post_processing=PostProcessing(estimate="least-squares"))
    assert abs(len(points) - projected.total) < 1
    assert not ((points.geometry.x > 2) & (points.geometry.y.between(1, 2))).any()
    local = local_release(campaign(), *places(2_000))
    local = local.replace(post_processing=PostProcessing(estimate="signed"))
    found = local.to_points()
    assert abs(len(found) - local.total) < 1
    assert (found["release_source"] == "local").all()


REFUSED = [
    ({"n": 0}, "n must be between 1 and 1000000000, got 0"),
    ({"n": -5}, "n must be between"),
    ({"n": 2.5}, "n must be an integer, got '2.5'"),
    ({"n": True}, "n must be an integer"),
    ({"n": 10**10}, "n must be between"),
    ({"seed": -1}, "seed must be between"),
    ({"seed": "x"}, "seed must be an integer"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_bad_arguments_are_refused(arguments, message, tmp_path):
    release = grid_release(COUNTS)
    for call in (
        release.to_points,
        lambda **a: release.export(tmp_path / "p.csv", points=True, **a),
    ):
        with pytest.raises(ParameterError) as refused:
            call(**arguments)
        assert message in str(refused.value)
        assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_arguments_of_cells_and_of_points_are_told_apart(tmp_path):
    release = grid_release(COUNTS)
    for name, value in {
        "cells": "all",
        "level": 1,
        "size": (3, 3),
        "band": "count",
        "unreliable": "drop",
        "threshold": 0.2,
        "table": "t",
    }.items():
        with pytest.raises(ParameterError, match=f"{name} must be left out with points, got"):
            release.export(tmp_path / "p.csv", points=True, **{name: value})
    for name in ("n", "seed"):
        with pytest.raises(ParameterError, match=f"{name} must be left out without points, got 5"):
            release.export(tmp_path / "p.csv", **{name: 5})


def test_more_points_than_memory_holds_are_refused():
    with pytest.raises(ParameterError) as refused:
        grid_release(COUNTS).to_points(10**9)
    assert str(refused.value) == (
        "n must be at most 10,000,000 for a table in memory, got 1,000,000,000 points; "
        "export writes them to a file, batch by batch"
    )
    many = grid_release([[MOST_HELD, 5], [5, 5]])
    with pytest.raises(ParameterError, match="n must be given, and at most 10,000,000"):
        many.to_points()
    with pytest.raises(ParameterError, match="n must be given, and at most 1,000,000,000 for a f"):
        grid_release([[2 * 10**9, 5], [5, 5]]).export("never.csv", points=True)


@pytest.mark.parametrize("count", [2**53, 2**62])  # 2^62 twice is no int64
def test_more_points_than_floats_count_are_refused(count, tmp_path):
    release = grid_release([[count, 5], [5, count]])
    for write in (release.to_points, lambda: release.export(tmp_path / "p.csv", points=True)):
        with pytest.raises(ParameterError, match=r"n must be given where .* 2\^53 records"):
            write()
    assert list(tmp_path.iterdir()) == []
    assert len(release.to_points(50)) == 50


def test_what_has_no_points_is_refused(tmp_path):
    release = grid_release(COUNTS)
    for name in ("p.tif", "p.npy", "p.xlsx", "p.pmtiles", "postgresql://ann:secret@host/city"):
        with pytest.raises(
            ParameterError, match=r"output must end in one of \.csv, \.fgb"
        ) as refused:
            release.export(tmp_path / name if "//" not in name else name, points=True)
        assert "secret" not in str(refused.value)
    with pytest.raises(
        ParameterError, match=r"n must be left out, got 5; .* estimate of 0 records"
    ):
        grid_release([[-9, -9], [-9, -9]]).to_points(5)
    (tmp_path / "there.csv").write_text("mine")
    with pytest.raises(WriteError, match="exists"):
        release.export(tmp_path / "there.csv", points=True)
    with pytest.raises(ParameterError, match="no noise and is not saved or exported"):
        changed(release, source="replay", method="grid").export(tmp_path / "p.csv", points=True)
    with pytest.raises(ParameterError, match="levels must have other names than slice"):
        by_ward("slice").to_points()


PEAK = """
import sys, psd
psd.load(sys.argv[1]).export(sys.argv[2], points=True, n=int(sys.argv[3]), seed=1)
status = dict(line.split(":") for line in open("/proc/self/status"))
print(status["VmHWM"].split()[0])
"""


@pytest.mark.deep
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("ending", [".parquet", ".csv", ".fgb"])
def test_memory_does_not_grow_with_points(ending, tmp_path):
    path = tmp_path / "r.psd.parquet"
    grid_release(np.arange(400).reshape(20, 20)).save(path)
    peaks = []
    for number in (600_000, 2_400_000):
        words = [path, tmp_path / f"{number}{ending}", number]
        done = subprocess.run(
            [sys.executable, "-B", "-c", PEAK, *map(str, words)], capture_output=True, text=True
        )
        peaks.append(int(done.stdout) / 1024)
    assert peaks[1] < peaks[0] + 120, peaks  # a table of them all takes 360 MB more
