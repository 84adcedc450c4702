"""Answers of a cube: rows, sums over boxes and windows, and what a cube refuses."""

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from psd.errors import ParameterError
from psd.query.cubes import Windows, cube_batches, cube_totals
from support.cubes import DOMAIN, SLICES, cube, town

BOX = (1.3, 2.1, 6.7, 9.9)
BOXES = [(0, 0, 8, 8), BOX, (8, 8, 16, 16)]
WHOLE = [(0, 0, 16, 16)]
WINDOWS = ["2024-01-01", "weekdays 07-09", "2024-01-01T06..2024-01-02T03"]
ERRORS = ["perturbation_error", "nonuniformity_error"]


@pytest.fixture(scope="module")
def data():
    return cube()


def tiles(size=4):
    """Boxes that tile the domain and cut cells."""
    edges = np.array([0, *np.linspace(0, 16, size + 1)[1:-1] + 0.137, 16])
    return [
        (edges[i], edges[j], edges[i + 1], edges[j + 1]) for i in range(size) for j in range(size)
    ]


def signed(release, areas, windows):
    """Unbiased estimates of windows, before they are cut at 0, (windows, areas)."""
    numbers = Windows.of_cells([SLICES.window(when).numbers for when in windows], [len(SLICES)])
    found = cube_totals(release._cube.fit, release.query(areas).areas, numbers)
    return np.stack([totals.signed for totals in found])


def test_boxes_that_tile_sum_to_the_whole(data):
    parts, whole = signed(data, tiles(), WINDOWS), signed(data, WHOLE, WINDOWS)
    assert parts.sum(axis=1) == pytest.approx(whole[:, 0], rel=1e-9)
    shown = data.query(WHOLE, when=WINDOWS)["estimate"].to_numpy()
    assert shown == pytest.approx(whole[:, 0], rel=1e-12)


def test_windows_that_tile_sum_to_all_time(data):
    days = data.query(BOXES, when=["2024-01-01", "2024-01-02"])["estimate"].to_numpy()
    everything = data.query(BOXES)["estimate"].to_numpy()
    assert days.reshape(2, -1).sum(axis=0) == pytest.approx(everything, rel=1e-9)


def test_all_of_everything_is_the_root(data):
    fit = data._cube.fit
    answer = data.query(WHOLE).table
    assert answer["estimate"][0] == pytest.approx(fit.estimates.signed[0], rel=1e-12)
    assert answer["nonuniformity_error"][0] == pytest.approx(0, abs=1e-6)
    assert answer["perturbation_error"][0] ** 2 == pytest.approx(fit.estimates.variance[0])


def test_no_area_has_no_answer(data):
    for how in ({}, {"when": WINDOWS}, {"each": "slice"}):
        assert len(data.query(np.zeros((0, 4)), **how).table) == 0


def test_areas_outside(data):
    outside = [BOX, (-9, -9, -8, -8)]
    table = data.query(outside, outside="zero", when=WINDOWS).table
    assert table["estimate"].tolist()[1::2] == [0, 0, 0]
    assert table[ERRORS].to_numpy()[1::2].tolist() == [[0, 0]] * 3
    alone = data.query([BOX], when=WINDOWS)["estimate"].tolist()
    assert table["estimate"].tolist()[::2] == alone
    skipped = data.query(outside, outside="skip", when=WINDOWS).table
    assert skipped["estimate"].tolist() == alone
    with pytest.raises(psd.errors.PsdError):
        data.query(outside, when=WINDOWS)


def test_polygons_answer_as_boxes_of_their_shape(data):
    shapes = gpd.GeoDataFrame(geometry=[shapely.box(*box) for box in BOXES], crs=DOMAIN.crs)
    names = ["estimate", *ERRORS, "lower", "upper"]
    polygons = data.query(shapes, when=WINDOWS).table[names].to_numpy()
    boxes = data.query(BOXES, when=WINDOWS).table[names].to_numpy()
    assert polygons == pytest.approx(boxes, rel=1e-6, abs=1e-6)


