"""XLSX: a sheet of numbers, and a sheet that says where they come from."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd._util.column_kinds import held_columns, plain_values
from psd.export._formats import finite_errors, plain_columns

if TYPE_CHECKING:
    import geopandas


SUFFIX = ".xlsx"

NEEDS = ("xlsx", "openpyxl", "a table (.csv)")

FIXED_CRS = "release"
"""In another CRS cells are not boxes, and have no four sides."""

# What XML cannot hold, and what would be read as an escape.
_ESCAPED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]|_(?=x[0-9A-Fa-f]{4}_)")

# How a spreadsheet shows numbers; what it holds has all digits.
_COUNT, _SHARE = "#,##0.0", '[>10]"above 1,000%";0.0%'
_FORMATS = {
    **dict.fromkeys(("estimate", "perturbation_error", "nonuniformity_error", "error"), _COUNT),
    **dict.fromkeys(("lower", "upper", "ring", "ring_error", "ring_lower", "ring_upper"), _COUNT),
    **dict.fromkeys(("joint_lower", "joint_upper"), _COUNT),
    "density": "#,##0.00",
    **{f"relative{part}_error": _SHARE for part in ("", "_perturbation", "_nonuniformity")},
    "threshold": "0.0%",
}

# Wide enough for the headings, which are longer than most numbers.
_WIDEST = 40


def write(table: geopandas.GeoDataFrame, path: Path) -> None:
    """Write the columns but the geometry; of cells the four sides as well."""
    from openpyxl import Workbook
    from openpyxl.styles import Font

    # Infinite errors are empty cells, so that their column is one of numbers.
    plain = held_columns(plain_columns(finite_errors(table)), "xlsx")
    columns = [plain_values(plain.iloc[:, number]) for number in range(plain.shape[1])]
    book = Workbook()
    sheet = book.active
    sheet.title = str(table.attrs.get("content", "cells"))
    _fill(sheet, [list(plain.columns), *zip(*columns, strict=True)])
    for column, name in zip(sheet.iter_cols(min_row=2), plain.columns, strict=True):
        for cell in column if name in _FORMATS else ():
            cell.number_format = _FORMATS[name]
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
    """Fill a sheet, texts as texts, with the escapes of the format for what XML cannot hold."""
    for number, row in enumerate(rows, start=1):
        for column, value in enumerate(row, start=1):
            cell = sheet.cell(row=number, column=column)
            if not isinstance(value, str):
                cell.value = value
                continue
            cell.value = _ESCAPED.sub(lambda found: f"_x{ord(found[0]):04X}_", value)
            cell.data_type = "s"  # a text that begins with = would be a formula
