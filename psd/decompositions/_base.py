"""Protocols of a decomposition and of the questions that it may ask the curator.

Public code: the file of a method imports this module and nothing from the private side. The real
curator is `psd.curator.curator.Curator`, whose docstrings have the sensitivity and the proof of
each question. What the two kd-trees share is below: binary cuts with alternating axes.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Protocol

from psd.privacy.budget import geometric_shares

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from psd.privacy.count_noise import CountNoise
    from psd.space.box_tree import Tree
    from psd.space.covariate import Covariate
    from psd.space.domain import Domain
    from psd.space.growing_tree import Cells
    from psd.space.region_tree import Regions

__all__ = [
    "Curator",
    "Decomposition",
    "build_kd",
    "kd_shares",
]


class Curator(Protocol):
    """Questions that a decomposition may ask about the points.

    Answers are noisy, lines and cells are public. Every question states its loss in nano-epsilon
    (units of 1e-9), and is charged to every point of its cells; a question that would take any
    point above `loss` raises `psd.errors.BudgetError` before anything is drawn. The costs of
    questions about disjoint cells do not add up.

    Guarantees
    ----------
    - Methods return, and attributes hold, only public values and values drawn with noise. A mistake
      in a decomposition costs accuracy, and never privacy.
    """

    @property
    def domain(self) -> Domain:
        """Bounds, CRS and lattice. Public.

        Without ``step`` of the method, the lattice is that of the blocks of the smallest cell.
        """

    @property
    def loss(self) -> int:
        """Loss for all questions together: nano-epsilon, or 1e-12 of rho. Public."""

    @property
    def contributions(self) -> int:
        """k, the largest number of records of one user; scales of noise are multiples of it."""

    @property
    def noise(self) -> CountNoise:
        """Noise of counts: its law, its variance, and the signal of a count. Public."""

    @property
    def covariate(self) -> Covariate | None:
        """Public density of the domain; None without one."""

    @property
    def regions(self) -> Regions | None:
        """Public hierarchy of regions; None without one."""

    def root(self) -> Cells:
        """Start a tree: one cell, the domain. A second tree adds to the charges."""

    def curve(self, order: int) -> Cells:
        """Start a tree of intervals of Hilbert codes: one cell, all 4^order codes."""

    def cut_regions(self, root: Cells) -> tuple[Cells, ...]:
        """Cut the root of a tree into the regions of each level, top first. Costs nothing."""

    def mass(self, cells: Cells) -> NDArray[np.float64]:
        """Share of cells inside their region, times the mass of the covariate; 1 without both."""

    def cut(self, cells: Cells, *, x: ArrayLike | None = None, y: ArrayLike | None = None) -> Cells:
        """Cut cells at public lattice lines into up to four children each. Costs nothing.

        Children come family by family, within a family by y then x. An axis without a line, or
        whose line is on an edge of the cell, is not cut.
        """

    def count(self, cells: Cells, loss: ArrayLike) -> NDArray[np.int64]:
        """Noisy number of records in each cell; a cell can be counted once."""

    def quantile(
        self, cells: Cells, *, axis: int, loss: ArrayLike, p: ArrayLike = 1, q: ArrayLike = 2
    ) -> NDArray[np.int64]:
        """Lattice line below which about p/q of each cell's records lie; the median by default."""

    def homogeneous_split(
        self, cells: Cells, *, axis: int, loss: ArrayLike, bins: int, lines: int
    ) -> NDArray[np.int64]:
        """Lattice line that makes the density on both sides about as even as possible."""

    def privtree_shape(self, cells: Cells, loss: ArrayLike, *, height: int) -> Cells:
        """Leaves of trees that grow deep where points are dense; the counts are not returned."""

    def inside_boundary(self, cells: Cells) -> NDArray[np.bool_]:
        """Which cells are not entirely outside the public boundary. Costs nothing."""

    def declare(self, name: str, value: int | str) -> None:
        """Declare what the method picked, for the parameters of the release. Costs nothing.

        The name is in ``picks`` of the method's class, and the value follows from public
        parameters and from answers.
        """

    def tree(self, layer: int = 0) -> Tree:
        """Cells with their noisy counts, the result of `Decomposition.build`."""


class Decomposition(Protocol):
    """A method: it cuts space into cells and divides epsilon among them.

    A frozen dataclass whose fields are made by `psd._util.declared_parameters.public_field`. Three
    members are optional: ``post_processing``, the default
    `psd.release.post_processing.PostProcessing`; ``step``, a function from the lattice to the
    columns and rows of it that the method never divides, for methods that are not limited by the
    smallest cell of the domain; and ``picks``, names under which it declares what it picked, see
    `Curator.declare`.

    Guarantees
    ----------
    - Fields are public; the points are in the curator, which is an argument.
    - All of the curator's epsilon is spent at every point of the domain.
    """

    name: ClassVar[str]
    paper: ClassVar[str]

    def build(self, curator: Curator) -> Tree:
        """Ask the curator for cuts and counts, and return its tree."""


def kd_shares(
    loss: int, *, height: int, private: int, structure_share: Decimal
) -> tuple[int, tuple[int, ...]]:
    """Loss of each private cut, and of the counts of each level, root first.

    The private cuts are on the first levels and have the same loss each.
    """
    cut = int(loss * Fraction(structure_share)) // private if private else 0
    return cut, geometric_shares(loss - private * cut, height + 1, fanout=2)


def build_kd(curator: Curator, *, height: int, private: int, structure_share: Decimal) -> Tree:
    """Count every level; cut at medians first, then halfway; axes alternate, x first.

    The first `private` of the cuts from the root to a leaf are at private medians, which have
    `structure_share` of epsilon, the same for each level.
    """
    cut, counts = kd_shares(
        curator.loss, height=height, private=private, structure_share=structure_share
    )
    cells = curator.root()
    for depth, share in enumerate(counts):
        if share:
            curator.count(cells, share)
        if depth == height:
            break
        axis = depth % 2
        if cut and depth < private:
            line = curator.quantile(cells, axis=axis, loss=cut)
        else:
            line = cells.middle(axis)
        cells = curator.cut(cells, **{"xy"[axis]: line})
    return curator.tree()
