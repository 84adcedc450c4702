"""CSV files: what is read, what is left out, what is refused and in which words."""

import math
import os

import duckdb
import pytest

import psd
from psd.errors import InputDataError
from psd.ingest.sources import Columns, _csv_file, read
from psd.ingest.sources import csv as source
from psd.ingest.sources._csv_file import scan_content
from psd.ingest.tally_builder import tally_batches
from psd.privacy.unit import PrivacyUnit
from support.batches import EARTH, rows_of

PRIVATE = "8642.13579"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("lon,lat\n1,2\n3,4\n", id="plain"),
        pytest.param("lon,lat\n1,2\n3,4", id="no-last-line-end"),
        pytest.param("\ufefflon,lat\n1,2\n3,4\n", id="byte-order-mark"),
        pytest.param('\ufeff"lon","lat"\n1,2\n3,4\n', id="byte-order-mark-and-quotes"),
        pytest.param("lon,lat\r\n1,2\r\n3,4\r\n", id="crlf"),
        pytest.param("lon,lat\r1,2\r3,4\r", id="cr-alone"),
        pytest.param("lat,lon\n2,1\n4,3\n", id="columns-swapped"),
        pytest.param("a,lon,b,lat,\nx,1,y,2,\n,3,,4,\n", id="surplus-columns"),
        pytest.param(" lon , lat \n 1 ,\t2\n3, 4 \n", id="spaces-around"),
        pytest.param('lon,lat\n"1","2"\n"3","4"\n', id="quoted-numbers"),
        pytest.param('n,lon,lat\n"a, b",1,2\n"c ""d""",3,4\n', id="quoted-commas-and-quotes"),
        pytest.param('n,lon,lat\n"a\nb",1,2\nc,3,4\n', id="quoted-line-end"),
        pytest.param('n,lon,lat\r\n"a\r\nb",1,2\r\nc,3,4\r\n', id="quoted-crlf"),
        pytest.param("lon,lat\n\n1,2\n\n3,4\n\n", id="blank-lines"),
        pytest.param("lon,lat\n1,2,\n3,4,\n", id="a-comma-after-the-last-field"),
        pytest.param("n,lon,lat\n서울 é 😀,1,2\n,3,4\n", id="text-of-all-kinds"),
        pytest.param("n,lon,lat\n" + "a" * 200_000 + ",1,2\nb,3,4\n", id="long-field"),
    ],
)
def test_files_that_say_the_same(file, content):
    assert rows_of(file(content)) == [(1.0, 2.0), (3.0, 4.0)]


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        pytest.param("lon,lat\n", 0, id="header-alone"),
        pytest.param("lon,lat", 0, id="header-without-line-end"),
        pytest.param("\ufefflon,lat\r\n", 0, id="header-of-a-spreadsheet"),
        pytest.param("lon,lat\n1,2\n", 1, id="one-row"),
        pytest.param("lon,lat\n1,2", 1, id="one-row-without-line-end"),
    ],
)
def test_few_rows(file, content, rows):
    path = file(content)
    assert len(rows_of(path)) == rows
    assert tally_batches(read(path, Columns(), EARTH), EARTH).counts.sum() == rows


def test_many_rows_in_many_batches(file, monkeypatch):
    monkeypatch.setattr(source, "_ROWS", 2_048)
    expected = [(float(i % 180), float(i % 90)) for i in range(30_000)]
    path = file("lon,lat\n" + "".join(f"{x},{y}\n" for x, y in expected))
    assert len(list(read(path, Columns(), EARTH))) > 10
    assert sorted(rows_of(path)) == sorted(expected)


# What is written, and the number that it is; None where the row is left out.
NUMBERS = [
    ("127.01", 127.01),
    ("-127.01", -127.01),
    ("+5", 5.0),
    ("5.", 5.0),
    (".5", 0.5),
    ("1e1", 10.0),
    ("1.5E+1", 15.0),
    ("0005", 5.0),
    ("-0.0", -0.0),
    ("1e-400", 0.0),
    ("1." + "0" * 400 + "1", 1.0),
    ("  7 ", 7.0),
    *((mark, None) for mark in ("", " ", "NA", "na", "N/A", "NaN", "nan", "-nan", "null", "NULL")),
    ("None", None),
    ("-", None),
]


