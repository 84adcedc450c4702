"""Hidden names beside a target, and what killed processes left under them. Public side.

Whoever writes under such a name holds a lock on it, which ends with the process however that ends.
What nobody holds was left, and the next write into its folder removes it. On a network file system
whose locks end at each machine, that may hit a file which another machine writes at this moment.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # a system without such locks, where nothing is known to be left
    fcntl = None  # type: ignore[assignment]

__all__ = ["held_folder", "hidden", "hold", "sweep"]

# Eight random bytes, so that no name which somebody chose is taken for one of these.
_NAME = re.compile(r"\.psd-[0-9a-f]{16}")


def hidden(folder: Path) -> Path:
    """A name in a folder that nothing has."""
    return folder / f".psd-{secrets.token_hex(8)}"


def hold(handle: int) -> None:
    """Lock an open file or folder until it is closed; where no lock is had, none is taken away."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)


def held_folder(above: Path) -> tuple[Path, int]:
    """Make a hidden folder for its owner alone, and hold it.

    Returns
    -------
    Path
        The folder.
    int
        What holds it, to be closed.
    """
    while True:
        folder = hidden(above)
        folder.mkdir(mode=0o700)
        try:
            handle = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue  # another process took it for left over before it was held
        except OSError:
            folder.rmdir()
            raise
        hold(handle)
        if folder.exists():
            return folder, handle
        os.close(handle)


def sweep(folder: Path) -> None:
    """Remove what killed processes left in a folder; what a living one writes stays."""
    if fcntl is None:
        return
    with suppress(OSError):
        for path in [path for path in folder.iterdir() if _NAME.fullmatch(path.name)]:
            with suppress(OSError):
                _remove_left(path)


def _remove_left(path: Path) -> None:
    """Remove a file or a folder that nobody holds."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    finally:
        os.close(handle)
