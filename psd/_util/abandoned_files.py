"""Hidden names beside a target, and what killed processes left under them. Public side.

A process that writes under such a name holds a lock on it, which ends with the process, also when
it is killed. The next write into the folder removes every such name without a lock. Age would be
a worse sign: the file may hold private data, and a large one may take long to write. So would be
the number of the process, which another container may use as well. On a network file system whose
locks end at each machine, this may remove a file that another machine is writing.
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
except ImportError:  # Windows has no such locks: nothing is removed there
    fcntl = None  # type: ignore[assignment]

__all__ = ["held_folder", "hidden", "hold", "sweep"]

# Eight random bytes: names that users choose do not look like these.
_NAME = re.compile(r"\.psd-[0-9a-f]{16}")


def hidden(folder: Path) -> Path:
    """Return an unused hidden name in a folder."""
    return folder / f".psd-{secrets.token_hex(8)}"


def hold(handle: int) -> None:
    """Lock an open file or folder until it is closed, where the file system has locks."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)


def held_folder(above: Path) -> tuple[Path, int | None]:
    """Make a hidden folder for its owner alone, and lock it.

    Returns
    -------
    Path
        The folder.
    int or None
        Handle to close when the folder is gone; None where folders cannot be opened, as on
        Windows.
    """
    while True:
        folder = hidden(above)
        folder.mkdir(mode=0o700)
        try:
            handle = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue  # another process removed it before it was locked
        except PermissionError:
            return folder, None
        except OSError:
            folder.rmdir()
            raise
        hold(handle)
        if folder.exists():
            return folder, handle
        os.close(handle)


def sweep(folder: Path) -> None:
    """Remove the files and folders of killed processes: those that are not locked."""
    if fcntl is None:
        return
    with suppress(OSError):
        for path in [path for path in folder.iterdir() if _NAME.fullmatch(path.name)]:
            with suppress(OSError):
                _remove_abandoned(path)


def _remove_abandoned(path: Path) -> None:
    """Remove a file or a folder that is not locked."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    finally:
        os.close(handle)
