"""Answers of windows of slices: rows, errors, covariance between windows, means and sums."""

import numpy as np
import pandas as pd
import pytest

import psd
from psd.errors import ParameterError
from psd.release.post_processing import PostProcessing
from psd.space.time_slices import TimeWindow
from support.releases import changed

DOMAIN = psd.Domain(bounds=(0, 0, 16, 16), crs="EPSG:3857", lattice=(64, 64))
BOXES = np.array([[0.0, 0, 8, 8], [1.3, 2.1, 6.7, 9.9], [8, 8, 16, 16]])
WINDOWS = ["2024-01-01..2024-01-03", "2024-01-03", "2024-01-03..2024-01-05", "weekends"]
ERRORS = ["perturbation_error", "nonuniformity_error"]


def series(estimate="least-squares", density="uniform", days=6, seed=1):
    """Days, from a Monday on, of a town that is there every day."""
    rng = np.random.default_rng(seed)
    tree = psd.decompositions.grid_tree(DOMAIN, 8)
    edges = np.linspace(0, 16, 9)
    releases = []
    for _ in range(days):
        x, y = np.clip(rng.normal(4, 2, (2, 600)), 0, 15.9)
        counts = np.histogram2d(y, x, (edges, edges))[0].ravel()[tree_order(tree)]
        noisy = np.rint(counts + rng.laplace(0, 1, 64)).astype(int)
        releases.append(psd.Release.from_counts(tree, noisy, 1.0, domain=DOMAIN))
    slices = psd.TimeSlices.parse("day", f"2024-01-01..2024-01-{days:02}")
    made = psd.Release.from_slices(slices, releases)
    return made.replace(post_processing=PostProcessing(estimate=estimate, density=density))


def tree_order(tree):
    """Number of the cell of each leaf, row by row."""
    column, row = tree.boxes[tree.is_leaf][:, :2].T // 8
    return row * 8 + column


@pytest.fixture(scope="module")
def data():
    return series()


def test_each_window_has_the_answers_that_it_has_alone(data):
    together = data.query(BOXES, when=WINDOWS).table
    assert together.columns[:2].tolist() == ["when", "id"]
    assert together["when"].tolist() == [name for name in WINDOWS for _ in BOXES]
    for name in WINDOWS:
        own = together[together["when"] == name].drop(columns="when")
        pd.testing.assert_frame_equal(own, data.query(BOXES, when=name).table)
    one = data.query(BOXES, when=WINDOWS[:1]).table
    assert one.columns[0] == "when"
    pd.testing.assert_frame_equal(one, together[: len(BOXES)])


def test_no_window_is_all_time(data):
    everything = data.query(BOXES).table
    assert len(everything) == len(BOXES)
    assert "when" not in everything
    named = data.query(BOXES, when="2024-01-01..2024-01-06").table
    pd.testing.assert_frame_equal(everything, named)


def test_each_slice_of_each_window(data):
    answers = data.query(BOXES[:1], when=["2024-01-05..2024-01-06", "weekends"], each="slice").table
    assert answers.columns[:3].tolist() == ["when", "slice", "id"]
    assert answers[["when", "slice"]].values.tolist() == [
        ["2024-01-05..2024-01-06", "2024-01-05"],
        ["2024-01-05..2024-01-06", "2024-01-06"],
        ["weekends", "2024-01-06"],
    ]
    alone = data.query(BOXES[:1], when="2024-01-05..2024-01-06", each="slice").table
    assert alone.columns[:2].tolist() == ["slice", "id"]
    assert answers["estimate"].tolist()[:2] == alone["estimate"].tolist()
    assert len(data.query(BOXES, each="slice").table) == 6 * len(BOXES)
    every = data.query(BOXES, when=data.slices).table
    assert every["estimate"].tolist() == data.query(BOXES, each="slice")["estimate"].tolist()


def test_a_window_of_chosen_slices(data):
    own = TimeWindow(name="holidays", numbers=[0, 5])
    answer = data.query(BOXES, when=[own, "2024-01-01,2024-01-06"]).table
    assert answer["when"].iloc[0] == "holidays"
    numbers = answer.drop(columns="when")
    assert numbers[:3].equals(numbers[3:])


