"""What goes wrong around a command: disks, permissions, signals, ledgers; and what comes of it."""

import ctypes
import errno
import json
import os
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import psd
from psd._util import atomic_write as files
from psd._util.declared_parameters import parameters_from_file
from psd.ingest.tally_builder import TallyBuilder
from psd.ledger import entries as journal
from psd.ledger import file as ledger_file
from psd.ledger.account import Account
from psd.ledger.charges import ChargeRequest
from psd.ledger.ledger import Ledger
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.loss import NANO, Loss
from psd.privacy.unit import PrivacyUnit
from psd.publish.charging import PendingCharge
from psd.publish.refusals import UNREADABLE
from robustness.bad_input import SECRET, table
from robustness.commands import later
from robustness.kills import TESTS, environment
from support.cli_runner import Outcome, cli
from support.ledger_columns import BY_LON_LAT
from support.ledger_entries import CHARGE
from support.releases import changed

# Where every fault is met: an input, a ledger, and a release that stands there already.
INPUT, LEDGER, OUTPUT = "points.csv", "city.ledger", "out/r.psd.parquet"
POINTS = table("1,1", "2,3")
FREE = f"build {INPUT} -o {OUTPUT} --overwrite --epsilon 1 --bounds 0 0 4 4 --method quadtree"
PAID = f"--ledger {LEDGER} --dataset rows"
BUILD = f"{FREE} --set height=1 {PAID}"
ASK = f"ask {INPUT} --box 0 0 4 4 --epsilon 1 {PAID}"
QUERY = f"query {OUTPUT} --box 0 0 2 2"


@contextmanager
def room(folder, release):
    """A folder with what every fault needs, and what is there when it has passed."""
    (folder / "out").mkdir()
    (folder / INPUT).write_text(POINTS)
    (folder / OUTPUT).write_bytes(release)
    Ledger.create(folder / LEDGER).register("rows", 10)
    try:
        yield
    finally:
        for place in (folder, *folder.rglob("*")):
            if not place.is_symlink() and not place.is_fifo():
                place.chmod(place.stat().st_mode | stat.S_IRWXU)


def here(args):
    """Run in this process."""
    return cli(*args)


Setup = Callable[[pytest.MonkeyPatch], object]


@dataclass(frozen=True)
class Fault:
    """A command, what goes wrong, and what must hold afterwards.

    Where the code is not 0, one line on stderr has the words, and the release that stood there
    is as it was, with nothing beside it; where it is 0, a release is there. ``written`` says
    that it is there all the same, ``charged`` how many charges are in the ledger (None: it is
    no ledger any more), and ``after`` checks what is more.
    """

    name: str
    given: str
    code: int = 0
    told: str = ""
    args: str = BUILD
    setup: Setup = lambda patch: None
    run: Callable[[list[str]], Outcome] = here
    holds: str = ""
    charged: int | None = 0
    written: bool = False
    after: Callable[[Outcome], object] = lambda outcome: None
    deep: bool = False

    @property
    def marks(self):
        """Faults that start a process are deep."""
        starts = self.run.__qualname__.startswith(("process", "signalled"))
        return [pytest.mark.deep] if self.deep or starts else []


@dataclass(frozen=True)
class Elsewhere:
    """A fault that has a test of its own, by its file and name."""

    name: str
    given: str
    test: str
    holds: str


# Processes that lack something


def process(*, driver=(), size=None, owner=False, stdin=None, streams=None):
    """Run in a process of its own: files of some bytes, permissions that hold, other streams.

    ``owner`` takes from root what lets it read and write against permissions, so that they hold
    for the owner of the files as they do for anybody.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def prepare():
        if size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        if owner and os.geteuid() == 0:
            for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
                if libc.prctl(24, capability):  # PR_CAPBSET_DROP
                    os._exit(99)
        if streams == "closed":
            os.close(1)

    def run(args):
        command = [sys.executable, *(driver or ("-m", "psd_cli")), *args]
        out = open_stream(streams)
        ran = subprocess.run(
            command, env=environment(), preexec_fn=prepare, stdout=out or subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, check=False, input=stdin, encoding="utf-8",
        )  # fmt: skip
        if out is not None:
            os.close(out)
        return Outcome(ran.returncode, ran.stdout or "", ran.stderr)

    return run


@later
def within(args, size):
    """Run in this process, which may write files of some bytes for as long."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        return here(args)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def open_stream(kind):
    """A standard output that takes nothing: a full device, or a pipe that nobody reads."""
    if kind == "full":
        return os.open("/dev/full", os.O_WRONLY)
    if kind == "broken":
        read, write = os.pipe()
        os.close(read)
        return write
    return None


