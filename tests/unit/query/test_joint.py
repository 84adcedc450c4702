"""Joint answers: totals, differences, ratios, covariances, what is refused, and exact numbers."""

import math

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from psd.errors import ParameterError
from psd.query import region_overlaps as regions_module
from psd.query.answer_table import two_sided_quantile
from psd.query.joint import fieller_interval, nearest_covariance
from support.noise import noise_variance
from support.trees import domain_of, grid_release

VARIANCE = float(noise_variance(np.array([1_000_000_000]), 1)[0])


@pytest.fixture
def release():
    return grid_release(np.arange(16).reshape(4, 4) * 10 + 50)


def test_polygons_keep_their_columns_and_index(release):
    shapes = [shapely.box(0, 0, 1, 1), shapely.Point(2, 2).buffer(1.5)]
    table = gpd.GeoDataFrame({"name": ["a", "b"]}, geometry=shapes, crs="EPSG:3857", index=[7, 3])
    answers = release.query(table).joint().answers
    assert answers.index.tolist() == [7, 3]
    assert list(answers.columns[-2:]) == ["joint_lower", "joint_upper"]
    assert "name" in answers
    with pytest.raises(ParameterError, match="joint_lower"):
        release.query(table.assign(joint_lower=1)).joint()


def test_touching_polygons_do_not_overlap(release):
    shapes = [shapely.box(0, 0, 1.7, 4), shapely.box(1.7, 0, 4, 4), shapely.box(0, 3, 4, 4)]
    assert release.query(shapes[:2], crs=release.domain.crs).joint().overlap is None
    assert release.query(shapes, crs=release.domain.crs).joint().overlap == (0, 2)


def test_no_regions(release):
    joint = release.query(np.empty((0, 4))).joint()
    assert len(joint) == 0
    assert joint.covariance.shape == (0, 0)
    assert joint.total().estimate == 0


def test_too_many_regions(release, monkeypatch):
    monkeypatch.setattr(regions_module, "MAX_REGIONS", 2)
    with pytest.raises(ParameterError, match="at most 2 for joint answers, got 3"):
        release.query([(0, 0, 1, 1)] * 3).joint()


def test_what_joint_answers_refuse(release, subtests):
    joint = release.query([(0, 0, 1, 1), (2, 0, 4, 2)]).joint()
    for weights in ([1], [[1, 1]], [1, math.nan], [1, 1, 1]):
        with subtests.test(weights), pytest.raises(ParameterError, match="weights"):
            joint.combine(weights)
    for number in (-1, 2):
        with subtests.test(number), pytest.raises(ParameterError, match="from 0 to 1, got"):
            joint.difference(0, number)


def test_disjoint_cells_do_not_covary(release):
    joint = release.query([(0, 0, 1, 1), (2, 0, 4, 2)]).joint()
    assert joint.covariance == pytest.approx(np.diag([VARIANCE, 4 * VARIANCE]), abs=1e-9)
    assert joint.correlation == pytest.approx(np.eye(2), abs=1e-9)
    total = joint.total()
    assert total.estimate == pytest.approx(joint.answers.estimate.sum())
    assert total.error == pytest.approx(math.sqrt(5 * VARIANCE))
    assert total.upper - total.estimate == pytest.approx(two_sided_quantile(0.95) * total.error)
    assert joint.overlap is None


def test_shared_cells_covary_by_what_is_shared(release):
    joint = release.query([(0, 0, 2, 1), (1, 0, 3, 1)]).joint()
    assert joint.covariance[0, 1] == pytest.approx(VARIANCE)
    assert joint.difference(0, 1).error == pytest.approx(math.sqrt(2 * VARIANCE))
    assert joint.overlap == (0, 1)
    with pytest.raises(ParameterError, match="regions 1 and 2 overlap"):
        joint.total()
    assert joint.combine([1, 1]).estimate == pytest.approx(joint.answers.estimate.sum())


def test_two_halves_of_a_cell_vary_against_each_other(release):
    joint = release.query([(0, 0, 0.5, 1), (0.5, 0, 1, 1)]).joint()
    spread = joint.nonuniformity_covariance
    assert spread[0, 1] == pytest.approx(-spread[0, 0])
    assert spread[0, 0] > 0
    assert joint.total().nonuniformity_error == pytest.approx(0, abs=1e-6)
    assert joint.perturbation_covariance == pytest.approx(np.full((2, 2), VARIANCE / 4))


def test_a_matrix_that_is_no_covariance_is_repaired():
    wrong = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    fixed = nearest_covariance(wrong)
    assert np.linalg.eigvalsh(fixed).min() > -1e-12
    assert np.diagonal(fixed) == pytest.approx([1, 1, 1])
    right = np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert np.array_equal(nearest_covariance(right), right)


def test_a_ratio(release):
    joint = release.query([(0, 0, 2, 2), (2, 2, 4, 4)]).joint()
    ratio = joint.ratio(0, 1)
    x, y = joint.answers.estimate
    assert ratio.estimate == pytest.approx(x / y)
    relative = math.sqrt(4 * VARIANCE / x**2 + 4 * VARIANCE / y**2)
    assert ratio.error == pytest.approx(x / y * relative, rel=1e-6)
    assert ratio.lower < ratio.estimate < ratio.upper
    itself = joint.ratio(0, 0)
    assert (itself.estimate, itself.error) == pytest.approx((1, 0))


def test_a_ratio_over_nothing():
    domain = domain_of((2, 2))
    release = psd.Release.from_counts(
        psd.decompositions.grid_tree(domain, 2), [90, 0, 0, 0], 1.0, domain=domain
    )
    ratio = release.query([(0, 0, 1, 1), (0, 1, 1, 2)]).joint().ratio(0, 1)
    assert math.isnan(ratio.estimate)
    assert ratio.error == math.inf
    assert 0 < ratio.lower < ratio.upper == math.inf


def test_fieller_is_all_ratios_that_are_not_refuted():
    rng = np.random.default_rng(1)
    ratios = np.linspace(0, 400, 200_001)
    for _ in range(60):
        x, y = rng.normal(size=2) * rng.choice([1, 10], 2)
        factor = rng.normal(size=(2, 2))
        c = factor @ factor.T
        low, high = fieller_interval(*np.array([[x], [y], [c[0, 0]], [c[1, 1]], [c[0, 1]]]), 0.9)
        variance = c[0, 0] - 2 * ratios * c[0, 1] + ratios**2 * c[1, 1]
        kept = ratios[np.abs(x - ratios * y) <= two_sided_quantile(0.9) * np.sqrt(variance)]
        # The interval holds all of them; where they are in two pieces, what lies between too.
        assert (kept >= low[0] - 1e-9).all()
        assert (kept <= high[0] + 1e-9).all()
        if len(kept) and high[0] < 400 and low[0] > 0:
            assert (kept[0], kept[-1]) == pytest.approx((low[0], high[0]), abs=0.01)