def test_rows_of_each_slice(data):
    table = data.query(BOXES, each="slice").table
    assert table["slice"].tolist() == [name for name in SLICES.names for _ in BOXES]
    assert (table["estimate"] >= 0).all()
    for name in ("2024-01-01T08", "2024-01-02T19"):
        own = table[table["slice"] == name].drop(columns="slice").reset_index(drop=True)
        alone = data.query(BOXES, when=name).table
        assert own["estimate"].tolist() == alone["estimate"].tolist()
        assert own[ERRORS].to_numpy() == pytest.approx(alone[ERRORS].to_numpy(), rel=1e-9)
    some = data.query(BOXES[:1], when=["07-09", "2024-01-01T08"], each="slice").table
    assert some.columns[:3].tolist() == ["when", "slice", "id"]
    assert some["slice"].tolist() == [
        *(f"2024-01-0{day}T0{hour}" for day in (1, 2) for hour in (7, 8)),
        "2024-01-01T08",
    ]


def test_windows_overlap_and_each_is_as_it_is_alone(data):
    table = data.query(BOXES, when=WINDOWS).table
    assert table["when"].tolist() == [name for name in WINDOWS for _ in BOXES]
    for name in WINDOWS:
        own = table[table["when"] == name].drop(columns="when").reset_index(drop=True)
        alone = data.query(BOXES, when=name).table
        assert own["estimate"].tolist() == pytest.approx(alone["estimate"].tolist(), rel=1e-12)
        assert own[ERRORS].to_numpy() == pytest.approx(alone[ERRORS].to_numpy(), rel=1e-9)


def test_days_of_the_week(data):
    """The first of January 2024 is a Monday."""
    named = data.query(BOXES, when=["mondays", "tuesdays", "weekdays"])["estimate"].to_numpy()
    dated = data.query(BOXES, when=["2024-01-01", "2024-01-02", "2024-01-01..2024-01-02"])
    assert named.tolist() == dated["estimate"].tolist()
    with pytest.raises(ParameterError, match="when"):
        data.query(BOXES, when="weekends")


def test_mornings_are_where_records_are_in_the_morning(data):
    places = [(0, 0, 8, 8), (8, 8, 16, 16)]
    answers = data.query(places, when=["06-10", "17-21"])["estimate"].to_numpy()
    table = town()
    hour = table["time"].dt.hour
    for number, (first, stop) in enumerate([(6, 10), (17, 21)]):
        during = table[(hour >= first) & (hour < stop)]
        for place, (west, south, east, north) in enumerate(places):
            true = (during["lon"].between(west, east) & during["lat"].between(south, north)).sum()
            assert abs(answers[2 * number + place] - true) < 60 + 0.15 * true


def test_windows_take_the_part_of_a_span():
    windows = Windows.of_cells([np.array([1, 2, 5]), np.arange(6)], [6])
    spans = np.array([[0, 4], [5, 6], [3, 5], [0, 6]], np.int32)
    assert windows.sizes.tolist() == [3, 6]
    assert windows.shares(np.zeros(4, int), spans).tolist() == [0.5, 1, 0, 0.5]
    assert windows.shares(np.ones(4, int), spans).tolist() == [1, 1, 1, 1]


def test_windows_have_parts_of_all_records(data):
    [profile] = data._cube.fit.profiles
    assert profile.sum() == pytest.approx(data._cube.fit.estimates.count[0], rel=1e-6)
    mornings = np.arange(48)[np.arange(48) % 24 < 12]
    windows = [mornings, np.setdiff1d(np.arange(48), mornings), np.arange(48)]
    parts = Windows.of_cells(windows, [48]).parts([profile])
    assert parts[:2].sum() == pytest.approx(1)
    assert parts[2] == pytest.approx(1)


def test_records_of_all_time_lie_where_those_of_all_time_do(data):
    fit, areas = data._cube.fit, data.query([BOX]).areas
    everything = Windows.of_cells([np.arange(48)], [48])
    (_, _, batch), *_ = cube_batches(fit, areas, everything)
    records = batch.in_cut[batch.in_cut > 0]
    assert batch.spread[batch.in_cut > 0] == pytest.approx(fit.cluster_size * records)


def test_places_of_one_slice_are_less_even_than_those_of_the_slices_counted_together():
    data, rng = town(6_000), np.random.default_rng(2)
    when = data["time"].to_numpy(copy=True)
    mixed = rng.permutation(len(when))[:4_000]
    when[mixed] = when[rng.permutation(mixed)]  # so that hours are alike, but not all of them
    fit = cube(data=data.assign(time=when))._cube.fit
    place, above, spans, value, variance = fit._families
    first = spans[:, :1] // 4 * 4  # as if four slices had been counted together
    vars(fit)["_families"] = place, above, np.hstack([first, first + 4]), value, variance
    top = np.flatnonzero(fit.plane.tree.level == 1)[:1]
    one, two, four = (fit.overdispersions(np.array([[w]]), top, 0 * top)[0] for w in (1, 2, 4))
    assert 0 < four < 0.5
    assert one / four == pytest.approx(2, rel=0.1)
    assert two / four == pytest.approx(2**0.5, rel=0.1)


