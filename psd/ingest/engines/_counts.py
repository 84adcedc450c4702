"""Make a tally of the counts of an engine, and messages for refused records. Private side."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from psd.errors import InputDataError, ParameterError, ResourceError
from psd.ingest.engines._expression import count_cells, count_faults, parse_rows
from psd.ingest.tally import Tally

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.privacy.unit import PrivacyUnit
    from psd.space.domain import Domain

__all__ = ["tally_table"]

Run = Callable[[Any], Any]
"""Runs an expression and gives an Arrow table."""

_NUMBERS = (
    "must hold plain, finite decimal numbers such as 127.01, without decimal comma, degrees and "
    "minutes, or thousands separator"
)
_TIMES = (
    "holds text that is not a time in ISO 8601; times look like 2024-01-31, 2024-01-31 10:00:00 or "
    "2024-01-31T10:00"
)


def tally_table(
    table: Any,
    run: Run,
    columns: Columns,
    domain: Domain,
    *,
    unit: PrivacyUnit,
    key: bytes | None = None,
    step: tuple[int, int] = (1, 1),
) -> Tally:
    """Count the records of a table in an engine, as `psd.ingest.tally_builder.tally_batches` does.

    Guarantees
    ----------
    - As those of `psd.ingest.tally_builder.tally_batches`: kept records of a unit are a function
      of its own records and the key.
    - Only counts of cells and of refused records leave the engine.

    Parameters
    ----------
    table : ibis.Table
        Columns x and y, and user and time if `columns` names them. Private.
    run : callable
        Runs an expression in the engine and returns an Arrow table. It is called twice.
    columns : Columns
        Names for messages. Public.
    domain, unit, key, step
        As in `psd.ingest.tally_builder.tally_batches`.

    Returns
    -------
    Tally
        Private.

    Raises
    ------
    InputDataError
        If a record is refused, wherever it lies.
    ParameterError
        If the unit is a user's time slice.
    """
    if unit.kind == "user-slice":
        raise ParameterError("time slices cannot be counted by an engine; build without engine=")
    rows = parse_rows(table, domain)
    faults = run(count_faults(rows)).to_pylist()[0]
    _check(faults, columns)
    key = secrets.token_bytes(16) if key is None else key
    cells = run(count_cells(rows, domain, unit=unit, key=key, step=step))
    code, number, weight = (
        cells[name].to_numpy().astype(np.int64) for name in ("code", "number", "weight")
    )
    order = np.argsort(code)
    along = -(-domain.lattice[0] // step[0])
    total = int(number.sum())
    if total > faults["inside"] or (not unit.has_user and total < faults["inside"]):
        raise ResourceError("the input changed while it was read; nothing was published")
    return Tally(
        columns=(code[order] % along * step[0]).astype(np.int32),
        rows=(code[order] // along * step[1]).astype(np.int32),
        counts=weight[order],
        contributions=unit.contributions,
        report=_report(faults, unit, total),
    )


def _check(faults: dict[str, int], columns: Columns) -> None:
    """Refuse the records that this process would refuse, in the same order."""
    for axis, name in (("x", columns.x), ("y", columns.y)):
        if faults[f"bad_{axis}"]:
            raise InputDataError(f"column {name!r} {_NUMBERS}")
    _check_times(faults, columns)
    _check_users(faults, columns)


def _check_times(faults: dict[str, int], columns: Columns) -> None:
    """Refuse invalid times, and times that this engine does not convert to local time."""
    if faults.get("bad_time"):
        raise InputDataError(f"column {columns.time!r} {_TIMES}")
    if faults.get("aware_time"):
        raise InputDataError(
            f"column {columns.time!r} holds times with an offset from UTC, which this engine does "
            "not convert; give a column of timestamps, or local times without offset"
        )
    if faults.get("no_time"):
        raise InputDataError("records have no time; remove them, or build without time=")


def _check_users(faults: dict[str, int], columns: Columns) -> None:
    """Refuse missing ids, and ids that this engine cannot normalise."""
    if faults.get("no_user"):
        raise InputDataError(
            "records have no user id, so no limit per user can hold for them; remove these "
            "records, or build without user="
        )
    if faults.get("strange_user"):
        raise InputDataError(
            f"column {columns.user!r} of user ids holds characters that this engine cannot "
            "normalise; write ids in ASCII, Latin, Cyrillic, kana, Chinese characters or Hangul "
            "syllables, or build without engine="
        )


def _report(faults: dict[str, int], unit: PrivacyUnit, total: int) -> dict[str, int]:
    """Counts of the private report."""
    read, missing, inside = faults["read"], faults["missing"], faults["inside"]
    report = {"read": read, "without coordinates": missing, "outside": read - missing - inside}
    if unit.has_user and not unit.weight:
        report["over the limit"] = inside - total
    return {**report, "kept": total}
