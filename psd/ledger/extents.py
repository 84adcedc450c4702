"""Where and when charges count, and the point of space and time at which they add up to the most.

Private side, reads no points. A charge depends on the records of a `Region` and of `ChargedSlices`
of the request, never on those in the data. Releases per record of regions without a common point
cost a record only the epsilon of its region. All other charges add up: code cannot check a reason.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from psd._util.wall_clock import is_zone_name, zone_rules
from psd.space.time_slices import MAX_SLICES, By, TimeSlices, slice_name

Span = tuple[int, int]

_HOUR = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}")
_TEXTS = ("column", "time_zone", "rules", "by")
_LONGEST = 1000
_DAY = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargedSlices:
    """Hours of local time to which the records of a charge belong. Public."""

    column: str  # column of times
    time_zone: str  # zone of the local times
    rules: str  # digest of the clock changes of the zone; by other rules a record has another slice
    by: By  # length of a slice
    # First and last hour of local time since 1970 of each run; ascending, with gaps.
    spans: tuple[Span, ...]

    @property
    def frame(self) -> tuple[str, str, str]:
        """Column, zone and rules, which two charges must share for their hours to be comparable."""
        return self.column, self.time_zone, self.rules

    @property
    def are_whole_days(self) -> bool:
        """Whether every slice is a whole day, week or month."""
        return self.by != "hour"

    def contain(self, slices: TimeSlices | None) -> bool:
        """Whether slices of the same zone and length are among these; all times are not."""
        if slices is None or (slices.by, slices.time_zone) != (self.by, self.time_zone):
            return False
        begins, ends = np.array(self.spans, np.int64).T
        first, last = _first_and_last_hours(slices)
        at = np.searchsorted(begins, first, side="right") - 1
        return bool(((at >= 0) & (last <= ends[at])).all())

    @property
    def text(self) -> str:
        """Runs of slices by their names, such as ``2026-01..2026-03, 2026-05``."""
        runs = [(_name(self.by, first), _name(self.by, last)) for first, last in self.spans]
        return ", ".join(a if a == b else f"{a}..{b}" for a, b in runs)


def slices_of(slices: TimeSlices, column: str) -> ChargedSlices:
    """Slices of a request as a charge states them."""
    # Slices that follow each other without a gap are one run; (n,) whether a slice begins one.
    first, last = _first_and_last_hours(slices)
    begins = np.append(True, first[1:] > last[:-1] + 1)
    ends = np.append(begins[1:], True)
    return ChargedSlices(
        column=column,
        time_zone=slices.time_zone,
        rules=zone_rules(slices.time_zone),
        by=slices.by,
        spans=tuple(zip(first[begins].tolist(), last[ends].tolist(), strict=True)),
    )


def _first_and_last_hours(slices: TimeSlices) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last hour of each slice, as hours of local time since 1970."""
    return slices.begins.astype(np.int64), slices.ends.astype(np.int64) - 1


def slices_fields(slices: ChargedSlices | None) -> dict[str, Any] | None:
    """Return the fields of slices, for the entry of a charge; hours as texts."""
    if slices is None:
        return None
    texts = {name: getattr(slices, name) for name in _TEXTS}
    return {**texts, "spans": [[_name("hour", hour) for hour in span] for span in slices.spans]}


def parse_slices(fields: Mapping[str, Any] | None) -> ChargedSlices | None:
    """Parse the slices of the entry of a charge; None counts always."""
    if fields is None:
        return None
    spans = tuple((_hour(first), _hour(last)) for first, last in fields["spans"])
    return ChargedSlices(**{name: fields[name] for name in _TEXTS}, spans=spans)


def is_slices(value: object) -> bool:
    """Whether a value of JSON is slices of an entry that this library writes."""
    if not isinstance(value, dict) or value.keys() != {*_TEXTS, "spans"}:
        return False
    if not all(isinstance(value[name], str) and len(value[name]) <= _LONGEST for name in _TEXTS):
        return False
    if value["by"] not in get_args(By) or not is_zone_name(value["time_zone"]):
        return False
    # Runs of hours, of whole days unless slices are hours.
    by, spans = value["by"], value["spans"]
    if not (isinstance(spans, list) and 0 < len(spans) <= MAX_SLICES):
        return False
    if not all(isinstance(span, list) and len(span) == 2 for span in spans):
        return False
    if not all(isinstance(text, str) and _HOUR.fullmatch(text) for span in spans for text in span):
        return False
    hours = [_hour(text) for span in spans for text in span]  # ValueError for 30 February
    gaps = [later - earlier for earlier, later in pairwise(hours)]
    if not (all(gap >= 0 for gap in gaps[::2]) and all(gap > 1 for gap in gaps[1::2])):
        return False
    ends = [*hours[::2], *(hour + 1 for hour in hours[1::2])]
    return by == "hour" or not any(hour % _DAY for hour in ends)


