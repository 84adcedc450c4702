"""A cube in windows of time: its cells have the answers to their boxes, and it is no release."""

import gc
import weakref
from dataclasses import replace

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from psd.errors import InternalError, ParameterError
from psd.estimation.fit import fit
from psd.query.cube_views import WindowCounts, window_counts
from psd.query.totals import WindowFit
from psd.release.about import About
from psd.release.cube import all_time
from psd.release.file import write_release
from psd.space.time_slices import TimeWindow
from psd.statistics.raster import density_raster
from support.cubes import DOMAIN, SLICES, cube, town
from support.seeded_system import seeded_system

WINDOWS = ["2024-01-01T08", "weekdays 07-09", "2024-01-01T06..2024-01-02T03", "2024-01-02"]
BOXES = [(1.3, 2.1, 6.7, 9.9), (8, 8, 16, 16)]
ERRORS = ["perturbation_error", "nonuniformity_error", "error"]


@pytest.fixture(scope="module")
def data():
    return cube()


def of_cells(release, table, **when):
    """Answers to the boxes of a table of cells."""
    return release.query(table.geometry.bounds.to_numpy(), **when).table


def test_cells_have_the_answers_to_their_boxes(data, subtests):
    for when in WINDOWS:
        view = data[when]
        for choice in ({}, {"cells": "all"}, {"level": 2}):
            table = view.to_geopandas(**choice)
            answers = of_cells(data, table, when=when)
            with subtests.test(f"{when} {choice}"):
                for name in ("estimate", *ERRORS):
                    found, asked = table[name].to_numpy(), answers[name].to_numpy()
                    assert found == pytest.approx(asked, rel=1e-9, abs=1e-9)
                assert table["quality"].tolist() == answers["quality"].tolist()
                assert (table["estimate"] >= 0).all()


@pytest.fixture(scope="module", params=[{"slices": None}, {}], ids=["alone", "slices"])
def labelled(request):
    """A cube with categories that lie in other places than each other."""
    table = town()
    rng = np.random.default_rng(3)
    west, east = (rng.choice(["bus", "tram", "taxi"], len(table), p=p)
                  for p in ([0.7, 0.1, 0.2], [0.1, 0.6, 0.3]))  # fmt: skip
    table["mode"] = np.where(table["lon"] < 8, west, east)
    labels = {"public": "", "bus": "public", "tram": "public"}
    options = {"category": "mode", "labels": labels, "per": "record", **request.param}
    options |= {"slices": SLICES, "time": "time"} if "slices" not in options else {}
    with seeded_system(5):
        return psd.build(table, domain=DOMAIN, epsilon=2, method="cube", **options)


def test_cells_of_a_category_have_its_answers(labelled, subtests):
    windows = [None] if labelled.slices is None else [None, *WINDOWS[:3]]
    for when in windows:
        for category in ("bus", "public", "mode=tram", "other", None):
            table = labelled[when, category].to_geopandas(cells="all")
            answers = of_cells(labelled, table, when=when, category=category)
            with subtests.test(f"{when} {category}"):
                for name in ("estimate", *ERRORS):
                    found, asked = table[name].to_numpy(), answers[name].to_numpy()
                    assert found == pytest.approx(asked, rel=1e-9, abs=1e-9)
                assert table["quality"].tolist() == answers["quality"].tolist()


def test_views_of_a_category_are_asked_as_the_cube_is(labelled):
    view = labelled[:, "mode=public"]
    assert view.query(BOXES).table.equals(labelled.query(BOXES, category="public").table)
    assert view.query(top=2).table.equals(labelled.query(top=2, category="public").table)
    other = labelled[:, "bus"]
    found = view.query(BOXES, difference=other).table
    both = labelled.query(BOXES, category=["public", "bus"]).joint()
    for row in range(2):
        expected = both.difference(row, 2 + row)
        assert found["difference"][row] == pytest.approx(expected.estimate)
        assert found["perturbation_error"][row] == pytest.approx(expected.perturbation_error)
    assert abs(len(view.to_points(seed=1)) - view.total) < 1
    assert view.total == pytest.approx(labelled.query([(0, 0, 16, 16)], category="public")[
        "estimate"][0])  # fmt: skip
    assert labelled[:].total == labelled.total


