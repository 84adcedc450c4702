"""Sums over slices: what is added, the errors, and the coverage of intervals."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.errors import ParameterError
from psd.estimation.fit import fit_least_squares, peers_of
from psd.query.totals import QueryTotals, SliceSum
from psd.release.post_processing import PostProcessing
from support.releases import changed
from support.seeded_system import seeded_system

DOMAIN = psd.Domain(bounds=(0, 0, 16, 16), crs="EPSG:3857", lattice=(64, 64))
SIGNED = PostProcessing(estimate="signed")
NAMES = ("estimate", "perturbation_error", "nonuniformity_error", "error", "lower", "upper")
BOXES = np.array([[0.0, 0, 8, 8], [1.3, 2.1, 6.7, 9.9], [0, 0, 16, 16]])


def totals(number, seed):
    rng = np.random.default_rng(seed)
    names = QueryTotals.__dataclass_fields__
    values = {name: rng.uniform(0, 50, number) for name in names}
    return QueryTotals(**values | {"signed": rng.normal(0, 20, number)})


def summed(parts):
    total = SliceSum()
    for part in parts:
        total.add(part)
    return total.totals


def count(points, boxes):
    """Points in each box."""
    return np.array([((points >= b[:2]) & (points < b[2:])).all(axis=1).sum() for b in boxes])


def series(days=5, epsilon=1.0, seed=3, records=400, towns=1):
    """Series of days whose records crowd in towns, which are in the same places every day."""
    rng = np.random.default_rng(seed)
    releases, counts = [], []
    tree = psd.decompositions.grid_tree(DOMAIN, 8)
    places = rng.uniform(2, 14, (towns, 2)) if towns > 1 else np.array([[3.5, 3.5]])
    for _ in range(days):
        points = rng.normal(places[rng.integers(0, towns, records)], 1.5)
        noisy = count(points, tree.boxes[tree.is_leaf] / 4) + np.rint(
            rng.laplace(0, 1 / epsilon, 64)
        )
        releases.append(psd.Release.from_counts(tree, noisy.astype(int), epsilon, domain=DOMAIN))
        counts.append(points)
    last = np.datetime64("2024-01-01") + np.timedelta64(days - 1, "D")
    slices = psd.TimeSlices.parse("day", f"2024-01-01..{last}")
    return psd.Release.from_slices(slices, releases), np.concatenate(counts)


def test_unbiased_estimates_and_variances_of_noise_are_added():
    parts = [totals(6, seed) for seed in range(4)]
    total = summed(parts)
    for name in ("estimate", "signed"):
        assert getattr(total, name) == pytest.approx(sum(part.signed for part in parts))
    for name in ("perturbation_variance", "published_variance"):
        wanted = sum(part.perturbation_variance for part in parts)
        assert getattr(total, name) == pytest.approx(wanted)
    assert total.beyond == pytest.approx(sum(part.beyond for part in parts))


def test_unevenness_is_the_largest_that_any_correlation_gives():
    parts = [totals(6, seed) for seed in range(4)]
    total = summed(parts)
    deviations = np.array([np.sqrt(part.nonuniformity_variance) for part in parts])
    assert total.nonuniformity_variance == pytest.approx(deviations.sum(axis=0) ** 2)
    rng = np.random.default_rng(1)
    for _ in range(50):  # correlations of any kind
        factor = rng.normal(size=(4, 4))
        covariance = factor @ factor.T
        scale = np.sqrt(np.diag(covariance))
        correlation = covariance / np.outer(scale, scale)
        variance = np.einsum("iq,ij,jq->q", deviations, correlation, deviations)
        assert (variance <= total.nonuniformity_variance * (1 + 1e-12)).all()


def test_a_sum_over_one_slice_is_its_answer():
    data, _ = series()
    for regions in (BOXES, gpd.GeoSeries([shapely.box(1.5, 2, 7, 9)], crs="EPSG:3857")):
        one = data.query(regions, when="2024-01-03").table
        answer = data["2024-01-03"].query(regions).table
        assert list(one.columns) == list(answer.columns)
        assert one[list(NAMES)].to_numpy() == pytest.approx(answer[list(NAMES)].to_numpy())


def test_a_sum_is_that_of_the_slices_between():
    data, _ = series()
    named = data.query(BOXES, when="2024-01-02..2024-01-04").table
    parts = [data[f"2024-01-0{day}"].query(BOXES).table for day in (2, 3, 4)]
    signed = [changed(data[f"2024-01-0{day}"], post_processing=SIGNED) for day in (2, 3, 4)]
    noise = np.sqrt(sum(view.query(BOXES)["perturbation_error"] ** 2 for view in signed))
    assert named["perturbation_error"].to_numpy() == pytest.approx(noise)
    uneven = sum(part["nonuniformity_error"] for part in parts)
    assert named["nonuniformity_error"].to_numpy() == pytest.approx(uneven)
    assert (named["lower"] <= named["estimate"]).all()
    assert (named["estimate"] <= named["upper"]).all()


def test_all_slices_are_added_by_default():
    data, _ = series()
    everything = data.query(BOXES)["estimate"]
    named = data.query(BOXES, when="2024-01-01..2024-01-05")["estimate"]
    assert everything.tolist() == named.tolist()
    assert everything.iloc[2] == pytest.approx(2000, abs=60)


def test_boxes_and_polygons_have_the_same_sums():
    data, _ = series()
    shapes = gpd.GeoSeries(shapely.box(*BOXES.T), crs="EPSG:3857")
    by_shape, by_box = data.query(shapes).table, data.query(BOXES).table
    assert by_shape["estimate"].to_numpy() == pytest.approx(by_box["estimate"].to_numpy())
    assert by_shape.geometry.tolist() == shapes.tolist()


def test_sums_of_nearly_empty_slices_are_not_too_large():
    """A sum of published answers, which are never negative, would be far above the truth."""
    data, _ = series(days=28, epsilon=0.05, records=1)
    empty = [(12.0, 12.0, 16.0, 16.0)]
    total = data.query(empty).table
    published = data.query(empty, each="slice")["estimate"].sum()
    assert total["estimate"].iloc[0] < 0.7 * published
    assert total["lower"].iloc[0] == 0


@pytest.mark.deep
def test_intervals_cover_where_all_slices_are_uneven_alike():
    """Towns in other places of each series, the same in all its slices; noise comes from seeds.

    If unevenness were added like noise, the intervals would cover far less.
    """
    boxes = np.array([[2.7, 2.7, 6.7, 6.7], [1.7, 1.7, 5.7, 5.7], [3.7, 0.7, 9.7, 7.7]])
    own, independent = 0, 0
    for seed in range(16):
        data, points = series(days=6, seed=seed, towns=6)
        inside = count(points, boxes)
        total = data.query(boxes).table
        own += int(((total["lower"] <= inside) & (inside <= total["upper"])).sum())
        uneven = np.sqrt(sum(r.query(boxes)["nonuniformity_error"] ** 2 for r in data._releases))
        width = 1.96 * np.hypot(total["perturbation_error"], uneven)
        independent += int((np.abs(total["estimate"] - inside) <= width).sum())
    assert own >= 0.95 * 48
    assert independent < 0.9 * 48


def test_a_window_is_made_of_slices_of_any_length():
    data, _ = series(days=35)
    month = data.query(BOXES, when="2024-01").table
    days = data.query(BOXES, when="2024-01-01..2024-01-31").table
    assert month.equals(days)
    each = data.query(BOXES, when="2024-W02", each="slice").table
    assert each["slice"].tolist() == [f"2024-01-{day:02}" for day in range(8, 15) for _ in BOXES]
    assert data.query(BOXES, when=" 2024-W01 .. 2024-01-09 ").time.slices.keys() == set(
        data.slices.names[:9]
    )


def test_a_gap_between_slices_is_refused_unless_all_are_added():
    data, _ = series(days=2)
    months = psd.TimeSlices.parse("month", "2024-01,2024-03")
    gap = psd.Release.from_slices(months, list(data._releases))
    assert len(gap.query(BOXES).table) == 3
    with pytest.raises(ParameterError, match="there are none from 2024-02-01 to 2024-03-01"):
        gap.query(BOXES, when="2024-01..2024-03")


def test_named_regions_need_a_series_that_has_them():
    data, _ = series()
    with pytest.raises(ParameterError, match="counts no regions by name"):
        data.query()


def test_time_of_a_release_without_slices_is_refused(subtests):
    data, _ = series(days=1)
    for name, value in (("when", "2024-01"), ("each", "slice")):
        with subtests.test(name), pytest.raises(ParameterError, match=f"{name} must be left out"):
            data._releases[0].query(BOXES, **{name: value})
    with pytest.raises(
        ParameterError, match="each must be 'slice', 'category', both or left out, got 'month'"
    ):
        data.query(BOXES, each="month")


@pytest.mark.parametrize("estimate", ["posterior", "signed"])
@pytest.mark.parametrize("each", [None, "slice"])
def test_slices_of_which_nothing_is_kept_have_the_same_answers(estimate, each, monkeypatch):
    smooth = PostProcessing(estimate=estimate, density="smooth")
    kept = series(towns=2)[0].replace(post_processing=smooth)
    expected = kept.query(BOXES, each=each).table
    assert all("fit" in vars(part.index) for part in map(kept.__getitem__, kept))
    monkeypatch.setattr("psd.api.publication.MOST_KEPT", 0)
    asked = kept.replace()
    for _ in range(2):
        found = asked.query(BOXES, each=each)
        assert found.table.equals(expected)
        assert not any("fit" in vars(index) for index in found.time.slices.values())
    assert not any("fit" in vars(part.index) for part in map(asked.__getitem__, asked))
    # A slice that is asked for alone keeps its fit, for what follows from its answers.
    name = next(iter(asked))
    assert asked.query(BOXES, when=name).joint() is not None
    assert "fit" in vars(asked[name].index)


def test_large_slices_that_are_not_kept_are_asked_one_by_one(monkeypatch):
    kept = series(towns=2)[0].replace(post_processing=PostProcessing(density="smooth"))
    expected = kept.query(BOXES).table
    monkeypatch.setattr("psd.query.index.LEAST_NODES", 1)
    monkeypatch.setattr("psd.api.publication.MOST_KEPT", 0)
    asked = kept.replace()
    assert asked.query(BOXES).table.equals(expected)
    assert not any("fit" in vars(part.index) for part in map(asked.__getitem__, asked))


def test_totals_of_many_small_slices_do_not_drift():
    hours, records = 80, 100
    places = np.random.default_rng(3).normal(0.3, 0.05, (hours * records, 2))
    times = np.datetime64("2024-01-01T00") + np.repeat(np.arange(hours), records)
    data = pd.DataFrame({"lon": places[:, 0], "lat": places[:, 1], "time": times})
    with seeded_system(3):
        release = psd.build(
            data,
            epsilon=1,
            bounds=(0, 0, 1, 1),
            time="time",
            slices=f"2024-01-01T00..{times[-1]}",
            per="record",
            separate_slices=True,
        )
    slices = release.record.releases
    each = [[fit_least_squares(one, p) for one in slices] for p in (None, peers_of(slices))]
    alone, settled = (sum(one.signed[0] for one in of_all) for of_all in each)
    error = np.sqrt(sum(one.variance[0] for one in each[1]))
    # Alone, slices are divided more finely where noise was high, and too high by .3 of their error.
    assert alone > settled + error
    assert abs(settled - len(data)) < 4 * error
    answers = release.query([(0, 0, 1, 1)])
    assert answers.table["estimate"][0] == pytest.approx(settled)
    assert answers.table["perturbation_error"][0] == pytest.approx(error)
    assert answers.joint().perturbation_covariance[0, 0] == pytest.approx(error**2)
    # One slice answers as if it were alone, beside a sum with it as well.
    name, box = release.slices.names[0], [(0, 0, 1, 1)]
    both = release.query(box, when=[name, "2024-01-01"]).table["estimate"].to_numpy()
    assert both[0] == release[name].query(box).table["estimate"][0]
    assert both[1] == pytest.approx(release.query(box, when="2024-01-01").table["estimate"][0])
