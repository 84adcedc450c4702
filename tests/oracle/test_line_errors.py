"""Errors along lines: the walks, the rasters and the covariances say the same."""

import numpy as np
import pytest
from unit.estimation.test_lines import points, release_of_points

from psd.query.boxes import _traversals
from psd.query.compiled_walk import walk_query_totals
from psd.query.joint import nonuniformity_covariance
from psd.query.totals import concatenate, query_totals
from psd.release.post_processing import PostProcessing
from psd.statistics.error_draws import _nonuniformity_sampler
from psd.statistics.raster import raster_overlay
from support.releases import changed
from support.trees import naive_line_variance

pytestmark = pytest.mark.deep

VIEWS = [
    PostProcessing(),
    PostProcessing(estimate="posterior", density="smooth"),
    PostProcessing(estimate="signed"),
]


@pytest.fixture(scope="module", params=[(0, 1), (1, 1), (1, 4), (2, 1)])
def release(request):
    view, columns = request.param
    made = release_of_points(np.round(points(20_000), 2), side=256, columns=columns)
    return changed(made, post_processing=VIEWS[view])


def boxes_of(release, number=200):
    random = np.random.default_rng(3)
    west, south, *_ = release.domain.bounds
    low = random.random((number, 2)) * 0.9
    high = low + random.random((number, 2)) ** 2 * (1 - low) + 1e-4
    return np.concatenate([low, high], axis=1) + np.array([west, south, west, south])


def test_both_walks_and_the_sum_over_leaves_agree(release):
    lattice = release.domain.to_lattice(boxes_of(release))
    by_numpy = concatenate(
        [query_totals(release.index.fit, t, b) for b, t in _traversals(release.index.fit, lattice)]
    )
    compiled = walk_query_totals(
        release.index.flat_tree, release.index.fit.estimates.count, lattice
    )
    assert compiled.line_variance == pytest.approx(by_numpy.line_variance, rel=1e-9)
    for box, variance in zip(lattice[:40], by_numpy.line_variance, strict=False):
        assert variance == pytest.approx(naive_line_variance(release, box), rel=1e-9, abs=1e-9)


def test_joint_answers_have_the_errors_of_queries(release):
    boxes = boxes_of(release, 30)
    covariance = nonuniformity_covariance(
        release.index.fit, release.query(boxes).areas.overlaps(release.index.fit)
    )
    errors = release.query(boxes)["nonuniformity_error"]
    assert np.sqrt(np.diagonal(covariance)) == pytest.approx(errors.to_numpy(), rel=1e-7)


def test_neighbours_err_in_opposite_directions_along_their_common_line(release):
    west, south, east, north = release.domain.bounds
    middle = west + 0.5031 * (east - west)
    halves = [(west, south, middle, north), (middle, south, east, north)]
    joint = release.query(halves).joint()
    both = joint.nonuniformity_covariance
    assert both.sum() == pytest.approx(0, abs=1e-6 * both[0, 0])
    assert both[0, 0] > 0


def test_rasters_and_draws_have_the_errors_of_queries(release):
    overlay = raster_overlay(release.index.fit, 7, 5)
    errors = release.query(release.domain.from_lattice(overlay.boxes))["nonuniformity_error"]
    variance = overlay.nonuniformity_variance()
    assert np.sqrt(variance) == pytest.approx(errors.to_numpy(), rel=1e-7)
    drawn = _nonuniformity_sampler(overlay)(np.random.default_rng(1), 4000)
    assert drawn.std(axis=1) == pytest.approx(np.sqrt(variance), rel=0.1)
