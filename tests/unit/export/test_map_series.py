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
from support.cubes import cube, town
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
    with pytest.raises(ParameterError, match="slices must give 1 to 48"):
        made.plot(slices=[])
    with pytest.raises(ParameterError, match=f"slices must give at most {MOST_MAPS} maps"):
        series(MOST_MAPS + 1).plot()


LONG = "a label that says at length what the purpose of the trip was and who paid for it"


@pytest.fixture(scope="module")
def labelled():
    """A cube with categories, one of a long and one of a Korean name."""
    table = town(1_000)
    table["mode"] = np.random.default_rng(3).choice(["bus", LONG, "taxi"], len(table))
    labels = {"public": "", "bus": "public", LONG: "public", "\ucd9c\ud1f4\uadfc \ubc84\uc2a4": ""}
    return cube(data=table, category="mode", labels=labels, per="record")


@pytest.mark.parametrize("number", [2, 3, 5, 12, 24])
def test_views_of_a_cube_have_the_same_classes_and_one_key(labelled, number):
    hours = "2024-01-01" if number == 24 else f"2024-01-01T00..2024-01-01T{number:02}"
    names = list(labelled.slices)[:number]
    figure = labelled.plot(slices=hours, each="slice", category="public")
    shown = maps_of(figure)
    assert [axes.get_title() for axes in shown] == names
    assert len({tuple(axes.collections[0].norm.boundaries) for axes in shown}) == 1
    title = figure.get_suptitle()
    for words in (hours, "mode=public", labelled.record.guarantee_text):
        assert words in title
    wanted = labelled[names[-1], "public"].to_geopandas()["density"].to_numpy()
    drawn = np.asarray(shown[-1].collections[0].get_array())
    assert drawn == pytest.approx(np.minimum(wanted, drawn.max()))


@pytest.mark.filterwarnings("ignore:Glyph")  # of a machine without fonts of Korean
def test_titles_of_categories_fit_above_their_maps(labelled):
    figure = labelled.plot(each="category", slices="mondays")
    figure.canvas.draw()
    shown = maps_of(figure)
    titles = [axes.get_title() for axes in shown]
    assert [title.replace("\n", " ")[:12] for title in titles] == [
        name[:12] for name in labelled.record.category.names
    ]
    assert max(title.count("\n") for title in titles) == 2
    assert titles[1].endswith("\u2026")
    places = [axes.title.get_window_extent() for axes in shown]
    assert not any(a.overlaps(b) for n, a in enumerate(places) for b in places[:n])
    assert "mondays" in figure.get_suptitle()


def test_one_window_and_one_label_are_one_map(labelled):
    axes = labelled.plot(slices="mondays", category="bus")
    assert "mondays, mode=bus" in axes.get_title()
    figure = labelled.plot(slices=["mondays", "tuesdays"], category=["bus", "public"])
    assert [each.get_title() for each in maps_of(figure)] == [
        "mondays, bus", "mondays, public", "tuesdays, bus", "tuesdays, public",
    ]  # fmt: skip
    first, second, third, _ = (each.get_position().x0 for each in maps_of(figure))
    assert third == pytest.approx(first)
    assert first < second


def test_letters_are_looked_for_in_more_fonts(labelled, monkeypatch):
    monkeypatch.setattr("psd.export._maps._FAMILIES", ("no such font", "DejaVu Serif"))
    before = list(mpl.rcParams["font.family"])
    axes = labelled.plot(category="bus")
    assert axes.title.get_fontfamily() == [*before, "DejaVu Serif"]
    assert mpl.rcParams["font.family"] == before


def test_views_that_cannot_be_drawn_together(labelled):
    refusals = {
        "each must give at most 48 maps in one picture, got 192; choose a shorter": {
            "each": ["slice", "category"]
        },
        "category must be a label of mode": {"category": ["bus", "no"]},
        "ax must be left out": {"each": "category", "ax": plt.subplots()[1]},
    }
    for words, asked in refusals.items():
        with pytest.raises(ParameterError, match=words):
            labelled.plot(**asked)
    for asked in ({"each": "slice"}, {"category": "bus"}):
        with pytest.raises(ParameterError, match=r"must be left out.*no cube"):
            series().plot(**asked)
