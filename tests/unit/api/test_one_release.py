"""One class of release, with time or without, with regions or without."""

import geopandas as gpd
import numpy as np
import pytest

import psd
from psd.api.fits import with_cache
from psd.errors import MissingExtraError, ParameterError, WriteError
from psd.release.post_processing import PostProcessing
from support.trees import grid_release

MONTHS = psd.TimeSlices.parse("month", "2024-01..2024-02")


@pytest.fixture(scope="module")
def plain():
    return grid_release(np.arange(16).reshape(4, 4) * 10 + 50)


@pytest.fixture(scope="module")
def timed(plain):
    return psd.Release.from_slices(MONTHS, [plain, grid_release(np.full((4, 4), 30))])


def test_time_is_an_axis_of_a_release(plain, timed, tmp_path):
    assert (plain.slices, timed.slices) == (None, MONTHS)
    assert plain._releases == (plain,)
    assert [*timed] == [*MONTHS]
    assert timed["2024-01"].total == plain.total
    assert repr(timed).startswith("<Release: 2 slices by month, given, epsilon 2 per record")
    for release in (plain, timed):
        release.save(tmp_path / "r", overwrite=True)
        again = psd.load(tmp_path / "r")
        assert type(again) is psd.Release
        assert (again.digest, again.slices) == (release.digest, release.slices)
        asked = [(0, 0, 2, 2)]
        assert with_cache(again).query(asked).table.equals(release.query(asked).table)
    with pytest.raises(ParameterError, match="must be one time slice for this, got 2"):
        psd.Release.from_slices(MONTHS, [timed, timed])
    with pytest.raises(AttributeError, match=r"^psd\.SeriesRelease is psd\.Release now$"):
        psd.SeriesRelease  # noqa: B018


def test_what_a_publisher_states_is_that_of_every_slice(timed):
    titled = timed.replace(about={"title": "Visits"})
    assert [each.record.about_texts for each in titled._releases] == [{"title": "Visits"}] * 2
    assert titled.record.about_texts == {"title": "Visits"}
    assert titled.digest != timed.digest
    signed = timed.replace(post_processing=PostProcessing(estimate="signed"))
    assert signed.record.post_processing == signed["2024-02"].record.post_processing
    assert "2 slices by month" in signed._repr_html_()


def test_regions_are_levels_of_a_release(plain):
    assert plain.levels == ()
    with pytest.raises(ParameterError, match="level must be left out with size, or a release"):
        plain.query(top=1, level="ward")
    with pytest.raises(ParameterError, match="level must be an integer from 0"):
        plain.to_geopandas(level="ward")


@pytest.mark.app("web")
def test_pages_are_written(plain, tmp_path):
    plain.map(tmp_path / "m.html", title="Visits <2024>")
    assert "Visits &lt;2024&gt;" in (tmp_path / "m.html").read_text(encoding="utf-8")
    with pytest.raises(WriteError, match="exists"):
        plain.map(tmp_path / "m.html")
    with pytest.raises(ParameterError, match=r"path must end in \.html, got .*; it is a page"):
        plain.map(tmp_path / "m.pdf")
    assert [path.name for path in tmp_path.iterdir()] == ["m.html"]


@pytest.mark.deep
@pytest.mark.app("web")
def test_a_sheet_is_written(plain, timed, tmp_path):
    for release in (plain, timed):
        with pytest.raises(ParameterError, match=r"path must end in \.html, got .*; it is a page"):
            release.sheet(tmp_path / "s.pdf")
        release.sheet(tmp_path / "s.html", overwrite=True)
        assert "What epsilon means" in (tmp_path / "s.html").read_text(encoding="utf-8")
        release.map(tmp_path / "m.html", overwrite=True)


def test_pages_need_their_app(plain, tmp_path, monkeypatch):
    monkeypatch.setattr("psd._apps.has_app", lambda name: False)
    with pytest.raises(MissingExtraError, match=r"Release\.map must have the app 'web'"):
        plain.map(tmp_path / "m.html")


@pytest.mark.deep
def test_maps_have_the_axes_and_the_colours_that_are_asked_for(plain, timed):
    import matplotlib as mpl
    from matplotlib import pyplot

    mpl.use("agg")
    axes = pyplot.subplots()[1]
    assert plain.plot(ax=axes, cmap="magma") is axes
    (shown,) = axes.collections[:1]
    colours = [mpl.colors.to_hex(colour) for colour in shown.cmap.colors]
    assert colours[0] == mpl.colors.to_hex(mpl.colormaps["magma"](0.5 / len(colours)))
    figure = timed.plot(slices=["2024-02"], cmap=mpl.colormaps["viridis"])
    assert [each.get_title() for each in figure.axes][:1] == ["2024-02"]
    pyplot.close("all")
    for words, draw in (
        ("cmap must be a colour map", lambda: plain.plot(cmap="no")),
        ("ax must be left out with time slices", lambda: timed.plot(ax=axes)),
        ("release must have time slices", lambda: plain.plot(slices=["2024-01"])),
        ("'2024-03' is not in this series", lambda: timed.plot(slices=["2024-03"])),
    ):
        with pytest.raises(ParameterError, match=words):
            draw()


def test_cells_are_tables_and_datasets(plain):
    cells = plain.to_geopandas()
    assert isinstance(cells, gpd.GeoDataFrame)
    assert cells["estimate"].sum() == pytest.approx(plain.total)
