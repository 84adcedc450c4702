"""The page of the release file: the table of header fields follows from `psd.release.schema`."""

from __future__ import annotations

import re
from pathlib import Path

from psd.release.schema import FIELDS, FORMAT, MARK

PAGE = Path(__file__).resolve().parents[1] / "reference" / "file-format.md"
REGION = re.compile(r"(<!-- fields -->\n).*?(<!-- end -->)", re.S)


def page() -> str:
    """Give the text of the page: what is written by hand, and the table of today."""
    return REGION.sub(lambda found: found[1] + _table() + found[2], PAGE.read_text("utf-8"))


def _table() -> str:
    """Table of all header fields."""
    mark = f"| `{MARK}` | integer | the format, {FORMAT}; a reader refuses other numbers |"
    fields = (f"| `{field.name}` | {field.json} | {field.doc} |" for field in FIELDS)
    return "\n".join(["| field | JSON | meaning |", "|---|---|---|", mark, *fields]) + "\n"