def test_slices_that_are_not_divided_lie_as_others_do():
    fit, place = cube()._cube.fit, np.array([0, 1])
    assert fit.plane.tree.level[place].tolist() == [0, 1]
    for width in (1, 24):
        whole, part = fit.overdispersions(np.full((2, 1), width), place, 0 * place)
        assert part < whole < 1
        assert whole == pytest.approx(part**0.5)


@pytest.mark.parametrize("is_alike", [True, False])
def test_what_places_have_in_common_is_learnt_from_pairs_of_them(is_alike):
    slices = psd.TimeSlices.parse("hour", "2024-01-01T00..2024-01-21T23")
    fit = cube(3, town(10_000, slices), slices)._cube.fit
    tree = fit.tree
    parents = np.flatnonzero(~tree.is_leaf)
    parents = parents[fit.nodes[tree.first_child[parents]] == fit.nodes[parents]]
    # Of each span that is divided, the first part has too many in all places, or in every other.
    value, places = 1_000 * fit.shares, Counter()
    for parent in parents:
        child = tree.first_child[parent] + np.arange(tree.children[parent])
        span = tree.level[parent], *tree.spans[parent]
        sign = 1 if is_alike or places[span] % 2 else -1
        value[child] += sign * np.array([200, -200, 0, 0])[: len(child)]
        places[span] += 1
    nothing = np.zeros(len(tree))
    estimates = replace(fit.estimates, upward=value, upward_variance=nothing)
    fit = replace(fit, estimates=estimates)
    highest = min(level for (level, *_), number in places.items() if number > 1)
    several = (tree.lengths[:, 0] > 1) & (tree.level > highest)
    assert several.any()
    own, common = fit.time_overdispersion[several], fit.common_overdispersion[several]
    assert (own + common > 0.02).all()
    assert own == pytest.approx(0.0, abs=1e-3) if is_alike else common == pytest.approx(0.0)


REFUSED = {
    "slice": lambda release, path: release["2024-01-03"],
    "windows": lambda release, path: release[WINDOWS],
    "nested areas in windows": lambda release, path: release.query(BOXES, when=WINDOWS).nested(),
    "difference of a window": lambda release, path: release.query(BOXES, difference=release),
    "difference of windows": lambda release, path: release.query(
        BOXES, when=WINDOWS, difference=release
    ),
    "top of windows": lambda release, path: release.query(top=3, when=WINDOWS),
    "save a window": lambda release, path: release[WINDOWS[1]].save(path / "w.psd.parquet"),
    "change a window": lambda release, path: release[WINDOWS[1]].replace(about={}),
    "describe a window": lambda release, path: release[WINDOWS[1]].catalogue("dcat"),
    "ask a window": lambda release, path: release[WINDOWS[1]].query(BOXES, when=WINDOWS[0]),
    "join windows": lambda release, path: psd.Release.from_slices(
        psd.TimeSlices.parse("day", "2024-01-01"), [release["2024-01-01"]]
    ),
    "a map of windows": lambda release, path: release[WINDOWS[1]].map(
        path / "m.html", when=WINDOWS[0]
    ),
    "errors": lambda release, path: release.query(BOXES, errors=False),
    "mean": lambda release, path: release.query(BOXES, mean="fare"),
}


@pytest.mark.parametrize(
    "what",
    [pytest.param(what, marks=[pytest.mark.app("web")] * ("map" in what)) for what in REFUSED],
)
def test_what_a_cube_refuses_is_one_sentence(data, tmp_path, what):
    with pytest.raises(psd.errors.PsdError) as refused:
        REFUSED[what](data, tmp_path)
    told = str(refused.value)
    assert "must be" in told or "must not be" in told
    assert "\n" not in told
    assert not list(tmp_path.iterdir())


def made_up_city(records, seed):
    """A city of three weeks, its domain, and boxes of three sizes around records."""
    sys.path.insert(0, str(Path(__file__).parents[3] / "data" / "hours"))
    try:
        import generate
    finally:
        sys.path.pop(0)
    city, rng = generate.city(records, seed), np.random.default_rng(4)
    center = city[["lon", "lat"]].to_numpy()[rng.choice(len(city), 40)]
    half = rng.choice([0.005, 0.015, 0.04], (40, 1)) / 2
    low, high = generate.BOUNDS[:2], generate.BOUNDS[2:]
    boxes = np.hstack([np.clip(center - half, low, high), np.clip(center + half, low, high)])
    return city, psd.Domain(bounds=generate.BOUNDS), boxes


