"""Coverage of intervals and predicted beside true errors, for one build."""

from dataclasses import dataclass

import numpy as np
import shapely
from common import counts_in_shapes, exact_counts
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from variants import Variant

import psd
from psd.apps.evaluation.true_counts import count_in_boxes
from psd.apps.evaluation.workload import draw_workload
from psd.ingest.tally import Tally
from psd.query.boxes import box_totals

__all__ = ["Measures", "Truth", "measure", "truth_of"]

Floats = NDArray[np.float64]

SEED = 600
STEPS = 2
"""Queries with a side of fewer steps are not judged."""

ROUNDING = 1e-6
"""Root mean square error in records below which there is none but that of floating-point sums."""

POPULATED = 20
"""True count from which intervals of other levels are judged."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Truth:
    """Boxes with their numbered classes, and districts; and the true counts of both."""

    counts: Tally
    boxes: Floats
    true: Floats
    classes: NDArray[np.int64]
    shapes: NDArray[np.object_]
    in_shapes: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """Coverage of one build, shares in [0, 1]; and predicted over true errors."""

    pooled: float
    classes: list[float]
    pooled_nonempty: float
    classes_nonempty: list[float]
    districts: float
    districts_nonempty: float
    noise_ratio: float
    unevenness_ratio: float
    at_80: float
    at_50: float


def truth_of(variant: Variant, xy: Floats, counts: Tally, districts: int) -> Truth:
    """Draw the queries of a row, and count."""
    domain = variant.domain
    workload = draw_workload(xy[:, 0], xy[:, 1], domain.bounds)
    boxes = _align(workload.boxes, domain) if variant.aligned else workload.boxes
    names = list(dict.fromkeys(workload.classes.tolist()))
    classes = np.array([names.index(name) for name in workload.classes.tolist()])
    judged = (boxes[:, 2:] - boxes[:, :2] > STEPS * variant.step).all(axis=1)
    boxes, classes = boxes[judged], classes[judged]
    ends = boxes.copy()
    ends[:, 2:] = np.where(ends[:, 2:] >= np.array(domain.bounds[2:]), np.inf, ends[:, 2:])
    true = count_in_boxes(xy[:, 0], xy[:, 1], np.ones(len(xy), np.int64), ends)
    shapes, in_shapes = _districts(variant, xy, counts, districts)
    large = np.diff(shapely.bounds(shapes).reshape(-1, 2, 2), axis=1)[:, 0] > STEPS * variant.step
    wide = large.all(axis=1)
    return Truth(
        counts=counts,
        boxes=boxes,
        true=true.astype(float),
        classes=classes,
        shapes=shapes[wide],
        in_shapes=in_shapes[wide],
    )


def _align(boxes: Floats, domain: psd.Domain) -> Floats:
    """Boxes whose sides are moved to the nearest lines of the lattice, one cell apart at least."""
    lattice = np.rint(domain.to_lattice(boxes)).astype(np.int64)
    for axis in (0, 1):
        low = np.minimum(lattice[:, axis], domain.lattice[axis] - 1)
        lattice[:, axis], lattice[:, axis + 2] = low, np.maximum(lattice[:, axis + 2], low + 1)
    sides = [domain.edges(side % 2, lattice[:, side]) for side in range(4)]
    return np.stack(sides, axis=1)


def _districts(
    variant: Variant, xy: Floats, counts: Tally, number: int
) -> tuple[NDArray[np.object_], Floats]:
    """Polygons around random public seeds that are nearer than any other, and their counts.

    With a boundary, the seeds are those inside it, and the polygons end at it.
    """
    west, south, east, north = variant.domain.bounds
    unit = np.random.default_rng(SEED).random((number, 2))
    seeds = np.array([west, south]) + unit * np.array([east - west, north - south])
    if variant.regions is not None and variant.hierarchy is not None:  # as records were counted
        ids = list(variant.hierarchy.levels[-1].ids)
        table = variant.regions().set_index("district").loc[ids]
        true = np.bincount(np.asarray(counts.region), counts.counts, len(ids))
        return table.geometry.to_numpy(), true.astype(float)
    if variant.asked is not None:
        asked = variant.asked().geometry.to_numpy()
        return asked, counts_in_shapes(xy, asked)
    area = shapely.box(west, south, east, north)
    if variant.boundary is not None:
        area = variant.boundary.shape
        seeds = seeds[shapely.contains_xy(area, seeds[:, 0], seeds[:, 1])]
        number = len(seeds)
    box = shapely.box(west, south, east, north)
    cells = shapely.get_parts(shapely.voronoi_polygons(shapely.multipoints(seeds), extend_to=box))
    owner = cKDTree(seeds)
    inside = shapely.STRtree(cells).query(shapely.points(seeds), predicate="within")
    shapes = np.empty(number, object)
    shapes[inside[0]] = shapely.intersection(cells[inside[1]], area)
    count = np.bincount(owner.query(xy)[1], minlength=number)
    return shapes, count.astype(float)


def measure(release: psd.Release, truth: Truth) -> Measures:
    """Compare the answers of a release with the truth."""
    answers = release.query(truth.boxes, confidence=0.95).table
    covers = _covers(answers, truth.true)
    shapes = _covers(
        release.query(truth.shapes, crs=release.domain.crs, confidence=0.95).table, truth.in_shapes
    )
    exact = box_totals(release.index, exact_counts(release.tree, truth.counts), truth.boxes)
    estimate = answers["estimate"].to_numpy()
    populated = truth.true >= POPULATED
    inner = {
        level: _mean(
            _covers(release.query(truth.boxes, confidence=level).table, truth.true)[populated]
        )
        for level in (0.8, 0.5)
    }
    nonempty = truth.true > 0
    every = np.unique(truth.classes)
    return Measures(
        pooled=_mean(covers),
        classes=[_mean(covers[truth.classes == c]) for c in every],
        pooled_nonempty=_mean(covers[nonempty]),
        classes_nonempty=[_mean(covers[nonempty & (truth.classes == c)]) for c in every],
        districts=_mean(shapes),
        districts_nonempty=_mean(shapes[truth.in_shapes > 0]),
        noise_ratio=_ratio(answers["perturbation_error"].to_numpy(), estimate - exact),
        unevenness_ratio=_ratio(answers["nonuniformity_error"].to_numpy(), exact - truth.true),
        at_80=inner[0.8],
        at_50=inner[0.5],
    )


def _covers(answers: object, true: Floats) -> NDArray[np.bool_]:
    """Whether the intervals hold the true counts."""
    low, high = answers["lower"].to_numpy(), answers["upper"].to_numpy()  # type: ignore[index]
    return np.asarray((low <= true) & (true <= high))


def _mean(values: NDArray[np.bool_]) -> float:
    """Mean; not a number for too few values to judge."""
    return float(values.mean()) if len(values) >= POPULATED else float("nan")


def _ratio(predicted: Floats, true: Floats) -> float:
    """Root mean square of predicted over that of true errors."""
    square = float((true**2).mean())
    if square <= ROUNDING**2:
        return float("nan")
    return float(((predicted**2).mean() / square) ** 0.5)
