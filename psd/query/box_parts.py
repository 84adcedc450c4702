"""Parts of cells that boxes cover."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd.query.region_nodes import region_box_fraction
from psd.query.traversal import Fraction
from psd.space.region_tree import RegionTree

if TYPE_CHECKING:
    from psd.estimation.fit import Fit


# Pairs of a box and a cell measured together.
_PAIRS_PER_CHUNK = 2**13


def box_fraction(fit: Fit, boxes: NDArray[np.float64]) -> Fraction:
    """Covered fractions of cells by boxes, (m, 4) in lattice units; of leaves, by the density."""
    if isinstance(fit.tree, RegionTree):
        return region_box_fraction(fit.tree, boxes)
    nodes, end, is_end, density = fit.tree.boxes, fit.tree.end, fit.tree.is_end, fit.density
    sides = np.ascontiguousarray(boxes.T)

    def fraction(
        query: NDArray[np.int64], node: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        share, area = np.empty(len(query)), np.empty(len(query))
        for start in range(0, len(query), _PAIRS_PER_CHUNK):
            chunk = slice(start, start + _PAIRS_PER_CHUNK)
            of_chunk = node[chunk]
            cell = nodes.take(of_chunk, axis=0).T.astype(np.float64, order="C")
            part = sides.take(query[chunk], axis=1)
            # Sums in place: what the processor keeps near it has little room. First the part of the
            # box inside the cell, of size 0 where they do not meet.
            corner, size, low, high = cell[:2], cell[2:], part[:2], part[2:]
            np.maximum(low, corner, out=low)
            np.minimum(high, size, out=high)
            np.maximum(high, low, out=high)
            size -= corner
            wide, tall = high - low
            # A cell inside has the very same numbers as its part, so its share is exactly 1.
            covered: NDArray[np.float64] = wide * tall
            covered /= size[0] * size[1]
            share[chunk] = area[chunk] = covered
            if density is not None:
                cut = np.flatnonzero((covered > 0) & (covered < 1) & is_end.take(of_chunk))
                # As shares of the leaf, from low to high.
                corner, size = corner.take(cut, axis=1), size.take(cut, axis=1)
                low, high = ((side.take(cut, axis=1) - corner) / size for side in (low, high))
                of_leaf = end.take(of_chunk.take(cut))
                share[start + cut] = density.part(fit.tree, of_leaf, low.T, high.T)
        return share, area

    return fraction
