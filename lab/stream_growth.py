"""What one addition to a stream costs as the stream grows: time, memory, and sizes of its files.

    python lab/stream_growth.py [--steps 2,100,1000,4000,8759] [--size 64] [--of 8760]
        [--counter slices|tree|toeplitz] [--records 5000] [--parts]

A stream by the hour with `--method grid --set size=64` is filled up to each of the steps: answers
of the slices between are stand-ins, with noise of the same law, that are written into the state
without the public series. Then two slices are added by `psd stream add`, each in a process of its
own. The first finds no public file and writes it anew from the state (columns "anew"); the second
is an addition like any other. CPU time and the peak of memory are those of the whole process,
imports included.

With `--counter` the stream has running totals, and blocks are stand-ins as well. An addition with
`toeplitz` multiplies all earlier blocks.

With `--parts` a ledger pays for the stream and has each of its slices. The second addition is run
by the command, and once more on the same files by `psd.apps.streams.Stream.add`, in a process that
has imported what it needs: CPU time of the call, of it for the ledger and for the file of the
series.
"""

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import PSD, run_python, study, whole_numbers, write_table

import psd
from psd.apps.streams.plan import COUNTERS, blocks_of
from psd.apps.streams.state import SLICES, TOTALS, StoredAnswer, opened_state, packed
from psd.ingest.sources import Columns, read
from psd.ingest.tally_builder import tally_batches
from psd.ledger.entries import entry
from psd.ledger.file import append, exclusive
from psd.release.file import decode_release, encode_release, slice_digest
from psd.release.series_file import join_releases

BOUNDS = (0, 0, 8, 8)
FIRST = np.datetime64("2026-01-01T00")
DELTA = "1e-6"
SPREAD = 100  # of the numbers of blocks
CHANCE = 1 - np.exp(-1)  # of the noise of epsilon 1

# An addition in a process that has added to a stream before, so that all modules are loaded.
PARTS = """
import json, sys, time
import psd
from psd.ledger.ledger import Ledger
from psd.apps.streams.outputs import Output

spent, inside = {}, []

def timed(part, call):
    def run(*args, **more):
        start, is_inner = time.process_time(), bool(inside)
        inside.append(part)
        try:
            return call(*args, **more)
        finally:
            inside.pop()
            if not is_inner:
                spent[part] = spent.get(part, 0) + time.process_time() - start
    return run

state, rows, hour, small = sys.argv[1:]
psd.apps.streams.Stream(small).add(rows, hour)
for name in ("state", "draw_slice", "finish"):
    setattr(Ledger, name, timed("ledger", getattr(Ledger, name)))
for name in ("of", "add", "publish"):
    setattr(Output, name, timed("series", getattr(Output, name)))
start = time.process_time()
psd.apps.streams.Stream(state).add(rows, hour)
print(json.dumps({"add": time.process_time() - start, **spent}))
"""


class Grown(NamedTuple):
    """Files of a stream."""

    state: Path
    output: Path
    rows: Path
    totals: Path
    ledger: Path

    def copied(self):
        """Contents of the files that an addition writes, by their paths."""
        return {path: path.read_bytes() for path in self if path.exists()}


def hours(number):
    """Names of the slices."""
    return psd.TimeSlices(by="hour", names=tuple(map(str, FIRST + np.arange(number))))


def create(state, output, slices, size, **more):
    """A stream on a grid."""
    grid = psd.decompositions.Grid(size=size)
    psd.apps.streams.Stream.create(
        state, output, domain=BOUNDS, epsilon=1, slices=slices, method=grid, time="time", **more
    )


def write_rows(path, hour, records):
    """CSV with the records of an hour, at random places."""
    places = np.random.default_rng(7).random((records, 2)) * 8
    lines = [f"{x:.6f},{y:.6f},{hour}:30:00" for x, y in places]
    path.write_text("\n".join(["lon,lat,time", *lines]) + "\n")


def add(files, hour, records):
    """Cost of `psd stream add` in a process of its own."""
    write_rows(files.rows, hour, records)
    return run_python(PSD, "stream", "add", files.state, files.rows, "--slice", hour)


def add_by_parts(files, hour):
    """CPU time of an addition in Python, and of its parts, on the files as they are."""
    small = files.state.with_name(f"{hour}.stream")
    slices = psd.TimeSlices(by="hour", names=(hour,))
    create(small, small.with_suffix(".psd.parquet"), slices, size=2)
    return json.loads(run_python(PARTS, files.state, files.rows, hour, small).printed)


def fill(files, steps, counter):
    """Write stand-ins for the answers of steps into state and ledger, as additions leave them."""
    with opened_state(files.state) as state:
        state.database.execute("PRAGMA synchronous = OFF")
        records = [last_record(state, series) for series in series_of(counter)]
        tally = tally_of_rows(files.rows)
        for step in steps:
            answers = [answer_of(stand_in(record), step) for record in records]
            blocks = blocks_after(step, counter, tally, records[-1].tree)
            keeps = counter == "toeplitz"
            state.add_slice(step, answers, draw=f"{step:032x}", blocks=blocks, keeps_blocks=keeps)
        for series in series_of(counter) if steps else ():
            write_digest(state, series, steps[-1])
        if files.ledger.exists():
            record_slices(files.ledger, state, steps)


