"""Plausible true counts of cells: estimates less errors drawn from their joint distribution.

The errors are taken to be normal, with the covariance of the noise and the model of uneven leaves.
The random numbers serve a Monte Carlo sum over a public release and protect no data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from psd._util.arrays import Floats, Integers, sum_by
from psd.errors import ParameterError
from psd.estimation.least_squares import Estimates, project_non_negative
from psd.space.box_tree import Hierarchy

if TYPE_CHECKING:
    from psd.query.joint import Joint
    from psd.statistics.raster import Overlay

# Numbers drawn together; bounds the memory. The draws depend on it as they do on the seed.
_VALUES_PER_BATCH = 1 << 22

_JITTER = 1e-10


def check_draws(draws: int, seed: int) -> None:
    """Check a number of draws and a seed."""
    from psd._util.declared_parameters import integer_between

    integer_between(1, 1_000_000)("draws", draws)
    if type(seed) is not int or seed < 0:
        raise ParameterError(f"seed must be an integer of at least 0, got {seed}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InnovationTree:
    """A part of a tree with the slope and deviation of each node's innovation."""

    nodes: Integers  # (n,) int64; nodes of the release, in its order
    parent: Integers  # (n,) int64; index of each node's parent among them
    slope: Floats  # (n,) float64; share of its parent's error that a node takes
    deviation: Floats  # (n,) float64; scale of its own innovation
    levels: tuple[slice, ...]  # the nodes of each level


def innovation_tree(tree: Hierarchy, estimates: Estimates, leaves: Integers) -> InnovationTree:
    """Select the nodes that the errors of leaves depend on: ancestors, and siblings of these."""
    # Ancestors of the leaves; then all their children, over which a family's error is divided.
    above = np.zeros(len(tree), bool)
    above[leaves] = True
    for level in reversed(tree.levels[1:]):
        above[tree.parent[level][above[level]]] = True
    needed = np.ones(len(tree), bool)
    needed[1:] = above[tree.parent[1:]]
    nodes = np.flatnonzero(needed)
    variance = np.where(np.isinf(estimates.upward_variance), 0.0, estimates.upward_variance)
    # The root has no parent that explains a part of its error.
    variance[0] = estimates.variance[0]
    # Where each level begins among the chosen nodes, which are still in order.
    ends = np.searchsorted(nodes, [level.start for level in tree.levels] + [len(tree)])
    return InnovationTree(
        nodes=nodes,
        parent=np.searchsorted(nodes, tree.parent[nodes]),
        slope=estimates.slope[nodes],
        deviation=np.sqrt(variance[nodes]),
        levels=tuple(slice(int(a), int(b)) for a, b in pairwise(ends) if a < b),
    )


def draw_node_errors(tree: InnovationTree, random: np.random.Generator, draws: int) -> Floats:
    """Draw the errors of the estimates of nodes jointly, (n, draws) float64.

    P1. They have the covariance of the estimates. From the root down: a child's error is its slope
    times its parent's, plus its own innovation of variance s^2, less its share of its family's.
    """
    errors = random.standard_normal((len(tree.nodes), draws))
    errors *= tree.deviation[:, None]
    for level in tree.levels[1:]:
        parent = tree.parent[level]
        # Children stand family by family, so a family is a run of equal parents.
        starts = np.flatnonzero(np.diff(parent, prepend=-1))
        family = np.cumsum(np.diff(parent, prepend=parent[0]) > 0)
        # The parent's error less the innovations of all of its children, (families, draws).
        excess = errors[parent[starts]] - np.add.reduceat(errors[level], starts, axis=0)
        errors[level] += tree.slope[level][:, None] * excess[family]
    return errors


