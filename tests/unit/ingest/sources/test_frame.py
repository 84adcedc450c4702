"""DataFrames and GeoDataFrames, and that all sources tell the tally the same."""

import datetime as dt
from decimal import Decimal

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from shapely import Point, Polygon

from psd.errors import DomainError, InputDataError
from psd.ingest.sources import Columns, _arrow, read, vector
from psd.ingest.sources import frame as source
from psd.ingest.tally_builder import tally_batches
from psd.privacy.unit import PrivacyUnit
from support.batches import DOMAIN, SECRET, one, refused


def table(size=300):
    rng = np.random.default_rng(3)
    ids = [f"{n:03d}" for n in rng.integers(0, 20, size)]
    x, y = (rng.uniform(low - 0.1, high + 0.1, size) for low, high in ((126, 128), (37, 38)))
    return pd.DataFrame({"id": ids, "lon": x.round(2), "lat": y.round(2)})


def frame_of(lon=None, **columns):
    lon = [127.0, 127] if lon is None else lon
    return pd.DataFrame({"lon": lon, "lat": 37.5} | columns)


def points(frame, crs="EPSG:4326"):
    shapes = gpd.points_from_xy(frame["lon"], frame["lat"])
    return gpd.GeoDataFrame(frame.drop(columns=["lon", "lat"]), geometry=shapes, crs=crs)


def report_of(data):
    return tally_batches(read(data, Columns(), DOMAIN), DOMAIN).report


def test_numbers_of_any_kind(subtests):
    decimals = pd.ArrowDtype(pa.decimal128(9, 4))
    for name, values, numbers in [
        ("integers", np.array([127, 126]), [127, 126]),
        ("single precision", np.array([127, 126], np.float32), [127, 126]),
        ("nan", np.array([127, np.nan]), [127, np.nan]),
        ("nullable", pd.array([127.0, None], dtype="Float64"), [127, np.nan]),
        ("nullable integers", pd.array([127, None], dtype="Int64"), [127, np.nan]),
        ("arrow", pd.array([127.0, None], dtype="double[pyarrow]"), [127, np.nan]),
        ("decimals", pd.array([Decimal("127.25"), None], dtype=decimals), [127.25, np.nan]),
    ]:
        with subtests.test(name):
            batch = one(frame_of(values))
            assert batch.x.dtype == np.float64
            np.testing.assert_array_equal(batch.x, numbers)
            missing = int(np.isnan(numbers).sum())
            left = {"without coordinates": missing, "outside": 0, "kept": 2 - missing}
            assert report_of(frame_of(values)) == {"read": 2, **left}


def test_coordinates_that_are_refused(subtests):
    objects, dates = pd.Series([127.0], dtype=object), pd.to_datetime(["2020-01-01"])
    for values in (["127.0"], objects, [True], dates, [127 + 1j], [np.inf], [-np.inf]):
        with subtests.test(repr(values)):
            assert "'lon'" in refused(frame_of(values))


def test_ids_become_text(subtests):
    for ids, texts in [
        (["007", "7"], ["007", "7"]),
        ([7, 2**53 + 1], ["7", "9007199254740993"]),
        (pd.array([7, None], dtype="Int64"), ["7", None]),
        (pd.Categorical(["b", "a"]), ["b", "a"]),
        (["a", None], ["a", None]),
        (["a", "  "], ["a", "  "]),  # which the tally takes for none
    ]:
        with subtests.test(repr(ids)):
            assert one(frame_of(id=ids), user="id").user.to_pylist() == texts
    assert "floating values" in refused(frame_of(id=[7.0, np.nan]), user="id")
    frame = pd.DataFrame([["a", "b", 127.0, 37.5]], columns=["id", "id", "lon", "lat"])
    for user in ("who", "id"):
        for data in (frame, points(frame)):
            assert f"'{user}'" in refused(data, user=user)
    for names in ({"x": "lng"}, {"y": "latitude"}):
        assert "no column" in refused(table(), **names)


def test_another_index_no_rows_and_a_table_twice():
    frame = table(5)
    shuffled = frame.set_axis([9, 9, "a", None, 2.5])
    assert one(shuffled).x.tolist() == frame["lon"].tolist()
    assert len(one(frame.iloc[:0]).x) == len(one(points(frame.iloc[:0])).x) == 0
    rows = table()
    for item in (rows, pa.Table.from_pandas(rows)):
        with pytest.raises(InputDataError, match="repeated"):
            next(read([item, item], Columns(), DOMAIN))
    frame = table(20)
    before = frame.copy()
    tally_batches(read(frame, Columns(user="id"), DOMAIN), DOMAIN, unit=PrivacyUnit(kind="user"))
    pd.testing.assert_frame_equal(frame, before)


