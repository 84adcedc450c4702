"""Parquet files of strangers: what a file says of its size is held against its bytes first.

Runs of equal values let a few bytes stand for any number of rows, and zeros shrink a
thousandfold, so a small file may be made to fill memory. The footer may say anything of it, so
the headers of the pages are read too, all of them before one page is unpacked.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from psd._util.parquet_pages import page_headers
from psd.errors import ReleaseFormatError

__all__ = [
    "ARROW_KEY",
    "INSECURE",
    "MAX_ROWS",
    "check_order",
    "check_size",
    "footer_at",
    "most_rows",
    "opened",
    "read_bytes",
]

MAX_ROWS = 2**27
"""Most rows of any file."""

ARROW_KEY = b"ARROW:schema"
"""A copy of the schema that Arrow may leave in a footer."""

INSECURE = ".insecure"
"""How the name of a file ends that was made by a seed, and is none of these files."""

MAX_FILE = 2**33
MAX_FOOTER = 2**25

# Entries of a list in the footer: columns, and row groups, one for each slice and million rows.
_LONGEST_LIST = 2**15

# What the pages may unpack to: so much in any file, and so many times its bytes. All columns
# of a release together shrink to about half, the best of them to a fifteenth.
_UNPACKED = 2**26
_UNPACKED_EACH = 64

# Strings that are given by what they share with the one before may grow with every row.
_DELTA_BYTE_ARRAY = 7

_PART = 2**16

_MAGIC = b"PAR1"
_LIMITS = {
    "thrift_string_size_limit": MAX_FOOTER,
    "thrift_container_size_limit": _LONGEST_LIST,
}


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Content of a file that is there and begins as Parquet does.

    Raises
    ------
    ReleaseFormatError
        If it is missing, too large, or cannot be read.
    """
    path = Path(path)
    if not path.is_file():
        raise ReleaseFormatError(f"release {path} does not exist or is no file")
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size > MAX_FILE:
                raise ReleaseFormatError(f"release {path} is larger than any release is")
            start = file.read(len(_MAGIC))
            if start != _MAGIC and path.name.endswith(INSECURE):
                raise ReleaseFormatError(
                    f"{path} was made by a seed (--insecure-seed) and is no release; psd reads it "
                    "nowhere, since its noise protects nobody"
                )
            return start + file.read() if start == _MAGIC else start
    except OSError as error:
        raise ReleaseFormatError(f"release {path} cannot be read: {error.strerror}") from None


def opened(content: bytes, **options: object) -> pq.ParquetFile:
    """File whose footer has been read, and nothing else.

    Raises
    ------
    ReleaseFormatError
        If the footer is larger than any release needs.
    pyarrow.ArrowException, OSError
        If it is no footer.
    """
    ending = content[-8:]
    if len(ending) == 8 and struct.unpack("<I", ending[:4])[0] > MAX_FOOTER:
        raise pa.ArrowInvalid("footer")
    source = pa.BufferReader(content)
    return pq.ParquetFile(source, page_checksum_verification=True, **_LIMITS, **options)


def footer_at(path: str | os.PathLike[str]) -> dict[bytes, bytes]:
    """Keys of the footer of a file; none where it is no Parquet file that can be read."""
    if not os.path.isfile(path):
        return {}  # to open a pipe would be to wait for whoever writes to it
    try:
        with pq.ParquetFile(os.fspath(path), **_LIMITS) as file:
            return dict(file.metadata.metadata or {})
    except (pa.ArrowException, OSError, ValueError, MemoryError):
        return {}


def most_rows(size: int, floor: int, each: int) -> int:
    """Most rows of a file of so many bytes: some in any, and some more for each byte.

    Examples
    --------
    >>> most_rows(1000, floor=100, each=2)
    2100
    """
    return min(MAX_ROWS, floor + each * size)


def check_size(file: pq.ParquetFile, content: bytes, *, floor: int, each: int) -> None:
    """Refuse a file that unpacks to more than its bytes account for.

    Parameters
    ----------
    file : ParquetFile
        Of which nothing but the footer was read.
    content : bytes
        All of it.
    floor, each : int
        Rows that any file may have, and rows more for each of its bytes.

    Raises
    ------
    ReleaseFormatError
        If it does, or its pages are not where the footer says.
    """
    most = most_rows(len(content), floor, each)
    if not 0 <= file.metadata.num_rows <= most:
        raise ReleaseFormatError(
            f"it has more than {most:,} rows, which a file of its size does not hold; it was made "
            "to fill memory, or is damaged"
        )
    left = _UNPACKED + _UNPACKED_EACH * len(content)
    for start, end in _chunks(file.metadata, len(content)):
        for page in page_headers(content, start, end):
            left -= page.unpacked
            if left < 0 or page.encoding == _DELTA_BYTE_ARRAY:
                raise ReleaseFormatError(
                    "it unpacks to more than a file of its size holds; it was made to fill memory, "
                    "or is damaged"
                )


def check_order(file: pq.ParquetFile) -> None:
    """Refuse many rows that are no nodes in level order, before the rest of them is unpacked.

    Node i of a tree, of whose nodes none has more than four children, has a parent between
    (i - 1) // 4 and i - 1. The parents are read a part at a time, up to the first that has not.

    Parameters
    ----------
    file : ParquetFile
        With a column ``parent``, and ``slice`` where it holds the trees of several.

    Raises
    ------
    ReleaseFormatError
        If a row is in no such place.
    """
    columns = [name for name in ("slice", "parent") if name in file.schema_arrow.names]
    row, first, last = 0, 0, 0
    for batch in file.iter_batches(_PART, columns=columns):
        parent, slices = batch["parent"].to_numpy(), batch[columns[0]].to_numpy()
        rows = np.arange(row, row + len(batch))
        if len(columns) == 2:
            begins = np.where(np.diff(slices, prepend=last) != 0, rows, first)
            rows, first, last = rows - np.maximum.accumulate(begins), begins.max(), slices[-1]
        if ((parent < (rows - 1) // 4) | (parent >= rows)).any():
            raise ReleaseFormatError("its rows are not the nodes of a tree in the order of levels")
        row += len(batch)


def _chunks(metadata: pq.FileMetaData, size: int) -> Iterator[tuple[int, int]]:
    """Begin and end of the pages of each column in each row group."""
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for place in range(group.num_columns):
            column = group.column(place)
            if column.total_compressed_size == 0:
                continue
            places = (column.dictionary_page_offset, column.data_page_offset)
            start = min((place for place in places if place), default=0)  # 0 if there is none
            end = start + column.total_compressed_size
            if not len(_MAGIC) <= start <= end <= size:
                raise ReleaseFormatError("its pages are not where its footer says; it is damaged")
            yield start, end
