"""Private choices: one paid answer to the question which, without a release.

`select` chooses among candidates with integer scores of one's own.
"""

from psd.choosing.selection import select

__all__ = ["select"]
