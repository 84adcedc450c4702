"""Files appear whole or not at all."""

import errno
import os
import shutil

import pytest

import psd
from psd._util import abandoned_files as leftovers
from psd._util import atomic_write as files
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


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), OSError(5, "no")])
def test_nothing_appears_when_the_block_raises(tmp_path, error):
    def attempt():
        with temporary_target(tmp_path / "out.bin") as path:
            path.write_bytes(b"half")
            raise error

    with pytest.raises((type(error), WriteError)):
        attempt()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_a_write_error(tmp_path):
    def attempt():
        with temporary_target(tmp_path / "out.bin"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(WriteError, match=r"cannot write .*out.bin: No space left"):
        attempt()
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_kept_unless_it_may_be_replaced(tmp_path):
    target = tmp_path / "out.bin"
    target.write_bytes(b"old")
    with pytest.raises(WriteError, match="exists"), temporary_target(target):
        pytest.fail("the block is not entered")
    assert target.read_bytes() == b"old"
    with temporary_target(target, overwrite=True) as path:
        path.write_bytes(b"new")
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


def test_a_failed_replacement_leaves_the_old_file(tmp_path):
    target = tmp_path / "out.bin"
    target.write_bytes(b"old")

    def attempt():
        with temporary_target(target, overwrite=True) as path:
            path.write_bytes(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        attempt()
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_target_that_appears_meanwhile_is_kept(tmp_path):
    target = tmp_path / "out.bin"

    def attempt():
        with temporary_target(target) as path:
            path.write_bytes(b"mine")
            target.write_bytes(b"theirs")

    with pytest.raises(WriteError, match="created by another process"):
        attempt()
    assert target.read_bytes() == b"theirs"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("step", ["link", "fsync"])
def test_a_failure_of_the_last_steps_leaves_nothing_behind(tmp_path, monkeypatch, step):
    def fails(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def attempt():
        with temporary_target(tmp_path / "out.bin") as path:
            path.write_bytes(b"new")
            monkeypatch.setattr(files.os, step, fails)

    with pytest.raises(WriteError, match="Input/output error"):
        attempt()
    assert list(tmp_path.iterdir()) == []


def test_a_block_that_wrote_nothing_is_a_write_error(tmp_path):
    with pytest.raises(WriteError), temporary_target(tmp_path / "out.bin"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("overwrite", [False, True])
def test_places_where_no_file_can_be_are_refused_before_any_work(tmp_path, overwrite):
    with pytest.raises(WriteError, match=r"folder .*missing does not exist"):
        check_free(tmp_path / "missing" / "out.bin", overwrite=overwrite)
    with pytest.raises(WriteError, match="is a folder"):
        check_free(tmp_path, overwrite=overwrite)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(WriteError, match="does not exist"):
        check_free(tmp_path / "file" / "out.bin", overwrite=overwrite)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write into every folder")
def test_a_folder_without_permission_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(WriteError, match="not writable"):
            check_free(tmp_path / "out.bin", overwrite=False)
    finally:
        tmp_path.chmod(0o700)


def test_a_folder_that_refuses_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(files.os, "access", lambda path, mode: False)
    with pytest.raises(WriteError, match="not writable"):
        check_free(tmp_path / "out.bin", overwrite=False)


@pytest.mark.parametrize("to", ["elsewhere", "missing/elsewhere", "out.bin"])
def test_a_link_to_nowhere_is_a_target_that_exists(tmp_path, to):
    target = tmp_path / "out.bin"
    target.symlink_to(to)
    with pytest.raises(WriteError, match=r"out\.bin is a broken symbolic link; remove it"):
        check_free(target, overwrite=False)
    assert check_free(target, overwrite=True) == target


@pytest.mark.parametrize("to", ["elsewhere", "missing/elsewhere", "there"])
def test_a_link_is_replaced_and_not_followed(tmp_path, to):
    (tmp_path / "there").write_bytes(b"there")
    links = [tmp_path / "a", tmp_path / "b"]
    for link in links:
        link.symlink_to(to)
    write_file(links[0], b"new", overwrite=True)
    with temporary_target(links[1], overwrite=True) as path:
        path.write_bytes(b"new")
    assert [link.is_symlink() for link in links] == [False, False]
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir())] == [b"new", b"new", b"there"]


@pytest.mark.parametrize("error", [PermissionError(errno.EPERM, "no"), KeyboardInterrupt()])
def test_a_replacement_that_fails_at_the_last_leaves_the_old_file(tmp_path, monkeypatch, error):
    target = tmp_path / "out.bin"
    target.write_bytes(b"old")

    def fails(*_):
        assert len(list(tmp_path.iterdir())) == 2
        raise error

    monkeypatch.setattr(files.Path, "replace", fails)
    with pytest.raises((WriteError, KeyboardInterrupt)):
        write_file(target, b"new", overwrite=True)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_that_is_to_replace_another_is_held_until_it_has(tmp_path, monkeypatch):
    target = tmp_path / "out.bin"
    target.write_bytes(b"old")
    replace = files.Path.replace

    def late(path, to):
        write_file(tmp_path / "other.bin", b"by another process")
        return replace(path, to)

    monkeypatch.setattr(files.Path, "replace", late)
    write_file(target, b"new", overwrite=True)
    assert target.read_bytes() == b"new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.bin", "out.bin"]


@pytest.mark.parametrize("end", BESIDE_DATABASES)
@pytest.mark.parametrize("overwrite", [False, True])
def test_what_a_database_keeps_beside_it_is_no_target(tmp_path, monkeypatch, end, overwrite):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.create("city.ledger").path.resolve()
    (tmp_path / "link").symlink_to(tmp_path)
    for path in (f"{ledger}{end}", f"city.ledger{end}", f"link/city.ledger{end}"):
        with pytest.raises(WriteError, match=f"{end} has a name that SQLite uses"):
            check_free(path, overwrite=overwrite)
    (tmp_path / "city.parquet").write_bytes(b"SQLite")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for free in ("city.parquet", "folder", "pipe", "missing", "city.ledger.", ""):
        check_free(f"{free}{end}", overwrite=overwrite)


def test_a_file_that_may_not_be_read_could_be_a_database(tmp_path, monkeypatch):
    (tmp_path / "l").write_bytes(b"?")

    def refuses(*_):
        raise PermissionError

    monkeypatch.setattr(files.Path, "open", refuses)
    with pytest.raises(WriteError, match="SQLite"):
        check_free(tmp_path / "l-journal", overwrite=False)


def test_a_ledger_outlives_a_release_in_any_place(tmp_path):
    """SQLite would take the release for what a crash left, and delete it."""
    ledger = Ledger.create(tmp_path / "city.ledger")
    domain = psd.Domain(bounds=(0, 0, 4, 4))
    made = psd.Release.from_counts(psd.grid_tree(domain, 2), [1, 2, 3, 4], 1.0, domain=domain)
    with pytest.raises(WriteError):
        made.save(tmp_path / "city.ledger-journal")
    ledger.register("rows", 1)
    assert list(tmp_path.iterdir()) == [ledger.path]


def test_free_places_are_given_back_as_paths(tmp_path):
    assert check_free(str(tmp_path / "out.bin"), overwrite=False) == tmp_path / "out.bin"


def test_an_input_is_never_overwritten_under_any_name(tmp_path):
    source, link = tmp_path / "points.csv", tmp_path / "link.csv"
    source.write_bytes(b"points")
    link.symlink_to(source)
    for name in (source, link, tmp_path / "." / "points.csv"):
        with pytest.raises(WriteError, match="input"):
            check_free(name, overwrite=True, inputs=[tmp_path / "gone.csv", source])
    assert check_free(source, overwrite=True, inputs=[tmp_path / "gone.csv"]) == source


def test_a_file_system_without_hard_links_is_written_to_all_the_same(tmp_path, monkeypatch):
    def no_links(*_):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(files.os, "link", no_links)
    with temporary_target(tmp_path / "out.bin") as path:
        path.write_bytes(b"new")
    assert (tmp_path / "out.bin").read_bytes() == b"new"

    def attempt():
        with temporary_target(tmp_path / "late.bin") as path:
            path.write_bytes(b"new")
            (tmp_path / "late.bin").write_bytes(b"other")

    with pytest.raises(WriteError):
        attempt()
    assert (tmp_path / "late.bin").read_bytes() == b"other"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["late.bin", "out.bin"]


def refuse_folders(monkeypatch, *, posix_only):
    """As on Windows: no folder is opened, there are no locks and no files without a name."""
    open_ = os.open

    def refusing(path, *arguments, **named):
        if not isinstance(path, int) and os.path.isdir(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
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
@pytest.mark.parametrize("write", ["whole", "block"])
@pytest.mark.parametrize("exists", [False, True])
def test_files_are_written_where_no_folder_is_opened(tmp_path, monkeypatch, system, write, exists):
    target = tmp_path / "out.bin"
    if exists:
        target.write_bytes(b"old")
    refuse_folders(monkeypatch, posix_only=POSIX_ONLY[system])
    if write == "whole":
        write_file(target, b"new", overwrite=exists)
    else:
        with temporary_target(target, overwrite=exists) as path:
            path.write_bytes(b"new")
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("system", POSIX_ONLY)
def test_releases_and_ledgers_are_saved_where_no_folder_is_opened(tmp_path, monkeypatch, system):
    refuse_folders(monkeypatch, posix_only=POSIX_ONLY[system])
    domain = psd.Domain(bounds=(0, 0, 4, 4))
    release = psd.Release.from_counts(psd.grid_tree(domain, 2), [1, 2, 3, 4], 1.0, domain=domain)
    release.save(tmp_path / "release")
    release.export(tmp_path / "cells.gpkg")
    Ledger.create(tmp_path / "ledger").register("rows", 1)
    assert psd.Release.load(tmp_path / "release").total == release.total
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["cells.gpkg", "ledger", "release"]


def test_a_file_that_may_not_be_opened_is_still_an_error(tmp_path, monkeypatch):
    open_ = os.open

    def refusing(path, *arguments, **named):
        if str(path).endswith("out.bin"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return open_(path, *arguments, **named)

    def attempt():
        with temporary_target(tmp_path / "out.bin") as path:
            path.write_bytes(b"new")
            monkeypatch.setattr(os, "open", refusing)

    with pytest.raises(WriteError, match="Permission denied"):
        attempt()
    assert list(tmp_path.iterdir()) == []
