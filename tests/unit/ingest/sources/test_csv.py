"""CSV files: what is read, what is left out, what is refused and in which words."""

import duckdb
import numpy as np
import pytest

import psd
from psd.errors import InputDataError, InternalError, PsdError, ResourceError
from psd.ingest.sources import Columns, _csv_file, read
from psd.ingest.sources import csv as source
from psd.ingest.sources._csv_file import scan_content
from psd.ingest.tally_builder import tally_batches
from psd.privacy.unit import PrivacyUnit
from support.batches import EARTH, SECRET, refused, rows_of

SAME = [
    *("lon,lat\n1,2\n3,4\n", "lon,lat\n1,2\n3,4", "lat,lon\n2,1\n4,3\n", "lon,lat\n1,2,\n3,4,\n"),
    *("\ufefflon,lat\n1,2\n3,4\n", '\ufeff"lon","lat"\n1,2\n3,4\n'),
    *("lon,lat\r\n1,2\r\n3,4\r\n", "lon,lat\r1,2\r3,4\r", "lon,lat\n\n1,2\n\n3,4\n\n"),
    *("a,lon,b,lat,\nx,1,y,2,\n,3,,4,\n", " lon , lat \n 1 ,\t2\n3, 4 \n"),
    *('lon,lat\n"1","2"\n"3","4"\n', 'n,lon,lat\n"a, b",1,2\n"c ""d""",3,4\n'),
    *('n,lon,lat\n"a\nb",1,2\nc,3,4\n', 'n,lon,lat\r\n"a\r\nb",1,2\r\nc,3,4\r\n'),
    *("n,lon,lat\n서울 é 😀,1,2\n,3,4\n", "n,lon,lat\n" + "a" * 200_000 + ",1,2\nb,3,4\n"),
]


def test_files_that_say_the_same(subtests, file):
    for content in SAME:
        with subtests.test(content[:50]):
            assert rows_of(file(content)) == [(1.0, 2.0), (3.0, 4.0)]


RECORD = PrivacyUnit()


def tally_of(path, domain=EARTH, unit=RECORD, **columns):
    return tally_batches(read(path, Columns(**columns), domain), domain, unit=unit)


def test_many_rows_in_many_batches_and_few_rows(file, monkeypatch):
    monkeypatch.setattr(source, "_ROWS", 2_048)
    expected = [(float(i % 180), float(i % 90)) for i in range(30_000)]
    path = file("lon,lat\n" + "".join(f"{x},{y}\n" for x, y in expected))
    assert len(list(read(path, Columns(), EARTH))) > 10
    assert sorted(rows_of(path)) == sorted(expected)
    for content in ("lon,lat\n", "lon,lat", "\ufefflon,lat\r\n", "lon,lat\n1,2\n", "lon,lat\n1,2"):
        number = "1" in content
        assert len(rows_of(file(content))) == tally_of(file(content)).counts.sum() == number


# What is written, and the number that it is; None where the row is left out.
NUMBERS = {
    text: float(text)
    for text in ("127.01", "-127.01", "+5", "5.", ".5", "1e1", "1.5E+1", "0005", "-0.0", "1e-400")
}
NUMBERS |= {"  7 ": 7.0, "1." + "0" * 400 + "1": 1.0}
MISSING = ("", " ", "NA", "na", "N/A", "NaN", "nan", "-nan", "null", "NULL", "None", "-")


def test_numbers_and_marks_for_missing_ones(file):
    """All in one file, and each mark for a missing number in one of its own."""
    for axis, names in enumerate(({"x": "n", "y": "one"}, {"x": "one", "y": "n"})):
        path = file("n,one\n" + "".join(f'"{text}",1\n' for text in (*NUMBERS, *MISSING)))
        values = [row[axis] for row in rows_of(path, **names)]
        found, missing = values[: len(NUMBERS)], values[len(NUMBERS) :]
        assert list(map(repr, found)) == list(map(repr, NUMBERS.values()))
        assert np.isnan(missing).all()
        for text in MISSING:
            counts = tally_of(file(f'n,one\n"{text}",1\n'), **names)
            left = {"without coordinates": 1, "outside": 0, "kept": 0}
            assert counts.report == {"read": 1, **left}, text


NO_NUMBERS = [
    *("8_642", "37,5678", "1 027", "37°33'", "127E", "0x10", "9" * 400, "1e400", "-1e400", "1\0"),
    *("inf", "-Infinity", "nan(1)", "true", "--", "#N/A", "secret name"),
    # Digits of full width and of Arabic, a minus sign of typesetters, and two other spaces.
    *("1\uff12\uff17.5", "\u0661\u0662\u0667", "\u2212127", "\u00a0127", "127\u3000"),
]


