"""Arrow streams of any library and relations of DuckDB."""

import importlib
from dataclasses import replace
from decimal import Decimal
from itertools import product

import duckdb
import geopandas as gpd
import numpy as np
import pyarrow as pa
import pytest
import shapely

import psd
from psd.errors import DomainError
from psd.ingest.sources import Columns, _arrow, read
from support.batches import DOMAIN, SECRET, one, refused

TABLE = pa.table({"lon": [127.5, None], "lat": [37.5, 37.5], "id": [2**53 + 1, None]})

TEXTS = pa.string(), pa.large_string(), pa.string_view()


class Capsules:
    """What any other library hands over."""

    def __init__(self, data):
        self.__arrow_c_stream__ = data.__arrow_c_stream__


STREAMS = {
    "table": lambda: TABLE,
    "record batch": lambda: TABLE.to_batches()[0],
    "reader": lambda: TABLE.to_reader(),
    "other library": lambda: Capsules(TABLE),
    "duckdb": lambda: duckdb.connect().from_arrow(TABLE),
    "list": lambda: [TABLE.slice(0, 2)],
    "polars": lambda: importlib.import_module("polars").from_arrow(TABLE),
}


@pytest.mark.parametrize(
    "kind", [*list(STREAMS)[:6], pytest.param("polars", marks=pytest.mark.deep)]
)
def test_streams(kind):
    batch = one(STREAMS[kind](), user="id")
    np.testing.assert_array_equal(batch.x, [127.5, np.nan])
    assert batch.user.to_pylist() == ["9007199254740993", None]


def test_a_stream_is_read_batch_by_batch():
    taken = []

    def rows():
        for start in range(5):
            taken.append(start)
            yield pa.record_batch({"lon": [127.0 + start / 10], "lat": [37.5]})

    schema = pa.schema([("lon", pa.float64()), ("lat", pa.float64())])
    batches = read(pa.RecordBatchReader.from_batches(schema, rows()), Columns(), DOMAIN)
    next(batches)
    assert len(taken) < 5
    assert len(list(batches)) == 4


def test_what_is_refused():
    def rows():
        yield TABLE.to_batches()[0]
        raise OSError(SECRET)

    at_once = f"SELECT error('{SECRET}')::DOUBLE AS lon, 1 AS lat"
    later = f"CASE WHEN i > 500000 THEN error('{SECRET}')::DOUBLE END AS lon, 1 AS lat"
    connection = duckdb.connect()
    for query in (at_once, f"SELECT {later} FROM range(1000000) AS t(i)"):
        assert "does its query run" in refused(connection.sql(query))
    relation = connection.sql("SELECT 1 AS lon, 2 AS lat")
    connection.close()
    assert "connection open" in refused(relation)
    assert "failed while" in refused(pa.RecordBatchReader.from_batches(TABLE.schema, rows()))
    assert "the Table has no column 'x'" in refused(TABLE, x="x")
    assert "the DuckDBPyRelation has no column 'x'" in refused(duckdb.from_arrow(TABLE), x="x")
    reader = TABLE.to_reader()
    assert len(one(reader).x) == 2
    assert not list(read(reader, Columns(), DOMAIN))  # a stream is read once


def test_a_missing_column_is_explained_by_names_that_are_no_values():
    naming = (
        "name it by x=NAME, y=NAME, user=NAME, time=NAME or geometry=NAME, or correct it in where= "
        "or values="
    )
    twenty = [f"c{number}" for number in range(20)]
    for names, cause in (
        (["lat", "X", " x "], "it has 'X', ' x '; choose one by its exact name"),
        (["lat"], f"its columns are lat; {naming}"),
        (twenty, f"its columns are {', '.join(twenty)}; {naming}"),
        ([*twenty, "more"], f"its columns are {', '.join(twenty)}, ...; {naming}"),
        ([], f"its columns are none; {naming}"),
        (["127.5", "37.5"], naming),
    ):
        data = pa.table({name: [1.0] for name in names})
        assert refused(data, x="x", y="lat") == f"the Table has no column 'x'; {cause}"
    twice = pa.table([[127.0], [37.0], [1.0]], ["lon", "lat", "lon"])
    assert refused(twice) == "the Table has 2 columns named 'lon'"


