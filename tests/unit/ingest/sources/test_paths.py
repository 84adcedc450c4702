"""Names of files, folders and patterns: what they stand for, and which source reads them."""

import os

import pytest

from psd.errors import InputDataError
from psd.ingest import input_paths as paths
from support.nobody import nobody


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def touch(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def names(*items):
    return [str(path) for path in paths.expand_paths(items)]


def test_the_ending_says_the_kind(folder):
    for source, inputs in [
        ("csv", ["a.csv", "a.csv.gz", "a.csv.zst", "a.tsv", "a", "-"]),
        ("parquet", ["a.parquet", "A.PARQUET", "a.pq", "a.geoparquet"]),
        ("vector", ["a.gpkg", "a.shp", "a.fgb", "a.geojson", "a.json"]),
        ("xlsx", ["a.xlsx"]),
        (None, ["postgresql://h/a.csv", 7, None]),
    ]:
        for name in inputs:
            assert paths.file_kind(name) == source
            if source:
                assert paths.is_path(name)
                assert paths.file_kind(folder / name) == source
    for start, source in [
        (b"PAR1\x15", "parquet"),
        (b"SQLite format 3\0rest", "vector"),
        (b"fgb\x03fgb\x01", "vector"),
        (b"\x00\x00\x27\x0a\x00", "vector"),
        (b"lon,lat\n", "csv"),
        (b"", "csv"),
    ]:
        for name, kind in (("part-00000", source), ("a.data", source), ("a.csv", "csv")):
            (folder / name).write_bytes(start)
            assert paths.file_kind(name) == kind


def test_patterns_and_folders_give_files_in_order(folder):
    touch(folder, "a.csv", *(odd := ["*.csv", "[ab].csv", "-o.csv", "a b.csv"]))
    assert names(*odd) == odd
    touch(folder, "d/b.csv", "d/a.csv", "d/e/c.csv", "d/_SUCCESS", "d/.hidden", "d/_tmp/x.csv")
    assert names("d/*.csv") == ["d/a.csv", "d/b.csv"]
    assert names("d/**/*.csv") == ["d/_tmp/x.csv", "d/a.csv", "d/b.csv", "d/e/c.csv"]
    assert names("d") == ["d/a.csv", "d/b.csv", "d/e/c.csv"]
    assert names("-", "d/e") == ["-", "d/e/c.csv"]
    (folder / "d" / "empty").mkdir()
    assert names("d/e", "d/a.csv") == ["d/e/c.csv", "d/a.csv"]
    assert names("d") == ["d/a.csv", "d/b.csv", "d/e/c.csv"]


def test_companions_and_other_names(folder):
    touch(folder, "d/a.shp", "d/a.dbf", "d/a.shx", "d/a.prj", "d/A.cpg", "d/b.gpkg", "d/b.gpkg-wal")
    touch(folder, "d/c.dbf", "d/E.SHP", "d/E.dbf")
    assert names("d") == ["d/A.cpg", "d/E.SHP", "d/a.shp", "d/b.gpkg", "d/c.dbf"]
    assert names("d/a.*") == ["d/a.shp"]
    touch(folder, "d/a.csv", "d/a.csv.gz", "e/a.csv", "e/b.csv.gz", "e/a.tsv.gz")
    assert names("d/a.csv", "e") == ["d/a.csv", "e/a.csv", "e/a.tsv.gz", "e/b.csv.gz"]
    assert names("d/a.csv.gz", "e/a.csv") == ["d/a.csv.gz", "e/a.csv"]


def test_what_is_refused(subtests, folder):
    touch(folder, "d/a.csv", "d/b.csv", "hidden/.a", "round/a.csv")
    (folder / "empty").mkdir()
    (folder / "link.csv").symlink_to("d/a.csv")
    (folder / "hard.csv").hardlink_to("d/a.csv")
    (folder / "round" / "again").symlink_to(folder / "round")
    (folder / "dangling").symlink_to("nowhere")
    os.mkfifo("pipe")
    twice = [["d/a.csv", "d"], ["d", "d/*.csv"], ["d/a.csv", "link.csv"], ["d/a.csv", "hard.csv"]]
    for words, inputs in [
        ("does not exist", [["missing.csv"], ["dangling"], ["a\0b"]]),
        ("no file matches", [["d/*.nothing"]]),
        ("holds no file", [["empty"], ["hidden"]]),
        ("twice", [*twice, ["-", "-"]]),
        ("link to a folder", [["round"]]),
        ("a regular file", [["pipe"], ["p*pe"]]),
    ]:
        for given in inputs:
            with subtests.test(given=given), pytest.raises(InputDataError, match=words):
                paths.expand_paths(given)


def test_what_may_not_be_read(subtests):
    for name in ("d", "d/a.csv"):
        with nobody() as folder:
            touch(folder, "d/a.csv")
            (folder / name).chmod(0)
            with subtests.test(name), pytest.raises(InputDataError, match="permissions"):
                paths.expand_paths([folder / "d"])


def test_an_unreadable_folder_is_not_left_out(folder, monkeypatch):
    touch(folder, "d/a.csv", "d/e/b.csv")
    scan = os.scandir

    def refusing(path):
        if str(path).endswith("e"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(InputDataError, match="d/e is not readable"):
        paths.expand_paths(["d"])


CHANGES = {
    "grows": lambda path: path.write_bytes(b"longer"),
    "is written again": lambda path: os.utime(path, ns=(0, 0)),
    "its companion": lambda path: path.with_suffix(".dbf").write_bytes(b"xy"),
    "one more": lambda path: path.with_suffix(".prj").write_bytes(b"x"),
    "is removed": lambda path: path.unlink(),
    "is replaced": lambda path: (path.parent / "n").replace(path),
}


def test_changes_are_seen(subtests, folder):
    for number, (name, change) in enumerate(CHANGES.items()):
        path = folder / str(number) / "a.shp"
        touch(path.parent, "a.shp", "a.dbf", "n")
        with paths.refuse_changes([path]):
            pass
        refused = pytest.raises(InputDataError, match="changed while")
        with subtests.test(name), refused, paths.refuse_changes([path]):
            change(path)


def test_folders_may_say_values(tmp_path):
    path = tmp_path / "day=2024-01-31" / "user=a%2Fb%3D" / "n=__HIVE_DEFAULT_PARTITION__" / "x.csv"
    assert paths.partition_values(path, "day") == ("2024-01-31",)
    assert paths.partition_values(path, "user") == ("a/b=",)
    assert paths.partition_values(path, "n") == (None,)
    assert paths.partition_values(path, "x.csv") == paths.partition_values(path, "lon") == ()


def test_a_file_beside_its_compressed_form_is_refused(subtests, folder):
    touch(folder, "d/a.csv", "d/a.csv.gz", "d/a.csv.ZST", "d/b.csv", "e/x", "e/y")
    (folder / "to-a.csv").symlink_to("d/a.csv")
    (folder / "e" / "a.csv").symlink_to("x")
    (folder / "e" / "a.csv.gz").symlink_to("y")
    pairs = ["d/a.csv d/a.csv.gz", "d/a.csv.gz d/a.csv.ZST", "d/a.csv.gz d/../d/a.csv"]
    for given in ["d", "d/a.*", *pairs, "to-a.csv d/a.csv.gz", "e/a.csv e/a.csv.gz"]:
        with subtests.test(given), pytest.raises(InputDataError, match="compressed form"):
            names(*given.split())


def test_standard_input_from_a_file_that_is_an_input(folder, monkeypatch):
    touch(folder, "a.csv", "b.csv")
    with open("a.csv") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert names("-", "b.csv") == ["-", "b.csv"]
        with pytest.raises(InputDataError, match="twice"):
            names("-", "a.csv")
