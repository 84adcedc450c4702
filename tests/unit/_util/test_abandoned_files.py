"""What killed processes leave under hidden names goes with the next write; what is held stays."""

import errno
import os

import pytest

from psd._util import atomic_write as leftovers
from psd._util.atomic_write import held_folder, hidden, hold, sweep, temporary_target, write_file
from psd.errors import WriteError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def whole(folder):
    write_file(folder / "new", b"new")


def by_block(folder):
    with temporary_target(folder / "new") as path:
        path.write_bytes(b"new")


@pytest.mark.parametrize("write", [whole, by_block])
def test_the_next_write_removes_what_nobody_holds(tmp_path, write):
    file = hidden(tmp_path)
    folder, handle = held_folder(tmp_path)
    (folder / "half").write_bytes(b"writing")
    with file.open("wb") as held:
        hold(held.fileno())
        write(tmp_path)
        assert names(tmp_path) == sorted([folder.name, file.name, "new"])
        assert names(folder) == ["half"]
    os.close(handle)  # as the end of its process does
    (tmp_path / "new").unlink()
    write(tmp_path)
    assert names(tmp_path) == ["new"]


def test_blocks_in_one_folder_leave_each_other_alone(tmp_path):
    with temporary_target(tmp_path / "a") as first, temporary_target(tmp_path / "b") as second:
        whole(tmp_path)
        first.write_bytes(b"a")
        second.write_bytes(b"b")
    assert names(tmp_path) == ["a", "b", "new"]


def test_other_names_are_left_alone(tmp_path):
    digits = "0123456789abcdef"
    others = [f".psd-{end}" for end in ("settings", digits[:-1], digits + "0", digits.upper())]
    for name in others:
        (tmp_path / name).write_bytes(b"")
    link = hidden(tmp_path)
    link.symlink_to(tmp_path / ".psd-settings")
    whole(tmp_path)
    assert names(tmp_path) == sorted([*others, link.name, "new"])
    made = {hidden(tmp_path) for _ in range(100)}
    assert len(made) == 100
    assert all(leftovers._NAME.fullmatch(path.name) and path.parent == tmp_path for path in made)


def test_a_folder_that_was_swept_before_it_is_held_is_made_again(tmp_path, monkeypatch):
    swept, open_ = [], os.open

    def late(path, flags, **named):
        """Another process comes in between: before the folder is open, then before it is held."""
        if not swept:
            swept.append(path)
            sweep(tmp_path)
        handle = open_(path, flags, **named)
        if len(swept) == 1 and path not in swept:
            swept.append(path)
            sweep(tmp_path)
        return handle

    monkeypatch.setattr(leftovers.os, "open", late)
    folder, handle = held_folder(tmp_path)
    os.close(handle)
    assert len(swept) == 2
    assert names(tmp_path) == [folder.name]
    assert folder not in swept


def test_a_folder_that_cannot_be_held_is_not_left(tmp_path, monkeypatch):
    def fails(*_):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(leftovers.os, "open", fails)
    with pytest.raises(WriteError, match="Too many open files"), temporary_target(tmp_path / "new"):
        pytest.fail("the block is not entered")
    assert names(tmp_path) == []


@pytest.mark.parametrize("lacking", ["module", "locks"])
def test_where_there_are_no_locks_nothing_is_taken_for_left(tmp_path, monkeypatch, lacking):
    def fails(*_):
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    left = hidden(tmp_path)
    left.write_bytes(b"left")
    if lacking == "module":
        monkeypatch.setattr(leftovers, "fcntl", None)
    else:
        monkeypatch.setattr(leftovers.fcntl, "flock", fails)
    whole(tmp_path)
    (tmp_path / "new").unlink()
    by_block(tmp_path)
    assert names(tmp_path) == sorted([left.name, "new"])
