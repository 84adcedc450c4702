"""Parts of a hierarchy hold each node once, and posteriors in parts are those of the whole."""

import itertools

import numpy as np
import pytest

import psd.estimation.posterior as module
from psd.estimation.least_squares import infer_counts
from psd.estimation.posterior import halfway_level, subtree_parts
from psd.space.box_tree import Hierarchy
from support.trees import random_tree


def trees():
    rng = np.random.default_rng(4)
    return [random_tree(rng, lattice=(64, 64), height=height) for height in (1, 3, 5)]


def comb(length):
    """Each level has a leaf, and a node with the next level below it."""
    parent = np.concatenate([[-1], np.repeat(2 * np.arange(length), 2)])
    parent[3:] = np.repeat(2 * np.arange(1, length), 2)
    level = np.concatenate([[0], np.repeat(np.arange(1, length + 1), 2)])
    ones = np.ones(2 * length + 1, int)
    return Hierarchy(parent=parent, level=level, count=ones, loss=ones * 10**9)


@pytest.mark.parametrize("tree", [*trees(), comb(40)])
@pytest.mark.parametrize("most", [1, 5, 40, 10**6])
def test_each_node_is_in_the_top_or_in_one_part(tree, most):
    depth, parts = subtree_parts(tree, most)
    nodes = [np.arange(*s.indices(len(tree))) for part in parts for s in part]
    top = np.arange(tree.levels[depth].start)
    assert np.array_equal(np.sort(np.concatenate([top, *nodes])), np.arange(len(tree)))
    for part in parts:
        for above, below in itertools.pairwise(part):
            parents = tree.parent[below]
            assert above.start <= parents.min() <= parents.max() < above.stop
    if most >= len(tree):
        assert depth == 0
        assert len(parts) == 1


def test_parts_are_small_where_the_tree_allows_it():
    tree = trees()[-1]
    _, parts = subtree_parts(tree, 20)
    assert max(sum(s.stop - s.start for s in part) for part in parts) < len(tree) / 3
    depth, parts = subtree_parts(comb(40), 1)
    assert 10 < depth < 30


@pytest.mark.deep
@pytest.mark.parametrize("tree", trees())
@pytest.mark.parametrize("most", [1, 7, 100])
def test_medians_in_parts_are_the_same_to_the_last_bit(tree, most, monkeypatch):
    epsilon = np.where(tree.is_leaf | (tree.level == 1), 10**8, 0)
    count = np.where(epsilon, np.random.default_rng(1).integers(-9, 60, len(tree)), 0)
    noisy = Hierarchy(parent=tree.parent, level=tree.level, count=count, loss=epsilon)
    estimates = infer_counts(noisy)
    together = module.posterior_counts(noisy, estimates)
    monkeypatch.setattr(module, "_MOST_KEPT", most)
    assert np.array_equal(module.posterior_counts(noisy, estimates), together)


@pytest.mark.parametrize("tree", trees())
@pytest.mark.parametrize("most", [1, 7, 100])
def test_medians_below_a_known_top_are_the_same_to_the_last_bit(tree, most, monkeypatch):
    noisy = Hierarchy(
        parent=tree.parent,
        level=tree.level,
        count=np.random.default_rng(2).integers(-9, 60, len(tree)),
        loss=np.full(len(tree), 10**8),
    )
    estimates = infer_counts(noisy)
    together = module.posterior_counts(noisy, estimates)
    top = together[: tree.levels[halfway_level(tree)].stop]
    monkeypatch.setattr(module, "PART_NODES", most)
    assert np.array_equal(module.posterior_counts(noisy, estimates, top=top), together)
    inner = np.flatnonzero(tree.children)
    opened = np.unique(tree.parent[inner[-1:]].clip(0))
    while opened[0]:
        opened = np.union1d(opened, tree.parent[opened].clip(0))
    near = module.posterior_counts(noisy, estimates, opened=opened, top=top)
    is_near = ~np.isnan(near)
    assert is_near[tree.first_child[opened]].all()
    assert np.array_equal(near[is_near], together[is_near])
