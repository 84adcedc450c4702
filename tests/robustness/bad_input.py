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
from functools import partial
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
from psd_cli.apps import evaluation  # noqa: F401 (psd check compare)
from robustness.commands import later
from support.releases import as_drawn

# Stands in every table; nothing that is printed or published may hold it.
SECRET = "secret-8642.13579"

# The command line where a case says nothing else.
INPUT, OUTPUT, ANSWERS = "points.csv", "out/r.psd.parquet", "out/answers.csv"
WORLD = ("--bounds", "-180", "-90", "180", "90")
DEFAULTS = {
    "build": (("-o", OUTPUT), ("--epsilon", "1"), WORLD, ("--method", "quadtree"),
        ("--set", "height=1")),
    "check compare": (("-o", OUTPUT), ("--epsilons", "1"), WORLD, ("--methods", "grid,quadtree"),
        ("--runs", "1")),
    "query": (("-o", ANSWERS),),
}  # fmt: skip

# What takes the place of an option.
INSTEAD = {"--set": "--method", "--bounds": "--boundary"}

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
    deep: bool = False
    first: bool = True  # of a row of the page

    @property
    def id(self):
        return self.name.split("-")[0]

    @property
    def output(self):
        """The file that it writes."""
        return ANSWERS if self.command == "query" else OUTPUT

    @property
    def args(self):
        """Command line after `psd`."""
        line, options = [self.command, self.input], shlex.split(self.options)
        names = {option.partition("=")[0] for option in options}
        for option, *values in DEFAULTS.get(self.command, ()):
            if option not in names and INSTEAD.get(option) not in names:
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


def row_of(name, given, variants, **outcome):
    """Cases of one row of the page, which differ in their content or their options."""
    for number, variant in enumerate(variants, 1):
        own = name if number == 1 else f"{name}-{number}"
        yield Case(**{"name": own, "given": given, "first": number == 1, **outcome, **variant})


def kept(name, given, rows, *contents, **more):
    return row_of(name, given, [{"content": content} for content in contents], kept=rows, **more)


def unread(name, given, told, *contents, code=8, **more):
    """Contents that are refused with the same words."""
    variants = [{"content": content} for content in contents]
    return row_of(name, given, variants, told=told, code=code, **more)


def lines(given, options):
    """Command lines as variants, and what is given, which they may say themselves."""
    said = ", ".join(f"`{each}`" for each in options)
    return given or said, [{"options": each} for each in options]


def allowed(name, given, *options, content=None, rows=3):
    """Command lines that are taken, of good data unless other is given."""
    return row_of(name, *lines(given, options), content=content or GOOD, kept=rows)


def wrong(name, given, told, *options, code=2, content=None, **more):
    """Command lines that are refused alike, of good data unless other is given.

    Braces in the words stand for the last one of the command line.
    """
    content = GOOD if content is None else content
    given, variants = lines(given, options)
    for variant in variants:
        variant["told"] = told.replace("{}", variant["options"].split(" ")[-1])
    return row_of(name, given, variants, code=code, content=content, **more)


def valued(option, values, between=" "):
    """An option with each of several values."""
    return [f"{option}{between}{value}" for value in values.split()]


uncompared = partial(wrong, command="check compare")


def flat(table):
    """Cases of all rows."""
    return (case for row in table for case in row)


def table(*rows, header="lon,lat"):
    """CSV of rows, each with a secret note."""
    return "".join(f"{line}\n" for line in (f"{header},note", *(f"{r},{SECRET}" for r in rows)))


def users(*ids):
    """CSV with a row at one place for each of the ids."""
    return table(*(f"{user},1.5,2.5" for user in ids), header="user,lon,lat")


PLACES = ("126.98,37.57", "-0.12,51.5", "1.5,2.5")
GOOD = table(*PLACES)
NAMED = {"shows_names": True}
USERS = "--user user --max-contributions 2"
GRID = "--method grid --set"
KOREA = "--bounds 124 33 132 39"
LONDON = "--bounds -0.55 51.25 0.35 51.72"
EAST = "--bounds 100.5 30.5 140.5 50.5"
METRES = "--bounds 900000 1900000 1000000 2000000 --crs EPSG:5179"


def linked(path):
    path.with_name("elsewhere.csv").write_text(GOOD)
    path.symlink_to("elsewhere.csv")


def bomb(path):
    path.write_bytes(gzip.compress(GOOD.encode() + b"1,1\n" * 25_000_000))


def parts(path):
    path.mkdir()
    (path / "a.csv").write_text(GOOD)
    (path / "b.csv").write_text(GOOD.rstrip("\n"))  # a copy would be refused


def truncated(path):
    rows = {"lon": [1.5, 3.5], "lat": [2.5, 4.5], "note": [SECRET] * 2}
    pq.write_table(pa.table(rows), path)
    path.write_bytes(path.read_bytes()[:-10])


def bound_socket(path):
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(path.name)  # relative: a full path may be longer than a socket's may be


def many(path):
    rows = "".join(f"{i * 0.01:.2f},{i * 0.02:.2f}\n" for i in range(3000))
    path.write_text("lon,lat\n" + rows * 1000)


def meanwhile(monkeypatch):
    """Append to the file when its first rows have been read."""
    batch = source._batch

    def changing(path, *rest):
        path.write_text(path.read_text() + f"{PLACES[0]},{SECRET}\n")
        return batch(path, *rest)

    monkeypatch.setattr(source, "_batch", changing)


def overspend(monkeypatch):
    shares = Quadtree.level_shares
    monkeypatch.setattr(Quadtree, "level_shares", lambda self, nano: shares(self, nano + 1))


@later
def beside(path, name, content):
    """Good data, and another file beside it."""
    path.write_text(GOOD)
    if callable(content):
        content(path.with_name(name))
    else:
        path.with_name(name).write_text(content)


POINT = '{"type": "Point", "coordinates": [1, 2]}'


def polygons(*rings, **properties):
    """GeoJSON of polygons, all with the same properties."""
    shapes = [{"type": "Polygon", "coordinates": [ring]} for ring in rings]
    features = [{"type": "Feature", "properties": properties, "geometry": s} for s in shapes]
    return json.dumps({"type": "FeatureCollection", "features": features})


def ring(west, south, east, north):
    """A rectangle as a ring."""
    return [[west, south], [east, south], [east, north], [west, north], [west, south]]


def grid(*values):
    """An ASCII grid of four values, 90 degrees each."""
    head = "ncols 4\nnrows 1\nxllcorner -180\nyllcorner -45\ncellsize 90\n"
    return head + " ".join(map(str, values)) + "\n"


@later
def with_crs(path, content, crs):
    """An ASCII grid, and its CRS beside it."""
    path.write_text(content)
    path.with_suffix(".prj").write_text(crs)


def array(*rows):
    return lambda path: np.save(path, np.array(rows))


def without_crs(path):
    gpd.GeoSeries([shapely.box(0, 0, 9, 9)]).to_frame("geometry").to_parquet(path)


def excluded(name, given, told, *contents, file="land.geojson", options="", code=2):
    """A covariate that is refused."""
    options = f"--covariate {file} {options}"
    contents = [beside(file, content) for content in contents]
    return unread(name, given, told, *contents, code=code, options=options)