def answer_of(record, step):
    """What the state keeps of a slice, but the digests of the series and of its file."""
    drawn = slice_digest(str(FIRST + np.timedelta64(step, "h")), record.tree)
    return StoredAnswer(encode_release(record), "", "", drawn)


def record_slices(path, state, steps):
    """Write slices of the state into the ledger, in one transaction."""
    before = psd.Ledger(path).state()
    hashes, (charge,) = [*before.hashes], before.charges
    with exclusive(path) as ledger:
        for step in steps:
            drawn = state.drawn_slice(step)
            body = {
                "id": charge,
                "slice": str(FIRST + np.timedelta64(step, "h")),
                "draw": drawn.draw,
            }
            row = entry(tuple(hashes), "slice", {**body, "digests": list(drawn.digests)})
            append(ledger, row)
            hashes.append(row[-1])


def write_digest(state, series, step):
    """Write the digest of a series after a step, which the next addition compares."""
    names = hours(1 + step)
    digest = join_releases(lambda: state.releases(series), names, "series")[1]
    query = "UPDATE answer SET digest = ? WHERE series = ? AND number = ?"
    state.database.execute(query, [digest, series, step])


def series_of(counter):
    """Numbers of the public series."""
    return [SLICES] if counter is None else [SLICES, TOTALS]


def last_record(state, series):
    """Record of the last slice in the state."""
    return decode_release(state.latest_releases(series, 1)[0])[0]


def tally_of_rows(path):
    """Tally of an input."""
    domain = psd.Domain(bounds=BOUNDS)
    return tally_batches(read([str(path)], Columns(x="lon", y="lat", user=None), domain), domain)


def stand_in(record):
    """A release like another one, with the counts of other records and other noise."""
    numbers = np.random.default_rng()
    nodes = len(record.tree)
    noise = numbers.geometric(CHANCE, nodes) - numbers.geometric(CHANCE, nodes)
    counts = np.where(record.tree.loss > 0, numbers.poisson(1, nodes) + noise, 0)
    return replace(record, tree=replace(record.tree, count=counts))


def blocks_after(step, counter, tally, tree):
    """Blocks that a counter keeps after a step: of the square root, those of the step alone."""
    kept = {"tree": blocks_of(step + 1), "toeplitz": [(0, step)]}.get(counter, [])
    noise = np.rint(np.random.default_rng().normal(0, SPREAD, len(tree)))
    numbers = np.where(tree.loss > 0, noise, 0)
    return {at: packed(tally, numbers) for at in kept}


def size_of(path):
    """Size of a file in MB."""
    return path.stat().st_size / 1e6


def grow(files, options):
    """A row for each step."""
    names, filled = hours(options.of).names, 0
    for step in options.steps:  # at least 2
        if not filled:  # the records that fill the steps are those of the first
            add(files, names[0], options.records)
        fill(files, range(max(filled, 1), step - 1), options.counter)
        for path in (files.output, files.totals):
            path.unlink(missing_ok=True)
        anew = add(files, names[step - 1], options.records)
        before = files.copied()
        cost = add(files, names[step], options.records)
        filled = step + 1
        if options.parts:
            for path, content in before.items():
                path.write_bytes(content)
            parts = add_by_parts(files, names[step])
            parts["rest"] = 2 * parts["add"] - sum(parts.values())
            shown = (f"{parts[name]:.2f}" for name in ("add", "ledger", "series", "rest"))
            yield (f"{step:,}", f"{cost.cpu:.2f}", *shown)
            continue
        sizes = (f"{size_of(path):,.1f}" for path in (files.state, files.output))
        costs = [(f"{each.cpu:.1f}", f"{each.memory:,.0f}") for each in (cost, anew)]
        yield (f"{step:,}", *costs[0], *sizes, *costs[1])


def main():
    parser = study(__doc__)
    default = [2, 100, 1000, 4000, 8759]
    parser.add_argument("--steps", type=whole_numbers, default=default, help="slices before")
    parser.add_argument("--of", type=int, default=8760, help="slices of the stream")
    parser.add_argument("--size", type=int, default=64, help="columns and rows of the grid")
    parser.add_argument("--records", type=int, default=5000, help="records of a slice")
    parser.add_argument("--counter", choices=COUNTERS, help="counter of running totals")
    parser.add_argument("--parts", action="store_true", help="CPU time by part, with a ledger")
    options = parser.parse_args()
    header = ["slices before", "CPU s", "memory MB", "state MB", "series MB"]
    header += ["anew: CPU s", "memory MB"]
    if options.parts:
        header = ["slices before", "command: CPU s", "`add`: CPU s", "ledger", "series", "rest"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = Grown(
            state=folder / "city.stream",
            output=folder / "city.psd.parquet",
            rows=folder / "rows.csv",
            totals=folder / "city.totals.psd.parquet",
            ledger=folder / "city.ledger",
        )
        account = None
        if options.parts:
            ledger = psd.Ledger.create(files.ledger)
            ledger.register("visits", 1, columns=Columns(time="time"))
            account = psd.ledger.Account(ledger, "visits")
        create(
            files.state,
            files.output,
            hours(options.of),
            options.size,
            account=account,
            totals=options.counter is not None,
            counter=options.counter,
            delta=DELTA if options.counter == "toeplitz" else None,
        )
        write_table(options.output, header, grow(files, options))


if __name__ == "__main__":
    main()
