"""Input files: expand paths and patterns, find the kind of each file, refuse files that change."""

from __future__ import annotations

import glob
import os
import stat
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from psd.errors import InputDataError

__all__ = ["uncompressed_name"]

STDIN = "-"

_SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".geoparquet": "parquet",
    ".xlsx": "xlsx",
    ".gpkg": "vector",
    ".shp": "vector",
    ".fgb": "vector",
    ".geojson": "vector",
    ".json": "vector",
    **dict.fromkeys((".geojsonl", ".geojsons", ".geojsonseq", ".ndjson", ".jsonl"), "vector"),
}

_TEXT = (".csv", ".tsv", ".txt", ".gz", ".zst")

_COMPRESSED = (".gz", ".gzip", ".zst", ".zstd", ".bz2", ".xz", ".lz4", ".br", ".zip")

# First bytes of files whose name has no known ending.
_SIGNATURES = {
    b"PAR1": "parquet",
    b"SQLite format 3\0": "vector",
    b"fgb\x03": "vector",
    b"\x00\x00\x27\x0a": "vector",
}

# Files beside a file of points that hold no points themselves.
_COMPANIONS = {
    ".shp": (".dbf", ".shx", ".prj", ".cpg", ".qix", ".sbn", ".sbx", ".qmd", ".shp.xml"),
    ".gpkg": (".gpkg-wal", ".gpkg-shm", ".gpkg-journal"),
}

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"

State = tuple[int, int, int, int] | None


def is_path(item: Any) -> bool:
    """Whether an input is the path of a file and not the address of a database."""
    if isinstance(item, os.PathLike):
        return True
    return isinstance(item, str) and "://" not in item


def is_csv(items: Iterable[Any]) -> bool:
    """Whether an input is only existing files read as CSV: one position and time in a row."""
    items = list(items)
    if not all(is_path(item) and str(item) != STDIN for item in items):
        return False
    try:
        paths = expand_paths(items)
        kinds = {file_kind(path) for path in paths if path.stat()}
    except (InputDataError, OSError):
        return False
    return kinds == {"csv"}


def file_kind(item: Any) -> str | None:
    """Source of a path by its ending, else its first bytes, else ``"csv"``; None for no path."""
    if not is_path(item):
        return None
    name = os.fspath(item)
    suffix = Path(name).suffix.lower()
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    if suffix in _TEXT or not os.path.isfile(name):
        return "csv"
    try:
        with Path(name).open("rb") as file:
            start = file.read(16)
    except (OSError, ValueError):
        return "csv"
    return next((kind for mark, kind in _SIGNATURES.items() if start.startswith(mark)), "csv")


def ending_kind(path: Path) -> str:
    """Kind of a file by the ending of its name alone, without compression; ``"csv"`` for others."""
    return _SUFFIXES.get(path.suffix.lower(), "csv")


def has_known_ending(path: str | os.PathLike[str]) -> bool:
    """Whether the ending of a name decides which source of this package reads the file."""
    return Path(path).suffix.lower() in (*_SUFFIXES, *_TEXT)


def expand_paths(items: Iterable[Any]) -> list[Path]:
    """Expand paths, folders and patterns to files, in a fixed order, each checked once."""
    files: list[Path] = []
    for item in items:
        files += [Path(item)] if os.fspath(item) == STDIN else _expand_path(Path(item))
    _refuse_repeated(files)
    return files


def resolve_inputs(data: Any) -> Any:
    """Replace the paths of an input by the paths of their files, with all links resolved.

    data: as in `psd.build`, private.

    With a ledger, a file is checked by its device and inode and read later by its name. A link
    that changes between the two would be checked as one file and read as another, so each link is
    followed once, before the first check. So is the search path for a table without a schema.
    """
    items = list(data) if isinstance(data, list | tuple) else [data]
    files = expand_paths(item for item in items if is_path(item))
    resolved = [path if str(path) == STDIN else Path(os.path.realpath(path)) for path in files]
    _refuse_repeated(resolved)
    others = [item for item in items if not is_path(item)]
    tables = [item.with_schema() if hasattr(item, "with_schema") else item for item in others]
    return [*map(str, resolved), *tables]


def _expand_path(path: Path) -> list[Path]:
    """Expand one path."""
    state = _stat(path)
    # A path that exists is never read as a pattern.
    if state is None and glob.has_magic(str(path)):
        paths = [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]
        files = [file for each in paths if not _is_companion(each) for file in _expand_path(each)]
        if not files:
            raise InputDataError(f"no file matches {path}; is the folder correct?")
        return files
    if state is None:
        raise InputDataError(f"input {path} does not exist or cannot be reached")
    if stat.S_ISDIR(state.st_mode):
        return _expand_folder(path)
    if not stat.S_ISREG(state.st_mode):
        raise InputDataError(f"input {path} must be a regular file, a folder or a pattern")
    if not os.access(path, os.R_OK):
        raise InputDataError(f"input {path} is not readable; check its permissions")
    return [path]


