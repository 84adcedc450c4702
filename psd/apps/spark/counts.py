"""Make a tally of the counts of an engine, and messages for refused records. Private side."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from psd.apps.spark.expression import count_cells, count_faults, parse_rows
from psd.apps.spark.regions import Share, add_regions, count_in_regions
from psd.errors import InputDataError, ParameterError, ResourceError
from psd.ingest.coordinate_text import number_rule, srid_of
from psd.ingest.tally import Tally

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.privacy.unit import PrivacyUnit
    from psd.regions.hierarchy import RegionHierarchy
    from psd.space.domain import Domain

__all__ = ["tally_table"]

Run = Callable[[Any], Any]
"""Runs an expression and gives an Arrow table."""

_CHANGED = "the input changed while it was read; nothing was published"
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
    regions: RegionHierarchy | None = None,
    share: Share | None = None,
) -> Tally:
    """Count the records of a table in an engine, as `psd.ingest.tally_builder.tally_batches` does.

    Guarantees
    ----------
    - As those of `psd.ingest.tally_builder.tally_batches`: kept records of a unit are a function
      of its own records and the key.
    - Only counts of cells and of refused records leave the engine, and with regions the
      coordinates in raster cells that an outline cuts.

    Parameters
    ----------
    table : ibis.Table
        Columns x and y, and user and time if `columns` names them. Private.
    run : callable
        Runs an expression in the engine and returns an Arrow table. It is called twice, with
        regions four times.
    columns : Columns
        Names for messages. Public.
    domain, unit, key, step, regions
        As in `psd.ingest.tally_builder.tally_batches`.
    share : callable, optional
        Brings a table to the engine; for regions.

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
    if unit.kind == "user-slice" or unit.max_per_slice is not None:
        raise ParameterError("time slices cannot be counted by an engine; build without engine=")
    if columns.input_crs not in (None, domain.crs):
        raise ParameterError(
            f"input_crs must be that of the bounds, {domain.crs}, with an engine, which does not "
            "transform coordinates; give bounds in the CRS of the columns, or build without engine="
        )
    rows = parse_rows(table, domain, decimal=columns.decimal, is_wkt=columns.wkt is not None)
    faults = run(count_faults(rows)).to_pylist()[0]
    _check(faults, columns, domain)
    key = secrets.token_bytes(16) if key is None else key
    if regions is not None and share is not None:
        rows = add_regions(rows.filter(rows.inside), regions, run, share)
        counted = run(count_in_regions(rows)).to_pylist()[0]
        if counted["undecided"]:
            raise ResourceError(_CHANGED)
        faults["inside"] = counted["inside"]
    cells = run(count_cells(rows, domain, unit=unit, key=key, step=step))
    code, number, weight = (
        cells[name].to_numpy().astype(np.int64) for name in ("code", "number", "weight")
    )
    order = np.argsort(code)
    along, lines = (-(-size // part) for size, part in zip(domain.lattice, step, strict=True))
    row, column = np.divmod(code[order], along)
    region, row = np.divmod(row, lines)
    total = int(number.sum())
    if total > faults["inside"] or (not unit.has_user and total < faults["inside"]):
        raise ResourceError(_CHANGED)
    return Tally(
        columns=(column * step[0]).astype(np.int32),
        rows=(row * step[1]).astype(np.int32),
        counts=weight[order],
        contributions=unit.contributions,
        region=None if regions is None else region.astype(np.int32),
        report=_report(faults, unit, total),
    )


def _check(faults: dict[str, int], columns: Columns, domain: Domain) -> None:
    """Refuse the records that this process would refuse, in the same order."""
    points = (columns.x, columns.y) if columns.wkt is None else (columns.wkt, columns.wkt)
    for axis, name in zip(("x", "y"), points, strict=True):
        if faults[f"bad_{axis}"]:
            raise InputDataError(
                f"column {name!r} {number_rule(columns, srid_of(domain.crs, columns.input_crs))}"
            )
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
