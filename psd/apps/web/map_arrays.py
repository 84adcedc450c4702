"""Arrays of a release in a page: what the scripts in `assets` compute answers and colours from."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd._util.colours import class_breaks, even_breaks
from psd.api.release import Release
from psd.apps.web.map_outlines import RegionGroup
from psd.estimation.constants import (
    CEILING_ERRORS,
    DENSITY_RASTER,
    EMPTY_VARIANCE,
    EVEN_SHARE,
    SMOOTHING_PASSES,
)
from psd.estimation.density import least_mass
from psd.estimation.fit import Fit, predicts_published
from psd.query.answer_table import QUALITIES, Threshold, reliability_limits
from psd.query.constants import (
    LINE_PLACES,
    RESTORED_VARIANCE,
    ROUNDING_VARIANCE,
    SHARE_ROUNDING,
    SIDE_SLANT,
    SKEW_DIVISOR,
    SLANTING_SHIFT,
    TAIL_SQUARE,
)
from psd.query.means import ValueFit, node_columns, noise_quantiles, single_noise
from psd.query.polygons import MAX_VALUES
from psd.query.region_nodes import TOLERANCE, is_clipped
from psd.query.totals import WindowFit
from psd.space.box_tree import Tree
from psd.space.domain import Domain
from psd.space.ground_areas import ground_areas, ground_densities
from psd.space.lattice_axis import LatticeAxis, SteppedAxis
from psd.space.region_tree import ELSEWHERE, RegionTree

Arrays: TypeAlias = dict[str, NDArray[Any]]

# Types of arrays in a page.
_KINDS = {"float64": "f8", "int32": "i4", "uint16": "u2", "uint8": "u1"}

# Sums of leaves and counts of nodes differ by rounding up to this share of the total.
_ROUNDING = 1e-13

# Steps of the scale of the ground.
_SCALE_STEPS = 1e6

# Digits of ratios whose last digits are rounding errors, which do not compress.
_DIGITS = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedArrays:
    """Arrays as a text."""

    text: str  # base64 of compressed bytes
    directory: list[tuple[str, str, int]]  # name, type, length of each array


def pack_arrays(arrays: Mapping[str, NDArray[Any]]) -> PackedArrays:
    """Pack arrays of one dimension, of float64, int32, uint16 or uint8, into a text."""
    # The bytes of numbers stand in planes, which compress better.
    planes = [
        np.ascontiguousarray(values).view(np.uint8).reshape(-1, values.itemsize).T.tobytes()
        for values in arrays.values()
    ]
    directory = [(name, _KINDS[values.dtype.name], len(values)) for name, values in arrays.items()]
    packed = zlib.compress(b"".join(planes), 9)
    return PackedArrays(text=base64.b64encode(packed).decode("ascii"), directory=directory)


def release_arrays(release: Release) -> Arrays:
    """Arrays of the tree, the estimates and the density of a release, and of its values.

    ``children`` and ``offsets`` of the boxes to those of the parents, four sides one after another;
    ``ground``, the scale of nodes on the ground; ``count``, ``signed`` and ``real`` (before
    rounding) of the leaves, or of all nodes; ``slope``, ``variance`` (given the parent), ``whole``
    (of the node), ``spread`` and ``lines`` of nodes; ``raster`` of a covariate; ``region`` of each
    node, and whether it is ``clipped``. Those of weights of values have the names of `value_parts`
    before a dot.
    """
    return _with_values(release, lambda each: fit_arrays(each.index.fit))


@lru_cache(maxsize=1)  # the weights of a slice are fitted once, and those of others forgotten
def value_parts(release: Release) -> list[tuple[Release, Release]]:
    """Weights of each value towards its upper and its lower bound, as releases that are asked."""
    pairs = []
    for number in range(len(release.index.record.values)):
        indices = release.index.value_parts(number)
        pair = [type(release)(index.record) for index in indices]
        for made, index in zip(pair, indices, strict=True):
            vars(made)["index"] = index
        pairs.append((pair[0], pair[1]))
    return pairs


def _with_values(release: Release, make: Callable[[Release], Arrays]) -> Arrays:
    """Arrays of a release, and of the weights of its values where they differ."""
    arrays = make(release)
    found = dict(arrays)
    for number, pair in enumerate(value_parts(release)):
        # Those towards an upper bound are compared with records, towards a lower one with these.
        above = arrays
        for side, part in enumerate(pair):
            own = make(part)
            for name, values in own.items():
                if name not in above or not np.array_equal(values, above[name]):
                    found[f"{number}{'ab'[side]}.{name}"] = values
            above = above | own
    return found


def fit_arrays(fit: Fit) -> Arrays:
    """Arrays of a fit, without values; see `release_arrays`."""
    tree, estimates = fit.tree, fit.estimates
    if isinstance(fit, WindowFit):
        return _window_arrays(fit, len(tree.levels) - 1)
    arrays: Arrays = {
        "children": tree.children.astype(np.uint8),
        "offsets": _offsets(tree),
        "count": of_leaves(tree, estimates.count),
        "slope": _rounded(estimates.slope),
        "variance": estimates.upward_variance,
        "whole": _rounded(estimates.variance),
        "spread": fit.dispersion.overdispersion,
    }
    if fit.record.post_processing.estimate != "signed":
        arrays["signed"] = of_leaves(tree, estimates.signed)
    if fit.rounding_variance is not None:
        # Counts before they were rounded to integers.
        arrays["real"] = of_leaves(tree, fit.published_covariance.count)
    if fit.line_deviation is not None:
        # Deviations of cuts per record, and of empty nodes as they are, (2, nodes).
        records = np.where(estimates.count > 0, estimates.count, 1.0)
        arrays["lines"] = _rounded(fit.line_deviation / records).ravel()
    covariate = fit.record.covariate
    if fit.record.post_processing.density == "covariate" and covariate is not None:
        arrays["raster"] = covariate.raster.ravel()
    if isinstance(tree, RegionTree):
        arrays["region"] = tree.region
        clipped = tree.is_leaf & is_clipped(tree, np.arange(len(tree)))
        arrays["clipped"] = clipped.astype(np.uint8)
    else:
        arrays["ground"] = _ground_scales(fit, len(tree))
    return arrays


def cut_arrays(release: Release, level: int) -> Arrays:
    """Arrays of the nodes down to a level; answers of these nodes are those of the whole tree."""
    return _with_values(release, lambda each: _cut_arrays(each, level))


def _cut_arrays(release: Release, level: int) -> Arrays:
    """Arrays of the nodes down to a level without values."""
    fit, tree = release.index.fit, release.tree
    if isinstance(fit, WindowFit):
        return _window_arrays(fit, level)
    estimates, upper = fit.estimates, slice(0, tree.levels[level].stop)
    # Nodes of the last level that the page gets are its leaves.
    children = np.where(tree.level[upper] < level, tree.children[upper], 0)
    arrays: Arrays = {
        "children": children.astype(np.uint8),
        "offsets": _offsets(tree).reshape(4, -1)[:, upper].ravel(),
        "count": estimates.count[upper],
        "slope": _rounded(estimates.slope[upper]),
        "variance": estimates.upward_variance[upper],
        "whole": _rounded(estimates.variance[upper]),
        "spread": fit.dispersion.overdispersion[upper],
        "ground": _ground_scales(fit, upper.stop),
    }
    if fit.record.post_processing.estimate != "signed":
        arrays["signed"] = estimates.signed[upper]
    return arrays


def _window_arrays(fit: WindowFit, level: int) -> Arrays:
    """Arrays of the nodes of a window of a cube down to a level, with their answers."""
    tree, upper = fit.tree, slice(0, fit.tree.levels[level].stop)
    totals = fit.cells[np.arange(upper.stop)]
    arrays: Arrays = {
        "children": np.where(tree.level[upper] < level, tree.children[upper], 0).astype(np.uint8),
        "offsets": _offsets(tree).reshape(4, -1)[:, upper].ravel(),
        "ground": _ground_scales(fit, upper.stop),
        "count": totals.estimate,
        "noise": totals.perturbation_variance,
        "uneven": totals.nonuniformity_variance,
    }
    # Of the answers of nodes, what is the same as another array, or 0, is left out.
    if not np.array_equal(totals.signed, totals.estimate):
        arrays["signed"] = totals.signed
    if not np.array_equal(totals.published_variance, totals.perturbation_variance):
        arrays["published"] = totals.published_variance
    if totals.beyond.any():
        arrays["beyond"] = totals.beyond
    return arrays


def cell_counts(fit: Fit) -> Floats:
    """Counts of all cells that a map shows; of a window of a cube the answers to them."""
    return (
        np.maximum(fit.cells.estimate, 0.0) if isinstance(fit, WindowFit) else fit.estimates.count
    )


def _ground_scales(fit: Fit, nodes: int) -> NDArray[np.int32]:
    """Area of the first nodes on the ground over that in the lattice, in steps of `_scale_step`."""
    boxes = fit.tree.boxes[:nodes].astype(np.float64)
    ratio = ground_areas(fit.domain, boxes) / (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    return np.asarray(np.rint(ratio / _scale_step(fit.domain)), np.int32)


def _scale_step(domain: Domain) -> float:
    """Step of the scale of the ground: a millionth of that of the whole domain."""
    whole = np.array([[0.0, 0, *domain.lattice]])
    mean = float(ground_areas(domain, whole)[0]) / float(np.prod(domain.lattice))
    return max(mean / _SCALE_STEPS, 1e-300)


def _offsets(tree: Tree) -> NDArray[np.int32]:
    """Sides of the boxes less those of their parents, side by side, shape (4 nodes,)."""
    offsets = tree.boxes.copy()
    offsets[1:] -= tree.boxes[tree.parent[1:]]
    return np.asarray(offsets.T.ravel(), np.int32)


def of_leaves(tree: Tree, values: Floats) -> Floats:
    """Values of the leaves if those of the other nodes are their sums; else of all nodes."""
    sums = np.where(tree.is_leaf, values, 0.0)
    # Sums of the leaves at all nodes, from the lowest level up.
    for level in reversed(tree.levels[1:]):
        np.add.at(sums, tree.parent[level], sums[level])
    total = max(float(np.abs(values).max(initial=0.0)), 1.0)
    is_sum = bool((np.abs(sums - values) <= _ROUNDING * total).all())
    return values[tree.is_leaf] if is_sum else values


def _rounded(values: Floats) -> Floats:
    """Values without the digits that are rounding errors."""
    # 0, infinity and NaN have no digits, and stay as they are.
    finite = np.where(np.isfinite(values) & (values != 0), values, 1.0)
    scale = 10.0 ** (_DIGITS - 1 - np.floor(np.log10(np.abs(finite))))
    return np.where(finite == values, np.round(finite * scale) / scale, values)


def release_numbers(
    release: Release,
    threshold: Threshold = 0.3,
    *,
    level: int | None = None,
    confidence: float = 0.95,
) -> dict[str, Any]:
    """Numbers and names of a release beside its arrays, or `cut_arrays`, as JSON values."""
    values = []

    def make(each: Release) -> Arrays:
        return fit_arrays(each.index.fit) if level is None else _cut_arrays(each, level)

    for value, pair in zip(release.index.record.values, value_parts(release), strict=True):
        parts = [
            {**fit_numbers(each.index.fit, threshold), "arrays": list(make(each))} for each in pair
        ]
        stated = {"name": value.name, "lower": value.lower, "upper": value.upper}
        values.append({**stated, "parts": parts})
    numbers = {**fit_numbers(release.index.fit, threshold), "values": values}
    if values:  # variance of the noise of one count, 0 if it is Gaussian, and quantiles of its law
        single = single_noise(release.index.record)
        numbers["noise"] = {"single": single, "stretch": noise_quantiles(confidence).tolist()}
    return numbers


def fit_numbers(fit: Fit, threshold: Threshold) -> dict[str, Any]:
    """Numbers and names of a fit, without values; see `release_numbers`."""
    domain, limits = fit.domain, reliability_limits(threshold)
    return {
        "lattice": list(domain.lattice),
        "axes": [_axis(axis) for axis in domain.axes],
        "ground": _scale_step(domain),
        "resolution": domain.coordinate_resolution is not None,
        "maxValues": MAX_VALUES,
        "window": isinstance(fit, WindowFit),
        "root": float(fit.estimates.variance[0]),
        "signed": fit.published_covariance is fit.estimates,
        "predictsPublished": predicts_published(fit.record),
        "empty": EMPTY_VARIANCE,
        "lump": fit.dispersion.cluster_size,
        "shiftShare": fit.shift_share,
        "edgeFactor": fit.edge_factor,
        "slantingShift": SLANTING_SHIFT,
        "sideSlant": SIDE_SLANT,
        "linePlaces": LINE_PLACES,
        "shareRounding": SHARE_ROUNDING,
        "hasColumns": fit.column_records is not None,
        "ceilingErrors": CEILING_ERRORS,
        "roundingVariance": ROUNDING_VARIANCE,
        "skewDivisor": SKEW_DIVISOR,
        "tailSquare": TAIL_SQUARE,
        "restored": RESTORED_VARIANCE,
        "good": limits.good,
        "reliable": limits.reliable,
        **_density(fit),
        **_regions(fit.tree),
    }


def _regions(tree: Tree) -> dict[str, Any]:
    """Nodes of the lowest regions, and by how much a union of them may differ from a polygon."""
    if not isinstance(tree, RegionTree):
        return {}
    return {"regions": {"lowest": tree.frame.lowest.tolist(), "tolerance": TOLERANCE}}


def _axis(axis: LatticeAxis) -> dict[str, float]:
    even = {"low": axis.low, "high": axis.high, "cells": axis.cells}
    if not isinstance(axis, SteppedAxis):
        return even
    step = {"numerator": axis.numerator, "denominator": axis.denominator}
    return {**even, "first": axis.first, **step}


def _density(fit: Fit) -> dict[str, Any]:
    """Kind of the density inside leaves, and its numbers; the page computes it from the counts."""
    kind, covariate = fit.record.post_processing.density, fit.record.covariate
    if kind == "smooth":
        total = fit.total
        # Mass below which it is a rounding error, per record of the total.
        least = least_mass(np.array([total])) / total if total > 0 else 0.0
        smooth = {
            "side": DENSITY_RASTER,
            "passes": SMOOTHING_PASSES,
            "even": EVEN_SHARE,
            "rounding": least,
        }
        return {"density": kind, "smooth": smooth}
    if kind == "covariate" and covariate is not None:
        return {"density": kind, "raster": {"rows": covariate.rows, "columns": covariate.columns}}
    return {"density": "uniform"}


# Breaks of the count and of the density.
Breaks = dict[str, list[float]]

# Means of each value, and whether they are not poor.
Means = Sequence[tuple[Floats, NDArray[np.bool_]]]

# Counts of cells, their areas on the ground and on the map, and their means.
Values = tuple[Floats, Floats, Floats, Means]


def shown_nodes(tree: Tree, level: int) -> Integers:
    """Nodes that tile the area at a level: its nodes, and the leaves above it."""
    return np.flatnonzero((tree.level == level) | (tree.is_leaf & (tree.level < level)))


def level_cells(release: Release, deepest: int, threshold: Threshold = 0.3) -> list[Values]:
    """Values of the cells of each level of a release, down to one."""
    return [_cells(release, level, threshold) for level in range(deepest + 1)]


def node_means(release: Release, nodes: Integers, threshold: Threshold) -> Means:
    """Means of each value in nodes of the tree."""
    record, records = release.index.record, release.index.fit
    fits = [
        ValueFit(value=value, records=records, upper=pair[0].index.fit, lower=pair[1].index.fit)
        for value, pair in zip(record.values, value_parts(release), strict=True)
    ]
    columns = node_columns(fits, nodes, 0.95, threshold)
    names = [f"mean_{value.name}" for value in record.values]
    return [(columns[name], columns[f"{name}_quality"] != QUALITIES[-1]) for name in names]


def cell_classes(slices: Sequence[list[Values]]) -> list[Breaks]:
    """Breaks of the cells of each level, over the values of all time slices."""
    return [_breaks(of_level) for of_level in zip(*slices, strict=True)]


def region_classes(
    group: RegionGroup, estimates: Sequence[Floats], means: Sequence[Means] = ()
) -> Breaks:
    """Breaks of the regions of a group over time slices, by estimates (n,) and means of each."""
    named = np.array([text != ELSEWHERE for text in group.ids])
    named = named if named.any() else ~named
    plane = shapely.area(group.shapes[named])
    ground, slices = group.areas[named], means or [()] * len(estimates)
    return _breaks(
        [
            (each[named], ground, plane, [(mean[named], exact[named]) for mean, exact in of_slice])
            for each, of_slice in zip(estimates, slices, strict=True)
        ]
    )


def _cells(release: Release, level: int, threshold: Threshold) -> Values:
    """Values of the cells at a level."""
    nodes = shown_nodes(release.tree, level)
    boxes = release.tree.boxes[nodes].astype(np.float64)
    count, plane = (
        cell_counts(release.index.fit)[nodes],
        release.tree.area[nodes].astype(np.float64),
    )
    means = node_means(release, nodes, threshold) if release.index.record.values else ()
    return count, ground_areas(release.domain, boxes), plane, means


def _breaks(slices: Sequence[Values]) -> Breaks:
    """Breaks of the values of all slices together; by areas on the map, as for other maps."""
    numbers = [each[:3] for each in slices]
    counts, areas, plane = (np.concatenate(each) for each in zip(*numbers, strict=True))
    breaks = {
        "count": class_breaks(counts, plane),
        "density": class_breaks(ground_densities(counts, areas), plane),
    }
    # Poor means set no classes, unless all are.
    for number, of_value in enumerate(zip(*(each[3] for each in slices), strict=True)):
        mean, exact = (np.concatenate(each) for each in zip(*of_value, strict=True))
        exact = exact if exact.any() else ~exact
        breaks[f"mean{number}"] = even_breaks(mean[exact], plane[exact])
    return breaks
