"""Hilbert R-tree: intervals of about equal numbers of points along a space-filling curve.

References
----------
.. [1] Cormode, Procopiuc, Srivastava, Shen, Yu. "Differentially Private Spatial
   Decompositions." ICDE 2012, section 3.3. https://doi.org/10.1109/ICDE.2012.16
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from psd._util.declared_parameters import check_parameters, integer_between, public_field
from psd.decompositions._constants import (
    HILBERT_ROUNDING,
    HILBERT_SIGNAL,
    HILBERT_STRUCTURE_SHARE,
    TOTAL_SHARE,
)
from psd.errors import ParameterError
from psd.privacy.budget import share, split_total
from psd.release.post_processing import PostProcessing
from psd.space.grids import MAX_ORDER, lattice_codes, square_lines
from psd.space.growing_tree import Cells

if TYPE_CHECKING:
    from psd.decompositions._base import Curator
    from psd.space.box_tree import Tree


_MAX_HEIGHT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class HilbertRTree:
    """Private medians along the Hilbert curve; the squares inside the intervals are counted.

    The tree of [1]_ is binary on the Hilbert code: an interval of codes is cut at the private
    median of its points. In [1]_ its nodes are published as bounding boxes. Those overlap: a
    point in several boxes would be counted several times, and each count would cost epsilon
    again. So no bounding box is counted here. The ends of the last intervals are answers, and
    therefore public; they are rounded to coarser codes, and the domain is quartered until each
    square lies in one interval. These squares are disjoint, tile the domain, and are counted. They
    are a second family beside the intervals, so their epsilon comes on top.

    Guarantees
    ----------
    - Medians are asked of disjoint intervals, so each level is charged once to every point, and
      so are the counts of the disjoint squares. All shares of a path sum to exactly epsilon.

    Parameters
    ----------
    height : int, optional
        Cuts from the whole curve to an interval, 1 to 16; log2(N epsilon / 20) from the noisy
        total if left out. Public.
    structure_share : decimal in [0, 1)
        Share of epsilon for the medians, the same on each level. Public.
    total_share : decimal in [0, 1)
        Share of epsilon for the total; not spent if the height is stated. Public.
    order : int
        Halvings of each side that the curve resolves, 1 to 18; fewer if the lattice is coarser.
        Public.

    References
    ----------
    .. [1] Cormode et al., ICDE 2012: Hilbert R-trees in section 3.3, order 18 in section 8.

    Examples
    --------
    >>> HilbertRTree(height=8).order
    18
    """

    height: int | None = public_field(
        None,
        integer_between(1, _MAX_HEIGHT),
        "cuts from the curve to an interval; from a noisy total if left out",
    )
    structure_share: Decimal = public_field(
        HILBERT_STRUCTURE_SHARE, share, "share of epsilon for the medians"
    )
    total_share: Decimal = public_field(
        TOTAL_SHARE, share, "share of epsilon for the total, unless height is given"
    )
    order: int = public_field(
        18, integer_between(1, MAX_ORDER), "halvings of each side by the curve"
    )

    name: ClassVar[str] = "hilbert-rtree"
    post_processing: ClassVar[PostProcessing] = PostProcessing(
        estimate="posterior", density="smooth"
    )
    paper: ClassVar[str] = "Cormode et al., ICDE 2012"

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.height is None and self.total_share == 0:
            raise ParameterError("total_share must be above 0 unless the height is given")

    def build(self, curator: Curator) -> Tree:
        """Find the height by a noisy total unless stated; cut intervals; count their squares."""
        root, left, height = curator.root(), curator.loss, self.height
        if height is None:
            left, paid = split_total(left, self.total_share)
            total = int(curator.count(root, paid)[0])
            height = height_for(curator.noise.signal_to_noise(total, left))
            root = curator.cut(root)  # the root is counted already; its squares are other cells
        # Medians cost the same on each level; the counts of the squares get the rest.
        median = int(left * Fraction(self.structure_share)) // height
        order = min(self.order, max(1, (max(curator.domain.lattice) - 1).bit_length()))
        # Intervals of codes, whose ends are private medians, 0 and 4^order included.
        intervals = curator.curve(order)
        for _ in range(height):
            middle = intervals.middle(0)
            line = curator.quantile(intervals, axis=0, loss=median) if median else middle
            intervals = curator.cut(intervals, x=line)
        # Ends at corners of large squares: few squares then fill an interval.
        ends = round_ends(np.unique(intervals.boxes[:, [0, 2]]))
        squares = _cut_squares(curator, root, ends, order)
        curator.count(squares, left - height * median)
        return curator.tree()


def round_ends(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Round inner ends to multiples of powers of four, at most 1/4 of the shorter interval."""
    length = np.diff(ends)
    shorter = np.minimum(length[:-1], length[1:])
    powers = 4 ** np.arange(MAX_ORDER + 1)
    # The power of four below the shorter neighbour of each inner end, less the steps of rounding.
    unit = powers[
        np.maximum(np.searchsorted(powers, shorter, side="right") - 1 - HILBERT_ROUNDING, 0)
    ]
    inner = (ends[1:-1] + unit // 2) // unit * unit
    return np.unique(np.concatenate([ends[:1], inner, ends[-1:]]))


def _cut_squares(curator: Curator, cells: Cells, ends: NDArray[np.int64], order: int) -> Cells:
    """Quarter cells until the codes of each square are in one interval."""
    done, lattice = [], curator.domain.lattice
    for bits in range(order, -1, -1):
        # Codes of a dyadic square begin with the code of the square.
        west, south = cells.boxes[:, 0], cells.boxes[:, 1]
        first = lattice_codes(west, south, lattice, order) >> 2 * bits << 2 * bits
        # No interval ends inside the codes of a square that lies in one interval.
        before = np.searchsorted(ends, first, side="right")
        inside = before == np.searchsorted(ends, first + (1 << 2 * bits), side="left")
        done.append(cells[inside])
        cells = cells[~inside]
        if not len(cells):
            break
        cells = curator.cut(
            cells, **{"xy"[a]: _halfway_line(cells, a, lattice[a], order, bits) for a in (0, 1)}
        )
    return Cells.join(done)


def _halfway_line(cells: Cells, axis: int, size: int, order: int, bits: int) -> NDArray[np.int64]:
    """Lattice line halfway through dyadic squares of side 2^bits, inside the lattice cells."""
    low, high = cells.boxes[:, axis], cells.boxes[:, axis + 2]
    start = (low << order) // size >> bits << bits
    return np.clip(square_lines(start + (1 << bits - 1), size, order), low, high)


def height_for(signal: float) -> int:
    """log2(N epsilon / (20 k)), rounded, from a noisy total."""
    leaves = signal / HILBERT_SIGNAL
    return min(max(round(math.log2(max(leaves, 1))), 1), _MAX_HEIGHT)


method = HilbertRTree
