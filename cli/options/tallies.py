"""Inputs of commands that read records, and tallies that a build writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from psd._util.postgres import is_address

if TYPE_CHECKING:
    from psd.api.release import Release
    from psd.ingest.partial_tally import PartialTally
    from psd.ingest.sources import Columns
    from psd.ingest.tally import Tally

__all__ = [
    "INPUTS",
    "SOURCES",
    "local_files",
    "read_slice_tally",
    "write_build_tally",
]


def write_build_tally(
    path: str,
    tally: PartialTally | Tally,
    built: Release,
    release: str,
    data: Sequence[Any],
    columns: Columns,
    *,
    overwrite: bool,
) -> None:
    """Write the tally of a build, with the digest of its release."""
    from dataclasses import replace

    from psd.ingest.tally import Tally
    from psd.ingest.tally_file import file_digest, write_tally
    from psd.publish.tally_parts import tally_of_build

    if isinstance(tally, Tally):
        partial_tally = tally_of_build(tally, built, data, columns=columns, release=Path(release))
    else:
        partial_tally = replace(tally, release=file_digest(release))
    write_tally(partial_tally, path, overwrite=overwrite)


def read_slice_tally(tally: str, loaded: Release, release: str, slice_name: str | None) -> Tally:
    """Tally of a build, or its slice."""
    from psd.ingest.tally_file import read_tally_of_release
    from psd.publish.drawing import slice_tally

    partial_tally = read_tally_of_release(tally, loaded.domain, release)
    if slice_name is None or partial_tally.rules.slices is None:
        return partial_tally.tally
    return slice_tally(partial_tally.tally, partial_tally.rules.slices.names.index(slice_name))


INPUTS = click.argument("inputs", nargs=-1, required=True, type=click.Path(readable=False))

SOURCES = click.argument("inputs", nargs=-1, type=click.Path(readable=False))
"""Inputs of commands that read tables of Spark too, which need no path."""


def local_files(inputs: Sequence[str]) -> list[Path]:
    """Files among the inputs, which must not be overwritten; reading reports faults later."""
    from psd.errors import InputDataError
    from psd.ingest.sources import files_of

    try:
        return files_of(inputs)
    except InputDataError:
        return [Path(item) for item in inputs if not is_address(item)]
