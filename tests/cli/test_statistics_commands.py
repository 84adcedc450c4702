"""psd query --joint and --nested, psd top, quantiles, difference and raster exports."""

import io
import json

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from support.cli_runner import cli, fails, files, passes, process, three_by_three, write_points
from support.releases import as_drawn

BOXES = [(-4, -4, -1, 5), (-1, -4, 5, 2), (-1, 2, 5, 5)]
SIDES = "west,south,east,north"


@pytest.fixture
def release(tmp_path):
    path = tmp_path / "r.psd.parquet"
    three_by_three().save(path)
    return path


@pytest.fixture
def other(tmp_path):
    path = tmp_path / "other.psd.parquet"
    domain = three_by_three().domain
    tree = psd.grid_tree(domain, 3)
    as_drawn(psd.Release.from_counts(tree, np.arange(9) + 40, "0.5", domain=domain)).save(path)
    return path


def boxes_args(boxes):
    return [part for box in boxes for part in ("--box", *box)]


def read_csv(text):
    return pd.read_csv(io.StringIO(text))


def test_joint_csv_is_the_library_s(release):
    args = ("query", release, *boxes_args(BOXES), "--joint", "--format", "csv")
    table = read_csv(passes(*args))
    joint = psd.Release.load(release).joint(BOXES)
    names = [f"covariance_{n}" for n in (1, 2, 3)]
    assert list(table.columns) == [*joint.answers.columns, *names]
    np.testing.assert_allclose(table[names], joint.covariance, rtol=1e-9, atol=1e-9)
    pd.testing.assert_frame_equal(table.drop(columns=names), joint.answers)


def test_joint_json_is_an_object(release):
    args = ("query", release, *boxes_args(BOXES), "--joint", "--format", "json")
    content = json.loads(passes(*args))
    joint = psd.Release.load(release).joint(BOXES)
    assert list(content) == ["answers", "covariance", "total", "joint_confidence_level"]
    np.testing.assert_allclose(content["covariance"], joint.covariance)
    assert content["joint_confidence_level"] == joint.level
    assert content["total"]["estimate"] == pytest.approx(22)
    assert content["total"]["error"] == pytest.approx(joint.total().error)
    assert [row["id"] for row in content["answers"]] == [1, 2, 3]
    again = (*boxes_args([BOXES[0]] * 2), "--joint", "--format", "json")
    assert json.loads(passes("query", release, *again))["total"] is None


def test_joint_table_has_correlations_and_a_total(release):
    lines = passes("query", release, *boxes_args(BOXES), "--joint").splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("correlation"))
    matrix = [line.split()[1:] for line in lines[start + 1 : start + 4]]
    assert [row[n] for n, row in enumerate(matrix)] == ["1.00"] * 3
    assert lines[-1].startswith("total 22.0, error")
    assert "joint" in " ".join(lines[:start])


def test_overlapping_regions_have_no_total_and_say_so(release):
    outcome = cli("query", release, *boxes_args([*BOXES, BOXES[1]]), "--joint")
    assert outcome.code == 0
    assert "total" not in outcome.out
    assert "no total: 2 and 4 overlap" in outcome.err


def test_many_regions_have_no_table_of_correlations(release):
    outcome = cli("query", release, *boxes_args([BOXES[0]] * 13), "--joint")
    assert "correlation" not in outcome.out
    assert "too many regions" in outcome.err


def test_joint_and_nested_geojson_and_no_boxes(release):
    for way in ("--joint", "--nested"):
        text = passes("query", release, "--box", *BOXES[0], way, "--format", "geojson")
        properties = json.loads(text)["features"][0]["properties"]
        assert ("joint_lower" in properties, "ring" in properties) == (
            way == "--joint",
            way == "--nested",
        )
        path = write_points(release.parent / f"none{way}.csv", [], SIDES)
        for form in ("csv", "json", "table"):
            passes("query", release, "--boxes", path, way, "--format", form)


def test_joint_columns_are_named_by_ids(release):
    shapes = gpd.GeoDataFrame(
        {"name": ["north", "남쪽"]},
        geometry=[shapely.box(-4, 0, 5, 5), shapely.box(-4, -4, 5, 0)],
        crs="EPSG:4326",
    )
    shapes.to_file(release.parent / "p.gpkg")
    args = ("query", release, "--polygons", release.parent / "p.gpkg", "--joint", "--format", "csv")
    assert list(read_csv(passes(*args)).columns[-2:]) == ["covariance_north", "covariance_남쪽"]


def test_nested_by_a_column_parent(release):
    rows = [("all", "", -4, -4, 5, 5), ("west", "all", -4, -4, -1, 5)]
    path = write_points(release.parent / "b.csv", rows, f"id,parent,{SIDES}")
    table = read_csv(passes("query", release, "--boxes", path, "--nested", "--format", "csv"))
    assert table.ring.sum() == pytest.approx(22)
    assert table.ring[1] == table.estimate[1]
    assert "ring" in passes("query", release, "--boxes", path, "--nested").split()
    assert "parent" in fails(
        2, "query", release, *boxes_args([(-4, -4, 5, 5), (-4, -4, -1, 5)]), "--nested"
    )


