"""Time slices that a charge depends on, by the hours of the wall clock. Private side.

A charge states them for its dataset before a record is read; they are those of the request and
never those that occur in the data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from psd._util.wall_clock import is_zone_name, zone_rules
from psd.space.time_slices import MAX_SLICES, By, TimeSlices, slice_name

__all__ = ["ChargedSlices", "is_slices", "parse_slices", "slices_fields", "slices_of"]

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
    return _is_spans(value["by"], value["spans"])


def _is_spans(by: str, value: object) -> bool:
    """Whether a value is a list of runs of hours, of whole days unless slices are hours."""
    if not (isinstance(value, list) and 0 < len(value) <= MAX_SLICES):
        return False
    if not all(isinstance(span, list) and len(span) == 2 for span in value):
        return False
    if not all(isinstance(text, str) and _HOUR.fullmatch(text) for span in value for text in span):
        return False
    hours = [_hour(text) for span in value for text in span]  # ValueError for 30 February
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