def limited(kind, value):
    """Run by `limited_process.py`."""
    return process(driver=(str(TESTS / "support" / "limited_process.py"), kind, str(value)))


def signalled(number):
    """Run with rows coming in at standard input, and send a signal while they are read."""

    def run(args):
        command = [sys.executable, "-m", "psd_cli", *args]
        pipe = subprocess.PIPE
        running = subprocess.Popen(command, env=environment(), stdin=pipe, stdout=pipe, stderr=pipe)
        # More than a pipe holds: when this is through, the command has begun to read.
        running.stdin.write(POINTS.encode() + b"1,1,\n" * 100_000)
        running.stdin.flush()
        running.send_signal(number)
        out, err = running.communicate()
        return Outcome(running.returncode, out.decode(), err.decode())

    return run


# What goes wrong in this process


@later
def denied(patch, *paths):
    """Take all permissions of a file, or those to write into a folder."""
    for path in map(Path, paths):
        path.chmod(0o500 if path.is_dir() else 0)


@later
def raising(patch, owner, name, error):
    """Let a step of the work fail."""

    def fails(*_, **__):
        raise error

    patch.setattr(owner, name, fails)


def without_randomness(patch):
    """The system gives no random numbers once the charge is made."""
    charge = PendingCharge.charge

    def charged(self):
        statement = charge(self)
        raising(os, "urandom", OSError(errno.ENOSYS, SECRET))(patch)
        return statement

    patch.setattr(PendingCharge, "charge", charged)


def appearing(patch):
    """Another build finishes first."""
    Path(OUTPUT).unlink()
    charge = PendingCharge.charge

    def charged(self):
        statement = charge(self)
        Path(OUTPUT).write_bytes(older())
        return statement

    patch.setattr(PendingCharge, "charge", charged)


def linked_to_nowhere(patch):
    """A link into a folder that is missing."""
    Path(OUTPUT).unlink()
    Path(OUTPUT).symlink_to("missing/r")


def no_link(outcome):
    """A file, and nothing made where the link led."""
    assert not Path(OUTPUT).is_symlink()
    assert not Path("out/missing").exists()


def older():
    """The release that stands there from the beginning, kept beside the folder."""
    return Path("../older").read_bytes()


def clock_set_back(patch):
    """Years between the registration and the charge, backwards."""
    patch.setattr(journal, "_now", lambda: "1999-12-31T23:59:59+00:00")


def odd(name):
    """A build in which all names are this one."""

    given = {INPUT: f"in/{name}", LEDGER: f"kept/{name}", OUTPUT: f"out/{name}"}

    def setup(patch):
        for path in (INPUT, LEDGER):
            Path(given[path]).parent.mkdir()
            shutil.move(path, given[path])
        Path(LEDGER).symlink_to(given[LEDGER])
        Path(OUTPUT).unlink()

    def run(args):
        outcome = here([given.get(arg, arg) for arg in args])
        if outcome.code == 0:
            shutil.move(Path("out", name), OUTPUT)
        return outcome

    return {"setup": setup, "run": run}


def other_file_system(args):
    """Write to memory, which is another file system than a disk."""
    with TemporaryDirectory(dir="/dev/shm") as name:
        folder = Path(name)
        assert folder.stat().st_dev != Path().stat().st_dev
        outcome = here([str(folder / "r") if arg == OUTPUT else arg for arg in args])
        shutil.copy(folder / "r", OUTPUT)
        assert [path.name for path in folder.iterdir()] == ["r"]
    return outcome


