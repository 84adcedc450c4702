"""Builds that are killed at chosen steps, each in a process of its own; run by its test.

They are killed at steps of what touches the ledger, the noise and the release, or at a point that
has a name, a few times over a release and a tally that stand there already.
"""

import shutil
import sys
from pathlib import Path

import psd._util.atomic_write
from psd.ledger.ledger import Ledger
from psd.mechanisms.sampler import SecureSampler
from psd.publish.charging import PendingCharge
from psd_cli.main import run
from robustness.kills import end, forked, load_modules, spread, was_killed

STEPS = (
    *("ledger/ledger.py", "ledger/file.py", "ledger/account.py", "privacy/budget.py"),
    *("_util/atomic_write.py", "mechanisms/sampler.py"),
    *("publish/build.py", "publish/charging.py"),
)

BUILD = (
    "build points.csv -o out/r.psd.parquet --epsilon 1 --bounds 0 0 4 4 --ledger city.ledger "
    "--dataset rows --method "
)

# They draw by different mechanisms, and the last is charged in rho.
METHODS = {
    "quadtree": "quadtree --set height=1",
    "grid": "grid",
    "kd-standard": "kd-standard --set height=2",
    "privtree": "privtree",
    "gaussian": "quadtree --set height=1 --noise gaussian --delta 1e-6",
}

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
OVER = " --overwrite --keep-tally out/k.tally"


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
            end()

    setattr(owner, name, killed)


def child(folder, options, step=0, point=None):
    """Run a build in a fork, and note that it draws; say how it ended."""

    def work():
        draw = SecureSampler.draw

        def noted(*question):
            Path("drawn").touch()
            return draw(*question)

        SecureSampler.draw = noted
        if point is not None:
            deadly(point)
        return run((BUILD + options).split())

    return forked(folder, work, STEPS, step)


def prepared(folder, template):
    """A ledger that nothing was charged to, and an input."""
    (folder / "out").mkdir(parents=True)
    shutil.copy(template, folder / "city.ledger")
    (folder / "points.csv").write_text("lon,lat\n1,1\n2,3\n")
    return folder


def again(place, copy, options):
    """Run a build that was killed once more, on a copy of what it left."""
    shutil.copytree(place, copy)
    assert child(copy, options) == 0, place


def kill_over(folder, template, options, points):
    """Kill builds over a release and a tally, keep a copy of each, and run each again."""
    whole = prepared(folder / "over", template)
    assert child(whole, options) == 0
    for point in points:
        place = folder / f"{point}-killed"
        shutil.copytree(whole, place)
        assert was_killed(child(place, options, point=point))
        again(place, folder / f"{point}-again", options)


def kill_at(place, template, step, options):
    """Kill a build at a step; one that its draws let end before that is made again."""
    while (ended := child(prepared(place, template), options, step)) == 0:
        shutil.rmtree(place)
    assert was_killed(ended)


def main(folder, method, number, part, points):
    """Kill builds at so many steps, evenly spaced, or a part of them, and at points of a name."""
    options = METHODS[method]
    template = folder / "template"
    Ledger.create(template).register("rows", 1000, delta="1e-6")
    assert child(prepared(folder / "first", template), options) == 0
    load_modules(folder / "first")
    over = [point for point in points if point.startswith("over-")]
    kill_over(folder, template, options + OVER, over)
    for point in (point for point in points if point not in over):
        place = prepared(folder / f"killed-{point}", template)
        assert was_killed(child(place, options, point=point))
        again(place, folder / f"again-{point}", options + " --overwrite")
    assert child(prepared(folder / "whole", template), options) == 0
    for i, step in enumerate(spread(number, folder / "whole")[part]):
        place = folder / f"killed-{step}"
        kill_at(place, template, step, options)
        if i % 4 == 0:
            again(place, folder / f"again-{step}", options + " --overwrite")


if __name__ == "__main__":
    folder, method, number, first, every, *points = sys.argv[1:]
    main(Path(folder), method, int(number), slice(int(first), None, int(every)), points)