@pytest.mark.parametrize("axis", ["lon", "lat"])
def test_text_that_is_no_number_is_refused_and_not_quoted(subtests, file, axis):
    for text in NO_NUMBERS:
        other = {"lon": "lat", "lat": "lon"}[axis]
        path = file(f'{axis},{other}\n2,3\n"{text}",1\n')
        with subtests.test(text):
            message = refused(path)
            assert f"column '{axis}'" in message
            assert str(path) in message
            assert text not in message.replace(str(path), "")


def test_values_beyond_the_limits_of_degrees_are_outside(file):
    swapped, metres, full_circle = "37.5,127.0", "953898,1952028", "359.5,0"
    for row in (swapped, metres, full_circle, "0,91", "0,-90.000001", "181,0"):
        counts = tally_of(file(f"lon,lat\n1,2\n{row}\n"))
        assert counts.report == {"read": 2, "without coordinates": 0, "outside": 1, "kept": 1}
    rows = "180,0\n-180,0\n0,90\n0,-90\n180,90\n-180,-90\n-0.0,-0.0\n"
    counts = tally_of(file("lon,lat\n" + rows))
    assert counts.counts.sum() == 7
    assert (counts.columns.max(), counts.rows.max()) == (2**20 - 1, 2**20 - 1)
    for rows, kept in (("5,5\n.5,.5\n", 1), ("5,5\n6,6\n", 0)):
        counts = tally_of(file("lon,lat\n" + rows), psd.Domain(bounds=(0, 0, 1, 1)))
        assert (counts.counts.sum(), counts.report["outside"]) == (kept, 2 - kept)


LATER = "lon,lat\r\n" + "1,2\r\n" * 20_000


