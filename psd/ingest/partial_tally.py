"""Tallies of parts of the records, merged only where the guarantee allows it. Private side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from psd.errors import InputDataError
from psd.ingest.columns import Reading
from psd.ingest.sources import OnCopy, refuse_copy
from psd.ingest.tally import Tally, add_tallies
from psd.ingest.user_partitions import UserRows, merge_user_rows
from psd.privacy.unit import MAX_CONTRIBUTIONS, ContributionScope, PrivacyUnit, counted_unit
from psd.privacy.values import Value
from psd.regions.hierarchy import RegionHierarchy
from psd.space.domain import Domain
from psd.space.time_slices import TimeSlices

EMPTY = "empty"
"""Name of a part in which no record was read; several such files may be merged."""

PART = "part "
"""Begins the name that the caller gave a part; other names are digests of its files."""

MOST_WEIGHT = 2**62
"""Limit of the weights of all records, so that sums of counts are exact."""

# Fields that must be equal in all tallies, and their names in messages.
_RULES = {
    "domain": "bounds, CRS, lattice or coordinate resolution",
    "step": "steps of the lattice",
    "min_cell": "smallest cells",
    "unit": "units of privacy",
    "slices": "time slices",
    "contribution_scope": "contribution limits, per slice or for all slices together",
    "time_zone": "time zones, or times in only one of them",
    "boundary": "boundaries",
    "regions": "regions",
    "values": "values, or bounds of values",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRegions:
    """Regions by which records were counted. Public."""

    digest: str  # of the hierarchy, see `psd.regions.hierarchy.RegionHierarchy.digest`
    size: int  # number of its lowest regions

    @classmethod
    def of(cls, regions: RegionHierarchy | None) -> CountedRegions | None:
        """Regions of a hierarchy; None without one."""
        return None if regions is None else cls(digest=regions.digest, size=regions.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingRules:
    """Rules by which records were counted, equal in all tallies that are merged. Public."""

    domain: Domain  # bounds, CRS, lattice and coordinate resolution
    step: tuple[int, int] = (1, 1)  # lattice columns and rows that were counted together
    # Unit of privacy without its contribution limit, which each part states separately.
    unit: PrivacyUnit = PrivacyUnit()  # noqa: RUF009 - frozen
    slices: TimeSlices | None = None
    # Whether the limit of a user holds for all slices together, or for each.
    contribution_scope: ContributionScope = "series"
    time_zone: str | None = None  # zone of the times; None if no times were read
    boundary: str | None = None  # digest of a boundary; records outside of it were dropped
    regions: CountedRegions | None = None  # those in none were dropped
    values: tuple[Value, ...] = ()  # whose weights were summed

    def __post_init__(self) -> None:
        """Remove the contribution limits from the unit."""
        unit = replace(self.unit, max_per_slice=None)
        object.__setattr__(self, "unit", replace(unit, max_contributions=1))

    @property
    def min_cell(self) -> str | None:
        """Smallest cell of the domain, which equal domains may differ in."""
        return self.domain.min_cell


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PartOrigin:
    """Origin of one part: records that were read together. Private."""

    run: str  # random number of the run that counted the part, in hexadecimal
    # Digests of its files, its name if the caller gave one, and `EMPTY` if no record was read.
    names: tuple[str, ...]
    reading: Reading  # how its records were read, see `psd.ingest.columns`
    contributions: int = 1  # limit of the kept records of a user; 1 if a record is the unit
    key: str | None = None  # fingerprint of the key that chose the kept records
    # Nano-epsilon that a build spent on the contribution limit or on bounds of these counts.
    paid: int = 0
    max_per_slice: int | None = None  # limit of the kept records of a user in one time slice
    # Digest of the clock changes of the time zone, see `psd._util.wall_clock.zone_rules`, if the
    # part was counted by time slices from CSV files. None for other inputs, in which a record may
    # have several times.
    clock: str | None = None

    def __repr__(self) -> str:
        return "<PartOrigin: private>"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PartialTally:
    """A tally with the data that are needed to merge it and to build from it. Private.

    Its parts are sorted by run; `release` is the digest of the release for which it was kept.
    `unit.contributions` is the largest amount that one unit adds to its counts.
    """

    rules: CountingRules
    origins: tuple[PartOrigin, ...]
    counts: Tally | UserRows
    release: str | None = None

    def __repr__(self) -> str:
        return "<PartialTally: private>"

    @property
    def unit(self) -> PrivacyUnit:
        """Unit of privacy, with the contribution limit of all parts together."""
        if not self.rules.unit.has_user or self.rules.unit.weight:
            return self.rules.unit
        has_user_rows = isinstance(self.counts, UserRows)
        origins = self.origins[:1] if has_user_rows else self.origins
        return replace(
            self.rules.unit,
            max_contributions=combined_contribution_bound(origins),
            max_per_slice=combined_slice_bound(origins),
        )

    @property
    def counted_unit(self) -> PrivacyUnit:
        """Unit whose records are bounded: that of privacy, or a user's part of one slice."""
        return counted_unit(self.unit, self.rules.contribution_scope)

    @property
    def paid(self) -> int:
        """Nano-epsilon that each release pays for limits and bounds chosen from its records."""
        return sum(origin.paid for origin in self.origins)

    @property
    def tally(self) -> Tally:
        """Counts per cell, and per slice and region if there are any."""
        counts, rules = self.counts, self.rules
        if isinstance(counts, UserRows):
            width = None if rules.regions is None else rules.domain.lattice[0]
            counts = counts.tally(rules.slices, width)
        return replace(counts, contributions=self.unit.contributions)


