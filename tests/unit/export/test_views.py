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
from support.cubes import cube
from support.releases import as_drawn
from support.values import of_values, rides


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
