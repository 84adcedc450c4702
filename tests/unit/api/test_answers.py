"""Answers: the table, what follows from it, and what it is refused for."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely

import psd
from psd.errors import ParameterError
from support.trees import grid_release

BOXES = [(0, 0, 2, 2), (2, 0, 4, 4)]
MONTHS = psd.TimeSlices.parse("month", "2024-01..2024-02")


@pytest.fixture(scope="module")
def release():
    return grid_release(np.arange(16).reshape(4, 4) * 10 + 50)


@pytest.fixture(scope="module")
def series(release):
    return psd.Release.from_slices(MONTHS, [release, grid_release(np.full((4, 4), 30))])


def shapes():
    geometry = [shapely.box(*box) for box in BOXES]
    return gpd.GeoDataFrame({"name": ["a", "b"]}, geometry=geometry, crs="EPSG:3857", index=[7, 3])


def test_answers_are_no_rows_but_have_a_table(release):
    answers = release.query(BOXES)
    assert len(answers) == 2
    assert answers["estimate"].equals(answers.table["estimate"])
    assert answers.table is answers.table
    with pytest.raises(TypeError, match="not iterable"):
        list(answers)
    with pytest.raises(KeyError):
        answers["nothing"]
    with pytest.raises(AttributeError):
        answers.confidence = 0.5


def test_the_table_is_that_of_the_caller(release):
    table = release.query(shapes()).table
    assert isinstance(table, gpd.GeoDataFrame)
    assert (table.index.tolist(), table.crs.to_epsg()) == ([7, 3], 3857)
    assert table.columns[:3].tolist() == ["name", "geometry", "estimate"]
    boxes = pd.DataFrame(BOXES, columns=["west", "south", "east", "north"], index=["x", "y"])
    table = release.query(boxes.assign(error=9, town="A")).table
    assert table.index.tolist() == ["x", "y"]
    assert table.columns[:7].tolist() == [
        "id", "west", "south", "east", "north", "town", "estimate"
    ]  # fmt: skip
    assert (table["error"] != 9).all()


def test_arrays_are_the_columns_of_the_table(release, series, subtests):
    for name, answers in {
        "boxes": release.query(BOXES),
        "polygons": release.query(list(shapes().geometry), crs=3857),
        "slices": series.query(BOXES, each="slice"),
        "windows": series.query(BOXES, when=["2024-02", "2024-01..2024-02"]),
        "slices of windows": series.query(BOXES, when=["2024-02", "2024-01"], each="slice"),
    }.items():
        with subtests.test(name):
            made = pd.DataFrame(answers.arrays)
            pd.testing.assert_frame_equal(made, answers.table.reset_index(drop=True))


def test_totals_and_joint_answers_are_those_of_one_slice(release, series):
    total = release.query(BOXES).total()
    assert total.estimate == pytest.approx(release.query(BOXES)["estimate"].sum())
    assert series.query(BOXES, when="2024-01").total() == total
    assert series.query(BOXES, when="2024-01", each="slice").total() == total
    assert len(series.query(BOXES, when="2024-01").explain()) == 2
    both = total.estimate + series["2024-02"].query(BOXES).total().estimate
    assert series.query(BOXES).total().estimate == pytest.approx(both)
    for ask in ("nested", "explain"):
        with pytest.raises(ParameterError, match=r"when must be one time slice for .*, got 2 tog"):
            getattr(series.query(BOXES), ask)()
        with pytest.raises(ParameterError, match=r"when must be one time slice for .*, got 2 win"):
            getattr(series.query(BOXES, when=["2024-01", "2024-01"]), ask)()
    with pytest.raises(ParameterError, match="areas must not have a column joint_lower"):
        release.query(shapes().assign(joint_lower=1)).joint()


def test_confidence_of_a_query_is_that_of_its_joint_answers(release):
    narrow, wide = (release.query(BOXES, confidence=level).joint() for level in (0.5, 0.99))
    assert narrow.confidence == 0.5
    assert (narrow.answers["joint_lower"] > wide.answers["joint_lower"]).all()


def test_areas_have_a_geometry(release, series):
    answers = release.query(BOXES).to_geopandas()
    assert [shape.bounds for shape in answers.geometry] == BOXES
    assert answers.crs.to_epsg() == 3857
    both = series.query(pd.DataFrame(BOXES, columns=["west", "south", "east", "north"]).assign(
        geometry="mine"), each="slice").to_geopandas()  # fmt: skip
    assert both.geometry.name == "geometry_of_region"
    assert len(both) == 4


def test_answers_stream_to_arrow(release):
    table = pa.table(release.query(BOXES))
    assert table.column_names[:2] == ["id", "estimate"]
    shown = pa.table(release.query(shapes()))
    assert shown.schema.field("geometry").metadata[b"ARROW:extension:name"] == b"geoarrow.wkb"


def test_answers_are_shown(release):
    answers = release.query(BOXES)
    assert repr(answers).endswith("<Answers: 2, epsilon 1 per record; given: psd did not draw "
                                  "these counts and does not vouch for epsilon>")  # fmt: skip
    page = answers._repr_html_()
    assert "<table" in page
    assert "epsilon 1 per record" in page


@pytest.mark.deep
def test_answers_are_drawn(release, series):
    import matplotlib as mpl

    mpl.use("agg")
    axes = release.query(BOXES).plot()
    assert len(axes.collections[0].get_paths()) == 2
    assert axes.get_title().startswith("estimate\nepsilon 1")
    other = mpl.pyplot.subplots()[1]
    assert release.query(shapes()).plot("quality", ax=other, cmap="magma") is other
    assert release.query([(0, 0, 1, 1)]).plot("relative_error")
    mpl.pyplot.close("all")
    with pytest.raises(ParameterError, match="column must be one of the answers"):
        release.query(BOXES).plot("count")
    assert series.query(BOXES).plot()
    with pytest.raises(ParameterError, match="each must be left out for a map"):
        series.query(BOXES, each="slice").plot()
    with pytest.raises(ParameterError, match=r"when must be one window for a map, .* 2 windows"):
        series.query(BOXES, when=["2024-01", "2024-02"]).plot()


@pytest.mark.deep
def test_answers_are_explored(release):
    for column in ("estimate", "relative_error", "reliable", "quality"):
        page = release.query(shapes()).explore(column).get_root().render()
        assert '"perturbation_error"' in page
        assert "https://tile" not in page
