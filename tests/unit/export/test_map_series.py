"""Small maps of a series: one class and one key for all, and nothing covers a map."""

import geopandas as gpd
import matplotlib as mpl
import numpy as np
import pytest
import shapely
from matplotlib import pyplot as plt

import psd
from psd.errors import ParameterError
from psd.export._maps import MOST_MAPS
from support.releases import as_drawn

pytestmark = pytest.mark.deep

mpl.use("agg")

DOMAIN = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))
TREE = psd.decompositions.grid_tree(DOMAIN, 4)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def series(number=3):
    counts = [np.arange(16) * 10**each for each in range(number % 5 + 1)]
    releases = [
        as_drawn(psd.Release.from_counts(TREE, counts[n % len(counts)], 1, domain=DOMAIN))
        for n in range(number)
    ]
    hours = [f"2024-01-{1 + n // 24:02}T{n % 24:02}" for n in range(number)]
    return psd.Release.from_slices(psd.TimeSlices(by="hour", names=tuple(hours)), releases)


def maps_of(figure):
    return [axes for axes in figure.axes if axes.collections and axes.get_title()]


def test_all_slices_have_the_same_classes_and_their_names():
    made = series()
    figure = made.plot()
    shown = maps_of(figure)
    assert [axes.get_title() for axes in shown] == list(made)
    edges = {tuple(axes.collections[0].norm.boundaries) for axes in shown}
    assert len(edges) == 1
    assert made.record.guarantee_text in figure.get_suptitle()
    words = " ".join(text.get_text() for text in figure.findobj(mpl.text.Text))
    assert "records per km²" in words
    assert "20 km" in words


@pytest.mark.parametrize("kind", ["density", "quality", "reliable"])
def test_nothing_covers_a_map(kind):
    made = series()
    outline = gpd.GeoSeries([shapely.box(126.8, 37.4, 127.1, 37.7)], crs="EPSG:4326")
    figures = [made.plot(kind, outline=outline), made._releases[0].plot(kind).figure]
    for figure in figures:
        figure.canvas.draw()
        maps = [axes for axes in figure.axes if axes.get_title()]
        page = figure.bbox
        keys = [axes.get_legend() for axes in maps if axes.get_legend() is not None]
        others = [*keys, *(axes for axes in figure.axes if axes not in maps)]
        assert len(others) == 1
        assert not figure.legends
        nearest = max(axes.get_window_extent().x1 for axes in maps)
        assert 0 <= others[0].get_window_extent().x0 - nearest < 0.06 * page.width
        others += [axes.yaxis.label for axes in maps if axes.get_ylabel()]
        others += [text for axes in maps for text in axes.texts]
        others += [line for axes in maps for line in axes.lines]
        for axes in maps:
            inside = axes.get_window_extent().shrunk(0.99, 0.99)
            for other in others:
                extent = other.get_window_extent()
                assert not inside.overlaps(extent), (kind, other)
                assert page.x0 - 1 <= extent.x0
                assert extent.x1 <= page.x1 + 1


def test_slices_are_chosen():
    made = series()
    figure = made.plot(slices=[made.slices.names[1]])
    assert [axes.get_title() for axes in maps_of(figure)] == [made.slices.names[1]]
    with pytest.raises(ParameterError, match="is not in this series"):
        made.plot(slices=["2025-01-01T00"])
    with pytest.raises(ParameterError, match="slices must be 1 to 48"):
        made.plot(slices=[])
    with pytest.raises(ParameterError, match=f"slices must be at most {MOST_MAPS}"):
        series(MOST_MAPS + 1).plot()