PRIVATE = ("l", "t", "k", "e.csv", "e.png", "e.html", "c.csv", "c.png")
PUBLIC = ("r.psd.parquet", "cells.gpkg", "cells.geojson", "cells.tif", "a.csv")


def without_mask(args):
    """Write one file of each kind, and the process withholds no permission."""
    known = "--x lon --y lat"
    before = os.umask(0)
    try:
        for line in (
            "ledger create out/l",
            f"tally {INPUT} -o out/t --bounds 0 0 4 4",
            f"check evaluate {OUTPUT} {INPUT} -o out/e.csv --plot out/e.png "
            f"--report out/e.html {known}",
            f"check compare {INPUT} -o out/c.csv --plot out/c.png --epsilons 1 --bounds 0 0 4 4 "
            "--methods grid --runs 1 --jobs 1",
            f"export {OUTPUT} out/cells.gpkg",
            f"export {OUTPUT} out/cells.geojson",
            f"export {OUTPUT} out/cells.tif",
            f"{QUERY} --format csv -o out/a.csv",
        ):
            assert cli(*line.split()).code == 0, line
        outcome = here([*args, "--keep-tally", "out/k"])
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in Path("out").iterdir()}
    assert modes == dict.fromkeys(PRIVATE, 0o600) | dict.fromkeys(PUBLIC, 0o644)
    for name in {*modes} - {Path(OUTPUT).name}:
        Path("out", name).unlink()
    return outcome


# Ledgers


def charge():
    """A charge of a release that was never written."""
    loss, unit = Loss.pure(NANO), PrivacyUnit()
    asked = ChargeRequest(loss=loss, unit=unit, what="build", readings=BY_LON_LAT)
    return Ledger(LEDGER).charge("rows", asked)


@later
def by_hand(patch, script):
    """Change the entries past the triggers."""
    charge()
    with closing(sqlite3.connect(LEDGER)) as file:
        file.executescript(f"DROP TRIGGER kept; DROP TRIGGER held; {script}")


SWAP = """
UPDATE entry SET number = 9 WHERE number = 2; UPDATE entry SET number = 2 WHERE number = 3;
UPDATE entry SET number = 3 WHERE number = 9;
"""


def damaged_page(patch):
    """Bytes that say where the rows of a page are."""
    charge()
    content = bytearray(Path(LEDGER).read_bytes())
    for page in range(4096, len(content), 4096):
        content[page : page + 64] = b"\xff" * 64
    Path(LEDGER).write_bytes(content)


def restored(patch):
    """A release is built and paid, and then the ledger of before is put back."""
    shutil.copy(LEDGER, "copy")
    assert cli(*BUILD.replace(OUTPUT, "paid.psd.parquet").split()).code == 0
    shutil.copy("copy", LEDGER)


def never():
    """What a release says of a charge that was never made."""
    return {"ledger": Ledger(LEDGER).state().id, "charge": "never"}


def worded(patch):
    """The words in the footer of a table of one row."""
    words = {"psd": json.dumps({"parameters": never()})}
    pq.write_table(pa.table({"x": [1]}).replace_schema_metadata(words), "out/a.parquet")


def forged(patch):
    """A release that somebody made with this library."""
    changed(psd.load(OUTPUT), parameters=parameters_from_file(never())).save("out/a.parquet")


def head_of_later(args):
    """Ask an older copy for a head that was noted."""
    shutil.copy(LEDGER, "copy")
    charge()
    head = Ledger(LEDGER).state().head
    shutil.copy("copy", LEDGER)
    return here([*args, head])


