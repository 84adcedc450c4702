"""Unusual and wrong input and what comes of it; docs/generate.py writes the page."""

import bz2
import gzip
import json
import os
import shlex
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import geopandas as gpd
import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import shapely

import psd
from psd.decompositions.quadtree import Quadtree
from psd.ingest.sources import Columns
from psd.ingest.sources import csv as source
from psd.ledger.ledger import Ledger
from support.releases import as_drawn

# Stands in every table; nothing that is printed or published may hold it.
SECRET = "secret-8642.13579"

# The command line where a case says nothing else.
INPUT, OUTPUT, ANSWERS = "points.csv", "out/r.psd.parquet", "out/answers.csv"
EXPECTED = "out/plan.csv"
DEFAULTS = {
    "build": {
        "-o": (OUTPUT,),
        "--epsilon": ("1",),
        "--bounds": ("-180", "-90", "180", "90"),
        "--method": ("quadtree",),
        "--set": ("height=1",),
    },
    "compare": {
        "-o": (OUTPUT,),
        "--epsilons": ("1",),
        "--bounds": ("-180", "-90", "180", "90"),
        "--methods": ("grid,quadtree",),
        "--runs": ("1",),
    },
    "query": {"-o": (ANSWERS,)},
    "plan": {"-o": (EXPECTED,), "--bounds": ("0", "0", "9", "9"), "--methods": ("none",)},
    "export": {},
    "info": {},
    "map": {},
    "plot": {},
}

# What takes the place of the bounds.
WAYS = ("--boundary",)

Content = str | bytes | Callable[[Path], object] | None


@dataclass(frozen=True, kw_only=True)
class Case:
    """An input, a command line and its outcome: rows kept, or a code and words of the message."""

    name: str
    given: str
    content: Content
    options: str = ""
    command: str = "build"
    kept: int | None = None
    code: int = 0
    told: str = ""
    input: str = INPUT
    overwrite: bool = True
    patch: Callable[..., None] | None = None
    shows_names: bool = False
    megabytes: int | None = None

    @property
    def id(self):
        return self.name.split("-")[0]

    @property
    def output(self):
        """The file that it writes."""
        return {"query": ANSWERS, "plan": EXPECTED}.get(self.command, OUTPUT)

    @property
    def args(self):
        """Command line after `psd`."""
        line, options = [self.command], shlex.split(self.options)
        line += [self.input] if self.command != "plan" else []  # it reads no records
        for option, values in DEFAULTS[self.command].items():
            elsewhere = (option == "--set" and "--method" in options) or (
                option == "--bounds" and any(way in options for way in WAYS)
            )
            if option not in options and not elsewhere:
                line += [option, *values]
        line += ["--overwrite"] if self.overwrite else []
        line += ["--report-private"] if self.command == "build" and not self.code else []
        return [*line, *options]

    def prepare(self, folder):
        """Put the input there."""
        if callable(self.content):
            self.content(folder / self.input)
        elif self.content is not None:
            (folder / self.input).write_bytes(self.bytes)

    @property
    def bytes(self):
        """Content of the input where it is a plain file."""
        content = self.content
        return content.encode() if isinstance(content, str) else content

    @property
    def fields(self):
        """Pieces of the input that no message may quote."""
        if not isinstance(self.content, str | bytes):
            return {SECRET}
        text = self.bytes.decode(errors="ignore").replace("\0", "")
        if self.shows_names:  # names of columns, which are no values of records
            text = text.partition("\n")[2]
        for mark in ',;\t|\r"':
            text = text.replace(mark, "\n")
        pieces = {piece.strip() for piece in text.split("\n")} - {"user", "note"}
        return {SECRET, *(piece for piece in pieces if len(piece) > 3)}


def kept(name, given, content, rows, options="", **more):
    return Case(name=name, given=given, content=content, options=options, kept=rows, **more)


def refused(name, given, content, code, told, options="", **more):
    outcome = {"code": code, "told": told, **more}
    return Case(name=name, given=given, content=content, options=options, **outcome)


def uncompared(name, given, code, told, options="", content=None, **more):
    """A case of `psd compare`, of good data unless other is given."""
    content = GOOD if content is None else content
    return refused(name, given, content, code, told, options, command="compare", **more)


def unplanned(name, given, code, told, options):
    """A plan of regions that is refused; a has 9 people and b -1, and nobody is in `none`."""
    content = beside("r.geojson", wards("a", "b", people=(9, -1), none=(0, 0), some=(9, 9)))
    return refused(name, given, content, code, told, options, command="plan")


def table(*rows, header="lon,lat"):
    """CSV of rows, each with a secret note."""
    return "".join(f"{line}\n" for line in (f"{header},note", *(f"{r},{SECRET}" for r in rows)))


def users(*ids):
    """CSV with a row at one place for each of the ids."""
    return table(*(f"{user},1.5,2.5" for user in ids), header="user,lon,lat")


PLACES = ("126.98,37.57", "-0.12,51.5", "1.5,2.5")
GOOD = table(*PLACES)
USERS = "--user user --max-contributions 2"
KOREA = "--bounds 124 33 132 39"
LONDON = "--bounds -0.55 51.25 0.35 51.72"
METRES = "--bounds 900000 1900000 1000000 2000000 --crs EPSG:5179"


def linked(path):
    elsewhere = path.with_name("elsewhere.csv")
    elsewhere.write_text(GOOD)
    path.symlink_to(elsewhere)


def copied(path):
    for each in (path, path.with_name("elsewhere.csv")):
        each.write_text(GOOD)


def compressed(path):
    path.write_text(GOOD)
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(GOOD.encode()))


def parts(path):
    path.mkdir()
    (path / "a.csv").write_text(GOOD)
    (path / "b.csv").write_text(GOOD.rstrip("\n"))  # a copy would be refused


def written_parquet(path):
    rows = {"lon": [1.5, 3.5], "lat": [2.5, 4.5], "note": [SECRET] * 2}
    pq.write_table(pa.table(rows), path)


def truncated(path):
    written_parquet(path)
    path.write_bytes(path.read_bytes()[:-10])


def truncated_part(path):
    path.mkdir()
    written_parquet(path / "a.parquet")
    truncated(path / "b.parquet")


def bound_socket(path):
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(path.name)  # relative: a full path may be longer than a socket's may be


def many(path):
    path.write_text(
        "lon,lat\n" + "".join(f"{i * 0.01:.2f},{i * 0.02:.2f}\n" for i in range(3000)) * 1000
    )


def meanwhile(change):
    """Change the file when its first rows have been read."""

    def patch(monkeypatch):
        batch = source._batch

        def changing(path, *rest):
            change(path)
            return batch(path, *rest)

        monkeypatch.setattr(source, "_batch", changing)

    return patch


def append(path):
    with path.open("a") as file:
        file.write(f"{PLACES[0]},{SECRET}\n")


def replace(path):
    path.with_suffix(".new").write_bytes(path.read_bytes())
    path.with_suffix(".new").replace(path)


def overspend(monkeypatch):
    shares = Quadtree.level_shares
    monkeypatch.setattr(Quadtree, "level_shares", lambda self, nano: shares(self, nano + 1))


def beside(name, content):
    """Good data, and a covariate of this name beside it."""

    def prepare(path):
        path.write_text(GOOD)
        if callable(content):
            content(path.with_name(name))
        else:
            path.with_name(name).write_text(content)

    return prepare


def polygons(*rings, **properties):
    """GeoJSON of polygons, all with the same properties."""
    features = [
        {
            "type": "Feature",
            "properties": properties,
            "geometry": {"type": "Polygon", "coordinates": [ring]},
        }
        for ring in rings
    ]
    return json.dumps({"type": "FeatureCollection", "features": features})


def ring(west, south, east, north):
    """A rectangle as a ring."""
    return [[west, south], [east, south], [east, north], [west, north], [west, south]]


def grid(*values, west=-180):
    """An ASCII grid of four values, 90 degrees each."""
    head = f"ncols 4\nnrows 1\nxllcorner {west}\nyllcorner -45\ncellsize 90\n"
    return head + " ".join(map(str, values)) + "\n"


def with_crs(content, crs):
    """An ASCII grid, and its CRS beside it."""

    def write(path):
        path.write_text(content)
        path.with_suffix(".prj").write_text(crs)

    return write


def array(*rows):
    return lambda path: np.save(path, np.array(rows))


def without_crs(path):
    gpd.GeoSeries([shapely.box(0, 0, 9, 9)]).to_frame("geometry").to_parquet(path)


def excluded(name, given, covariate, content, code, told, options="", settings=""):
    """A covariate that is refused."""
    options = f"--covariate {covariate}{settings} {options}"
    return refused(name, given, beside(covariate, content), code, told, options)


def workbook(rows):
    """A workbook of one sheet."""

    def write(path):
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.save(path)

    return write


def known(name, given, covariate, content, settings=""):
    """A covariate that is taken."""
    return kept(name, given, beside(covariate, content), 3, f"--covariate {covariate}{settings}")


