"""kd-cell: a kd-tree whose cuts and stops follow from a noisy grid.

References
----------
.. [1] Cormode, Procopiuc, Srivastava, Shen, Yu. "Differentially Private Spatial
   Decompositions." ICDE 2012, section 3.3. https://doi.org/10.1109/ICDE.2012.16
.. [2] Xiao, Xiong, Yuan. "Differentially Private Data Release through Multidimensional
   Partitioning." Secure Data Management 2010. https://doi.org/10.1007/978-3-642-15546-8_11
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import ranges
from psd._util.declared_parameters import check_parameters, integer_between, public_field
from psd.decompositions._constants import KD_CELL_TOLERANCE, KD_STRUCTURE_SHARE
from psd.privacy.budget import geometric_shares, share
from psd.release.post_processing import PostProcessing
from psd.space.grids import cut_grid

if TYPE_CHECKING:
    from psd.decompositions._base import Curator
    from psd.privacy.count_noise import CountNoise
    from psd.space.box_tree import Tree
    from psd.space.growing_tree import Cells


_MAX_RESOLUTION = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class KDCell:
    """kd-tree cut at the medians of a noisy grid, and stopped where that grid looks uniform.

    The cell-based kd-tree of [1]_ after [2]_. The grid is counted first and only decides the
    shape of the tree; then the nodes of the tree are counted.

    Guarantees
    ----------
    - Every cell of the grid is counted with noise, empty ones too. The grid does not nest in
      the tree, so its share is charged to every point on top of the tree's.
    - Cuts and stops are functions of the noisy grid alone. A node that is not cut again spends
      what the levels below it would have had on its own count, so the shares of every path sum
      to exactly epsilon.

    Parameters
    ----------
    resolution : int
        Cells per side of the grid, 1 to 4,096. Public.
    height : int
        Cuts from the root to a leaf, 1 to 20, axes alternating; up to 2^height leaves. Public.
    structure_share : decimal in [0, 1)
        Share of epsilon for the grid; if it rounds to 0, there is no grid and the domain is one
        cell. The rest is for the counts, 2^(1/6) times more on each level down. Public.

    Notes
    -----
    Two rules are not in the papers. Noisy counts below zero weigh nothing in a median, so that a
    cut is about halfway where the noise is larger than the counts. The stop is decided on signed
    counts: with x_i the noisy counts of the M cells of the grid in a node, of variance
    s^2, sum (x_i - mean)^2 - (M - 1) s^2 is the square of the node's distance from uniform, seen
    through noise of standard deviation sqrt(5 M) s^2. A node is cut while that square, taken two
    of these deviations high, is above the square of two standard deviations of its count.

    References
    ----------
    .. [1] Cormode et al., ICDE 2012: kd-cell in section 3.3. The split of epsilon is that of the
       other kd-trees.
    .. [2] Xiao, Xiong, Yuan, SDM 2010: the grid, the medians and the uniformity of a cell.

    Examples
    --------
    >>> KDCell(height=10)
    KDCell(resolution=256, height=10, structure_share=Decimal('0.3'))
    """

    resolution: int = public_field(
        256, integer_between(1, _MAX_RESOLUTION), "cells per side of the noisy grid"
    )
    height: int = public_field(14, integer_between(1, 20), "cuts from the root to a leaf, at most")
    structure_share: Decimal = public_field(
        KD_STRUCTURE_SHARE, share, "share of epsilon for the grid"
    )

    name: ClassVar[str] = "kd-cell"
    post_processing: ClassVar[PostProcessing] = PostProcessing(
        estimate="posterior", density="smooth"
    )
    paper: ClassVar[str] = "Cormode et al., ICDE 2012"

    def __post_init__(self) -> None:
        check_parameters(self)

    def build(self, curator: Curator) -> Tree:
        """Count the grid on a layer of its own; cut by it from the root down; count the nodes."""
        cells = curator.root()
        structure = int(curator.loss * Fraction(self.structure_share))
        grid = NoisyGrid.count(curator, self.resolution, structure)
        left = curator.loss - structure
        for depth, level in enumerate(geometric_shares(left, self.height + 1, fanout=2)):
            # A finished cell is counted with all that is left on its path.
            ends = grid.is_uniform(cells, left) | (depth == self.height)
            curator.count(cells[ends], left)
            cells = cells[~ends]
            if len(cells) == 0:
                break
            if level:
                curator.count(cells, level)
            left -= level
            x, y = grid.medians(cells, depth % 2)
            cells = curator.cut(cells, x=x, y=y)
        return curator.tree()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisyGrid:
    """Noisy counts of a grid, as tables (columns + 1, rows + 1) of sums south-west of corners."""

    lines: tuple[NDArray[np.int64], NDArray[np.int64]]  # lattice lines of the grid in x and in y
    weight: NDArray[np.float64]  # sums of the counts, those below zero taken as zero
    signed: NDArray[np.float64]  # sums of the counts as they are
    squares: NDArray[np.float64]  # sums of their squares
    # Numbers of cells that were counted: all but those outside the boundary.
    noisy: NDArray[np.float64]
    variance: float  # of the noise of one count
    noise: CountNoise  # noise of counts

    @staticmethod
    def count(curator: Curator, resolution: int, loss: int) -> NoisyGrid:
        """Count a grid on a layer of its own; without loss, one cell with the count 0."""
        columns, rows = (min(resolution if loss else 1, n) for n in curator.domain.lattice)
        width, height = curator.domain.lattice
        x, y = np.arange(columns + 1) * width // columns, np.arange(rows + 1) * height // rows
        # Counts by column and row; without loss there is one cell, of count 0.
        counts, noisy = np.zeros((columns, rows)), np.ones((columns, rows))
        if loss:
            root = curator.root()
            cells = cut_grid(curator.cut, root, curator.domain.lattice, (columns, rows))
            # Cells come in the order of the cuts; their lines say where in the table each belongs.
            index = np.searchsorted(x, cells.boxes[:, 0]), np.searchsorted(y, cells.boxes[:, 1])
            counts[index], noisy[index] = (
                curator.count(cells, loss),
                curator.inside_boundary(cells),
            )
        return NoisyGrid(
            lines=(x, y),
            weight=_corner_sums(np.maximum(counts, 0)),
            signed=_corner_sums(counts),
            squares=_corner_sums(counts**2),
            noisy=_corner_sums(noisy),
            variance=_count_variance(loss, curator.noise),
            noise=curator.noise,
        )

    def is_uniform(self, cells: Cells, loss: int) -> NDArray[np.bool_]:
        """Whether cells are as close to uniform as a count at this loss is to the true count."""
        low, high = self._spans(cells)
        number = np.maximum(_range_sums(self.noisy, low, high), 1)
        distance = (
            _range_sums(self.squares, low, high) - _range_sums(self.signed, low, high) ** 2 / number
        )
        # What noise alone adds to the squares, less what it adds in an unlucky draw.
        of_noise = self.variance * (number - 1 - KD_CELL_TOLERANCE * np.sqrt(5 * number))
        leaf = _count_variance(loss, self.noise)
        uniform: NDArray[np.bool_] = (distance - of_noise <= KD_CELL_TOLERANCE**2 * leaf) | (
            number == 1
        )
        return uniform

    def medians(self, cells: Cells, axis: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Lattice lines with half of the weight below; on the other axis if one cell is wide."""
        low, high = self._spans(cells)
        # A cell of one column has no line inside: it is cut along the other axis.
        axes = np.where((high - low)[:, axis] > 1, axis, 1 - axis)

        # Inner lines of the grid in each cell, and the range of the cell up to each of them.
        each = np.arange(len(axes))
        first, last = low[each, axes], high[each, axes]
        owner, line = np.repeat(each, last - first - 1), ranges(first + 1, last - first - 1)
        until = high[owner]
        until[np.arange(len(owner)), axes[owner]] = line

        # The line whose weight below is closest to half; of equally good ones that in the middle.
        total = _range_sums(self.weight, low, high)
        off = np.abs(2 * _range_sums(self.weight, low[owner], until) - total[owner])
        order = np.lexsort((np.abs(2 * line - (first + last)[owner]), off, owner))
        best = line[order[np.searchsorted(owner, each)]]
        x, y = (
            np.where(axes == a, self.lines[a][np.where(axes == a, best, 0)], cells.boxes[:, a])
            for a in (0, 1)
        )
        return x, y

    def _spans(self, cells: Cells) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Indices in the grid of the first and last line of each cell, each of shape (n, 2)."""
        edges = [np.searchsorted(self.lines[side % 2], cells.boxes[:, side]) for side in range(4)]
        return np.stack(edges[:2], axis=1), np.stack(edges[2:], axis=1)


def _count_variance(loss: int, noise: CountNoise) -> float:
    """Variance of the noise of one count."""
    return float(noise.variance(np.array([loss]))[0])


def _corner_sums(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of a table south-west of each of its corners."""
    # A row and a column of zeros, so that sums from the edge need no case of their own.
    return np.pad(counts.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))


def _range_sums(
    sums: NDArray[np.float64], low: NDArray[np.int64], high: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Sum over each range of columns and rows, from a table of sums."""
    (x0, y0), (x1, y1) = low.T, high.T
    inside: NDArray[np.float64] = sums[x1, y1] - sums[x0, y1] - sums[x1, y0] + sums[x0, y0]
    return inside


method = KDCell
