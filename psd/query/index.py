"""The query index: the fit of a release, and arrays that make its queries fast."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import count, groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd.errors import InternalError
from psd.estimation.density import PARTS, CovariateDensity, SmoothDensity
from psd.estimation.fit import (
    Fit,
    SummandFit,
    fit,
    fit_least_squares,
    fit_together,
    fit_weights,
    peers_of,
)
from psd.estimation.fit_cache import LEAST_NODES, FitCache
from psd.estimation.nonuniformity import cell_ceiling
from psd.query.traversal import Mesh, leaf_mesh
from psd.query.value_edges import learn_edge_factor
from psd.release.record import ReleaseRecord
from psd.space.box_tree import MAX_CHILDREN
from psd.space.region_tree import RegionTree

if TYPE_CHECKING:
    from psd.estimation.cube import CubeFit
    from psd.estimation.least_squares import Estimates, Peers
    from psd.release.cube import CubeRecord


EVEN, SMOOTH, COVARIATE = range(3)
"""Kinds of density inside the leaves."""


class LeafDensity(NamedTuple):
    """Density inside the leaves; arrays that a kind does not need are empty."""

    kind: int
    rank: Integers
    share: Floats
    mass: Floats
    surface: Integers
    cells: Floats
    lattice: Floats


class ChildRanges(NamedTuple):
    """First child of each node and the node after its last child; equal for a leaf."""

    start: Integers
    stop: Integers


class Errors(NamedTuple):
    """Arrays by node for the errors: slope, variance given the parent, overdispersion.

    `other`: of published counts where they differ. `lines`: deviations of cuts, if `aligned`;
    `columns`: records in one column and row, 0 unless the lattice was chosen. `shift_share`:
    relative error of what the density moves. `ceiling`: records that a cell hardly exceeds.
    """

    slope: Floats
    variance: Floats
    other: bool
    other_slope: Floats
    other_variance: Floats
    signed: Floats
    overdispersion: Floats
    cluster_size: float
    shift_share: float
    ceiling: Floats
    aligned: bool
    lines: Floats
    columns: Floats
    edge_factor: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FlatTree:
    """Arrays of a release for the compiled walk."""

    boxes: NDArray[np.int32]  # (nodes, 4) int32; of the tree
    children: ChildRanges  # of each node
    # Children of each node, or grandchildren where these are no more than a family may have: fewer
    # lists for estimates without errors.
    descendants: ChildRanges
    levels: int  # of the tree
    inside: LeafDensity  # density of the fit
    errors: Errors  # of the estimates


def flatten_tree(fit: Fit) -> FlatTree:
    """Flatten a fit for the compiled walk; the arrays of the tree are not copied."""
    tree, estimates = fit.tree, fit.estimates
    children = ChildRanges(tree.first_child, tree.first_child + tree.children)
    slope, variance = _recursion_arrays(estimates)
    other_slope, other_variance = _recursion_arrays(fit.published_covariance)
    none = np.zeros((2, 0))
    none.flags.writeable = False  # as arrays of a fit are: the walk is compiled for one kind
    # Nodes that the walk goes on to from each node if it need not stop at every level.
    start, stop = children
    inner = np.concatenate([[0], np.cumsum(~tree.is_leaf)])
    # `inner` counts inner nodes before each node: here all children of a node have children.
    divided = ~tree.is_leaf & (inner[stop] - inner[start] == tree.children)
    # First grandchild, and the one after the last; clamped for leaves, which take neither.
    first = start[np.minimum(start, len(tree) - 1)]
    last = np.maximum(stop[np.maximum(stop, 1) - 1], first)
    skip = divided & (last - first <= MAX_CHILDREN)
    return FlatTree(
        boxes=np.ascontiguousarray(tree.boxes),
        children=children,
        descendants=ChildRanges(np.where(skip, first, start), np.where(skip, last, stop)),
        levels=len(tree.levels),
        inside=_leaf_density(fit),
        errors=Errors(
            slope=slope,
            variance=variance,
            other=fit.published_covariance is not estimates,
            other_slope=other_slope,
            other_variance=other_variance,
            signed=estimates.signed,
            overdispersion=fit.dispersion.overdispersion,
            cluster_size=fit.dispersion.cluster_size,
            shift_share=fit.shift_share,
            ceiling=cell_ceiling(estimates.count, estimates.variance),
            aligned=fit.line_deviation is not None,
            lines=none if fit.line_deviation is None else fit.line_deviation,
            columns=_column_records(fit),
            edge_factor=fit.edge_factor,
        ),
    )


def _recursion_arrays(estimates: Estimates) -> tuple[Floats, Floats]:
    """Slope of each node and its variance given its parent; the root has slope 0."""
    slope = estimates.slope.copy()
    variance = np.where(np.isinf(estimates.upward_variance), 0.0, estimates.upward_variance)
    # A virtual parent of the root is known exactly, which ends the recursion like any other family.
    slope[0], variance[0] = 0.0, estimates.variance[0]
    return slope, variance


def _column_records(fit: Fit) -> Floats:
    """Records in one column and row of each node, where lines cut them."""
    if fit.column_records is not None:
        return np.ascontiguousarray(fit.column_records)
    columns = np.zeros((2, 0 if fit.line_deviation is None else len(fit.tree)))
    columns.flags.writeable = False
    return columns


def _leaf_density(fit: Fit) -> LeafDensity:
    """Density of a release, for the compiled walk."""
    # Compiled code takes arrays of one type: those of the other kinds of density are empty.
    density, none = fit.density, np.zeros(0, np.int64)
    # The even density is the default, of which no array is read.
    kind, rank, share, mass = EVEN, none, np.zeros((0, PARTS, PARTS)), np.zeros(0)
    surface, cells = np.zeros((0, 0), np.int64), np.ones(2)
    if isinstance(density, SmoothDensity):
        kind, rank, share = SMOOTH, density.rank, density.share
    elif isinstance(density, CovariateDensity):
        covariate = density.covariate
        kind, mass, surface = COVARIATE, covariate.mass(fit.tree.boxes), covariate.surface
        cells = np.array([covariate.columns, covariate.rows], float)
    lattice = np.array(fit.domain.lattice, float)
    return LeafDensity(kind, rank, share, mass, surface, cells, lattice)


MOST_KEPT = 2**19
"""Nodes of a series, in all slices together, up to which fits are kept: about 300 MB."""

# Questions about a few boxes that are answered from a fit near them. The fit of all cells takes
# five times as long, and then answers every later one in milliseconds.
_NEAR_QUESTIONS = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class QueryIndex:
    """A release without time with what its queries read, computed when first used."""

    record: ReleaseRecord  # what was published
    cache: FitCache | None = None  # where the fit is kept between processes
    _parts: dict[int, tuple[QueryIndex, QueryIndex]] = field(
        default_factory=dict, init=False, repr=False
    )
    is_kept: bool = True  # whether what is computed of a slice is kept for later questions
    _questions: Iterator[int] = field(default_factory=count, init=False, repr=False)

    @classmethod
    def of_fit(cls, made: Fit, *, is_kept: bool = True) -> QueryIndex:
        """Index of a fit of all cells that was made before."""
        index = cls(record=made.record, is_kept=is_kept)
        vars(index)["fit"] = made
        return index

    @cached_property
    def fit(self) -> Fit:
        """Fit of all cells."""
        return fit(self.record, cache=self.cache)

    def value_parts(self, number: int) -> tuple[QueryIndex, QueryIndex]:
        """Indices of the weights of a value towards its upper and its lower bound."""
        parts = self._parts.get(number)
        if parts is None:
            # Both sums of weights are fitted together; each answers like the counts of a release.
            fits, plain = fit_weights(self.fit, number)
            factor = learn_edge_factor(fits, plain)
            for each in fits:
                vars(each)["edge_factor"] = factor
            parts = QueryIndex.of_fit(fits[0]), QueryIndex.of_fit(fits[1])
            if self.is_kept:
                self._parts[number] = parts
        return parts

    def fit_near(self, boxes: Floats) -> Fit:
        """Fit for boxes, (m, 4), lattice units; the first from cells near them, where faster."""
        if "fit" in vars(self) or next(self._questions) >= _NEAR_QUESTIONS:
            return self.fit
        near = fit(self.record, boxes, cache=self.cache)
        if near.zone is None:
            vars(self)["fit"] = near
        return near

    @cached_property
    def total(self) -> float:
        """Estimated records, or users, in the domain; fits the root alone unless rounded."""
        if "fit" in vars(self) or self.record.post_processing.estimate == "integer":
            return self.fit.total
        return max(self._root[0], 0.0)

    @property
    def total_error(self) -> float:
        """Standard deviation of the least squares of the total by the noise; fits no other cell."""
        return math.sqrt(self._root[1])

    @cached_property
    def _root(self) -> tuple[float, float]:
        """Least squares of the root, and its variance."""
        fitted = self.fit.estimates if "fit" in vars(self) else fit_least_squares(self.record)
        return float(fitted.signed[0]), float(fitted.variance[0])

    @property
    def is_small(self) -> bool:
        """Whether there is no fit yet, and one of all cells takes no longer than one near boxes."""
        return "fit" not in vars(self) and len(self.record.tree) < LEAST_NODES

    @cached_property
    def mesh(self) -> Mesh | None:
        """The leaves as rows and columns, or None; see `psd.query.traversal`."""
        if isinstance(self.record.tree, RegionTree):
            return None
        return leaf_mesh(self.record.tree, self.fit.density)

    @cached_property
    def summed_area(self) -> NDArray[np.float64]:
        """Summed-area table of the estimates; only where there is a mesh."""
        if self.mesh is None:
            raise InternalError("the leaves are not rows and columns")
        return self.mesh.table(self.fit.estimates.count)

    @cached_property
    def flat_tree(self) -> FlatTree:
        """Arrays for the compiled walk; see `psd.query.index`."""
        return flatten_tree(self.fit)


@dataclass(frozen=True, kw_only=True, eq=False)
class CubeIndex:
    """A cube with the fit that its queries read, computed when first used."""

    record: CubeRecord  # what was published

    @cached_property
    def fit(self) -> CubeFit:
        """Fit of both layers."""
        from psd.estimation.cube import fit_cube

        return fit_cube(self.record)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CubeWindow:
    """A cube, asked in one window of its slices."""

    index: CubeIndex
    window: Integers  # numbers of the slices, ascending


@dataclass(frozen=True, kw_only=True, eq=False)
class SummandIndex(QueryIndex):
    """A slice as it is added to others; see `psd.estimation.fit.SummandFit`."""

    alone: QueryIndex
    peers: Peers

    @classmethod
    def of(cls, alone: QueryIndex, peers: Peers) -> SummandIndex:
        """Index of a slice with its peers in the series."""
        return cls(record=alone.record, is_kept=False, alone=alone, peers=peers)

    @cached_property
    def fit(self) -> Fit:
        """Fit of all cells."""
        return SummandFit.of(self.alone.fit, self.peers)

    def fit_near(self, boxes: Floats) -> Fit:
        """Fit for boxes, (m, 4), lattice units; from cells near them where that of the slice is."""
        near = self.alone.fit_near(boxes)
        return self.fit if near.zone is None else SummandFit.of(near, self.peers)


def peers_in(series: Sequence[ReleaseRecord]) -> Callable[[], Peers]:
    """Peers of the slices of a series, found when they are first asked for."""
    return cache(lambda: peers_of(series))


def in_sums(
    index: QueryIndex, kinds: Iterable[bool], peers: Callable[[], Peers]
) -> dict[bool, QueryIndex]:
    """A slice alone (False) and as it is added to others (True), of the kinds that are asked."""
    found = {False: index}
    if True in (asked := {*kinds}):
        # Peers follow from the series alone, so what is kept of a slice is true of later sums.
        summand = vars(index).get("summand") or SummandIndex.of(index, peers())
        if index.is_kept:
            vars(index)["summand"] = summand
        found[True] = summand
    return {is_sum: found[is_sum] for is_sum in asked}


def fitted(slices: Sequence[QueryIndex]) -> Iterator[QueryIndex]:
    """Slices of a series, small ones fitted together; each is gone when the next is asked for."""
    if len(slices) == 1:
        yield from slices
        return
    for is_small, run in groupby(slices, lambda each: each.is_small):
        some = list(run)
        records = (each.record if each.is_kept else _apart(each.record) for each in some)
        if is_small:
            for each, made in zip(some, fit_together(records), strict=True):
                if each.is_kept:
                    vars(each)["fit"] = made
                yield each if each.is_kept else QueryIndex.of_fit(made, is_kept=False)
            continue
        for each, record in zip(some, records, strict=True):
            yield each if each.is_kept else QueryIndex(record=record, is_kept=False)


def _apart(record: ReleaseRecord) -> ReleaseRecord:
    """The same record with a tree of its own, which holds what is computed from it."""
    made = copy(record)
    object.__setattr__(made, "tree", copy(record.tree))
    return made