def counts_in(boxes, data):
    """True counts of boxes, (boxes,)."""
    return np.array(
        [(data["lon"].between(w, e) & data["lat"].between(s, n)).sum() for w, s, e, n in boxes]
    )


@pytest.mark.deep
def test_intervals_of_a_city_hold():
    """95 % intervals of four builds, all windows together."""
    city, domain, boxes = made_up_city(60_000, 3)
    hours = psd.TimeSlices.parse("hour", "2024-01-01T00..2024-01-21T23")
    windows = {
        "2024-01-08": (city["time"].dt.date.astype(str) == "2024-01-08"),
        "2024-01-03T08": (city["time"].dt.floor("h") == "2024-01-03T08"),
        "weekdays 07-09": (city["time"].dt.day_of_week < 5) & city["time"].dt.hour.isin([7, 8]),
        "2024-01-01..2024-01-07": city["time"] < "2024-01-08",
    }
    true = np.ravel([counts_in(boxes, city[mask]) for mask in windows.values()])
    held = []
    for seed in range(4):
        table = cube(seed, city, hours, domain=domain).query(boxes, when=list(windows)).table
        held.append((table["lower"] <= true) & (true <= table["upper"]))
    assert 0.88 <= np.mean(held) <= 1


@pytest.mark.deep
def test_intervals_hold_where_all_places_have_hours_that_cells_do_not_know():
    """Mornings of a week at a small epsilon, whose cells have several hours."""
    city, domain, boxes = made_up_city(150_000, 1)
    week = city[city["time"] < "2024-01-08"]
    hours = psd.TimeSlices.parse("hour", "2024-01-01T00..2024-01-07T23")
    is_morning = week["time"].dt.hour.isin([7, 8, 9]) & (week["time"].dt.day_of_week < 5)
    true, held, apart = counts_in(boxes, week[is_morning]), [], []
    for seed in range(4):
        made = cube(seed, week, hours, domain=domain, epsilon=0.1)
        fit = made._cube.fit
        own, common = fit.time_overdispersion, fit.common_overdispersion
        for found, in_time in ((held, (own, common)), (apart, (own + common, 0.0 * common))):
            vars(fit)["_in_time"] = in_time
            table = made.query(boxes, when="weekdays 07-10").table
            found.append((table["lower"] <= true) & (true <= table["upper"]))
    assert np.mean(apart) < 0.8 <= 0.88 <= np.mean(held)


@pytest.mark.deep
def test_perturbation_errors_are_those_of_many_builds():
    """The deviation of answers of builds, whose trees differ too, beside the stated error."""
    rng = np.random.default_rng(9)
    corner = rng.uniform(1, 9, (12, 2))
    boxes = np.hstack([corner, corner + rng.uniform(3, 6, (12, 2))])
    data = town(2_000)
    tables = [cube(seed, data).query(boxes, when=WINDOWS).table for seed in range(100)]
    estimates = np.stack([table["estimate"].to_numpy() for table in tables])
    # The median: where the plane has hardly a record, a build may state far too much.
    stated = np.median([table["perturbation_error"] for table in tables], axis=0)
    # Answers that are cut at 0 vary less than their noise.
    is_clear = estimates.mean(axis=0) > 3 * stated
    assert is_clear.sum() >= 12
    ratio = (stated / estimates.std(axis=0, ddof=1))[is_clear]
    assert ((ratio > 0.6) & (ratio < 1.6)).all(), ratio


def test_answers_do_not_depend_on_how_many_are_computed_together(monkeypatch):
    from psd.query import cubes

    cube = psd.build(town(600), domain=DOMAIN, epsilon=1, method="cube", slices=SLICES, time="time")
    boxes = [(0, 0, 8, 8), (3, 2, 9, 14), (1, 1, 15, 3)]
    whole = cube.query(boxes, each="slice").table
    monkeypatch.setattr(cubes, "_PAIRS_PER_BATCH", 40)
    parts = cube.query(boxes, each="slice").table
    assert np.allclose(whole[["estimate", "error"]], parts[["estimate", "error"]], rtol=1e-9)
