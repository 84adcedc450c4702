"""CSV of other countries and programs: delimiters, decimal signs, encodings, titles, WKT, names."""

import gzip
import importlib
import math
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely

from psd.errors import ParameterError
from psd.ingest.columns import may_be_values, reading_of
from psd.ingest.sources import Columns, _csv_file
from support.batches import refused, rows_of

POINTS = [(1.5, 2.0, "\u00e9"), (-3.25, 4.0, "b")]
PLAIN = "lon,lat,who\n1.5,2,\u00e9\n-3.25,4,b\n"
EUROPEAN = "lon;lat;who\n1,5;2;\u00e9\n-3,25;4;b\n"
WIDE = PLAIN.encode("utf-16")
SAME = {
    "plain": (PLAIN, {}),
    "semicolon": (PLAIN.replace(",", ";"), {}),
    "tab": (PLAIN.replace(",", "\t"), {}),
    "bar": (PLAIN.replace(",", "|"), {"delimiter": "|"}),
    "tab, stated": (PLAIN.replace(",", "\t"), {"delimiter": "tab"}),
    "decimal comma": (EUROPEAN, {"decimal": ","}),
    "both": (EUROPEAN, {"decimal": ",", "delimiter": ";"}),
    "quoted": ('lon,lat,who\n"1,5",2,\u00e9\n"-3,25",4,b\n', {"decimal": ","}),
    "ansi": (EUROPEAN.encode("cp1252"), {"decimal": ",", "encoding": "windows-1252"}),
    "utf-16": (WIDE, {}),
    "utf-16, stated": (WIDE, {"encoding": "utf-16"}),
    "utf-16-be": (b"\xfe\xff" + PLAIN.encode("utf-16-be"), {}),
    "mark": ("\ufeff" + PLAIN, {"encoding": "utf-8"}),
    "title": ('Stops, "all\n\n' + PLAIN, {"skip_rows": 2}),
    "crlf": ("\ufeffStops\r\n" + PLAIN.replace("\n", "\r\n"), {"skip_rows": 1}),
    "cr": ("Stops\r" + PLAIN.replace("\n", "\r"), {"skip_rows": "1"}),
    "named": (PLAIN.replace("lon,lat", "a,b"), {"x": "A", "y": "B"}),
    "wkt": ("who,geom\n\u00e9,POINT (1.5 2)\nb, point z(-325e-2 4. 9)\n", {"wkt": "GEOM"}),
}
NAMES = ("LON,Lat", "Longitude,Latitude", "X,Y", "easting,northing")
SAME |= {names: (PLAIN.replace("lon,lat", names), {}) for names in NAMES}


@pytest.mark.parametrize("way", ["file", pytest.param("gzip", marks=pytest.mark.deep)])
def test_the_same_records(subtests, file, way):
    for name, (content, options) in SAME.items():
        raw = content if isinstance(content, bytes) else content.encode()
        path = file(raw) if way == "file" else file(gzip.compress(raw), "points.csv.gz")
        with subtests.test(name):
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


TABLES = {
    "pandas": lambda table, path: table,
    "arrow": lambda table, path: pa.Table.from_pandas(table),
    "parquet": lambda table, path: table.to_parquet(path) or path,
    "polars": lambda table, path: importlib.import_module("polars").DataFrame(table),
}


@pytest.mark.parametrize(
    "kind", [*list(TABLES)[:3], pytest.param("polars", marks=pytest.mark.deep)]
)
def test_tables_have_the_same_names_and_points(tmp_path, kind):
    table = pd.DataFrame({"Longitude": [1.5, -3.25], "LATITUDE": [2.0, 4.0], "who": ["é", "b"]})
    text = table.assign(geom=["POINT (1.5 2)", "POINT(-3.25 4)"])[["geom", "who"]]
    for each, options in ((table, {}), (text, {"wkt": "geom"})):
        data = TABLES[kind](each, tmp_path / "t.parquet")
        assert rows_of(data, user="WHO", **options) == POINTS


