"""Windows of time that a caller asks for, and changes of clocks in them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from psd._util.wall_clock import check_zone
from psd.errors import ParameterError, PsdWarning
from psd.space.time_slices import MAX_SLICES, TimeSlices, TimeWindow, names_of_times

__all__ = ["read_windows"]


def read_windows(when: Any, slices: TimeSlices) -> tuple[list[TimeWindow], bool]:
    """Windows of a text, date or window, or of several; and whether one was given."""
    is_index = hasattr(when, "freqstr") and isinstance(when, Iterable)
    is_list = is_index or isinstance(when, list | tuple | TimeSlices)
    try:
        given = list(names_of_times(when) if is_index else when) if is_list else [when]
        given = [names_of_times([each])[0] if _is_time(each) else each for each in given]
    except ParameterError as error:
        raise ParameterError(str(error).replace("slices", "when", 1), name="when") from None
    if not 0 < len(given) <= MAX_SLICES:
        raise ParameterError(
            f"when must be 1 to {MAX_SLICES:,} windows, got {len(given):,}", name="when"
        )
    windows = []
    for each in given:
        window = each if isinstance(each, TimeWindow) else slices.window(each)
        if window.numbers[-1] >= len(slices):
            raise ParameterError(
                f"when must be a window of the {len(slices):,} slices of the release, got one with "
                f"slice number {window.numbers[-1]:,}, from 0",
                name="when",
            )
        windows.append(window)
    return windows, is_list


def _is_time(value: object) -> bool:
    """Whether a value is a date or a time, and not a column or an index of them."""
    return hasattr(value, "strftime") and not hasattr(value, "dtype")


def warn_of_clock_changes(windows: Sequence[TimeWindow], slices: TimeSlices) -> None:
    """Warn if windows of hours hold one that the clocks skip or repeat."""
    # Such an hour stays a slice: records without an offset may be in one that does not exist, and
    # one that occurs twice counts both.
    if slices.by != "hour":
        return
    try:
        zone = ZoneInfo(check_zone(slices.time_zone))
    except ParameterError:  # this machine does not have the zone
        return
    numbers = np.unique(np.concatenate([window.numbers for window in windows]))
    skipped: list[str] = []
    repeated: list[str] = []
    for number, hour in zip(numbers, slices.begins[numbers].tolist(), strict=True):
        for moment in (hour, hour + timedelta(minutes=30)):
            before, after = (_offset(moment, zone, fold) for fold in (0, 1))
            if before != after:
                (skipped if before < after else repeated).append(slices.names[number])
                break
    found = [f"{name} does not exist" for name in skipped]
    found += [f"{name} occurs twice and is one slice" for name in repeated]
    if found:
        more = "" if len(found) == 1 else f", and {len(found) - 1:,} more of such hours"
        warnings.warn(
            f"when has a change of clocks in it, in {slices.time_zone}: the hour {found[0]}{more}",
            PsdWarning,
            stacklevel=4,
        )


def _offset(moment: datetime, zone: ZoneInfo, fold: int) -> timedelta:
    """Offset of the first or second moment at which clocks show a time."""
    offset = moment.replace(tzinfo=zone, fold=fold).utcoffset()
    return timedelta() if offset is None else offset
