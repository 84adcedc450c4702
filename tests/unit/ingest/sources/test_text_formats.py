"""CSV of other countries and programs: delimiters, decimal signs, encodings, titles, WKT, names."""

import gzip
import math
import os

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from psd.errors import InputDataError, ParameterError
from psd.ingest.reading import reading_of
from psd.ingest.sources import Columns
from psd.ingest.sources._names import may_be_values
from support.batches import rows_of

POINTS = [(1.5, 2.0, "\u00e9"), (-3.25, 4.0, "b")]


def refused(data, **columns):
    with pytest.raises(InputDataError) as raised:
        rows_of(data, **columns)
    assert raised.value.__suppress_context__ or raised.value.__context__ is None
    return str(raised.value)


PLAIN = "lon,lat,who\n1.5,2,\u00e9\n-3.25,4,b\n"
EUROPEAN = "lon;lat;who\n1,5;2;\u00e9\n-3,25;4;b\n"
WIDE = PLAIN.encode("utf-16")


@pytest.mark.parametrize(
    ("content", "options"),
    [
        pytest.param(PLAIN, {}, id="plain"),
        pytest.param(PLAIN.replace(",", ";"), {}, id="semicolon"),
        pytest.param(PLAIN.replace(",", "\t"), {}, id="tab"),
        pytest.param(PLAIN.replace(",", "|"), {"delimiter": "|"}, id="bar"),
        pytest.param(PLAIN.replace(",", "\t"), {"delimiter": "tab"}, id="tab-stated"),
        pytest.param(EUROPEAN, {"decimal": ","}, id="decimal-comma"),
        pytest.param(EUROPEAN, {"decimal": ",", "delimiter": ";"}, id="both"),
        pytest.param('lon,lat,who\n"1,5",2,\u00e9\n"-3,25",4,b\n', {"decimal": ","}, id="quoted"),
        pytest.param(
            EUROPEAN.encode("cp1252"), {"decimal": ",", "encoding": "windows-1252"}, id="ansi"
        ),
        pytest.param(WIDE, {}, id="utf-16"),
        pytest.param(WIDE, {"encoding": "utf-16"}, id="utf-16-stated"),
        pytest.param(PLAIN.encode("utf-16-be").join([b"\xfe\xff", b""]), {}, id="utf-16-be"),
        pytest.param("\ufeff" + PLAIN, {"encoding": "utf-8"}, id="mark"),
        pytest.param('Stops, "all\n\n' + PLAIN, {"skip_rows": 2}, id="title"),
        pytest.param("\ufeffStops\r\n" + PLAIN.replace("\n", "\r\n"), {"skip_rows": 1}, id="crlf"),
        pytest.param("Stops\r" + PLAIN.replace("\n", "\r"), {"skip_rows": "1"}, id="cr"),
        pytest.param(PLAIN.replace("lon,lat", "LON,Lat"), {}, id="case"),
        pytest.param(PLAIN.replace("lon,lat", "Longitude,Latitude"), {}, id="longitude"),
        pytest.param(PLAIN.replace("lon,lat", "X,Y"), {}, id="x"),
        pytest.param(PLAIN.replace("lon,lat", "easting,northing"), {}, id="easting"),
        pytest.param(PLAIN.replace("lon,lat", "a,b"), {"x": "A", "y": "B"}, id="named"),
        pytest.param(
            "who,geom\n\u00e9,POINT (1.5 2)\nb, point z(-325e-2 4. 9)\n", {"wkt": "GEOM"}, id="wkt"
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("way", ["file", "gzip"])
def test_the_same_records(file, content, options, way):
    path = file(content)
    if way == "gzip":
        path = file(gzip.compress(path.read_bytes()), "points.csv.gz")
    assert rows_of(path, user="Who", **options) == POINTS


def test_names_of_the_default_come_first(file):
    path = file("x,y,longitude,latitude,lon,lat\n9,9,9,9,1.5,2\n")
    assert rows_of(path) == [(1.5, 2.0)]
    several = file("x,y,longitude,latitude\n9,9,9,9\n")
    for path in (several, file("Longitude;LATITUDE;X;Y\n9;9;9;9\n")):
        names = path.read_text().split("\n")[0].replace(";", ",").split(",")
        pairs = sorted([" and ".join(names[:2]), " and ".join(names[2:])], key=len, reverse=True)
        assert refused(path).endswith(
            f"has 2 pairs of columns of coordinates: {', '.join(pairs)}; choose one with x=NAME "
            "and y=NAME"
        )
        assert rows_of(path, x="x", y="y") == [(9.0, 9.0)]
    assert rows_of(file("lon,x,y\n9,1.5,2\n")) == [(1.5, 2.0)]
    assert "'y'" in refused(file("lon,x\n9,1.5\n"), x="x", y="y")


@pytest.mark.parametrize("kind", ["pandas", "arrow", "polars", "parquet"])
def test_tables_have_the_same_names_and_points(tmp_path, kind):
    table = pd.DataFrame(
        {"Longitude": [1.5, -3.25], "LATITUDE": [2.0, 4.0], "who": ["\u00e9", "b"]}
    )
    text = table.assign(geom=["POINT (1.5 2)", "POINT(-3.25 4)"])[["geom", "who"]]
    for each, options in ((table, {}), (text, {"wkt": "geom"})):
        data = {
            "pandas": lambda t: t,
            "arrow": pa.Table.from_pandas,
            "polars": pl.DataFrame,
            "parquet": lambda t: (t.to_parquet(tmp_path / "t.parquet"), tmp_path / "t.parquet")[1],
        }[kind](each)
        assert rows_of(data, user="WHO", **options) == POINTS


WKT_MARKS = ["", "POINT EMPTY", "point z empty", "null", " - "]
NO_WKT = ["5", "1.5 2", "POINT (1)", "POINT (1 2 3 4)", "POINT (1,2)", "LINESTRING (0 0, 1 1)",
    "POINT (1e999 2)", "MULTIPOINT ((1 2))", "SRID=4326;POINT (1 2)", "inf", "place",
    "POINT (NaN 1)", "51\u00b030'", "POINT (1 2) POINT (1 2)"]  # fmt: skip


@pytest.mark.parametrize("text", WKT_MARKS)
@pytest.mark.parametrize("kind", ["csv", "pandas", "arrow"])
def test_points_that_are_missing(file, kind, text):
    (row,) = rows_of(points_as(file, kind, text), wkt="geom")
    assert np.isnan(row).all()


@pytest.mark.parametrize("text", NO_WKT)
@pytest.mark.parametrize("kind", ["csv", "pandas", "arrow"])
def test_other_text_is_not_a_point(file, kind, text):
    message = refused(points_as(file, kind, text), wkt="geom")
    assert "column 'geom'" in message
    assert "such as POINT (127.01 37.5)" in message
    assert text == "5" or text not in message.replace("POINT (127.01 37.5)", "")


def points_as(file, kind, text):
    if kind == "csv":
        return file(f'a,geom\nx,"{text}"\n')
    table = pd.DataFrame({"geom": [text]})
    return table if kind == "pandas" else pa.Table.from_pandas(table)


@pytest.mark.parametrize(
    "text", ["1.5", "1.234,5", "1,2,3", "1_0,5", "51\u00b030'", "inf", "1,5e999"]
)
def test_other_text_is_not_a_number_with_a_decimal_comma(file, text):
    message = refused(file(f'lon;lat\n0,5;1\n"{text}";2\n'), decimal=",")
    assert "such as 127,01" in message
    assert text not in message


def test_marks_of_missing_numbers_with_a_decimal_comma(file):
    ((x, y),) = rows_of(file("lon;lat\nNULL;2,5\n"), decimal=",")
    assert (math.isnan(x), y) == (True, 2.5)


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (PLAIN, {"encoding": "utf-16"}, "must begin with the byte order mark of UTF-16"),
        (WIDE, {"encoding": "utf-8"}, "must be UTF-8 text, got UTF-16"),
        (WIDE, {"encoding": "windows-1252"}, "mark of another encoding than windows-1252"),
        ("\ufeff" + PLAIN, {"encoding": "windows-1252"}, "mark of another encoding"),
        (PLAIN.encode() + b"\x81,2,c\n", {"encoding": "windows-1252"}, "is not in Windows-1252"),
        (WIDE + b"\x00\xd8", {}, "is not in UTF-16; state its encoding="),
        (WIDE[:-1], {}, "is not in UTF-16"),
        (b"a\n" + PLAIN.encode("cp1252"), {"skip_rows": 1}, "is not in UTF-8; state its encoding="),
        (PLAIN, {"skip_rows": 9}, "must have more lines than skip_rows=9"),
        (PLAIN, {"skip_rows": 1}, "no column 'lon' in line 2; is that line data, without a line of "
         "column names above it, or is skip_rows= too large?"),
        ("a" * 2**20 + "\n" + PLAIN, {"skip_rows": 1}, "line of more than 1 MB above"),
        ("\n\n", {"skip_rows": 1}, "must name the columns, but is empty"),
        (b"PK\x03\x04" + b"x" * 20, {"skip_rows": 1}, "got a workbook or a zip archive"),
        (EUROPEAN, {"delimiter": ","}, "is it separated by ';'? State delimiter="),
        ("sep=;\nlon;lat\n", {}, "the first line of"),
        ('"sep=;"\nlon;lat\n', {}, "names the separator for a spreadsheet program; leave it out "
         "with skip_rows=1"),
        ("Visits\nSEP=\t\nlon\tlat\n", {"skip_rows": 1}, "leave it out with skip_rows=2"),
        ('"Lon, degrees";Lat\n1;2\n', {}, "its columns are Lon, degrees, Lat"),
        ("id;ID;lon;lat\n", {}, "differ only in the case"),
        ("lon,lat\n1,2\n", {"user": "LON"}, "must be different columns"),
        ("127.0,37.5,Ann,ann\n", {}, "has columns which differ only in the case"),
        (",,Ann Smith\n", {}, "name it by x=NAME"),
        ("Ann Smith,ann@example.org\n", {}, "name it by x=NAME"),
    ],
)  # fmt: skip
def test_what_is_stated_wrongly(file, content, options, words):
    assert words in refused(file(content), **options)


@pytest.mark.parametrize(
    "first",
    ["1,2,3", "u173,2015-12-21,1.55", "ann,seoul,-0.5", "a,b," + "x" * 65, 'a,"POINT (1 2)",b',
     "ann,seoul,31.01.2024", "ann,seoul,January 5 2024", 'a,b,".5"'],
)  # fmt: skip
def test_a_first_line_that_may_be_a_record_is_not_shown(file, first):
    message = refused(file(f"{first}\n{first}\n"))
    assert "its columns are" not in message
    assert not any(part.strip('"') in message.split("first line")[1] for part in first.split(",")
                   if len(part) > 2)  # fmt: skip


def test_names_are_shown_with_the_closest(file):
    message = refused(file("Lengde;Longitud;Latitude\n1;2;3\n"), x="longitude", y="latitude")
    assert message.endswith("its columns are Lengde, Longitud, Latitude; did you mean 'Longitud'?")
    assert not may_be_values(["lon", "lat", "L\u00e4nge (Grad)", "x1"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delimiter": "::"}, "delimiter must be one of auto"),
        ({"decimal": ";"}, "decimal must be one of"),
        ({"encoding": "latin-1"}, "encoding must be one of"),
        ({"skip_rows": -1}, "skip_rows must be"),
        ({"skip_rows": "two"}, "skip_rows must be an integer"),
        ({"wkt": "a", "geometry": "b"}, "wkt must be left out with geometry="),
        ({"wkt": "a", "x": "b"}, "x and y must be left out with wkt, got 'b' and 'lat'"),
    ],
)
def test_values_that_do_not_exist(options, words):
    with pytest.raises(ParameterError, match=words):
        Columns(**options)


@pytest.mark.parametrize(
    ("name", "encoding"),
    [("cp1252", "windows-1252"), ("CP_1252", "windows-1252"), ("Windows-1252", "windows-1252"),
     ("UTF8", "utf-8"), ("utf_16", "utf-16")],
)  # fmt: skip
def test_encodings_have_other_names(name, encoding):
    assert Columns(encoding=name).encoding == encoding


@pytest.mark.parametrize(
    "options", [{"delimiter": ";"}, {"decimal": ","}, {"encoding": "utf-16"}, {"skip_rows": 1}]
)
def test_options_that_no_input_uses(options):
    (name,) = options
    with pytest.raises(ParameterError, match=f"{name} must be left out unless an input is"):
        rows_of(pd.DataFrame({"lon": [1.0], "lat": [2.0]}), **options)


def test_options_are_part_of_the_reading():
    read_so = reading_of(Columns(delimiter=";", decimal=",", encoding="windows-1252", skip_rows=2))
    assert read_so == {
        "x": "lon", "y": "lat", "delimiter": ";", "decimal": ",", "encoding": "windows-1252",
        "skip_rows": "2",
    }  # fmt: skip
    assert reading_of(Columns()) == {"x": "lon", "y": "lat"}


def test_a_copy_in_another_encoding_is_a_copy(file):
    paths = [file(PLAIN, "a.csv"), file(WIDE, "b.csv")]
    message = refused(paths)
    assert f"inputs {paths[0]} and {paths[1]} have the same content" in message


def test_a_converted_file_that_changes_is_refused(file, monkeypatch):
    path = file(WIDE)
    from psd.ingest.sources import _plain_text

    before = _plain_text._copy_text

    def copy_and_touch(*arguments):
        before(*arguments)
        os.utime(path, ns=(0, 0))

    monkeypatch.setattr(_plain_text, "_copy_text", copy_and_touch)
    assert "changed while it was read" in refused(path)
