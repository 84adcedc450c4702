"""Ids of at most eight bytes as numbers, which are compared and moved faster than texts. Private.

The number of an id is its bytes, the first one lowest. An id whose last byte is 0 would have the
number of a shorter one, so it stays a text: two different ids never have the same number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import from_arrow

__all__ = ["PARTITIONS", "number_partitions", "short_names", "short_numbers"]

PARTITIONS = 64
"""Number of partitions."""

_LONGEST = 8

# For each length: the bits of an id, and the least number of an id whose last byte is not 0. Ids
# beyond the longest have no bits, and no number is large enough.
_BITS = np.array([256**size - 1 for size in range(_LONGEST + 1)] + [0], np.uint64)
_LEAST = np.array([0] + [256**size for size in range(_LONGEST)] + [2**64 - 1], np.uint64)

# Ids that are read at once: they fit into the cache of a processor.
_BLOCK = 2**14

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
    numbers, is_short = np.zeros(len(ids), np.uint64), np.ones(len(ids), bool)
    _, offsets, data = ids.buffers()
    if len(ids) == 0 or data is None:
        return numbers, is_short
    edges = np.frombuffer(offsets, np.int32)[ids.offset : ids.offset + len(ids) + 1]
    start = int(edges[0]) & ~7
    size = int(edges[-1]) - start
    words = np.zeros(size // 8 + 2, "<u8")
    words.view(np.uint8)[:size] = np.frombuffer(data, np.uint8, count=size, offset=start)
    for first in range(0, len(ids), _BLOCK):
        block = slice(first, first + _BLOCK)
        at = edges[first : first + _BLOCK + 1] - start
        length = np.minimum(np.diff(at), _LONGEST + 1)
        word, bit = at[:-1] >> 3, ((at[:-1] & 7) << 3).astype(np.uint64)
        number = words[word] >> bit
        # In two steps, since a shift by 64 bits is not defined.
        number |= (words[word + 1] << np.uint64(1)) << (np.uint64(63) - bit)
        number &= _BITS[length]
        numbers[block] = number
        is_short[block] = number >= _LEAST[length]
    return numbers, is_short


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
    length = np.searchsorted(_LEAST[1 : _LONGEST + 1], values, side="right")
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
