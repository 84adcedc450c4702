"""What an error is made of, and what would change it."""

from dataclasses import replace

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

from psd.query.explain import refine_leaves
from psd.release.post_processing import PostProcessing
from psd.space.box_tree import check_tree
from support.cubes import cube
from support.releases import changed
from support.trees import random_queries, random_tree, release_of

LATTICE = (64, 64)
VIEWS = (
    PostProcessing(),
    PostProcessing(density="smooth"),
    PostProcessing(estimate="signed"),
    PostProcessing(estimate="posterior"),
)


def releases():
    for seed, view in enumerate(VIEWS):
        rng = np.random.default_rng(seed)
        yield rng, changed(release_of(random_tree(rng, height=4)), post_processing=view)


@pytest.mark.deep
def test_the_parts_are_those_of_the_answer():
    for rng, release in releases():
        boxes = random_queries(rng, LATTICE, 8)
        table = release.query(boxes).table
        for (_, row), found in zip(table.iterrows(), release.query(boxes).explain(), strict=True):
            now = found.remedies.iloc[0]
            for name in ("perturbation_error", "nonuniformity_error", "error"):
                assert now[name] == pytest.approx(row[name], rel=1e-9, abs=1e-9)
            part = row["perturbation_error"] ** 2 / row["error"] ** 2
            assert found.noise_share == pytest.approx(part, rel=1e-9)
            inside = found.inside["estimate"].sum()
            if release.record.post_processing.density == "uniform":
                inside += (found.cut["covered"] * found.cut["estimate"]).sum()
                assert max(inside, 0) == pytest.approx(row["estimate"], rel=1e-9, abs=1e-9)
            assert found.cut["nonuniformity_error"].is_monotonic_decreasing


def test_the_parts_of_answers_of_cubes():
    release = cube()
    windows = [None, "2024-01-01T07", "2024-01-02T06..2024-01-02T09", "2024-01-01"]
    areas = [(1.3, 2.1, 7.7, 9.2), (4, 4, 8, 8), (0, 0, 16, 16)]
    shapes = gpd.GeoSeries([shapely.Polygon([(2, 2), (9.5, 3), (6, 11)])], crs=release.domain.crs)
    for asked in (areas, shapes):
        answers = release.query(asked, when=windows[1:])
        explained = answers.explain() + release.query(asked).explain()
        rows = pd.concat([answers.table, release.query(asked).table])
        for (_, row), found in zip(rows.iterrows(), explained, strict=True):
            now, *others = found.remedies.to_dict("records")
            for name in ("perturbation_error", "nonuniformity_error", "error"):
                assert now[name] == pytest.approx(row[name], rel=1e-9, abs=1e-9)
            # The five parts are all of the error: each is left out of one line.
            left = sum(now["error"] ** 2 - other["error"] ** 2 for other in others)
            assert left == pytest.approx(now["error"] ** 2, rel=1e-9)
            assert all(other["error"] <= now["error"] * (1 + 1e-9) for other in others)
            assert found.cut["nonuniformity_error"].is_monotonic_decreasing
            assert (found.cut["covered"] * found.cut["in_window"] < 1).all()
    whole = release.query([areas[2]]).explain()[0]
    assert not len(whole.cut)
    total = release.query([areas[2]])["estimate"][0]
    assert whole.inside["estimate"].sum() == pytest.approx(total)


def test_more_epsilon_is_a_release_of_more_epsilon():
    rng, release = next(releases())
    [box] = random_queries(rng, LATTICE, 1)
    [found] = release.query(box).explain()
    tree = replace(release.tree, loss=release.tree.loss * 5)
    dearer = changed(release, tree=tree, epsilon=release.record.epsilon * 5).query(box).table
    at = found.remedies.set_index("change")["perturbation_error"]["5 times the epsilon"]
    assert at == pytest.approx(dearer.loc[0, "perturbation_error"], rel=1e-12)


def test_more_epsilon_than_there_may_be_is_not_offered():
    _, release = next(releases())
    dear = changed(release, epsilon=900 * 10**9)
    [found] = dear.query((0, 0, 10.5, 10.5)).explain()
    assert found.remedies["change"].tolist() == ["as it is", "cells half as wide at its edge"]


def test_a_refined_tree_is_a_tree_with_quarters():
    for rng, release in releases():
        tree = release.tree
        sides = tree.boxes[:, 2:] - tree.boxes[:, :2]
        leaves = np.flatnonzero(tree.is_leaf & (sides >= 2).all(axis=1))
        leaves = leaves[rng.random(len(leaves)) < 0.5]
        finer, origin = refine_leaves(tree, leaves)
        check_tree(finer, release.domain.lattice)
        assert len(finer) == len(tree) + 4 * len(leaves)
        quarters = np.bincount(origin, minlength=len(tree)) == 5
        assert np.flatnonzero(quarters).tolist() == leaves.tolist()
        assert np.bincount(origin[finer.is_leaf], finer.area[finer.is_leaf]).sum() == tree.area[0]
        assert (finer.loss[np.isin(origin, leaves) & ~finer.is_leaf] == 0).all()
        assert finer.max_path_loss == tree.max_path_loss


def test_a_query_of_whole_cells_has_nothing_to_refine():
    _, release = next(releases())
    [found] = release.query((0, 0, 64, 64)).explain()
    assert len(found.cut) == 0
    assert found.noise_share == 1
    assert found.remedies["nonuniformity_error"].eq(0).all()


@pytest.mark.deep
def test_a_polygon_is_explained_as_the_box_that_it_is():
    for rng, release in releases():
        boxes = random_queries(rng, LATTICE, 3)
        shapes = list(shapely.box(*boxes.T))
        ways = (
            release.query(boxes).explain(),
            release.query(shapes, crs=release.domain.crs).explain(),
        )
        for one, other in zip(*ways, strict=True):
            for name in ("perturbation_error", "nonuniformity_error"):
                assert one.remedies[name].to_numpy() == pytest.approx(
                    other.remedies[name].to_numpy(), rel=1e-6, abs=1e-6
                )
