"""The homogeneous tree: what each path spends, and where it cuts when noise is nothing."""

import numpy as np
import pytest

from psd.decompositions.htf import HTF, height_for
from psd.errors import ParameterError
from psd.privacy.count_noise import CountNoise
from psd.privacy.loss import NANO
from psd.space.box_tree import check_tree
from psd.testing import SCRIPTS, RecordingSampler, run_method, small_domain, small_tally
from support.hilbert_oracle import spent


@pytest.mark.parametrize("side", [1, 2, 7, 16])
@pytest.mark.parametrize("bins", [1, 2, 5, 1024])
@pytest.mark.parametrize("height", [None, 1, 5])
@pytest.mark.parametrize("share", ["0", "0.3", "0.999"])
def test_every_path_spends_exactly_epsilon(side, bins, height, share):
    rows = tuple(np.random.default_rng(side).integers(0, side * side, 300))
    method = HTF(height=height, bins=bins, structure_share=share)
    curator, tree = run_method(
        method, small_tally(side, rows), small_domain(side), NANO, RecordingSampler(SCRIPTS[2])
    )
    check_tree(tree, (side, side))
    assert curator.spent == NANO
    assert (spent(curator.questions, side) == NANO).all()


def test_cells_that_no_bin_line_crosses_are_halved_and_ask_nothing():
    curator, tree = run_method(
        HTF(height=4, bins=2), small_tally(16, ()), small_domain(16), NANO, RecordingSampler()
    )
    divided = [
        question.boxes for question in curator.questions if question.kind == "homogeneous_split"
    ]
    assert [len(boxes) for boxes in divided] == [1, 2]
    assert int(tree.is_leaf.sum()) == 16
    assert (tree.area[tree.is_leaf] == 16).all()


def test_an_even_block_is_cut_off_from_emptiness():
    """A dense block in the west: with the best line the cut follows its edge."""
    side = 16
    rows = tuple(side * y + x for y in range(side) for x in range(5)) * 3
    method = HTF(height=1, lines=1023)
    _, tree = run_method(
        method, small_tally(side, rows), small_domain(side), NANO, RecordingSampler()
    )
    assert tree.boxes[1:].tolist() == [[0, 0, 5, 16], [5, 0, 16, 16]]


def test_height_follows_from_a_noisy_total():
    for total, k, height in ((140_000, 1, 16), (140_000, 16, 12), (-5, 1, 1), (10**15, 1, 20)):
        assert height_for(CountNoise.laplace(k).signal_to_noise(total, NANO)) == height


def test_a_height_that_nobody_pays_for_is_refused():
    with pytest.raises(ParameterError, match="total_share"):
        HTF(total_share="0")