@later
def workbook(path, rows):
    """A workbook of one sheet."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)


def numbers(name, given, *texts):
    """Texts that are no numbers, in both coordinate columns in turn."""
    variants = [
        {"content": table(line.format(text)), "told": f"column '{column}'"}
        for column, line in (("lon", '"{}",2.5'), ("lat", '1.5,"{}"'))
        for text in texts
    ]
    return row_of(name, given, variants, code=8)


@later
def sql(path, script):
    """A change of a database by hand."""
    with closing(sqlite3.connect(path)) as file:
        file.executescript(script)


@later
def with_ledger(path, change):
    """Good data, and a ledger beside it with budgets for rows and for users, then changed."""
    path.write_text(users("u"))
    ledger = Ledger.create(path.with_name("city.ledger"))
    ledger.register("rows", "1")
    ledger.register("people", "1", unit="user", columns=Columns(user="user"))
    ledger.register("weekly", 1, delta="1e-7")
    change(ledger.path)


def unpaid(name, given, told, *options, code=9, dataset="rows", change=lambda path: None):
    """A build that its ledger does not pay."""
    paid = f"--ledger city.ledger --dataset {dataset}"
    options = [f"{paid} {each}" for each in options or [""]]
    return wrong(name, given, told, *options, code=code, content=with_ledger(change))


@later
def with_release(path, name, content):
    """A release of the world, and what is asked beside it."""
    domain = psd.Domain(bounds=(-180, -90, 180, 90))
    counts = np.arange(64)
    made = psd.Release.from_counts(
        psd.decompositions.grid_tree(domain, 8), counts, 1.0, domain=domain
    )
    as_drawn(made).save(path)
    path.with_name(name).write_text(content)


def of_release(command, *words, content=None, **more):
    """Command lines of a release of the world; taken where they have no words of a refusal."""
    content = content or with_release("none", "")
    more = {"command": command, "input": "world.psd.parquet", "content": content, **more}
    return wrong(*words, **{"overwrite": command in ("query", "export"), **more})


def exported(*words, command="export", **more):
    return of_release(command, *words, **more)


unasked = partial(of_release, "query")


def answered(name, given, *options, **more):
    return of_release("query", name, given, "", *options, code=0, **more)


def wkt(*places, kind="POLYGON"):
    """WKT of a ring."""
    return f"{kind} (({', '.join(' '.join(map(str, place)) for place in places)}))"


def circle(vertices):
    """WKT of a regular polygon, closed."""
    angle = np.linspace(0, 2 * np.pi, vertices)[:-1]
    places = np.round(50 * np.column_stack([np.cos(angle), np.sin(angle)]), 15).tolist()
    return wkt(*places, places[0])


MOMENTS = table(
    "126.98,37.57,u,2024-02-29 23:30:00",
    "-0.12,51.5,u,2024-03-01 00:30:00",
    "1.5,2.5,u,2024-03-01",
    "1.5,2.5,v,2024-03-01T09:00:00+09:00",
    header="lon,lat,user,seen_at",
)
DAY = "--per day --time seen_at --time-zone Asia/Seoul"
SLICED = "--time seen_at --time-zone Asia/Seoul --slices 2024-02-29..2024-03-01"
SQUARE = polygons(ring(0, 0, 9, 9))

# Options of a build with regions, in place of those of a quadtree.
IN_REGIONS = "--bounds 0 0 9 9 --method none --set total_share=0.02 --regions"

BOX, EUROPE = ring(-10, 0, 140, 60), ring(-10, 35, 30, 60)
BOW = [[0, 0], [40, 40], [40, 0], [0, 40], [0, 0]]
RING = ring(0, 0, 40, 40)
HOLE = "(0 0, 40 0, 40 40, 0 40, 0 0), (10 10, 10 20, 20 20, 20 10, 10 10)"
WKT = "--polygons p.wkt --polygons-crs EPSG:4326"

PLACE = {"type": "Feature", "properties": {"note": SECRET},
    "geometry": {"type": "Point", "coordinates": [1.5, 2.5]}}  # fmt: skip

STREET = {**PLACE, "geometry": {"type": "LineString", "coordinates": [[1, 2], [3, 4]]}}


def features(*values, start=""):
    """GeoJSON with a feature on each line."""
    return "".join(f"{start}{json.dumps(value)}\n" for value in values)


def xml(element):
    """XML with an element and a secret in it."""
    head = '<?xml version="1.0"?>\n<!-- tracks -->\n'
    return f'{head}<{element} version="1.1"><note>{SECRET}</note></{element}>\n'


# fmt: off
FILE = (
    unread("C01-missing", "no such file", "does not exist", None),
    unread("C02-folder", "a folder without files", "holds no files to read", Path.mkdir),
    kept("C02-parts", "a folder of two CSV files", 6, parts, input="visits"),
    unread("C03-line-ends", "line ends, or a byte order mark, alone", "is empty", "\n\n", "\ufeff"),
    unread("C03-blank-first", "a blank line before the names, also after a mark, also with CR",
        "first line", "\n" + GOOD, "\ufeff\n" + GOOD, ("\n" + GOOD).replace("\n", "\r")),
    kept("C04-header-only", "column names and no row, with or without a line end: noise alone", 0,
        table(), table().strip()),
    kept("C05-one-row", "one row, with or without a line end", 1, table("1.5,2.5"),
        table("1.5,2.5").strip()),
    unread("C06-one-number", "other names, one of them a number", "--x NAME",
        table("1.5,2.5", header="2024,place")),
    kept("C07-two-others", "two columns of another name", 1,
        table("1.5,2.5,", header="lon,lat,note")),
    kept("C08-case", "`LON` for lon; the usual pair longitude and latitude", 1,
        table("1.5,2.5", header="LON,LAT"), table("1.5,2.5", header="Longitude,Latitude")),
    unread("C08-closest", "another name, in a first line of names alone", "did you mean 'latt'?",
        table("1.5,2.5", header="lon,latt"), **NAMED),
    unread("C08-record", "a first line that may be a record", "name it by --x NAME",
        f"u17,2015-12-21,{SECRET},2\n" * 2),
    kept("C08-named", "other names, told", 1, table("1.5,2.5", header="a,b"),
        options="--x a --y b"),
    kept("C09-mark", "UTF-8 with a byte order mark", 3, "\ufeff" + GOOD),
    kept("C09-mark-quotes", "the same and quoted names", 1, '\ufeff"lon","lat"\n1.5,2.5\n'),
    unread("C09-later", "a mark within the file, of files joined", "column 'lon'",
        GOOD + "\ufeff" + GOOD),
    kept("C10-utf-16", "UTF-16 with its mark", 3, GOOD.encode("utf-16")),
    unread("C10-no-mark", "UTF-16 without a mark", "CSV in UTF-8", GOOD.encode("utf-16-le")),
    kept("C11-unread", "CP949 in a column that is not read", 1,
        table("1.5,2.5,김", header="lon,lat,b").encode("cp949")),
    *(kept(f"C12-{end}", f"users in Windows-1252, stated as `{end}`", 1,
        users("\u20ac").encode("cp1252"), options=f"{USERS} --encoding {end}")
        for end in ("windows-1252", "cp1252", "latin-1")),
    unread("C13-mixed", "UTF-8, then CP949", "not in UTF-8",
        users("김").encode() + "김,1,2,\n".encode("cp949"), options=USERS),
    kept("C14-crlf", "lines end in CR LF, or in CR", 3, GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", "\r")),
    kept("C15-semicolon", "fields separated by `;`, or by tabs", 3, GOOD.replace(",", ";"),
        GOOD.replace(",", "\t")),
    kept("C15-stated", "by bars, stated", 3, GOOD.replace(",", "|"), options="--delimiter |"),
    kept("C15-quoted", "by `;`, names in quotes", 1, '"lon";"lat"\n1;2\n'),
    kept("C15-sep-skipped", "the same, left out", 3, "sep=;\n" + GOOD.replace(",", ";"),
        options="--skip-rows 1"),
    unread("C15-mixed", "a row separated otherwise than the names",
        "as many fields as the header line", f"lon;lat\n{SECRET},2\n"),
    unread("C16-quoted", "decimal comma in quotes", "without decimal comma",
        table('"126,98","37,57"')),
    kept("C16-stated", "decimal comma, stated", 1, "lon;lat\n126,98;37,57\n",
        options="--decimal ,"),
    unread("C16-degrees", "degrees, minutes and seconds", "convert them to decimal degrees",
        table('"126\u00b058\'41""E",37\u00b034')),
    unread("C16-bare", "decimal comma", "malformed", f"lon,lat\n126,98,37,57\n{SECRET},2\n"),
    unread("C17-short", "a row with a field less, or more", "as many fields",
        GOOD + f"{SECRET},2\n", GOOD + f"1,2,{SECRET},4\n"),
    unread("C18-header", "the same among the names", "quote that is not closed",
        f'lon,lat,"note\n1,2,{SECRET}\n'),
    kept("C18-quoted", "commas, quotes and line ends within quotes", 1,
        table('1.5,2.5,"a, ""b""\nc"', header="lon,lat,b")),
    kept("C19-long-field", "a field of 200,000 characters", 1,
        table("1.5,2.5," + "a" * 200_000, header="lon,lat,b")),
    unread("C19-long-row", "a row of 3 MB", "row of more than 2 MB",
        table("1.5,2.5," + "a" * 3_000_000, header="lon,lat,b")),
    unread("C19-long-name", "a column name of 200,000 characters", "too long",
        table(header="lon,lat," + "a" * 200_000)),
    unread("C20-header", "NUL among the names", "UTF-8 text", table(header="lon,lat\0")),
    unread("C20-number", "NUL in a number", "plain decimal numbers", table("1.5\0,2.5")),
    unread("C20-user", "NUL in a user id", "NUL", users("a\0"), options=USERS),
    unread("C20-block", "a block of NUL", "malformed", GOOD + "\0" * 512),
    kept("C20-unread", "NUL in a column that is not read", 1,
        table("1.5,2.5,\0", header="lon,lat,b")),
    kept("C21-large", "3,000,000 rows, in less than 700 MB of memory", 3_000_000, many,
        megabytes=700, deep=True),
    kept("C22-gzip", "CSV compressed by gzip; plain CSV that is named .gz", 3,
        gzip.compress(GOOD.encode()), GOOD, input="points.csv.gz"),
    unread("C22-bomb", "100,000 bytes that gzip makes to 100 MB", "times its size", bomb,
        input="points.csv.gz"),
    unread("C22-bzip2", "CSV compressed by bzip2", "decompress it first",
        bz2.compress(GOOD.encode())),
    unread("C23-grows", "the file grows while it is read", "changed while it was read", GOOD,
        patch=meanwhile),
    unread("C24-pipe", "a named pipe, or a socket", "a regular file", os.mkfifo, bound_socket),
    unread("C24-stdin", "`-` for standard input that is empty", "standard input", None, input="-"),
    kept("C25-link", "a symbolic link to a file elsewhere", 3, linked),
    unread("C25-dangling", "a symbolic link to nothing", "does not exist",
        lambda path: path.symlink_to("nowhere")),
    unread("C25-twice", "a file and a link to it", "twice", linked, options="elsewhere.csv"),
    unread("C26-truncated", "the last row ends in its first field", "malformed", GOOD + "1.2"),
    unread("C26-parquet", "a Parquet file that ends early", "read as Parquet", truncated,
        input="points.parquet"),
    kept("C27-commas", "a comma after the last field of each row", 2,
        "lon,lat\n1.5,2.5,\n3.5,4.5,\n"),
    kept("C27-blank", "blank lines", 3, GOOD.replace("\n", "\n\n")),
    unread("C27-comment-first", "a comment line before the names", "in the first line",
        f"# {SECRET}\n" + GOOD),
    unread("C28-xls", "an old workbook", "a workbook; save it as CSV",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + GOOD.encode()),
    unread("C28-parquet", "a Parquet file", "a Parquet file; name it .parquet",
        b"PAR1\x15\x04" + GOOD.encode()),
    unread("C28-geopackage", "a GeoPackage", "a GeoPackage", b"SQLite format 3\0" + GOOD.encode()),
    *(unread(f"C28-{end}", given, told, text, input=f"points.{end}")
        for end, given, told, text in (
            ("gpx", "GPX", "got GPX; save its points as GeoPackage", xml("gpx")),
            ("kml", "KML", "got KML; save its points as GeoPackage", xml("kml")),
            ("tcx", "TCX", "got TCX; save its points as CSV", xml("TrainingCenterDatabase")),
            ("kmz", "KMZ", "points of KMZ as GeoPackage", b"PK\x03\x04\x14" + b"\0" * 9),
            ("gml", "other XML", "got XML", xml("gml:FeatureCollection")),
            ("txt", "a web page", "got a web page", f"<!DOCTYPE html>\n<html>{SECRET}</html>\n"),
            ("csv", "GeoJSON that is named .csv", "name GeoJSON .geojson", features(PLACE)),
        )),
    kept("C29-title", "a title above the names, stated", 3, "Stops, \"all\n\n" + GOOD,
        options="--skip-rows 2"),
    kept("C30-wkt", "points in WKT", 1, table("POINT (1.5 2.5)", "POINT EMPTY", header="geom"),
        options="--wkt geom"),
    kept("C30-ewkt", "points in EWKT and in hexadecimal WKB", 3, table("SRID=4326;POINT(1.5 2.5)",
        shapely.Point(1.5, 2.5).wkb_hex, "0101000020E61000000000000000000000" + "0" * 16,
        header="geom"), options="--wkt geom"),
    unread("C30-srid", "EWKT, or hexadecimal WKB, of another CRS", "or with SRID=4326",
        table("SRID=3857;POINT(1.5 2.5)", header="geom"),
        table("0101000020110F00000000000000000000" + "0" * 16, header="geom"),
        options="--wkt geom", **NAMED),
    wrong("C30-columns", "WKT and columns of coordinates",
        "--x and --y must be left out with --wkt", "--wkt a --x lon"),
    unread("C30-line", "a line in WKT, or a number where WKT is stated", "must hold points in WKT",
        table(f'"LINESTRING (1 2, {SECRET} 3)"', header="geom"), table(SECRET, header="geom"),
        options="--wkt geom", **NAMED),
    kept("C31-workbook", "a workbook", 1, workbook([["lon", "lat"], [1.5, "2.5"]]),
        input="points.xlsx"),
    unread("C31-text", "text in a workbook", "plain decimal numbers",
        workbook([["lon", "lat"], [SECRET + "E", 2]]), input="points.xlsx"),
    kept("C32-crs", "degrees, and a release in metres; also a record that is not reached", 1,
        table("126.98,37.57"), table("126.98,37.57", "0,1e30"),
        options=f"--input-crs EPSG:4326 {METRES}"),
    unread("C33-https", "an address `https://`",
        "https:// addresses are not read; download the file", None,
        input="https://example.org/visits.csv"),
    unread("C33-password", "an address `s3://` with a password",
        "must have no user and no password", None, input="s3://key:secret@city/visits.csv"),
    kept("C34-lines", "GeoJSON with a feature on each line, or after each separator", 2,
        features(PLACE, PLACE), features(PLACE, PLACE, start="\x1e"), input="points.geojsonl"),
    kept("C34-null", "a feature without a geometry among them: left out", 1,
        features(PLACE, {**PLACE, "geometry": None}), input="points.ndjson"),
    unread("C34-torn", "a line that is no feature, at the end or in the middle",
        "must hold one feature of GeoJSON on each line",
        features(PLACE, PLACE)[:-40], features(PLACE) + SECRET + "\n" + features(PLACE, PLACE),
        input="points.geojsonl"),
    unread("C34-line", "a line in place of a point", "must hold points",
        partial(Path.write_text, data=features(PLACE, STREET)), input="points.geojsonl"),
)
VALUES = (
    kept("V01-nan", "`NaN`, `nan`, `-nan`: left out", 1, table("NaN,1", "1,nan", "-nan,1",
        "1.5,2.5")),
    numbers("V02-infinite", "`inf`, `-Infinity` or `1e400`", "inf", "-Infinity", "1e400"),
    numbers("V03-digits", "`1_00.5`, or full-width or Arabic digits", "1_00.5",
        "\uff11\uff12\uff17.\uff10", "\u0661\u0662\u0667.\u0665"),
    numbers("V04-minus", "the minus sign U+2212", "\u221212.5"),
    kept("V05-missing", "empty, `NA`, `null`, `-`, `\\N`: left out", 1,
        table(",1", "NA,1", "1,null", "-,-", "\\N,1", "1.5,2.5")),
    kept("V05-all-missing", "no row with coordinates", 0, table(",", "NA,1")),
    numbers("V05-spreadsheet", "`#N/A`", "#N/A"),
    numbers("V06-hex", "`0x10`", "0x10"),
    kept("V07-spaces", "spaces and tabs around numbers", 1, table(" 1.5 ,\t2.5")),
    numbers("V07-no-break", "a no-break space, or `1 027`", "\u00a012.5", "1 027"),
    kept("V08-outside", "latitude 91.25, or longitude 181.75: left out", 0, table("1.5,91.25"),
        table("181.75,2.5")),
    kept("V09-one-row", "one row of three swapped, both in range: left out", 2,
        table("51.55,-0.125", "-0.125,51.55", "0.25,51.5"), options=LONDON),
    numbers("V10-degrees", "degrees and minutes, or `127E`", "37°33'", "127E"),
    kept("V11-metres", "metres (EPSG:5179) given as degrees: left out", 0,
        table("953898.25,1952028.75"), options=KOREA),
    kept("V11-told", "metres, told so", 1, table("953898.25,1952028.75"), options=METRES),
    kept("V12-edges", "edges, corners and -0.0 of the domain", 6,
        table("0,0", "2,2", "0,2", "2,0", "1,0", "-0.0,-0.0"), options="--bounds 0 0 2 2"),
    kept("V12-beyond", "one unit in the last place beyond: left out", 1,
        table("2,2", "2.0000000000000004,2"), options="--bounds 0 0 2 2"),
    kept("V13-date-line", "longitudes 180 and -180", 3, table("180,0", "-180,0", "180.0,1")),
    kept("V14-poles", "latitudes 90 and -90 at any longitude", 4,
        table("0,90", "123.5,90", "0,-90", "-180,-90")),
    wrong("V15-antimeridian", "bounds from 170 to -170", "split in two",
        "--bounds 170 -20 -170 20", code=3),
    allowed("V16-one-point", "all rows at one point, quadtree or grid", "", "--method grid",
        content=table(*["1.5,2.5"] * 500), rows=500),
    kept("V17-outside", "all rows outside the bounds: left out", 0, GOOD,
        options="--bounds 60 60 70 70"),
    kept("V18-duplicates", "equal rows", 6, table(*PLACES, *PLACES)),
    kept("V19-long", "numbers of 400 digits, most of them decimals; `1e-400`, which is 0", 1,
        table("1." + "25" * 200 + ",2.5"), table("1e-400,2.5")),
    numbers("V19-digits", "400 digits before the point, or `1e15000`", "9" * 400, "1e15000"),
    unread("V20-empty", "a user id that is empty, of spaces, or `null`", "have no user id",
        users("u", ""), users("u", "  "), users("u", "null"), options=USERS),
    unread("V20-10-mb", "a user id of 10 MB", "row of more than 2 MB", users("u" * 10**7),
        options=USERS),
    kept("V20-emoji", "emoji as user ids: three rows of one, one of another", 3,
        users(*"😀😀😀", "😎"), options=USERS),
    kept("V20-unicode", "the same letter composed and decomposed: one user", 2,
        users(*["\u00e9"] * 3, *["e\u0301"] * 3), options=USERS),
    kept("V20-code", "`=cmd()` and `</script>`, 007 and 7: texts like any other, two users", 4,
        users(*["=cmd()"] * 3, *["</script>"] * 3), users(*["007"] * 3, *["7"] * 3), options=USERS),
    kept("V20-na", "`NA` as a user id: text like any other", 3, users(*["NA"] * 3, "u"),
        options=USERS),
    kept("V21-one-user", "all rows of one user", 2, users(*["u"] * 300), options=USERS),
    kept("V22-own-users", "every row of its own user", 300, users(*map(str, range(300))),
        options=USERS),
    kept("V23-sorted", "rows sorted by place", 500,
        table(*(f"{i / 10},{i / 20}" for i in range(500)))),
)
PARAMETERS = (
    wrong("P01-below", "epsilon `0` or `-1`", "must be above 0", *valued("--epsilon", "0 -1")),
    wrong("P01-text", "epsilon `nan`, `inf`, `abc`, `0,5`, `1/3`, `1_0`, full-width, or empty",
        "must be a decimal number", *valued("--epsilon", "nan inf abc 0,5 1/3 1_0 \uff11 ''")),
    wrong("P01-tiny", "epsilon `1e-400` or `0.1234567891`", "at most nine decimals",
        *valued("--epsilon", "1e-400 0.1234567891")),
    wrong("P01-huge", "", "at most 1,000", "--epsilon 1e9"),
    allowed("P01-range", "", *valued("--epsilon", "0.123456789 1e-9 1000")),
    wrong("P02-overspent", "more than what is left: a method that asks for 1e-9 above epsilon",
        "spend more than epsilon 1", "", code=4, patch=overspend),
    unpaid("P02-ledger", "more than what is left of the budget of a ledger",
        "epsilon 1 left, and this costs 1.000000001", "--epsilon 1.000000001", code=4),
    allowed("P03-all-of-it", "exactly what is left: three levels that ask for 0.1 of 0.3",
        "--epsilon 0.3 --set budget=uniform --set height=2"),
    kept("P03-ledger", "exactly what is left of the budget of a ledger", 1,
        with_ledger(lambda path: None), options="--ledger city.ledger --dataset rows"),
    wrong("P04-share", "grid, `total_share` of `1`, `1.5` or `-0.1`", "must be in [0, 1)",
        *valued(f"{GRID} total_share=", "1 1.5 -0.1", "")),
    allowed("P04-taken", "", f"{GRID} total_share=0 --set size=3",
        f"{GRID} total_share=0.999999999"),
    allowed("P05-low", "", "--set height=0", "--set height=1", f"{GRID} size=1"),
    wrong("P05-underscore", "quadtree, `height=1_0` or in full-width digits; grid, `size=1e9`",
        "must be an integer", "--set height=1_0", "--set height=\uff18", f"{GRID} size=1e9"),
    wrong("P05-cells", "", "must be between 1 and 4096", f"{GRID} size=0",
        f"{GRID} size=1000000000"),
    wrong("P06-reversed-x", "west above east", "west below east, got 4.0", "--bounds 4 -4 -4 4",
        code=3),
    wrong("P06-nan", "`nan` or `1e400`", "must be finite", "--bounds nan -4 4 4",
        "--bounds -4 -4 1e400 4", code=3),
    kept("P06-small", "bounds of a metre", 1, table("126.980001,37.570001"),
        options="--bounds 126.98 37.57 126.98001 37.57001"),
    wrong("P07-range", "`--max-contributions` of `0`, `-1` or `1000000001`",
        "must be between 1 and", *valued("--user user --max-contributions", "0 -1 1000000001"),
        content=users("u")),
    wrong("P07-text", "the same, `1e9`, `1_0`, full-width or `1.5`", "must be a whole number",
        *valued("--user user --max-contributions", "1e9 1_0 \uff11 1.5"), content=users("u")),
    kept("P07-largest", "`--max-contributions 1000000000`", 2, users("u", "u"),
        options="--user user --max-contributions 1000000000"),
    wrong("P08-method", "", "'{}' is not one of", "--method kd", "--method Quadtree"),
    wrong("P08-option", "a misspelt option", "No such option", "--epsilom 2"),
    wrong("P08-key-twice", "a setting given twice", "got 2 times",
        "--set height=1 --set height=2", "--set workload=small --set workload=tiny"),
    allowed("P08-workload", "", "--set workload=huge", "--set workload=tiny --method grid"),
    kept("P08-workload-boxes", "`--set workload` with a box that reaches beyond the bounds", 3,
        beside("boxes.csv", "west,south,east,north\n-900,-9,9,9\n"),
        options="--set workload=boxes.csv"),
    wrong("P08-workload-missing", "`--set workload` with a file that is missing", "does not exist",
        "--set workload=no.csv", code=8),
    *(
        unread(f"P08-workload-{end}", f"`--set workload` with {given}", told,
            beside("boxes.csv", boxes), code=code, options="--set workload=boxes.csv")
        for end, given, boxes, code, told in (
            ("column", "a file of other columns", "west,south\n1,2\n", 8, "no column east"),
            ("text", "text for a number", "west,south,east,north\n1,2,x,4\n", 8,
                "line 2: east is not a finite number"),
        )
    ),
    wrong("P08-workload-grid", "`--set workload` of larger boxes with grid", "workload",
        "--set workload=small --method grid"),
    unread("P08-workload-output", "the release is the file of boxes, with `--overwrite`",
        "read as an input", beside("boxes.csv", ""), code=6,
        options="--set workload=boxes.csv -o boxes.csv"),
    wrong("P09-exists", "the release exists", "exists", "", code=6, overwrite=False),
    allowed("P09-overwrite", "the release exists, with `--overwrite`", ""),
    wrong("P09-no-folder", "the release in a folder that is missing", "does not exist",
        "-o nowhere/r.psd.parquet", code=6),
    wrong("P09-input", "the release is the input, with `--overwrite`", "read as an input",
        f"-o {INPUT}", code=6),
    wrong("P10-seed", "`--seed`, which does not exist", "No such option", "--seed 1"),
    wrong("P11-unknown", "an unknown CRS, or an empty one", "a coordinate reference system",
        "--crs EPSG:0", "--crs ''", code=3),
    wrong("P11-height", "a CRS of heights", "coordinates x and y", "--crs EPSG:5773", code=3),
    wrong("P11-geocentric", "a geocentric CRS", "from the centre of the earth",
        "--crs EPSG:4978", "--input-crs EPSG:4978", code=3),
    wrong("P24-long", "`--coordinate-resolution` of 17 decimals", "at most 15 digits",
        f"{EAST} --coordinate-resolution 0.00000000000000001", code=3),
    wrong("P24-values", "the same, larger than the bounds, or of 2^30 values and more; also of the "
        "whole area of use, with private bounds", "1 to 2^30 values",
        *valued(f"{EAST} --coordinate-resolution", "500 0.00000001"),
        "--bounds private --coordinate-resolution 0.0000001", code=3),
    kept("P24-kept", "`--coordinate-resolution 0.5`, and rows beside its multiples", 2,
        table("1.5,2.5", "1.7,2.2"), options="--bounds 0 0 4 4 --coordinate-resolution 0.5"),
    kept("P24-outside", "rows that are outside by less than half a step: left out", 1,
        table("1.5,2.5", "4.1,2", "-0.1,2"),
        options="--bounds 0 0 4 4 --coordinate-resolution 0.5"),
    wrong("P25-long", "`--min-cell` of 7 decimals", "at most 6 decimals",
        f"{EAST} --min-cell 0.0000001", code=3),
    wrong("P25-angles", "`--min-cell` with a local CRS without a unit of length",
        "without a unit of length",
        """--crs 'LOCAL_CS["x",UNIT["degree",0.0174532925199433]]' --bounds 100 30 140 50 """
        "--min-cell 5", code=3),
    kept("P25-kept", "`--min-cell 1000`: cells are larger, and no row is left out", 2,
        table("1.5,2.5", "1.7,2.2"), options="--bounds 0 0 4 4 --min-cell 1000"),
    *(
        wrong(f"P27-{end}", f"`--about` with {given}", told, f"--about {text}")
        for end, given, told, text in (
            ("empty", "a key without a value", "must be FILE or KEY=VALUE", "title="),
            ("twice", "a key twice", "--about title must be given once",
                "title=a --about title=b"),
            ("records", "a file of records", "input of records", INPUT),
        )
    ),
    wrong("P27-missing", "`--about` with a file that does not exist",
        "does not exist or is not UTF-8 text", "--about none.toml", code=8),
    allowed("P27-markup", "`--about` with a title of HTML: a text like any other",
        "--about title='<script>'"),
    allowed("P28-ids", "a column that is named like an id, without `--user`: a warning", ""),
)
UNITS = (
    kept("U01-day", "two rows of each user and day", 4, MOMENTS, options=f"{USERS} {DAY}"),
    wrong("U01-hour", "`--per hour`", "--per", f"{USERS} --per hour --time seen_at",
        content=MOMENTS),
    wrong("U01-no-column", "`--per day` without `--time`", "--time must name",
        f"{USERS} --per day", content=MOMENTS),
    kept("U01-forms", "times in UTC or GMT, a leap second, and 24:00", 6,
        table(*(f"1.5,2.5,{user},{time}" for user, time in enumerate((
            "2024-02-29 15:00:00 UTC", "2024-02-29T15:00:00Z", "2024-02-29 15:00 GMT",
            "2024-03-01T00:00+09:00[Asia/Seoul]", "2024-02-29T23:59:60Z", "2024-02-29 24:00"))),
            header="lon,lat,user,seen_at"), options=f"{USERS} {DAY}"),
    unread("U01-other-forms", "times with am or pm, seconds since 1970, another name of a zone, "
        "a minute after 24:00, or a second 60 at noon", "not a time in ISO 8601",
        *(table(f"1.5,2.5,u,{time}", header="lon,lat,user,seen_at") for time in (
            "2024-02-29 03:00 PM", "1709218800", "2024-02-29 15:00 KST", "2024-02-29 24:01",
            "2024-02-29 12:30:60")),
        options=f"{USERS} {DAY}", **NAMED),
    unread("U01-no-time", "a row without a time", "records have no time",
        table("1.5,2.5,u,2024-03-01", "1.5,2.5,u,", header="lon,lat,user,seen_at"),
        options=f"{USERS} {DAY}"),
    kept("U02-users", "`--count users`: all rows of a user", 3, users("u", "u", "u"),
        options="--user user --count users"),
    wrong("U02-bound", "`--count users` with a bound", "--max-contributions must be left out",
        f"{USERS} --count users", content=users("u")),
    wrong("U02-day", "`--count users` by day", "--per must be left out",
        f"--user user --count users {DAY}", content=MOMENTS),
    wrong("U02-no-user", "`--count users`, or a bound to be chosen, without `--user`",
        "--user must name", "--count users", "--max-contributions auto"),
    kept("U03-auto", "a bound that is chosen; every row of its own user", 3, users("u", "v", "w"),
        options="--user user --max-contributions auto"),
    wrong("U03-key", "a setting that does not exist", "--choice-share",
        "--user user --max-contributions auto --choice-shore 0.1", content=users("u")),
    *(
        wrong(f"U03-{name}", f"`--max-contributions {settings}`", told,
            f"--user user --max-contributions {settings}", content=users("u"))
        for name, settings, told in (
            ("share-0", "auto --choice-share 0", "--choice-share must be above 0"),
            ("limit", "auto --choice-limit 0", "--choice-limit must be between 1 and"),
            ("twice", "auto --choice-share 0.1 --choice-share 0.2",
                "--choice-share must be given once, got 2 times"),
            ("number", "4 --choice-share 0.1", "must be given with --max-contributions auto"),
            ("old", "auto:share=0.1", "is now --max-contributions auto with --choice-share"),
        )
    ),
    allowed("U04-area", "", "--bounds area-of-use", "--bounds -180,-90,180,90"),
    wrong("U04-word", "a word that is no kind of bounds, or three numbers with commas",
        "a file of polygons, area-of-use or private, got", "--bounds everywhere",
        "--bounds 0,0,9"),
    kept("U04-crs", "bounds in another CRS than the release", 1, table("126.98,37.57"), options=
        "--crs EPSG:5179 --input-crs EPSG:4326 --bounds=126,37,128,38 --bounds-crs EPSG:4326"),
    kept("U04-file", "the bounds of public polygons", 1, beside("b.geojson", SQUARE),
        options="--bounds b.geojson"),
    wrong("U04-order", "numbers with commas in another order", "west below east",
        "--bounds 9,0,0,9", code=3),
    wrong("U04-no-crs", "a CRS of the bounds that does not exist",
        "--bounds-crs must be a coordinate reference", "--bounds=0,0,9,9 --bounds-crs EPSG:0",
        code=3),
    wrong("U04-no-numbers", "a CRS of bounds that are no numbers", "with --bounds of four numbers",
        "--bounds private --bounds-crs EPSG:4326", "--bounds b.geojson --bounds-crs EPSG:4326"),
    wrong("U04-far", "bounds beyond where the CRS of the release is used", "bounds",
        "--crs EPSG:5179 --bounds=0,-89,1,-88 --bounds-crs EPSG:4326", code=3),
    wrong("U04-metres", "degrees as bounds of a CRS in metres",
        "if they are degrees, give --bounds-crs EPSG:4326",
        "--crs EPSG:27700 --bounds -0.5,51.3,0.3,51.7", code=3),
    wrong("U04-no-file", "no such file of polygons, of the bounds or of a boundary",
        "does not exist", "--bounds b.geojson", "--boundary b.geojson", code=8),
    unread("U04-points", "a file of points for the bounds", "--bounds must hold polygons only",
        beside("b.geojson", POINT), code=2, options="--bounds b.geojson"),
    unread("U04-output", "the file of the bounds is the output, with `--overwrite`",
        "read as an input", beside("r.geojson", SQUARE), code=6,
        options="--bounds r.geojson -o r.geojson"),
    wrong("U04-numbers", "a word among the bounds", "'east' is not a number",
        "--bounds 0 0 east 9"),
    unread("U04-stdin", "private bounds of standard input", "twice", None,
        options="--bounds private --bounds-share 0.1", input="-"),
    unread("U04-covariate", "private bounds and a covariate", "must be public with covariate",
        beside("land.geojson", SQUARE), code=2,
        options="--bounds private --bounds-share 0.1 --covariate land.geojson"),
    wrong("U04-area-crs", "the area of use of a CRS without a place on the earth", "area of use",
        """--bounds area-of-use --crs 'LOCAL_CS["mine",UNIT["metre",1]]'""", code=3),
    *(
        wrong(f"U04-{name}", "", told, f"--bounds {settings}")
        for name, settings, told in (
            ("share-0", "private --bounds-share 0", "--bounds-share must be above 0"),
            ("key", "private --bounds-beyound 9", "--bounds-beyond"),
            ("epsilon", "private --bounds-share 0.1 --epsilon 1e-8", "bounds is below 1e-9"),
            ("public", "0,0,9,9 --bounds-share 0.1", "must be given with --bounds private"),
            ("old", "private:share=0.1", "is now --bounds private with --bounds-share"),
        )
    ),
    allowed("U05-box", "a boundary, whose box is the bounds, or within bounds",
        "--boundary b.geojson", "--boundary b.geojson --bounds -180 -90 180 90",
        content=beside("b.geojson", SQUARE), rows=1),
    unread("U05-text", "text that is no vector file", "cannot be read as a vector file",
        beside("b.geojson", "land"), options="--boundary b.geojson"),
    unread("U05-points", "points for polygons", "is not a polygon", beside("b.geojson", POINT),
        code=2, options="--boundary b.geojson --bounds 0 0 9 9"),
    unread("U05-no-crs", "a boundary without a CRS", "no CRS", beside("b.parquet", without_crs),
        code=3, options="--boundary b.parquet"),
    kept("U05-nobody", "a boundary with no row inside", 0,
        beside("b.geojson", polygons(ring(20, 20, 30, 30))), options="--boundary b.geojson"),
    unread("U05-output", "the boundary is the output, with `--overwrite`", "read as an input",
        beside("r.geojson", SQUARE), code=6, options="--boundary r.geojson -o r.geojson"),
    unread("U06-no-crs", "regions without a CRS", "no CRS", beside("r.parquet", without_crs),
        code=3, options=f"{IN_REGIONS} r.parquet --region-id id"),
    wrong("U06-h3", "a resolution that H3 does not have", "from 0 to 15", f"{IN_REGIONS} h3=16"),
    wrong("U06-fine", "a grid of too many cells", "the finest", f"{IN_REGIONS} grid-cells=0.0001"),
    *(
        wrong(f"U08-{name}", f"`--max-per-slice` {given}", told, options, content=MOMENTS)
        for name, given, told, options in (
            ("above", "above `--max-contributions`",
                "--max-per-slice must be at most that of --max-contributions, 2, got 3",
                f"{USERS} {SLICED} --max-per-slice 3"),
            ("zero", "0", "--max-per-slice must be between 1 and",
                f"{USERS} {SLICED} --max-per-slice 0"),
            ("text", "that is no number", "must be a number, got 'one'",
                f"{USERS} {SLICED} --max-per-slice one"),
            ("slices", "without `--slices`", "--slices must be given with --max-per-slice",
                f"{USERS} --max-per-slice 1"),
            ("user", "without `--user`", "--max-per-slice must be given with --user",
                f"{SLICED} --max-per-slice 1"),
            ("per", "with `--per slice`", "--max-per-slice must be left out with",
                f"{USERS} {SLICED} --max-per-slice 1 --per slice"),
            ("day", "with `--per day`", "--max-per-slice must be given with --user",
                f"{USERS} {SLICED} --max-per-slice 1 --per day"),
        )
    ),
    wrong("U09-range", "`--delta` of `0`, `1`, `1e-2` or `-1`",
        "--delta must be above 0 and below 0.001", *valued("--delta", "0 1 1e-2 -1")),
    wrong("U09-text", "`--delta` of `nan`, `1e-400` or `little`", "--delta must be",
        *valued("--delta", "nan 1e-400 little")),
    wrong("U09-digits", "", "--delta must be of at most 15 digits",
        "--delta 1.23456789012345678e-6"),
    wrong("U09-none", "`--noise gaussian` without `--delta`",
        "--delta must be given with --noise gaussian", "--noise gaussian"),
    wrong("U09-law", "a law of noise that does not exist", "'--noise'", "--noise cauchy"),
    wrong("U09-rho", "epsilon and delta whose rho rounds to 0",
        "--delta must allow a rho of at least 1e-12",
        "--noise gaussian --delta 1e-100 --epsilon 1e-9"),
    allowed("U09-single", "`--delta` of a single release, of which Laplace noise spends none",
        "--delta 1e-6", "--delta 1e-6 --noise laplace", "--delta 1e-6 --noise gaussian"),
)
COVARIATES = (
    wrong("K01-missing", "no such covariate, or raster", "does not exist",
        "--covariate land.geojson", "--covariate land.npy", code=8),
    excluded("K01-output", "the covariate is the output, with `--overwrite`", "read as an input",
        polygons(BOX), file="r.geojson", options="-o r.geojson", code=6),
    excluded("K02-text", "text that is no vector file", "as a vector file", "land", code=8),
    excluded("K02-invalid", "a polygon that crosses itself",
        "polygon 2 of the covariate is not valid", polygons(BOX, BOW)),
    excluded("K04-elsewhere", "polygons outside the bounds",
        "the covariate lies outside the bounds", polygons(EUROPE), options=KOREA, code=3),
    excluded("K05-column", "no such column", "one of the covariate (people), got 'Leute'",
        polygons(BOX, people=1), options="--covariate-column Leute"),
    excluded("K05-old", "", "is now --covariate-column", polygons(BOX, people=1),
        file="land.geojson:column=people"),
    excluded("K06-size", "`--covariate land.npy --covariate-size 2000`",
        "--covariate-size must be between 1 and 1024",
        array([1, 1]), file="land.npy", options="--covariate-size 2000"),
    *(
        kept(f"K07-{end}", given, 3, beside(file, content), options=f"--covariate {file}{settings}")
        for end, given, file, settings, content in (
            ("mask", "polygons", "land.geojson", "", polygons(BOX)),
            ("weights", "polygons with weights", "land.geojson", " --covariate-column people",
                polygons(BOX, EUROPE, people=2)),
            ("array", "an array over the bounds", "land.npy", "", array([0, 1], [0, 0])),
            ("grid", "an ASCII grid", "land.asc", " --covariate-size 64",
                with_crs(grid(0, 1, 2, 0), "EPSG:4326")),
        )
    ),
)
METHODS = (
    uncompared("E01-unknown", "`--methods grid,kd`, `Grid`, `grid,`, `all,grid` or an empty text",
        "--methods must be one of", *valued("--methods", "grid,kd Grid grid, all,grid ''")),
    uncompared("E02-text", "`--epsilons 1,abc`, or a comma too many", "must be a decimal number",
        "--epsilons 1,abc", "--epsilons 1,"),
    uncompared("E03-half-a-run", "", "not a whole number", "--runs 1.5"),
    uncompared("E04-part", "a setting without a method, a key or a value", "METHOD.KEY=VALUE",
        *valued("--set", "height=3 quadtree.=3 quadtree.height=")),
    uncompared("E04-other-method", "a setting of a method that is not compared",
        "must name a compared method, got kd-hybrid", "--set kd-hybrid.height=3"),
    uncompared("E04-twice", "a setting given twice", "got 2 times",
        "--set quadtree.height=1 --set quadtree.height=2"),
    uncompared("E05-exists", "the table exists", "exists", "", code=6, overwrite=False),
    uncompared("E05-input", "the table is the input, with `--overwrite`", "read as an input",
        f"-o {INPUT}", code=6),
    uncompared("E05-no-folder", "a picture in a folder that is missing", "does not exist",
        "--plot nowhere/e.png", code=6),
    uncompared("E05-ending", "a picture that ends in .pdf",
        "--plot must end in .png or .svg, got e.pdf", "--plot e.pdf"),
    uncompared("E06-outside", "all rows outside the bounds", "no record lies inside the bounds",
        "--bounds 60 60 70 70", code=8),
)
QUERIES = (
    unasked("Q01-reversed-x", "west above east, or no width", "west below its east",
        "--box 5 0 -5 1", "--box 1 0 1 1"),
    unasked("Q01-reversed-y", "south above north, or no height", "south below its north",
        "--box 0 5 1 -5", "--box 0 1 1 1"),
    unasked("Q01-outside", "outside the bounds, or on their edge", "lies outside the bounds",
        "--box 190 0 200 1", "--box 180 0 181 1"),
    unasked("Q01-nan", "`nan`, `inf` or `1e400`", "must have finite sides", "--box nan 0 1 1",
        "--box 0 0 inf 1", "--box 0 0 1 1e400"),
    answered("Q01-far", "from -1e308 to 1e308: the part inside",
        "--box -1e308 -1e308 1e308 1e308"),
    unasked("Q01-text", "text", "not a number", "--box 0 0 1 x"),
    unasked("Q01-three", "three numbers", "must be followed by W S E N", "--box 0 0 1"),
    unasked("Q01-file", "`nan` in a file of boxes", "west is not a finite number", "--boxes b.csv",
        code=8, content=with_release("b.csv", "west,south,east,north\nnan,0,1,1\n")),
    answered("Q01-semicolons", "a file of boxes with semicolons, capitals and decimal commas",
        "--boxes b.csv", content=with_release("b.csv", "\ufeffWest;South;East;North\n0,5;0;9;9\n")),
    unasked("Q01-overflow-file", "`1e400` in it", "east is not a finite number", "--boxes b.csv",
        code=8, content=with_release("b.csv", "west,south,east,north\n0,0,1e400,1\n")),
    unasked("Q02-box", "a box from 170 to -170",
        "split it into two boxes if it crosses the antimeridian", "--box 170 -20 -170 20"),
    answered("Q02-to-360", "a polygon from 170 to 190: both sides of 180", "--polygons p.geojson",
        content=with_release("p.geojson", polygons(ring(170, -20, 190, 20)))),
    answered("Q02-other-crs", "a polygon in a CRS of the Pacific: cut at 180",
        "--polygons p.wkt --polygons-crs EPSG:3832",
        content=with_release("p.wkt", wkt(*ring(3e6, -1e6, 4e6, 1e6)))),
    *(
        unasked(f"Q03-{name}", given, *told, WKT, content=with_release("p.wkt", shape)) if told
        else answered(f"Q03-{name}", given, WKT, content=with_release("p.wkt", shape))
        for name, given, shape, *told in (
            ("bow-tie", "a polygon that crosses itself", wkt(*BOW), "(Self-intersection[20 20])"),
            ("hole", "a polygon with a hole", f"POLYGON ({HOLE})"),
            ("hole-outside", "a hole outside the polygon",
                f"POLYGON ({HOLE}, (50 50, 50 60, 60 60, 50 50))", "(Hole lies outside shell"),
            ("multi", "two parts", f"MULTIPOLYGON (({HOLE}), ((50 50, 60 50, 60 60, 50 50)))"),
            ("z", "heights, which play no part", wkt(*([*p, 9] for p in RING), kind="POLYGON Z")),
            ("duplicates", "each vertex twice", wkt(*(p for p in RING for _ in range(2)))),
            ("1-mb", "1 MB of WKT", circle(30_000)),
        )
    ),
    unasked("Q03-unclosed-geojson", "a ring that is not closed, GeoJSON", "do not form a closed",
        "--polygons p.geojson", code=8, content=with_release("p.geojson", polygons(RING[:-1]))),
    unasked("Q03-no-crs", "WKT without a CRS", "no CRS", "--polygons p.wkt", code=3,
        content=with_release("p.wkt", wkt(*RING))),
    unasked("Q03-box-crs", "a CRS for a box", "must be given with --polygons",
        "--box 0 0 1 1 --polygons-crs EPSG:4326"),
    answered("Q03-ewkt", "EWKT, which says its CRS", "--polygons p.wkt",
        content=with_release("p.wkt", f"SRID=4326;{wkt(*RING)}")),
    answered("Q03-csv", "CSV with a column wkt", "--polygons p.csv --polygons-crs EPSG:4326",
        content=with_release("p.csv", f'name,wkt\na,"{wkt(*RING)}"\n')),
    unasked("Q03-csv-column", "CSV without it", "no column wkt",
        "--polygons p.csv --polygons-crs EPSG:4326", code=8,
        content=with_release("p.csv", f'name,text\na,"{wkt(*RING)}"\n')),
    unasked("Q04-collections", "200,000 collections in each other", "at most 3 deep, got 200,001",
        WKT, content=with_release("p.wkt", "GEOMETRYCOLLECTION(" * 200_000 + "POINT(1 1)" +
            ")" * 200_000)),
    unasked("Q04-geojson", "GeoJSON with 200,000 brackets", "cannot be read as a vector file",
        "--polygons p.geojson", code=8, content=with_release("p.geojson",
            '{"type": "Polygon", "coordinates": ' + "[" * 200_000 + "]" * 200_000 + "}")),
    unasked("Q05-ending", "`-o a.csv --format gpkg`",
        "-o must end in .gpkg with --format gpkg, got out/a.csv",
        "--box 0 0 1 1 -o out/a.csv --format gpkg"),
    unasked("Q05-unknown", "`-o a.kml`", "name the format with", "--box 0 0 1 1 -o out/a.kml"),
    unasked("Q05-screen", "`--format xlsx` without `-o`",
        "--format xlsx needs a file; name it with -o", "--box 0 0 1 1 -o '' --format xlsx"),
    unasked("Q05-marked", "`--unreliable drop --joint`",
        "--unreliable must be keep with --joint, got drop",
        "--box 0 0 1 1 --box 0 0 2 2 --joint --unreliable drop"),
)
EXPORTS = (
    exported("X02-crs", "a CRS that does not exist",
        "--crs must be a coordinate reference system", "out/m.gpkg --crs EPSG:99999", code=3),
    exported("X02-file", "a CRS that names a file", "--crs must not name files",
        "out/m.gpkg --crs '+proj=longlat +grids=a.gsb'", code=3),
    exported("X02-tiles", "tiles in degrees",
        "--crs must be EPSG:3857, or left out, if output ends in .pmtiles",
        "out/m.pmtiles --crs EPSG:4326"),
    exported("X03-word", "another treatment", "'hide' is not", "out/m.csv --unreliable hide"),
    exported("X03-zero", "a threshold of `0` or `nan`",
        "--threshold must be above 0 and at most 1, got {}",
        *valued("out/m.csv --unreliable drop --threshold", "0 nan")),
    exported("X03-percent", "a threshold of `30`, which is 3,000 %",
        "--threshold must be above 0 and at most 1, got 30; it is a relative error, such as 0.3",
        "out/m.csv --threshold 30"),
    exported("X03-limits", "three limits", "is not one number or two with a comma",
        "out/m.csv --threshold 0.1,0.2,0.3"),
    exported("X04-word", "a band that does not exist", "--band must be one of",
        "out/m.tif --band red", deep=True),
    exported("X04-level", "a level that does not exist",
        "--level must be an integer from 0, the domain, to ", "out/m.gpkg --level 9"),
    exported("X04-level-name", "a level by name", "--level must be a whole number from 0",
        "out/m.gpkg --level ward"),
    exported("X05-time", "`psd info --format stac` without a reference date",
        "about must have a reference_date for an item of STAC", "--format stac", command="info"),
    exported("X05-word", "`psd info` in another standard", "'iso' is not", "--format iso",
        command="info"),
    exported("X06-ending", "`psd plot` to another format", "OUTPUT must end in .png, .svg, .pdf",
        "out/m.jpg", command="plot"),
    exported("X06-kind", "a picture of something else", "--kind must be one of",
        "out/m.png --kind people", command="plot", deep=True),
    exported("X06-dpi", "a picture of 9 points per inch", "--dpi must be 20 to 1200",
        "out/m.png --dpi 9", command="plot"),
    exported("X06-outline", "outlines of a file that does not exist", "o.gpkg",
        "out/m.png --outline o.gpkg", code=8, command="plot", deep=True),
    exported("X07-ending", "`psd map` to a picture", "-o must end in .html", "-o out/m.png",
        command="map"),
    exported("X07-level", "a map page of a level that does not exist",
        "--level must be an integer from 0 to", "-o out/m.html --level 99", command="map"),
    exported("X07-regions", "a map page with regions of no file", "o.gpkg",
        "-o out/m.html --regions o.gpkg", code=8, command="map"),
    exported("X07-crs", "a CRS of regions that are not given",
        "--regions-crs must be given with --regions", "-o out/m.html --regions-crs EPSG:4326",
        command="map"),
    exported("X07-series", "a slice of a release that is no series",
        "--slice must be given with a series", "-o out/m.html --slice 2024-01", command="map"),
    exported("X08-cells", "a folder to publish with an option of tables of cells",
        "--level must be left out with --site", "out/s --site --level 1"),
    exported("X08-twice", "a folder to publish with two releases of one name",
        "must have names of their own, got world twice", "world.psd.parquet out/s --site"),
    exported("X08-parent", "a folder to publish in one that does not exist",
        "folder none does not exist; create it first", "none/s --site", code=6, deep=True),
    exported("X08-work", "a folder to publish that is the working one",
        "folder must not hold the working folder", ". --site", code=6, deep=True),
    exported("X08-file", "a folder to publish that is a file",
        "folder must be a folder, got world.psd.parquet", "world.psd.parquet --site", code=6,
        deep=True),
    exported("X08-several", "several releases without a folder",
        "RELEASE must be one file without --site", "world.psd.parquet out/m.gpkg"),
)
LEDGERS = (
    unpaid("L01-missing", "a ledger that is not there", "does not exist", change=Path.unlink),
    kept("L01-link", "a symbolic link to the ledger", 1,
        with_ledger(lambda path: path.with_name("link").symlink_to(path)),
        options="--ledger link --dataset rows"),
    unpaid("L02-empty", "a ledger of 0 bytes", "is empty",
        change=lambda path: os.truncate(path, 0)),
    unpaid("L03-cut-off", "a ledger that was cut off", "is damaged",
        change=lambda path: os.truncate(path, 5000)),
    unpaid("L05-edited", "an entry that was edited", "entry 2 of the ledger was changed",
        change=sql("DROP TRIGGER kept; UPDATE entry SET time = '' WHERE number = 2")),
    unpaid("L06-later", "a ledger of a later format", "has format 2",
        change=sql("PRAGMA user_version = 2")),
    unpaid("L06-old", "a ledger of the old format 3", "is no fresh budget",
        change=sql("PRAGMA application_id = 0x7073644C; PRAGMA user_version = 3")),
    unpaid("L09-other-delta", "Gaussian noise of another delta than the dataset's",
        "is registered with delta 1e-7, got 1e-6", "--noise gaussian --delta 1e-6",
        dataset="weekly"),
    unpaid("L09-user", "a release per user of a dataset per row", "do not add up", USERS),
)
# fmt: on

CASES = (
    *flat(FILE), *flat(VALUES), *flat(PARAMETERS), *flat(UNITS), *flat(COVARIATES),
    *flat(METHODS), *flat(QUERIES), *flat(LEDGERS), *flat(EXPORTS),
)  # fmt: skip

INTRODUCTION = """# Bad input

