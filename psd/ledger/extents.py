"""Where and when charges count, and the point of space and time at which they add up to the most.

Private side, reads no points. A charge depends on the records of a region, `psd.ledger.regions`,
and of time slices, `psd.ledger.charged_slices`. Charges add up where both have a common point.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psd.ledger.charged_slices import ChargedSlices, Span
from psd.ledger.regions import Region, spent_within

__all__ = ["ALWAYS_AND_EVERYWHERE", "Extent", "extent_for_unit", "largest_sum"]

Hours = NDArray[np.int64]

_HOURS_PER_PART = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """Region and time slices of the records on which a charge depends. Public."""

    region: Region | None = None  # none for all points
    slices: ChargedSlices | None = None  # none for all times


ALWAYS_AND_EVERYWHERE = Extent()


def extent_for_unit(extent: Extent, unit: str, time_zone: str | None) -> Extent:
    """Part of an extent that holds for all records of one unit of privacy."""
    # A record has one position and one time. All records of a user's day have times on that day, so
    # whole days, weeks and months in the zone of the unit hold for them, and a region does not. The
    # records of a user may lie anywhere, at any time.
    if unit == "record":
        return extent
    slices = extent.slices
    if unit != "user-day" or slices is None:
        return ALWAYS_AND_EVERYWHERE
    is_same_day = slices.are_whole_days and slices.time_zone == time_zone
    return Extent(slices=slices) if is_same_day else ALWAYS_AND_EVERYWHERE


def largest_sum(charges: Iterable[tuple[Extent, int]], within: Extent) -> int:
    """Compute the largest sum of amounts (nano-epsilon, or rho in 1e-12) over points of an extent.

    P1. A record is charged by every release whose region contains its position and whose slices
    contain its time.

    P2. Slices of another column, zone or rules of the zone than those of the extent are treated as
    if they contained the time of the record, whatever it is.

    Proof. A dataset registers how its records are read, and only a charge that reads them so states
    slices. So a record z has one local time t in each frame of slices: a column, a zone, and the
    rules of the zone on the machine that built. Local time is a function of the record, also in the
    hour that clocks repeat, which is one hour here. A release with slices is made from the records
    whose local time lies in one of them; the others are dropped one by one, whatever else is in the
    data. So a release whose slices do not contain t does not depend on z. Any other release is
    handled as in `psd.ledger.regions.spent_within`: at time t, the loss is at most the largest sum
    over positions of the charges that contain t. The loss of z is at most the largest of these sums
    over t. Charges of further frames are bounded by sums of their own, since z may have any time
    there, and these are added.

    The active charges change only where a slice begins or ends, and each set of active charges
    between two ends is within one that is active at the first hour of a slice. So only first hours
    are looked at, and the first hours of the extent.

    If the unit is a day of a user, every record of the unit has a time on this day, and all of them
    together are one record of the proof: a release with slices of whole days in the zone of the
    unit depends on the unit only if the day is in one of them. With hours, two slices of one day
    would both hold records of the unit, so hours count always; `extent_for_unit` removes them.

    Amounts may be epsilons or rhos, since both add up [1]_ and both are 0 for a release that does
    not depend on z.

    References
    ----------
    .. [1] Bun, Steinke. "Concentrated Differential Privacy: Simplifications, Extensions, and Lower
       Bounds." TCC 2016, lemma 7.
    """
    groups = _by_frame(charges, within.slices)
    frame = next(iter(groups), None) if within.slices is None else within.slices.frame
    total = 0
    for other, group in groups.items():
        times = within.slices if other == frame else None
        sums = (spent_within(active, within.region) for active in _active_sets(group, times))
        total += max(sums, default=0)
    return total


def _by_frame(
    charges: Iterable[tuple[Extent, int]], within: ChargedSlices | None
) -> dict[object, list[tuple[Extent, int]]]:
    """Charges by the frame of their slices, equal extents once; those for all times join one."""
    merged: dict[Extent, int] = {}
    for extent, amount in charges:
        merged[extent] = merged.get(extent, 0) + amount
    slices = (within, *(extent.slices for extent in merged))
    first = next((each.frame for each in slices if each is not None), None)
    groups: dict[object, list[tuple[Extent, int]]] = {first: []}
    for extent, amount in merged.items():
        frame = first if extent.slices is None else extent.slices.frame
        groups.setdefault(frame, []).append((extent, amount))
    return groups


def _active_sets(
    charges: Sequence[tuple[Extent, int]], within: ChargedSlices | None
) -> Iterator[list[tuple[Region | None, int]]]:
    """Sets of charges of one frame that have an hour in common, each once."""
    spans = [None if extent.slices is None else extent.slices.spans for extent, _ in charges]
    hours = _first_hours([each for each in spans if each is not None], within)
    seen: set[bytes] = set()
    for start in range(0, len(hours), _HOURS_PER_PART):
        part = hours[start : start + _HOURS_PER_PART]
        is_active = np.array([_contain(each, part) for each in spans], bool)
        for column in np.unique(is_active.reshape(len(spans), len(part)), axis=1).T:
            if (key := column.tobytes()) not in seen:
                seen.add(key)
                active = (charges[number] for number in np.flatnonzero(column).tolist())
                yield [(extent.region, amount) for extent, amount in active]


def _first_hours(spans: Sequence[tuple[Span, ...]], within: ChargedSlices | None) -> Hours:
    """First hours of all slices that lie in an extent, and its own; any hour if there is none."""
    begins = np.unique([first for each in spans for first, _ in each]).astype(np.int64)
    if within is None:
        return begins if len(begins) else np.zeros(1, np.int64)
    firsts = np.array([first for first, _ in within.spans], np.int64)
    return np.union1d(begins[_contain(within.spans, begins)], firsts)


def _contain(spans: tuple[Span, ...] | None, hours: Hours) -> NDArray[np.bool_]:
    """Whether runs of slices contain each hour; all times do."""
    if spans is None:
        return np.ones(len(hours), bool)
    first, last = np.array(spans, np.int64).T
    at = np.searchsorted(first, hours, side="right") - 1
    contained: NDArray[np.bool_] = (at >= 0) & (hours <= last[at])
    return contained
