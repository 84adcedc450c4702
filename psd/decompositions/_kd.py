"""Binary cuts with alternating axes, shared by the kd-trees."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from psd.privacy.budget import geometric_shares

if TYPE_CHECKING:
    from psd.decompositions._base import Curator
    from psd.space.box_tree import Tree

__all__ = ["build_kd", "kd_shares"]


def kd_shares(
    loss: int, *, height: int, private: int, structure_share: Decimal
) -> tuple[int, tuple[int, ...]]:
    """Loss of each private cut, and of the counts of each level, root first.

    The private cuts are on the first levels and have the same loss each.
    """
    cut = int(loss * Fraction(structure_share)) // private if private else 0
    return cut, geometric_shares(loss - private * cut, height + 1, fanout=2)


def build_kd(curator: Curator, *, height: int, private: int, structure_share: Decimal) -> Tree:
    """Count every level; cut at medians first, then halfway; axes alternate, x first.

    The first `private` of the cuts from the root to a leaf are at private medians, which have
    `structure_share` of epsilon, the same for each level.
    """
    cut, counts = kd_shares(
        curator.loss, height=height, private=private, structure_share=structure_share
    )
    cells = curator.root()
    for depth, share in enumerate(counts):
        if share:
            curator.count(cells, share)
        if depth == height:
            break
        axis = depth % 2
        if cut and depth < private:
            line = curator.quantile(cells, axis=axis, loss=cut)
        else:
            line = cells.middle(axis)
        cells = curator.cut(cells, **{"xy"[axis]: line})
    return curator.tree()
