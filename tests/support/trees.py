"""Random trees, and the dense algebra that the fast code is compared with."""

from collections import deque
from itertools import pairwise

import numpy as np

import psd
from psd.privacy.unit import PrivacyUnit
from psd.space.box_tree import Tree
from support.noise import noise_variance
from support.releases import release_from

METRES = "EPSG:3857"

# Which nodes of a random tree are measured.
KINDS = {
    "every leaf measured": {},
    "leaves alone": {"unmeasured": 1.0},
    "one unmeasured leaf in some families": {"unmeasured": 0.2, "unknown_leaf": 0.5},
}


def domain_of(lattice, crs=METRES):
    """A domain whose coordinates are lattice lines."""
    return psd.Domain(bounds=(0, 0, *lattice), crs=crs, lattice=lattice)


def parts_of(rng, box, fanout):
    """Up to `fanout` boxes that tile a box: itself, strips along one side, or four quarters."""
    x0, y0, x1, y1 = box
    if fanout == 4 and min(x1 - x0, y1 - y0) > 1:
        x, y = rng.integers(x0 + 1, x1), rng.integers(y0 + 1, y1)
        return [(x0, y0, x, y), (x, y0, x1, y), (x0, y, x, y1), (x, y, x1, y1)]
    axis = 0 if x1 - x0 >= y1 - y0 else 1
    low, high = box[axis], box[axis + 2]
    inner = rng.permutation(np.arange(low + 1, high))[: fanout - 1]
    lines = [low, *sorted(inner), high]
    strips = []
    for a, b in pairwise(lines):
        strip = list(box)
        strip[axis], strip[axis + 2] = a, b
        strips.append(tuple(strip))
    return strips


def random_boxes(rng, lattice, height, leaf_share):
    """Boxes, parents and levels of a random tree with one to four children per node."""
    boxes, parent, level = [(0, 0, *lattice)], [-1], [0]
    waiting = deque([0])
    while waiting:
        node = waiting.popleft()
        stops = node > 0 and rng.random() < leaf_share
        if level[node] == height or stops:
            continue
        for part in parts_of(rng, boxes[node], int(rng.integers(1, 5))):
            waiting.append(len(boxes))
            boxes.append(part)
            parent.append(node)
            level.append(level[node] + 1)
    return np.array(boxes), np.array(parent), np.array(level)


def random_tree(
    rng, *, lattice=(64, 64), height=3, leaf_share=0.3, unmeasured=0.4, unknown_leaf=0.0, top=200
):
    """Tree with random counts and epsilons.

    A share `unmeasured` of the inner nodes, the root included, has no count. With probability
    `unknown_leaf`, a family whose parent is measured has one leaf without a count.
    """
    boxes, parent, level = random_boxes(rng, lattice, height, leaf_share)
    inner = np.isin(np.arange(len(parent)), parent)
    epsilon = rng.integers(50_000_000, 2_000_000_000, len(parent))
    epsilon[inner & (rng.random(len(parent)) < unmeasured)] = 0
    for node in np.flatnonzero(inner & (epsilon > 0)):
        leaves = np.flatnonzero((parent == node) & ~inner)
        if len(leaves) and rng.random() < unknown_leaf:
            epsilon[rng.choice(leaves)] = 0
    count = np.where(epsilon > 0, rng.integers(-20, top, len(parent)), 0)
    return Tree(boxes=boxes, parent=parent, level=level, count=count, loss=epsilon)


def release_of(tree, *, contributions=1, crs=METRES):
    """Release of a tree over the domain whose coordinates are its lattice lines."""
    return release_from(
        tree=tree,
        domain=domain_of(tuple(int(n) for n in tree.boxes[0, 2:]), crs),
        epsilon=tree.max_path_loss,
        method="test",
        unit=PrivacyUnit(kind="user", max_contributions=contributions)
        if contributions > 1
        else PrivacyUnit(),
    )


def leaf_matrix(tree):
    """Which leaves lie under each node, shape (nodes, leaves)."""
    under = np.zeros((len(tree), int(tree.is_leaf.sum())))
    under[np.flatnonzero(tree.is_leaf), np.arange(under.shape[1])] = 1
    for node in range(len(tree) - 1, 0, -1):
        under[tree.parent[node]] += under[node]
    return under