# fmt: off
FILE = (
    refused("C01-missing", "no such file", None, 8, "does not exist"),
    refused("C01-second", "the second of two files is missing", GOOD, 8, "does not exist", "b.csv"),
    refused("C01-pattern", "a pattern that fits no name", None, 8, "no file matches",
        input="*.nothing"),
    refused("C02-folder", "a folder without files", Path.mkdir, 8, "holds no files to read"),
    kept("C02-parts", "a folder of two CSV files", parts, 6, input="visits"),
    refused("C03-empty", "no byte", "", 8, "must name the columns, but is empty"),
    refused("C03-line-ends", "line ends alone", "\n\n", 8, "is empty"),
    refused("C03-mark", "a byte order mark alone", "\ufeff", 8, "is empty"),
    refused("C03-blank-first", "a blank line before the names", "\n" + GOOD, 8, "first line"),
    refused("C03-blank-mark", "the same after a mark", "\ufeff\n" + GOOD, 8, "first line"),
    refused("C03-blank-cr", "the same with CR", ("\n" + GOOD).replace("\n", "\r"), 8, "first line"),
    kept("C04-header-only", "column names and no row: a release of noise", table(), 0),
    kept("C04-no-line-end", "the same without a line end", table().strip(), 0),
    kept("C05-one-row", "one row", table("1.5,2.5"), 1),
    kept("C05-no-line-end", "one row without a line end", table("1.5,2.5").strip(), 1),
    refused("C06-no-header", "no line of names", "".join(GOOD.splitlines(keepends=True)[1:]), 8,
        "line data"),
    refused("C06-one-number", "other names, one of them a number",
        table("1.5,2.5", header="2024,place"), 8, "--read x=NAME"),
    refused("C07-two-lon", "two columns lon", table(header="lon,lat,lon"), 8, "2 columns named"),
    kept("C07-two-others", "two columns of another name", table("1.5,2.5,", header="lon,lat,note"),
        1),
    refused("C08-x", "no column lon", table(header="longitude,lat"), 8, "no column 'lon'",
        shows_names=True),
    refused("C08-y", "no column lat", table(header="lon,latitude"), 8, "no column 'lat'",
        shows_names=True),
    refused("C08-user", "no column of users", GOOD, 8, "no column 'user'", USERS),
    kept("C08-case", "`LON` for lon", table("1.5,2.5", header="LON,LAT"), 1),
    kept("C08-pair", "the usual pair longitude and latitude",
        table("1.5,2.5", header="Longitude,Latitude"), 1),
    refused("C08-pairs", "two usual pairs, and not lon and lat",
        table("1,2,3,4", header="x,y,easting,northing"), 8,
        "has 2 pairs of columns of coordinates: x and y, easting and northing; choose one",
        shows_names=True),
    refused("C08-closest", "another name, in a first line of names alone",
        table("1.5,2.5", header="lon,latt"), 8, "did you mean 'latt'?", shows_names=True),
    refused("C08-record", "a first line that may be a record",
        f"u17,2015-12-21,{SECRET},2\n" * 2, 8, "name it by --read x=NAME"),
    kept("C08-named", "other names, told", table("1.5,2.5", header="a,b"), 1,
        "--read x=a --read y=b"),
    kept("C09-mark", "UTF-8 with a byte order mark", "\ufeff" + GOOD, 3),
    kept("C09-mark-quotes", "the same and quoted names", '\ufeff"lon","lat"\n1.5,2.5\n', 1),
    refused("C09-later", "a mark within the file, of files joined", GOOD + "\ufeff" + GOOD, 8,
        "column 'lon'"),
    kept("C10-utf-16", "UTF-16 with its mark", GOOD.encode("utf-16"), 3),
    refused("C10-stated", "UTF-8 that is stated to be UTF-16", GOOD, 8,
        "must begin with the byte order mark of UTF-16", "--read encoding=utf-16"),
    refused("C10-utf-8", "UTF-16 that is stated to be UTF-8", GOOD.encode("utf-16"), 8,
        "must be UTF-8 text, got UTF-16", "--read encoding=utf-8"),
    refused("C10-cut", "UTF-16 that breaks off", GOOD.encode("utf-16")[:-1], 8,
        "is not in UTF-16"),
    refused("C10-no-mark", "the same without a mark", GOOD.encode("utf-16-le"), 8, "CSV in UTF-8"),
    refused("C11-header", "names in CP949", f"경도,lat\n{SECRET},2\n".encode("cp949"), 8,
        "save it as CSV in UTF-8"),
    refused("C11-users", "users in CP949", users("김").encode("cp949"), 8, "not in UTF-8", USERS),
    kept("C11-unread", "CP949 in a column that is not read",
        table("1.5,2.5,김", header="lon,lat,b").encode("cp949"), 1),
    refused("C12-header", "names in Latin-1", table(header="é,lon,lat").encode("latin-1"), 8,
        "CSV in UTF-8"),
    kept("C12-stated", "users in Windows-1252, stated", users("\u20ac").encode("cp1252"), 1,
        f"{USERS} --read encoding=windows-1252"),
    kept("C12-alias", "the same as `cp1252`", users("\u20ac").encode("cp1252"), 1,
        f"{USERS} --read encoding=cp1252"),
    refused("C12-undefined", "a byte that Windows-1252 lacks", users("").encode() + b"1,2,\x81\n",
        8, "is not in Windows-1252", f"{USERS} --read encoding=windows-1252"),
    refused("C12-mark", "UTF-8 with a mark that is stated to be Windows-1252", "\ufeff" + GOOD, 8,
        "mark of another encoding", "--read encoding=windows-1252"),
    refused("C12-name", "an encoding that is not read", GOOD, 2, "--read encoding must be one of",
        "--read encoding=latin-1"),
    refused("C12-users", "users in Latin-1", users("é").encode("latin-1"), 8, "not in UTF-8",
        USERS),
    refused("C13-mixed", "UTF-8, then CP949", users("김").encode() + "김,1,2,\n".encode("cp949"), 8,
        "not in UTF-8", USERS),
    kept("C14-crlf", "lines end in CR LF", GOOD.replace("\n", "\r\n"), 3),
    kept("C14-cr", "lines end in CR", GOOD.replace("\n", "\r"), 3),
    refused("C14-mixed", "line ends of two kinds", GOOD + GOOD.replace("\n", "\r\n"), 8,
        "line ends of one kind"),
    kept("C15-semicolon", "fields separated by `;`", GOOD.replace(",", ";"), 3),
    kept("C15-tab", "by tabs", GOOD.replace(",", "\t"), 3),
    refused("C15-bar", "by bars", GOOD.replace(",", "|"), 8, "separated by '|'? State"),
    kept("C15-stated", "by bars, stated", GOOD.replace(",", "|"), 3, "--read delimiter=|"),
    kept("C15-quoted", "by `;`, names in quotes", '"lon";"lat"\n1;2\n', 1),
    refused("C15-other", "by `;`, and commas are stated", GOOD.replace(",", ";"), 8,
        "is it separated by ';'?", "--read delimiter=,"),
    refused("C15-sep", "a line `sep=;` above the names", "sep=;\n" + GOOD.replace(",", ";"), 8,
        "names the separator for a spreadsheet program; leave it out with --read skip_rows=1"),
    kept("C15-sep-skipped", "the same, left out", "sep=;\n" + GOOD.replace(",", ";"), 3,
        "--read skip-rows=1"),
    refused("C15-mixed", "a row separated otherwise than the names", f"lon;lat\n{SECRET},2\n", 8,
        "as many fields as the header line"),
    refused("C15-name", "a delimiter that is not read", GOOD, 2, "--read delimiter must be one of",
        "--read delimiter=::"),
    refused("C16-quoted", "decimal comma in quotes", table('"126,98","37,57"'), 8,
        "without decimal comma"),
    kept("C16-stated", "decimal comma, stated", "lon;lat\n126,98;37,57\n", 1, "--read decimal=,"),
    refused("C16-point", "a decimal point where a comma is stated", f"lon;lat\n{SECRET};2\n", 8,
        "such as 127,01", "--read decimal=,"),
    refused("C16-thousands", "points between thousands", "lon;lat\n1.126,98;37,57\n", 8,
        "such as 127,01", "--read decimal=,"),
    refused("C16-name", "a decimal sign that is not read", GOOD, 2, "--read decimal must be one of",
        "--read decimal=;"),
    refused("C16-degrees", "degrees, minutes and seconds",
        table('"126\u00b058\'41""E",37\u00b034'), 8,
        "convert them to decimal degrees"),
    refused("C16-bare", "decimal comma", f"lon,lat\n126,98,37,57\n{SECRET},2\n", 8, "malformed"),
    refused("C17-short", "a row with a field less", GOOD + f"{SECRET},2\n", 8,
        "as many fields"),
    refused("C17-long", "a row with a field more", GOOD + f"1,2,{SECRET},4\n", 8,
        "as many fields"),
    refused("C18-open", "a quote that is not closed", GOOD + f'1,2,"{SECRET}\n3,4,\n', 8,
        "closed quotes"),
    refused("C18-header", "the same among the names", f'lon,lat,"note\n1,2,{SECRET}\n', 8,
        "quote that is not closed"),
    kept("C18-quoted", "commas, quotes and line ends within quotes",
        table('1.5,2.5,"a, ""b""\nc"', header="lon,lat,b"), 1),
    kept("C19-long-field", "a field of 200,000 characters",
        table("1.5,2.5," + "a" * 200_000, header="lon,lat,b"), 1),
    refused("C19-long-row", "a row of 3 MB",
        table("1.5,2.5," + "a" * 3_000_000, header="lon,lat,b"), 8, "row of more than 2 MB"),
    refused("C19-long-name", "a column name of 200,000 characters",
        table(header="lon,lat," + "a" * 200_000), 8, "too long"),
    refused("C20-header", "NUL among the names", table(header="lon,lat\0"), 8, "UTF-8 text"),
    refused("C20-number", "NUL in a number", table("1.5\0,2.5"), 8, "plain decimal numbers"),
    refused("C20-user", "NUL in a user id", users("a\0"), 8, "NUL", USERS),
    refused("C20-block", "a block of NUL", GOOD + "\0" * 512, 8, "malformed"),
    kept("C20-unread", "NUL in a column that is not read", table("1.5,2.5,\0", header="lon,lat,b"),
        1),
    kept("C21-large", "3,000,000 rows, in less than 700 MB of memory", many, 3_000_000,
        megabytes=700),
    kept("C22-gzip", "CSV compressed by gzip", gzip.compress(GOOD.encode()), 3,
        input="points.csv.gz"),
    refused("C22-bomb", "100,000 bytes that gzip makes to 100 MB",
        gzip.compress(GOOD.encode() + b"1,1\n" * 25_000_000), 8, "times its size",
        input="points.csv.gz"),
    refused("C22-cut", "gzip that breaks off", gzip.compress(GOOD.encode() * 100)[:-20], 8,
        "damaged or incomplete gzip", input="points.csv.gz"),
    refused("C22-bzip2", "the same by bzip2", bz2.compress(GOOD.encode()), 8,
        "decompress it first"),
    kept("C22-name", "plain CSV that is named .gz", GOOD, 3, input="points.csv.gz"),
    refused("C23-grows", "the file grows while it is read", GOOD, 8, "changed while it was read",
        patch=meanwhile(append)),
    refused("C23-replaced", "it is replaced by an equal one", GOOD, 8, "changed while it was read",
        patch=meanwhile(replace)),
    refused("C24-pipe", "a named pipe", os.mkfifo, 8, "a regular file"),
    refused("C24-socket", "a socket", bound_socket, 8, "a regular file"),
    refused("C24-device", "`/dev/zero`", None, 8, "a regular file", input="/dev/zero"),
    refused("C24-stdin", "`-` for standard input that is empty", None, 8, "standard input",
        input="-"),
    kept("C25-link", "a symbolic link to a file elsewhere", linked, 3),
    refused("C25-dangling", "a symbolic link to nothing", lambda p: p.symlink_to("nowhere"), 8,
        "does not exist"),
    refused("C25-twice", "a file and a link to it", linked, 8, "twice", "elsewhere.csv"),
    refused("C25-copy", "a file and a copy of it", copied, 8, "same content", "elsewhere.csv"),
    refused("C25-compressed", "a file beside its compressed form", compressed, 8,
        "compressed form", "points.csv.gz"),
    refused("C26-truncated", "the last row ends in its first field", GOOD + "1.2", 8, "malformed"),
    refused("C26-in-a-quote", "the last row ends within quotes", GOOD + '1,2,"secr', 8,
        "closed quotes"),
    refused("C26-parquet", "a Parquet file that ends early", truncated, 8, "read as Parquet",
        input="points.parquet"),
    refused("C26-part", "the same, one of two parts of a folder", truncated_part, 8,
        "cannot be read as Parquet", input="visits"),
    kept("C27-commas", "a comma after the last field of each row", "lon,lat\n1.5,2.5,\n3.5,4.5,\n",
        2),
    kept("C27-blank", "blank lines", GOOD.replace("\n", "\n\n"), 3),
    refused("C27-comment", "a comment line", GOOD + f"# {SECRET}\n", 8, "malformed"),
    refused("C27-comment-first", "a comment line before the names", f"# {SECRET}\n" + GOOD, 8,
        "in the first line"),
    refused("C28-xlsx", "a workbook named .csv", b"PK\x03\x04\x14\0" + GOOD.encode(), 8,
        "a workbook or a zip archive; save it as CSV"),
    refused("C28-xls", "an old workbook", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + GOOD.encode(), 8,
        "a workbook; save it as CSV"),
    refused("C28-parquet", "a Parquet file", b"PAR1\x15\x04" + GOOD.encode(), 8,
        "a Parquet file; name it .parquet"),
    refused("C28-geopackage", "a GeoPackage", b"SQLite format 3\0" + GOOD.encode(), 8,
        "a GeoPackage"),
    kept("C29-title", "a title above the names, stated", "Stops, \"all\n\n" + GOOD, 3,
        "--read skip-rows=2"),
    refused("C29-unstated", "a title that is not stated", "Stops\n" + GOOD, 8, "no column 'lon'",
        shows_names=True),
    refused("C29-many", "more lines stated than there are", GOOD, 8,
        "must have more lines than --read skip_rows=9", "--read skip_rows=9"),
    refused("C29-name", "a number of lines that is not one", GOOD, 2,
        "--read skip_rows must be an integer", "--read skip_rows=two"),
    kept("C30-wkt", "points in WKT", table("POINT (1.5 2.5)", "POINT EMPTY", header="geom"), 1,
        "--read wkt=geom"),
    refused("C30-line", "a line in WKT", table(f'"LINESTRING (1 2, {SECRET} 3)"', header="geom"), 8,
        "must hold points in WKT", "--read wkt=geom", shows_names=True),
    refused("C30-number", "a number where WKT is stated", table(SECRET, header="geom"), 8,
        "must hold points in WKT", "--read wkt=geom", shows_names=True),
    refused("C30-columns", "WKT and columns of coordinates", GOOD, 2,
        "--read x and --read y must be left out with --read wkt", "--read wkt=a --read x=lon"),
    refused("C30-both", "WKT and geometries", GOOD, 2, "--read wkt must be left out",
        "--read wkt=a --read geometry=b"),
    kept("C31-workbook", "a workbook", workbook([["lon", "lat"], [1.5, "2.5"]]), 1,
        input="points.xlsx"),
    refused("C31-text", "text in a workbook", workbook([["lon", "lat"], [SECRET + "E", 2]]), 8,
        "plain decimal numbers", input="points.xlsx"),
    refused("C31-renamed", "CSV that is named .xlsx", GOOD, 8, "cannot be read as XLSX",
        input="points.xlsx"),
    refused("C31-encoding", "an encoding for a workbook", workbook([["lon", "lat"]]), 2,
        "--read encoding must be left out", "--read encoding=utf-16", input="points.xlsx"),
    kept("C32-crs", "degrees, and a release in metres", table("126.98,37.57"), 1,
        "--crs EPSG:5179 --read input_crs=EPSG:4326 --bounds 900000 1900000 1000000 2000000"),
    kept("C32-beyond", "a record that the transformation does not reach",
        table("126.98,37.57", "0,1e30"), 1,
        "--crs EPSG:5179 --read input-crs=EPSG:4326 --bounds 900000 1900000 1000000 2000000"),
    refused("C32-name", "a CRS of the columns that does not exist", GOOD, 3,
        "--read input_crs must be a coordinate reference system", "--read input_crs=EPSG:99999"),
    refused("C32-rounded", "coordinates rounded in another CRS", GOOD, 3,
        "--coordinate-resolution must be left out",
        "--read input_crs=EPSG:5179 --coordinate-resolution 0.001"),
    *(
        refused(f"C33-{end}", given, None, 8, told, input=address)
        for end, given, told, address in (
            ("https", "an address `https://`", "https:// addresses are not read; download the file",
                "https://example.org/visits.csv"),
            ("password", "an address `s3://` with a password", "must have no user and no password",
                "s3://key:secret@city/visits.csv"),
        )
    ),
)
# fmt: on


