"""Sources of the error of an answer and what would make it smaller, from the release alone."""

from __future__ import annotations

import fractions
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd.accounting import rho_of
from psd.errors import ParameterError
from psd.estimation.cube import CubeFit
from psd.estimation.fit import Fit, fit_least_squares, predicts_published
from psd.estimation.least_squares import published_covariance
from psd.estimation.nonuniformity import nonuniformity_variance
from psd.privacy.loss import MAX_EPSILON, NANO
from psd.query.areas import Areas, BoxAreas, PolygonAreas
from psd.query.box_parts import box_fraction
from psd.query.constants import FINER_SHIFT
from psd.query.cubes import (
    CubeBatch,
    Windows,
    cube_batches,
    cubes_asked,
    is_of_plane,
    totals_of_cube,
)
from psd.query.lines import Sides
from psd.query.polygons import outline_sides, polygon_fraction
from psd.query.totals import QueryTotals, query_totals
from psd.query.traversal import Fraction, Traversal, perturbation_variance, traverse
from psd.release.post_processing import PostProcessing
from psd.release.record import ReleaseRecord
from psd.space.box_tree import Tree
from psd.space.region_tree import RegionTree

if TYPE_CHECKING:
    import pandas

_TINY = 1e-300

_EVEN_IN_TIME = "even in time inside cells"

# Factors of the epsilon that was spent.
_TIMES = (2, 5, 10)

FractionOf = Callable[[Fit], Fraction]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Explanation:
    """Sources of the error of an answer.

    Parameters
    ----------
    noise_share : float
        Part of the error's variance that the noise causes, 0 to 1; the rest is non-uniformity.
    inside : DataFrame
        ``level, cells, estimate``: cells inside the query, by level.
    cut : DataFrame
        ``west, south, east, north, level, covered, estimate, nonuniformity_error``: leaves that
        are cut, largest variance first; ``covered`` is the share of their area,
        ``estimate`` the records of the leaf.
    remedies : DataFrame
        ``change, perturbation_error, nonuniformity_error, error``: what would be predicted
        instead; the first row is the release as it is.
    """

    noise_share: float
    inside: pandas.DataFrame
    cut: pandas.DataFrame
    remedies: pandas.DataFrame


def explain_windows(fit: CubeFit, areas: Areas, windows: Windows) -> list[Explanation]:
    """One explanation for each area in each window of a cube, windows one after another.

    ``inside`` has cells of the joint layer, ``cut`` its leaves in part, with ``in_window``, the
    share of cells in the window; ``remedies`` leave out one part of the error of `psd.query.cubes`.
    """
    if fit.parts or is_of_plane(fit, windows).any():
        return _explain_cubes(fit, areas, windows)
    found = {}
    for start, begin, batch in cube_batches(fit, areas, windows):
        of_joint = perturbation_variance(batch.traversal, fit.estimates)
        for query in range(batch.traversal.queries):
            area, window = divmod(query, len(batch.totals))
            # Several slices have unbiased counts, as in `psd.query.cubes.cube_totals`.
            is_one = windows.sizes[begin + window] == 1
            count = fit.estimates.count if is_one else fit.estimates.signed
            explained = _explain_in_window(fit, batch, (area, window), count, of_joint[query])
            found[begin + window, start + area] = explained
    return [found[key] for key in sorted(found)]


