"""Text to the screen or to a file, and the format that the name of the file selects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from psd._util.file_endings import contradicts

from ..output.terminal import print_success

__all__ = ["output_format", "write_text"]


def output_format(form: str | None, output: str | None, formats: Sequence[str]) -> str:
    """Format of ``--format``, else of the output's ending, else a table.

    Parameters
    ----------
    form : str or None
        Value of ``--format``.
    output : str or None
        File to write; None for the screen.
    formats : sequence of str
        Formats of the command; ``table`` is for the screen alone.

    Raises
    ------
    UsageError
        If a file would be a table, or its name says that it is in another format.
    """
    ending = Path(output or "").suffix[1:].lower()
    chosen = form or (ending if ending in formats else "table")
    if output and chosen == "table":
        *others, last = (name for name in formats if name != "table")
        raise click.UsageError(
            f"-o {output}: name the format with --format {', '.join(others)} or {last}"
        )
    if output and contradicts(output, chosen):
        raise click.UsageError(
            f"-o must end in .{chosen} with --format {chosen}, got {output}; its ending is that of "
            "another format"
        )
    return chosen


def write_text(text: str, output: str | None, *, overwrite: bool) -> None:
    """Write a text to the screen or to a file."""
    from psd._util.atomic_write import temporary_target

    if output is None:
        click.echo(text, nl=False)
        return
    with temporary_target(output, overwrite=overwrite) as target:
        target.write_text(text, encoding="utf-8")
    print_success(f"wrote {output}")
