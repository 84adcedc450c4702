"""Values of records, such as fares, from the columns of a batch. Private side.

A record without a value is treated as one that a filter leaves out: before anything is bounded, by
its own value alone, so `psd.ingest.selection` has the proof. Text that is no number is refused as a
bad time is, wherever the record lies and whether it is selected or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd.errors import InputDataError
from psd.ingest.points import MISSING, SPACES
from psd.ingest.selection import Rules, Values, matches, typed_parts

if TYPE_CHECKING:
    from psd.ingest.columns import Columns

__all__ = ["selected_values"]


def selected_values(
    columns: Columns, fields: Mapping[str, Any], *, is_json: bool = False
) -> dict[str, Any]:
    """Whether each record of a batch is selected, and its values, as fields of a `Batch`.

    fields: Arrow array, pandas Series or list of objects of each column, by name, private. Values
    are (n, V) float64, NaN where one is missing, or None without values.
    """
    match = matches(columns, fields, is_json=is_json)
    if not columns.values:
        return {"match": match, "values": None}
    rules = Rules(time_zone=columns.time_zone, decimal=columns.decimal, is_json=is_json)
    read = [_numbers(fields[name], name, rules, columns) for name in columns.values]
    values = np.stack(read, axis=1)
    has_all = ~np.isnan(values).any(axis=1)
    return {"match": has_all if match is None else match & has_all, "values": values}


def _numbers(column: Any, name: str, rules: Rules, columns: Columns) -> NDArray[np.float64]:
    """Numbers of a column, NaN where one is missing; a value that is no number is refused."""
    parts = typed_parts(column)
    numbers = np.full(sum(len(index) for index, _ in parts), np.nan)
    for index, array in parts:
        values = Values(array, rules)
        numbers[index] = values.numbers
        odd = np.isnan(values.numbers) & ~values.missing()
        if odd.any() and not _are_marks(array, odd):
            sign = "," if columns.decimal == "," else "."
            raise InputDataError(
                f"column {name!r} must hold finite numbers such as 12{sign}5, without units; leave "
                "unknown values empty, and state decimal commas by decimal="
            )
    return numbers


def _are_marks(array: Any, odd: NDArray[np.bool_]) -> bool:
    """Whether all of some values are the usual marks of a missing number, such as NA."""
    import pyarrow as pa

    if not pa.types.is_large_string(array.type):  # text has this type, see `typed_parts`
        return False
    texts = array.filter(pa.array(odd)).unique().to_pylist()
    return all(text.strip(SPACES).lower() in MISSING for text in texts)
