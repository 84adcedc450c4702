"""Devices for tests and for tables: the program of the device, and one report for each row."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd._util.atomic_write import check_free, write_file
from psd.apps.local.bulk import (
    ManyWords,
    draw_groups,
    find_answers,
    format_reports,
    randomise_group,
)
from psd.apps.local.campaigns import explain_device, load_campaign
from psd.apps.local.device import PLACES, Campaign, Store, Words, answer_place, parse_nano
from psd.apps.local.row_store import RowStore
from psd.errors import InputDataError, ParameterError

__all__ = ["answer", "client", "create_store", "randomize", "read_points"]

_ROWS = 2**18


def client(output: str, *, js: bool = False, overwrite: bool = False) -> None:
    """Write the program of the device: one file, standard library alone.

    Parameters
    ----------
    output : str
        File to write.
    js : bool
        Whether it is the one for browsers, in JavaScript, instead of the one in Python.
    overwrite : bool
        Whether an existing file is replaced.

    Raises
    ------
    WriteError
        If the file exists or cannot be written.
    """
    source = Path(__file__).with_name("device.js" if js else "device.py").read_bytes()
    write_file(output, source, overwrite=overwrite)


def create_store(store: str, cap: str) -> None:
    """Create the store of a device, with the largest sum of epsilon of all campaigns."""
    with explain_device():
        Store.create(store, parse_nano(cap))


def answer(
    campaign: str, store: str, x: float | str, y: float, ticket: str | None = None
) -> str | None:
    """Report of the device with a store; None if it is not asked now, or answered before.

    The point is private: NaN is *outside*, and a number or an option is x.
    """
    loaded = load_campaign(campaign)
    with explain_device():
        return answer_place(store, loaded, x, y, Words(), ticket or "")


def randomize(
    campaign: str,
    rows: str,
    output: str,
    *,
    x: str = "lon",
    y: str = "lat",
    value: str = "value",
    store: str | None = None,
    overwrite: bool = False,
) -> int:
    """Write reports of the rows of a table, as if each row were a device; for tests and trials.

    Guarantees
    ----------
    - The reports are those of the device, in the order of their random nonces.
    - Every row of a group that is asked has a report, wherever its point is.
    - With a store a row answers once. Without it each call draws anew, and costs epsilon again.

    Parameters
    ----------
    campaign : str
        File of the campaign.
    rows : str
        CSV file with a header. **Private.**
    output : str
        File of lines to write.
    x, y : str
        Columns of the coordinates, if the campaign asks for places.
    value : str
        Column of the numbers or options, if it asks for these.
    store : str, optional
        File with the group of each row; a campaign of several rounds needs it. It is created in
        the first round. **Private.**
    overwrite : bool
        Whether an existing file is replaced.

    Returns
    -------
    int
        Number of reports.

    Raises
    ------
    ParameterError
        If the campaign is not valid, or of several rounds and there is no store.
    InputDataError
        If the table cannot be read.
    LedgerError
        If the store is missing in a later round, damaged, or of rows that have answered.
    WriteError
        If the file exists or cannot be written.
    """
    loaded = load_campaign(campaign)
    if store is None and any(group.share and group.draw is None for group in loaded.groups):
        raise ParameterError(
            "store must be given for a campaign of several rounds, in which each row has its group"
        )
    check_free(output, overwrite=overwrite)
    names = (x, y) if loaded.question in PLACES else (value, value)
    points = read_points(rows, *names, is_text=loaded.question in ("options", "words"))
    count = len(points[0])
    groups = (
        draw_groups(loaded, ManyWords(count))
        if store is None
        else RowStore(store).take(loaded, count)
    )
    lines = list(_report_rows(loaded, groups, *points))
    lines.sort(key=lambda line: line.partition('"nonce":"')[2])
    write_file(output, "".join(f"{line}\n" for line in lines).encode(), overwrite=overwrite)
    return len(lines)


def _report_rows(
    campaign: Campaign,
    groups: NDArray[np.int64],
    x: NDArray[Any],
    y: NDArray[Any],
) -> Iterator[str]:
    """Reports of the points whose group is asked."""
    for number, group in enumerate(campaign.groups):
        mine = np.flatnonzero(groups == number)
        if len(mine) and group.draw is not None:
            answers = find_answers(campaign, number, x[mine], y[mine])
            reports = randomise_group(campaign, number, answers, ManyWords(len(mine)))
            yield from format_reports(campaign, reports)


def read_points(
    path: str, x: str, y: str, *, is_text: bool = False
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Two columns of a CSV file with a header; what is not a number is NaN, unless it is text."""
    xs, ys = zip(*_read_parts(path, x, y, is_text), strict=True)
    return np.concatenate(xs), np.concatenate(ys)


def _read_parts(
    path: str, x: str, y: str, is_text: bool
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Columns of a CSV file, in parts."""
    convert = _text if is_text else _number
    kind = object if is_text else np.float64
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            names = sorted({x, y}, key=(x, y).index)
            if not set(names) <= set(reader.fieldnames or ()):
                raise InputDataError(f"the table must have the columns {' and '.join(names)}")
            pending: list[tuple[Any, Any]] = []
            for row in reader:
                pending.append((convert(row[x]), convert(row[y])))
                if len(pending) == _ROWS:
                    yield _columns(pending, kind)
                    pending = []
            yield _columns(pending, kind)
    except (UnicodeDecodeError, csv.Error):
        raise InputDataError("the table must be CSV in UTF-8") from None
    except OSError as error:
        raise InputDataError(f"the table cannot be read: {error.strerror}") from None


def _columns(points: list[tuple[Any, Any]], kind: type[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Columns of points."""
    table = np.array(points, kind).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _text(text: str | None) -> str:
    """Text of a field."""
    return text or ""


def _number(text: str | None) -> float:
    """Number of a text, or NaN."""
    try:
        return float(text) if text and "_" not in text else np.nan
    except ValueError:
        return np.nan
