"""Kill additions to a stream at their steps; run by `test_stream_survives`, as its own process.

Each addition runs in a fork that a profiler ends at one step, by SIGKILL. It is then run again to
its end. Every answer that is drawn is noted, so that two draws of one question are seen.
"""

import os
import shutil
import signal
import sys
from pathlib import Path

# What an addition loads, loaded once before the forks.
import duckdb  # noqa: F401
import pandas  # noqa: F401
import pyarrow.compute  # noqa: F401

import psd.ingest.sources.arrow
import psd.ingest.sources.csv  # noqa: F401
from psd.mechanisms.sampler import SecureSampler
from psd_cli.commands import stream  # noqa: F401
from psd_cli.main import run

STEPS = (
    "streams/addition.py",
    "streams/counting.py",
    "streams/drawing.py",
    "streams/outputs.py",
    "streams/totals.py",
    "streams/state.py",
    "streams/words.py",
    "mechanisms/random_words.py",
    "mechanisms/sampler.py",
    "privacy/budget.py",
    "_util/atomic_write.py",
    "_util/abandoned_files.py",
)

CREATE = (
    "stream create city.stream -o out/c.psd.parquet --epsilon 1 --bounds 0 0 4 4 "
    "--slices 2026-01-05..2026-01-09 --read time=time --user user --max-contributions 3"
)
ADD = "stream add city.stream points.csv --slice"
FIRST, SECOND = "2026-01-05", "2026-01-06"
ROWS = "".join(f"{1 + n % 3},2,{day}T12:00,u{n}\n" for day in (FIRST, SECOND) for n in range(4))

METHODS = {
    "quadtree": ("--method", "quadtree", "--set", "height=1"),
    "kd-standard": ("--method", "kd-standard", "--set", "height=2"),
}


class Killer:
    """Counts steps, and ends the process at one of them."""

    def __init__(self, step):
        self.step, self.seen = step, 0

    def __call__(self, frame, event, argument):
        if frame.f_code.co_filename.endswith(STEPS):
            self.seen += 1
            if self.seen == self.step:
                os.kill(os.getpid(), signal.SIGKILL)


def child(folder, command, step=0, note="draws"):
    """Run a command in a fork; say how it ended."""
    process = os.fork()
    if process:
        return os.waitpid(process, 0)[1]
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open("errors", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    draw = SecureSampler.draw

    def noted(*question):
        answer = draw(*question)
        with open(note, "a") as file:
            file.write(f"{answer.tolist()}\n")
        return answer

    SecureSampler.draw = noted
    killer = Killer(step)
    sys.setprofile(killer)
    code = run(command)
    sys.setprofile(None)
    Path("steps").write_text(str(killer.seen))
    os._exit(code)


def prepared(folder, options):
    """A stream with one slice, and an input with the records of two."""
    (folder / "out").mkdir(parents=True)
    (folder / "points.csv").write_text(f"lon,lat,time,user\n{ROWS}")
    assert child(folder, [*CREATE.split(), *options]) == 0
    assert child(folder, [*ADD.split(), FIRST]) == 0
    (folder / "draws").unlink()
    return folder


def main(folder, method, number):
    """Kill so many additions at steps that are evenly spaced, and run each again."""
    template = prepared(folder / "template", METHODS[method])
    output = template / "out" / "c.psd.parquet"
    shutil.copy(output, folder / "before.psd.parquet")
    whole = folder / "whole"
    shutil.copytree(template, whole)
    move(whole)
    assert child(whole, [*ADD.split(), SECOND]) == 0
    steps = int((whole / "steps").read_text())
    assert number <= steps, "two kills at one step"
    for i in range(number):
        step = 1 + i * (steps - 1) // max(number - 1, 1)
        place = folder / f"killed-{i}"
        shutil.copytree(template, place)
        move(place)
        ended = child(place, [*ADD.split(), SECOND], step)
        left = place / "out" / "c.psd.parquet"
        shutil.copy(left, place / "left.psd.parquet")
        code = child(place, [*ADD.split(), SECOND], note="again")
        (place / "code").write_text(f"{os.WIFSIGNALED(ended)} {os.waitstatus_to_exitcode(code)}")
    print(steps)


def move(place):
    """Let the state of a copied stream name the series file of the copy."""
    import json
    import sqlite3
    from contextlib import closing

    output = json.dumps(str(place / "out" / "c.psd.parquet"))
    with closing(sqlite3.connect(place / "city.stream", isolation_level=None)) as database:
        database.execute("UPDATE plan SET value = ? WHERE name = 'output'", [output])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
