"""A release in notebooks and other libraries: HTML, folium, xarray, Arrow."""

import json
import sys
from html import escape

import duckdb
import geopandas as gpd
import numpy as np
import pyarrow as pa
import pytest
import shapely

import psd
from psd.errors import MissingExtraError, ParameterError
from psd.statistics.raster import density_raster
from psd.testing.data import release_from_counts
from support.cubes import SLICES, cube, town
from support.releases import as_drawn
from support.values import of_values, rides

ERRORS = ("perturbation_error", "nonuniformity_error", "error")


@pytest.fixture(scope="module")
def release():
    domain = psd.Domain(bounds=(900_000, 1_900_000, 1_000_000, 2_000_000), crs="EPSG:5179")
    tree = psd.decompositions.grid_tree(domain, 5)
    return as_drawn(psd.Release.from_counts(tree, np.arange(25) * 9, "0.5", domain=domain))


@pytest.mark.deep
def test_html_has_a_picture_and_the_guarantee(release, monkeypatch):
    text = release._repr_html_()
    assert "epsilon 0.5 per record" in text
    assert 'src="data:image/png;base64,' in text
    assert "http" not in text
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "<img" not in release._repr_html_()


@pytest.mark.deep
def test_xarray_has_the_raster_its_units_and_crs(release):
    import rioxarray  # noqa: F401

    dataset, raster = release.to_xarray(8, 6), density_raster(release.index.fit, 8, 6)
    for name in ("count", "density", "perturbation_error", "nonuniformity_error", "error"):
        assert (dataset[name].to_numpy() == getattr(raster, name)).all()
    assert dataset["density"].attrs["units"] == "records per km2"
    assert dataset.attrs == release.metadata
    assert dataset.rio.crs.to_epsg() == 5179
    assert dataset.rio.bounds() == pytest.approx(release.domain.bounds)
    # A point is answered from the cell that it lies in.
    cell = dataset["count"].sel(x=910_000, y=1_990_000, method="nearest")
    assert float(cell) == raster.count[0, 0]
    with pytest.raises(ParameterError, match="raster"):
        release.to_xarray(0, 5)


@pytest.mark.deep
def test_folium_has_every_cell_and_a_legend(release):
    text = release.to_geopandas().explore("estimate").get_root().render()
    assert text.count('"type": "Feature"') == 25
    assert "records; epsilon 0.5 per record" in text
    assert "openstreetmap" not in text.lower()
    with pytest.raises(ParameterError, match="kind must be one of"):
        release.to_geopandas().explore("people")


@pytest.mark.deep
def test_folium_gets_names_and_ids_as_texts():
    from folium import GeoJson

    name = 'fare"<img src=x onerror=alert(1)>'
    release = of_values(rides().rename(columns={"fare": name}), values={name: (0, 60)})
    areas = gpd.GeoDataFrame(
        {"id": ["<b>a", "b & c"]},
        geometry=shapely.box([126, 126.5], 37, [126.5, 127], 38),
        crs=4326,
    )
    for shown in (release.to_geopandas(), release.query(areas, mean=name)):
        drawn = shown.explore(f"mean_{name}")
        [layer] = (each for each in drawn._children.values() if isinstance(each, GeoJson))
        [tooltip] = layer._children.values()
        assert f"mean_{escape(name)}" in tooltip.aliases
        texts = [f["properties"][field] for f in layer.data["features"] for field in tooltip.fields]
        assert not any("<" in text for text in (*tooltip.aliases, *map(str, texts)))
        drawn.get_root().render()
    assert {"&lt;b&gt;a", "b &amp; c"} <= set(texts)


@pytest.mark.parametrize(
    ("module", "words", "view"),
    [
        ("folium", "explore", lambda release: release.to_geopandas().explore()),
        ("xarray", "xarray", lambda release: release.to_xarray()),
    ],
)
def test_extras_that_are_missing(release, monkeypatch, module, words, view):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"pip install '\.\[{words}\]'"):
        view(release)


def test_libraries_of_arrow_read_the_cells(release):
    table = pa.table(release)
    cells = release.to_geopandas()
    assert table["estimate"].to_pylist() == cells.estimate.tolist()
    kind = table.schema.field("geometry").metadata
    assert kind[b"ARROW:extension:name"] == b"geoarrow.wkb"
    assert json.loads(kind[b"ARROW:extension:metadata"])["crs"]["id"]["code"] == 5179
    (total,) = duckdb.from_arrow(table).aggregate("sum(estimate)").fetchall()[0]
    assert total == pytest.approx(release.total)


@pytest.mark.deep
def test_xarray_and_html_of_a_cube_are_of_a_window():
    release = cube()
    for shown, when in ((release, "all time"), (release["06-10"], "06-10")):
        dataset = shown.to_xarray(8, 8)
        raster = density_raster(shown.index.fit, 8, 8)
        assert (dataset["count"].to_numpy() == raster.count).all()
        assert dataset.attrs["when"] == when
    assert "epsilon 1 per record" in release["06-10"]._repr_html_()
    assert pa.table(release["06-10"]).num_rows == int(release.tree.is_leaf.sum())