def steps(*cases):
    """Coordinate resolutions that are no steps, or do not fit the bounds."""
    return (
        refused(f"P24-{end}", f"`--coordinate-resolution` {given}", GOOD, 3, told,
            f"--bounds 100.5 30.5 140.5 50.5 --coordinate-resolution {value}")
        for end, given, value, told in cases
    )  # fmt: skip


def bad_numbers(id_, *cases):
    """Texts in both coordinate columns that are no numbers."""
    for name, given, text in cases:
        for axis, row in (("x", f'"{text}",2.5'), ("y", f'1.5,"{text}"')):
            told = f"column '{'lon' if axis == 'x' else 'lat'}'"
            yield refused(f"{id_}-{name}-{axis}", f"{given} as {axis}", table(row), 8, told)


# fmt: off
VALUES = (
    kept("V01-nan", "`NaN`, `nan`, `-nan`: left out", table("NaN,1", "1,nan", "-nan,1", "1.5,2.5"),
        1),
    *bad_numbers(
        "V02",
        ("inf", "`inf`", "inf"),
        ("infinity", "`-Infinity`", "-Infinity"),
        ("overflow", "`1e400`", "1e400"),
    ),
    *bad_numbers(
        "V03",
        ("underscore", "`1_00.5`", "1_00.5"),
        ("full-width", "full-width digits", "\uff11\uff12\uff17.\uff10"),
        ("arabic", "Arabic digits", "\u0661\u0662\u0667.\u0665"),
    ),
    *bad_numbers("V04", ("minus", "the minus sign U+2212", "\u221212.5")),
    kept("V05-missing", "empty, `NA`, `null`, `-`, `\\N`: left out",
        table(",1", "NA,1", "1,null", "-,-", "\\N,1", "1.5,2.5"), 1),
    kept("V05-all-missing", "no row with coordinates", table(",", "NA,1"), 0),
    *bad_numbers("V05", ("spreadsheet", "`#N/A`", "#N/A")),
    *bad_numbers("V06", ("hex", "`0x10`", "0x10")),
    kept("V07-spaces", "spaces and tabs around numbers", table(" 1.5 ,\t2.5"), 1),
    *bad_numbers(
        "V07",
        ("no-break", "a no-break space", "\u00a012.5"),
        ("thousands", "`1 027`", "1 027"),
    ),
    kept("V08-latitude", "latitude 91.25: left out", table("1.5,91.25"), 0),
    kept("V08-longitude", "longitude 181.75: left out", table("181.75,2.5"), 0),
    kept("V08-to-360", "longitudes from 0 to 360: those above 180 left out",
        table("1.5,2.5", "233.75,2.5"), 1),
    kept("V09-swapped", "x and y swapped in Korea: left out", table("37.57,126.98"), 0, KOREA),
    kept("V09-both-fit", "x and y swapped in London: left out", table("51.55,-0.125"), 0, LONDON),
    kept("V09-one-row", "one row of three swapped, both in range: left out",
        table("51.55,-0.125", "-0.125,51.55", "0.25,51.5"), 2, LONDON),
    *bad_numbers(
        "V10",
        ("dms", "degrees and minutes", "37°33'"),
        ("hemisphere", "`127E`", "127E"),
    ),
    kept("V11-metres", "metres (EPSG:5179) given as degrees: left out",
        table("953898.25,1952028.75"), 0, KOREA),
    kept("V11-degrees", "degrees given as metres (EPSG:5179): left out", GOOD, 0, METRES),
    kept("V11-told", "metres, told so", table("953898.25,1952028.75"), 1, METRES),
    kept("V12-edges", "edges, corners and -0.0 of the domain",
        table("0,0", "2,2", "0,2", "2,0", "1,0", "-0.0,-0.0"), 6, "--bounds 0 0 2 2"),
    kept("V12-beyond", "one unit in the last place beyond: left out",
        table("2,2", "2.0000000000000004,2"), 1, "--bounds 0 0 2 2"),
    kept("V13-date-line", "longitudes 180 and -180", table("180,0", "-180,0", "180.0,1"), 3),
    kept("V14-poles", "latitudes 90 and -90 at any longitude",
        table("0,90", "123.5,90", "0,-90", "-180,-90"), 4),
    refused("V15-antimeridian", "bounds from 170 to -170", GOOD, 3, "split in two",
        "--bounds 170 -20 -170 20"),
    kept("V16-quadtree", "all rows at one point, quadtree", table(*["1.5,2.5"] * 500), 500),
    kept("V16-grid", "all rows at one point, grid", table(*["1.5,2.5"] * 500), 500,
        "--method grid"),
    kept("V17-outside", "all rows outside the bounds: left out", GOOD, 0, "--bounds 60 60 70 70"),
    kept("V17-some", "some rows outside: left out", GOOD, 1, KOREA),
    kept("V18-duplicates", "equal rows", table(*PLACES, *PLACES), 6),
    kept("V19-long", "numbers of 400 digits, most of them decimals",
        table("1." + "25" * 200 + ",2.5"), 1),
    kept("V19-small", "`1e-400`, which is 0 in floating point", table("1e-400,2.5"), 1),
    *bad_numbers(
        "V19",
        ("digits", "400 digits before the point", "9" * 400),
        ("power", "`1e15000`", "1e15000"),
    ),
    refused("V20-empty", "an empty user id", users("u", ""), 8, "have no user id", USERS),
    refused("V20-spaces", "a user id of spaces", users("u", "  "), 8, "have no user id", USERS),
    refused("V20-10-mb", "a user id of 10 MB", users("u" * 10**7), 8, "row of more than 2 MB",
        USERS),
    kept("V20-emoji", "emoji as user ids: three rows of one, one of another",
        users(*"😀😀😀", "😎"), 3, USERS),
    kept("V20-unicode", "the same letter composed and decomposed: one user",
        users(*["\u00e9"] * 3, *["e\u0301"] * 3), 2, USERS),
    kept("V20-code", "`=cmd()` and `</script>`: text like any other",
        users(*["=cmd()"] * 3, *["</script>"] * 3), 4, USERS),
    kept("V20-zeros", "007 and 7: two users", users(*["007"] * 3, *["7"] * 3), 4, USERS),
    kept("V20-na", "`NA` as a user id: text like any other", users(*["NA"] * 3, "u"), 3, USERS),
    refused("V20-null", "`null` as a user id", users("u", "null"), 8, "have no user id", USERS),
    kept("V21-one-user", "all rows of one user", users(*["u"] * 300), 2, USERS),
    kept("V22-own-users", "every row of its own user", users(*map(str, range(300))), 300, USERS),
    kept("V23-sorted", "rows sorted by place", table(*(f"{i / 10},{i / 20}" for i in range(500))),
        500),
)
# fmt: on


def epsilons(*cases):
    for name, value, told in cases:
        option = f"--epsilon {value}"
        yield refused(f"P01-{name}", f"epsilon `{value}`", GOOD, 2, told, option)


def bounds(*cases):
    for name, given, value, code, told in cases:
        yield refused(f"P06-{name}", given, GOOD, code, told, f"--bounds {value}")


def limits(*cases):
    """Most rows per user."""
    for name, value, told in cases:
        options = f"--user user --max-contributions {value}"
        yield refused(f"P07-{name}", f"`--max-contributions {value}`", users("u"), 2, told, options)


def grids(id_, *cases):
    """Settings of the grid that are refused."""
    for name, setting, told in cases:
        options = f"--method grid --set {setting}"
        yield refused(f"{id_}-{name}", f"grid, `{setting}`", GOOD, 2, told, options)


def undeclared(*cases):
    """Workloads that are refused, in a file beside good data where one is given."""
    for name, given, boxes, code, told, options in cases:
        yield refused(f"P08-workload-{name}", given, with_boxes(boxes), code, told, options)


def with_boxes(boxes):
    """Good data, and a file of boxes next to them."""

    def write(path):
        path.write_text(GOOD)
        path.with_name("boxes.csv").write_text(boxes)

    return write


def with_ledger(change):
    """Good data, and a ledger beside it with budgets for rows and for users, then changed."""

    def prepare(path):
        path.write_text(users("u"))
        ledger = Ledger.create(path.with_name("city.ledger"))
        ledger.register("rows", "1")
        ledger.register("people", "1", unit="user", columns=Columns(user="user"))
        change(ledger.path)

    return prepare


def edited(path):
    with closing(sqlite3.connect(path)) as file:
        file.executescript("DROP TRIGGER kept; UPDATE entry SET time = '' WHERE number = 2")


def of_later(path):
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 3")


def with_delta(path):
    Ledger(path).register("weekly", 1, delta="1e-7")


def unpaid(name, given, code, told, options="", *, dataset="rows", change=lambda path: None):
    """A build that its ledger does not pay."""
    options = f"--ledger city.ledger --dataset {dataset} {options}"
    return refused(name, given, with_ledger(change), code, told, options)


