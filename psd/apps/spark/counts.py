"""Make a tally of the counts of an engine, and messages for refused records. Private side."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from psd.apps.spark.expression import (
    Run,
    Share,
    add_slices,
    count_cells,
    count_faults,
    count_placed,
    parse_rows,
    place,
)
from psd.errors import InputDataError, ResourceError
from psd.ingest.points import FINITE_RULE, column_projection, number_rule, same_points, srid_of
from psd.ingest.tally_builder import check_counting, tally_of_codes

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.ingest.tally import Area, Strata, Tally
    from psd.privacy.unit import PrivacyUnit
    from psd.space.domain import Domain
    from psd.space.time_slices import TimeSlices


_CHANGED = "the input changed while it was read; nothing was published"
_TIMES = (
    "holds text that is not a time in ISO 8601; times look like 2024-01-31, 2024-01-31 10:00:00 or "
    "2024-01-31T10:00"
)


def tally_table(
    table: Any,
    run: Run,
    share: Share,
    columns: Columns,
    domain: Domain,
    *,
    unit: PrivacyUnit,
    key: bytes | None = None,
    step: tuple[int, int] = (1, 1),
    area: Area | None = None,
    slices: TimeSlices | None = None,
    strata: Strata | None = None,
) -> Tally:
    """Count the records of a table in an engine, as `psd.ingest.tally_builder.tally_batches` does.

    Guarantees
    ----------
    - As those of `psd.ingest.tally_builder.tally_batches`: kept records of a unit are a function
      of its own records and the key.
    - Only counts of cells and of refused records leave the engine, and coordinates without their
      users and times, each pair once: with an area or strata those that their rasters leave open,
      in cells near an outline, or all if there is no raster; with ``columns.input_crs`` those of
      all records.

    Parameters
    ----------
    table : ibis.Table
        Columns x and y, and user and time if `columns` names them. Private.
    run : callable
        Runs an expression in the engine and returns an Arrow table. It is called twice; once more
        for each of a transformation, an area and strata, and once for these together.
    share : callable
        Brings a table of Arrow to the engine under a name, and gives its expression of Ibis.
    columns : Columns
        How text is read, the CRS of the coordinates, and names for messages. Public.
    domain, unit, key, step, area, slices, strata
        As in `psd.ingest.tally_builder.tally_batches`.

    Returns
    -------
    Tally
        Private.

    Raises
    ------
    InputDataError
        If a record is refused, wherever it lies.
    DomainError
        If coordinates cannot be transformed to the CRS of the domain.
    """
    check_counting(domain, unit, step, slices, strata)
    project = column_projection(columns, domain, "the input")
    is_projected = project is not same_points
    if "time" not in table.columns and (unit.kind == "user-day" or slices is not None):
        raise InputDataError(
            "records have no time, and days and slices need one; name its column with time=NAME"
        )
    rows = parse_rows(table, domain, columns)
    if slices is not None:
        rows = add_slices(rows, slices, domain, share)
    faults = run(count_faults(rows)).to_pylist()[0]
    are_texts = tuple(table[axis].type().is_string() for axis in ("x", "y"))
    _check(faults, columns, domain, are_texts)
    key = secrets.token_bytes(16) if key is None else key
    if is_projected or area is not None or strata is not None:
        to_domain = project if is_projected else None
        rows = place(rows, domain, run, share, project=to_domain, area=area, strata=strata)
        placed = run(count_placed(rows)).to_pylist()[0]
        most = faults["read" if is_projected else "inside"]  # no join adds a record
        if placed["undecided"] or placed["rows"] > most:
            raise ResourceError(_CHANGED)
        faults["inside"] = placed["inside"]
    parts = 1 if strata is None else strata.size
    cells = run(count_cells(rows, domain, unit=unit, key=key, step=step, strata=parts))
    code, number, weight = (
        cells[name].to_numpy().astype(np.int64) for name in ("code", "number", "weight")
    )
    total = int(number.sum())
    if total > faults["inside"] or (not unit.has_user and total < faults["inside"]):
        raise ResourceError(_CHANGED)
    order = np.argsort(code)
    tally = tally_of_codes(code[order], weight[order], domain, step, slices, strata)
    # Counts of the private report.
    read, missing, inside = faults["read"], faults["missing"], faults["inside"]
    others = faults.get("not_selected", 0)
    outside = read - others - missing - inside
    report = {"read": read, "without coordinates": missing, "outside": outside}
    if "not_selected" in faults:
        report["not selected"] = others
    if unit.has_user and not unit.weight:
        report["over the limit"] = inside - total
    report["kept"] = total
    return replace(tally, contributions=unit.contributions, report=report)


def _check(
    faults: dict[str, int], columns: Columns, domain: Domain, are_texts: tuple[bool, ...]
) -> None:
    """Refuse the records that this process would refuse, in the same order."""
    points = (columns.x, columns.y) if columns.wkt is None else (columns.wkt, columns.wkt)
    for axis, name, is_text in zip(("x", "y"), points, are_texts, strict=True):
        if faults[f"bad_{axis}"]:
            srid = srid_of(domain.crs, columns.input_crs)
            rule = number_rule(columns, srid) if is_text else FINITE_RULE
            raise InputDataError(f"column {name!r} {rule}")
    if faults.get("bad_time"):
        raise InputDataError(f"column {columns.time!r} {_TIMES}")
    if faults.get("aware_time"):
        raise InputDataError(
            f"column {columns.time!r} holds times with an offset from UTC, which this engine does "
            "not convert; give a column of timestamps, or local times without offset"
        )
    if faults.get("no_time"):
        raise InputDataError("records have no time; remove them, or build without time=")
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
