"""What the body of an entry of a ledger may say: names, numbers and texts in their ranges. Private.

The hash of an entry has no key, so whoever writes a ledger by hand gives its entries right
hashes. What they say is held against the types and ranges of what `psd.ledger` writes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from psd.book import check_name
from psd.epsilon import MAX_EPSILON, NANO
from psd.unit import MAX_CONTRIBUTIONS

__all__ = ["check_body"]

Valid = Callable[[Any], bool]


def check_body(kind: str, body: Any) -> None:
    """Refuse a body with a field less or more, or one that no ledger of this library has.

    Raises
    ------
    ValueError, KeyError, TypeError
        If something is not as it is written.
    """
    fields = _BODIES[kind]
    if not isinstance(body, dict):
        raise ValueError("no fields")
    left_out = fields.keys() - body.keys()
    if not (body.keys() <= fields.keys() and left_out <= _ONCE_WITHOUT):
        raise ValueError("other fields")
    if not all(fields[name](value) for name, value in body.items()):
        raise ValueError("a value that is not written")
    if kind == "register" and (body["unit"] == "user-day") != (body["time_zone"] is not None):
        raise ValueError("days without a clock, or a clock without days")


def _is_name(value: Any) -> bool:
    """Whether a value is a name that a list can show."""
    check_name("name", value)
    return isinstance(value, str)


def _is_whole(low: int, high: int) -> Valid:
    """Whether a value is an integer between two limits."""
    return lambda value: type(value) is int and low <= value <= high


def _or_none(valid: Valid) -> Valid:
    """Whether a value is null or valid."""
    return lambda value: value is None or valid(value)


def _is_list(valid: Valid, size: int | None = None) -> Valid:
    """Whether a value is a list of what is valid, of a given length."""
    return lambda value: (
        isinstance(value, list) and size in (None, len(value)) and all(map(valid, value))
    )


def _is_text(value: Any) -> bool:
    """Whether a value is a text."""
    return isinstance(value, str)


def _is_caps(value: Any) -> bool:
    """Whether a value is an epsilon for each of some names."""
    return isinstance(value, dict) and all(_is_name(who) and _is_price(value[who]) for who in value)


def _is_bounds(value: Any) -> bool:
    """Whether a value is west, south, east and north."""
    if not _is_list(lambda edge: type(edge) in (int, float) and math.isfinite(edge), 4)(value):
        return False
    return bool(value[0] < value[2] and value[1] < value[3])


def _is_region(value: Any) -> bool:
    """Whether a value is a region."""
    if not (isinstance(value, dict) and value.keys() == _REGION.keys()):
        return False
    return all(_REGION[name](value[name]) for name in _REGION)


_is_price = _is_whole(1, MAX_EPSILON * NANO)
_is_bound = _or_none(_is_whole(1, MAX_CONTRIBUTIONS))

_REGION: Mapping[str, Valid] = {
    "bounds": _is_bounds,
    "crs": _is_text,
    "columns": _is_list(_is_text),
    "lattice": _is_list(_is_whole(1, 2**30), 2),
}

_BODIES: Mapping[str, Mapping[str, Valid]] = {
    "create": {"id": _is_name},
    "register": {
        "name": _is_name,
        "budget": _is_price,
        "unit": lambda value: value in ("record", "user", "user-day"),
        "time_zone": _or_none(_is_name),
        "bound": _is_bound,
        "caps": _is_caps,
    },
    "raise": {"name": _is_name, "budget": _is_price},
    "charge": {
        "id": _is_name,
        "dataset": _is_name,
        "analyst": _or_none(_is_name),
        "what": _is_name,
        "epsilon": _is_price,
        "bound": _is_bound,
        "region": _or_none(_is_region),
        "files": _is_list(_is_text),
    },
    "done": {"id": _is_name, "digest": _or_none(_is_text)},
}

# Ledgers were made before charges had marks of files.
_ONCE_WITHOUT = {"files"}