# fmt: off
PARAMETERS = (
    *epsilons(
        ("zero", "0", "must be above 0"),
        ("negative", "-1", "must be above 0"),
        ("nan", "nan", "must be a decimal number"),
        ("inf", "inf", "must be a decimal number"),
        ("tiny", "1e-400", "at most nine decimals"),
        ("ten-decimals", "0.1234567891", "at most nine decimals"),
        ("huge", "1e9", "at most 1,000"),
        ("text", "abc", "must be a decimal number"),
        ("comma", "0,5", "must be a decimal number"),
        ("fraction", "1/3", "must be a decimal number"),
        ("underscore", "1_0", "must be a decimal number"),
        ("full-width", "\uff11", "must be a decimal number"),
    ),
    refused("P01-empty", "an empty epsilon", GOOD, 2, "must be a decimal number", "--epsilon ''"),
    kept("P01-nine-decimals", "epsilon `0.123456789`", GOOD, 3, "--epsilon 0.123456789"),
    kept("P01-least", "epsilon `1e-9`", GOOD, 3, "--epsilon 1e-9"),
    kept("P01-largest", "epsilon `1000`", GOOD, 3, "--epsilon 1000"),
    refused("P01-twice", "two epsilons", GOOD, 2, "--epsilon must be given once, got 2 times",
        "--epsilon 1 --epsilon 0.1"),
    refused("P02-overspent", "more than what is left: a method that asks for 1e-9 above epsilon",
        GOOD, 4, "spend more than epsilon 1", patch=overspend),
    unpaid("P02-ledger", "more than what is left of the budget of a ledger", 4,
        "epsilon 1 left, and this costs 1.000000001", "--epsilon 1.000000001"),
    kept("P03-all-of-it", "exactly what is left: three levels that ask for 0.1 of 0.3", GOOD, 3,
        "--epsilon 0.3 --set budget=uniform --set height=2"),
    kept("P03-ledger", "exactly what is left of the budget of a ledger",
        with_ledger(lambda path: None), 1, "--ledger city.ledger --dataset rows"),
    *grids(
        "P04",
        ("nothing", "total_share=0", "total_share must be above 0"),
        ("all", "total_share=1", "must be in [0, 1)"),
        ("more", "total_share=1.5", "must be in [0, 1)"),
        ("negative", "total_share=-0.1", "must be in [0, 1)"),
        ("nan", "total_share=nan", "must be a decimal number"),
    ),
    kept("P04-not-needed", "grid, `total_share=0` and a size", GOOD, 3,
        "--method grid --set total_share=0 --set size=3"),
    kept("P04-nearly-all", "grid, `total_share=0.999999999`", GOOD, 3,
        "--method grid --set total_share=0.999999999"),
    kept("P05-height-0", "quadtree, `height=0`", GOOD, 3, "--set height=0"),
    kept("P05-height-1", "quadtree, `height=1`", GOOD, 3, "--set height=1"),
    refused("P05-height-13", "quadtree, `height=13`", GOOD, 2, "must be between 0 and 12",
        "--set height=13"),
    refused("P05-height-40", "quadtree, `height=40`", GOOD, 2, "must be between 0 and 12",
        "--set height=40"),
    refused("P05-underscore", "quadtree, `height=1_0`", GOOD, 2, "must be an integer",
        "--set height=1_0"),
    refused("P05-full-width", "quadtree, `height=` in full-width digits", GOOD, 2,
        "must be an integer", "--set height=\uff18"),
    refused("P05-fanout", "quadtree, `fanout=1`", GOOD, 2, "quadtree has no parameter",
        "--set fanout=1"),
    kept("P05-one-cell", "grid, `size=1`", GOOD, 3, "--method grid --set size=1"),
    *grids(
        "P05",
        ("no-cell", "size=0", "must be between 1 and 4096"),
        ("cells", "size=1000000000", "must be between 1 and 4096"),
        ("power", "size=1e9", "must be an integer"),
    ),
    *bounds(
        ("empty-text", "bounds of empty texts", "'' '' '' ''", 2, "must be four numbers"),
        ("three", "three numbers", "0 0 1", 2, "4 arguments"),
        ("reversed-x", "west above east", "4 -4 -4 4", 3, "west below east, got 4.0"),
        ("reversed-y", "south above north", "-4 4 4 -4", 3, "south below north, got 4.0"),
        ("nan", "`nan`", "nan -4 4 4", 3, "must be finite"),
        ("inf", "`1e400`", "-4 -4 1e400 4", 3, "must be finite"),
        ("no-area", "no width", "1 2 1 4", 3, "west below east"),
        ("one-step", "one step of floating point wide", "1 2 1.0000000000000002 4", 3,
            "too narrow"),
        ("swapped", "latitude before longitude, Korea", "33 124 39 132", 3, "are x and y swapped"),
        ("metres", "metres", "900000 1900000 1000000 2000000", 3, "metres of a projected CRS"),
        ("to-360", "longitudes to 360", "0 -90 360 90", 3, "longitudes from 0 to 360"),
        ("underscore", "`1_0`", "-1_0 -10 10 10", 2, "not a number"),
        ("full-width", "full-width digits", "-10 -10 \uff11\uff10 10", 2, "not a number"),
    ),
    kept("P06-small", "bounds of a metre", table("126.980001,37.570001"), 1,
        "--bounds 126.98 37.57 126.98001 37.57001"),
    *limits(
        ("zero", "0", "must be between 1 and"),
        ("negative", "-1", "must be between 1 and"),
        ("more", "1000000001", "must be between 1 and"),
        ("power", "1e9", "must be a whole number"),
        ("underscore", "1_0", "must be a whole number"),
        ("full-width", "\uff11", "must be a whole number"),
        ("half", "1.5", "must be a whole number"),
    ),
    kept("P07-largest", "`--max-contributions 1000000000`", users("u", "u"), 2,
        "--user user --max-contributions 1000000000"),
    refused("P07-without-user", "a bound without `--user`", users("u"), 2, "--user must name",
        "--max-contributions 2"),
    refused("P07-without-bound", "`--user` without a bound", users("u"), 2,
        "--max-contributions must be given", "--user user"),
    refused("P08-method", "an unknown method", GOOD, 2, "'kd' is not one of", "--method kd"),
    refused("P08-method-case", "`Quadtree`", GOOD, 2, "'Quadtree' is not one of",
        "--method Quadtree"),
    refused("P08-option", "a misspelt option", GOOD, 2, "No such option", "--epsilom 2"),
    refused("P08-key", "an unknown setting", GOOD, 2, "quadtree has no parameter", "--set hight=3"),
    refused("P08-other-key", "a setting of another method", GOOD, 2, "grid has no parameter",
        "--method grid --set height=3"),
    refused("P08-key-twice", "a setting given twice", GOOD, 2, "got 2 times",
        "--set height=1 --set height=2"),
    refused("P08-no-value", "a setting without a value", GOOD, 2, "KEY=VALUE", "--set height"),
    refused("P08-x-is-y", "one column for x and y", GOOD, 2, "different columns", "--read y=lon"),
    refused("P08-user-is-x", "a coordinate for the user", GOOD, 2, "different columns",
        "--user lon --max-contributions 2"),
    kept("P08-workload", "`--set workload=huge`", GOOD, 3, "--set workload=huge"),
    kept("P08-workload-tiny", "`--set workload=tiny`, grid", GOOD, 3,
        "--set workload=tiny --method grid"),
    kept("P08-workload-boxes", "`--set workload` with a box that reaches beyond the bounds",
        with_boxes("west,south,east,north\n-900,-9,9,9\n"), 3, "--set workload=boxes.csv"),
    *undeclared(
        ("missing", "`--set workload` with a file that is missing", "", 8, "does not exist",
            "--set workload=no.csv"),
        ("column", "`--set workload` with a file of other columns", "west,south\n1,2\n", 8,
            "no column east", "--set workload=boxes.csv"),
        ("text", "`--set workload` with text for a number", "west,south,east,north\n1,2,x,4\n", 8,
            "line 2: east is not a number", "--set workload=boxes.csv"),
        ("empty", "`--set workload` with a file without boxes", "west,south,east,north\n", 2,
            "must have at least one box", "--set workload=boxes.csv"),
        ("outside", "`--set workload` with a box outside the bounds",
            "west,south,east,north\n0,0,1,1\n190,0,191,1\n", 2, "box 2 (190 0 191 1)",
            "--set workload=boxes.csv"),
        ("reversed", "`--set workload` with west above east", "west,south,east,north\n3,0,1,1\n", 2,
            "west south east north", "--set workload=boxes.csv"),
        ("method", "`--set workload` with privtree", "", 2, "privtree has no parameter",
            "--set workload=tiny --method privtree"),
        ("grid", "`--set workload` of larger boxes with grid", "", 2, "workload",
            "--set workload=small --method grid"),
        ("budget", "`--set workload` and another budget", "", 2, "must be given together",
            "--set workload=small --set budget=leaf"),
        ("twice", "`--set workload` given twice", "", 2, "got 2 times",
            "--set workload=small --set workload=tiny"),
        ("alone", "`budget=workload` without a workload", "", 2, "must be given together",
            "--set budget=workload"),
        ("output", "the release is the file of boxes, with `--overwrite`", "", 6,
            "read as an input", "--set workload=boxes.csv -o boxes.csv"),
    ),
    refused("P09-exists", "the release exists", GOOD, 6, "exists", overwrite=False),
    kept("P09-overwrite", "the release exists, with `--overwrite`", GOOD, 3),
    refused("P09-folder", "the release is a folder", GOOD, 6, "is a folder", "-o out"),
    refused("P09-no-folder", "the release in a folder that is missing", GOOD, 6, "does not exist",
        "-o nowhere/r.psd.parquet"),
    refused("P09-input", "the release is the input, with `--overwrite`", GOOD, 6,
        "read as an input", f"-o {INPUT}"),
    refused("P10-seed", "`--seed`, which does not exist", GOOD, 2, "No such option '--seed'",
        "--seed 1"),
    refused("P11-two", "two CRS", GOOD, 2, "--crs must be given once, got 2 times",
        "--crs EPSG:4326 --crs EPSG:5179"),
    refused("P11-unknown", "an unknown CRS", GOOD, 3, "a coordinate reference system",
        "--crs EPSG:0"),
    refused("P11-empty", "an empty CRS", GOOD, 3, "a coordinate reference system", "--crs ''"),
    refused("P11-height", "a CRS of heights", GOOD, 3, "coordinates x and y", "--crs EPSG:5773"),
    refused("P11-bounds", "bounds in metres for a CRS of degrees", GOOD, 3,
        "metres of a projected CRS", "--bounds 900000 1900000 1000000 2000000"),
    *steps(
        ("zero", "0", "0", "decimal number above 0"),
        ("negative", "-0.1", "-0.1", "decimal number above 0"),
        ("text", "`fine`", "fine", "decimal number above 0"),
        ("long", "of 17 decimals", "0.00000000000000001", "at most 15 digits"),
        ("coarse", "larger than the bounds", "500", "1 to 2^30 values"),
        ("fine", "of 2^30 values and more", "0.00000001", "1 to 2^30 values"),
    ),
    kept("P24-kept", "`--coordinate-resolution 0.5`, and rows beside its multiples",
        table("1.5,2.5", "1.7,2.2"), 2, "--bounds 0 0 4 4 --coordinate-resolution 0.5"),
    kept("P24-outside", "rows that are outside by less than half a step: left out",
        table("1.5,2.5", "4.1,2", "-0.1,2"), 1, "--bounds 0 0 4 4 --coordinate-resolution 0.5"),
    refused("P24-private", "a step of which the whole area of use has 2^30 values or more, with "
        "private bounds", GOOD, 3, "1 to 2^30 values",
        "--bounds private --coordinate-resolution 0.0000001"),
    *(
        refused(f"P25-{end}", f"`--min-cell` {given}", GOOD, 3, told,
            f"--bounds 100.5 30.5 140.5 50.5 --min-cell {value}")
        for end, given, value, told in (
            ("negative", "-5", "-5", "decimal number of metres"),
            ("nan", "`nan`", "nan", "decimal number of metres"),
            ("text", "`small`", "small", "decimal number of metres"),
            ("long", "of 7 decimals", "0.0000001", "at most 6 decimals"),
            ("large", "larger than the bounds", "5000000", "at most the sides of the bounds"),
        )
    ),
    refused("P25-angles", "`--min-cell` with a local CRS without a unit of length", GOOD, 3,
        "without a unit of length",
        """--crs 'LOCAL_CS["x",UNIT["degree",0.0174532925199433]]' --bounds 100 30 140 50 """
        "--min-cell 5"),
    kept("P25-kept", "`--min-cell 1000`: cells are larger, and no row is left out",
        table("1.5,2.5", "1.7,2.2"), 2, "--bounds 0 0 4 4 --min-cell 1000"),
    refused("P26-ending", "a release that is named like a GeoPackage", GOOD, 2,
        "--output must end in .parquet, or in no ending of another format", "-o out/r.gpkg"),
    *(
        refused(f"P27-{end}", f"`--about` with {given}", GOOD, 2, told, f"--about {text}")
        for end, given, told, text in (
            ("key", "an unknown key", "did you mean 'licence'", "licenze=CC0-1.0"),
            ("empty", "a key without a value", "must be FILE or KEY=VALUE", "title="),
            ("twice", "a key twice", "--about title must be given once",
                "title=a --about title=b"),
            ("blank", "a title of white space", "it is blank", "title='  '"),
            ("long", "a title of 201 characters", "1 to 200 characters", f"title={'x' * 201}"),
            ("line", "a title of two lines", "one line of printable characters", "title='a\nb'"),
            ("escape", "an escape of a terminal", r"got '\x1b' in it", "title='\x1b[31mred'"),
            ("turned", "a mark that turns the direction of text", r"got '\u202e' in it",
                "title='\u202ered'"),
            ("date", "another date", "must be a year, a month, a day", "reference_date=June"),
            ("order", "an interval that ends before it starts", "must be a year",
                "reference_date=2024-06/2024-01"),
            ("language", "the name of a language", "BCP 47", "language='English language'"),
        )
    ),
    refused("P27-missing", "`--about` with a file that does not exist", GOOD, 8,
        "does not exist or is not UTF-8 text", "--about none.toml"),
    refused("P27-records", "`--about` with a file of records", GOOD, 2, "input of records",
        f"--about {INPUT}"),
    kept("P27-markup", "`--about` with a title of HTML: a text like any other", GOOD, 3,
        "--about title='<script>'"),
    refused("P28-users", "`--per record` with `--user`", GOOD, 2,
        "--per must not be record with --user,", f"{USERS} --per record"),
    kept("P28-ids", "a column that is named like an id, without `--user`: a warning", GOOD, 3),
)
# fmt: on

