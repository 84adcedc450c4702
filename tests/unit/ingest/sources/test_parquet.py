"""Parquet and GeoParquet: what is read, what is refused and in which words."""

import datetime as dt
import json
from decimal import Decimal

import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from psd.errors import DomainError, InputDataError
from psd.ingest.sources import Columns, parquet, read
from support.batches import DOMAIN, SECRET, one, refused


@pytest.fixture
def file(tmp_path):
    def write(columns, name="points.parquet"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), path)
        return path

    return write


def table(lon=(127.5, None), **more):
    return {"lon": list(lon) if isinstance(lon, tuple) else lon, "lat": [37.5, 37.5], **more}


def test_numbers_of_any_kind(subtests, file):
    dictionary, nan = pa.array([127.0, None]).dictionary_encode(), pa.array([127, float("nan")])
    kinds = [pa.array([127, None], kind) for kind in (pa.int64(), pa.uint8(), pa.float32())]
    for values in (*kinds, pa.array([Decimal("127.00"), None]), nan, dictionary):
        with subtests.test(str(values.type)):
            batch = one(file(table(values)))
            np.testing.assert_array_equal(batch.x, [127, np.nan])
            assert batch.x.dtype == batch.y.dtype == np.float64
    assert np.isnan(one(file(table(pa.nulls(2)))).x).all()


def test_coordinates_that_are_refused(subtests, file):
    for values, words in [
        ([SECRET, None], "must be numeric, got type string"),
        ([True, None], "bool"),
        ([dt.date(2024, 1, 1), None], "date32"),
        ([b"1", None], "binary"),
        ([[1.0], None], "list"),
        ([float("inf"), 1], "infinite"),
        ([float("-inf"), 1], "infinite"),
    ]:
        with subtests.test(repr(values)):
            assert words in refused(file(table(pa.array(values))))
            assert words in refused(file({"lat": pa.array(values), "lon": [1, 2]}))


def test_ids_become_text(subtests, file):
    for values, texts in [
        (pa.array(["007", None]), ["007", None]),
        (pa.array(["007", "7"], pa.large_string()), ["007", "7"]),
        (pa.array(["a", "b"]).dictionary_encode(), ["a", "b"]),
        (pa.array([2**53 + 1, -(2**63)]), ["9007199254740993", "-9223372036854775808"]),
        (pa.array([2**64 - 1, None], pa.uint64()), ["18446744073709551615", None]),
        (pa.array([Decimal(10**30 + 1), None], pa.decimal128(38)), [f"1{'0' * 29}1", None]),
    ]:
        with subtests.test(str(values.type)):
            assert one(file(table(id=values)), user="id").user.to_pylist() == texts
    wrong = [8642.13579, 7.0], [True, False], [Decimal("7.5"), None], [b"a", b"b"]
    no_utf8 = pa.array([b"\xff", b"a"]).cast(pa.string(), safe=False)
    for values in (*wrong, [dt.date(2024, 1, 1), None], no_utf8):
        with subtests.test(repr(values)):
            assert "'id' of user ids" in refused(file(table(id=pa.array(values))), user="id")


def test_missing_and_doubled_columns(file):
    path = file(table(Lng=[1, 2]))
    assert "its columns are lon, lat, Lng" in refused(path, x="x")
    assert one(path, x="lng").x.tolist() == [1, 2]
    twice = file(table(Lng=[1, 2], LNG=[3, 4]), "twice.parquet")
    assert "it has 'Lng', 'LNG'; choose one" in refused(twice, x="lng")
    assert "no column 'who'" in refused(path, user="who")
    doubled = pa.Table.from_arrays([pa.array([1.0])] * 3, ["lon", "lon", "lat"])
    pq.write_table(doubled, path)
    assert "2 columns named 'lon'" in refused(path)


def test_times_and_parts_with_other_columns(file, monkeypatch):
    moments = pa.array([dt.datetime(2024, 1, 31, 1), None], pa.timestamp("ns", "UTC"))
    batch = one(file(table(seen=moments)), time="seen", time_zone="Asia/Seoul")
    assert batch.time.tolist() == [dt.datetime(2024, 1, 31, 10), None]
    assert "holds numbers" in refused(file(table(seen=[1, 2])), time="seen")
    assert "not a time in ISO" in refused(file(table(seen=[SECRET, None])), time="seen")
    file(table(), "d/a.parquet")
    file({"a": [1.0], "b": [2.0]}, "d/b.parquet")
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *a, **k: pytest.fail("was read"))
    assert "b.parquet has no column 'lon'" in refused(file(table()).parent / "d")


def test_row_groups_of_the_needed_columns_come_one_after_another(file, monkeypatch):
    monkeypatch.setattr(parquet, "_ROWS", 100)
    values, asked, real = np.arange(1000) / 1000, [], pq.ParquetFile.iter_batches

    def watched(self, *args, columns, **named):
        asked.append(columns)
        return real(self, *args, columns=columns, **named)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", watched)
    path = file({"note": [SECRET] * 1000, "lon": values, "lat": values, "id": ["a"] * 1000})
    batches = list(read(path, Columns(user="id"), DOMAIN))
    assert asked == [["lon", "lat", "id"]]
    assert [len(batch.x) for batch in batches] == [100] * 10
    assert np.concatenate([batch.x for batch in batches]).tolist() == values.tolist()


def test_a_row_group_as_large_as_the_file_is_not_held(tmp_path):
    values = np.random.default_rng(1).uniform(size=3_000_000)
    table = pa.table({"lon": values, "lat": values})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=len(values))
    size, before, peak = table.nbytes, pa.total_allocated_bytes(), 0
    for _ in read(tmp_path / "a.parquet", Columns(), DOMAIN):
        peak = max(peak, pa.total_allocated_bytes() - before)
    assert peak < size / 2


