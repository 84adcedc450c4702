"""The fit of a cube: estimates over space and axes, and the density of the plane in its cells.

Post-processing of the release alone. Records of a cell of the joint layer, which spans several
places, slices and categories, lie in it as all records lie in its box, and evenly in time and among
categories. With a layer of categories, each is a cube over time, with that layer as its plane.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from psd._util.arrays import Floats, Integers, sum_by
from psd.estimation.constants import EXPECTED_OVERDISPERSION, MEDIAN_REACH
from psd.estimation.fit import Fit, fit, fit_least_squares
from psd.estimation.least_squares import (
    Estimates,
    published_covariance,
)
from psd.estimation.nonuniformity import (
    Moments,
    children_of,
    family_batches,
    family_moments,
    fit_dispersion,
    join_parts,
    overdispersion_of_leaves,
)
from psd.estimation.posterior import posterior_counts
from psd.release.cube import CubeRecord
from psd.release.post_processing import WITH_PRIOR
from psd.space.cube_tree import CubeTree
from psd.space.region_tree import RegionTree

__all__ = ["CubeFit", "fit_cube"]

# Part of all records from which a block of slices tells nothing of how others differ.
_MOST_OF_ALL = 0.9

_TINY = 1e-300


@dataclass(frozen=True, kw_only=True, eq=False)
class CubeFit:
    """Estimates of a cube; arrays that cannot be written to."""

    record: CubeRecord
    plane: Fit  # of the plane with all boxes of the joint layer
    # In whose leaves records are uneven: with categories those of the plane alone, as boxes of the
    # other categories do not tell where its records lie.
    own_plane: Fit
    estimates: Estimates  # of the joint layer
    published_covariance: Estimates  # with the covariance of its published counts
    _by_width: dict[tuple[int, ...], Floats] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def parts(self) -> tuple[CubeFit, ...]:
        """The cube of each category, if a layer was divided by them first; answers are sums."""
        return tuple(fit_cube(part, self.plane) for part in self.record.parts)

    @cached_property
    def times(self) -> tuple[Floats, float] | None:
        """Noisy counts of slices of all places, (T,), and their variance; None without a layer."""
        if self.record.times is None:
            return None
        tree = self.record.times.tree
        assert isinstance(tree, CubeTree)  # `CubeRecord` checks it
        leaf = np.flatnonzero(tree.is_leaf)
        leaf = leaf[np.argsort(tree.spans[leaf, 0])]
        counts: Floats = tree.count[leaf].astype(np.float64)
        return counts, float(tree.noise_variance()[leaf[0]])

    @property
    def labels(self) -> int:
        """Number of categories; 1 without them."""
        return 1 if self.record.category is None else self.record.category.size

    def labels_of(self, nodes: Integers) -> Integers:
        """Category of joint nodes, the middle one if they have several; 0 without categories."""
        if self.record.category is None:
            return np.zeros(len(nodes), np.int64)
        middle: Integers = self.tree.spans[nodes, -2:].sum(axis=1, dtype=np.int64) // 2
        return middle

    @property
    def tree(self) -> CubeTree:
        """Nodes of the joint layer."""
        tree = self.record.joint.tree
        assert isinstance(tree, CubeTree)  # `CubeRecord` checks it
        return tree

    @property
    def nodes(self) -> Integers:
        """Node of the plane that has the box of each node of the joint layer, (n,) int64."""
        return self.record.nodes

    @cached_property
    def ground(self) -> Floats:
        """Area of the nodes of the plane where records can lie, (cells,) float64."""
        cells, outside = self.record.cells, self.plane.record.outside
        if isinstance(cells, RegionTree):
            return cells.clipped_area
        ground = cells.area.astype(np.float64)
        if outside is not None:
            ground[outside | ~cells.is_leaf] = 0.0
            for level in reversed(cells.levels[1:]):
                np.add.at(ground, cells.parent[level], ground[level])
        ground.flags.writeable = False
        return ground

    @cached_property
    def shares(self) -> Floats:
        """Share of its parent's records that each joint node has before counts are known, (n,)."""
        tree, above = self.tree, self.tree.parent[1:]
        mass: Floats = np.maximum(self.plane.estimates.count, 0.0)[self.nodes]
        mass = mass * tree.lengths.prod(axis=1)
        share, volume = np.ones(len(tree)), tree.volume
        total = sum_by(above, mass[1:], len(tree))[above]
        even = volume[1:] / volume[above]
        share[1:] = np.where(total > 0, mass[1:] / np.where(total > 0, total, 1.0), even)
        share.flags.writeable = False
        return share

    @cached_property
    def cluster_size(self) -> float:
        """Variance per record of the records in a part of a cell."""
        return fit_dispersion(self.tree, self.estimates, self.shares).cluster_size

    @property
    def time_overdispersion(self) -> Floats:
        """Overdispersion in time and categories that joint nodes have beyond the common one, (n,).

        0 of a single slice of a single category.
        """
        return self._in_time[0]

    @property
    def common_overdispersion(self) -> Floats:
        """Overdispersion in time and categories that all places have in common, (n,).

        Places have their hours alike, and days theirs, so deviations of this kind add up.
        """
        return self._in_time[1]

    @cached_property
    def _in_time(self) -> tuple[Floats, Floats]:
        """Both kinds of overdispersion, (nodes,), learnt from families that divide no place."""
        tree, levels, parts = self.tree, len(self.tree.levels), []
        for parents in family_batches(tree):
            divides_place = self.nodes[tree.first_child[parents]] != self.nodes[parents]
            alone = parents[~divides_place]
            parts.append(family_moments(tree, self.estimates, self.shares, alone))
        moments = join_parts(Moments, parts)
        excess = moments.excess - self.cluster_size * moments.parts * moments.count
        values = (excess, moments.parts * moments.square, np.ones(len(excess)))
        phi = overdispersion_of_leaves(*(sum_by(moments.level, each, levels) for each in values))

        # A family of c records errs by e from the division that is expected. Over pairs of families
        # that divide one span in two places, the mean of e e' over that of c c' is what places have
        # in common; noise adds nothing to it, as that of two places is independent.
        # Families of one span by the spans of their children, of which there are up to four.
        child, owner = children_of(tree, moments.node)
        rank = child - tree.first_child[moments.node[owner]]
        spans = tree.spans[moments.node], tree.spans[tree.first_child[moments.node]]
        keys = np.column_stack([moments.level, *spans])
        every, block = np.unique(keys, axis=0, return_inverse=True)
        block, size = block.ravel(), len(every)
        error = self.estimates.upward[child] - self.shares[child] * moments.count[owner]
        places = np.bincount(block, minlength=size)
        pairs = _pair_sums(4 * block[owner] + rank, error, 4 * size).reshape(-1, 4).sum(axis=1)
        records = _pair_sums(block, moments.count, size)
        divided = sum_by(block, moments.parts, size) / places
        values = (pairs, divided * records, np.where(places > 1, 1.0, 0.0))
        sums = [sum_by(every[:, 0], each, levels) for each in values]
        tells = np.cumsum(sums[1]) - sums[1] > 0
        # Where no span above is divided in two places, all is in common: a family is the whole
        # domain.
        common = np.where(tells, overdispersion_of_leaves(*sums), phi)
        several = np.where((tree.lengths > 1).any(axis=1), 1.0, 0.0)
        own = np.maximum(phi - common, 0.0)
        if self.times is not None:
            # What is in common is corrected then. Of what each place has of its own nothing tells:
            # half as much is taken, beside all of the other.
            own = np.where(tells, own, phi / 2)
        return several * own[tree.level], several * common[tree.level]

    @cached_property
    def profiles(self) -> tuple[Floats, ...]:
        """Estimated records of each cell of each axis, (cells,) float64, not negative."""
        tree, found = self.tree, []
        leaf = np.flatnonzero(tree.is_leaf)
        count = np.maximum(self.estimates.count[leaf], 0.0)
        for axis, size in enumerate(self.record.sizes):
            rate, ends = count / tree.lengths[leaf, axis], (2 * axis, 2 * axis + 1)
            first, stop = (sum_by(tree.spans[leaf, end], rate, size + 1) for end in ends)
            found.append(np.maximum(np.cumsum(first - stop)[:-1], 0.0))
        return tuple(found)

    def overdispersions(self, widths: Integers, nodes: Integers, labels: Integers) -> Floats:
        """Overdispersion of plane nodes in windows of some numbers of cells, (n,) float64.

        widths: (n, A), of each axis, rounded to powers of two, for which it is computed once; of
        categories, each of `labels` has its own.
        """
        power = 2 ** np.rint(np.log2(widths)).astype(np.int64)
        if self.record.category is not None:
            power[:, -1] = 1
        result = np.empty(len(nodes))
        every, of_each = np.unique(power, axis=0, return_inverse=True)
        for number, width in enumerate(map(tuple, every.tolist())):
            at = np.flatnonzero(of_each.ravel() == number)
            if width not in self._by_width:
                self._by_width[width] = self._overdispersion(width)
            result[at] = self._by_width[width][self.plane.tree.level[nodes[at]], labels[at]]
        return result

    def _overdispersion(self, width: tuple[int, ...]) -> Floats:
        """How far records of windows lie from where those of all time do, (levels, labels)."""
        sizes = tuple((size - 1) // w + 1 for size, w in zip(self.record.sizes, width, strict=True))
        of_block = np.ones(1)  # as if axes were independent
        for profile, w, number in zip(self.profiles, width, sizes, strict=True):
            of_axis = sum_by(np.arange(len(profile)) // w, profile, number)
            of_block = np.outer(of_block, of_axis).ravel()
        tells = of_block < _MOST_OF_ALL * of_block.sum()
        if not tells.any() and max(width) > 1:
            return self._overdispersion(tuple(max(each // 2, 1) for each in width))
        # Learnt from families that divide space, added over blocks of slices and categories: what a
        # place has too much in one it has in the next ones too, so a sum over slices errs by more
        # than independent errors do.
        place, above, spans, value, variance = self._families
        plane, first, stop = self.plane.tree, spans[:, 0::2], spans[:, 1::2]
        each_axis = (first + stop) // 2 // width
        longer = np.maximum((stop - first) / np.array(width), 1.0).prod(axis=1)
        block, blocks = np.ravel_multi_index(tuple(each_axis.T), sizes), int(np.prod(sizes))
        # Records of each node of the plane, and of its family, in each block.
        keys, at = np.unique(place * blocks + block, return_inverse=True)
        value, variance = (sum_by(at, each, len(keys)) for each in (value, variance))
        child, when = np.divmod(keys, blocks)
        up = np.zeros(len(plane), np.int64)
        up[place] = above
        families, owner = np.unique(up[child] * blocks + when, return_inverse=True)
        size, mass = len(families), np.maximum(self.plane.estimates.count, 0.0)[child]
        of_plane = self.plane.noise_covariance.upward_variance[child]
        of_plane = np.where(np.isfinite(of_plane), of_plane, 0.0)
        total, count, noise, wrong = (
            sum_by(owner, each, size) for each in (mass, value, variance, of_plane)
        )
        share = mass / np.maximum(total[owner], _TINY)
        squares = sum_by(owner, (value - share * count[owner]) ** 2, size)
        both = sum_by(owner, share**2, size)
        added = sum_by(owner, variance * (1 - 2 * share), size) + both * noise
        wrong = sum_by(owner, of_plane * (1 - 2 * share), size) + both * wrong
        # As in `fit_dispersion`, noise is taken off, here also that of the shares, which are of the
        # plane.
        square, parts = count**2 - noise, sum_by(owner, share * (1 - share), size)
        added += square * wrong / np.maximum(total, 1.0) ** 2
        added += self.cluster_size * parts * np.maximum(count, 0.0)
        # What a block deviates from all time is the less, the more of all records it has.
        apart = (1 - np.clip(count / np.maximum(total, 1.0), 0.0, 1.0)) ** 2
        # A family of L times as many slices as the window is less uneven: by nothing if its slices
        # are alike, by 1 / L of the variance if they are independent. The geometric mean, 1 /
        # sqrt(L), is taken.
        growth = np.ones(size)
        np.maximum.at(growth, owner[at], np.sqrt(longer))
        used = np.flatnonzero((total > 0) & (parts > 0) & tells[families % blocks])
        level = plane.level[families // blocks].astype(np.int64)[used]
        # A squared deviation by noise of the variance v has itself the variance 2 v^2.
        values = (
            growth * apart * (squares - added),
            apart**2 * parts * square,
            2 * (growth * apart * added) ** 2,
        )
        depths, labels = len(plane.levels), self.labels
        found = (sum_by(level, each[used], depths)[:, None] for each in values)
        least, steps = np.array([EXPECTED_OVERDISPERSION]), np.zeros(depths)
        phi = _overdispersion_of_levels(least, steps, *found)
        if labels == 1 or depths == 1:
            return np.repeat(phi, labels, axis=1)
        # A category is as all of them are, unless its own families tell.
        least, steps[2:] = phi[1:2, 0], np.diff(phi[1:, 0])
        key = level * labels + (families % blocks % labels)[used]
        found = (sum_by(key, each[used], depths * labels).reshape(-1, labels) for each in values)
        return _overdispersion_of_levels(np.broadcast_to(least, labels), steps, *found)

    @cached_property
    def _families(self) -> tuple[Integers, Integers, Integers, Floats, Floats]:
        """Children of joint nodes that divide space, where all are measured.

        Plane node of each child, and of its parent; spans; records by its own subtree, and their
        variance; (n,) each, the spans (n, 2 A).
        """
        tree, estimates = self.tree, self.estimates
        parents = np.flatnonzero(~tree.is_leaf)
        child, owner = children_of(tree, parents)
        above, variance = self.nodes[parents[owner]], estimates.upward_variance[child]
        divides = np.bincount(owner, self.nodes[child] != above, len(parents)) > 1
        used = (divides & np.isfinite(sum_by(owner, variance, len(parents))))[owner]
        child = child[used]
        spans = tree.window_spans[child].astype(np.int64)
        return self.nodes[child], above[used], spans, estimates.upward[child], variance[used]


def _pair_sums(group: Integers, values: Floats, groups: int) -> Floats:
    """Sums of the products of all pairs of two values of each group, both ways round, (groups,)."""
    pairs: Floats = sum_by(group, values, groups) ** 2 - sum_by(group, values**2, groups)
    return pairs


def _overdispersion_of_levels(
    first: Floats, steps: Floats, excess: Floats, of_squares: Floats, noise: Floats
) -> Floats:
    """Overdispersion of the boxes of each level by the families above, (levels, labels) float64.

    first: (labels,), of the highest boxes if no family tells; steps: (levels,), how much more a
    level has than that above; the others: (levels, labels), sums over families.
    """
    phi = np.ones(excess.shape)
    mean, doubt, least = first, np.zeros(1), np.zeros(1)
    for depth in range(1, len(phi)):
        # As above, give or take as much again, unless the families of the level tell.
        mean = np.clip(mean + steps[depth], 0.0, 1.0)
        doubt = doubt + mean**2
        tells = of_squares[depth - 1] > 0
        whole = np.where(tells, of_squares[depth - 1], 1.0)
        gain = np.where(tells, doubt / np.maximum(doubt + noise[depth - 1] / whole**2, _TINY), 0.0)
        mean = mean + gain * (excess[depth - 1] / whole - mean)
        mean, doubt = np.clip(mean, 0.0, 1.0), (1 - gain) * doubt
        # Smaller boxes are not less uneven; few blocks may tell, those with few records.
        least = np.maximum(least, np.where(gain > 1 / 2, mean, 0.0))
        phi[depth] = np.maximum(mean, least)
    if len(phi) > 1:
        # No family is above the highest box. Those that divide it are of other blocks, which have
        # more records: the geometric mean of theirs and of all or nothing, 1, is taken.
        phi[0] = np.sqrt(phi[1])
    return phi


def fit_cube(record: CubeRecord, whole: Fit | None = None) -> CubeFit:
    """Fit the layers of a cube.

    whole: of a part of a cube, the fit of the plane of the whole, whose cells it has.

    P1. A function of the record alone: it costs no epsilon.
    """
    own, joint = fit(record.plane), record.joint
    plane = _refined(own, record, whole)
    is_own = record.is_part or record.category is not None
    planes = {"plane": plane, "own_plane": own if is_own else plane}
    estimates, choice = fit_least_squares(joint), joint.post_processing.estimate
    if record.labels is not None:  # its parts are asked
        return CubeFit(record=record, **planes, estimates=estimates, published_covariance=estimates)
    if choice in WITH_PRIOR:
        outside = joint.outside
        empty = None if outside is None else outside & joint.tree.is_leaf
        count = posterior_counts(joint.tree, estimates, joint.scale, empty, reach=MEDIAN_REACH)
        estimates = replace(estimates, count=count)
    published = estimates if choice == "signed" else published_covariance(joint.tree, estimates)
    return CubeFit(record=record, **planes, estimates=estimates, published_covariance=published)


def _refined(plane: Fit, record: CubeRecord, whole: Fit | None) -> Fit:
    """The fit of the plane for all boxes of the joint layer."""
    # Nodes that the plane does not have take of the leaf that they lie in what its density says,
    # and in the plane of a category what all records say, as far as these are more than noise.
    cells, kept = record.cells, record.kept
    if len(cells) == len(plane.tree) and (kept == np.arange(len(kept))).all():
        return plane
    source = np.full(len(cells), -1)  # node of the plane that a node is, or lies in
    source[kept] = np.arange(len(kept))
    # Nodes of the plane that are one cell may be one node, and the other way round.
    highest = np.arange(len(kept))
    for node in 1 + np.flatnonzero(kept[1:] == kept[plane.tree.parent[1:]]):
        highest[node] = highest[plane.tree.parent[node]]
    for level in reversed(cells.levels):
        single = level.start + np.flatnonzero((cells.children[level] == 1) & (source[level] < 0))
        source[single] = source[cells.first_child[single]]
    added = np.flatnonzero(source < 0)
    for level in cells.levels[1:]:
        new = level.start + np.flatnonzero(source[level] < 0)
        source[new] = source[cells.parent[new]]
    box, outer = cells.boxes[added].astype(np.float64), plane.tree.boxes[source[added]]
    size = (outer[:, 2:] - outer[:, :2]).astype(np.float64)
    low, high = (box[:, :2] - outer[:, :2]) / size, (box[:, 2:] - outer[:, :2]) / size
    part = np.ones(len(cells))  # of the records of the source
    part[added] = (high - low).prod(axis=1)
    if plane.density is not None:
        part[added] = plane.density.part(plane.tree, source[added], low, high)
    if whole is not None:
        mass, leaf = np.maximum(whole.estimates.count, 0.0), kept[source[added]]
        weight = mass[leaf] ** 2 + whole.noise_covariance.variance[leaf]
        weight = mass[leaf] ** 2 / np.maximum(weight, _TINY)
        inside = mass[added] / np.maximum(mass[leaf], _TINY)
        part[added] += weight * (inside - part[added])
    top, again = highest[source], 1 + np.flatnonzero(source[1:] == source[cells.parent[1:]])
    again = again[cells.children[cells.parent[again]] == 1]  # the cell of its parent
    above = part[cells.parent[added]]
    slopes = np.where(above > 0, part[added] / np.where(above > 0, above, 1.0), 0.0)

    def refined(estimates: Estimates) -> Estimates:
        variance, slope = estimates.upward_variance[top], estimates.slope[top]
        slope[again] = 1.0
        variance[added], slope[added] = 0.0, slopes  # exactly a share of the source
        return Estimates(
            signed=estimates.signed[source] * part,
            count=estimates.count[source] * part,
            upward=estimates.upward[source] * part,
            upward_variance=variance,
            slope=slope,
            variance=estimates.variance[source] * part**2,
        )

    estimates, published = refined(plane.estimates), plane.published_covariance
    shares = plane.parent_shares[source]
    shares[added] = slopes
    made = replace(
        plane,
        record=replace(plane.record, tree=cells),
        estimates=estimates,
        published_covariance=estimates if published is plane.estimates else refined(published),
        parent_shares=shares,
    )
    # How records lie inside the cells that are added is as in the leaf that they lie in.
    inside, of_nodes = np.split(plane.inside, [len(plane.inside) - len(plane.tree)])
    vars(made)["inside"] = np.concatenate([inside, of_nodes[source]])
    return made
