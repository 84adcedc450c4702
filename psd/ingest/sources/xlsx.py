"""Workbooks of spreadsheet programs (XLSX), one sheet of each, by openpyxl. Private side.

Coordinates are numbers, or text as in CSV files; ids are text or whole numbers; times are dates or
text in ISO 8601; formulas have their stored values. An empty row is no record. No cell is quoted.
"""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import date
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.extras import install_text
from psd._util.wall_clock import wall_clock
from psd.errors import InputDataError, MissingExtraError
from psd.ingest.columns import check_roles, refuse_two_pairs, resolve_columns
from psd.ingest.input_paths import file_kind, refuse_changes
from psd.ingest.points import (
    DECIMAL,
    MISSING,
    SPACES,
    Projection,
    column_projection,
    number_rule,
    srid_of,
)
from psd.ingest.selection import selected_values
from psd.ingest.sources._arrow import check_names, fault_class
from psd.ingest.sources._point_text import decode_point_text
from psd.ingest.tally import Batch

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.space.domain import Domain


_ROWS = 20_000

# A program that writes workbooks compresses their text to a tenth or a fiftieth.
_MAX_EXPANSION = 500
_MAX_SMALL = 2**26

_LARGEST_INTEGER = 10**15
"""Programs store numbers as doubles and keep 15 digits."""

_PLAIN = re.compile(DECIMAL)

USES: tuple[str, ...] = ("layer", "wkt", "decimal", "skip_rows", "where")
"""Fields of `psd.ingest.sources.Columns` that this source uses in addition to column names."""


def accepts(item: Any) -> bool:
    """Whether the item is the path of a workbook."""
    return file_kind(item) == "xlsx"