@pytest.mark.parametrize(("text", "number"), NUMBERS, ids=[repr(t)[:12] for t, _ in NUMBERS])
@pytest.mark.parametrize("axis", ["lon", "lat"])
def test_numbers_and_marks_for_missing_ones(file, axis, text, number):
    path = file(f'{axis},other\n"{text}",1\n')
    names = {"x": "lon", "y": "other"} if axis == "lon" else {"x": "other", "y": "lat"}
    value = rows_of(path, **names)[0][0 if axis == "lon" else 1]
    if number is None:
        assert math.isnan(value)
        counts = tally_batches(read(path, Columns(**names), EARTH), EARTH)
        assert counts.report == {"read": 1, "without coordinates": 1, "outside": 0, "kept": 0}
    else:
        assert (value, math.copysign(1, value)) == (number, math.copysign(1, number))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("8_642", id="underscore"),
        pytest.param("1\uff12\uff17.5", id="full-width-digits"),
        pytest.param("\u0661\u0662\u0667", id="arabic-digits"),
        pytest.param("\u2212127", id="minus-sign-of-typesetters"),
        pytest.param("\u00a0127", id="no-break-space"),
        pytest.param("127\u3000", id="ideographic-space"),
        pytest.param("0x10", id="hexadecimal"),
        pytest.param("37,5678", id="decimal-comma"),
        pytest.param("1 027", id="space-between-thousands"),
        pytest.param("37°33'", id="degrees-and-minutes"),
        pytest.param("127E", id="hemisphere"),
        pytest.param("1e400", id="too-large"),
        pytest.param("-1e400", id="too-small"),
        pytest.param("9" * 400, id="four-hundred-digits"),
        pytest.param("inf", id="inf"),
        pytest.param("-Infinity", id="infinity"),
        pytest.param("nan(1)", id="nan-with-a-load"),
        pytest.param("true", id="true"),
        pytest.param("--", id="dashes"),
        pytest.param("#N/A", id="spreadsheet-error"),
        pytest.param("secret name", id="a-name"),
        pytest.param("1\0", id="nul"),
    ],
)
@pytest.mark.parametrize("axis", ["lon", "lat"])
def test_text_that_is_no_number_is_refused_and_not_quoted(file, axis, text):
    rows = {"lon": f'"{text}",1\n', "lat": f'1,"{text}"\n'}
    path = file("lon,lat\n2,3\n" + rows[axis])
    with pytest.raises(InputDataError) as raised:
        rows_of(path)
    message = str(raised.value)
    assert f"column '{axis}'" in message
    assert str(path) in message
    assert text not in message.replace(str(path), "")


@pytest.mark.parametrize(
    "row",
    [
        pytest.param("37.5,127.0", id="swapped"),
        pytest.param("0,91", id="latitude-91"),
        pytest.param("0,-90.000001", id="just-beyond-the-pole"),
        pytest.param("181,0", id="longitude-181"),
        pytest.param("359.5,0", id="longitude-to-360"),
        pytest.param("953898,1952028", id="metres"),
    ],
)
def test_values_beyond_the_limits_of_degrees_are_outside(file, row):
    counts = tally_batches(read(file(f"lon,lat\n1,2\n{row}\n"), Columns(), EARTH), EARTH)
    assert counts.report == {"read": 2, "without coordinates": 0, "outside": 1, "kept": 1}


def test_poles_corners_and_the_date_line_are_places(file):
    rows = "180,0\n-180,0\n0,90\n0,-90\n180,90\n-180,-90\n-0.0,-0.0\n"
    counts = tally_batches(read(file("lon,lat\n" + rows), Columns(), EARTH), EARTH)
    assert counts.counts.sum() == 7
    assert (counts.columns.max(), counts.rows.max()) == (2**20 - 1, 2**20 - 1)