WKT_MARKS = ["", "POINT EMPTY", "point z empty", "null", " - "]
NO_WKT = ["5", "1.5 2", "POINT (1)", "POINT (1 2 3 4 5)", "POINT (1,2)", "LINESTRING (0 0, 1 1)",
    "POINT (1e999 2)", "MULTIPOINT ((1 2))", "SRID=3857;POINT (1 2)", "inf", "place",
    "POINT (NaN 1)", "51\u00b030'", "POINT (1 2) POINT (1 2)", "SRID=4326;1 2",
    "SRID=43260;POINT (1 2)",    "SRID=4326;LINESTRING (0 0, 1 1)"]  # fmt: skip


def hexadecimal(shape, srid=None, **options):
    shape = shape if srid is None else shapely.set_srid(shape, srid)
    return shapely.to_wkb(shape, hex=True, include_srid=srid is not None, **options)


POINT, LINE = shapely.Point(1.5, -2), shapely.LineString([(0, 0), (1, 1)])
SAME_POINT = [
    "POINT (1.5 -2)", "point(15e-1 -2)", "POINT Z (1.5 -2 7)", "POINTM(1.5 -2 7)",
    "POINT ZM (1.5 -2 7 8)", "POINT(1.5 -2 7 8)", "SRID=4326;POINT(1.5 -2)",
    " srid = 4326 ; Point Z (1.5 -2 7)", "SRID=0;POINT (1.5 -2)",
    hexadecimal(POINT), hexadecimal(POINT, 4326), hexadecimal(POINT, 4326).lower(),
    r"\x" + hexadecimal(POINT), " " + hexadecimal(POINT) + " ", hexadecimal(POINT, byte_order=0),
    hexadecimal(shapely.Point(1.5, -2, 7), 4326),
    hexadecimal(shapely.Point(1.5, -2, 7), flavor="iso"),
]  # fmt: skip
NO_HEX = [hexadecimal(POINT, 3857), hexadecimal(LINE), hexadecimal(LINE, 4326),
    hexadecimal(POINT)[:-1], hexadecimal(POINT)[:-2], "0" * 42, "12" * 25,
    hexadecimal(shapely.MultiPoint([(1, 2)])), hexadecimal(shapely.Point(np.inf, 1))]  # fmt: skip


@pytest.mark.parametrize("kind", ["csv", "pandas", "arrow"])
def test_points_as_text(subtests, file, kind):
    marks = [*WKT_MARKS, "SRID=4326;POINT EMPTY", hexadecimal(shapely.Point())]
    for text in (*marks, *NO_WKT, *NO_HEX):
        data = points_as(file, kind, text)
        with subtests.test(text):
            if text in marks:
                assert np.isnan(rows_of(data, wkt="geom")).all()
                continue
            message = refused(data, wkt="geom")
            assert "column 'geom'" in message
            assert "such as POINT (127.01 37.5)" in message
            assert text == "5" or text not in message.replace("POINT (127.01 37.5)", "")


@pytest.mark.parametrize("kind", ["csv", "pandas", "arrow", "xlsx"])
def test_one_point_in_all_its_texts(subtests, tmp_path, file, kind):
    """In one column; an SRID must be that of the column, whether the CRS is stated or not."""
    texts = [*SAME_POINT, "", "NULL"]
    table = pd.DataFrame({"geom": texts, "n": range(len(texts))})
    path = tmp_path / "points.xlsx"
    if kind == "xlsx":
        table.to_excel(path, index=False)
    data = {
        "csv": lambda: file(table.to_csv(index=False)),
        "pandas": lambda: table,
        "arrow": lambda: pa.Table.from_pandas(table),
        "xlsx": lambda: path,
    }[kind]()
    *points, empty, mark = rows_of(data, wkt="geom")
    assert set(points) == {(1.5, -2.0)}
    assert np.isnan([empty, mark]).all()
    only = points_as(file, "pandas", "SRID=5179;POINT (1000000 2000000)")
    ((x, y),) = rows_of(only, wkt="geom", input_crs="EPSG:5179")
    assert (round(x, 1), round(y, 1)) == (127.5, 38.0)
    assert "SRID=4326; other" in refused(only, wkt="geom")
    ((x, y),) = rows_of(points_as(file, "pandas", "SRID=4326;POINT (1 2)"), wkt="geom",
        input_crs="OGC:CRS84")  # fmt: skip
    assert (x, y) == (1, 2)