def test_points_are_brought_to_the_crs_of_the_domain():
    frame = table(50)
    batch = one(points(frame).to_crs("EPSG:5179"))
    np.testing.assert_allclose([batch.x, batch.y], [frame["lon"], frame["lat"]], atol=1e-9)
    assert "no CRS" in refused(points(frame, crs=None), error=DomainError)
    far = [Point(0, 1e30), Point(1e30, 1e30), Point(), Point(14137578, 4509031)]
    report = report_of(gpd.GeoDataFrame(geometry=far, crs="EPSG:3857"))
    assert report == {"read": 4, "without coordinates": 1, "outside": 2, "kept": 1}


def test_absent_points_and_other_geometries():
    for absent in (None, Point()):
        data = gpd.GeoDataFrame(geometry=[Point(127, 37.5), absent], crs="EPSG:4326")
        np.testing.assert_array_equal(one(data).x, [127, np.nan])
    shape = Polygon([(127, 37), (128, 37), (128, 38)])
    data = gpd.GeoDataFrame(geometry=[Point(127, 37.5), shape], crs="EPSG:4326")
    assert "must hold points" in refused(data)
    data = points(table(3))
    data["home"] = gpd.GeoSeries([Point(127, 37.25)] * 3, crs=4326).to_crs(5179)
    assert one(data, geometry="home").y == pytest.approx([37.25] * 3)
    assert "no column 'work'" in refused(data, geometry="work")
    assert "must hold geometries" in refused(data, geometry="id")
    assert "no active geometry" in refused(gpd.GeoDataFrame({"id": ["a"]}))


def test_times(subtests):
    wall, moment = (["2024-01-31T10:00", None], ["2024-01-31T01:00Z", None])
    arrow, categories = pd.array(wall, dtype="string[pyarrow]"), pd.Categorical(wall)
    for times in (pd.to_datetime(moment), pd.to_datetime(wall), moment, categories, arrow):
        with subtests.test(repr(times)):
            batch = one(frame_of(seen=times), time="seen", time_zone="Asia/Seoul")
            assert batch.time.tolist() == [dt.datetime(2024, 1, 31, 10), None]
    for values in ([1706695200, 0], [1.5, np.nan], [SECRET, None], [True, False]):
        with subtests.test(repr(values)):
            assert "'seen'" in refused(frame_of(seen=values), time="seen")


def test_the_time_of_a_record_does_not_depend_on_those_beside_it(subtests):
    """Neighbouring tables: Arrow gives all objects the type of the first one."""
    wall = dt.datetime(2024, 1, 31, 10, 30)
    aware = dt.datetime(2024, 1, 31, 1, 30, tzinfo=dt.UTC)
    kept = [wall, aware, pd.Timestamp(aware), np.datetime64(wall), "2024-01-31T10:30", wall]
    for more in (dt.date(2024, 1, 30), aware, wall, pd.Timestamp(wall), "2024-01-30", None):
        seen = pd.Series([more, *kept], dtype=object)
        frame = frame_of([127.0] * len(seen), seen=seen)
        with subtests.test(repr(more)):
            batch = one(frame, time="seen", time_zone="Asia/Seoul")
            assert batch.time[1:].tolist() == [wall] * len(kept)


def test_long_inputs_come_in_parts_with_ids_of_one_kind(subtests, tmp_path, monkeypatch):
    for module, name in ((source, "MAX_BATCH_ROWS"), (_arrow, "MAX_BATCH_ROWS"), (vector, "_ROWS")):
        monkeypatch.setattr(module, name, 100)
    frame = table(1_050)
    points(frame).to_file(tmp_path / "a.gpkg")
    for data in (frame, pa.Table.from_pandas(frame), tmp_path / "a.gpkg"):
        with subtests.test(type(data).__name__):
            batches = list(read(data, Columns(user="id"), DOMAIN))
            assert [len(batch.x) for batch in batches if len(batch.x)] == [100] * 10 + [50]
            found = [user for batch in batches for user in batch.user.to_pylist()]
            assert found == frame["id"].tolist()
            assert np.concatenate([batch.x for batch in batches]).tolist() == frame.lon.tolist()
    monkeypatch.setattr(source, "MAX_BATCH_ROWS", 1)
    mixed = pd.Series(["7", 7], dtype=object)
    assert "mixed" in refused(frame_of(id=mixed), user="id")
