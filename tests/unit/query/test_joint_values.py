"""Joint answers of means and sums, and the errors along the edge of an area."""

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from psd.errors import ParameterError
from psd.estimation.fit import fit_weights
from psd.query.box_parts import box_fraction
from psd.query.traversal import edge_squares, innovations, traverse
from psd.query.value_edges import learn_edge_factor
from psd.testing import SeededSampler
from support.trees import grid_release, random_tree, release_of
from support.values import BOUNDS, of_values, rides

BOXES = [
    (126.2, 37.3, 126.5, 37.6),
    (126.5, 37.3, 126.7, 37.6),
    (126.31, 37.35, 126.43, 37.5),
    (126.25, 37.25, 126.5, 37.5),
    (126.5, 37.25, 126.75, 37.5),
]
COLUMNS = ("estimate", "mean_fare", "sum_fare")


@pytest.fixture(scope="module")
def release():
    return of_values()


def names_of(column):
    ends = ("perturbation_error", "nonuniformity_error", "lower", "upper")
    return ends if column == "estimate" else tuple(f"{column}_{end}" for end in ends)


def without_edges(made):
    """The same release, as if errors along edges had nothing in common."""
    for part in made.index.value_parts(0):
        vars(part.fit)["edge_factor"] = 0.0
    return made


@pytest.mark.parametrize("kind", ["boxes", "polygons"])
@pytest.mark.parametrize("column", COLUMNS)
def test_the_diagonal_is_that_of_single_answers(release, column, kind):
    areas = BOXES
    if kind == "polygons":
        areas = gpd.GeoSeries([shapely.box(*box).buffer(0.01) for box in BOXES], crs="EPSG:4326")
    single = release.query(areas, mean="fare", sum="fare").table
    joint = release.query(areas).joint(column)
    noise, uneven, lower, upper = (single[name].to_numpy() for name in names_of(column))
    for matrix, error in (
        (joint.perturbation_covariance, noise),
        (joint.nonuniformity_covariance, uneven),
    ):
        assert np.sqrt(np.diagonal(matrix)) == pytest.approx(error, rel=1e-6)
        scale = np.diagonal(matrix).max()
        assert np.linalg.eigvalsh(matrix).min() > -1e-8 * scale
    assert joint.answers[column].tolist() == pytest.approx(single[column].tolist())
    assert (joint.answers.joint_lower <= lower + 1e-9).all()
    assert (joint.answers.joint_upper >= upper - 1e-9).all()
    assert joint.column == column


@pytest.mark.parametrize("column", COLUMNS)
def test_an_answer_less_itself_is_nothing(release, column):
    joint = release.query([BOXES[2], BOXES[0], BOXES[2]]).joint(column)
    found = joint.difference(0, 2)
    assert found.estimate == 0
    assert found.error < 1e-6 * joint.difference(0, 1).error


def test_sums_of_areas_are_that_of_their_union():
    release = without_edges(of_values())
    halves = [(126, 37, 126.5, 38), (126.5, 37, 127, 38)]
    total = release.query(halves).total("sum_fare")
    whole = release.query([BOUNDS], sum="fare").table.iloc[0]
    assert total.estimate == pytest.approx(whole["sum_fare"], rel=1e-9)
    assert total.perturbation_error == pytest.approx(whole["sum_fare_perturbation_error"], rel=0.1)
    assert total.nonuniformity_error == pytest.approx(0, abs=1e-6)
    assert total.lower >= 0


def test_halves_of_a_cell_differ_against_each_other(release):
    west, east = (126.5, 37.5, 126.5625, 37.625), (126.5625, 37.5, 126.625, 37.625)
    uneven = release.query([west, east]).joint("mean_fare").nonuniformity_covariance
    assert uneven[0, 1] == pytest.approx(-np.sqrt(uneven[0, 0] * uneven[1, 1]), rel=1e-6)


def test_what_is_refused(release):
    answers = release.query(BOXES[:2])
    with pytest.raises(ParameterError, match=r"of must be .*\(mean_fare, sum_fare\), got 'fare'"):
        answers.joint("fare")
    with pytest.raises(ParameterError, match="column must be estimate or a sum for a total"):
        answers.total("mean_fare")
    assert answers.joint("mean_fare").ratio(0, 1).estimate < 1
    signed = of_values(values={"balance": (-60, 60)}).query(BOXES[:2]).joint("mean_balance")
    assert signed.difference(0, 1).estimate > 0
    assert signed.combine([1, 1]).lower < 0
    with pytest.raises(ParameterError, match="never below 0 for a ratio, got mean_balance"):
        signed.ratio(0, 1)
    nothing = grid_release(np.ones((2, 2), int)).query([(0, 0, 1, 1)])
    with pytest.raises(ParameterError, match=r"\(the release has no values\), got 'mean_fare'"):
        nothing.joint("mean_fare")


def test_windows_share_the_noise_of_common_slices():
    data = rides(2_000)
    data["t"] = np.resize(["2024-01-01", "2024-01-02", "2024-01-03"], len(data))
    made = of_values(data, time="t", slices="2024-01-01..2024-01-03")
    windows = ["2024-01-01", "2024-01-02", "2024-01-02..2024-01-03"]
    asked = made.query(BOXES[:2], when=windows, mean="fare", sum="fare")
    for column in ("mean_fare", "sum_fare"):
        joint = asked.joint(column)
        noise = joint.perturbation_covariance
        single = asked.table[f"{column}_perturbation_error"].to_numpy()
        assert np.sqrt(np.diagonal(noise)) == pytest.approx(single, rel=1e-6)
        assert noise[0, 2] == pytest.approx(0, abs=1e-9 * noise[0, 0])
        assert noise[2, 4] > 0.1 * noise[2, 2]


