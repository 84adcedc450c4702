"""Tallies of parts, which give the release of their records, and of a build. Private side."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd._util.wall_clock import zone_rules
from psd.api.release import Release
from psd.errors import ParameterError
from psd.ingest.columns import reading_of
from psd.ingest.input_paths import STDIN, is_csv, is_path, refuse_changes
from psd.ingest.memory_limit import memory_for_rows, split_memory
from psd.ingest.partial_tally import (
    EMPTY,
    PART,
    CountedRegions,
    CountingRules,
    PartialTally,
    PartOrigin,
)
from psd.ingest.row_hash import key_fingerprint
from psd.ingest.sources import Columns, files_of, read
from psd.ingest.sources._copies import content_digest
from psd.ingest.sources._csv_file import find_compression
from psd.ingest.tally import Tally
from psd.ingest.tally_builder import TallyBuilder
from psd.ingest.tally_file import file_digest
from psd.privacy.budget import spent_before_counting
from psd.privacy.unit import ContributionScope, PrivacyUnit, counted_unit
from psd.publish.request import ReadRequest
from psd.release.codecs import regions_of
from psd.release.cube import first_record
from psd.release.series import SeriesRecord
from psd.space.bounds import check_ground

if TYPE_CHECKING:
    from psd.api.release import Release
    from psd.privacy.values import Value
    from psd.regions.hierarchy import RegionHierarchy
    from psd.space.domain import Domain
    from psd.space.time_slices import TimeSlices


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TallyRequest:
    """Rules by which the records of a part are counted; the same for all parts of a data set."""

    domain: Domain
    # Unit of privacy, with the contribution limit of this part.
    unit: PrivacyUnit = field(default_factory=PrivacyUnit)
    columns: Columns = field(default_factory=Columns)
    slices: TimeSlices | None = None  # time slices, counted separately
    # Whether the limit of a user holds for all slices together, or for each.
    contribution_scope: ContributionScope = "series"
    step: tuple[int, int] = (1, 1)  # lattice columns and rows that are counted together
    # Of the hash that chooses the kept records; by default random. Independent of the data.
    key: bytes | None = None
    regions: RegionHierarchy | None = None  # of the domain; records in none of them are dropped
    # Whether the tally holds the kept records of each user with their ids, so that parts with the
    # same users can be merged under one limit.
    carry: bool = False
    values: tuple[Value, ...] = ()  # whose weights are summed; columns name them

    def __repr__(self) -> str:
        return "<TallyRequest: private key>"

    def __post_init__(self) -> None:
        """Refuse fields that contradict each other."""
        check_ground(self.domain.bounds, self.domain.crs)
        # What is read and kept is refused as that of a build is.
        ReadRequest(
            columns=self.columns,
            unit=self.unit,
            slices=self.slices,
            contribution_scope=self.contribution_scope,
        )
        if self.unit.kind == "user-slice":
            raise ParameterError(
                'per must not be "user-slice" for a tally; use "slice", or a stream'
            )
        if self.regions is not None and self.regions.domain != self.domain:
            raise ParameterError("regions must be those of the domain of the tally")
        if not self.carry:
            return
        if self.values:
            raise ParameterError(
                "values must be left out with carry, whose records of users have no values; leave "
                "out --carry-users, or build from all records",
                name="values",
            )
        if not self.unit.has_user or self.key is None:
            raise ParameterError(
                "carry must have user= and the same key= for all parts; it keeps records of users"
            )
        if self.unit.weight or self.step != (1, 1):
            raise ParameterError(
                "carry must have the full lattice and records that count once each; leave out "
                "method= and count="
            )

    @property
    def rules(self) -> CountingRules:
        """Rules that all tallies to be merged share."""
        return CountingRules(
            domain=self.domain,
            step=self.step,
            unit=self.unit,
            slices=self.slices,
            contribution_scope=self.contribution_scope,
            time_zone=None if self.columns.time is None else self.columns.time_zone,
            regions=CountedRegions.of(self.regions),
            values=self.values,
        )


def tally_rows(
    data: Any,
    request: TallyRequest,
    *,
    part: str | None = None,
    memory: str | int | None = None,
) -> PartialTally:
    """Count one part of a data set.

    data: points, as in `psd.build`, private; `part` names those that are not files, always alike.
    P1. With a limit, it has at most k records of each user; which ones depends on the records of
    that user and the key alone.
    P2. It names its files by digests of their content, so that no file is counted twice in a merge.
    """
    items = list(data) if isinstance(data, list | tuple) else [data]
    paths = [path for path in files_of(items) if str(path) != STDIN]
    if part is None and not all(is_path(item) and str(item) != STDIN for item in items):
        raise ParameterError(
            "part must name an input that is not a file, got none; give the same records the same "
            'name always, such as part="2026-03"'
        )
    if part is not None and not (0 < len(part) <= 100 and part.isprintable()):
        raise ParameterError("part must be 1 to 100 printable characters")
    key = request.key or secrets.token_bytes(32)
    limit = memory_for_rows(memory)
    for_rows, for_parser = split_memory(limit)
    builder = TallyBuilder(
        request.domain,
        unit=counted_unit(request.unit, request.contribution_scope),
        step=request.step,
        slices=request.slices,
        strata=request.regions,
        values=request.values,
        memory=for_rows,
    )
    with refuse_changes(paths):
        for batch in read(data, replace(request.columns, memory=for_parser), request.domain):
            builder.add_batch(batch)
        counts = builder.user_rows(key) if request.carry else builder.build(key)
        names = _part_names(paths, part) + (() if builder.has_read else (EMPTY,))
    return PartialTally(
        rules=request.rules,
        origins=(origin_of(replace(request, key=key), names, items),),
        counts=counts,
    )


def origin_of(request: TallyRequest, names: Sequence[str], data: Sequence[Any] = ()) -> PartOrigin:
    """Origin of a part that was counted by a request, with the names of its files."""
    has_user = request.unit.has_user
    return PartOrigin(
        run=secrets.token_hex(16),
        names=tuple(names),
        contributions=request.unit.max_contributions,
        max_per_slice=request.unit.max_per_slice,
        key=key_fingerprint(request.key) if has_user and request.key is not None else None,
        reading=reading_of(request.columns, request.domain.coordinate_resolution),
        clock=_clock_of(data, request.slices, request.columns),
    )


def _clock_of(data: Sequence[Any], slices: TimeSlices | None, columns: Columns) -> str | None:
    """Rules by which CSV rows got their slices; None for other inputs, or with a filter."""
    # In another input, a record may have several times; losses with a filter always add up.
    if slices is None or not is_csv(data) or columns.where is not None:
        return None
    return zone_rules(slices.time_zone)


def _part_names(paths: Sequence[Path], part: str | None) -> tuple[str, ...]:
    """Names of a part: the one of the caller, and digests of its files."""
    stated = () if part is None else (f"{PART}{part}",)
    digests = {file_digest(path) for path in paths}
    # A compressed file has another digest than the same records as they are, so both are stated.
    digests |= {content_digest(path) for path in paths if find_compression(path) != "none"}
    return (*stated, *sorted(f"blake2b {digest}" for digest in digests))


def tally_of_build(
    counts: Tally,
    built: Release,
    data: Sequence[Any],
    *,
    columns: Columns,
    release: Path,
) -> PartialTally:
    """Tally of a build, private, kept to evaluate its release; `data`, `columns`: its inputs."""
    record, unit, slices = built.record, built.unit, built.slices
    first = first_record(record)
    boundary = None
    if first.boundary and first.covariate is not None:
        boundary = blake2b(first.covariate.raster.tobytes(), digest_size=32).hexdigest()
    rules = CountingRules(
        domain=built.domain,
        unit=unit,
        slices=slices,
        contribution_scope=record.scope if isinstance(record, SeriesRecord) else "series",
        time_zone=None if columns.time is None else columns.time_zone,
        boundary=boundary,
        regions=CountedRegions.of(regions_of(first)),
    )
    paths = [path for path in files_of(data) if str(path) != STDIN]
    all_files = all(is_path(item) and str(item) != STDIN for item in data)
    origin = PartOrigin(
        run=secrets.token_hex(16),
        names=_part_names(paths, None) if all_files else (),
        contributions=unit.max_contributions,
        max_per_slice=unit.max_per_slice,
        paid=spent_before_counting(first.parameters),
        reading=reading_of(columns, built.domain.coordinate_resolution),
        clock=_clock_of(data, slices, columns),
    )
    return PartialTally(rules=rules, origins=(origin,), counts=counts, release=file_digest(release))
