"""Time slices: public hours, days, weeks or months of local time, each counted separately."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from psd._util.instances import check_choice, shown, type_text
from psd._util.wall_clock import is_zone_name
from psd.errors import ParameterError, PsdWarning

__all__ = ["By", "TimeSlices", "TimeWindow", "slices_from_text"]

By = Literal["hour", "day", "week", "month"]

MAX_SLICES = 10_000

# Names of slices by their length.
_LENGTHS: dict[int, By] = {7: "month", 8: "week", 10: "day", 13: "hour"}

_UNITS = {"hour": "h", "day": "D", "week": "W", "month": "M"}
_FORMS = {"hour": "2024-01-31T17", "day": "2024-01-31", "week": "2024-W05", "month": "2024-01"}
_PATTERNS = {by: re.sub("[0-9]", "[0-9]", form) for by, form in _FORMS.items()}

# Frequencies of pandas, and the names of their times.
_DATES = {"D": "%Y-%m-%d", "h": "%Y-%m-%dT%H", "MS": "%Y-%m", "ME": "%Y-%m"}
_CLOCK = ("hour", "minute", "second", "microsecond")
_PERIODS = {"D": "%Y-%m-%d", "h": "%Y-%m-%dT%H", "M": "%Y-%m", "W-SUN": "%G-W%V"}

# Weeks of numpy begin on the Thursday 1970-01-01, those of ISO 8601 on a Monday, 3 days before.
_LEAD = np.timedelta64(3, "D")


Minutes = NDArray[np.datetime64]

_WEEK = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAYS: dict[str, tuple[int, ...]] = {
    **{day: (number,) for number, day in enumerate(_WEEK)},
    "weekday": (0, 1, 2, 3, 4),
    "weekend": (5, 6),
    "daily": (0, 1, 2, 3, 4, 5, 6),
}

_HOURS = re.compile(r"([0-9]{1,2})(?::([0-9]{2}))?(?:-|\.\.)([0-9]{1,2})(?::([0-9]{2}))?")
_CLOCK_TIME = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2})(?::([0-9]{2}))?")
_YEAR = re.compile(r"[0-9]{4}")
_DAY_MINUTES = 1440

_RULE = (
    "when must be a year, month, week, day or hour such as 2024-01, 2024-W05, 2024-01-31 or "
    "2024-01-31T17, FIRST..LAST, days such as mondays or weekends, hours such as 07-09, or several "
    "of these, such as weekdays 07-09"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSlices:
    """Hours, days, weeks or months, named by the caller and never taken from the data.

    Guarantees
    ----------
    - Names are ascending and different, so a time lies in at most one slice.
    - The slice of a record depends on its time alone.

    Parameters
    ----------
    by : {"hour", "day", "week", "month"}
        Length of a slice; weeks are those of ISO 8601, from Monday to Sunday. Public.
    names : tuple of str
        Such as ``2024-01``, ``2024-W05``, ``2024-01-31`` or ``2024-01-31T17``, at most 10,000.
        Public.
    time_zone : str
        Zone of the local times. Public.

    Raises
    ------
    ParameterError
        If a name is not an hour, day, week or month, is repeated, or there is no name.

    Notes
    -----
    A list that is made of the data, even its first and last month, reveals when people were
    present. The hour that clocks repeat in autumn is one slice.

    Examples
    --------
    >>> TimeSlices.parse("month", "2024-01..2024-03").names
    ('2024-01', '2024-02', '2024-03')
    >>> import numpy as np
    >>> moments = np.array(["2024-02-29T23:59", "2024-04-01"], "datetime64[us]")
    >>> TimeSlices.parse("month", "2024-01..2024-03").index(moments).tolist()
    [1, -1]
    """

    by: By
    names: tuple[str, ...]
    time_zone: str = "UTC"
    numbers: NDArray[np.int64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Read the names."""
        check_choice("by", self.by, get_args(By))
        if not 0 < len(self.names) <= MAX_SLICES:
            raise ParameterError(f"slices must be 1 to {MAX_SLICES:,}, got {len(self.names):,}")
        if not is_zone_name(self.time_zone):
            raise ParameterError("time_zone must be the name of a time zone, such as Asia/Seoul")
        numbers = _numbers_of(self.by, self.names)
        steps = np.diff(numbers)
        if (steps <= 0).any():
            at = int(np.flatnonzero(steps <= 0)[0]) + 1
            raise ParameterError(
                f"slices must be in the order of time, each once; {self.names[at]} is repeated or "
                "follows a later one"
            )
        object.__setattr__(self, "names", tuple(self.names))
        numbers.setflags(write=False)
        object.__setattr__(self, "numbers", numbers)

    @staticmethod
    def parse(by: By, text: str, time_zone: str = "UTC") -> TimeSlices:
        """Parse a text: names, and ranges ``FIRST..LAST`` with both ends, separated by commas.

        Raises
        ------
        ParameterError
            If a part is neither a name nor a range, or the ranges are empty, overlap or are too
            long.
        """
        check_choice("by", by, get_args(By))
        names: list[str] = []
        for part in text.split(","):
            first, dots, last = (piece.strip() for piece in part.partition(".."))
            if not dots:
                names.append(first)
                continue
            if not (first and last):
                raise ParameterError(
                    f"slices must have both ends of FIRST..LAST, got {part[:80]!r}"
                )
            begin, end = _numbers_of(by, [first, last]).tolist()
            if end < begin:
                raise ParameterError(f"slices must run forward, got {first}..{last}")
            if end - begin >= MAX_SLICES:
                raise ParameterError(
                    f"slices must be at most {MAX_SLICES:,}, got {end - begin + 1:,} from {first} "
                    f"to {last}"
                )
            moments = _begins(by, np.arange(begin, end + 1))
            if by == "week":
                names += [slice_name(by, moment) for moment in moments]
            else:
                names += moments.astype(f"datetime64[{_UNITS[by]}]").astype(str).tolist()
        return TimeSlices(by=by, names=tuple(names), time_zone=time_zone)

    def __len__(self) -> int:
        """Number of slices."""
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        """Names in the order of time."""
        return iter(self.names)

    @property
    def begins(self) -> NDArray[np.datetime64]:
        """First hour of each slice."""
        return _begins(self.by, self.numbers)

    @property
    def ends(self) -> NDArray[np.datetime64]:
        """Hour after each slice."""
        return _begins(self.by, self.numbers + 1)

    def index(self, time: NDArray[np.datetime64]) -> NDArray[np.int64]:
        """Number of the slice of each time, -1 for times outside all slices.

        Parameters
        ----------
        time : ndarray, shape (n,), datetime64
            Local times.

        Returns
        -------
        ndarray, shape (n,), int64
        """
        numbers, last = _numbers(self.by, time), len(self.numbers) - 1
        if self.numbers[-1] - self.numbers[0] == last:  # no gap, so nothing is searched
            at = numbers - self.numbers[0]
            return np.where((at >= 0) & (at <= last), at, -1)
        at = np.minimum(np.searchsorted(self.numbers, numbers), last)
        return np.where(self.numbers[at] == numbers, at, -1)

    def window(self, text: str) -> TimeWindow:
        """Read a window of time: slices that are answered as one.

        Parameters
        ----------
        text : str
            A period, days of the week and hours of the day, in any order, each at most once; the
            window is what they have in common.

            A period is a year, month, week, day or hour, or ``FIRST..LAST``. Years, months, weeks
            and days are taken whole, the last one too. Hours are times of the clock, so
            ``2024-01-31T07..2024-01-31T09`` is from 07:00 to 09:00. Several, separated by commas,
            are taken together.

            Days are ``mondays`` to ``sundays``, ``weekdays``, ``weekends`` and ``daily``, several
            separated by commas. Hours are such as ``07-09``, from 07:00 to 09:00; ``22-02`` ends on
            the next day, and is of the days and the period in which it begins.

            Hours that the slices have in part are answered in part, with a warning.

        Returns
        -------
        psd.space.time_slices.TimeWindow
            Its ``numbers`` are those of the slices, from 0.

        Raises
        ------
        ParameterError
            If it is none of these; a slice is partly in it, of which the message names a window
            that is like it; a part of the period is in no slice; or nothing is in it.

        Examples
        --------
        >>> import psd
        >>> hours = psd.TimeSlices.parse("hour", "2024-01-01T00..2024-01-07T23")
        >>> hours.window("2024-01-02T07..2024-01-02T09").numbers.tolist()
        [31, 32]
        >>> hours.window("weekdays 07-09 2024-01-04..2024-01-06").numbers.tolist()
        [79, 80, 103, 104]
        """
        return _parse_window(text, self)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimeWindow:
    """Slices of a series that are answered as one.

    Guarantees
    ----------
    - It depends on its text and on the public list of slices alone.

    Parameters
    ----------
    name : str
        Names its rows among answers. Public.
    numbers : array_like of int
        Numbers of the slices, from 0, ascending. Public.

    Raises
    ------
    ParameterError
        If there is no number, or they are negative or not ascending.

    Examples
    --------
    >>> import psd
    >>> days = psd.TimeSlices.parse("day", "2024-01-01..2024-01-31")
    >>> days.window("weekends").numbers.tolist()
    [5, 6, 12, 13, 19, 20, 26, 27]
    >>> TimeWindow(name="holidays", numbers=[0, 5]).numbers.tolist()
    [0, 5]
    """

    name: str
    numbers: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Check the numbers, and make them read-only."""
        if not isinstance(self.name, str) or not self.name:
            raise ParameterError(f"name must be a text, got {shown(self.name)}", name="name")
        numbers = np.array(self.numbers)
        is_whole = numbers.ndim == 1 and numbers.dtype.kind in "iu" and len(numbers) > 0
        numbers = numbers.astype(np.int64) if is_whole else numbers
        if not is_whole or numbers[0] < 0 or (np.diff(numbers) <= 0).any():
            raise ParameterError(
                "numbers must be those of slices, from 0, ascending, at least one, got "
                f"{type_text(self.numbers)}",
                name="numbers",
            )
        numbers.setflags(write=False)
        object.__setattr__(self, "numbers", numbers)

    def __len__(self) -> int:
        """Number of slices."""
        return len(self.numbers)


def slice_name(by: By, moment: np.datetime64) -> str:
    """Name of the slice that holds a moment."""
    if by == "week":
        year, week, _ = moment.astype("datetime64[D]").item().isocalendar()
        return f"{year:04}-W{week:02}"
    return str(moment.astype(f"datetime64[{_UNITS[by]}]"))


def _numbers(by: By, time: NDArray[np.datetime64]) -> NDArray[np.int64]:
    """Number of the slice of each time, from the one of 1970-01-01 on."""
    moved = time + _LEAD if by == "week" else time
    return moved.astype(f"datetime64[{_UNITS[by]}]").astype(np.int64)


def _begins(by: By, numbers: NDArray[np.int64]) -> NDArray[np.datetime64]:
    """First hour of the slices of numbers."""
    starts = numbers.astype(f"datetime64[{_UNITS[by]}]")
    moved: NDArray[np.datetime64] = starts.astype("datetime64[h]")
    return moved + -_LEAD if by == "week" else moved


def _numbers_of(by: By, names: Sequence[str]) -> NDArray[np.int64]:
    """Number of the slice of each name."""
    matches = re.compile(_PATTERNS[by]).fullmatch
    try:
        if all(isinstance(name, str) and matches(name) for name in names):
            if by != "week":
                return _numbers(by, np.array(names, "datetime64[h]"))
            # The last day of a week must be in the calendar.
            last = [date.fromisocalendar(int(name[:4]), int(name[6:]), 7) for name in names]
            return _numbers(by, np.array(last, "datetime64[D]"))
    except ValueError:  # such as 30 February
        pass
    if len(names) > 1:
        return np.concatenate([_numbers_of(by, [name]) for name in names])
    raise ParameterError(f"slices must be of the form {_FORMS[by]} by {by}, got {names[0]!r}")


def slices_from_text(text: str, time_zone: str) -> TimeSlices:
    """Time slices of a text; its form determines their length.

    Months 2024-01, weeks 2024-W05, days 2024-01-31 or hours 2024-01-31T17, and ranges FIRST..LAST
    with both ends, separated by commas.
    """
    first = re.split(r",|\.\.", text)[0].strip()
    by = _LENGTHS.get(len(first))
    if by is None or (by == "week") != ("W" in first):  # as long as one, such as 2024-1-3
        raise ParameterError(
            "slices must be months, weeks, days or hours such as 2024-01, 2024-W05, 2024-01-31 or "
            f"2024-01-31T17, or ranges FIRST..LAST, got {first[:80]!r}"
        )
    return TimeSlices.parse(by, text, time_zone)


def names_of_times(value: Any) -> Any:
    """Names of the slices of dates, of a ``DatetimeIndex`` or of a ``PeriodIndex``; others stay."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return value
    is_index = hasattr(value, "freqstr")
    times = list(value)
    if getattr(getattr(value, "dtype", None), "kind", "") == "M" and isinstance(value, np.ndarray):
        times = value.astype("datetime64[us]").tolist()
    if not times or not all(hasattr(time, "strftime") for time in times):
        return value
    # Dates are days, unless their frequency is hours or the beginnings or ends of months.
    freq = str(value.freqstr or "D") if is_index else "D"
    forms = _PERIODS if hasattr(times[0], "end_time") else _DATES
    if not is_index and forms is _PERIODS:
        freq = str(times[0].freqstr)
    if freq not in forms:
        raise ParameterError(
            f"slices must be hours, days, weeks from Monday to Sunday, or months, got {freq[:20]!r}"
            '; write their names, such as "2024-W01..2024-W09"',
            name="slices",
        )
    if any(getattr(time, "tzinfo", None) is not None for time in times):
        raise ParameterError(
            "slices must be times without a zone, got one; time_zone= names that of all slices",
            name="slices",
        )
    is_clock = [any(getattr(time, part, 0) for part in _CLOCK) for time in times]
    if forms[freq] == "%Y-%m-%d" and any(is_clock):
        raise ParameterError(
            "slices must be dates, got times of a day; write hours as 2024-01-31T17", name="slices"
        )
    # A week of pandas 3.1 cannot write its ISO year and week; the time at which it begins can.
    return [getattr(time, "start_time", time).strftime(forms[freq]) for time in times]


