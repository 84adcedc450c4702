"""Warnings about public parameters and names of columns: neither text nor cause is of a record."""

from __future__ import annotations

import inspect
import warnings
from decimal import Decimal
from math import log
from typing import Any

from psd.errors import PsdWarning
from psd.ingest.columns import coordinate_names, unit_of_names
from psd.ingest.id_columns import headers_of, id_columns
from psd.publish.recipe import PER_RECORD
from psd.publish.request import BuildTerms
from psd.publish.tally_parts import TallyRequest
from psd.space.bounds import beyond_the_world, may_be_degrees
from psd.space.crs import check_plane_crs
from psd.space.domain import Domain

__all__ = ["warn_of_large_epsilon", "warn_of_request"]

# Above it, a belief of 1 % may become one of more than 99.5 % (docs/privacy/epsilon.md).
_LARGE_EPSILON = 10

_GROUPS = ("", " thousand", " million", " billion", " trillion")


def warn_of_request(request: BuildTerms) -> None:
    """Warn of a large epsilon, and of bounds that may be degrees or reach beyond the world."""
    warn_of_large_epsilon(request.epsilon)
    if not isinstance(request.domain, Domain):
        return
    bounds, crs = request.domain.bounds, request.domain.crs
    warn_of_degrees(request.domain)

    # A density fills cells beyond the world of a projection, where nobody is.
    density, is_outlined = request.post_processing.density, request.boundary or request.regions
    if not is_outlined and density != "covariate" and beyond_the_world(bounds, crs):
        _warn(
            f"bounds reach beyond the world of {crs[:80]}, where nobody is: with "
            f'density="{density}", cells at its rim are taken to be filled evenly, so answers '
            "there are too low. Leave density out"
        )


def warn_of_degrees(domain: Domain) -> None:
    """Warn of bounds in metres that are numbers as longitudes and latitudes have."""
    if may_be_degrees(domain.bounds, domain.crs):
        edges = " ".join(f"{edge:.10g}" for edge in domain.bounds)
        _warn(
            f'bounds {edges} may be degrees, and crs="{domain.crs[:80]}" has none: records '
            'elsewhere are left out. If they are, give bounds_crs="EPSG:4326"'
        )


def warn_of_large_epsilon(epsilon: Decimal) -> None:
    """Warn that a large epsilon promises little."""
    if epsilon > _LARGE_EPSILON:
        _warn(
            f"epsilon {epsilon:f} is a weak promise: a release may multiply the odds of a guess "
            f"about a person by {odds_text(float(epsilon))}, e^{epsilon:f}; usual values are at "
            "most 2"
        )


def odds_text(epsilon: float) -> str:
    """E^epsilon in words, such as "490 million"."""
    exponent = int(epsilon / log(10))
    group = exponent // 3
    if group >= len(_GROUPS):
        return f"more than 10^{exponent}"
    leading = float(f"{10 ** (epsilon / log(10) - 3 * group):.2g}")
    return f"{leading:g}{_GROUPS[group]}"


def warn_of_columns(
    data: Any, request: BuildTerms | TallyRequest, *, per: object, has_ledger: bool
) -> None:
    """Warn of times that nothing uses, and of names that speak for another unit, CRS or column."""
    columns, domain = request.columns, request.domain
    # With a ledger, lines below the first are not taken for a header, whatever number is skipped.
    is_tallied = isinstance(request, BuildTerms) and request.is_tallied
    if is_tallied or domain is None or (has_ledger and columns.skip_rows):
        return
    of_days = request.slices is not None or request.unit.kind == "user-day"
    # Among the records of a user, a tally tells those of one place by their times.
    of_users = isinstance(request, TallyRequest) and request.unit.has_user
    if columns.time is not None and not (of_days or of_users or has_ledger):
        _warn(
            "time has no effect without slices or days, and all records are counted together. Give "
            'slices="FIRST..LAST", such as 2024-01..2024-12, or no column of times'
        )
    # Of private data, names of columns alone are looked at.
    crs, headers = domain.crs, headers_of(data, columns)
    # The unit is meant if the dataset of a ledger states it, or the caller: per="record".
    is_meant = has_ledger or request.unit.has_user or per == PER_RECORD
    ids = () if is_meant else id_columns(headers)
    if ids:
        _warn(
            f"a column is named like an id ({ids[0]}), and each record is protected separately: "
            'a person with many records is protected less. Give user="COLUMN" to protect all '
            'records of a user, or per="record" if a record is what you protect'
        )
    if columns.input_crs is not None:
        return
    unit = "degrees" if check_plane_crs(crs)[1] else "metres"
    other, example = ("degrees", "EPSG:4326") if unit == "metres" else ("metres", "EPSG:27700")
    for header in headers:
        pair = None if header.has_geometries else coordinate_names(columns, header.names)
        if pair is not None and unit_of_names(pair) == other:
            _warn(
                f'the columns {pair[0]} and {pair[1]} are named as {other}, and crs="{crs[:80]}" '
                f"has {unit}: records elsewhere are left out. Give their own CRS, such as "
                f'input_crs="{example}"'
            )
            return


def _warn(text: str) -> None:
    """Warn the caller of the library, whose line is shown; the command line prints the text."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "psd":
        frame, level = frame.f_back, level + 1
    warnings.warn(text, PsdWarning, stacklevel=level)
