"""Files appear whole or not at all."""

import errno
import os
import shutil
import tempfile
from pathlib import Path

import pytest

import psd
from psd._util import atomic_write as files
from psd._util import atomic_write as leftovers
from psd._util.atomic_write import BESIDE_DATABASES, check_free, temporary_target, write_file
from psd.errors import WriteError
from psd.ledger.ledger import Ledger


def test_a_file_appears_when_the_block_has_ended(tmp_path):
    target = tmp_path / "out.bin"
    with temporary_target(target) as path:
        path.write_bytes(b"new")
        assert not target.exists()
        assert path.parent.parent == tmp_path
        assert path.name == "out.bin"
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]
    source, link = tmp_path / "points.csv", tmp_path / "link.csv"
    source.write_bytes(b"points")
    link.symlink_to(source)
    for name in (source, link, tmp_path / "." / "points.csv"):
        with pytest.raises(WriteError, match="input"):
            check_free(name, overwrite=True, inputs=[tmp_path / "gone.csv", source])
    assert check_free(str(source), overwrite=True, inputs=[tmp_path / "gone.csv"]) == source


def raising(error):
    def fails(*_):
        raise error

    return fails


def system_error(number):
    return OSError(number, os.strerror(number))


def write_block(target, content=b"new", then=lambda: None, **how):
    """Write a file by a block that ends with something."""
    with temporary_target(target, **how) as path:
        path.write_bytes(content)
        then()


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "out.bin"
    path.write_bytes(b"old")
    return path


def test_nothing_appears_when_the_block_raises(tmp_path):
    target = tmp_path / "out.bin"
    for error in (ValueError("no"), KeyboardInterrupt(), OSError(5, "no")):
        with pytest.raises((type(error), WriteError)):
            write_block(target, b"half", raising(error))
        assert list(tmp_path.iterdir()) == []
    with pytest.raises(WriteError, match=r"cannot write .*out.bin: No space left"):
        write_block(target, then=raising(system_error(errno.ENOSPC)))
    with pytest.raises(WriteError), temporary_target(target):
        pass
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_kept_unless_it_may_be_replaced(target):
    with pytest.raises(WriteError, match="exists"), temporary_target(target):
        pytest.fail("the block is not entered")
    with pytest.raises(RuntimeError):
        write_block(target, b"half", raising(RuntimeError()), overwrite=True)
    assert target.read_bytes() == b"old"
    assert list(target.parent.iterdir()) == [target]
    with temporary_target(target, overwrite=True) as path:
        path.write_bytes(b"new")
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("links", [True, False])
def test_a_target_that_appears_meanwhile_is_kept(tmp_path, monkeypatch, links):
    """On a file system without hard links too."""
    if not links:
        monkeypatch.setattr(files.os, "link", raising(system_error(errno.EPERM)))
        write_block(tmp_path / "free.bin")
        assert (tmp_path / "free.bin").read_bytes() == b"new"
        (tmp_path / "free.bin").unlink()
    target = tmp_path / "out.bin"
    with pytest.raises(WriteError, match="created by another process" if links else "File exists"):
        write_block(target, b"mine", lambda: target.write_bytes(b"theirs"))
    assert target.read_bytes() == b"theirs"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("step", ["link", "fsync", "open"])
def test_a_failure_of_the_last_steps_leaves_nothing_behind(tmp_path, monkeypatch, step):
    usual = getattr(os, step)

    def fails(*arguments, **named):
        if step == "open" and not str(arguments[0]).endswith("out.bin"):
            return usual(*arguments, **named)
        raise system_error(errno.EIO)

    with pytest.raises(WriteError, match="Input/output error"):
        write_block(tmp_path / "out.bin", then=lambda: monkeypatch.setattr(os, step, fails))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("overwrite", [False, True])
def test_places_where_no_file_can_be_are_refused_before_any_work(tmp_path, monkeypatch, overwrite):
    (tmp_path / "file").write_bytes(b"")
    for place, words in [
        ("missing/out.bin", r"folder .*missing does not exist"),
        (".", "is a folder"),
        ("file/out.bin", "does not exist"),
    ]:
        with pytest.raises(WriteError, match=words):
            check_free(tmp_path / place, overwrite=overwrite)
    monkeypatch.setattr(files.os, "access", lambda path, mode: False)
    with pytest.raises(WriteError, match="not writable"):
        check_free(tmp_path / "out.bin", overwrite=overwrite)


