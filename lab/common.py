"""What the scripts of the lab share: options, tables and pages, builds, and measured processes."""

import argparse
import csv
import os
import re
import resource
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import shapely

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [path for path in (str(ROOT / "tests"), str(ROOT)) if path not in sys.path]

import psd  # noqa: E402
from psd.decompositions import Decomposition  # noqa: E402
from psd.ingest.tally import Batch, Tally  # noqa: E402
from psd.ingest.tally_builder import tally_batches  # noqa: E402
from psd.privacy.budget import Budget  # noqa: E402
from psd.privacy.loss import parse_epsilon  # noqa: E402
from psd.privacy.unit import PrivacyUnit  # noqa: E402
from psd.publish.drawing import draw_release  # noqa: E402
from psd.space.box_tree import Tree, locate  # noqa: E402
from psd.space.region_tree import RegionTree  # noqa: E402

CLASSES = ("U .01 %", "U .1 %", "U 1 %", "U 10 %", "D .01 %", "D .1 %", "D 1 %", "D 10 %")
"""Classes of `psd.apps.evaluation.workload`: uniform centres, and centres on data."""


def items(text: str) -> list[str]:
    """Parts of a text with commas."""
    return text.split(",")


def whole_numbers(text: str) -> list[int]:
    """Whole numbers of a text with commas, such as 1e4,50000."""
    return [int(float(part)) for part in items(text)]


def study(doc: str | None, **defaults: Any) -> argparse.ArgumentParser:
    """Parser of a script: its first line, -o, and common options for the defaults that are given.

    ``methods`` and ``epsilons`` are texts with commas; ``runs``, ``builds``, ``jobs`` and
    ``districts`` are numbers.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    texts = {"methods": "with commas", "epsilons": "with commas"}
    numbers = {
        "runs": "builds of each",
        "builds": "builds of each",
        "jobs": "parallel processes",
        "districts": "made-up districts",
    }
    for name, default in defaults.items():
        shown = f"{texts.get(name) or numbers[name]} [{'all' if default is None else default}]"
        kind: Callable[[str], Any] = items if name in texts else int
        parser.add_argument(f"--{name}", type=kind, default=default, help=shown)
    parser.add_argument("-o", "--output", type=Path, help="file to write instead of printing")
    return parser


def command() -> str:
    """The command that runs now, as a page shows it: without the folders of this machine."""
    words = ["python", f"lab/{Path(sys.argv[0]).name}", *sys.argv[1:]]
    for index, word in enumerate(words[:-1]):
        if word == "--data":
            words[index + 1] = "FOLDER"
    return shlex.join(words)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Table in Markdown."""
    lines = [header, ("---",) * len(header), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def write_csv(output: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table as CSV, row by row as it is measured, without marks of Markdown."""
    with output.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        for row in chain((header,), rows):
            writer.writerow([str(cell).strip("*") for cell in row])
            out.flush()


def write_table(output: Path | None, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table to a file, CSV by its name, or print it, row by row as it is measured."""
    if output and output.suffix == ".csv":
        write_csv(output, header, rows)
        return
    with output.open("w", encoding="utf-8") if output else open(1, "w", closefd=False) as out:
        print(f"| {' | '.join(header)} |\n|{' --- |' * len(header)}", file=out)
        for row in rows:
            print(f"| {' | '.join(map(str, row))} |", file=out, flush=True)


def write_page(
    output: Path | None,
    introduction: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    **values: Any,
) -> None:
    """Write or print a page, an introduction that names its command and a table, or write CSV.

    Rows are shown on stderr as soon as they are there.
    """
    found = []
    for row in rows:
        found.append(row)
        print(*row, sep=" | ", file=sys.stderr, flush=True)
    if output and output.suffix == ".csv":
        write_csv(output, header, found)
        return
    text = introduction.format(command=command(), version=psd.__version__, **values)
    text += table(header, found)
    if output:
        output.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


def tally_of(xy: np.ndarray, domain: psd.Domain, regions: Any = None) -> Tally:
    """Counts of points, shape (n, 2); by named regions if there are some."""
    return tally_batches([Batch(x=xy[:, 0], y=xy[:, 1])], domain, strata=regions)


def draw(
    counts: Tally, domain: psd.Domain, method: str | Decomposition, epsilon: str, **more: Any
) -> psd.Release:
    """A release of records that were counted."""
    return draw_release(
        counts,
        domain,
        budget=Budget(parse_epsilon(epsilon)),
        method=psd.decompositions.method(method) if isinstance(method, str) else method,
        unit=PrivacyUnit(),
        **more,
    )


def exact_counts(tree: Tree, counts: Tally) -> np.ndarray:
    """True count of every cell of a release."""
    exact = np.zeros(len(tree), np.int64)
    start = tree.frame.lowest[counts.region] if isinstance(tree, RegionTree) else None
    np.add.at(exact, locate(tree, counts.columns, counts.rows, start), counts.counts)
    for level in reversed(tree.levels[1:]):
        np.add.at(exact, tree.parent[level], exact[level])
    return exact


def counts_in_shapes(xy: np.ndarray, shapes: np.ndarray) -> np.ndarray:
    """Number of points, shape (n, 2), in each polygon."""
    near = shapely.STRtree(shapely.points(xy)).query(shapes, predicate="contains")
    return np.bincount(near[0], minlength=len(shapes)).astype(float)


def means_by_class(classes: np.ndarray, values: Any) -> np.ndarray:
    """Mean of values in each class of queries, in the order of the classes."""
    values = np.asarray(values)
    return np.array([values[classes == name].mean() for name in dict.fromkeys(classes.tolist())])


def holds(answers: Any, true: np.ndarray) -> np.ndarray:
    """Whether intervals hold the true counts."""
    lower, upper = answers["lower"].to_numpy(), answers["upper"].to_numpy()
    return np.asarray((lower <= true) & (true <= upper))


def with_error(values: Sequence[float], digits: int = 4) -> str:
    """Mean of builds with its standard error."""
    error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return f"{np.mean(values):.{digits}f} ± {error:.{digits}f}"


def chosen_by(expressions: str | None, names: Iterable[str]) -> list[str]:
    """Names that one of the regular expressions, separated by semicolons, matches."""
    parts = (expressions or "").split(";")
    return [name for name in names if any(re.search(part, name) for part in parts)]


def cpu_seconds(work: Callable[[], object], repeats: int = 1) -> float:
    """Least processor time of some calls, of all threads of this process, in seconds."""
    return min(timed(work)[0] for _ in range(repeats))


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor time of a call, in seconds, and its result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


class Cost(NamedTuple):
    """Processor and wall-clock seconds of a process, and its peak of memory in MB."""

    cpu: float
    wall: float
    memory: float
    printed: str


# A process reads its peak itself: what its parent had counts into the usage that a parent is told.
PEAK = """
import atexit as _atexit, sys as _sys
def _peak():
    with open("/proc/self/status") as status:
        peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
    print(f"\\n{peak}", file=_sys.stderr)
_atexit.register(_peak)
"""
PSD = "from psd_cli.main import main; main()"


def environment(**variables: str) -> dict[str, str]:
    """Environment of a process of an installed package: Python keeps the byte code of modules.

    The first process may compile them; use the least or the median of several runs.
    """
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **variables}


def run_python(code: str, *words: object, **variables: str) -> Cost:
    """Run Python code in a process of its own, with children, and measure it."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", PEAK + code, *map(str, words)],
        env=environment(**variables),
        capture_output=True,
        text=True,
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"a measured process failed:\n{done.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(cpu, wall, int(done.stderr.split()[-1]) / 1024, done.stdout)
