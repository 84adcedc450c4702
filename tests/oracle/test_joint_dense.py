"""Covariances against dense algebra, of boxes and of polygons, and of errors that are drawn."""

import geopandas as gpd
import numpy as np
import pytest
import shapely

from psd.query.joint import nonuniformity_covariance, perturbation_covariance
from psd.release.post_processing import PostProcessing
from psd.statistics.error_draws import _nonuniformity_sampler, draw_node_errors, innovation_tree
from psd.statistics.raster import leaf_overlay, raster_overlay
from support.releases import changed
from support.trees import (
    KINDS,
    dense_least_squares,
    leaf_fractions,
    naive_line_errors,
    published_noise,
    random_queries,
    random_tree,
    release_of,
)

LATTICE = (64, 64)
SIGNED = PostProcessing(estimate="signed")


def naive_nonuniformity(release, boxes):
    """Leaf by leaf, n (cluster_size + phi n) (f_ij - f_i f_j); and lines that two boxes share."""
    leaves = release.tree.is_leaf
    n = np.maximum(release.index.fit.estimates.count[leaves], 0)
    uneven = release.index.fit.dispersion
    scale = n * (uneven.cluster_size + uneven.overdispersion[leaves] * n)
    covariance = np.empty((len(boxes), len(boxes)))
    for i, a in enumerate(boxes):
        for j, b in enumerate(boxes):
            both = np.concatenate([np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])])
            shared = leaf_fractions(release.tree, both) if (both[:2] < both[2:]).all() else 0.0
            f, g = (leaf_fractions(release.tree, box) for box in (a, b))
            first, second = (naive_line_errors(release, box) for box in (a, b))
            lines = sum(first[line] * second[line] for line in first.keys() & second.keys())
            covariance[i, j] = (scale * (shared - f * g)).sum() + lines
    return covariance


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_covariance_is_that_of_dense_algebra(kind):
    for seed in range(25):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, height=4, **KINDS[kind])
        contributions = int(rng.integers(1, 4))
        release = changed(release_of(tree, contributions=contributions), post_processing=SIGNED)
        boxes = random_queries(rng, LATTICE, 12)
        weights = np.array([leaf_fractions(tree, box) for box in boxes])
        dense = weights @ dense_least_squares(tree, contributions)[1] @ weights.T
        joint = release.query(boxes).joint()
        scale = np.sqrt(np.outer(np.diagonal(dense), np.diagonal(dense)))
        assert np.abs(joint.perturbation_covariance - dense).max() <= 1e-9 * scale.max()
        naive = naive_nonuniformity(release, boxes)
        assert np.abs(joint.nonuniformity_covariance - naive).max() <= 1e-9 * naive.max()
        for part, name in (
            (joint.perturbation_covariance, "perturbation_error"),
            (joint.nonuniformity_covariance, "nonuniformity_error"),
            (joint.covariance, "error"),
        ):
            assert np.diagonal(part) == pytest.approx(joint.answers[name] ** 2, rel=1e-9, abs=1e-9)


@pytest.mark.deep
@pytest.mark.parametrize("estimate", ["posterior", "least-squares"])
@pytest.mark.parametrize("kind", KINDS)
def test_counts_above_zero_have_the_covariance_of_the_published_counts(kind, estimate):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, height=4, top=40, **KINDS[kind])
        release = changed(release_of(tree), post_processing=PostProcessing(estimate=estimate))
        boxes = random_queries(rng, LATTICE, 12)
        weights = np.array([leaf_fractions(tree, box) for box in boxes])
        nodes = published_noise(release)
        leaves = np.flatnonzero(tree.is_leaf)
        dense = weights @ nodes[np.ix_(leaves, leaves)] @ weights.T
        joint = release.query(boxes).joint()
        assert np.abs(joint.perturbation_covariance - dense).max() <= 1e-9 * dense.max()
        assert np.diagonal(dense) == pytest.approx(
            joint.answers.perturbation_error**2, rel=1e-9, abs=1e-9
        )
        errors = release.to_geopandas("all").perturbation_error
        assert np.diagonal(nodes) == pytest.approx(errors**2, rel=1e-9, abs=1e-9)
        made = innovation_tree(tree, release.index.fit.noise_covariance, leaves)
        factor = draw_node_errors(made, Columns(len(made.nodes)), len(made.nodes))
        drawn = factor @ factor.T
        assert np.abs(drawn - nodes[np.ix_(made.nodes, made.nodes)]).max() < 1e-9 * nodes.max()


