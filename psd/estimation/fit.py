"""The fit of a record: estimates of its cells, their variances, and how records lie inside them.

Post-processing of the record alone. A fit near boxes has only medians and smooth densities of cells
that they meet, and of leaves within one leaf's width for each pass of the smoothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, distinct_values
from psd.errors import InternalError
from psd.estimation.constants import (
    DENSITY_RASTER,
    MEDIAN_REACH,
    SLOPE_OVERDISPERSION,
    SMOOTH_SHIFT,
    SMOOTHING_PASSES,
)
from psd.estimation.density import (
    CovariateDensity,
    Density,
    RasterWindow,
    SmoothDensity,
    covariate_error,
    least_mass,
    parent_shares,
    raster_mesh,
    raster_scale,
    region_shares,
    smooth_density,
)
from psd.estimation.fit_cache import LEAST_NODES, FitCache, recall
from psd.estimation.least_squares import (
    Estimates,
    Peers,
    find_peers,
    infer_counts,
    measure_record,
    prune_counts,
    published_covariance,
    round_counts,
    rounding_variance,
    uniform_of_digest,
)
from psd.estimation.lines import (
    PATTERN_SHAPE,
    LinePattern,
    column_records,
    fit_lines,
    line_deviation,
    line_squares,
    step_overdispersion,
)
from psd.estimation.nonuniformity import Dispersion, children_of, divisions, fit_dispersion
from psd.estimation.posterior import (
    PART_NODES,
    halfway_level,
    posterior_counts,
    posterior_counts_together,
)
from psd.estimation.value_shares import share_weights
from psd.release.cube import WindowRecord
from psd.release.file import content_digest
from psd.release.post_processing import WITH_PRIOR
from psd.release.record import ReleaseRecord
from psd.release.schema import record_header
from psd.space.box_tree import Tree
from psd.space.domain import Domain
from psd.space.region_tree import RegionTree

__all__ = ["Fit", "fit_least_squares", "predicts_published"]

_ESTIMATES = tuple(field.name for field in fields(Estimates))

# Boxes whose surroundings are looked at; the cells of more are met by a fit of all cells.
_FEW = 16

# Cells near the boxes, beside all nodes, above which a fit of all is faster to read from the cache.
_MANY = 1 / 64

# Slices of a series, evenly spaced, whose cells are peers: 64 do as well as all, and take no time.
_SLICES_OF_PEERS = 64

# Nodes of small records that are fitted together, at most 30 MB.
_TOGETHER = 2**16

# Leaves around those that boxes cut, beside all nodes, above which a fit of all is as fast.
_LIMIT = 0.25


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """Estimates, variances and densities, not to be written to; counts outside a `zone` are NaN."""

    record: ReleaseRecord  # what was published
    # Consistent estimates of every cell with variances; counts by the post-processing.
    estimates: Estimates
    # Estimates with the covariance of the published counts; those above where they are signed; near
    # boxes, the variance is that of the root alone.
    published_covariance: Estimates
    # (nodes,) float64; variance that rounding to integers adds to each cell; None without rounding.
    rounding_variance: Floats | None
    # (nodes,) float64; share of its parent's records that each cell has before counts are known.
    parent_shares: Floats
    zone: NearZone | None = None  # cells that have a count; None for all
    # Of the weights of a value: how far their errors agree along the edge of an area, see
    # `psd.query.value_edges`; 0 for records.
    edge_factor: float = 0.0
    cache: FitCache | None = None  # where the numbers that take longest are kept between processes

    @property
    def tree(self) -> Tree:
        """Cells and noisy counts."""
        return self.record.tree

    @property
    def domain(self) -> Domain:
        """Bounds, CRS and lattice."""
        return self.record.domain

    @property
    def noise_covariance(self) -> Estimates:
        """Estimates with the covariance that predicts the errors from the noise."""
        return self.published_covariance if predicts_published(self.record) else self.estimates

    @property
    def total(self) -> float:
        """Estimated number of (kept) records, or of users, in the whole domain."""
        return max(float(self.estimates.count[0]), 0.0)

    # How records lie inside cells is asked by answers alone: cells of an export need none of it.

    @cached_property
    def inside(self) -> Floats:
        """How records lie inside cells, see `_inside_cells`."""
        size = 2 + PATTERN_SHAPE[0] + len(self.tree)
        [inside] = recall(self.cache, ("inside",), (size,), lambda: [_inside_cells(self)])
        _lock(inside)
        return inside

    @property
    def shift_share(self) -> float:
        """Relative error of what the density moves in leaves; none for a boundary."""
        return float(self.inside[0])

    @cached_property
    def dispersion(self) -> Dispersion:
        """Variance of the records in a part of a cell."""
        inside = self.inside
        overdispersion = inside[len(inside) - len(self.tree) :]
        return Dispersion(cluster_size=float(inside[1]), overdispersion=overdispersion)

    @cached_property
    def pattern(self) -> LinePattern:
        """How records lie along lines."""
        return LinePattern.from_array(self.inside[2 : 2 + PATTERN_SHAPE[0]])

    @cached_property
    def line_deviation(self) -> Floats | None:
        """Deviation of cuts along each axis, (2, nodes) float64; None where nothing is seen."""
        count, overdispersion = self.estimates.count, self.dispersion.overdispersion
        lines = line_deviation(self.tree, count, overdispersion, self.pattern, self.domain)
        _lock(lines)
        return lines

    @cached_property
    def column_records(self) -> Floats | None:
        """Records in one column and row of each leaf, (2, nodes), if the lattice was chosen."""
        columns = column_records(self.tree, self.estimates.count, self.domain)
        _lock(columns)
        return columns

    @cached_property
    def density(self) -> Density | None:
        """Density inside the leaves, None where uniform; slow, so computed at its first use."""
        record, count = self.record, np.maximum(self.estimates.count, 0.0)
        tree, lattice, kind = record.tree, record.domain.lattice, record.post_processing.density
        if kind == "uniform":
            return None
        if kind == "covariate" and record.covariate is not None:
            return CovariateDensity(covariate=record.covariate)
        if self.zone is not None:  # without passes, boxes cut no leaf
            passes = self.zone.passes
            return smooth_density(tree, count, lattice, passes) if passes else None
        mesh = raster_mesh(tree, np.flatnonzero(tree.is_leaf & (count > 0)), lattice)
        [surface] = recall(
            self.cache,
            ("surface",),
            mesh.shape,
            lambda: [smooth_density(tree, count, lattice).surface],
        )
        density = SmoothDensity(
            tree=tree,
            scale=raster_scale(lattice),
            surface=surface,
            mesh=mesh,
            least=least_mass(count[:1]),
        )
        # The shares of few leaves are less than a surface, and all that is asked for.
        return density.without_surface() if len(tree) < LEAST_NODES else density


def fit(
    record: ReleaseRecord,
    near: Floats | None = None,
    *,
    cache: FitCache | None = None,
    unpruned: Estimates | None = None,
) -> Fit:
    """Fit the cells of a record, or those near some boxes where that is faster.

    near: (m, 4) float64, lattice units, all that is asked about; the cache then keeps only what
    depends on all cells. `unpruned`: estimates before pruning and rounding, where they are known.

    P1. A function of the record alone: it costs no epsilon.

    P2. Totals of the boxes are those of a fit of all cells, to rounding.
    """
    if isinstance(record, WindowRecord):  # the counts of its tree are of all time
        raise InternalError("a window of a cube is fitted by psd.query.cube_views")
    tree, choice = record.tree, record.post_processing
    zone = None if near is None else _zone_near(record, near, cache)
    # Share of its parent's records that each cell has before counts are known, (nodes,).
    if isinstance(tree, RegionTree):
        shares = region_shares(tree, record.covariate)
    else:
        has_mass = choice.density == "covariate" or record.boundary
        shares = parent_shares(tree, record.covariate if has_mass else None)

    # 1. Estimates: least squares, with the counts that the post-processing publishes.
    if zone is None:
        values = recall(
            cache,
            _ESTIMATES,
            (len(tree),),
            lambda: _all_estimates(record, shares, cache, unpruned),
        )
        estimates = Estimates(**dict(zip(_ESTIMATES, values, strict=True)))
    else:
        estimates = fit_least_squares(record)
        if choice.estimate in WITH_PRIOR:
            medians = _medians(record, estimates, zone, cache)
            estimates = replace(estimates, count=medians)

    # 2. The covariance of published counts. Integers have that of the counts that were rounded:
    #    rounding has its own term.
    published, rounded = estimates, None
    if choice.estimate != "signed":
        published = published_covariance(tree, estimates, of_nodes=zone is None)
    if choice.estimate == "integer":
        rounded = rounding_variance(estimates.count)
        estimates = replace(estimates, count=rounded_counts(record, estimates.count))

    _lock(*(getattr(each, name) for each in (estimates, published) for name in _ESTIMATES))
    _lock(shares, rounded)
    return Fit(
        record=record,
        estimates=estimates,
        published_covariance=published,
        rounding_variance=rounded,
        parent_shares=shares,
        zone=zone,
        cache=cache,
    )


def fit_together(records: Iterable[ReleaseRecord]) -> Iterator[Fit]:
    """Fit small records of one post-processing and unit, and yield their fits one by one.

    P1. As `fit`, to the bit.
    """
    # Medians of some records at a time take a third of the time; nothing is kept of records whose
    # fits were taken.
    some: list[ReleaseRecord] = []
    for record in records:
        size = sum(len(each.tree) for each in (*some, record))
        if some and (size > _TOGETHER or record.tree.noise != some[0].tree.noise):
            yield from _fit_some(some)
            some = []
        some.append(record)
    if some:
        yield from _fit_some(some)


def _fit_some(records: Sequence[ReleaseRecord]) -> Iterator[Fit]:
    """Fit records of one noise; see `fit_together`."""
    estimates, first = list(map(fit_least_squares, records)), records[0]
    if first.post_processing.estimate in WITH_PRIOR:
        counts = posterior_counts_together(
            [record.tree for record in records],
            estimates,
            first.scale,
            list(map(_empty_leaves, records)),
            reach=MEDIAN_REACH,
        )
        estimates = [replace(e, count=c) for e, c in zip(estimates, counts, strict=True)]
    for record, unpruned in zip(records, estimates, strict=True):
        yield fit(record, unpruned=unpruned)


def rounded_counts(record: ReleaseRecord, count: Floats) -> Floats:
    """Integers of estimates, (nodes,), of the view ``integer``, by the content of the release."""
    header = record_header(record)
    # As in version 1: a version of other intervals rounds no count another way.
    header |= {"view": {**header["view"], "estimate": "integer"}, "inference": 1}
    if isinstance(record, WindowRecord):
        header["when"] = record.window.numbers.tolist()
    uniform = uniform_of_digest(content_digest(b"psd", header, record.tree))
    return round_counts(record.tree, count, uniform)


def fit_weights(of_records: Fit, number: int) -> tuple[tuple[Fit, Fit], list[Estimates]]:
    """Fit the weights of a value towards both bounds, and least squares of both."""
    record, shares = of_records.record, of_records.parent_shares
    parts = [record.value_part(number, side) for side in (0, 1)]
    name = "count" if record.post_processing.estimate in WITH_PRIOR else "signed"
    # Least squares of both weights know nothing of the records and are moved nowhere.
    found = [_all_estimates(part, shares, None, None) for part in parts]
    plain = [Estimates(**dict(zip(_ESTIMATES, each, strict=True))) for each in found]
    records = replace(of_records.estimates, variance=of_records.published_covariance.variance)
    boxes = record.tree.boxes
    first, last, uneven = share_weights(
        record.tree,
        records,
        getattr(plain[0], name),
        getattr(plain[1], name),
        len(record.values) / 2,
        (boxes[:, :2] + boxes[:, 2:]).T / 2,
    )
    _lock(*(getattr(each, field) for each in (first, last) for field in _ESTIMATES))
    # The dispersion of the first is that of A - p N in parts of cells.
    # Nothing lies along lines of which A - p N would know.
    inside = np.concatenate([np.zeros(2 + PATTERN_SHAPE[0]), uneven])
    _lock(inside)
    made = []
    for part, estimates in zip(parts, (first, last), strict=True):
        each = replace(
            of_records,
            record=part,
            estimates=estimates,
            published_covariance=estimates,
            rounding_variance=None,
            cache=None,
        )
        vars(each).update(inside=inside, line_deviation=None, column_records=None)
        made.append(each)
    return (made[0], made[1]), plain


def _lock(*arrays: object) -> None:
    """Let nobody write to the arrays among some values."""
    for array in arrays:
        if isinstance(array, np.ndarray):
            array.flags.writeable = False


def fit_least_squares(record: ReleaseRecord, peers: Peers | None = None) -> Estimates:
    """Least squares before a prior and pruning; published counts may be the signed ones."""
    return infer_counts(
        record.tree,
        record.scale,
        _empty_leaves(record),
        settled=record.local is None,
        measured=measure_record(record),
        projected=record.post_processing.estimate == "least-squares",
        peers=peers,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class SummandFit(Fit):
    """Fit of a slice in a sum over slices: its least squares are settled by peers in them."""

    alone: Fit  # how records lie in cells, and their published counts, are as in the slice alone

    @classmethod
    def of(cls, alone: Fit, peers: Peers) -> SummandFit:
        """Fit with the estimates that are added up."""
        settled = fit_least_squares(alone.record, peers)
        kept = {each.name: getattr(alone, each.name) for each in fields(Fit)}
        kept |= {"estimates": replace(settled, count=alone.estimates.count), "cache": None}
        return cls(**kept, alone=alone)

    @property
    def inside(self) -> Floats:
        """See `Fit`."""
        return self.alone.inside

    @property
    def line_deviation(self) -> Floats | None:
        """See `Fit`."""
        return self.alone.line_deviation

    @property
    def column_records(self) -> Floats | None:
        """See `Fit`."""
        return self.alone.column_records

    @property
    def density(self) -> Density | None:
        """See `Fit`."""
        return self.alone.density


def peers_of(records: Sequence[ReleaseRecord]) -> Peers:
    """Peers of the cells of all slices of a series, from some of them; see `find_peers`."""
    if records[0].local is not None:  # its cells do not follow from counts
        return {}
    some = records[:: -(-len(records) // _SLICES_OF_PEERS)]
    measured = [(record.tree, measure_record(record)) for record in some]
    for record, (_, counts) in zip(some, measured, strict=True):
        empty = _empty_leaves(record)
        if empty is not None:
            counts.variance[empty] = 0.0
    return find_peers(measured)


def predicts_published(record: ReleaseRecord) -> bool:
    """Whether noise errors are of published counts, which hold empty cells near 0 unless signed."""
    return record.local is None and record.post_processing.estimate != "signed"


def _empty_leaves(record: ReleaseRecord) -> NDArray[np.bool_] | None:
    """Mask of the leaves that no record can lie in; None without boundary and regions."""
    outside = record.outside
    return None if outside is None else outside & record.tree.is_leaf


def _all_estimates(
    record: ReleaseRecord, shares: Floats, cache: FitCache | None, unpruned: Estimates | None
) -> list[Floats]:
    """Estimates of all cells before counts are rounded to integers, as a list of fields."""
    choice = record.post_processing
    estimates = fit_least_squares(record) if unpruned is None else unpruned
    if choice.estimate in WITH_PRIOR and unpruned is None:
        estimates = replace(estimates, count=_medians(record, estimates, None, cache))
    if choice.prune:
        counts = prune_counts(record.tree, estimates, choice.prune, shares)
        estimates = replace(estimates, count=counts)
    return [getattr(estimates, name) for name in _ESTIMATES]


def _medians(
    record: ReleaseRecord, estimates: Estimates, zone: NearZone | None, cache: FitCache | None
) -> Floats:
    """Posterior medians of all counts, or in a zone; the cache keeps those of the first levels."""
    tree, empty = record.tree, _empty_leaves(record)

    def medians(opened: Integers | None = None, top: Floats | None = None) -> Floats:
        return posterior_counts(
            tree,
            estimates,
            record.scale,
            empty,
            reach=MEDIAN_REACH,
            opened=opened,
            top=top,
        )

    if cache is None or len(tree) <= PART_NODES:
        return medians(None if zone is None else zone.opened)
    first = slice(0, int(tree.levels[halfway_level(tree)].stop))
    if zone is None:
        counts = medians()
        recall(cache, ("top",), (first.stop,), lambda: [counts[first]])
        return counts
    # Inner nodes whose children stand in the first levels.
    above = np.unique(tree.parent[1 : first.stop]).astype(np.int64)
    [top] = recall(cache, ("top",), (first.stop,), lambda: [medians(above)[first]])
    return medians(zone.opened, top)


def _inside_cells(fit: Fit) -> Floats:
    """One array (2 + lines + nodes,): error of the density, cluster size, lines, overdispersion."""
    record, estimates, shares = fit.record, fit.estimates, fit.parent_shares
    tree, domain, kind = record.tree, record.domain, record.post_processing.density
    shift = SMOOTH_SHIFT if kind == "smooth" else 0.0
    if kind == "covariate" and record.covariate is not None and not record.boundary:
        # A covariate is judged by what even shares would say of the same divisions.
        even = (
            region_shares(tree, None) if isinstance(tree, RegionTree) else parent_shares(tree, None)
        )
        shift = covariate_error(tree, estimates, shares, even)
    pattern, by_lines = fit_lines(tree, estimates, shares, domain), None
    if np.any(pattern.common):
        # What records along lines explain is no dispersion inside the leaves.
        along = divisions(tree, estimates, shares)
        by_lines = line_squares(tree, along, pattern.common, domain.lattice)
    fitted = fit_dispersion(tree, estimates, shares, by_lines)
    overdispersion = fitted.overdispersion
    if kind == "covariate" and not isinstance(tree, RegionTree):
        overdispersion = np.minimum(SLOPE_OVERDISPERSION * overdispersion, 1.0)
    overdispersion = np.maximum(overdispersion, step_overdispersion(tree, pattern.step, domain))
    return np.concatenate([[shift, fitted.cluster_size], pattern.to_array(), overdispersion])


# --- near boxes -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NearZone:
    """Cells near some boxes."""

    opened: Integers  # (n,) int64; nodes whose children need a count, with all of their ancestors
    # Leaves that have mass around those of the next pass of the smoothing, and a window with their
    # surroundings; empty without a smooth density, and where no leaf is cut.
    passes: tuple[tuple[Integers, RasterWindow], ...]


def _zone_near(record: ReleaseRecord, boxes: Floats, cache: FitCache | None) -> NearZone | None:
    """Cells near boxes, shape (m, 4), in lattice units; None where a fit of all is as fast."""
    tree, choice = record.tree, record.post_processing
    if (
        len(boxes) > _FEW
        or len(tree) < LEAST_NODES
        or choice.estimate == "integer"
        or choice.prune
        or choice.density == "covariate"
        or isinstance(tree, RegionTree)
    ):
        return None
    opened, cut = _cut_cells(tree, boxes)
    passes: list[tuple[Integers, RasterWindow]] = []
    scale, smooth = raster_scale(record.domain.lattice), choice.density == "smooth"
    for _ in range(SMOOTHING_PASSES if smooth and len(cut) else 0):
        # Raster lines around the windows from which the parts of leaves take their density, (n, 4).
        leaves = tree.boxes[cut] * scale
        half = (leaves[:, 2:] - leaves[:, :2]) / 2
        low, high = np.floor(leaves[:, :2] - half), np.ceil(leaves[:, 2:] + half)
        lines: Integers = np.concatenate([low, high], axis=1).astype(np.int64)
        around = np.clip(lines, 0, DENSITY_RASTER)
        inner, cut = _cells_on(tree, scale, around)
        if len(cut) > _LIMIT * len(tree):
            return None
        opened = _distinct(np.concatenate([opened, inner]))
        (west, south), (east, north) = around[:, :2].min(axis=0), around[:, 2:].max(axis=0)
        passes.append((cut, (int(west), int(south), int(east), int(north))))
    if len(opened) > _MANY * len(tree) and cache is not None and cache.has(_ESTIMATES):
        return None
    return NearZone(opened=opened, passes=tuple(reversed(passes)))


def _cut_cells(tree: Tree, boxes: Floats) -> tuple[Integers, Integers]:
    """Inner nodes, and leaves, that boxes meet and do not contain."""
    box, node = np.arange(len(boxes)), np.zeros(len(boxes), np.int64)
    opened, leaves = [node[:0]], [node[:0]]
    while len(box):
        # Level by level, pairs of a box and a node that it may cut.
        cell, query = tree.boxes[node], boxes[box]
        low, high = cell[:, :2], cell[:, 2:]
        # Cells that a box meets are cut if a side of the box lies inside them.
        met = ((low < query[:, 2:]) & (high > query[:, :2])).all(axis=1)
        cut = np.flatnonzero(met & ((query[:, :2] > low) | (query[:, 2:] < high)).any(axis=1))
        box, node = box[cut], node[cut]
        is_leaf = tree.is_leaf[node]
        leaves.append(node[is_leaf])
        opened.append(node[~is_leaf])
        node, owner = children_of(tree, node[~is_leaf])
        box = box[~is_leaf][owner]
    return _distinct(np.concatenate(opened)), _distinct(np.concatenate(leaves))


def _distinct(nodes: Integers) -> Integers:
    """Distinct nodes in ascending order."""
    return nodes[distinct_values(nodes)[0]]


def _cells_on(tree: Tree, scale: Floats, around: Integers) -> tuple[Integers, Integers]:
    """Inner nodes, and leaves, less than a cell of the raster from parts of the raster."""
    sums, (west, south) = _summed_cover(around), around[:, :2].min(axis=0)
    rows, columns = sums.shape[0] - 1, sums.shape[1] - 1
    node, opened, leaves = np.zeros(1, np.int64), [], []
    while len(node):
        cell = tree.boxes[node] * scale
        # Thin strips of leaves are widened to a cell of the raster.
        x0, x1 = (
            np.clip(line - west, 0, columns).astype(np.int64)
            for line in (np.floor(cell[:, 0]) - 1, np.ceil(cell[:, 2]) + 1)
        )
        y0, y1 = (
            np.clip(line - south, 0, rows).astype(np.int64)
            for line in (np.floor(cell[:, 1]) - 1, np.ceil(cell[:, 3]) + 1)
        )
        # Covered raster cells of each widened box, by the corners of the summed cover.
        met = sums[y1, x1] - sums[y0, x1] - sums[y1, x0] + sums[y0, x0] > 0
        node = node[met]
        is_leaf = tree.is_leaf[node]
        leaves.append(node[is_leaf])
        opened.append(node[~is_leaf])
        node, _ = children_of(tree, node[~is_leaf])
    return np.concatenate(opened), np.concatenate(leaves)


def _summed_cover(around: Integers) -> NDArray[np.int32]:
    """Number of covered raster cells south and west of each line of the window of some parts."""
    (west, south), (east, north) = around[:, :2].min(axis=0), around[:, 2:].max(axis=0)
    cover = np.zeros((int(north - south) + 1, int(east - west) + 1), np.int32)
    # Corners of each part with signs: running sums are the number of parts that cover a cell.
    x0, y0, x1, y1 = (around - [west, south, west, south]).T
    for row, column, sign in ((y0, x0, 1), (y0, x1, -1), (y1, x0, -1), (y1, x1, 1)):
        np.add.at(cover, (row, column), np.int32(sign))
    for axis in (0, 1):
        np.cumsum(cover, axis=axis, out=cover)
    # Sums from the south-west corner, with a row and a column of zeros before the first.
    sums = np.zeros_like(cover)
    sums[1:, 1:] = cover[:-1, :-1] > 0
    for axis in (0, 1):
        np.cumsum(sums, axis=axis, out=sums)
    return sums
