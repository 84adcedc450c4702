"""The unit of privacy: what a release protects, and how much one unit may add to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from psd._util.declared_parameters import integer_between
from psd._util.instances import check_choice
from psd._util.wall_clock import is_zone_name
from psd.errors import ParameterError

__all__ = [
    "MAX_CONTRIBUTIONS",
    "ContributionScope",
    "PrivacyUnit",
    "counted_unit",
    "privacy_unit",
    "squared_sensitivity",
]

MAX_CONTRIBUTIONS = 10**9

# A multiple of all integers up to 16, so that the weights of users with few records are exact.
WEIGHT = 720_720

Kind = Literal["record", "user", "user-day", "user-slice", "report"]

Per = Literal["day", "user-slice"]
"""Part of a user that is bounded and protected separately."""

Count = Literal["records", "users"]
"""What is counted."""


ContributionScope = Literal["series", "slice"]
"""Whether max_contributions holds for all slices of a series together, or for each slice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyUnit:
    """What is added to or removed from a data set in the guarantee of a release.

    Guarantees
    ----------
    - `contributions` is the factor of every sensitivity. It is a function of the unit.

    Parameters
    ----------
    kind : {"record", "user", "user-day", "user-slice", "report"}
        One record, all records of a user, those of a user on one day of the wall clock, those of a
        user in one time slice, or the report that a device has randomised itself. Public.
    max_contributions : int
        k, the maximum number of records kept of one unit; 1 for a record. Public.
    weight : int
        M, where users are counted instead of records: each of the k_u records of a user weighs
        floor(M / k_u), all of them are kept, and a count of M is one user. 0 counts records.
        Public.
    time_zone : str, optional
        Zone of the clock whose days are the unit; given if and only if the unit has days. Public.
    max_per_slice : int, optional
        M, the maximum number of records kept of a user in one time slice, at most k. It changes no
        sensitivity of discrete Laplace noise, which is k in all slices together. Public.

    Raises
    ------
    ParameterError
        If the fields contradict each other.

    Examples
    --------
    >>> PrivacyUnit(kind="user", max_contributions=4).contributions
    4
    """

    kind: Kind = "record"
    max_contributions: int = 1
    weight: int = 0
    time_zone: str | None = None
    max_per_slice: int | None = None

    def __post_init__(self) -> None:
        check_choice("unit", self.kind, get_args(Kind))
        bound = integer_between(1, MAX_CONTRIBUTIONS)("max_contributions", self.max_contributions)
        object.__setattr__(self, "max_contributions", bound)
        if not self.has_user and (self.max_contributions > 1 or self.weight):
            raise ParameterError(
                f"unit {self.kind} must have max_contributions 1 and weight 0; a limit requires "
                "user"
            )
        if self.weight and (self.kind != "user" or self.max_contributions > 1):
            raise ParameterError(
                "weight must be 0 unless the unit is user and max_contributions 1; counting users "
                "keeps all records of a user, each with a weight"
            )
        if (self.kind == "user-day") != (self.time_zone is not None):
            raise ParameterError("time_zone must be given for unit user-day, and for no other unit")
        if self.time_zone is not None and not is_zone_name(self.time_zone):
            raise ParameterError(
                f"time_zone must be the name of a time zone, such as Asia/Seoul, got "
                f"{str(self.time_zone)[:80]!r}"
            )
        if self.max_per_slice is not None:
            if self.kind != "user" or self.weight:
                raise ParameterError(
                    "max_per_slice must be given with user= and max_contributions=; it limits the "
                    "records of a user in one time slice, and other units are not limited by slice"
                )
            limit = integer_between(1, MAX_CONTRIBUTIONS)("max_per_slice", self.max_per_slice)
            if limit > self.max_contributions:
                raise ParameterError(
                    "max_per_slice must be at most that of max_contributions=, "
                    f"{self.max_contributions}, got {limit}; that is the limit of all slices "
                    "together"
                )
            object.__setattr__(self, "max_per_slice", limit)

    @property
    def contributions(self) -> int:
        """Largest amount that one unit adds to all counts together."""
        return self.weight or self.max_contributions

    @property
    def scale(self) -> int:
        """Amount of one counted record or user in a count: M where users are counted, else 1."""
        return self.weight or 1

    @property
    def counted_text(self) -> str:
        """What an answer counts, in a few words."""
        if self.kind == "record":
            return "records"
        if self.kind == "report":
            return "devices, each of which sent one report"
        if self.weight:
            return "users; all records of a user share one count"
        bounded = {"user-day": "user and day", "user-slice": "user and time slice"}
        return (
            f"kept records, at most {self.max_contributions} of each "
            f"{bounded.get(self.kind, 'user')}{self._per_slice_text}"
        )

    @property
    def guarantee_text(self) -> str:
        """What epsilon protects, to be read after it: per record, per user, and so on."""
        if self.kind == "record":
            return "per record"
        if self.kind == "report":
            return "per report, and each device sends one; devices randomise their own answers"
        if self.weight:
            return "per user, counts are users"
        limit = f"at most {self.max_contributions} records of each"
        if self.kind == "user-day":
            return f"per user and day in {self.time_zone}, {limit}; a user of T days has T epsilon"
        if self.kind == "user-slice":
            return f"per user and time slice, {limit}; a user of T slices has T epsilon"
        return f"per user, {limit}{self._per_slice_text}"

    @property
    def _per_slice_text(self) -> str:
        """Words after a contribution bound that say how many records lie in one slice."""
        limit = self.max_per_slice
        return "" if limit is None else f", at most {limit} of them in each time slice"

    @property
    def categories_text(self) -> str:
        """Words after a guarantee of counts by category: categories share the epsilon of a unit."""
        return ", in all categories together" if self.has_user else ""

    @property
    def concentrated_text(self) -> str:
        """What rho protects, to be read after it.

        T records of one user in one question cost T^2 times the rho of one; questions about several
        slices see different records, and their rhos add up.
        """
        return self._in_rho("T")

    @property
    def summed_text(self) -> str:
        """What rho protects where one question reads several slices, to be read after it.

        The records of a user in T slices are in one question then, so they cost up to T^2 times the
        rho of those in one slice.
        """
        return self._in_rho("T^2")

    def _in_rho(self, of_slices: str) -> str:
        """What rho protects, with the rho of T slices over that of one."""
        text = self.guarantee_text
        for name, times in (("days", "T^2"), ("slices", of_slices)):
            text = text.replace(f"of T {name} has T epsilon", f"of T {name} has {times} rho")
        return text

    @property
    def has_user(self) -> bool:
        """Whether records need the id of a user."""
        return self.kind not in ("record", "report")


