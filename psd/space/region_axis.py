"""The order of a hierarchy of regions as an axis: a region is a span of its lowest regions.

A layer over time and regions has families of slices, or of the regions of a node, so that a ward in
an hour is a node. Spans are those of the nodes of a `RegionTree` of pairs, and so a layer over the
regions alone has all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers
from psd.errors import ParameterError
from psd.space.axes import REGION
from psd.space.region_tree import PAIRS, RegionFrame, Regions, region_frame

__all__ = ["RegionAxis"]


@dataclass(frozen=True)
class RegionAxis:
    """The lowest regions of a public hierarchy, in its order.

    P1. A record has the cell of its lowest region, a public function of its own coordinates; it was
    dropped if it is in none. A line divides a node of the hierarchy, or one between it and its
    regions, into two.
    """

    regions: Regions

    @property
    def name(self) -> str:
        """The word for this axis in texts and files."""
        return REGION

    @property
    def size(self) -> int:
        """Number of lowest regions."""
        return self.regions.size

    @cached_property
    def frame(self) -> RegionFrame:
        """Nodes from the root to the lowest regions, each with at most two children."""
        return region_frame(self.regions, (1, 1), PAIRS)

    @cached_property
    def _nodes(self) -> tuple[Integers, Integers, Integers]:
        """Spans of the frame in order, the highest node of each, and its line."""
        frame = self.frame
        # Nodes are in level order, so the first one of a span is the highest.
        keys, highest = np.unique(self._key(frame.first, frame.stop), return_index=True)
        lines = frame.first.astype(np.int64)[highest]
        # Of a family of two, the line is where its first child ends.
        child = np.arange(1, len(frame))
        up = frame.parent[child]
        is_first = np.diff(up, prepend=-1) != 0
        inside = is_first & (frame.stop[child] < frame.stop[up])
        above = up[inside]
        at = np.searchsorted(keys, self._key(frame.first[above], frame.stop[above]))
        lines[at] = frame.stop[child[inside]]
        return keys, highest, lines

    def _key(self, first: NDArray[np.integer], stop: NDArray[np.integer]) -> NDArray[np.int64]:
        """One number for each span."""
        key: NDArray[np.int64] = np.asarray(first, np.int64) * (self.size + 1) + stop
        return key

    def nodes_of(self, first: NDArray[np.integer], stop: NDArray[np.integer]) -> NDArray[np.int64]:
        """Highest node of the frame with each span, (n,) int64; others are a `ParameterError`."""
        keys, highest, _ = self._nodes
        wanted = self._key(first, stop)
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        if (keys[at] != wanted).any():
            raise ParameterError("the regions of a cube must be divided as their hierarchy is")
        nodes: NDArray[np.int64] = highest[at]
        return nodes

    def lines(self, first: Integers, stop: Integers) -> NDArray[np.int64]:
        """Line that divides each span of a node, (n,) int64; the first cell of a span of one."""
        keys, _, lines = self._nodes
        found: NDArray[np.int64] = lines[np.searchsorted(keys, self._key(first, stop))]
        return found

    @cached_property
    def _tiers(self) -> NDArray[np.int64]:
        """Lowest level of the hierarchy that has a region with the span of each, as `_nodes`."""
        keys, _, _ = self._nodes
        tiers = np.full(len(keys), -1)
        frame = self.frame
        np.maximum.at(tiers, np.searchsorted(keys, self._key(frame.first, frame.stop)), frame.tier)
        return tiers

    def tiers(self, first: Integers, stop: Integers) -> NDArray[np.int64]:
        """Lowest level that has a region with the span of each node, (n,) int64; -1 if none has."""
        keys, _, _ = self._nodes
        found: NDArray[np.int64] = self._tiers[np.searchsorted(keys, self._key(first, stop))]
        return found

    def cells_of(self, values: Any) -> Integers:
        """Cell of each lowest region, which is its number."""
        return np.asarray(values, np.int64)

    def label(self, first: int, stop: int) -> str:
        """Ids of the first and the last of some lowest regions."""
        ids = self.regions.levels[-1].ids
        return ids[first] if stop - first == 1 else f"{ids[first]}..{ids[stop - 1]}"

    def span_of(self, text: str) -> tuple[int, int]:
        """Cells of a region of any level; an unknown one is a `ParameterError`."""
        for tier, level in reversed([*enumerate(self.regions.levels)]):
            if text in level.ids:
                node = self.frame.named(tier)[list(level.ids).index(text)]
                return int(self.frame.first[node]), int(self.frame.stop[node])
        raise ParameterError(f"region must be one of the hierarchy, got {text[:80]!r}")
