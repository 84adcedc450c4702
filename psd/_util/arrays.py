"""Small array functions that numpy lacks, and the array types of the package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Floats", "Integers", "ranges", "sum_by"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def read_only_copy(values: ArrayLike, dtype: str) -> NDArray[Any]:
    """Array of the given type that cannot be written to: a copy, unless it is one already."""
    if isinstance(values, np.ndarray) and values.dtype == dtype:
        # It is one if so is every array that it is a view of, down to one with memory of its own.
        part: Any = values
        while type(part) is np.ndarray and not part.flags.writeable:
            if part.base is None and part.flags.owndata:
                return values
            part = part.base
    array: NDArray[Any] = np.array(values, dtype=dtype)
    array.flags.writeable = False
    return array


def keep_freed_memory() -> None:
    """Let the C library keep the memory of freed arrays for later ones, up to 32 MB, its limit."""
    # glibc gives a large array back when freed unless one as large was freed before, and the system
    # clears what it gives, which takes longer than most work. The array here is never written to.
    np.empty(2**25 - 2**16, np.uint8)


def sum_by(
    group: NDArray[np.integer], values: NDArray[np.float64], groups: int
) -> NDArray[np.float64]:
    """Sum of the public values of each group, (groups,); exact counts are summed as integers."""
    return np.bincount(group, weights=values, minlength=groups).astype(np.float64, copy=False)


def distinct_values(
    values: NDArray[np.int64 | np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Index of each distinct value, ascending, and which each is, without ``numpy.ma``."""
    order = np.argsort(values)
    # In order, a value is new where it differs from the one before.
    is_new = np.ones(len(order), bool)
    is_new[1:] = values[order[1:]] != values[order[:-1]]
    number = np.empty(len(order), np.int64)
    # Back in the order of the caller: sorting was a permutation, which this undoes.
    number[order] = np.cumsum(is_new) - 1
    return order[is_new], number


def ranges(start: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.int64]:
    """Concatenate the ranges start, start + 1, ..., start + length - 1."""
    # Each range is a run of one arange over all places, moved by where it ought to begin.
    before = np.cumsum(length) - length
    total = int(length.sum())
    numbers: NDArray[np.int64] = np.arange(total) + np.repeat(start - before, length)
    return numbers


def morton_codes(columns: NDArray[np.integer], rows: NDArray[np.integer]) -> NDArray[np.int64]:
    """Morton codes of cells: bits of column and row in turn, the order of a quadtree."""
    codes = _spread(rows)
    # In place, since there may be a code for each record.
    codes <<= 1
    codes |= _spread(columns)
    return codes


def _spread(values: NDArray[np.integer]) -> NDArray[np.int64]:
    """Put a zero bit before each bit of numbers below 2^31."""
    wide = values.astype(np.int64)
    for shift, mask in _SPREAD:
        wide |= wide << shift
        wide &= mask
    return wide


def morton_numbers(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Columns and rows of Morton codes."""
    return _gather(codes), _gather(codes >> 1)


def _gather(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Take every second bit: the inverse of `_spread`."""
    values: NDArray[np.int64] = codes & _SPREAD[-1][1]
    for (shift, _), mask in zip(reversed(_SPREAD), _GATHERED, strict=True):
        values |= values >> shift
        values &= mask
    return values


# Halves of each group of bits move apart: of 32 bits to 16 and 16, then to four times 8, and so on.
_SPREAD = (
    (16, 0x0000FFFF0000FFFF),
    (8, 0x00FF00FF00FF00FF),
    (4, 0x0F0F0F0F0F0F0F0F),
    (2, 0x3333333333333333),
    (1, 0x5555555555555555),
)

# Masks of `_SPREAD` before each of its steps, in reverse.
_GATHERED = (*(mask for _, mask in reversed(_SPREAD[:-1])), 0x00000000FFFFFFFF)


def to_arrow(values: NDArray[np.integer], is_valid: NDArray[np.bool_] | None = None) -> Any:
    """Wrap integers, (n,), as an Arrow array that shares their memory, without pandas."""
    import pyarrow as pa

    kind = pa.from_numpy_dtype(values.dtype)
    bits = None if is_valid is None else pa.py_buffer(np.packbits(is_valid, bitorder="little"))
    # Arrow reads memory from first to last; a view with steps has to be copied.
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [bits, data])


def nulls_as_zeros(column: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Numbers of an Arrow array, 0 for nulls, and which are null, without `pyarrow.compute`."""
    bits, data = column.buffers()
    # A slice of a column keeps the buffers of the whole, and says where it begins in them.
    rows = slice(column.offset, column.offset + len(column))
    numbers = np.frombuffer(data, column.type.to_pandas_dtype(), count=rows.stop)[rows]
    if bits is None:
        return numbers, np.zeros(len(column), bool)
    # A bit for each row, 0 where it is null.
    flags = np.unpackbits(np.frombuffer(bits, np.uint8), count=rows.stop, bitorder="little")
    is_null = flags[rows] == 0
    return np.where(is_null, numbers.dtype.type(0), numbers), is_null


def from_arrow(column: Any) -> NDArray[Any]:
    """Wrap an Arrow array without nulls as a numpy array that shares its memory; read-only."""
    column = column.combine_chunks() if hasattr(column, "chunks") else column
    return np.from_dlpack(column)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Arrays of equal length by name, of a dataclass that inherits from this: its rows."""

    def __getitem__(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Self:
        return type(self)(**{each.name: getattr(self, each.name)[which] for each in fields(self)})

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Concatenate rows."""
        names = [each.name for each in fields(cls)]
        return cls(
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        )
