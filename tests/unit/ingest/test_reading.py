"""How records are read, as texts: what is stated, and what a text may be."""

from dataclasses import fields

import pytest

from psd.ingest.reading import is_reading, reading_of, reading_text
from psd.ingest.sources import Columns

DEFAULT = {"x": "lon", "y": "lat"}


@pytest.mark.parametrize(
    ("columns", "reading"),
    [
        (Columns(), DEFAULT),
        (Columns(memory=5), DEFAULT),
        (Columns(user="id"), {**DEFAULT, "user": "id", "ids": "nfc-1"}),
        (Columns(x="a", y="b", layer="l"), {"x": "a", "y": "b", "layer": "l"}),
        (Columns(time_zone="Asia/Seoul"), DEFAULT),
        (Columns(time="t"), {**DEFAULT, "time": "t"}),
        (
            Columns(time="t", time_zone="Asia/Seoul", geometry="g"),
            {**DEFAULT, "time": "t", "time_zone": "Asia/Seoul", "geometry": "g"},
        ),
    ],
)
def test_what_differs_from_the_defaults_is_stated(columns, reading):
    assert reading_of(columns) == reading
    assert is_reading(reading)


def test_every_field_but_memory_and_bids_is_stated():
    values = {
        "delimiter": ";", "decimal": ",", "encoding": "utf-16", "skip_rows": 2,
        "input_crs": "EPSG:4326", "memory": 5,
    }  # fmt: skip
    stated = {field.name: values.get(field.name, f"a {field.name}") for field in fields(Columns)}
    for absent in (
        "geometry",
        "wkt",
    ):  # either is the column of points, and no text stands beside x
        given = {*stated} - ({absent} if absent == "wkt" else {absent, "x", "y"})
        reading = reading_of(Columns(**{name: stated[name] for name in given}))
        assert set(reading) == {*stated} - {absent, "memory", "bid"} | {"ids"}


@pytest.mark.parametrize(
    "value",
    [None, [], {}, {"x": "lon"}, {"y": "lat"}, {**DEFAULT, "user": ""}, {**DEFAULT, "time": 1},
     {**DEFAULT, 1: "a"}, {**DEFAULT, "": "a"}, {**DEFAULT, "user": "a" * 1001}],
)  # fmt: skip
def test_values_that_are_not_a_reading(value):
    assert not is_reading(value)


def test_a_reading_in_one_line():
    reading = {"b": "1", "a": "2", "time": "t", "y": "lat", "x": "lon"}
    assert reading_text(reading) == "x=lon y=lat time=t a=2 b=1"
