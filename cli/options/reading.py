"""Inputs of commands that read records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from psd._util.postgres import is_address

__all__ = ["INPUTS", "SOURCES", "local_files"]

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
