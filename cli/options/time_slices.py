"""Options of time slices: building a series, and naming one slice of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar, cast

import click

from ..options.common import chosen_max_nodes

if TYPE_CHECKING:
    from psd.api.release import Release
    from psd.api.series import SeriesRelease
    from psd.space.time_slices import TimeSlices

    Loaded = TypeVar("Loaded", Release, SeriesRelease)

__all__ = [
    "EACH",
    "SLICE",
    "WHEN",
    "release_at",
    "release_or_series_at",
    "release_when",
    "slice_at",
]

SLICE = click.option(
    "--slice", "slice_name", metavar="NAME", help="Time slice of a series, such as 2024-06."
)


WHEN = click.option(
    "--when",
    metavar="WINDOW",
    help="Window of a series, such as 2024-06 or 2024-06..2024-08, both ends included. It must "
    "begin and end where slices do; all slices by default.",
)

EACH = click.option(
    "--each",
    type=click.Choice(["slice"]),
    help="Answer the slices of a series one by one; by default together, one answer for each area.",
)


def release_when(path: str, when: str | None) -> Release:
    """Release of a file, or the one slice of a series that a window is.

    Raises
    ------
    UsageError
        If a window of a single release is named, or one of several slices.
    ReleaseFormatError
        If the file is not a release, or is a series and no window is named.
    """
    from psd.api.series import SeriesRelease

    if when is None or not _is_series(path):
        return release_at(path, when, "--when")
    series = SeriesRelease.load(path, max_nodes=chosen_max_nodes())
    found = series.slices.window(when)
    if len(found) > 1:
        raise click.UsageError(
            f"--when must be one time slice for this question, got {when[:80]}, which is "
            f"{len(found):,}"
        )
    return _note_source(series.releases[found[0]])


def release_or_series_at(path: str, name: str | None) -> Release | SeriesRelease:
    """Release of a file, slice of a series, or the series where no slice is named.

    What every command reads passes through here, so each notes counts that were given.
    """
    from psd.api.series import SeriesRelease

    if name is None and _is_series(path):
        return _note_source(SeriesRelease.load(path, max_nodes=chosen_max_nodes()))
    return release_at(path, name)


def release_at(path: str, name: str | None, option: str = "--slice") -> Release:
    """Release of a file, or the slice of a series that an option names.

    Raises
    ------
    UsageError
        If a slice of a single release is named.
    ReleaseFormatError
        If the file is not a release, or is a series and no slice is named.
    """
    from psd.api.release import Release
    from psd.api.series import SeriesRelease
    from psd.errors import ReleaseFormatError

    if name is None and _is_series(path):
        raise ReleaseFormatError(
            f"{path} is a series of time slices and not a single release; name a slice with "
            f"{option}"
        )
    if name is None:
        return _note_source(_single_release(path).with_cache())
    if not _is_series(path):
        # Reports a file that is not a release either.
        Release.load(path, max_nodes=chosen_max_nodes())
        raise click.UsageError(
            f"{option} must be given with a series, but {path} is a single release"
        )
    return _note_source(SeriesRelease.load(path, max_nodes=chosen_max_nodes())[name])


def _single_release(path: str) -> Release:
    """Release of a file, with regions or without; its reader refuses what is no plain file."""
    from psd.api.loading import load
    from psd.api.release import Release

    if not os.path.isfile(path):
        return Release.load(path, max_nodes=chosen_max_nodes())
    return cast("Release", load(path, max_nodes=chosen_max_nodes()))  # the caller saw no series


def _note_source(loaded: Loaded) -> Loaded:
    """Print the guarantee to standard error if the counts are not of the curator."""
    if loaded.source != "curator":
        click.echo(f"({loaded.guarantee_text})", err=True)
    return loaded


def _is_series(path: str) -> bool:
    """Whether a file is a series; only plain files are opened, because a pipe may not end."""
    from psd.release.series_file import is_series

    return os.path.isfile(path) and is_series(path)


def slice_at(path: str, name: str) -> TimeSlices:
    """The slice of a series that is named, by itself."""
    from dataclasses import replace

    from psd.api.series import SeriesRelease

    return replace(SeriesRelease.load(path, max_nodes=chosen_max_nodes()).slices, names=(name,))