def test_a_view_of_a_category_states_it_and_the_guarantee_of_its_cube(labelled):
    view = labelled[:, "public"]
    time = {} if labelled.slices is None else {"when": "all time"}
    assert view.metadata == {**labelled.metadata, **time, "category": "mode=public"}
    assert view.to_geopandas().attrs["category"] == "mode=public"
    assert "mode=public" in repr(view)
    assert (view.epsilon, view.digest) == (labelled.epsilon, labelled.digest)
    assert view.record.guarantee_text == labelled.record.guarantee_text
    assert "category" not in labelled[:].metadata


def test_views_that_are_refused(labelled, data):
    refusals = {
        "category must be a label of mode.*did you mean 'tram'": {"category": "trams"},
        "category must be one label, got 2": {"category": ["bus", "tram"]},
        "category must be a label, or several, got '3'": {"category": 3},
    }
    for words, asked in refusals.items():
        with pytest.raises(ParameterError, match=words):
            labelled[:, asked["category"]]
    with pytest.raises(ParameterError, match=r"category must be left out.*no categories"):
        data[:, "bus"]
    with pytest.raises(ParameterError, match="when must be one window, got 2"):
        data[["2024-01-01", "2024-01-02"]]
    with pytest.raises(ParameterError, match="must be a cube to have views, got a window"):
        data["2024-01-01"][:, "bus"]
    record = labelled[:, "bus"].record
    for other in ({"category": "tram"}, {"category": "no"}, {"window": all_time(labelled.record)}):
        with pytest.raises(ParameterError, match="of the category that it names"):
            replace(record, **other)


def test_without_a_window_a_cube_is_shown_in_all_time(data):
    table = data.to_geopandas()
    answers = of_cells(data, table)
    for name in ("estimate", *ERRORS):
        assert table[name].to_numpy() == pytest.approx(answers[name].to_numpy(), rel=1e-9, abs=1e-9)
    assert table.attrs["when"] == "all time"
    again = data[all_time(data.record)].to_geopandas()
    assert again.drop(columns="geometry").equals(table.drop(columns="geometry"))


def test_counts_are_those_of_answers(data):
    cells = data.record.cells
    for when in WINDOWS:
        made = data[when].index.fit
        assert isinstance(made, WindowFit)
        count, signed = window_counts(data._cube.fit, SLICES.window(when).numbers)
        assert signed == pytest.approx(made.cells.signed, rel=1e-9, abs=1e-9)
        assert (count >= -1e-12).all()
        sums = np.bincount(cells.parent[1:], count[1:], len(cells))
        assert sums[~cells.is_leaf] == pytest.approx(count[~cells.is_leaf], abs=1e-9)
        assert count[0] == pytest.approx(max(made.cells.estimate[0], 0))
        assert data[when].total == pytest.approx(count[0])
    # Counts of one slice are the published ones.
    count, _ = window_counts(data._cube.fit, np.array([8]))
    assert count == pytest.approx(data[WINDOWS[0]].index.fit.cells.estimate, abs=1e-9)


def test_a_view_states_the_guarantee_of_its_cube(data):
    view = data["weekdays 07-09"]
    record = view.record
    assert (record.guarantee_text, record.unit_text) == (
        data.record.guarantee_text, data.record.unit_text
    )  # fmt: skip
    assert (view.epsilon, view.digest) == (data.epsilon, data.digest)
    assert view.metadata == {**data.metadata, "when": "weekdays 07-09"}
    assert "weekdays 07-09" in repr(view)
    assert view.slices is None
    bounded = cube(user="user", max_contributions=4)
    assert bounded["mondays"].record.unit_text == bounded.record.unit_text


