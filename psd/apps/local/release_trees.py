"""Trees of local releases: support counts on the levels of grids, or of named regions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from psd.apps.local.device import DEPTH, Campaign
from psd.apps.local.partitions import grow_tree
from psd.apps.local.region_design import regions_of_campaign
from psd.space.box_tree import Tree
from psd.space.region_frame import region_frame
from psd.space.region_tree import RegionTree

__all__ = ["grid_tree", "region_tree"]

Counts = Sequence[NDArray[np.int64]]


def grid_tree(
    campaign: Campaign, cells: Sequence[Sequence[str]], support: Counts
) -> tuple[Tree, Sequence[int]]:
    """Tree of partitions, each at least as fine as the one before, and the level of each."""
    grown = grow_tree(cells)
    count, epsilon = _on_levels(campaign, support, grown.level, grown.at)
    tree = Tree(
        boxes=grown.boxes, parent=grown.parent, level=grown.level, count=count, loss=epsilon
    )
    return tree, grown.at


def region_tree(
    campaign: Campaign, cells: Sequence[Sequence[str]], support: Counts
) -> tuple[RegionTree, Sequence[int]]:
    """Tree of the named regions of a campaign, and the level of each group; see `grid_tree`."""
    regions = regions_of_campaign(campaign)
    frame = region_frame(regions, (2**DEPTH, 2**DEPTH))
    at = [int(frame.level[frame.named(tier)[0]]) for tier in range(len(cells))]
    count, epsilon = _on_levels(campaign, support, frame.level, at)
    tree = RegionTree(
        boxes=frame.boxes.astype(np.int32),
        parent=frame.parent.astype(np.int32),
        level=frame.level.astype(np.int16),
        count=count,
        loss=epsilon,
        regions=regions,
    )
    return tree, at


def _on_levels(
    campaign: Campaign, support: Counts, level: NDArray[np.integer], at: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Counts and epsilons of the nodes: of each group, those of its level."""
    count, epsilon = np.zeros((2, len(level)), np.int64)
    for counts, number in zip(support, at, strict=True):
        count[level == number] = counts
        epsilon[level == number] = campaign.nano_epsilon
    return count, epsilon