@pytest.mark.parametrize(("rows", "kept"), [("5,5\n.5,.5\n", 1), ("5,5\n6,6\n", 0)])
def test_rows_outside_are_left_out_and_may_be_all(file, rows, kept):
    domain = psd.Domain(bounds=(0, 0, 1, 1))
    counts = tally_batches(read(file("lon,lat\n" + rows), Columns(), domain), domain)
    assert counts.counts.sum() == kept
    assert counts.report["outside"] == 2 - kept


def faulty(content, words, name):
    return pytest.param(content, words, id=name)


LATER = "lon,lat\r\n" + "1,2\r\n" * 20_000


@pytest.mark.parametrize(
    ("content", "words"),
    [
        faulty("", "is empty", "no-byte"),
        faulty("\n", "is empty", "one-line-end"),
        faulty(f"lon,lat\n1,2\n{PRIVATE}\n", "malformed", "short-row"),
        faulty(f"lon,lat\n1,2\n3,{PRIVATE},5\n", "malformed", "long-row"),
        faulty(f"lon,lat\n1,2,{PRIVATE}\n3,4,5\n", "malformed", "all-rows-long"),
        faulty(f'lon,lat\n1,2\n"{PRIVATE},4\n5,6\n', "closed quotes", "unterminated-quote"),
        faulty(f'lon,lat\n1,2\n3,"{PRIVATE}\n', "closed quotes", "unterminated-at-the-end"),
        faulty(f'lon,lat\n"1"{PRIVATE},2\n', "malformed", "text-after-a-quote"),
        faulty("lon,lat\r\n1,2\n3,4\r\n", "line ends of one kind", "crlf-then-lf"),
        faulty("lon,lat\n1,2\r\n3,4\n", "line ends of one kind", "lf-then-crlf"),
        faulty("lon,lat\n1,2\r3,4\n", "line ends of one kind", "lf-then-cr"),
        faulty("lon,lat\0\n1,2\n", "must be UTF-8 text", "nul-in-the-header"),
        faulty("lon,lat\n1,2\n".encode("utf-16-le"), "save it as CSV in UTF-8", "utf-16-no-mark"),
        faulty("경도,lat\n1,2\n".encode("cp949"), "save it as CSV in UTF-8", "cp949-header"),
        faulty("lon,lat\n서,2\n".encode("cp949"), "not in UTF-8", "cp949-field"),
        faulty("lon,lat\né,2\n".encode("latin-1"), "not in UTF-8", "latin-1-field"),
        faulty(b"PK\x03\x04\x14\0lon,lat\n", "must be UTF-8 text", "spreadsheet-renamed"),
        faulty(b"PAR1\x15\x04lon,lat\n", "must be UTF-8 text", "parquet-renamed"),
        faulty(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "got a picture; name a file of points", "picture"),
        faulty(b"%PDF-1.4\n1 0 obj\n", "got a document; name a file of points", "document"),
        faulty(b"\x7fELF\x02\x01\x01\0", "is not text; name a table of points", "program"),
        faulty(b"\xca\xfe\xba\xbe\0\0\n", "is not text; name a table of points", "other-binary"),
        faulty(b"\x1f\x8b\x08lon,lat\n", "damaged or incomplete gzip", "gzip-cut"),
        faulty("lon|lat\n1|2\n", """separated by '|'? State delimiter="|\"""", "bars"),
        faulty("lon|latt\n1|2\n", "separated by '|'", "bars-and-another-name"),
        faulty(
            "longitude,lat\n1,2\n",
            "no column 'lon' in the first line; name it by x=NAME; its "
            "columns are longitude, lat; did you mean 'longitude'?",
            "x",
        ),
        faulty(
            "lon,latitude\n1,2\n",
            "no column 'lat' in the first line; name it by y=NAME; its "
            "columns are lon, latitude; did you mean 'latitude'?",
            "y",
        ),
        faulty("1,2\n3,4\n", "no column 'lon'", "no-header"),
        faulty("lon,lat,lon\n1,2,3\n", "2 columns named 'lon'", "doubled-column"),
        faulty(f"{LATER}{PRIVATE}\r\n", "malformed", "short-row-in-a-later-batch"),
        faulty(f"{LATER}{PRIVATE},2\n3,4\n", "malformed", "lf-in-a-later-batch"),
        faulty(f'{LATER}"{PRIVATE},2\r\n', "malformed", "open-quote-in-a-later-batch"),
        faulty(LATER.encode() + b"8642.13579\xff,2\r\n", "UTF-8", "bad-byte-in-a-later-batch"),
    ],
)
def test_malformed_files_are_refused_and_not_quoted(file, monkeypatch, content, words):
    monkeypatch.setattr(source, "_ROWS", 2_048)
    path = file(content)
    with pytest.raises(InputDataError) as raised:
        rows_of(path)
    message = str(raised.value)
    assert words in message
    assert str(path) in message
    assert PRIVATE not in message
    assert "\n" not in message
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda folder: folder / "missing.csv", id="missing"),
        pytest.param(lambda folder: folder, id="folder"),
        pytest.param(lambda folder: "a\0b.csv", id="nul-in-the-name"),
        pytest.param(lambda folder: (os.mkfifo(folder / "pipe"), folder / "pipe")[1], id="fifo"),
        pytest.param(
            lambda folder: ((folder / "l").symlink_to("nowhere"), folder / "l")[1],
            id="dangling-link",
        ),
        pytest.param(lambda folder: "/dev/zero", id="device"),
    ],
)
def test_what_is_no_file(tmp_path, make):
    with pytest.raises(InputDataError, match=r"regular file|does not exist|no files to read"):
        rows_of(make(tmp_path))


