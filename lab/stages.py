"""Where the CPU time of a build goes, stage by stage.

    python lab/stages.py --rows 1e6,1e7 -o docs/measured/data/stages.csv

Builds a release of the file of `lab/speed.py` with the default method, in a process
of its own for each size, and writes the CPU time of its main thread in each stage:

- start: Python, the imports before the build, and the command line;
- text: one reading of the file, which counts quotes and bytes;
- parse: waiting for batches of the parser, and their conversion to arrays;
- cells: which records are counted, and the lattice cell of each;
- count: records per lattice cell, and those of users;
- order: the counts in the order of the tree;
- cut: counts of the cells that the method makes;
- draw: the method itself, its questions and the noise;
- save: everything after that, and the imports of the build.

The column "threads" is the CPU time of all other threads, nearly all of them those of the parser.
"""

import json
import tempfile
from pathlib import Path

from common import run_python, study, whole_numbers, write_table
from speed import BOUNDS, make

STAGES = ("start", "text", "parse", "cells", "count", "order", "cut", "draw", "save", "threads")

BUILD = """
import importlib, json, sys, time

spent, active, last = {}, ["start"], 0.0

def turn():
    global last
    now = time.thread_time()
    spent[active[-1]] = spent.get(active[-1], 0.0) + now - last
    last = now

def enter(stage):
    turn()
    active.append(stage)

def leave():
    turn()
    active.pop()

def timed(owner, name, stage):
    function = getattr(owner, name)
    def call(*arguments, **options):
        enter(stage)
        try:
            return function(*arguments, **options)
        finally:
            leave()
    setattr(owner, name, call)

def timed_batches(owner, name, stage):
    function = getattr(owner, name)
    def call(*arguments, **options):
        batches = function(*arguments, **options)
        while True:
            enter(stage)
            try:
                batch = next(batches, None)
            finally:
                leave()
            if batch is None:
                return
            yield batch
    setattr(owner, name, call)

from psd_cli.main import main

active[0] = "save"
turn()
spent["start"] = spent.pop("save")

from psd.curator.curator import Curator
from psd.curator.points import Points
from psd.decompositions.auto import Auto
from psd.ingest.tally_builder import RecordFilter
from psd.ingest.tally_builder import TallyBuilder
from psd.ingest.sources import csv
import psd.publish.counting as counting

timed(csv, "scan_content", "text")
timed_batches(counting, "read", "parse")
timed(RecordFilter, "filter_batch", "cells")
timed(TallyBuilder, "add_batch", "count")
timed(TallyBuilder, "build", "count")
timed(Curator, "root", "order")
timed(Points, "cut", "cut")
timed(Auto, "build", "draw")
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
turn()
spent["threads"] = time.process_time() - time.thread_time()
print(json.dumps(spent))
"""


def stages(path: Path, out: Path, arguments: list[str]) -> dict[str, float]:
    """CPU seconds of each stage of a build."""
    words = ["build", path, "-o", out, "--overwrite", "--epsilon", 1, "--bounds", *BOUNDS]
    printed = run_python(BUILD, *words, *arguments).printed
    spent: dict[str, float] = json.loads(printed.splitlines()[-1])
    return spent


def row(folder: Path, rows: int, repeats: int, arguments: list[str]) -> list[str]:
    """Row of the table: the run with the least CPU time of several."""
    path = folder / "rows.csv"
    make(path, rows)
    runs = [stages(path, folder / "out.psd.parquet", arguments) for _ in range(repeats)]
    spent = min(runs, key=lambda run: sum(run.values()))
    cells = [f"{spent.get(stage, 0.0):.2f}" for stage in STAGES]
    return [f"{rows:,}", *cells, f"{sum(spent.values()):.2f}"]


def main() -> None:
    parser = study(__doc__)
    parser.add_argument("--rows", type=whole_numbers, default=[10**6, 10**7])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("arguments", nargs="*", help="of psd build, after --")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = (row(Path(folder), size, given.repeats, given.arguments) for size in given.rows)
        write_table(given.output, ["rows", *STAGES, "all"], rows)


if __name__ == "__main__":
    main()