def test_a_view_is_asked_as_the_cube_is(data):
    for when in WINDOWS:
        alone, asked = data[when].query(BOXES), data.query(BOXES, when=when)
        assert alone.table.equals(asked.table)
        assert alone.total().error == pytest.approx(asked.total().error)
    assert (
        data[TimeWindow(name="two", numbers=[3, 9])]
        .query(BOXES)
        .table.equals(data.query(BOXES, when=TimeWindow(name="two", numbers=[3, 9])).table)
    )


def test_views_are_subtracted_as_windows_that_share_noise(data):
    found = data["2024-01-01"].query(BOXES, difference=data["2024-01-02"]).table
    both = data.query(BOXES, when=["2024-01-01", "2024-01-02"]).joint()
    for row in range(2):
        expected = both.difference(row, 2 + row)
        assert found["difference"][row] == pytest.approx(expected.estimate)
        assert found["perturbation_error"][row] == pytest.approx(expected.perturbation_error)


def test_a_view_is_no_release(data, tmp_path):
    view = data["2024-01-01"]
    with pytest.raises(ParameterError, match="must not be a window of a cube"):
        view.save(tmp_path / "v.psd.parquet")
    with pytest.raises(ParameterError, match="must be ReleaseRecord"):
        write_release(view.record, tmp_path / "v.psd.parquet")
    with pytest.raises(InternalError):  # the counts of its cells are of all time
        fit(view.record)
    assert not list(tmp_path.iterdir())


def test_a_view_has_nothing_but_its_cube(data):
    """An export checks the cube of a view, and shows the view."""
    record, seeded = data["2024-01-01"].record, cube(sampler=psd.testing.SeededSampler(1))
    for other in (
        {"cube": seeded.record},
        {"tree": seeded.record.cells},
        {"source": "insecure"},
        {"about": About(title="exact")},
        {"window": TimeWindow(name="later", numbers=[len(SLICES)])},
    ):
        with pytest.raises(ParameterError, match="of its cube"):
            replace(record, **other)
    assert replace(record).window is record.window


def test_rasters_have_the_answers_to_their_cells(data):
    raster = density_raster(data["weekdays 07-09"].index.fit, 5, 3)
    x, y = np.linspace(0, 16, 6), np.linspace(0, 16, 4)
    boxes = [(x[i], y[j], x[i + 1], y[j + 1]) for j in (2, 1, 0) for i in range(5)]
    answers = data.query(boxes, when="weekdays 07-09").table
    assert raster.count.ravel() == pytest.approx(answers["estimate"].to_numpy(), abs=1e-9)
    for name in ERRORS:
        assert getattr(raster, name).ravel() == pytest.approx(answers[name].to_numpy(), abs=1e-9)


def test_the_first_cells_and_areas_of_a_window(data):
    table = data["2024-01-01"].to_geopandas().sort_values("estimate", ascending=False)
    first = data.query(top=3, when="2024-01-01").table
    # Cells of a view are not negative, family by family.
    assert first["estimate"].to_numpy() == pytest.approx(table["estimate"].to_numpy()[:3], rel=0.01)
    assert first["error"].to_numpy() == pytest.approx(table["error"].to_numpy()[:3])
    assert data["2024-01-01"].query(top=3).table.equals(first)
    # Morning and evening have their own places.
    areas = [(0, 0, 8, 8), (8, 8, 16, 16), (0, 8, 8, 16)]
    mornings = data.query(areas, top=1, when="06-10").table
    evenings = data.query(areas, top=1, when="17-21").table
    assert (mornings["id"].tolist(), evenings["id"].tolist()) == ([1], [2])
    assert evenings["probability"][1] > 0.9
    assert data.query(top=1).table["estimate"][0] == pytest.approx(
        data.to_geopandas()["estimate"].max()
    )


