"""Workbooks: types of cells, sheets, titles, and what is refused."""

import datetime as dt
import math
import re
import sys
import zipfile

import openpyxl
import pytest

import psd
from psd.errors import MissingExtraError, ParameterError
from psd.ingest.sources import Columns, read
from psd.ingest.sources.xlsx import _number
from support.batches import EARTH, SECRET, refused

PLAIN = [["lon", "lat"], [1, 2]]


@pytest.fixture
def book(tmp_path):
    def write(**sheets):
        made = openpyxl.Workbook()
        made.remove(made.active)
        for name, rows in sheets.items():
            sheet = made.create_sheet(name)
            for row in rows:
                sheet.append(row)
        made.save(tmp_path / "b.xlsx")
        return tmp_path / "b.xlsx"

    return write


def batch_of(path, **columns):
    """All records of a workbook, after its empty first batch."""
    first, *others = read(path, Columns(**columns), EARTH)
    assert len(first.x) == 0
    assert len(others) <= 1
    return others[0] if others else first


def test_cells_of_all_kinds(book):
    rows = [
        ["Lon", "LAT", "id", "seen", None],
        [1.5, "2.5", 7, dt.datetime(2024, 1, 31, 10), "note"],
        [None, None, None, None, None],
        [2, "null", "007", "2024-01-31T10:00"],
        [" -3e0 ", 4, "7", dt.date(2024, 2, 1)],
    ]
    batch = batch_of(book(a=rows), user="ID", time="seen")
    assert batch.x.tolist() == [1.5, 2.0, -3.0]
    assert math.isnan(batch.y[1])
    assert batch.user.to_pylist() == ["7", "007", "7"]
    times = [dt.datetime(2024, 1, 31, 10), dt.datetime(2024, 1, 31, 10), dt.datetime(2024, 2, 1)]
    assert batch.time.tolist() == times
    path = book(a=[[*PLAIN[0], "note"], [1, 2, "=A2+B2"], [None, 4, "=A3"]])
    assert batch_of(path).x[0] == 1.0  # formulas of other columns are not read
    path = book(a=[["Stops"], [], ["x", "y"], ["1,5", 2], [None, "2,5"]])
    batch = batch_of(path, skip_rows=2, decimal=",")
    assert (batch.x[0], batch.y.tolist()) == (1.5, [2.0, 2.5])
    batch = batch_of(book(a=[["geom"], ["POINT (1 2)"], ["POINT EMPTY"]]), wkt="geom")
    assert (batch.x[0], batch.y[0], math.isnan(batch.x[1])) == (1.0, 2.0, True)


def test_sheets_and_what_workbooks_do_not_take(book, monkeypatch):
    path = book(one=PLAIN, two=[["lon", "lat"], [3, 4]])
    assert "several sheets: one, two; choose one with layer=NAME" in refused(path)
    assert "no sheet 'three'; its sheets are one, two" in refused(path, layer="three")
    assert batch_of(path, layer="two").x.tolist() == [3.0]
    path = book(a=[["lon", "lat"], *[[1, 2]] * 50])
    assert psd.build(path, domain=EARTH, epsilon=1, method="grid").domain == EARTH
    path = book(a=PLAIN)
    with pytest.raises(ParameterError, match="encoding must be left out"):
        list(read(path, Columns(encoding="utf-16"), EARTH))
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[xlsx\]'"):
        list(read(path, Columns(), EARTH))


def test_cells_and_headers_that_are_refused(subtests, book):
    ids, times = {"user": "id"}, {"time": "t"}
    for words, rows, options in [
        ("column 'lat' of .* must hold plain decimal", [["lon", "lat"], [1.5, f"{SECRET}E"]], {}),
        ("without decimal comma", [["lon", "lat"], [1.5, "2,5"]], {}),
        ("plain decimal", [["lon", "lat"], [True, 2]], {}),
        ("plain decimal", [["lon", "lat"], [dt.date(2024, 1, 1), 2]], {}),
        ("whole numbers of at most 15", [["lon", "lat", "id"], [1, 2, 7.5]], ids),
        ("whole numbers of at most 15", [["lon", "lat", "id"], [1, 2, 10**16]], ids),
        ("must hold dates", [["lon", "lat", "t"], [1, 2, 45000]], times),
        ("'geom' of .* must hold text", [["geom"], [5]], {"wkt": "geom"}),
        ("must hold points in WKT", [["geom"], ["5"]], {"wkt": "geom"}),
        ("must have the values of its formulas", [*PLAIN, ["=178+0.5", 2]], {}),
        ("must have the values of its formulas", [*PLAIN, [None, None], [3, "=B2"]], {}),
        ("has no column 'lon'; its columns are a, lat", [["a", "lat"], [1, 2]], {}),
        ("has no column 'lon'; name it by x=NAME, y=NAME", [["127.0", "Ann Smith"], [1, 2]], {}),
        ("2 columns named 'lon'", [["lon", "lat", "lon"], [1, 2, 3]], {}),
        ("has no column 'lon'", [], {}),
    ]:
        with subtests.test(words, rows=rows):
            assert re.search(words, refused(book(a=rows), **options))
    assert _number(10**400, ".") == float("inf")


def test_files_that_are_not_workbooks(tmp_path, book):
    path = tmp_path / "c.xlsx"
    path.write_text(f"lon,lat\n{SECRET},2\n")
    assert "cannot be read as XLSX; is it damaged" in refused(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", SECRET)
    assert "cannot be read as XLSX" in refused(path)
    cut = book(a=PLAIN)
    content = bytearray(cut.read_bytes())
    at = content.index(b"xl/worksheets/sheet1.xml") + 40
    content[at : at + 20] = b"\0" * 20
    cut.write_bytes(content)
    assert "cannot be read as XLSX" in refused(cut)


@pytest.mark.deep
def test_a_bomb(tmp_path):
    path = tmp_path / "d.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"\0" * 100_000_000)
    assert "expands to more than" in refused(path)