def _hour(text: str) -> int:
    """Hours of local time since 1970."""
    return int(np.datetime64(text, "h").astype(np.int64))


def _name(by: By, hour: int) -> str:
    """Name of the slice of an hour."""
    return slice_name(by, np.datetime64(hour, "h"))


Bounds = tuple[float, float, float, float]

BY_FIELDS = "reader=csv"
"""Item among the columns of a region: positions come only from the fields of CSV."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Area of the records on which a release can depend. Public."""

    bounds: Bounds  # west, south, east, north; the edges belong to the region
    crs: str  # CRS of the bounds, in its canonical text
    # Reader, columns and other options that decide the position of a record.
    columns: tuple[str, ...]
    lattice: tuple[int, int] = (1, 1)  # columns and rows of the release; not used for sums

    @property
    def frame(self) -> tuple[str, tuple[str, ...]]:
        """CRS and columns, which two regions must share for their bounds to be comparable."""
        return self.crs, self.columns


def region_fields(region: Region | None) -> dict[str, Any] | None:
    """Return the fields of a region, for the entry of a charge."""
    return None if region is None else asdict(region)


def parse_region(fields: Mapping[str, Any] | None) -> Region | None:
    """Parse the region of the entry of a charge; None if geometries may have placed records."""
    # A geometry may differ from the columns beside it, so such a charge counts everywhere.
    if fields is None or BY_FIELDS not in fields["columns"]:
        return None
    lists = {name: tuple(fields[name]) for name in ("bounds", "columns", "lattice")}
    return Region(crs=fields["crs"], **lists)


def spent_within(charges: Iterable[tuple[Region | None, int]], region: Region | None) -> int:
    """Compute the largest sum of epsilon, in nano-epsilon, over the points of a region.

    P1. A record at a point is charged by every release whose region contains that point. Regions
    that touch have points in common, since the far edges of a domain belong to it.
    P2. Regions in another CRS or of other columns, and no region, count as one of all points.

    Proof. Let record z lie at point p in frame f, and at some point in every other frame. A release
    whose region does not contain the point of z does not depend on z; any other loses at most its
    epsilon. So by basic composition [1]_ the loss is at most the sum over the charges everywhere
    plus, for each frame, the sum over its regions that contain the point of z in that frame, at
    most the largest such sum, taken within the region for the frame of the region. The sum is
    checked against a budget before every release, so the bound holds in every transcript. Releases
    may depend on earlier answers: with pure epsilons the check is a filter [2]_.

    A charge with another rule for positions than the registered one has no region, see
    `psd.ledger.state`: there is one frame for each CRS, and others from before the registration.

    .. [1] McSherry. "Privacy Integrated Queries." SIGMOD 2009, theorems 3 and 4.
    .. [2] Rogers, Roth, Ullman, Vadhan. "Privacy Odometers and Filters: Pay-as-you-Go Composition."
       NeurIPS 2016.
    """
    everywhere = 0
    frames: dict[object, dict[Bounds, int]] = defaultdict(lambda: defaultdict(int))
    for charged, loss in charges:
        if charged is None:
            everywhere += loss
        else:
            frames[charged.frame][charged.bounds] += loss
    for frame, sums in frames.items():
        is_same = region is not None and region.frame == frame
        everywhere += _largest_sum(sums, region.bounds if is_same and region else None)
    return everywhere


def _largest_sum(charges: dict[Bounds, int], within: Bounds | None) -> int:
    """Largest sum over points of closed boxes; it is reached at a west and a south edge."""
    boxes = np.array(list(charges), np.float64).reshape(-1, 4)
    loss = np.array(list(charges.values()), np.int64)
    if within is not None:  # cut the boxes at it; those that do not touch it have no point left
        low, high = np.maximum(boxes[:, :2], within[:2]), np.minimum(boxes[:, 2:], within[2:])
        meets = (low <= high).all(axis=1)
        boxes, loss = np.hstack([low, high])[meets], loss[meets]
    # Sweep from west to east: the boxes that meet the line x = west are closed intervals on it.
    largest = 0
    for west in np.unique(boxes[:, 0]):
        met = (boxes[:, 0] <= west) & (boxes[:, 2] >= west)
        largest = max(largest, _largest_sum_on_line(boxes[met, 1], boxes[met, 3], loss[met]))
    return largest


