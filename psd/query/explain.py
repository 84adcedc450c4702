"""Where the error of an answer comes from, and what would make it smaller.

Everything is worked out from the release: the cells that a query takes whole and those that it
cuts, and what the same query would be told with more epsilon or with finer cells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd.estimation.model import CountModel
from psd.estimation.nonuniformity import nonuniformity_variance, shift_variance
from psd.privacy.epsilon import MAX_EPSILON, NANO
from psd.query.boxes import as_boxes, box_fraction
from psd.query.polygons import polygon_fraction
from psd.query.totals import Sums, cover_sums
from psd.query.traversal import Cover, Fraction, cover
from psd.release.post_processing import PostProcessing
from psd.space.box_tree import Tree
from psd.space.region_checks import to_release_crs
from psd.space.regions import is_region, regions_table

if TYPE_CHECKING:
    import pandas

__all__ = ["Explanation", "explain", "explanations", "refined"]

# How many times the epsilon that was spent.
_TIMES = (2, 5, 10)

# Half as wide cells leave a quarter of the variance of what a smooth density moves.
_FINER_SHIFT = 0.25

FractionOf = Callable[[CountModel], Fraction]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Explanation:
    """What the error of one answer is made of.

    Parameters
    ----------
    noise_share : float
        Part of the error's variance that the noise causes, 0 to 1; the rest is non-uniformity.
    whole : DataFrame
        ``level, cells, estimate``: cells taken whole, by level.
    cut : DataFrame
        ``west, south, east, north, level, covered, estimate, nonuniformity_error``: leaves that
        are cut, those that matter most first; ``covered`` is the share of their area,
        ``estimate`` the records of the whole leaf.
    remedies : DataFrame
        ``change, perturbation_error, nonuniformity_error, error``: what would be predicted
        instead; the first row is the release as it is.
    """

    noise_share: float
    whole: pandas.DataFrame
    cut: pandas.DataFrame
    remedies: pandas.DataFrame


def explanations(model: CountModel, regions: Any) -> list[Explanation]:
    """One explanation for each region; see `Release.explain`."""
    if is_region(regions):
        shapes = to_release_crs(regions_table(regions, None), model.domain)
        ways: list[FractionOf] = [
            partial(polygon_fraction, shapes=shapes[place : place + 1])
            for place in range(len(shapes))
        ]
    else:
        sides = model.domain.to_lattice(as_boxes(regions)[0])
        ways = [partial(box_fraction, boxes=one[None]) for one in sides]
    return [explain(model, way) for way in ways]


def explain(model: CountModel, fraction_of: FractionOf) -> Explanation:
    """Take the error of one answer apart.

    Parameters
    ----------
    model : CountModel
        What is asked.
    fraction_of : callable
        Gives, for a release, the covered fractions of its cells by the one query.

    Notes
    -----
    More epsilon: the same cells, every count measured with so many times its epsilon; a method
    that looks at the data would choose other, usually finer, cells. Finer cells: each leaf that
    the query cuts is quartered and its epsilon goes to the quarters; points are taken to be as
    uneven in them as in the leaf.
    """
    covered = cover(model.tree, 1, fraction_of(model))
    sums = cover_sums(model, covered)
    noise, uneven = _variances(sums)
    finer = _finer(model, covered, fraction_of)
    changes = {"as it is": (noise, uneven)}
    for times in _TIMES:
        if model.record.epsilon * times <= MAX_EPSILON * NANO:
            scaled = replace(model.tree, epsilon=model.tree.epsilon * times)
            changes[f"{times} times the epsilon"] = (_noise(model, scaled, fraction_of), uneven)
    if finer is not None:
        changes["cells half as wide at its edge"] = finer
    return Explanation(
        noise_share=noise / (noise + uneven) if noise + uneven > 0 else 0.0,
        whole=_whole(model, covered),
        cut=_cut(model, covered),
        remedies=_remedies(changes),
    )


def _variances(sums: Sums) -> tuple[float, float]:
    """Variance of the noise and of non-uniformity of the one answer."""
    return float(sums.perturbation_variance[0]), float(sums.nonuniformity_variance[0])


def _plain(model: CountModel, tree: Tree) -> CountModel:
    """Model of other cells; its counts are not read, its variances are.

    A covariate stays, since cells outside a boundary are empty without being counted.
    """
    record = replace(
        model.record, tree=tree, epsilon=tree.max_path_epsilon, post_processing=PostProcessing()
    )
    return CountModel(record=record)


def _noise(model: CountModel, tree: Tree, fraction_of: FractionOf) -> float:
    """Variance of the noise if the cells were these."""
    plain, weights = _plain(model, tree), fraction_of(model)
    return _variances(cover_sums(plain, cover(tree, 1, weights)))[0]


def _finer(
    model: CountModel, covered: Cover, fraction_of: FractionOf
) -> tuple[float, float] | None:
    """Variances if the cut leaves were quartered; None where none can be."""
    tree, leaves = model.tree, _cut_leaves(covered)[0]
    sides = tree.boxes[leaves, 2:] - tree.boxes[leaves, :2]
    leaves = leaves[(sides >= 2).all(axis=1)]
    if not len(leaves):
        return None
    finer, origin = refined(tree, leaves)
    finer = _uncounted_outside(model, finer)
    plain = _plain(model, finer)
    again = cover(finer, 1, fraction_of(plain))
    noise = _variances(cover_sums(plain, again))[0]
    share = (finer.area / tree.area[origin]).astype(np.float64)
    count = model.estimates.count[origin] * share
    node, fraction, area = _cut_leaves(again)
    spread = model.overdispersion[origin[node]]
    uneven = nonuniformity_variance(count[node], fraction, area, spread).sum()
    shift = shift_variance(cover_sums(model, covered).shift)[0]
    return noise, float(uneven + _FINER_SHIFT * shift)


def _uncounted_outside(model: CountModel, tree: Tree) -> Tree:
    """The same cells, with no epsilon on those outside the boundary."""
    record = model.record
    if not record.boundary or record.covariate is None:
        return tree
    is_empty = record.covariate.mass(tree.boxes) == 0
    return replace(tree, epsilon=np.where(is_empty, 0, tree.epsilon))


def refined(tree: Tree, leaves: Integers) -> tuple[Tree, Integers]:
    """A tree in which some leaves are quartered and hand their epsilon to the quarters.

    Parameters
    ----------
    tree : Tree
        Cells.
    leaves : ndarray, shape (m,), int64
        Leaves of at least two lattice cells a side.

    Returns
    -------
    tree : Tree
        With 4 m more nodes.
    origin : ndarray, shape (n + 4 m,), int64
        Node of the given tree that each node is, or is a quarter of.
    """
    west, south, east, north = tree.boxes[leaves].T
    x, y = (west + east) // 2, (south + north) // 2
    parts = [(west, south, x, y), (x, south, east, y), (west, y, x, north), (x, y, east, north)]
    quarters = np.stack([np.stack(part, axis=1) for part in parts], axis=1).reshape(-1, 4)
    owner = np.repeat(leaves, 4)
    epsilon = tree.epsilon.copy()
    epsilon[leaves] = 0
    level = np.concatenate([tree.level, tree.level[owner] + 1])
    parent = np.concatenate([tree.parent, owner])
    order, rank = _level_order(level, parent)
    origin = np.concatenate([np.arange(len(tree)), owner])[order]
    made = Tree(
        boxes=np.concatenate([tree.boxes, quarters])[order],
        parent=np.where(parent[order] < 0, -1, rank[parent[order]]),
        level=level[order],
        count=np.zeros(len(order), np.int64),
        epsilon=np.concatenate([epsilon, tree.epsilon[owner]])[order],
    )
    return made, origin


def _level_order(level: NDArray[np.int_], parent: NDArray[np.int_]) -> tuple[Integers, Integers]:
    """Nodes level by level, families together and in the order of their parents; and back."""
    rank = np.zeros(len(level), np.int64)
    done: list[Integers] = []
    start = 0
    for depth in range(int(level.max()) + 1):
        here = np.flatnonzero(level == depth)
        here = here[np.argsort(rank[parent[here]], kind="stable")]
        rank[here] = start + np.arange(len(here))
        start += len(here)
        done.append(here)
    return np.concatenate(done), rank


def _cut_leaves(covered: Cover) -> tuple[Integers, Floats, Floats]:
    """Leaves that the query cuts, with the covered shares of their points and of their areas."""
    found = []
    for step in covered.steps:
        cut = ~step.opened & (step.area > 0) & (step.area < 1)
        found.append((step.node[cut], step.fraction[cut], step.area[cut]))
    node, fraction, area = (np.concatenate(part) for part in zip(*found, strict=True))
    return node, fraction, area


def _whole(model: CountModel, covered: Cover) -> pandas.DataFrame:
    """Cells taken whole, by level."""
    import pandas as pd

    node = np.concatenate([step.node[step.area == 1] for step in covered.steps])
    table = pd.DataFrame({"level": model.tree.level[node], "estimate": model.estimates.count[node]})
    by_level = table.groupby("level")["estimate"].agg(cells="size", estimate="sum")
    return by_level.reset_index()


def _cut(model: CountModel, covered: Cover) -> pandas.DataFrame:
    """Leaves that are cut, those that matter most first."""
    import pandas as pd

    node, fraction, area = _cut_leaves(covered)
    count = model.estimates.count[node]
    variance = nonuniformity_variance(count, fraction, area, model.overdispersion[node])
    sides = model.domain.from_lattice(model.tree.boxes[node])
    table = pd.DataFrame(sides, columns=["west", "south", "east", "north"])
    table = table.assign(
        level=model.tree.level[node],
        covered=area,
        estimate=count,
        nonuniformity_error=np.sqrt(variance),
    )
    order = np.argsort(-variance, kind="stable")
    return table.iloc[order].reset_index(drop=True)


def _remedies(changes: dict[str, tuple[float, float]]) -> pandas.DataFrame:
    """Predicted errors by change."""
    import pandas as pd

    noise, uneven = np.sqrt(np.array(list(changes.values()))).T
    return pd.DataFrame(
        {
            "change": list(changes),
            "perturbation_error": noise,
            "nonuniformity_error": uneven,
            "error": np.hypot(noise, uneven),
        }
    )
