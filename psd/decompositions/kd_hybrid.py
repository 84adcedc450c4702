"""kd-hybrid: private medians near the root, mid-points below.

References
----------
.. [1] Cormode, Procopiuc, Srivastava, Shen, Yu. "Differentially Private Spatial
   Decompositions." ICDE 2012, section 3.3. https://doi.org/10.1109/ICDE.2012.16
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar

from psd._util.declared_parameters import check_parameters, integer_between, public_field
from psd.decompositions._base import build_kd
from psd.decompositions._constants import KD_PRIVATE_LEVELS, KD_STRUCTURE_SHARE
from psd.privacy.budget import share
from psd.release.post_processing import PostProcessing

if TYPE_CHECKING:
    from psd.decompositions._base import Curator
    from psd.space.box_tree import Tree

__all__ = ["KDHybrid", "method"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KDHybrid:
    """kd-tree with private medians for the first levels and mid-points after, as in [1]_.

    Guarantees
    ----------
    - Medians are asked of disjoint cells, so each private level is charged once to every point;
      so are the counts. All shares of a path sum to exactly epsilon.
    - Cuts are public lattice lines, drawn inside the public box of their cell or halfway.

    Parameters
    ----------
    height : int
        Cuts from the root to a leaf, 1 to 20, axes alternating; up to 2^height leaves. Public.
    private_levels : int
        Number of cuts, from the root, at private medians; at most the height. Public.
    structure_share : decimal in [0, 1)
        Share of epsilon for the medians, the same on each private level; the rest is for the
        counts, 2^(1/6) times more on each level down. Public.

    References
    ----------
    .. [1] Cormode et al., ICDE 2012: the hybrid tree in section 3.3; the published code
       switches after three levels of fan-out four, which are six cuts.

    Examples
    --------
    >>> KDHybrid(height=10, private_levels=4)
    KDHybrid(height=10, private_levels=4, structure_share=Decimal('0.3'))
    """

    height: int = public_field(12, integer_between(1, 20), "cuts from the root to a leaf")
    private_levels: int = public_field(
        KD_PRIVATE_LEVELS, integer_between(0, 20), "cuts at private medians, from the root"
    )
    structure_share: Decimal = public_field(
        KD_STRUCTURE_SHARE, share, "share of epsilon for the medians"
    )

    name: ClassVar[str] = "kd-hybrid"
    post_processing: ClassVar[PostProcessing] = PostProcessing(
        estimate="posterior", density="smooth"
    )
    paper: ClassVar[str] = "Cormode et al., ICDE 2012"

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_parameters(self)

    def build(self, curator: Curator) -> Tree:
        """Cut at private medians first, then halfway."""
        return build_kd(
            curator,
            height=self.height,
            private=min(self.private_levels, self.height),
            structure_share=self.structure_share,
        )


method = KDHybrid
