"""Tell a lack of memory or disk from a fault of an input's form. Private side.

A fault of the form is the same wherever records lie. A lack of memory is not: it comes sooner if
more records are counted.
"""

from __future__ import annotations

from psd.errors import InputDataError, ResourceError

__all__ = ["fault_class"]

# What libraries say of memory in errors that have no class of their own.
_SHORTAGES = ("out of memory", "failed to allocate", "cannot allocate", "bad_alloc", "malloc of")


def fault_class(error: Exception) -> type[InputDataError]:
    """Class of the error that replaces one of a library, whose message is not passed on.

    Examples
    --------
    >>> fault_class(OSError(28, "No space left on device")).__name__
    'ResourceError'
    >>> fault_class(ValueError("expected 3 fields")).__name__
    'InputDataError'
    """
    # An error of the system has a number; a damaged file has none.
    is_shortage = isinstance(error, MemoryError) or (
        isinstance(error, OSError) and error.errno is not None
    )
    text = str(error).lower()
    if is_shortage or any(words in text for words in _SHORTAGES):
        return ResourceError
    return InputDataError
