"""Description of how records are read, as texts: columns, and options for positions and times.

A ledger registers the description for a dataset, and a tally states it for each of its parts. Every
field of `psd.ingest.sources.Columns` is a key, so a new option is compared without a change of
either format. So is the coordinate resolution, which decides the cell of a record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TypeAlias

from psd.ingest.sources import Columns
from psd.ingest.user_ids import ID_RULES

__all__ = ["Reading", "is_reading", "reading_of", "reading_text"]

Reading: TypeAlias = Mapping[str, str]
"""Keys are fields of `Columns`, ``ids``, the rules by which ids are normalised, and
``coordinate_resolution``. Public."""

# Fields that decide neither the position, nor the time, nor the user of a record. No bid stops a
# reading, so which column has them tells nothing of a record.
_UNSTATED = ("memory", "bid")

# Fields that are stated even with their default.
_STATED = ("x", "y")

_ORDER = (*_STATED, "user", "ids", "time", "time_zone")

_LONGEST = 1000


def reading_of(columns: Columns, coordinate_resolution: str | None = None) -> dict[str, str]:
    """Describe how columns are read, and to which step their coordinates are rounded.

    A field with its default value is omitted, except x and y. So a description that was written
    before a field existed equals one that has the default of this field. The time zone is omitted
    if no time is read, and there is no filter, which may read one.

    Examples
    --------
    >>> reading_of(Columns(user="id"))
    {'x': 'lon', 'y': 'lat', 'user': 'id', 'ids': 'nfc-1'}
    """
    reading = {
        field.name: str(getattr(columns, field.name))
        for field in fields(columns)
        if field.name not in _UNSTATED
        and (field.name in _STATED or getattr(columns, field.name) != field.default)
    }
    if columns.time is None and columns.where is None:
        reading.pop("time_zone", None)
    if columns.user is not None:
        reading["ids"] = ID_RULES
    if coordinate_resolution is not None:
        reading["coordinate_resolution"] = coordinate_resolution
    return reading


def is_reading(value: object) -> bool:
    """Whether a value of JSON describes a reading: texts by keys, with x and y."""
    return (
        isinstance(value, dict)
        and all(isinstance(text, str) for item in value.items() for text in item)
        and all(0 < len(text) <= _LONGEST for item in value.items() for text in item)
        and all(key in value for key in _STATED)
    )


def reading_text(reading: Reading) -> str:
    """Describe a reading in one line.

    Examples
    --------
    >>> reading_text(reading_of(Columns(user="id")))
    'x=lon y=lat user=id ids=nfc-1'
    """
    first = [key for key in _ORDER if key in reading]
    keys = [*first, *sorted(reading.keys() - set(first))]
    return " ".join(f"{key}={reading[key]}" for key in keys)
