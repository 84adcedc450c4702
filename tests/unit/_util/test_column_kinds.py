"""Which columns a format holds as they are, and the texts of the others."""

import datetime as dt
import json
from decimal import Decimal

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely

from psd._util.column_kinds import (
    _duration_text,
    check_columns,
    held_columns,
    json_text,
    kind_of,
    value_texts,
)
from psd.errors import WriteError

DAY, ZONES = dt.date(2024, 1, 2), [dt.timezone(dt.timedelta(hours=hour)) for hour in (1, 2)]


def of(values, kind=object):
    """A column of a type."""
    return pd.Series(values, dtype=kind)


def moments(*texts):
    """Times of numpy, of any year."""
    return pd.Series(np.array(texts, "datetime64[s]"), dtype="datetime64[s]")


def arrow(array):
    """A column of Arrow."""
    return pd.Series(pd.arrays.ArrowExtensionArray(array))


ALL = "parquet gpkg fgb pmtiles json xlsx csv"

KINDS = [
    # column, kind, texts, formats that hold it as it is
    (of([7, None], "Int64"), "integer", ["7", None], ALL),
    (of([7, None]), "integer", ["7", None], ALL),
    (of([1, -(2**63)], "int64"), "integer", ["1", str(-(2**63))], "parquet gpkg fgb csv"),
    (of([1, 2**63], "uint64"), "integer", ["1", str(2**63)], "parquet csv"),
    (of([-1, 2**63]), "integer", ["-1", str(2**63)], ""),
    (of([10**15 - 1, 1]), "integer", [str(10**15 - 1), "1"], ALL),
    (of([10**15, 1]), "integer", [str(10**15), "1"], "parquet gpkg fgb pmtiles json csv"),
    (of([2**53, 1]), "integer", [str(2**53), "1"], "parquet gpkg fgb csv"),
    (of([True, None]), "truth", ["True", None], ALL),
    (of([True, None], "boolean"), "truth", ["True", None], ALL),
    (of([0.1, None], "Float64"), "number", ["0.1", None], ALL),
    (of([0.5, np.nan], "float16"), "number", ["0.5", None], ALL),
    (of([1, 2.5, None]), "number", ["1.0", "2.5", None], ALL),
    (of([0.1, -np.inf]), "number", ["0.1", "-Infinity"], "parquet gpkg fgb csv"),
    (of(["a", None], "string"), "text", ["a", None], ALL),
    (of([None, None]), "text", [None, None], ALL),
    (of([3, None], "category"), "integer", ["3", None], ALL),
    (arrow(pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None], pa.int8()))), "truth",
     ["True", None], ALL),
    (of([DAY, None]), "date", ["2024-01-02", None], "parquet gpkg xlsx"),
    (of([dt.date(1900, 2, 28), DAY]), "date", ["1900-02-28", "2024-01-02"], "parquet gpkg"),
    (moments("-0044-03-15", "NaT"), "time", ["-000044-03-15T00:00:00", None], "parquet"),
    (moments("10001-01-02", "NaT").dt.tz_localize("UTC"), "zoned",
     ["+010001-01-02T00:00:00+00:00", None], "parquet"),
    (pd.Series(pd.to_datetime(["2024-01-02T03:04:05.123456789", None])), "time",
     ["2024-01-02T03:04:05.123456789", None], "parquet"),
    (of(["2024-01-02T03:04:05.120", None], "datetime64[us]"), "time",
     ["2024-01-02T03:04:05.12", None], "parquet gpkg fgb"),
    (of([dt.datetime(2024, 1, 2, tzinfo=zone) for zone in ZONES]), "mixed",
     ["2024-01-02T00:00:00+01:00", "2024-01-02T00:00:00+02:00"], ""),
    (of([dt.time(1, 2, 3), None]), "clock", ["01:02:03", None], "parquet xlsx"),
    (arrow(pa.array([1, None], pa.int64()).cast(pa.time64("ns"))), "clock",
     ["00:00:00.000000001", None], "parquet"),
    (of([dt.timedelta(-1, 5), None]), "duration", ["-P0DT23H59M55S", None], "parquet"),
    (pd.Series(np.array([90_061_500, "NaT"], "timedelta64[ms]")), "duration",
     ["P1DT1H1M1.5S", None], "parquet"),
    (of([Decimal("1.10"), None]), "decimal", ["1.10", None], "parquet"),
    (of([1 + 2j, None]), "complex", ["1+2j", None], ""),
    (of([b"\0\xff", None]), "bytes", ["00ff", None], "parquet gpkg fgb"),
    (arrow(pa.array([[[1], None], None])), "list", ["[[1], null]", None], "parquet"),
    (arrow(pa.array([[4_000_000]], pa.list_(pa.int32())).cast(pa.list_(pa.date32()))), "list",
     ['["+012921-08-18"]'], "parquet"),
    (arrow(pa.array([[1]], pa.list_(pa.int64())).cast(pa.list_(pa.timestamp("ns")))), "list",
     ['["1970-01-01T00:00:00.000000001"]'], "parquet"),
    (arrow(pa.array([[dt.timedelta(1)]], pa.list_(pa.duration("us")))), "list",
     ['["P1DT0H0M0S"]'], "parquet"),
    (arrow(pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64()))), "list",
     ['[["k", 1]]', None], "parquet"),
    # In lists too, whole numbers stay whole beside a missing one, and times keep their zone.
    (arrow(pa.array([[10**17 + 1, None], None])), "list", [f"[{10**17 + 1}, null]", None],
     "parquet"),
    (arrow(pa.array([{"a": 10**17 + 1}, None, {"a": None}])), "list",
     [f'{{"a": {10**17 + 1}}}', None, '{"a": null}'], "parquet"),
    (arrow(pa.array([None, [{"a": [1, None]}, None]])), "list", [None, '[{"a": [1, null]}, null]'],
     "parquet"),
    (arrow(pa.array([[("k", 1)], [("l", None)], None], pa.map_(pa.string(), pa.int8()))[1:]),
     "list", ['[["l", null]]', None], "parquet"),
    (arrow(pa.array([[0, None]], pa.list_(pa.timestamp("ms", "Asia/Seoul")))), "list",
     ['["1970-01-01T09:00:00+09:00", null]'], "parquet"),
    (arrow(pa.array([[dt.time(1, 2, 3, 500_000), None]])), "list", ['["01:02:03.5", null]'],
     "parquet"),
    (of([{"a": float("nan")}, [DAY, b"a"]]), "json", ['{"a": null}', '["2024-01-02", "61"]'], ""),
    (of([1, "x", True, 2.5, DAY, np.inf]), "mixed",
     ["1", "x", "True", "2.5", "2024-01-02", "Infinity"], ""),
    (pd.Series(pd.period_range("2024-01", periods=1, freq="M")), "mixed", ["2024-01"], ""),
    (gpd.GeoSeries([shapely.Point(0.1, 1), None]), "geometry", ["POINT (0.1 1)", None], "parquet"),
]  # fmt: skip


