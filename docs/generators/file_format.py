"""The page of the release file: the table of header fields follows from `psd.release.schema`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from psd.release.schema import FIELDS, FORMAT, OLDEST_FORMAT, WRITTEN_FORMAT, Field

PAGE = Path(__file__).resolve().parents[1] / "reference" / "file-format.md"
REGION = re.compile(r"(<!-- fields -->\n).*?(<!-- end -->)", re.S)


def page() -> str:
    """Give the text of the page: what is written by hand, and the table of today."""
    return REGION.sub(lambda found: found[1] + _table() + found[2], PAGE.read_text("utf-8"))


def _table() -> str:
    """Table of all header fields."""
    accepted = (
        f"{WRITTEN_FORMAT} or {FORMAT}; a reader accepts {OLDEST_FORMAT} to {FORMAT} and refuses "
        "other numbers"
    )
    version = f"| `format` | integer | {accepted} | |"
    rows = ["| field | JSON | meaning | added |", "|---|---|---|---|", version]
    return "\n".join([*rows, *map(_row, FIELDS)]) + "\n"


def _row(field: Field) -> str:
    """Line of the table about one field."""
    before = "" if field.is_required else _text_of(field.default)
    added = "" if field.is_required else f"in format {field.since}; before that, {before}"
    return f"| `{field.name}` | {field.json} | {field.doc} | {added} |"


def _text_of(default: Any) -> str:
    """Text of a value, or of the rule by which it follows from the other fields."""
    if callable(default):
        return (default.__doc__ or "").removesuffix(".").lower()
    return json.dumps(default)
