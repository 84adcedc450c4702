"""The compiled walk and the summed-area table against numpy's walk and against brute force."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import psd
from psd.estimation.density import PARTS
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release as build_of
from psd.query import boxes as engine
from psd.query.compiled_walk import walk_query_totals, walk_value_totals
from psd.query.totals import QueryTotals, query_totals
from psd.query.traversal import traverse, weighted_total
from psd.release.post_processing import DENSITIES, ESTIMATES, PostProcessing
from psd.space.covariate import Covariate
from psd.testing import small_domain, small_tally
from support.privacy.replay import small_cases
from support.releases import changed
from support.trees import (
    dense_least_squares,
    domain_of,
    leaf_fractions,
    naive_line_variance,
    random_queries,
    random_tree,
    release_of,
)

pytestmark = pytest.mark.deep

SIDE = 64
CLOSE = {"rel": 1e-9, "abs": 1e-9}


def covariate_of(domain, seed=0, columns=11, rows=7):
    """Uneven, with empty places, and with lines that are no lines of the cells."""
    raster = np.random.default_rng(seed).integers(0, 5, (rows, columns)) * 100
    raster[: rows // 2, : columns // 2] = 0
    return Covariate(domain=domain, raster=raster.astype(np.uint16))


def compare(release, boxes):
    """All sums of the compiled walk, and totals alone, with those of numpy's walk."""
    count = release.index.fit.estimates.count
    covered = traverse(release.tree, len(boxes), engine.box_fraction(release.index.fit, boxes))
    expected, found = (
        query_totals(release.index.fit, covered, boxes),
        walk_query_totals(release.index.flat_tree, count, boxes),
    )
    for name in (field.name for field in fields(QueryTotals)):
        assert getattr(found, name).tolist() == pytest.approx(
            getattr(expected, name).tolist(), **CLOSE
        ), name
    totals = walk_value_totals(release.index.flat_tree, count, boxes)
    assert totals.tolist() == pytest.approx(weighted_total(covered, count).tolist(), **CLOSE)
    if release.index.mesh is not None:
        looked_up = release.index.mesh.totals(release.index.summed_area, boxes)
        assert looked_up.tolist() == pytest.approx(totals.tolist(), **CLOSE)


def edge_queries(rng, lattice, n):
    """Boxes on cell edges, beside them, tiny ones, and the whole lattice."""
    boxes = random_queries(rng, lattice, n)
    tiny = random_queries(rng, lattice, n, snap=0)
    tiny[:, 2:] = tiny[:, :2] + rng.choice([1e-6, 1e-4, 0.5], (len(tiny), 2))
    tiny = tiny[(tiny[:, 2:] <= lattice).all(axis=1)]
    return np.concatenate([boxes, np.rint(boxes), tiny, [[0, 0, *lattice]]])


def sound(boxes):
    return boxes[(boxes[:, :2] < boxes[:, 2:]).all(axis=1)]


KINDS = (
    {},
    {"unmeasured": 1.0},
    {"unmeasured": 0.2, "unknown_leaf": 0.5},
    {"leaf_share": 0.0, "height": 2},
    {"height": 0},
)


@settings(derandomize=True, max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    kind=st.sampled_from(KINDS),
    estimate=st.sampled_from(ESTIMATES),
    density=st.sampled_from(DENSITIES),
)
def test_compiled_sums_are_those_of_numpy(seed, kind, estimate, density):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, lattice=(SIDE, SIDE), **{"height": 4, **kind})
    release = release_of(tree, contributions=int(rng.integers(1, 4)))
    known = covariate_of(release.domain, seed)
    release = changed(
        release, covariate=known, post_processing=PostProcessing(estimate=estimate, density=density)
    )
    vars(release.index.fit)["edge_factor"] = float(rng.choice([0.0, 0.4]))
    compare(release, sound(edge_queries(rng, (SIDE, SIDE), 20)))


