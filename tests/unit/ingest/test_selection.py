"""Which records a filter selects: the values of SQL, record by record, and none is refused."""

import datetime
import decimal

import duckdb
import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import psd
from psd.errors import InputDataError
from psd.ingest.selection import Rules, select
from psd.ingest.sources import Columns, read
from psd.ingest.where import parse_where
from psd.testing import RecordingSampler

DOMAIN = psd.Domain(bounds=(126, 37, 128, 38))

# Values of all kinds that a column may have, among them such as other software refuses.
ODD = [
    *(None, float("nan"), float("inf"), -0.0, 1.5, 18, 18.0, 2**70, -(10**5000), True, False),
    *("", " ", "18", " 18 ", "018", "1,5", "1.5", "1e3", "1e999", "inf", "nan", "true", "FALSE"),
    *("asthma", "Asthma", "\ud800", "a\x00b", "2024-01-31", "2024-02-30", "2024-01-31 25:00"),
    *(datetime.date(2024, 1, 31), datetime.datetime(2024, 1, 31, 10, 0), datetime.time(10)),
    *(datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=5))),),
    *(pd.NaT, pd.NA, decimal.Decimal("18.0"), decimal.Decimal("NaN"), b"18", [1, 2], {}, object()),
    *(np.int64(18), np.float32(1.5), np.datetime64("2024-01-31"), shapely.Point(1, 2), 3 + 4j),
]
FILTERS = [
    *("v = 18", "v <> 18", "v < 100", "NOT v < 100", "v IN (18, 1000)", "NOT v IN (18, 1000)"),
    *("v = 'asthma'", "v <> 'asthma'", "v >= 'a'", "v IN ('18', 'asthma')", "v LIKE '1%'"),
    *("v IS NULL", "v IS NOT NULL", "v = TRUE", "v <> TRUE", "v = DATE '2024-01-31'"),
    *("v < TIMESTAMP '2024-02-01 00:00'", "NOT v = '2024-01-31'", "v = 18 OR v IS NULL"),
    *("v = 18 OR NOT v = 18", "v = 'asthma' AND v IS NOT NULL", "v > -1 OR v = 'x'"),
]


@pytest.mark.parametrize("where", FILTERS)
def test_each_record_is_decided_by_itself_and_none_is_refused(where):
    """What stands beside a value changes nothing, in whatever batches and tables values come."""
    predicate = parse_where(where)
    alone = [select(predicate, {"v": [value]}).item() for value in ODD]
    assert select(predicate, {"v": ODD}).tolist() == alone
    assert select(predicate, {"v": ODD[::-1]}).tolist() == alone[::-1]
    table = pd.Series([*ODD, *ODD], dtype=object)
    assert select(predicate, {"v": table}).tolist() == alone * 2
    texts = [value for value in ODD if isinstance(value, str) and value != "\ud800"]
    of_texts = [select(predicate, {"v": [value]}).item() for value in texts]
    for made in (pa.array, pd.Series, lambda values: pd.Series(values, dtype="category")):
        assert select(predicate, {"v": made(texts)}).tolist() == of_texts
    assert 0 < sum(alone) < len(ODD)


def test_runs_and_dictionaries_are_decoded_however_they_are_nested():
    texts, ends = pa.array(["a", "b", None]), pa.array([2, 3, 5], pa.int32())
    runs = pa.RunEndEncodedArray.from_arrays(ends, texts)
    of_dictionary = pa.RunEndEncodedArray.from_arrays(ends, texts.dictionary_encode())
    of_runs = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, 4]), runs)
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1, 2, 2]), texts.dictionary_encode())
    for array in (runs, of_dictionary, of_runs, twice):
        for start in range(5):
            selected = select(parse_where("v = 'a'"), {"v": array.slice(start)})
            assert selected.tolist() == [True, True, False, False, False][start:]


UNKNOWN = {
    "age = 18": ["x", "", None, "1,5", float("nan"), float("inf"), "1e999", [18], b"18"],
    "age <> 18": ["x", "", None, "1,5", float("nan"), [18], datetime.date(2024, 1, 31)],
    "age IN (18, 19)": ["x", None, []],
    "name = 'ann'": [1.5, None, "", b"ann", True, datetime.date(2024, 1, 31)],
    "name LIKE '%'": [1.5, None, "", b"ann"],
    "seen < DATE '2024-01-31'": ["soon", "2023-02-30", 7, None, "2023-01-01 25:00"],
    "ok = TRUE": [2, "yes", None, "", 0.5],
}


