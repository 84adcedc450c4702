"""Means and sums of values in tables, layers, rasters and pictures, with their reliability."""

import io
import sqlite3
from contextlib import closing
from xml.etree import ElementTree

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from psd._util.colours import even_breaks
from psd.errors import ParameterError
from psd.export._maps import OPACITY, opacities
from psd.export._styles import layer_styles
from psd.query.answer_table import QUALITIES
from psd.statistics.raster import density_raster
from support.values import BOUNDS, of_values, rides

ENDS = ("", "_error", "_lower", "_upper")


@pytest.fixture(scope="module")
def release():
    return of_values()


def test_the_quality_of_a_mean_is_its_error_over_its_distance_from_the_lower_bound(release):
    cells = release.to_geopandas()
    mean, error = cells.mean_fare, cells.mean_fare_error
    assert set(cells.mean_fare_quality) == set(QUALITIES)
    good, care = (cells.mean_fare_quality == name for name in QUALITIES[:2])
    assert (error[good] <= 0.12 * mean[good]).all()
    assert (error[good | care] <= 0.3 * mean[good | care]).all()
    none = (cells.mean_fare_lower <= 0) & (cells.mean_fare_upper >= 60)
    assert none.any()
    assert (cells.mean_fare_quality[none] == "poor").all()
    # Where the records may be noise, the mean is that of the surroundings.
    few = cells.perturbation_error > 0.5 * cells.estimate
    assert few.any()
    assert (cells.mean_fare_quality[few] == "poor").all()
    strict = release.to_geopandas(threshold=(0.001, 0.002))
    assert (strict.mean_fare_quality == "poor").sum() > (cells.mean_fare_quality == "poor").sum()


def test_the_origin_of_a_value_does_not_change_its_quality():
    data = rides()
    moved = data.assign(fare=data.fare - 30)
    first = of_values(data).to_geopandas()
    second = of_values(moved, values={"fare": (-30, 30)}).to_geopandas()
    assert second.mean_fare.to_numpy() == pytest.approx(first.mean_fare.to_numpy() - 30, abs=1e-6)
    assert second.mean_fare_quality.tolist() == first.mean_fare_quality.tolist()


def test_cells_and_queries_of_them_judge_alike(release):
    cells = release.to_geopandas()
    asked = release.query(cells.geometry.bounds.to_numpy(), mean="fare", threshold=0.2).table
    expected = release.to_geopandas(threshold=0.2)
    assert asked.mean_fare.to_numpy() == pytest.approx(expected.mean_fare.to_numpy())
    same = asked.mean_fare_quality.to_numpy() == expected.mean_fare_quality.to_numpy()
    assert same.mean() > 0.9  # intervals of queries have what post-processing moved


@pytest.mark.deep
@pytest.mark.parametrize("ending", [".gpkg", ".fgb", ".geojson", ".parquet"])
def test_layers_have_the_columns_of_the_table(release, tmp_path, ending):
    path, cells = tmp_path / f"a{ending}", release.to_geopandas()
    release.export(path)
    layer = {"layer": "cells"} if ending == ".gpkg" else {}
    read = gpd.read_parquet(path) if ending == ".parquet" else gpd.read_file(path, **layer)
    read = read.sort_values("cell")
    for name in (f"{kind}_fare{end}" for kind in ("mean", "sum") for end in ENDS):
        assert read[name].to_numpy() == pytest.approx(cells[name].to_numpy(), rel=1e-12)
    assert read.mean_fare_quality.tolist() == cells.mean_fare_quality.tolist()
    if ending == ".gpkg":
        with closing(sqlite3.connect(path)) as database:
            styles = [name for (name,) in database.execute("SELECT styleName FROM layer_styles")]
        assert styles[1:] == ["reliability", "mean_fare"]


