"""Arrays of a cube in a page: what the scripts compute answers in windows and categories from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psd.apps.web.map_arrays import Arrays, fit_arrays, fit_numbers, of_leaves
from psd.estimation.constants import POOLING_PEERS
from psd.estimation.least_squares import measure_record
from psd.release.cube import CubeRecord, WindowRecord
from psd.space.region_tree import RegionTree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psd.estimation.cube import CubeFit
    from psd.query.answer_table import Threshold
    from psd.space.time_slices import TimeWindow

MAX_CUBE_NODES = 1_000_000
"""Limit of the nodes of all layers of a cube whose page answers any window; about 9 MB."""


def answers_windows(record: CubeRecord) -> bool:
    """Whether a page has room for all cells of a cube."""
    parts = 0 if record.labels is None or record.category is None else record.category.size
    cells = len(record.cells) * (1 + parts)
    return len(record.joint.tree) + cells <= MAX_CUBE_NODES


def cube_arrays(fit: CubeFit) -> Arrays:
    """Arrays of a cube: those of its plane, and of the joint layer with ``joint.`` before names.

    Of the joint layer ``children``; ``noisy`` counts, their variances ``measured``, and the
    published ``count`` of the leaves unless it is that of least squares; ``node``, of the plane,
    with the box of each node; of each axis ``first`` and ``stop`` of the spans, less those of the
    parents, and ``profile``, the records of its cells; ``phi``, the overdispersion of windows, by
    their width along each axis, by level of the plane and by category; ``times``, the counts of
    the layer of times; ``outside``, the leaves of the plane in which no record can lie; ``ground``,
    the area of the lowest regions. A cube for each category has those of each with ``part`` and its
    number before names, and no joint layer; with categories those of the plane alone have ``own.``.
    """
    arrays = fit_arrays(fit.plane)
    if fit.own_plane is not fit.plane:
        arrays |= {f"own.{name}": each for name, each in fit_arrays(fit.own_plane).items()}
    for label, part in enumerate(fit.parts):
        arrays |= {f"part{label}.{name}": each for name, each in cube_arrays(part).items()}
    return arrays if fit.parts else arrays | _joint_arrays(fit)


def _joint_arrays(fit: CubeFit) -> Arrays:
    """Arrays of the joint layer, with ``joint.`` before names."""
    tree, estimates, record = fit.tree, fit.estimates, fit.record.joint
    measured = measure_record(record)
    value, variance = measured.value, measured.variance
    outside = record.outside
    if outside is not None:
        variance[outside & tree.is_leaf] = 0.0
    # Noisy counts are small integers, and few variances differ: the page makes estimates of them.
    is_small = bool((np.abs(value) < 2**31).all() and (value == np.rint(value)).all())
    joint: Arrays = {
        "children": tree.children.astype(np.uint8),
        "noisy": value.astype(np.int32) if is_small else value,
        "measured": variance,
        "node": fit.nodes.astype(np.int32),
        "phi": _overdispersions(fit),
    }
    if fit.published_covariance is not estimates:
        joint["count"] = of_leaves(tree, estimates.count)
    offsets = tree.spans.copy()
    offsets[1:] -= tree.spans[tree.parent[1:]]
    for axis, profile in enumerate(fit.profiles):
        joint[f"first{axis}"], joint[f"stop{axis}"] = offsets.T[2 * axis : 2 * axis + 2].copy()
        joint[f"profile{axis}"] = profile
    if fit.times is not None:
        joint["times"] = fit.times[0]
    outside, plane = fit.plane.record.outside, fit.plane.tree
    if isinstance(plane, RegionTree):
        joint["ground"] = fit.ground[plane.is_leaf]
    elif outside is not None:
        joint["outside"] = outside.astype(np.uint8)
    return {f"joint.{name}": values for name, values in joint.items()}


def cube_numbers(fit: CubeFit, threshold: Threshold = 0.3) -> dict[str, Any]:
    """Numbers of a cube beside its arrays, as JSON values."""
    levels = fit.tree.levels
    cube: dict[str, Any] = {"sizes": list(fit.record.sizes)}
    if fit.own_plane is not fit.plane:
        cube["own"] = fit_numbers(fit.own_plane, threshold)
    if fit.parts:
        cube["parts"] = [cube_numbers(part, threshold) for part in fit.parts]
    else:
        cube |= {
            "peers": POOLING_PEERS,
            "signed": fit.published_covariance is fit.estimates,
            "lump": fit.cluster_size,
            "times": None if fit.times is None else fit.times[1],
            "labels": None if fit.record.category is None else fit.labels,
            # Of the nodes of each level that are more than one slice of one category.
            "spread": [float(fit.time_overdispersion[level].max()) for level in levels],
            "common": [float(fit.common_overdispersion[level].max()) for level in levels],
        }
    return {**fit_numbers(fit.plane, threshold), "cube": cube}


def _overdispersions(fit: CubeFit) -> Any:
    """Overdispersion in windows of widths 2^i, axis after axis, by level and by category."""
    record = fit.record
    level = np.array([level.start for level in record.cells.levels])
    sizes = record.sizes if record.category is None else (*record.sizes[:-1], 1)
    exponents = [np.arange(int(np.rint(np.log2(size))) + 1) for size in sizes]
    # All widths of windows, (n, axes), those of the last axis fastest.
    widths = 2 ** np.stack([each.ravel() for each in np.meshgrid(*exponents, indexing="ij")], 1)
    nodes, labels = np.repeat(level, fit.labels), np.tile(np.arange(fit.labels), len(level))
    found = [
        fit.overdispersions(np.tile(width, (len(nodes), 1)), nodes, labels) for width in widths
    ]
    return np.concatenate(found)


def cube_steps(
    record: CubeRecord | WindowRecord, windows: Sequence[TimeWindow | None], chosen: str | None
) -> dict[str, Any]:
    """Steps of the slider of time, and the categories, `chosen` first, as JSON values."""
    cube = record.cube if isinstance(record, WindowRecord) else record
    slices, category = cube.slices, cube.category
    steps = [
        {"name": each.name, "cells": [each.numbers.tolist()]}
        for each in windows
        if each is not None
    ]
    # A view has its window alone; without windows the page has steps of all time and each slice.
    if isinstance(record, WindowRecord):
        cells = np.unravel_index(record.window.numbers, cube.sizes)
        of_axes = [np.unique(each).tolist() for each in cells]
        steps = [{"name": ", ".join(record.shown.values()), "cells": of_axes}]
    labels: list[dict[str, Any]] = []
    if category is not None:
        above = dict(zip(category.labels, category.parents, strict=True))
        for name, (first, stop) in category.spans.items():
            depth, parent = 0, above.get(name, -1)
            while parent >= 0:
                depth, parent = depth + 1, category.parents[parent]
            labels.append({"name": name, "depth": depth, "first": first, "stop": stop})
        labels.sort(key=lambda each: (each["first"], -each["stop"], each["depth"]))
    return {
        "names": None if slices is None else list(slices.names),
        # Where hours end: windows of hours are named by it.
        "ends": list(map(str, slices.ends)) if slices is not None and slices.by == "hour" else None,
        "steps": steps,
        "column": None if category is None else category.column,
        "labels": labels,
        "chosen": None if category is None or chosen is None else category.label_named(chosen),
        "isView": isinstance(record, WindowRecord),
        "hasOther": category is not None and category.has_other,
    }
