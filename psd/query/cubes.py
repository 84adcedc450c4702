"""Answers of a cube: areas in windows of time and categories.

An answer takes of each leaf of the joint layer the share of the area in the mass of the plane in
the leaf's box, times the shares of the window in the leaf's slices and categories. Records of all
categories in all time are an answer of the plane; categories by themselves are cubes that add up.

With a layer of times, what all places have in common in time is corrected by its counts.

The error has five parts. By the noise: that of the joint layer, exactly, and that of the plane,
whose shares are wrong in all slices alike. By uneven cells: records of the window lie elsewhere
than those of all time; they are uneven in time inside a leaf, in each by itself and in all alike,
as places share their hours; and records lie elsewhere in leaves of the plane than its density says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, Rows, sum_by
from psd.estimation.cube import CubeFit
from psd.estimation.least_squares import Estimates
from psd.estimation.nonuniformity import cell_ceiling
from psd.query.answer_table import Threshold, answer_columns, check_levels
from psd.query.areas import Areas, BoxAreas
from psd.query.index import CubeIndex, QueryIndex
from psd.query.totals import QueryTotals, concatenate
from psd.query.traversal import (
    Fraction,
    Traversal,
    TraversalLevel,
    perturbation_variance,
    traverse_within,
)

__all__ = [
    "CubeBatch",
    "CutLeaves",
    "PlaneParts",
    "Windows",
    "answer_cube",
    "cube_batches",
    "cube_totals",
    "cubes_asked",
    "family_sums",
    "is_of_plane",
    "plane_parts",
    "told_by_times",
    "totals_of_cube",
]

# Answers computed together, and pairs of an answer and a cell that these meet, about 500 MB, unless
# a single answer meets more.
_ANSWERS_PER_BATCH, _PAIRS_PER_BATCH = 2**12, 2**22

_TINY = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Windows:
    """Sets of cells of the further axes, each answered as one: slices, of some categories."""

    # Of each axis (windows, cells + 1) int16; cells of each window before each one, of at most
    # 10,000.
    before: tuple[NDArray[np.int16], ...]
    # Of each window, categories whose cubes are asked and added up, (windows,) int64; None for 1.
    added: Integers | None = None

    @classmethod
    def of_cells(cls, windows: Sequence[Integers], sizes: Sequence[int]) -> Windows:
        """Windows of the numbers of their cells, which are all pairs of some cells of each axis.

        sizes: cells of each axis; cells are numbered by the first axis, then the second one.
        """
        inside = [np.zeros((len(windows), size + 1), bool) for size in sizes]
        for number, window in enumerate(windows):
            for of_axis, cells in zip(inside, np.unravel_index(window, tuple(sizes)), strict=True):
                of_axis[number, cells + 1] = True
        return cls(before=tuple(np.cumsum(each, axis=1, dtype=np.int16) for each in inside))

    def __len__(self) -> int:
        return len(self.before[0])

    @property
    def widths(self) -> Integers:
        """Number of cells of each axis in each window, (windows, axes) int64."""
        return np.stack([each[:, -1] for each in self.before], axis=1).astype(np.int64)

    @property
    def sizes(self) -> Integers:
        """Number of cells of each window."""
        sizes: Integers = self.widths.prod(axis=1)
        return sizes if self.added is None else sizes * self.added

    @property
    def whole(self) -> NDArray[np.bool_]:
        """Which windows have all cells of all axes, (windows,)."""
        sizes = np.array([each.shape[1] - 1 for each in self.before])
        is_whole: NDArray[np.bool_] = (self.widths == sizes).all(axis=1)
        return is_whole

    def parts(self, profiles: Sequence[Floats]) -> Floats:
        """Part of all records in each window, (windows,), as if axes were independent.

        profiles: records of each cell of each axis.
        """
        part: Floats = np.ones(len(self))
        for before, profile in zip(self.before, profiles, strict=True):
            part *= np.diff(before) @ profile / max(float(profile.sum()), 1.0)
        return part

    def __getitem__(self, which: slice | Integers) -> Windows:
        """Some of the windows."""
        added = None if self.added is None else self.added[which]
        return Windows(before=tuple(each[which] for each in self.before), added=added)

    def shares(self, window: Integers, spans: NDArray[np.int32]) -> Floats:
        """Part of the cells of each of some spans that lies in a window, (n,) float64."""
        share: Floats = np.ones(len(spans))
        for axis, before in enumerate(self.before):
            first, stop = spans[:, 2 * axis], spans[:, 2 * axis + 1]
            share *= (before[window, stop] - before[window, first]) / (stop - first)
        return share


def answer_cube(
    index: CubeIndex,
    windows: Sequence[Integers],
    areas: Areas,
    *,
    confidence: float,
    threshold: Threshold,
) -> list[dict[str, Any]]:
    """Answer areas in each window; see `psd.query.windows.answer_windows`."""
    check_levels(confidence, threshold)
    fit, record = index.fit, index.record
    totals = cube_totals(fit, areas, Windows.of_cells(windows, record.sizes))
    certainty: dict[str, Any] = {"confidence": confidence, "threshold": threshold}
    return [answer_columns(each, record.plane, **certainty) for each in totals]


def cube_totals(fit: CubeFit, areas: Areas, windows: Windows) -> list[QueryTotals]:
    """Totals of areas in each window, (areas,) each; an area that cannot be answered is refused.

    P1. A function of the release alone: it costs no epsilon.

    One slice has the published counts, as a series has; several have the unbiased ones, since what
    medians round in nearly empty cells adds up.
    """
    if not len(areas):
        return [areas.totals(QueryIndex.of_fit(fit.plane)) for _ in range(len(windows))]
    if fit.parts or is_of_plane(fit, windows).any():
        return _sums(fit, areas, windows)
    return totals_of_cube(fit, areas, windows)[0]


def totals_of_cube(
    fit: CubeFit, areas: Areas, windows: Windows
) -> tuple[list[QueryTotals], Floats]:
    """Totals of areas in each window, and what they err by in common in time, (windows, areas)."""
    parts: list[list[QueryTotals]] = [[] for _ in range(len(windows))]
    common = np.zeros((len(windows), len(areas)))
    for first, begin, batch in cube_batches(fit, areas, windows):
        for window, totals in enumerate(batch.totals, begin):
            parts[window].append(totals)
        left = (batch.common * batch.told.left).T
        common[begin : begin + len(left), first : first + left.shape[1]] = left
    return [concatenate(each) for each in parts], common


def is_of_plane(fit: CubeFit, windows: Windows) -> NDArray[np.bool_]:
    """Which windows are answered by the plane, those of all categories in all time, (windows,).

    The joint layer, whose cells follow each category, knows less of where they are.
    """
    of_plane: NDArray[np.bool_] = windows.whole & (fit.record.category is not None)
    return of_plane


def cubes_asked(fit: CubeFit, windows: Windows) -> Iterator[tuple[int, Integers, Windows]]:
    """Windows that are not of the plane, by the cube that is asked, with their numbers.

    The first number is that of a category, whose cube is asked and summed with the others; -1 of
    the cube itself, which has no cubes of categories.
    """
    rest = ~is_of_plane(fit, windows)
    if not fit.parts:
        number = np.flatnonzero(rest)
        if len(number):
            yield -1, number, windows[number]
        return
    times, labels = windows.before
    for label in range(len(fit.parts)):
        number = np.flatnonzero(rest & (labels[:, label + 1] > labels[:, label]))
        if len(number):
            added = windows.widths[number, 1]
            yield label, number, Windows(before=(times[number],), added=added)


def _sums(fit: CubeFit, areas: Areas, windows: Windows) -> list[QueryTotals]:
    """Totals of areas in each window, of the plane or of the cubes of categories."""
    # The errors of these are independent but for what places have in common in time, which
    # categories have too: these deviations add up.
    found: list[list[QueryTotals]] = [[] for _ in range(len(windows))]
    common, squares = np.zeros((2, len(windows), len(areas)))
    for window in np.flatnonzero(is_of_plane(fit, windows)).tolist():
        found[window].append(areas.totals(QueryIndex.of_fit(fit.own_plane)))
    for label, number, own in cubes_asked(fit, windows):
        totals, deviation = totals_of_cube(fit if label < 0 else fit.parts[label], areas, own)
        common[number] += deviation
        squares[number] += deviation**2
        for window, each in zip(number.tolist(), totals, strict=True):
            found[window].append(each)
    names = QueryTotals.__slots__
    sums = [
        QueryTotals(**{name: np.sum([getattr(of, name) for of in each], axis=0) for name in names})
        for each in found
    ]
    return [
        replace(each, leaf_variance=each.leaf_variance + more)
        for each, more in zip(sums, common**2 - squares, strict=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Told(Rows):
    """What the layer of times tells of windows: arrays (windows,), 0 of those it tells nothing of.

    An answer is corrected by its deviation in common times weight times gap.
    """

    weight: Floats
    gap: Floats  # records of all places by the layer of times beyond those by the joint layer
    signed_gap: Floats
    noise: Floats  # variance of the gap by the noise of both layers
    uneven: Floats  # by uneven cells, without what all places have in common
    left: Floats  # part of the deviation in common that is left

    @classmethod
    def nothing(cls, size: int) -> Told:
        """Of windows of which nothing is told."""
        names = [each.name for each in fields(cls)]
        return cls(**{name: np.zeros(size) for name in names} | {"left": np.ones(size)})


def told_by_times(fit: CubeFit, windows: Windows) -> Told:
    """What the layer of times tells of windows.

    P2. Of all places, the layer of times says H and the joint layer J, with the deviations c in
    common of all places and d of an area. The correction d c / S (H - J), with S the variance of H
    - J, is that of the best linear estimate if answers have d c in common with J, so it takes d^2
    c^2 / S off the variance. By the noise they have more in common, so the rest is not understated.
    """
    nothing = Told.nothing(len(windows))
    # A cube whose categories are not apart has the times of all of them together.
    asked = np.flatnonzero((windows.widths[:, 1:] == fit.record.sizes[1:]).all(axis=1))
    if fit.times is None or not len(asked):
        return nothing
    (counts, variance), every = fit.times, windows[asked]
    boxes = fit.plane.domain.from_lattice(fit.plane.tree.boxes[:1].astype(np.float64))
    everywhere = BoxAreas(given=None, boxes=boxes, ids=[0])
    of_windows: list[QueryTotals] = []
    deviations: list[Floats] = []
    for *_, batch in cube_batches(fit, everywhere, every, nothing):  # windows ascend
        of_windows += batch.totals
        deviations.append(batch.common[0])
    totals, common = concatenate(of_windows), np.concatenate(deviations)

    by_times = np.array([counts[inside > 0].sum() for inside in np.diff(every.before[0])])
    noise = totals.perturbation_variance + variance * every.widths[:, 0]
    uneven = np.maximum(totals.leaf_variance - common**2, 0.0)
    weight = common / np.maximum(noise + uneven + common**2, _TINY)
    told = {
        "weight": weight,
        "gap": by_times - totals.estimate,
        "signed_gap": by_times - totals.signed,
        "noise": noise,
        "uneven": uneven,
        "left": 1 - weight * common,
    }
    found = Told.nothing(len(windows))
    for name, values in told.items():
        getattr(found, name)[asked] = values
    return found


def cube_batches(
    fit: CubeFit, areas: Areas, windows: Windows, told: Told | None = None
) -> Iterator[tuple[int, int, CubeBatch]]:
    """Totals of some areas in some windows each, with the number of the first of both.

    Areas ascend in each window. told: by the layer of times, if it is known.
    """
    told = told_by_times(fit, windows) if told is None else told
    of_plane = areas.totals(QueryIndex.of_fit(fit.own_plane))
    regions = areas.overlaps(fit.plane)
    for start, traversal in regions.traversals():
        step = max(_ANSWERS_PER_BATCH // len(windows), 1)
        rows = range(0, traversal.queries, step)
        left = [(row, min(row + step, traversal.queries), 0, len(windows)) for row in rows][::-1]
        while left:
            first, stop, begin, end = left.pop()
            batch = _of_queries(traversal, first, stop)
            asked = of_plane[np.arange(start + first, start + stop)]
            found = _batch(fit, batch, windows[begin:end], asked, told[np.arange(begin, end)])
            if found is None and stop - first > 1:  # too much to look at together
                middle = (first + stop) // 2
                left += [(middle, stop, begin, end), (first, middle, begin, end)]
            elif found is None:
                middle = (begin + end) // 2
                left += [(first, stop, middle, end), (first, stop, begin, middle)]
            else:
                yield start + first, begin, found


def _of_queries(traversal: Traversal, first: int, stop: int) -> Traversal:
    """The part of a traversal that is about some of its queries, which get numbers from 0."""
    if (first, stop) == (0, traversal.queries):
        return traversal
    levels, above = [], 0
    for level in traversal.levels:
        start, end = np.searchsorted(level.query, [first, stop])
        if start == end:
            break
        rows = slice(start, end)
        arrays = {name: getattr(level, name)[rows] for name in level.__slots__}
        part = replace(level, **arrays)
        levels.append(replace(part, query=part.query - first, parent=part.parent - above))
        above = int(start)
    return Traversal(queries=stop - first, levels=tuple(levels))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlaneParts:
    """Parts of nodes of the plane in areas: arrays by pair of an area and a node, level by level.

    The nodes are those that an area meets or cuts, and their siblings.
    """

    traversal: Traversal
    share: Floats  # (n,) float64; covered part of the records of the plane
    area: Floats  # (n,) float64; covered part of the area
    key: Integers  # (n,) int64, ascending: area and node
    pair: Integers  # (n,) int64; pair of each key

    def find(self, area: Integers, node: Integers, nodes: int) -> Integers:
        """Pair of each area and node; -1 inside of a node that an area covers."""
        key = area * nodes + node
        at = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
        return np.where(self.key[at] == key, self.pair[at], -1)


def plane_parts(fit: CubeFit, traversal: Traversal) -> PlaneParts:
    """Parts of the nodes of the plane in areas, from the leaves up."""
    tree, count = fit.plane.tree, np.maximum(fit.plane.estimates.count, 0.0)
    variance = fit.plane.noise_covariance.variance
    ground = fit.ground
    shares, areas, below = [], [], None
    for level in reversed(traversal.levels):
        share, area = level.fraction.copy(), level.area.copy()
        if below is not None:
            lower, of_share, of_area = below
            at, node, size = np.flatnonzero(level.opened), level.node, len(level.node)
            mass = sum_by(lower.parent, count[lower.node] * of_share, size)[at]
            area[at] = sum_by(lower.parent, ground[lower.node] * of_area, size)[at]
            area[at] /= np.maximum(ground[node[at]], 1.0)
            # As far as the plane says nothing, records are taken to lie evenly.
            records, noise = count[node[at]], variance[node[at]]
            known = np.where(records > 0, mass / np.where(records > 0, records, 1.0), area[at])
            weight = records**2 / np.maximum(records**2 + noise, _TINY)
            share[at] = weight * known + (1 - weight) * area[at]
        shares.append(np.clip(share, 0.0, 1.0))
        areas.append(area)
        below = level, shares[-1], area
    key = np.concatenate([level.query * len(tree) + level.node for level in traversal.levels])
    order = np.argsort(key)
    return PlaneParts(
        traversal=traversal,
        share=np.concatenate(shares[::-1]),
        area=np.concatenate(areas[::-1]),
        key=key[order],
        pair=order,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CutLeaves:
    """Joint leaves that answers cut, in space or in time: arrays (n,) by pair of both."""

    query: Integers  # number of the answer in its batch
    node: Integers
    records: Floats
    of_time: Floats  # part of the slices and categories of the leaf that lies in the window
    of_space: Floats  # part of its records that lies in the area

    def variances(self, fit: CubeFit) -> Floats:
        """Variance of the records of each leaf in time, over s (1 - s) of a part s of its time."""
        spread: Floats = self.records * (
            fit.cluster_size + fit.time_overdispersion[self.node] * self.records
        )
        return spread

    def common_deviations(self, fit: CubeFit) -> Floats:
        """Standard deviation in time that each leaf has in common with all others, (n,)."""
        part = self.of_time * (1 - self.of_time)
        deviation: Floats = np.sqrt(fit.common_overdispersion[self.node] * part)
        return deviation * self.records * self.of_space


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CubeBatch:
    """Answers to some areas in some windows, area by area; windows of one area stand together."""

    totals: list[QueryTotals]  # of each window
    traversal: Traversal  # of the joint layer
    leaves: CutLeaves
    parts: PlaneParts
    # (pairs, windows) float64, by pair of `parts`: records of the joint leaves with this box that
    # are cut in space; and the variance of their places over s (1 - s) of a part s.
    in_cut: Floats
    spread: Floats
    weights: list[Floats]  # of nodes of the plane, see `_place_weights`
    scale: Floats  # (areas, windows) float64; answer over that of the plane
    common: Floats  # (areas, windows) float64; deviation in time that all leaves have in common
    told: Told


def _batch(
    fit: CubeFit, on_plane: Traversal, windows: Windows, of_plane: QueryTotals, told: Told
) -> CubeBatch | None:
    """Totals of some areas in each window; None if several answers meet too many cells."""
    tree, estimates, number = fit.tree, fit.estimates, len(windows)
    parts, queries = plane_parts(fit, on_plane), on_plane.queries * len(windows)
    covered = _joint_fraction(fit, parts, windows)
    traversal = traverse_within(tree, queries, covered, _PAIRS_PER_BATCH)
    if traversal is None:
        return None

    # What is taken of the nodes that are met and not opened, and of the leaves that are cut.
    count, signed, beyond = np.zeros((3, queries))
    found: list[tuple[Integers, Integers, Floats]] = []
    for level in traversal.levels:
        met = np.flatnonzero(~level.opened & (level.area > 0))
        query, node, fraction = level.query[met], level.node[met], level.fraction[met]
        count += sum_by(query, fraction * estimates.count[node], queries)
        signed += sum_by(query, fraction * estimates.signed[node], queries)
        cut = np.flatnonzero(level.area[met] < 1)
        query, node, fraction = query[cut], node[cut], fraction[cut]
        records = np.maximum(estimates.count[node], 0.0)
        left = cell_ceiling(records, estimates.variance[node]) * (1 - fraction)
        beyond += sum_by(query, left, queries)
        found.append((query, node, fraction))
    query, node = (np.concatenate([each[part] for each in found]) for part in (0, 1))
    fraction = np.concatenate([each[2] for each in found])
    of_time = windows.shares(query % number, tree.spans[node])
    leaves = CutLeaves(
        query=query,
        node=node,
        records=np.maximum(estimates.count[node], 0.0),
        of_time=of_time,
        of_space=fraction / np.where(of_time > 0, of_time, 1.0),
    )
    uneven = leaves.variances(fit) * of_time * (1 - of_time) * leaves.of_space**2
    in_time = sum_by(query, uneven, queries)
    in_time = in_time.reshape(-1, number)
    common = sum_by(query, leaves.common_deviations(fit), queries).reshape(-1, number)
    by_times = (common * told.weight) ** 2
    in_time += (common * told.left) ** 2 + by_times * told.uneven
    count += (common * told.weight * told.gap).ravel()
    signed += (common * told.weight * told.signed_gap).ravel()

    # In the boxes of these leaves, by where records of the window lie.
    pair = parts.find(query // number, fit.nodes[node], len(fit.plane.tree))
    cell, cut = pair * number + query % number, np.flatnonzero(pair >= 0)
    cell, records, label = cell[cut], (leaves.records * of_time)[cut], fit.labels_of(node[cut])
    in_cut = sum_by(cell, records, len(parts.share) * number).reshape(-1, number)
    key, of_key = np.unique(cell * fit.labels + label, return_inverse=True)
    of_labels = (*np.divmod(key, fit.labels), sum_by(of_key, records, len(key)))
    spread = _place_spread(fit, parts, in_cut, of_labels, windows)
    weights = _place_weights(fit, parts, in_cut)
    filled, column = np.nonzero(spread)
    area = np.concatenate([level.query for level in on_plane.levels])[filled]
    uneven = spread[filled, column] * parts.share[filled] * (1 - parts.share[filled])
    moved = sum_by(area * number + column, uneven, queries).reshape(-1, number)
    place = _weighted_variance(on_plane, weights, fit.plane.noise_covariance)

    # In the leaves of the plane, in proportion to its own answer.
    whole = np.maximum(of_plane.estimate, 1.0)[:, None]
    scale = np.maximum(signed.reshape(-1, number), 0.0) / whole
    inside = scale**2 * of_plane.nonuniformity_variance[:, None]
    noises = [
        perturbation_variance(traversal, each) for each in (estimates, fit.published_covariance)
    ]
    uneven = in_time + moved + inside
    totals, nothing = [], np.zeros(on_plane.queries)
    for window, size in enumerate(windows.sizes):
        at = slice(window, None, number)
        more = place[:, window] + by_times[:, window] * told.noise[window]
        noise, published = (each[at] + more for each in noises)
        is_one = size == 1
        totals.append(
            QueryTotals(
                estimate=count[at] if is_one else signed[at],
                signed=signed[at],
                perturbation_variance=noise,
                published_variance=published if is_one else noise,
                leaf_variance=uneven[:, window],
                shift=nothing,
                line_variance=nothing,
                edge_variance=nothing,
                beyond=beyond[at],
            )
        )
    return CubeBatch(
        totals=totals,
        traversal=traversal,
        leaves=leaves,
        parts=parts,
        in_cut=in_cut,
        spread=spread,
        weights=weights,
        scale=scale,
        common=common,
        told=told,
    )


def _joint_fraction(fit: CubeFit, parts: PlaneParts, windows: Windows) -> Fraction:
    """Covered parts of joint nodes: of their records, and of their area and slices."""
    nodes, spans, size, number = fit.nodes, fit.tree.spans, len(fit.plane.tree), len(windows)

    def fraction(query: Integers, node: Integers) -> tuple[Floats, Floats]:
        pair = parts.find(query // number, nodes[node], size)
        of_time = windows.shares(query % number, spans[node])
        share = np.where(pair < 0, 1.0, parts.share[pair]) * of_time
        return share, np.where(pair < 0, 1.0, parts.area[pair]) * of_time

    return fraction


def _place_spread(
    fit: CubeFit,
    parts: PlaneParts,
    in_cut: Floats,
    of_labels: tuple[Integers, Integers, Floats],
    windows: Windows,
) -> Floats:
    """Variance of the places of records in boxes, over s (1 - s) of a part s; see `CubeBatch`.

    of_labels: pair and window, pair by pair, category and records, (n,) each; in_cut: their sums.
    """
    levels = parts.traversal.levels
    node = np.concatenate([level.node for level in levels])
    cell, label, records = of_labels
    filled, window = np.divmod(cell, len(windows))
    # What a window deviates from all time is the less, the more of all records it has; where cells
    # follow categories, of those in the box.
    part = windows.parts(fit.profiles)[window]
    if fit.record.category is not None:
        mass = np.maximum(fit.plane.estimates.count[node[filled]], _TINY)
        part = np.minimum(part, in_cut[filled, window] / mass)
    phi = fit.overdispersions(windows.widths[window], node[filled], label) * (1 - part) ** 2
    alone = sum_by(cell, phi * records**2, in_cut.size).reshape(in_cut.shape)
    variance = alone * (parts.share * (1 - parts.share))[:, None]
    # A place that has too many in a box has too many in the smaller boxes inside as well, which
    # other slices have: the deviations of boxes inside each other add up, and the variances of
    # boxes beside each other.
    stop, inner = len(node), None
    for number in reversed(range(len(levels))):
        rows = slice(stop - len(levels[number].node), stop)
        deviation = np.sqrt(variance[rows])
        if inner is not None:
            sums = family_sums(levels[number + 1], inner**2, len(deviation))
            deviation += np.sqrt(sums)
        stop, inner = rows.start, deviation
    area = np.concatenate([level.query for level in levels])
    assert inner is not None
    total = np.stack([sum_by(area, each, len(inner)) for each in variance.T], axis=1)
    factor = np.where(total > 0, inner**2 / np.maximum(total, _TINY), 1.0)
    spread: Floats = fit.cluster_size * in_cut + alone * factor[area]
    return spread


def _place_weights(fit: CubeFit, parts: PlaneParts, in_cut: Floats) -> list[Floats]:
    """Weights of nodes of the plane in the places of records in the joint leaves that areas cut.

    in_cut: as in `CubeBatch`; returns (pairs, windows) float64 of each level, 0 of opened nodes.

    P2. The part of a leaf that lies in an area is M(A) / M, the mass of the plane in both and in
    the leaf's box. Its derivative by the mass of a node of which a is covered is (a - M(A) / M) /
    M. So a node has the weight sum of X (a - M(A) / M) / M over the boxes around it that the area
    cuts, X being the records of their leaves; the variance of the sum follows from the covariance
    of the plane.
    """
    mass = np.maximum(fit.plane.estimates.count, 0.0)
    variance = fit.plane.noise_covariance.variance
    first, weights = 0, []
    inside = outside = np.zeros((0, in_cut.shape[1]))
    for level in parts.traversal.levels:
        rows = slice(first, first + len(level.node))
        share, met = parts.share[rows, None], in_cut[rows]
        inside, outside = (
            each[level.parent] if first else np.zeros(met.shape) for each in (inside, outside)
        )
        weights.append(np.where(level.opened[:, None], 0.0, share * inside - outside))
        # X / M of the boxes around the nodes of the next level, and X M(A) / M^2.
        here = mass[level.node][:, None]
        density = met * here / np.maximum(here**2 + variance[level.node][:, None], _TINY)
        inside, outside = inside + density, outside + density * share
        first += len(level.node)
    return weights


def _weighted_variance(traversal: Traversal, weights: list[Floats], estimates: Estimates) -> Floats:
    """Variance of sums of nodes not opened, (queries, windows); weights: (pairs, windows) each."""
    # The recursion is that of `psd.query.traversal.perturbation_variance`.
    slope: Floats = np.zeros((0, 1))
    rest = slope
    below: TraversalLevel | None = None
    for level, weight in zip(reversed(traversal.levels), reversed(weights), strict=True):
        own, left = weight, np.zeros(weight.shape)
        if below is not None:
            upward = estimates.upward_variance[below.node]
            upward = np.where(np.isinf(upward), 0.0, upward)[:, None]
            mean = family_sums(below, estimates.slope[below.node][:, None] * slope, len(weight))
            spread = upward * (slope - mean[below.parent]) ** 2 + rest
            left = family_sums(below, spread, len(weight))
            own = own + mean
        slope, rest, below = own, left, level
    variance: Floats = slope**2 * estimates.variance[0] + rest
    return variance


def family_sums(level: TraversalLevel, values: Floats, parents: int) -> Floats:
    """Sums over the children of each pair of the level above, (parents, windows) float64.

    values: (pairs, windows) float64.
    """
    sums = np.zeros((parents, values.shape[1]))
    # The children of an opened node stand together.
    starts = np.flatnonzero(np.diff(level.parent, prepend=-1))
    sums[level.parent[starts]] = np.add.reduceat(values, starts, axis=0)
    return sums
