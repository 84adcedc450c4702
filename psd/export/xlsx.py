"""XLSX: a sheet of numbers, and a sheet that says where they come from."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd.errors import MissingExtraError
from psd.export._plain import plain_columns

if TYPE_CHECKING:
    import geopandas

__all__ = ["FIXED_CRS", "SUFFIX", "write"]

SUFFIX = ".xlsx"

FIXED_CRS = "release"
"""In another CRS cells are not boxes, and have no four sides."""

# Wide enough for the headings, which are longer than most numbers.
_WIDEST = 40


def write(table: geopandas.GeoDataFrame, path: Path) -> None:
    """Write the columns but the geometry; of cells the four sides as well.

    Texts are written as texts, never as formulas, whatever they begin with.

    Raises
    ------
    MissingExtraError
        If openpyxl is not installed.
    """
    try:
        from openpyxl import Workbook
        from openpyxl.styles import Font
    except ImportError:
        raise MissingExtraError(
            f"output {path.name} needs openpyxl; install psd-publisher[xlsx], or write a table "
            "(.csv)",
            extra="xlsx",
        ) from None
    plain = plain_columns(table)
    book = Workbook()
    sheet = book.active
    sheet.title = str(table.attrs.get("content", "cells"))
    _fill(sheet, [list(map(str, plain.columns)), *plain.itertuples(index=False, name=None)])
    for cell in sheet[1]:
        cell.font = Font(bold=True)
        sheet.column_dimensions[cell.column_letter].width = min(len(str(cell.value)) + 3, _WIDEST)
    sheet.freeze_panes = "A2"
    about = book.create_sheet("about")
    _fill(about, [(key.replace("_", " "), value) for key, value in table.attrs.items()])
    about.column_dimensions["A"].width, about.column_dimensions["B"].width = 24, 80
    content = io.BytesIO()
    book.save(content)
    path.write_bytes(content.getvalue())


def _fill(sheet: Any, rows: Any) -> None:
    """Fill a sheet, texts as texts."""
    for number, row in enumerate(rows, start=1):
        for column, value in enumerate(row, start=1):
            cell = sheet.cell(row=number, column=column)
            cell.value = _value(value)
            if isinstance(cell.value, str):
                cell.data_type = "s"  # a text that begins with = would be a formula


def _value(value: Any) -> Any:
    """Value as a spreadsheet holds it: numbers, truth values, dates without zones, and texts."""
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    if getattr(value, "ndim", None) == 0:
        value = value.item()
    if isinstance(value, list | tuple | dict | set) or hasattr(value, "shape"):
        return ILLEGAL_CHARACTERS_RE.sub("", str(value))
    if value is None or value != value:  # a missing value differs from itself
        return None
    if isinstance(value, float) and abs(value) == float("inf"):
        return str(value)
    if hasattr(value, "tzinfo"):
        return value.isoformat() if value.tzinfo is not None else value
    if isinstance(value, bool | int | float):
        return value
    return ILLEGAL_CHARACTERS_RE.sub("", str(value))
