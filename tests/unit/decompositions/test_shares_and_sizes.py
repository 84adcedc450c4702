"""What methods compute before they ask: shares of epsilon, and sizes from a noisy total."""

from decimal import Decimal

import numpy as np
import pytest

from psd.decompositions import Grid, KDHybrid, KDStandard, hilbert_rtree, htf
from psd.decompositions._base import kd_height, kd_shares
from psd.decompositions.grid import guideline_size, tiny_size
from psd.decompositions.htree import granularity
from psd.privacy.loss import NANO
from psd.testing import RecordingSampler, run_method, small_domain, small_tally


@pytest.mark.parametrize(
    ("height", "private", "is_paid", "expected"),
    [
        (2, 2, False, (150, (309, 0, 391))),
        (3, 2, False, (150, (0, 309, 0, 391))),  # the leaves decide which levels are counted
        (4, 2, True, (150, (0, 0, 309, 0, 391))),
        (1, 1, True, (300, (0, 700))),
        (2, 0, True, (0, (0, 0, 1_000))),
    ],
)
def test_private_cuts_have_one_share_each_and_every_second_level_the_rest(
    height, private, is_paid, expected
):
    share = Decimal("0.3")
    shares = kd_shares(
        1_000, height=height, private=private, structure_share=share, is_paid=is_paid
    )
    assert shares == expected


def curator_of(method, rows, epsilon=NANO):
    """Curator that a method has asked about so many records, without noise."""
    tally, sampler = small_tally(64, np.arange(rows) % 4096), RecordingSampler()
    return run_method(method, tally, small_domain(64), epsilon, sampler).curator


@pytest.mark.parametrize("method", [Grid(), KDStandard(), KDHybrid()])
def test_a_total_that_is_mostly_noise_is_counted_once_more(method):
    """A share of 0.02, then a tenth of what is left, of the same cell."""
    first, second, *_ = curator_of(method, 499).questions
    assert (first.kind, second.kind) == ("count", "count")
    assert first.boxes.tolist() == second.boxes.tolist() == [[0, 0, 64, 64]]
    assert (first.loss[0], second.loss[0]) == (NANO // 50, 98 * NANO // 1_000)
    curator = curator_of(method, 500)
    first, second, *_ = curator.questions
    assert curator.spent == NANO
    assert first.boxes.tolist() != second.boxes.tolist() or second.kind == "quantile"


def test_trees_count_every_second_level_down_to_leaves_whose_number_follows_the_total():
    for rows, height in ((5_000, 11), (2_500, 10)):
        questions = curator_of(KDStandard(), rows).questions
        counted = [len(q.boxes) for q in questions if q.kind == "count"]
        assert counted[0] == 1
        assert counted[1:] == [2**depth for depth in range(height % 2 or 2, height + 1, 2)]


def test_sizes_follow_the_formulas_of_the_papers():
    assert granularity(82_320) == 166
    assert hilbert_rtree.height_for(140_000) == 13
    assert htf.height_for(140_000) == kd_height(140_000) == 16
    assert (kd_height(0), kd_height(10.0**9)) == (1, 20)
    assert guideline_size(140_000) == 137
    assert tiny_size(140_000) == 915
