"""A cap on the memory that reading takes. Private side."""

from __future__ import annotations

import re

from psd.errors import ParameterError

__all__ = ["MIN_MEMORY", "memory_for_rows", "parse_memory"]

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT]?B)?", re.IGNORECASE)

# What Python and the libraries take before the first row is read.
_LIBRARIES = 350 * 10**6

MIN_MEMORY = 800 * 10**6


def parse_memory(text: str | int) -> int:
    """Bytes of a cap.

    Parameters
    ----------
    text : str or int
        Such as ``"2GB"`` or ``"800 MB"``, in powers of ten, or a number of bytes.

    Raises
    ------
    ParameterError
        If it is no size, or too small to work in.

    Examples
    --------
    >>> parse_memory("1.5GB")
    1500000000
    """
    found = _SIZE.fullmatch(str(text).strip())
    if found is None or isinstance(text, bool):
        raise ParameterError(f"memory {str(text)[:80]!r} is no size; write for instance 2GB")
    size = int(float(found[1]) * _UNITS[(found[2] or "").upper()])
    if size < MIN_MEMORY:
        raise ParameterError(f"memory {text} is less than the 800MB that the smallest build takes")
    return size


def memory_for_rows(memory: int | None) -> int | None:
    """Bytes of a cap that are left for rows, cells and the parser."""
    return None if memory is None else memory - _LIBRARIES