ABOUT_NAMES = (
    "no column '{}' in the first line; name it by {}=NAME; its columns are {}; did you mean '{}'?"
)
MALFORMED = {
    "is empty": ["", "\n"],
    "malformed": [
        *(f"lon,lat\n1,2\n{SECRET}\n", f"lon,lat\n1,2\n3,{SECRET},5\n"),
        *(f"lon,lat\n1,2,{SECRET}\n3,4,5\n", f'lon,lat\n"1"{SECRET},2\n'),
        *(f"{LATER}{SECRET}\r\n", f"{LATER}{SECRET},2\n3,4\n", f'{LATER}"{SECRET},2\r\n'),
    ],
    "closed quotes": [f'lon,lat\n1,2\n"{SECRET},4\n5,6\n', f'lon,lat\n1,2\n3,"{SECRET}\n'],
    "line ends of one kind": [
        *("lon,lat\r\n1,2\n3,4\r\n", "lon,lat\n1,2\r\n3,4\n", "lon,lat\n1,2\r3,4\n")
    ],
    "must be UTF-8 text": [
        *("lon,lat\0\n1,2\n", b"PK\x03\x04\x14\0lon,lat\n", b"PAR1\x15\x04lon,lat\n")
    ],
    "save it as CSV in UTF-8": [
        *("lon,lat\n1,2\n".encode("utf-16-le"), "경도,lat\n1,2\n".encode("cp949"))
    ],
    "not in UTF-8": [
        *("lon,lat\n서,2\n".encode("cp949"), "lon,lat\né,2\n".encode("latin-1")),
        *("lon,lat,user\n1,2,김\n".encode("cp949"), LATER.encode() + b"8642.13579\xff,2\r\n"),
    ],
    "got a picture; name a file of points": [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"],
    "got a document; name a file of points": [b"%PDF-1.4\n1 0 obj\n"],
    "is not text; name a table of points": [b"\x7fELF\x02\x01\x01\0", b"\xca\xfe\xba\xbe\0\0\n"],
    "damaged or incomplete gzip": [b"\x1f\x8b\x08lon,lat\n"],
    "separated by '|'? State delimiter=\"|\"": ["lon|lat\n1|2\n"],
    "separated by '|'": ["lon|latt\n1|2\n"],
    ABOUT_NAMES.format("lon", "x", "longitude, lat", "longitude"): ["longitude,lat\n1,2\n"],
    ABOUT_NAMES.format("lat", "y", "lon, latitude", "latitude"): ["lon,latitude\n1,2\n"],
    "no column 'lon'": ["1,2\n3,4\n"],
    "2 columns named 'lon'": ["lon,lat,lon\n1,2,3\n"],
}


def test_malformed_files_are_refused_and_not_quoted(subtests, file, monkeypatch):
    monkeypatch.setattr(source, "_ROWS", 2_048)
    for words, contents in MALFORMED.items():
        for content in contents:
            path = file(content)
            user = {"user": "user"} if "김".encode("cp949") in path.read_bytes() else {}
            with subtests.test(words, content=content[-50:]):
                message = refused(path, **user)
                assert words in message
                assert str(path) in message


def test_two_files_with_the_same_record_are_two(file, monkeypatch):
    paths = [file(f"lon,lat\n1,2{end}", name) for end, name in (("\n", "a.csv"), ("", "b.csv"))]
    assert rows_of(paths) == [(1.0, 2.0)] * 2
    paths[1].write_text("lat,n,lon\n4,x,3\n")  # each file has its own columns
    assert rows_of(tuple(map(str, paths))) == [(1.0, 2.0), (3.0, 4.0)]
    paths[1].write_text("a,b\n1,2\n")  # all are looked at before one is read
    monkeypatch.setattr(duckdb, "connect", lambda *args: pytest.fail("a file was read"))
    assert "b.csv" in refused(paths)


def test_names_are_taken_as_they_stand(subtests, file):
    file("lon,lat\n7,7\n", "a.csv")
    file("lon,lat\n7,7\n", "aa.csv")  # what a pattern would find as well
    names = ["a b.csv", "a'b.csv", 'a"b.csv', "서울.csv", "*.csv", "[ab].csv", "a?.csv", "-o.csv"]
    for name in (*names, "x"):
        with subtests.test(name):
            assert rows_of(file("lon,lat\n1,2\n", name)) == [(1.0, 2.0)]


def test_ids_are_text(subtests, file):
    ids = ["007", "7", "9007199254740993", " a", "a ", "é", "e\u0301", "NA", "null", "nan", "😀"]
    for written in (*ids, "=cmd()"):
        with subtests.test(written):
            path = file(f"user,lon,lat\n{written},1,2\n")
            assert rows_of(path, user="user") == [(1.0, 2.0, written)]
    for blank in ("", '""', "  ", '" "', "\u00a0"):
        path = file(f"user,lon,lat\na,1,2\n{blank},1,2\n")
        refusal = pytest.raises(InputDataError, match="have no user id")
        with subtests.test(blank=blank), refusal:
            tally_of(path, unit=PrivacyUnit(kind="user", max_contributions=1), user="user")
    assert "no column 'user'" in refused(file("lon,lat\n1,2\n"), user="user")


def test_no_progress_bar_is_shown_and_no_file_is_written(file, monkeypatch):
    """As in a notebook, whose owner likes progress bars, and a folder where rows no longer fit."""
    shown = []

    class Watched:
        def __init__(self, *args, connect=duckdb.connect):
            self.connection = connect(*args)
            self.connection.execute("SET enable_progress_bar = true")
            self.execute = self.connection.execute

        def __enter__(self):
            return self

        def __exit__(self, *args):
            self.connection.close()

        def sql(self, *args, **named):
            for name in ("enable_progress_bar", "temp_directory"):
                shown.extend(self.execute(f"SELECT current_setting('{name}')").fetchall())
            return self.connection.sql(*args, **named)

    monkeypatch.setattr(duckdb, "connect", Watched)
    assert rows_of(file("lon,lat\n1,2\n")) == [(1.0, 2.0)]
    assert shown == [(False,), ("",)]


def test_inputs_of_no_kind_and_underscores_in_numbers(file):
    for data in (None, 7, [], [1], {"lon": [1]}, b"points.csv"):
        with pytest.raises(InputDataError, match=r"cannot read an input|at least one input"):
            list(read(data, Columns(), EARTH))
    for user in ("ann", "a_b"):
        path = file(f"user,lon,lat\n{user},1,2\n{user},1_0,2\n")
        assert "plain decimal numbers" in refused(path, user="user")


def signs_of(path):
    content = scan_content(path, "none")
    assert content.length == path.stat().st_size
    assert content.has_rows
    return content.quotes, content.has_underscore


def test_signs_are_looked_for_below_the_first_line(file, monkeypatch):
    path = file('"user","a,b","lon","lat"\nann,x,1,2\nbob,y,3,4\n')
    assert signs_of(path) == (0, False)  # quotes around names alone do not slow the parser
    assert rows_of(path, user="user") == [(1.0, 2.0, "ann"), (3.0, 4.0, "bob")]
    monkeypatch.setattr(_csv_file, "BUFFER", 5)  # so that lines and parts end in different places
    for end in ("\n", "\r\n", "\r"):
        path = file(f'user_id,"lon",lat{end}ann,1,2{end}"bob",3,4{end}')
        assert signs_of(path) == (2, False)
        path = file(f"user_id,lon,lat{end}ann_1,1,2{end}")
        assert signs_of(path) == (0, True)


def test_lines_are_counted(subtests, file, monkeypatch):
    for text, lines, line_ends in [
        ("lon,lat\n1,2\n", 2, 0),
        ("lon,lat\n1,2", 2, 0),
        ("lon,lat\r\n1,2\r\n\r\n", 3, 0),
        ("lon,lat\r1,2\r", 1, 2),
        ("lon,lat\r1,2\r\n3,4\n\r", 3, 2),
        ("", 0, 0),
    ]:
        for part in (1, 2, 3, 5, 2**20):
            monkeypatch.setattr(_csv_file, "BUFFER", part)
            with subtests.test(text, part=part):
                content = scan_content(file(text.encode()), "none")
                assert (content.lines, content.line_ends) == (lines, line_ends)
    for rest in ("", "\n", "\r\n", "\r", "\r\n\r\n"):
        assert not scan_content(file(f"lon,lat{rest}"), "none").has_rows


def test_rows_are_read_again_only_where_some_were_left_out(subtests, file, monkeypatch):
    made, again = [], ["numbers", "left_out", "text", "size"]

    def noting(name, real):
        return lambda *args, **options: made.append(name) or real(*args, **options)

    for name in again:
        monkeypatch.setattr(source.CsvQuery, name, noting(name, getattr(source.CsvQuery, name)))
    for text, expected in [
        ("lon,lat\n1,2\n3,4\n", ["numbers"]),
        ("lon,lat\r\n1,2\r\n3,4", ["numbers"]),
        ("lon,lat\n1,2\n\n3,4\n", again),
        ("lon,lat\n1,2\nNA,5\n3,4\n", again),
        ("lon,lat\r1,2\r3,4\r", ["text"]),
        ('lon,lat\n"1",2\n3,4\n', ["text"]),
        ("lon,lat\n1,2\n,2\n3,4\n", ["text"]),  # an empty field near the start
    ]:
        made.clear()
        with subtests.test(text):
            assert (3.0, 4.0) in rows_of(file(text))
            assert made == expected


def test_a_file_that_changes_while_it_is_read(file, monkeypatch):
    """The changes that are seen are those of `test_paths.py`."""
    path = file("lon,lat\n1,2\nNA,5\n3,4\n")
    batches = read(path, Columns(), EARTH)
    next(batches)
    path.write_text("lon,lat\n1,2\n3,4\n")
    with pytest.raises(InputDataError, match="changed while it was read"):
        list(batches)
    path.write_text("lon,lat\n1,2\nNA,5\n3,4\n")
    nothing = "SELECT 1.0::DOUBLE AS x, 1.0::DOUBLE AS y WHERE $1 = ''"  # rows are never read
    monkeypatch.setattr(source.CsvQuery, "left_out", lambda self: nothing)
    assert "changed while it was read" in refused(path)


def test_many_rows_are_left_out_by_all_threads(file):
    """Rows without a number and rows of numbers take turns, in parts of several threads."""
    marks = ["NA,1", "1,null", "NaN,-", "0.25,0.5", "0.25,0.5"]
    path = file("n,lon,lat\n" + "".join(f"user{n},{marks[n % 5]}\n" for n in range(400_000)))
    tally = tally_of(path)
    assert tally.counts.tolist() == [160_000]
    assert tally.report["without coordinates"] == 240_000
    path.write_text(path.read_text() + "last,0.25,0.5,7\n")
    assert "malformed" in refused(path)


def test_errors_of_duckdb_that_are_no_faults_of_a_file(file, monkeypatch, subtests):
    """None of them calls a file malformed, and none quotes what DuckDB says."""
    path = file("lon,lat\n1,2\n")
    about = {
        duckdb.CatalogException("Catalog Error: no function secret"): (InternalError, "no fault"),
        duckdb.InvalidInputException("Invalid Input Error: secret"): (InternalError, "no fault"),
        duckdb.FatalException("FATAL Error: secret"): (InternalError, "no fault"),
        duckdb.IOException("IO Error: cannot read secret"): (ResourceError, "to its end"),
        duckdb.InvalidInputException("Invalid Input Error: CSV Error on Line: 2 secret"): (
            InputDataError,
            "malformed",
        ),
    }
    for error, (kind, words) in about.items():

        def fail(*_, error=error):
            raise error

        with subtests.test(error=str(error)), monkeypatch.context() as patch:
            patch.setattr(source, "_rows", fail)
            with pytest.raises(PsdError, match=words) as caught:
                rows_of(path)
            assert type(caught.value) is kind
            assert "secret" not in str(caught.value)
            assert caught.value.__context__ is None


def test_a_setting_that_duckdb_refuses_is_no_fault_of_the_file(file, monkeypatch):
    monkeypatch.setattr(source, "_ANY_ORDER", "SET no_such_setting = true; ")
    with pytest.raises(InternalError, match="refused its settings"):
        rows_of(file("lon,lat\n1,2\n"))
