"""Protocols of a decomposition and of the questions that it may ask the curator. Public code.

A method imports nothing private: `psd.curator.curator.Curator` proves each question.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from psd.decompositions._constants import KD_SIGNAL, TOTAL_SECOND_SHARE, TOTAL_SIGNAL
from psd.privacy.budget import geometric_shares, split_total

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from psd.privacy.count_noise import CountNoise
    from psd.space.axes import Axis
    from psd.space.box_tree import Tree
    from psd.space.covariate import Covariate
    from psd.space.domain import Domain
    from psd.space.growing_tree import Cells
    from psd.space.region_tree import Regions

KD_MAX_HEIGHT = 20


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

    Examples
    --------
    >>> import psd
    >>> from psd.testing import RecordingSampler, run_method, small_domain, small_tally
    >>> run = run_method(psd.decompositions.Quadtree(height=1), small_tally(2, [0]),
    ...     small_domain(2), 1_000, RecordingSampler())
    >>> run.curator.loss, {question.kind for question in run.curator.questions}
    (1000, {'count'})
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

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Public axes beside the plane that a tree may divide, such as time."""

    def root(self, axes: Sequence[str] = ()) -> Cells:
        """Start a tree: one cell, the domain and all of these axes.

        A second tree adds to the charges.
        """

    def curve(self, order: int) -> Cells:
        """Start a tree of intervals of Hilbert codes: one cell, all 4^order codes."""

    def cut_regions(self, root: Cells) -> tuple[Cells, ...]:
        """Cut the root of a tree into the regions of each level, top first. Costs nothing."""

    def mass(self, cells: Cells) -> NDArray[np.float64]:
        """Share of cells inside their region, times the mass of the covariate; 1 without both."""

    def cut(
        self,
        cells: Cells,
        lines: Mapping[str, ArrayLike] | None = None,
        /,
        *,
        x: ArrayLike | None = None,
        y: ArrayLike | None = None,
    ) -> Cells:
        """Cut cells at public lattice lines into up to four children each. Costs nothing.

        Children come family by family, within a family by y then x. An axis without a line, or
        whose line is on an edge of the cell, is not cut. `lines` are those of further axes, by
        name; at most two axes of a cell are cut.
        """

    def noise_variance(self, cells: Cells, loss: ArrayLike) -> NDArray[np.float64]:
        """Variance of the noise of the count of each cell for a loss. Public."""

    def signal_to_noise(
        self, cells: Cells, counts: NDArray[np.int64], loss: ArrayLike
    ) -> NDArray[np.float64]:
        """Counts of cells beside the noise that a loss gives; see `CountNoise`. Public."""

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

    A frozen dataclass whose fields are made by `psd._util.declared_parameters.public_field`. Four
    members are optional: ``post_processing``, the default
    `psd.release.post_processing.PostProcessing`; ``step``, a function from the lattice to the
    columns and rows of it that the method never divides, for methods that are not limited by the
    smallest cell of the domain; ``picks``, names under which it declares what it picked, see
    `Curator.declare`; and ``axes``, names of further axes that it divides, whose first tree is that
    of the plane.

    Guarantees
    ----------
    - Fields are public; the points are in the curator, which is an argument.
    - All of the curator's epsilon is spent at every point of the domain.

    Examples
    --------
    >>> import psd
    >>> method = psd.decompositions.method("grid", {"size": "4"})
    >>> method.name, method.size
    ('grid', 4)
    """

    name: ClassVar[str]
    paper: ClassVar[str]

    def build(self, curator: Curator) -> Tree:
        """Ask the curator for cuts and counts, and return its tree."""


def noisy_total(curator: Curator, share: Decimal) -> tuple[Cells, int, int]:
    """Count the domain by a share of the loss, and once more if that count is mostly noise.

    Returns a cell that is all of the domain and may be cut, the loss left below it, and the total.

    P1. Every path pays for both counts: ``left`` is the loss less what they cost. The second is of
    a child that is the same cell, so on the same paths.

    P2. Whether there is a second count follows from the first answer, and the total from both.
    """
    root, noise = curator.root(), curator.noise
    left, paid = split_total(curator.loss, share)
    total = int(curator.count(root, paid)[0])
    if left == 1 or noise.signal_to_noise(total, paid) >= TOTAL_SIGNAL:
        return root, left, total
    root = curator.cut(root)
    left, more = split_total(left, TOTAL_SECOND_SHARE)
    again = int(curator.count(root, more)[0])
    # Each count is weighted by the inverse of its variance.
    first, second = noise.variance(np.array([paid, more])).tolist()
    return root, left, round((total * second + again * first) / (first + second))


def kd_shares(
    loss: int, *, height: int, private: int, structure_share: Decimal, is_paid: bool = False
) -> tuple[int, tuple[int, ...]]:
    """Loss of each private cut, the same for each, and of the counts of each depth, root first.

    P3. On every path from the root to a leaf there are ``private`` cuts and one count of each depth
    that has a share; together they cost exactly the loss.
    """
    cut = int(loss * Fraction(structure_share)) // private if private else 0
    # The leaves are counted and every second depth above them, but for a root that is paid.
    counted = [depth for depth in range(height % 2, height + 1, 2) if depth or not is_paid]
    shares = dict(zip(counted, geometric_shares(loss - private * cut, len(counted)), strict=True))
    return cut, tuple(shares.get(depth, 0) for depth in range(height + 1))


def build_kd(
    curator: Curator,
    *,
    height: int | None,
    private_levels: int,
    structure_share: Decimal,
    total_share: Decimal,
) -> Tree:
    """Cut at medians first, then halfway; axes alternate, x first; count every second level."""
    is_paid = height is None
    # Without a height, a noisy total decides it, and is the measurement of the root.
    if height is None:
        cells, left, total = noisy_total(curator, total_share)
        height = kd_height(curator.noise.signal_to_noise(total, left))
    else:
        cells, left = curator.root(), curator.loss
    private = min(private_levels, height)
    cut, counts = kd_shares(
        left, height=height, private=private, structure_share=structure_share, is_paid=is_paid
    )
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


def kd_height(signal: float) -> int:
    """log2(N epsilon / (2.5 k)), rounded, from a noisy total."""
    return min(max(round(math.log2(max(signal / KD_SIGNAL, 1))), 1), KD_MAX_HEIGHT)
