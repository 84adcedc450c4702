"""The version of the library, and what it says of files that are older than format 1."""

from __future__ import annotations

from typing import Final

__all__ = ["__version__", "old_format"]

__version__ = "0.2.0"

LAST_READER: Final = "3621badf"
"""Last commit that reads the files from before all formats began at 1."""


def old_format(family: str, stated: object) -> str:
    """Predicate of the sentence that refuses a file from before all formats began at 1.

    Such a file is told by its mark, not by its number: old formats had the number 1 as well.

    Examples
    --------
    >>> print("it", old_format("release", 4))
    it has the old release format 4; this version reads the new release format 1 alone, and commit \
3621badf is the last that reads the old ones
    """
    return (
        f"has the old {family} format {stated}; this version reads the new {family} format 1 "
        f"alone, and commit {LAST_READER} is the last that reads the old ones"
    )