def test_what_is_no_number_is_no_bid(subtests):
    """Whatever a column of bids holds is read, so that no record stops a reading."""
    texts = ["2.5", "x", None]
    for values, found in (
        (pa.array([2, None], pa.int32()), [2, np.nan]),
        (pa.array([2.5, np.inf]), [2.5, np.inf]),
        (pa.array([2**63], pa.uint64()), [2.0**63]),
        (pa.array([2**53 + 1]), [2.0**53]),
        (pa.array([Decimal("2.5"), None]), [2.5, np.nan]),
        *((pa.array(texts, kind), [2.5, np.nan, np.nan]) for kind in TEXTS),
        (pa.array(["1", "2"]), [1.0, 2.0]),
        (pa.array(texts).dictionary_encode(), [2.5, np.nan, np.nan]),
        (pa.array([True, False]), [np.nan] * 2),
        (pa.array([0], pa.timestamp("us")), [np.nan]),
        (pa.nulls(3), [np.nan] * 3),
    ):
        with subtests.test(type=str(values.type)):
            places = np.full(len(values), 127.5)
            batch = one(pa.table({"lon": places, "lat": places - 90, "bid": values}), bid="bid")
            assert batch.bid.dtype == np.float64
            np.testing.assert_array_equal(batch.bid, found)


def test_filters_and_values_are_read_beside_the_points():
    data = pa.table({
        "lon": [127.1, 127.2, 127.3], "lat": [37.0] * 3,
        "ok": ["true", "1", "no"], "fare": ["12.5", "1", None],
    })  # fmt: skip
    batch = one(data, values=("fare",))
    np.testing.assert_array_equal(batch.values, [[12.5], [1], [np.nan]])
    assert batch.match.tolist() == [True, True, False]
    columns = Columns(where="ok = '1'")
    layout = _arrow.find_columns("the Table", data.schema, columns, DOMAIN, {})
    # Of GeoJSON, where a property may be a flag in one feature and text in another.
    for is_json, match in ((False, [False, True, False]), (True, [True, True, False])):
        (batch,) = replace(layout, is_json=is_json).batches(data.to_batches())
        assert batch.match.tolist() == match


def test_ids_of_all_types_of_text_and_missing_ones_are_text():
    for kind in TEXTS:
        data = TABLE.set_column(2, "id", pa.array(["7", None], kind))
        assert one(data, user="id").user.to_pylist() == ["7", None]
    nobody = one(TABLE.set_column(2, "id", pa.nulls(2)), user="id")
    assert (nobody.user.type, nobody.user.null_count) == (pa.string(), 2)


def test_batches_have_a_limited_number_of_records(monkeypatch):
    monkeypatch.setattr(_arrow, "MAX_BATCH_ROWS", 1)
    for rows, batches in ((0, 1), (1, 1), (2, 2)):
        record = TABLE.to_batches()[0].slice(0, rows)
        layout = _arrow.find_columns("it", TABLE.schema, Columns(user="id"), DOMAIN, {})
        sizes = [len(batch.x) for batch in layout.batches([record])]
        assert (sum(sizes), len(sizes)) == (rows, batches)


def test_messages_name_the_column_and_the_input():
    lon, lat = pa.array([127.5]), pa.array([37.5])
    pair, text = {"lon": lon, "lat": lat}, pa.array(["soon"])
    for column in pair:
        assert refused(pa.table(pair | {column: text})).startswith(f"column '{column}' must be num")
        infinite = pa.table(pair | {column: pa.array([np.inf])})
        assert refused(infinite).startswith(f"column '{column}' ")
    for times in (text, pa.array([True])):
        assert refused(pa.table(pair | {"at": times}), time="at").startswith("column 'at' ")
    assert refused(pa.table({"p": lon}), wkt="p").startswith("column 'p' must hold points in WKT")
    two = pa.table({"x": lon, "y": lat, "easting": lon, "northing": lat})
    assert refused(two).startswith("the Table has 2 pairs of columns of coordinates: x and y, eas")
    assert "different columns of the Table, got lon, lat, lat" in refused(pa.table(pair), bid="LAT")
    rounded = psd.Domain(bounds=(126, 37, 128, 38), coordinate_resolution=0.5)
    with pytest.raises(DomainError, match="and the Table has another CRS"):
        list(read(pa.table(pair), Columns(input_crs="EPSG:5179"), rounded))
    stated = pa.table({"p": ["SRID=5179;POINT (1000000 2000000)"]})
    batch = one(stated, wkt="p", input_crs="EPSG:5179")
    assert batch.x[0] == pytest.approx(127.5, abs=1e-9)


