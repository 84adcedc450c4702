"""True counts of query boxes, computed once for all releases that are evaluated. Private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers
from psd.apps.evaluation._constants import SANITY
from psd.apps.evaluation.workload import Workload
from psd.ingest.tally import Batch, Tally
from psd.query.areas import NamedAreas

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from psd.space.domain import Domain

__all__ = ["cell_centres", "count_in_boxes", "extend_to_edges", "relative_base"]

Points = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Coordinates x and y of records inside the bounds. Private."""


class PointRecorder:
    """Collects the coordinates inside the bounds while batches are read for a tally. Private."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._x: list[NDArray[np.float64]] = [np.empty(0)]
        self._y: list[NDArray[np.float64]] = [np.empty(0)]
        self._time: list[NDArray[np.datetime64]] = [np.empty(0, "datetime64[us]")]
        self._label: list[Any] = []

    def record(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield the records that are selected and store their points inside the bounds."""
        import pyarrow as pa

        for batch in (batch.selected() for batch in batches):
            inside = self._domain.quantise(batch.x, batch.y)[2]
            self._x.append(batch.x[inside])
            self._y.append(batch.y[inside])
            if batch.time is not None:
                self._time.append(batch.time[inside])
            if batch.label is not None:
                self._label.append(batch.label.filter(pa.array(inside)))
            yield batch

    @property
    def points(self) -> Points:
        """Points of the batches so far."""
        return np.concatenate(self._x), np.concatenate(self._y)

    @property
    def times(self) -> NDArray[np.datetime64]:
        """Their local times, if batches have times."""
        return np.concatenate(self._time)

    @property
    def labels(self) -> Any:
        """Their labels of a category as an Arrow array; None if batches have none."""
        import pyarrow as pa

        return pa.concat_arrays(self._label) if self._label else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TrueCounts:
    """Boxes and their true counts. Private."""

    queries: Workload  # boxes and their classes
    counts: Tally  # what a release counts
    # (n,); all records, or all users if users are counted, in each box.
    true: NDArray[np.int64 | np.float64]
    bounded: NDArray[np.int64 | np.float64]  # (n,); those that a release counts
    # (n,) float64; denominator of relative errors: max(true, 0.001 of all).
    base: NDArray[np.float64]

    def __repr__(self) -> str:
        return "<TrueCounts: private>"


def true_counts(
    queries: Workload,
    points: Points,
    counts: Tally,
    domain: Domain,
    *,
    bounded: bool,
    scale: int = 1,
) -> TrueCounts:
    """Count the records, or the users if users are counted, in boxes."""
    boxes = extend_to_edges(queries.boxes, domain)
    # Each user adds `scale` to the tally.
    if scale > 1:
        users = count_in_boxes(*cell_centres(domain, counts), boxes) / scale
        base = relative_base(users, counts.counts.sum() / scale)
        return TrueCounts(queries=queries, counts=counts, true=users, bounded=users, base=base)
    true = count_in_boxes(*points, np.ones(len(points[0]), np.int64), boxes)
    # The tally has lattice cells and no coordinates, so its records count at centres.
    in_tally = count_in_boxes(*cell_centres(domain, counts), boxes) if bounded else true
    base = relative_base(true, len(points[0]))
    return TrueCounts(queries=queries, counts=counts, true=true, bounded=in_tally, base=base)


def true_regions(
    areas: NamedAreas, lowest: NDArray[Any], counts: Tally, *, bounded: bool, scale: int = 1
) -> TrueCounts:
    """As `true_counts`, of all regions of a level; lowest: (n,), lowest region of each record."""
    frame, level = areas.tree.frame, areas.tree.regions.levels[areas.queries.tier]
    nodes = frame.named(areas.queries.tier)
    assert counts.region is not None  # counted by regions

    def sums(lowest: NDArray[Any], weight: Integers | int) -> NDArray[Any]:
        # Sums before each lowest region: a node has a run of them, and two look-ups are its sum.
        before = np.zeros(areas.tree.regions.size + 1, np.int64)
        np.add.at(before, lowest + 1, weight)
        before = before.cumsum()
        return before[frame.stop[nodes]] - before[frame.first[nodes]]

    in_tally = sums(counts.region, counts.counts)
    true, total = sums(lowest, 1), float(len(lowest))
    if scale > 1:
        true = in_tally = in_tally / scale
        total = float(counts.counts.sum() / scale)
    return TrueCounts(
        queries=Workload(
            boxes=np.zeros((0, 4)),
            classes=np.full(len(nodes), level.name),
            ids=level.ids,
        ),
        counts=counts,
        true=true,
        bounded=in_tally if bounded else true,
        base=relative_base(true, total),
    )


def relative_base(true: NDArray[np.int64 | np.float64], total: float) -> NDArray[np.float64]:
    """Compute the denominators of relative errors; without a record there are none, NaN."""
    base = np.maximum(true, SANITY * total)
    return np.where(base > 0, base, np.nan)


def extend_to_edges(boxes: NDArray[np.float64], domain: Domain) -> NDArray[np.float64]:
    """Boxes that contain the far edges of the domain if they reach them, as its cells do."""
    extended = boxes.copy()
    for side in (2, 3):
        extended[boxes[:, side] >= domain.bounds[side], side] = np.inf
    return extended


def count_in_boxes(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    weight: NDArray[np.int64],
    boxes: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Sum the weights of the points in each half-open box."""
    order = np.argsort(x, kind="stable")
    x, y, weight = x[order], y[order], weight[order]
    # Sorted by x, each box needs one run of the points.
    ends = zip(np.searchsorted(x, boxes[:, 0]), np.searchsorted(x, boxes[:, 2]), strict=True)
    return np.array(
        [
            weight[a:b][(y[a:b] >= box[1]) & (y[a:b] < box[3])].sum()
            for (a, b), box in zip(ends, boxes, strict=True)
        ],
        np.int64,
    )


def cell_centres(
    domain: Domain, counts: Tally
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Centre of each occupied lattice cell, or its value with a resolution; and its count."""
    x, y = (domain.centres(axis, cells) for axis, cells in enumerate((counts.columns, counts.rows)))
    return x, y, counts.counts
