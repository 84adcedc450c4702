"""Recognise files that `psd` marked as private, which hold no records. Private side.

A cell of a tally counts any number of records, and a file of kept records is bounded already, so
epsilon would not hold for the people behind a row of such a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from psd.errors import InputDataError

__all__ = ["refuse_tally_columns"]

_MARK = b"PRIVATE"
"""First bytes of a key in the footer of each private file of `psd`, of any version."""

_TALLY_COLUMNS = re.compile(
    "(slice column row count|user row_hash column row time)( region)?( weight[0-9]+)*"
)
"""Columns of tallies, for readers that show no footer."""


def refuse_private_footer(path: Path, keys: Iterable[bytes]) -> None:
    """Refuse a file that is read as records if a key of its footer marks it as private."""
    if any(key.upper().startswith(_MARK) for key in keys):
        raise InputDataError(_message(f"input {path}"))


def refuse_tally_columns(what: str, columns: Iterable[str]) -> None:
    """Refuse a file or a table that is read as records if its columns are those of a tally."""
    if _TALLY_COLUMNS.fullmatch(" ".join(columns)):
        raise InputDataError(_message(what))


def _message(what: str) -> str:
    """Message about a tally."""
    return (
        f"{what} is a private tally and holds no records; build from tallies alone, without "
        "options of the records"
    )
