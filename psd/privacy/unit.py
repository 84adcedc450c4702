"""The unit of privacy: whose presence a release hides, and what one of them may add to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from psd._util.fields import integer_between
from psd.errors import ParameterError

__all__ = [
    "MAX_CONTRIBUTIONS",
    "WEIGHT",
    "ContributionScope",
    "Count",
    "Kind",
    "Per",
    "PrivacyUnit",
    "privacy_unit",
]

MAX_CONTRIBUTIONS = 10**9

# A multiple of all numbers to 16, so that shares of users with few rows lose nothing.
WEIGHT = 720_720

Kind = Literal["record", "user", "user-day", "user-slice"]

Per = Literal["day"]
"""What a user's rows are bounded in, each by itself."""

Count = Literal["rows", "users"]
"""What is counted."""


ContributionScope = Literal["series", "slice"]
"""Whether the most rows of a user hold for all slices of a series together, or for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyUnit:
    """What is added or removed between two data sets that a release hardly tells apart.

    Guarantees
    ----------
    - `contributions` is the factor of every sensitivity, and it follows from the unit alone.

    Parameters
    ----------
    kind : {"record", "user", "user-day", "user-slice"}
        One row, all rows of a user, those of a user on one day of the wall clock, or those of
        a user in one time slice. Public.
    max_contributions : int
        k, the most rows kept of one unit; 1 for a record. Public.
    weight : int
        M, where users are counted instead of rows: each of the k_u rows of a user weighs
        floor(M / k_u), all of them are kept, and a count of M is one user. 0 counts rows.
        Public.
    time_zone : str, optional
        On whose wall clocks days begin; given if and only if the unit has days. Public.

    Raises
    ------
    ParameterError
        If the fields do not go together.

    Examples
    --------
    >>> PrivacyUnit(kind="user", max_contributions=4).contributions
    4
    """

    kind: Kind = "record"
    max_contributions: int = 1
    weight: int = 0
    time_zone: str | None = None

    def __post_init__(self) -> None:
        """Check the fields."""
        if self.kind not in get_args(Kind):
            raise ParameterError(f"unit {self.kind!r} is none of {', '.join(get_args(Kind))}")
        bound = integer_between(1, MAX_CONTRIBUTIONS)("max_contributions", self.max_contributions)
        object.__setattr__(self, "max_contributions", bound)
        if self.kind == "record" and (self.max_contributions > 1 or self.weight):
            raise ParameterError("a record is one row of weight 1; other units have users")
        if self.weight and (self.kind != "user" or self.max_contributions > 1):
            raise ParameterError(
                "counting users keeps all rows of a user, each with a share; it goes with unit "
                "user and without max_contributions"
            )
        if (self.kind == "user-day") != (self.time_zone is not None):
            raise ParameterError(
                "a unit of days has the time zone that they begin in, and no other"
            )

    @property
    def contributions(self) -> int:
        """Most that one unit adds to all counts together."""
        return self.weight or self.max_contributions

    @property
    def scale(self) -> int:
        """What one of the things counted adds to a count: M where users are counted, else 1."""
        return self.weight or 1

    @property
    def counted_text(self) -> str:
        """What an answer counts, in a few words."""
        if self.kind == "record":
            return "rows"
        if self.weight:
            return "users, each shared out over all rows of it"
        return f"kept rows, at most {self.max_contributions} of each {self._whose}"

    @property
    def guarantee_text(self) -> str:
        """Whose presence epsilon hides, to follow it: per row, per user, and so on."""
        if self.kind == "record":
            return "per row"
        if self.weight:
            return "per user, counts are users"
        rows = f"at most {self.max_contributions} rows of each"
        if self.kind == "user-day":
            return f"per user and day in {self.time_zone}, {rows}; a user of T days has T epsilon"
        if self.kind == "user-slice":
            return f"per user and time slice, {rows}; a user of T slices has T epsilon"
        return f"per user, {rows}"

    @property
    def _whose(self) -> str:
        """Whose rows are bounded."""
        return {"user-day": "user and day", "user-slice": "user and time slice"}.get(
            self.kind, "user"
        )

    @property
    def has_user(self) -> bool:
        """Whether rows need an id."""
        return self.kind != "record"


def privacy_unit(
    user: str | None,
    max_contributions: int | None,
    *,
    per: Per | None = None,
    time: str | None = None,
    time_zone: str = "UTC",
    count: Count = "rows",
) -> PrivacyUnit:
    """The unit that a column of ids, a bound, and what goes with them say.

    Parameters
    ----------
    user : str or None
        Column of ids.
    max_contributions : int or None
        k, for each user or each day of one; goes with ``user`` unless users are counted.
    per : {"day"}, optional
        Bounds and protects each day of a user by itself; goes with ``time``.
    time : str, optional
        Column of moments.
    time_zone : str
        On whose wall clocks days begin.
    count : {"rows", "users"}
        What is counted.

    Raises
    ------
    ParameterError
        If one is given without what it needs, or the bound is no whole number in its range.

    Examples
    --------
    >>> privacy_unit("id", 2, per="day", time="seen", time_zone="Asia/Seoul").guarantee_text
    'per user and day in Asia/Seoul, at most 2 rows of each; a user of T days has T epsilon'
    """
    _check(user, max_contributions, per, time, count)
    if user is None:
        return PrivacyUnit()
    if count == "users":
        return PrivacyUnit(kind="user", weight=WEIGHT)
    assert max_contributions is not None
    if per == "day":
        return PrivacyUnit(
            kind="user-day", max_contributions=max_contributions, time_zone=time_zone
        )
    return PrivacyUnit(kind="user", max_contributions=max_contributions)


def _check(
    user: str | None, bound: int | None, per: str | None, time: str | None, count: str
) -> None:
    """Refuse what does not go together."""
    for name, value, words in (("per", per, (None, "day")), ("count", count, ("rows", "users"))):
        if value not in words:
            raise ParameterError(f"{name} {value!r} is none of {', '.join(filter(None, words))}")
    faults = {
        "max_contributions is given without user (--user); name the column of ids": (
            user is None and bound is not None
        ),
        "count users (--count users) is given without user (--user); name the column of ids": (
            user is None and count == "users"
        ),
        "per (--per) is given without user (--user); name the column of ids": (
            user is None and per is not None
        ),
        "counting users (--count users) keeps all rows of a user; leave out max_contributions "
        "(--max-contributions)": count == "users" and bound is not None,
        "counting users (--count users) protects all rows of a user; leave out per (--per)": (
            count == "users" and per is not None
        ),
        "per day (--per day) is given without time (--time); name the column of moments": (
            per is not None and time is None
        ),
        "user is given without max_contributions (--max-contributions); without a bound one user "
        "could change everything": user is not None and bound is None and count == "rows",
    }
    for fault, found in faults.items():
        if found:
            raise ParameterError(fault)