def points_as(file, kind, text):
    if kind == "csv":
        return file(f'a,geom\nx,"{text}"\n')
    table = pd.DataFrame({"geom": [text]})
    return table if kind == "pandas" else pa.Table.from_pandas(table)


def test_other_text_is_not_a_number_with_a_decimal_comma(subtests, file):
    for text in ("1.5", "1.234,5", "1,2,3", "1_0,5", "51\u00b030'", "inf", "1,5e999"):
        with subtests.test(text):
            message = refused(file(f'lon;lat\n0,5;1\n"{text}";2\n'), decimal=",")
            assert "such as 127,01" in message
            assert text not in message
    ((x, y),) = rows_of(file("lon;lat\nNULL;2,5\n"), decimal=",")
    assert (math.isnan(x), y) == (True, 2.5)


ANSI = {"encoding": "windows-1252"}
ABOVE = (
    "in line 2; is that line data, without a line of column names above it, or is skip_rows= too"
)
SEPARATOR = "names the separator for a spreadsheet program; leave it out with skip_rows=1"
WRONG = [
    ("must begin with the byte order mark of UTF-16", PLAIN, {"encoding": "utf-16"}),
    ("must be UTF-8 text, got UTF-16", WIDE, {"encoding": "utf-8"}),
    ("mark of another encoding than windows-1252", WIDE, ANSI),
    ("mark of another encoding", "\ufeff" + PLAIN, ANSI),
    ("is not in Windows-1252", PLAIN.encode() + b"\x81,2,c\n", ANSI),
    ("is not in UTF-16; state its own, such as encoding=", WIDE + b"\x00\xd8", {}),
    ("is not in UTF-16", WIDE[:-1], {}),
    (
        "is not in UTF-8; state its own, such as encoding=",
        b"a\n" + PLAIN.encode("cp1252"),
        {"skip_rows": 1},
    ),
    ("must have more lines than skip_rows=9", PLAIN, {"skip_rows": 9}),
    (f"no column 'lon' {ABOVE} large?", PLAIN, {"skip_rows": 1}),
    ("line of more than 1 MB above", "a" * 2**20 + "\n" + PLAIN, {"skip_rows": 1}),
    ("must name the columns, but is empty", "\n\n", {"skip_rows": 1}),
    ("got a workbook or a zip archive", b"PK\x03\x04" + b"x" * 20, {"skip_rows": 1}),
    ("is it separated by ';'? State delimiter=", EUROPEAN, {"delimiter": ","}),
    ("the first line of", "sep=;\nlon;lat\n", {}),
    (SEPARATOR, '"sep=;"\nlon;lat\n', {}),
    ("leave it out with skip_rows=2", "Visits\nSEP=\t\nlon\tlat\n", {"skip_rows": 1}),
    ("its columns are Lon, degrees, Lat", '"Lon, degrees";Lat\n1;2\n', {}),
    ("differ only in the case", "id;ID;lon;lat\n", {}),
    ("must be different columns", "lon,lat\n1,2\n", {"user": "LON"}),
    ("has columns which differ only in the case", "127.0,37.5,Ann,ann\n", {}),
    ("name it by x=NAME", ",,Ann Smith\n", {}),
    ("name it by x=NAME", "Ann Smith,ann@example.org\n", {}),
]


def test_what_is_stated_wrongly(subtests, file):
    for words, content, options in WRONG:
        with subtests.test(words):
            assert words in refused(file(content), **options)


