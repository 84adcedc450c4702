"""Quadtree: every cell is quartered down to a fixed height.

References
----------
.. [1] Cormode, Procopiuc, Srivastava, Shen, Yu. "Differentially Private Spatial
   Decompositions." ICDE 2012, sections 3.2 and 4. https://doi.org/10.1109/ICDE.2012.16
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from psd._util.declared_parameters import check_parameters, choice, integer_between, public_field
from psd.decompositions._workload_shares import CLASSES, check_workload, class_weights
from psd.errors import ParameterError
from psd.privacy.budget import geometric_shares, uniform_shares, weighted_shares
from psd.release.post_processing import PostProcessing

if TYPE_CHECKING:
    from psd.decompositions._base import Curator
    from psd.space.box_tree import Tree

__all__ = ["Quadtree"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quadtree:
    """Complete quadtree with noisy counts on its levels.

    The quadtree of [1]_.

    Guarantees
    ----------
    - The cells depend on no data; a level's counts are asked of disjoint cells, so each level
      is charged once to every point.
    - The shares of the levels sum to exactly epsilon.

    Parameters
    ----------
    height : int
        Levels below the root, 0 to 12; there are 4^height leaves. Public.
    budget : {"geometric", "uniform", "leaf", "workload"}
        How epsilon is divided: 2^(1/3) times more on each level down, the same on each level,
        all of it on the leaves, or to minimise the variance of a declared workload. Public.
    workload : str, optional
        The declared workload: a size class, ``"tiny"``, ``"small"``, ``"medium"``, ``"large"`` or
        ``"huge"``, or weights of the levels, root first, such as ``"0 0 3 0 7"``, from
        `psd.decompositions._workload_shares.weights_for_boxes`. Declared, never taken from the
        points. Public.
    prune : int
        Below a cell of at most this number of estimated records, records are assumed to be uniform,
        as in [1]_ with 32; 0 prunes nothing. Post-processing, which costs nothing. Public.

    References
    ----------
    .. [1] Cormode et al., ICDE 2012: the quadtree in section 3.2, the geometric budget in
       section 4.2 (equation 5); least squares in section 5.

    Examples
    --------
    >>> Quadtree(height=3).level_shares(1_000)
    (171, 215, 271, 343)
    >>> Quadtree(height=3, budget="workload", workload="0 1 0 3").level_shares(1_000)
    (0, 250, 0, 750)
    """

    height: int = public_field(8, integer_between(0, 12), "levels below the root; 4^height leaves")
    budget: str = public_field(
        "geometric",
        choice("geometric", "uniform", "leaf", "workload"),
        "geometric, uniform, leaf or workload",
    )
    workload: str | None = public_field(
        None, check_workload, f"declared: {', '.join(CLASSES)}, or weights by level"
    )
    prune: int = public_field(
        0,
        integer_between(0, 10**15),
        "cells of at most this number of estimated records are assumed to be uniform",
    )

    name: ClassVar[str] = "quadtree"
    paper: ClassVar[str] = "Cormode et al., ICDE 2012"

    def __post_init__(self) -> None:
        check_parameters(self)
        if (self.budget == "workload") != (self.workload is not None):
            raise ParameterError("budget=workload and workload must be given together")
        levels = len((self.workload or "").split())
        if self.workload not in (None, *CLASSES) and levels != self.height + 1:
            raise ParameterError(
                f"workload must have one weight for each of the {self.height + 1} levels of height "
                f"{self.height}, got {levels}"
            )

    @property
    def post_processing(self) -> PostProcessing:
        """Least squares, pruned."""
        return PostProcessing(prune=self.prune)

    def level_shares(self, loss: int) -> tuple[int, ...]:
        """Loss of each level, root first."""
        levels = self.height + 1
        if self.workload in CLASSES:
            return weighted_shares(loss, class_weights(self.workload, self.height))
        if self.workload is not None:
            return weighted_shares(loss, [int(weight) for weight in self.workload.split()])
        if self.budget == "leaf":
            return (0,) * self.height + (loss,)
        share = geometric_shares if self.budget == "geometric" else uniform_shares
        return share(loss, levels)

    def step(self, lattice: tuple[int, int]) -> tuple[int, int]:
        """Lattice columns and rows of a leaf, if halving divides the lattice evenly."""
        leaves = 2**self.height
        columns, rows = (size // leaves if size % leaves == 0 else 1 for size in lattice)
        return columns, rows

    def build(self, curator: Curator) -> Tree:
        """Quarter from the root down, and count every level that has a share."""
        *inner, leaf = self.level_shares(curator.loss)
        cells = curator.root()
        for share in inner:
            if share:
                curator.count(cells, share)
            cells = curator.cut(cells, x=cells.middle(0), y=cells.middle(1))
        curator.count(cells, leaf)
        return curator.tree()


method = Quadtree
