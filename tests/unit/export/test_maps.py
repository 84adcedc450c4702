"""Maps of a release: what matplotlib draws, and the default plot of its cells."""

import geopandas as gpd
import matplotlib as mpl
import numpy as np
import pytest
import shapely

import psd
from psd.errors import MissingExtraError, ParameterError
from psd.export._maps import KINDS, _round_length
from psd.query.answer_table import QUALITIES
from support.releases import as_drawn
from support.trees import SOUTH_UP, grid_release

mpl.use("agg")
from matplotlib import pyplot as plt

pytestmark = pytest.mark.deep


@pytest.fixture(autouse=True)
def no_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def seoul():
    domain = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))
    counts = (np.arange(64) * 37) % 2000
    return as_drawn(
        psd.Release.from_counts(psd.decompositions.grid_tree(domain, 8), counts, 1, domain=domain)
    )


def texts(figure):
    return " ".join(text.get_text() for text in figure.findobj(mpl.text.Text))


@pytest.mark.parametrize("kind", KINDS)
def test_a_map_shows_every_cell_with_its_unit_scale_and_guarantee(seoul, kind):
    axes = seoul.plot(kind)
    (cells,) = axes.collections
    assert len(cells.get_paths()) == 64
    values = seoul.to_geopandas()[kind]
    if kind == "quality":
        values = values.map(QUALITIES.index)
    top = cells.norm.boundaries[-1]
    assert list(cells.get_array()) == values.astype(float).clip(upper=top).tolist()
    shown = texts(axes.figure)
    assert "epsilon 1 per record" in shown
    assert "20 km" in shown
    assert "longitude" in shown
    words = {"density": "records per km²", "estimate": "records",
             "relative_error": "relative error", "reliable": "at most 30%",
             "quality": "use with care: at most 30%"}  # fmt: skip
    assert words[kind] in shown
    assert axes.get_aspect() == pytest.approx(1 / np.cos(np.radians(37.5)))


def test_the_scale_bar_is_as_long_as_it_says(seoul):
    (bar,) = seoul.plot().lines
    (start, end), (y, _) = bar.get_data()
    from pyproj import Geod

    assert Geod(ellps="WGS84").inv(start, y, end, y)[2] == pytest.approx(20_000, rel=0.005)
    plane = psd.Domain(bounds=(900_000, 1_900_000, 1_000_000, 2_000_000), crs="EPSG:5179")
    (bar,) = (
        psd.Release.from_counts(psd.decompositions.grid_tree(plane, 2), [1] * 4, 1, domain=plane)
        .plot()
        .lines
    )
    start, end = bar.get_xdata()
    assert end - start == pytest.approx(20_000, rel=1e-3)
    # At 60 degrees north Web Mercator is twice as wide as the ground.
    plane = psd.Domain(bounds=(0, 8_399_000, 1e5, 8_400_000), crs="EPSG:3857")
    (bar,) = (
        psd.Release.from_counts(psd.decompositions.grid_tree(plane, 2), [1] * 4, 1, domain=plane)
        .plot()
        .lines
    )
    start, end = bar.get_xdata()
    assert end - start == pytest.approx(2 * 10_000, rel=4e-3)
    local = psd.Domain(bounds=(0, 0, 4, 4), crs='LOCAL_CS["site",UNIT["metre",1]]')
    tree = psd.decompositions.grid_tree(local, 2)
    assert not psd.Release.from_counts(tree, [1] * 4, 1, domain=local).plot().lines


def test_outlines_of_another_crs_levels_and_other_axes(seoul):
    district = gpd.GeoSeries([shapely.box(126.8, 37.4, 127.1, 37.7)], crs="EPSG:4326")
    _, axes = plt.subplots()
    assert seoul.plot(ax=axes, level=0, outline=district.to_crs("EPSG:5179")) is axes
    cells, outline = axes.collections
    assert len(cells.get_paths()) == 1
    np.testing.assert_allclose(outline.get_paths()[0].get_extents().bounds,
                               (126.8, 37.4, 0.3, 0.3), atol=2e-4)  # fmt: skip


@pytest.mark.parametrize("counts", [[0] * 4, [-3, -2, -1, 0], [10**9, 0, 1, 2]])
@pytest.mark.parametrize("kind", KINDS)
def test_unusual_counts_are_drawn(counts, kind):
    domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    release = psd.Release.from_counts(
        psd.decompositions.grid_tree(domain, 2), counts, 1, domain=domain
    )
    release.plot(kind).figure.canvas.draw()


def test_what_is_refused(seoul, monkeypatch):
    with pytest.raises(ParameterError, match="kind must be one of density, estimate"):
        seoul.plot("people")
    with pytest.raises(ParameterError, match="level must be an integer"):
        seoul.plot(level=99)
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[plot\]'"):
        seoul.plot()


def test_the_table_of_cells_draws_the_density_by_itself(seoul):
    cells = seoul.to_geopandas()
    axes = cells.plot()
    assert "records per km²" in texts(axes.figure)
    assert list(axes.collections[0].get_array()) == cells.density.tolist()
    other = cells.plot("estimate")
    assert list(other.collections[0].get_array()) == cells.estimate.tolist()
    cells[cells.reliable].plot(color="red")
    assert isinstance(cells, gpd.GeoDataFrame)
    assert cells.attrs["epsilon"] == "1"


def test_scale_bars_are_round():
    pairs = {26.6: 20, 0.07: 0.05, 10: 10, 9.99: 5, 1e4: 1e4, 2: 2}
    assert {longest: _round_length(longest) for longest in pairs} == pairs


def test_a_grid_of_users_says_so():
    unit = psd.PrivacyUnit(kind="user", weight=12)
    domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    tree = psd.decompositions.grid_tree(domain, 2)
    release = psd.Release.from_counts(tree, [12, 24, 0, 0], 1, domain=domain, unit=unit)
    assert "users per km²" in texts(release.plot().figure)
    assert "given" in texts(grid_release(SOUTH_UP).plot().figure)
