"""What query boxes really hold, worked out once for as many releases as are judged. Private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd.evaluation.workload import Workload
from psd.ingest.tally import Batch, Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from psd.space.domain import Domain

__all__ = ["SANITY", "Points", "Sightings", "Truth", "centres", "inside_boxes", "truth_of"]

Points = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Coordinates x and y of rows inside the bounds. Private."""

# Real counts below this share of all rows are not told apart in relative errors.
SANITY = 0.001


class Sightings:
    """Coordinates of the rows inside the bounds, noted while batches pass by. Private.

    So that one reading of an input gives both a tally and the points of its evaluation.
    """

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._x: list[NDArray[np.float64]] = [np.empty(0)]
        self._y: list[NDArray[np.float64]] = [np.empty(0)]

    def of(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The same batches."""
        for batch in batches:
            inside = self._domain.quantise(batch.x, batch.y)[2]
            self._x.append(batch.x[inside])
            self._y.append(batch.y[inside])
            yield batch

    @property
    def points(self) -> Points:
        """What was seen so far."""
        return np.concatenate(self._x), np.concatenate(self._y)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Truth:
    """Boxes and their true counts. Private.

    Parameters
    ----------
    queries : Workload
        Boxes and their classes.
    counts : Tally
        Rows that a release counts.
    true, kept : ndarray, shape (n,), int64 or float64
        All rows in each box, and those that a release counts; where it counts users, both are
        users.
    base : ndarray, shape (n,), float64
        What relative errors are relative to: max(true, 0.001 of all).
    """

    queries: Workload
    counts: Tally
    true: NDArray[np.int64 | np.float64]
    kept: NDArray[np.int64 | np.float64]
    base: NDArray[np.float64]

    def __repr__(self) -> str:
        return "<Truth: private>"


def truth_of(
    queries: Workload,
    points: Points,
    counts: Tally,
    domain: Domain,
    *,
    bounded: bool,
    scale: int = 1,
) -> Truth:
    """True counts of boxes.

    Parameters
    ----------
    queries : Workload
        Boxes.
    points : tuple of ndarray
        All rows inside the bounds.
    counts : Tally
        Rows that a release counts.
    domain : Domain
        Of the tally.
    bounded : bool
        Whether the tally holds fewer rows, because those of each user were bounded.
    scale : int
        What one user adds to the tally where users are counted, and are what is true; else 1.

    Notes
    -----
    Which rows were kept is known by lattice cell; each stands in the middle of its cell.
    """
    closed = _closed(queries.boxes, domain)
    if scale > 1:
        users = inside_boxes(*centres(domain, counts), closed) / scale
        base = np.maximum(users, SANITY * counts.counts.sum() / scale)
        return Truth(queries=queries, counts=counts, true=users, kept=users, base=base)
    true = inside_boxes(*points, np.ones(len(points[0]), np.int64), closed)
    kept = inside_boxes(*centres(domain, counts), closed) if bounded else true
    base = np.maximum(true, SANITY * len(points[0]))
    return Truth(queries=queries, counts=counts, true=true, kept=kept, base=base)


def _closed(boxes: NDArray[np.float64], domain: Domain) -> NDArray[np.float64]:
    """Boxes that hold the far edges of the domain where they reach them, as its cells do."""
    closed = boxes.copy()
    for side in (2, 3):
        closed[boxes[:, side] >= domain.bounds[side], side] = np.inf
    return closed


def inside_boxes(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    weight: NDArray[np.int64],
    boxes: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Weight of the points in each half-open box."""
    order = np.argsort(x, kind="stable")
    x, y, weight = x[order], y[order], weight[order]
    ends = zip(np.searchsorted(x, boxes[:, 0]), np.searchsorted(x, boxes[:, 2]), strict=True)
    return np.array(
        [
            weight[a:b][(y[a:b] >= box[1]) & (y[a:b] < box[3])].sum()
            for (a, b), box in zip(ends, boxes, strict=True)
        ],
        np.int64,
    )


def centres(
    domain: Domain, counts: Tally
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Middle of each occupied lattice cell, and its kept rows."""
    x, y = (
        (domain.edges(axis, cells) + domain.edges(axis, cells + 1)) / 2
        for axis, cells in enumerate((counts.columns, counts.rows))
    )
    return x, y, counts.counts
