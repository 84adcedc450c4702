"""Layers along the Hilbert curve: scores over 2^36 codes, intervals, and the squares they hold."""

import numpy as np
import pytest

from psd.curator.curator import Curator
from psd.decompositions.hilbert_rtree import HilbertRTree, round_ends
from psd.errors import BudgetError, ParameterError
from psd.ingest.tally import Tally
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO
from psd.space.box_tree import check_tree
from psd.space.domain import Domain
from psd.space.grids import MAX_ORDER, lattice_codes
from psd.testing import SCRIPTS, RecordingSampler, run_method, small_domain, small_tally
from support.hilbert_oracle import codes
from support.privacy.samplers import ExactSampler

LARGE = Domain(bounds=(0, 0, 1, 1), crs="EPSG:3857")


def curator_of(counts=None, domain=LARGE, epsilon=NANO, sampler=None):
    sampler = sampler or RecordingSampler()
    return Curator(counts, domain, budget=Budget(epsilon), sampler=sampler)


def large_tally(size, seed=1):
    random = np.random.default_rng(seed)
    columns, rows = random.integers(0, 2**20, (2, size)).astype(np.int32)
    return Tally(columns=columns, rows=rows, counts=random.integers(1, 9, size))


class Keeps(SecureSampler):
    """Keeps the intervals of candidates as they are; all lines of a curve would fill the memory."""

    __slots__ = ("seen",)

    def draw(self, mechanism):
        self.seen = mechanism.candidates
        return super().draw(mechanism)


def test_scores_on_the_finest_curve_are_exact():
    counts, noise = large_tally(500), Keeps()
    curator = curator_of(counts, sampler=noise)
    cells = curator.curve(MAX_ORDER)
    own = lattice_codes(counts.columns, counts.rows, LARGE.lattice, MAX_ORDER)
    for _ in range(3):
        lines = curator.quantile(cells, axis=0, loss=NANO // 4)
        for place, (first, _, last, _) in enumerate(cells.boxes.tolist()):
            here = (noise.seen.group == place) & (noise.seen.length > 0)
            starts, sizes = noise.seen.first[here], noise.seen.length[here]
            assert int(sizes.sum()) == last - first - 1
            assert (starts[1:] == (starts + sizes)[:-1]).all()
            inside = (own >= first) & (own < last)
            for line, score in zip(starts, noise.seen.score[here], strict=True):
                below = int(counts.counts[inside & (own < line)].sum())
                assert score == -abs(2 * below - int(counts.counts[inside].sum()))
        assert ((lines > cells.boxes[:, 0]) & (lines < cells.boxes[:, 2])).all()
        cells = curator.cut(cells, x=lines)
    ends = np.append(cells.boxes[:, 0], 4**MAX_ORDER)
    expected = np.bincount(np.searchsorted(ends, own, side="right") - 1, counts.counts, 8)
    curator._sampler = RecordingSampler()
    assert curator.count(cells, NANO // 4).tolist() == expected.tolist()


def test_a_curve_comes_on_top_of_a_lattice_and_has_no_tree():
    curator = curator_of(small_tally(3, (0,)), small_domain(3), epsilon=10)
    root, curve = curator.root(), curator.curve(2)
    curator.quantile(curve, axis=0, loss=6)
    with pytest.raises(BudgetError):
        curator.count(root, 5)
    curator.count(root, 4)
    assert curator.spent == 10
    assert [question.curve for question in curator.questions] == [2, 0]
    assert len(curator.tree()) == 1
    with pytest.raises(ParameterError, match="no boxes"):
        curator.tree(1)
    for order in (-1, 0, 19):
        with pytest.raises(ParameterError, match="order"):
            curator.curve(order)
    curator = curator_of(small_tally(4, (0, 5)), small_domain(4), epsilon=10)
    halves = curator.cut(curator.curve(2), x=[7])
    assert curator.count(halves, 10).sum() == 2
    assert curator.spent == 10  # disjoint intervals cost once


def test_rounding_keeps_the_order_and_the_outer_ends(subtests):
    for seed in range(20):
        random = np.random.default_rng(seed)
        some = random.integers(0, 4 ** random.integers(2, 19), 200)
        ends = np.unique(np.append(some, [0, 4**18]))
        found = round_ends(ends)
        with subtests.test(seed=seed):
            assert (found[0], found[-1]) == (0, 4**18)
            assert (np.diff(found) > 0).all()
            shorter = np.minimum(np.diff(ends)[:-1], np.diff(ends)[1:])
            nearest = np.abs(found - ends[1:-1, None]).min(axis=1)
            assert (8 * nearest <= shorter).all()


@pytest.mark.parametrize("side", [1, 3, 5, 8, 13])
@pytest.mark.parametrize("script", SCRIPTS)
def test_squares_lie_in_one_interval_each_and_are_dyadic(side, script):
    rows = tuple(np.random.default_rng(side).integers(0, side * side, 60))
    recorder, order = RecordingSampler(script), max(1, (side - 1).bit_length())
    _, tree = run_method(
        HilbertRTree(height=3), small_tally(side, rows), small_domain(side), NANO, recorder
    )
    medians = [call.answer for call in recorder.draws if call.kind == "select"]
    ends = round_ends(np.unique(np.concatenate([[0, 4**order], *medians])))
    code = codes(side, order)
    for x0, y0, x1, y1 in tree.boxes[tree.is_leaf]:
        inside = code[x0:x1, y0:y1]
        # No other lattice cell has a code between those of a square.
        assert ((code >= inside.min()) & (code <= inside.max())).sum() == inside.size
        before = np.searchsorted(ends, [inside.min(), inside.max()], side="right")
        assert before[0] == before[1]


@pytest.mark.deep
def test_a_large_lattice_gives_a_sound_tree_with_the_counts_of_its_boxes():
    counts = large_tally(5_000, seed=3)
    curator = curator_of(counts, sampler=ExactSampler())
    tree = HilbertRTree().build(curator)
    check_tree(tree, LARGE.lattice)
    assert curator.spent == NANO
    x0, y0, x1, y1 = tree.boxes[tree.loss > 0].T[:, :, None]
    x, y = counts.columns, counts.rows
    true = ((x >= x0) & (x < x1) & (y >= y0) & (y < y1)) @ counts.counts
    assert tree.count[tree.loss > 0].tolist() == true.tolist()
    # Disjoint squares: all but the root's own count add up to it.
    assert tree.count[tree.is_leaf].sum() == tree.count[0]
