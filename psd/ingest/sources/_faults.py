"""Distinguish a lack of memory or disk space from a malformed input. Private side.

Whether an input is malformed does not depend on where its records lie. A lack of memory does: it
occurs earlier if more records are counted.
"""

from __future__ import annotations

from psd.errors import InputDataError, ResourceError

__all__ = ["fault_class"]

# Parts of messages of libraries about memory, in errors without a class for it.
_SHORTAGES = ("out of memory", "failed to allocate", "cannot allocate", "bad_alloc", "malloc of")


def fault_class(error: Exception) -> type[InputDataError]:
    """Choose the class of the error that replaces an error of a library and its message.

    >>> fault_class(OSError(28, "No space left on device")).__name__
    'ResourceError'
    >>> fault_class(ValueError("expected 3 fields")).__name__
    'InputDataError'
    """
    # An error of the operating system has an errno; an error about a damaged file has none.
    is_shortage = isinstance(error, MemoryError) or (
        isinstance(error, OSError) and error.errno is not None
    )
    text = str(error).lower()
    if is_shortage or any(words in text for words in _SHORTAGES):
        return ResourceError
    return InputDataError
