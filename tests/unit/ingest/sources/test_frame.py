"""DataFrames and GeoDataFrames, and that all sources tell the tally the same."""

import datetime as dt
from decimal import Decimal

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from shapely import Point, Polygon

import psd
from psd.errors import DomainError, InputDataError
from psd.ingest.sources import Columns, read
from psd.ingest.sources import frame as source
from psd.ingest.tally_builder import tally_batches
from psd.privacy.unit import PrivacyUnit, privacy_unit

DOMAIN = psd.Domain(bounds=(126, 37, 128, 38))
KEY = b"sixteen bytes ok"


def one_batch(table, **columns):
    (batch,) = read(table, Columns(**columns), DOMAIN)
    return batch


def table(size=300):
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "id": [f"{n:03d}" for n in rng.integers(0, 20, size)],
            "lon": rng.uniform(125.9, 128.1, size).round(2),
            "lat": rng.uniform(36.9, 38.1, size).round(2),
        }
    )


def points(frame, crs="EPSG:4326"):
    shapes = gpd.points_from_xy(frame["lon"], frame["lat"])
    return gpd.GeoDataFrame(frame.drop(columns=["lon", "lat"]), geometry=shapes, crs=crs)


@pytest.mark.parametrize("k", [None, 1, 4], ids=["record", "one-row-per-user", "four-rows"])
def test_the_same_points_give_the_same_tally(tmp_path, k):
    frame = table()
    frame.to_csv(tmp_path / "points.csv", index=False)
    columns = Columns(user=None if k is None else "id")
    csv, memory, shapes = (
        tally_batches(
            read(data, columns, DOMAIN),
            DOMAIN,
            unit=privacy_unit(columns.user, k),
            key=KEY,
        )
        for data in (tmp_path / "points.csv", frame, points(frame))
    )
    assert csv.counts.sum() == (csv.report["read"] - csv.report["outside"] if k is None else 20 * k)
    for other in (memory, shapes):
        for name in ("columns", "rows", "counts"):
            np.testing.assert_array_equal(getattr(csv, name), getattr(other, name))
        assert (csv.contributions, csv.report) == (other.contributions, other.report)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([127, 126], id="integers"),
        pytest.param(np.array([127, 126], np.float32), id="single-precision"),
        pytest.param(pd.array([127.0, 126.0], dtype="Float64"), id="nullable"),
        pytest.param(pd.array([127.0, 126.0], dtype="double[pyarrow]"), id="arrow"),
    ],
)
def test_numbers_of_any_kind(values):
    batch = one_batch(pd.DataFrame({"lon": values, "lat": [37.5, 37.5]}))
    assert batch.x.dtype == np.float64
    assert batch.x.tolist() == [127.0, 126.0]


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([127.0, np.nan], id="nan"),
        pytest.param(pd.array([127.0, None], dtype="Float64"), id="nullable"),
        pytest.param(pd.array([127, None], dtype="Int64"), id="nullable-integer"),
    ],
)
def test_missing_coordinates_are_left_out(values):
    frame = pd.DataFrame({"lon": values, "lat": [37.5, 37.5]})
    counts = tally_batches(read(frame, Columns(), DOMAIN), DOMAIN)
    assert counts.report == {"read": 2, "without coordinates": 1, "outside": 0, "kept": 1}


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(["127.0"], id="text"),
        pytest.param(pd.Series([127.0], dtype=object), id="objects"),
        pytest.param([True], id="booleans"),
        pytest.param([pd.Timestamp("2020-01-01")], id="dates"),
        pytest.param([127 + 1j], id="complex"),
        pytest.param([np.inf], id="inf"),
        pytest.param([-np.inf], id="minus-inf"),
    ],
)
def test_coordinates_that_are_refused(values):
    with pytest.raises(InputDataError, match="'lon'"):
        one_batch(pd.DataFrame({"lon": values, "lat": [37.5]}))


@pytest.mark.parametrize(
    ("ids", "texts"),
    [
        pytest.param(["007", "7"], ["007", "7"], id="text"),
        pytest.param([7, 2**53 + 1], ["7", "9007199254740993"], id="integers"),
        pytest.param(pd.array([7, None], dtype="Int64"), ["7", None], id="nullable-integers"),
        pytest.param(pd.Categorical(["b", "a"]), ["b", "a"], id="categories"),
        pytest.param(["a", None], ["a", None], id="none"),
        pytest.param(["a", "  "], ["a", "  "], id="blank, which the tally takes for none"),
    ],
)
def test_ids_become_text(ids, texts):
    frame = pd.DataFrame({"id": ids, "lon": [127.0, 127], "lat": [37.5, 37.5]})
    assert one_batch(frame, user="id").user.to_pylist() == texts


def test_ids_in_floating_point_are_refused():
    frame = pd.DataFrame({"id": [7.0, np.nan], "lon": [127.0, 127], "lat": [37.5, 37.5]})
    with pytest.raises(InputDataError, match="floating values"):
        one_batch(frame, user="id")


@pytest.mark.parametrize("user", ["who", "id"], ids=["missing", "doubled"])
def test_the_column_of_ids_has_to_be_there_once(user):
    frame = pd.DataFrame([["a", "b", 127.0, 37.5]], columns=["id", "id", "lon", "lat"])
    for data in (frame, points(frame)):
        with pytest.raises(InputDataError, match=f"'{user}'"):
            one_batch(data, user=user)


@pytest.mark.parametrize("names", [{"x": "lng"}, {"y": "latitude"}])
def test_columns_of_coordinates_have_to_be_there(names):
    with pytest.raises(InputDataError, match="no column"):
        one_batch(table(), **names)