def slices_text(slices: TimeSlices) -> str:
    """The shortest text of slices, from which `slices_from_text` reads them back."""
    # Runs of slices without a gap are ranges.
    breaks = np.flatnonzero(np.diff(slices.numbers) != 1) + 1
    runs = np.split(np.arange(len(slices)), breaks)
    names = slices.names
    parts = [
        names[run[0]] if len(run) == 1 else f"{names[run[0]]}..{names[run[-1]]}" for run in runs
    ]
    return ",".join(parts)


def _parse_window(text: str, slices: TimeSlices) -> TimeWindow:
    """Read a window of the slices of a series; see `TimeSlices.window`."""
    asked = re.sub(r"\s*(\.\.|,|-)\s*", r"\1", text.strip()) if isinstance(text, str) else ""
    if not asked:
        raise ParameterError(f"{_RULE}, got {shown(text)}", name="when")
    words: dict[str, str] = {}
    for word in asked.split():
        kind, *others = {_kind_of(part) for part in word.split(",")}
        if others or kind in words or (kind == "hours" and "," in word):
            raise ParameterError(
                "when must have days, one span of hours and a period, at most once each, got "
                f"{shown(text)}; several windows are a list, or one --when each",
                name="when",
            )
        words[kind] = word
    name, period = " ".join(asked.split()), words.get("period")
    begins = slices.begins.astype("datetime64[m]")
    ends = slices.ends.astype("datetime64[m]")
    inside = np.ones(len(slices), bool)
    if period is not None:
        inside[:] = False
        for part in period.split(","):
            inside |= _in_period(part, text, slices)
    if len(words) > (period is not None):
        clock = _clock_of(words.get("hours", "00-24"), text)
        days = _days_of(words.get("days", "daily"))
        starts, stops = _times_of_days(days, clock, begins[inside][0], ends[inside][-1])
        if period is not None and clock[1] > _DAY_MINUTES:
            if "T" in period.upper():
                raise ParameterError(
                    f"when must have whole days with hours over midnight, got {shown(text)}; one "
                    "night is such as 2024-01-31T22..2024-02-01T02",
                    name="when",
                )
            # A night is of the day on which it begins, and may end after the period.
            at = np.searchsorted(begins, starts, side="right") - 1
            is_begun = (at >= 0) & inside[at] & (starts < ends[at])
            inside[:] = is_begun.any()
            if is_begun.any():
                starts, stops = starts[is_begun], stops[is_begun]
        # The first of them that ends after a slice begins.
        at = np.minimum(np.searchsorted(stops, begins, side="right"), len(stops) - 1)
        is_met = inside & (starts[at] < ends) & (begins < stops[at])
        is_within = (starts[at] <= begins) & (ends <= stops[at])
        inside = is_met & is_within
        if (is_met & ~inside).any():
            like = slices.names[np.flatnonzero(is_met & ~inside)[0]]
            if slices.by == "hour":
                first, last = clock[0] // 60, -(-clock[1] // 60)
                words["hours"] = f"{first:02}-{last - 24 * (last > 24):02}"
                like = " ".join(words.values())
            elif slices.by == "day":
                like = " ".join(word for kind, word in words.items() if kind != "hours") or "daily"
            raise _cuts_slices(name, slices, like)
        # Hours that slices have in part: all slices within them are shorter.
        within = np.bincount(at[is_within], (ends - begins)[is_within].astype(np.int64), len(stops))
        length = (stops - starts).astype(np.int64)
        is_met = np.bincount(at[inside], minlength=len(stops)) > 0
        parts = np.flatnonzero(is_met & (within < length) & (length < _DAY_MINUTES))
        if len(parts):
            more = "" if len(parts) == 1 else f", and {len(parts) - 1:,} more of such hours"
            warnings.warn(
                "when has hours that reach beyond the slices, and are answered in part: from "
                f"{_moment(starts[parts[0]])} to {_moment(stops[parts[0]])}{more}",
                PsdWarning,
                stacklevel=3,
            )
    if not inside.any():
        raise ParameterError(
            f"when must have a slice in it, got {shown(text)}; the slices are from "
            f"{_moment(begins[0])} to {_moment(ends[-1])}",
            name="when",
        )
    return TimeWindow(name=name, numbers=np.flatnonzero(inside))