def batches(items: list[Path], columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Read one sheet of each workbook."""
    for path in items:
        _check_size(path)
    for path in items:
        with refuse_changes([path]), _open_sheet(path, columns.layer) as sheet:
            rows = _rows(path, sheet)
            names = _names(rows, columns)
            chosen = resolve_columns(columns, names)
            refuse_two_pairs(str(path), chosen, names)
            check_names(str(path), names, chosen.needed)
            check_roles(str(path), chosen)
            fields = {name: names.index(name) for name in chosen.needed}
            project = column_projection(chosen, domain, str(path))
            srid = srid_of(domain.crs, chosen.input_crs)
            yield _batch(path, [], chosen, fields, project, srid)
            is_missing = False
            while block := list(islice(rows, _ROWS)):
                is_missing |= any(_cell(row, i) is None for row in block for i in fields.values())
                records = [row for row in block if any(cell is not None for cell in row)]
                yield _batch(path, records, chosen, fields, project, srid)
            if is_missing:
                _refuse_formulas(path, columns.layer, fields)


def header_names(path: Path, columns: Columns) -> list[str]:
    """Names of the columns of a workbook."""
    _check_size(path)
    with _open_sheet(path, columns.layer) as sheet:
        return _names(_rows(path, sheet), columns)


def _names(rows: Iterator[tuple[Any, ...]], columns: Columns) -> list[str]:
    """Names of the columns in the row of the header; the rows below it are left."""
    header = next(islice(rows, columns.skip_rows, None), ())
    return ["" if name is None else str(name).strip() for name in header]


def _check_size(path: Path) -> None:
    """Refuse an archive that expands to more than a workbook would."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(part.file_size for part in archive.infolist())
    except (zipfile.BadZipFile, OSError):
        raise InputDataError(_unsound(path)) from None
    if size > max(_MAX_SMALL, _MAX_EXPANSION * path.stat().st_size):
        raise InputDataError(
            f"{path} expands to more than {_MAX_EXPANSION} times its size, which no table of "
            "coordinates does; is it damaged, or made to fill the memory?"
        )


def _unsound(path: Path) -> str:
    """Message about a workbook that cannot be read; that of the library may quote cells."""
    return f"{path} cannot be read as XLSX; is it damaged, or protected by a password?"


@contextmanager
def _open_sheet(path: Path, requested: str | None, *, has_formulas: bool = False) -> Iterator[Any]:
    """Open the requested sheet, or the only one, with stored values or with formulas."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise MissingExtraError(
            f"input {path.name} needs openpyxl; {install_text('xlsx')}, or save it as CSV"
        ) from None
    with path.open("rb") as file, closing(_load(path, file, load_workbook, has_formulas)) as book:
        sheets = {str(sheet.title): sheet for sheet in book.worksheets}
        names = ", ".join(sheets) or "none"
        if requested is not None and requested not in sheets:
            raise InputDataError(f"{path} has no sheet {requested!r}; its sheets are {names}")
        candidates = list(sheets) if requested is None else [requested]
        if len(candidates) != 1:
            raise InputDataError(f"{path} has several sheets: {names}; choose one with layer=NAME")
        yield sheets[candidates[0]]


def _load(
    path: Path, file: IO[bytes], load_workbook: Callable[..., Any], has_formulas: bool
) -> Any:
    """Open a workbook; its sheets are read as a stream."""
    try:
        with warnings.catch_warnings(action="ignore"):
            how = {"read_only": True, "data_only": not has_formulas, "keep_links": False}
            return load_workbook(file, **how)
    except Exception as error:
        fault = fault_class(error)
    raise fault(_unsound(path))


def _rows(path: Path, sheet: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the values of each row, all of the width of the sheet."""
    fault: type[InputDataError] | None = None
    try:
        sheet.reset_dimensions()  # programs may state a smaller area than there is
        with warnings.catch_warnings(action="ignore"):
            yield from sheet.iter_rows(values_only=True)
    except Exception as error:
        fault = fault_class(error)
    if fault is not None:
        raise fault(_unsound(path))


def _refuse_formulas(path: Path, layer: str | None, fields: dict[str, int]) -> None:
    """Refuse formulas in the columns that are read if the file has not their values."""
    # Programs that do not compute values leave them out, and such cells would pass for empty ones.
    with (
        _open_sheet(path, layer) as values,
        _open_sheet(path, layer, has_formulas=True) as formulas,
    ):
        for row, texts in zip(_rows(path, values), _rows(path, formulas), strict=True):
            pairs = ((_cell(row, i), _cell(texts, i)) for i in fields.values())
            if any(value is None and text is not None for value, text in pairs):
                raise InputDataError(
                    f"{path} must have the values of its formulas; open it in a spreadsheet "
                    "program and save it, which stores them"
                )


def _cell(row: tuple[Any, ...], index: int) -> Any:
    """Value of a cell; rows may end before their last empty cells."""
    return row[index] if index < len(row) else None


def _batch(
    path: Path,
    records: list[tuple[Any, ...]],
    columns: Columns,
    fields: dict[str, int],
    project: Projection,
    srid: int | None,
) -> Batch:
    """Convert rows."""
    cells = {name: [_cell(row, index) for row in records] for name, index in fields.items()}
    if columns.wkt is None:
        x, y = (_numbers(path, cells[name], name, columns) for name in (columns.x, columns.y))
    else:
        texts = _texts(path, cells[columns.wkt], columns.wkt)
        x, y = decode_point_text(texts, columns.wkt, srid)
    x, y = project((x, y))
    time = None
    if columns.time is not None:
        texts = _times(path, cells[columns.time], columns.time)
        time = wall_clock(texts, columns.time_zone, column=columns.time)
    user = None if columns.user is None else _ids(path, cells[columns.user], columns.user)
    bid = None if columns.bid is None else _bids(cells[columns.bid], columns.decimal)
    return Batch(x=x, y=y, user=user, time=time, bid=bid, **selected_values(columns, cells))


def _bids(cells: list[Any], decimal: str) -> NDArray[np.float64]:
    """Bids; NaN for cells that hold no number."""
    numbers = np.array([_number(cell, decimal) for cell in cells], dtype=np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _numbers(path: Path, cells: list[Any], name: str, columns: Columns) -> NDArray[np.float64]:
    """Coordinates; NaN for missing ones."""
    values = np.array([_number(cell, columns.decimal) for cell in cells], dtype=np.float64)
    if np.isinf(values).any():
        raise InputDataError(f"column {name!r} of {path} {number_rule(columns)}")
    return values


def _number(cell: Any, decimal: str) -> float:
    """Coordinate of a cell: NaN if it is missing, infinite if it is not a number."""
    if cell is None:
        return np.nan
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return float(cell) if abs(cell) < 2**1023 else np.inf
    if not isinstance(cell, str):
        return np.inf
    text = cell.strip(SPACES)
    if text.lower() in MISSING:
        return np.nan
    if decimal == ",":
        text = "," if "." in text else text.replace(",", ".")
    return float(text) if _PLAIN.fullmatch(text) else np.inf


def _texts(path: Path, cells: list[Any], name: str) -> Any:
    """Cells of text."""
    import pyarrow as pa

    if not all(cell is None or isinstance(cell, str) for cell in cells):
        raise InputDataError(f"column {name!r} of {path} must hold text")
    return pa.array(cells, pa.large_string())


def _ids(path: Path, cells: list[Any], name: str) -> Any:
    """Ids as text; numbers with decimals or more than 15 digits are refused."""
    import pyarrow as pa

    if not all(cell is None or isinstance(cell, str) or _is_exact(cell) for cell in cells):
        raise InputDataError(
            f"column {name!r} of {path} must hold user ids as text or whole numbers of at most 15 "
            "digits; other numbers lose digits"
        )
    return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())


def _is_exact(cell: Any) -> bool:
    """Whether a number is whole and has all its digits."""
    is_integer = isinstance(cell, int) and not isinstance(cell, bool)
    return is_integer and abs(cell) < _LARGEST_INTEGER


def _times(path: Path, cells: list[Any], name: str) -> Any:
    """Times as text in ISO 8601."""
    import pyarrow as pa

    if not all(cell is None or isinstance(cell, str | date) for cell in cells):
        raise InputDataError(
            f"column {name!r} of {path} must hold dates, dates with times, or text in ISO 8601"
        )
    texts = [cell if cell is None or isinstance(cell, str) else cell.isoformat() for cell in cells]
    return pa.array(texts, pa.string())
