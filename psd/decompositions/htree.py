"""h-tree: slabs of about equal numbers of points in x, each cut into pieces in y.

References
----------
.. [1] To, Fan, Shahabi. "Differentially Private H-Tree." GeoPrivacy 2015.
   https://doi.org/10.1145/2830834.2830837
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
    HTREE_FIRST_AXIS,
    HTREE_SIGNAL,
    HTREE_STRUCTURE_SHARE,
    TOTAL_SHARE,
)
from psd.errors import ParameterError
from psd.privacy.budget import cube_root, share, split_total, weighted_shares
from psd.release.post_processing import PostProcessing
from psd.space.growing_tree import Cells

if TYPE_CHECKING:
    from psd.decompositions._base import Curator
    from psd.space.box_tree import Tree


_MAX_SIZE = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class HTree:
    """m slabs by private quantiles in x, each cut into m by private quantiles in y, as in [1]_.

    m = ceil(sqrt(N epsilon_c / 3)) with epsilon_c the share of the counts. N is never read from
    the data: without a size, a noisy total takes a share of epsilon, sets the size, and is the
    measurement of the root.

    Guarantees
    ----------
    - Quantiles are of the points inside the cell and asked of disjoint cells; m is reached by
      halving, so a path has at most ceil(log2 m) of them per axis, each with an equal part of
      the axis's share. A cell that needs fewer spends the rest on its count.
    - All shares of a path sum to exactly epsilon.

    Parameters
    ----------
    size : int, optional
        m, 1 to 1,024; from the noisy total if left out. Public.
    structure_share : decimal in [0, 1)
        Share of epsilon for the quantiles, 0.4 of it for x and 0.6 for y. Public.
    total_share : decimal in [0, 1)
        Share of epsilon for the total; not spent if the size is stated. Public.

    References
    ----------
    .. [1] To, Fan, Shahabi, GeoPrivacy 2015: granularity, shares of the structure 0.4, of its
       axes 0.4 : 0.6, and of the counts 1 : cbrt(m) as in the slides and the published code.
       With at most k records per user, epsilon in the granularity is epsilon / k.

    Examples
    --------
    >>> HTree(size=16)
    HTree(size=16, structure_share=Decimal('0.4'), total_share=Decimal('0.02'))
    """

    size: int | None = public_field(
        None, integer_between(1, _MAX_SIZE), "pieces per axis; from a noisy total if left out"
    )
    structure_share: Decimal = public_field(
        HTREE_STRUCTURE_SHARE, share, "share of epsilon for the quantiles"
    )
    total_share: Decimal = public_field(
        TOTAL_SHARE, share, "share of epsilon for the total, unless size is given"
    )

    name: ClassVar[str] = "htree"
    post_processing: ClassVar[PostProcessing] = PostProcessing(estimate="signed", density="smooth")
    paper: ClassVar[str] = "To, Fan, Shahabi, GeoPrivacy 2015"

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.size is None and self.total_share == 0:
            raise ParameterError(
                "total_share must be above 0 unless the size of the h-tree is given"
            )

    def build(self, curator: Curator) -> Tree:
        """Find the size by a noisy total unless stated; cut and count slabs and their pieces."""
        root, left, size = curator.root(), curator.loss, self.size
        if size is None:
            left, paid = split_total(left, self.total_share)
            total = int(curator.count(root, paid)[0])
            size = granularity(curator.noise.signal_to_noise(total, left - self._structure(left)))
        structure = self._structure(left)
        first = int(structure * HTREE_FIRST_AXIS)
        # Slabs hold many more records than pieces, so pieces get the larger part.
        slab_share, piece_share = weighted_shares(left - structure, (1 << 64, cube_root(size)))
        slabs, unspent = _cut_quantiles(curator, root, 0, size, first)
        _count_cells(curator, slabs, slab_share + unspent)
        pieces, unspent = _cut_quantiles(curator, slabs, 1, size, structure - first)
        _count_cells(curator, pieces, piece_share + unspent)
        return curator.tree()

    def _structure(self, loss: int) -> int:
        """Loss for the quantiles."""
        return int(loss * Fraction(self.structure_share))


def granularity(signal: float) -> int:
    """M = ceil(sqrt(N epsilon_c / (3 k))) from a noisy total."""
    ideal = math.sqrt(signal / HTREE_SIGNAL)
    return min(max(math.ceil(ideal), 1), _MAX_SIZE)


def _cut_quantiles(
    curator: Curator, cells: Cells, axis: int, size: int, loss: int
) -> tuple[Cells, NDArray[np.int64]]:
    """Cut each cell into pieces at quantiles floor(j / 2) / j; returns their unspent loss, too."""
    # Quantiles halve the number of pieces, and each path pays for every halving.
    share = loss // max(1, (size - 1).bit_length())
    cells = curator.cut(cells)  # they may be counted already; their pieces are other cells
    parts, spent = np.full(len(cells), size), np.zeros(len(cells), np.int64)
    done, rest = [], []
    while len(cells):
        # One lattice line wide: no cut is left, and what it would have cost goes to the counts.
        is_thin = cells.boxes[:, axis + 2] - cells.boxes[:, axis] == 1
        last = (parts == 1) | is_thin
        done.append(cells[last])
        rest.append(loss - spent[last])
        cells, parts, spent = cells[~last], parts[~last], spent[~last]
        low = parts // 2
        if share and len(cells):
            line = curator.quantile(cells, axis=axis, loss=share, p=low, q=parts)
        else:
            line = cells.middle(axis)
        cells = curator.cut(cells, **{"xy"[axis]: line})
        # Lower piece, upper piece of each cell in turn, as `cut` gives them.
        parts = np.stack([low, parts - low], axis=1).ravel()
        spent = np.repeat(spent + share, 2)
    return Cells.join(done), np.concatenate(rest)


def _count_cells(curator: Curator, cells: Cells, loss: NDArray[np.int64]) -> None:
    """Count the cells that have loss left."""
    funded = loss > 0
    curator.count(cells[funded], loss[funded])


method = HTree
