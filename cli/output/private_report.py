"""What the holder of the data is shown of a reading, on stderr and marked as private."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from ..output.terminal import Stage, is_quiet

if TYPE_CHECKING:
    from psd.ingest.tally import Tally
    from psd.publish.observer import Observer

__all__ = ["make_observer", "name_reading_report"]

_MARK = "PRIVATE, do not publish:"

_NOTHING_INSIDE = (
    "no record was counted; are x and y swapped, are the bounds in the order west south east "
    "north, is the CRS right, and do the slices hold the times?"
)


def make_observer(
    progress: Stage | Callable[[str], None],
    *,
    report_private: bool,
    private_tally: Callable[[Tally], None] | None = None,
) -> Observer:
    """Observer of a command: private numbers and faults are shown if the options ask for them."""
    from psd.publish.observer import Observer

    return Observer(
        progress=progress,
        slices_done=progress.slices if isinstance(progress, Stage) else lambda done, total: None,
        private_report=_show_report if report_private else _ignore_report,
        private_fault=_show_fault if report_private else _ignore_report,
        private_tally=private_tally,
    )


def name_reading_report(*, in_recipe: bool = False) -> None:
    """Say after a build how its holder sees what was read: the same words whatever was read."""
    how = "with report_private = true" if in_recipe else "--report-private"
    if not is_quiet():
        click.echo(
            "(the holder of the data sees how many records were left out, PRIVATE, by --dry-run "
            f"{how}; it must not choose parameters)",
            err=True,
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