# --- edges --------------------------------------------------------------------------------------


def test_edges_are_squares_of_sums_less_sums_of_squares():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, lattice=(64, 64), height=4)
        fit = release_of(tree).index.fit
        boxes = np.array([[3.5, 7, 41.2, 60], [0, 0, 64, 64], [20, 20, 23, 29.5]])
        traversal = traverse(tree, len(boxes), box_fraction(fit, boxes))
        expected, variance = np.zeros((2, len(boxes)))
        for level, part in innovations(traversal, fit.estimates):
            for query in range(len(boxes)):
                own = part[level.query == query]
                inward = own[own > 0]
                expected[query] += inward.sum() ** 2 - (inward**2).sum()
                variance[query] += (own**2).sum()
        assert edge_squares(traversal, fit.estimates) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_a_cell_has_no_edge():
    tree = random_tree(np.random.default_rng(3), lattice=(64, 64), height=4)
    fit = release_of(tree).index.fit
    traversal = traverse(tree, len(tree), box_fraction(fit, tree.boxes.astype(float)))
    assert edge_squares(traversal, fit.estimates) == pytest.approx(np.zeros(len(tree)), abs=1e-9)


def peak(n, seed):
    """Rides whose fares fall with the distance from their centre."""
    data = rides(n, seed)
    away = np.hypot(data.lon - 126.4, data.lat - 37.5)
    data["fare"] = 10 + 40 * np.exp(-away / 0.1)
    return data


@pytest.mark.deep
def test_intervals_of_large_areas_around_a_peak_hold():
    """Without edges they held in two of three."""
    rng = np.random.default_rng(1)
    data = peak(6_000, 1)
    half = np.sqrt(10 ** rng.uniform(-2.5, -1, 60))[:, None] / 2
    centre = data[["lon", "lat"]].to_numpy()[rng.choice(len(data), 60)]
    boxes = np.hstack([centre - half, centre + half]).clip([*BOUNDS[:2]] * 2, [*BOUNDS[2:]] * 2)
    inside = [data[data.lon.between(w, e) & data.lat.between(s, n)] for w, s, e, n in boxes]
    true, held, plain = np.array([each.fare.mean() for each in inside]), [], []
    for seed in range(12):
        made = psd.build(
            data, epsilon=0.1, bounds=BOUNDS, values={"fare": (0, 60)}, method="auto",
            per="record", sampler=SeededSampler(seed),
        )  # fmt: skip
        for kept in (held, plain):
            table = made.query(boxes, mean="fare").table
            kept.append(((table.mean_fare_lower <= true) & (true <= table.mean_fare_upper)).mean())
            without_edges(made)
    assert np.mean(held) > 0.9
    assert np.mean(plain) < np.mean(held) - 0.03


def test_edges_are_learnt_where_values_have_a_peak():
    factors = []
    for data in (peak(6_000, 1), peak(6_000, 1).assign(fare=20.0)):
        made = [
            psd.build(
                data, epsilon=0.1, bounds=BOUNDS, values={"fare": (0, 60)}, method="auto",
                per="record", sampler=SeededSampler(seed),
            )
            for seed in range(4)
        ]  # fmt: skip
        found = [fit_weights(each.index.fit, 0) for each in made]
        factors.append(np.mean([learn_edge_factor(*each) for each in found]))
    assert factors[0] > 2 * factors[1] >= 0
    part = made[0].index.value_parts(0)[0].fit
    assert part.edge_factor == learn_edge_factor(*found[0])
    assert made[0].index.fit.edge_factor == 0


@pytest.mark.deep
def test_errors_drawn_again_have_the_covariance_that_is_said():
    """Fares are far apart from cell to cell, so that estimates are moved by next to nothing."""
    data = rides(30_000)
    column, row = ((data.lon - 126) * 8).astype(int), ((data.lat - 37) * 8).astype(int)
    data["fare"] = np.where((column + row) % 2, 24.0, 36.0)
    boxes = [(126.25, 37.375, 126.5, 37.625), (126.375, 37.375, 126.625, 37.625)]
    boxes.append((126.25, 37.25, 126.375, 37.75))
    drawn: dict[str, list] = {"mean_fare": [], "sum_fare": []}
    said: dict[str, list] = {"mean_fare": [], "sum_fare": []}
    for seed in range(200):
        made = psd.build(
            data, epsilon=1, bounds=BOUNDS, values={"fare": (0, 60)}, method="grid",
            set={"size": 8}, per="record", sampler=SeededSampler(seed),
        )  # fmt: skip
        answers = without_edges(made).query(boxes, mean="fare", sum="fare")
        for name, found in drawn.items():
            found.append(answers[name].to_numpy())
            if seed < 10:
                said[name].append(answers.joint(name).perturbation_covariance)
    for name, found in drawn.items():
        true, expected = np.cov(np.transpose(found)), np.mean(said[name], axis=0)
        scale = np.sqrt(np.outer(np.diagonal(expected), np.diagonal(expected)))
        assert np.diagonal(true) == pytest.approx(np.diagonal(expected), rel=0.4), name
        assert np.abs(true - expected).max() < 0.3 * scale.max()
        assert (np.abs(true / scale - expected / scale) < 0.3).all()
