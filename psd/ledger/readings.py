"""Check that records are read as their dataset registers. Private side, reads no points.

A dataset registers how its records are read. The user and the day of a record decide to which unit
of privacy it belongs, so the columns of ids and times must be the registered ones. The position of
a record decides which releases depend on it, so a charge with another rule for positions counts
everywhere. A coordinate resolution is such a rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from psd.errors import LedgerError, ParameterError
from psd.ingest.columns import Reading, is_reading, reading_of
from psd.ingest.sources import Columns
from psd.space.lattice_axis import parse_resolution

__all__ = [
    "check_readings",
    "fits_unit",
    "is_placed_alike",
    "placing_options",
    "registered_reading",
]

_WHOSE = ("user", "ids")
_WHEN = ("time", "time_zone")

# Options that decide what a record of a text file is, and which text its id has.
_WHAT = ("delimiter", "encoding", "skip_rows")
_DEFAULTS = {"delimiter": "auto", "encoding": "auto", "skip_rows": "0"}


def registered_reading(
    columns: Columns | None,
    unit: str,
    time_zone: str | None,
    coordinate_resolution: str | float | Decimal | None = None,
) -> dict[str, str]:
    """Describe the columns of a dataset that is registered, lon and lat by default."""
    columns = Columns() if columns is None else columns
    if (columns.user is None) != (unit == "record"):
        raise ParameterError(
            f"columns must name the column of user ids if and only if the unit has users, got "
            f"column {columns.user!r} with unit {unit!r}; write psd.Columns(user=...), or "
            "--user ..."
        )
    if unit == "user-day" and columns.time is None:
        raise ParameterError("columns must name the column of times with unit user-day, got none")
    zone = time_zone or "UTC"
    if unit == "user-day" and columns.time_zone not in ("UTC", zone):
        raise ParameterError(
            f"time_zone must be that of the days, {zone}, got {columns.time_zone} for the times"
        )
    if unit == "user-day":
        columns = replace(columns, time_zone=zone)
    step = coordinate_resolution
    reading = reading_of(columns, None if step is None else parse_resolution(step))
    if not is_reading(reading):
        raise ParameterError("columns must have names of 1 to 1,000 characters")
    return reading


def fits_unit(reading: Reading, unit: str) -> bool:
    """Whether a reading has ids exactly if the unit has users, and times if it has days."""
    has_ids = "user" in reading and "ids" in reading
    return has_ids == (unit != "record") and ("time" in reading or unit != "user-day")


def check_readings(name: str, registered: Reading, readings: Sequence[Reading]) -> None:
    """Refuse readings whose records, ids or times are not those that a dataset registers."""
    if not readings:
        raise LedgerError(
            f"a charge to dataset {name!r} must state how its records were read, got nothing"
        )
    for reading in readings:
        # With another delimiter, encoding or number of lines above the header, one file has other
        # records, and two ids may become one.
        for key in _WHAT:
            if registered.get(key) != reading.get(key):
                values = [repr(each.get(key, _DEFAULTS[key])) for each in (registered, reading)]
                raise LedgerError(
                    f"dataset {name!r} is registered with {key} {values[0]}, got {values[1]}; the "
                    "two read different records from one file, so their epsilons do not add up"
                )
        # Epsilons add up over the charges of one unit of privacy. If two builds take ids from two
        # columns, the records of one user of the first build are records of many users of the
        # second build, which protects each of these users separately. So all ids come from one
        # column and are normalised by one set of rules. The same holds for times if days are the
        # unit.
        for key, what in (("user", "column of user ids"), ("ids", "rules of user ids")):
            _check_same(name, what, registered.get(key), reading.get(key))
        if "time" in registered and "time" in reading:
            _check_same(name, "column of times", registered["time"], reading["time"])


def _check_same(name: str, what: str, registered: str | None, read: str | None) -> None:
    """Refuse another value than the registered one."""
    if registered != read:
        values = ["none" if value is None else repr(value) for value in (registered, read)]
        raise LedgerError(
            f"dataset {name!r} has the registered {what} {values[0]}, got {values[1]}; the two "
            "define different users or days, whose epsilons do not add up"
        )


def placing_options(reading: Reading) -> dict[str, str]:
    """Return the part of a reading that decides the position of a record."""
    return {key: value for key, value in reading.items() if key not in (*_WHOSE, *_WHEN)}


def is_placed_alike(registered: Reading, readings: Sequence[Reading]) -> bool:
    """Whether records get their positions and times as a dataset registers."""
    return all(
        placing_options(reading) == placing_options(registered)
        and ("time" not in reading or all(reading.get(k) == registered.get(k) for k in _WHEN))
        for reading in readings
    )
