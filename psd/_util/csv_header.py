"""The header line of CSV: names, and the character that separates them.

Both sides of the wall read by it: records, and public files such as boxes.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence

__all__ = [
    "AUTOMATIC",
    "DELIMITERS",
    "OpenQuoteError",
    "is_separator_line",
    "match_name",
    "split_names",
]

DELIMITERS = {",": ",", ";": ";", "tab": "\t", "|": "|"}
"""Words for the characters that separate the fields of a text file."""

AUTOMATIC = (",", ";", "tab")
"""Words for the delimiters that are tried on the header line, in this order."""


class OpenQuoteError(ValueError):
    """A name has a quote that is not closed in its line."""


def split_names(line: str, word: str) -> list[str]:
    """Names in a header line.

    A quote that is not closed would continue in the next line, and then in the rows:
    OpenQuoteError.
    """
    names, *after = csv.reader([line + "\n", "next"], delimiter=DELIMITERS[word])
    if not after:
        raise OpenQuoteError
    return [name.strip() for name in names]


def match_name(name: str, names: Sequence[str]) -> str | None:
    """Find a name: spelled exactly so, else the only one that differs in the case of letters."""
    if name in names:
        return name
    key = name.strip().casefold()
    alike = [other for other in names if other.strip().casefold() == key]
    return alike[0] if len(alike) == 1 else None


def is_separator_line(line: str) -> bool:
    """Whether a line such as ``sep=;`` names the separator for a spreadsheet program."""
    text = line.strip().strip('"').casefold()
    return text.startswith("sep=") and len(text) <= len("sep=;")