MOMENTS = table(
    "126.98,37.57,u,2024-02-29 23:30:00",
    "-0.12,51.5,u,2024-03-01 00:30:00",
    "1.5,2.5,u,2024-03-01",
    "1.5,2.5,v,2024-03-01T09:00:00+09:00",
    header="lon,lat,user,seen_at",
)
DAY = "--per day --read time=seen_at --read time_zone=Asia/Seoul"
SLICED = "--read time=seen_at --read time_zone=Asia/Seoul --slices 2024-02-29..2024-03-01"
SQUARE = polygons(ring(0, 0, 9, 9))

# Options of a plan of regions, without populations and with them.
WARDS = "--epsilon 1 --regions r.geojson --regions id=w"
PLANNED = "--regions r.geojson --regions id=w --regions population=some --epsilon 1"

# Options of a build with regions, in place of those of a quadtree.
NAMED = "--bounds 0 0 9 9 --method none --set total_share=0.02"


def wards(*ids, east=4.5, **columns):
    """Regions of an equal size, from west to east; the first may be wider or narrower."""
    sides = [0.0, *(4.5 * number for number in range(1, len(ids) + 1))]
    rings = [ring(west, 0, side, 9) for west, side in pairwise(sides)]
    rings[0] = ring(0, 0, east, 9)
    return json.dumps(
        {
            "type": "FeatureCollection",
            "features": [
                {
                    "type": "Feature",
                    "properties": {"w": name, **{key: columns[key][n] for key in columns}},
                    "geometry": {"type": "Polygon", "coordinates": [outline]},
                }
                for n, (name, outline) in enumerate(zip(ids, rings, strict=True))
            ],
        }
    )


# fmt: off
UNITS = (
    kept("U01-day", "two rows of each user and day", MOMENTS, 4, f"{USERS} {DAY}"),
    refused("U01-hour", "`--per hour`", MOMENTS, 2, "--per",
            f"{USERS} --per hour --read time=seen_at"),
    refused("U01-no-column", "`--per day` without `--time`", MOMENTS, 2, "--read time must name",
            f"{USERS} --per day"),
    refused("U01-no-user", "`--per day` without `--user`", MOMENTS, 2, "--user must name", DAY),
    refused("U01-no-time", "a row without a time",
            table("1.5,2.5,u,2024-03-01", "1.5,2.5,u,", header="lon,lat,user,seen_at"), 8,
            "records have no time", f"{USERS} {DAY}"),
    refused("U01-no-id", "a row without an id",
            table("1.5,2.5,u,2024-03-01", "1.5,2.5,,2024-03-01", header="lon,lat,user,seen_at"), 8,
            "have no user id", f"{USERS} {DAY}"),
    refused("U01-zone", "an unknown time zone", MOMENTS, 2, "must be in the IANA database",
            f"{USERS} --per day --read time=seen_at --read time_zone=Asia/Soul"),
    kept("U02-users", "`--count users`: all rows of a user", users("u", "u", "u"), 3,
         "--user user --count users"),
    refused("U02-bound", "`--count users` with a bound", users("u"), 2,
            "--max-contributions must be left out", f"{USERS} --count users"),
    refused("U02-day", "`--count users` by day", MOMENTS, 2, "--per must be left out",
            f"--user user --count users {DAY}"),
    refused("U02-no-user", "`--count users` without `--user`", GOOD, 2, "--user must name",
            "--count users"),
    refused("U02-no-id", "`--count users` and a row without an id", users("u", ""), 8,
            "have no user id", "--user user --count users"),
    kept("U03-auto", "a bound that is chosen; every row of its own user", users("u", "v", "w"), 3,
         "--user user --max-contributions auto"),
    refused("U03-no-user", "a bound to be chosen without `--user`", GOOD, 2, "--user must name",
            "--max-contributions auto"),
    refused("U03-fixed", "a setting of a fixed bound", users("u"), 2,
            "must be a whole number or auto", "--user user --max-contributions 2:share=0.1"),
    refused("U03-text", "a bound that is no number", users("u"), 2,
            "must be a whole number or auto", "--user user --max-contributions many"),
    refused("U03-key", "a setting that does not exist", users("u"), 2, "did you mean 'share'?",
            "--user user --max-contributions auto:shore=0.1"),
    refused("U03-epsilon", "too little epsilon for a choice", users("u"), 2,
            "choosing max_contributions is below 1e-9",
            "--user user --max-contributions auto --epsilon 1e-8"),
    *(
        refused(f"U03-{name}", f"`--max-contributions auto:{settings}`", users("u"), 2, told,
                f"--user user --max-contributions auto:{settings}")
        for name, settings, told in (
            ("share-0", "share=0", "share must be above 0"),
            ("share-1", "share=1", "must be in [0, 1)"),
            ("share-text", "share=much", "must be a decimal number"),
            ("over", "over=-1", "must be between 0 and"),
            ("limit", "limit=0", "must be between 1 and"),
            ("twice", "share=0.1,share=0.2", "share twice"),
        )
    ),
    kept("U04-area", "`--bounds area-of-use`", GOOD, 3, "--bounds area-of-use"),
    refused("U04-two", "`--bounds area-of-use` and bounds", GOOD, 2, "--bounds must be given once",
            "--bounds area-of-use --bounds 0 0 9 9"),
    refused("U04-word", "a word that is no kind of bounds", GOOD, 2,
            "must be four numbers, area-of-use or private", "--bounds everywhere"),
    kept("U04-commas", "`--bounds -180,-90,180,90`", GOOD, 3, "--bounds -180,-90,180,90"),
    kept("U04-crs", "bounds in another CRS than the release", table("126.98,37.57"), 1,
         "--crs EPSG:5179 --read input_crs=EPSG:4326 --bounds 126,37,128,38:crs=EPSG:4326"),
    kept("U04-file", "the bounds of public polygons", beside("b.geojson", SQUARE), 1,
         "--bounds of:b.geojson"),
    refused("U04-three", "three numbers with commas", GOOD, 2, "--bounds must be four numbers",
            "--bounds 0,0,9"),
    refused("U04-order", "numbers with commas in another order", GOOD, 3, "west below east",
            "--bounds 9,0,0,9"),
    refused("U04-no-crs", "a CRS of the bounds that does not exist", GOOD, 3,
            "crs of the bounds must be a coordinate reference", "--bounds 0,0,9,9:crs=EPSG:0"),
    refused("U04-far", "bounds beyond where the CRS of the release is used", GOOD, 3, "bounds",
            "--crs EPSG:5179 --bounds 0,-89,1,-88:crs=EPSG:4326"),
    refused("U04-metres", "degrees as bounds of a CRS in metres", GOOD, 3,
            "write -0.5,51.3,0.3,51.7:crs=EPSG:4326",
            "--crs EPSG:27700 --bounds -0.5,51.3,0.3,51.7"),
    refused("U04-no-file", "no such file of polygons", GOOD, 8, "does not exist",
            "--bounds of:b.geojson"),
    refused("U04-points", "a file of points for the bounds",
            beside("b.geojson", '{"type": "Point", "coordinates": [1, 2]}'), 2,
            "--bounds must hold polygons only", "--bounds of:b.geojson"),
    refused("U04-output", "the file of the bounds is the output, with `--overwrite`",
            beside("r.geojson", SQUARE), 6, "read as an input",
            "--bounds of:r.geojson -o r.geojson"),
    refused("U04-numbers", "a word among the bounds", GOOD, 2, "'east' is not a number",
            "--bounds 0 0 east 9"),
    refused("U04-stdin", "private bounds of standard input", None, 8, "twice",
            "--bounds private:share=0.1", input="-"),
    refused("U04-covariate", "private bounds and a covariate", beside("land.geojson", SQUARE), 2,
            "must be public with covariate", "--bounds private:share=0.1 --covariate land.geojson"),
    refused("U04-area-crs", "the area of use of a CRS without a place on the earth", GOOD, 3,
            "area of use",
            """--bounds area-of-use --crs 'LOCAL_CS["mine",UNIT["metre",1]]'"""),
    *(
        refused(f"U04-{name}", f"`{option}`", GOOD, 2, told, option)
        for name, option, told in (
            ("share-0", "--bounds private:share=0", "share must be above 0"),
            ("share-1", "--bounds private:share=1", "must be in [0, 1)"),
            ("share-text", "--bounds private:share=some", "must be a decimal number"),
            ("beyond", "--bounds private:share=0.1,beyond=2", "must be between 3 and"),
            ("key", "--bounds private:beyound=9", "did you mean 'beyond'?"),
            ("epsilon", "--bounds private:share=0.1 --epsilon 1e-8", "bounds is below 1e-9"),
        )
    ),
    kept("U05-box", "a boundary; the bounds are its box", beside("b.geojson", SQUARE), 1,
         "--boundary b.geojson"),
    kept("U05-bounds", "a boundary within bounds", beside("b.geojson", SQUARE), 1,
         "--boundary b.geojson --bounds -180 -90 180 90"),
    refused("U05-missing", "no such boundary", GOOD, 8, "does not exist", "--boundary b.geojson"),
    refused("U05-text", "text that is no vector file", beside("b.geojson", "land"), 8,
            "cannot be read as a vector file", "--boundary b.geojson"),
    refused("U05-points", "points for polygons",
            beside("b.geojson", '{"type": "Point", "coordinates": [1, 2]}'), 2,
            "is not a polygon", "--boundary b.geojson --bounds 0 0 9 9"),
    refused("U05-invalid", "a boundary that crosses itself",
            beside("b.geojson", polygons([[0, 0], [9, 9], [9, 0], [0, 9], [0, 0]])), 2,
            "is not valid", "--boundary b.geojson"),
    refused("U05-no-crs", "a boundary without a CRS", beside("b.parquet", without_crs), 3, "no CRS",
            "--boundary b.parquet"),
    refused("U05-elsewhere", "a boundary outside the bounds", beside("b.geojson", SQUARE), 3,
            "the boundary lies outside", "--boundary b.geojson --bounds 20 20 30 30"),
    kept("U05-nobody", "a boundary with no row inside",
            beside("b.geojson", polygons(ring(20, 20, 30, 30))), 0, "--boundary b.geojson"),
    refused("U05-private", "a boundary and private bounds", beside("b.geojson", SQUARE), 2,
            "must be public with boundary", "--boundary b.geojson --bounds private:share=0.1"),
    refused("U05-output", "the boundary is the output, with `--overwrite`",
            beside("r.geojson", SQUARE), 6, "read as an input",
            "--boundary r.geojson -o r.geojson"),
    *(
        refused(f"U06-{name}", given, beside("r.geojson", content), code, told,
                f"{NAMED} --regions r.geojson --regions id=w")
        for name, given, content, code, told in (
            ("twice", "two regions of an id", wards("a", "a"), 2, "must be unique"),
            ("blank", "a region with a blank id", wards("a", " "), 2, "must have an id"),
            ("control", "an id with a control character", wards("a", "b\a"), 2, "printable"),
            ("long", "an id of a megabyte", wards("a", "b" * 2**20), 2, "at most 200 characters"),
            ("overlap", "regions that overlap", wards("a", "b", east=6), 2, "overlap"),
            ("gap", "a gap between regions", wards("a", "b", east=3), 2,
             "must cover the bounds"),
            ("beyond", "a region outside the bounds", wards("a", "b", "c"), 3,
             "lies outside the bounds"),
            ("crossed", "a region that crosses itself",
             polygons([[0, 0], [9, 9], [9, 0], [0, 9], [0, 0]], w="a"), 2, "repair=yes"),
            ("flat", "a region without an area",
             polygons([[0, 0], [9, 9], [0, 0], [0, 0]], w="a"), 2, "is not valid"),
            ("point", "a region that is a point",
             '{"type": "Feature", "properties": {"w": "a"}, "geometry": '
             '{"type": "Point", "coordinates": [1, 2]}}', 2, "must be a polygon"),
        )
    ),
    refused("U06-column", "no column of ids", beside("r.geojson", wards("a", "b")), 2,
            "--regions id must be a column", f"{NAMED} --regions r.geojson --regions id=v"),
    refused("U06-no-crs", "regions without a CRS", beside("r.parquet", without_crs), 3, "no CRS",
            f"{NAMED} --regions r.parquet --regions id=id"),
    refused("U06-input", "records as regions", GOOD, 2, "must not be an input of records",
            f"{NAMED} --regions points.csv --regions id=lon"),
    refused("U06-h3", "a resolution that H3 does not have", GOOD, 2, "from 0 to 15",
            f"{NAMED} --regions h3=16"),
    refused("U06-divide", "sizes of a grid that do not nest", GOOD, 2, "must divide",
            f"{NAMED} --regions grid-cells=2,3"),
    refused("U06-fine", "a grid of too many cells", GOOD, 2, "the finest",
            f"{NAMED} --regions grid-cells=0.0001"),
    unplanned("U07-column", "a plan, and no column of populations", 2,
              "--regions population must be a column", f"{WARDS} --regions population=p"),
    unplanned("U07-negative", "a population below 0", 2, "got '-1' for region 'b'",
              f"{WARDS} --regions population=people"),
    unplanned("U07-nobody", "populations that are all 0", 2, "must have a sum above 0",
              f"{WARDS} --regions population=none"),
    unplanned("U07-count", "neither populations nor `--count`", 2, "--count must be", WARDS),
    unplanned("U07-cells", "populations of cells of a grid", 2, "must be a column of files",
              "--epsilon 1 --regions grid-cells=3 --regions population=some"),
    unplanned("U07-level", "a level that does not exist", 2, "--level must be one of w, got 'v'",
              f"{PLANNED} --for-relative-error 5% --level v"),
    unplanned("U07-never", "an error that no epsilon gives", 2, "which epsilon 1 gives, got",
              f"{PLANNED} --for-relative-error 0.00001%"),
    unplanned("U07-several", "two epsilons, and an error", 2, "must be one with",
              f"{PLANNED},2 --for-relative-error 5%"),
    unplanned("U07-sizes", "sizes of queries", 2, "--sizes must be left out with --regions",
              f"{PLANNED} --sizes 1%"),
    unplanned("U07-plot", "a plot that is no picture", 2, "--plot must end in .png",
              f"{PLANNED} --plot p.pdf"),
    unplanned("U07-covariate", "no such covariate", 8, "does not exist",
              f"{PLANNED} --covariate land.geojson"),
    unplanned("U07-boundary", "a boundary, and no regions", 2, "--boundary must be given with",
              "--epsilon 1 --count 9 --boundary r.geojson"),
    refused("U08-above", "`--max-per-slice` above `--max-contributions`", MOMENTS, 2,
            "--max-per-slice must be at most that of --max-contributions, 2, got 3",
            f"{USERS} {SLICED} --max-per-slice 3"),
    refused("U08-zero", "`--max-per-slice 0`", MOMENTS, 2, "--max-per-slice must be between 1 and",
            f"{USERS} {SLICED} --max-per-slice 0"),
    refused("U08-text", "`--max-per-slice` that is no number", MOMENTS, 2, "not a whole number",
            f"{USERS} {SLICED} --max-per-slice one"),
    refused("U08-slices", "`--max-per-slice` without `--slices`", MOMENTS, 2,
            "--slices must be given with --max-per-slice", f"{USERS} --max-per-slice 1"),
    refused("U08-user", "`--max-per-slice` without `--user`", MOMENTS, 2,
            "--max-per-slice must be given with --user", f"{SLICED} --max-per-slice 1"),
    refused("U08-per", "`--max-per-slice` with `--per slice`", MOMENTS, 2,
            "--max-per-slice must be left out with",
            f"{USERS} {SLICED} --max-per-slice 1 --per slice"),
    refused("U08-day", "`--max-per-slice` with `--per day`", MOMENTS, 2,
            "--max-per-slice must be given with --user",
            f"{USERS} {SLICED} --max-per-slice 1 --per day"),
    refused("U08-auto", "`--max-per-slice` with a bound that is chosen", MOMENTS, 2,
            "--max-contributions must be a number",
            f"--user user --max-contributions auto {SLICED} --max-per-slice 1"),
    *(
        refused(f"U09-{name}", f"`--delta {value}`", GOOD, 2, told, f"--delta {value}")
        for name, value, told in (
            ("zero", "0", "--delta must be above 0 and below 0.001"),
            ("one", "1", "--delta must be above 0 and below 0.001"),
            ("large", "1e-2", "--delta must be above 0 and below 0.001"),
            ("negative", "-1", "--delta must be above 0 and below 0.001"),
            ("nan", "nan", "--delta must be"),
            ("small", "1e-400", "--delta must be"),
            ("digits", "1.23456789012345678e-6", "--delta must be of at most 15 digits"),
            ("text", "little", "--delta must be"),
        )
    ),
    refused("U09-none", "`--noise gaussian` without `--delta`", GOOD, 2,
            "--delta must be given with --noise gaussian", "--noise gaussian"),
    refused("U09-law", "a law of noise that does not exist", GOOD, 2, "'--noise'",
            "--noise cauchy"),
    refused("U09-rho", "epsilon and delta whose rho rounds to 0", GOOD, 2,
            "--delta must allow a rho of at least 1e-12",
            "--noise gaussian --delta 1e-100 --epsilon 1e-9"),
    kept("U09-single", "`--delta` of a single release: no delta is spent", GOOD, 3,
         "--delta 1e-6"),
    kept("U09-laplace", "`--delta` with `--noise laplace`: no delta is spent", GOOD, 3,
         "--delta 1e-6 --noise laplace"),
    kept("U09-gaussian", "`--noise gaussian` of a single release", GOOD, 3,
         "--delta 1e-6 --noise gaussian"),
)
# fmt: on

