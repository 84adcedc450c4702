"""Parse untrusted coordinate reference systems (CRS).

PROJ opens files that a CRS names: grids of shifts, models, lists of definitions. Releases and
layers are untrusted, and a path in one of them could be any file of the reader, or a pipe that
never ends. So a CRS that names a file is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from psd.errors import DomainError

if TYPE_CHECKING:
    from pyproj import CRS

__all__ = ["explain_proj_errors", "parse_crs"]

# Parameters of PROJ whose values are files, in a PROJ string or inside another text.
_FILES = re.compile(
    r"(?:grids|file|model|catalog)\s*=(?!\s*@?null(?:[\s\"]|$))|init\s*=(?!\s*epsg:\d)|PROJ-based",
    re.IGNORECASE,
)

# Names of the empty grid, which shifts nothing.
_NULL = ("null", "@null")


def parse_crs(named: Any) -> CRS:
    """Parse a name, a code or a definition of a CRS.

    Parameters
    ----------
    named : object
        Anything that pyproj understands. Public.

    Raises
    ------
    DomainError
        If it is not a CRS, or names a file.

    Examples
    --------
    >>> parse_crs("EPSG:3857").name
    'WGS 84 / Pseudo-Mercator'
    """
    from pyproj import CRS
    from pyproj.exceptions import CRSError

    text = str(getattr(named, "srs", named))
    if _FILES.search(text):  # pyproj would open some files when it parses the text
        raise DomainError(_names_file(text), name="crs")
    try:
        crs = CRS.from_user_input(named)
        parts = list(_texts("", crs.to_json_dict()))
    except (CRSError, UnicodeError, RecursionError):
        raise DomainError(
            f"crs must be a coordinate reference system such as EPSG:4326, got {text[:80]!r}",
            name="crs",
            value=text[:80],
        ) from None
    # Values of parameters are numbers; a text is the name of a file.
    if any(_FILES.search(t) or (key == "value" and t not in _NULL) for key, t in parts):
        raise DomainError(_names_file(text), name="crs")
    return crs


def _names_file(text: str) -> str:
    """Explain why a CRS is refused."""
    return (
        f"crs must not name files or steps of PROJ, got {text[:80]!r}; give a code such as "
        "EPSG:4326, or a definition without grids"
    )


def _texts(key: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield all texts of a definition with their keys."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from _texts(name, part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(key, part)


@contextmanager
def explain_proj_errors(what: str, crs: Any) -> Iterator[None]:
    """Turn errors of PROJ into a sentence.

    Parameters
    ----------
    what : str
        What is transformed.
    crs : object
        Target of the transformation. Public.

    Raises
    ------
    DomainError
        If the block raises an error of PROJ.
    """
    from pyproj.exceptions import ProjError

    try:
        yield
    except ProjError:
        raise DomainError(
            f"{what} cannot be transformed to {str(crs)[:80]}; is one of the two a local CRS?"
        ) from None
