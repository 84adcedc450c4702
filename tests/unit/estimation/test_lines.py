"""Rounded coordinates and streets, found in noisy counts; and lumps of points."""

import numpy as np
import pytest
import shapely

import psd
from psd.estimation.coordinate_step import detect_step
from psd.estimation.families import divisions
from psd.estimation.least_squares import infer_counts
from psd.estimation.line_moments import common_variance_by_width, halvings
from psd.estimation.unevenness import fit_unevenness
from psd.space.box_tree import locate
from support.releases import changed

SIDE = 256
BOUNDS = (10.0, 50.0, 11.0, 51.0)


def points(number=40_000, seed=1):
    """Points that are denser in the south-west, without any structure of their own."""
    return np.random.default_rng(seed).beta(1.2, 2, (number, 2))


def release_of_points(xy, side=SIDE, epsilon=1.0, inference=2):
    """Quadtree of a lattice with noise on the leaves alone."""
    domain = psd.Domain(bounds=BOUNDS, lattice=(side, side))
    tree = psd.grid_tree(domain, side)
    column, row = np.minimum((xy * side).astype(int), side - 1).T
    exact = np.bincount(locate(tree, column, row), minlength=len(tree))[tree.is_leaf]
    q = np.exp(-epsilon)
    random = np.random.default_rng(2)
    noise = random.geometric(1 - q, len(exact)) - random.geometric(1 - q, len(exact))
    release = psd.Release.from_counts(tree, exact + noise, epsilon, domain=domain)
    return changed(release, inference=inference)


def step_of(release):
    model = release.model
    return detect_step(release.tree, model.estimates, model.parent_shares, release.domain)


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_the_step_of_rounded_coordinates_is_found(epsilon):
    found = step_of(release_of_points(np.round(points() + 0.0, 2), epsilon=epsilon))
    assert found.step == pytest.approx(0.01)
    assert found.share == pytest.approx(1, abs=0.15)


def test_the_share_of_rounded_records_is_found():
    xy = points()
    xy[::2] = np.round(xy[::2], 2)
    found = step_of(release_of_points(xy, epsilon=3.0))
    assert found.step == pytest.approx(0.01)
    assert found.share == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_coordinates_that_are_not_rounded_have_no_step(seed):
    release = release_of_points(points(seed=seed), epsilon=3.0)
    assert step_of(release).step == 0
    assert release.model.line_deviation is None


def common(release, axis):
    model = release.model
    found = divisions(release.tree, model.estimates, model.parent_shares, axis)
    return common_variance_by_width(release.tree, found, axis, release.domain.lattice)


def test_records_on_streets_lie_on_the_same_side_of_lines():
    xy = points()
    streets = (np.arange(97) + 0.37) / 97 + np.random.default_rng(4).normal(0, 0.002, 97)
    xy[:, 0] = streets[np.abs(xy[:, 0, None] - streets).argmin(axis=1)]
    release = release_of_points(xy, epsilon=3.0)
    across, along = common(release, 0), common(release, 1)
    assert (along == 0).all()
    assert (across[:4] == 0).all()
    assert across[7] > 0.1
    assert (np.diff(across[:8]) >= 0).all()
    lines = release.model.line_deviation
    assert lines[0].max() > 0
    assert not lines[1].any()


def test_a_line_that_has_all_records_on_one_side_is_off_by_a_leaf():
    release = release_of_points(np.floor(points() * 128) / 128 + 1e-6, epsilon=10.0)
    leaf = np.flatnonzero(release.tree.is_leaf)
    narrow = leaf[halvings(release.tree, leaf, 0, release.domain.lattice) >= 7]
    count = np.maximum(release.estimates.count, 0)
    deviation = release.model.line_deviation
    assert deviation[:, narrow] == pytest.approx(np.tile(count[narrow], (2, 1)), rel=1e-6)


def test_lumps_are_measured():
    # Lumps of five; cells that are nearly empty draw the fit towards 1.
    single = points(60_000)
    lumps = np.repeat(points(12_000), 5, axis=0)
    fitted = []
    for xy in (single, lumps):
        release = release_of_points(xy, side=64, epsilon=3.0)
        tree, model = release.tree, release.model
        fitted.append(fit_unevenness(tree, model.estimates, model.parent_shares).lump)
    assert fitted[0] < 1.3
    assert 2 < fitted[1] < 6


def test_the_records_of_a_cell_of_the_lattice_may_be_at_one_point():
    release = release_of_points(points(), side=16)
    spread, is_leaf = release.model.unevenness.spread, release.tree.is_leaf
    assert (spread[is_leaf] == 1).all()
    assert (spread[~is_leaf] < 1).any()
    first = changed(release, inference=1)
    assert (first.model.unevenness.spread[is_leaf] < 1).all()


def test_a_polygon_across_cells_of_a_coarse_lattice_is_covered():
    # All records of a cell are in its middle: a polygon has all or nothing of a cell it cuts.
    xy = (np.floor(points() * 16) + 0.5) / 16
    release = release_of_points(xy, side=16, epsilon=3.0)
    corner = np.array(BOUNDS[:2])
    corners = [np.array([(0, 0), (1, share), (1, 0)]) for share in np.linspace(0.2, 1, 40)]
    shapes = [shapely.Polygon(part + corner) for part in corners]
    answers = release.query(shapes, crs=release.domain.crs)
    true = np.array([shapely.contains_xy(s, *(xy + corner).T).sum() for s in shapes])
    assert ((answers["lower"] <= true) & (true <= answers["upper"])).mean() > 0.9


def test_noise_alone_has_the_expected_lump():
    tree = psd.grid_tree(psd.Domain(bounds=BOUNDS, lattice=(4, 4)), 4)
    estimates = infer_counts(
        psd.Release.from_counts(
            tree, np.zeros(16, int), 1.0, domain=psd.Domain(bounds=BOUNDS, lattice=(4, 4))
        ).tree
    )
    share = np.where(tree.parent >= 0, 0.25, 1.0)
    assert fit_unevenness(tree, estimates, share).lump == 3
