"""Joint answers of a cube: their covariance over areas and windows."""

from dataclasses import replace

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd._util.arrays import sum_by
from psd.decompositions import Cube
from psd.errors import ParameterError
from psd.query import cube_covariance, cubes
from psd.release.post_processing import PostProcessing
from support.cubes import DOMAIN, cube, town

# The fifth and the sixth box are the halves of the second, and the last two windows tile the third.
BOXES = np.array(
    [
        [0, 0, 8, 8],
        [1.3, 2.1, 6.7, 9.9],
        [8, 8, 16, 16],
        [2, 2, 5, 9.4],
        [1.3, 2.1, 4.05, 9.9],
        [4.05, 2.1, 6.7, 9.9],
    ]
)
WINDOWS = [
    "2024-01-01",
    "weekdays 07-09",
    "2024-01-01T06..2024-01-02T03",
    "2024-01-01T08",
    "2024-01-01T06..2024-01-01T13",
    "2024-01-01T13..2024-01-02T03",
]
ERRORS = ["perturbation_error", "nonuniformity_error"]
SIGNED = PostProcessing(estimate="signed", density="uniform")


@pytest.fixture(scope="module")
def data():
    return cube(7)


@pytest.fixture(scope="module")
def joint(data):
    return data.query(BOXES, when=WINDOWS).joint()