def combined_contribution_bound(origins: Iterable[PartOrigin]) -> int:
    """Sum the limits of all parts. P1. Only their set decides, not the order of merging."""
    return sum(origin.contributions for origin in origins)


def combined_slice_bound(origins: Iterable[PartOrigin]) -> int | None:
    """Sum the limits of one slice, k for a part without one; None if k is the only limit."""
    parts = list(origins)
    if all(origin.max_per_slice is None for origin in parts):
        return None
    total = sum(origin.max_per_slice or origin.contributions for origin in parts)
    return total if total < combined_contribution_bound(parts) or len(parts) == 1 else None


def merge(tallies: Sequence[PartialTally], *, on_copy: OnCopy = refuse_copy) -> PartialTally:
    """Merge the tallies of several parts.

    tallies: at least one, private. `on_copy` is called with a private message if two parts have
    files of equal content, as in `psd.ingest.sources._copies`; by default they are refused. So are
    tallies by different rules, that share a part, or whose contribution limits cannot be combined.

    P2. Unit record: the result is the tally of all records, since no part is in it twice.

    P3. Unit user, with kept records of users: the result has the k records of each user with the
    smallest hashes among the records of all parts. It is the tally of all records together, unless
    two parts have equal records of a user.

    P4. Otherwise its contribution limit is `combined_contribution_bound` of the parts.

    P5. The order and the steps of merging have no effect.

    P6. Sums of weights of values are added like counts. The weight of a record follows from its
    value and the bounds, which are equal in all parts, so the sums are those of all records, to the
    bit (`psd.privacy.values`).

    Proof: the k smallest of a union are among the k smallest of its parts, so nothing is lost that
    a tally of all records would keep. Hashes follow from a user's own records and the key, so the
    kept records of a user depend on nothing else: removing the user removes at most k records and
    changes no record of another user.
    """
    if len(tallies) == 1:
        return tallies[0]
    first = tallies[0]
    for name, description in _RULES.items():
        if any(getattr(each.rules, name) != getattr(first.rules, name) for each in tallies):
            raise InputDataError(
                f"the tallies have different {description}; count all by the same rules"
            )
    origins = tuple(sorted((o for t in tallies for o in t.origins), key=lambda origin: origin.run))
    _check_parts(origins, on_copy)
    user_rows = [tally.counts for tally in tallies if isinstance(tally.counts, UserRows)]
    if user_rows:
        _check_user_rows(origins, complete=len(user_rows) == len(tallies))
        counts: Tally | UserRows = merge_user_rows(
            user_rows, first.counted_unit, first.rules.slices
        )
    else:
        # Refuse to add weights of users, and contribution limits that no build takes.
        if first.rules.unit.weight:
            raise InputDataError(
                "tallies that count users cannot be merged, since one user may have records in "
                "several parts; count all records in one tally"
            )
        if combined_contribution_bound(origins) > MAX_CONTRIBUTIONS:
            raise InputDataError(
                f"the contribution limits of the tallies must sum to at most {MAX_CONTRIBUTIONS:,}"
            )
        parts = [tally.counts for tally in tallies if isinstance(tally.counts, Tally)]
        if sum(int(part.counts.sum()) * part.record_weight for part in parts) >= MOST_WEIGHT:
            raise InputDataError(
                "the tallies hold more records than a computer can count; is one of them made up?"
            )
        counts = add_tallies(parts)
    return PartialTally(rules=first.rules, origins=origins, counts=counts)


def _check_parts(origins: Sequence[PartOrigin], on_copy: OnCopy) -> None:
    """Refuse repeated parts, and parts without a name; report files of equal content."""
    if any(not origin.names for origin in origins):
        raise InputDataError(
            "a tally of data that is not a file must have a name, so that it is not merged twice; "
            "name the part when it is counted"
        )
    if len({origin.run for origin in origins}) < len(origins):
        raise InputDataError(
            "a tally is repeated, or part of a merged one; its records would count twice, so give "
            "it once"
        )
    # Empty files have equal contents. Names of parts must differ, whether or not they have records.
    names = [
        name
        for origin in origins
        for name in {*origin.names}
        if name.startswith(PART) or EMPTY not in origin.names
    ]
    repeated = {name for name, number in Counter(names).items() if number > 1}
    if any(name.startswith(PART) for name in repeated):
        raise InputDataError(
            "two tallies are of a part of the same name; its records would count twice, so leave "
            "one out, or name other records differently when they are counted"
        )
    if repeated:
        on_copy(
            "two tallies are of the same file, or of files of the same content; its records would "
            "count twice, so leave one out"
        )


def _check_user_rows(origins: Sequence[PartOrigin], *, complete: bool) -> None:
    """Refuse to mix records of users with counts, and hashes of different keys or limits."""
    if not complete:
        raise InputDataError(
            "all tallies or none must have the records of users, got both; count all in one way"
        )
    if len({origin.key for origin in origins}) > 1:
        raise InputDataError(
            "the tallies were counted with different keys; count all with the same key"
        )
    if len({origin.contributions for origin in origins}) > 1:
        raise InputDataError(
            "the tallies have different numbers of records per user; count all with the same "
            "max_contributions"
        )
    if len({origin.max_per_slice for origin in origins}) > 1:
        raise InputDataError(
            "the tallies have different numbers of records per user and slice; count all with the "
            "same max_per_slice"
        )
