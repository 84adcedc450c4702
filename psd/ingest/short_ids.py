"""Ids of at most eight bytes as numbers, which are compared and moved faster than texts. Private.

The number of an id is its bytes, the first one lowest. An id whose last byte is 0 would have the
number of a shorter one, so it stays a text: two different ids never have the same number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import from_arrow, to_arrow

__all__ = ["PARTITIONS", "number_partitions", "short_names", "short_numbers"]

PARTITIONS = 64
"""Number of partitions."""

_LONGEST = 8

# For each length: the least number of an id whose last byte is not 0.
_LEAST = np.array([0] + [256**size for size in range(_LONGEST)], np.uint64)

# An odd number near 2^64 divided by the golden ratio spreads consecutive numbers.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


def short_numbers(ids: Any) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Compute the number of each id, and whether it has one.

    Parameters
    ----------
    ids : pyarrow.Array of string, length n, without nulls
        Private.

    Examples
    --------
    >>> import pyarrow as pa
    >>> numbers, is_short = short_numbers(pa.array(["a", "", "ab", "longer than eight"]))
    >>> numbers[:3].tolist(), is_short.tolist()
    ([97, 0, 25185], [True, True, True, False])
    """
    import pyarrow.compute as pc

    _, offsets, data = ids.buffers()
    if len(ids) == 0 or data is None:
        return np.zeros(len(ids), np.uint64), np.ones(len(ids), bool)
    edges = np.frombuffer(offsets, np.int32)[ids.offset : ids.offset + len(ids) + 1]
    length = np.diff(edges)
    if length.max() > _LONGEST:
        rows, is_short = np.flatnonzero(length <= _LONGEST), np.zeros(len(ids), bool)
        numbers = np.zeros(len(ids), np.uint64)
        numbers[rows], is_short[rows] = short_numbers(ids.take(to_arrow(rows)))
        return numbers, is_short
    padded = pc.ascii_rpad(ids, _LONGEST, padding="\0")
    words = np.frombuffer(padded.buffers()[-1], "<u8")[padded.offset :][: len(ids)]
    if np.frombuffer(data, np.uint8)[edges[0] : edges[-1]].all():
        return words, np.ones(len(ids), bool)
    return words, words >= _LEAST[length]


def short_names(numbers: Any) -> Any:
    """Convert numbers of ids back to the ids.

    Parameters
    ----------
    numbers : pyarrow.Array of uint64
        Private.

    Examples
    --------
    >>> import pyarrow as pa
    >>> short_names(pa.array([97, 0, 25185], pa.uint64())).to_pylist()
    ['a', '', 'ab']
    """
    import pyarrow as pa

    values = from_arrow(numbers).astype("<u8")
    length = np.searchsorted(_LEAST[1:], values, side="right")
    letters = values.view(np.uint8).reshape(-1, _LONGEST)
    data = letters[np.arange(_LONGEST) < length[:, None]]
    offsets = np.append(0, np.cumsum(length)).astype(np.int32)
    # Not by pyarrow.array, which imports pandas.
    return pa.Array.from_buffers(
        pa.string(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


def number_partitions(numbers: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Partition of each number, the same in every batch."""
    return ((numbers * _SPREAD) >> np.uint64(64 - PARTITIONS.bit_length() + 1)).astype(np.uint8)
