"""The adaptive grid: sizes as in the paper, public limits, and its constrained inference."""

import math
from itertools import product

import numpy as np
import pytest

from psd.decompositions.adaptive_grid import AdaptiveGrid, first_size, second_sizes
from psd.errors import ParameterError
from psd.estimation.least_squares import infer_counts
from psd.privacy.loss import NANO
from psd.testing import RecordingSampler, Script, run_method, small_domain, small_tally


def test_size_of_the_first_grid():
    for total, epsilon, k, size in (
        (1_000_000, 0.1, 1, 25),  # sqrt(10,000) / 4
        (140_000, 1, 1, 30),  # 119 / 4
        (140_000, 1, 4, 15),  # four rows per user
        (1_000, 1, 1, 10),  # ten at least
        (0, 1, 1, 10),
        (-10_000, 1, 1, 10),
        (10**18, 1_000, 1, 1_024),  # public limit
    ):
        assert first_size(max(total, 0) * epsilon / k) == size, (total, epsilon, k)


def test_sizes_of_the_second_grids():
    counts = np.array([-5, 0, 1, 10, 11, 40, 41, 12_345])
    for k in (1, 3):
        sizes = second_sizes(np.maximum(counts, 0) * 0.5 / k, np.full(len(counts), 10**6))
        ideal = [math.ceil(math.sqrt(max(n, 0) * 0.5 / (5 * k))) for n in counts]
        assert sizes.tolist() == [max(m, 1) for m in ideal]
    # No grid is finer than the lattice.
    assert second_sizes(np.array([1e6, 1e6]), np.array([3, 1])).tolist() == [3, 1]


def test_cells_in_all_have_a_public_limit_and_are_used_up_to_it():
    for cells, most in product((1, 100, 1_024**2), (10**4, 10**9, 2**62)):
        counts = np.linspace(-most, most, cells).astype(np.int64)
        sizes = second_sizes(np.maximum(counts, 0) * 1e3, np.full(cells, 2**20))
        assert sizes.min() >= 1
        assert (sizes**2).sum() <= 4_096**2
        assert (np.diff(sizes) >= 0).all()
    sizes = second_sizes(np.full(1_024, 1e9), np.full(1_024, 2**20))
    assert (sizes**2).sum() > 0.97 * 4_096**2


def made_up(first, second):
    """Noise that gives chosen counts of the two grids, whatever the data."""
    answers = (first, second)
    return RecordingSampler(Script("made up", lambda step, true: answers[step](len(true)), None))


@pytest.mark.parametrize("alpha", ["0.5", "0.2", "0.6"])
def test_least_squares_is_the_constrained_inference_of_the_paper(alpha):
    """v' and u'_ij of section IV-B, cell by cell; the paper's variances are 2 / epsilon^2."""
    rng = np.random.default_rng(3)
    noise = made_up(lambda n: np.arange(n) * 5_000 - 900, lambda n: rng.integers(-40, 900, n))
    method = AdaptiveGrid(size=3, first_share=alpha)
    _, tree = run_method(method, small_tally(60, (0,)), small_domain(60), NANO // 100, noise)
    signed, a = infer_counts(tree).signed, float(alpha)
    first = np.flatnonzero((tree.loss > 0) & ~tree.is_leaf)
    assert len(first) == 9
    sizes = set()
    for node in first:
        x0, y0, x1, y1 = tree.boxes[node]
        inside = (tree.boxes[:, :2] >= [x0, y0]) & (tree.boxes[:, 2:] <= [x1, y1])
        leaves = np.flatnonzero(inside.all(axis=1) & tree.is_leaf)
        v, u, cells = tree.count[node], tree.count[leaves], len(leaves)
        weights = np.array([a**2 * cells, (1 - a) ** 2])
        pooled = weights @ [v, u.sum()] / weights.sum()
        # The variance of discrete noise differs by less than a hundred-thousandth here.
        assert signed[node] == pytest.approx(pooled, abs=1e-2)
        assert signed[leaves] == pytest.approx(u + (pooled - u.sum()) / cells, abs=1e-2)
        sizes.add(cells)
    assert {1, 9} < sizes


def test_a_cell_with_few_points_is_counted_again_by_itself():
    noise = made_up(lambda n: np.full(n, 2), lambda n: np.full(n, 7))
    method = AdaptiveGrid(size=2, first_share="0.3")
    curator, tree = run_method(method, small_tally(8, ()), small_domain(8), NANO, noise)
    assert [len(question.boxes) for question in curator.questions] == [4, 4]
    assert np.array_equal(curator.questions[0].boxes, curator.questions[1].boxes)
    assert tree.loss.tolist() == [0, *[3 * NANO // 10] * 4, *[7 * NANO // 10] * 4]


def test_a_first_share_of_nothing_leaves_one_grid():
    for share, epsilon in (("0", NANO), ("0.2", 3)):  # nothing, or rounded to nothing
        noise = made_up(lambda n: np.full(n, 10**6), None)
        method = AdaptiveGrid(size=4, first_share=share)
        curator, _ = run_method(method, small_tally(8, ()), small_domain(8), epsilon, noise)
        asked = [(q.boxes.shape, set(q.loss.tolist())) for q in curator.questions]
        assert asked == [((16, 4), {epsilon})]


def test_the_total_is_a_measurement_and_is_paid_for():
    noise = RecordingSampler(Script("low", lambda step, true: np.zeros_like(true), None))
    curator, tree = run_method(AdaptiveGrid(), small_tally(64, ()), small_domain(64), NANO, noise)
    asked = [int(q.loss[0]) for q in curator.questions]
    assert asked == [NANO // 50, NANO * 49 // 100, NANO * 49 // 100]
    assert tree.loss[0] == NANO // 50


def test_a_total_without_a_share_is_refused():
    with pytest.raises(ParameterError, match="total_share must be above 0"):
        AdaptiveGrid(total_share="0")
    assert AdaptiveGrid(size=3, total_share="0").size == 3