def _kind_of(part: str) -> str:
    """Which part of a window a word without commas is."""
    return "days" if _days_of(part) else "hours" if _HOURS.fullmatch(part) else "period"


def _days_of(word: str) -> tuple[int, ...]:
    """Days of the week that a word names, 0 to 6; none if it names something else."""
    found: set[int] = set()
    for part in word.lower().split(","):
        name = part.removesuffix("s")
        if name not in _DAYS:
            return ()
        found |= {*_DAYS[name]}
    return tuple(sorted(found))


def _clock_of(hours: str, text: str) -> tuple[int, int]:
    """Minutes from midnight at which hours begin and end; of nights the end is on the next day."""
    found = _HOURS.fullmatch(hours)
    assert found is not None  # `_kind_of` says so
    parts = [int(part or 0) for part in found.groups()]
    first, last = 60 * parts[0] + parts[1], 60 * parts[2] + parts[3]
    is_clock = max(parts[1], parts[3]) < 60 and first < _DAY_MINUTES and last <= _DAY_MINUTES
    if not is_clock or first == last:
        raise ParameterError(
            "when must have hours of the clock, from one to another, such as 07-09 or 22-02, "
            f"got {shown(text)}",
            name="when",
        )
    return first, last + _DAY_MINUTES * (last < first)


