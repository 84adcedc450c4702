"""Posterior medians: sound whatever the counts say, near least squares where little is noise."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from psd.estimation import likelihoods
from psd.estimation.constants import LARGE_REACH
from psd.estimation.least_squares import infer_counts
from psd.estimation.posterior import posterior_counts
from psd.privacy.loss import NANO
from psd.space.box_tree import Tree
from psd.space.grids import grid_tree
from support.noise import for_users, noise_variance
from support.trees import domain_of, random_tree

law = settings(derandomize=True, max_examples=120, deadline=None)


def posterior_of(tree, contributions=1):
    tree = for_users(tree, contributions)
    return posterior_counts(tree, infer_counts(tree))


def with_values(tree, count, epsilon):
    """The same cells with other measurements."""
    return replace(tree, count=np.where(np.asarray(epsilon) > 0, count, 0), loss=epsilon)


def check_sound(tree, counts, contributions=1):
    """What holds for any measurements at all."""
    assert np.isfinite(counts).all()
    assert (counts >= 0).all()
    below = np.zeros(len(tree))
    np.add.at(below, tree.parent[1:], counts[1:])
    inner = ~tree.is_leaf
    assert below[inner] == pytest.approx(counts[inner], rel=1e-9, abs=1e-9)
    assert counts[0] == max(infer_counts(for_users(tree, contributions)).signed[0], 0)


nanos = st.one_of(
    st.sampled_from([1, 2, NANO, 1000 * NANO]), st.integers(0, 12).map(lambda power: 10**power)
)
sizes = st.one_of(
    st.sampled_from([0, 1, -1, 10**12, -(10**12)]),
    st.integers(-30, 30),
    st.integers(-(10**12), 10**12),
)


@st.composite
def measured_trees(draw):
    """Random cells; counts and epsilons of all sizes, beside each other in one family."""
    seed, height = draw(st.integers(0, 99)), draw(st.integers(0, 4))
    unmeasured = draw(st.sampled_from([0.0, 0.4, 1.0]))
    unknown = draw(st.sampled_from([0.0, 0.6]))
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, height=height, unmeasured=unmeasured, unknown_leaf=unknown)
    some = draw(st.lists(st.tuples(nanos, sizes), min_size=1, max_size=6))
    which = rng.integers(0, len(some), len(tree))
    epsilon, count = np.array(some, np.int64)[which].T
    return with_values(tree, count, np.where(tree.loss > 0, epsilon, 0))


@pytest.mark.deep
@law
@given(measured_trees(), st.sampled_from([1, 3, 1000]))
def test_any_measurements_give_sound_counts(tree, contributions):
    check_sound(tree, posterior_of(tree, contributions), contributions)


@pytest.mark.deep
@law
@given(nanos, st.lists(sizes, min_size=5, max_size=5))
@example(1000 * NANO, [10**12] * 5)
@example(1000 * NANO, [-(10**12), 10**12, 0, 0, 10**12])
@example(1, [-(10**12)] * 5)
def test_a_family_under_one_epsilon(nano, counts):
    tree = grid_tree(domain_of((4, 4)), 2)
    tree = with_values(tree, np.array(counts), np.full(5, nano))
    check_sound(tree, posterior_of(tree))


def test_a_lone_root_keeps_its_estimate_and_chains_pass_it_through():
    for count, nano in itertools.product([-7, 0, 3, 10**12], [1, NANO, 1000 * NANO]):
        tree = Tree(boxes=[[0, 0, 1, 1]], parent=[-1], level=[0], count=[count], loss=[nano])
        assert posterior_of(tree).tolist() == [max(count, 0)]
    for epsilon in np.array([[1, 0, 0], [0, 0, 1], [1, 1, 1], [0, 2, 5]]):
        chain = Tree(
            boxes=[[0, 0, 4, 4]] * 3,
            parent=[-1, 0, 1],
            level=[0, 1, 2],
            count=np.array([9, 14, 5]) * (epsilon > 0),
            loss=epsilon * NANO,
        )
        counts = posterior_of(chain)
        assert counts.tolist() == [counts[0]] * 3
        check_sound(chain, counts)


def test_a_chain_within_a_tree_changes_nothing_beside_it():
    """A child of its own that carries no count leaves the estimates of all others as they are."""
    plain = grid_tree(domain_of((4, 4)), 2)
    plain = with_values(plain, np.array([12, 9, 1, -2, 3]), np.full(5, NANO))
    chained = Tree(
        boxes=[*plain.boxes, plain.boxes[1]],
        parent=[*plain.parent, 1],
        level=[*plain.level, 2],
        count=[12, 0, 1, -2, 3, 9],
        loss=[NANO, 0, NANO, NANO, NANO, NANO],
    )
    counts = posterior_of(chained)
    assert counts[5] == counts[1]
    assert counts[:5] == pytest.approx(posterior_of(plain), abs=0.3)


@pytest.mark.parametrize("seed", range(5))
def test_all_noise_negative_leaves_nothing(seed):
    tree = random_tree(np.random.default_rng(seed), height=4)
    negative = with_values(tree, -np.abs(tree.count) - 1, tree.loss)
    assert posterior_of(negative).tolist() == [0.0] * len(tree)


@pytest.mark.parametrize("root", [0, 10**6])
@pytest.mark.parametrize("leaves", [0, 10**6])
@pytest.mark.parametrize("nano", [NANO // 100, NANO, 100 * NANO])
def test_measurements_that_contradict_each_other(root, leaves, nano):
    tree = grid_tree(domain_of((8, 8)), 4)
    count = np.where(tree.is_leaf, leaves, 0)
    count[0] = root
    epsilon = np.where(tree.is_leaf | (np.arange(len(tree)) == 0), nano, 0)
    tree = with_values(tree, count, epsilon)
    counts = posterior_of(tree)
    check_sound(tree, counts)
    assert counts[tree.is_leaf] == pytest.approx(counts[0] / 16, rel=0.05, abs=1e-9)


@pytest.mark.parametrize("nano", [1, NANO, 100 * NANO])
@pytest.mark.parametrize("seed", range(4))
def test_counts_at_the_ends_of_64_bits(seed, nano):
    """A file of a stranger may state any counts; their distances do not fit into 64 bits."""
    tree = grid_tree(domain_of((8, 8)), 4)
    random = np.random.default_rng(seed)
    count = random.choice([-(2**62), 0, 2**62], len(tree))
    epsilon = random.choice([1, nano], len(tree))
    tree = with_values(tree, count, epsilon)
    check_sound(tree, posterior_of(tree))


def test_equal_siblings_are_alike():
    tree = grid_tree(domain_of((8, 8)), 4)
    tree = with_values(tree, np.where(tree.is_leaf, 50, 0), np.where(tree.is_leaf, NANO, 0))
    counts = posterior_of(tree)
    assert counts[tree.is_leaf] == pytest.approx(np.full(16, 50), rel=0.01)


def test_an_unmeasured_leaf_takes_about_what_is_left():
    tree = grid_tree(domain_of((4, 4)), 2)
    epsilon = np.array([10, 10, 10, 10, 0]) * NANO
    tree = with_values(tree, np.array([1000, 100, 200, 300, 0]), epsilon)
    assert posterior_of(tree) == pytest.approx([1000, 100, 200, 300, 400], rel=0.01)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("nano", [NANO, 20 * NANO, 1000 * NANO])
def test_where_little_is_noise_it_is_least_squares(seed, nano):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, height=4, unmeasured=0.3)
    leaves = np.where(tree.is_leaf, rng.integers(2_000, 9_000, len(tree)), 0)
    for level in reversed(tree.levels[1:]):
        np.add.at(leaves, tree.parent[level], leaves[level])
    epsilon = np.where(tree.loss > 0, nano, 0)
    noise = np.rint(rng.laplace(0, NANO / nano, len(tree))).astype(int)
    tree = with_values(tree, leaves + noise, epsilon)
    deviation = float(noise_variance(np.array([nano]), 1)[0] ** 0.5)
    off = posterior_of(tree) - infer_counts(tree).signed
    # Medians under Laplace noise and means under Gauss noise differ by parts of a deviation.
    assert np.abs(off).max() <= 3.0 * deviation + 1e-3
    assert np.sqrt((off**2).mean()) <= 1.0 * deviation + 1e-3


@pytest.mark.deep
@pytest.mark.parametrize("scale", [10, 100])
def test_empty_data_come_closer_to_zero_than_by_projection(scale):
    """Root mean square over 40 draws of noise around zeros; both have the same total."""
    rng = np.random.default_rng(3)
    tree = grid_tree(domain_of((8, 8)), 8)
    epsilon, squares = np.full(len(tree), NANO // scale), np.zeros(2)
    for _ in range(40):
        noise = np.rint(rng.laplace(0, scale, len(tree))).astype(int)
        noisy = with_values(tree, noise, epsilon)
        counts, estimates = posterior_of(noisy), infer_counts(noisy)
        squares += [(values[tree.is_leaf] ** 2).mean() for values in (counts, estimates.count)]
        assert counts[0] == estimates.count[0]
    assert np.sqrt(squares[0]) < 0.8 * np.sqrt(squares[1])


@pytest.mark.deep
@pytest.mark.parametrize("scale", [1, 10])
def test_a_crowd_in_one_place_leaves_the_empty_cells_emptier_than_by_projection(scale):
    rng = np.random.default_rng(4)
    tree = grid_tree(domain_of((8, 8)), 8)
    epsilon = np.full(len(tree), NANO // scale)
    corner = (tree.boxes[:, :2] == 0).all(axis=1)
    true = np.where(corner, 200 * scale, 0)
    wrong = np.zeros(2)
    for _ in range(30):
        noise = np.rint(rng.laplace(0, scale, len(tree))).astype(int)
        noisy = with_values(tree, true + noise, epsilon)
        for place, values in enumerate((posterior_of(noisy), infer_counts(noisy).count)):
            wrong[place] += np.abs(values - true)[tree.is_leaf].mean()
    assert wrong[0] < 0.8 * wrong[1]


@pytest.mark.parametrize("chunk", [1, 3, 7, 10**6])
def test_chunks_change_no_bit(chunk, monkeypatch):
    tree = random_tree(np.random.default_rng(1), lattice=(4096,) * 2, height=6, leaf_share=0.2)
    counts = posterior_of(tree)
    monkeypatch.setattr(likelihoods, "_ROWS_PER_BATCH", chunk)
    assert len(tree) > 100
    assert np.array_equal(posterior_of(tree), counts)


def test_shared_likelihoods_change_no_bit(monkeypatch):
    tree = random_tree(np.random.default_rng(3), lattice=(4096,) * 2, height=6, leaf_share=0.2)
    tree = with_values(tree, tree.count // 50, tree.loss)
    counts = posterior_of(tree)
    monkeypatch.setattr(likelihoods, "_distinct", lambda code, _: (np.arange(len(code)),) * 2)
    assert np.array_equal(posterior_of(tree), counts)


def test_distinct_codes_have_an_example_each():
    code = np.array([7, 2, 7, 2, 9, 0])
    for limit in (10, 10**9):
        example, kind = likelihoods._distinct(code, limit)
        assert np.array_equal(code[example][kind], code)
        assert sorted(code[example].tolist()) == [0, 2, 7, 9]


def test_contributions_are_a_smaller_epsilon():
    tree = random_tree(np.random.default_rng(9), top=40)
    fifth = with_values(tree, tree.count, tree.loss // 5)
    fivefold = with_values(tree, tree.count, fifth.loss * 5)
    assert posterior_of(fivefold, 5) == pytest.approx(posterior_of(fifth, 1), rel=1e-6, abs=1e-9)


def half_sparse_grid():
    """Noisy counts of a grid: one record in each cell of its western half, forty in the others."""
    tree = grid_tree(domain_of((64, 64)), 64)
    west = tree.boxes[:, 2] <= 32
    noise = np.rint(np.random.default_rng(5).laplace(0, 1, len(tree))).astype(np.int64)
    return with_values(tree, np.where(west, 1, 40) + noise, np.where(tree.is_leaf, NANO, 0)), west


def distances(tree, counts):
    """Deviations from least squares of the first two of four parts together, and where possible."""
    estimates, inner = infer_counts(tree), np.flatnonzero(tree.children == 4)
    kids = tree.first_child[inner][:, None] + np.arange(4)
    known, variance, divided = (
        values[kids].reshape(-1, 2, 2).sum(axis=2)
        for values in (estimates.upward, estimates.upward_variance, counts)
    )
    gain = variance[:, 0] / variance.sum(axis=1)
    middle = known[:, 0] + gain * (counts[inner] - known.sum(axis=1))
    away = (divided[:, 0] - middle) / np.sqrt(gain * variance[:, 1])
    return away[(middle >= 0) & (middle <= counts[inner])]


def test_medians_of_many_small_counts_are_held_near_least_squares():
    tree, west = half_sparse_grid()
    free = posterior_counts(tree, infer_counts(tree))
    held = posterior_counts(tree, infer_counts(tree), reach=1.0)
    check_sound(tree, held)
    assert np.abs(distances(tree, held)).max() <= 1 + 1e-9
    sparse = tree.is_leaf & west
    assert free[sparse].sum() < 0.75 * sparse.sum()
    assert held[sparse].sum() == pytest.approx(sparse.sum(), rel=0.06)


@pytest.mark.deep
@law
@given(measured_trees(), st.sampled_from([0.0, 0.5, 1.0]))
def test_held_medians_are_sound_for_any_measurements(tree, reach):
    check_sound(tree, posterior_counts(tree, infer_counts(tree), reach=reach))


def test_parts_that_cannot_be_empty_are_divided_nearer_to_least_squares():
    tree, _ = half_sparse_grid()
    estimates = infer_counts(tree)
    # The first 21 families are large; in half of them there is a record or two in each cell.
    free, held = (
        np.abs(distances(tree, posterior_counts(tree, estimates, reach=reach)))[:21].max()
        for reach in (None, 1.0)
    )
    assert free > 0.9
    assert held <= LARGE_REACH + 1e-9
