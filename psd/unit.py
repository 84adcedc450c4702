"""The unit of privacy: whose presence a release hides, and what one of them may add to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from psd.errors import ParameterError
from psd.parameters import whole

__all__ = ["MAX_CONTRIBUTIONS", "WEIGHT", "Kind", "Unit", "unit_of"]

MAX_CONTRIBUTIONS = 10**9

# A multiple of all numbers to 16, so that shares of users with few rows lose nothing.
WEIGHT = 720_720

Kind = Literal["record", "user", "user-day", "user-slice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
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

    Raises
    ------
    ParameterError
        If the fields do not go together.

    Examples
    --------
    >>> Unit(kind="user", max_contributions=4).contributions
    4
    """

    kind: Kind = "record"
    max_contributions: int = 1
    weight: int = 0

    def __post_init__(self) -> None:
        """Check the fields."""
        if self.kind not in get_args(Kind):
            raise ParameterError(f"unit {self.kind!r} is none of {', '.join(get_args(Kind))}")
        bound = whole(1, MAX_CONTRIBUTIONS)("max_contributions", self.max_contributions)
        object.__setattr__(self, "max_contributions", bound)
        if self.kind == "record" and (self.max_contributions > 1 or self.weight):
            raise ParameterError("a record is one row of weight 1; other units have users")
        if self.weight and (self.kind != "user" or self.max_contributions > 1):
            raise ParameterError(
                "counting users keeps all rows of a user, each with a share; it goes with unit "
                "user and without max_contributions"
            )

    @property
    def contributions(self) -> int:
        """Most that one unit adds to all counts together."""
        return self.weight or self.max_contributions

    @property
    def has_user(self) -> bool:
        """Whether rows need an id."""
        return self.kind != "record"


def unit_of(user: str | None, max_contributions: int | None) -> Unit:
    """The unit that a column of ids and a bound say; the two go together.

    Raises
    ------
    ParameterError
        If one is given without the other, or the bound is no whole number in its range.
    """
    if user is None and max_contributions is None:
        return Unit()
    if user is None:
        raise ParameterError(
            "max_contributions is given without user (--user); name the column of ids"
        )
    if max_contributions is None:
        raise ParameterError(
            "user is given without max_contributions (--max-contributions); without a bound one "
            "user could change everything"
        )
    return Unit(kind="user", max_contributions=max_contributions)
