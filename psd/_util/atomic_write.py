"""Atomic file writes: a file appears complete or not at all.

Until then it has a hidden name beside its target, with a lock that ends with the process; the next
write removes such names without a lock. Age and process numbers would be worse signs: large files
take long, containers share numbers. Where locks end at each machine of a network file system, this
may remove a file that another machine is writing.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from psd._util.file_endings import file_of
from psd.errors import PsdError, WriteError

__all__ = [
    "BESIDE_DATABASES",
    "check_free",
    "check_targets",
    "temporary_folder",
    "temporary_target",
    "write_file",
]

try:
    import fcntl
except ImportError:  # Windows has no such locks: nothing is removed there
    fcntl = None  # type: ignore[assignment]


# Eight random bytes: names that users choose do not look like these.
_NAME = re.compile(r"\.psd-[0-9a-f]{16}")


def hidden(folder: Path) -> Path:
    """Return an unused hidden name in a folder."""
    return folder / f".psd-{secrets.token_hex(8)}"


def open_plain(path: str, flags: int) -> int:
    """Open a file, but not through a symbolic link, and without waiting for a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def hold(handle: int) -> None:
    """Lock an open file or folder until it is closed, where the file system has locks."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)


def held_folder(above: Path) -> tuple[Path, int | None]:
    """Make and lock a hidden folder for its owner alone; also its handle, None on Windows."""
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
    found: list[Path] = []
    with suppress(OSError):
        found += [path for path in folder.iterdir() if _NAME.fullmatch(path.name)]
    for path in found if fcntl is not None else []:
        with suppress(OSError):
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
            finally:
                os.close(handle)


BESIDE_DATABASES = ("-journal", "-wal", "-shm")
"""Endings of the files that SQLite keeps beside a database, such as a ledger."""

# Errors of file systems without hard links, such as exFAT and some network shares.
_NO_HARD_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)

_DATABASE = b"SQLite format 3\0"

# Application ids of ledgers and of states of streams, which stand behind 68 bytes; the last two are
# those of older formats.
_PRIVATE_DATABASES = (b"psLe", b"psSt", b"psdL", b"psdS")

# Only the owner may change a published file, even if the umask would allow more.
_MODE = 0o644


def check_free(
    path: str | os.PathLike[str],
    *,
    overwrite: bool,
    inputs: Iterable[str | os.PathLike[str]] = (),
) -> Path:
    """Refuse a target that exists, or whose folder does not, before any work is done.

    A link is a target; `overwrite` replaces it, not its file, and never one of `inputs`.
    """
    path = Path(path)
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "this is not a valid file name"
        raise WriteError(f"cannot write {path}: {reason}", path=path) from None
    if path.is_dir():
        raise WriteError(f"{path} is a folder; give the name of a file in it", path=path)
    if path.exists() and not overwrite:
        raise WriteError(f"{path} exists; choose another name, or pass overwrite=True", path=path)
    if path.is_symlink() and not overwrite:
        raise WriteError(
            f"{path} is a broken symbolic link; remove it, or pass overwrite=True to replace it",
            path=path,
        )
    if path.exists() and _is_private_database(path):
        raise WriteError(
            f"{path} is a ledger or the state of a stream, which says what was spent and is never "
            "overwritten; choose another name",
            path=path,
        )
    read = [file_of(item) for item in inputs]
    if path.exists() and any(os.path.exists(item) and path.samefile(item) for item in read):
        raise WriteError(
            f"{path} is read as an input too; choose another name for the output", path=path
        )
    if not path.parent.is_dir():
        raise WriteError(f"folder {path.parent} does not exist; create it first", path=path)
    if not os.access(path.parent, os.W_OK):
        raise WriteError(f"folder {path.parent} is not writable; choose another one", path=path)
    # Refuse a name that SQLite uses beside a database: it would read or delete the file.
    for end in BESIDE_DATABASES:
        database = Path(str(path)[: -len(end)])
        if path.name.lower().endswith(end) and _is_database(database):
            raise WriteError(
                f"{path} has a name that SQLite uses for its own files beside {database}; choose "
                "another name",
                path=path,
            )
    return path


def _is_private_database(path: Path) -> bool:
    """Whether a file is a ledger or the state of a stream."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            start = file.read(72)
    except OSError:
        return False
    return start.startswith(_DATABASE) and start[68:72] in _PRIVATE_DATABASES


def _is_database(path: Path) -> bool:
    """Whether a file is an SQLite database, or might be because it cannot be read."""
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
    """Refuse targets that are not free, or that are the same file."""
    seen: set[str] = set()
    inputs = list(inputs)
    for target in targets:
        path = check_free(target, overwrite=overwrite, inputs=inputs)
        real = os.path.realpath(path).casefold()
        if real in seen:
            raise WriteError(
                f"two outputs have the same path {path}; give each its own name", path=path
            )
        seen.add(real)


