"""Auto: a noisy total picks the method and the size of its cells.

References
----------
.. [1] Hay, Machanavajjhala, Miklau, Chen, Zhang. "Principled Evaluation of Differentially Private
   Algorithms Using DPBench." SIGMOD 2016: no method is best everywhere, and side information
   has to be paid for. https://doi.org/10.1145/2882903.2882931
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from psd._util.declared_parameters import check_parameters, integer_between, public_field
from psd.decompositions._constants import AUTO_CELLS, LOOK_SHARE
from psd.decompositions.cascade import Cascade
from psd.errors import ParameterError
from psd.privacy.budget import geometric_shares, share, split_total
from psd.release.post_processing import PostProcessing

if TYPE_CHECKING:
    from psd.decompositions._base import Curator
    from psd.space.box_tree import Tree

__all__ = ["Auto"]

_MAX_SIGNAL = 1_000_000

# A complete quadtree goes down to lattices of at most this height.
_MAX_HEIGHT = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Auto:
    """Pays for a noisy total, and picks a method and its parameters by it.

    If the public lattice is so coarse that each of its cells has more records than noise, a
    complete quadtree down to the lattice; otherwise a cascade, with cells large enough that there
    are not many more than ``cells`` of them. The pick, the total and its price are parameters of
    the release.

    Guarantees
    ----------
    - The pick is a function of the noisy total and of public numbers. The total stays in the
      tree as the count of the root.
    - The shares of the total and of the counts below it sum to exactly epsilon on every path.

    Parameters
    ----------
    look_share : decimal in [0, 1)
        Share of epsilon for the noisy total, above 0. Public.
    cells : int
        About how many finished cells to have at most, 1 to 100 million. Public.

    References
    ----------
    .. [1] Hay et al., SIGMOD 2016, on choosing among methods; the cascade is in
       `psd.decompositions.cascade`.

    Examples
    --------
    >>> Auto(cells=200_000)
    Auto(look_share=Decimal('0.02'), cells=200000)
    """

    look_share: Decimal = public_field(LOOK_SHARE, share, "share of epsilon for the noisy total")
    cells: int = public_field(
        AUTO_CELLS, integer_between(1, 10**8), "about how many finished cells at most"
    )

    name: ClassVar[str] = "auto"
    post_processing: ClassVar[PostProcessing] = PostProcessing(
        estimate="posterior", density="smooth"
    )
    picks: ClassVar[tuple[str, ...]] = (
        "look_epsilon",
        "look_rho",
        "look_total",
        "picked",
        "signal",
    )
    paper: ClassVar[str] = "picks; see Hay et al., SIGMOD 2016"

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.look_share == 0:
            raise ParameterError(
                "look_share must be above 0, got 0; auto needs a noisy total to pick a method"
            )

    def build(self, curator: Curator) -> Tree:
        """Pay for the total, pick, declare the pick, and build."""
        left, paid = split_total(curator.loss, self.look_share)
        root = curator.root()
        total = int(curator.count(root, paid)[0])
        measure = curator.noise.measure
        curator.declare(f"look_{measure.name}", measure.text(paid))
        curator.declare("look_total", total)
        expected_signal = curator.noise.signal_to_noise(total, left)
        columns, rows = curator.domain.lattice
        if (
            expected_signal >= Cascade().signal * columns * rows
            and max(columns, rows) <= 2**_MAX_HEIGHT
        ):
            curator.declare("picked", "quadtree")
            # Quarter down to the lattice and count every level.
            cells, height = root, max(1, (max(columns, rows) - 1).bit_length())
            for loss in geometric_shares(left, height):
                cells = curator.cut(cells, x=cells.middle(0), y=cells.middle(1))
                if loss:
                    curator.count(cells, loss)
            return curator.tree()
        signal = min(max(Cascade().signal, math.ceil(expected_signal / self.cells)), _MAX_SIGNAL)
        curator.declare("picked", "cascade")
        curator.declare("signal", signal)
        totals = np.array([total])
        Cascade(signal=signal).descend(curator, root, totals=totals, loss=left)
        return curator.tree()


method = Auto
