"""Classes of the colours of a map page: the same for all time slices, those of other maps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import shapely

from psd._util.arrays import Floats, Integers
from psd._util.colours import class_breaks
from psd.api.release import Release
from psd.apps.web.map_regions import RegionGroup
from psd.space.box_tree import Tree
from psd.space.ground_areas import ground_areas, ground_densities
from psd.space.region_frame import ELSEWHERE

__all__ = ["cell_classes", "region_classes", "shown_nodes"]

# Breaks of the count and of the density.
Breaks = dict[str, list[float]]


def shown_nodes(tree: Tree, level: int) -> Integers:
    """Nodes that tile the area at a level: its nodes, and the leaves above it."""
    return np.flatnonzero((tree.level == level) | (tree.is_leaf & (tree.level < level)))


def cell_classes(releases: Sequence[Release], deepest: int) -> list[Breaks]:
    """Breaks of the cells of each level, over all time slices.

    Parameters
    ----------
    releases : sequence of Release
        Of the time slices.
    deepest : int
        Lowest level that is shown.
    """
    return [_breaks([_cells(each, level) for each in releases]) for level in range(deepest + 1)]


def region_classes(group: RegionGroup, estimates: Sequence[Floats]) -> Breaks:
    """Breaks of the regions of a group, over all time slices.

    Parameters
    ----------
    group : RegionGroup
        n regions.
    estimates : sequence of ndarray, shape (n,), float64
        Of the time slices.
    """
    named = np.array([text != ELSEWHERE for text in group.ids])
    named = named if named.any() else ~named
    plane = shapely.area(group.shapes[named])
    return _breaks([(each[named], group.areas[named], plane) for each in estimates])


def _cells(release: Release, level: int) -> tuple[Floats, Floats, Floats]:
    """Counts of the cells at a level, and their areas on the ground and on the map."""
    nodes = shown_nodes(release.tree, level)
    boxes = release.tree.boxes[nodes].astype(np.float64)
    count, plane = (
        release.index.fit.estimates.count[nodes],
        release.tree.area[nodes].astype(np.float64),
    )
    return count, ground_areas(release.domain, boxes), plane


def _breaks(slices: Sequence[tuple[Floats, Floats, Floats]]) -> Breaks:
    """Breaks of the values of all slices together; by areas on the map, as for other maps."""
    counts, areas, plane = (np.concatenate(each) for each in zip(*slices, strict=True))
    return {
        "count": class_breaks(counts, plane),
        "density": class_breaks(ground_densities(counts, areas), plane),
    }
