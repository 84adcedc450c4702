"""Tables in Markdown that the benchmarks print or write, row by row as they are measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["write_table"]


def write_table(output: Path | None, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table to a file, or print it."""
    with output.open("w") if output else open(1, "w", closefd=False) as out:
        print(f"| {' | '.join(header)} |\n|{' --- |' * len(header)}", file=out)
        for row in rows:
            print(f"| {' | '.join(row)} |", file=out, flush=True)
