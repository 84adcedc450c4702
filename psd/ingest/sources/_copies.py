"""Find files of equal content in an input. Private side.

A record in two files is counted twice, and its unit of privacy loses twice epsilon. A file under
two names, or beside its compressed form, is refused by name and inode before anything is read
(`psd.ingest.input_paths`); a copy has the digest of the decompressed content. One with another
order of rows, record, line end or format is not detected; tables are not compared.

Whether two files are equal is a function of private data. So the comparison has only one effect, a
call of ``on_copy``: no record is left out, and nothing else is read, counted, charged or printed
differently. Without a ledger ``on_copy`` refuses the input, and the holder of the data, who started
the build, learns that two files are equal. With a ledger another person may run the build, and a
refusal would answer a question about the records at no cost. Then ``on_copy`` is
`psd.publish.observer.Observer.private_fault`, whose text only ``--report-private`` shows, and exit
code, message, ledger and the law of the release are those of a build that compares nothing. That
build is epsilon-private for each counted record: a copy counts as a separate one, so a person whose
record is in two files loses twice epsilon; only the private report states this.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from psd.errors import InputDataError
from psd.ingest.input_paths import file_kind
from psd.ingest.sources._arrow import fault_class
from psd.ingest.sources._csv_file import BUFFER, find_compression, open_content

if TYPE_CHECKING:
    from psd.ingest.sources import Columns


OnCopy = Callable[[str], None]
"""Called with a PRIVATE message that names two files of equal content."""

_START = 2**16
"""Bytes at the start of a file that are compared before the rest is read."""

# Files beside a file that hold a part of its records.
_PARTS = {".shp": (".dbf",), ".gpkg": (".gpkg-wal",)}


def refuse_copy(message: str) -> None:
    """Refuse an input with two files of equal content."""
    raise InputDataError(message)


class CopyCheck:
    """Compares the files of an input with each other.

    P1. `on_copy` is called for each file that has the content of an earlier one, and only then.
    P2. The check reads a file only if an earlier one has the same length, and reads beyond its
    first bytes only if those are equal too.
    """

    def __init__(self, on_copy: OnCopy, columns: Columns) -> None:
        self._on_copy, self._columns = on_copy, columns
        self._by_length: dict[int, list[_File]] = defaultdict(list)

    def add(self, path: Path, length: int, name: str | None = None) -> None:
        """Compare a file that stays readable with those of the same length after decompression."""
        new = _File(path, str(path) if name is None else name)
        others = self._by_length[length]
        copied = next((other for other in others if self._are_copies(other, new)), None)
        others.append(new)
        if copied is not None:
            self._on_copy(
                f"inputs {copied.name} and {new.name} have the same content; its records would "
                "count twice"
            )

    def add_files(self, paths: Iterable[Path]) -> None:
        """Compare files that are not compressed, by the lengths that the system states."""
        for path in paths:
            self.add(path, sum(part.stat().st_size for part in _parts(path)))

    def _are_copies(self, first: _File, second: _File) -> bool:
        """Whether two files have the same records."""
        if not second.has_content_of(first):
            return False
        if file_kind(second.path) != "parquet":
            return True
        from psd.ingest.sources.parquet import have_same_rows

        return have_same_rows(first.path, second.path, self._columns)


@dataclass(frozen=True, slots=True)
class _File:
    """A file whose digests are computed when they are needed. They stay in memory."""

    path: Path
    name: str
    _digests: dict[int | None, str] = field(default_factory=dict, init=False)

    def has_content_of(self, other: _File) -> bool:
        """Whether both have the same bytes."""
        return all(self._digest(end) == other._digest(end) for end in (_START, None))

    def _digest(self, end: int | None) -> str:
        """Digest of the content up to a limit."""
        if end not in self._digests:
            self._digests[end] = content_digest(self.path, end)
        return self._digests[end]


def content_digest(path: Path, end: int | None = None) -> str:
    """Digest of the decompressed content of a file, or of the first `end` bytes, as hexadecimal."""
    digest = hashlib.blake2b(digest_size=32)
    left = float("inf") if end is None else end
    try:
        with ExitStack() as stack:
            for part in _parts(path):
                file = stack.enter_context(open_content(part, find_compression(part)))
                while left > 0 and (content := file.read(int(min(left, BUFFER)))):
                    digest.update(content)
                    left -= len(content)
    except OSError as error:
        raise fault_class(error)(f"{path} cannot be read; was it moved or removed?") from None
    return digest.hexdigest()


def _parts(path: Path) -> list[Path]:
    """A file, and the files beside it that hold a part of its records."""
    ends = _PARTS.get(path.suffix.lower(), ())
    beside = (path.with_name(path.stem + case) for end in ends for case in (end, end.upper()))
    return [path, *(part for part in beside if part.is_file())]
