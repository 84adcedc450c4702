"""CSV: the header line, and text of a table in which no spreadsheet finds a formula.

Both sides of the wall read by it: records, and public files such as boxes.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from psd._util.column_kinds import held_columns

if TYPE_CHECKING:
    import pandas

__all__ = ["AUTOMATIC", "DELIMITERS", "csv_text", "guard_text"]


_NUMBER = r"[0-9.,]+(e[+-]?[0-9]+)?"

# How a spreadsheet begins a formula, unless the text is a number or a range of numbers.
_FORMULA = re.compile(rf"[=@\t\r]|[+-](?!{_NUMBER}( to -?{_NUMBER})?$)", re.IGNORECASE)


def csv_text(table: pandas.DataFrame, *, heading: bool = True) -> str:
    """CSV of a table without its index; a formula becomes a text that begins with an apostrophe."""
    held = held_columns(table, "csv")
    # All columns but those of numbers, times or truth values alone.
    kinds = [getattr(each, "kind", "O") for each in held.dtypes]
    columns = [number for number, kind in enumerate(kinds) if kind not in "biufcmM"]
    guarded = held.set_axis([guard_text(name) for name in held.columns], axis=1)
    for number in columns:
        texts = held.iloc[:, number].map(guard_text, na_action="ignore")
        guarded.isetitem(number, texts.array)
    return str(guarded.to_csv(index=False, header=heading, lineterminator="\n"))


def guard_text(value: Any) -> Any:
    """Value with an apostrophe before it if it would be a formula."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


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
    matches = [other for other in names if other.strip().casefold() == key]
    return matches[0] if len(matches) == 1 else None


def is_separator_line(line: str) -> bool:
    """Whether a line such as ``sep=;`` names the separator for a spreadsheet program."""
    text = line.strip().strip('"').casefold()
    return text.startswith("sep=") and len(text) <= len("sep=;")