@pytest.mark.parametrize("way", ["bounds", "resolution", "regions"])
def test_a_raster_has_the_answers_of_queries_of_its_cells(way, tmp_path):
    how = {}
    if way == "resolution":
        how["coordinate_resolution"] = "0.01"
    if way == "regions":
        tile = [shapely.box(126 + a / 4, 37, 126.25 + a / 4, 38) for a in range(4)]
        shapes = gpd.GeoDataFrame({"id": list("abcd")}, geometry=tile, crs=4326)
        shapes.to_file(tmp_path / "a.geojson")
        paths = (str(tmp_path / "a.geojson"),)
        how["regions"] = psd.regions.RegionFiles(paths=paths, ids=("id",), gaps="outside")
        how |= {"method": "cascade", "set": {}}
    data = rides().round(2) if way == "resolution" else rides()
    release = of_values(data, **how)
    raster = density_raster(release.index.fit, 6, 5)
    x, y = np.linspace(126, 127, 7), np.linspace(37, 38, 6)
    boxes = [(x[i], y[j], x[i + 1], y[j + 1]) for j in reversed(range(5)) for i in range(6)]
    table = release.query(boxes, mean="fare", sum="fare").table
    names = [name for name in table if name.startswith(("mean_", "sum_"))]
    assert list(raster.values) == names
    for name in names:
        found, expected = raster.values[name].ravel(), table[name].to_numpy()
        if name == "mean_fare_quality":
            expected = np.array([1 + QUALITIES.index(each) for each in expected])
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.deep
def test_geotiff_and_xarray_have_means_with_errors_and_intervals(release, tmp_path):
    import rasterio

    raster = density_raster(release.index.fit, 8, 8)
    release.export(tmp_path / "a.tif", size=(8, 8))
    dataset = release.to_xarray(8, 8)
    means = [f"mean_fare{end}" for end in (*ENDS, "_quality")]
    shown = [*means, *(f"sum_fare{end}" for end in ENDS)]
    with rasterio.open(tmp_path / "a.tif") as image:
        assert image.descriptions == ("count", "density", "error", *shown)
        for number, name in enumerate(shown, start=4):
            np.testing.assert_array_equal(image.read(number), raster.values[name])
    for name, band in raster.values.items():
        np.testing.assert_array_equal(dataset[name].to_numpy(), band)
        assert dataset[name].attrs["grid_mapping"] == "spatial_ref"
    release.export(tmp_path / "c.tif", size=(8, 8), band="mean_fare")
    with rasterio.open(tmp_path / "c.tif") as image:
        assert image.descriptions == ("mean_fare",)
    with pytest.raises(ParameterError, match=r"band must be one of count, .*, mean_fare, got"):
        release.export(tmp_path / "d.tif", band="mean_tip")
    assert {"mean_fare_perturbation_error", "sum_fare_nonuniformity_error"} <= set(dataset)
    release.export(tmp_path / "b.tif", size=(8, 8), unreliable="drop")
    with rasterio.open(tmp_path / "b.tif") as image:
        gone = np.isnan(image.read(1))
        assert 0 < gone.sum() < 64
        assert (np.isnan(image.read(4)) == gone).all()


@pytest.mark.parametrize("bounds", [(0, 60), (-55, 5)])
def test_styles_of_layers_show_means_fainter_by_their_quality(bounds):
    name = "fare" if bounds[0] == 0 else "balance"
    cells = of_values(values={name: bounds}).to_geopandas()
    [style] = [each for each in layer_styles(cells) if each.name == f"mean_{name}"]
    tree = ElementTree.fromstring(style.qml.partition("\n")[2])
    assert tree.find("renderer-v2").get("attr") == f"mean_{name}"
    ranges = [(float(each.get("lower")), float(each.get("upper"))) for each in tree.iter("range")]
    assert len(ranges) > 2
    for value in cells[f"mean_{name}"]:  # each has one class, also the smallest and the largest
        assert any(low <= value <= high for low, high in ranges)
    opacity = [
        each.get("value") for each in tree.iter("Option") if each.get("name") == "expression"
    ]
    assert len(opacity) == len(ranges)
    assert f"\"mean_{name}_quality\" = 'good' THEN 100 " in opacity[0]
    assert opacity[0].endswith("ELSE 30 END")


