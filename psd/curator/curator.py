"""The curator: the only object that holds the points and answers questions about them.

Every read of true data that can influence an output is a method that charges first and draws
second; a refused question changes nothing. A mistake in a decomposition costs accuracy and never
privacy.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psd._util.arrays import Integers
from psd.curator.path_charges import PathCharges, grow, split_rule
from psd.curator.points import Points
from psd.errors import BudgetError, InternalError, ParameterError
from psd.ingest.quadrant_codes import QuadrantOrder
from psd.ingest.tally import Tally
from psd.mechanisms import mechanisms
from psd.mechanisms.base import MAX_SENSITIVITY, Sampler, ScoreMechanism, UnscoredMechanism
from psd.mechanisms.exponential_mechanism import Candidates, ExponentialMechanism
from psd.mechanisms.sampler import count_mechanism
from psd.privacy.budget import Budget
from psd.privacy.count_noise import CountNoise
from psd.privacy.loss import NANO, LossMeasure
from psd.privacy.values import count_factor, part_factor
from psd.space.axes import REGION
from psd.space.box_tree import MAX_CHILDREN, Tree
from psd.space.cube_tree import SliceCap, noises_by
from psd.space.domain import Domain
from psd.space.grids import MAX_ORDER, BinGrid, lattice_codes
from psd.space.growing_tree import Cells, GrowingTree
from psd.space.region_tree import PAIRS, region_frame

if TYPE_CHECKING:
    from psd.curator.candidate_scores import CandidateScores
    from psd.space.axes import Axis
    from psd.space.covariate import Covariate
    from psd.space.region_tree import Regions

__all__ = ["Curator"]

# At scales below it, noise exceeds 62 bits with a probability under exp(-2^20).
_MAX_SCALE = 2**42

# Laplace noise has scales whose parts are at most so large, and losses are parts of `NANO`.
_MAX_SENSITIVITY = (2**63 - 1) // NANO

# What the curator alone states of a choice.
_FILLED_IN = ("scores", "epsilon", "sensitivity", "is_monotone")

# Further axes of one curator, by name.
_AXES = (["time"], ["category"], ["time", "category"])
_AXES_OF_REGIONS = (["time", REGION],)

# Keeps products of two numbers of bins within 64 bits.
_MAX_BINS = 2**10

# Keeps scores q * below within 64 bits for 2^49 records, or 2^29 users of weight 2^20.
_MAX_QUANTILE = 2**14


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChargedQuestion:
    """A question without its answer. Public."""

    kind: str  # name of the curator's method
    boxes: NDArray[np.int64]  # (n, 4) int64; cells of the question
    # (n,) int64; nano-epsilon charged to each cell, or units of 1e-12 of rho.
    loss: NDArray[np.int64]
    # Order of the Hilbert curve whose codes the columns of the boxes are; 0 for the lattice.
    curve: int = 0
    # (n, 2) int64, or None; first lowest region of each cell, and the one after its last; None if
    # all records in the boxes are in the cells.
    regions: NDArray[np.int64] | None = None
    # (n, 2 A) int64, or None; of a layer over further axes, the span of each cell.
    spans: NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class _Layer:
    """One tree of the curator: its cells, the points in them, and what they were charged."""

    growing: GrowingTree
    points: Points
    charges: PathCharges


class Curator:
    """Holds a tally, charges questions to it, and answers with exact integer noise.

    tally: private, counted by the `regions` if there are any; all else public. What is left of
    `budget` is for all questions together, in its loss measure. A question charges `loss` to each
    of its cells, one number or (n,), above 0: nano-epsilon, or 1e-12 of rho.

    Methods may read `covariate`; no question does. Records where `boundary` is 0, and records in
    none of the `regions`, were dropped before counting. So cells outside, and cells that do not
    meet their region, are empty in all data sets: they are answered without a draw and charged
    nothing, see `psd.space.boundary.Boundary`. `squared_sensitivity` is S^2 = k cap of a budget in
    rho, k being the records of a unit in all that is released together, and cap those that one
    question may see; by default k^2 of the tally, whose questions may see all of them.

    `axes` are public ones beside the plane, such as time, by which the tally was counted. A layer
    divides those that it spans, and its cells hold the records of all cells of the others. In rho,
    `cap` is the rule by which the squared sensitivity of a cell of t slices is k min(k, M t), M
    being the records of a unit in one slice.

    P1. The answers together are epsilon-differentially private for the unit of the tally, under
    adding or removing one: a record, or a user with at most k records. With a budget in rho, they
    are rho-zCDP for it.

    P2. A question that would take the charge at any lattice point above epsilon, or rho, is refused
    before anything is drawn, in any sequence of questions.

    P3. A question reads the records in its own cells and nothing else.

    Proof. Let z be a record and t = (o_1, o_2, ...) a transcript. Which question comes i-th is a
    function of the answers before it, and its answer depends on the records of its cell only. By
    the chain rule the loss of t between two data sets that differ in z is at most the sum of
    epsilon_i over the questions whose cell holds z, and the charges are kept so that this sum is at
    most epsilon at every lattice point, in every transcript. With k records per user every
    sensitivity is multiplied by k, so a build is (epsilon / k)-private for a record and
    epsilon-private for a user by group privacy. Layers overlap, so their costs add up.

    Proof in rho [1]_ [2]_. Let a unit have m_z records at each point z, a point being a lattice
    cell of one time slice; the sum of all m_z is at most k. Let question c be about a cell that
    holds n_c of them, the sum of m_z over its points; n_c is at most cap_c, a public function of
    the cell: min(k, M t_c) for a cell of t_c stated slices, of which each holds at most M of them.
    Every question is made such that the n_c records of one unit cost at most n_c^2 rho_c / S_c^2 in
    rho, rho_c being its charge and S_c^2 at least k cap_c; each has its own proof. Then all
    questions together, of all layers, cost at most

        sum_c n_c^2 rho_c / (k cap_c) <= sum_c n_c rho_c / k = (1 / k) sum_z m_z R(z) <= rho,

    where R(z) is the sum of rho_c over the questions whose cell holds z, at most rho at every point
    in every transcript. Questions may depend on answers: which question comes next is a function of
    the answers before it, and a filter of zCDP with a fixed limit is valid [3]_. So rho is counted
    at points, as epsilon is, and where k stands in a sensitivity of epsilon, sqrt(k cap_c) stands
    in rho. With cap in place of k cap, users with records in several slices would lose more than
    rho; with the cap of one slice for cells of several, so would users with records in these.

    With further axes a record also has a cell of each, such as its slice and its category, a
    function of this record and of public input, and lattice points are lattice cells with a cell of
    each axis. Parts of a cell are disjoint sets of them, so a record is on one path of a layer, and
    layers add up as above.

    With regions, a record has a lattice cell and one lowest region, both a function of this record
    and of public input, and lattice points are these pairs in all of the above. Siblings are
    disjoint sets of pairs: regions have different lowest regions below them, and cells of one
    region have disjoint boxes. So a record is on one path of a layer, and the sum of a path is
    charged to the pairs of its last cell alone, even though boxes of different regions overlap. A
    cell that does not meet its region has no pair that a record can have, in any data set.

    With time and regions, the last axis is the order of the lowest regions: a cell of the layer
    over both is a span of slices and one of lowest regions, which are disjoint from those of its
    siblings. A record has one slice and one lowest region, so it is on one path of this layer and
    on one of the layer over regions alone, and layers add up as above. A unit may have records in
    many regions. In epsilon each of them costs what it costs alone; in rho, the slices of a cell
    bound them, whatever regions it has.

    References
    ----------
    .. [1] M. Bun, T. Steinke, "Concentrated Differential Privacy", TCC 2016, arXiv:1605.02065.
    .. [2] C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy",
       NeurIPS 2020, arXiv:2004.00010.
    .. [3] V. Feldman, T. Zrnic, "Individual Privacy Accounting via a Renyi Filter", NeurIPS 2021,
       arXiv:2008.11193, theorem 4.3 with one limit for all.
    """

    def __init__(
        self,
        tally: Tally,
        domain: Domain,
        *,
        budget: Budget,
        sampler: Sampler,
        squared_sensitivity: int | None = None,
        covariate: Covariate | None = None,
        boundary: Covariate | None = None,
        regions: Regions | None = None,
        axes: tuple[Axis, ...] = (),
        cap: SliceCap | None = None,
    ) -> None:
        names = [axis.name for axis in axes]
        if axes and names not in (_AXES if regions is None else _AXES_OF_REGIONS):
            raise ParameterError(
                "axes must be time, category or both in this order, or time and the regions"
            )
        for axis in axes:
            codes = tally.sliced_codes(QuadrantOrder(domain.lattice))
            if codes is not None and axis.name == "time" and codes.slices == axis.size:
                continue
            own = _cells_of(tally, axis)
            if own is None or (len(own) and not 0 <= own.min() <= own.max() < axis.size):
                raise ParameterError("axes must be those that the tally was counted by")
        if regions is not None:
            counted = tally.region
            if counted is None or (
                len(counted) and not 0 <= counted.min() <= counted.max() < regions.size
            ):
                raise ParameterError("regions must be those that the tally was counted by")
        self._tally = tally
        self._budget = budget
        self._sampler = sampler
        self._layers: list[_Layer] = []
        self._questions: list[tuple[str, GrowingTree, Integers, Integers]] = []
        self._declared: dict[str, int | str] = {}
        self._lock = threading.RLock()
        self.domain = domain
        self.loss = budget.left
        self.covariate = covariate
        self.boundary = boundary
        self.regions = regions
        self.axes = axes
        self._cap = cap
        self.contributions = tally.contributions
        self._values = 0 if tally.values is None else tally.values.shape[1]
        self.noise = _noise_of(tally, budget.measure, squared_sensitivity)
        if axes or cap is not None:
            _check_cap(self.noise, tally, axes, cap)
        if self._values:  # counts follow from noisy sums, see `count`
            factor = count_factor(self._values, is_pure=budget.measure.is_pure)
            # A method asks what a count costs by this noise, before it has one.
            self.noise = replace(self.noise, factor=Fraction(factor))
            _check_values(tally, self._values, budget.measure)

    @property
    def spent(self) -> int:
        """Largest sum charged to a lattice point so far, in the loss measure; layers add up."""
        return sum(layer.charges.total for layer in self._layers)

    @property
    def questions(self) -> tuple[ChargedQuestion, ...]:
        """All questions so far, without their answers."""
        return tuple(
            ChargedQuestion(
                kind=kind,
                boxes=growing.boxes_of(nodes),
                loss=loss.copy(),
                curve=growing.curve,
                regions=None if growing.regions is None else growing.spans_of(nodes),
                spans=growing.spans_of(nodes) if growing.axes else None,
            )
            for kind, growing, nodes, loss in self._questions
        )

    @property
    def declared(self) -> dict[str, int | str]:
        """Picks that the method declared. Public, since a method sees only answers."""
        return dict(self._declared)

    def declare(self, name: str, value: int | str) -> None:
        """Declare what a method picked, for the parameters of the release. Costs nothing.

        The value is a function of public parameters and of answers.
        """
        self._declared[name] = value

    def root(self, axes: Sequence[str] = ()) -> Cells:
        """Start a layer: one cell, the domain and all of some further axes. Costs nothing.

        A second layer overlaps the first, so its charges are added to those of the first.
        """
        spanned = tuple(axis for axis in self.axes if axis.name in axes)
        if len(spanned) != len(axes):
            names = ", ".join(axis.name for axis in self.axes) or "none"
            raise ParameterError(f"axes must be those of the records, {names}, got {list(axes)}")
        order = QuadrantOrder(self.domain.lattice)
        growing = GrowingTree(order.lattice, layer=len(self._layers), axes=spanned)
        codes = self._tally.sliced_codes(order)
        if codes is not None and spanned:  # then time is the only axis
            return self._start_layer(growing, Points(self._tally, order, codes=codes))
        cells = [_cells_of(self._tally, axis) for axis in spanned]
        others = tuple(own for own in cells if own is not None)
        return self._start_layer(growing, Points(self._of_the_plane(), order, others))

    def curve(self, order: int) -> Cells:
        """Start a layer along the Hilbert curve: one interval, all 4^order codes. Costs nothing.

        order: 1 to 18, public.

        The x of its cells is the code of `psd.space.grids.lattice_codes`, their y is 0 to 1, so
        that cutting at x makes intervals of codes. Each lattice cell has one code: disjoint
        intervals are disjoint sets of lattice cells, and the charges of a path of intervals are
        charged to every lattice cell whose code is in them. The layer overlaps all others, so its
        charges are added to theirs. It has no tree, since intervals are not boxes, and the boxes
        around them overlap.
        """
        if not 1 <= order <= MAX_ORDER:
            raise ParameterError(f"order must be between 1 and {MAX_ORDER}, got {order}")
        tally = self._of_the_plane()
        codes = lattice_codes(tally.columns, tally.rows, self.domain.lattice, order)
        # An interval of codes is a box of one row, so cuts and counts are those of the plane.
        growing = GrowingTree((4**order, 1), layer=len(self._layers), curve=order)
        return self._start_layer(growing, Points(tally, codes))

    def _of_the_plane(self) -> Tally:
        """The tally; strata that are categories are an axis, and no regions that nodes divide."""
        tally, is_category = self._tally, any(axis.name == "category" for axis in self.axes)
        return replace(tally, region=None) if is_category else tally

    def _start_layer(self, growing: GrowingTree, points: Points) -> Cells:
        """Add a layer without charges; its root."""
        layer = _Layer(growing=growing, points=points, charges=PathCharges(growing))
        self._layers.append(layer)
        return growing.root()

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

        x, y: (n,) int64, lines inside each cell: parameters, or answers of earlier questions, so
        public. An axis without lines, or whose line is on an edge, is not cut. `lines` are those of
        the further axes of the layer, by name; at most two axes of a cell are cut. Returns the
        children, family by family, within a family by the last axis first, so by y then x.
        """
        cells, _ = _own_copy(cells)
        with self._lock:
            growing, points = self._layer_of(cells)
            cut = growing.cut(cells, lines, x=x, y=y)
            points.cut(cut)
            return growing.cells(cut.child[cut.child >= 0])

    def cut_regions(self, root: Cells) -> tuple[Cells, ...]:
        """Cut the root of a layer into the regions of the public hierarchy. Costs nothing.

        Returns the regions of each level in the order of the hierarchy, the highest level first.
        The box of a region is the one around it; boxes of regions overlap, their records do not.

        Between the root, or a region, and many regions below it there are nodes that are made of
        some of these; they are not returned. No node has more than four children.
        """
        if self.regions is None:
            raise ParameterError("regions must be given for a method that counts them")
        if root.nodes.tolist() != [0]:
            raise ParameterError("only the root of a layer can be cut into regions")
        with self._lock:
            growing, points = self._layer_of(root)
            # A further layer over regions is cut at one line after another.
            fan = PAIRS if self.axes else MAX_CHILDREN
            frame = region_frame(self.regions, self.domain.lattice, fan)
            growing.cut_regions(self.regions, frame)
            points.cut_regions(frame)
        return tuple(growing.cells(frame.named(tier)) for tier in range(len(self.regions.levels)))

    def mass(self, cells: Cells) -> NDArray[Any]:
        """Share of cells inside their region, times the mass of the covariate. Costs nothing.

        1 without both. Public.
        """
        growing, nodes = self._layer_of(cells)[0], cells.nodes
        share = growing.share_inside(nodes)
        return (
            share
            if self.covariate is None
            else self.covariate.mass(growing.boxes_of(nodes)) * share
        )

    def count(self, cells: Cells, loss: ArrayLike) -> NDArray[np.int64]:
        """Noisy number of records in each cell.

        Returns (n,) int64: true count plus exact noise of the law of `noise`, so it may be
        negative; 0 for a cell outside the boundary, or its region.

        Sensitivity: k, the maximum number of records of one user; 1 where a record is the unit.
        Charged to: every point of the cell, the loss once.
        Proof: a record changes the count of the one cell it lies in by 1. Discrete Laplace
        noise of scale k / epsilon changes probability by exp(epsilon / k) per unit [1]_, so k
        records of a user, in whichever cells, change it by at most exp(epsilon).
        Proof in rho: n_c records of a unit change the count of the cell by n_c. Discrete Gaussian
        noise of sigma^2 = S^2 / (2 rho_c) costs n_c^2 / (2 sigma^2) = n_c^2 rho_c / S^2 in rho
        [2]_.

        P9. With V values, the answers are the counts that follow from noisy sums of weights, each
        pair of which has all of the loss of the question; a question costs what it costs without
        values.
        Proof: a record in the cell adds m_v to the first sum of value v and M - m_v to the second,
        0 <= m_v <= M, so it changes each pair by M in sum, whatever its values are, and all pairs
        by M V; k records of a unit, in whichever cells, by at most k M V. Discrete Laplace noise of
        scale k M V / epsilon on every sum is then epsilon-private. The count is a function of the
        noisy sums. A record whose weight is w in place of M, users being counted, has m_v of 0 to w
        and changes a pair by w, and the weights of a user sum to at most k.
        Proof in rho: m^2 + (M - m)^2 <= M^2, so a record changes the vector of all sums by at most
        M sqrt(V) in L2, and n_c records of a unit by at most n_c M sqrt(V), by the triangle
        inequality. Discrete Gaussian noise of sigma^2 = M^2 V S^2 / (2 rho_c) on every sum costs at
        most n_c^2 rho_c / S^2 in rho [2]_.

        References
        ----------
        .. [1] Ghosh, Roughgarden, Sundararajan. "Universally Utility-Maximizing Privacy
           Mechanisms." STOC 2009. https://doi.org/10.1145/1536414.1536464
        .. [2] Canonne, Kamath, Steinke, NeurIPS 2020, theorem 4. https://arxiv.org/abs/2004.00010
        """
        cells, (loss,) = _own_copy(cells, loss)
        with self._lock:
            growing, points = self._layer_of(cells)
            # Outside the boundary there is nothing to ask: 0, without a draw and without a charge.
            inside = self._inside_boundary(growing, cells)
            is_all = bool(inside.all())
            if not is_all:
                cells, loss = cells[inside], loss[inside]
            if growing.loss[cells.nodes].any():
                raise ParameterError("a cell is counted twice; measure once with the sum")
            self._charge("count", cells, loss)
            true, sums = points.count(cells.nodes), None
            if self._values:
                # Of each value the sum of the weights of its records, and what is left of M each.
                weight, values = self._tally.record_weight, self._values
                high = np.stack([each.count(cells.nodes) for each in points.values], axis=1)
                parts = np.stack([high, weight * true[:, None] - high], axis=2)
                shares = np.repeat(loss, 2 * values)
                noise = _noise_of_sums(self.noise, weight, values)
                drawn = self._sampler.draw(count_mechanism(noise, parts.ravel(), shares))
                # Each noisy pair sums to the count. Rounding reads noisy sums alone; rounded down,
                # each count would be half a record too small.
                sums, whole = drawn.reshape(parts.shape), weight * values
                noisy: NDArray[np.int64] = (sums.sum(axis=(1, 2)) + whole // 2) // whole
            else:
                noisy = np.empty(len(cells), np.int64)
                # Cells of few slices need less noise than those of many, see `noises_by`.
                for noise, at in self._noises(growing, cells.nodes):
                    drawn = self._sampler.draw(count_mechanism(noise, true[at], loss[at]))
                    noisy[at] = drawn
            growing.measure(cells.nodes, noisy, loss, sums)
            if is_all:
                return noisy
            counts = np.zeros(len(inside), np.int64)
            counts[inside] = noisy
            return counts

    def quantile(
        self,
        cells: Cells,
        *,
        axis: int,
        loss: ArrayLike,
        p: ArrayLike = 1,
        q: ArrayLike = 2,
    ) -> NDArray[np.int64]:
        """Lattice line below which about p/q of each cell's own records lie.

        p, q: () or (n,) int64, 0 < p < q; axis: 0 for a line of constant x, 1 for y. Returns (n,)
        int64, a line inside each cell, for `cut`; the west or south edge of a cell that is one
        lattice cell thin, where no cut is possible; the middle of one outside the boundary.

        Sensitivity: max(p, q - p) k of the score -abs(q below(s) - p n), n being the cell's own
        number of records; the score is an integer.
        Charged to: every point of the cell, the loss once.
        Proof: a record at or above line s changes q below - p n by -p, one below it by q - p,
        so no score changes by more than max(p, q - p), and k records of a user by k times that.
        The exponential mechanism with weights exp(epsilon score / (2 sensitivity)) over the
        public lattice lines inside the cell is then epsilon-private [1]_; at the median this
        is exp(epsilon score / 2) of the integer score, exp(epsilon rank error) in ranks.
        Proof in rho: weights have S = ceil(sqrt(S^2)) in place of k, and e with e^2 / 8 <= rho_c in
        place of epsilon. n_c records of a unit change every score by at most max(p, q - p) n_c, so
        the log-ratios of the answers lie in an interval of length e n_c / S, and the selection
        costs (e n_c / S)^2 / 8 <= n_c^2 rho_c / S^2 in rho [3]_.

        References
        ----------
        .. [1] McSherry, Talwar. "Mechanism Design via Differential Privacy." FOCS 2007.
        .. [2] Cormode et al. "Differentially Private Spatial Decompositions." ICDE 2012,
           section 6.1, where the exponential mechanism is the best private median.
        .. [3] Cesar, Rogers. "Bounding, Concentrating, and Truncating." ALT 2021.
           https://arxiv.org/abs/2004.07223
        """
        if axis not in (0, 1):
            raise ParameterError(f"axis must be 0 for x or 1 for y, got {axis}")
        cells, (loss, p, q) = _own_copy(cells, loss, p, q)
        if ((p <= 0) | (p >= q) | (q > _MAX_QUANTILE)).any():
            raise ParameterError(f"p and q must be integers with 0 < p < q <= {_MAX_QUANTILE}")
        with self._lock:
            growing, points = self._layer_of(cells)
            inside = self._inside_boundary(growing, cells)
            # Cells that are not asked about are cut in the middle, as an empty cell may be.
            lines = growing.cells(cells.nodes).middle(axis)
            cells, loss, p, q = cells[inside], loss[inside], p[inside], q[inside]
            self._charge("quantile", cells, loss)
            if len(cells):
                ends = growing.boxes_of(cells.nodes)[:, [axis, axis + 2]]
                scores = points.rank_scores(cells.nodes, ends, axis, p, q)
                # A record below the line moves the score by q - p, one above it by p.
                sensitivity = np.maximum(p, q - p) * self._sensitivity(growing, cells.nodes)
                lines[inside] = self._select(scores, loss, sensitivity)
            return lines

    def homogeneous_split(
        self, cells: Cells, *, axis: int, loss: ArrayLike, bins: int, lines: int
    ) -> NDArray[np.int64]:
        """Lattice line that makes the density of both of its sides about as even as possible.

        bins: per side of the domain, 1 to 1,024; a cell has those that it meets. The candidates are
        all lines between bins inside the cell, or `lines` evenly spaced ones. Returns (n,) int64, a
        line inside each cell, for `cut`; the west or south edge, where no cut is possible, of a
        cell that no line of the bins crosses or that is outside the boundary.

        Sensitivity: 2k of the score -(h(W) + h(E)), where W and E are the parts of the cell
        below and above the line and h of a part is the sum over its bins of abs(x - mean), x
        being the records in the bin and mean their average over all bins of the part, rounded
        down to an integer.
        Charged to: every point of the cell, the loss once.
        Proof: let a part have m bins, occupied or not. A record more in one of them moves that
        bin's x - mean by 1 - 1/m and the m - 1 others by -1/m, so before rounding h moves by at
        most 2 (1 - 1/m). A user's j records in W and k - j in E move h(W) by less than 2j, or
        not at all, and h(E) by less than 2 (k - j). Numbers less than an integer d apart are at
        most d apart when rounded down, so no score moves by more than 2k. The bins and the
        lines follow from the cell and public numbers. The exponential mechanism with weights
        exp(epsilon score / 4k) is then epsilon-private [1]_. Squared deviations have no such
        bound: a record changes them by about twice its bin's count.
        Proof in rho: as for `quantile`; n_c records of a unit move every score by at most 2 n_c.

        References
        ----------
        .. [1] McSherry, Talwar. "Mechanism Design via Differential Privacy." FOCS 2007.
        .. [2] Shaham, Ghinita, Ahuja, Krumm, Shahabi. "HTF: Homogeneous Tree Framework for
           Differentially-Private Release of Location Data." SIGSPATIAL 2021,
           https://arxiv.org/abs/2107.13749, where the score is from.
        """
        if axis not in (0, 1):
            raise ParameterError(f"axis must be 0 for x or 1 for y, got {axis}")
        if not (1 <= bins <= _MAX_BINS and lines >= 1):
            raise ParameterError(f"bins must be between 1 and {_MAX_BINS}, and lines at least 1")
        cells, (loss,) = _own_copy(cells, loss)
        with self._lock:
            growing, points = self._layer_of(cells)
            inside = self._inside_boundary(growing, cells)
            chosen = growing.boxes_of(cells.nodes)[:, axis]
            cells, loss = cells[inside], loss[inside]
            self._charge("homogeneous_split", cells, loss)
            if len(cells):
                boxes, lattice = growing.boxes_of(cells.nodes), (*growing.boxes[0, 2:].tolist(),)
                grid = BinGrid(lattice=lattice, bins=bins)
                scores = points.division_scores(cells.nodes, boxes, axis, grid, lines)
                # A record moves what is counted on one side of a line, and what is expected there.
                sensitivity = 2 * self._sensitivity(growing, cells.nodes)
                chosen[inside] = self._select(scores, loss, sensitivity)
            return chosen

    def _noises(
        self, growing: GrowingTree, nodes: Integers
    ) -> Iterator[tuple[CountNoise, Integers | slice]]:
        """Noise of nodes of equally many slices, and the places of these nodes. Public."""
        # With a cap time is the first axis.
        slices = np.broadcast_to(self.axes[0].size if self.axes else 1, nodes.shape)
        if growing.axes and growing.axes[0] is self.axes[0]:
            slices = growing.spans[nodes, 1] - growing.spans[nodes, 0]
        yield from noises_by(self.noise, self._cap, slices)

    def _sensitivity(self, growing: GrowingTree, nodes: Integers) -> Integers:
        """Root of the squared sensitivity of each node, rounded up, (n,) int64. Public."""
        sensitivity = np.empty(len(nodes), np.int64)
        for noise, at in self._noises(growing, nodes):
            sensitivity[at] = noise.sensitivity
        return sensitivity

    def noise_variance(self, cells: Cells, loss: ArrayLike) -> NDArray[np.float64]:
        """Variance of the noise of the count of each cell for a loss, (n,). Costs nothing."""
        growing, _ = self._layer_of(cells)
        losses = np.broadcast_to(loss, cells.nodes.shape)
        variance = np.empty(len(cells))
        for noise, at in self._noises(growing, cells.nodes):
            variance[at] = noise.variance(losses[at])
        return variance

    def signal_to_noise(
        self, cells: Cells, counts: NDArray[np.int64], loss: ArrayLike
    ) -> NDArray[np.float64]:
        """Counts of cells beside the noise that a loss gives, see `CountNoise`. Costs nothing."""
        growing, _ = self._layer_of(cells)
        losses = np.broadcast_to(np.asarray(loss, np.int64), cells.nodes.shape)
        signal = np.empty(len(cells))
        for noise, at in self._noises(growing, cells.nodes):
            signal[at] = noise.signal_to_noise(counts[at], losses[at])
        return signal

    def _select(self, scores: Candidates, loss: Integers, sensitivity: Integers) -> Integers:
        """Draw selections that were charged."""
        epsilon = self.noise.measure.of_selections(loss)
        return self._sampler.draw(
            ExponentialMechanism(candidates=scores, epsilon=epsilon, sensitivity=sensitivity)
        )

    def privtree_shape(self, cells: Cells, loss: ArrayLike, *, height: int) -> Cells:
        """Grow each cell into a tree that is deep where points are dense, without counts.

        Returns the leaves of all shapes, the highest first; the nodes above them are cut.

        A node v at a depth below its own cell is split, both axes halved, if
        b(v) + L > 0, b(v) = max(c(v) - depth delta, -delta), c(v) its number of records and L
        discrete Laplace noise of scale lambda = 7 k / (3 epsilon). Delta is the least integer
        that is at least lambda ln 4. The curator fixes both, and keeps none of the noise.

        Sensitivity: k, the maximum number of records of one user, in every count on the path to a
        record.
        Charged to: every point of the cell, the loss once, however deep the shape goes.
        Proof: let one record be added, u' = c(v) - depth delta without it, u = u' + 1 with it,
        q = exp(-1 / lambda), q^delta <= 1/4. Only the nodes that hold the record count. Each
        that was split adds rho = ln P(b + L > 0) - ln P(b' + L > 0) >= 0 to the log-ratio of
        the shape, and the leaf at the end, the same of P(b + L <= 0), is between -1 / lambda
        and 0. (1) u <= -delta: both are at the floor, rho = 0. (2) -delta <= u' <= 0: the tail
        moves by one, rho <= 1 / lambda. (3) u' >= 1: rho = ln(1 + q^u' (1 - q) / (1 + q - q^u'))
        <= q^u' (1 - q) <= q^u' / lambda. Down the path u' falls by at least delta a level, in
        integers; so at most two nodes are in case 2, and two only if theirs are 0 and -delta.
        Then those above have u' >= delta, 2 delta, ..., and the sum is at most
        (2 + 1/4 + 1/16 + ...) / lambda = 7 / (3 lambda). Else they have u' >= 1, 1 + delta, ...,
        and the sum is at most (1 + 1 + 1/4 + ...) / lambda, the same. So the loss is at most
        epsilon / k for a record, and epsilon for a user by group privacy, in whichever cells
        the records lie. A node with fewer parts, a limit on the height and one on the number
        of nodes only leave out draws, or answers, as the shape itself says. The bound in [1]_
        is for real noise; with integer counts it holds only for an integer delta.
        Proof in rho: with S = ceil(sqrt(S^2)) in place of k, and e with e^2 / 2 <= rho_c in place
        of epsilon, the shape is (e / S)-private for a record, (n_c e / S)-private for the n_c
        records of a unit by group privacy, and costs at most (n_c e / S)^2 / 2 <= n_c^2 rho_c / S^2
        in rho [2]_.

        References
        ----------
        .. [1] Zhang, Xiao, Xie. "PrivTree: A Differentially Private Algorithm for Hierarchical
           Decompositions." SIGMOD 2016. https://doi.org/10.1145/2882903.2882928
        .. [2] Bun, Steinke, TCC 2016, proposition 3.3. https://arxiv.org/abs/1605.02065
        """
        cells, (loss,) = _own_copy(cells, loss)
        if height < 0:
            raise ParameterError(f"height must be at least 0, got {height}")
        with self._lock:
            growing, points = self._layer_of(cells)
            if growing.is_cut(cells.nodes).any():
                raise ParameterError("a cell that was cut before cannot be grown; grow its leaves")
            self._charge("privtree_shape", cells, loss)
            rule = split_rule(self.noise.measure.of_pure(loss), self.noise.sensitivity)
            is_limited = self.boundary is not None or growing.regions is not None
            inside = partial(self._inside_boundary, growing) if is_limited else None
            return grow(growing, points, cells, rule, height, self._sampler, inside)

    def choose(
        self,
        cells: Cells,
        objective: CandidateScores,
        mechanism: UnscoredMechanism,
        loss: int,
    ) -> NDArray[np.int64]:
        """Public candidate that the records of the domain score high, by a mechanism of the caller.

        `mechanism` is a class of `psd.mechanisms` over scores, or `functools.partial` of it with
        all of its parameters but scores, epsilon, sensitivity and is_monotone; the cells are a
        root. Returns the one answer, such as the number of a candidate, shape ().

        Sensitivity: ``objective.sensitivity(k)``, the most that one unit moves any score.
        Charged to: every point of the domain, the loss once, whatever part of it a score reads.
        Proof: (P4) The candidates are public and the shape of scores is checked, so the answer has
        the same range for all data sets. (P5) A unit moves every score by at most the sensitivity,
        and if the objective is monotone, a unit more moves all scores up; the objective has the
        proof. (P6) The curator makes the mechanism. Sensitivity and monotonicity are those of the
        objective, read before it makes the scores, and epsilon is what was charged; whoever asks
        states none of the four. By the proof of its class, [1]_, [2]_, one draw is epsilon-private,
        whatever its other parameters are. (P7) These are functions of public parameters and
        earlier answers, as the objective is: the caller has nothing else. (P8) No function of the
        caller is given a score. What it hands over is a class of `psd.mechanisms`, by identity, and
        parameters that are numbers and texts, which have no code of their own, by names that are
        texts. The curator copies them and the cells before it checks, makes the value after that,
        and keeps neither value nor scores; the caller gets the answer.
        Wall: true data are given to `objective.scores`, and scores to a class of `psd.mechanisms`.
        Both are code of the private side with a proof and contract tests, and could keep what they
        are given if they were hostile. So could any other factory, a function or a class that
        inherits: that is why they are refused. Code that reads the memory of its process is beyond
        this wall, as it is for a method.

        References
        ----------
        .. [1] McSherry, Talwar. "Mechanism Design via Differential Privacy." FOCS 2007.
        .. [2] McKenna, Sheldon. "Permute-and-Flip: A new mechanism for differentially private
           selection." NeurIPS 2020. https://arxiv.org/abs/2010.12603
        """
        cells, (amounts,) = _own_copy(cells, loss)  # first, so that what is checked is charged
        if cells.nodes.tolist() != [0]:
            raise ParameterError("a choice must be made for the root of a layer, all of the domain")
        if not self.noise.measure.is_pure:  # a sensitivity need not be linear in the records
            raise ParameterError("a choice must be paid in epsilon, got a budget in rho")
        shape, sensitivity = objective.shape, objective.sensitivity(self.contributions)
        unscored, is_monotone = _unscored(mechanism, len(shape)), objective.is_monotone
        if min(shape) < 1 or not 1 <= sensitivity <= MAX_SENSITIVITY:
            raise ParameterError(
                f"an objective must have candidates and a sensitivity from 1 to {MAX_SENSITIVITY}, "
                f"got {shape[0]} and {sensitivity}; use coarser steps of scores, or fewer records "
                "per user"
            )
        with self._lock:
            self._layer_of(cells)
            self._charge("choose", cells, amounts)
            scores = np.asarray(objective.scores(self._tally, self.domain), np.int64)
            if scores.shape != shape:
                raise InternalError("an objective must score each of its candidates once")
            choice = unscored(
                scores=scores,
                epsilon=int(amounts[0]),
                sensitivity=sensitivity,
                is_monotone=is_monotone,
            )
            answer: NDArray[np.int64] = self._sampler.draw(choice)[0]
            return answer

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("a curator cannot be copied: its budget is for one set of answers")

    def _layer_of(self, cells: Cells) -> tuple[GrowingTree, Points]:
        """Tree and points that cells belong to; cells of another curator are refused."""
        nodes = cells.nodes
        if not 0 <= cells.layer < len(self._layers):
            raise ParameterError(f"layer {cells.layer} does not exist")
        layer = self._layers[cells.layer]
        growing, points = layer.growing, layer.points
        if nodes.ndim != 1 or nodes.dtype.kind != "i":
            raise ParameterError("nodes of cells must be an array of integers, shape (n,)")
        if len(nodes) and not 0 <= nodes.min() <= nodes.max() < len(growing.parent):
            raise ParameterError("cells have numbers of nodes that do not exist")
        return growing, points

    def inside_boundary(self, cells: Cells) -> NDArray[np.bool_]:
        """Which cells may have records: not those outside boundary or region. Costs nothing."""
        return self._inside_boundary(self._layer_of(cells)[0], cells)

    def _inside_boundary(self, growing: GrowingTree, cells: Cells) -> NDArray[np.bool_]:
        """Which cells intersect the boundary and meet their region."""
        inside = growing.may_have_records(cells.nodes)
        if self.boundary is None or growing.curve:
            return inside
        return inside & (self.boundary.mass(growing.boxes_of(cells.nodes)) > 0)

    def _charge(self, kind: str, cells: Cells, loss: NDArray[np.int64]) -> None:
        """Charge a question to its cells and record it, or refuse it and change nothing."""
        measure = self.noise.measure
        if (loss <= 0).any():
            raise ParameterError(
                f"{measure.name} of a question must be above 0; leave out cells with "
                f"{measure.name} 0"
            )
        smallest = loss.min(initial=measure.largest, keepdims=True)
        # Of values, the noise of 2V sums is added up.
        times = 2 * self._tally.record_weight * self._values**2 if self._values else 1
        if times * self.noise.sensitivity * NANO > int(measure.of_pure(smallest)[0]) * _MAX_SCALE:
            several = f" for {self.contributions} records per user" * (self.contributions > 1)
            raise ParameterError(
                f"{measure.name} {measure.text(int(smallest[0]))} of a question is too small"
                f"{several}; the noise would exceed every count"
            )
        layer = self._layers[cells.layer]
        limit = self._budget.left + layer.charges.total
        if not layer.charges.charge(cells.nodes, loss, limit, self._budget.spend):
            raise BudgetError(
                f"a question would spend more than {measure.name} {measure.text(self.loss)} "
                "at some point; the method asks for more than its budget"
            )
        self._questions.append((kind, layer.growing, cells.nodes, loss))

    @property
    def layers(self) -> int:
        """Number of layers that were started."""
        return len(self._layers)

    def tree(self, layer: int = 0) -> Tree:
        """Cells of a layer with their noisy counts. Public: it has only answers and cuts."""
        growing = self._layers[layer].growing
        is_capped = bool(growing.axes) and growing.axes[0] is self.axes[0]
        return growing.tree(self.noise, self._cap if is_capped else None)


def _noise_of(tally: Tally, measure: LossMeasure, squared_sensitivity: int | None) -> CountNoise:
    """Noise of counts: by k in epsilon, by the squared sensitivity in rho."""
    if measure.is_pure:
        if squared_sensitivity is not None:
            raise ParameterError("squared_sensitivity must be left out without a budget in rho")
        return CountNoise.laplace(tally.contributions)
    squared = tally.contributions**2 if squared_sensitivity is None else squared_sensitivity
    if squared < tally.contributions:
        raise ParameterError(
            f"squared_sensitivity must be at least {tally.contributions}, the records of one unit, "
            f"got {squared}"
        )
    return CountNoise.gaussian(squared)


def _cells_of(tally: Tally, axis: Axis) -> NDArray[np.integer] | None:
    """Cell of each count of a tally on an axis, private; labels and regions are strata."""
    return tally.slice if axis.name == "time" else tally.region


def _check_cap(
    noise: CountNoise, tally: Tally, axes: tuple[Axis, ...], cap: SliceCap | None
) -> None:
    """Refuse noise that is too small for the records of a unit in cells of several slices."""
    is_pure = noise.measure.is_pure
    timed = bool(axes) and axes[0].name == "time"
    if cap is not None and (is_pure or not timed or cap.most < tally.contributions):
        raise ParameterError(
            "cap must be that of the records of one unit, with slices and a budget in rho; noise "
            "of other curators follows from the records of a unit alone"
        )
    if axes and not is_pure:
        least = tally.contributions**2
        if cap is not None:
            least = cap.squared_sensitivity(axes[0].size)
        if noise.squared_sensitivity < least:
            raise ParameterError(
                f"squared_sensitivity must be at least {least}, that of a cell of all slices, got "
                f"{noise.squared_sensitivity}; cells of fewer slices have less by their cap"
            )


def _check_values(tally: Tally, values: int, measure: LossMeasure) -> None:
    """Refuse more records of a unit than noise of the sums of their values can have a scale for."""
    most = _MAX_SENSITIVITY // (tally.record_weight * values)
    if measure.is_pure and tally.contributions > most:
        raise ParameterError(
            f"max_contributions must be at most {most} with values, got {tally.contributions}; "
            "give a lower limit, or fewer values"
        )


def _noise_of_sums(noise: CountNoise, weight: int, values: int) -> CountNoise:
    """Noise of sums of weights of V values: sensitivity times M V in epsilon, M sqrt(V) in rho."""
    times = weight**2 * part_factor(values, is_pure=noise.measure.is_pure)
    squared = noise.squared_sensitivity * times
    return replace(noise, squared_sensitivity=squared, factor=Fraction(1))


def _unscored(mechanism: UnscoredMechanism, axes: int) -> partial[ScoreMechanism]:
    """Copy of an unfinished mechanism of `psd.mechanisms`; every other factory is refused."""
    # Another factory would be given the scores. The class is compared by identity: one that
    # inherits may override.
    copy = partial(mechanism)
    kind: Any = copy.func
    is_ours = any(kind is each for each in mechanisms().values())
    if not is_ours or getattr(kind, "score_axes", None) != axes:
        raise ParameterError(
            f"mechanism must be a class of psd.mechanisms over scores of {axes} axes, or "
            f"functools.partial of it, got {getattr(kind, '__name__', type(kind).__name__)}"
        )
    others = {field.name for field in dataclasses.fields(kind)} - {*_FILLED_IN}
    if not all(type(name) is str for name in copy.keywords):  # or comparing them runs its code
        raise ParameterError("names of parameters of a mechanism must be texts")
    if copy.args or copy.keywords.keys() != others:
        raise ParameterError(
            f"mechanism must have the parameters {', '.join(sorted(others)) or 'none'} by name, "
            f"got {', '.join(sorted(copy.keywords)) or 'none'}; the curator fills in the others"
        )
    if not all(map(_is_plain, copy.keywords.values())):
        raise ParameterError("parameters of a mechanism must be integers, texts, or tuples of them")
    return copy


def _is_plain(value: object) -> bool:
    """Whether a value has no code of the caller, not even that of a subclass."""
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return type(value) in (int, str)


def _own_copy(cells: Cells, *values: ArrayLike) -> tuple[Cells, list[NDArray[np.int64]]]:
    """Copies that the caller cannot change between check, charge and draw; boxes are the tree's."""
    nodes = np.array(cells.nodes)
    copies = [np.array(np.broadcast_to(np.asarray(v, np.int64), nodes.shape)) for v in values]
    return Cells(layer=int(cells.layer), nodes=nodes, boxes=nodes[:, None]), copies
