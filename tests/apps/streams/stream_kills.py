"""Kill additions to a stream at their steps; run by `test_stream_survives`, as its own process.

Each addition is then run again to its end. Every answer that is drawn is noted, so that two draws
of one question are seen.
"""

import json
import os
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from psd.ingest.sources import Columns
from psd.ledger.ledger import Ledger
from psd.mechanisms.sampler import SecureSampler
from psd_cli.main import run
from robustness.kills import forked, load_modules, spread
from support.streams import rewrite

STEPS = (
    *("streams/addition.py", "streams/counting.py", "streams/drawing.py", "streams/outputs.py"),
    *("streams/totals.py", "streams/state.py", "streams/random_tape.py", "privacy/budget.py"),
    *("mechanisms/random_words.py", "mechanisms/sampler.py", "ledger/ledger.py", "ledger/file.py"),
    "_util/atomic_write.py",
)

CREATE = (
    "stream create city.stream -o out/c.psd.parquet --epsilon 1 --bounds 0 0 4 4 --slices "
    "2026-01-05..2026-01-09 --time time --user user --max-contributions 3 "
    "--ledger city.ledger --dataset visits --method "
)
DAYS = ("2026-01-05", "2026-01-06")
FIRST, SECOND = (f"stream add city.stream points.csv --slice {day}" for day in DAYS)
ROWS = "".join(f"{1 + n % 3},2,{day}T12:00,u{n}\n" for day in DAYS for n in range(4))

METHODS = {"quadtree": "quadtree --set height=1", "kd-standard": "kd-standard --set height=2"}


def child(folder, command, step=0, note="draws"):
    """Run a command in a fork; say how it ended."""

    def work():
        draw = SecureSampler.draw

        def noted(*question):
            answer = draw(*question)
            with open(note, "a") as file:
                file.write(f"{answer.tolist()}\n")
            return answer

        SecureSampler.draw = noted
        return run(command.split())

    return forked(folder, work, STEPS, step)


def prepared(folder, method):
    """A stream with one slice, and an input with the records of two."""
    (folder / "out").mkdir(parents=True)
    (folder / "points.csv").write_text(f"lon,lat,time,user\n{ROWS}")
    ledger, columns = Ledger.create(folder / "city.ledger"), Columns(time="time", user="user")
    ledger.register("visits", 1, unit="user", columns=columns)
    assert child(folder, CREATE + METHODS[method]) == 0
    assert child(folder, FIRST) == 0
    load_modules(folder)
    (folder / "draws").unlink()
    return folder


def copied(template, place):
    """A copy of a stream, whose state names the series file and the ledger beside it."""
    shutil.copytree(template, place)
    moved = {"output": place / "out" / "c.psd.parquet", "ledger": place / "city.ledger"}
    with closing(sqlite3.connect(place / "city.stream")) as database:
        rewrite(database, {name: json.dumps(str(path)) for name, path in moved.items()})
    return place


def main(folder, method, number):
    """Kill so many additions at steps that are evenly spaced, and run each again."""
    template = prepared(folder / "template", method)
    shutil.copy(template / "out" / "c.psd.parquet", folder / "before.psd.parquet")
    assert child(copied(template, folder / "whole"), SECOND) == 0
    for i, step in enumerate(spread(number, folder / "whole")):
        place = copied(template, folder / f"killed-{i}")
        ended = child(place, SECOND, step)
        shutil.copy(place / "out" / "c.psd.parquet", place / "left.psd.parquet")
        code = os.waitstatus_to_exitcode(child(place, SECOND, note="again"))
        (place / "code").write_text(f"{os.WIFSIGNALED(ended)} {code}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