def test_a_file_without_permission(file):
    if os.geteuid() == 0:
        pytest.skip("root may read every file")
    path = file("lon,lat\n1,2\n")
    path.chmod(0)
    with pytest.raises(InputDataError, match="permissions"):
        rows_of(path)


@pytest.mark.parametrize("alias", ["itself", "symlink_to", "hardlink_to", "roundabout"])
def test_a_file_given_twice(file, tmp_path, alias):
    path, other = file("lon,lat\n1,2\n"), tmp_path / "other.csv"
    if alias == "itself":
        other = path
    elif alias == "roundabout":
        (tmp_path / "folder").mkdir()
        other = tmp_path / "folder" / ".." / path.name
    else:
        getattr(other, alias)(path)
    with pytest.raises(InputDataError, match="twice"):
        rows_of([path, other])


def test_two_files_with_the_same_record_are_two(file):
    paths = [file(f"lon,lat\n1,2{end}", name) for end, name in (("\n", "a.csv"), ("", "b.csv"))]
    assert rows_of(paths) == [(1.0, 2.0)] * 2


def test_every_file_has_its_own_columns(file):
    paths = [file("lon,lat\n1,2\n", "a.csv"), file("lat,n,lon\n4,x,3\n", "b.csv")]
    assert rows_of(tuple(map(str, paths))) == [(1.0, 2.0), (3.0, 4.0)]


def test_all_files_are_looked_at_before_one_is_read(file, monkeypatch):
    monkeypatch.setattr(duckdb, "connect", lambda *args: pytest.fail("a file was read"))
    with pytest.raises(InputDataError, match=r"b\.csv"):
        rows_of([file("lon,lat\n1,2\n", "a.csv"), file("a,b\n1,2\n", "b.csv")])


@pytest.mark.parametrize(
    "name",
    ["a b.csv", "a'b.csv", 'a"b.csv', "서울.csv", "*.csv", "[ab].csv", "a?.csv", "-o.csv", "x"],
)
def test_names_are_taken_as_they_stand(file, name):
    file("lon,lat\n7,7\n", "a.csv")
    file("lon,lat\n7,7\n", "aa.csv")  # what a pattern would find as well
    assert rows_of(file("lon,lat\n1,2\n", name)) == [(1.0, 2.0)]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda path: path.write_text("lon,lat\n1,2\n3,4\n"), id="grows"),
        pytest.param(lambda path: os.utime(path, ns=(0, 0)), id="is-written-again"),
        pytest.param(lambda path: path.with_suffix(".new").replace(path), id="is-replaced"),
    ],
)
def test_a_file_that_changes_while_it_is_read(file, change):
    path = file("lon,lat\n1,2\n")
    path.with_suffix(".new").write_bytes(path.read_bytes())
    batches = read(path, Columns(), EARTH)
    next(batches)
    change(path)
    with pytest.raises(InputDataError, match="changed while it was read"):
        list(batches)


