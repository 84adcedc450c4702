"""PrivTree: cells are quartered deeper where points are denser, without a height to choose.

References
----------
.. [1] Zhang, Xiao, Xie. "PrivTree: A Differentially Private Algorithm for Hierarchical
   Decompositions." SIGMOD 2016. https://doi.org/10.1145/2882903.2882928
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from psd._util.declared_parameters import check_parameters, integer_between, public_field
from psd.decompositions._constants import PRIVTREE_STRUCTURE_SHARE
from psd.privacy.budget import share
from psd.release.post_processing import PostProcessing

if TYPE_CHECKING:
    from psd.decompositions._base import Curator
    from psd.space.box_tree import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivTree:
    """Quadtree that is deeper where points are denser, and is counted at the leaves.

    The decomposition of [1]_ in integers: the curator splits a cell if its count, less a fixed
    number for each level, plus noise is above 0, and returns the shape alone.

    Guarantees
    ----------
    - The shape is one question about the domain, charged once to every point at any depth; the
      leaves are disjoint and are counted with the rest of epsilon.
    - Counts and noise that decided the shape are not published; cells are halves of public
      lattice ranges.

    Parameters
    ----------
    height : int
        Largest number of levels below the root, 0 to 30. Cells with few records are not divided,
        so this is only a limit; by default the depth of the default lattice. Public.
    structure_share : decimal in [0, 1)
        Share of epsilon for the shape; the rest is for the counts of the leaves. Public.

    References
    ----------
    .. [1] Zhang, Xiao, Xie, SIGMOD 2016: four parts to a split and half of epsilon for the
       shape. The integer form and its proof are at `Curator.privtree_shape`.

    Examples
    --------
    >>> PrivTree(height=12)
    PrivTree(height=12, structure_share=Decimal('0.5'))
    """

    height: int = public_field(
        20,
        integer_between(0, 30),
        "largest number of levels below the root; most cells stop earlier",
    )
    structure_share: Decimal = public_field(
        PRIVTREE_STRUCTURE_SHARE, share, "share of epsilon for the shape"
    )

    name: ClassVar[str] = "privtree"
    post_processing: ClassVar[PostProcessing] = PostProcessing(density="smooth")
    paper: ClassVar[str] = "Zhang et al., SIGMOD 2016"

    def __post_init__(self) -> None:
        check_parameters(self)

    def build(self, curator: Curator) -> Tree:
        """Ask for the shape, then count its leaves."""
        structure = int(curator.loss * Fraction(self.structure_share)) if self.height else 0
        leaves = curator.root()
        if structure:
            leaves = curator.privtree_shape(leaves, structure, height=self.height)
        curator.count(leaves, curator.loss - structure)
        return curator.tree()


method = PrivTree