def _times_of_days(
    days: tuple[int, ...], clock: tuple[int, int], low: np.datetime64, high: np.datetime64
) -> tuple[Minutes, Minutes]:
    """Beginnings and ends of the hours of days between two moments, merged where they meet."""
    first, last = clock
    # A week more on each side, so that there is one of them.
    week = np.timedelta64(7, "D")
    dates: Minutes = np.arange(
        low.astype("datetime64[D]") - week, high.astype("datetime64[D]") + week
    )
    # 1970-01-01 was a Thursday.
    dates = dates[np.isin((dates.astype(np.int64) + 3) % 7, days)].astype("datetime64[m]")
    # Hours of each day; those that begin where others end are one span.
    starts, stops = dates + np.timedelta64(first, "m"), dates + np.timedelta64(last, "m")
    is_new = np.ones(len(starts), bool)
    is_new[1:] = starts[1:] != stops[:-1]
    is_last = np.append(is_new[1:], True)[: len(stops)]
    return starts[is_new], stops[is_last]


def _in_period(part: str, text: str, slices: TimeSlices) -> NDArray[np.bool_]:
    """Whether each slice is in a period, of which all time must be in slices; (slices,) bool."""
    begins, ends = (each.astype("datetime64[m]") for each in (slices.begins, slices.ends))
    first, dots, last = part.partition("..")
    begin, end, is_clock = _span(first, text, slices.time_zone)
    if dots:
        last_begin, last_end, is_clock = _span(last, text, slices.time_zone)
        # The last hour of a range is a time of the clock, at which it ends.
        end = last_begin if is_clock else last_end
    if begin >= end:
        advice = "; hours are times of the clock, T07..T08 is one hour" if is_clock else ""
        raise ParameterError(f"when must run forward, got {part}{advice}", name="when")
    inside = (begins >= begin) & (ends <= end)
    if begin not in begins or end not in ends or not inside.any():
        if end <= begins[0] or begin >= ends[-1]:
            raise ParameterError(
                f"when must be in the slices, from {_moment(begins[0])} until before "
                f"{_moment(ends[-1])}, got {part[:80]}",
                name="when",
            )
        at = int(np.abs(begins - begin).argmin())
        run = np.flatnonzero(
            slices.numbers[at:] == slices.numbers[at] + np.arange(len(begins) - at)
        )
        stop = at + int(np.abs(ends[at + run] - end).argmin())
        names = [slices.names[at], slices.names[stop]]
        if slices.by == "hour" and {begins[at].item().hour, ends[stop].item().hour} == {0}:
            names = [each[:10] for each in names]  # whole days
        elif slices.by == "hour" and stop > at:
            names[1] = str(ends[stop].astype("datetime64[h]"))  # a time of the clock
        raise _cuts_slices(part, slices, "..".join(dict.fromkeys(names)))
    numbers = np.flatnonzero(inside)
    gap = np.flatnonzero(begins[numbers[1:]] != ends[numbers[:-1]])
    if len(gap):
        low, high = ends[numbers[gap[0]]], begins[numbers[gap[0] + 1]]
        raise ParameterError(
            f"when must be made of slices, got {part}; there are none from {_moment(low)} to "
            f"{_moment(high)}",
            name="when",
        )
    return inside


