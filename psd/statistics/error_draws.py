"""Plausible true counts of cells: estimates less errors drawn from their joint distribution.

The errors are taken to be normal, with the exact covariance of the noise and the model of uneven
leaves. Random numbers here serve a Monte Carlo sum over a public release, and no privacy.
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
from psd.estimation.least_squares import non_negative
from psd.estimation.nonuniformity import shift_variance

if TYPE_CHECKING:
    from psd.estimation.model import CountModel
    from psd.query.joint import Joint
    from psd.statistics.overlay import Overlay

__all__ = ["cell_draws", "check_draws", "innovations", "node_errors", "redrawn", "region_draws"]


# Numbers drawn together; bounds the memory. The draws depend on it as they do on the seed.
_VALUES_PER_BATCH = 1 << 22

_JITTER = 1e-10


def check_draws(draws: int, seed: int) -> None:
    """Refuse numbers of draws and seeds that are none.

    Raises
    ------
    ParameterError
        Naming the argument.
    """
    from psd._util.fields import integer_between

    integer_between(1, 1_000_000)("draws", draws)
    if type(seed) is not int or seed < 0:
        raise ParameterError(f"seed {seed} is no whole number that is 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Innovations:
    """A tree, or the part of one that some leaves need, and what is drawn for each node.

    Parameters
    ----------
    nodes : ndarray, shape (n,), int64
        Nodes of the release, in its order.
    parent : ndarray, shape (n,), int64
        Place of each node's parent among them.
    slope, deviation : ndarray, shape (n,), float64
        How much of its parent's error a node takes, and the scale of its own innovation.
    levels : tuple of slice
        The nodes of each level.
    """

    nodes: Integers
    parent: Integers
    slope: Floats
    deviation: Floats
    levels: tuple[slice, ...]


def innovations(model: CountModel, leaves: Integers) -> Innovations:
    """What the errors of some leaves are made of: their ancestors, and the siblings of those.

    Parameters
    ----------
    model : CountModel
        Whose leaves they are.
    leaves : ndarray, int64
        Nodes, in any order.
    """
    tree, estimates = model.tree, model.estimates
    above = np.zeros(len(tree), bool)
    above[leaves] = True
    for level in reversed(tree.levels[1:]):
        above[tree.parent[level][above[level]]] = True
    needed = np.ones(len(tree), bool)
    needed[1:] = above[tree.parent[1:]]
    nodes = np.flatnonzero(needed)
    known = np.where(np.isinf(estimates.upward_variance), 0.0, estimates.upward_variance)
    known[0] = estimates.variance[0]
    ends = np.searchsorted(nodes, [level.start for level in tree.levels] + [len(tree)])
    return Innovations(
        nodes=nodes,
        parent=np.searchsorted(nodes, tree.parent[nodes]),
        slope=estimates.slope[nodes],
        deviation=np.sqrt(known[nodes]),
        levels=tuple(slice(int(a), int(b)) for a, b in pairwise(ends) if a < b),
    )


def node_errors(made: Innovations, random: np.random.Generator, draws: int) -> Floats:
    """Errors of the estimates of nodes, drawn jointly.

    Parameters
    ----------
    made : Innovations
        What they are made of.
    random : Generator
        Where the innovations come from.
    draws : int
        Number of draws.

    Returns
    -------
    ndarray, shape (n, draws), float64
        Their covariance is that of the signed estimates.

    Notes
    -----
    From the root down: a child's error is its slope times its parent's, plus its own innovation
    of variance s^2, less its share of its family's innovations.
    """
    errors = random.standard_normal((len(made.nodes), draws))
    errors *= made.deviation[:, None]
    for level in made.levels[1:]:
        parent = made.parent[level]
        starts = np.flatnonzero(np.diff(parent, prepend=-1))
        family = np.cumsum(np.diff(parent, prepend=parent[0]) > 0)
        excess = errors[parent[starts]] - np.add.reduceat(errors[level], starts, axis=0)
        errors[level] += made.slope[level][:, None] * excess[family]
    return errors


def cell_draws(overlay: Overlay, seed: int, draws: int) -> Iterator[Floats]:
    """Plausible true counts of the cells of an overlay, shape (cells, some) at a time."""
    random = np.random.default_rng(seed)
    made = innovations(overlay.model, overlay.node)
    place = np.searchsorted(made.nodes, overlay.node)
    shape = (overlay.cells, len(made.nodes))
    matrix = sparse.csr_array((overlay.share, (overlay.cell, place)), shape=shape)
    uneven = _unevenness(overlay)
    counts = overlay.counts()[:, None]
    step = max(1, _VALUES_PER_BATCH // max(len(place), len(made.nodes)))
    for start in range(0, draws, step):
        some = min(step, draws - start)
        error = matrix @ node_errors(made, random, some)
        yield counts + error + uneven(random, some)


def redrawn(overlay: Overlay, seed: int, draws: int) -> Iterator[Floats]:
    """Counts of the cells of an overlay as they would be published again, shape (cells, some).

    The published counts are taken for the truth, noise is drawn for them, and what comes out is
    made non-negative as in a release; then points are thrown into uneven leaves.
    """
    model, random = overlay.model, np.random.default_rng(seed)
    made = innovations(model, overlay.node)
    shape = (overlay.cells, len(model.tree))
    matrix = sparse.csr_array((overlay.share, (overlay.cell, overlay.node)), shape=shape)
    uneven = _unevenness(overlay)
    step = max(1, _VALUES_PER_BATCH // max(len(overlay.node), len(model.tree)))
    for start in range(0, draws, step):
        some = min(step, draws - start)
        noisy = model.estimates.count[:, None] + node_errors(made, random, some)
        for column in range(some):
            noisy[:, column] = non_negative(model.tree, noisy[:, column], model.estimates.slope)
        yield np.maximum(matrix @ noisy + uneven(random, some), 0.0)


def _unevenness(overlay: Overlay) -> Callable[[np.random.Generator, int], Floats]:
    """Function that draws how unevenly points lie in the leaves, by cell.

    Parts with shares f of one leaf get K (sqrt(f) g - f sum sqrt(f) g), g standard normal, which
    has the covariance K^2 (diag f - f f'), and K^2 f (1 - f) is the variance of a part. Parts
    of the leaf in no cell of the overlay are drawn as one. What a smooth density moved is off by
    one factor everywhere.
    """
    cut = np.flatnonzero((overlay.share < 1) & (overlay.share > 0))
    share = overlay.share[cut]
    leaves, owner = np.unique(overlay.node[cut], return_inverse=True)
    scale = np.sqrt(overlay.part_variance()[cut] / (share * (1 - share)))
    number = np.arange(len(cut))
    root = np.sqrt(share)[:, None]
    by_leaf = sparse.csr_array((root[:, 0], (owner, number)), shape=(len(leaves), len(cut)))
    shape = (overlay.cells, len(cut))
    by_cell = sparse.csr_array((scale, (overlay.cell[cut], number)), shape=shape)
    common = np.sqrt(shift_variance(overlay.shift()))[:, None] * np.sign(overlay.shift())[:, None]
    missing = np.sqrt(np.maximum(1 - sum_by(owner, share, len(leaves)), 0.0))[:, None]

    def drawn(random: np.random.Generator, draws: int) -> Floats:
        normal = random.standard_normal((len(cut), draws))
        leaf = by_leaf @ normal + missing * random.standard_normal((len(leaves), draws))
        result: Floats = by_cell @ (root * normal - share[:, None] * leaf[owner])
        if common.any():
            result += common * random.standard_normal((1, draws))
        return result

    return drawn


def region_draws(joint: Joint, seed: int, draws: int) -> Iterator[Floats]:
    """Plausible true counts of regions, shape (regions, some) at a time."""
    random = np.random.default_rng(seed)
    covariance = joint.covariance
    size = len(covariance)
    slack = _JITTER * max(float(np.diagonal(covariance).max(initial=0.0)), _JITTER)
    factor = np.linalg.cholesky(covariance + slack * np.eye(size))
    counts = joint.answers["estimate"].to_numpy(np.float64)[:, None]
    step = max(1, _VALUES_PER_BATCH // size)
    for start in range(0, draws, step):
        some = min(step, draws - start)
        yield counts + factor @ random.standard_normal((size, some))