def test_kinds_of_columns_their_texts_and_who_holds_them(subtests):
    for column, kind, texts, holding in KINDS:
        with subtests.test(f"{kind} {texts}"):
            assert kind_of(column) == kind
            assert value_texts(column) == texts
            for form in ("parquet", "gpkg", "fgb", "pmtiles", "csv", "json", "xlsx"):
                held = held_columns(pd.DataFrame({"v": column}), form)["v"]
                assert held.isna().tolist() == [text is None for text in texts]
                if kind in ("mixed", "json", "list") and form in ("json", "xlsx"):
                    continue  # see below
                if form in holding.split():
                    assert kind_of(held) == kind, form
                else:
                    assert [None if pd.isna(text) else text for text in held] == texts, form


def test_json_has_lists_and_mixed_values_and_nothing_that_browsers_round():
    table = pd.DataFrame(
        {
            "mixed": of([1, "x", None]),
            "json": of([{"a": [2**60]}, [1, 2], [3, 4]]),
            "list": arrow(pa.array([[1, None], [2], None])),
            2020: of([2**53, 1, 2], "int64"),
            "number": [0.1, np.nan, 1e300],
        }
    )
    assert json.loads(json_text(table)) == [
        {
            "mixed": 1,
            "json": {"a": [str(2**60)]},
            "list": [1, None],
            "2020": str(2**53),
            "number": 0.1,
        },
        {"mixed": "x", "json": [1, 2], "list": [2], "2020": "1", "number": None},
        {"mixed": None, "json": [3, 4], "list": None, "2020": "2", "number": 1e300},
    ]
    held = held_columns(pd.DataFrame({"v": of([1, "x", 10**15, True])}), "xlsx")["v"]
    assert held.tolist() == [1, "x", str(10**15), True]


def test_refusals_name_the_column():
    for columns, form, reason in (
        (["NAME", "name"], "gpkg", "got 'NAME' and 'name'"),
        ([1, "1"], "parquet", "must be different in parquet, got '1' and '1'"),
        ([""], "pmtiles", "must not be empty"),
        (["a\0"], "fgb", "U+0000"),
    ):
        with pytest.raises(WriteError) as refused:
            check_columns(pd.DataFrame([[1] * len(columns)], columns=columns), form)
        assert reason in str(refused.value)


def test_a_duration_has_one_sign_for_days_and_times():
    assert _duration_text(np.timedelta64(-90061500, "ms")) == "-P1DT1H1M1.5S"
