"""The fit of a cube: estimates over space and time, and the density of the plane inside its cells.

Post-processing: a function of the release alone, which costs no epsilon.

A cell of the joint layer holds records of several places and slices. Its records are taken to lie
in it as those of all time lie in its box, by the layer of the plane, and evenly in time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from psd._util.arrays import Floats, Integers, sum_by
from psd.estimation.constants import MEDIAN_REACH
from psd.estimation.fit import Fit, fit, fit_least_squares
from psd.estimation.least_squares import Estimates, published_covariance
from psd.estimation.nonuniformity import (
    Dispersion,
    Moments,
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

__all__ = ["CubeFit", "fit_cube"]


@dataclass(frozen=True, kw_only=True, eq=False)
class CubeFit:
    """Estimates of a cube; arrays that cannot be written to."""

    record: CubeRecord
    plane: Fit  # of the plane with all boxes of the joint layer
    estimates: Estimates  # of the joint layer
    published_covariance: Estimates  # with the covariance of its published counts

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
    def shares(self) -> Floats:
        """Share of its parent's records that each node has before counts are known, (n,)."""
        tree, plane = self.tree, self.plane
        above = tree.parent[1:]
        length = tree.lengths.prod(axis=1).astype(np.float64)
        mass = np.maximum(plane.estimates.count, 0.0)[self.nodes] * length
        share, volume = np.ones(len(tree)), tree.volume
        total = sum_by(above, mass[1:], len(tree))[above]
        even = volume[1:] / volume[above]
        share[1:] = np.where(total > 0, mass[1:] / np.where(total > 0, total, 1.0), even)
        share.flags.writeable = False
        return share

    @cached_property
    def dispersion(self) -> Dispersion:
        """Variance of the records in a part of a cell in space."""
        return fit_dispersion(self.tree, self.estimates, self.shares)

    @cached_property
    def time_overdispersion(self) -> Floats:
        """Overdispersion of the records of a cell in time, by node, (n,) float64."""
        tree = self.tree
        parts = [
            family_moments(tree, self.estimates, self.shares, parents)
            for parents in family_batches(tree)
        ]
        moments, levels = join_parts(Moments, parts), len(tree.levels)
        divided = np.flatnonzero(moments.across == 0)  # neither x nor y: time
        level = moments.level[divided]
        excess = moments.excess - self.dispersion.cluster_size * moments.parts * moments.count
        squares = moments.parts * moments.square
        of_levels = (excess[divided], squares[divided], np.ones(len(divided)))
        phi = overdispersion_of_leaves(*(sum_by(level, each, levels) for each in of_levels))
        return np.where(tree.lengths[:, 0] == 1, 0.0, phi[tree.level])


def fit_cube(record: CubeRecord) -> CubeFit:
    """Fit both layers of a cube.

    P1. A function of the record alone: it costs no epsilon.
    """
    plane, joint = _refined(fit(record.plane), record), record.joint
    estimates = fit_least_squares(joint)
    if joint.post_processing.estimate in WITH_PRIOR:
        outside = joint.outside
        empty = None if outside is None else outside & joint.tree.is_leaf
        count = posterior_counts(joint.tree, estimates, joint.scale, empty, reach=MEDIAN_REACH)
        estimates = replace(estimates, count=count)
    published = estimates
    if joint.post_processing.estimate != "signed":
        published = published_covariance(joint.tree, estimates)
    return CubeFit(
        record=record, plane=plane, estimates=estimates, published_covariance=published
    )


def _refined(plane: Fit, record: CubeRecord) -> Fit:
    """The fit of the plane for all boxes of the joint layer.

    Nodes that the plane does not have take of the leaf that they lie in what its density says.
    """
    cells, kept = record.cells, record.kept
    if len(cells) == len(plane.tree):
        return plane
    leaf = np.full(len(cells), -1)  # of the plane, that holds a node
    leaf[kept] = np.arange(len(kept))
    part = np.ones(len(cells))
    for level in cells.levels[1:]:
        added = level.start + np.flatnonzero(leaf[level] < 0)
        leaf[added] = leaf[cells.parent[added]]
    added = np.flatnonzero(np.isin(np.arange(len(cells)), kept, invert=True))
    box, outer = cells.boxes[added].astype(np.float64), plane.tree.boxes[leaf[added]]
    size = (outer[:, 2:] - outer[:, :2]).astype(np.float64)
    low, high = (box[:, :2] - outer[:, :2]) / size, (box[:, 2:] - outer[:, :2]) / size
    part[added] = (high - low).prod(axis=1)
    if plane.density is not None:
        part[added] = plane.density.part(plane.tree, leaf[added], low, high)

    def spread(values: Floats) -> Floats:
        result = values[leaf] * part
        result.flags.writeable = False
        return result

    def refined(estimates: Estimates) -> Estimates:
        variance, slope = estimates.upward_variance[leaf], estimates.slope[leaf]
        variance[added] = 0.0
        above = part[cells.parent[added]]
        slope[added] = np.where(above > 0, part[added] / np.where(above > 0, above, 1.0), 0.0)
        return Estimates(
            signed=spread(estimates.signed),
            count=spread(estimates.count),
            upward=spread(estimates.upward),
            upward_variance=variance,
            slope=slope,
            variance=estimates.variance[leaf] * part**2,
        )

    estimates = refined(plane.estimates)
    published = plane.published_covariance
    made = replace(
        plane,
        record=replace(plane.record, tree=cells),
        estimates=estimates,
        published_covariance=estimates
        if published is plane.estimates
        else refined(published),
        parent_shares=np.where(np.isin(np.arange(len(cells)), kept), plane.parent_shares[leaf], 0),
    )
    inside = plane._inside
    first = len(inside) - len(plane.tree)
    vars(made)["_inside"] = np.concatenate([inside[:first], inside[first:][leaf]])
    return made
