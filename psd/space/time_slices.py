"""Time slices: public hours, days, weeks or months of local time, each counted separately."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from psd._util.instances import shown
from psd._util.wall_clock import is_zone_name
from psd.errors import ParameterError

__all__ = [
    "MAX_SLICES",
    "By",
    "TimeSlices",
    "names_of_times",
    "slice_name",
    "slices_from_text",
    "slices_text",
]

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
        if self.by not in get_args(By):
            raise ParameterError(f"by must be one of {', '.join(get_args(By))}, got {self.by!r}")
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
        if by not in get_args(By):
            raise ParameterError(f"by must be one of {', '.join(get_args(By))}, got {by!r}")
        names: list[str] = []
        for part in text.split(","):
            first, dots, last = (piece.strip() for piece in part.partition(".."))
            if not dots:
                names.append(first)
                continue
            begin, end = _numbers_of(by, [first, last]).tolist()
            if not 0 <= end - begin < MAX_SLICES:
                raise ParameterError(
                    f"slices must run forward and be at most {MAX_SLICES:,}, got {first}..{last}"
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
        numbers = _numbers(self.by, time)
        at = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        return np.where(self.numbers[at] == numbers, at, -1)

    def window(self, text: str) -> list[int]:
        """Numbers of the slices that a window of time is made of.

        Parameters
        ----------
        text : str
            A month, week, day or hour, or a range ``FIRST..LAST`` with both ends.

        Raises
        ------
        ParameterError
            If it does not begin and end where slices do, or some of its time is in no slice; the
            message names the nearest edges.

        Examples
        --------
        >>> TimeSlices.parse("day", "2024-01-01..2024-03-31").window("2024-02")[::14]
        [31, 45, 59]
        """
        is_time = hasattr(text, "strftime") and not hasattr(text, "dtype")  # not several, of pandas
        (name,) = names_of_times([text]) if is_time else (text,)
        first, dots, last = (part.strip() for part in str(name).partition(".."))
        try:
            ends = [slices_from_text(each, self.time_zone) for each in (first, last or first)]
        except ParameterError:
            ends = []
        if not ends or any(len(each) > 1 for each in ends) or bool(dots) != bool(last):
            raise ParameterError(
                "when must be a month, week, day or hour such as 2024-01, 2024-W05, 2024-01-31 or "
                f"2024-01-31T17, or FIRST..LAST, got {shown(text)}",
                name="when",
            )
        begin, end = ends[0].begins[0], ends[1].ends[0]
        if begin >= end:
            raise ParameterError(f"when must run forward, got {first}..{last}", name="when")
        begins, stops = self.begins, self.ends
        inside = np.flatnonzero((begins >= begin) & (stops <= end))
        if begin not in begins or end not in stops or not len(inside):
            low = begins[np.abs(begins - begin).argmin()]
            after = stops[stops > low]
            high = after[np.abs(after - end).argmin()]
            raise ParameterError(
                f"when must begin and end where slices do, got {first}{dots}{last}, from "
                f"{_moment(begin)} to {_moment(end)}; the nearest edges are {_moment(low)} and "
                f"{_moment(high)}",
                name="when",
            )
        gap = np.flatnonzero(begins[inside[1:]] != stops[inside[:-1]])
        if len(gap):
            low, high = stops[inside[gap[0]]], begins[inside[gap[0] + 1]]
            raise ParameterError(
                f"when must be made of slices, got {first}{dots}{last}; there are none from "
                f"{_moment(low)} to {_moment(high)}",
                name="when",
            )
        return [int(number) for number in inside]


def _moment(time: np.datetime64) -> str:
    """A moment as a day, or as an hour inside one."""
    text = str(time.astype("datetime64[h]"))
    return text.removesuffix("T00")


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
    raise ParameterError(f"slice must be of the form {_FORMS[by]} by {by}, got {names[0]!r}")


def slices_from_text(text: str, time_zone: str) -> TimeSlices:
    """Time slices of a text; its form determines their length.

    Months 2024-01, weeks 2024-W05, days 2024-01-31 or hours 2024-01-31T17, and ranges FIRST..LAST
    with both ends, separated by commas.
    """
    first = re.split(r",|\.\.", text)[0].strip()
    by = _LENGTHS.get(len(first))
    if by is None:
        raise ParameterError(
            "slices must be months, weeks, days or hours such as 2024-01, 2024-W05, 2024-01-31 or "
            f"2024-01-31T17, got {first[:80]!r}"
        )
    return TimeSlices.parse(by, text, time_zone)


def names_of_times(value: Any) -> Any:
    """Names of the slices of dates, of a ``DatetimeIndex`` or of a ``PeriodIndex``; others stay.

    Dates are days, unless their frequency is hours or the beginnings or ends of months. Periods are
    hours, days, months, or weeks from Monday to Sunday.
    """
    if isinstance(value, str) or not isinstance(value, Iterable):
        return value
    is_index = hasattr(value, "freqstr")
    times = list(value)
    if getattr(getattr(value, "dtype", None), "kind", "") == "M" and isinstance(value, np.ndarray):
        times = value.astype("datetime64[us]").tolist()
    if not times or not all(hasattr(time, "strftime") for time in times):
        return value
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
    breaks = np.flatnonzero(np.diff(slices.numbers) != 1) + 1
    runs = np.split(np.arange(len(slices)), breaks)
    names = slices.names
    parts = [
        names[run[0]] if len(run) == 1 else f"{names[run[0]]}..{names[run[-1]]}" for run in runs
    ]
    return ",".join(parts)
