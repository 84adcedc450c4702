"""Time slices: public hours, days or months of the wall clock that a series counts apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from psd.errors import ParameterError

__all__ = ["MAX_SLICES", "By", "TimeSlices"]

By = Literal["hour", "day", "month"]

MAX_SLICES = 10_000

_UNITS = {"hour": "h", "day": "D", "month": "M"}
_FORMS = {"hour": "2024-01-31T17", "day": "2024-01-31", "month": "2024-01"}
_PATTERNS = {by: re.sub("[0-9]", "[0-9]", form) for by, form in _FORMS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSlices:
    """Hours, days or months, named by the caller and never taken from the data.

    Guarantees
    ----------
    - Names are ascending and different, so a moment lies in one slice or in none.
    - Which slice a row lies in depends on the row's own moment alone.

    Parameters
    ----------
    by : {"hour", "day", "month"}
        Length of a slice. Public.
    names : tuple of str
        Such as ``2024-01``, ``2024-01-31`` or ``2024-01-31T17``, at most 10,000. Public.
    time_zone : str
        Zone of the wall clock. Public.

    Raises
    ------
    ParameterError
        If a name is no hour, day or month, stands twice, or there is none.

    Notes
    -----
    A list that is made of the data, even the first and the last month of it, tells when somebody
    was there. An hour that a clock goes through twice in autumn is one slice.

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
    starts: NDArray[np.datetime64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Read the names."""
        if self.by not in get_args(By):
            raise ParameterError(f"by {self.by!r} is none of {', '.join(get_args(By))}")
        if not 0 < len(self.names) <= MAX_SLICES:
            raise ParameterError(f"slices are {len(self.names):,}; give 1 to {MAX_SLICES:,}")
        zone = self.time_zone
        if not (isinstance(zone, str) and 0 < len(zone) <= 100 and zone.isprintable()):
            raise ParameterError("time_zone is no name of a time zone, such as Asia/Seoul")
        starts = np.array([_moment(self.by, name) for name in self.names])
        steps = np.diff(starts).astype(np.int64)
        if (steps <= 0).any():
            at = int(np.flatnonzero(steps <= 0)[0]) + 1
            raise ParameterError(
                f"slice {self.names[at]} stands twice or after a later one; name each once, in "
                "the order of time"
            )
        object.__setattr__(self, "names", tuple(self.names))
        starts.setflags(write=False)
        object.__setattr__(self, "starts", starts)

    @staticmethod
    def parse(by: By, text: str, time_zone: str = "UTC") -> TimeSlices:
        """Slices of a text: names, and ranges ``FIRST..LAST`` with both ends, between commas.

        Raises
        ------
        ParameterError
            If a part is no name and no range, or the ranges are empty, overlap or are too long.
        """
        if by not in get_args(By):
            raise ParameterError(f"by {by!r} is none of {', '.join(get_args(By))}")
        names: list[str] = []
        for part in text.split(","):
            first, dots, last = (piece.strip() for piece in part.partition(".."))
            names += _range(by, first, last) if dots else [first]
        return TimeSlices(by=by, names=tuple(names), time_zone=time_zone)

    def __len__(self) -> int:
        """Number of slices."""
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        """Names in the order of time."""
        return iter(self.names)

    def index(self, time: NDArray[np.datetime64]) -> NDArray[np.int64]:
        """Number of the slice of each moment, -1 for none.

        Parameters
        ----------
        time : ndarray, shape (n,), datetime64
            Moments of the wall clock.

        Returns
        -------
        ndarray, shape (n,), int64
        """
        begins = time.astype(self.starts.dtype)
        at = np.minimum(np.searchsorted(self.starts, begins), len(self.starts) - 1)
        return np.where(self.starts[at] == begins, at, -1)


def _moment(by: By, name: str) -> np.datetime64:
    """Begin of the slice of a name."""
    try:
        if isinstance(name, str) and re.fullmatch(_PATTERNS[by], name):
            moment: np.datetime64 = np.array([name], f"datetime64[{_UNITS[by]}]")[0]
            return moment
    except ValueError:
        pass
    raise ParameterError(f"slice {name!r} is no {by}; write it as {_FORMS[by]}")


def _range(by: By, first: str, last: str) -> list[str]:
    """Names from the first to the last."""
    ends = (_moment(by, first), _moment(by, last))
    steps = int((ends[1] - ends[0]).astype(np.int64))
    if not 0 <= steps < MAX_SLICES:
        raise ParameterError(
            f"slices {first}..{last} run backwards or are more than {MAX_SLICES:,}"
        )
    moments = ends[0] + np.arange(steps + 1)
    return [str(moment) for moment in moments]
