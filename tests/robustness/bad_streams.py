"""Wrong options, slices, states and files of streams, and what comes of each."""

from pathlib import Path

from psd.ingest.sources import Columns
from psd.ledger.ledger import Ledger
from psd_cli.apps import streams  # noqa: F401 (psd stream)
from robustness.commands import file, refused, taken
from support.cli_runner import passes

STATE, OUTPUT, INPUT, LEDGER = "city.stream", "city.psd.parquet", "rows.csv", "l"
DAYS = "2026-01-05..2026-01-11"
HOURS = "2026-10-25T01..2026-10-25T03"
PAID = f" --ledger {LEDGER} --dataset days"
USERS = " --user user --max-contributions 7"


def create(more="", slices=DAYS, state="b.stream", output="b.psd.parquet"):
    """A command that creates a stream beside the one that is there."""
    method = "" if "--method" in more else " --method grid"
    epsilon = "" if "--epsilon" in more else " --epsilon 1"
    return (
        f"create {state} -o {output} --bounds 0 0 8 8 --slices {slices} --time time"
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
    zone = " --time-zone Europe/Berlin"
    passes("stream", *create(zone, HOURS, state="h.stream", output="h.psd.parquet").split())
    rows = [f"1,1,2026-10-25T{hour}:30:00Z,u" for hour in ("00", "01")]
    Path(INPUT).write_text("\n".join(["lon,lat,time,user", *rows]) + "\n")
    passes("stream", *add("2026-10-25T01", state="h.stream").split())


NEXT = add("2026-01-08")

# fmt: off
CASES = (
    taken("T01-good", "the next slice", NEXT),
    refused("T01-text", "`--slice monday`", add("monday"),
        "--slice must be one of the 7 of the stream"),
    refused("T01-skipped", "a slice that is too late, with `--skip`",
        add("2026-01-06", more=" --skip"), "2026-01-06 comes too late"),
    taken("T01-others", "only rows of other slices: they are left out", NEXT,
        setup=file(INPUT, "lon,lat,time,user\n1,1,2027-01-01T12:00,u\n")),
    refused("T01-column", "an input without the column of times", NEXT, "time",
        file(INPUT, "lon,lat\n1,1\n"), code=8),
    taken("T02-autumn", "the hour that clocks repeat: one slice of two hours",
        add("2026-10-25T02", state="h.stream"), setup=autumn),
    refused("T02-again", "the repeated hour a second time", add("2026-10-25T01", state="h.stream"),
        "was added before", autumn),
    refused("T02-name", "`--slices 2026-10-25T02,2026-10-25T02` for both",
        create(slices="2026-10-25T02,2026-10-25T02"), "2026-10-25T02"),
    refused("T03-others", "a state that others may read", NEXT,
        "must be readable by its owner only", lambda: Path(STATE).chmod(0o644), code=8),
    refused("T03-older", "a state of before the last slice", NEXT,
        "if the state is an older copy, restore the latest one", older_state, code=8),
    refused("T04-other", "a series file of another stream", NEXT,
        "is not the series that this stream", other_stream, code=8),
    taken("T04-gone", "a series file that was removed: it is written again", add("2026-01-07"),
        setup=lambda: Path(OUTPUT).unlink(), makes=(OUTPUT,)),
    refused("T05-state", "a state that exists", create(state=STATE), "city.stream exists", code=6),
    refused("T05-same", "one name for the state and the output", create(state="b.psd.parquet"),
        "b.psd.parquet", code=6),
    refused("T05-folder", "a folder that does not exist", create(state="none/b.stream"), "none",
        code=6),
    refused("T05-order", "a range that ends before it begins",
        create(slices="2026-01-11..2026-01-05"), "2026-01-11"),
    refused("T05-auto", "`--max-contributions auto`",
        create(" --user user --max-contributions auto"), "--max-contributions"),
    refused("T06-adaptive", "`--counter toeplitz` of cells that follow the records",
        create(" --delta 1e-6 --totals --counter toeplitz --method auto"),
        "totals must be of a grid with size or of a quadtree"),
    refused("T06-alone", "`--counter` without `--totals`", create(" --counter tree"),
        "--counter must be given with --totals"),
    taken("T07-laplace", "`--delta 1e-6 --noise laplace`: none is spent",
        create(" --delta 1e-6 --noise laplace"), makes=("b.stream",)),
    refused("T08-most", "`--max-per-slice 8` of `--max-contributions 7`",
        create(f"{USERS} --max-per-slice 8"), "--max-per-slice must be"),
    refused("T09-least", "an epsilon of which no slice gets a part",
        create(f"{USERS} --per slice --epsilon 0.000000001"), "--epsilon must be"),
    taken("T10-good", "a ledger", create(PAID), makes=("b.stream", LEDGER)),
    refused("T10-toeplitz", "`--counter toeplitz` and a ledger",
        create(f"{PAID} --totals --method grid --set size=2 --delta 1e-6 --counter toeplitz"),
        "--counter must be slices or tree"),
    refused("T10-unit", "users and a dataset of records", create(PAID + USERS),
        "counts epsilon per record", code=9),
)
# fmt: on