def while_held(args):
    """Run while another has the ledger to itself, and wait no more than a moment."""
    before = ledger_file.TIMEOUT
    ledger_file.TIMEOUT = 0.05
    try:
        with closing(sqlite3.connect(LEDGER, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            return here(args)
    finally:
        ledger_file.TIMEOUT = before


def overspent(patch):
    """A charge above the budget, made by other software with a right chain."""
    body = CHARGE | {"id": "a" * 32, "dataset": "rows", "epsilon": 11 * NANO, "region": None}
    with ledger_file.exclusive(LEDGER) as ledger:
        hashes = journal.replay_entries(ledger_file.rows(ledger)).hashes
        ledger_file.append(ledger, journal.entry(hashes, "charge", body))


def again_under_another_name(args):
    """The same file, renamed, is charged to a second dataset."""
    assert cli(*BUILD.split()).code == 0
    Ledger(LEDGER).register("others", 10)
    shutil.move(INPUT, "renamed.csv")
    outcome = here([{INPUT: "renamed.csv", "rows": "others"}.get(arg, arg) for arg in args])
    assert outcome.err.count("psd: warning: ") == 1
    assert "also charged to dataset 'rows'" in outcome.err
    return outcome


def on_a_network(patch):
    """Linux says that the folder is one of another machine."""
    Path("mounts").write_text(f"/dev/a / ext4 rw 0 0\nserver:/b {Path().resolve()} nfs4 rw 0 0\n")
    patch.setattr(ledger_file, "MOUNTS", Path("mounts").resolve())


@later
def warned(outcome, *words):
    """One warning, with words."""
    assert outcome.err.startswith("psd: warning: ")
    assert outcome.err.count("\n") == 1
    assert all(word in outcome.err for word in words)


def unfinished(outcome):
    """What was left over is said, and what came after is done."""
    said = cli("ledger", "history", LEDGER).out
    assert said.count("charged, not finished") == 1
    assert said.count(" done ") == 1


def in_two_ledgers(args):
    """Two ledgers for the same rows, each of them with the whole budget."""
    shutil.copy(LEDGER, "other.ledger")
    Ledger.create("second.ledger").register("rows", 10)
    assert cli(*" ".join(args).replace(LEDGER, "second.ledger").split()).code == 0
    return here(args)


def raised_then_spent(args):
    """More than the budget is asked for, refused, and allowed when the budget was raised."""
    args = [{"1": "11"}.get(arg, arg) if args[i - 1] == "--epsilon" else arg
            for i, arg in enumerate(args)]  # fmt: skip
    assert cli(*args).code == 4
    assert cli("ledger", "raise", LEDGER, "rows", "--budget", "11").code == 0
    assert Ledger(LEDGER).verify().datasets["rows"].raised[0].endswith(" from 10")
    return here(args)


INTERRUPTED = "interrupted; no file is half-written; what was charged to a ledger stays charged"
RESERVED = "has a name that SQLite uses"
SURVIVES = "tests/robustness/test_ledger_survives.py"
PROTOCOL = "tests/privacy/test_ledger_protocol.py"
FORMATS = ("gpkg", "parquet", "geojson", "csv", "tif", "npy")

# fmt: off
PROCESSES = (
    Fault("F01-ledger", "no room for the charge", 9, "the disk may be full", run=within(8192)),
    Fault("F01-release", "no room for the release", 6, f"cannot write {OUTPUT}",
        args=f"{FREE} --set height=8 {PAID}", run=within(40_000), charged=1),
    Fault("F01-rows", "no room for what standard input says", 8, "standard input cannot be stored",
        args=f"{FREE.replace(INPUT, '-')} --set height=1", run=process(size=10, stdin=POINTS)),
    Elsewhere("F01-users", "no room for rows that do not fit into memory",
        "tests/robustness/test_build_survives.py::test_no_room_for_rows_of_users", "refused, 6"),
    Elsewhere("F01-done", "no room to note that the release is written",
        f"{PROTOCOL}::test_a_release_that_cannot_be_noted_is_there_and_charged",
        "exit code 9; the release is there, and charged"),
    Fault("F01-tally", "no room for a tally", 6, "cannot write out/t",
        args=f"tally {INPUT} -o out/t --bounds 0 0 4 4", run=within(100)),
    Fault("F01-answers", "no room for answers", 6, "cannot write out/a",
        args=f"{QUERY} --format csv -o out/a", run=within(10)),
    *(Fault(f"F01-{ending}", f"no room for an export to .{ending}", 6,
        f"cannot write out/cells.{ending}", f"export {OUTPUT} out/cells.{ending}", run=within(50),
        deep=ending == "tif") for ending in FORMATS),
    Fault("F01-evaluation", "no room for an evaluation", 6, "cannot write out/e.csv",
        args=f"check evaluate {OUTPUT} {INPUT} -o out/e.csv", run=within(10)),
    Fault("F01-screen", "standard output is a full disk", 6, "cannot write to standard output",
        args=QUERY, run=process(streams="full")),
    Fault("F01-answer", "the same, for an answer that was paid", 6,
        "cannot write to standard output", args=ASK, run=process(streams="full"), charged=1),
    Fault("F01-said", "the same, for a release", 6, "cannot write to standard output",
        run=process(streams="full"), charged=1, written=True),
    Fault("F02-output", "a folder for releases that is read-only", 6, "folder out is not writable",
        setup=denied("out"), run=process(owner=True)),
    Fault("F02-kept", "a release that may not be replaced (`chattr +i`)", 6,
        f"cannot write {OUTPUT}",
        setup=raising(Path, "replace", OSError(errno.EPERM, os.strerror(errno.EPERM))), charged=1),
    Fault("F02-ledger", "the folder of the ledger is read-only", 9,
        "check its permissions, and those of its folder", setup=denied("."),
        run=process(owner=True)),
    Fault("F03-input", "an input that is not readable", 8, "is not readable; check its permissions",
        setup=denied(INPUT), run=process(owner=True)),
    Fault("F03-release", "a release that is not readable", 5, "Permission denied", args=QUERY,
        setup=denied(OUTPUT), run=process(owner=True)),
    Fault("F03-ledger", "a ledger that is not readable", 9, "check its permissions",
        setup=denied(LEDGER), run=process(owner=True)),
    Elsewhere("F04-steps", "kill -9 at 60 steps, evenly spaced; at night 2,000",
        f"{SURVIVES}::test_killed_builds_keep_what_they_were_charged",
        "nothing half-written, no release and no draw without a charge; again is charged "
        "again in full, and a release that was there is noted"),
    Elsewhere("F04-points", "kill -9 before the charge, after it, while drawing, while "
        "writing, after the release has its name, before it is noted",
        f"{SURVIVES}::test_killed_at_named_points", "the same"),
    Elsewhere("F04-replaced", "kill -9 over a release and a tally, before and after "
        "each is replaced", f"{SURVIVES}::test_killed_while_a_release_and_its_tally_are_replaced",
        "of each the old file or the new one, whole; one that was about to take the place of "
        "another lies beside it under a hidden name, with its permissions, until the next write "
        "into the folder"),
    Elsewhere("F04-large", "kill -9 at 12 moments of a build of 300,000 rows",
        "tests/robustness/test_build_survives.py::test_kill_leaves_nothing",
        "the release or nothing, no temporary file"),
    Fault("F05-terminated", "SIGTERM while rows are read", 130, INTERRUPTED,
        args=BUILD.replace(INPUT, "-"), run=signalled(signal.SIGTERM)),
    Fault("F05-ctrl-c", "Ctrl-C while rows are read", 130, INTERRUPTED,
        args=BUILD.replace(INPUT, "-"), run=signalled(signal.SIGINT)),
    Fault("F05-drawing", "Ctrl-C while noise is drawn", 130, INTERRUPTED,
        setup=raising(SecureSampler, "draw", KeyboardInterrupt()), charged=1),
    Fault("F05-replaced", "Ctrl-C when the release is to take the place of the old one", 130,
        INTERRUPTED, setup=raising(Path, "replace", KeyboardInterrupt()), charged=1),
    Fault("F05-written", "Ctrl-C when the release is written and not noted", 130, INTERRUPTED,
        setup=raising(Account, "finish", KeyboardInterrupt()), charged=1, written=True),
    Elsewhere("F06-order", "power cut: the order in which files are brought to the disk",
        "tests/robustness/test_order_on_disk.py::test_the_order_on_the_disk",
        "the charge before the first random number, the release before its name, its folder "
        "before the note"),
    Fault("F07-memory", "memory runs out when the noise is drawn", 8, UNREADABLE,
        args=f"{FREE} --set height=11 {PAID}", run=limited("memory", 100_000_000), charged=1),
    Fault("F07-counting", "memory runs out while records are counted, with a ledger", 8, UNREADABLE,
        setup=raising(TallyBuilder, "add_batch", MemoryError()), charged=1),
    Elsewhere("F07-tree", "a tree that would not fit",
        "tests/robustness/test_bad_input.py::test_refused[P05]", "refused, 2"),
    Fault("F08-none", "no file may be opened", 70, "too many open files", run=limited("files", 3)),
    Fault("F08-two", "no more than two files at a time", 9, "cannot be opened",
        run=limited("files", 5)),
    Elsewhere("F09-ledger", "four processes charge one budget",
        f"{SURVIVES}::test_four_processes_are_granted_exactly_the_budget",
        "granted exactly the budget"),
    Fault("F09-output", "another build has written the release first", 6,
        "exists; choose another name", args=BUILD.replace("--overwrite ", ""), setup=appearing,
        charged=1),
    Fault("F09-link", "a link to nowhere in the place of the release", 6,
        "is a broken symbolic link; remove it", args=BUILD.replace("--overwrite ", ""),
        setup=linked_to_nowhere),
    Fault("F09-over-link", "the same, with `--overwrite`", setup=linked_to_nowhere, charged=1,
        after=no_link, holds="the release takes the place of the link"),
    Fault("F09-pipe", "a pipe beside the release, by the name of another",
        setup=lambda patch: os.mkfifo("out/a.psd.parquet"), charged=1),
    Fault("F09-ledgers", "the same rows from two ledgers", run=in_two_ledgers, charged=1,
        holds="both are paid: two ledgers know nothing of each other"),
    Fault("F10-other", "a release on another file system than the temporary files",
        run=other_file_system, charged=1),
    Fault("F10-link", "a file system over which no name can be given", 6,
        "Invalid cross-device link",
        setup=raising(files.os, "link", OSError(errno.EXDEV, os.strerror(errno.EXDEV))), charged=1),
    *(Fault(f"F11-{name}", f"input, ledger and release with {given}", charged=1, **odd(text))
        for name, given, text in (
            ("space", "a space in their name", "a b"),
            ("korean", "a Korean name", "방문"),
            ("line", "a line end in their name", "line\nend"),
            ("sql", "a name that is SQL", "'; DROP TABLE entry; --"),
            ("address", "a name with signs of an address", "a?b#c%41&mode=ro"),
            ("option", "the name `-rf`", "-rf"),
            ("240", "a name of 240 bytes", "x" * 240))),
    Fault("F11-256", "a release with a name of 256 bytes", 6, "File name too long",
        args=BUILD.replace(OUTPUT, "out/" + "x" * 256)),
    Fault("F12-clock", "a clock that was set back by years", setup=clock_set_back, charged=1),
    Fault("F13-start", "no random numbers from the beginning", 70,
        "the operating system gives no random numbers",
        setup=raising(os, "urandom", OSError(errno.ENOSYS, SECRET))),
    Fault("F13-draw", "none from the charge on", 70, "the operating system gives no random numbers",
        setup=without_randomness, charged=1),
    Fault("F14-umask", "umask 000", run=without_mask, deep=True, charged=1,
        holds="ledgers, tallies, evaluations and comparisons are 0600; releases, exports and "
        "answers 0644"),
    Elsewhere("F15-fork", "processes that were forked",
        "tests/unit/mechanisms/test_laplace.py::test_forked_children_draw_different_noise",
        "they draw other noise"),
    Fault("F16-pipe", "the reader of standard output is gone", run=process(streams="broken"),
        charged=1),
    Fault("F16-query", "the same, for a query", args=QUERY, run=process(streams="broken"),
        holds="exit code 0, as of a command before `head`"),
    Fault("F16-answer", "the same, for an answer that was paid", args=ASK,
        run=process(streams="broken"), charged=1, holds="charged, not finished"),
    Fault("F16-closed", "standard output is closed", run=process(streams="closed"), charged=1),
    Fault("F16-closed-query", "the same, for a query", args=QUERY, run=process(streams="closed")),
)

LEDGERS = (
    Fault("L03-page", "a damaged page", 9, "is damaged", setup=damaged_page, charged=None),
    Fault("L03-journal", "a release by the name of the ledger's journal", 6, RESERVED,
        args=BUILD.replace(OUTPUT, f"{LEDGER}-journal")),
    Fault("L03-log", "a kept tally by the name of its log", 6, RESERVED,
        args=f"{BUILD} --keep-tally {LEDGER}-wal"),
    Fault("L03-beside", "a ledger that is made beside such a file", 6,
        "SQLite would read it as a part of the ledger", args="ledger create new",
        setup=lambda patch: Path("new-journal").touch()),
    Fault("L04-older", "an older copy, and a release beside it that it does not know", 9,
        "an older copy of the ledger was restored", setup=restored),
    Fault("L04-ask", "the same, for an answer", 9, "an older copy of the ledger was restored",
        args=ASK, setup=restored),
    Fault("L04-words", "a file beside it, no release, that names a charge it never made",
        setup=worded, charged=1),
    Fault("L04-forged", "the same in a release that is sound but for that", 9,
        "or the release is forged", setup=forged),
    Fault("L04-head", "an older copy, and the head that was noted", 9,
        "this is an older copy, or another ledger", args=f"ledger verify {LEDGER} --head",
        run=head_of_later),
    Fault("L05-deleted", "an entry that was removed", 9,
        "entry 2 of the ledger was changed, removed or inserted",
        setup=by_hand("DELETE FROM entry WHERE number = 2"), charged=None),
    Fault("L05-order", "two entries that changed places", 9,
        "entry 2 of the ledger was changed, removed or inserted", setup=by_hand(SWAP),
        charged=None),
    Fault("L05-end", "the last entry was removed, and `psd ledger verify`", 9,
        "entry 3 of the ledger was removed", args=f"ledger verify {LEDGER}",
        setup=by_hand("DELETE FROM entry WHERE number = 3"), charged=None),
    Fault("L07-locked", "another process holds the ledger", 9, "is in use by another process",
        run=while_held),
    Fault("L08-read-only", "a ledger that is read-only", 9,
        "cannot be written; check its permissions", setup=lambda patch: Path(LEDGER).chmod(0o400),
        run=process(owner=True)),
    Fault("L10-second", "a file that was charged to another dataset, renamed",
        run=again_under_another_name, charged=2, holds="a warning; a copy causes no warning"),
    Fault("L11-overspent", "more was spent than the budget", 4, "has epsilon 0 left",
        setup=overspent, charged=1),
    Fault("L12-left", "a charge that was never finished", setup=lambda patch: charge(), charged=2,
        after=unfinished, holds="`psd ledger history` says so; it stays charged"),
    Elsewhere("L12-noted", "a release whose build was killed before it was noted",
        f"{SURVIVES}::test_killed_at_named_points",
        "the next build notes it as done, with its digest; it stays charged"),
    Fault("L13-network", "a ledger on NFS, as `/proc/mounts` says", setup=on_a_network, charged=1,
        after=warned("network file system (nfs4)"), holds="a warning"),
    Fault("L14-raised", "a budget that is raised: refused before, paid after",
        run=raised_then_spent, charged=1, holds="an entry says when, and from what"),
    Fault("L14-lowered", "a budget that is lowered", 2, "budget must be above 10",
        args=f"ledger raise {LEDGER} rows --budget 9"),
    Fault("L14-again", "a dataset that is registered again with more", 9,
        "is already registered in", args=f"ledger register {LEDGER} rows --budget 20"),
)
# fmt: on
