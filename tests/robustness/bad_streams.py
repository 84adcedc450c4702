"""Wrong options, slices, states and files of streams, and what comes of each."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from psd.ingest.sources import Columns
from psd.ledger.ledger import Ledger
from psd.streams.state import FORMAT
from robustness.commands import file, later, refused, taken
from support.cli_runner import passes

STATE, OUTPUT, INPUT, LEDGER = "city.stream", "city.psd.parquet", "rows.csv", "l"
DAYS = "2026-01-05..2026-01-11"
HOURS = "2026-10-25T01..2026-10-25T03"
PAID = f" --ledger {LEDGER} --dataset days"
TOTALS = " --totals --method grid --set size=2"
USERS = " --user user --max-contributions 7"


def create(more="", slices=DAYS, state="b.stream", output="b.psd.parquet"):
    """A command that creates a stream beside the one that is there."""
    method = "" if "--method" in more else " --method grid"
    epsilon = "" if "--epsilon" in more else " --epsilon 1"
    return (
        f"create {state} -o {output} --bounds 0 0 8 8 --slices {slices} --read time=time"
        f"{epsilon}{method}{more}"
    )


def add(day="2026-01-07", state=STATE, rows=INPUT, more=""):
    """A command that adds a day; 5 and 6 January are there."""
    return f"add {state} {rows} --slice {day}{more}"


def prepare():
    """A stream with its first and third day, rows, and a ledger."""
    rows = [f"1,1,2026-01-{5 + n % 7:02}T12:00:00,u{n % 3}" for n in range(21)]
    Path(INPUT).write_text("\n".join(["lon,lat,time,user", *rows]) + "\n")
    Ledger.create(LEDGER).register("days", 1, columns=Columns(time="time"))
    passes("stream", *create(state=STATE, output=OUTPUT).split())
    passes("stream", *add("2026-01-05").split())
    passes("stream", *add("2026-01-07").split(), "--skip")


@later
def with_database(statement):
    """The state after a statement."""
    with closing(sqlite3.connect(STATE)) as database:
        database.execute(statement)


def cut(path):
    """A file without its second half."""
    return lambda: os.truncate(path, Path(path).stat().st_size // 2)


def other_stream():
    """The series file of another stream, under the name of this one."""
    passes("stream", *create(state="other.stream", output="other.psd.parquet").split())
    passes("stream", *add("2026-01-05", state="other.stream").split())
    Path("other.psd.parquet").replace(OUTPUT)
    Path("other.stream").unlink()


def older_state():
    """The state of before the last slice, beside the series that has it."""
    before = Path(STATE).read_bytes()
    passes("stream", *add("2026-01-08").split())
    Path(STATE).write_bytes(before)


def autumn():
    """A stream of three hours in Berlin, whose clocks show 02:00 to 03:00 twice."""
    zone = " --read time_zone=Europe/Berlin"
    passes("stream", *create(zone, HOURS, state="h.stream", output="h.psd.parquet").split())
    rows = [f"1,1,2026-10-25T{hour}:30:00Z,u" for hour in ("00", "01")]
    Path(INPUT).write_text("\n".join(["lon,lat,time,user", *rows]) + "\n")
    passes("stream", *add("2026-10-25T01", state="h.stream").split())


NEXT = add("2026-01-08")

# fmt: off
CASES = (
    taken("T01-good", "the next slice", NEXT),
    refused("T01-outside", "a slice outside the list", add("2026-02-01"),
        "--slice must be one of the 7 of the stream"),
    refused("T01-text", "`--slice monday`", add("monday"),
        "--slice must be one of the 7 of the stream"),
    refused("T01-twice", "a slice a second time", add("2026-01-07"), "2026-01-07 was added before"),
    refused("T01-late", "a slice that was left out before", add("2026-01-06"),
        "2026-01-06 comes too late"),
    refused("T01-skipped", "a slice that is too late, with `--skip`",
        add("2026-01-06", more=" --skip"), "2026-01-06 comes too late"),
    refused("T01-early", "a slice whose turn has not come", add("2026-01-10"),
        "--slice must be 2026-01-08, which comes next"),
    taken("T01-others", "only rows of other slices: they are left out", NEXT,
        setup=file(INPUT, "lon,lat,time,user\n1,1,2027-01-01T12:00,u\n")),
    refused("T01-input", "an input that does not exist", add("2026-01-08", rows="none.csv"),
        "none.csv does not exist", code=8),
    refused("T01-column", "an input without the column of times", NEXT, "time",
        file(INPUT, "lon,lat\n1,1\n"), code=8),
    taken("T02-autumn", "the hour that clocks repeat: one slice of two hours",
        add("2026-10-25T02", state="h.stream"), setup=autumn),
    refused("T02-again", "the repeated hour a second time", add("2026-10-25T01", state="h.stream"),
        "was added before", autumn),
    refused("T02-name", "`--slices 2026-10-25T02,2026-10-25T02` for both",
        create(slices="2026-10-25T02,2026-10-25T02"), "2026-10-25T02"),
    refused("T03-version", "a state of another version", NEXT,
        f"has format {FORMAT + 1}, and this version of psd reads format {FORMAT}",
        with_database(f"PRAGMA user_version = {FORMAT + 1}"), code=8),
    refused("T03-cut", "a state that is cut short", NEXT, "damaged or cut short", cut(STATE),
        code=8),
    refused("T03-text", "a text in place of the state", NEXT, "is not the state of a stream",
        file(STATE, "lon,lat\n1,1\n"), code=8),
    refused("T03-others", "a state that others may read", NEXT,
        "must be readable by its owner only", lambda: Path(STATE).chmod(0o644), code=8),
    refused("T03-names", "a state with a second name", NEXT, "has a second name",
        lambda: Path("copy").hardlink_to(STATE), code=8),
    refused("T03-empty", "an empty state", NEXT, "is empty", lambda: os.truncate(STATE, 0), code=8),
    refused("T03-gone", "a state that does not exist", add("2026-01-08", state="none.stream"),
        "none.stream does not exist", code=8),
    refused("T03-release", "the public series in place of the state",
        add("2026-01-08", state=OUTPUT), "must be readable by its owner only", code=8),
    refused("T03-older", "a state of before the last slice", NEXT,
        "if the state is an older copy, restore the latest one", older_state, code=8),
    refused("T04-other", "a series file of another stream", NEXT,
        "is not the series that this stream", other_stream, code=8),
    refused("T04-text", "a text in place of the series file", NEXT, "is not the series that this",
        file(OUTPUT, "text"), code=8),
    refused("T04-cut", "a series file that is cut short", NEXT,
        "is not the series that this stream", cut(OUTPUT), code=8),
    taken("T04-gone", "a series file that was removed: it is written again", add("2026-01-07"),
        setup=lambda: Path(OUTPUT).unlink(), makes=(OUTPUT,)),
    taken("T05-good", "a new stream", create(), makes=("b.stream",)),
    refused("T05-state", "a state that exists", create(state=STATE), "city.stream exists", code=6),
    refused("T05-output", "an output that exists", create(output=OUTPUT),
        "exists; choose another name", code=6),
    refused("T05-same", "one name for the state and the output", create(state="b.psd.parquet"),
        "b.psd.parquet", code=6),
    refused("T05-folder", "a folder that does not exist", create(state="none/b.stream"), "none",
        code=6),
    refused("T05-by", "`--by hour` with days", create(" --by hour"), "--by must be day"),
    refused("T05-order", "a range that ends before it begins",
        create(slices="2026-01-11..2026-01-05"), "2026-01-11"),
    refused("T05-bounds", "`--bounds private`", create().replace("0 0 8 8", "private:share=0.1"),
        "must be public with slices"),
    refused("T05-auto", "`--max-contributions auto`",
        create(" --user user --max-contributions auto"), "--max-contributions"),
    refused("T06-adaptive", "`--counter toeplitz` of cells that follow the records",
        create(" --delta 1e-6 --totals --counter toeplitz --method auto"),
        "totals must be of a grid with size or of a quadtree"),
    refused("T06-size", "totals of a grid without size", create(" --totals --method grid"),
        "totals must be of a grid with size"),
    refused("T06-users", "`--counter tree` of users in several slices",
        create(f"{TOTALS} --counter tree{USERS}"), "where a user may be in several"),
    refused("T06-alone", "`--counter` without `--totals`", create(" --counter tree"),
        "--counter must be given with --totals"),
    refused("T06-delta", "`--counter toeplitz` without `--delta`",
        create(f"{TOTALS} --counter toeplitz"), "--counter must be slices or tree"),
    refused("T06-gaussian", "`--counter tree` of Gaussian slices",
        create(f"{TOTALS} --counter tree --delta 1e-6 --noise gaussian"),
        "--counter must be slices with --noise gaussian"),
    refused("T07-zero", "`--delta 0`", create(" --delta 0"),
        "--delta must be above 0 and below 0.001"),
    refused("T07-one", "`--delta 1`", create(" --delta 1"),
        "--delta must be above 0 and below 0.001"),
    refused("T07-large", "`--delta 1e-2`", create(" --delta 1e-2"),
        "--delta must be above 0 and below 0.001"),
    refused("T07-negative", "`--delta -1`", create(" --delta -1"), "--delta must be"),
    refused("T07-nan", "`--delta nan`", create(" --delta nan"), "--delta must be"),
    refused("T07-least", "`--delta 1e-400`", create(" --delta 1e-400 --noise gaussian"),
        "--delta must"),
    refused("T07-none", "`--noise gaussian` without `--delta`", create(" --noise gaussian"),
        "--delta must be given with --noise gaussian"),
    refused("T07-rho", "an epsilon and a delta whose rho is 0",
        create(" --epsilon 0.000001 --delta 1e-9 --noise gaussian"),
        "--delta must allow a rho of at least 1e-12"),
    taken("T07-laplace", "`--delta 1e-6 --noise laplace`: none is spent",
        create(" --delta 1e-6 --noise laplace"), makes=("b.stream",)),
    refused("T08-most", "`--max-per-slice 8` of `--max-contributions 7`",
        create(f"{USERS} --max-per-slice 8"), "--max-per-slice must be"),
    refused("T08-zero", "`--max-per-slice 0`", create(f"{USERS} --max-per-slice 0"),
        "--max-per-slice must be"),
    refused("T08-slice", "`--max-per-slice` with `--per slice`",
        create(f"{USERS} --max-per-slice 1 --per slice"), "--max-per-slice must be left"),
    refused("T09-least", "an epsilon of which no slice gets a part",
        create(f"{USERS} --per slice --epsilon 0.000000001"), "--epsilon must be"),
    refused("T09-totals", "an epsilon of which no block of totals gets a part",
        create(f"{TOTALS} --counter tree --epsilon 0.000000001"),
        "--epsilon must be at least 0.000000006 with --counter tree"),
    taken("T10-good", "a ledger", create(PAID), makes=("b.stream", LEDGER)),
    refused("T10-budget", "more than the rest of the budget", create(f"{PAID} --epsilon 1.5"),
        "has epsilon 1 left, and this costs 1.5", code=4),
    refused("T10-delta", "Gaussian noise and a dataset without a delta",
        create(f"{PAID} --delta 1e-6 --noise gaussian"),
        "has no delta, so it takes no Gaussian noise", code=9),
    refused("T10-toeplitz", "`--counter toeplitz` and a ledger",
        create(f"{PAID}{TOTALS} --delta 1e-6 --counter toeplitz"),
        "--counter must be slices or tree"),
    refused("T10-unit", "users and a dataset of records", create(PAID + USERS),
        "counts epsilon per record", code=9),
)
# fmt: on
