"""Apply functions of arrays in threads: numpy lets other threads run while it works."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from psd._util.processes import available_processors

__all__ = ["even_parts", "in_threads", "map_items"]

T = TypeVar("T")

# More threads than this wait for memory rather than for a processor.
_MAX_THREADS = 4


def even_parts(items: int, least: int) -> list[slice]:
    """Slices of about equal length, one for each thread that has enough to do.

    Parameters
    ----------
    items : int
        Number of items.
    least : int
        Items that are worth a thread of their own.

    Examples
    --------
    >>> even_parts(5, 10)
    [slice(0, 5, None)]
    """
    parts = max(1, min(available_processors(), _MAX_THREADS, items // least))
    return [slice(items * n // parts, items * (n + 1) // parts) for n in range(parts)]


def in_threads(function: Callable[[slice], T], parts: list[slice]) -> list[T]:
    """Apply a function to each slice; the results in the order of the slices.

    Examples
    --------
    >>> in_threads(lambda part: part.stop - part.start, [slice(0, 2), slice(2, 5)])
    [2, 3]
    """
    if len(parts) == 1:
        return [function(parts[0])]
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(function, parts))


def map_items(
    function: Callable[..., NDArray[Any]], *arrays: NDArray[Any], least: int
) -> NDArray[Any]:
    """Apply a function whose result for an item depends on this item alone.

    Parameters
    ----------
    function : callable
        Takes parts of the arrays; gives an array with an entry for each item.
    *arrays : ndarray, each of shape (n, ...)
        An entry for each item.
    least : int
        Items that are worth a thread of their own.

    Returns
    -------
    ndarray, shape (n, ...)
        The same for any number of threads.

    Examples
    --------
    >>> map_items(np.add, np.array([1, 2]), np.array([3, 4]), least=1)
    array([4, 6])
    """
    parts = even_parts(len(arrays[0]), least)
    results = in_threads(lambda part: function(*(array[part] for array in arrays)), parts)
    return results[0] if len(results) == 1 else np.concatenate(results)
