"""Options of time slices: building a series, and naming one slice of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..options.common import chosen_max_nodes

if TYPE_CHECKING:
    from psd.api.release import Release
    from psd.space.time_slices import TimeSlices


__all__ = [
    "CATEGORY",
    "SLICE",
    "VIEWED_CATEGORY",
    "VIEWED_EACH",
    "compared_at",
    "is_cube",
    "release_at",
    "release_or_series_at",
    "release_viewed",
    "slice_at",
]

SLICE = click.option(
    "--slice", "slice_name", metavar="NAME", help="Time slice of a series, such as 2024-06."
)


WHEN = click.option(
    "--when",
    multiple=True,
    metavar="WINDOW",
    help="Window of a series, answered as one: a year, month, week, day or hour, FIRST..LAST, or "
    "days and hours such as 'weekdays 07-09'. May be repeated, for each by itself; all time by "
    "default.",
)

VIEWED = click.option(
    "--when",
    metavar="WINDOW",
    help="Window of a cube, such as 2024-01-31 or 'weekdays 07-09'; all time by default.",
)

VIEWED_EACH = click.option(
    "--when",
    multiple=True,
    metavar="WINDOW",
    help="Window of a cube, such as 2024-01-31 or 'weekdays 07-09'. May be repeated, for one map "
    "of each.",
)

VIEWED_CATEGORY = click.option(
    "--category",
    metavar="LABEL",
    help="Label of a cube with categories, such as work or purpose=work, with all labels below it; "
    "all categories by default.",
)

CATEGORY = click.option(
    "--category",
    "categories",
    multiple=True,
    metavar="LABEL",
    help="Label of a release with categories, such as work or purpose=work, with all labels below "
    "it. May be repeated, for each by itself; all categories by default.",
)

VIEWED_EACH_OF = click.option(
    "--each",
    type=click.Choice(["slice", "category"]),
    multiple=True,
    help="Of a cube each slice of the windows by itself, or each category of the labels. May be "
    "repeated.",
)

EACH = click.option(
    "--each",
    type=click.Choice(["slice", "category"]),
    multiple=True,
    help="Answer each slice of the windows, or each category of the labels; by default they are "
    "answered as one. May be repeated.",
)


def release_or_series_at(path: str, name: str | None, option: str = "--slice") -> Release:
    """Release of a file, or the slice of it that an option names; notes counts that were given."""
    loaded = _load(path)
    if name is not None and loaded.slices is None:
        raise click.UsageError(
            f"{option} must be given with a series, but {path} is a single release"
        )
    from psd.api.fits import with_cache

    return _note_source(with_cache(loaded) if name is None else loaded[name])


def release_at(path: str, name: str | None, option: str = "--slice") -> Release:
    """Release of a file, which must be without time unless an option names a slice."""
    from psd.errors import ReleaseFormatError
    from psd.release.cube import refuse_views

    loaded = release_or_series_at(path, name, option)
    refuse_views(loaded.record, "for this")
    if loaded.slices is None:
        return loaded
    more = ""
    if click.get_current_context().info_name == "export":  # it writes cells of one slice
        areas = "--all-regions" if loaded.levels else "--polygons FILE"
        query = f"psd query {path} {areas} --each slice -o OUTPUT"
        more = f", or write regions of all slices by {query}"
    raise ReleaseFormatError(
        f"{path} is a series of time slices and not a single release; give one of its "
        f"{len(loaded.slices):,}, such as {option} {loaded.slices.names[0]}{more}"
    )


def release_when(path: str, when: tuple[str, ...]) -> Release:
    """Release of a file, or the one time slice that a window is; see `release_at`."""
    loaded = _load(path)
    if is_cube(loaded):
        if len(when) > 1:
            raise click.UsageError(
                f"--when must be one window for this question, got {len(when):,} windows"
            )
        return _note_source(loaded[when[0]] if when else loaded)
    if not when or loaded.slices is None:
        return release_at(path, when[0] if when else None, "--when")
    from psd.space.windows import read_windows

    found, _ = read_windows(list(when), loaded.slices)
    if len(found) > 1 or len(found[0]) > 1:
        text = f"{when[0][:80]}, which is {len(found[0]):,}"
        raise click.UsageError(
            "--when must be one time slice for this question, got "
            + (text if len(found) == 1 else f"{len(found):,} windows")
        )
    return _note_source(loaded[loaded.slices.names[found[0].numbers[0]]])


def compared_at(
    path: str, name: str | None, option: str, categories: tuple[str, ...] = ()
) -> Release:
    """One side of a difference: a release, a slice of a series, or a cube, in a window or not."""
    loaded = release_or_series_at(path, None if categories else name, option)
    if categories and name is not None:  # of the category that is asked on the other side
        return loaded[name, categories[0]] if is_cube(loaded) else loaded[name]
    return loaded if is_cube(loaded) or name is not None else release_at(path, name, option)


def release_viewed(
    path: str,
    name: str | None,
    when: str | tuple[str, ...] | None,
    category: object = None,
    each: object = None,
) -> Release:
    """Release of a file, its slice of a name, or a cube seen at when, category, each."""
    if when and name is not None:
        raise click.UsageError("--slice must be left out with --when")
    loaded = release_or_series_at(path, name)
    for option, given in (("--when", when), ("--category", category), ("--each", each)):
        if given and not is_cube(loaded):
            has_slices = option == "--when" and loaded.slices is not None
            other = "--slice names a slice of a series" if has_slices else "it has none"
            raise click.UsageError(
                f"{option} must be given with a cube, but {path} is none; {other}"
            )
    return loaded


def is_cube(loaded: Release) -> bool:
    """Whether a release is a cube, of which any window of time is asked as one."""
    from psd.release.cube import CubeRecord

    return isinstance(loaded.record, CubeRecord)


def slice_at(path: str, name: str) -> TimeSlices:
    """The slice of a series that is named, by itself."""
    from dataclasses import replace

    slices = _load(path).slices
    if slices is None:
        raise click.UsageError(f"--slice must be given with a series, but {path} is none")
    return replace(slices, names=(name,))


def _load(path: str) -> Release:
    """Release of a file."""
    from psd.api.release import Release

    return Release.load(path, max_nodes=chosen_max_nodes())


def _note_source(loaded: Release) -> Release:
    """Print the guarantee to standard error if the counts are not of the curator."""
    if loaded.record.source != "curator":
        click.echo(f"({loaded.record.guarantee_text})", err=True)
    return loaded