This page lists what `psd` does with unusual or wrong files, values and parameters, and when disks,
permissions, processes, ledgers and releases fail. Each row is a test; further wrong values are
tested where they are read. The first letter of a case is its group in the checklist:

| letter | group |
|---|---|
| C | the input file |
| V | a value in it |
| P | a parameter |
| U | the unit of privacy and the area |
| K | a public covariate |
| E | `psd check compare`, which reads files and values as `psd build` does |
| Q | a query |
| F | the file system and the process |
| L | a ledger that has to pay |
| R | a release |
| X | an export |
| D, G | a local campaign: reports and stores, and campaigns |
| S | suggestions of places |
| H | private choices |
| M | the page with a map |

## Input, parameters and queries

Unless the row says otherwise, the command is

- for E: `psd check compare points.csv -o errors.csv --epsilons 1 --methods grid,quadtree --runs 1
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

# Of campaigns, suggestions, choices and streams: command, title, and what is said above the table.
SECTIONS = (
    ("local", "Local campaigns", """
Before each command there are a campaign, two good reports and a store. A refused command leaves no
file behind and has one line on stderr. `psd local collect` takes the good reports in every case;
lines that it refuses are counted and not quoted.
"""),
    ("suggest", "Suggestions", """
Before each command there are a release, its weights, own places and records with user ids. A
refused command leaves no file behind and has one line on stderr.
"""),
    ("choose", "Choices", """
Before each command there are candidates, bids, regions, tariffs and a ledger with a budget of 1;
each command has `--crs EPSG:3857 --epsilon 0.5 --ledger l --dataset bids`. A refused command has
one line on stderr and leaves no file behind.
"""),
    ("stream", "Streams", """
Before each command there are rows, a ledger with a budget of 1, and a stream of the week from
2026-01-05 with its first and third day; a new stream is `b.stream`. A refused command has one line
on stderr, and every file says what it said before.
"""),
)  # fmt: skip

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


def section(command, title, text):
    """A table of commands."""
    from robustness.test_bad_commands import TABLES

    columns = ["case", "given", "command", "exit code", "message contains"]
    columns += ["charges"] if command == "choose" else []
    table = f"\n## {title}\n{text}\n{row(*columns)}{'|---' * len(columns)}|\n"
    for case in TABLES[command].CASES:
        cells = [case.name, case.given, f"`psd {command} {case.args.split()[0]}`", case.code]
        table += row(*cells, case.told, *([case.charges] if command == "choose" else []))
    return table


def page():
    """The tables as Markdown."""
    from robustness.bad_releases import LEFT_OUT, MAPS, NAMES, RELEASES
    from robustness.faults import LEDGERS, PROCESSES

    given = "".join(row(c.name, c.given, fate(c), c.code, c.told) for c in CASES if c.first)
    faults = "".join(map(fault_row, (*PROCESSES, *LEDGERS, *RELEASES, *NAMES, *MAPS)))
    commands = "".join(section(*words) for words in SECTIONS)
    left = "".join(row(*line) for line in LEFT_OUT.items())
    return INTRODUCTION + given + FAULTS + faults + commands + LEFT + left


if __name__ == "__main__":
    print(page(), end="")
