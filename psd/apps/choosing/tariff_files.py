"""Tariffs in public files: one row per tariff, one column per region with its price."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from psd.apps.choosing.price_list import parse_price
from psd.errors import InputDataError, ParameterError
from psd.regions.files import read_table

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["read_tariffs"]

_ID = "tariff"
_PRICE = "price"


def read_tariffs(
    path: Path, regions: Sequence[str] | None = None
) -> tuple[tuple[str, ...], tuple[tuple[Decimal, ...], ...]]:
    """Read the names of tariffs, and their prices in the order of the regions, if there are any."""
    table = read_table(path, "tariffs")
    if _ID not in table.columns:
        raise InputDataError(f"tariffs {path} has no column {_ID}, which names each of them")
    columns = [_PRICE] if regions is None else [*regions]
    others = [str(name) for name in table.columns if name != _ID]
    missing = [name for name in columns if name not in others]
    surplus = [name for name in others if name not in columns]
    if missing or surplus:
        kind = "one column price" if regions is None else "one column for each region"
        other = "is another column" if regions is None else "is not a region"
        what = f"none for {missing[0][:80]!r}" if missing else f"{surplus[0][:80]!r}, which {other}"
        raise ParameterError(f"tariffs must have {kind}, got {what}; the list must cover all")
    ids = tuple(str(name).strip() for name in table[_ID])
    texts = zip(*(table[name] for name in columns), strict=True)
    rows = [tuple(_price(path, line, text) for text in row) for line, row in enumerate(texts, 2)]
    return ids, tuple(rows)


def _price(path: Path, line: int, text: object) -> Decimal:
    """Price in a field."""
    try:
        price = parse_price(str(text))
    except ParameterError:
        price = Decimal(0)
    if price == 0:
        raise InputDataError(
            f"tariffs {path} line {line}: a price must be a number above 0, of at most 12 decimals"
        )
    return price
