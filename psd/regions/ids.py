"""Ids of regions: short printable texts that are unique within their level."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from psd.errors import ParameterError

__all__ = ["MAX_ID", "check_ids", "id_texts"]

MAX_ID = 200
"""Limit of the characters of an id."""


def id_texts(values: Iterable[Any], column: str) -> list[str]:
    """Texts of a column of ids; numbers without a fraction become integers."""
    from pandas import isna

    texts = []
    for number, value in enumerate(values, 1):
        if isna(value):
            raise ParameterError(
                f"region {number} must have an id in column {column}, got a missing value"
            )
        is_integer = isinstance(value, float | np.floating) and float(value).is_integer()
        texts.append(str(int(value)) if is_integer else str(value))
    return texts


def check_ids(ids: Sequence[str], level: str) -> None:
    """Refuse ids of a level that are empty, long, not printable, or used twice."""
    for number, text in enumerate(ids, 1):
        if not text.strip():
            raise ParameterError(f"region {number} of level {level} must have an id, got blanks")
        if len(text) > MAX_ID:
            raise ParameterError(
                f"ids of level {level} must have at most {MAX_ID} characters, got {len(text):,} "
                f"in region {number}"
            )
        if not text.isprintable():
            raise ParameterError(
                f"ids of level {level} must be printable, got {text[:80]!r} in region {number}"
            )
    if len(set(ids)) < len(ids):
        seen: set[str] = set()
        twice = next(text for text in ids if text in seen or seen.add(text))  # type: ignore[func-returns-value]
        raise ParameterError(
            f"ids of level {level} must be unique, got {twice[:80]!r} twice; merge its polygons "
            "into one region, or name another column"
        )
