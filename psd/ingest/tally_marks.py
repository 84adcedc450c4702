"""Recognise files that `psd` marked as private, which hold no records. Private side.

A cell of a tally counts any number of records, and a file of kept records is bounded already, so
epsilon would not hold for the people behind a row of such a file.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from psd.errors import InputDataError

__all__ = ["refuse_tally_columns"]

_MARK = b"PRIVATE"
"""First bytes of a key in the footer of each private file of `psd`, of any version."""

_TALLY_COLUMNS = (
    ("slice", "column", "row", "count"),
    ("user", "row_hash", "column", "row", "time"),
)
"""Columns of tallies, for readers that show no footer."""


def refuse_private_footer(path: Path, keys: Iterable[bytes]) -> None:
    """Refuse a file that is read as records if a key of its footer marks it as private."""
    if any(key.upper().startswith(_MARK) for key in keys):
        raise InputDataError(_message(str(path)))


def refuse_tally_columns(path: str, columns: Iterable[str]) -> None:
    """Refuse a file that is read as records if its columns are those of a tally."""
    if tuple(columns) in _TALLY_COLUMNS:
        raise InputDataError(_message(path))


def _message(path: str) -> str:
    """Message about a tally."""
    return (
        f"input {path} is a private tally and holds no records; build from tallies "
        "alone, without options of the records"
    )
