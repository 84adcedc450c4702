"""psd tally, psd merge, and builds of their tallies: outcomes, refusals, and nothing said."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import psd
from support.cli_runner import cli, fails, files, passes

BOUNDS = ("--bounds", 126.4, 37, 127.6, 38)
USER = ("--user", "user_id", "--max-contributions", 4)
SURE = ("--epsilon", 1000, "--method", "grid", "--set", "size=4")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three months of visits, and a folder for tallies."""
    return visits(tmp_path, monkeypatch)


def test_tallies_of_rounded_coordinates(folder):
    rounded = ("--coordinate-resolution", "1e-4")
    for month in (1, 2):
        passes("tally", f"v{month}.csv", "-o", f"t/{month}", *BOUNDS, *rounded)
    passes("tally", "v3.csv", "-o", "t/3", *BOUNDS)
    fails(8, "merge", "t/1", "t/3", "-o", "t/13")
    passes("build", "t/1", "t/2", "-o", "r.psd.parquet", *SURE)
    assert psd.Release.load("r.psd.parquet").domain.coordinate_resolution == "0.0001"
    told = fails(2, "build", "t/1", "-o", "s.psd.parquet", *SURE, *rounded)
    assert "--coordinate-resolution must be left out for tallies" in told


def visits(tmp_path, monkeypatch):
    """Files of three months."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t").mkdir()
    rng = np.random.default_rng(5)
    for month in (1, 2, 3):
        lines = [
            f"u{u},{x:.4f},{y:.4f},2024-0{month}-1{d}T10:00:00"
            for u, x, y, d in zip(
                rng.integers(0, 9, 80),
                rng.uniform(126.3, 127.7, 80),
                rng.uniform(36.9, 38.1, 80),
                rng.integers(0, 10, 80),
                strict=True,
            )
        ]
        (tmp_path / f"v{month}.csv").write_text("user_id,lon,lat,time\n" + "\n".join(lines) + "\n")
    return tmp_path


def counts(path):
    return psd.Release.load(path).tree.count.tolist()


def test_tallies_of_parts_give_the_release_of_the_whole(folder):
    for month in (1, 2, 3):
        told = passes("tally", f"v{month}.csv", "-o", f"{month}.tally", *BOUNDS)
        assert told == f"wrote {month}.tally (PRIVATE)\n"
    passes("build", "1.tally", "2.tally", "3.tally", "-o", "parts", *SURE)
    passes("build", "v1.csv", "v2.csv", "v3.csv", "-o", "whole", *SURE, *BOUNDS)
    assert counts("parts") == counts("whole")
    assert {(folder / f"{n}.tally").stat().st_mode & 0o777 for n in (1, 2, 3)} == {0o600}


def test_merged_step_by_step(folder):
    for month in (1, 2, 3):
        passes("tally", f"v{month}.csv", "-o", f"{month}.tally", *BOUNDS, *USER)
    told = passes("merge", "1.tally", "2.tally", "-o", "m.tally")
    assert told == "wrote m.tally (PRIVATE)\n(per user, at most 8 records of each)\n"
    assert (folder / "m.tally").stat().st_mode & 0o777 == 0o600
    told = passes("build", "m.tally", "3.tally", "-o", "r", "--epsilon", 1)
    assert told == "wrote r: auto, epsilon 1 per user, at most 12 records of each\n"
    assert psd.Release.load("r").unit.max_contributions == 12
    assert "would count twice" in fails(8, "build", "m.tally", "1.tally", "-o", "x", *SURE)
    assert "would count twice" in fails(8, "merge", "m.tally", "1.tally", "-o", "x")
    assert not (folder / "x").exists()


def test_carried_users_keep_the_bound(folder):
    how = (*BOUNDS, *USER, "--key", "key")
    passes("tally", "v1.csv", "v2.csv", "v3.csv", "-o", "whole.tally", *how)
    for month in (1, 2, 3):
        passes("tally", f"v{month}.csv", "-o", f"c{month}", *how, "--carry-users")
    passes("build", "whole.tally", "-o", "whole", *SURE)
    passes("build", "c1", "c2", "c3", "-o", "carried", *SURE)
    assert counts("whole") == counts("carried")
    assert {psd.Release.load(p).unit.max_contributions for p in ("whole", "carried")} == {4}
    assert (folder / "key").stat().st_mode & 0o777 == 0o600
    release = (folder / "carried").read_bytes()
    secrets = ((folder / "key").read_bytes().strip(), b"blake2b", b"v1.csv", b"u3")
    assert not [secret for secret in secrets if secret in release]


def test_files_that_have_their_tally_are_not_read_again(folder):
    how = ("--into", "t", *BOUNDS, *USER, "--key", "key", "--carry-users")
    told = passes("tally", "v1.csv", "v2.csv", *how)
    assert told == "wrote t/v1.csv.tally (PRIVATE)\nwrote t/v2.csv.tally (PRIVATE)\n"
    before = (folder / "t" / "v1.csv.tally").read_bytes()
    (folder / "t" / "v2.csv.tally").unlink()
    told = passes("tally", "v?.csv", *how)
    assert told == "wrote t/v2.csv.tally (PRIVATE)\nwrote t/v3.csv.tally (PRIVATE)\n"
    assert (folder / "t" / "v1.csv.tally").read_bytes() == before
    assert passes("tally", "v?.csv", *how) == ""
    for change in (("--carry-users",), ("--max-contributions", 3)):
        other = [*how]
        if change == ("--carry-users",):
            other.remove("--carry-users")
        elif change[0] in other:
            other[other.index(change[0]) + 1] = change[1]
        else:
            other += change
        assert "other options" in fails(8, "tally", "v?.csv", *other)
    with (folder / "v1.csv").open("a") as file:
        file.write("u1,127,37.5,2024-01-01T00:00:00\n")
    assert "does not belong to the present content of v1.csv" in fails(8, "tally", "v?.csv", *how)
    assert len(files(folder / "t")) == 3


def test_slices_are_counted_apart(folder):
    times = ("--read", "time=time", "--read", "time_zone=Asia/Seoul")
    times += ("--slices", "2024-01..2024-04")
    for month in (1, 2, 3):
        passes("tally", f"v{month}.csv", "-o", f"{month}.tally", *BOUNDS, *times)
    told = passes("build", "1.tally", "2.tally", "3.tally", "-o", "parts", *SURE)
    assert told == "wrote parts: grid, 4 slices, epsilon 1000 per record\n"
    passes("build", "v1.csv", "v2.csv", "v3.csv", "-o", "whole", *SURE, *BOUNDS, *times)
    parts, whole = psd.SeriesRelease.load("parts"), psd.SeriesRelease.load("whole")
    for name in whole:
        assert parts[name].tree.count.tolist() == whole[name].tree.count.tolist()
    assert whole["2024-04"].total < 1
    passes("tally", "v1.csv", "-o", "other", *BOUNDS)
    assert "different time slices" in fails(8, "merge", "1.tally", "other", "-o", "x")


def test_tallies_of_a_pattern_or_a_folder_are_tallies(folder):
    (folder / "in").mkdir()
    for month in (1, 2):
        passes("tally", f"v{month}.csv", "-o", f"in/{month}.tally", *BOUNDS)
    as_records = ("--read", "x=count", "--read", "y=row", "--bounds", 0, 0, 9, 9)
    for number, data in enumerate(("in/*.tally", "in", "in/[1]*")):
        passes("build", data, "-o", f"r{number}", *SURE)
        fails(2, "build", data, "-o", "x", "--epsilon", 1, *as_records)
    assert "tally the records first" in fails(2, "build", "in", "v3.csv", "-o", "x", *SURE)


def test_a_tally_for_one_method_is_smaller_and_refuses_others(folder):
    fine = ("--method", "quadtree", "--set", "height=3")
    passes("tally", "v1.csv", "-o", "coarse", *BOUNDS, *fine)
    passes("tally", "v1.csv", "-o", "full", *BOUNDS)
    sure = ("--epsilon", 1000, "--method", "quadtree", "--set", "budget=leaf")
    passes("build", "coarse", "-o", "a", *sure, "--set", "height=3")
    passes("build", "full", "-o", "b", *sure, "--set", "height=3")
    assert counts("a") == counts("b")
    assert "divide no finer" in fails(2, "build", "coarse", "-o", "c", *sure, "--set", "height=4")
    assert "steps of the lattice" in fails(8, "merge", "coarse", "full", "-o", "x")


def test_a_kept_tally_is_one_that_merges(folder):
    build = ("build", "-o", "r", "--epsilon", 1, *BOUNDS, *USER)
    passes(*build, "v1.csv", "--keep-tally", "kept")
    passes("tally", "v2.csv", "-o", "2.tally", *BOUNDS, *USER)
    passes("build", "kept", "2.tally", "-o", "both", "--epsilon", 1, "--keep-tally", "k2")
    assert psd.Release.load("both").unit.max_contributions == 8
    out = passes("evaluate", "both", "v1.csv", "v2.csv", "--tally", "k2")
    assert "bounding" in out
    assert "is of another release" in fails(8, "evaluate", "both", "v1.csv", "--tally", "kept")
    assert "repeated" in fails(8, "merge", "kept", "k2", "-o", "x")
    passes("tally", "v1.csv", "-o", "1.tally", *BOUNDS, *USER)
    assert "of the same file" in fails(8, "merge", "kept", "1.tally", "-o", "x")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Tallies of many kinds, for the refusals."""
    with pytest.MonkeyPatch.context() as patch:
        made = visits(tmp_path_factory.mktemp("prepared"), patch)
        make_tallies()
    (made / "nokey").write_text("secret-8642")
    (made / "nokey").chmod(0o600)
    return made