@pytest.mark.parametrize(
    "written",
    [
        "007",
        "7",
        "9007199254740993",
        " a",
        "a ",
        "é",
        "e\u0301",
        "NA",
        "null",
        "nan",
        "=cmd()",
        "😀",
    ],
)
def test_ids_are_text(file, written):
    path = file(f"user,lon,lat\n{written},1,2\n")
    assert rows_of(path, user="user") == [(1.0, 2.0, written)]


@pytest.mark.parametrize("blank", ["", '""', "  ", '" "', "\u00a0"])
def test_a_blank_id_is_refused(file, blank):
    path = file(f"user,lon,lat\na,1,2\n{blank},1,2\n")
    with pytest.raises(InputDataError, match="have no user id"):
        tally_batches(
            read(path, Columns(user="user"), EARTH),
            EARTH,
            unit=PrivacyUnit(kind="user", max_contributions=1),
        )


def test_the_column_of_ids_has_to_be_there(file):
    with pytest.raises(InputDataError, match="no column 'user'"):
        rows_of(file("lon,lat\n1,2\n"), user="user")


def test_ids_in_another_encoding_are_refused(file):
    with pytest.raises(InputDataError, match="not in UTF-8"):
        rows_of(file("user,lon,lat\n김,1,2\n".encode("cp949")), user="user")


def test_no_progress_bar_is_shown(file, monkeypatch):
    shown = []

    class Watched:
        """A connection whose owner likes progress bars, as in a notebook."""

        def __init__(self, *args, connect=duckdb.connect):
            self.connection = connect(*args)
            self.connection.execute("SET enable_progress_bar = true")
            self.execute = self.connection.execute

        def __enter__(self):
            return self

        def __exit__(self, *args):
            self.connection.close()

        def sql(self, *args, **named):
            shown.extend(self.execute("SELECT current_setting('enable_progress_bar')").fetchall())
            return self.connection.sql(*args, **named)

    monkeypatch.setattr(duckdb, "connect", Watched)
    assert rows_of(file("lon,lat\n1,2\n")) == [(1.0, 2.0)]
    assert shown == [(False,)]


@pytest.mark.parametrize("data", [None, 7, [], [1], {"lon": [1]}, b"points.csv"])
def test_inputs_of_no_kind(data):
    with pytest.raises(InputDataError, match=r"cannot read an input|at least one input"):
        list(read(data, Columns(), EARTH))


def test_the_parser_puts_nothing_into_files_of_its_own():
    """By itself it would make a folder where the program runs, with rows that no longer fit."""
    with duckdb.connect(":memory:") as connection:
        connection.execute(source._SETTINGS)
        found = connection.sql("SELECT current_setting('temp_directory')").fetchall()
    assert found == [("",)]


def signs_of(path):
    content = scan_content(path, "none")
    assert content.length == path.stat().st_size
    assert content.has_rows
    return content.quotes, content.has_underscore


@pytest.mark.parametrize("rest", ["", "\n", "\r\n", "\r", "\r\n\r\n"])
def test_a_first_line_alone_is_no_row(file, rest):
    assert not scan_content(file(f"lon,lat{rest}"), "none").has_rows