def blocks(matrix, boxes=BOXES):
    """Covariance by window, area, window and area."""
    return matrix.reshape((len(matrix) // len(boxes), len(boxes)) * 2)


def of_sum(matrix, numbers):
    """Variance of a sum of answers."""
    return matrix[np.ix_(numbers, numbers)].sum()


def test_joint_answers_are_the_single_ones(data, joint):
    alone = data.query(BOXES, when=WINDOWS).table
    pd.testing.assert_frame_equal(joint.answers[alone.columns], alone)
    for matrix, name in zip(
        (joint.perturbation_covariance, joint.nonuniformity_covariance), ERRORS, strict=True
    ):
        assert np.diagonal(matrix) == pytest.approx(alone[name].to_numpy() ** 2, rel=1e-9, abs=1e-9)
        assert matrix == pytest.approx(matrix.T, rel=1e-12, abs=1e-9)
        assert np.linalg.eigvalsh(matrix).min() > -1e-9 * matrix.max()
    assert (joint.answers["joint_upper"] >= alone["upper"]).all()
    assert 0.95 < joint.level < 1


def test_halves_of_a_box_sum_to_it(joint):
    estimate = blocks(joint.perturbation_covariance)
    signed = joint.answers["estimate"].to_numpy().reshape(len(WINDOWS), -1)
    for window, name in enumerate(WINDOWS):
        parts = estimate[window][:, window]
        assert of_sum(parts, [4, 5]) == pytest.approx(parts[1, 1], rel=1e-9), name
        assert parts[1, [4, 5]].sum() == pytest.approx(parts[1, 1], rel=1e-9), name
        assert signed[window, [4, 5]].sum() == pytest.approx(signed[window, 1], rel=1e-9), name


def test_windows_that_tile_one_sum_to_it(joint):
    noise = blocks(joint.perturbation_covariance)
    for area in range(len(BOXES)):
        parts = noise[:, area, :, area]
        assert of_sum(parts, [4, 5]) == pytest.approx(parts[2, 2], rel=1e-9)
    own = joint.combine(np.eye(len(WINDOWS) * len(BOXES))[[4 * 6 + 1, 5 * 6 + 1]].sum(axis=0))
    whole = joint.answers.iloc[2 * 6 + 1]
    assert own.estimate == pytest.approx(whole["estimate"], rel=1e-9)
    assert own.perturbation_error == pytest.approx(whole["perturbation_error"], rel=1e-9)


def test_the_total_of_boxes_has_the_error_of_their_union(data):
    edges = np.linspace(0, 16, 5)
    tiles = [(x, y, x + 4, y + 4) for y in edges[:-1] for x in edges[:-1]]
    total = data.query(tiles, when=WINDOWS[0]).total()
    whole = data.query([(0, 0, 16, 16)], when=WINDOWS[0]).table.iloc[0]
    assert total.perturbation_error == pytest.approx(whole["perturbation_error"], rel=1e-9)
    with pytest.raises(ParameterError, match="disjoint"):
        data.query(tiles[:1], when=WINDOWS).total()


def test_an_area_and_itself_have_one_error(data):
    twice = data.query([BOXES[1], BOXES[1]], when=WINDOWS).joint()
    assert twice.difference(0, 1).error == pytest.approx(0, abs=1e-5)
    assert twice.difference(0, 2).error > 1
    for matrix in (twice.perturbation_covariance, twice.nonuniformity_covariance):
        own = blocks(matrix, BOXES[:2])
        assert own[:, 0, :, 1] == pytest.approx(own[:, 0, :, 0], rel=1e-6, abs=1e-6)


def test_what_is_uneven_is_apart_in_disjoint_areas_and_shared_in_overlaps(data):
    """In one hour, of a cell that both cut: what one has too much the other has too little."""
    places = np.array([[2.1, 3.1, 4.3, 7.7], [4.3, 3.1, 6.2, 7.7], [3.2, 3.1, 5.1, 7.7]])
    uneven = data.query(places, when="2024-01-01T08").joint().nonuniformity_covariance
    assert uneven[0, 1] < uneven[0, 2]
    assert uneven[0, 2] > 0
    assert uneven[1, 2] > 0


@pytest.mark.parametrize("post_processing", [None, SIGNED])
def test_nested_areas_add_up_in_a_window(data, post_processing):
    made = data if post_processing is None else data.replace(post_processing=post_processing)
    inside = [(3, 3, 5, 7), (1.3, 2.1, 6.7, 9.9), (0, 0, 16, 16)]
    asked = made.query(inside, when=WINDOWS[1])
    table, joint = asked.nested(), asked.joint()
    estimate, ring = (table[name].to_numpy() for name in ("estimate", "ring"))
    assert estimate == pytest.approx(ring.cumsum())
    assert (ring >= 0).all()
    own = [joint.answers["error"][0], *(joint.difference(n + 1, n).error for n in (0, 1))]
    assert table["ring_error"].tolist() == pytest.approx(own)
    view = made[WINDOWS[1]].query(inside).nested()
    assert view["ring"].tolist() == ring.tolist()


def test_a_view_has_the_joint_answers_of_its_window(data):
    own, view = data.query(BOXES, when=WINDOWS[1]).joint(), data[WINDOWS[1]].query(BOXES).joint()
    assert view.covariance.tolist() == own.covariance.tolist()


def test_polygons_have_the_covariance_of_boxes(data):
    shapes = gpd.GeoDataFrame(geometry=[shapely.box(*box) for box in BOXES], crs=DOMAIN.crs)
    found = data.query(shapes, when=WINDOWS[:3]).joint()
    own = data.query(BOXES, when=WINDOWS[:3]).joint()
    for name in ("perturbation_covariance", "nonuniformity_covariance"):
        assert getattr(found, name) == pytest.approx(getattr(own, name), rel=1e-5, abs=1e-5)


def test_covariance_does_not_depend_on_how_many_are_computed_together(data, joint, monkeypatch):
    monkeypatch.setattr(cubes, "_PAIRS_PER_BATCH", 60)
    parts = data.query(BOXES, when=WINDOWS).joint()
    assert parts.covariance == pytest.approx(joint.covariance, rel=1e-9, abs=1e-9)


def test_no_area_and_areas_outside(data):
    assert len(data.query(np.zeros((0, 4)), when=WINDOWS).joint()) == 0
    some = [BOXES[1], (-9, -9, -8, -8)]
    matrix = data.query(some, when=WINDOWS, outside="zero").joint().covariance
    assert not blocks(matrix, BOXES[:2])[:, 1].any()


def test_too_much_is_refused_in_a_sentence(data, monkeypatch):
    with pytest.raises(ParameterError, match="at most 5,000"):
        data.query(np.repeat(BOXES[:1], 5_001, axis=0)).joint()
    monkeypatch.setattr(cube_covariance, "_MOST_OVERLAPS", 3)
    with pytest.raises(ParameterError, match="areas must overlap in at most 3 pairs"):
        data.query(BOXES).joint()
    monkeypatch.setattr(cube_covariance, "_MOST_COEFFICIENTS", 3)
    with pytest.raises(ParameterError, match="must meet fewer cells"):
        data.query(BOXES[:1]).joint()


def redrawn(record, rng):
    """The same cube with other noise around the counts that its own estimates have."""
    layers = {}
    for name in ("joint", "plane"):
        layer = getattr(record, name)
        tree = layer.tree
        true = np.where(tree.is_leaf, np.maximum(tree.count, 0), 0).astype(float)
        for level in tree.levels[:0:-1]:
            nodes = np.arange(len(tree))[level]
            true += sum_by(tree.parent[nodes], true[nodes], len(tree))
        variance = tree.noise_variance()
        known = np.isfinite(variance)
        # Rounding adds 1 / 12.
        noise = rng.normal(0, np.sqrt(np.where(known, np.maximum(variance, 1) - 1 / 12, 0.0)))
        count = np.where(known, np.rint(true + noise), tree.count).astype(np.int64)
        layers[name] = replace(layer, tree=replace(tree, count=count))
    return replace(record, **layers)


@pytest.mark.deep
def test_the_covariance_is_that_of_redrawn_noise():
    slices = psd.TimeSlices.parse("hour", "2024-01-01T00..2024-01-01T11")
    many = town(60_000, slices)
    built = cube(3, many, slices, method=Cube(signal=1500)).replace(post_processing=SIGNED)
    windows = ["2024-01-01T05..2024-01-01T08", "2024-01-01T07", "2024-01-01T06..2024-01-01T11"]
    boxes = np.array([[1.3, 2.1, 6.7, 9.9], [2, 2, 5, 9.4], [3, 5, 12, 11], [0, 0, 16, 16]])
    rng, answers, stated, draws = np.random.default_rng(5), [], [], 600
    for number in range(draws):
        made = psd.Release(redrawn(built.record, rng))
        asked = made.query(boxes, when=windows)
        answers.append(asked["estimate"].to_numpy())
        if number % 60 == 0:
            stated.append(asked.joint().perturbation_covariance)
    stated, found = np.mean(stated, axis=0), np.cov(np.array(answers).T)
    size = len(stated)
    # In directions in which the stated covariance is 1, that of draws is, but for their number.
    values, vectors = np.linalg.eigh(stated)
    used = values > 1e-9 * values.max()
    whitened = vectors[:, used] / np.sqrt(values[used])
    spread = np.linalg.eigvalsh(whitened.T @ found @ whitened)
    slack = 2.2 * np.sqrt(used.sum() / draws)
    assert used.sum() >= size - 2
    assert spread.min() > 1 - slack
    assert spread.max() < 1 + slack + slack**2
    assert spread.mean() == pytest.approx(1, abs=5 * np.sqrt(2 / draws / used.sum()))
