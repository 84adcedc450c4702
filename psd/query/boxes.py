"""Boxes: rectangles along the axes, in the CRS of the release."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import morton_codes
from psd.errors import ParameterError
from psd.estimation.density import SmoothDensity
from psd.query.box_parts import box_fraction
from psd.query.constants import COMPILED_FROM
from psd.query.totals import QueryTotals, concatenate, query_totals
from psd.query.traversal import Traversal, traverse_within, weighted_total
from psd.space.box_tree import SIDES
from psd.space.crs import half_turn
from psd.space.region_tree import RegionTree

if TYPE_CHECKING:
    from psd.estimation.fit import Fit
    from psd.query.index import QueryIndex
    from psd.space.domain import Domain

__all__ = ["box_estimates", "box_totals"]

# Queries traversed together by numpy; bounds the memory, not the answers.
_BOXES_PER_BATCH = 512

# Pairs of a box and a cell met together, about 125 MB, unless a single box meets more.
_PAIRS_PER_BATCH = 2**20


def parse_boxes(regions: Any) -> tuple[NDArray[np.float64], list[Any]]:
    """Parse one box, an array of boxes, or a table with named sides into boxes and ids."""
    sides, ids = regions, None
    if hasattr(regions, "columns"):
        missing = [side for side in SIDES if side not in regions.columns]
        if missing:
            raise ParameterError(
                f"boxes must have the columns {', '.join(SIDES)}; {missing[0]} is missing"
            )
        sides = regions[list(SIDES)].to_numpy()
        ids = list(regions["id"]) if "id" in regions.columns else None
    try:
        boxes = np.atleast_2d(np.asarray(sides, dtype=np.float64))
    except (TypeError, ValueError):
        raise ParameterError(
            "regions must be geometries, or boxes of four numbers: west south east north"
        ) from None
    if boxes.size == 0:
        boxes = boxes.reshape(0, 4)
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ParameterError(
            f"boxes must have four sides, west south east north, got shape {boxes.shape}"
        )
    return boxes, list(range(1, len(boxes) + 1)) if ids is None else ids


def are_boxes_outside(boxes: NDArray[np.float64], domain: Domain) -> NDArray[np.bool_]:
    """Which boxes have no area in common with a domain."""
    low, high = np.array(domain.bounds[:2]), np.array(domain.bounds[2:])
    lost: NDArray[np.bool_] = np.any((boxes[:, :2] >= high) | (boxes[:, 2:] <= low), axis=1)
    return lost


def _check_boxes(domain: Domain, boxes: NDArray[np.float64], ids: list[Any]) -> None:
    """Refuse boxes without an area, outside the domain, or beyond longitude 180; name the first."""
    west, _, east, _ = domain.bounds
    across, goes_on = "", np.zeros(len(boxes), bool)
    if domain.geographic:
        across = "; split it into two boxes if it crosses the antimeridian"
        turn = 2 * half_turn(domain.crs)
        # What is beyond longitude 180, a turn back: does it meet the other end of the bounds?
        past_east = np.where(boxes[:, 2] > turn / 2, boxes[:, 2] - turn, -np.inf)
        past_west = np.where(boxes[:, 0] < -turn / 2, boxes[:, 0] + turn, np.inf)
        goes_on = np.minimum(past_east, boxes[:, 0]) > west
        goes_on |= np.maximum(past_west, boxes[:, 2]) < east
    faults = {
        "must have finite sides": ~np.isfinite(boxes).all(axis=1),
        f"must have its west below its east; the order is west south east north{across}": (
            boxes[:, 0] >= boxes[:, 2]
        ),
        "must have its south below its north; the order is west south east north": boxes[:, 1]
        >= boxes[:, 3],
        f"lies outside the bounds {domain.bounds} of the release in {domain.crs}, where nothing "
        "was counted; the order is west south east north; "
        'remove it, or ask a query with outside="skip" or outside="zero"': (
            are_boxes_outside(boxes, domain)
        ),
        "goes on beyond longitude 180, at the other end of the release; split it there into two "
        "boxes, or ask for it as a polygon": goes_on,
    }
    for fault, is_faulty in faults.items():
        if is_faulty.any():
            first = int(np.argmax(is_faulty))
            sides = " ".join(f"{side:.10g}" for side in boxes[first])
            raise ParameterError(f"box {ids[first]} ({sides}) {fault}")


def checked_totals(index: QueryIndex, boxes: NDArray[np.float64], ids: list[Any]) -> QueryTotals:
    """Query totals of boxes in the CRS of the release."""
    domain = index.record.domain
    _check_boxes(domain, boxes, ids)
    lattice = domain.to_lattice(boxes)
    engine = _compiled_engine(index, len(lattice))
    if engine is not None:
        totals: QueryTotals = engine.walk_query_totals(
            index.flat_tree, index.fit.estimates.count, lattice
        )
        return totals
    # Few boxes need the estimates of the cells that they meet alone. Those of a batch lie close to
    # each other, so they walk the same nodes.
    fit, order = index.fit_near(lattice), _by_place(lattice)
    of_batches = _traversals(fit, lattice[order])
    totals = concatenate([query_totals(fit, traversal, batch) for batch, traversal in of_batches])
    return totals[np.argsort(order)]


def box_estimates(index: QueryIndex, regions: Any) -> NDArray[np.float64]:
    """Estimate the counts of boxes, without errors; see `Release.query`."""
    boxes, ids = parse_boxes(regions)
    _check_boxes(index.record.domain, boxes, ids)
    return np.maximum(box_totals(index, index.fit.estimates.count, boxes), 0.0)


def box_totals(
    index: QueryIndex, values: NDArray[np.float64], boxes: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sum covered share times value over cells of boxes, (n, 4), to rounding of the largest value.

    values: (nodes,) float64, the children of a node sum to it; boxes in the CRS of the release.
    """
    lattice = index.record.domain.to_lattice(boxes)
    # Leaves in rows and columns: four look-ups for each box, however many cells it covers.
    if index.mesh is not None:
        is_estimate = values is index.fit.estimates.count
        table = index.summed_area if is_estimate else index.mesh.table(values)
        return index.mesh.totals(table, lattice)
    engine = _compiled_engine(index, len(boxes))
    if engine is not None:
        totals: NDArray[np.float64] = engine.walk_value_totals(index.flat_tree, values, lattice)
        return totals
    order = _by_place(lattice)
    of_batches = _traversals(index.fit, lattice[order])
    parts = [weighted_total(traversal, values) for _, traversal in of_batches]
    return np.concatenate([np.empty(0), *parts])[np.argsort(order)]