def test_a_first_line_that_may_be_a_record_is_not_shown(subtests, file):
    for first in [
        *("1,2,3", "u173,2015-12-21,1.55", "ann,seoul,-0.5", "a,b," + "x" * 65),
        *('a,"POINT (1 2)",b', "ann,seoul,31.01.2024", "ann,seoul,January 5 2024", 'a,b,".5"'),
    ]:
        with subtests.test(first):
            message = refused(file(f"{first}\n{first}\n"))
            assert "its columns are" not in message
            long = [part.strip('"') for part in first.split(",") if len(part) > 2]
            assert not any(part in message.split("first line")[1] for part in long)
    message = refused(file("Lengde;Longitud;Latitude\n1;2;3\n"), x="longitude", y="latitude")
    assert message.endswith("its columns are Lengde, Longitud, Latitude; did you mean 'Longitud'?")
    assert not may_be_values(["lon", "lat", "L\u00e4nge (Grad)", "x1"])


def test_options_that_do_not_exist_or_that_no_input_uses(subtests):
    for words, options in [
        ("delimiter must be one of auto", {"delimiter": "::"}),
        ("decimal must be one of", {"decimal": ";"}),
        ("encoding must be one of", {"encoding": "cp949"}),
        ("skip_rows must be", {"skip_rows": -1}),
        ("skip_rows must be an integer", {"skip_rows": "two"}),
        ("wkt must be left out with geometry=", {"wkt": "a", "geometry": "b"}),
        ("x and y must be left out with wkt, got 'b' and 'lat'", {"wkt": "a", "x": "b"}),
    ]:
        with subtests.test(words), pytest.raises(ParameterError, match=words):
            Columns(**options)
    for name in ("cp1252", "CP_1252", "Windows-1252", "latin-1", "Latin_1", "ISO-8859-1"):
        assert Columns(encoding=name).encoding == "windows-1252"
    assert [Columns(encoding=name).encoding for name in ("UTF8", "utf_16")] == ["utf-8", "utf-16"]
    stated = {"delimiter": ";", "decimal": ",", "encoding": "utf-16", "skip_rows": 2}
    for name, value in stated.items():
        with pytest.raises(ParameterError, match=f"{name} must be left out unless an input is"):
            rows_of(pd.DataFrame({"lon": [1.0], "lat": [2.0]}), **{name: value})
    plain = {"x": "lon", "y": "lat"}  # options are part of the reading
    assert reading_of(Columns(**stated)) == plain | stated | {"skip_rows": "2"}
    assert reading_of(Columns()) == plain


def test_a_converted_file_has_the_rules_of_others(file, monkeypatch):
    paths = [file(PLAIN, "a.csv"), file(WIDE, "b.csv")]
    assert f"inputs {paths[0]} and {paths[1]} have the same content" in refused(paths)
    path, before = file(WIDE), _csv_file._copy_text
    touch = lambda *given: before(*given) or os.utime(path, ns=(0, 0))  # noqa: E731
    monkeypatch.setattr(_csv_file, "_copy_text", touch)
    assert "changed while it was read" in refused(path)


def test_markup_is_told_by_its_first_element_unless_lines_are_left_out(subtests, file):
    for content, words in {
        '<?xml version="1.0"?>\n<!-- a -->\n<gpx version="1.1"/>': "got GPX; save its points",
        "\ufeff  <kml/>": "got KML; save its points",
        "<gml:Points/>": "got XML",
        "<!DOCTYPE html>\n<html></html>": "got a web page",
        '[{"lon": 1, "lat": 2}]': "got JSON; name GeoJSON .geojson",
        '\x1e{"type": "Feature"}': "got JSON",
        "!table\n!version 300\n": "got a file of MapInfo; save its points as GeoPackage",
        'Version 300\nCharset "Neutral"\n': "got a file of MapInfo",
        "  0\nSECTION\n  2\nHEADER\n": "got a drawing (DXF)",
        "$GPGGA,123519,4807.038,N,01131.000,E,1\n": "got the sentences of a receiver (NMEA)",
    }.items():
        with subtests.test(content):
            assert words in refused(file(content))
            assert words in refused(file(gzip.compress(content.encode())))
    title = '{"source": "a"}\nlon,lat\n1,2\n'
    assert rows_of(file(title), skip_rows=1) == [(1.0, 2.0)]
