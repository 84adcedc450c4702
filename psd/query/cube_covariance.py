"""Joint answers of a cube: the covariance of areas in windows of time.

By the noise, it is a product of coefficients of innovations of both layers, as in
`psd.query.joint`. By uneven cells, it has the parts of `psd.query.cubes`: what two answers have in
common in a leaf, a box or the plane has one error in both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from psd._util.arrays import Floats, Integers, ranges, sum_by
from psd.errors import ParameterError
from psd.estimation.fit import predicts_published
from psd.query.answer_table import Threshold, check_levels
from psd.query.cubes import (
    CubeBatch,
    Windows,
    cube_batches,
    cube_totals,
    cubes_asked,
    family_sums,
    is_of_plane,
    plane_parts,
    told_by_times,
)
from psd.query.index import CubeWindow
from psd.query.joint import (
    Joint,
    answer_jointly,
    innovation_coefficients,
    joint_answers,
    nonuniformity_covariance,
    perturbation_covariance,
    row_products,
)
from psd.query.region_overlaps import Regions, check_size, common_regions
from psd.query.totals import QueryTotals, concatenate

if TYPE_CHECKING:
    from psd.estimation.cube import CubeFit
    from psd.estimation.least_squares import Estimates
    from psd.query.areas import Areas
    from psd.query.index import CubeIndex, QueryIndex
    from psd.query.traversal import TraversalLevel
    from psd.space.cube_tree import CubeTree

__all__ = [
    "CubeCovariance",
    "answer_cube_jointly",
    "answer_once_jointly",
    "cube_covariance",
]

# Coefficients of all answers together, about 2 GB, and pairs of areas that overlap.
_MOST_COEFFICIENTS, _MOST_OVERLAPS = 2**26, 100_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CubeCovariance:
    """Totals of areas in each window, and the covariance of all answers, window by window."""

    totals: list[QueryTotals]
    noise: Floats  # (m, m) float64
    uneven: Floats  # (m, m) float64
    overlaps: Integers  # (n, 2) int64, areas with area in common
    # (windows, areas) float64, deviations in common in time, of which `uneven` has the squares.
    common: Floats


def answer_cube_jointly(
    index: CubeIndex,
    windows: Sequence[Integers],
    labels: Sequence[Mapping[str, str]],
    areas: Areas,
    *,
    confidence: float,
    threshold: Threshold,
) -> Joint:
    """Answer areas in windows with their covariance; see `answer_windows_jointly`."""
    check_levels(confidence, threshold)
    check_size(len(areas) * len(windows))
    record = index.record
    found = cube_covariance(index.fit, areas, Windows.of_cells(windows, record.sizes))
    return joint_answers(
        found.totals,
        (found.noise, found.uneven),
        areas,
        windows,
        labels,
        record=record.plane,
        pairs=found.overlaps,
        confidence=confidence,
        threshold=threshold,
    )


def answer_once_jointly(
    asked: QueryIndex | CubeWindow, areas: Areas, *, confidence: float, threshold: Threshold
) -> Joint:
    """Answer areas of a release, or of one window of a cube, with their covariance."""
    certainty: dict[str, Any] = {"confidence": confidence, "threshold": threshold}
    if isinstance(asked, CubeWindow):
        return answer_cube_jointly(asked.index, [asked.window], [{}], areas, **certainty)
    return answer_jointly(asked, areas, **certainty)


def cube_covariance(fit: CubeFit, areas: Areas, windows: Windows) -> CubeCovariance:
    """Compute the totals and covariances of areas in each window.

    P1. A function of the release alone: it costs no epsilon.

    P2. The noise of answers is Z Z', with the innovations of the joint layer and of the plane as
    columns of Z; the noise of both layers is independent. What the layer of times adds has its
    noise in the slices that windows share. The diagonal is that of `cube_totals`.

    P3. What is uneven is a sum of positive semi-definite parts, to rounding.
    """
    size, regions = len(areas), areas.overlaps(fit.plane)
    if fit.parts or is_of_plane(fit, windows).any():
        return _sum_of_cubes(fit, areas, windows)
    overlaps = regions.overlapping_pairs()
    if len(overlaps) > _MOST_OVERLAPS:
        raise ParameterError(
            f"areas must overlap in at most {_MOST_OVERLAPS:,} pairs for joint answers of a cube, "
            f"got {len(overlaps):,}"
        )
    parts: list[list[QueryTotals]] = [[] for _ in range(len(windows))]
    rows: list[Integers] = []
    noise: list[sparse.csr_array] = []
    in_time, in_boxes = [], []
    scale, common = np.zeros((2, len(windows), size))
    told = told_by_times(fit, windows)
    for first, begin, batch in cube_batches(fit, areas, windows, told):
        for window, found in enumerate(batch.totals, begin):
            parts[window].append(found)
        asked, number = batch.scale.shape
        scale[begin : begin + number, first : first + asked] = batch.scale.T
        common[begin : begin + number, first : first + asked] = batch.common.T
        query = np.arange(asked * number)
        answer = (begin + query % number) * size + first + query // number
        # A single slice has the published counts, and several the signed ones.
        is_one = windows.sizes[answer // size] == 1
        is_published = is_one & predicts_published(fit.record.plane)
        for which, estimates in (
            (~is_published, fit.estimates),
            (is_published, fit.published_covariance),
        ):
            if which.any():
                joint = innovation_coefficients(batch.traversal, estimates)
                plane = _place_coefficients(batch, fit.plane.noise_covariance)
                noise.append(sparse.hstack([joint, plane], format="csr")[which])
                rows.append(answer[which])
        if sum(each.nnz for each in noise) > _MOST_COEFFICIENTS:
            raise ParameterError(
                "areas and windows must meet fewer cells for joint answers; ask for fewer of them"
            )
        in_time.append(_time_entries(fit, batch, answer))
        in_boxes.append(_box_entries(batch, answer))
    totals = [concatenate(each) for each in parts]
    answers = size * len(windows)
    if not answers:
        nothing = np.zeros((0, 0))
        return CubeCovariance(
            totals=totals, noise=nothing, uneven=nothing, overlaps=overlaps, common=common
        )
    stacked = sparse.vstack(noise, format="csr")[np.argsort(np.concatenate(rows))]
    # In the leaves of the plane, which are wrong in all windows alike.
    own = regions if fit.own_plane is fit.plane else areas.overlaps(fit.own_plane)
    of_plane = np.tile(nonuniformity_covariance(fit.own_plane, own), (len(windows),) * 2)
    uneven = of_plane * scale.ravel() * scale.ravel()[:, None]
    # In time what all places have in common, in each window by itself.
    of_noise = row_products(stacked, stacked)
    taken, left = common * told.weight[:, None], common * told.left[:, None]
    for window, (deviation, by_times) in enumerate(zip(left, taken, strict=True)):
        at = slice(window * size, (window + 1) * size)
        uneven[at, at] += np.outer(deviation, deviation)
        uneven[at, at] += told.uneven[window] * np.outer(by_times, by_times)
        of_noise[at, at] += told.noise[window] * np.outer(by_times, by_times)
    if fit.times is not None and len(windows) > 1:
        # Windows that share slices share the noise of these.
        inside = np.diff(windows.before[0]).astype(np.float64)
        shared = fit.times[1] * inside @ inside.T
        np.fill_diagonal(shared, 0.0)
        of_noise += np.outer(taken, taken) * np.kron(shared, np.ones((size, size)))
    atoms = _Atoms.of_windows(windows)
    uneven += _time_covariance(fit, atoms, _Entries.join(in_time), answers, size)
    uneven += _place_covariance(fit, atoms, _Entries.join(in_boxes), regions, overlaps, answers)
    return CubeCovariance(
        totals=totals, noise=of_noise, uneven=uneven, overlaps=overlaps, common=left
    )


def _sum_of_cubes(fit: CubeFit, areas: Areas, windows: Windows) -> CubeCovariance:
    """As `cube_covariance`, by the plane or by cubes of categories, as in `cube_totals`."""
    size, answers = len(areas), len(areas) * len(windows)
    noise, uneven = np.zeros((2, answers, answers))
    own, is_whole = areas.overlaps(fit.own_plane), is_of_plane(fit, windows)
    whole = np.flatnonzero(np.repeat(is_whole, size))
    if len(whole):
        times = (int(is_whole.sum()),) * 2
        for of_all, of_plane in (
            (noise, perturbation_covariance(fit.own_plane, own)),
            (uneven, nonuniformity_covariance(fit.own_plane, own)),
        ):
            of_all[np.ix_(whole, whole)] = np.tile(of_plane, times)
    # The errors of these cubes are independent but for what they have in common in time; those of
    # the plane are taken to be so.
    common = np.zeros((len(windows), size))
    for label, number, asked in cubes_asked(fit, windows):
        found = cube_covariance(fit if label < 0 else fit.parts[label], areas, asked)
        at = (number[:, None] * size + np.arange(size)).ravel()
        noise[np.ix_(at, at)] += found.noise
        uneven[np.ix_(at, at)] += found.uneven
        common[number] += found.common
        for window, deviation in zip(number.tolist(), found.common, strict=True):
            block = slice(window * size, (window + 1) * size)
            uneven[block, block] -= np.outer(deviation, deviation)
    for window, deviation in enumerate(common):
        block = slice(window * size, (window + 1) * size)
        uneven[block, block] += np.outer(deviation, deviation)
    return CubeCovariance(
        totals=cube_totals(fit, areas, windows),
        noise=noise,
        uneven=uneven,
        overlaps=own.overlapping_pairs(),
        common=common,
    )


def _place_coefficients(batch: CubeBatch, estimates: Estimates) -> sparse.csr_array:
    """Coefficients of the innovations of the plane in each answer, shape (queries, nodes)."""
    # The recursion is that of the variance of the plane in `psd.query.cubes`.
    traversal, number = batch.parts.traversal, batch.scale.shape[1]
    slope = np.zeros((0, number))
    below: TraversalLevel | None = None
    query, node, value = [], [], []
    for level, weight in zip(reversed(traversal.levels), reversed(batch.weights), strict=True):
        own = weight
        if below is not None:
            variance = estimates.upward_variance[below.node]
            deviation = np.sqrt(np.where(np.isinf(variance), 0.0, variance))[:, None]
            mean = family_sums(below, estimates.slope[below.node][:, None] * slope, len(weight))
            query.append(below.query)
            node.append(below.node)
            value.append(deviation * (slope - mean[below.parent]))
            own = own + mean
        slope, below = own, level
    if below is not None:
        query.append(below.query)
        node.append(below.node)
        value.append(slope * np.sqrt(estimates.variance[0]))  # of the root, its own error
    values = np.concatenate(value)
    pair, window = np.nonzero(values)
    row = np.concatenate(query)[pair] * number + window
    shape = (traversal.queries * number, len(estimates.slope))
    return sparse.csr_array((values[pair, window], (row, np.concatenate(node)[pair])), shape=shape)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Entries:
    """Nodes that answers cut: arrays (n,)."""

    answer: Integers
    node: Integers  # a leaf of the joint layer, or a node of the plane
    deviation: Floats  # of records, over the root of s (1 - s) of a part s
    share: Floats  # the part s

    @classmethod
    def join(cls, entries: Sequence[_Entries]) -> _Entries:
        """Concatenate those of all batches."""
        names = cls.__slots__
        return cls(**{n: np.concatenate([getattr(each, n) for each in entries]) for n in names})


def _time_entries(fit: CubeFit, batch: CubeBatch, answer: Integers) -> _Entries:
    """Leaves of the joint layer that windows cut."""
    leaves = batch.leaves
    cut = np.flatnonzero((leaves.of_time > 0) & (leaves.of_time < 1) & (leaves.of_space > 0))
    return _Entries(
        answer=answer[leaves.query[cut]],
        node=leaves.node[cut],
        deviation=(np.sqrt(leaves.variances(fit)) * leaves.of_space)[cut],
        share=leaves.of_time[cut],
    )


def _box_entries(batch: CubeBatch, answer: Integers) -> _Entries:
    """Boxes of the plane that areas cut, with records of the window in their leaves."""
    levels, share, number = batch.parts.traversal.levels, batch.parts.share, batch.scale.shape[1]
    query, node = (
        np.concatenate([getattr(level, name) for level in levels]) for name in ("query", "node")
    )
    is_cut = (share > 0) & (share < 1)
    pair, window = np.nonzero((batch.spread > 0) & is_cut[:, None])
    return _Entries(
        answer=answer[query[pair] * number + window],
        node=node[pair],
        deviation=np.sqrt(batch.spread[pair, window]),
        share=share[pair],
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Atoms:
    """Sets of cells of the axes that each window has all of, or none."""

    of_axes: tuple[Integers, ...]  # (cells,) int64 of each axis, its atom of each cell
    inside: NDArray[np.bool_]  # (windows, atoms), by the atom of the first axis, then the second

    @classmethod
    def of_windows(cls, windows: Windows) -> _Atoms:
        """Sets of slices, and of categories, that are in the same windows."""
        of_axes, every = [], np.ones((len(windows), 1), bool)
        for before in windows.before:
            inside, of_cell = np.unique(np.diff(before) > 0, axis=1, return_inverse=True)
            of_axes.append(of_cell.ravel().astype(np.int64))
            every = (every[:, :, None] & inside[:, None, :]).reshape(len(windows), -1)
        return cls(of_axes=tuple(of_axes), inside=every)

    def divide(self, tree: CubeTree, nodes: Integers, weight: Floats) -> _Weights:
        """Divide weights of nodes of the joint layer among the atoms of their spans."""
        row, atom = np.arange(len(nodes)), np.zeros(len(nodes), np.int64)
        for axis, of_cell in enumerate(self.of_axes):
            first, length = tree.spans[nodes, 2 * axis].astype(np.int64), tree.lengths[nodes, axis]
            own = np.repeat(np.arange(len(row)), length[row])
            within = of_cell[ranges(first[row], length[row])]
            size = int(of_cell.max(initial=0)) + 1
            keys, at = np.unique(
                row[own] * self.inside.shape[1] + atom[own] * size + within, return_inverse=True
            )
            weight = sum_by(at, (weight / length[row])[own], len(keys))
            row, atom = np.divmod(keys, self.inside.shape[1])
        return self.sum(row, atom, weight, len(nodes))

    def sum(self, row: Integers, atom: Integers, weight: Floats, rows: int) -> _Weights:
        """Sums of weights by row and atom."""
        atoms = self.inside.shape[1]
        keys, at = np.unique(row * atoms + atom, return_inverse=True)
        first = np.searchsorted(keys, np.arange(rows + 1) * atoms)
        return _Weights(first=first, atom=keys % atoms, weight=sum_by(at, weight, len(keys)))

    def meet(self, weights: _Weights, row: Integers, window: Integers) -> tuple[Integers, Integers]:
        """Which pairs of a row and a window have which of the weights of the row."""
        size = np.diff(weights.first)[row]
        pair, at = np.repeat(np.arange(len(row)), size), ranges(weights.first[row], size)
        met = self.inside[window[pair], weights.atom[at]] & (weights.weight[at] > 0)
        return pair[met], at[met]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Weights:
    """Weights of rows by atom: arrays (n,), row by row."""

    first: Integers  # (rows + 1,) int64
    atom: Integers
    weight: Floats


def _time_covariance(
    fit: CubeFit, atoms: _Atoms, entries: _Entries, answers: int, areas: int
) -> Floats:
    """Covariance of answers by records that are uneven in time in joint leaves, (m, m) float64.

    P1. In a leaf two answers have V a b (t_both - t_a t_b), V being the variance over s (1 - s), a
    and b the parts of the areas, t those of the windows and of the slices in both.
    """
    leaf, row = np.unique(entries.node, return_inverse=True)
    weights = atoms.divide(fit.tree, leaf, np.ones(len(leaf)))
    pair, at = atoms.meet(weights, row, entries.answer // areas)
    value = entries.deviation[pair] * np.sqrt(weights.weight[at])
    both = _matrix(value, entries.answer[pair], at, (answers, len(weights.atom)))
    alone = _matrix(entries.deviation * entries.share, entries.answer, row, (answers, len(leaf)))
    return row_products(both, both) - row_products(alone, alone)


def _place_covariance(
    fit: CubeFit,
    atoms: _Atoms,
    entries: _Entries,
    regions: Regions,
    overlaps: Integers,
    answers: int,
) -> Floats:
    """Covariance of answers by the places of records in boxes, (m, m) float64.

    P1. In a box two answers have d_v d_w r (s_both - s_a s_b), d being the deviations of windows,
    r the records in both windows over the root of the product of those in each, as if slices were
    independent, and s the parts of the areas and of what is in both.
    """
    size, areas, nodes = atoms.inside.shape[1], len(regions), len(fit.plane.tree)
    box, row = np.unique(entries.node, return_inverse=True)
    rank = np.full(nodes, -1)
    rank[box] = np.arange(len(box))
    leaves = np.flatnonzero(fit.tree.is_leaf & (rank[fit.nodes] >= 0))
    records = atoms.divide(fit.tree, leaves, np.maximum(fit.estimates.count[leaves], 0.0))
    owner = rank[fit.nodes[leaves]][np.repeat(np.arange(len(leaves)), np.diff(records.first))]
    weights = atoms.sum(owner, records.atom, records.weight, len(box))
    pair, at = atoms.meet(weights, row, entries.answer // areas)
    whole = sum_by(pair, weights.weight[at], len(row))[pair]
    value = entries.deviation[pair] * np.sqrt(weights.weight[at] / whole)
    share, answer = entries.share[pair], entries.answer[pair]

    # What areas have in common, first each with itself. Groups are the pairs of an area and a box.
    keys = entries.answer % areas * nodes + entries.node
    groups, example, group = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(group[pair], kind="stable")
    atom, at, answer = weights.atom[at][order], at[order], answer[order]
    value, share = value[order], share[order]
    first = np.searchsorted(group[pair][order], np.arange(len(groups) + 1))
    column = np.repeat(np.arange(len(groups)), np.diff(first)) * size + atom
    own = _matrix(value * np.sqrt(share), answer, column, (answers, len(groups) * size))
    alone = _matrix(value * share, answer, at, (answers, len(weights.atom)))
    covariance = row_products(own, own) - row_products(alone, alone)
    if not len(overlaps):
        return covariance
    parts = entries.share[example]
    for start, traversal in common_regions(regions, overlaps).traversals():
        found = plane_parts(fit, traversal)
        a, b = overlaps[start : start + traversal.queries].T
        begin, end = np.searchsorted(groups, a * nodes), np.searchsorted(groups, (a + 1) * nodes)
        one, number = ranges(begin, end - begin), np.repeat(np.arange(len(a)), end - begin)
        key = b[number] * nodes + groups[one] % nodes
        other = np.minimum(np.searchsorted(groups, key), len(groups) - 1)
        place = found.find(number, groups[one] % nodes, nodes)
        shared = np.flatnonzero((groups[other] == key) & (place >= 0))
        one, other, place = one[shared], other[shared], place[shared]
        least = np.maximum(parts[one] + parts[other] - 1, 0.0)
        both = np.clip(found.share[place], least, np.minimum(parts[one], parts[other]))
        made = []
        for which, factor in ((one, both), (other, np.ones(len(both)))):
            length = np.diff(first)[which]
            each, of = ranges(first[which], length), np.repeat(np.arange(len(which)), length)
            shape = (answers, len(which) * size)
            made.append(
                _matrix(factor[of] * value[each], answer[each], of * size + atom[each], shape)
            )
        product = (made[0] @ made[1].T).tocoo()
        covariance[product.row, product.col] += product.data
        covariance[product.col, product.row] += product.data
    return covariance


def _matrix(
    value: Floats, row: Integers, column: Integers, shape: tuple[int, int]
) -> sparse.csr_array:
    """Matrix of these values."""
    return sparse.csr_array((value, (row, column)), shape=shape)
