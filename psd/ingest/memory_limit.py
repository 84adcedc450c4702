"""Limit of the memory that reading uses. Private side."""

from __future__ import annotations

import re

from psd.errors import ParameterError

__all__ = ["MIN_MEMORY", "memory_for_rows", "parse_memory", "split_memory"]

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT]?B)?", re.IGNORECASE)

# Memory of Python and the libraries before the first record is read.
_LIBRARIES = 350 * 10**6

MIN_MEMORY = 800 * 10**6


def parse_memory(text: str | int) -> int:
    """Parse a memory limit to bytes.

    Parameters
    ----------
    text : str or int
        Such as ``"2GB"`` or ``"800 MB"``, in powers of ten, or a number of bytes.

    Raises
    ------
    ParameterError
        If the text is not a size, or the size is too small.

    Examples
    --------
    >>> parse_memory("1.5GB")
    1500000000
    """
    match = _SIZE.fullmatch(str(text).strip())
    if match is None or isinstance(text, bool):
        raise ParameterError(f"memory must be a size such as 2GB, got {str(text)[:80]!r}")
    size = int(float(match[1]) * _UNITS[(match[2] or "").upper()])
    if size < MIN_MEMORY:
        raise ParameterError(f"memory must be at least 800MB, got {text}")
    return size


def memory_for_rows(memory: int | None) -> int | None:
    """Return the bytes of a limit that remain for records, cells and the parser."""
    return None if memory is None else memory - _LIBRARIES


def split_memory(memory: int | None) -> tuple[int | None, int | None]:
    """Split a limit between the rows that are kept, two thirds, and the parser, one third.

    Examples
    --------
    >>> split_memory(900), split_memory(None)
    ((600, 300), (None, None))
    """
    return (None, None) if memory is None else (memory * 2 // 3, memory // 3)