# --- geometries -------------------------------------------------------------------------------

SHAPES = gpd.GeoSeries([shapely.Point(127.5, 37.5), None], crs=4326)


def geo(crs=4326, **options):
    data = gpd.GeoDataFrame({"id": ["a", "b"]}, geometry=SHAPES).to_crs(crs)
    return pa.table(data.to_arrow(**options))


def test_geoarrow(subtests):
    pairs = {"geometry_encoding": "geoarrow"}
    for crs, options in product([4326, 5179], [{}, pairs, pairs | {"interleaved": False}]):
        with subtests.test(crs=crs, **options):
            batch = one(geo(crs, **options), user="id")
            np.testing.assert_allclose(batch.x, [127.5, np.nan], atol=1e-9)
            np.testing.assert_allclose(batch.y, [37.5, np.nan], atol=1e-9)
    data = geo()
    data = data.append_column(data.schema.field("geometry").with_name("home"), data["geometry"])
    assert "geometry, home" in refused(data)
    assert one(data, geometry="home").x[0] == 127.5
    query = "SELECT st_setcrs('POINT (1000000 2000000)'::GEOMETRY, 'EPSG:5179') AS g"
    assert one(duckdb.connect().sql(query)).x[0] == pytest.approx(127.5, abs=1e-9)
    without = "SELECT 'POINT (127 37)'::GEOMETRY AS g"
    assert "no CRS" in refused(duckdb.connect().sql(without), error=DomainError)
    message = refused(geo(), error=DomainError, input_crs="EPSG:5179")
    assert "since the Table states another CRS than EPSG:5179" in message
    for name, values, words in (
        (b"geoarrow.wkb", pa.array([7]), "must hold points, got type int64"),
        (b"ogc.wkb", pa.array([b"no point"]), "must hold geometries in WKB"),
    ):
        noted = {
            b"ARROW:extension:name": name,
            b"ARROW:extension:metadata": b'{"crs": "EPSG:4326"}',
        }
        schema = pa.schema([pa.field("home", values.type, metadata=noted)])
        assert refused(pa.table([values], schema)).startswith(f"column 'home' {words}")


def test_registered_extension_types():
    """As pyarrow gives them where a library has registered the types of GeoArrow."""

    class Points(pa.ExtensionType):
        def __init__(self):
            super().__init__(pa.binary(), "geoarrow.wkb")

        def __arrow_ext_serialize__(self):
            return b'{"crs": "EPSG:4326"}'

        @classmethod
        def __arrow_ext_deserialize__(cls, storage, serialized):
            return cls()

    kept = pa.ExtensionArray.from_storage(Points(), pa.array(SHAPES.to_wkb(), pa.binary()))
    pa.register_extension_type(Points())
    try:
        assert one(pa.table({"geometry": kept})).x[0] == 127.5
    finally:
        pa.unregister_extension_type("geoarrow.wkb")


def test_an_unknown_crs():
    data = geo()
    unknown = (b"", b"{}", b"no json", b"[1]", b'{"crs": null}')
    for stated, words in (
        *((text, "no CRS") for text in unknown),
        (b'{"crs": "here"}', "the Table has a CRS that is refused: crs must be a coordinate"),
    ):
        noted = {b"ARROW:extension:name": b"geoarrow.wkb", b"ARROW:extension:metadata": stated}
        schema = data.schema.set(1, data.schema.field("geometry").with_metadata(noted))
        assert words in refused(data.cast(schema), error=DomainError)
    noted.popitem()  # no CRS is stated
    schema = data.schema.set(1, data.schema.field("geometry").with_metadata(noted))
    assert "no CRS" in refused(data.cast(schema), error=DomainError)


def test_values_that_run_into_one_another():
    """Offsets that go back, as a faulty producer makes them, never become points."""
    wkb = shapely.to_wkb([shapely.Point(i, i) for i in range(4)])
    offsets = np.array([0, 21, 42, 21, 42], np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(wkb))]
    array = pa.Array.from_buffers(pa.binary(), 4, buffers)
    field = geo().schema.field("geometry")
    assert "must hold geometries in WKB" in refused(pa.table([array], pa.schema([field])))