def _largest_sum_on_line(
    south: NDArray[np.float64], north: NDArray[np.float64], loss: NDArray[np.int64]
) -> int:
    """Largest sum over points of closed intervals: those begun minus those ended before."""
    # At each southern edge: the losses of all that begin up to it, less those that end below it.
    begun, ended = np.argsort(south), np.argsort(north)
    edges = south[begun]
    sums = np.append(0, np.cumsum(loss[begun])), np.append(0, np.cumsum(loss[ended]))
    at = sums[0][np.searchsorted(edges, edges, side="right")]
    at = at - sums[1][np.searchsorted(north[ended], edges, side="left")]
    return int(at.max(initial=0))


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

    P1. A record is charged by every release whose region and slices contain its position and time.
    P2. Slices of another column, zone or rules of the zone than those of the extent are treated as
    if they contained the time of the record, whatever it is.

    Proof. A dataset registers how its records are read, and only a charge that reads them so states
    slices. So a record z has one local time t in each frame of slices: a column, a zone, and the
    rules of the zone on the machine that built. t is a function of the record, also in the hour
    that clocks repeat, which is one hour here. A release with slices is made from the records whose
    local time lies in one of them; the others are dropped one by one, whatever else is in the data.
    So a release whose slices do not contain t does not depend on z. Any other one is handled as in
    `psd.ledger.extents.spent_within`: at time t, the loss is at most the largest sum over positions
    of the charges that contain t, so the loss of z is at most the largest of these sums over t. In
    further frames z may have any time: sums of their own bound these charges, and are added.

    The active charges change only where a slice begins or ends, and each set of active charges
    between two ends is within one that is active at the first hour of a slice. So only first hours
    are looked at, and the first hours of the extent.

    If the unit is a day of a user, every record of the unit has a time on this day, and all of them
    together are one record of the proof: a release with slices of whole days in the zone of the
    unit depends on the unit only if the day is in one of them. Two slices of hours of one day would
    both hold records of the unit, so hours count always; `extent_for_unit` removes them.

    Amounts may be epsilons or rhos, since both add up [1]_ and are 0 for a release that does not
    depend on z.

    .. [1] Bun, Steinke. "Concentrated Differential Privacy: Simplifications, Extensions, and Lower
       Bounds." TCC 2016, lemma 7.
    """
    # By the frame of their slices, equal extents once; charges for all times join one frame, that
    # of the slices of the extent, if it has any.
    merged: dict[Extent, int] = {}
    for extent, amount in charges:
        merged[extent] = merged.get(extent, 0) + amount
    slices = (within.slices, *(extent.slices for extent in merged))
    first = next((each.frame for each in slices if each is not None), None)
    groups: dict[object, list[tuple[Extent, int]]] = {first: []}
    for extent, amount in merged.items():
        frame = first if extent.slices is None else extent.slices.frame
        groups.setdefault(frame, []).append((extent, amount))
    total = 0
    for other, group in groups.items():
        times = within.slices if other == first else None
        total += max(spent_within(active, within.region) for active in _active_sets(group, times))
    return total


def _active_sets(
    charges: Sequence[tuple[Extent, int]], within: ChargedSlices | None
) -> Iterator[list[tuple[Region | None, int]]]:
    """Sets of charges of one frame that have an hour in common, each once."""
    spans = [None if extent.slices is None else extent.slices.spans for extent, _ in charges]
    # First hours of all slices that lie in the extent, and its own; any hour if there is none.
    begins = [first for each in spans if each is not None for first, _ in each]
    hours = np.unique(begins).astype(np.int64)
    if within is not None:
        firsts = np.array([first for first, _ in within.spans], np.int64)
        hours = np.union1d(hours[_contain(within.spans, hours)], firsts)
    elif not len(hours):
        hours = np.zeros(1, np.int64)
    seen: set[bytes] = set()
    for start in range(0, len(hours), _HOURS_PER_PART):
        # (charges, hours) whether a charge holds an hour; equal columns are one set of charges.
        part = hours[start : start + _HOURS_PER_PART]
        is_active = np.array([_contain(each, part) for each in spans])
        for column in np.unique(is_active.reshape(len(spans), len(part)), axis=1).T:
            if (key := column.tobytes()) not in seen:
                seen.add(key)
                active = (charges[number] for number in np.flatnonzero(column).tolist())
                yield [(extent.region, amount) for extent, amount in active]


def _contain(spans: tuple[Span, ...] | None, hours: Hours) -> NDArray[np.bool_]:
    """Whether runs of slices contain each hour; all times do."""
    if spans is None:
        return np.ones(len(hours), bool)
    first, last = np.array(spans, np.int64).T
    at = np.searchsorted(first, hours, side="right") - 1
    contained: NDArray[np.bool_] = (at >= 0) & (hours <= last[at])
    return contained