def dense_least_squares(tree, contributions=1):
    """Estimates of all leaves and their covariance, by an orthogonal factorisation."""
    measured = tree.loss > 0
    deviation = np.sqrt(noise_variance(tree.loss[measured], contributions))
    q, r = np.linalg.qr(leaf_matrix(tree)[measured] / deviation[:, None])
    inverse = np.linalg.inv(r)
    return inverse @ (q.T @ (tree.count[measured] / deviation)), inverse @ inverse.T


def published_noise(release):
    """Covariance of the published counts of all nodes, family by family from the root down."""
    tree, estimates = release.tree, release.index.fit.estimates
    covariance = np.zeros((len(tree), len(tree)))
    covariance[0, 0] = estimates.variance[0]
    for node in np.flatnonzero(~tree.is_leaf):
        kids = np.flatnonzero(tree.parent == node)
        unknown = np.isinf(estimates.upward_variance[kids])
        full = np.where(unknown, 0.0, estimates.upward_variance[kids])
        level = np.abs(estimates.count[kids]) / np.sqrt(np.where(unknown, 1.0, full))
        variance = full * (0.1 + 0.9 * np.minimum(level, 1) ** 2)
        # An unmeasured child is its parent less its siblings; the others share what is left over.
        slope = unknown.astype(float) if unknown.any() else variance / variance.sum()
        residual = np.eye(len(kids)) - slope[:, None]
        covariance[kids] = slope[:, None] * covariance[node]
        covariance[:, kids] = covariance[kids].T
        own = residual @ np.diag(variance) @ residual.T
        covariance[np.ix_(kids, kids)] = own + np.outer(slope, slope) * covariance[node, node]
    return covariance


def leaf_fractions(tree, box):
    """Covered fraction of every leaf by one box in lattice units."""
    leaves = tree.boxes[tree.is_leaf].astype(float)
    low, high = np.maximum(leaves[:, :2], box[:2]), np.minimum(leaves[:, 2:], box[2:])
    sides = leaves[:, 2:] - leaves[:, :2]
    return np.prod(np.maximum(high - low, 0) / sides, axis=1)


def naive_line_errors(release, box):
    """Deviations of one box in lattice units by records along its sides, by axis and position."""
    leaf = release.tree.is_leaf
    cells = release.tree.boxes[leaf].astype(float)
    deviation = release.index.fit.line_deviation[:, leaf]
    errors = {}
    for side, position in enumerate(box):
        axis = side % 2
        size = cells[:, axis + 2] - cells[:, axis]
        share = np.clip((position - cells[:, axis]) / size, 0, 1)
        other = 1 - axis
        begin = np.maximum(cells[:, other], box[other])
        end = np.minimum(cells[:, other + 2], box[other + 2])
        along = np.clip(end - begin, 0, None) / (cells[:, other + 2] - cells[:, other])
        cut = deviation[axis] * np.sqrt(share * (1 - share))
        if release.index.fit.column_records is not None:
            # The distance to the nearest line; only leaves that the side is inside of are cut.
            place = np.where((share > 0) & (share < 1), abs(position - np.rint(position)), 0.0)
            count = np.maximum(release.index.fit.estimates.count[leaf], 0)
            cut = np.sqrt(cut**2 + (count / size * place) ** 2)
        error = (cut * along).sum()
        errors[axis, position] = -error if side < 2 else error
    return errors


def naive_line_variance(release, box):
    """Variance of one box in lattice units by records along its sides."""
    return sum(error**2 for error in naive_line_errors(release, box).values())


def random_queries(rng, lattice, n, *, snap=0.5):
    """Boxes inside the lattice; a share `snap` of the edges are lattice lines."""
    corners = np.sort(rng.random((n, 2, 2)), axis=1) * np.asarray(lattice)
    corners = np.where(rng.random(corners.shape) < snap, np.rint(corners), corners)
    boxes = corners.reshape(n, 4)
    good = (boxes[:, 0] < boxes[:, 2]) & (boxes[:, 1] < boxes[:, 3])
    return boxes[good]


def grid_release(counts, epsilon=1.0, crs="EPSG:3857"):
    """Release of a square grid of noisy counts, given from the south row up."""
    counts = np.asarray(counts)
    side = len(counts)
    domain = domain_of((side, side), crs)
    return psd.Release.from_counts(
        psd.decompositions.grid_tree(domain, side), counts, epsilon, domain=domain
    )


# Counts of a square grid of 3 x 3, from the south row up.
EQUATOR_SCALE = 1 - 0.00669437999014
"""Square metres of ground per unit of Web Mercator at the equator: one less es of WGS 84."""

SOUTH_UP = np.array([[10, 20, 30], [40, 50, 60], [70, 80, 90]])
