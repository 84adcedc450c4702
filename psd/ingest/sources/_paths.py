"""Files that are given as inputs: which they are, of what kind, and whether they stay as they are.

A name is a file, a folder, or a pattern of names; a file belongs to the source of its kind.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from psd.errors import InputDataError

__all__ = ["STDIN", "expanded", "has_known_ending", "is_path", "kind", "partition", "unchanged"]

STDIN = "-"

_SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".geoparquet": "parquet",
    ".gpkg": "vector",
    ".shp": "vector",
    ".fgb": "vector",
    ".geojson": "vector",
    ".json": "vector",
}

_TEXT = (".csv", ".tsv", ".txt", ".gz", ".zst")

# First bytes of files whose name says nothing.
_MARKS = {
    b"PAR1": "parquet",
    b"SQLite format 3\0": "vector",
    b"fgb\x03": "vector",
    b"\x00\x00\x27\x0a": "vector",
}

# What stands beside a file of points and holds none by itself.
_COMPANIONS = {
    ".shp": (".dbf", ".shx", ".prj", ".cpg", ".qix", ".sbn", ".sbx", ".qmd", ".shp.xml"),
    ".gpkg": (".gpkg-wal", ".gpkg-shm", ".gpkg-journal"),
}

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"

State = tuple[int, int, int, int] | None


def is_path(item: Any) -> bool:
    """Whether an input is the name of a file and not the address of a database."""
    if isinstance(item, os.PathLike):
        return True
    return isinstance(item, str) and "://" not in item


def kind(item: Any) -> str | None:
    """Source that reads a file.

    Parameters
    ----------
    item : object
        Path, or something else.

    Returns
    -------
    str or None
        ``"parquet"``, ``"vector"``, or ``"csv"`` for all that is of no other known kind, standard
        input too; None if the item is no path. The ending of the name decides, and the first bytes
        where it says nothing.
    """
    if not is_path(item):
        return None
    name = os.fspath(item)
    suffix = Path(name).suffix.lower()
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    if suffix in _TEXT or not Path(name).is_file():
        return "csv"
    try:
        with Path(name).open("rb") as file:
            start = file.read(16)
    except (OSError, ValueError):
        return "csv"
    return next((known for mark, known in _MARKS.items() if start.startswith(mark)), "csv")


def has_known_ending(path: str | os.PathLike[str]) -> bool:
    """Whether the ending of a name tells the source of this package that reads the file.

    Examples
    --------
    >>> has_known_ending("visits.csv"), has_known_ending("visits.kml")
    (True, False)
    """
    return Path(path).suffix.lower() in (*_SUFFIXES, *_TEXT)


def expanded(items: Iterable[Any]) -> list[Path]:
    """Files that names, folders and patterns stand for, in a fixed order, each checked.

    Parameters
    ----------
    items : iterable of path-like
        What exists is taken as it stands, whatever signs are in its name. Of a folder all files
        are taken, those of its folders too, but for names that begin with a dot or an underscore.
        ``-`` stays what it is.

    Raises
    ------
    InputDataError
        If nothing is found, or a file is no regular one, may not be read or is given twice.
    """
    found: list[Path] = []
    for item in items:
        found += [Path(item)] if os.fspath(item) == STDIN else _files(Path(item))
    _refuse_twice(found)
    return found


def _files(path: Path) -> list[Path]:
    """Files of one name."""
    state = _stat(path)
    if state is None and glob.has_magic(str(path)):
        paths = [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]
        files = [file for each in paths if not _is_companion(each) for file in _files(each)]
        if not files:
            raise InputDataError(f"no file has a name like {path}; is the folder another one?")
        return files
    if state is None:
        raise InputDataError(f"input {path} does not exist or cannot be reached")
    if stat.S_ISDIR(state.st_mode):
        return _of_folder(path)
    if not stat.S_ISREG(state.st_mode):
        raise InputDataError(f"input {path} is no regular file; give a file, a folder or a pattern")
    if not os.access(path, os.R_OK):
        raise InputDataError(f"input {path} may not be read; check its permissions")
    return [path]


def _stat(path: Path) -> os.stat_result | None:
    """State of a file, or None if there is none."""
    try:
        return path.stat()
    except (OSError, ValueError):
        return None


def _of_folder(folder: Path) -> list[Path]:
    """Files of a folder and its folders, without those that writers leave for themselves."""
    files = []
    for root, folders, names in os.walk(folder, onerror=_refuse_folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        for link in (Path(root, name) for name in folders):
            if link.is_symlink():  # might lead in a circle
                raise InputDataError(f"{link} is a link to a folder; give that folder itself")
        paths = [Path(root, name) for name in sorted(names) if not name.startswith((".", "_"))]
        files += [file for path in paths if not _is_companion(path) for file in _files(path)]
    if not files:
        raise InputDataError(f"folder {folder} holds no file to read")
    return files


def _refuse_folder(error: OSError) -> None:
    """End a walk at a folder that cannot be listed, which would be left out in silence."""
    raise InputDataError(
        f"folder {error.filename} may not be read; check its permissions"
    ) from None


def _is_companion(path: Path) -> bool:
    """Whether a file belongs to another one beside it."""
    return any(
        path.name.lower().endswith(end)
        and any(path.with_name(path.name[: -len(end)] + s).exists() for s in (main, main.upper()))
        for main, ends in _COMPANIONS.items()
        for end in ends
    )


def _refuse_twice(paths: list[Path]) -> None:
    """Refuse a file that is given twice, under whatever name."""
    seen: set[tuple[int, int] | str] = set()
    for path in paths:
        state = _stat(path)
        key = (state.st_dev, state.st_ino) if state else str(path)
        if key in seen:
            raise InputDataError(f"input {path} is given twice; its rows would count double")
        seen.add(key)


@contextmanager
def unchanged(paths: Iterable[Path]) -> Iterator[None]:
    """Refuse files that grow, are written again or replaced while the block reads them.

    Raises
    ------
    InputDataError
        At the end of the block.
    """
    paths = list(paths)
    before = [_states(path) for path in paths]
    yield
    for path, states in zip(paths, before, strict=True):
        if _states(path) != states:
            raise InputDataError(f"{path} changed while it was read; nothing was published")


def _states(path: Path) -> list[State]:
    """What changes when a file, or what belongs to it, is replaced or written."""
    # Readers of a GeoPackage in write-ahead mode make files beside it themselves.
    ends = _COMPANIONS[".shp"] if path.suffix.lower() == ".shp" else ()
    own = (path, *(path.with_name(path.stem + end) for end in ends))
    states = [_stat(each) for each in own]
    return [s and (s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns) for s in states]


def partition(path: Path, column: str) -> tuple[str | None, ...]:
    """Value of a column that the folders of a file say, as in ``day=2024-01-31/part-0.parquet``.

    Returns
    -------
    tuple
        The text, or None where the folder says that there is none; empty if no folder names the
        column.
    """
    for part in reversed(path.parts[:-1]):
        name, sign, value = part.partition("=")
        if sign and unquote(name) == column:
            return (None if value == _NO_VALUE else unquote(value),)
    return ()
