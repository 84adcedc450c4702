"""Old commands and what they are now: each is answered by one sentence until version 1.0.0."""

from __future__ import annotations

import click

__all__ = ["MOVED", "refuse_moved"]

MOVED = {
    "account": "ledger account",
    "audit": "check audit",
    "compare": "check compare",
    "difference": "query RELEASE --difference OTHER",
    "evaluate": "check evaluate",
    "keygen": "sign new",
    "merge": "tally TALLIES",
    "methodology": "info RELEASE --sheet FILE",
    "qgis-plugin": "qgis",
    "quantiles": "query RELEASE --quantiles",
    "run": "build RECIPE.toml",
    "sign RELEASE": "sign file RELEASE",
    "top": "query RELEASE --top N",
    "verify": "sign check",
}
"""New words after `psd` by the old ones; what the user writes in their place is in capitals."""


def refuse_moved(words: str) -> None:
    """Answer old words with the new ones.

    Raises
    ------
    UsageError
        If the words are in the table.
    """
    if words in MOVED:
        raise click.UsageError(f"psd {words} is now psd {MOVED[words]}; it goes with version 1.0.0")
