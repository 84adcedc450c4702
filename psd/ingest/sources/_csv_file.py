"""The content of CSV files: compression, quotes, size. Private side. No message quotes a field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from psd.errors import InputDataError
from psd.ingest.sources._faults import fault_class

__all__ = [
    "BUFFER",
    "CsvContent",
    "Expansion",
    "find_compression",
    "open_content",
    "scan_content",
]

BUFFER = 2**20
"""Bytes that are read at once; they fit into the cache of a processor."""

_LINE_END = re.compile(rb"[\r\n]")

_LINE_FEED = ord("\n")

# First bytes of the compressions that are read.
_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}

# Compression shrinks tables of coordinates to a third or a tenth of their size.
_MAX_EXPANSION = 200


def find_compression(path: Path) -> str:
    """Find the compression of a file by its first bytes; ``"none"`` if it is not compressed."""
    with path.open("rb") as file:
        start = file.read(4)
    kinds = (kind for signature, kind in _COMPRESSIONS.items() if start.startswith(signature))
    return next(kinds, "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvContent:
    """Length of a file, and characters below its first line that decide how it is parsed."""

    quotes: int
    has_underscore: bool
    # Whether a field near the start of the file is empty. It decides which of two queries is tried
    # first, and nothing else.
    may_have_gaps: bool
    length: int  # bytes of the file after decompression
    # Line feeds, and one if there is none at the end: at least as many as there are rows, unless
    # there are ``line_ends`` of another kind.
    lines: int
    line_ends: int  # carriage returns that no line feed follows
    has_rows: bool  # whether there is anything below the first line


def scan_content(path: Path, compression: str, delimiter: str = ",") -> CsvContent:
    """Read a file in UTF-8 once; a parser may not notice that a file ends inside quotes.

    A file that expands to more than a table of coordinates would, or is damaged, is refused.
    """
    quotes = size = lines = line_ends = 0
    has_underscore, is_below, has_rows, may_have_gaps = False, False, False, False
    last = b"\n"
    # An empty field.
    gap = re.compile(rb"%(d)b[%(d)b\r\n]|\n%(d)b" % {b"d": re.escape(delimiter.encode())})
    limit = Expansion(path)
    with open_content(path, compression) as file:
        for part in iter(lambda: file.read(BUFFER), b""):
            size += len(part)
            limit.check(size)
            # Several times as fast as bytes.count where many are found.
            lines += int(np.count_nonzero(np.frombuffer(part, np.uint8) == _LINE_FEED))
            if last == b"\r" or b"\r" in part:
                line_ends += part.count(b"\r") - (last + part).count(b"\r\n")
            last = part[-1:]
            if not is_below:
                end = _LINE_END.search(part)
                part = part[end.end() if end else len(part) :]
                is_below = end is not None
                may_have_gaps = gap.search(part) is not None
            has_rows = has_rows or bool(part.strip(b"\r\n"))
            # Testing for a quote is much faster than counting quotes.
            quotes += part.count(b'"') if b'"' in part else 0
            has_underscore = has_underscore or b"_" in part
    return CsvContent(
        quotes=quotes,
        has_underscore=has_underscore,
        may_have_gaps=may_have_gaps,
        length=size,
        lines=lines + (last != b"\n"),
        line_ends=line_ends,
        has_rows=has_rows,
    )


class Expansion:
    """Refuses compressed data that expands to more than a table of coordinates would."""

    def __init__(self, path: Path) -> None:
        self._path, self._limit = path, _MAX_EXPANSION * path.stat().st_size

    def check(self, size: int) -> None:
        """Refuse a number of bytes after decompression."""
        if size > self._limit:
            raise InputDataError(
                f"{self._path} expands to more than {_MAX_EXPANSION} times its size, which no "
                "table of coordinates does; is it damaged, or made to fill the disk?"
            )


@contextmanager
def open_content(path: Path, compression: str) -> Iterator[IO[bytes]]:
    """Open a file as bytes of CSV; refuse one whose compressed data is cut off."""
    import pyarrow as pa

    fault: type[InputDataError] | None = None
    with path.open("rb") as raw:
        try:
            yield raw if compression == "none" else pa.CompressedInputStream(raw, compression)
        except OSError as error:
            fault = fault_class(error)
    if fault is not None:
        raise fault(f"{path} is damaged or incomplete {compression} data; copy it again") from None
