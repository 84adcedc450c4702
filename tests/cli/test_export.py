"""psd export: files that other programs open."""

import json

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest

import psd
from psd.export import suffixes
from support.cli_runner import fails, files, passes, process, three_by_three

EXACT = [suffix for suffix in suffixes() if suffix != ".pmtiles"]  # whose polygons are cut


@pytest.fixture(params=["EPSG:4326", "EPSG:3857"])
def release(tmp_path, request):
    path = tmp_path / "r.psd.parquet"
    three_by_three(request.param).save(path)
    return path


def read_vector(path):
    """Layer of cells of a file."""
    if path.suffix == ".parquet":
        return gpd.read_parquet(path)
    return gpd.read_file(path, layer="cells")


def reopened(path):
    """Table of an exported file, boxes as bounds."""
    if path.suffix in (".csv", ".xlsx"):
        return pd.read_csv(path) if path.suffix == ".csv" else pd.read_excel(path)
    table = read_vector(path).sort_values("cell", ignore_index=True)
    return table.drop(columns="geometry").join(
        table.bounds.set_axis(["west", "south", "east", "north"], axis=1)
    )


@pytest.mark.parametrize("cells", ["leaves", "all"])
@pytest.mark.parametrize("suffix", EXACT)
def test_reopened_cells_are_those_of_the_release(release, suffix, cells):
    out = release.parent / f"cells{suffix}"
    assert passes("export", release, out, "--cells", cells) == f"wrote {out}\n"
    loaded = psd.Release.load(release)
    expected, table = loaded.to_geopandas(cells), reopened(out)
    assert len(table) == (9 if cells == "leaves" else len(loaded.tree))
    # GeoJSON is in degrees whatever the CRS of the release, and rounded to seven decimals.
    shapes = expected.to_crs("EPSG:4326") if suffix == ".geojson" else expected
    close = 1e-6 if suffix == ".geojson" else 1e-12
    sides = table[["west", "south", "east", "north"]]
    np.testing.assert_allclose(sides, shapes.bounds, rtol=0, atol=close)
    for name in ("cell", "level", "estimate", "perturbation_error", "density"):
        np.testing.assert_allclose(table[name], expected[name], rtol=1e-6)


@pytest.mark.parametrize("suffix", [s for s in EXACT if s not in (".csv", ".geojson", ".xlsx")])
def test_crs_goes_with_the_cells(release, suffix):
    out = release.parent / f"cells{suffix}"
    passes("export", release, out)
    assert read_vector(out).crs == psd.Release.load(release).domain.crs


def test_geojson_is_rfc_7946(release):
    out = release.parent / "cells.geojson"
    passes("export", release, out)
    content = json.loads(out.read_text(encoding="utf-8"))
    assert content["type"] == "FeatureCollection"
    assert "crs" not in content


def test_leaves_are_the_default_and_the_ending_may_be_upper_case(release):
    passes("export", release, release.parent / "a.csv")
    passes("export", release, release.parent / "B.CSV", "--cells", "leaves")
    assert (release.parent / "a.csv").read_bytes() == (release.parent / "B.CSV").read_bytes()


@pytest.mark.parametrize(
    ("name", "code"),
    [
        pytest.param("cells.xyz", 2, id="unknown-ending"),
        pytest.param("cells", 2, id="no-ending"),
        pytest.param("there.csv", 6, id="exists"),
        pytest.param("folder.csv", 6, id="a-folder"),
        pytest.param("nowhere/cells.csv", 6, id="folder-missing"),
    ],
)
def test_targets_that_are_refused(tmp_path, name, code):
    three_by_three().save(tmp_path / "r")
    (tmp_path / "there.csv").write_text("mine")
    (tmp_path / "folder.csv").mkdir()
    before = files(tmp_path)
    assert name.split("/")[0] in fails(code, "export", tmp_path / "r", tmp_path / name)
    assert files(tmp_path) == before
    assert (tmp_path / "there.csv").read_text() == "mine"


def test_overwrite(tmp_path):
    three_by_three().save(tmp_path / "r")
    (tmp_path / "there.csv").write_text("old")
    passes("export", tmp_path / "r", tmp_path / "there.csv", "--overwrite")
    assert len(pd.read_csv(tmp_path / "there.csv")) == 9


def test_a_release_is_never_overwritten_by_its_own_export(tmp_path):
    release = tmp_path / "r.psd.parquet"
    three_by_three().save(release)
    content = release.read_bytes()
    assert "input" in fails(6, "export", release, release, "--overwrite")
    assert release.read_bytes() == content


def test_no_release(tmp_path):
    (tmp_path / "r").write_text("lon,lat\n1,2\n")
    fails(5, "export", tmp_path / "r", tmp_path / "cells.csv")
    assert files(tmp_path) == ["r"]


def test_a_writer_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def full(table, path):
        path.write_text("half a fi")
        raise OSError(28, "No space left on device")

    three_by_three().save(tmp_path / "r")
    monkeypatch.setattr("psd.export.csv.write", full)
    assert "No space left" in fails(6, "export", tmp_path / "r", tmp_path / "cells.csv")
    assert files(tmp_path) == ["r"]


def test_as_a_process(tmp_path):
    three_by_three().save(tmp_path / "r")
    ended = process("export", "r", "칸.gpkg", cwd=tmp_path)
    assert (ended.returncode, ended.stderr, ended.stdout) == (0, "", "wrote 칸.gpkg\n")
    assert len(gpd.read_file(tmp_path / "칸.gpkg", layer="cells")) == 9


@pytest.mark.parametrize(
    ("size", "rule"),
    [
        ((0, 5), "two integers above 0, the columns and the rows of the raster, got 0 and 5"),
        (
            (100_000, 100_000),
            "at most 16,777,216 cells of the raster, got 100,000 x 100,000; choose fewer",
        ),
    ],
)
def test_a_size_that_is_refused_is_named_with_its_rule(size, rule, tmp_path):
    three_by_three().save(tmp_path / "r.psd.parquet")
    line = ("export", tmp_path / "r.psd.parquet", tmp_path / "r.npy", "--size", *size)
    assert f"--size must be {rule}" in fails(2, *line)
