"""Coordinate reference systems that others name, and ways between them.

PROJ opens the files that a CRS names: grids of shifts, models, lists of definitions. Releases and
layers come from anybody, and a path in one of them could be any file of whoever reads it, or a
queue that never ends. So a CRS that names a file is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from psd.errors import DomainError

if TYPE_CHECKING:
    from pyproj import CRS

__all__ = ["known_crs", "transforming"]

# Parameters of PROJ whose values are files, in a text of its own or inside another.
_FILES = re.compile(
    r"(?:grids|file|model|catalog)\s*=(?!\s*@?null(?:[\s\"]|$))|init\s*=(?!\s*epsg:\d)|PROJ-based",
    re.IGNORECASE,
)

# Grids of nothing, which shift nothing.
_NULL = ("null", "@null")


def known_crs(named: Any) -> CRS:
    """CRS of a name, a code or a definition.

    Parameters
    ----------
    named : object
        Anything that pyproj understands. Public.

    Raises
    ------
    DomainError
        If it is none, or names a file.

    Examples
    --------
    >>> known_crs("EPSG:3857").name
    'WGS 84 / Pseudo-Mercator'
    """
    from pyproj import CRS
    from pyproj.exceptions import CRSError

    text = str(getattr(named, "srs", named))
    if _FILES.search(text):  # some files would be opened by looking at the text
        raise DomainError(_names_file(text))
    try:
        crs = CRS.from_user_input(named)
        parts = list(_texts("", crs.to_json_dict()))
    except (CRSError, UnicodeError, RecursionError):
        raise DomainError(
            f"crs {text[:80]!r} is not a coordinate reference system; write for instance EPSG:4326"
        ) from None
    # Numbers of PROJ are numbers there; a text for one is the name of a file.
    if any(_FILES.search(t) or (key == "value" and t not in _NULL) for key, t in parts):
        raise DomainError(_names_file(text))
    return crs


def _names_file(text: str) -> str:
    """Why a CRS is refused."""
    return (
        f"crs {text[:80]!r} names a file or another step of PROJ, which is not followed; give a "
        "code such as EPSG:4326, or a definition without grids"
    )


def _texts(key: str, value: Any) -> Iterator[tuple[str, str]]:
    """All texts in a definition, and what each is called there."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from _texts(name, part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(key, part)


@contextmanager
def transforming(what: str, crs: Any) -> Iterator[None]:
    """Say in a sentence that PROJ knows no way.

    Parameters
    ----------
    what : str
        What is brought elsewhere.
    crs : object
        Where to. Public.

    Raises
    ------
    DomainError
        Where the block raises an error of PROJ.
    """
    from pyproj.exceptions import ProjError

    try:
        yield
    except ProjError:
        raise DomainError(
            f"{what} cannot be brought to {str(crs)[:80]}; is one of the two a local CRS?"
        ) from None
