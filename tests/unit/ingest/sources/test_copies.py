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


FORMS = {
    "plain": bytes,
    "gzip": gzip.compress,
    # So that the length in the trailer is that of the last member.
    "gzip of two members": lambda content: gzip.compress(content[:9]) + gzip.compress(content[9:]),
    "zstd": zstd,
}


def count(data, **options):
    columns = Columns(**{name: options.pop(name) for name in ("user", "time") if name in options})
    return sum(len(batch.x) for batch in read(data, columns, EARTH, **options))


def copies_of(data, **options):
    messages = []
    number = count(data, on_copy=messages.append, **options)
    return messages, number


@pytest.mark.parametrize("other", FORMS)
@pytest.mark.parametrize("form", FORMS)
def test_copies_are_refused_however_they_are_compressed(tmp_path, form, other):
    for name, each in (("a", form), ("b", other)):
        (tmp_path / name).write_bytes(FORMS[each](TEXT.encode()))
    with pytest.raises(InputDataError, match=r"a and .*b have the same content"):
        count([tmp_path / "a", tmp_path / "b"])
    (message,), number = copies_of([tmp_path / "a", tmp_path / "b"])
    assert str(tmp_path / "b") in message
    assert number == 4
    assert copies_of([tmp_path / "a"]) == ([], 2)


def test_other_content_is_counted(subtests, tmp_path):
    head, long = "lon,lat", "lon,lat\n" + "1,2\n" * 50_000
    for name, first, second, copies, rows in [
        ("another number", TEXT, TEXT.replace("4", "5"), 0, 4),
        ("one row more", TEXT, TEXT + "5,6,eve\n", 0, 5),
        ("no last line end", TEXT, TEXT[:-1], 0, 4),
        ("another user", TEXT, TEXT.replace("ann", "eve"), 0, 4),
        ("begin alike", long + "3,4\n", long + "3,5\n", 0, 100_002),
        ("are read to their end", long + "3,4\n", long + "3,4\n", 1, 100_002),
        *(("without a record", text, text, 0, 0) for text in (head, head + "\n", head + "\r\n")),
    ]:
        with subtests.test(name):
            (tmp_path / "a").write_text(first)
            (tmp_path / "b").write_text(second)
            messages, number = copies_of(tmp_path)
            assert (len(messages), number) == (copies, rows)
    for name in "abc":  # each further copy is told
        (tmp_path / name).write_text(TEXT)
    messages, number = copies_of(tmp_path)
    assert (len(messages), number) == (2, 6)


def test_no_more_is_read_for_it_than_is_needed(tmp_path, monkeypatch):
    ends, original = [], _copies.content_digest
    digest = lambda path, end: ends.append(end) or original(path, end)  # noqa: E731
    monkeypatch.setattr(_copies, "content_digest", digest)
    for name in range(5):  # of different lengths
        (tmp_path / f"{name}.csv").write_text(TEXT + "5,6,eve\n" * name)
    assert count(tmp_path) == 5 * 2 + 10
    assert ends == []
    for name in range(5):  # of different starts
        (tmp_path / f"{name}.csv").write_text(f"lon,lat\n{name},2\n")
    assert count(tmp_path) == 5
    assert ends == [_copies._START] * 5


def test_standard_input_and_addresses_are_named(tmp_path, monkeypatch):
    path, url = tmp_path / "a.csv", "postgresql://db.example.org/city"
    path.write_text(TEXT)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    with pytest.raises(InputDataError, match="and standard input have the same content"):
        count([path, "-"])
    for source in (psd.sources.PostGIS(url, table="visits"), url):
        with pytest.raises(InputDataError, match="repeated"):
            count([source] * 2)


def write(path, rows=3, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    x = np.arange(rows) / 2
    pq.write_table(pa.table({"lon": x, "lat": x, **columns}), path)
    return path


def test_parquet(tmp_path):
    paths = [tmp_path / f"{name}.parquet" for name in "ab"]
    with pytest.raises(InputDataError, match="same content"):
        count([write(path) for path in paths])
    assert copies_of([write(path, rows=0) for path in paths]) == ([], 0)
    for day in (1, 2):  # folders say who and when
        write(tmp_path / "d" / f"day=2024-01-0{day}" / "part.parquet", id=["a", "b", "c"])
    assert copies_of(tmp_path / "d", time="day") == ([], 6)
    assert len(copies_of(tmp_path / "d")[0]) == 1  # the days are not read
    assert len(copies_of(tmp_path / "d", user="id")[0]) == 1


def points(ids=("u", "v")):
    shapes = [shapely.Point(i, i) for i in range(len(ids))]
    return gpd.GeoDataFrame({"id": list(ids)}, geometry=shapes, crs="EPSG:4326")


def test_vector_files(subtests, tmp_path):
    for ending in ("gpkg", "fgb", "geojson", "shp"):
        folder = tmp_path / ending
        folder.mkdir()
        points().to_file(folder / f"a.{ending}")
        for part in folder.glob("a.*"):
            (folder / f"b{part.suffix}").write_bytes(part.read_bytes())
        with subtests.test(ending), pytest.raises(InputDataError, match="same content"):
            count(folder)
    points(["u", "w"]).to_file(tmp_path / "shp" / "b.shp")  # the same points of other people
    assert copies_of(tmp_path / "shp", user="id") == ([], 4)
