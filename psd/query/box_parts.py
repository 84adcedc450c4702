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
    """Measure covered fractions of cells by boxes; of leaves, by the density of the fit.

    boxes: (m, 4) float64, lattice units, clipped to the lattice.
    """
    if isinstance(fit.tree, RegionTree):
        return region_box_fraction(fit.tree, boxes)
    nodes, leaf, density = fit.tree.boxes, fit.tree.is_leaf, fit.density
    sides = np.ascontiguousarray(boxes.T)

    def fraction(
        query: NDArray[np.int64], node: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        share, area = np.empty(len(query)), np.empty(len(query))
        for start in range(0, len(query), _PAIRS_PER_CHUNK):
            chunk = slice(start, start + _PAIRS_PER_CHUNK)
            of_chunk = node[chunk]
            cell = nodes.take(of_chunk, axis=0).T.astype(np.float64, order="C")
            box = sides.take(query[chunk], axis=1)
            # The box as shares of the cell, from low to high; equal where they do not meet. Sums in
            # place: what the processor keeps near it has little room.
            start_of_cell, size, low, high = cell[:2], cell[2:], box[:2], box[2:]
            size -= start_of_cell
            for end in (low, high):
                end -= start_of_cell
            np.minimum(high, size, out=high)
            np.maximum(low, 0.0, out=low)
            for end in (low, high):
                end /= size
            np.maximum(high, low, out=high)
            part: NDArray[np.float64] = (high[0] - low[0]) * (high[1] - low[1])
            share[chunk] = area[chunk] = part
            if density is not None:
                cut = np.flatnonzero((part > 0) & (part < 1) & leaf[of_chunk])
                inside = density.part(
                    fit.tree, of_chunk[cut], low.take(cut, axis=1).T, high.take(cut, axis=1).T
                )
                share[start + cut] = inside
        return share, area

    return fraction
