"""Tallies of parts of the rows: what was counted, by which rules, from which parts. Private side.

`merge` adds the tallies of parts where that is sound and refuses the rest;
`combined_contribution_bound` says how many rows of one user the result may hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from psd.errors import InputDataError
from psd.ingest.tally import Tally
from psd.ingest.user_rows import UserRows, merge_user_rows
from psd.privacy.unit import MAX_CONTRIBUTIONS, ContributionScope, PrivacyUnit
from psd.space.domain import Domain
from psd.space.time_slices import TimeSlices

__all__ = [
    "EMPTY",
    "CountingRules",
    "PartOrigin",
    "PartialTally",
    "combined_contribution_bound",
    "merge",
]

EMPTY = "empty"
"""Among the names of a part without rows; several of them do no harm."""

_WHAT = {
    "domain": "bounds, CRS or lattice",
    "step": "steps of the lattice",
    "unit": "units of privacy",
    "slices": "time slices",
    "bound": "bounds, per slice or for all slices together",
    "time_zone": "time zones, or times in one of them alone",
    "area": "boundaries",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingRules:
    """How rows were counted: the same for all tallies that are merged. Public.

    Parameters
    ----------
    domain : Domain
        Bounds, CRS and lattice.
    step : tuple of int
        Lattice columns and rows that were counted together.
    unit : PrivacyUnit
        Of the promise, but for its bound, which each part has of its own.
    slices : TimeSlices, optional
        Time slices, counted apart.
    bound : {"series", "slice"}
        Whether the bound of a user holds for all slices together, or for each.
    time_zone : str, optional
        Zone of the rows' times; none where they were read without.
    area : str, optional
        Digest of a boundary outside of which rows were left out.
    """

    domain: Domain
    step: tuple[int, int] = (1, 1)
    unit: PrivacyUnit = PrivacyUnit()  # noqa: RUF009 - frozen
    slices: TimeSlices | None = None
    bound: ContributionScope = "series"
    time_zone: str | None = None
    area: str | None = None

    def __post_init__(self) -> None:
        """A bound is no part of the terms."""
        object.__setattr__(self, "unit", replace(self.unit, max_contributions=1))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PartOrigin:
    """One part: rows that were read together. Private.

    Parameters
    ----------
    run : str
        Random number of the run that counted it, in hexadecimal.
    names : tuple of str
        Digests of its files, the name that the caller gave it, and `EMPTY` if nothing was kept.
    contributions : int
        Most rows of a user that were kept of it; 1 where a row is the unit.
    key : str, optional
        Check value of the key that chose them.
    paid : int
        Nano-epsilon that a build spent on a bound or on bounds, which the counts rest on.
    """

    run: str
    names: tuple[str, ...]
    contributions: int = 1
    key: str | None = None
    paid: int = 0

    def __repr__(self) -> str:
        return "<PartOrigin: private>"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PartialTally:
    """A tally with what is needed to merge it and to build from it. Private.

    Guarantees
    ----------
    - `unit.contributions` is the most that one unit adds to its counts.

    Parameters
    ----------
    terms : CountingRules
        How it was counted.
    origins : tuple of Origin
        Its parts, by run.
    counts : Tally or Carried
        Counts per cell, or the kept rows of each user.
    release : str, optional
        Digest of the release that it was kept for.
    """

    terms: CountingRules
    origins: tuple[PartOrigin, ...]
    counts: Tally | UserRows
    release: str | None = None

    def __repr__(self) -> str:
        return "<PartialTally: private>"

    @property
    def unit(self) -> PrivacyUnit:
        """Unit of the promise, with the bound that holds for all parts together."""
        carried = isinstance(self.counts, UserRows)
        k = self.origins[0].contributions if carried else combined_contribution_bound(self.origins)
        return replace(self.terms.unit, max_contributions=k if self._is_bounded else 1)

    @property
    def _is_bounded(self) -> bool:
        """Whether rows of units are bounded in number."""
        return self.terms.unit.has_user and not self.terms.unit.weight

    @property
    def paid(self) -> int:
        """Nano-epsilon that every release of it spends before it counts.

        Bounds and a bound that were found in the rows are in each release, so each has to have
        paid for them, however many there are; of several parts, what each of them has paid.
        """
        return sum(origin.paid for origin in self.origins)

    @property
    def tally(self) -> Tally:
        """Counts per cell, and per slice where there are any."""
        if isinstance(self.counts, UserRows):
            return self.counts.tally(self.terms.domain, self.terms.slices, self.unit)
        return replace(self.counts, contributions=self.unit.contributions)


def combined_contribution_bound(origins: Iterable[PartOrigin]) -> int:
    """Most rows of one user in the tallies of some parts together.

    Guarantees
    ----------
    - It depends on the list of parts alone, not on the order or the steps of merging.

    Notes
    -----
    Every part may have rows of one user, so the bounds of the parts add up.
    """
    return sum(origin.contributions for origin in origins)


def merge(tallies: Sequence[PartialTally]) -> PartialTally:
    """The tally of several parts together.

    Guarantees
    ----------
    - Unit record: it is the tally of all rows, since no part is in it twice.
    - Unit user, where tallies carry the rows of users: the k rows of each user with the smallest
      marks, of those in all parts; the tally of all rows together, unless two parts hold equal
      rows of a user.
    - Else its bound is `combined_contribution_bound` the parts.
    - The order and the steps of merging change nothing.

    Parameters
    ----------
    tallies : sequence of PartialTally
        At least one. Private.

    Returns
    -------
    PartialTally

    Raises
    ------
    InputDataError
        If they were counted on different terms, have a part in common, or their bounds cannot
        be joined.

    Notes
    -----
    The k smallest of a union are among the k smallest of its parts, so nothing is lost that the
    tally of the whole would keep. Marks follow from a user's own rows and the key, so the rows
    kept of a user depend on nothing else: removing the user takes away at most k rows and
    changes no other user's.
    """
    if len(tallies) == 1:
        return tallies[0]
    first = tallies[0]
    for name, what in _WHAT.items():
        if any(getattr(one.terms, name) != getattr(first.terms, name) for one in tallies[1:]):
            raise InputDataError(f"the tallies have different {what}; count them alike")
    origins = tuple(sorted((o for t in tallies for o in t.origins), key=lambda origin: origin.run))
    _check_parts(origins)
    carried = [one.counts for one in tallies if isinstance(one.counts, UserRows)]
    if carried:
        _check_carried(origins, whole=len(carried) == len(tallies))
        counts: Tally | UserRows = merge_user_rows(
            carried, first.terms.slices, first.unit, first.terms.bound
        )
    else:
        _check_bounds(origins, first.terms.unit)
        counts = _added([one.counts for one in tallies if isinstance(one.counts, Tally)])
    return PartialTally(terms=first.terms, origins=origins, counts=counts)


def _check_parts(origins: Sequence[PartOrigin]) -> None:
    """Refuse parts that stand twice, and parts that nobody could tell apart."""
    if any(not origin.names for origin in origins):
        raise InputDataError(
            "a tally of what is no file has no name; count it with --part NAME, so that it is not "
            "merged twice"
        )
    if len({origin.run for origin in origins}) < len(origins):
        raise InputDataError("a tally is given twice, or is in a merged one; it would count double")
    names = [name for origin in origins if EMPTY not in origin.names for name in {*origin.names}]
    if len({*names}) < len(names):
        raise InputDataError(
            "two tallies are of the same file or of a part of the same name; its rows would count "
            "double"
        )


def _check_carried(origins: Sequence[PartOrigin], *, whole: bool) -> None:
    """Refuse to mix rows of users with counts, and marks of different keys."""
    if not whole:
        raise InputDataError(
            "some tallies carry the rows of users and some do not; count all with --carry-users, "
            "or none"
        )
    if len({origin.key for origin in origins}) > 1:
        raise InputDataError(
            "the tallies were counted with different keys; count all with the same --key FILE"
        )
    if len({origin.contributions for origin in origins}) > 1:
        raise InputDataError(
            "the tallies carry different numbers of rows per user; count all with the same "
            "--max-contributions"
        )


def _check_bounds(origins: Sequence[PartOrigin], unit: PrivacyUnit) -> None:
    """Refuse to add shares of users, and bounds that no build takes."""
    if unit.weight:
        raise InputDataError(
            "tallies that count users cannot be merged, since one user may have rows in several "
            "parts; count all rows in one tally"
        )
    if combined_contribution_bound(origins) > MAX_CONTRIBUTIONS:
        raise InputDataError("the bounds per user of the tallies add up to too much")


def _added(tallies: Sequence[Tally]) -> Tally:
    """Counts of all together, by slice and cell."""
    slices = [np.zeros(len(t.counts), np.int64) if t.slice is None else t.slice for t in tallies]
    columns = [np.concatenate(slices)]
    columns += [np.concatenate([getattr(t, name) for t in tallies]) for name in ("rows", "columns")]
    counts = np.concatenate([t.counts for t in tallies])
    order = np.lexsort(columns[::-1])
    slice_, rows, cells = (values[order] for values in columns)
    first = np.ones(len(order), bool)
    first[1:] = (np.diff(slice_) != 0) | (np.diff(rows) != 0) | (np.diff(cells) != 0)
    starts = np.flatnonzero(first)
    return Tally(
        columns=cells[starts].astype(np.int32),
        rows=rows[starts].astype(np.int32),
        counts=np.add.reduceat(counts[order], starts) if len(starts) else counts,
        slice=None if tallies[0].slice is None else slice_[starts],
    )