def test_one_damaged_part_stops_all(subtests, file):
    good = {"lon": np.arange(9999) / 7}
    paths = [file({**good, "lat": good["lon"] - i}, f"d/{i}.parquet") for i in range(3)]
    whole = paths[1].read_bytes()
    third = len(whole) // 3
    for name, damaged in [
        ("truncated", whole[:-20]),
        ("half", whole[: len(whole) // 2]),
        ("empty", b""),
        ("csv", b"lon,lat\n1,2\n"),
        ("zeros", whole[:4] + bytes(third) + whole[4 + third :]),
    ]:
        paths[1].write_bytes(damaged)
        with subtests.test(name):
            message = refused(paths[0].parent)
            assert str(paths[1]) in message
            assert "truncated" in message or "damaged" in message


def test_a_file_that_changes_while_it_is_read(file):
    path = file(table(), "d/a.parquet")
    for change, words in [
        (lambda: path.write_bytes(path.read_bytes()), "changed while"),
        (lambda: file(table(), "d/b.parquet"), "added or removed"),
    ]:
        batches = read(path.parent, Columns(), DOMAIN)
        next(batches)
        change()
        with pytest.raises(InputDataError, match=words):
            list(batches)


def test_folders_say_users_and_times(file):
    for day, user in (("2024-01-31", "007"), ("2024-02-01", "7")):
        file(table(), f"d/day={day}/id={user}/part.parquet")
    root = file(table()).parent / "d"
    batches = list(read(root, Columns(user="id", time="day"), DOMAIN))
    assert [batch.user.to_pylist() for batch in batches] == [["007"] * 2, ["7"] * 2]
    assert [str(batch.time[0])[:10] for batch in batches] == ["2024-01-31", "2024-02-01"]
    file(table(), "d/day=__HIVE_DEFAULT_PARTITION__/id=7/part.parquet")
    assert "not a time in ISO" in refused(file(table(), "e/day=monday/part.parquet"), time="day")
    nobody = list(read(root / "day=__HIVE_DEFAULT_PARTITION__", Columns(time="day"), DOMAIN))
    assert np.isnat(nobody[0].time).all()
    own = file(table(id=["a", "b"]), "id=c/part.parquet")  # a column goes before the folder
    assert one(own, user="id").user.to_pylist() == ["a", "b"]


# --- GeoParquet -----------------------------------------------------------------------------


def geo(points, path, crs="EPSG:4326", **options):
    table = gpd.GeoDataFrame({"id": range(len(points))}, geometry=points, crs=crs)
    table.to_parquet(path, **options)
    return path


POINTS = [shapely.Point(127.5, 37.5), None, shapely.Point(), shapely.Point(127, 37, 5)]


def with_metadata(path, change):
    rows = pq.read_table(path)
    meta = json.loads(rows.schema.metadata[b"geo"])
    change(meta)
    pq.write_table(rows.replace_schema_metadata({b"geo": json.dumps(meta).encode()}), path)
    return path


def test_points_that_are_missing_empty_or_have_a_height(tmp_path):
    batch = one(geo(POINTS, tmp_path / "a.parquet"))
    np.testing.assert_array_equal(batch.x, [127.5, np.nan, np.nan, 127])
    np.testing.assert_array_equal(batch.y, [37.5, np.nan, np.nan, 37])
    there = gpd.GeoSeries(POINTS[:2], crs=4326).to_crs(5179)
    for encoding in ("WKB", "geoarrow"):  # brought to the CRS of the domain
        batch = one(geo(there, tmp_path / "a.parquet", 5179, geometry_encoding=encoding))
        np.testing.assert_allclose(batch.x, [127.5, np.nan], atol=1e-9)


def test_metadata_say_the_crs_and_the_primary_geometry(tmp_path):
    def stated(change):
        return with_metadata(geo(POINTS, tmp_path / "a.parquet"), change)

    longitude = stated(lambda meta: meta["columns"]["geometry"].pop("crs"))
    assert one(longitude).x[0] == 127.5
    unknown = stated(lambda meta: meta["columns"]["geometry"].update(crs=None))
    assert "no CRS" in refused(unknown, error=DomainError)
    for change in (lambda m: m.pop("columns"), lambda m: m.update(columns=[1]), dict.clear):
        assert "metadata" in refused(stated(change))
    data = gpd.GeoDataFrame(geometry=POINTS[:1], crs=4326)
    data["home"] = gpd.GeoSeries([shapely.Point(126.5, 37)], crs=4326)
    data.to_parquet(tmp_path / "a.parquet")
    assert one(tmp_path / "a.parquet").x[0] == 127.5
    assert one(tmp_path / "a.parquet", geometry="home").x[0] == 126.5
    assert "no column 'work'" in refused(tmp_path / "a.parquet", geometry="work")


def test_bytes_that_are_no_points(file):
    """What else is refused is that of `tests/property/test_point_laws.py`."""
    path = geo([POINTS[0], shapely.from_wkt("LINESTRING (0 0, 1 1)")], file(table()))
    assert "must hold points" in refused(path)
    rows = pq.read_table(path)
    bad = rows.set_column(1, "geometry", pa.array([b"8642.13579"] * 2))
    pq.write_table(bad.replace_schema_metadata(rows.schema.metadata), path)
    assert "WKB" in refused(path)
    assert "must hold points" in refused(file(table()), geometry="lon")
    assert "no CRS" in refused(file(table(g=[b"", b""])), error=DomainError, geometry="g")