def test_quotes_around_names_alone_do_not_slow_the_parser(file):
    path = file('"user","a,b","lon","lat"\nann,x,1,2\nbob,y,3,4\n')
    assert signs_of(path) == (0, False)
    assert rows_of(path, user="user") == [(1.0, 2.0, "ann"), (3.0, 4.0, "bob")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_signs_are_looked_for_below_the_first_line(file, end, monkeypatch):
    monkeypatch.setattr(_csv_file, "BUFFER", 5)  # so that lines and parts end in different places
    path = file(f'user_id,"lon",lat{end}ann,1,2{end}"bob",3,4{end}')
    assert signs_of(path) == (2, False)
    path = file(f"user_id,lon,lat{end}ann_1,1,2{end}")
    assert signs_of(path) == (0, True)


@pytest.mark.parametrize("part", [1, 2, 3, 5, 2**20])
@pytest.mark.parametrize(
    ("text", "lines", "line_ends"),
    [
        ("lon,lat\n1,2\n", 2, 0),
        ("lon,lat\n1,2", 2, 0),
        ("lon,lat\r\n1,2\r\n\r\n", 3, 0),
        ("lon,lat\r1,2\r", 1, 2),
        ("lon,lat\r1,2\r\n3,4\n\r", 3, 2),
        ("", 0, 0),
    ],
)
def test_lines_are_counted(file, text, lines, line_ends, part, monkeypatch):
    monkeypatch.setattr(_csv_file, "BUFFER", part)
    path = file("")
    path.write_bytes(text.encode())
    content = scan_content(path, "none")
    assert (content.lines, content.line_ends) == (lines, line_ends)


def queries(monkeypatch):
    """Names of the queries that are made."""
    made = []
    for name in ("numbers", "left_out", "size", "text"):
        real = getattr(source.CsvQuery, name)

        def note(self, *args, real=real, name=name, **options):
            made.append(name)
            return real(self, *args, **options)

        monkeypatch.setattr(source.CsvQuery, name, note)
    return made


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lon,lat\n1,2\n3,4\n", ["numbers"]),
        ("lon,lat\r\n1,2\r\n3,4", ["numbers"]),
        ("lon,lat\n1,2\n\n3,4\n", ["numbers", "left_out", "text", "size"]),
        ("lon,lat\n1,2\nNA,5\n3,4\n", ["numbers", "left_out", "text", "size"]),
        ("lon,lat\r1,2\r3,4\r", ["text"]),
        ('lon,lat\n"1",2\n3,4\n', ["text"]),
        ("lon,lat\n1,2\n,2\n3,4\n", ["text"]),  # an empty field near the start
    ],
)
def test_rows_are_read_again_only_where_some_were_left_out(file, text, expected, monkeypatch):
    made = queries(monkeypatch)
    assert (3.0, 4.0) in rows_of(file(text))
    assert made == expected


def test_rows_that_are_never_read_stop_the_build(file, monkeypatch):
    path = file("lon,lat\n1,2\nNA,5\n3,4\n")
    nothing = "SELECT 1.0::DOUBLE AS x, 1.0::DOUBLE AS y WHERE $1 = ''"
    monkeypatch.setattr(source.CsvQuery, "left_out", lambda self: nothing)
    with pytest.raises(InputDataError, match="changed while it was read"):
        rows_of(path)


def test_many_rows_are_left_out_by_all_threads(file):
    """Rows without a number and rows of numbers take turns, in parts of several threads."""
    marks = ["NA,1", "1,null", "NaN,-", "0.25,0.5", "0.25,0.5"]
    path = file("n,lon,lat\n" + "".join(f"user{n},{marks[n % 5]}\n" for n in range(400_000)))
    tally = tally_batches(read(path, Columns(), EARTH), EARTH)
    assert tally.counts.tolist() == [160_000]
    assert tally.report["without coordinates"] == 240_000
    path.write_text(path.read_text() + "last,0.25,0.5,7\n")
    with pytest.raises(InputDataError, match="malformed"):
        tally_batches(read(path, Columns(), EARTH), EARTH)


@pytest.mark.parametrize("user", ["ann", "a_b"])
def test_underscores_in_numbers_are_found_beside_any_id(file, user):
    path = file(f"user,lon,lat\n{user},1,2\n{user},1_0,2\n")
    with pytest.raises(InputDataError, match="plain decimal numbers"):
        rows_of(path, user="user")
