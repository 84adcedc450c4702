"""Non-uniformity of points inside a cell, estimated from the noisy counts.

How wrong a uniform leaf is, is seen one level up: the spread of measured parts around their shares,
less the noise. The variance has a term per point, seen in small cells, and one per squared point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, ranges, sum_by
from psd.estimation.constants import (
    CEILING_ERRORS,
    ENOUGH_FAMILIES,
    EXPECTED_CLUSTER_SIZE,
    EXPECTED_OVERDISPERSION,
    FEW_FAMILIES,
    LARGEST_FAMILY,
)
from psd.estimation.least_squares import Estimates
from psd.space.box_tree import Tree

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

# Families worked on together; bounds the memory, not the result.
_PARENTS_PER_BATCH = 2**14


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Divisions:
    """Cells that are divided in two parts along one axis, both of them measured: arrays (n,)."""

    node: Integers  # divided cells
    line: Integers  # lattice line between the parts
    deviation: Floats  # estimated records of the lower part beyond its share
    count: Floats  # estimated records of both parts
    noise: Floats  # variance of the deviation that the noise causes
    share: Floats  # of the records that the lower part has if they lie as they are taken to


def divisions(tree: Tree, estimates: Estimates, share: Floats) -> tuple[Divisions, Divisions]:
    """List the divisions along x, and y; upward estimates, so errors of a level are independent."""
    parts = [_divisions_of(tree, estimates, share, parents) for parents in family_batches(tree)]
    along_x, along_y = zip(*parts, strict=True)
    return join_parts(Divisions, along_x), join_parts(Divisions, along_y)


def family_batches(tree: Tree) -> list[Integers]:
    """Nodes with children, some at a time; at least one batch."""
    parents = np.flatnonzero(~tree.is_leaf)
    starts = range(0, max(len(parents), 1), _PARENTS_PER_BATCH)
    return [parents[start : start + _PARENTS_PER_BATCH] for start in starts]


def join_parts(kind: type[T], parts: Sequence[T]) -> T:
    """Join the arrays of the results of batches; ``kind`` is a dataclass of arrays."""
    names = kind.__dataclass_fields__
    return kind(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def children_of(tree: Tree, parents: Integers) -> tuple[Integers, Integers]:
    """Children of nodes, family by family, and the index of the parent of each."""
    number = tree.children[parents]
    owner = np.repeat(np.arange(len(parents)), number)
    return tree.first_child[parents[owner]] + ranges(np.zeros_like(number), number), owner


def _divisions_of(
    tree: Tree, estimates: Estimates, share: Floats, parents: Integers
) -> list[Divisions]:
    """Divisions of some cells along x, and along y."""
    child, owner = children_of(tree, parents)
    boxes, of_parents, size = tree.boxes[child], tree.boxes[parents], len(parents)
    value, variance, part = estimates.upward[child], estimates.upward_variance[child], share[child]
    # Families with a child that was not measured tell nothing.
    measured = np.isfinite(sum_by(owner, variance, size))
    variance = np.where(np.isfinite(variance), variance, 0.0)
    count, share_sum = sum_by(owner, value, size), sum_by(owner, part, size)
    result = []
    for axis in (0, 1):
        # Children that begin where their parent does are the lower part, the others the upper one.
        is_lower = boxes[:, axis] == of_parents[owner, axis]
        lower, upper = np.flatnonzero(is_lower), np.flatnonzero(~is_lower)
        line = np.zeros(size, np.int64)
        line[owner[lower]] = boxes[lower, axis + 2]
        of_lower = sum_by(owner[lower], part[lower], size)
        of_lower /= np.where(share_sum > 0, share_sum, 1.0)
        # The deviation is (1 - g) L - g U for the counts L and U of the parts.
        noise = (1 - of_lower) ** 2 * sum_by(owner[lower], variance[lower], size)
        noise += of_lower**2 * sum_by(owner[upper], variance[upper], size)
        deviation = sum_by(owner[lower], value[lower], size) - of_lower * count
        divided = (line < of_parents[:, axis + 2]) & measured & (of_lower > 0) & (of_lower < 1)
        result.append(
            Divisions(
                node=parents[divided],
                line=line[divided],
                deviation=deviation[divided],
                count=count[divided],
                noise=noise[divided],
                share=of_lower[divided],
            )
        )
    return result


# Both estimates depend on each other through the weights; they settle in a few rounds.
_ROUNDS = 8


def nonuniformity_variance(
    count: NDArray[np.float64],
    fraction: NDArray[np.float64],
    area: NDArray[np.float64],
    overdispersion: NDArray[np.float64],
    cluster_size: float,
) -> NDArray[np.float64]:
    """Variance n f (1 - f) (c + phi n) of the points in a part of a leaf, (n,), records squared.

    count: negative ones count as none; fraction, area: covered shares of points and area;
    overdispersion phi: 0 for points at random, 1 for all or nothing; cluster_size: c.
    """
    # The compiled walk compiles this for single numbers: arithmetic alone, 0 where both shares are
    # 0 or 1.
    points = np.maximum(count, 0.0)
    return points * fraction * (1 - fraction) * (cluster_size + overdispersion * points)


def cell_ceiling(count: NDArray[np.float64], variance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Records that cells hardly exceed, (n,): counts, not negative, and two standard deviations."""
    return np.maximum(count, 0.0) + CEILING_ERRORS * np.sqrt(variance)


