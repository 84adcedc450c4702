"""Validate the fields of a ledger entry. Private side.

The hash of an entry has no key, so an edited ledger can have correct hashes. Fields are therefore
checked against the types and ranges that `psd.ledger.ledger` writes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from psd.accounting import PICO
from psd.ingest.columns import is_reading
from psd.ledger.charges import is_name
from psd.ledger.extents import is_slices
from psd.privacy.loss import MAX_EPSILON, NANO, is_delta
from psd.privacy.unit import MAX_CONTRIBUTIONS
from psd.space.domain import MAX_LATTICE

Valid = Callable[[Any], bool]


def validate_entry(kind: str, body: Any) -> None:
    """Refuse an entry with fields or values that this library does not write."""
    fields = _BODIES[kind]
    if not isinstance(body, dict):
        raise ValueError("a body that is not an object")
    if body.keys() != fields.keys():
        raise ValueError("fields that are missing or unknown")
    if not all(fields[name](value) for name, value in body.items()):
        raise ValueError("a value that this library does not write")
    if kind == "register" and (body["unit"] == "user-day") != (body["time_zone"] is not None):
        raise ValueError("days without a time zone, or a time zone without days")


def _is_name(value: Any) -> bool:
    """Whether a value is a valid name."""
    return isinstance(value, str) and is_name(value)


def _is_integer(low: int, high: int, value: Any) -> bool:
    """Whether a value is an integer between two limits."""
    return type(value) is int and low <= value <= high


def _or_none(valid: Valid, value: Any) -> bool:
    """Whether a value is null or valid."""
    return value is None or valid(value)


def _is_list(valid: Valid, value: Any) -> bool:
    """Whether a value is a list of valid items."""
    return isinstance(value, list) and all(map(valid, value))


def _is_mapping(valid: Valid, value: Any) -> bool:
    """Whether a value maps names to valid items."""
    return isinstance(value, dict) and all(_is_name(n) and valid(item) for n, item in value.items())


def _is_text(value: Any) -> bool:
    """Whether a value is a text."""
    return isinstance(value, str)


def _is_bounds(value: Any) -> bool:
    """Whether a value is west, south, east and north."""
    if not (isinstance(value, list) and len(value) == 4):
        return False
    if not all(type(edge) in (int, float) and math.isfinite(edge) for edge in value):
        return False
    west, south, east, north = value
    return bool(west < east and south < north)


def _is_region(value: Any) -> bool:
    """Whether a value is a region."""
    if not isinstance(value, dict) or value.keys() != _REGION.keys():
        return False
    return all(_REGION[name](value[name]) for name in _REGION)


_is_inputs = partial(_is_list, _is_name)
_is_price = partial(_is_integer, 1, MAX_EPSILON * NANO)
_is_bound = partial(_or_none, partial(_is_integer, 1, MAX_CONTRIBUTIONS))

_REGION: Mapping[str, Valid] = {
    "bounds": _is_bounds,
    "crs": _is_text,
    "columns": partial(_is_list, _is_text),
    "lattice": lambda value: (
        _is_list(partial(_is_integer, 1, MAX_LATTICE), value) and len(value) == 2
    ),
}

_BODIES: Mapping[str, Mapping[str, Valid]] = {
    "create": {"id": _is_name},
    "register": {
        "name": _is_name,
        "budget": _is_price,
        "unit": lambda value: value in ("record", "user", "user-day"),
        "time_zone": partial(_or_none, _is_name),
        "bound": _is_bound,
        "delta": partial(_or_none, is_delta),
        "caps": partial(_is_mapping, _is_price),
        "reading": is_reading,
        "inputs": _is_inputs,
    },
    "inputs": {"name": _is_name, "inputs": _is_inputs},
    "raise": {"name": _is_name, "budget": _is_price},
    "charge": {
        "id": _is_name,
        "dataset": _is_name,
        "analyst": partial(_or_none, _is_name),
        "what": _is_name,
        "epsilon": _is_price,
        "rho": partial(_or_none, partial(_is_integer, 1, MAX_EPSILON * PICO)),
        "delta": partial(_or_none, is_delta),
        "bound": _is_bound,
        "region": partial(_or_none, _is_region),
        "slices": partial(_or_none, is_slices),
        "files": partial(_is_list, _is_text),
        "terms": partial(_is_mapping, _is_name),
    },
    "slice": {
        "id": _is_name,
        "slice": _is_name,
        "draw": _is_name,
        "digests": partial(_is_list, _is_name),
    },
    "fault": {"name": _is_name},
    "done": {"id": _is_name, "digest": partial(_or_none, _is_text)},
}