def _explain_cubes(fit: CubeFit, areas: Areas, windows: Windows) -> list[Explanation]:
    """As `explain_windows`, by the plane alone or by cubes of categories, as answers have it."""
    import pandas as pd

    category, size, whole = fit.record.category, len(areas), is_of_plane(fit, windows)
    assert category is not None  # of a cube with parts
    found: list[list[tuple[int, Explanation]]] = [[] for _ in range(len(windows) * size)]
    common, alone = np.zeros((2, len(windows), size))
    for label, number, own in cubes_asked(fit, windows):
        asked = fit if label < 0 else fit.parts[label]
        _, deviation = totals_of_cube(asked, areas, own)
        common[number] += deviation
        alone[number] += deviation**2
        for at, each in enumerate(explain_windows(asked, areas, own)):
            found[int(number[at // size]) * size + at % size].append((label, each))
    of_plane = explain_areas(fit.own_plane, areas) if whole.any() else []
    explained = []
    for answer, of_cubes in enumerate(found):
        if whole[answer // size] or of_cubes[0][0] < 0:
            explained.append(of_plane[answer % size] if whole[answer // size] else of_cubes[0][1])
            continue
        errors = ["perturbation_error", "nonuniformity_error"]
        squares = np.sum([each.remedies[errors].to_numpy() ** 2 for _, each in of_cubes], axis=0)
        changes = of_cubes[0][1].remedies["change"]
        # What categories have in common in time is none of any of them alone.
        shared = (common**2 - alone)[divmod(answer, size)]
        squares[:, 1] += np.where(changes == _EVEN_IN_TIME, 0.0, shared)
        noise, uneven = squares[0].tolist()
        cut = pd.concat(
            [each.cut.assign(category=category.label(n, n + 1)) for n, each in of_cubes]
        )
        inside = pd.concat([each.inside for _, each in of_cubes]).groupby("level").sum()
        explained.append(
            Explanation(
                noise_share=noise / (noise + uneven) if noise + uneven > 0 else 0.0,
                inside=inside.reset_index(),
                cut=cut.sort_values("nonuniformity_error", ascending=False, ignore_index=True),
                remedies=_remedies_table(dict(zip(changes, map(tuple, squares), strict=True))),
            )
        )
    return explained


def _explain_in_window(
    fit: CubeFit, batch: CubeBatch, asked: tuple[int, int], count: Floats, of_joint: float
) -> Explanation:
    """Sources of the error in a window; count: (n,) of the joint nodes; of_joint: their noise."""
    import pandas as pd

    area, window = asked
    query, totals, axes = area * len(batch.totals) + window, batch.totals[window], fit.record.axes
    noise = float(totals.noise_variance(predicts_published(fit.record.plane))[area])
    uneven = float(totals.nonuniformity_variance[area])
    # Cells of time alone, by which these are corrected, are cells of space and time.
    told, by_times = batch.told, batch.common[area, window] * batch.told.weight[window]
    of_joint += by_times**2 * told.noise[window]
    of_plane = min(float(totals.perturbation_variance[area]) - of_joint, noise)

    # What each leaf adds, in its time and by where its records lie in it.
    leaves, parts = batch.leaves, batch.parts
    at = np.flatnonzero(leaves.query == query)
    node, time, space = leaves.node[at], leaves.of_time[at], leaves.of_space[at]
    common = leaves.common_deviations(fit)[at] * told.left[window]
    in_time = leaves.variances(fit)[at] * time * (1 - time) * space**2 + common * common.sum()
    pair = parts.find(np.full(len(at), area), fit.nodes[node], len(fit.plane.tree))
    share, records = parts.share[pair], leaves.records[at] * time
    moved = batch.spread[pair, window] * share * (1 - share)
    moved = np.where(pair < 0, 0, moved * records / np.maximum(batch.in_cut[pair, window], _TINY))
    all_in_time = in_time.sum() + by_times**2 * told.uneven[window]
    rest = max(uneven - all_in_time - moved.sum(), 0.0)
    changes = {
        "as it is": (noise, uneven),
        "without noise of cells of space and time": (of_plane, uneven),
        "without noise of cells of space alone": (noise - of_plane, uneven),
        _EVEN_IN_TIME: (noise, moved.sum() + rest),
        "in the places of all time": (noise, all_in_time + rest),
        "even inside cells of space": (noise, all_in_time + moved.sum()),
    }

    tree, sides = fit.tree, fit.plane.domain.from_lattice(fit.tree.boxes[node])
    cut = pd.DataFrame(sides, columns=["west", "south", "east", "north"])
    for number, axis in enumerate(axes):
        spans = tree.spans[node, 2 * number : 2 * number + 2].tolist()
        cut[axis.name] = [axis.label(first, stop) for first, stop in spans]
    cut = cut.assign(
        level=tree.level[node],
        covered=np.where(pair < 0, 1.0, parts.area[pair]),
        in_window=time,
        estimate=count[node],
        nonuniformity_error=np.sqrt(in_time + moved),
    )
    whole = [
        level.node[(level.query == query) & (level.area == 1)] for level in batch.traversal.levels
    ]
    return Explanation(
        noise_share=noise / (noise + uneven) if noise + uneven > 0 else 0.0,
        inside=_by_level(tree, np.concatenate(whole), count),
        cut=cut.iloc[np.argsort(-(in_time + moved), kind="stable")].reset_index(drop=True),
        remedies=_remedies_table(changes),
    )


def _by_level(tree: Tree, node: Integers, count: Floats) -> pandas.DataFrame:
    """Number of cells and their records on each level."""
    import pandas as pd

    table = pd.DataFrame({"level": tree.level[node], "estimate": count[node]})
    by_level = table.groupby("level")["estimate"].agg(cells="size", estimate="sum")
    return by_level.reset_index()


def explain_areas(fit: Fit, areas: Areas) -> list[Explanation]:
    """One explanation for each area; see `psd.api.answers.Answers.explain`."""
    if isinstance(areas, PolygonAreas):
        return [
            explain_answer(
                fit, partial(polygon_fraction, shapes=shape), sides=outline_sides(fit, shape)
            )
            for shape in areas.polygons[:, None]
        ]
    if not isinstance(areas, BoxAreas):
        raise ParameterError(
            "areas must be boxes or polygons to be explained, got regions by name; they cut no "
            "cell, so all of their error is noise, which a larger epsilon, or a larger "
            "levels_share, would reduce"
        )
    sides = fit.domain.to_lattice(areas.boxes)
    return [explain_answer(fit, partial(box_fraction, boxes=box[None]), box[None]) for box in sides]


def explain_answer(
    fit: Fit,
    fraction_of: FractionOf,
    box: Floats | None = None,
    sides: Sides | None = None,
) -> Explanation:
    """Compute the sources of the error of an answer, from the covered fractions of cells.

    box: (1, 4) float64, lattice units; sides: those of a polygon.
    """
    traversal = traverse(fit.tree, 1, fraction_of(fit))
    totals = query_totals(fit, traversal, box, sides)
    noise = float(totals.noise_variance(predicts_published(fit.record))[0])
    uneven = float(totals.nonuniformity_variance[0])
    is_local = fit.record.local is not None  # whose variances follow from reports, not epsilon
    finer = None if is_local else _finer_variances(fit, traversal, fraction_of, totals)
    changes = {"as it is": (noise, uneven)}
    for times in () if is_local else _TIMES:
        if fit.record.epsilon * times <= MAX_EPSILON * NANO:
            # The same cells with more loss each: what changes is the noise alone.
            tree, epsilon = fit.tree, fit.record.epsilon * times
            scaled = replace(tree, loss=_losses_at(fit.record, tree, times))
            again = traverse(scaled, 1, fraction_of(fit))
            plain = _with_cells(fit.record, scaled, epsilon)
            changes[f"{times} times the epsilon"] = (
                _variance_within(plain, fit, fit.estimates.count, again),
                uneven,
            )
    # Each leaf that is cut is quartered, its epsilon goes to the quarters, and points are as uneven
    # in them, along the same lines.
    if finer is not None:
        changes["cells half as wide at its edge"] = finer
    node = np.concatenate([level.node[level.area == 1] for level in traversal.levels])
    return Explanation(
        noise_share=noise / (noise + uneven) if noise + uneven > 0 else 0.0,
        inside=_by_level(fit.tree, node, fit.estimates.count),
        cut=_cut_cells(fit, traversal),
        remedies=_remedies_table(changes),
    )


def _with_cells(record: ReleaseRecord, tree: Tree, epsilon: int) -> ReleaseRecord:
    """Record of other cells, with the covariate; its variances are used and its counts are not."""
    spent = tree.max_path_loss
    loss = {"epsilon": spent} if record.rho is None else {"epsilon": epsilon, "rho": spent}
    return replace(record, tree=tree, **loss, post_processing=PostProcessing())  # type: ignore[arg-type]


def _losses_at(record: ReleaseRecord, tree: Tree, times: int) -> Integers:
    """Losses of the counts with a multiple of the epsilon, and the same delta."""
    if record.rho is None or record.delta is None:
        return tree.loss * times
    ratio = fractions.Fraction(rho_of(record.epsilon * times, record.delta), record.rho)
    losses: Integers = np.floor(tree.loss * float(ratio)).astype(np.int64)
    return losses


def _variance_within(plain: ReleaseRecord, fit: Fit, count: Floats, traversal: Traversal) -> float:
    """Variance of the noise for other cells with the counts that the release publishes."""
    estimates = replace(fit_least_squares(plain), count=count)
    if predicts_published(fit.record):
        estimates = published_covariance(plain.tree, estimates)
    return float(perturbation_variance(traversal, estimates)[0])


def _finer_variances(
    fit: Fit, traversal: Traversal, fraction_of: FractionOf, totals: QueryTotals
) -> tuple[float, float] | None:
    """Variances if the cut leaves were quartered; None if all of them are too small."""
    tree, leaves = fit.tree, _cut_leaves(traversal)[0]
    sides = tree.boxes[leaves, 2:] - tree.boxes[leaves, :2]
    leaves = leaves[(sides >= 2).all(axis=1)]
    if not len(leaves):
        return None
    # Cells of one lattice line on a side are as small as they can be.
    finer, origin = refine_leaves(tree, leaves)
    finer = _without_outside(fit, finer)
    plain = _with_cells(fit.record, finer, fit.record.epsilon)
    again = traverse(finer, 1, fraction_of(replace(fit, record=plain)))  # that reads cells alone
    # Records of a quarter are not known: a part of those of its leaf, by area.
    share = _area(finer) / np.maximum(_area(tree)[origin], _TINY)
    count = fit.estimates.count[origin] * share
    noise = _variance_within(plain, fit, count, again)
    node, fraction, area = _cut_leaves(again)
    overdispersion, cluster_size = (
        fit.dispersion.overdispersion[origin[node]],
        fit.dispersion.cluster_size,
    )
    uneven = nonuniformity_variance(count[node], fraction, area, overdispersion, cluster_size).sum()
    return noise, float(uneven + FINER_SHIFT * totals.shift[0] ** 2 + totals.line_variance[0])


def _area(tree: Tree) -> Floats:
    """Area of nodes, of a region tree inside their regions."""
    area = tree.clipped_area if isinstance(tree, RegionTree) else tree.area
    return area.astype(np.float64)


def _without_outside(fit: Fit, tree: Tree) -> Tree:
    """The same cells, with no epsilon on those outside the boundary, or outside their region."""
    record = fit.record
    if isinstance(tree, RegionTree):
        tree = replace(tree, loss=np.where(tree.clipped_area > 0, tree.loss, 0))
    if not record.boundary or record.covariate is None:
        return tree
    is_empty = record.covariate.mass(tree.boxes) == 0
    return replace(tree, loss=np.where(is_empty, 0, tree.loss))


def refine_leaves(tree: Tree, leaves: Integers) -> tuple[Tree, Integers]:
    """Quarter leaves (m,) of two lattice cells a side or more; and old node of each, (n + 4 m,)."""
    # Quarters get the epsilon of their leaf.
    west, south, east, north = tree.boxes[leaves].T
    x, y = (west + east) // 2, (south + north) // 2
    parts = [(west, south, x, y), (x, south, east, y), (west, y, x, north), (x, y, east, north)]
    # (4 m, 4), the four quarters of a leaf after each other; owner: (4 m,), their leaf.
    quarters = np.stack([np.stack(part, axis=1) for part in parts], axis=1).reshape(-1, 4)
    owner = np.repeat(leaves, 4)
    loss = tree.loss.copy()
    # A leaf that is quartered is counted by its quarters, with the same loss along the path.
    loss[leaves] = 0
    level = np.concatenate([tree.level, tree.level[owner] + 1])
    parent = np.concatenate([tree.parent, owner])
    # Quarters stand after all nodes up to here, and then on their level, by family.
    order, rank = _level_order(level, parent)
    origin = np.concatenate([np.arange(len(tree)), owner])[order]
    finer = replace(
        tree,
        boxes=np.concatenate([tree.boxes, quarters])[order],
        # Numbers of nodes change with the order, and so do those that parents are named by.
        parent=np.where(parent[order] < 0, -1, rank[parent[order]]),
        level=level[order],
        count=np.zeros(len(order), np.int64),
        loss=np.concatenate([loss, tree.loss[owner]])[order],
    )
    return finer, origin


def _level_order(level: NDArray[np.int_], parent: NDArray[np.int_]) -> tuple[Integers, Integers]:
    """Nodes level by level, families together and in the order of their parents; and back."""
    rank = np.zeros(len(level), np.int64)
    done: list[Integers] = []
    start = 0
    for depth in range(int(level.max()) + 1):
        nodes = np.flatnonzero(level == depth)
        # By the rank of their parents, which the level above has set already.
        nodes = nodes[np.argsort(rank[parent[nodes]], kind="stable")]
        rank[nodes] = start + np.arange(len(nodes))
        start += len(nodes)
        done.append(nodes)
    return np.concatenate(done), rank


def _cut_leaves(traversal: Traversal) -> tuple[Integers, Floats, Floats]:
    """Leaves that the query cuts, with the covered shares of their points and of their areas."""
    parts = []
    for level in traversal.levels:
        # Nodes that were opened are answered by their children.
        cut = ~level.opened & (level.area > 0) & (level.area < 1)
        parts.append((level.node[cut], level.fraction[cut], level.area[cut]))
    node, fraction, area = (np.concatenate(values) for values in zip(*parts, strict=True))
    return node, fraction, area


def _cut_cells(fit: Fit, traversal: Traversal) -> pandas.DataFrame:
    """Leaves that are cut, largest variance first."""
    import pandas as pd

    node, fraction, area = _cut_leaves(traversal)
    count = fit.estimates.count[node]
    overdispersion, cluster_size = (
        fit.dispersion.overdispersion[node],
        fit.dispersion.cluster_size,
    )
    variance = nonuniformity_variance(count, fraction, area, overdispersion, cluster_size)
    sides = fit.domain.from_lattice(fit.tree.boxes[node])
    table = pd.DataFrame(sides, columns=["west", "south", "east", "north"])
    table = table.assign(
        level=fit.tree.level[node],
        covered=area,
        estimate=count,
        nonuniformity_error=np.sqrt(variance),
    )
    order = np.argsort(-variance, kind="stable")
    return table.iloc[order].reset_index(drop=True)


def _remedies_table(changes: dict[str, tuple[float, float]]) -> pandas.DataFrame:
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
