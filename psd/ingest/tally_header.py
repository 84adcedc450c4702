"""Header of the file of a tally: everything except its counts. Private side."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from typing import Any, get_args

from psd._util.fields import integer_between
from psd._util.strict_json import strict_json
from psd.ingest.partial_tally import CountedRegions, CountingRules, PartialTally, PartOrigin
from psd.ingest.reading import is_reading
from psd.ingest.user_rows import UserRows
from psd.privacy.epsilon import MAX_EPSILON, NANO
from psd.privacy.unit import MAX_CONTRIBUTIONS, ContributionScope, PrivacyUnit
from psd.regions.hierarchy import MAX_NODES
from psd.space.domain import USUAL_MIN_CELL, Domain
from psd.space.time_slices import TimeSlices

__all__ = ["FORMAT", "expect", "header_of", "origins_of", "parse_header", "rules_of"]

FORMAT = 8
"""Newest version. A tally is written in the lowest version that can state it: 8 has clocks, by
which rows of CSV files got their slices, 7 has limits of the records of a user in one slice, 6 has
regions, one of which each count or record states in a column ``region``, 5 a smallest cell that is
not the usual one, and 4 a coordinate resolution. Version 2, whose parts do not state how they were
read, is read too."""

_READABLE = (2, 3, 4, 5, 6, 7, FORMAT)

_MAX_HEADER = 2**24

_NOTICE = "PRIVATE: exact counts and ids; never publish this file"

_FIELDS = {
    "format", "notice", "bounds", "crs", "lattice", "step", "unit", "weight", "by", "slices",
    "contribution_scope", "time_zone", "boundary", "has_user_rows", "origins", "release",
}  # fmt: skip
_RESOLUTION = "coordinate_resolution"
_MIN_CELL = "min_cell"
_REGIONS = "regions"
_ADDED = {
    4: {_RESOLUTION},
    5: {_RESOLUTION, _MIN_CELL},
    6: {_RESOLUTION, _MIN_CELL, _REGIONS},
    7: {_RESOLUTION, _MIN_CELL, _REGIONS},
    8: {_RESOLUTION, _MIN_CELL, _REGIONS},
}
# From this version on, fields that were added may be null.
_ADDED_NULLS = 5

_ORIGIN_FIELDS = {"run", "names", "contributions", "key", "paid", "reading"}
# Fields of an origin from version 7 on, and from version 8 on.
_PER_SLICE, _CLOCK = "max_per_slice", "clock"


def header_of(tally: PartialTally) -> dict[str, Any]:
    """Return the fields of the header of a tally."""
    rules, slices = tally.rules, tally.rules.slices
    domain = rules.domain
    added = {
        _RESOLUTION: domain.coordinate_resolution,
        _MIN_CELL: domain.min_cell,
        _REGIONS: None if rules.regions is None else asdict(rules.regions),
    }
    is_usual = domain.min_cell == replace(domain, min_cell=USUAL_MIN_CELL).min_cell
    version = 3 if domain.coordinate_resolution is None else 4
    version = 6 if rules.regions is not None else version if is_usual else 5
    if any(origin.max_per_slice is not None for origin in tally.origins):
        version = 7
    if any(origin.clock is not None for origin in tally.origins):
        version = 8
    return {
        "format": version,
        "notice": _NOTICE,
        "bounds": rules.domain.bounds,
        "crs": rules.domain.crs,
        "lattice": rules.domain.lattice,
        "step": rules.step,
        "unit": rules.unit.kind,
        "weight": rules.unit.weight,
        "by": None if slices is None else slices.by,
        "slices": None if slices is None else slices.names,
        "contribution_scope": rules.contribution_scope,
        "time_zone": rules.time_zone,
        "boundary": rules.boundary,
        "has_user_rows": isinstance(tally.counts, UserRows),
        "origins": [
            {name: getattr(origin, name) for name in _origin_fields(version)}
            for origin in tally.origins
        ],
        "release": tally.release,
        **{name: added[name] for name in _ADDED.get(version, ())},
    }


def expect(holds: bool) -> None:
    """Refuse a file unless a condition holds.

    Raises
    ------
    ValueError
        If it does not hold; the reader replaces the error by a message.
    """
    if not holds:
        raise ValueError


def parse_header(text: bytes) -> dict[str, Any]:
    """Parse a header and check that it has exactly the fields of this version.

    Raises
    ------
    ReleaseFormatError, ValueError
        If it is malformed.
    """
    header = strict_json(text, _MAX_HEADER)
    expect(isinstance(header, dict) and header.keys() >= _FIELDS)
    version = header["format"]
    expect(type(version) is int and version in _READABLE)
    added = header.keys() - _FIELDS
    expect(added == _ADDED.get(version, set()))
    optional = version >= _ADDED_NULLS
    texts = added - {_REGIONS}
    expect(version != 6 or header[_REGIONS] is not None)
    expect(all(isinstance(header[k], str) or (optional and header[k] is None) for k in texts))
    expect(isinstance(header["has_user_rows"], bool))
    expect(header["contribution_scope"] in get_args(ContributionScope))
    expect(header["release"] is None or isinstance(header["release"], str))
    return dict(header)


def rules_of(header: dict[str, Any]) -> CountingRules:
    """Parse the counting rules of a header.

    Raises
    ------
    ValueError, TypeError, DomainError, ParameterError
        If a field is malformed.
    """
    bounds, lattice, step = (tuple(header[name]) for name in ("bounds", "lattice", "step"))
    expect(all(type(number) is int for number in (*lattice, *step, header["weight"])))
    expect(len(step) == 2 and all(1 <= a <= b for a, b in zip(step, lattice, strict=True)))
    expect(0 <= header["weight"] < 2**31)
    zone, names = header["time_zone"], header["slices"]
    expect(all(text is None or isinstance(text, str) for text in (zone, header["boundary"])))
    has_days = header["unit"] == "user-day"
    slices = None
    if names is not None:
        slices = TimeSlices(by=header["by"], names=tuple(names), time_zone=zone)
    resolution = header.get(_RESOLUTION)
    min_cell = header.get(_MIN_CELL, USUAL_MIN_CELL)
    domain = Domain(
        bounds=bounds,
        crs=header["crs"],
        lattice=lattice,
        coordinate_resolution=resolution,
        min_cell=min_cell,
    )
    expect(domain.lattice == lattice)
    expect(domain.coordinate_resolution == resolution)
    expect(_MIN_CELL not in header or domain.min_cell == min_cell)
    return CountingRules(
        domain=domain,
        step=step,
        unit=PrivacyUnit(
            kind=header["unit"], weight=header["weight"], time_zone=zone if has_days else None
        ),
        slices=slices,
        contribution_scope=header["contribution_scope"],
        time_zone=zone,
        boundary=header["boundary"],
        regions=None if header.get(_REGIONS) is None else _regions_of(header[_REGIONS]),
    )


def _regions_of(fields: Any) -> CountedRegions:
    """Regions of a header."""
    expect(isinstance(fields, dict) and fields.keys() == {"digest", "size"})
    digest, size = fields["digest"], fields["size"]
    expect(isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest) is not None)
    expect(type(size) is int and 1 <= size <= MAX_NODES)
    return CountedRegions(digest=digest, size=size)


def origins_of(header: dict[str, Any]) -> tuple[PartOrigin, ...]:
    """Parse the origins of a header, at least one.

    Raises
    ------
    ValueError, TypeError, ParameterError
        If a field is malformed.
    """
    names = _origin_fields(header["format"])
    origins = tuple(_origin_of(fields, names) for fields in header["origins"])
    has_slices = any(
        origin.max_per_slice is not None or origin.clock is not None for origin in origins
    )
    expect(len(origins) > 0 and (header["slices"] is not None or not has_slices))
    return origins


def _origin_fields(version: int) -> set[str]:
    """Names of the fields of an origin in a version."""
    if version == min(_READABLE):
        return _ORIGIN_FIELDS - {"reading"}
    added = {_PER_SLICE: 7, _CLOCK: 8}
    return _ORIGIN_FIELDS | {name for name, since in added.items() if version >= since}


def _origin_of(fields: Any, names_of_fields: set[str]) -> PartOrigin:
    """Origin of one part."""
    expect(isinstance(fields, dict) and fields.keys() == names_of_fields)
    reading = fields.get("reading")
    expect(reading is None or is_reading(reading))
    names = tuple(fields["names"])
    texts = (fields["run"], *names, *([] if fields["key"] is None else [fields["key"]]))
    expect(isinstance(fields["names"], list) and all(isinstance(text, str) for text in texts))
    expect(re.fullmatch("[0-9a-f]{32}", fields["run"]) is not None)
    contributions, limit = integer_between(1, MAX_CONTRIBUTIONS), fields.get(_PER_SLICE)
    clock = fields.get(_CLOCK)
    expect(clock is None or re.fullmatch("[0-9a-f]{16}", clock) is not None)
    return PartOrigin(
        run=fields["run"],
        names=names,
        contributions=contributions("contributions", fields["contributions"]),
        key=fields["key"],
        paid=integer_between(0, MAX_EPSILON * NANO)("paid", fields["paid"]),
        reading=reading,
        max_per_slice=None if limit is None else contributions(_PER_SLICE, limit),
        clock=clock,
    )
