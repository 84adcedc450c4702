"""Apply functions of arrays in threads: numpy lets other threads run while it works."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from psd._util.processes import available_processors

T = TypeVar("T")

# More threads than this wait for memory rather than for a processor.
_MAX_THREADS = 4


def even_parts(items: int, least: int) -> list[slice]:
    """Slices of about equal length, one for each thread that has at least `least` items to do."""
    parts = max(1, min(available_processors(), _MAX_THREADS, items // least))
    return [slice(items * n // parts, items * (n + 1) // parts) for n in range(parts)]


def in_threads(function: Callable[[slice], T], parts: list[slice]) -> list[T]:
    """Apply a function to each slice; the results in the order of the slices."""
    if len(parts) == 1:
        return [function(parts[0])]
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(function, parts))


def map_items(
    function: Callable[..., NDArray[Any]], *arrays: NDArray[Any], least: int
) -> NDArray[Any]:
    """Apply a function whose result for an item depends on this item alone.

    arrays: each of (n, ...); returns (n, ...), the same for any number of threads. The function
    takes parts of the arrays; `least` items are worth a thread of their own.
    """
    parts = even_parts(len(arrays[0]), least)
    results = in_threads(lambda part: function(*(array[part] for array in arrays)), parts)
    return results[0] if len(results) == 1 else np.concatenate(results)
