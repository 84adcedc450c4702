"""The psd command, run inside the test or as a process of its own."""

import io
import json
import os
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import click
import pandas as pd

import psd
from psd._apps import COMMANDS, has_app
from psd_cli.main import cli as group
from psd_cli.main import run
from support.releases import as_drawn

SQUARE = psd.Domain(bounds=(-4, -4, 4, 4), crs="EPSG:4326")
BOUNDS = ("--bounds", -4, -4, 4, 4)

REQUEST_WARNINGS = re.compile(
    r"psd: warning: (?:--)?epsilon ([1-9]\d[\d.]*) is a weak promise: .*\1; .*"
    r"|psd: warning: a column is named like an id \(.+\), and each record .*"
    r"|psd: warning: (?:--)?bounds .* may be degrees, .*"
    r"|psd: warning: the columns \S+ and \S+ are named as (degrees|metres), .*"
    r"|\(to see, as the holder of the data, how many records were left out, .*"
)

# Noise of this epsilon is 0 but for a chance of exp(-1000).
CERTAIN = ("--epsilon", 1000, "--method", "quadtree", "--set", "budget=leaf")


@dataclass
class Outcome:
    code: int
    out: str
    err: str


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def every_command(within=group, path=""):
    """Words of each command, those below others too, and the command."""
    for name in within.list_commands(None):
        command = within.get_command(None, name)
        yield f"{path}{name}", command
        if hasattr(command, "list_commands"):
            yield from every_command(command, f"{path}{name} ")


def parse(words):
    """Context of a command line as click parses it, without a run."""
    command = group
    # A command keeps the option of its help, whose names are those of the group.
    above = click.Context(group, info_name="psd", **group.context_settings)
    while True:
        name, *words = words
        command = command.get_command(None, name)
        assert command is not None, name
        if not hasattr(command, "get_command") or not words:
            return command.make_context(name, words, parent=above)


def words(*args):
    """Words of a command line; its first text may be several."""
    return [*str(args[0]).split(), *map(str, args[1:])] if args else []


def cli(*args, stderr=None):
    """Run the command line in this process; stderr is without warnings about the request."""
    out, err = io.StringIO(), stderr or io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(words(*args))
    return Outcome(code, out.getvalue(), without_request_warnings(err.getvalue()))


def without_request_warnings(err):
    """Lines of stderr but warnings of an epsilon above 10, columns of ids, and bounds near 0.

    Builds without noise have the first, those per record of rows of users the second, and small
    domains of tests in metres the third.
    """
    lines = err.splitlines(keepends=True)
    return "".join(line for line in lines if not REQUEST_WARNINGS.fullmatch(line.rstrip("\n")))


def passes(*args):
    """Stdout of a run that succeeds and has nothing to say on stderr."""
    outcome = cli(*args)
    assert (outcome.code, outcome.err) == (0, "")
    return outcome.out


def fails(code, *args):
    """The one line on stderr of a run that fails with a code and prints nothing else."""
    outcome = cli(*args)
    assert (outcome.code, outcome.out) == (code, ""), outcome
    assert outcome.err.startswith("psd: error: ")
    assert outcome.err.count("\n") == 1
    assert outcome.err.endswith("\n")
    return outcome.err


def as_json(*args):
    """What a run prints as JSON."""
    return json.loads(passes(*args, "--format", "json"))


def as_table(*args, **options):
    """What a run prints as CSV, read by pandas."""
    return pd.read_csv(io.StringIO(passes(*args, "--format", "csv")), **options)


def contents(folder):
    """Bytes of every file in a folder, hidden files too."""
    return {path: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}


def check_refusals(subtests, table, *line, folder="."):
    """Rows of a code, words after a line, and what the message says: each leaves all files alone.

    Words are a text, which is split, or a tuple; rows of a command without its app are left out.
    """
    before = contents(folder)
    for code, more, told in table:
        more = more.split() if isinstance(more, str) else more
        text = f"{' '.join(map(str, [*line, *more]))} "
        if any(text.startswith(f"{name} ") and not has_app(app) for name, app in COMMANDS.items()):
            continue
        with subtests.test(str(more)):
            assert told in fails(code, *line, *more)
            assert contents(folder) == before


def process(*args, **options):
    """Run the installed command."""
    command = [str(Path(sys.executable).with_name("psd")), *words(*args)]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", env=environment, check=False, **options
    )


def write_points(path, rows, header="lon,lat"):
    """CSV with a header and rows of values."""
    lines = [header, *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def three_by_three(crs="EPSG:4326"):
    """The worked example: a 3 x 3 grid with given noisy counts, from the north row down."""
    domain = psd.Domain(bounds=(-4, -4, 5, 5), crs=crs, lattice=(3, 3))
    counts = {(0, 2): 2, (1, 2): 6, (2, 2): 1, (0, 1): 3, (1, 1): 4, (2, 1): 3}
    counts |= {(0, 0): 0, (1, 0): 1, (2, 0): 2}
    tree = psd.decompositions.grid_tree(domain, 3)
    leaves = tree.boxes[tree.is_leaf][:, :2].tolist()
    made = psd.Release.from_counts(tree, [counts[x, y] for x, y in leaves], "1", domain=domain)
    return as_drawn(made)


def files(folder):
    """Names of everything in a folder, hidden files too."""
    return sorted(path.name for path in folder.iterdir())