@pytest.mark.parametrize(
    ("values", "least"),
    [
        (np.linspace(0, 60, 1000), 5),
        (np.linspace(-41.5, -40.9, 1000), 4),
        (np.linspace(1e6, 1e6 + 3, 1000), 4),
        (np.full(9, 7.5), 0),
        (np.array([]), 0),
        (np.full(3, np.nan), 0),
    ],
)
def test_breaks_of_means_are_few_round_and_between_them(values, least):
    breaks = even_breaks(values, np.ones(len(values)))
    assert least <= len(breaks) <= 6
    assert breaks == sorted(set(breaks))
    for each in breaks:
        assert np.nanmin(values) < each < np.nanmax(values)
        assert len(f"{each - np.floor(each):.9g}") <= 6


@pytest.mark.deep
def test_maps_of_means_fade_and_hatch(release):
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import colors
    from matplotlib import pyplot as plt

    cells = release.to_geopandas()
    axes = release.plot("mean_fare")
    drawn, stripes = axes.collections
    assert len(stripes.get_paths()) == (cells.mean_fare_quality == "poor").sum() > 0
    assert stripes.get_hatch()
    opacity = opacities(cells, "mean_fare")
    assert set(opacity) == set(OPACITY)
    faces = drawn.get_facecolors()[:, :3]
    full = np.array([colors.to_rgb(each) for each in drawn_colours(axes, cells)])
    np.testing.assert_allclose(faces, 1 - opacity[:, None] * (1 - full), atol=1e-6)
    words = " ".join(text.get_text() for text in axes.figure.findobj(mpl.text.Text))
    assert "mean of fare" in words
    assert "hatched: poor" in words
    assert "60" in words
    with pytest.raises(ParameterError, match=r"kind must be one of density, .*, mean_fare, got"):
        release.plot("mean_tip")
    answers = release.query([BOUNDS, (126.9, 37, 127, 37.1)], mean="fare")
    assert answers.table.mean_fare_quality.tolist() == ["good", "poor"]
    shapes, *poor = answers.plot("mean_fare").collections
    assert list(shapes.get_alpha()) == [1.0, 0.3]
    assert len(poor) == 1
    plt.close("all")


def drawn_colours(axes, cells):
    """Colours of the classes of the colour bar, for each cell."""
    bar = axes.figure.axes[-1]._colorbar
    return bar.cmap(bar.norm(cells.mean_fare.to_numpy()))[:, :3]


@pytest.mark.deep
def test_maps_of_slices_have_the_same_classes_of_means():
    import pandas as pd
    from matplotlib import pyplot as plt

    data = rides()
    times = pd.to_datetime(np.where(np.arange(len(data)) % 2, "2026-01-05", "2026-02-05"))
    months = psd.TimeSlices.parse("month", "2026-01..2026-02")
    series = of_values(data.assign(time=times), slices=months, time="time")
    figure = series.plot("mean_fare")
    assert [axes.get_title() for axes in figure.axes[:2]] == ["2026-01", "2026-02"]
    plt.close("all")


@pytest.mark.deep
def test_folium_shows_means_fainter_by_their_quality(release):
    text = release.to_geopandas().explore("mean_fare").get_root().render()
    assert "mean of fare; epsilon 1 per record" in text
    assert '"mean_fare_quality": "poor"' in text
    assert '"opacity": 0.75' in text
    assert '"opacity": 0.225' in text
    answers = release.query([BOUNDS], mean="fare").explore("mean_fare").get_root().render()
    assert '"mean_fare_lower"' in answers


@pytest.mark.deep
def test_names_on_pictures_are_no_formulas():
    import matplotlib.pyplot as plt

    name = "$x^$"  # which matplotlib refuses as a formula
    release = of_values(rides().rename(columns={"fare": name}), values={name: (0, 60)})
    zones = gpd.GeoDataFrame({"zone": [name]}, geometry=[shapely.box(*BOUNDS)], crs=4326)
    answers = release.query(zones, mean=name)
    for axes in (release.plot(f"mean_{name}"), answers.plot(f"mean_{name}"), answers.plot("zone")):
        axes.figure.savefig(io.BytesIO())
        plt.close(axes.figure)