@contextmanager
def temporary_target(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Path]:
    """Give a temporary path in a hidden folder beside the target; move it there on success.

    Without `overwrite`, a target that appears meanwhile is left as it is.
    """
    target = check_free(path, overwrite=overwrite)
    with _hidden_folder(target) as folder:
        source = folder / target.name
        yield source
        # The bytes are on the disk before the file gets its name.
        source.chmod(source.stat().st_mode & _MODE)
        _sync(source)
        if overwrite:
            source.replace(target)
        else:
            try:
                os.link(source, target)  # unlike rename, never replaces
            except FileExistsError:
                raise _appeared(target) from None
            except OSError as error:
                if error.errno not in _NO_HARD_LINKS:
                    raise
                target.touch(exist_ok=False)
                source.replace(target)
        _sync(target.parent)


@contextmanager
def temporary_folder(target: Path, check: Callable[[], None]) -> Iterator[Path]:
    """Give an empty folder beside the target; move it there, whole, when the block succeeds.

    `check` refuses targets, before the block and after it. A folder that is replaced is moved away
    first, so for a moment there is none, and comes back if the new one cannot take its place.
    """
    check()
    with _hidden_folder(target) as above:
        made, old = above / "new", above / "old"
        made.mkdir()
        yield made
        for path in [*made.rglob("*"), made]:
            _sync(path)
        check()
        if target.exists():
            shutil.copymode(target, made)
            target.rename(old)
        try:
            made.rename(target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise
        _sync(target.parent)


@contextmanager
def _hidden_folder(target: Path) -> Iterator[Path]:
    """Give a hidden folder beside the target; faults of the system name the target."""
    sweep(target.parent)
    try:
        folder, handle = held_folder(target.parent)
    except OSError as error:
        raise WriteError(f"cannot write beside {target}: {error.strerror}", path=target) from None
    try:
        yield folder
    except PsdError:  # a refusal, some of which are errors of the system too
        raise
    except OSError as error:
        raise WriteError(
            f"cannot write {target}: {error.strerror or 'unknown reason'}", path=target
        ) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def write_file(
    path: str | os.PathLike[str],
    content: bytes | bytearray | Iterator[bytes],
    *,
    overwrite: bool = False,
    mode: int = _MODE,
) -> None:
    """Write a file that has no name until it is complete; the umask withholds parts of its mode.

    The content is bytes, or an iterator of its parts, which need not be in memory together.

    P1. A target that is replaced is the old file or the new one at any moment.

    P2. On systems with unnamed files (Linux) a killed process leaves nothing behind, with one
    exception: a new file that replaces another has a hidden name (``.psd-`` and 16 digits) beside
    it for a moment, since only a named file can replace another. A kill in that moment leaves it
    there, complete and with its permissions.

    P3. On other systems a kill may leave a hidden folder, readable by its owner alone, with a part
    of the content; and an empty target if there are no hard links either.

    P4. Files under hidden names of killed processes are removed by the next write into the folder.
    """
    target = check_free(path, overwrite=overwrite)
    sweep(target.parent)
    parts = iter([content]) if isinstance(content, bytes | bytearray) else content
    try:
        handle = os.open(target.parent, os.O_TMPFILE | os.O_WRONLY, mode)
    except (OSError, AttributeError):
        with temporary_target(path, overwrite=overwrite) as temporary:
            temporary.touch(mode=mode)
            with temporary.open("wb") as file:
                file.writelines(parts)
        return
    try:
        with open(handle, "wb") as file:
            hold(handle)
            file.writelines(parts)
            file.flush()
            os.fsync(handle)
            _give_name(Path(f"/proc/self/fd/{handle}"), target, overwrite=overwrite)
    except PsdError:  # a refusal, some of which are errors of the system too
        raise
    except OSError as error:
        raise WriteError(
            f"cannot write {target}: {error.strerror or 'unknown reason'}", path=target
        ) from None


def _appeared(target: Path) -> WriteError:
    """Error of a target that came while its content was written."""
    return WriteError(
        f"{target} was created by another process meanwhile; it was not replaced", path=target
    )


def _give_name(source: Path, target: Path, *, overwrite: bool) -> None:
    """Link an unnamed file to its target."""
    try:
        _link(source, target)
    except FileExistsError:
        if not overwrite:
            raise _appeared(target) from None
        # Replace a file by an unnamed one, which is locked.
        beside = hidden(target.parent)
        try:
            _link(source, beside)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    _sync(target.parent)


def _link(source: Path, target: Path) -> None:
    """Link to the file behind a link under /proc, which plain `os.link` does not always follow."""
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.link(source, target.name, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _sync(path: Path) -> None:
    """Flush a file or a folder to the disk; not folders that cannot be opened, as on Windows."""
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