@pytest.mark.parametrize("estimate", ["least-squares", "posterior"])
@pytest.mark.parametrize("density", ["uniform", "smooth"])
def test_windows_share_the_noise_of_common_slices(estimate, density, subtests):
    data = series(estimate, density)
    answers = data.query(BOXES, when=WINDOWS)
    joint, size = answers.joint(), len(BOXES)
    names = answers.table.columns
    pd.testing.assert_frame_equal(joint.answers[names], answers.table)
    noise, uneven = joint.perturbation_covariance, joint.nonuniformity_covariance
    for matrix, name in ((noise, ERRORS[0]), (uneven, ERRORS[1])):
        with subtests.test(name):
            assert np.sqrt(np.diagonal(matrix)) == pytest.approx(answers[name].to_numpy())
            assert matrix == pytest.approx(matrix.T)
            assert np.linalg.eigvalsh(matrix).min() > -1e-8 * matrix.max()
    blocks = noise.reshape(4, size, 4, size)
    signed = changed(data["2024-01-03"], post_processing=PostProcessing(
        estimate="signed", density=density)).query(BOXES).joint()  # fmt: skip
    if density == "uniform":  # a smooth one is made of the estimates
        assert blocks[0, :, 2] == pytest.approx(signed.perturbation_covariance)
    with subtests.test("no common slice"):
        assert not blocks[0, :, 3].any()
        assert not uneven.reshape(4, size, 4, size)[0, :, 3].any()
    with subtests.test("a window by itself"):
        for number, name in enumerate(WINDOWS):
            own = data.query(BOXES, when=name).joint()
            rows = slice(number * size, (number + 1) * size)
            assert noise[rows, rows] == pytest.approx(own.perturbation_covariance)
            assert uneven[rows, rows] == pytest.approx(own.nonuniformity_covariance)
            assert own.windows.tolist() == [0] * size


def test_one_slice_has_the_joint_answers_of_its_release(data):
    found, own = (
        asked.joint()
        for asked in (data.query(BOXES, when="2024-01-03"), data["2024-01-03"].query(BOXES))
    )
    pd.testing.assert_frame_equal(found.answers, own.answers)
    assert (found.covariance == own.covariance).all()
    assert found.level == own.level


def test_the_total_of_windows_is_that_of_their_union(data):
    """Up to answers below 0, which there are none of here."""
    parts = ["2024-01-01..2024-01-02", "2024-01-03..2024-01-06"]
    total = data.query(BOXES[1:2], when=parts).total()
    whole = data.query(BOXES[1:2]).table.iloc[0]
    assert total.estimate == pytest.approx(whole["estimate"])
    for name in ERRORS:
        assert getattr(total, name) == pytest.approx(whole[name])
    areas = data.query(BOXES[[0, 2]], when=parts).total()
    both = data.query(BOXES[[0, 2]]).total()
    assert areas.error == pytest.approx(both.error)


def test_a_difference_of_windows_adds_the_variances_of_what_is_not_shared():
    data = series("signed")
    joint = data.query(BOXES[1:2], when=["2024-01-01..2024-01-02", "2024-01-02", "2024-01-03"])
    error = joint["perturbation_error"].to_numpy() ** 2
    uneven = joint["nonuniformity_error"].to_numpy() ** 2
    made = joint.joint()
    less = made.difference(0, 2)
    assert less.perturbation_error**2 == pytest.approx(error[0] + error[2])
    assert less.nonuniformity_error**2 == pytest.approx(uneven[0] + uneven[2])
    first = data["2024-01-01"].query(BOXES[1:2])
    assert made.difference(0, 1).perturbation_error == pytest.approx(first["perturbation_error"][0])


def test_answers_that_overlap_in_space_and_time_have_no_total(data):
    apart, same = BOXES[[0, 2]], BOXES[:1]
    assert data.query(apart, when=["2024-01-01", "2024-01-02"]).joint().overlap is None
    assert data.query(same, when=WINDOWS).joint().overlap == (0, 1)
    assert data.query(BOXES, when=["2024-01-01", "2024-01-02"]).joint().overlap == (0, 1)
    with pytest.raises(ParameterError, match="regions must be disjoint for a total"):
        data.query(same, when=WINDOWS).total()


