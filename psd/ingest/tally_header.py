"""Header of the file of a tally: everything except its counts. Private side."""

from __future__ import annotations

import re
from typing import Any, get_args

from psd._util.fields import integer_between
from psd._util.strict_json import strict_json
from psd.ingest.partial_tally import CountingRules, PartialTally, PartOrigin
from psd.ingest.reading import is_reading
from psd.ingest.user_rows import UserRows
from psd.privacy.epsilon import MAX_EPSILON, NANO
from psd.privacy.unit import MAX_CONTRIBUTIONS, ContributionScope, PrivacyUnit
from psd.space.domain import Domain
from psd.space.time_slices import TimeSlices

__all__ = ["FORMAT", "expect", "header_of", "origins_of", "parse_header", "rules_of"]

FORMAT = 4
"""Newest version. A tally without a coordinate resolution is written in version 3, without the
field. Version 2, whose parts do not state how they were read, is read too."""

_READABLE = (2, 3, FORMAT)

_MAX_HEADER = 2**24

_NOTICE = "PRIVATE: exact counts and ids; never publish this file"

_FIELDS = {
    "format", "notice", "bounds", "crs", "lattice", "step", "unit", "weight", "by", "slices",
    "contribution_scope", "time_zone", "boundary", "has_user_rows", "origins", "release",
}  # fmt: skip
_RESOLUTION = "coordinate_resolution"
_ORIGIN_FIELDS = {"run", "names", "contributions", "key", "paid", "reading"}


def header_of(tally: PartialTally) -> dict[str, Any]:
    """Return the fields of the header of a tally."""
    rules, slices = tally.rules, tally.rules.slices
    resolution = rules.domain.coordinate_resolution
    added = {} if resolution is None else {_RESOLUTION: resolution}
    return {
        "format": FORMAT if added else FORMAT - 1,
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
            {name: getattr(origin, name) for name in _ORIGIN_FIELDS} for origin in tally.origins
        ],
        "release": tally.release,
        **added,
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
    expect(isinstance(header, dict) and header.keys() - {_RESOLUTION} == _FIELDS)
    expect(type(header["format"]) is int and header["format"] in _READABLE)
    expect((_RESOLUTION in header) == (header["format"] == FORMAT))
    expect(_RESOLUTION not in header or isinstance(header[_RESOLUTION], str))
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
    domain = Domain(
        bounds=bounds, crs=header["crs"], lattice=lattice, coordinate_resolution=resolution
    )
    expect(domain.lattice == lattice)
    expect(domain.coordinate_resolution == resolution)
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
    )


def origins_of(header: dict[str, Any]) -> tuple[PartOrigin, ...]:
    """Parse the origins of a header, at least one.

    Raises
    ------
    ValueError, TypeError, ParameterError
        If a field is malformed.
    """
    missing = {"reading"} if header["format"] == min(_READABLE) else set()
    origins = tuple(_origin_of(fields, _ORIGIN_FIELDS - missing) for fields in header["origins"])
    expect(len(origins) > 0)
    return origins


def _origin_of(fields: Any, names_of_fields: set[str]) -> PartOrigin:
    """Origin of one part."""
    expect(isinstance(fields, dict) and fields.keys() == names_of_fields)
    reading = fields.get("reading")
    expect(reading is None or is_reading(reading))
    names = tuple(fields["names"])
    texts = (fields["run"], *names, *([] if fields["key"] is None else [fields["key"]]))
    expect(isinstance(fields["names"], list) and all(isinstance(text, str) for text in texts))
    expect(re.fullmatch("[0-9a-f]{32}", fields["run"]) is not None)
    contributions = integer_between(1, MAX_CONTRIBUTIONS)
    return PartOrigin(
        run=fields["run"],
        names=names,
        contributions=contributions("contributions", fields["contributions"]),
        key=fields["key"],
        paid=integer_between(0, MAX_EPSILON * NANO)("paid", fields["paid"]),
        reading=reading,
    )