@pytest.fixture(scope="module")
def labelled():
    """A cube of two days in slices of an hour, with three categories."""
    table = town()
    table["mode"] = np.random.default_rng(3).choice(["bus", "tram", "taxi"], len(table))
    labels = {"public": "", "bus": "public", "tram": "public"}
    return cube(data=table, category="mode", labels=labels, per="record")


@pytest.mark.deep
def test_xarray_has_dimensions_of_time_and_categories(labelled):
    dataset = labelled.to_xarray(5, 3, when="2024-01-02", each=["slice", "category"])
    assert dict(dataset.sizes) == {"time": 24, "category": 3, "y": 3, "x": 5}
    assert dataset["category"].to_numpy().tolist() == ["bus", "tram", "other"]
    begin = np.datetime64("2024-01-02T00") + np.arange(24)
    assert (dataset["time"].to_numpy() == begin).all()
    assert (dataset["time_end"].to_numpy() == begin + 1).all()
    assert dataset["slice"].to_numpy().tolist() == list(SLICES.names[24:])
    assert dataset["time"].attrs["time_zone"] == SLICES.time_zone
    assert dataset.attrs == {**labelled.metadata, "when": "2024-01-02"}
    assert dataset["density"].attrs["units"] == "records per km2"
    for hour, mode in ((8, "bus"), (19, "other")):
        moment = np.datetime64(f"2024-01-02T{hour:02}")
        found = dataset.sel(time=moment, category=mode)
        raster = density_raster(labelled[f"2024-01-02T{hour:02}", mode].index.fit, 5, 3)
        for name in ("count", "density", *ERRORS):
            assert (found[name].to_numpy() == getattr(raster, name)).all()
    boxes = [(16 / 5 * i, 16 / 3 * (2 - j), 16 / 5 * (i + 1), 16 / 3 * (3 - j))
             for j in range(3) for i in range(5)]  # fmt: skip
    asked = labelled.query(boxes, when="2024-01-02T08", category="bus").table
    found = dataset.isel(time=8, category=0)
    for name, column in {"count": "estimate", **{each: each for each in ERRORS}}.items():
        assert found[name].to_numpy().ravel() == pytest.approx(asked[column].to_numpy(), abs=1e-9)


@pytest.mark.deep
def test_xarray_of_windows_of_labels_and_of_a_series(labelled, tmp_path):
    dataset = labelled.to_xarray(4, 2, when=["mondays", "07-09"], category=["public", "bus"])
    assert dict(dataset.sizes) == {"when": 2, "category": 2, "y": 2, "x": 4}
    expected = labelled["07-09", "bus"].to_xarray(4, 2)
    assert dataset.sel(when="07-09", category="bus")["error"].equals(
        expected["error"].assign_coords(when="07-09", category="bus")
    )
    assert (expected.attrs["when"], expected.attrs["category"]) == ("07-09", "mode=bus")
    assert not {"when", "category"} & set(dataset.attrs)
    alone = labelled.to_xarray(4, 2, category="bus", each="slice")
    assert dict(alone.sizes) == {"time": 48, "y": 2, "x": 4}
    assert alone.attrs["category"] == "mode=bus"
    days = psd.TimeSlices.parse("day", "2024-01-01..2024-01-02", "Asia/Seoul")
    releases = [release_from_counts([[n, 1], [0, 5]]) for n in (3, 9)]
    series = psd.Release.from_slices(days, releases)
    timed = series.to_xarray(2, 2, each="slice")
    assert timed["time"].attrs["time_zone"] == "Asia/Seoul"
    assert timed["time_end"].to_numpy().astype("datetime64[D]").astype(str).tolist() == [
        "2024-01-02", "2024-01-03",
    ]  # fmt: skip
    assert timed.attrs == series.metadata
    for number, name in enumerate(series):
        one = series[name].to_xarray(2, 2)["count"].to_numpy()
        assert (timed["count"].to_numpy()[number] == one).all()


@pytest.mark.deep
def test_xarray_that_is_refused(labelled, release):
    refusals = {
        "when must be one window with each='slice'": {
            "when": ["mondays", "2024-01-02T08"], "each": "slice",
        },
        "size must be at most 16,777,216 cells of all rasters, got 48 of 1,000": {
            "columns": 1000, "each": "slice", "rows": 1000,
        },
        "size must be two integers": {"columns": 2.5},
        "category must be a label of mode": {"category": "no"},
    }  # fmt: skip
    for words, asked in refusals.items():
        with pytest.raises(ParameterError, match=words):
            labelled.to_xarray(**asked)
    with pytest.raises(ParameterError, match="each must be left out"):
        release.to_xarray(each="slice")
