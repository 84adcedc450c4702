"""Wrong options, slices, states and files of streams, and what comes of each."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from psd.ingest.sources import Columns
from psd.ledger.ledger import Ledger
from psd.streams.state import FORMAT
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


@dataclass(frozen=True, kw_only=True)
class StreamCase:
    """A command of `psd stream`, what is there before it, its outcome, and files that it makes."""

    name: str
    given: str
    args: str
    setup: Callable[[], object] | None = None
    code: int = 0
    told: str = ""
    makes: tuple[str, ...] = ()


def prepare(case):
    """A stream with its first and third day, rows, a ledger, and then what the case changes."""
    rows = [f"1,1,2026-01-{5 + n % 7:02}T12:00:00,u{n % 3}" for n in range(21)]
    Path(INPUT).write_text("\n".join(["lon,lat,time,user", *rows]) + "\n")
    Ledger.create(LEDGER).register("days", 1, columns=Columns(time="time"))
    passes("stream", *create(state=STATE, output=OUTPUT).split())
    passes("stream", *add("2026-01-05").split())
    passes("stream", *add("2026-01-07").split(), "--skip")
    if case.setup is not None:
        case.setup()


def with_database(statement):
    """The state after a statement."""

    def change():
        with closing(sqlite3.connect(STATE)) as database:
            database.execute(statement)

    return change


def cut(path):
    """A file without its second half."""
    return lambda: os.truncate(path, Path(path).stat().st_size // 2)


def file(path, content):
    """A file with other content."""
    return lambda: Path(path).write_text(content)


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


# fmt: off
CASES = (
    StreamCase(name="T01-good", given="the next slice", args=add("2026-01-08")),
    StreamCase(name="T01-outside", given="a slice outside the list", code=2,
        args=add("2026-02-01"), told="--slice must be one of the 7 of the stream"),
    StreamCase(name="T01-text", given="`--slice monday`", code=2,
        args=add("monday"), told="--slice must be one of the 7 of the stream"),
    StreamCase(name="T01-twice", given="a slice a second time", code=2,
        args=add("2026-01-07"), told="2026-01-07 was added before"),
    StreamCase(name="T01-late", given="a slice that was left out before", code=2,
        args=add("2026-01-06"), told="2026-01-06 comes too late"),
    StreamCase(name="T01-skipped", given="a slice that is too late, with `--skip`", code=2,
        args=add("2026-01-06", more=" --skip"), told="2026-01-06 comes too late"),
    StreamCase(name="T01-early", given="a slice whose turn has not come", code=2,
        args=add("2026-01-10"), told="--slice must be 2026-01-08, which comes next"),
    StreamCase(name="T01-others", given="only rows of other slices: they are left out",
        args=add("2026-01-08"), setup=file(INPUT, "lon,lat,time,user\n1,1,2027-01-01T12:00,u\n")),
    StreamCase(name="T01-input", given="an input that does not exist", code=8,
        args=add("2026-01-08", rows="none.csv"), told="none.csv does not exist"),
    StreamCase(name="T01-column", given="an input without the column of times", code=8,
        args=add("2026-01-08"), setup=file(INPUT, "lon,lat\n1,1\n"), told="time"),
    StreamCase(name="T02-autumn", given="the hour that clocks repeat: one slice of two hours",
        args=add("2026-10-25T02", state="h.stream"), setup=autumn),
    StreamCase(name="T02-again", given="the repeated hour a second time", code=2,
        args=add("2026-10-25T01", state="h.stream"), setup=autumn, told="was added before"),
    StreamCase(name="T02-name", given="`--slices 2026-10-25T02,2026-10-25T02` for both", code=2,
        args=create(slices="2026-10-25T02,2026-10-25T02"), told="2026-10-25T02"),
    StreamCase(name="T03-version", given="a state of another version", code=8,
        args=add("2026-01-08"), setup=with_database(f"PRAGMA user_version = {FORMAT + 1}"),
        told=f"has format {FORMAT + 1}, and this version of psd reads format {FORMAT}"),
    StreamCase(name="T03-cut", given="a state that is cut short", code=8,
        args=add("2026-01-08"), setup=cut(STATE), told="damaged or cut short"),
    StreamCase(name="T03-text", given="a text in place of the state", code=8,
        args=add("2026-01-08"), setup=file(STATE, "lon,lat\n1,1\n"),
        told="is not the state of a stream"),
    StreamCase(name="T03-others", given="a state that others may read", code=8,
        args=add("2026-01-08"), setup=lambda: Path(STATE).chmod(0o644),
        told="must be readable by its owner only"),
    StreamCase(name="T03-names", given="a state with a second name", code=8,
        args=add("2026-01-08"), setup=lambda: Path("copy").hardlink_to(STATE),
        told="has a second name"),
    StreamCase(name="T03-empty", given="an empty state", code=8,
        args=add("2026-01-08"), setup=lambda: os.truncate(STATE, 0), told="is empty"),
    StreamCase(name="T03-gone", given="a state that does not exist", code=8,
        args=add("2026-01-08", state="none.stream"), told="none.stream does not exist"),
    StreamCase(name="T03-release", given="the public series in place of the state", code=8,
        args=add("2026-01-08", state=OUTPUT), told="must be readable by its owner only"),
    StreamCase(name="T03-older", given="a state of before the last slice", code=8,
        args=add("2026-01-08"), setup=older_state,
        told="if the state is an older copy, restore the latest one"),
    StreamCase(name="T04-other", given="a series file of another stream", code=8,
        args=add("2026-01-08"), setup=other_stream, told="is not the series that this stream"),
    StreamCase(name="T04-text", given="a text in place of the series file", code=8,
        args=add("2026-01-08"), setup=file(OUTPUT, "text"), told="is not the series that this"),
    StreamCase(name="T04-cut", given="a series file that is cut short", code=8,
        args=add("2026-01-08"), setup=cut(OUTPUT), told="is not the series that this stream"),
    StreamCase(name="T04-gone", given="a series file that was removed: it is written again",
        args=add("2026-01-07"), setup=lambda: Path(OUTPUT).unlink(), makes=(OUTPUT,)),
    StreamCase(name="T05-good", given="a new stream", args=create(), makes=("b.stream",)),
    StreamCase(name="T05-state", given="a state that exists", code=6,
        args=create(state=STATE), told="city.stream exists"),
    StreamCase(name="T05-output", given="an output that exists", code=6,
        args=create(output=OUTPUT), told="exists; choose another name"),
    StreamCase(name="T05-same", given="one name for the state and the output", code=6,
        args=create(state="b.psd.parquet"), told="b.psd.parquet"),
    StreamCase(name="T05-folder", given="a folder that does not exist", code=6,
        args=create(state="none/b.stream"), told="none"),
    StreamCase(name="T05-by", given="`--by hour` with days", code=2,
        args=create(" --by hour"), told="--by must be day"),
    StreamCase(name="T05-order", given="a range that ends before it begins", code=2,
        args=create(slices="2026-01-11..2026-01-05"), told="2026-01-11"),
    StreamCase(name="T05-bounds", given="`--bounds private`", code=2,
        args=create().replace("0 0 8 8", "private:share=0.1"), told="must be public with slices"),
    StreamCase(name="T05-auto", given="`--max-contributions auto`", code=2,
        args=create(" --user user --max-contributions auto"), told="--max-contributions"),
    StreamCase(name="T06-adaptive", given="`--counter toeplitz` of cells that follow the records",
        code=2, args=create(" --delta 1e-6 --totals --counter toeplitz --method auto"),
        told="totals must be of a grid with size or of a quadtree"),
    StreamCase(name="T06-size", given="totals of a grid without size", code=2,
        args=create(" --totals --method grid"), told="totals must be of a grid with size"),
    StreamCase(name="T06-users", given="`--counter tree` of users in several slices", code=2,
        args=create(f"{TOTALS} --counter tree{USERS}"), told="where a user may be in several"),
    StreamCase(name="T06-alone", given="`--counter` without `--totals`", code=2,
        args=create(" --counter tree"), told="--counter must be given with --totals"),
    StreamCase(name="T06-delta", given="`--counter toeplitz` without `--delta`", code=2,
        args=create(f"{TOTALS} --counter toeplitz"), told="--counter must be slices or tree"),
    StreamCase(name="T06-gaussian", given="`--counter tree` of Gaussian slices", code=2,
        args=create(f"{TOTALS} --counter tree --delta 1e-6 --noise gaussian"),
        told="--counter must be slices with --noise gaussian"),
    StreamCase(name="T07-zero", given="`--delta 0`", code=2,
        args=create(" --delta 0"), told="--delta must be above 0 and below 0.001"),
    StreamCase(name="T07-one", given="`--delta 1`", code=2,
        args=create(" --delta 1"), told="--delta must be above 0 and below 0.001"),
    StreamCase(name="T07-large", given="`--delta 1e-2`", code=2,
        args=create(" --delta 1e-2"), told="--delta must be above 0 and below 0.001"),
    StreamCase(name="T07-negative", given="`--delta -1`", code=2,
        args=create(" --delta -1"), told="--delta must be"),
    StreamCase(name="T07-nan", given="`--delta nan`", code=2,
        args=create(" --delta nan"), told="--delta must be"),
    StreamCase(name="T07-least", given="`--delta 1e-400`", code=2,
        args=create(" --delta 1e-400 --noise gaussian"), told="--delta must"),
    StreamCase(name="T07-none", given="`--noise gaussian` without `--delta`", code=2,
        args=create(" --noise gaussian"), told="--delta must be given with --noise gaussian"),
    StreamCase(name="T07-rho", given="an epsilon and a delta whose rho is 0", code=2,
        args=create(" --epsilon 0.000001 --delta 1e-9 --noise gaussian"),
        told="--delta must allow a rho of at least 1e-12"),
    StreamCase(name="T07-laplace", given="`--delta 1e-6 --noise laplace`: none is spent",
        args=create(" --delta 1e-6 --noise laplace"), makes=("b.stream",)),
    StreamCase(name="T08-most", given="`--max-per-slice 8` of `--max-contributions 7`", code=2,
        args=create(f"{USERS} --max-per-slice 8"), told="--max-per-slice must be"),
    StreamCase(name="T08-zero", given="`--max-per-slice 0`", code=2,
        args=create(f"{USERS} --max-per-slice 0"), told="--max-per-slice must be"),
    StreamCase(name="T08-slice", given="`--max-per-slice` with `--per slice`", code=2,
        args=create(f"{USERS} --max-per-slice 1 --per slice"), told="--max-per-slice must be left"),
    StreamCase(name="T09-least", given="an epsilon of which no slice gets a part", code=2,
        args=create(f"{USERS} --per slice --epsilon 0.000000001"), told="--epsilon must be"),
    StreamCase(name="T09-totals", given="an epsilon of which no block of totals gets a part",
        code=2, args=create(f"{TOTALS} --counter tree --epsilon 0.000000001"),
        told="--epsilon must be at least 0.000000006 with --counter tree"),
    StreamCase(name="T10-good", given="a ledger", args=create(PAID), makes=("b.stream", LEDGER)),
    StreamCase(name="T10-budget", given="more than the rest of the budget", code=4,
        args=create(f"{PAID} --epsilon 1.5"), told="has epsilon 1 left, and this costs 1.5"),
    StreamCase(name="T10-delta", given="Gaussian noise and a dataset without a delta", code=9,
        args=create(f"{PAID} --delta 1e-6 --noise gaussian"),
        told="has no delta, so it takes no Gaussian noise"),
    StreamCase(name="T10-toeplitz", given="`--counter toeplitz` and a ledger", code=2,
        args=create(f"{PAID}{TOTALS} --delta 1e-6 --counter toeplitz"),
        told="--counter must be slices or tree"),
    StreamCase(name="T10-unit", given="users and a dataset of records", code=9,
        args=create(PAID + USERS), told="counts epsilon per record"),
)
# fmt: on


def page_rows(row):
    """Lines of the page."""
    return "".join(
        row(case.name, case.given, f"`psd stream {case.args.split()[0]}`", case.code, case.told)
        for case in CASES
    )