@pytest.mark.parametrize("kind", KINDS[:3])
def test_compiled_sums_are_those_of_brute_force(kind):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, height=4, **kind)
        release = release_of(tree)
        boxes = sound(edge_queries(rng, (SIDE, SIDE), 10))
        weights = np.array([leaf_fractions(tree, box) for box in boxes])
        _, covariance = dense_least_squares(tree)
        leaf = release.index.fit.estimates.count[tree.is_leaf]
        overdispersion, cluster_size = (
            release.index.fit.dispersion.overdispersion[tree.is_leaf],
            release.index.fit.dispersion.cluster_size,
        )
        found = walk_query_totals(release.index.flat_tree, release.index.fit.estimates.count, boxes)
        noise = np.einsum("ij,jk,ik->i", weights, covariance, weights)
        uneven = (weights * (1 - weights) * leaf * (cluster_size + overdispersion * leaf)).sum(
            axis=1
        )
        assert found.estimate.tolist() == pytest.approx((weights @ leaf).tolist(), **CLOSE)
        assert found.perturbation_variance.tolist() == pytest.approx(noise.tolist(), rel=1e-9)
        assert found.leaf_variance.tolist() == pytest.approx(uneven.tolist(), **CLOSE)
        lines = [naive_line_variance(release, box) for box in boxes]
        assert found.line_variance.tolist() == pytest.approx(lines, **CLOSE)


@pytest.mark.parametrize("method", small_cases())
def test_every_method_is_answered_the_same_by_all_engines(method):
    rng = np.random.default_rng(5)
    domain, centre = small_domain(SIDE), rng.normal(SIDE / 3, SIDE / 12, (4000, 2))
    column, row = np.clip(centre, 0, SIDE - 1).astype(int).T
    release = build_of(
        small_tally(SIDE, tuple((row * SIDE + column).tolist())),
        domain,
        budget=Budget(NANO),
        method=method,
        unit=PrivacyUnit(),
        covariate=covariate_of(domain),
    )
    boxes = sound(edge_queries(rng, (SIDE, SIDE), 60))
    compare(release, boxes)
    for density in {"uniform", "covariate"} - {release.record.post_processing.density}:
        compare(
            changed(
                release, post_processing=replace(release.record.post_processing, density=density)
            ),
            boxes,
        )


@pytest.mark.parametrize("lattice", [(60, 60), (1000, 777)])
@pytest.mark.parametrize("density", ["uniform", "smooth"])
@pytest.mark.parametrize("size", [1, 3, 16])
def test_a_table_answers_like_leaves_and_their_parts(lattice, density, size):
    rng = np.random.default_rng(size)
    domain = domain_of(lattice)
    tree = psd.decompositions.grid_tree(domain, size)
    counts = rng.integers(-3, 60, size * size)
    release = psd.Release.from_counts(tree, counts, 1.0, domain=domain)
    release = changed(release, post_processing=PostProcessing(density=density))
    assert release.index.mesh is not None
    assert release.index.mesh.leaf.shape == (size, size)
    side = size * (PARTS if density == "smooth" else 1) + 1
    assert release.index.summed_area.shape == (side, side)
    compare(release, sound(edge_queries(rng, lattice, 200)))


def test_what_is_no_table_is_not_taken_for_one():
    rng = np.random.default_rng(0)
    meshes = 0
    for seed in range(200):
        tree = random_tree(np.random.default_rng(seed), lattice=(8, 8), height=2, leaf_share=0.2)
        leaves = tree.boxes[tree.is_leaf]
        lines = [np.unique(leaves[:, [side, side + 2]]) for side in (0, 1)]
        table = {
            (x0, y0, x1, y1)
            for x0, x1 in zip(lines[0][:-1], lines[0][1:], strict=True)
            for y0, y1 in zip(lines[1][:-1], lines[1][1:], strict=True)
        }
        release = release_of(tree)
        assert (release.index.mesh is not None) == (table == set(map(tuple, leaves.tolist())))
        if release.index.mesh is not None:
            meshes += 1
            compare(release, sound(edge_queries(rng, (8, 8), 20)))
    assert 0 < meshes < 200
    by_covariate = PostProcessing(density="covariate")
    grid = psd.Release.from_counts(
        psd.decompositions.grid_tree(domain_of((8, 8)), 2),
        [1, 2, 3, 4],
        1.0,
        domain=domain_of((8, 8)),
    )
    grid = changed(grid, covariate=covariate_of(grid.domain), post_processing=by_covariate)
    assert grid.index.mesh is None
