"""A fit near a few boxes answers them as a fit of all cells does."""

from dataclasses import replace

import numpy as np
import pytest

import psd
from psd.api.fits import with_cache
from psd.api.release import Release
from psd.estimation import fit as module
from psd.estimation import fit_cache, posterior
from psd.estimation.fit import fit
from psd.estimation.fit_cache import VARIABLE
from psd.release.post_processing import PostProcessing
from psd.release.record import ReleaseRecord
from support.trees import random_tree

DOMAIN = psd.Domain(bounds=(0, 0, 16, 16), crs="EPSG:3857", lattice=(4096, 4096))
BOXES = [
    (1, 1, 5, 3),
    (0, 0, 16, 16),
    (7.31, 2.2, 7.32, 15.9),
    (3.001, 3.001, 3.002, 3.002),
    (-4, 8, 30, 8.01),
    (15.9, 15.9, 16, 16),
]
SMALL = np.array([[500.0, 700.0, 510.0, 710.0]])


def release(seed=0, **choice):
    """A release with leaves of all sizes, of which many are empty."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, lattice=DOMAIN.lattice, height=7, leaf_share=0.2, top=60)
    return Release(
        ReleaseRecord(
            tree=tree,
            domain=DOMAIN,
            epsilon=tree.max_path_loss,
            method="given",
            post_processing=PostProcessing(**choice),
        )
    )


def fitted(seed=0, **choice):
    """A release whose cells are all fitted."""
    made = release(seed, **choice)
    assert made.index.fit.zone is None
    return made


@pytest.fixture(autouse=True)
def near_for_small_trees(monkeypatch):
    monkeypatch.setattr(module, "LEAST_NODES", 1)
    monkeypatch.setattr(module, "_LIMIT", 1.0)


def check_equal(near, full):
    assert near.columns.tolist() == full.columns.tolist()
    for name, values in full.items():
        if values.dtype == float:
            assert near[name].to_numpy() == pytest.approx(values.to_numpy(), rel=1e-9, abs=1e-9)
        else:
            assert near[name].tolist() == values.tolist()


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("estimate", ["posterior", "least-squares", "signed"])
@pytest.mark.parametrize("density", ["smooth", "uniform"])
def test_answers_are_those_of_the_fit_of_all_cells(seed, estimate, density):
    full = fitted(seed, estimate=estimate, density=density)
    for boxes in [*BOXES, BOXES]:
        near = Release(full.record)
        check_equal(near.query(boxes).table, full.query(boxes).table)
        assert "fit" not in vars(near.index)


@pytest.mark.deep
def test_counts_of_cells_are_the_same_to_the_bit_and_others_are_missing():
    record = release(estimate="posterior", density="smooth").record
    full, near = fit(record), fit(record, SMALL)
    is_near = ~np.isnan(near.estimates.count)
    assert 0 < is_near.sum() < len(is_near)
    assert np.array_equal(near.estimates.count[is_near], full.estimates.count[is_near])
    assert near.total == full.total
    covariance, of_all = near.published_covariance, full.published_covariance
    assert np.array_equal(covariance.slope[is_near], of_all.slope[is_near])
    assert covariance.variance[0] == of_all.variance[0]
    assert np.isnan(covariance.variance[1:]).all()


@pytest.mark.parametrize("change", ["many boxes", "few nodes", "pruned", "many cells"])
def test_all_cells_are_fitted_where_that_is_as_fast(change, monkeypatch):
    boxes = np.repeat(SMALL, 17 if change == "many boxes" else 1, axis=0)
    record = release(density="smooth", prune=3 if change == "pruned" else 0).record
    if change == "few nodes":
        monkeypatch.setattr(module, "LEAST_NODES", 10**6)
    if change == "many cells":
        monkeypatch.setattr(module, "_LIMIT", 0.0)
    assert fit(record, boxes).zone is None


def test_the_first_questions_are_answered_from_the_cells_near_them():
    asked, full = release(estimate="posterior", density="smooth"), []
    for box in BOXES[2:]:
        asked.query(box)
        full.append("fit" in vars(asked.index))
    assert full == [False, False, False, True]
    assert asked.index.fit_near(SMALL) is asked.index.fit


def test_the_total_needs_no_fit_of_other_cells():
    asked = release(estimate="posterior")
    assert asked.total == fitted(estimate="posterior").total
    assert "fit" not in vars(asked.index)


@pytest.mark.deep
def test_shares_of_leaves_without_records_around_do_not_follow_rounding_errors():
    full = fit(release(estimate="posterior", density="smooth").record)
    surface = full.density.surface
    moved = full.density.shares(np.flatnonzero(full.tree.is_leaf))
    noise = np.random.default_rng(1).normal(size=surface.shape) * 1e-14 * surface[-1, -1]
    noisy = replace(full.density, surface=surface + noise)
    assert noisy.shares(np.flatnonzero(full.tree.is_leaf)) == pytest.approx(moved, abs=1e-3)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Folder of the cache; the first levels of small trees are kept too."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(fit_cache, "LEAST_NODES", 1)
    for using in (posterior, module):
        monkeypatch.setattr(using, "PART_NODES", 20)
    return tmp_path / "cache"


@pytest.fixture
def joined(monkeypatch):
    """Numbers of nodes whose likelihoods were computed, call by call."""
    sizes, compute = [], posterior.subtree_likelihoods

    def counted(tree, estimates, noisy, levels, *last):
        sizes.append(sum(level.stop - level.start for level in levels))
        return compute(tree, estimates, noisy, levels, *last)

    monkeypatch.setattr(posterior, "subtree_likelihoods", counted)
    return sizes


def near_answer(box, **choice):
    return with_cache(release(**{"estimate": "posterior", **choice})).query(box).table


@pytest.mark.deep
@pytest.mark.parametrize("estimate", ["posterior", "least-squares"])
@pytest.mark.parametrize("density", ["smooth", "uniform"])
def test_the_next_box_is_answered_from_the_first_levels_of_the_cache(
    folder, joined, estimate, density
):
    choice = {"estimate": estimate, "density": density}
    full = fitted(**choice)
    expected = [full.query(box).table for box in BOXES]
    joined.clear()
    for box, answer in zip(BOXES, expected, strict=True):
        check_equal(near_answer(box, **choice), answer)
    if estimate == "posterior":
        assert joined[0] == len(full.tree)
        assert max(joined[1:]) < len(full.tree)


def test_a_fit_of_all_cells_leaves_the_first_levels_to_boxes(folder, joined):
    full = with_cache(release(estimate="posterior", density="uniform"))
    assert full.index.fit.zone is None
    expected = full.query(BOXES[3]).table
    joined.clear()
    check_equal(near_answer(BOXES[3], density="uniform"), expected)
    assert 0 < sum(joined) < len(full.tree) / 2


@pytest.mark.deep
def test_many_cells_are_read_from_a_kept_fit(folder, monkeypatch):
    monkeypatch.setattr(module, "_MANY", 0.0)
    index = with_cache(release(estimate="posterior", density="smooth")).index
    assert fit(index.record, SMALL, cache=index.cache).zone is not None
    fit(index.record, cache=index.cache)
    assert fit(index.record, SMALL, cache=index.cache).zone is None


@pytest.mark.deep
def test_damaged_first_levels_are_computed_again(folder):
    expected = near_answer(BOXES[3], density="smooth")
    (path,) = folder.glob("*-top.psdfit")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert near_answer(BOXES[3], density="smooth").equals(expected)
    assert path.read_bytes() != content
