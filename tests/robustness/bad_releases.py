"""Release files that are damaged, foreign or forged, and queries of them."""

import contextlib
import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyproj import CRS

import psd
from psd.errors import ReleaseFormatError
from psd.release.file import KEY, SCHEMA
from robustness.bad_campaigns import NOT_LOCAL
from robustness.bad_input import SECRET
from robustness.commands import later
from robustness.faults import INPUT, OUTPUT, QUERY, TESTS, Elsewhere, Fault, here
from support.cli_runner import Outcome, cli
from support.forged_releases import stamped, with_key_twice


@later
def written(patch, content):
    """Other bytes in place of the release."""
    Path(OUTPUT).write_bytes(content() if callable(content) else content)


@later
def cut(patch, share):
    """The first part of the file."""
    content = Path(OUTPUT).read_bytes()
    Path(OUTPUT).write_bytes(content[: int(len(content) * share)])


def flipped(args):
    """Flip one bit in each of many places in turn, and in the end one of the epsilon."""
    content, release = Path(OUTPUT).read_bytes(), psd.load(OUTPUT)
    for place in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        Path(OUTPUT).write_bytes(damaged)
        with contextlib.suppress(ReleaseFormatError):
            assert psd.load(OUTPUT).digest == release.digest
    Path(OUTPUT).write_bytes(content.replace(b'"epsilon": "1"', b'"epsilon": "3"'))
    return here(args)


@later
def header(patch, change):
    """Another header around the same nodes; a mapping of fields, or the text itself."""
    table = pq.read_table(OUTPUT)
    found = json.loads(table.schema.metadata[KEY])
    text = change if isinstance(change, str) else json.dumps({**found, **change})
    rewrite(table, text.replace('"FIRST"', json.dumps(found)[1:-1]).encode())


@later
def nodes(patch, **columns):
    """Other values in the columns of the nodes: a function of each."""
    table = pq.read_table(OUTPUT)
    for name, change in columns.items():
        values = change(table[name].to_numpy().copy())
        place = table.schema.get_field_index(name)
        table = table.set_column(
            place, SCHEMA.field(name), pa.array(values, SCHEMA.field(name).type)
        )
    rewrite(table, pq.read_schema(OUTPUT).metadata[KEY])


def rewrite(table, text):
    """A file that only its content tells from one of ours."""
    named = pa.Table.from_arrays(table.columns, schema=SCHEMA.with_metadata({KEY: text}))
    pq.write_table(named, OUTPUT, write_page_checksum=True)


def second_header(patch):
    """Another epsilon for those readers that take the last of two headers."""
    own = pq.read_schema(OUTPUT).metadata[KEY]
    other = own.replace(b'"epsilon": "1"', b'"epsilon": "9"')
    content = with_key_twice(Path(OUTPUT).read_bytes(), KEY, other, first=False)
    Path(OUTPUT).write_bytes(content)


def marked_up(patch):
    """Texts that a terminal library would take for the end of a style."""
    table = pq.read_table(OUTPUT)
    found = {**json.loads(table.schema.metadata[KEY]), "library": "[/x]"}
    footer = stamped(table, {KEY: json.dumps(found)})
    pq.write_table(table.replace_schema_metadata(footer), OUTPUT)


@later
def at(values, place, value):
    """An array with one value changed."""
    values[place] = value
    return values


@later
def chain(patch, length):
    """A tree in which each node has one child."""
    head = pq.read_schema(OUTPUT).metadata[KEY]
    row = np.arange(length)
    same = {"x0": 0, "y0": 0, "x1": 2**20, "y1": 2**20, "count": 1, "loss": 1}
    columns = {name: np.full(length, value) for name, value in same.items()}
    columns |= {"parent": row - 1, "level": np.minimum(row, 2**15 - 1)}
    table = pa.table({f.name: pa.array(columns[f.name], f.type) for f in SCHEMA}, schema=SCHEMA)
    rewrite(table, head)


@later
def declared(patch, rows):
    """A footer that says so many rows of so few; 5 and then a number, as Thrift writes them."""
    content = Path(OUTPUT).read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - length : -8]
    forged = footer.replace(b"\x16\x0a", b"\x16" + varint(2 * rows))
    end = len(forged).to_bytes(4, "little") + b"PAR1"
    Path(OUTPUT).write_bytes(content[: -8 - length] + forged + end)
    assert pq.read_metadata(OUTPUT).num_rows == rows


