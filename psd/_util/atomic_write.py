"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from psd._util.abandoned_files import held_folder, hidden, hold, sweep
from psd.errors import WriteError

__all__ = ["BESIDE_DATABASES", "check_free", "check_targets", "write_whole", "written"]

BESIDE_DATABASES = ("-journal", "-wal", "-shm")
"""What SQLite appends to the name of a database, such as a ledger, for files of its own."""

# What file systems without hard links answer, such as exFAT and some shares.
_NO_HARD_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)

_DATABASE = b"SQLite format 3\0"

# Whatever the process withholds, what is published is for its owner alone to change.
_MODE = 0o644


def check_free(
    path: str | os.PathLike[str],
    *,
    overwrite: bool,
    inputs: Iterable[str | os.PathLike[str]] = (),
) -> Path:
    """Refuse a target that exists, or whose folder does not, before any work is done.

    A link is a target that exists, wherever it leads; where it may, it is the link that is
    replaced, and what it leads to stays.

    Parameters
    ----------
    path : path-like
        Target.
    overwrite : bool
        Whether it may exist.
    inputs : iterable of path-like
        Files that the work reads; none of them is ever overwritten.

    Raises
    ------
    WriteError
        If the file exists and is not to be overwritten, cannot be created there, or would be
        taken for a part of a database.
    """
    path = Path(path)
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "this is not a valid file name"
        raise WriteError(f"cannot write {path}: {reason}") from None
    if path.is_dir():
        raise WriteError(f"{path} is a folder; give the name of a file in it")
    if path.exists() and not overwrite:
        raise WriteError(
            f"{path} exists; choose another name, or allow it (--overwrite, overwrite=True)"
        )
    if path.is_symlink() and not overwrite:
        raise WriteError(
            f"{path} is a link that leads nowhere; remove it, or allow to replace it "
            "(--overwrite, overwrite=True)"
        )
    if path.exists() and any(Path(item).exists() and path.samefile(item) for item in inputs):
        raise WriteError(f"{path} is read as an input too; choose another name for the output")
    if not path.parent.is_dir():
        raise WriteError(f"folder {path.parent} does not exist; create it first")
    if not os.access(path.parent, os.W_OK):
        raise WriteError(f"folder {path.parent} is not writable; choose another one")
    _check_apart(path)
    return path


def _check_apart(path: Path) -> None:
    """Refuse a name that is one of a database's own: what lies there may undo it, or be deleted."""
    for end in BESIDE_DATABASES:
        database = Path(str(path)[: -len(end)])
        if path.name.lower().endswith(end) and _is_database(database):
            raise WriteError(
                f"{path} has the name of a file that SQLite keeps, and deletes, beside {database}; "
                "choose another name"
            )


