"""Fitted numbers of large releases, kept in a folder of the user between processes.

A copy is public, only saves time and may be deleted. It is never read from beside a release file,
where the sender could have placed one, has no pickle, and is used only if it belongs to the user
alone, with the right size and digest.
"""

from __future__ import annotations

import hashlib
import math
import os
import stat
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from psd._util.arrays import Floats
from psd._util.atomic_write import open_plain, write_file
from psd.errors import PsdError
from psd.release.record import ReleaseRecord
from psd.version import __version__

VARIABLE: Final = "PSD_CACHE"
"""Environment variable with the folder, or ``off``."""

LEAST_NODES: Final = 2**12
"""Smaller releases are fitted in less time than a program takes to start."""

MAX_BYTES: Final = 2**29
"""Largest size of all files together; the oldest are deleted first."""

_MAGIC = b"psd fit 1\n"
_START = len(_MAGIC) + hashlib.sha256().digest_size
_ENDING = ".psdfit"
_OFF = ("", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class FitCache:
    """Fitted numbers of one release.

    P1. What is read is what was written for the same content, post-processing and code, to the bit.

    P2. A failure to read or to write is no error: the numbers are then computed.
    """

    folder: Path  # of the user
    key: str  # digest of everything that the fit depends on

    def has(self, names: Sequence[str]) -> bool:
        """Whether the folder has numbers of all of these names."""
        return all(os.path.isfile(self._path(name)) for name in names)

    def _path(self, name: str) -> Path:
        """File of a name."""
        return self.folder / f"{self.key}-{name}{_ENDING}"

    def read(self, name: str, shape: tuple[int, ...]) -> Floats | None:
        """Numbers of a file; None if there is no such file, or it is not as it was written."""
        content = bytearray(_START + 8 * math.prod(shape))
        try:
            if not _is_private(self.folder.lstat()):
                return None
            with open(self._path(name), "rb", opener=open_plain) as file:
                entry = os.fstat(file.fileno())
                if not _is_private(entry) or entry.st_size != len(content):
                    return None
                if file.readinto(content) != len(content):
                    return None
        except OSError:
            return None
        body = memoryview(content)[_START:]
        if content[:_START] != _MAGIC + self._digest(name, shape, body):
            return None
        return np.frombuffer(body, "<f8").reshape(shape)

    def write(self, name: str, values: Floats) -> None:
        """Keep numbers; whatever prevents it is ignored."""
        content = bytearray(_START + values.size * 8)
        body = memoryview(content)[_START:]
        np.frombuffer(body, "<f8").reshape(values.shape)[...] = values
        content[:_START] = _MAGIC + self._digest(name, values.shape, body)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _is_private(self.folder.lstat()):
                write_file(self._path(name), content, overwrite=True, mode=0o600)
                _delete_oldest(self.folder)
        except (OSError, PsdError):
            return

    def _digest(self, name: str, shape: tuple[int, ...], body: memoryview) -> bytes:
        """Digest of the content of a file and of what it is for."""
        hashed = hashlib.sha256(f"{self.key} {name} {shape}\n".encode())
        hashed.update(body)
        return hashed.digest()


def recall(
    cache: FitCache | None,
    names: Sequence[str],
    shape: tuple[int, ...],
    compute: Callable[[], Sequence[Floats]],
) -> list[Floats]:
    """Arrays of some names, from the cache if all are in it; else computed and kept there."""
    stored: list[Floats] = []
    if cache is not None:
        for name in names:
            values = cache.read(name, shape)
            if values is None:
                break
            stored.append(values)
        else:
            return stored
    computed = list(compute())
    if cache is not None:
        for name, values in zip(names, computed, strict=True):
            cache.write(name, values)
    return computed


def fit_cache(record: ReleaseRecord, digest: str) -> FitCache | None:
    """Cache of a release whose content has a digest; None for small ones, or if it is off."""
    if len(record.tree) < LEAST_NODES:
        return None
    folder, code = _folder(), _code_digest()
    if folder is None or code is None:
        return None
    parts = (digest, __version__, record.inference, record.post_processing, code, np.__version__)
    key = hashlib.sha256("\n".join(map(str, (*parts, sys.byteorder))).encode()).hexdigest()
    return FitCache(folder=folder, key=key)


def _folder() -> Path | None:
    """Folder of the cache; None if it is off or there is no home."""
    chosen = os.environ.get(VARIABLE)
    if chosen is not None:
        return None if chosen.strip().lower() in _OFF else Path(chosen).absolute()
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "psd"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "psd" / "Cache"
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else home / ".cache") / "psd"


@cache
def _code_digest() -> str | None:
    """Digest of the code of the fit, so that other code never finds what this one kept."""
    hashed = hashlib.sha256()
    try:
        for path in sorted(Path(__file__).parent.glob("*.py")):
            hashed.update(path.read_bytes())
    except OSError:
        return None
    return hashed.hexdigest()


def _is_private(entry: os.stat_result) -> bool:
    """Whether only the user can write a file or folder, and it is not a link or a pipe."""
    if not (stat.S_ISREG(entry.st_mode) or stat.S_ISDIR(entry.st_mode)):
        return False
    if not hasattr(os, "geteuid"):
        return True
    return entry.st_uid == os.geteuid() and not entry.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _delete_oldest(folder: Path) -> None:
    """Delete the oldest files until all together are small enough."""
    files = [(path.stat(), path) for path in folder.glob(f"*{_ENDING}")]
    excess = sum(entry.st_size for entry, _ in files) - MAX_BYTES
    for entry, path in sorted(files, key=lambda file: file[0].st_mtime_ns):
        if excess <= 0:
            return
        path.unlink(missing_ok=True)
        excess -= entry.st_size