def varint(number):
    """Seven bits to a byte, the last with its highest bit clear."""
    last = [number >> 7 * i & 127 for i in range(10) if number >> 7 * i]
    return bytes([byte | 128 for byte in last[:-1]] + last[-1:])


@later
def private(patch, line):
    """A private artefact where the release was."""
    assert cli(*line.split()).code == 0
    shutil.move("artefact", OUTPUT)


@later
def linked(patch, target):
    """A symbolic link where the release was."""
    shutil.move(OUTPUT, "elsewhere")
    Path(OUTPUT).symlink_to(target)


def queue(patch):
    """A FIFO that nobody writes to."""
    Path(OUTPUT).unlink()
    os.mkfifo(OUTPUT)


SHIFTED = "+proj=utm +zone=31 +ellps=WGS84 +nadgrids=./queue +type=crs"


def waiting(crs):
    """A release in a CRS, and a FIFO beside it that nobody writes to."""
    domain = {"bounds": [0, 0, 4, 4], "crs": crs, "lattice": [2**20, 2**20]}

    def setup(patch):
        os.mkfifo("queue")
        Path("p.wkt").write_text("POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))")
        header({"domain": domain})(patch)

    return setup


def golden(name):
    """A release that an earlier version wrote."""
    return written(lambda: (TESTS / "golden" / name).read_bytes())


class Evil:
    """What a reader of pickles would execute."""

    def __reduce__(self):
        return (os.mkdir, ("executed",))


def not_executed(outcome):
    assert not Path("executed").exists()


@later
def answered(outcome, rows):
    """So many answers."""
    assert outcome.out.count("\n") == 1 + rows


@later
def many_boxes(patch, number):
    """A file of boxes."""
    Path("boxes.csv").write_text("west,south,east,north\n" + "0,0,2,2\n" * number)


def loaded(args):
    """Load in Python, for no argument of a command can hold NUL."""
    try:
        psd.load("out/\0r.psd.parquet")
    except ReleaseFormatError as error:
        return Outcome(5, "", f"psd: error: {error}\n".replace("\0", ""))


def damaged(name, given, setup, told=f"{OUTPUT}: ", **more):
    """A release that is refused."""
    return Fault(name, given, 5, told, more.pop("args", QUERY), setup, **more)


# fmt: off
RELEASES = (
    *(damaged(f"R01-{share:.0%}", f"the first {share:.0%} of the file", cut(share),
        "cannot be read as a release file") for share in (0.01, 0.5, 0.99)),
    damaged("R02-bit", "one bit flipped in the epsilon, and in other places before",
        lambda patch: None, "its content does not match its digest", run=flipped,
        holds="refused, or nothing of the release is another", deep=True),
    damaged("R03-later", "a format of the future", header({"psd_release": 99}), "psd_release 99"),
    damaged("R04-old", "a release of the old format 9", golden("old/about.psd.parquet"),
        "has the old release format 9"),
    damaged("R04-series", "a series of the old format 2", golden("old/days.psd.parquet"),
        "has the old series format 2"),
    damaged("R05-field", "an unknown field", header({"note": SECRET}), "other fields"),
    Fault("R05-markup", "`[/x]` for the version of the library", setup=marked_up,
        args=f"info {OUTPUT}"),
    damaged("R05-missing", "a field that is missing", header('{"psd_release": 1}'), "other fields"),
    damaged("R06-overflow", "`1e400` for an edge of the bounds",
        header('{"FIRST", "domain": {"bounds": [0, 0, 1e400, 4], "crs": "EPSG:4326", '
            '"lattice": [8, 8]}}'), ""),
    damaged("R07-gap", "cells that leave a gap", nodes(x1=at(1, 5))),
    damaged("R08-deep", "nodes below each other 40,000 deep", chain(40_000)),
    damaged("R09-declared", "10^9 nodes in 4,000 bytes", declared(10**9)),
    damaged("R09-many", "2^22 + 1 nodes", declared(2**22 + 1), "at most 4,194,304 nodes"),
    damaged("R10-nested", "brackets 100,000 deep", header("[" * 100_000), "strict JSON"),
    damaged("R11-pickle", "a pickle that makes a folder", written(lambda: pickle.dumps(Evil())),
        "cannot be read as a release file", after=not_executed),
    damaged("R12-tally", "a tally", private(f"tally {INPUT} -o artefact --bounds 0 0 4 4"),
        "is a PRIVATE tally"),
    damaged("R12-ledger", "a ledger", private("ledger create artefact"),
        "is a database, such as the PRIVATE state"),
    damaged("R12-data", "Parquet of points",
        lambda patch: pq.write_table(pa.table({"lon": [1.5], "lat": [2.5]}), OUTPUT),
        "has no psd header"),
    damaged("R13-twice", "a key that is there twice", header('{"FIRST", "epsilon": "1000"}'),
        "strict JSON"),
    damaged("R13-footer", "a second header in the footer", second_header, "a key twice"),
    Fault("R14-link", "a symbolic link to a release", setup=linked("../elsewhere"), args=QUERY),
    damaged("R14-queue", "a FIFO", queue, "is not a file"),
    *(damaged(f"R14-crs-{name}", f"a CRS that names a FIFO, {how}", waiting(crs), "not name files",
        args=f"query {OUTPUT} --polygons p.wkt --polygons-crs EPSG:4326")
        for name, how, crs in (
            ("proj", "in the words of PROJ", SHIFTED),
            ("wkt", "in WKT", CRS(SHIFTED).to_wkt()),
            ("json", "in JSON", CRS(SHIFTED).to_json()),
            ("init", "which is opened when the CRS is read", "+init=./queue:1"),
        )),
)