def test_nested_areas_of_a_window_add_up(data):
    areas = [(4, 5, 5, 6), (3, 3, 7, 7), (0, 0, 16, 16)]
    asked = data.query(areas, when="2024-01-01")
    nested, joint = asked.nested(), asked.joint()
    assert (nested["ring"] >= 0).all()
    assert nested["ring"].sum() == pytest.approx(nested["estimate"][2])
    assert nested["ring_error"][1] == pytest.approx(joint.difference(1, 0).error)
    assert data["2024-01-01"].query(areas).nested().equals(nested)


def test_the_total_of_a_window_needs_no_errors(data, monkeypatch):
    expected = {when: data[when].index.fit.total for when in WINDOWS}
    monkeypatch.setattr("psd.query.cube_views.window_index", None)
    for when, total in expected.items():
        assert data[when].total == pytest.approx(total)
    assert data.total == pytest.approx(data.query([(0, 0, 16, 16)])["estimate"][0])


def test_classes_of_density_of_a_window(data):
    breaks = data.query(quantiles=True, when="2024-01-01", size=(8, 8), draws=20).table
    assert (np.diff(breaks["density"]) >= 0).all()
    assert (breaks["error"] > 0).all()


def test_points_of_a_cube_are_of_its_slices(data):
    points = data.to_points(seed=3)
    assert points.columns.tolist() == ["slice", "geometry"]
    assert set(points["slice"]) <= set(SLICES)
    of_slices = points["slice"].value_counts()
    for name in ("2024-01-01T08", "2024-01-02T19"):
        assert abs(of_slices[name] - data[name].total) < 1
    window = data["2024-01-01"].to_points(seed=3)
    assert window.columns.tolist() == ["geometry"]
    assert abs(len(window) - data["2024-01-01"].total) < 1
    assert window.attrs["when"] == "2024-01-01"
    assert len(data.to_points(100, seed=3)) == 100


def test_counts_of_windows_are_made_one_after_the_other(data):
    asked = WindowCounts(data._cube, {name: SLICES.window(name) for name in SLICES.names[:5]})
    assert list(asked) == list(SLICES.names[:5])
    alive = []
    for index in asked.values():
        alive = [each for each in alive if each() is not None]
        assert len(alive) <= 1
        alive.append(weakref.ref(index))
        del index
        gc.collect()


def test_nothing_of_a_cube_lies_outside_its_boundary():
    shape = shapely.Point(8, 8).buffer(6.3)
    made = cube(boundary=gpd.GeoSeries([shape], crs=DOMAIN.crs))
    table = made["mondays"].to_geopandas()
    outside = ~shapely.intersects(table.geometry.to_numpy(), shape)
    assert outside.any()
    assert (table["estimate"][outside] == 0).all()
    assert (of_cells(made, table[outside], when="mondays")["estimate"] == 0).all()
    points = made.to_points(seed=1)
    # Cells of the raster of the boundary have an edge of 1/16.
    assert shapely.contains_xy(shape.buffer(0.1), points.geometry.x, points.geometry.y).all()


def test_a_cube_of_one_slice_and_of_few_records():
    hour = psd.TimeSlices.parse("hour", "2024-01-01T08")
    for records in (40, 2_000):
        made = cube(data=town(records, hour), slices=hour)
        table = made["2024-01-01T08"].to_geopandas()
        answers = of_cells(made, table, when="2024-01-01T08")
        assert table["estimate"].to_numpy() == pytest.approx(answers["estimate"].to_numpy())
        assert table["error"].to_numpy() == pytest.approx(answers["error"].to_numpy())


def test_the_times_of_a_cube_are_in_catalogues(data):
    properties = data.catalogue("stac", file="c.psd.parquet")["properties"]
    assert properties["start_datetime"] == "2024-01-01T00:00:00Z"
    assert properties["end_datetime"] == "2024-01-02T23:59:59Z"
    dataset = data.catalogue("dcat", file="c.psd.parquet")
    assert "2024-01-01" in str(dataset["dct:temporal"])