# fmt: off
BOX, EUROPE = ring(-10, 0, 140, 60), ring(-10, 35, 30, 60)
BOW = [[0, 0], [40, 40], [40, 0], [0, 40], [0, 0]]
COVARIATES = (
    refused("K01-missing", "no such covariate", GOOD, 8, "does not exist",
        "--covariate land.geojson"),
    refused("K01-no-raster", "no such raster", GOOD, 8, "does not exist", "--covariate land.npy"),
    refused("K01-key", "a setting that does not exist", GOOD, 2, "did you mean 'column'?",
        "--covariate land.geojson:colum=people"),
    refused("K01-density", "`--set density=covariate` alone", GOOD, 2, "without a covariate",
        "--set density=covariate"),
    excluded("K01-output", "the covariate is the output, with `--overwrite`", "r.geojson",
        polygons(BOX), 6, "read as an input", "-o r.geojson"),
    excluded("K02-text", "text that is no vector file", "land.geojson", "land", 8,
        "as a vector file"),
    excluded("K02-array", "text that is no array", "land.npy", "land", 8, "as a raster"),
    excluded("K02-objects", "an array of Python objects", "land.npy", array(None, None), 8,
        "as a raster"),
    excluded("K02-grid", "an ASCII grid cut short", "land.asc", with_crs(grid(1, 2), "EPSG:4326"),
        8, "as a raster"),
    excluded("K02-points", "points for polygons", "land.geojson",
        '{"type": "Point", "coordinates": [1, 2]}', 2, "polygon 1 of the covariate is not"),
    excluded("K02-invalid", "a polygon that crosses itself", "land.geojson", polygons(BOX, BOW), 2,
        "polygon 2 of the covariate is not valid"),
    excluded("K03-no-crs", "polygons without a CRS", "land.parquet", without_crs, 3, "no CRS"),
    excluded("K03-grid", "an ASCII grid without a .prj beside it", "land.asc", grid(1, 1, 1, 1), 3,
        "no CRS"),
    excluded("K03-other", "a raster in another CRS than the release", "land.asc",
        with_crs(grid(1, 1, 1, 1), "EPSG:5179"), 3, "warp it first"),
    excluded("K04-swapped", "latitude before longitude", "land.geojson",
        polygons(ring(36, 126, 38, 128)), 3, "longitude and latitude swapped", KOREA),
    excluded("K04-elsewhere", "polygons outside the bounds", "land.geojson", polygons(EUROPE), 3,
        "the covariate lies outside the bounds", KOREA),
    excluded("K04-raster", "a raster outside the bounds", "land.asc",
        with_crs(grid(1, 1, 1, 1, west=-360), "EPSG:4326"), 3, "outside the bounds", KOREA),
    excluded("K05-negative", "a negative weight", "land.geojson", polygons(BOX, people=-1), 2,
        "negative", settings=":column=people"),
    excluded("K05-missing", "a weight that is missing", "land.geojson", polygons(BOX, people=None),
        2, "missing", settings=":column=people"),
    excluded("K05-text", "weights that are text", "land.geojson", polygons(BOX, people="many"), 2,
        "must hold numbers", settings=":column=people"),
    excluded("K05-column", "no such column", "land.geojson", polygons(BOX, people=1), 2,
        "one of the covariate (people), got 'Leute'", settings=":column=Leute"),
    excluded("K05-array", "a raster with NaN", "land.npy", array([1, float("nan")]), 2,
        "missing or not finite"),
    excluded("K05-below", "a raster with a negative value", "land.npy", array([1, -1]), 2,
        "negative"),
    excluded("K05-shape", "an array of three dimensions", "land.npy", array([[1, 1]], [[1, 1]]), 2,
        "two-dimensional"),
    excluded("K06-zero", "weights of 0", "land.geojson", polygons(BOX, people=0), 2,
        "0 everywhere", settings=":column=people"),
    excluded("K06-array", "a raster of 0", "land.npy", array([0, 0]), 2, "0 everywhere"),
    excluded("K06-size", "`--covariate land.npy:size=2000`", "land.npy", array([1, 1]), 2,
        "must be between 1 and 1024", settings=":size=2000"),
    excluded("K06-both", "a column of a raster", "land.npy", array([1, 1]), 2,
        "only polygons have columns",
        settings=":column=people"),
    known("K07-mask", "polygons", "land.geojson", polygons(BOX)),
    known("K07-weights", "polygons with weights", "land.geojson", polygons(BOX, EUROPE, people=2),
        settings=":column=people"),
    known("K07-array", "an array over the bounds", "land.npy", array([0, 1], [0, 0])),
    known("K07-grid", "an ASCII grid", "land.asc", with_crs(grid(0, 1, 2, 0), "EPSG:4326"),
        settings=":size=64"),
)
# fmt: on