def make_tallies():
    """Tallies of many kinds in the working folder."""
    passes("tally", "v1.csv", "-o", "a", *BOUNDS)
    passes("tally", "v2.csv", "-o", "b", *BOUNDS)
    passes("tally", "v2.csv", "-o", "other", "--bounds", 126, 37, 128, 38)
    passes("tally", "v2.csv", "-o", "user", *BOUNDS, *USER)
    for n in (1, 2):
        carried = (*BOUNDS, *USER, "--key", f"key{n}", "--carry-users")
        passes("tally", f"v{n}.csv", "-o", f"carried{n}", *carried)
    os.symlink("v1.csv", "link.csv")
    passes("tally", "link.csv", "-o", "linked", *BOUNDS)
    content = Path("a").read_bytes()
    middle = len(content) // 2
    broken = content[:8] + bytes([content[8] ^ 255]) + content[9:]
    for name, damaged in (("cut", content[:middle]), ("broken", broken)):
        Path(name).write_bytes(damaged)


REFUSED = {
    "the domain of the release": (8, "bounds, CRS, lattice or", "build a other -o x --epsilon 1"),
    "the same tally": (8, "repeated", "build a a -o x --epsilon 1"),
    "a link": (8, "of the same file", "build a linked -o x --epsilon 1"),
    "cut short": (8, "is not a tally", "merge cut b -o x"),
    "damaged": (8, "is damaged", "merge broken b -o x"),
    "absent": (8, "does not exist", "merge absent b -o x"),
    "points": (8, "is not a tally", "merge v1.csv b -o x"),
    "other unit": (8, "units of privacy", "merge a user -o x"),
    "other key": (8, "different keys", "merge carried1 carried2 -o x"),
    "rows too": (2, "tally the records first", "build a v3.csv -o x --epsilon 1"),
    "bounds too": (2, "--bounds must be left out", "build a -o x --epsilon 1 --bounds 0 0 1 1"),
    "user too": (2, "--user must be left out", "build a -o x --epsilon 1 --user user_id"),
    "slices too": (2, "--slices must be left out", "build a -o x --epsilon 1 --slices 2024-01"),
    "no bounds": (2, "--bounds must be given", "build v1.csv -o x --epsilon 1"),
    "no epsilon": (2, "--epsilon", "build a -o x"),
    "over an input": (6, "read as an input", "merge a b -o a --overwrite"),
    "over a file": (6, "exists", "merge a b -o other"),
    "no output": (2, "give -o", "tally v1.csv --bounds 126.4 37 127.6 38"),
    "two outputs": (2, "give -o", "tally v1.csv -o x --into t --bounds 126.4 37 127.6 38"),
    "no folder": (6, "does not exist", "tally v1.csv --into y --bounds 126.4 37 127.6 38"),
    "key without user": (2, "--key must be given with", "tally v1.csv -o x {B} --key k"),
    "carried without key": (2, "given with --key", "tally v1.csv -o x {B} {U} --carry-users"),
    "no key": (8, "64 hexadecimal digits", "tally v1.csv -o x {B} {U} --key nokey"),
    "open key": (8, "chmod 600", "tally v1.csv -o x {B} {U} --key v1.csv"),
    "set without method": (2, "--set must be given with", "tally v1.csv -o x {B} --set height=3"),
    "a part of each": (2, "--part names one", "tally v1.csv --into t {B} --part p"),
    "slices without time": (2, "--read time", "tally v1.csv -o x {B} --slices 2024-01-01"),
    "per without user": (
        2, "--per slice", "tally v1.csv -o x {B} --read time=time --slices 2024-01-01 "
        "--per slice",
    ),
    "no such slice": (
        2, "the form 2024-01-31 ", "tally v1.csv -o x {B} --read time=time --slices 2024-01-32",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(prepared, tmp_path, monkeypatch, name):
    folder = shutil.copytree(prepared, tmp_path / "copy", symlinks=True)
    monkeypatch.chdir(folder)
    before = {path: (folder / path).read_bytes() for path in files(folder) if path != "t"}
    code, told, line = REFUSED[name]
    words = line.format(B=" ".join(map(str, BOUNDS)), U=" ".join(map(str, USER))).split()
    message = fails(code, *words)
    assert told in message
    assert "secret" not in message
    # A key is made before the input is read; nothing else is left behind.
    left = {path: (folder / path).read_bytes() for path in files(folder) if path not in ("t", "k")}
    assert left == before
    assert files(folder / "t") == []


def test_an_input_of_no_file_needs_a_name(folder, monkeypatch):
    import io
    import sys

    class Stdin:
        buffer = io.BytesIO((folder / "v1.csv").read_bytes())

        def fileno(self):
            return os.open(folder / "v1.csv", os.O_RDONLY)

    monkeypatch.setattr(sys, "stdin", Stdin())
    assert "part must name an input" in fails(2, "tally", "-", "-o", "x", *BOUNDS)
    outcome = cli("tally", "-", "-o", "x", *BOUNDS, "--part", "January")
    assert outcome.code == 0, outcome.err
    assert "of the same name" in fails_twice(folder)


def fails_twice(folder):
    passes("tally", "v2.csv", "-o", "y", *BOUNDS, "--part", "January")
    return fails(8, "merge", "x", "y", "-o", "z")


@pytest.mark.parametrize("bound", ["auto", "auto:limit=5", "2.5"])
def test_a_tally_has_a_bound_that_is_a_number(bound, tmp_path):
    """A bound is chosen privately by a build alone; a tally would silently take the largest one."""
    (tmp_path / "u.csv").write_text("lon,lat,user_id\n127,37.5,a\n")
    line = ("tally", tmp_path / "u.csv", "-o", tmp_path / "t", *BOUNDS, "--user", "user_id")
    assert "is not a whole number" in fails(2, *line, "--max-contributions", bound)
    assert not (tmp_path / "t").exists()