def test_another_index_and_no_rows():
    frame = table(5)
    shuffled = frame.set_axis([9, 9, "a", None, 2.5])
    assert one_batch(shuffled).x.tolist() == frame["lon"].tolist()
    assert len(one_batch(frame.iloc[:0]).x) == len(one_batch(points(frame.iloc[:0])).x) == 0


def test_points_are_brought_to_the_crs_of_the_domain():
    frame = table(50)
    there = points(frame).to_crs("EPSG:5179")
    batch = one_batch(there)
    np.testing.assert_allclose(batch.x, frame["lon"], atol=1e-9)
    np.testing.assert_allclose(batch.y, frame["lat"], atol=1e-9)


def test_points_without_crs_are_refused():
    with pytest.raises(DomainError, match="no CRS"):
        one_batch(points(table(2), crs=None))


@pytest.mark.parametrize("absent", [None, Point()], ids=["none", "empty"])
def test_absent_points_are_left_out(absent):
    data = gpd.GeoDataFrame(geometry=[Point(127, 37.5), absent], crs="EPSG:4326")
    batch = one_batch(data)
    assert batch.x[0] == 127
    assert np.isnan(batch.x[1])


def test_other_geometries_are_refused():
    shape = Polygon([(127, 37), (128, 37), (128, 38)])
    with pytest.raises(InputDataError, match="must hold points"):
        one_batch(gpd.GeoDataFrame(geometry=[Point(127, 37.5), shape], crs="EPSG:4326"))


def test_points_beyond_the_reach_of_a_projection_are_outside():
    shapes = [Point(0, 1e30), Point(1e30, 1e30), Point(), Point(14137578, 4509031)]
    data = gpd.GeoDataFrame(geometry=shapes, crs="EPSG:3857")
    counts = tally_batches(read(data, Columns(), DOMAIN), DOMAIN)
    assert counts.report == {"read": 4, "without coordinates": 1, "outside": 2, "kept": 1}


def test_the_table_of_the_caller_stays_as_it_is():
    frame = table(20)
    before = frame.copy()
    tally_batches(read(frame, Columns(user="id"), DOMAIN), DOMAIN, unit=PrivacyUnit(kind="user"))
    pd.testing.assert_frame_equal(frame, before)


def test_decimals_of_arrow_are_numbers():
    values = pd.array([Decimal("127.25"), None], dtype=pd.ArrowDtype(pa.decimal128(9, 4)))
    batch = one_batch(pd.DataFrame({"lon": values, "lat": [37.5, 37.5]}))
    np.testing.assert_array_equal(batch.x, [127.25, np.nan])


@pytest.mark.parametrize(
    "times",
    [
        pytest.param(pd.to_datetime(["2024-01-31T01:00Z", None]), id="aware"),
        pytest.param(pd.to_datetime(["2024-01-31T10:00", None]), id="on-the-wall"),
        pytest.param(["2024-01-31T01:00Z", None], id="text"),
        pytest.param(pd.Categorical(["2024-01-31T10:00", None]), id="categories"),
        pytest.param(pd.array(["2024-01-31T10:00", None], dtype="string[pyarrow]"), id="arrow"),
    ],
)
def test_times(times):
    frame = pd.DataFrame({"lon": [127.0, 127], "lat": [37.5, 37.5], "seen": times})
    batch = one_batch(frame, time="seen", time_zone="Asia/Seoul")
    assert batch.time.tolist() == [dt.datetime(2024, 1, 31, 10), None]


@pytest.mark.parametrize("values", [[1706695200, 0], [1.5, np.nan], ["8642", None], [True, False]])
def test_times_that_are_refused(values):
    frame = pd.DataFrame({"lon": [127.0, 127], "lat": [37.5, 37.5], "seen": values})
    with pytest.raises(InputDataError, match="'seen'") as raised:
        one_batch(frame, time="seen")
    assert "8642" not in str(raised.value)


def test_another_column_of_points():
    data = points(table(3))
    data["home"] = gpd.GeoSeries([Point(127, 37.25)] * 3, crs=4326).to_crs(5179)
    assert one_batch(data, geometry="home").y == pytest.approx([37.25] * 3)
    with pytest.raises(InputDataError, match="no column 'work'"):
        one_batch(data, geometry="work")
    with pytest.raises(InputDataError, match="must hold geometries"):
        one_batch(data, geometry="id")
    with pytest.raises(InputDataError, match="no active geometry"):
        one_batch(gpd.GeoDataFrame({"id": ["a"]}))


def test_long_tables_come_in_parts(monkeypatch):
    monkeypatch.setattr(source, "MAX_BATCH_ROWS", 100)
    frame = table(250)
    batches = list(read(frame, Columns(user="id"), DOMAIN))
    assert [len(batch.x) for batch in batches] == [100, 100, 50]
    ids = [user for batch in batches for user in batch.user.to_pylist()]
    assert ids == frame["id"].tolist()


def test_ids_of_two_kinds_are_refused_wherever_they_stand(monkeypatch):
    monkeypatch.setattr(source, "MAX_BATCH_ROWS", 1)
    frame = pd.DataFrame({"id": ["7", 7], "lon": [127.0, 127], "lat": [37.5, 37.5]}, dtype=object)
    frame = frame.astype({"lon": float, "lat": float})
    with pytest.raises(InputDataError, match="mixed"):
        next(read(frame, Columns(user="id"), DOMAIN))


def test_a_table_given_twice():
    rows = table()
    for item in (rows, pa.Table.from_pandas(rows)):
        with pytest.raises(InputDataError, match="repeated"):
            next(read([item, item], Columns(), DOMAIN))