# fmt: off
METHODS = (
    uncompared("E01-unknown", "an unknown method", 2, "--methods must be one of",
        "--methods grid,kd"),
    uncompared("E01-case", "`Grid`", 2, "--methods must be one of", "--methods Grid"),
    uncompared("E01-empty", "a comma too many", 2, "--methods must be one of", "--methods grid,"),
    uncompared("E01-nothing", "an empty text", 2, "--methods must be one of", "--methods ''"),
    uncompared("E01-all", "`all` beside others", 2, "--methods must be one of",
        "--methods all,grid"),
    uncompared("E01-twice", "a method that stands twice", 2,
        "--methods must have each value once, got grid 2 times", "--methods grid,quadtree,grid"),
    uncompared("E01-option-twice", "the option given twice", 2, "--methods must be given once",
        "--methods grid --methods quadtree"),
    uncompared("E02-text", "epsilon `abc`", 2, "must be a decimal number", "--epsilons 1,abc"),
    uncompared("E02-zero", "epsilon `0`", 2, "must be above 0", "--epsilons 0,1"),
    uncompared("E02-empty", "a comma too many", 2, "must be a decimal number", "--epsilons 1,"),
    uncompared("E02-twice", "0.1 and .10", 2,
        "--epsilons must have each value once, got 0.1 2 times", "--epsilons 0.1,1,.10"),
    uncompared("E02-many", "21 epsilons", 2, "--epsilons must have at most 20",
        "--epsilons " + ",".join(map(str, range(1, 22)))),
    uncompared("E03-no-run", "`--runs 0`", 2, "runs must be between", "--runs 0"),
    uncompared("E03-many-runs", "`--runs 1001`", 2, "runs must be between", "--runs 1001"),
    uncompared("E03-half-a-run", "`--runs 1.5`", 2, "not a whole number", "--runs 1.5"),
    uncompared("E03-no-job", "`--jobs 0`", 2, "jobs must be between", "--jobs 0"),
    uncompared("E03-negative-job", "`--jobs -1`", 2, "jobs must be between", "--jobs -1"),
    uncompared("E04-no-method", "a setting of no method", 2, "METHOD.KEY=VALUE",
        "--set height=3"),
    uncompared("E04-no-key", "a setting without a key", 2, "METHOD.KEY=VALUE",
        "--set quadtree.=3"),
    uncompared("E04-no-value", "a setting without a value", 2, "METHOD.KEY=VALUE",
        "--set quadtree.height="),
    uncompared("E04-other-method", "a setting of a method that is not compared", 2,
        "must name a compared method, got kd-hybrid", "--set kd-hybrid.height=3"),
    uncompared("E04-other-key", "a setting of another method", 2, "grid has no parameter",
        "--set grid.height=3"),
    uncompared("E04-value", "a value out of range", 2, "must be between 0 and 12",
        "--set quadtree.height=40"),
    uncompared("E04-twice", "a setting given twice", 2, "got 2 times",
        "--set quadtree.height=1 --set quadtree.height=2"),
    uncompared("E05-exists", "the table exists", 6, "exists", overwrite=False),
    uncompared("E05-input", "the table is the input, with `--overwrite`", 6, "read as an input",
        f"-o {INPUT}"),
    uncompared("E05-no-folder", "a picture in a folder that is missing", 6, "does not exist",
        "--plot nowhere/e.png"),
    uncompared("E05-ending", "a picture that ends in .pdf", 2,
        "--plot must end in .png or .svg, got e.pdf", "--plot e.pdf"),
    uncompared("E05-same", "a picture and a table of one name", 6, "two outputs have the same path",
        "-o out/e.png --plot out/e.png"),
    uncompared("E06-missing", "no such file", 8, "does not exist", "b.csv"),
    uncompared("E06-no-row", "column names and no row", 8, "no record lies inside",
        content=table()),
    uncompared("E06-outside", "all rows outside the bounds", 8, "no record lies inside the bounds",
        "--bounds 60 60 70 70"),
    uncompared("E06-text", "text among the numbers", 8, "plain decimal numbers",
        content=table("one,2.5")),
    uncompared("E06-without-bound", "`--user` without a bound", 2, "contributions must be given",
        "--user user", content=users("u")),
)
# fmt: on

WORLD = (-180, -90, 180, 90)


def with_release(name, content):
    """A release of the world, and what is asked beside it."""

    def write(path):
        domain = psd.Domain(bounds=WORLD)
        counts = np.arange(64)
        made = psd.Release.from_counts(psd.grid_tree(domain, 8), counts, 1.0, domain=domain)
        as_drawn(made).save(path)
        path.with_name(name).write_text(content)

    return write


def asked(name, given, options, code=0, told="", *, file="none", content=""):
    """A query of a release of the world."""
    return Case(
        name=name, given=given, content=with_release(file, content), options=options,
        command="query", code=code, told=told, input="world.psd.parquet",
    )  # fmt: skip


def exported(name, given, options, told, code=2, command="export"):
    """An export, or entry of a catalogue, of a release of the world, which is refused."""
    return Case(
        name=name, given=given, content=with_release("none", ""), options=options,
        command=command, code=code, told=told, input="world.psd.parquet",
        overwrite=command == "export",
    )  # fmt: skip


def boxed(id_, *cases):
    """Boxes, refused with words or, without, answered."""
    for name, given, box, *told in cases:
        yield asked(f"{id_}-{name}", given, f"--box {box}", 2 if told else 0, *told)


def shaped(id_, *cases):
    """WKT in a file, refused with words or, without, answered."""
    for name, given, wkt, *told in cases:
        options = "--polygons p.wkt --polygons-crs EPSG:4326"
        outcome = (2, *told) if told else ()
        yield asked(f"{id_}-{name}", given, options, *outcome, file="p.wkt", content=wkt)


def wkt(*places, kind="POLYGON"):
    """WKT of a ring."""
    return f"{kind} (({', '.join(' '.join(map(str, place)) for place in places)}))"


def circle(vertices, digits=6):
    """WKT of a regular polygon, closed."""
    angle = np.linspace(0, 2 * np.pi, vertices)
    places = np.round(50 * np.column_stack([np.cos(angle), np.sin(angle)]), digits)
    return wkt(*places[:-1].tolist(), places[0].tolist())


def spikes(vertices):
    """WKT of a polygon of thin spikes all around, each beside hundreds of others."""
    angle = np.linspace(0, 2 * np.pi, vertices)[:-1]
    reach = np.where(np.arange(vertices - 1) % 2, 10, 50)
    places = (reach * [np.cos(angle), np.sin(angle)]).T.tolist()
    return wkt(*places, places[0])


# fmt: off
RING = ring(0, 0, 40, 40)
HOLE = "(0 0, 40 0, 40 40, 0 40, 0 0), (10 10, 10 20, 20 20, 20 10, 10 10)"
QUERIES = (
    *boxed(
        "Q01",
        ("reversed-x", "west above east", "5 0 -5 1", "west below its east"),
        ("reversed-y", "south above north", "0 5 1 -5", "south below its north"),
        ("no-width", "no width", "1 0 1 1", "west below its east"),
        ("no-height", "no height", "0 1 1 1", "south below its north"),
        ("outside", "outside the bounds", "190 0 200 1", "lies outside the bounds"),
        ("touching", "on the edge of the bounds", "180 0 181 1", "lies outside the bounds"),
        ("nan", "`nan`", "nan 0 1 1", "must have finite sides"),
        ("inf", "`inf`", "0 0 inf 1", "must have finite sides"),
        ("overflow", "`1e400`", "0 0 1 1e400", "must have finite sides"),
        ("far", "from -1e308 to 1e308: the part inside", "-1e308 -1e308 1e308 1e308"),
        ("text", "text", "0 0 1 x", "not a number"),
        ("three", "three numbers", "0 0 1", "4 arguments"),
    ),
    asked("Q01-file", "`nan` in a file of boxes", "--boxes b.csv", 8, "west is not a number",
        file="b.csv", content="west,south,east,north\nnan,0,1,1\n"),
    asked("Q01-overflow-file", "`1e400` in it", "--boxes b.csv", 2, "must have finite sides",
        file="b.csv", content="west,south,east,north\n0,0,1e400,1\n"),
    *boxed("Q02", ("box", "a box from 170 to -170", "170 -20 -170 20",
        "split it into two boxes if it crosses the antimeridian")),
    asked("Q02-to-360", "a polygon from 170 to 190: the part inside", "--polygons p.geojson",
        file="p.geojson", content=polygons(ring(170, -20, 190, 20))),
    asked("Q02-other-crs", "a polygon in a CRS of the Pacific",
        "--polygons p.wkt --polygons-crs EPSG:3832", 2, "region 1 crosses the antimeridian",
        file="p.wkt", content=wkt(*ring(3e6, -1e6, 4e6, 1e6))),
    *shaped(
        "Q03",
        ("unclosed", "a ring that is not closed, WKT", wkt(*RING[:-1]), "do not form a closed"),
        ("bow-tie", "a polygon that crosses itself", wkt(*BOW), "(Self-intersection[20 20])"),
        ("hole", "a polygon with a hole", f"POLYGON ({HOLE})"),
        ("hole-outside", "a hole outside the polygon",
            f"POLYGON ({HOLE}, (50 50, 50 60, 60 60, 50 50))", "(Hole lies outside shell"),
        ("multi", "two parts", f"MULTIPOLYGON (({HOLE}), ((50 50, 60 50, 60 60, 50 50)))"),
        ("multi-overlap", "two parts that overlap", f"MULTIPOLYGON (({HOLE}), ({HOLE}))",
            "region 1 is not valid ("),
        ("z", "heights, which play no part", wkt(*([*p, 9] for p in RING), kind="POLYGON Z")),
        ("empty", "`POLYGON EMPTY`", "POLYGON EMPTY", "must not be empty"),
        ("point", "a point", "POINT (1 2)", "region 1 must be a polygon, got Point"),
        ("collection", "a collection", f"GEOMETRYCOLLECTION ({wkt(*RING)})",
            "region 1 must be a polygon, got GeometryC"),
        ("duplicates", "each vertex twice", wkt(*(p for p in RING for _ in range(2)))),
        ("1001", "1,001 vertices", circle(1001)),
        ("1-mb", "1 MB of WKT", circle(30_000, 15)),
        ("entangled", "60,001 vertices of thin spikes", spikes(60_001), "sides beside each other"),
        ("nan", "a vertex with `nan`", wkt(*RING[:2], ["nan", 1], *RING[2:]), "finite"),
        ("inf", "a vertex with `1e400`", wkt(*RING[:2], ["1e400", 1], *RING[2:]), "finite"),
        ("outside", "outside the bounds", wkt(*ring(190, 0, 200, 9)), "lies outside the bounds"),
        ("not-wkt", "text that is no WKT", "here", "cannot be read as GeoJSON or WKT"),
    ),
    asked("Q03-unclosed-geojson", "a ring that is not closed, GeoJSON", "--polygons p.geojson", 8,
        "do not form a closed", file="p.geojson", content=polygons(RING[:-1])),
    asked("Q03-no-crs", "WKT without a CRS", "--polygons p.wkt", 3, "no CRS", file="p.wkt",
        content=wkt(*RING)),
    asked("Q03-two-crs", "GeoJSON, and another CRS",
        "--polygons p.geojson --polygons-crs EPSG:3857", 3, "regions must have one CRS",
        file="p.geojson", content=polygons(RING)),
    asked("Q03-box-crs", "a CRS for a box", "--box 0 0 1 1 --polygons-crs EPSG:4326", 2,
        "must be given with --polygons"),
    asked("Q03-ewkt", "EWKT, which says its CRS", "--polygons p.wkt", file="p.wkt",
        content=f"SRID=4326;{wkt(*RING)}"),
    asked("Q03-csv", "CSV with a column wkt", "--polygons p.csv --polygons-crs EPSG:4326",
        file="p.csv", content=f'name,wkt\na,"{wkt(*RING)}"\n'),
    asked("Q03-csv-column", "CSV without it", "--polygons p.csv --polygons-crs EPSG:4326", 8,
        "no column wkt", file="p.csv", content=f'name,text\na,"{wkt(*RING)}"\n'),
    *shaped(
        "Q04",
        ("collections", "200,000 collections in each other",
            "GEOMETRYCOLLECTION(" * 200_000 + "POINT(1 1)" + ")" * 200_000,
            "at most 3 deep, got 200,001"),
        ("brackets", "200,000 brackets", "POLYGON" + "(" * 200_000, "at most 3 deep, got 200,000"),
    ),
    asked("Q04-geojson", "GeoJSON with 200,000 brackets", "--polygons p.geojson", 8,
        "cannot be read as a vector file", file="p.geojson",
        content='{"type": "Polygon", "coordinates": ' + "[" * 200_000 + "]" * 200_000 + "}"),
    asked("Q05-ending", "`-o a.csv --format gpkg`", "--box 0 0 1 1 -o out/a.csv --format gpkg", 2,
        "-o must end in .gpkg with --format gpkg, got out/a.csv"),
    asked("Q05-unknown", "`-o a.kml`", "--box 0 0 1 1 -o out/a.kml", 2, "name the format with"),
    asked("Q05-screen", "`--format xlsx` without `-o`", "--box 0 0 1 1 -o '' --format xlsx", 2,
        "--format xlsx needs a file; name it with -o"),
    asked("Q05-marked", "`--unreliable drop --joint`",
        "--box 0 0 1 1 --box 0 0 2 2 --joint --unreliable drop", 2,
        "--unreliable must be keep with --joint, got drop"),
)
EXPORTS = (
    exported("X01-kml", "KML", "out/m.kml", "must end in one of .csv, .fgb, .geojson, .gpkg"),
    exported("X01-ending", "no ending", "out/map", "must end in one of .csv, .fgb, .geojson"),
    exported("X02-crs", "a CRS that does not exist", "out/m.gpkg --crs EPSG:99999",
        "--crs must be a coordinate reference system", 3),
    exported("X02-file", "a CRS that names a file", "out/m.gpkg --crs '+proj=longlat +grids=a.gsb'",
        "--crs must not name files", 3),
    exported("X02-geojson", "GeoJSON in metres", "out/m.geojson --crs EPSG:3857",
        "--crs must be EPSG:4326, or left out, if output ends in .geojson"),
    exported("X02-csv", "CSV in another CRS", "out/m.csv --crs EPSG:3857",
        "--crs must be EPSG:4326, that of the release, or left out"),
    exported("X02-tiles", "tiles in degrees", "out/m.pmtiles --crs EPSG:4326",
        "--crs must be EPSG:3857, or left out, if output ends in .pmtiles"),
    exported("X02-raster", "a raster in another CRS", "out/m.npy --crs EPSG:3857",
        "--crs must be left out if output is a raster"),
    exported("X03-word", "another treatment", "out/m.csv --unreliable hide", "'hide' is not"),
    exported("X03-zero", "a threshold of 0", "out/m.csv --unreliable drop --threshold 0",
        "--threshold must be above 0 and at most 1, got 0"),
    exported("X03-percent", "a threshold of `30`, which is 3,000 %", "out/m.csv --threshold 30",
        "--threshold must be above 0 and at most 1, got 30; it is a relative error, such as 0.3"),
    exported("X03-order", "the limit of good estimates above that of reliable ones",
        "out/m.csv --threshold 0.3,0.12", "then that of reliable ones, got 0.3 before 0.12"),
    exported("X03-limits", "three limits", "out/m.csv --threshold 0.1,0.2,0.3",
        "is not one number or two with a comma"),
    exported("X03-nan", "a threshold of `nan`", "out/m.csv --threshold nan",
        "--threshold must be above 0 and at most 1, got nan"),
    exported("X04-band", "a band of a table", "out/m.gpkg --band count",
        "--band must be left out unless output is a GeoTIFF"),
    exported("X04-word", "a band that does not exist", "out/m.tif --band red", "'red' is not"),
    exported("X04-level", "a level that does not exist", "out/m.gpkg --level 9",
        "--level must be an integer from 0, the domain, to "),
    exported("X04-level-name", "a level by name", "out/m.gpkg --level ward",
        "--level must be a whole number from 0"),
    exported("X04-level-raster", "a level of a raster", "out/m.npy --level 1",
        "--level must be left out if output is a raster"),
    exported("X04-size", "a size of a table", "out/m.gpkg --size 9 9",
        "--size must be left out unless output is a raster"),
    exported("X05-time", "`psd info --format stac` without a reference date", "--format stac",
        "about must have a reference_date for an item of STAC", command="info"),
    exported("X05-word", "`psd info` in another standard", "--format iso", "'iso' is not",
        command="info"),
    exported("X06-ending", "`psd plot` to another format", "out/m.jpg",
        "OUTPUT must end in .png, .svg, .pdf", command="plot"),
    exported("X06-kind", "a picture of something else", "out/m.png --kind people",
        "'people' is not", command="plot"),
    exported("X06-dpi", "a picture of 9 points per inch", "out/m.png --dpi 9",
        "--dpi must be 20 to 1200", command="plot"),
    exported("X06-outline", "outlines of a file that does not exist", "out/m.png --outline o.gpkg",
        "o.gpkg", 8, command="plot"),
    exported("X07-ending", "`psd map` to a picture", "-o out/m.png", "-o must end in .html",
        command="map"),
    exported("X07-level", "a map page of a level that does not exist", "-o out/m.html --level 99",
        "--level must be an integer from 0 to", command="map"),
    exported("X07-regions", "a map page with regions of no file", "-o out/m.html --regions o.gpkg",
        "o.gpkg", 8, command="map"),
    exported("X07-crs", "a CRS of regions that are not given",
        "-o out/m.html --regions-crs EPSG:4326", "--regions-crs must be given with --regions",
        command="map"),
    exported("X07-series", "a slice of a release that is no series",
        "-o out/m.html --slice 2024-01", "--slice must be given with a series", command="map"),
)
# fmt: on