def draw_cell_counts(overlay: Overlay, seed: int, draws: int) -> Iterator[Floats]:
    """Draw plausible true counts of the cells of an overlay, in batches of shape (cells, n).

    P2. The draws depend only on the release, the overlay, the seed and the number of draws.
    P3. Their errors are normal, with the covariances that errors are predicted from.
    """
    random, fit = np.random.default_rng(seed), overlay.fit
    tree = innovation_tree(fit.tree, fit.noise_covariance, overlay.node)
    # Shares of the drawn nodes in cells, (cells, nodes): they turn errors of nodes into errors of
    # cells.
    index = np.searchsorted(tree.nodes, overlay.node)
    shape = (overlay.cells, len(tree.nodes))
    matrix = sparse.csr_array((overlay.share, (overlay.cell, index)), shape=shape)
    uneven = _nonuniformity_sampler(overlay)
    counts = overlay.counts()[:, None]
    step = max(1, _VALUES_PER_BATCH // max(len(index), len(tree.nodes)))
    for start in range(0, draws, step):
        size = min(step, draws - start)
        error = matrix @ draw_node_errors(tree, random, size)
        yield counts + error + uneven(random, size)


def redraw_cell_counts(overlay: Overlay, seed: int, draws: int) -> Iterator[Floats]:
    """Draw counts of cells as if they were published again, in batches of shape (cells, n).

    P4. The draws depend only on the release, the overlay, the seed and the number of draws.
    P5. No count is negative.
    """
    fit, random = overlay.fit, np.random.default_rng(seed)
    tree = innovation_tree(fit.tree, fit.estimates, overlay.node)
    shape = (overlay.cells, len(fit.tree))
    matrix = sparse.csr_array((overlay.share, (overlay.cell, overlay.node)), shape=shape)
    uneven = _nonuniformity_sampler(overlay)
    step = max(1, _VALUES_PER_BATCH // max(len(overlay.node), len(fit.tree)))
    for start in range(0, draws, step):
        size = min(step, draws - start)
        noisy = fit.estimates.count[:, None] + draw_node_errors(tree, random, size)
        # The noise has the covariance of the signed estimates, since this step takes out what an
        # empty cell cannot lose.
        # Sums are made non-negative one draw at a time.
        for column in range(size):
            noisy[:, column] = project_non_negative(fit.tree, noisy[:, column], fit.estimates.slope)
        yield np.maximum(matrix @ noisy + uneven(random, size), 0.0)


def _nonuniformity_sampler(overlay: Overlay) -> Callable[[np.random.Generator, int], Floats]:
    """Function that draws the errors of cells from uneven leaves.

    P6. The covariance is that of uneven leaves. Parts with shares f of one leaf get K (sqrt(f) g -
    f sum sqrt(f) g), g standard normal, which has the covariance K^2 (diag f - f f'), and K^2 f (1
    - f) is the variance of a part. Parts of the leaf in no cell of the overlay are drawn as one.
    """
    # Parts that divide a leaf; a leaf that lies in one cell as a whole has no such error.
    cut = np.flatnonzero((overlay.share < 1) & (overlay.share > 0))
    share = overlay.share[cut]
    leaves, owner = np.unique(overlay.node[cut], return_inverse=True)
    # K of each part, from its variance K^2 f (1 - f).
    scale = np.sqrt(overlay.part_variance()[cut] / (share * (1 - share)))
    number = np.arange(len(cut))
    root = np.sqrt(share)[:, None]
    # Matrices that sum parts by leaf, (leaves, parts), and scaled parts by cell, (cells, parts).
    by_leaf = sparse.csr_array((root[:, 0], (owner, number)), shape=(len(leaves), len(cut)))
    shape = (overlay.cells, len(cut))
    by_cell = sparse.csr_array((scale, (overlay.cell[cut], number)), shape=shape)
    # Of windows of cubes, whole leaves err too, and each in all cells that have a part of it.
    whole = np.sqrt(overlay.window_variance())
    nodes, at = np.unique(overlay.node, return_inverse=True)
    by_window = sparse.csr_array(
        (overlay.share * whole[overlay.node], (overlay.cell, at)), shape=(overlay.cells, len(nodes))
    )
    common = overlay.shift()[:, None]
    lines = overlay.lines()
    # Root of the share of each leaf that is in no cell: its parts there are drawn as one.
    missing = np.sqrt(np.maximum(1 - sum_by(owner, share, len(leaves)), 0.0))[:, None]

    def drawn(random: np.random.Generator, draws: int) -> Floats:
        normal = random.standard_normal((len(cut), draws))
        leaf = by_leaf @ normal + missing * random.standard_normal((len(leaves), draws))
        result: Floats = by_cell @ (root * normal - share[:, None] * leaf[owner])
        if whole.any():
            result = result + by_window @ random.standard_normal((len(nodes), draws))
        # The records that a smooth density moved have one relative error in common, and those along
        # a line have another.
        if common.any():
            result += common * random.standard_normal((1, draws))
        if lines is not None:
            result += lines @ random.standard_normal((lines.shape[1], draws))
        return result

    return drawn


def draw_region_counts(joint: Joint, seed: int, draws: int) -> Iterator[Floats]:
    """Draw plausible true counts of regions, in batches of shape (regions, n).

    P7. The draws are normal, with the covariance of the answers, and depend only on the answers,
    the seed and the number of draws.
    """
    random = np.random.default_rng(seed)
    covariance = joint.covariance
    size = len(covariance)
    # The covariance may be singular, where regions overlap: a little is added to its diagonal.
    slack = _JITTER * max(float(np.diagonal(covariance).max(initial=0.0)), _JITTER)
    factor = np.linalg.cholesky(covariance + slack * np.eye(size))
    counts = joint.answers["estimate"].to_numpy(np.float64)[:, None]
    step = max(1, _VALUES_PER_BATCH // size)
    for start in range(0, draws, step):
        count = min(step, draws - start)
        yield counts + factor @ random.standard_normal((size, count))
