"""How records are read, as texts: what is stated, and what a text may be."""

from dataclasses import fields

from psd.ingest.columns import is_reading, reading_of, reading_text
from psd.ingest.sources import Columns

DEFAULT = {"x": "lon", "y": "lat"}


def test_what_differs_from_the_defaults_is_stated():
    seoul = {"time": "t", "time_zone": "Asia/Seoul", "geometry": "g"}
    for columns, reading in [
        (Columns(), DEFAULT),
        (Columns(memory=5), DEFAULT),
        (Columns(user="id"), {**DEFAULT, "user": "id", "ids": "nfc-1"}),
        (Columns(x="a", y="b", layer="l"), {"x": "a", "y": "b", "layer": "l"}),
        (Columns(time_zone="Asia/Seoul"), DEFAULT),
        (Columns(time="t"), {**DEFAULT, "time": "t"}),
        (Columns(**seoul), DEFAULT | seoul),
        (Columns(where="a>1 AND NOT b=2"), {**DEFAULT, "where": "a > 1 AND NOT (b = 2)"}),
        # A filter may compare times.
        (
            Columns(where="a > 1", time_zone="Asia/Seoul"),
            {**DEFAULT, "where": "a > 1", "time_zone": "Asia/Seoul"},
        ),
    ]:
        assert reading_of(columns) == reading
        assert is_reading(reading)


def test_other_columns_of_values_have_other_readings():
    columns = [
        ("a", "b"),
        ("a, b",),
        ("a,b",),
        ("a,", "b"),
        ("a\\, b",),
        ("a\\", "b"),
        ("a, b", "c"),
    ]
    columns += [("a", "b, c"), ("a", "b", "c"), ("a,  b",), ("a", " b"), ("a\\\\, b",)]
    assert len({reading_of(Columns(values=each))["values"] for each in columns}) == len(columns)
    # As datasets register it.
    assert reading_of(Columns(values=("fare", "tip (EUR)")))["values"] == "fare, tip (EUR)"


def test_every_field_but_memory_and_bids_is_stated():
    values = {"delimiter": ";", "decimal": ",", "encoding": "utf-16", "skip_rows": 2}
    values |= {"input_crs": "EPSG:4326", "where": "sex = 'f'", "memory": 5, "values": ("a value",)}
    stated = {field.name: values.get(field.name, f"a {field.name}") for field in fields(Columns)}
    # Either is the column of points, and no text stands beside x.
    for left_out in ({"geometry", "x", "y"}, {"wkt"}):
        given = {name: value for name, value in stated.items() if name not in left_out}
        written = {*given, "x", "y", "ids"} - {"memory", "bid"}
        assert set(reading_of(Columns(**given))) == written


def test_readings_as_values_and_in_one_line():
    wrong = [{"user": ""}, {"time": 1}, {1: "a"}, {"": "a"}, {"user": "a" * 1001}]
    for value in (None, [], {}, {"x": "lon"}, {"y": "lat"}, *(DEFAULT | more for more in wrong)):
        assert not is_reading(value)
    reading = {"b": "1", "a": "2", "time": "t", "y": "lat", "x": "lon"}
    assert reading_text(reading) == "x=lon y=lat time=t a=2 b=1"
