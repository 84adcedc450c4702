"""CSV text of a table of answers, in which no spreadsheet finds a formula."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from psd._util.column_kinds import held_columns

if TYPE_CHECKING:
    import pandas

__all__ = ["csv_text", "guard_text"]

_NUMBER = r"[0-9.,]+(e[+-]?[0-9]+)?"

# How a spreadsheet begins a formula, unless the text is a number or a range of numbers.
_FORMULA = re.compile(rf"[=@\t\r]|[+-](?!{_NUMBER}( to -?{_NUMBER})?$)", re.IGNORECASE)


def csv_text(table: pandas.DataFrame) -> str:
    """CSV of a table without its index; a formula becomes a text that begins with an apostrophe."""
    held = held_columns(table, "csv")
    columns = [number for number, kind in enumerate(held.dtypes) if not _is_numeric(kind)]
    guarded = held.set_axis([guard_text(name) for name in held.columns], axis=1)
    for number in columns:
        texts = held.iloc[:, number].map(guard_text, na_action="ignore")
        guarded.isetitem(number, texts.array)
    return str(guarded.to_csv(index=False, lineterminator="\n"))


def _is_numeric(kind: Any) -> bool:
    """Whether a column of a type holds numbers, times or truth values alone."""
    return getattr(kind, "kind", "O") in "biufcmM"


def guard_text(value: Any) -> Any:
    """Value with an apostrophe before it if it would be a formula."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
