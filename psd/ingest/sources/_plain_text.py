"""Make a file of text plain CSV in UTF-8: another encoding, lines above the header. Private side.

A file that is already plain is read where it is. Any other is copied to an unnamed file, which no
other process can open and which the system removes when this process ends.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from psd.errors import InputDataError, ResourceError
from psd.ingest.columns import Columns
from psd.ingest.input_paths import refuse_changes
from psd.ingest.sources._csv_file import BUFFER, Expansion, find_compression, open_content
from psd.ingest.sources._csv_header import (
    START,
    HeaderError,
    check_markup,
    check_signature,
    has_wide_mark,
)

__all__ = ["header_file", "plain_file", "standard_input", "stored_stream"]

_MAX_LINE = 2**20

_CODECS = {"auto": "utf-8-sig", "utf-8": "utf-8-sig", "utf-16": "utf-16", "windows-1252": "cp1252"}

_NAMES = {"utf-16": "UTF-16", "windows-1252": "Windows-1252"}


@contextmanager
def standard_input() -> Iterator[Path]:
    """Copy standard input to an unnamed file and yield its path."""
    with stored_stream("standard input", sys.stdin.buffer) as path:
        yield path


@contextmanager
def stored_stream(name: str, stream: IO[bytes]) -> Iterator[Path]:
    """Copy a stream, which messages call by a name, to an unnamed file and yield its path."""
    with _unnamed_file(name) as spool:
        with _storing(name, spool):
            shutil.copyfileobj(stream, spool, BUFFER)
        yield Path(f"/dev/fd/{spool.fileno()}")


@contextmanager
def plain_file(path: Path, columns: Columns) -> Iterator[Path]:
    """Yield the path of a file in UTF-8 whose first line is the header.

    Raises
    ------
    HeaderError
        If the file is of another format, or has not the stated encoding or number of lines.
    InputDataError
        If it has bytes that are not of its encoding.
    """
    encoding = _find_encoding(path, columns)
    if encoding in ("auto", "utf-8") and not columns.skip_rows:
        yield path
        return
    with _unnamed_file(str(path)) as spool:
        with _storing(str(path), spool), refuse_changes([path]):
            _copy_text(path, spool, encoding, columns.skip_rows)
        yield Path(f"/dev/fd/{spool.fileno()}")


@contextmanager
def header_file(path: Path, columns: Columns) -> Iterator[Path]:
    """Yield the path of a file in UTF-8 whose first line is the header; it may hold nothing else.

    Raises
    ------
    HeaderError, InputDataError
        As `plain_file`.
    """
    encoding = _find_encoding(path, columns)
    if encoding in ("auto", "utf-8") and not columns.skip_rows:
        yield path
        return
    with _unnamed_file(str(path)) as spool:
        with _storing(str(path), spool), _open_text(path, encoding, columns.skip_rows) as text:
            spool.write(text.readline(_MAX_LINE).encode())
        yield Path(f"/dev/fd/{spool.fileno()}")


def _find_encoding(path: Path, columns: Columns) -> str:
    """Stated encoding, or UTF-16 where the file begins with its byte order mark."""
    with open_content(path, find_compression(path)) as file:
        start = file.read(START)
    check_signature(path, start)
    if not columns.skip_rows:  # a line above the header may be anything
        check_markup(path, start)
    stated, is_wide = columns.encoding, has_wide_mark(start)
    if stated == "utf-16" and not is_wide:
        raise HeaderError(
            f"{path} must begin with the byte order mark of UTF-16; save it as CSV in UTF-8"
        )
    if stated == "windows-1252" and (is_wide or start.startswith(b"\xef\xbb\xbf")):
        raise HeaderError(
            f"{path} begins with the byte order mark of another encoding than windows-1252; leave "
            "out encoding="
        )
    return "utf-16" if is_wide and stated == "auto" else stated


def _copy_text(path: Path, spool: IO[bytes], encoding: str, skipped: int) -> None:
    """Copy a file as UTF-8 without its first lines."""
    limit, size = Expansion(path), 0
    with _open_text(path, encoding, skipped) as text:
        for part in iter(lambda: text.read(BUFFER), ""):
            content = part.encode()
            size += len(content)
            limit.check(size)
            spool.write(content)


@contextmanager
def _open_text(path: Path, encoding: str, skipped: int) -> Iterator[io.TextIOWrapper]:
    """Open a file below its first lines; bytes that are not of its encoding stop the build."""
    try:
        with open_content(path, find_compression(path)) as file:
            text = io.TextIOWrapper(file, encoding=_CODECS[encoding], newline="")
            _skip_lines(path, text, skipped)
            yield text
        return
    except UnicodeError:
        pass  # raised below, so that no context carries the message, which quotes bytes
    name = _NAMES.get(encoding, "UTF-8")
    raise InputDataError(f'{path} is not in {name}; state its own, such as encoding="windows-1252"')


def _skip_lines(path: Path, text: io.TextIOWrapper, skipped: int) -> None:
    """Read the lines above the header; a quote in them has no meaning."""
    for _ in range(skipped):
        line = text.readline(_MAX_LINE)
        if len(line) == _MAX_LINE and not line.endswith(("\r", "\n")):
            raise HeaderError(f"{path} has a line of more than 1 MB above the header")
        if not line:
            raise HeaderError(f"{path} must have more lines than skip_rows={skipped}")


@contextmanager
def _unnamed_file(name: str) -> Iterator[IO[bytes]]:
    """Unnamed file that messages call by the name of the input."""
    with tempfile.TemporaryFile() as spool:
        path = f"/dev/fd/{spool.fileno()}"
        try:
            yield spool
        except InputDataError as error:
            message = str(error).replace(path, name)
            raise type(error)(message) from None


@contextmanager
def _storing(name: str, spool: IO[bytes]) -> Iterator[None]:
    """Write an unnamed file; say where there is no room."""
    try:
        yield
        spool.flush()
    except OSError as error:
        with contextlib.suppress(OSError):  # the rest of the buffer has no room either
            spool.close()
        raise ResourceError(
            f"{name} cannot be stored in {tempfile.gettempdir()}: {error.strerror}; "
            "free some space, or name another folder by TMPDIR"
        ) from None