def _compiled_engine(index: QueryIndex, queries: int) -> ModuleType | None:
    """Module of the compiled walk for many boxes; None without numba, and with regions."""
    if queries < COMPILED_FROM or isinstance(index.record.tree, RegionTree):
        return None
    try:
        from psd.query import compiled_walk as compiled
    except ImportError:
        return None
    return compiled


def _by_place(lattice: NDArray[np.float64]) -> NDArray[np.int64]:
    """Order in which neighbouring boxes, which meet the same cells, come after each other."""
    if len(lattice) <= _BOXES_PER_BATCH:
        return np.arange(len(lattice))
    middle = ((lattice[:, :2] + lattice[:, 2:]) / 2).astype(np.int64)
    return np.argsort(morton_codes(middle[:, 0], middle[:, 1]), kind="stable")


def _traversals(
    fit: Fit, lattice: NDArray[np.float64]
) -> Iterator[tuple[NDArray[np.float64], Traversal]]:
    """Traverse the tree for boxes in lattice units, for as many together as there is room for."""
    edges = range(_BOXES_PER_BATCH, len(lattice), _BOXES_PER_BATCH)
    batches = np.split(lattice, edges)[::-1]
    if len(lattice) >= COMPILED_FROM and isinstance(fit.density, SmoothDensity):
        fit.density.keep()  # chunks have too few leaves each to tell
    is_end = None if isinstance(fit.tree, RegionTree) else fit.tree.is_end
    while batches:
        batch = batches.pop()
        fraction = box_fraction(fit, batch)
        traversal = traverse_within(fit.tree, len(batch), fraction, _PAIRS_PER_BATCH, is_end)
        if traversal is None:
            # More pairs than there is room for: both halves by themselves, the first one next.
            half = len(batch) // 2
            batches += [batch[half:], batch[:half]]
        else:
            yield batch, traversal