def overdispersion_of_leaves(
    excess: NDArray[np.float64], squares: NDArray[np.float64], families: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Overdispersion inside leaves of each level, (levels,), in [0, 1], from the levels above.

    excess: spread above the noise; squares: its coefficient of phi; families: number of them.
    """
    phi = np.ones(len(excess))
    for depth in range(1, len(phi)):
        above = slice(depth - 1, None, -1)  # sums over the levels just above, one, two, ...
        enough = (families[above].cumsum() >= ENOUGH_FAMILIES) & (squares[above].cumsum() > 0)
        first = depth - 1 - int(enough.argmax()) if enough.any() else 0
        total_squares = squares[first:depth].sum()
        if total_squares > 0:
            phi[depth] = np.clip(excess[first:depth].sum() / total_squares, 0.0, 1.0)
    return phi


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dispersion:
    """Variance n f (1 - f) (c + phi n) of the share f of n points in a leaf."""

    # Variance per point: 1 if they are thrown at random, more in clusters (people at one address).
    cluster_size: float
    # (nodes,) float64; phi: 0 for points thrown at random, 1 for all or nothing.
    overdispersion: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moments:
    """Families whose children are all measured: arrays by family."""

    node: Integers  # the parent
    level: Integers  # of the parent
    excess: Floats  # squared deviations of the children less what noise adds
    count: Floats  # records of the parent
    square: Floats  # squared count, without bias
    parts: Floats  # sum of g (1 - g) over the children
    noise: Floats  # what noise adds to the squared deviations
    freedom: Floats  # degrees of freedom
    across: Integers  # axes along which the parent is divided, bit 0 for x and bit 1 for y


def fit_dispersion(
    tree: Tree, estimates: Estimates, share: Floats, by_lines: Floats | None = None
) -> Dispersion:
    """Estimate the dispersion inside the leaves from families of siblings.

    share: (nodes,) float64, of its parent's records that each node has if they lie as is taken;
    by_lines: (nodes,) float64, what lines explain of S (`psd.estimation.lines.line_squares`).

    Let S be the sum of squared deviations of the children of n records from their shares g, less
    the noise, and G the sum of g (1 - g). Then E S = G n (c + phi n): the cluster size c is one for
    all, by least squares with the inverse variance of S as weight and a normal prior, phi one for
    each level, from the levels just above it (`overdispersion_of_leaves`).
    """
    moments = join_parts(
        Moments,
        [family_moments(tree, estimates, share, parents) for parents in family_batches(tree)],
    )
    # The noise of n draws the cluster size towards 1 where many cells are nearly empty; estimates
    # without this bias were too large for leaves, which have smaller clusters
    # (docs/measured/coverage.md).
    cluster_size = _fit_cluster_size(moments, len(tree.levels))
    # What clusters and lines explain is taken from the squares before the rest is estimated.
    excess = moments.excess - cluster_size * moments.parts * moments.count
    parts, levels = moments.parts, len(tree.levels)
    if by_lines is not None:
        lines = by_lines[moments.node]
        excess = excess - lines * moments.square
        # Lines along the axes explain no diagonals, which are a third of the squares of quarters.
        parts = np.maximum(parts - lines, parts / 3)
    squares = parts * moments.square
    phi = np.zeros(levels)
    # Large cells determine phi, as they determine the errors. A division along x tells nothing
    # about y.
    # Families that are divided along x, then those along y; the larger value holds.
    for axis in (1, 2):
        divided = np.flatnonzero(moments.across & axis)
        level, of_families = moments.level[divided], squares[divided]
        # One city would determine the error of all others.
        # Each family counts for a bounded part of the squares of its level that are counted, or for
        # not much more than the mean of all if there are few. In a few rounds: in the limit, few
        # cells with all records would count no more than the noise of the others.
        size = np.maximum(of_families, 0.0)
        families = np.maximum(np.bincount(level, minlength=levels), 1)
        part, limit = np.maximum(LARGEST_FAMILY, FEW_FAMILIES / families), size
        for _ in range(_ROUNDS // 2):
            limit = (part * sum_by(level, np.minimum(size, limit), levels))[level]
        # A family above the limit counts as one at the limit.
        weight = np.where(size > limit, limit / np.where(size > limit, size, 1.0), 1.0)
        values = (weight * excess[divided], weight * of_families, np.ones(len(level)))
        of_levels = [sum_by(level, value, levels) for value in values]
        phi = np.maximum(phi, overdispersion_of_leaves(*of_levels))
    # All records of a leaf of a single cell of the lattice may be at one point: phi is 1.
    single = (tree.boxes[:, 2:] - tree.boxes[:, :2] == 1).all(axis=1)
    return Dispersion(
        cluster_size=cluster_size, overdispersion=np.where(single, 1.0, phi[tree.level])
    )


def family_moments(tree: Tree, estimates: Estimates, share: Floats, parents: Integers) -> Moments:
    """Moments of some families."""
    child, owner = children_of(tree, parents)
    g, value, variance = share[child], estimates.upward[child], estimates.upward_variance[child]

    size, parts = len(parents), sum_by(owner, g * (1 - g), len(parents))
    count, noise = sum_by(owner, value, size), sum_by(owner, variance, size)
    # Families drop out if a child was not measured or one is expected to have all; 0 for
    # infinities.
    used = np.flatnonzero(np.isfinite(noise) & (parts > 0))
    variance = np.where(np.isfinite(variance), variance, 0.0)
    noise = np.where(np.isfinite(noise), noise, 0.0)
    # The noise e of a child has the variance v, that of its family, E, the variance V. What they
    # add to the squares is that of e - g E: v - 2 g v + g^2 V.
    added = sum_by(owner, variance * (1 - 2 * g), size) + sum_by(owner, g**2, size) * noise
    squares = sum_by(owner, (value - g * count[owner]) ** 2, size)
    # Axes along which the children are narrower than their parent: 1 for x, 2 for y.
    first = tree.boxes[tree.first_child[parents]]
    narrower = (first[:, 2:] - first[:, :2]) < (tree.boxes[parents, 2:] - tree.boxes[parents, :2])
    return Moments(
        node=parents[used],
        level=tree.level[parents[used]].astype(np.int64),
        excess=(squares - added)[used],
        count=count[used],
        square=(count**2 - noise)[used],
        parts=parts[used],
        noise=added[used],
        freedom=np.maximum(tree.children[parents[used]] - 1, 1).astype(np.float64),
        across=(narrower @ np.array([1, 2]))[used],
    )


def _fit_cluster_size(moments: Moments, levels: int) -> float:
    """Variance per point, by weighted least squares with a prior."""
    level = moments.level
    points, squares = moments.parts * moments.count, moments.parts * moments.square
    count, cluster_size = np.maximum(moments.count, 0.0), EXPECTED_CLUSTER_SIZE
    phi = np.full(levels, EXPECTED_OVERDISPERSION)
    enough = np.bincount(level, minlength=levels) >= ENOUGH_FAMILIES
    for _ in range(_ROUNDS):
        variance = moments.noise + moments.parts * count * (cluster_size + phi[level] * count)
        weight = moments.freedom / np.maximum(variance, 1e-150) ** 2
        values = points**2, points * squares, squares**2
        # Normal equations of a cluster size and of one phi for each level.
        a, b, c, by_points, by_squares = (
            sum_by(level, weight * each, levels)
            for each in (*values, points * moments.excess, squares * moments.excess)
        )
        used = enough & (c > 0)
        c = np.where(used, c, 1.0)
        # What is left for the cluster size once every phi is eliminated. A squared deviation of
        # variance v has itself the variance 2 v^2: hence the halves.
        alone = np.where(used, a - b * b / c, 0.0).sum() / 2
        excess = np.where(used, by_points - b * by_squares / c, 0.0).sum() / 2
        phi = np.where(used, np.clip((by_squares - cluster_size * b) / c, 0.0, 1.0), phi)
        # The prior has a standard deviation of its mean; points thrown at random have 1.
        prior = 1 / EXPECTED_CLUSTER_SIZE**2
        mean = (excess + EXPECTED_CLUSTER_SIZE * prior) / (alone + prior)
        cluster_size = max(float(mean), 1.0)
    return cluster_size