def test_one_way_at_a_time(release):
    fails(2, "query", release, *boxes_args(BOXES), "--nested", "--joint")
    fails(2, "top", release, "--size", 2, 2, "--boxes", "b.csv")
    fails(2, "difference", release, release)


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_top(release, form):
    text = passes("top", release, "-k", 2, "--format", form)
    expected = psd.Release.load(release).top(2)
    if form == "table":
        assert text.splitlines()[-2].split()[0] == "1"
        assert text.splitlines()[0].split()[-1] == "probability"
    else:
        table = read_csv(text) if form == "csv" else pd.DataFrame(json.loads(text))
        pd.testing.assert_frame_equal(table, expected, check_dtype=False)


def test_top_of_rasters_and_regions(release):
    table = read_csv(passes("top", release, "-k", 4, "--size", 2, 2, "--format", "csv"))
    assert table.estimate.sum() == pytest.approx(22)
    path = write_points(
        release.parent / "b.csv", [("a", *BOXES[0]), ("b", *BOXES[1])], f"id,{SIDES}"
    )
    found = read_csv(passes("top", release, "-k", 1, "--boxes", path, "--format", "csv"))
    assert found.id.tolist() == ["b"]
    shape = gpd.GeoDataFrame({"name": ["x"]}, geometry=[shapely.box(*BOXES[1])], crs="EPSG:4326")
    shape.to_file(release.parent / "p.gpkg")
    assert "x" in passes("top", release, "-k", 1, "--polygons", release.parent / "p.gpkg")
    assert "-k must be" in fails(2, "top", release, "-k", 5, "--size", 2, 2)


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_quantiles(release, form):
    args = ("quantiles", release, "--classes", 3, "--size", 3, 3, "--format", form)
    expected = psd.Release.load(release).quantiles(3, size=(3, 3))
    text = passes(*args)
    if form == "table":
        assert len(text.splitlines()) == 3
    else:
        table = read_csv(text) if form == "csv" else pd.DataFrame(json.loads(text))
        pd.testing.assert_frame_equal(table, expected)


@pytest.mark.parametrize("ratio", [False, True])
def test_difference(release, other, ratio):
    extra = ["--ratio"] if ratio else []
    args = ("difference", release, other, *boxes_args(BOXES), *extra)
    table = read_csv(passes(*args, "--format", "csv"))
    verb = psd.ratio if ratio else psd.difference
    expected = verb(psd.Release.load(release), psd.Release.load(other), BOXES)
    pd.testing.assert_frame_equal(table, expected)
    assert ("ratio" if ratio else "difference") in passes(*args).split()


def test_difference_refuses_other_domains(release):
    domain = psd.Domain(bounds=(-4, -4, 5, 6), lattice=(3, 3))
    tree = psd.grid_tree(domain, 3)
    there = release.parent / "b"
    as_drawn(psd.Release.from_counts(tree, np.ones(9, int), "1", domain=domain)).save(there)
    assert "bounds" in fails(3, "difference", release, there, *boxes_args(BOXES))
    assert "independent" in fails(2, "difference", release, release, *boxes_args(BOXES))


@pytest.mark.parametrize("command", ["top", "quantiles", "difference"])
def test_output_files(release, other, command):
    unnamed = release.with_name("r")  # its name says nothing of its format
    unnamed.write_bytes(release.read_bytes())
    args = [command, unnamed]
    args += [other, *boxes_args(BOXES)] if command == "difference" else []
    args += ["-k", 3] if command == "top" else []
    out = release.parent / "a.csv"
    assert passes(*args, "-o", out) == f"wrote {out}\n"
    assert out.read_text() == passes(*args, "--format", "csv")
    assert "exists" in fails(6, *args, "-o", out)
    passes(*args, "-o", out, "--overwrite")
    assert "format" in fails(2, *args, "-o", release.parent / "a.txt")
    assert "input" in fails(6, *args, "-o", unnamed, "--format", "csv", "--overwrite")
    assert "another format" in fails(2, *args, "-o", release, "--format", "csv", "--overwrite")
    unnamed.unlink()
    assert files(release.parent) == sorted(["a.csv", other.name, release.name])


def test_rasters(release):
    pytest.importorskip("rasterio")
    for name in ("a.tif", "a.npy"):
        out = release.parent / name
        assert passes("export", release, out, "--size", 4, 6) == f"wrote {out}\n"
    assert np.load(release.parent / "a.npy").shape == (3, 6, 4)
    assert "size" in fails(2, "export", release, release.parent / "a.csv", "--size", 4, 6)
    assert "leaves" in fails(2, "export", release, release.parent / "b.npy", "--cells", "all")


def test_as_a_process(release):
    ended = process("top", release, "-k", "2")
    assert (ended.returncode, ended.stderr) == (0, "")
