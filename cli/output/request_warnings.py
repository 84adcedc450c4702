"""Warnings about public parameters and names of columns, before a record is read.

What the holder of the data is shown of a reading, on stderr and marked as private.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from math import log
from typing import TYPE_CHECKING, Any

import click

from .terminal import print_warning

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.ingest.tally import Tally
    from psd.publish.observer import Observer
    from psd.publish.request import BuildTerms
    from psd.space.domain import Domain

__all__ = [
    "make_observer",
    "odds_text",
    "warn_of_degrees",
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
            # Warn of bounds that reach beyond the world of a projection, where nobody is.
            from psd.space.bounds import beyond_the_world

            if beyond_the_world(request.domain.bounds, request.domain.crs):
                print_warning(
                    f"--bounds reach beyond the world of {request.domain.crs[:80]}, where nobody "
                    "is: cells at its rim are taken to be filled evenly, so answers there are too "
                    "low. Give --boundary FILE with a polygon of the area"
                )


def warn_of_degrees(domain: Domain) -> None:
    """Warn of bounds in metres that are numbers as longitudes and latitudes have."""
    from psd.space.bounds import may_be_degrees

    if may_be_degrees(domain.bounds, domain.crs):
        edges = [f"{edge:.10g}" for edge in domain.bounds]
        print_warning(
            f"--bounds {' '.join(edges)} may be degrees, and --crs {domain.crs[:80]} has none: "
            "records elsewhere are left out. If they are, give --bounds-crs EPSG:4326"
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


_MARK = "PRIVATE, do not publish:"

_NOTHING_INSIDE = (
    "no record was counted; are x and y swapped, are the bounds in the order west south east "
    "north, is the CRS right, and do the slices hold the times?"
)


def make_observer(
    progress: Callable[[str], None],
    *,
    report_private: bool,
    private_tally: Callable[[Tally], None] | None = None,
) -> Observer:
    """Observer of a command: private numbers and faults are shown if the options ask for them."""
    from psd.publish.observer import Observer

    return Observer(
        progress=progress,
        private_report=_show_report if report_private else _ignore_report,
        private_fault=_show_fault if report_private else _ignore_report,
        private_tally=private_tally,
    )


def _ignore_report(_: object) -> None:
    """Show nothing."""


def _show_report(report: dict[str, int]) -> None:
    """Numbers of records."""
    parts = ", ".join(f"{name} {number:,}" for name, number in report.items())
    click.echo(f"{_MARK} records {parts}", err=True)
    if report.get("read") and not report.get("kept"):
        click.echo(f"{_MARK} {_NOTHING_INSIDE}", err=True)


def _show_fault(fault: str) -> None:
    """Why an input could not be read."""
    click.echo(f"{_MARK} {' '.join(fault.split())}", err=True)
