"""Entries of catalogues: a release as an item of STAC, a dataset of DCAT, a registered deployment.

All are made of the release alone and are JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from psd._util.declared_parameters import choice
from psd._util.wall_clock import check_zone
from psd.space.crs import explain_proj_errors, parse_crs

if TYPE_CHECKING:
    from psd.release.about import About
    from psd.release.record import ReleaseRecord
    from psd.space.time_slices import TimeSlices

__all__ = ["STANDARDS", "Described", "Standard", "catalogue_entry"]

Standard = Literal["stac", "dcat", "registry"]

STANDARDS: Final = ("stac", "dcat", "registry")
"""Catalogues that an entry can be made for; each is a module of this package."""

_SUFFIXES = (".parquet", ".psd")
_DECIMALS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A release or a series, as catalogues describe it."""

    record: ReleaseRecord  # of the release, or of the first slice
    metadata: dict[str, str]  # see `psd.export._metadata.release_metadata`
    guarantee: str  # epsilon and unit of privacy in words
    file: str  # name of the release file, with which links in the entry begin
    slices: TimeSlices | None = None  # of a series

    @property
    def about(self) -> About | None:
        """What the publisher states."""
        return self.record.about

    @property
    def identifier(self) -> str:
        """Name of the file without its endings."""
        name = PurePath(self.file).name
        for suffix in _SUFFIXES:
            name = name.removesuffix(suffix)
        return name or "release"

    @property
    def title(self) -> str:
        """Title, or the identifier."""
        return self.metadata.get("title", self.identifier)

    @property
    def description(self) -> str:
        """Description, or what the counts are; the guarantee follows."""
        lead = self.metadata.get(
            "description", f"Numbers of {self.record.counted_text}, by location"
        )
        return f"{lead.rstrip('.')}. Differentially private: {self.guarantee}."

    @property
    def interval(self) -> tuple[datetime, datetime] | None:
        """First and last second of the reference date, or of the slices; None without both."""
        period = None if self.about is None else self.about.period
        if period is not None:
            return (
                datetime.combine(period[0], time(), UTC),
                datetime.combine(period[1], time(23, 59, 59), UTC),
            )
        return None if self.slices is None else _interval_of(self.slices)

    @property
    def bbox(self) -> list[float] | None:
        """West, south, east, north in degrees of WGS 84; None for a local CRS.

        West is greater than east where the domain crosses the antimeridian.
        """
        from pyproj import Transformer

        from psd.errors import DomainError

        domain = self.record.domain
        try:
            with explain_proj_errors("the release", "EPSG:4326"):
                transformer = Transformer.from_crs(
                    parse_crs(domain.crs), "EPSG:4326", always_xy=True
                )
                sides = transformer.transform_bounds(*domain.bounds)
        except DomainError:
            return None
        if not np.isfinite(sides).all():
            return None
        west, south, east, north = (round(float(side), _DECIMALS) for side in sides)
        return [west, max(south, -90.0), east, min(north, 90.0)]


def catalogue_entry(standard: str, described: Described) -> dict[str, Any]:
    """Entry of a catalogue as JSON values; see `Release.catalogue`."""
    choice(*STANDARDS)("standard", standard)
    make: Callable[[Described], dict[str, Any]] = import_module(f"psd.export._{standard}").entry
    return make(described)


def _interval_of(slices: TimeSlices) -> tuple[datetime, datetime]:
    """First and last second of the slices, in UTC."""
    from zoneinfo import ZoneInfo

    zone = ZoneInfo(check_zone(slices.time_zone))
    end = slices.ends[-1].astype("datetime64[s]").item()
    first, last = slices.begins[0].astype("datetime64[s]").item(), end - timedelta(seconds=1)
    return first.replace(tzinfo=zone).astimezone(UTC), last.replace(tzinfo=zone).astimezone(UTC)