@pytest.mark.deep
def test_a_folder_without_permission_is_refused():
    """Seen by a user who is not root, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        child = os.fork()
        if not child:
            try:
                if os.geteuid() == 0:
                    os.setuid(65534)
                check_free(Path(folder, "out.bin"), overwrite=False)
            except WriteError as error:
                os._exit(7 if "not writable" in str(error) else 2)
            finally:
                os._exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.parametrize("to", ["elsewhere", "missing/elsewhere", "there", "a"])
def test_a_link_to_nowhere_is_a_target_that_exists_and_is_not_followed(tmp_path, to):
    (tmp_path / "there").write_bytes(b"there")
    links = [tmp_path / "a", tmp_path / "b"]
    for link in links:
        link.symlink_to(to)
    if to != "there":
        with pytest.raises(WriteError, match=r"a is a broken symbolic link; remove it"):
            check_free(links[0], overwrite=False)
    assert check_free(links[0], overwrite=True) == links[0]
    write_file(links[0], b"new", overwrite=True)
    write_block(links[1], overwrite=True)
    assert [link.is_symlink() for link in links] == [False, False]
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir())] == [b"new", b"new", b"there"]


@pytest.mark.parametrize("error", [PermissionError(errno.EPERM, "no"), KeyboardInterrupt()])
def test_a_replacement_that_fails_at_the_last_leaves_the_old_file(target, monkeypatch, error):
    def fails(*_):
        assert len(list(target.parent.iterdir())) == 2
        raise error

    monkeypatch.setattr(files.Path, "replace", fails)
    with pytest.raises((WriteError, KeyboardInterrupt)):
        write_file(target, b"new", overwrite=True)
    assert target.read_bytes() == b"old"
    assert list(target.parent.iterdir()) == [target]


def test_a_file_that_is_to_replace_another_is_held_until_it_has(target, monkeypatch):
    replace = files.Path.replace

    def late(path, to):
        write_file(target.with_name("other.bin"), b"by another process")
        return replace(path, to)

    monkeypatch.setattr(files.Path, "replace", late)
    write_file(target, b"new", overwrite=True)
    assert target.read_bytes() == b"new"
    assert sorted(path.name for path in target.parent.iterdir()) == ["other.bin", "out.bin"]


def test_what_says_what_was_spent_is_never_replaced(tmp_path, subtests):
    Ledger.create(tmp_path / "city.ledger")
    (tmp_path / "link").symlink_to(tmp_path / "city.ledger")
    for name in ("city.ledger", "link"):
        before = (tmp_path / name).read_bytes()
        with subtests.test(name):
            for write in (write_file, write_block):
                with pytest.raises(WriteError, match="is never overwritten"):
                    write(tmp_path / name, b"new", overwrite=True)
            assert (tmp_path / name).read_bytes() == before
    (tmp_path / "other.gpkg").write_bytes(b"SQLite format 3\0" + bytes(52) + b"GPKG")
    os.mkfifo(tmp_path / "pipe")
    for name in ("other.gpkg", "pipe"):
        write_file(tmp_path / name, b"new", overwrite=True)
        assert (tmp_path / name).read_bytes() == b"new"


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_a_database_keeps_beside_it_is_no_target(tmp_path, monkeypatch, overwrite):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.create("city.ledger").path.resolve()
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "city.parquet").write_bytes(b"SQLite")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for end in BESIDE_DATABASES:
        for path in (f"{ledger}{end}", f"city.ledger{end}", f"link/city.ledger{end}"):
            with pytest.raises(WriteError, match=f"{end} has a name that SQLite uses"):
                check_free(path, overwrite=overwrite)
        for free in ("city.parquet", "folder", "pipe", "missing", "city.ledger.", ""):
            check_free(f"{free}{end}", overwrite=overwrite)
    (tmp_path / "l").write_bytes(b"?")
    monkeypatch.setattr(files.Path, "open", raising(PermissionError()))
    with pytest.raises(WriteError, match="SQLite"):
        check_free(tmp_path / "l-journal", overwrite=overwrite)
    monkeypatch.setattr(files.Path, "open", raising(system_error(errno.EIO)))
    check_free(tmp_path / "l-journal", overwrite=overwrite)  # a disk that fails, and no ledger


def small_release():
    domain = psd.Domain(bounds=(0, 0, 4, 4))
    return psd.Release.from_counts(
        psd.decompositions.grid_tree(domain, 2), [1, 2, 3, 4], 1.0, domain=domain
    )


def refuse_folders(monkeypatch, *, posix_only):
    """As on Windows: no folder is opened, there are no locks and no files without a name."""
    open_ = os.open

    def refusing(path, *arguments, **named):
        if not isinstance(path, int) and os.path.isdir(path):
            raise system_error(errno.EACCES)
        return open_(path, *arguments, **named)

    monkeypatch.setattr(os, "open", refusing)
    monkeypatch.setattr(shutil, "_use_fd_functions", False)  # as shutil does on Windows
    for owner, name in posix_only:
        if owner is os:
            monkeypatch.delattr(owner, name)
        else:
            monkeypatch.setattr(owner, name, None)


POSIX_ONLY = {"nothing else": (), "windows": ((os, "O_TMPFILE"), (leftovers, "fcntl"))}


@pytest.mark.parametrize("system", POSIX_ONLY)
def test_files_are_written_where_no_folder_is_opened(tmp_path, monkeypatch, system):
    refuse_folders(monkeypatch, posix_only=POSIX_ONLY[system])
    for write in (write_file, write_block):
        for number in (0, 1):
            write(tmp_path / "out.bin", b"%d" % number, overwrite=number > 0)
            assert (tmp_path / "out.bin").read_bytes() == b"%d" % number
            assert list(tmp_path.iterdir()) == [tmp_path / "out.bin"]
        (tmp_path / "out.bin").unlink()
    release = small_release()
    release.save(tmp_path / "release")
    release.export(tmp_path / "cells.gpkg")
    Ledger.create(tmp_path / "ledger").register("rows", 1)
    assert psd.load(tmp_path / "release").total == release.total
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["cells.gpkg", "ledger", "release"]


def test_a_folder_appears_whole_and_takes_the_place_of_another(tmp_path):
    target = tmp_path / "out"
    for content in ("one", "two"):
        with files.temporary_folder(target, lambda: None) as made:
            (made / "in").mkdir()
            (made / "in" / "file").write_text(content)
            assert not target.exists() or (target / "in" / "file").read_text() == "one"
        assert (target / "in" / "file").read_text() == content
        assert list(tmp_path.iterdir()) == [target]
    assert target.stat().st_mode & 0o700 == 0o700


def test_what_the_system_refuses_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "held_folder", raising(OSError(errno.EROFS, "Read-only")))
    folder = files.temporary_folder(tmp_path / "out", lambda: None)
    with pytest.raises(WriteError, match=r"cannot write beside .*out: Read-only"), folder:
        pytest.fail("there is no folder")
    (tmp_path / "file").write_bytes(b"1")
    monkeypatch.setattr(os, "open", raising(PermissionError()))
    files._sync(tmp_path)  # Windows opens no folder
    with pytest.raises(PermissionError):
        files._sync(tmp_path / "file")


def test_a_folder_stays_if_a_new_one_fails_is_refused_or_cannot_take_its_place(
    tmp_path, monkeypatch
):
    target, checks = tmp_path / "out", iter(range(9))
    target.mkdir()
    (target / "file").write_text("old")

    def refuses_later():
        if next(checks):
            raise WriteError("changed meanwhile")

    def write(check=lambda: None):
        with files.temporary_folder(target, check) as made:
            (made / "file").write_text("new")
            raise_in_block()

    raise_in_block = raising(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        write()
    raise_in_block = raising(OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(WriteError, match="No space left on device"):
        write()
    raise_in_block = str
    with pytest.raises(WriteError, match="changed meanwhile"):
        write(refuses_later)
    real = Path.rename

    def rename(path, to):
        if path.name == "new":
            raise OSError(errno.EACCES, "Permission denied")
        return real(path, to)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(WriteError, match=r"cannot write .*out: Permission denied"):
        write()
    assert (target / "file").read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