@pytest.mark.parametrize("where", UNKNOWN)
def test_what_cannot_be_decided_is_left_out_with_not_too(where):
    column = parse_where(where).column
    for text in (where, f"NOT {where}", f"NOT NOT {where}", f"({where}) OR NOT {where}"):
        selected = select(parse_where(text), {column: UNKNOWN[where]})
        assert not selected.any()
    either = parse_where(f"NOT ({where}) OR other = 1")
    assert select(either, {column: UNKNOWN[where], "other": [1] * len(UNKNOWN[where])}).all()


def test_numbers_texts_times_and_flags_compare_as_stated():
    rules = Rules(time_zone="Asia/Seoul", decimal=",")
    for where, value, expected in [
        ("v = 1.5", "1,5", True),
        ("v = 1.5", "1.5", False),
        ("v = '18'", 18, True),
        ("v = '18'", 18.0, True),
        ("v = '018'", 18, False),
        ("v = '18'", "018", False),
        ("v = 18", "018", True),
        ("v = '9007199254740993'", 2**53 + 1, True),
        ("v = 'ann'", " ann\t", True),
        ("v = TRUE", "True", True),
        ("v <> TRUE", 0, True),
        ("v = 1", True, True),
        ("v = DATE '2024-02-01'", "2024-01-31T15:00Z", True),
        ("v > '2024-01-31 23:59'", datetime.datetime(2024, 1, 31, 15, tzinfo=datetime.UTC), True),
        ("v = DATE '2024-01-31'", datetime.date(2024, 1, 31), True),
        ("v < 'b'", "a", True),
        ("v < 'b'", "é", False),
    ]:
        assert select(parse_where(where), {"v": [value]}, rules).tolist() == [expected], where


NAMES = st.sampled_from(["i", "d", "t", "b", "s"])
LITERALS = {
    "i": st.integers(-3, 3).map(str),
    "d": st.sampled_from(["-1.5", "0", "0.25", "2"]),
    "t": st.sampled_from(["'a'", "'ab'", "'b''c'", "'é'", "'_'"]),
    "b": st.sampled_from(["TRUE", "FALSE"]),
    "s": st.sampled_from(["DATE '2024-01-31'", "TIMESTAMP '2024-01-31 10:00'"]),
}
SIGNS = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])


@st.composite
def leaves(draw):
    name = draw(NAMES)
    literal = LITERALS[name]
    forms = ["null", "in", "sign", *(["like"] if name == "t" else [])]
    form = draw(st.sampled_from(forms))
    if form == "null":
        return f"{name} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    if form == "in":
        return f"{name} IN ({', '.join(draw(st.lists(literal, min_size=1, max_size=3)))})"
    if form == "like":
        return f"t LIKE {draw(st.sampled_from(['%', 'a%', '_', '%c', '_b']).map(repr))}"
    sign = draw(st.sampled_from(["=", "<>"])) if name == "b" else draw(SIGNS)
    return f"{name} {sign} {draw(literal)}"


FILTER = st.recursive(
    leaves(),
    lambda part: st.one_of(
        part.map("NOT ({})".format),
        st.lists(part, min_size=2, max_size=3).map(lambda ps: "(" + " AND ".join(ps) + ")"),
        st.lists(part, min_size=2, max_size=3).map(lambda ps: "(" + " OR ".join(ps) + ")"),
    ),
    max_leaves=6,
)
MOMENTS = [datetime.datetime(2024, 1, 30), datetime.datetime(2024, 1, 31, 10), None]
TYPED = pa.table(
    {
        "i": pa.array([None, -3, 0, 1, 2, 3, 3, 0] * 5, pa.int64()),
        "d": pa.array([0.25, None, -1.5, 2.0, 0.0] * 8, pa.float64()),
        "t": pa.array(["a", "ab", "b'c", None, "é", "_", "z", "abc"] * 5),
        "b": pa.array([True, False, None, True] * 10),
        "s": pa.array((MOMENTS * 14)[:40], pa.timestamp("us")),
    }
)


@pytest.fixture(scope="module")
def database():
    with duckdb.connect() as connection:
        connection.register("rows", TYPED)
        yield connection


@given(where=FILTER)
def test_it_selects_what_sql_selects(database, where):
    """The canonical text is SQL; DuckDB decides about the same table."""
    predicate = parse_where(where)
    query = f"SELECT coalesce(({predicate}), FALSE) FROM rows"
    expected = [row[0] for row in database.execute(query).fetchall()]
    assert select(predicate, {n: TYPED[n] for n in TYPED.column_names}).tolist() == expected


