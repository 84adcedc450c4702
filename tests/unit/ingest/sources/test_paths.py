"""Names of files, folders and patterns: what they stand for, and which source reads them."""

import os

import pytest

from psd.errors import InputDataError
from psd.ingest.sources._paths import (
    expand_paths,
    file_kind,
    is_path,
    partition_values,
    refuse_changes,
)


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
    return [str(path) for path in expand_paths(items)]


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.csv", "csv"), ("a.csv.gz", "csv"), ("a.csv.zst", "csv"), ("a.tsv", "csv"), ("a", "csv"),
        ("a.xlsx", "xlsx"), ("-", "csv"), ("a.parquet", "parquet"), ("A.PARQUET", "parquet"),
        ("a.pq", "parquet"), ("a.geoparquet", "parquet"), ("a.gpkg", "vector"),
        ("a.shp", "vector"), ("a.fgb", "vector"), ("a.geojson", "vector"), ("a.json", "vector"),
        ("postgresql://h/a.csv", None), (7, None), (None, None),
    ],
)  # fmt: skip
def test_the_ending_says_the_kind(folder, name, source):
    assert file_kind(name) == source
    if source:
        assert is_path(name)
        assert file_kind(folder / name) == source


@pytest.mark.parametrize(
    ("start", "source"),
    [
        (b"PAR1\x15", "parquet"),
        (b"SQLite format 3\0rest", "vector"),
        (b"fgb\x03fgb\x01", "vector"),
        (b"\x00\x00\x27\x0a\x00", "vector"),
        (b"lon,lat\n", "csv"),
        (b"", "csv"),
    ],
)
@pytest.mark.parametrize("name", ["part-00000", "a.data"])
def test_first_bytes_say_it_where_the_name_does_not(folder, name, start, source):
    (folder / name).write_bytes(start)
    assert file_kind(name) == source


def test_a_name_that_says_csv_is_left_to_the_csv_source(folder):
    (folder / "a.csv").write_bytes(b"PAR1")
    assert file_kind("a.csv") == "csv"


def test_what_exists_is_taken_as_it_stands(folder):
    touch(folder, "*.csv", "a.csv", "[ab].csv", "-o.csv", "a b.csv")
    assert names("*.csv", "[ab].csv", "-o.csv", "a b.csv") == [
        "*.csv", "[ab].csv", "-o.csv", "a b.csv",
    ]  # fmt: skip


def test_patterns_and_folders_give_files_in_order(folder):
    touch(folder, "d/b.csv", "d/a.csv", "d/e/c.csv", "d/_SUCCESS", "d/.hidden", "d/_tmp/x.csv")
    assert names("d/*.csv") == ["d/a.csv", "d/b.csv"]
    assert names("d/**/*.csv") == ["d/_tmp/x.csv", "d/a.csv", "d/b.csv", "d/e/c.csv"]
    assert names("d") == ["d/a.csv", "d/b.csv", "d/e/c.csv"]
    assert names("-", "d/e") == ["-", "d/e/c.csv"]
    (folder / "d" / "empty").mkdir()
    assert names("d/e", "d/a.csv") == ["d/e/c.csv", "d/a.csv"]
    assert names("d") == ["d/a.csv", "d/b.csv", "d/e/c.csv"]


def test_companions_are_no_inputs_of_their_own(folder):
    touch(folder, "d/a.shp", "d/a.dbf", "d/a.shx", "d/a.prj", "d/A.cpg", "d/b.gpkg", "d/b.gpkg-wal")
    touch(folder, "d/c.dbf", "d/E.SHP", "d/E.dbf")
    assert names("d") == ["d/A.cpg", "d/E.SHP", "d/a.shp", "d/b.gpkg", "d/c.dbf"]
    assert names("d/a.*") == ["d/a.shp"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["missing.csv"], "does not exist"),
        (["d/*.nothing"], "no file matches"),
        (["empty"], "holds no file"),
        (["hidden"], "holds no file"),
        (["d/a.csv", "d"], "twice"),
        (["d", "d/*.csv"], "twice"),
        (["d/a.csv", "link.csv"], "twice"),
        (["d/a.csv", "hard.csv"], "twice"),
        (["-", "-"], "twice"),
        (["round"], "link to a folder"),
        (["dangling"], "does not exist"),
        (["pipe"], "a regular file"),
        (["p*pe"], "a regular file"),
        (["a\0b"], "does not exist"),
    ],
)
def test_what_is_refused(folder, given, words):
    touch(folder, "d/a.csv", "d/b.csv", "hidden/.a", "round/a.csv")
    (folder / "empty").mkdir()
    (folder / "link.csv").symlink_to("d/a.csv")
    (folder / "hard.csv").hardlink_to("d/a.csv")
    (folder / "round" / "again").symlink_to(folder / "round")
    (folder / "dangling").symlink_to("nowhere")
    os.mkfifo("pipe")
    with pytest.raises(InputDataError, match=words):
        expand_paths(given)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
