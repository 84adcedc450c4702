"""Files of equal content: which are noticed, what is read for it, and who is told."""

import gzip
import io

import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import psd
from psd.errors import InputDataError
from psd.ingest.sources import Columns, _copies, read

EARTH = psd.Domain(bounds=(-180, -90, 180, 90))
TEXT = "lon,lat,id\n1,2,ann\n3,4,bob\n"


def zstd(content):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as file:
        file.write(content)
    return sink.getvalue().to_pybytes()


def packed(text):
    """Several members, so that the length in the trailer is that of the last one."""
    return gzip.compress(text[:9].encode()) + gzip.compress(text[9:].encode())


FORMS = {
    "plain": lambda text: text.encode(),
    "gzip": lambda text: gzip.compress(text.encode()),
    "gzip of two members": packed,
    "zstd": lambda text: zstd(text.encode()),
}


def count(data, **options):
    columns = Columns(**{name: options.pop(name) for name in ("user", "time") if name in options})
    return sum(len(batch.x) for batch in read(data, columns, EARTH, **options))


def copies_of(data, **options):
    """Messages about copies, and the number of records."""
    messages = []
    number = count(data, on_copy=messages.append, **options)
    return messages, number


@pytest.mark.parametrize("other", FORMS)
@pytest.mark.parametrize("form", FORMS)
def test_copies_are_refused_however_they_are_compressed(tmp_path, form, other):
    for name, each in (("a", form), ("b", other)):
        (tmp_path / name).write_bytes(FORMS[each](TEXT))
    with pytest.raises(InputDataError, match=r"a and .*b have the same content"):
        count([tmp_path / "a", tmp_path / "b"])
    (message,), number = copies_of([tmp_path / "a", tmp_path / "b"])
    assert str(tmp_path / "b") in message
    assert number == 4
    assert copies_of([tmp_path / "a"]) == ([], 2)


def test_each_further_copy_is_told(tmp_path):
    for name in "abc":
        (tmp_path / name).write_text(TEXT)
    messages, number = copies_of(tmp_path)
    assert len(messages) == 2
    assert number == 6


@pytest.mark.parametrize("change", [TEXT.replace("4", "5"), TEXT + "5,6,eve\n", TEXT[:-1], ""])
def test_other_content_is_counted(tmp_path, change):
    (tmp_path / "a").write_text(TEXT)
    (tmp_path / "b").write_text(change or TEXT.replace("ann", "eve"))
    assert copies_of(tmp_path)[0] == []
    assert count(tmp_path) >= 4


def test_files_that_begin_alike_are_read_to_their_end(tmp_path):
    start = "lon,lat\n" + "1,2\n" * 50_000
    (tmp_path / "a").write_text(start + "3,4\n")
    (tmp_path / "b").write_text(start + "3,5\n")
    assert copies_of(tmp_path) == ([], 100_002)
    (tmp_path / "b").write_text(start + "3,4\n")
    assert len(copies_of(tmp_path)[0]) == 1


def test_nothing_is_read_for_it_where_lengths_differ(tmp_path, monkeypatch):
    monkeypatch.setattr(_copies, "content_digest", lambda *_: pytest.fail("a digest"))
    for name in range(5):
        (tmp_path / f"{name}.csv").write_text(TEXT + "5,6,eve\n" * name)
    assert count(tmp_path) == 5 * 2 + 10


def test_only_the_start_is_read_where_starts_differ(tmp_path, monkeypatch):
    ends, original = [], _copies.content_digest
    monkeypatch.setattr(
        _copies, "content_digest", lambda path, end: ends.append(end) or original(path, end)
    )
    for name in range(3):
        (tmp_path / f"{name}.csv").write_text(f"lon,lat\n{name},2\n")
    assert count(tmp_path) == 3
    assert ends == [_copies._START] * 3


@pytest.mark.parametrize("text", ["lon,lat", "lon,lat\n", "lon,lat\r\n"])
def test_files_without_a_record_are_no_copies(tmp_path, text):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(text)
    assert copies_of(tmp_path) == ([], 0)


def test_standard_input_is_named(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text(TEXT)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    with pytest.raises(InputDataError, match="and standard input have the same content"):
        count([path, "-"])


def table(rows=3, **columns):
    x = np.arange(rows) / 2
    return pa.table({"lon": x, "lat": x, **columns})


def write(content, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(content, path)
    return path


def test_parquet(tmp_path):
    paths = [write(table(), tmp_path / f"{name}.parquet") for name in "ab"]
    with pytest.raises(InputDataError, match="same content"):
        count(paths)
    write(table().slice(0, 0), paths[0])
    write(table().slice(0, 0), paths[1])
    assert copies_of(paths) == ([], 0)


def test_parts_whose_folders_say_who_and_when_are_no_copies(tmp_path):
    for day in (1, 2):
        write(table(id=["a", "b", "c"]), tmp_path / f"day=2024-01-0{day}" / "part.parquet")
    assert copies_of(tmp_path, time="day") == ([], 6)
    assert len(copies_of(tmp_path)[0]) == 1  # the days are not read
    assert len(copies_of(tmp_path, user="id")[0]) == 1


def points(ids=("u", "v")):
    shapes = [shapely.Point(i, i) for i in range(len(ids))]
    return gpd.GeoDataFrame({"id": list(ids)}, geometry=shapes, crs="EPSG:4326")


@pytest.mark.parametrize("ending", ["gpkg", "fgb", "geojson", "shp"])
def test_vector_files(tmp_path, ending):
    points().to_file(tmp_path / f"a.{ending}")
    for part in tmp_path.glob("a.*"):
        (tmp_path / f"b{part.suffix}").write_bytes(part.read_bytes())
    with pytest.raises(InputDataError, match="same content"):
        count(tmp_path)


def test_shapefiles_with_the_same_points_of_other_people(tmp_path):
    for name, ids in (("a", ["u", "v"]), ("b", ["u", "w"])):
        points(ids).to_file(tmp_path / f"{name}.shp")
    assert copies_of(tmp_path, user="id") == ([], 4)


def test_an_address_that_is_repeated():
    source = [psd.PostGIS("postgresql://db.example.org/city", table="visits") for _ in range(2)]
    with pytest.raises(InputDataError, match="repeated"):
        count(source)
    with pytest.raises(InputDataError, match="repeated"):
        count(["postgresql://db.example.org/city"] * 2)
