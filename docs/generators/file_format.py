"""The page of the release file: the table of header fields follows from `psd.release.schema`."""

from __future__ import annotations

import json
import re
from pathlib import Path

from psd.release.schema import FIELDS, FORMAT, OLDEST_FORMAT, Field

PAGE = Path(__file__).resolve().parents[1] / "reference" / "file-format.md"
REGION = re.compile(r"(<!-- fields -->\n).*?(<!-- end -->)", re.S)


def page() -> str:
    """Give the text of the page: what is written by hand, and the table of today."""
    return REGION.sub(lambda found: found[1] + _table() + found[2], PAGE.read_text("utf-8"))


def _table() -> str:
    """Table of all header fields."""
    accepted = f"{FORMAT}; a reader accepts {OLDEST_FORMAT} to {FORMAT} and refuses other numbers"
    version = f"| `format` | integer | {accepted} | |"
    rows = ["| field | JSON | meaning | added |", "|---|---|---|---|", version]
    return "\n".join([*rows, *map(_row, FIELDS)]) + "\n"


def _row(field: Field) -> str:
    """Line of the table about one field."""
    added = (
        "" if field.is_required else f"in format {field.since}; {json.dumps(field.default)} before"
    )
    return f"| `{field.name}` | {field.json} | {field.doc} | {added} |"
