"""Homogeneous tree (HTF): a binary tree whose cuts leave both sides as even as possible.

References
----------
.. [1] Shaham, Ghinita, Ahuja, Krumm, Shahabi. "HTF: Homogeneous Tree Framework for
   Differentially-Private Release of Location Data." SIGSPATIAL 2021.
   https://arxiv.org/abs/2107.13749
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
from psd.decompositions._constants import HTF_SIGNAL, HTF_STRUCTURE_SHARE, TOTAL_SHARE
from psd.errors import ParameterError
from psd.privacy.budget import geometric_shares, share, split_total
from psd.release.post_processing import PostProcessing
from psd.space.grids import BinGrid
from psd.space.growing_tree import Cells

if TYPE_CHECKING:
    from psd.decompositions._base import Curator
    from psd.space.box_tree import Tree


_MAX_HEIGHT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class HTF:
    """Tree whose cuts minimise the unevenness inside their two sides, as in [1]_.

    Guarantees
    ----------
    - Lines are asked of disjoint cells, so each level is charged once to every point; so are
      the counts. A cell that no line between bins crosses is halved, and its leaves spend what
      its line would have cost. All shares of a path sum to exactly epsilon.

    Parameters
    ----------
    height : int, optional
        Cuts from the root to a leaf, 1 to 20, axes alternating; log2(N epsilon / 2.5) from the
        noisy total if left out. Public.
    structure_share : decimal in [0, 1)
        Share of epsilon for the lines, the same on each level; the rest is for the counts,
        2^(1/6) times more on each level down. Public.
    total_share : decimal in [0, 1)
        Share of epsilon for the total; not spent if the height is stated. Public.
    bins : int
        Bins per side of the domain in which unevenness is measured, 1 to 1,024. Public.
    lines : int
        Largest number of lines that a cut chooses from, evenly spaced. Public.

    References
    ----------
    .. [1] Shaham et al., SIGSPATIAL 2021: heterogeneity, height and geometric budget. There the
       line is searched with several noisy probes; here it is one selection by the exponential
       mechanism, charged once. With at most k records per user, epsilon in the height
       is epsilon / k.

    Examples
    --------
    >>> HTF(height=8).bins
    512
    """

    height: int | None = public_field(
        None,
        integer_between(1, _MAX_HEIGHT),
        "cuts from the root to a leaf; from a noisy total if left out",
    )
    structure_share: Decimal = public_field(
        HTF_STRUCTURE_SHARE, share, "share of epsilon for the lines"
    )
    total_share: Decimal = public_field(
        TOTAL_SHARE, share, "share of epsilon for the total, unless height is given"
    )
    bins: int = public_field(
        512, integer_between(1, 1024), "bins per side of the domain in which unevenness is measured"
    )
    lines: int = public_field(
        3, integer_between(1, 1023), "largest number of lines that a cut chooses from"
    )

    name: ClassVar[str] = "htf"
    post_processing: ClassVar[PostProcessing] = PostProcessing(
        estimate="posterior", density="smooth"
    )
    paper: ClassVar[str] = "Shaham et al., SIGSPATIAL 2021"

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.height is None and self.total_share == 0:
            raise ParameterError("total_share must be above 0 unless the height is given")

    def build(self, curator: Curator) -> Tree:
        """Find the height by a noisy total unless stated; cut and count level by level."""
        cells, left, height, paid = curator.root(), curator.loss, self.height, 0
        if height is None:
            left, paid = split_total(left, self.total_share)
            total = int(curator.count(cells, paid)[0])
            height = height_for(curator.noise.signal_to_noise(total, left))
        line = int(left * Fraction(self.structure_share)) // height
        # Without a total, the root is one level more that is counted.
        counts = geometric_shares(left - height * line, height + (not paid), fanout=2)
        # Loss that a cell has not spent on lines; its leaves spend it.
        unspent = np.zeros(1, np.int64)
        if not paid and counts[0]:
            curator.count(cells, counts[0])
        # Leaves also get what their lines have not cost.
        for depth, share_ in enumerate(counts[-height:]):
            cells, unspent = self._cut(curator, cells, unspent, depth % 2, line)
            loss = share_ + unspent if depth == height - 1 else np.full(len(cells), share_)
            curator.count(cells[loss > 0], loss[loss > 0])
        return curator.tree()

    def _cut(
        self, curator: Curator, cells: Cells, unspent: NDArray[np.int64], axis: int, line: int
    ) -> tuple[Cells, NDArray[np.int64]]:
        """Cut at a selected line, or halfway if none is paid for or no line of bins is inside."""
        grid = BinGrid(lattice=curator.domain.lattice, bins=self.bins)
        low, high = grid.bin_range(axis, cells.boxes)
        # Only a line of bins can be selected; other cells keep the loss for their leaves.
        has_lines = (high - low > 1) & (line > 0)
        lines = cells.middle(axis)
        if has_lines.any():
            lines[has_lines] = curator.homogeneous_split(
                cells[has_lines], axis=axis, loss=line, bins=self.bins, lines=self.lines
            )
        # A line on the edge cuts nothing: the cell stays one part.
        parts = 1 + (lines > cells.boxes[:, axis])
        return (
            curator.cut(cells, **{"xy"[axis]: lines}),
            np.repeat(unspent + np.where(has_lines, 0, line), parts),
        )


def height_for(signal: float) -> int:
    """log2(N epsilon / (2.5 k)), rounded, from a noisy total."""
    leaves = signal / HTF_SIGNAL
    return min(max(round(math.log2(max(leaves, 1))), 1), _MAX_HEIGHT)


method = HTF