def _is_database(path: Path) -> bool:
    """Whether a file is one of SQLite, such as a ledger; one that may not be read could be."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(_DATABASE)) == _DATABASE
    except PermissionError:
        return True
    except OSError:
        return False


def check_targets(
    targets: Iterable[str | os.PathLike[str]],
    *,
    overwrite: bool,
    inputs: Iterable[str | os.PathLike[str]] = (),
) -> None:
    """Refuse targets that are not free, or that are one and the same file.

    Raises
    ------
    WriteError
        Naming the first that is wrong.
    """
    seen: set[str] = set()
    inputs = list(inputs)
    for target in targets:
        path = check_free(target, overwrite=overwrite, inputs=inputs)
        real = os.path.realpath(path).casefold()
        if real in seen:
            raise WriteError(f"two outputs have the same path {path}; give each its own name")
        seen.add(real)


@contextmanager
def written(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Path]:
    """Give a temporary path beside the target; move it there when the block has succeeded.

    Parameters
    ----------
    path : path-like
        Target.
    overwrite : bool
        Whether an existing target is replaced; without it a target that appears meanwhile
        stays as it is.

    Yields
    ------
    Path
        File to write, in a hidden folder of its own. It is removed when the block ends, or, if
        the process is killed, by the next write into the folder of the target.

    Raises
    ------
    WriteError
        If the file cannot be written or moved.
    """
    target = check_free(path, overwrite=overwrite)
    sweep(target.parent)
    try:
        folder, handle = held_folder(target.parent)
    except OSError as error:
        raise WriteError(f"cannot write beside {target}: {error.strerror}") from None
    try:
        yield folder / target.name
        _settle(folder / target.name, target, overwrite=overwrite)
    except WriteError:
        raise
    except OSError as error:
        raise WriteError(f"cannot write {target}: {error.strerror or 'unknown reason'}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def write_whole(
    path: str | os.PathLike[str], content: bytes, *, overwrite: bool = False, mode: int = _MODE
) -> None:
    """Write a file that has no name until it is whole.

    Guarantees
    ----------
    - A target that is replaced is the old file or the new one at any moment.
    - Where the system knows files without a name (Linux), a process that is killed leaves
      nothing behind, with one exception: a new file that is to replace another has a hidden name
      (``.psd-`` and 16 digits) beside it for a moment, since only what has a name can take
      another's. A kill in that moment leaves it there, whole and with its permissions.
    - Elsewhere a kill may leave a hidden folder, readable by its owner alone, with a part of the
      content; and an empty target where there are no hard links either.
    - What was left under a hidden name is removed by the next write into the same folder.

    Parameters
    ----------
    path : path-like
        Target.
    content : bytes
        All of it.
    overwrite : bool
        Whether an existing target is replaced.
    mode : int
        Permissions, less those that the process withholds.

    Raises
    ------
    WriteError
        If the file cannot be written or moved.
    """
    target = check_free(path, overwrite=overwrite)
    sweep(target.parent)
    try:
        handle = os.open(target.parent, os.O_TMPFILE | os.O_WRONLY, mode)
    except (OSError, AttributeError):
        with written(path, overwrite=overwrite) as temporary:
            temporary.touch(mode=mode)
            temporary.write_bytes(content)
        return
    try:
        with open(handle, "wb") as file:
            hold(handle)
            file.write(content)
            file.flush()
            os.fsync(handle)
            _give_name(Path(f"/proc/self/fd/{handle}"), target, overwrite=overwrite)
    except WriteError:
        raise
    except OSError as error:
        raise WriteError(f"cannot write {target}: {error.strerror or 'unknown reason'}") from None


def _give_name(source: Path, target: Path, *, overwrite: bool) -> None:
    """Link a file without a name to its target."""
    try:
        _link(source, target)
    except FileExistsError:
        if not overwrite:
            raise WriteError(f"{target} appeared while it was written; it was kept") from None
        _replace(source, target)
    _sync(target.parent)


def _replace(source: Path, target: Path) -> None:
    """Put a file without a name, which is held, in the place of another."""
    beside = hidden(target.parent)
    try:
        _link(source, beside)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _link(source: Path, target: Path) -> None:
    """Hard link to what a link under /proc stands for; `os.link` cannot follow it everywhere."""
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.link(source, target.name, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _settle(source: Path, target: Path, *, overwrite: bool) -> None:
    """Bring the bytes to the disk, then the name into the folder."""
    source.chmod(source.stat().st_mode & _MODE)
    _sync(source)
    if overwrite:
        source.replace(target)
    else:
        try:
            os.link(source, target)  # unlike rename, never replaces
        except FileExistsError:
            raise WriteError(f"{target} appeared while it was written; it was kept") from None
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            target.touch(exist_ok=False)
            source.replace(target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    """Flush a file or a folder to the disk; a folder that cannot be opened is left to the system.

    Windows opens no folders, and flushes only files that are open for writing.
    """
    try:
        handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    except PermissionError:
        if path.is_dir():
            return
        raise
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