def _stat(path: Path) -> os.stat_result | None:
    """State of a file, or None if it does not exist."""
    try:
        return path.stat()
    except (OSError, ValueError):
        return None


def _expand_folder(folder: Path) -> list[Path]:
    """List files of a folder and its folders, without hidden ones."""
    files = []
    for root, folders, names in os.walk(folder, onerror=_refuse_folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        for link in (Path(root, name) for name in folders):
            if link.is_symlink():  # might lead to a cycle
                raise InputDataError(f"{link} is a link to a folder; pass that folder itself")
        paths = [Path(root, name) for name in sorted(names) if not name.startswith((".", "_"))]
        files += [file for path in paths if not _is_companion(path) for file in _expand_path(path)]
    if not files:
        raise InputDataError(f"folder {folder} holds no files to read")
    return files


def pattern_of_mixed_folder(items: Iterable[Any]) -> str | None:
    """Pattern of the most frequent ending in a folder whose files end differently; else None."""
    for folder in (Path(item) for item in items if is_path(item)):
        if folder.is_dir():
            endings = Counter(file.suffix for file in _expand_folder(folder) if file.suffix)
            if len(endings) > 1:
                depth = "**/" * any(child.is_dir() for child in folder.iterdir())
                return f"{folder}/{depth}*{endings.most_common(1)[0][0]}"
    return None


def _refuse_folder(error: OSError) -> None:
    """Refuse a folder that cannot be listed; os.walk would skip it silently."""
    raise InputDataError(
        f"folder {error.filename} is not readable; check its permissions"
    ) from None


def _is_companion(path: Path) -> bool:
    """Whether a file belongs to another one beside it."""
    return any(
        path.name.lower().endswith(end)
        and any(path.with_name(path.name[: -len(end)] + s).exists() for s in (main, main.upper()))
        for main, ends in _COMPANIONS.items()
        for end in ends
    )


def _refuse_repeated(paths: list[Path]) -> None:
    """Refuse a repeated file, also under another name, and a file beside its compressed form."""
    seen: set[tuple[int, int] | str] = set()
    stems: dict[tuple[str, str], Path] = {}
    for path in paths:
        state = _state_of(path)
        key = (state.st_dev, state.st_ino) if state else str(path)
        if key in seen:
            raise InputDataError(f"input {path} is repeated; its records would count twice")
        seen.add(key)
        if str(path) == STDIN:
            continue
        # Folder and name without endings of compression, of the file and of its link target.
        for folder, name in {
            (os.path.realpath(path.parent), path.name),
            os.path.split(os.path.realpath(path)),
        }:
            other = stems.setdefault((folder, uncompressed_name(name)), path)
            if other is not path:
                raise InputDataError(
                    f"inputs {other} and {path} must not be one file and its compressed form; its "
                    "records would count twice. Rename one of them if they are different"
                )


def _state_of(path: Path) -> os.stat_result | None:
    """State of a file, or of the file that standard input is read from."""
    if str(path) != STDIN:
        return _stat(path)
    try:
        state = os.fstat(sys.stdin.fileno())
    except (OSError, ValueError, AttributeError):
        return None
    return state if stat.S_ISREG(state.st_mode) else None


def uncompressed_name(name: str) -> str:
    """Remove endings of compression, as ``.gz``, from the name or address of a file."""
    while (end := next((e for e in _COMPRESSED if name.lower().endswith(e)), None)) is not None:
        name = name[: -len(end)]
    return name


@contextmanager
def refuse_changes(paths: Iterable[Path]) -> Iterator[None]:
    """Refuse files that are written or replaced while the block reads them, at its end."""
    paths = list(paths)
    before = [_states(path) for path in paths]
    yield
    for path, states in zip(paths, before, strict=True):
        if _states(path) != states:
            raise InputDataError(f"{path} changed while it was read; nothing was published")


def _states(path: Path) -> list[State]:
    """State that changes when a file, or a companion of it, is written or replaced."""
    # Readers of a GeoPackage in write-ahead mode create files beside it themselves.
    ends = _COMPANIONS[".shp"] if path.suffix.lower() == ".shp" else ()
    files = (path, *(path.with_name(path.stem + end) for end in ends))
    states = [_stat(each) for each in files]
    return [s and (s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns) for s in states]


def has_partition_values(path: Path) -> bool:
    """Whether a folder of a path gives the value of a column, as in ``day=2024-01-31``."""
    return any("=" in part for part in path.absolute().parts[:-1])


def partition_values(path: Path, column: str) -> tuple[str | None, ...]:
    """Texts of a column in folders like ``day=2024-01-31``, None if missing; empty without it."""
    for part in reversed(path.parts[:-1]):
        name, sign, value = part.partition("=")
        if sign and unquote(name) == column:
            return (None if value == _NO_VALUE else unquote(value),)
    return ()
