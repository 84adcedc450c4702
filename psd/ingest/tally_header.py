"""Header of the file of a tally: everything except its counts. Private side."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from psd._util.declared_parameters import integer_between
from psd._util.strict_json import strict_json
from psd.errors import InputDataError
from psd.ingest.columns import is_reading
from psd.ingest.partial_tally import CountedRegions, CountingRules, PartialTally, PartOrigin
from psd.ingest.user_rows import UserRows
from psd.privacy.loss import MAX_EPSILON, NANO
from psd.privacy.unit import MAX_CONTRIBUTIONS, ContributionScope, PrivacyUnit
from psd.regions.hierarchy import MAX_NODES
from psd.space.domain import Domain
from psd.space.time_slices import TimeSlices
from psd.version import old_format

__all__ = ["FORMAT", "expect", "header_of", "origins_of", "parse_header", "rules_of"]

FORMAT = 1
"""The format that is written, and the only one that is read."""

_MARK = "psd_tally"
"""Key of the format. It tells a tally of this format from the older ones, which had their numbers,
1 to 8, under ``format``."""

_OLD = range(1, 9)

_MAX_HEADER = 2**24

_NOTICE = "PRIVATE: exact counts and ids; never publish this file"

_FIELDS = {
    _MARK, "notice", "bounds", "crs", "lattice", "coordinate_resolution", "min_cell", "step",
    "regions", "unit", "weight", "by", "slices", "contribution_scope", "time_zone", "boundary",
    "has_user_rows", "origins", "release",
}  # fmt: skip

_ORIGIN_FIELDS = {
    "run", "names", "contributions", "key", "paid", "reading", "max_per_slice", "clock",
}  # fmt: skip


def header_of(tally: PartialTally) -> dict[str, Any]:
    """Return the fields of the header of a tally."""
    rules, slices = tally.rules, tally.rules.slices
    return {
        _MARK: FORMAT,
        "notice": _NOTICE,
        "bounds": rules.domain.bounds,
        "crs": rules.domain.crs,
        "lattice": rules.domain.lattice,
        "coordinate_resolution": rules.domain.coordinate_resolution,
        "min_cell": rules.domain.min_cell,
        "step": rules.step,
        "regions": None if rules.regions is None else asdict(rules.regions),
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
    }


def expect(holds: bool) -> None:
    """Refuse a file unless a condition holds, by a `ValueError` that the reader replaces."""
    if not holds:
        raise ValueError


def parse_header(text: bytes, path: Path) -> dict[str, Any]:
    """Parse a header and check that it has exactly the fields of the format."""
    header = strict_json(text, _MAX_HEADER)
    expect(isinstance(header, dict))
    older = header.get("format")
    if _MARK not in header and type(older) is int and older in _OLD:
        raise InputDataError(f"tally {path} {old_format('tally', older)}")
    expect(header.keys() == _FIELDS and type(header[_MARK]) is int and header[_MARK] == FORMAT)
    texts = (header["coordinate_resolution"], header["min_cell"])
    expect(all(text is None or isinstance(text, str) for text in texts))
    expect(isinstance(header["has_user_rows"], bool))
    expect(header["contribution_scope"] in get_args(ContributionScope))
    expect(header["release"] is None or isinstance(header["release"], str))
    return dict(header)


def rules_of(header: dict[str, Any]) -> CountingRules:
    """Parse the counting rules of a header."""
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
    stated = {name: header[name] for name in ("coordinate_resolution", "min_cell")}
    domain = Domain(bounds=bounds, crs=header["crs"], lattice=lattice, **stated)
    expect(domain.lattice == lattice)
    expect(all(getattr(domain, name) == text for name, text in stated.items()))
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
        regions=None if header["regions"] is None else _regions_of(header["regions"]),
    )


def _regions_of(fields: Any) -> CountedRegions:
    """Regions of a header."""
    expect(isinstance(fields, dict) and fields.keys() == {"digest", "size"})
    digest, size = fields["digest"], fields["size"]
    expect(isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest) is not None)
    expect(type(size) is int and 1 <= size <= MAX_NODES)
    return CountedRegions(digest=digest, size=size)


def origins_of(header: dict[str, Any]) -> tuple[PartOrigin, ...]:
    """Parse the origins of a header, at least one."""
    origins = tuple(map(_origin_of, header["origins"]))
    has_slices = any(
        origin.max_per_slice is not None or origin.clock is not None for origin in origins
    )
    expect(len(origins) > 0 and (header["slices"] is not None or not has_slices))
    return origins


def _origin_of(fields: Any) -> PartOrigin:
    """Origin of one part."""
    expect(isinstance(fields, dict) and fields.keys() == _ORIGIN_FIELDS)
    expect(is_reading(fields["reading"]))
    names = tuple(fields["names"])
    texts = (fields["run"], *names, *([] if fields["key"] is None else [fields["key"]]))
    expect(isinstance(fields["names"], list) and all(isinstance(text, str) for text in texts))
    expect(re.fullmatch("[0-9a-f]{32}", fields["run"]) is not None)
    contributions, limit = integer_between(1, MAX_CONTRIBUTIONS), fields["max_per_slice"]
    clock = fields["clock"]
    expect(clock is None or re.fullmatch("[0-9a-f]{16}", clock) is not None)
    return PartOrigin(
        run=fields["run"],
        names=names,
        contributions=contributions("contributions", fields["contributions"]),
        key=fields["key"],
        paid=integer_between(0, MAX_EPSILON * NANO)("paid", fields["paid"]),
        reading=fields["reading"],
        max_per_slice=None if limit is None else contributions("max_per_slice", limit),
        clock=clock,
    )