def _span(name: str, text: str, zone: str) -> tuple[np.datetime64, np.datetime64, bool]:
    """Beginning and end of a year, month, week, day or hour, and whether it is an hour."""
    clock, hour, minute = _CLOCK_TIME.fullmatch(name), 0, 0
    try:
        if _YEAR.fullmatch(name):
            found = slices_from_text(f"{name}-01..{name}-12", zone)
        else:
            found = slices_from_text(name if clock is None else clock[1], zone)
        if clock is not None:
            hour, minute = int(clock[2]), int(clock[3] or 0)
        is_one = len(found) == 1 or _YEAR.fullmatch(name) is not None
        is_time = is_one and minute < 60 and 60 * hour + minute <= _DAY_MINUTES
    except ParameterError:
        is_time = False
    if not is_time:
        which = "" if name == text.strip() else f"; {name[:40]!r} is none of these"
        raise ParameterError(f"{_RULE}, got {shown(text)}{which}", name="when")
    begin, end = (moment.astype("datetime64[m]") for moment in (found.begins[0], found.ends[-1]))
    if clock is not None:
        begin = begin + np.timedelta64(60 * hour + minute, "m")
        # A minute, and the end of a day, is a moment.
        end = begin + np.timedelta64(60 * (clock[3] is None and hour < 24), "m")
    return begin, end, clock is not None


def _cuts_slices(text: str, slices: TimeSlices, like: str) -> ParameterError:
    """Error of a window that cuts slices, or leaves them, with one that does not."""
    return ParameterError(
        f"when must begin and end where slices do, which are {slices.by}s from {slices.names[0]} "
        f'to {slices.names[-1]}, got {text[:80]}; try when="{like}"',
        name="when",
    )


def _moment(time: np.datetime64) -> str:
    """A moment as a day, an hour or a minute."""
    return str(time.astype("datetime64[m]")).removesuffix(":00").removesuffix("T00")
