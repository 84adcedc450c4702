"""psd export: files that other programs open."""

import json

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest

from psd.export import suffixes
from support.cli_runner import check_refusals, fails, files, passes, three_by_three

EXACT = [suffix for suffix in suffixes() if suffix != ".pmtiles"]  # whose polygons are cut


def read_vector(path):
    """Layer of cells of a file."""
    return gpd.read_parquet(path) if "parquet" in path else gpd.read_file(path, layer="cells")


def reopened(path):
    """Table of an exported file, boxes as bounds."""
    if path.endswith((".csv", ".xlsx")):
        return pd.read_csv(path) if path.endswith(".csv") else pd.read_excel(path)
    table = read_vector(path).sort_values("cell", ignore_index=True)
    return table.drop(columns="geometry").join(
        table.bounds.set_axis(["west", "south", "east", "north"], axis=1)
    )


@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:3857"])
@pytest.mark.parametrize("suffix", EXACT)
def test_reopened_cells_are_those_of_the_release(here, suffix, crs, subtests):
    loaded = three_by_three(crs)
    loaded.save("r")
    out = f"cells{suffix}"
    for cells, number in (("leaves", 9), ("all", len(loaded.tree))):
        with subtests.test(cells):
            assert passes("export r", out, "--cells", cells, "--overwrite") == f"wrote {out}\n"
            expected, table = loaded.to_geopandas(cells), reopened(out)
            assert len(table) == number
            # GeoJSON is in degrees whatever the CRS of the release, and rounded to seven decimals.
            shapes = expected.to_crs("EPSG:4326") if suffix == ".geojson" else expected
            close = 1e-6 if suffix == ".geojson" else 1e-12
            sides = table[["west", "south", "east", "north"]]
            np.testing.assert_allclose(sides, shapes.bounds, rtol=0, atol=close)
            for name in ("cell", "level", "estimate", "perturbation_error", "density"):
                np.testing.assert_allclose(table[name], expected[name], rtol=1e-6)
    if suffix not in (".csv", ".geojson", ".xlsx"):
        assert read_vector(out).crs == loaded.domain.crs


def test_geojson_is_rfc_7946(release):
    passes("export r.psd.parquet cells.geojson")
    content = json.loads((release.parent / "cells.geojson").read_text(encoding="utf-8"))
    assert content["type"] == "FeatureCollection"
    assert "crs" not in content


def test_leaves_are_the_default_and_the_ending_may_be_upper_case(release):
    passes("export r.psd.parquet a.csv")
    passes("export r.psd.parquet B.CSV --cells leaves")
    assert (release.parent / "a.csv").read_bytes() == (release.parent / "B.CSV").read_bytes()


REFUSED = [
    (2, "cells.xyz", "cells.xyz"),
    (2, "cells", "cells"),
    (6, "there.csv", "there.csv"),
    (6, "folder.csv", "folder.csv"),
    (6, "nowhere/cells.csv", "nowhere"),
    (6, "r.psd.parquet --overwrite", "input"),
    (
        2,
        "r.npy --size 0 5",
        "--size must be two integers above 0, the columns and the rows of the raster, got 0 ",
    ),
    (
        2,
        "r.npy --size 100000 100000",
        "must be at most 16,777,216 cells of the raster, got 100,000 x 100,000; choose fewer",
    ),
]


def test_targets_and_sizes_that_are_refused(release, subtests):
    (release.parent / "there.csv").write_text("mine")
    (release.parent / "folder.csv").mkdir()
    check_refusals(subtests, REFUSED, "export r.psd.parquet")
    check_refusals(subtests, [(5, "cells.csv", "there.csv")], "export there.csv")
    passes("export r.psd.parquet there.csv --overwrite")
    assert len(pd.read_csv("there.csv")) == 9


def test_a_writer_that_fails_leaves_nothing(release, monkeypatch):
    def full(table, path):
        path.write_text("half a fi")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("psd.export.csv.write", full)
    assert "No space left" in fails(6, "export r.psd.parquet cells.csv")
    assert files(release.parent) == ["r.psd.parquet"]