def privacy_unit(
    user: str | None,
    max_contributions: int | None,
    *,
    per: Per | None = None,
    time: str | None = None,
    time_zone: str = "UTC",
    count: Count = "records",
    max_per_slice: int | None = None,
) -> PrivacyUnit:
    """Unit of privacy from the arguments of a build; k is `max_contributions`."""
    check_choice("per", per, (None, "day", "user-slice"))
    check_choice("count", count, ("records", "users"))
    faults = {
        "user must name the column of user ids with max_contributions=": user is None
        and max_contributions is not None,
        'user must name the column of user ids with count="users"': user is None
        and count == "users",
        "user must name the column of user ids with per=": user is None and per is not None,
        'max_contributions must be left out with count="users", which keeps all records': (
            count == "users" and max_contributions is not None
        ),
        'per must be left out with count="users", which protects all records of a user': (
            count == "users" and per is not None
        ),
        f'time must name the column of times with per="{per}"': per is not None and time is None,
        "max_contributions must be given with user=; else one user could change every count": (
            user is not None and max_contributions is None and count == "records"
        ),
    }
    for fault, applies in faults.items():
        if applies:
            raise ParameterError(fault)
    if max_per_slice is not None and (user is None or per is not None or count == "users"):
        return PrivacyUnit(max_per_slice=max_per_slice)  # which is refused
    if user is None:
        return PrivacyUnit()
    if count == "users":
        return PrivacyUnit(kind="user", weight=WEIGHT)
    assert max_contributions is not None  # one of the faults
    if per == "day":
        return PrivacyUnit(
            kind="user-day", max_contributions=max_contributions, time_zone=time_zone
        )
    kind: Kind = "user-slice" if per == "user-slice" else "user"
    return PrivacyUnit(kind=kind, max_contributions=max_contributions, max_per_slice=max_per_slice)


def counted_unit(unit: PrivacyUnit, scope: ContributionScope) -> PrivacyUnit:
    """Unit by which records are bounded: that of the guarantee, or a user's part of one slice."""
    if scope == "series":
        return unit
    if unit.kind != "user" or unit.weight:
        raise ParameterError(
            "per slice must be given with user and max_contributions; other units are bounded "
            "within a slice already"
        )
    return PrivacyUnit(kind="user-slice", max_contributions=unit.max_contributions)


def unit_of_all_slices(unit: PrivacyUnit, scope: ContributionScope, slices: int) -> PrivacyUnit:
    """The same unit with a bound in all slices together: at most m in each of T are at most T m."""
    if scope == "series":
        return unit
    counted_unit(unit, scope)
    bound = unit.max_contributions
    return PrivacyUnit(kind="user", max_contributions=bound * slices, max_per_slice=bound)


def squared_sensitivity(unit: PrivacyUnit, scope: ContributionScope, slices: int) -> int:
    """S^2 = k cap of losses in rho; see `psd.curator.curator.Curator`, which has the proof.

    k is the largest number of records of a unit in all slices, cap that of those in one slice,
    which is what one question can see.
    """
    k = cap = unit.contributions
    if scope == "slice":
        return k * slices * cap
    return k * (unit.max_per_slice or cap)
