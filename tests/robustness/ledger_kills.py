"""Builds that are killed at chosen steps, each in a process of its own; run by its test.

A process of its own, without a thread, forks one child for each build. The child counts the
calls and returns of what touches the ledger, the noise and the release, and kills itself at the
one it was given, or does so at a point that has a name, a few times over a release and a tally
that stand there already. Output: how many steps a whole build has.
"""

import os
import shutil
import signal
import sys
from pathlib import Path

# What a build loads, loaded once before the forks.
import duckdb  # noqa: F401
import pandas  # noqa: F401
import pyarrow.compute  # noqa: F401
import pyproj  # noqa: F401

import psd._util.atomic_write
import psd.ingest.sources.arrow
import psd.ingest.sources.csv
import psd.ingest.tally_file
import psd.publish.series
import psd.release.file
from psd.ledger.ledger import Ledger
from psd.mechanisms.sampler import SecureSampler
from psd.publish.charging import PendingCharge
from psd_cli.commands import build  # noqa: F401
from psd_cli.main import run

STEPS = (
    "ledger/ledger.py",
    "ledger/file.py",
    "ledger/account.py",
    "_util/atomic_write.py",
    "_util/abandoned_files.py",
    "publish/build.py",
    "publish/charging.py",
    "privacy/budget.py",
    "mechanisms/sampler.py",
)

BUILD = (
    "build points.csv -o out/r.psd.parquet --epsilon 1 --bounds 0 0 4 4 --ledger city.ledger "
    "--dataset rows"
)

# They draw by different mechanisms, and the last is charged in rho.
METHODS = {
    "quadtree": ("--method", "quadtree", "--set", "height=1"),
    "grid": ("--method", "grid"),
    "kd-standard": ("--method", "kd-standard", "--set", "height=2"),
    "privtree": ("--method", "privtree"),
    "gaussian": (
        "--method",
        "quadtree",
        "--set",
        "height=1",
        "--noise",
        "gaussian",
        "--delta",
        "1e-6",
    ),
}


def watched(frame):
    """Whether a step belongs to the protocol."""
    return frame.f_code.co_filename.endswith(STEPS)


# Where a build is killed by name: owner, function, and whether when it begins or has ended, the
# first time or the second.
POINTS = {
    "before-the-charge": (PendingCharge, "charge", "begins"),
    "after-the-charge": (PendingCharge, "charge", "ended"),
    "while-drawing": (SecureSampler, "draw", "ended"),
    "while-writing": (psd._util.atomic_write, "_give_name", "begins"),
    "after-the-name": (psd._util.atomic_write, "_give_name", "ended"),
    "before-the-note": (Ledger, "finish", "begins"),
    "over-the-release": (Path, "replace", "begins"),
    "over-the-tally": (Path, "replace", "begins again"),
    "over-both": (Path, "replace", "ended again"),
}
OVER = ("--overwrite", "--keep-tally", "out/k.tally")


def deadly(point):
    """Let the process end at a point."""
    owner, name, when = POINTS[point]
    step, calls = getattr(owner, name), []

    def killed(*arguments, **options):
        calls.append(name)
        here = "again" not in when or len(calls) == 2
        if "ended" in when or not here:
            step(*arguments, **options)
        if here:
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, killed)


class Killer:
    """Counts steps, and ends the process at one of them."""

    def __init__(self, step):
        self.step, self.seen = step, 0

    def __call__(self, frame, event, argument):
        if watched(frame):
            self.seen += 1
            if self.seen == self.step:
                os.kill(os.getpid(), signal.SIGKILL)


def child(folder, step, *more, point=None):
    """Run a build in a fork; say how it ended."""
    process = os.fork()
    if process:
        return os.waitpid(process, 0)[1]
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    draw = SecureSampler.draw

    def noted(*question):
        Path("drawn").touch()
        return draw(*question)

    SecureSampler.draw = noted
    if point is not None:
        deadly(point)
    killer = Killer(step)
    sys.setprofile(killer)
    code = run([*BUILD.split(), *more])
    sys.setprofile(None)
    Path("steps").write_text(str(killer.seen))
    os._exit(code)


def prepared(folder, template):
    """A ledger that nothing was charged to, and an input."""
    (folder / "out").mkdir(parents=True)
    shutil.copy(template, folder / "city.ledger")
    (folder / "points.csv").write_text("lon,lat\n1,1\n2,3\n")
    return folder


def kill_over(folder, template, options, points):
    """Kill builds over a release and a tally, keep a copy of each, and run each again."""
    whole = prepared(folder / "over", template)
    assert child(whole, 0, *options, *OVER) == 0
    for point in points:
        place = folder / f"{point}-killed"
        shutil.copytree(whole, place)
        assert os.WTERMSIG(child(place, 0, *options, *OVER, point=point)) == signal.SIGKILL
        shutil.copytree(place, folder / f"{point}-again")
        assert child(folder / f"{point}-again", 0, *options, *OVER) == 0, point


def again(folder, name, *options):
    """Run a build that was killed once more, on a copy of what it left."""
    place = folder / f"again-{name}"
    shutil.copytree(folder / f"killed-{name}", place)
    assert child(place, 0, *options, "--overwrite") == 0, name


def kill_at(place, template, step, options):
    """Kill a build at a step; one that its draws let end before that is made again."""
    while (ended := child(prepared(place, template), step, *options)) == 0:
        shutil.rmtree(place)
    assert os.WTERMSIG(ended) == signal.SIGKILL


def main(folder, method, number, points):
    """Kill so many builds at steps that are evenly spaced, and at points that are named."""
    options = METHODS[method]
    template = folder / "template"
    Ledger.create(template).register("rows", 1000, delta="1e-6")
    over = [point for point in points if point.startswith("over-")]
    kill_over(folder, template, options, over)
    for point in (point for point in points if point not in over):
        place = prepared(folder / f"killed-{point}", template)
        assert os.WTERMSIG(child(place, 0, *options, point=point)) == signal.SIGKILL
        again(folder, point, *options)
    assert child(prepared(folder / "whole", template), 0, *options) == 0
    steps = int((folder / "whole" / "steps").read_text())
    assert number <= steps, "two kills at one step"
    for i in range(number):
        step = 1 + i * (steps - 1) // max(number - 1, 1)
        kill_at(folder / f"killed-{step}", template, step, options)
        if i % 4 == 0:
            again(folder, step, *options)
    print(steps)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:])
