"""Headers of Parquet pages: the size of each page when it is unpacked, and its encoding.

References
----------
.. [1] Apache Parquet, ``parquet.thrift``, structure ``PageHeader``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from psd._util.thrift_compact import read_struct
from psd.errors import ReleaseFormatError

__all__ = ["Page", "page_headers"]

# Fields of a page header: sizes, and the structures of each kind of page with their encoding.
_UNPACKED, _PACKED = 2, 3
_ENCODINGS = ((5, 2), (7, 2), (8, 4))


class Page(NamedTuple):
    """Unpacked size and encoding of a page, as its header states them."""

    unpacked: int
    encoding: int


def page_headers(content: bytes, start: int, end: int) -> Iterator[Page]:
    """Read the page headers of a column in a row group.

    Parameters
    ----------
    content : bytes
        All bytes of the file.
    start, end : int
        Where the pages begin and end.

    Raises
    ------
    ReleaseFormatError
        If the bytes are not such pages.
    """
    while start < end:
        try:
            fields, start = read_struct(content, start)
            unpacked, packed = fields[_UNPACKED], fields[_PACKED]
            fits = unpacked >= 0 <= packed <= end - start
            encodings = [fields[kind].get(name, 0) for kind, name in _ENCODINGS if kind in fields]
        except (IndexError, KeyError, TypeError, AttributeError):
            fits = False
        if not fits:
            raise ReleaseFormatError("it has incomplete pages; it is damaged")
        start += packed
        yield Page(unpacked, max(encodings, default=0))
