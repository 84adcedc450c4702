"""Warnings about public parameters and names of columns, before a record is read."""

from __future__ import annotations

from decimal import Decimal
from math import log
from typing import TYPE_CHECKING, Any

from ..output.terminal import print_warning

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.publish.request import BuildTerms
    from psd.space.domain import Domain

__all__ = [
    "odds_text",
    "warn_of_degrees",
    "warn_of_empty_corners",
    "warn_of_ids",
    "warn_of_large_epsilon",
    "warn_of_request",
]

# Above it, a belief of 1 % may become one of more than 99.5 % (docs/privacy/epsilon.md).
_LARGE_EPSILON = 10

_GROUPS = ("", " thousand", " million", " billion", " trillion")


def warn_of_request(request: BuildTerms) -> None:
    """Warn of a large epsilon, and of bounds that may be degrees or reach beyond the world."""
    from psd.space.domain import Domain

    warn_of_large_epsilon(request.epsilon)
    if isinstance(request.domain, Domain):
        warn_of_degrees(request.domain)
        if request.boundary is None and request.covariate is None and request.regions is None:
            warn_of_empty_corners(request.domain)


def warn_of_degrees(domain: Domain) -> None:
    """Warn of bounds in metres that are numbers as longitudes and latitudes have."""
    from psd.space.bounds import may_be_degrees

    if may_be_degrees(domain.bounds, domain.crs):
        edges = [f"{edge:.10g}" for edge in domain.bounds]
        print_warning(
            f"--bounds {' '.join(edges)} may be degrees, and --crs {domain.crs[:80]} has none: "
            "records elsewhere are left out. If they are, give --bounds-crs EPSG:4326"
        )


def warn_of_empty_corners(domain: Domain) -> None:
    """Warn of bounds that reach beyond the world of a projection, where nobody is."""
    from psd.space.bounds import beyond_the_world

    if beyond_the_world(domain.bounds, domain.crs):
        print_warning(
            f"--bounds reach beyond the world of {domain.crs[:80]}, where nobody is: cells at its "
            "rim are taken to be filled evenly, so answers there are too low. Give --boundary FILE "
            "with a polygon of the area"
        )


def warn_of_large_epsilon(epsilon: Decimal) -> None:
    """Warn that a large epsilon promises little."""
    if epsilon > _LARGE_EPSILON:
        print_warning(
            f"epsilon {epsilon:f} is a weak promise: a release may multiply the odds of a guess "
            f"about a person by {odds_text(float(epsilon))}, e^{epsilon:f}; usual values are at "
            "most 2"
        )


def odds_text(epsilon: float) -> str:
    """E^epsilon in words.

    Examples
    --------
    >>> odds_text(11), odds_text(20), odds_text(50)
    ('60 thousand', '490 million', 'more than 10^21')
    """
    exponent = int(epsilon / log(10))
    group = exponent // 3
    if group >= len(_GROUPS):
        return f"more than 10^{exponent}"
    leading = float(f"{10 ** (epsilon / log(10) - 3 * group):.2g}")
    return f"{leading:g}{_GROUPS[group]}"


def warn_of_ids(data: Any, columns: Columns) -> None:
    """Warn of a column that is named like an id, where each record is protected by itself."""
    from psd.ingest.id_columns import id_columns

    names = id_columns(data, columns)
    if names:
        print_warning(
            f"a column is named like an id ({names[0]}), and each record is protected separately: "
            "a person with many records is protected less. Give --user COLUMN to protect all "
            "records of a user, or --per record if a record is what you protect"
        )