LEDGERS = (
    unpaid("L01-missing", "a ledger that is not there", 9, "does not exist",
           change=lambda path: path.unlink()),
    unpaid("L01-folder", "a folder for a ledger", 9, "is not a file",
           change=lambda path: (path.unlink(), path.mkdir())),
    kept("L01-link", "a symbolic link to the ledger", with_ledger(
        lambda path: path.with_name("link").symlink_to(path)), 1, "--ledger link --dataset rows"),
    unpaid("L02-empty", "a ledger of 0 bytes", 9, "is empty",
           change=lambda path: path.write_bytes(b"")),
    unpaid("L03-text", "a text file for a ledger", 9, "is not a ledger",
           change=lambda path: path.write_text(f"rows,1,{SECRET}\n" * 99)),
    unpaid("L03-cut-off", "a ledger that was cut off", 9, "is damaged",
           change=lambda path: path.write_bytes(path.read_bytes()[:5000])),
    unpaid("L05-edited", "an entry that was edited", 9, "entry 2 of the ledger was changed",
           change=edited),
    unpaid("L06-later", "a ledger of a later format", 9, "has format 3", change=of_later),
    unpaid("L09-dataset", "a dataset that is not registered", 9, "'roads' is not registered",
           dataset="roads"),
    unpaid("L09-unit", "a release per row of a dataset per user", 9, "do not add up",
           dataset="people"),
    unpaid("L09-delta", "Gaussian noise of a dataset without a delta", 9, "has no delta",
           "--noise gaussian --delta 1e-6"),
    unpaid("L09-other-delta", "Gaussian noise of another delta than the dataset's", 9,
           "is registered with delta 1e-7, got 1e-6", "--noise gaussian --delta 1e-6",
           dataset="weekly", change=with_delta),
    unpaid("L09-user", "a release per user of a dataset per row", 9, "do not add up", USERS),
)  # fmt: skip

CASES = FILE + VALUES + PARAMETERS + UNITS + COVARIATES + METHODS + QUERIES + LEDGERS + EXPORTS

INTRODUCTION = """# Bad input

This page lists what `psd` does with unusual or wrong files, values and parameters, and when disks,
permissions, processes, ledgers and releases fail. Each row is a test. The first letter of a case is
its group in the checklist:

| letter | group |
|---|---|
| C | the input file |
| V | a value in it |
| P | a parameter |
| U | the unit of privacy and the area |
| K | a public covariate |
| E | `psd compare`, which reads files and values as `psd build` does |
| Q | a query |
| F | the file system and the process |
| L | a ledger that has to pay |
| R | a release |
| X | an export |
| D, G | a local campaign: reports and stores, and campaigns |
| S | suggestions of places |
| H | private choices |
| M | the map, which does not exist yet |

## Input, parameters and queries

Unless the row says otherwise, the command is

- for E: `psd compare points.csv -o errors.csv --epsilons 1 --methods grid,quadtree --runs 1
  --bounds -180 -90 180 90`;
- for Q: `psd query world.psd.parquet -o answers.csv`, of a release within the same
  bounds; WKT comes with `--polygons p.wkt --polygons-crs EPSG:4326`;
- for X: `psd export world.psd.parquet`, of the same release, and the words of the row;
- for all others: `psd build points.csv -o r.psd.parquet --epsilon 1 --bounds -180 -90 180 90
  --method quadtree --set height=1`. Rows with user ids add `--user user --max-contributions 2`;
  rows with a ledger add `--ledger city.ledger --dataset rows`, with a budget of 1; rows with other
  bounds leave out `--bounds`.

Outcomes:

- **answered**: exit code 0 and a table with a row for the region. A region that reaches beyond the
  bounds is answered for the part inside, and a line on stderr says so.
- **accepted**: exit code 0 and a release. Nothing that is printed depends on a record; only
  `--report-private` shows the number of kept records, to the holder of the file.
- **refused**: an exit code and one line on stderr, which quotes no field of the file. No file is
  written, and an existing release or table stays as it was.

This page is generated by `python docs/generate.py`.

| case | given | outcome | exit code | message contains |
|---|---|---|---|---|
"""


FAULTS = """
## Faults

Unless the row says otherwise, the command is

- for R and Q: `psd query out/r.psd.parquet --box 0 0 2 2`;
- for all others: `psd build points.csv -o out/r.psd.parquet --overwrite --epsilon 1
  --bounds 0 0 4 4 --method quadtree --set height=1 --ledger city.ledger --dataset rows`. A release
  exists at the output.

After each case the following holds:

- With an exit code other than 0 there is one line on stderr, which quotes no field of the input.
  The existing release is unchanged, and no other file is beside it. "Written" marks the cases in
  which the new release exists in spite of the exit code.
- The ledger is intact and has as many charges as the row states. No noise was drawn without a
  charge.

Permissions are tested without the rights of root. A full disk is simulated by a limit on the size
of files.

| case | given | exit code | message contains | charges | what else holds |
|---|---|---|---|---|---|
"""

LOCAL = """
## Local campaigns

Before each command there are a campaign, two good reports and a store. A refused command leaves no
file behind and has one line on stderr. `psd local collect` takes the good reports in every case;
lines that it refuses are counted and not quoted.

| case | given | command | exit code | message contains |
|---|---|---|---|---|
"""

SUGGESTIONS = """
## Suggestions

Before each command there are a release, its weights, own places and records with user ids. A
refused command leaves no file behind and has one line on stderr.

| case | given | command | exit code | message contains |
|---|---|---|---|---|
"""

CHOICES = """
## Choices

Before each command there are candidates, bids, regions, tariffs and a ledger with a budget of 1;
each command has `--crs EPSG:3857 --epsilon 0.5 --ledger l --dataset bids`. A refused command has
one line on stderr and leaves no file behind. A bid that is no number stops no reading: its record
is left out. The reason why a reading failed is withheld.

| case | given | command | exit code | message contains | charges |
|---|---|---|---|---|---|
"""

STREAMS = """
## Streams

Before each command there are rows, a ledger with a budget of 1, and a stream of the week from
2026-01-05 with its first and third day; a new stream is `b.stream`. A refused command has one line
on stderr, and every file says what it said before.

| case | given | command | exit code | message contains |
|---|---|---|---|---|
"""

LEFT = """
## Not tested

| case | why |
|---|---|
"""


def row(*cells):
    """A line of a table."""
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |\n"


def fate(case):
    """What comes of a case, in words."""
    accepted = "answered" if case.kept is None else f"accepted, {case.kept:,} kept"
    return "refused" if case.code else accepted


def fault_row(fault):
    """A fault, by its own line or by the test that it has elsewhere."""
    if hasattr(fault, "test"):
        test = fault.test.replace("tests/", "", 1)
        return row(fault.name, fault.given, "", "", "", f"{fault.holds} (`{test}`)")
    holds = "written" if fault.written else fault.holds
    charged = "no ledger any more" if fault.charged is None else fault.charged
    return row(fault.name, fault.given, fault.code, fault.told, charged, holds)


def page():
    """The tables as Markdown."""
    from robustness.bad_campaigns import page_rows
    from robustness.bad_choices import page_rows as choice_rows
    from robustness.bad_releases import LEFT_OUT, NAMES, RELEASES
    from robustness.bad_streams import page_rows as stream_rows
    from robustness.bad_suggestions import page_rows as suggestion_rows
    from robustness.faults import LEDGERS, PROCESSES

    given = "".join(row(c.name, c.given, fate(c), c.code, c.told) for c in CASES)
    faults = "".join(map(fault_row, (*PROCESSES, *LEDGERS, *RELEASES, *NAMES)))
    left = "".join(row(*line) for line in LEFT_OUT.items())
    local, suggestions = LOCAL + page_rows(row), SUGGESTIONS + suggestion_rows(row)
    decided = CHOICES + choice_rows(row) + STREAMS + stream_rows(row)
    return INTRODUCTION + given + FAULTS + faults + local + suggestions + decided + LEFT + left


if __name__ == "__main__":
    print(page(), end="")
