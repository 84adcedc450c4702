"""kd-cell: a complete noisy grid, medians and stops read off it alone, leftovers on the leaves."""

import numpy as np
import pytest

from psd.curator.curator import Curator
from psd.decompositions.kd_cell import KDCell, NoisyGrid
from psd.privacy.budget import Budget, geometric_shares
from psd.privacy.loss import NANO
from psd.space.growing_tree import Cells
from psd.testing import RecordingSampler, Script, run_method, small_domain, small_tally
from support.noise import noise_variance
from support.trees import domain_of


def grid_of(counts, epsilon=NANO, k=1):
    """Noisy grid with given counts, one per lattice cell, x first."""
    counts = np.asarray(counts)

    def ask(step, true):
        boxes = curator.questions[-1].boxes
        return counts[boxes[:, 0], boxes[:, 1]]

    noise = RecordingSampler(Script("made up", ask, None))
    tally, domain = small_tally(2, (), k), domain_of(counts.shape)
    curator = Curator(tally, domain, budget=Budget(epsilon), sampler=noise)
    return NoisyGrid.count(curator, 4_096, epsilon)


def cells_of(boxes):
    boxes = np.array(boxes)
    return Cells(layer=0, nodes=np.arange(len(boxes)), boxes=boxes)


def random_boxes_in(rng, columns, rows, number):
    """Boxes of more than one lattice cell."""
    boxes = []
    while len(boxes) < number:
        x, y = (sorted(rng.integers(0, side + 1, 2)) for side in (columns, rows))
        if (x[1] - x[0]) * (y[1] - y[0]) > 1:
            boxes.append([x[0], y[0], x[1], y[1]])
    return np.array(boxes)


@pytest.mark.parametrize("rows", [(), (5,) * 100], ids=["empty", "one place"])
def test_every_cell_of_the_grid_is_counted_empty_ones_too(rows):
    method = KDCell(resolution=4, height=2)
    curator, _ = run_method(method, small_tally(8, rows), small_domain(8), NANO, RecordingSampler())
    question = curator.questions[0]
    assert set(question.loss.tolist()) == {3 * NANO // 10}
    corners = {(int(x), int(y)) for x, y in question.boxes[:, :2]}
    assert corners == {(x, y) for x in (0, 2, 4, 6) for y in (0, 2, 4, 6)}


@pytest.mark.parametrize("axis", [0, 1])
def test_cuts_are_the_lines_nearest_to_half_of_the_weight(axis):
    rng = np.random.default_rng(axis)
    counts = rng.integers(-30, 60, (9, 14))
    boxes = random_boxes_in(rng, 9, 14, 200)
    found = np.stack(grid_of(counts).medians(cells_of(boxes), axis), axis=1)
    weight = np.maximum(counts, 0)
    for (x0, y0, x1, y1), lines in zip(boxes, found, strict=True):
        here = weight[x0:x1, y0:y1]
        along = axis if here.shape[axis] > 1 else 1 - axis
        below = here.sum(axis=1 - along).cumsum()[:-1]
        off = np.abs(2 * below - here.sum())
        line = int(lines[along]) - (x0, y0)[along]
        assert 1 <= line < here.shape[along]
        assert off[line - 1] == off.min()
        assert lines[1 - along] == (x0, y0)[1 - along], "the other axis stays whole"


def test_without_weight_a_cell_is_cut_in_the_middle():
    x, y = grid_of(np.full((8, 6), -3)).medians(cells_of([[0, 0, 8, 6], [2, 1, 3, 5]]), 0)
    assert (x.tolist(), y.tolist()) == ([4, 2], [0, 3])


@pytest.mark.parametrize("k", [1, 3])
def test_a_cell_is_uniform_while_its_distance_may_be_noise(k):
    rng = np.random.default_rng(k)
    hill = 40 * np.exp(-((np.arange(12) - 4) ** 2)[:, None] / 8 - (np.arange(10) - 3) ** 2 / 8)
    counts = np.round(hill + rng.normal(0, 3, hill.shape)).astype(int)
    boxes = random_boxes_in(rng, 12, 10, 300)
    found = grid_of(counts, k=k).is_uniform(cells_of(boxes), NANO // 8)
    noise, leaf = noise_variance(np.array([NANO, NANO // 8]), k)
    for (x0, y0, x1, y1), uniform in zip(boxes, found, strict=True):
        here = counts[x0:x1, y0:y1]
        distance = here.size * here.var() - (here.size - 1) * noise
        assert uniform == (distance + 2 * np.sqrt(5 * here.size) * noise <= 4 * leaf)
    assert 0.1 < found.mean() < 0.9


def test_one_cell_of_the_grid_is_uniform_whatever_it_holds():
    grid = grid_of(np.full((2, 2), 10**6))
    assert grid.is_uniform(cells_of([[0, 0, 1, 1]]), 1_000 * NANO).all()


def test_a_leaf_spends_what_the_levels_below_would_have_had():
    """Points in one corner: cut there down to single cells of the grid, stopped elsewhere."""
    method = KDCell(resolution=4, height=6, structure_share="0.5")
    tally = small_tally(4, (0,) * 5_000 + (1,) * 50)
    curator, tree = run_method(method, tally, small_domain(4), NANO, RecordingSampler())
    shares = geometric_shares(NANO // 2, 7, fanout=2)
    for level, epsilon, is_leaf in zip(tree.level, tree.loss, tree.is_leaf, strict=True):
        assert epsilon == (sum(shares[level:]) if is_leaf else shares[level])
    assert len(set(tree.level[tree.is_leaf].tolist())) > 2
    assert curator.spent == NANO


def test_without_a_grid_the_domain_is_one_cell():
    for settings, epsilon in (({"structure_share": "0"}, NANO), ({}, 3)):  # a share of nothing
        curator, tree = run_method(
            KDCell(**settings), small_tally(8, (1, 2)), small_domain(8), epsilon, RecordingSampler()
        )
        asked = len(curator.questions[0].boxes)
        assert (len(tree), tree.loss.tolist(), asked) == (1, [epsilon], 1)


@pytest.mark.parametrize("lattice", [(1, 9), (9, 1), (3, 17), (1_000, 7)])
def test_cuts_are_lines_of_the_grid_on_any_lattice(lattice):
    method = KDCell(resolution=5, height=6, structure_share="0.9")
    curator = Curator(
        small_tally(1, (0,) * 1_000),
        domain_of(lattice),
        budget=Budget(NANO),
        sampler=RecordingSampler(),
    )
    tree = method.build(curator)
    for axis, side in enumerate(lattice):
        size = min(5, side)
        lines = {i * side // size for i in range(size + 1)}
        assert set(tree.boxes[:, [axis, axis + 2]].ravel().tolist()) <= lines
    assert tree.is_leaf.sum() > 1