@pytest.mark.parametrize("name", ["d", "d/a.csv"])
def test_what_may_not_be_read(folder, name):
    touch(folder, "d/a.csv")
    (folder / name).chmod(0)
    with pytest.raises(InputDataError, match="permissions"):
        expand_paths(["d"])
    (folder / name).chmod(0o700)


def test_an_unreadable_folder_is_not_left_out(folder, monkeypatch):
    """The same for root, who may read everything."""
    touch(folder, "d/a.csv", "d/e/b.csv")
    scan = os.scandir

    def refusing(path):
        if str(path).endswith("e"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(InputDataError, match="d/e is not readable"):
        expand_paths(["d"])


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda path: path.write_bytes(b"longer"), id="grows"),
        pytest.param(lambda path: os.utime(path, ns=(0, 0)), id="is-written-again"),
        pytest.param(lambda path: path.with_suffix(".dbf").write_bytes(b"xy"), id="its-companion"),
        pytest.param(lambda path: path.with_suffix(".prj").write_bytes(b"x"), id="one-more"),
        pytest.param(lambda path: path.unlink(), id="is-removed"),
        pytest.param(lambda path: (path.parent / "n").replace(path), id="is-replaced"),
    ],
)  # fmt: skip
def test_changes_are_seen(folder, change):
    touch(folder, "a.shp", "a.dbf")
    (folder / "n").write_bytes(b"x")
    with refuse_changes([folder / "a.shp"]):
        pass
    with pytest.raises(InputDataError, match="changed while"), refuse_changes([folder / "a.shp"]):
        change(folder / "a.shp")


def test_folders_may_say_values(tmp_path):
    path = tmp_path / "day=2024-01-31" / "user=a%2Fb%3D" / "n=__HIVE_DEFAULT_PARTITION__" / "x.csv"
    assert partition_values(path, "day") == ("2024-01-31",)
    assert partition_values(path, "user") == ("a/b=",)
    assert partition_values(path, "n") == (None,)
    assert partition_values(path, "x.csv") == partition_values(path, "lon") == ()


@pytest.mark.parametrize(
    "given",
    [
        ["d/a.csv", "d/a.csv.gz"],
        ["d/a.csv.gz", "d/a.csv.ZST"],
        ["d"],
        ["d/a.*"],
        ["d/a.csv.gz", "d/../d/a.csv"],
        ["to-a.csv", "d/a.csv.gz"],
        ["e/a.csv", "e/a.csv.gz"],
    ],
)
def test_a_file_beside_its_compressed_form_is_refused(folder, given):
    touch(folder, "d/a.csv", "d/a.csv.gz", "d/a.csv.ZST", "d/b.csv", "e/x", "e/y")
    (folder / "to-a.csv").symlink_to("d/a.csv")
    (folder / "e" / "a.csv").symlink_to("x")
    (folder / "e" / "a.csv.gz").symlink_to("y")
    with pytest.raises(InputDataError, match="compressed form"):
        names(*given)


def test_other_names_are_other_files(folder):
    touch(folder, "d/a.csv", "d/a.csv.gz", "e/a.csv", "e/b.csv.gz", "e/a.tsv.gz")
    assert names("d/a.csv", "e") == ["d/a.csv", "e/a.csv", "e/a.tsv.gz", "e/b.csv.gz"]
    assert names("d/a.csv.gz", "e/a.csv") == ["d/a.csv.gz", "e/a.csv"]


def test_standard_input_from_a_file_that_is_an_input(folder, monkeypatch):
    touch(folder, "a.csv", "b.csv")
    with open("a.csv") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert names("-", "b.csv") == ["-", "b.csv"]
        with pytest.raises(InputDataError, match="twice"):
            names("-", "a.csv")
