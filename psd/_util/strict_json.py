"""JSON that has one reading: no duplicate keys, no NaN or infinity, no unlimited size."""

from __future__ import annotations

import json
from typing import Any

from psd.errors import ReleaseFormatError

__all__ = ["strict_json"]

MAX_HEADER = 2**20
"""Most bytes of the JSON in a file's footer."""


def strict_json(raw: bytes, limit: int = MAX_HEADER) -> Any:
    """Parse JSON of at most `limit` bytes that no two readers read differently."""
    if len(raw) > limit:
        raise ReleaseFormatError("its header is too long")

    def refuse(text: str) -> None:
        raise ValueError(text)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise ValueError("duplicate key")
        return dict(pairs)

    try:
        return json.loads(raw, parse_constant=refuse, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        raise ReleaseFormatError("its header is not strict JSON") from None
