"""What methods compute before they ask: shares of epsilon, and sizes from a noisy total."""

from decimal import Decimal

from psd.decompositions import hilbert_rtree, htf
from psd.decompositions._base import kd_shares
from psd.decompositions.grid import guideline_size, tiny_size
from psd.decompositions.htree import granularity


def test_private_cuts_have_one_share_each_and_levels_the_rest():
    shares = kd_shares(1_000, height=2, private=2, structure_share=Decimal("0.3"))
    assert shares == (150, (206, 232, 262))


def test_sizes_follow_the_formulas_of_the_papers():
    assert granularity(82_320) == 166
    assert hilbert_rtree.height_for(140_000) == 13
    assert htf.height_for(140_000) == 16
    assert guideline_size(140_000) == 118
    assert tiny_size(140_000) == 915