@pytest.mark.deep
@pytest.mark.parametrize("density", ["uniform", "smooth"])
def test_polygons_covary_as_the_boxes_that_they_are(density):
    rng = np.random.default_rng(3)
    for seed in range(2):
        tree = random_tree(np.random.default_rng(seed), height=3)
        release = changed(release_of(tree), post_processing=PostProcessing(density=density))
        boxes = random_queries(rng, LATTICE, 6)
        polygons = gpd.GeoSeries(shapely.box(*boxes.T), crs=release.domain.crs)
        ways = [
            release.query(boxes).areas.overlaps(release.index.fit),
            release.query(polygons).areas.overlaps(release.index.fit),
        ]
        assert np.array_equal(ways[0].overlapping_pairs(), ways[1].overlapping_pairs())
        for covariance in (perturbation_covariance, nonuniformity_covariance):
            a, b = (covariance(release.index.fit, way) for way in ways)
            assert np.abs(a - b).max() < 1e-7 * max(a.max(), 1)


class Columns:
    """Instead of random numbers the columns of an identity, so that what comes out is a factor."""

    def __init__(self, size):
        self.identity, self.given = np.eye(size), 0

    def standard_normal(self, shape):
        rows = self.identity[self.given : self.given + shape[0]]
        self.given += shape[0]
        assert rows.shape == shape
        return rows.copy()


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_errors_have_the_covariance_of_the_estimates(kind):
    for seed in range(20):
        tree = random_tree(np.random.default_rng(seed), height=4, **KINDS[kind])
        release = release_of(tree)
        leaves = np.flatnonzero(tree.is_leaf)
        _, dense = dense_least_squares(tree)
        some = np.random.default_rng(seed).permutation(leaves)[:5]
        for wanted in (leaves, some):
            made = innovation_tree(tree, release.index.fit.estimates, wanted)
            factor = draw_node_errors(made, Columns(len(made.nodes)), len(made.nodes))
            rows = factor[np.searchsorted(made.nodes, wanted)]
            number = np.searchsorted(leaves, wanted)
            expected = dense[np.ix_(number, number)]
            assert np.abs(rows @ rows.T - expected).max() < 1e-9 * dense.max()
        # Only what some leaves need is drawn for them.
        few = innovation_tree(tree, release.index.fit.estimates, some[:1])
        assert len(few.nodes) <= 1 + 4 * (len(tree.levels) - 1)


@pytest.mark.deep
def test_drawn_unevenness_has_the_covariance_of_the_cells():
    for seed in range(10):
        release = release_of(random_tree(np.random.default_rng(seed), height=3))
        whole = raster_overlay(release.index.fit, 5, 7)
        naive = naive_nonuniformity(release, whole.boxes)
        for cells in (np.arange(35), np.array([3, 4, 17, 30])):
            overlay = whole.select(cells)
            cut = (overlay.share < 1) & (overlay.share > 0)
            lines = overlay.lines().shape[1]
            size = int(cut.sum()) + len(np.unique(overlay.node[cut])) + lines
            factor = _nonuniformity_sampler(overlay)(Columns(size), size)
            expected = naive[np.ix_(cells, cells)]
            assert np.abs(factor @ factor.T - expected).max() <= 1e-9 * naive.max()


@pytest.mark.deep
@pytest.mark.parametrize(
    "view",
    [
        PostProcessing(),
        PostProcessing(density="smooth"),
        PostProcessing(estimate="signed"),
        PostProcessing(estimate="posterior"),
    ],
)
def test_cells_of_a_raster_are_what_queries_answer(view):
    for seed in range(2 if view.density == "smooth" else 25):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, height=4, unmeasured=0.3, unknown_leaf=0.4)
        release = changed(release_of(tree, contributions=2), post_processing=view)
        columns, rows = (int(n) for n in rng.integers(1, 20, 2))
        fit = release.index.fit
        for overlay in (raster_overlay(fit, columns, rows), leaf_overlay(fit)):
            answers = release.query(release.domain.from_lattice(overlay.boxes)).table
            counts = overlay.counts()
            assert counts.sum() == pytest.approx(
                release.index.fit.estimates.count[0], rel=1e-9, abs=1e-9
            )
            assert np.maximum(counts, 0) == pytest.approx(answers.estimate, rel=1e-9, abs=1e-9)
            assert np.sqrt(overlay.perturbation_variance()) == pytest.approx(
                answers.perturbation_error, rel=1e-9
            )
            assert np.sqrt(overlay.nonuniformity_variance()) == pytest.approx(
                answers.nonuniformity_error, rel=1e-7, abs=1e-6
            )
