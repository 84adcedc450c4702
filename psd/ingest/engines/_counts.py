"""From what an engine counted to a tally, and words for what it refuses. Private side."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from psd.errors import DomainError, InputDataError, ParameterError
from psd.ingest.engines._expression import counted, flags, parsed
from psd.ingest.tally import Tally

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.privacy.unit import PrivacyUnit
    from psd.space.domain import Domain

__all__ = ["tally_of"]

Run = Callable[[Any], Any]
"""Runs an expression and gives an Arrow table."""

_NUMBERS = (
    "holds text that is no plain decimal number, or infinite values; numbers look like 127.01: no "
    "decimal comma, degrees and minutes, or thousands separator"
)
_TIMES = (
    "holds text that is no time in ISO 8601; times look like 2024-01-31, 2024-01-31 10:00:00 or "
    "2024-01-31T10:00"
)


def tally_of(
    table: Any,
    run: Run,
    columns: Columns,
    domain: Domain,
    *,
    unit: PrivacyUnit,
    key: bytes | None = None,
    step: tuple[int, int] = (1, 1),
) -> Tally:
    """Count the rows of a table where they lie, as `psd.ingest.tally_builder.tally_batches` does.

    Guarantees
    ----------
    - As those of `psd.ingest.tally_builder.tally_batches`: kept rows of a unit are a function of
      its own rows and the key.
    - Nothing but counts of cells and of refused rows leaves the engine.

    Parameters
    ----------
    table : ibis.Table
        Columns x, y, and user and time where `columns` names them. Private.
    run : callable
        Runs an expression on the engine, and gives an Arrow table. It is called twice.
    columns : Columns
        Names for messages. Public.
    domain, unit, key, step
        As `psd.ingest.tally_builder.tally_batches` takes them.

    Returns
    -------
    Tally
        Private.

    Raises
    ------
    DomainError
        If a value is no coordinate of the CRS, or rows exist and none lies inside the bounds.
    InputDataError
        If a row is refused.
    ParameterError
        If the unit is a user's time slice.
    """
    if unit.kind == "user-slice":
        raise ParameterError("time slices do not go with an engine; build in this process")
    rows = parsed(table, domain)
    found = run(flags(rows, domain)).to_pylist()[0]
    _check(found, columns, domain)
    key = secrets.token_bytes(16) if key is None else key
    cells = run(counted(rows, domain, unit=unit, key=key, step=step))
    code, number, weight = (
        cells[name].to_numpy().astype(np.int64) for name in ("code", "number", "weight")
    )
    order = np.argsort(code)
    along = -(-domain.lattice[0] // step[0])
    kept = int(number.sum())
    if kept > found["inside"] or (not unit.has_user and kept < found["inside"]):
        raise InputDataError("the input changed while it was read; nothing was published")
    return Tally(
        columns=(code[order] % along * step[0]).astype(np.int32),
        rows=(code[order] // along * step[1]).astype(np.int32),
        counts=weight[order],
        contributions=unit.contributions,
        report=_report(found, unit, kept),
    )


def _check(found: dict[str, int], columns: Columns, domain: Domain) -> None:
    """Refuse what the local path refuses, in its order."""
    for axis, name in (("x", columns.x), ("y", columns.y)):
        if found[f"bad_{axis}"]:
            raise InputDataError(f"column {name!r} {_NUMBERS}")
    _check_times(found, columns)
    for axis, limit in (("x", 180), ("y", 90)):
        if found.get(f"far_{axis}"):
            raise DomainError(
                f"column for {axis} holds values beyond {limit} degrees, which no coordinate of "
                "the CRS has; are x and y swapped, are these metres of a projected CRS (give it "
                "with crs=), or longitudes from 0 to 360?"
            )
    _check_users(found, columns)
    if found["inside"] == 0 and found["read"] > found["missing"]:
        raise DomainError(
            f"no row lies inside the bounds {domain.bounds}; are x and y swapped, are the bounds "
            "in the order west south east north, or is the CRS another one?"
        )


def _check_times(found: dict[str, int], columns: Columns) -> None:
    """Refuse moments that are none, or that this engine does not bring to a wall clock."""
    if found.get("bad_time"):
        raise InputDataError(f"column {columns.time!r} {_TIMES}")
    if found.get("aware_time"):
        raise InputDataError(
            f"column {columns.time!r} holds times with an offset from UTC, which this engine does "
            "not bring to a time zone; give a column of timestamps, or local times without offset"
        )
    if found.get("no_time"):
        raise InputDataError("rows without a time; remove them, or build without --time")


def _check_users(found: dict[str, int], columns: Columns) -> None:
    """Refuse ids that a bound cannot hold for."""
    if found.get("no_user"):
        raise InputDataError(
            "rows without a user id; a bound per user cannot hold for them: remove these rows or "
            "build without --user"
        )
    if found.get("strange_user"):
        raise InputDataError(
            f"column {columns.user!r} of user ids holds characters whose spellings this engine "
            "cannot tell to be one; write ids in ASCII, Latin, Cyrillic, kana, Chinese characters "
            "or Hangul syllables, or build with the engine duckdb"
        )


def _report(found: dict[str, int], unit: PrivacyUnit, kept: int) -> dict[str, int]:
    """Counts for the private report."""
    read, missing, inside = found["read"], found["missing"], found["inside"]
    report = {"read": read, "without coordinates": missing, "outside": read - missing - inside}
    if unit.has_user and not unit.weight:
        report["over the limit"] = inside - kept
    return {**report, "kept": kept}