NAMES = (
    Fault("Q07-up", "`..` in the name of a release: a path like any other",
        args=QUERY.replace("out/", "out/../out/")),
    Fault("Q07-nul", "NUL in it, in Python: no argument can hold it", 5, "does not exist",
        run=loaded, args=QUERY),
    Fault("Q07-windows", "a name that Windows keeps", 5, "does not exist",
        args=QUERY.replace(OUTPUT, "CON")),
    Fault("Q09-batch", "200,000 boxes: no cap, for who asks is who waits",
        args=f"query {OUTPUT} --boxes boxes.csv --format csv", setup=many_boxes(200_000),
        after=answered(200_000), deep=True),
)
PAGE, PARTS = "tests/apps/web/test_map_page.py", "tests/apps/web/test_map_parts.py"
SERVICE = "there is no HTTP service yet"
MAPS = (
    Elsewhere("M01-names", "names of regions that are HTML",
        f"{PAGE}::test_names_of_regions_are_text_and_other_columns_are_left_out", "they are text"),
    Elsewhere("M02-network", "no network",
        "tests/apps/web/test_map_browser.py::"
        "test_the_title_is_text_nothing_is_loaded_and_the_printed_page_has_all",
        "nothing is loaded"),
    Elsewhere("M03-cells", "a million cells",
        f"{PAGE}::test_a_million_cells_are_refused_before_estimates_are_made",
        "refused, with the level that fits"),
    Elsewhere("M04-negative", "noisy counts below 0",
        f"{PARTS}::test_counts_below_0_and_equal_counts_have_classes", "their cells have a class"),
    Elsewhere("M05-equal", "equal counts",
        f"{PARTS}::test_counts_below_0_and_equal_counts_have_classes", "one class"),
    Elsewhere("M06-script", "a title that ends a script",
        f"{PAGE}::test_titles_are_text", "it is text"),
    Elsewhere("M07-turn", "bounds across longitude 180",
        f"{PARTS}::test_coasts_are_where_they_are_in_the_crs_of_the_release",
        "no line runs around the world"),
)
LEFT_OUT = {
    "Q06": f"slow clients: {SERVICE}",
    "Q08": f"a release replaced under requests: {SERVICE}; `psd query` reads the file once, whole",
    "Q10": f"foreign hosts and origins: {SERVICE}",
    "Q11": f"the port: {SERVICE}",
    "Q12": f"the folder of releases: {SERVICE}",
    "Q13": f"methods: {SERVICE}",
    **NOT_LOCAL,
}
# fmt: on