def test_too_many_answers_have_no_covariance(data):
    boxes = np.tile(BOXES[:1], (1_700, 1))
    with pytest.raises(ParameterError, match="at most 5,000 for joint answers, got 5,100"):
        data.query(boxes, when=WINDOWS[:3]).joint()


def test_sums_add_and_means_are_their_ratio(tmp_path):
    rows = pd.DataFrame({"lon": [1.0, 1, 7, 7], "lat": 1.0, "fare": [10.0, 20, 30, 40]})
    rows["t"] = ["2024-01-01T10", "2024-01-02T10", "2024-01-03T10", "2024-01-03T11"]
    rows["t"] = pd.to_datetime(rows["t"])
    made = psd.build(
        pd.concat([rows] * 200), epsilon=1000, bounds=(0, 0, 8, 8), crs="EPSG:3857", time="t",
        slices="2024-01-01..2024-01-03", method="quadtree", set={"height": 1},
        values=[("fare", 0, 60)], per="record",
    )  # fmt: skip
    windows = ["2024-01-01..2024-01-02", "2024-01-02..2024-01-03"]
    answers = made.query([(0, 0, 8, 8)], when=windows, mean="fare", sum="fare").table
    assert answers["mean_fare"].tolist() == pytest.approx([15, 30], abs=0.1)
    assert answers["sum_fare"].tolist() == pytest.approx([6000, 18000], rel=0.01)
    for number, window in enumerate(windows):
        own = made.query([(0, 0, 8, 8)], when=window, mean="fare", sum="fare").table
        assert own.iloc[0].tolist() == answers.iloc[number].tolist()[1:]


@pytest.mark.parametrize("each", [None, "slice"])
def test_slices_of_which_nothing_is_kept_are_fitted_once(each, monkeypatch):
    data = series("posterior", days=3)
    windows = ["2024-01-01..2024-01-03", "2024-01-01..2024-01-02", "2024-01-02"]
    expected = data.query(BOXES, when=windows, each=each)
    monkeypatch.setattr("psd.api.publication.MOST_KEPT", 0)
    asked, fits = data.replace(), []

    def fit_together(records):
        for record in records:
            fits.append(record)
            yield real(record)

    from psd.query import index

    real = index.fit
    monkeypatch.setattr("psd.query.index.fit_together", fit_together)
    found = asked.query(BOXES, when=windows, each=each)
    assert len(fits) == 3
    assert found.table.equals(expected.table)
    assert found.joint().covariance == pytest.approx(expected.joint().covariance)
    assert len(fits) == 6
    assert not any("fit" in vars(each) for each in found.time.slices.values())


def test_areas_with_a_column_of_the_answers_are_refused(data):
    table = pd.DataFrame(BOXES, columns=["west", "south", "east", "north"]).assign(when=1)
    assert data.query(table, when=WINDOWS[0])["when"].tolist() == [1] * 3
    with pytest.raises(ParameterError, match="must not have a column when, which the answers add"):
        data.query(table, when=WINDOWS)


def test_estimates_alone_are_of_single_slices(data):
    found = data.query(BOXES, when=["2024-01-03", "2024-01-01"], errors=False)
    assert found["when"].tolist() == ["2024-01-03"] * 3 + ["2024-01-01"] * 3
    own = data["2024-01-03"].query(BOXES, errors=False)["estimate"]
    assert found["estimate"].tolist()[:3] == own.tolist()
    with pytest.raises(ParameterError, match="errors must be True for several time slices"):
        data.query(BOXES, when=WINDOWS, errors=False)


def test_statistics_are_of_one_slice(data):
    assert len(data.query(top=2, when="2024-01-03").table) == 2
    for when in (WINDOWS[0], ["2024-01-03", "2024-01-03"]):
        with pytest.raises(ParameterError, match="when must be one time slice with top"):
            data.query(top=2, when=when)