ROWS = pd.DataFrame(
    {
        "lon": [126.5, 127.0, np.nan, 127.5, 127.6],
        "lat": [37.5, 37.5, 37.5, 37.1, 37.2],
        "id": ["a", "a", "b", "b", "c"],
        "diagnosis": ["asthma", "flu", "asthma", None, "asthma"],
        "age": ["30", "n/a", "7", "12", "80"],
    }
)


def batches(data, where, **columns):
    return list(read(data, Columns(where=where, **columns), DOMAIN))


@pytest.mark.parametrize("where", FILTERS)
def test_properties_of_geojson_do_not_change_with_features_beside_them(tmp_path, where):
    """GDAL finds the type of a property by all features; a value means the same under each type."""
    values = [18, 1.5, 0, 1, True, False, "18", "true", "asthma", None, [1], {"a": 1}, 2**60, ""]

    def selected(chosen):
        points = gpd.GeoSeries.from_xy(126.5 + np.arange(len(chosen)) / 100, [37.5] * len(chosen))
        text = {
            "type": "FeatureCollection",
            "features": [
                {"type": "Feature", "geometry": g, "properties": {"v": v}}
                for g, v in zip(map(shapely.geometry.mapping, points), chosen, strict=True)
            ],
        }
        path = tmp_path / "a.geojson"
        path.write_text(pd.io.json.ujson_dumps(text))
        return np.concatenate([batch.match for batch in batches(path, where)]).tolist()

    alone = [selected([value])[0] for value in values if value is not None]
    together = selected(values)
    del together[values.index(None)]
    assert together == alone


def test_numbers_of_geojson_without_an_end_are_no_text_beside_text(tmp_path):
    path = tmp_path / "a.geojson"
    shape = '"type": "Feature", "geometry": {"type": "Point", "coordinates": [127, 37.5]}'
    for value in ("Infinity", "-Infinity", "NaN"):
        for others in ([], ['"x"'], ["[1]"]):
            features = [f'{{{shape}, "properties": {{"v": {v}}}}}' for v in (value, *others)]
            path.write_text(f'{{"type": "FeatureCollection", "features": [{", ".join(features)}]}}')
            (batch,) = batches(path, "v <> 'a'")
            assert not batch.match[0], (value, others)


def test_a_missing_category_and_odd_decimals_stop_nothing():
    """Categories of whole numbers have no missing one, and some decimals are no float."""
    for values, expected in [
        (pd.Categorical([18, None, 19]), [True, False, False]),
        (
            pd.Series([decimal.Decimal("sNaN"), decimal.Decimal("NaN"), 18], dtype=object),
            [False, False, True],
        ),
    ]:
        table = pd.DataFrame({"lon": 127.0, "lat": 37.5, "v": values, "user": ["a", "b", "c"]})
        (batch,) = batches(table, "v = 18")
        assert batch.match.tolist() == expected
        (batch,) = batches(table, "user <> 'z'", bid="v")  # nor do they as bids
        assert (batch.bid == 18).tolist() == expected
    with pytest.raises(InputDataError, match="user ids"):
        list(
            read(table.assign(user=pd.Categorical([1.5, None, 2.5])), Columns(user="user"), DOMAIN)
        )


def test_builds_with_a_filter_are_those_of_the_filtered_table(tmp_path):
    """Records that are not selected take no place among those that are kept of a user.

    A release says nothing of its filter, unless its publisher does.
    """
    where = "diagnosis = 'asthma' AND age >= 18"
    kept = ROWS[[True, False, False, False, True]]
    options = {"domain": DOMAIN, "epsilon": 1, "method": "grid", "user": "id"}
    options |= {"max_contributions": 1}
    filtered, alone = (
        psd.build(table, **options, where=chosen, sampler=RecordingSampler())
        for table, chosen in ((ROWS, where), (kept, None))
    )
    assert filtered.index.fit.estimates.count.sum() > 0
    np.testing.assert_array_equal(
        filtered.index.fit.estimates.count, alone.index.fit.estimates.count
    )
    psd.build(ROWS, **options, where=where).save(tmp_path / "a.psd.parquet")
    content = (tmp_path / "a.psd.parquet").read_bytes()
    assert b"asthma" not in content
    assert b"diagnosis" not in content
