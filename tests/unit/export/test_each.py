"""Exports of several views of a cube in one file: a row of each cell for each of them."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest

import psd
from psd.errors import ParameterError
from support.cubes import cube, town


@pytest.fixture(scope="module")
def release():
    table = town()
    table["mode"] = np.random.default_rng(3).choice(["bus", "tram", "taxi"], len(table))
    labels = {"public": "", "bus": "public", "tram": "public"}
    return cube(data=table, category="mode", labels=labels, per="record")


def wanted(release, views, **choice):
    """Tables of views, one below the other, without their polygons."""
    parts = []
    for columns, asked in views:
        cells = pd.DataFrame(
            release[asked.get("when"), asked.get("category")]
            .to_geopandas(**choice)
            .drop(columns="geometry")
        )
        for place, (name, text) in enumerate(columns.items(), 2):
            cells.insert(place, name, text)
        parts.append(cells)
    return pd.concat(parts, ignore_index=True)


HOURS = [({"slice": f"2024-01-02T{hour:02}"}, {"when": f"2024-01-02T{hour:02}"}) for hour in (7, 8)]
MODES = [({"category": mode}, {"when": "mondays", "category": mode}) for mode in ("bus", "tram")]
OF_HOURS = {"when": "2024-01-02T07..2024-01-02T09", "each": "slice"}
OF_MODES = {"when": "mondays", "category": "public", "each": "category"}


@pytest.mark.parametrize("ending", ["csv", "gpkg", "fgb", "geojson", "parquet"])
@pytest.mark.parametrize(
    ("asked", "views"), [(OF_HOURS, HOURS), (OF_MODES, MODES)], ids=["slices", "categories"]
)
def test_each_view_has_the_rows_of_its_cells(release, asked, views, ending, tmp_path):
    path = tmp_path / f"e.{ending}"
    assert release.export(path, **asked) == 0
    layer = {"layer": "cells"} if ending == "gpkg" else {}
    read = {"csv": pd.read_csv, "parquet": gpd.read_parquet}.get(ending, gpd.read_file)
    found, expected = read(path, **layer), wanted(release, views)
    key = [next(iter(views[0][0])), "cell"]
    found, expected = (each.sort_values(key, ignore_index=True) for each in (found, expected))
    assert found[key].to_numpy().tolist() == expected[key].to_numpy().tolist()
    for name in ("level", "estimate", "perturbation_error", "error", "density"):
        assert found[name].to_numpy() == pytest.approx(expected[name].to_numpy(), rel=1e-6)
    columns = found.columns.tolist()
    assert columns.index("level") < columns.index(key[0]) < columns.index("estimate")


def test_both_axes_levels_and_rows_that_are_left_out(release, tmp_path):
    both = {"when": "2024-01-01", "each": ["slice", "category"], "level": 2}
    release.export(tmp_path / "b.csv", **both)
    found = pd.read_csv(tmp_path / "b.csv")
    cells = len(release.to_geopandas(level=2))
    assert len(found) == 24 * 3 * cells
    assert found[["slice", "category"]].drop_duplicates().to_numpy().tolist() == [
        [f"2024-01-01T{hour:02}", mode] for hour in range(24) for mode in ("bus", "tram", "other")
    ]
    dropped = release.export(tmp_path / "d.csv", **both, unreliable="drop")
    kept = pd.read_csv(tmp_path / "d.csv")
    assert dropped == (~found["reliable"]).sum() > 0
    assert len(kept) == len(found) - dropped
    release.export(tmp_path / "c.fgb", **both, crs="EPSG:4326")
    assert len(gpd.read_file(tmp_path / "c.fgb")) == len(found)


def test_a_file_of_views_states_what_is_common_and_the_guarantee(release, tmp_path):
    release.export(tmp_path / "e.geojson", **OF_MODES)
    text = (tmp_path / "e.geojson").read_text("utf-8")
    for part in ("mondays", "mode=public", release.digest, "per record"):
        assert part in text


def test_a_csv_of_one_view_names_it(release, tmp_path):
    release.export(tmp_path / "a.csv", when="mondays", category="bus")
    release["mondays", "bus"].export(tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    found = pd.read_csv(tmp_path / "a.csv")
    assert found.columns.tolist()[:3] == ["when", "category", "cell"]
    assert found[["when", "category"]].drop_duplicates().to_numpy().tolist() == [["mondays", "bus"]]
    release.export(tmp_path / "c.csv", category="bus")
    assert pd.read_csv(tmp_path / "c.csv").columns.tolist()[:2] == ["category", "cell"]
    release.export(tmp_path / "d.csv")
    assert pd.read_csv(tmp_path / "d.csv").columns[0] == "cell"
    number = release.export(tmp_path / "p.csv", points=True, seed=1, category="bus")
    assert number == len(release[:, "bus"].to_points(seed=1))


def test_what_is_refused(release, tmp_path, monkeypatch):
    plain = cube(slices=psd.TimeSlices.parse("hour", "2024-01-01T08"), data=town(40))
    refusals = [
        (release, "e.npy", {"each": "slice"}, "each must be left out if output ends in .npy"),
        (release, "e.pmtiles", {"each": "slice"}, "each must be left out if output ends in .pmt"),
        (release, "e.csv", {"each": "hour"}, "each must be 'slice', 'category', both"),
        (release, "e.csv", {"when": ["mondays", "tuesdays"]}, "when must be one window, got 2"),
        (release, "e.csv", {"category": "no"}, "category must be a label of mode"),
        (release, "e.csv", {"points": True, "each": "slice"}, "each must be left out with points"),
        (plain, "e.csv", {"each": "category"}, "each must be left out, got 'category'"),
        (plain["2024-01-01T08"], "e.csv", {"each": "slice"}, "the release is no cube"),
    ]
    for made, name, asked, words in refusals:
        with pytest.raises(ParameterError, match=words):
            made.export(tmp_path / name, **asked)
    rows = 48 * len(release.to_geopandas())
    monkeypatch.setattr("psd.export._release.MOST_ROWS", rows - 1)
    with pytest.raises(ParameterError, match=f"each must give at most .* got {rows:,}; choose"):
        release.export(tmp_path / "e.csv", each="slice")
    assert not list(tmp_path.iterdir())
