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
from psd.decompositions._base import KD_MAX_HEIGHT, build_kd
from psd.decompositions._constants import KD_MEDIAN_SHARE, KD_PRIVATE_LEVELS, TOTAL_SHARE
from psd.errors import ParameterError
from psd.privacy.budget import share
from psd.release.post_processing import PostProcessing

if TYPE_CHECKING:
    from psd.decompositions._base import Curator
    from psd.space.box_tree import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class KDHybrid:
    """kd-tree with private medians for the first levels and mid-points after, as in [1]_.

    Every second level is counted: the published code has nodes of four children. N is never read
    from the data: without a height, a noisy total takes a share of epsilon, sets the height, and is
    the measurement of the root.

    Guarantees
    ----------
    - Medians are asked of disjoint cells, so each private level is charged once to every point;
      so are the counts of every second level, and the total. Levels between are not counted. All
      shares of a path sum to exactly epsilon.
    - Cuts are public lattice lines, drawn inside the public box of their cell or halfway.

    Parameters
    ----------
    height : int, optional
        Cuts from the root to a leaf, 1 to 20, axes alternating, up to 2^height leaves;
        log2(N epsilon / 2.5) from the noisy total if left out. Public.
    private_levels : int
        Number of cuts, from the root, at private medians; all of them if the tree is lower. Public.
    structure_share : decimal in [0, 1)
        Share of epsilon for the medians, the same on each private level; the rest is for the
        counts, 2^(1/3) times more on each counted level down. Public.
    total_share : decimal in [0, 1)
        Share of epsilon for the total; not spent if the height is stated. A total that is mostly
        noise is counted once more, with a tenth of what is left. Public.

    References
    ----------
    .. [1] Cormode et al., ICDE 2012: the hybrid tree in section 3.3; the published code
       switches after three levels of fan-out four, which are six cuts.

    Examples
    --------
    >>> KDHybrid(height=10).private_levels
    6
    """

    height: int | None = public_field(
        None,
        integer_between(1, KD_MAX_HEIGHT),
        "cuts from the root to a leaf; from a noisy total if left out",
    )
    private_levels: int = public_field(
        KD_PRIVATE_LEVELS, integer_between(0, 20), "cuts at private medians, from the root"
    )
    structure_share: Decimal = public_field(
        KD_MEDIAN_SHARE, share, "share of epsilon for the medians"
    )
    total_share: Decimal = public_field(
        TOTAL_SHARE, share, "share of epsilon for the total, unless height is given"
    )

    name: ClassVar[str] = "kd-hybrid"
    post_processing: ClassVar[PostProcessing] = PostProcessing(
        estimate="posterior", density="smooth"
    )
    paper: ClassVar[str] = "Cormode et al., ICDE 2012"

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.height is None and self.total_share == 0:
            raise ParameterError("total_share must be above 0 unless the height is given")

    def build(self, curator: Curator) -> Tree:
        """Cut at private medians first, then halfway."""
        return build_kd(
            curator,
            height=self.height,
            private_levels=self.private_levels,
            structure_share=self.structure_share,
            total_share=self.total_share,
        )


method = KDHybrid
