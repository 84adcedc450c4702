"""How often the intervals cover, how wide they are, and where true zeros make it easy.

    python lab/calibration.py [--data A,B] [--methods A,B] [--epsilons .1,1]
        [--runs 10] [--confidence .95] [--folder ../shared/data]
        [-o docs/measured/calibration-table.md]

Every row is the mean over the runs' builds of one method on one public data set; all eight
classes of `psd/evaluation/workload.py`. Exits with 1 if a bar is missed by more than two standard
errors: 92 to 99 % pooled over the classes, 88 % in each. The data sets are public, so their true
errors may be published.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from accuracy import BOUNDS, CLASSES, items
from numpy.typing import NDArray

import psd
from psd.evaluation.true_counts import PointRecorder, TrueCounts, true_counts
from psd.evaluation.workload import draw_workload
from psd.ingest.sources import Columns, read
from psd.ingest.tally_builder import tally_batches

METHODS = ("auto", "grid", "quadtree", "kd-standard", "kd-hybrid", "htree")
POOLED, EACH, EASY = (0.92, 0.99), 0.88, 0.995

INTRODUCTION = """# Calibration table

Made by `{command}` (psd {version}).

The table shows the share of queries, in percent, whose {level:g} % interval covers the true count,
and the mean width of the intervals in records. There are eight classes of 500 rectangles (U:
uniform centres, D: centred on data; 0.01 to 10 % of the area; `psd/evaluation/workload.py`).
Figures are means of {runs} builds with the default parameters; the unit of privacy is one record.
Pooled coverage has to be between 92 and 99 %, and that of each class at least 88 %; a figure
outside these limits by more than two standard errors is marked with (!). A class above 99.5 % has,
in brackets, its share of queries whose true count is 0, which every interval from 0 covers.

"""


def truth(path: Path, domain: psd.Domain) -> TrueCounts:
    """Boxes and true counts of a data set."""
    seen = PointRecorder(domain)
    counts = tally_batches(seen.record(read(path, Columns(x="lon", y="lat"), domain)), domain)
    queries = draw_workload(*seen.points, domain.bounds)
    return true_counts(queries, seen.points, counts, domain, bounded=False)


def measured(
    path: Path,
    known: TrueCounts,
    domain: psd.Domain,
    method: str,
    epsilon: str,
    options: argparse.Namespace,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Coverage of each build per class, and mean width per class."""
    covers, widths = [], []
    for _ in range(options.runs):
        release = psd.build(path, domain=domain, epsilon=epsilon, method=method)
        answers = release.query(known.queries.boxes, confidence=options.confidence)
        low, high = answers["lower"].to_numpy(), answers["upper"].to_numpy()
        covers.append(by_class(known, (low <= known.true) & (known.true <= high)))
        widths.append(by_class(known, high - low))
    return np.array(covers), np.mean(widths, axis=0)


def by_class(known: TrueCounts, values: NDArray[Any]) -> NDArray[np.float64]:
    """Mean of values in each class of queries."""
    names = dict.fromkeys(known.queries.classes.tolist())
    return np.array([values[known.queries.classes == name].mean() for name in names])


def by_chance(covers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Two standard errors of a mean over builds, the first axis."""
    if len(covers) == 1:
        return np.zeros(covers.shape[1:])
    return np.asarray(2 * covers.std(axis=0, ddof=1) / len(covers) ** 0.5)


def cell(coverage: float, missed: bool, width: float, zeros: float) -> str:
    """One class as text."""
    easy = f" [{100 * zeros:.0f}]" if coverage > EASY else ""
    return f"{100 * coverage:.1f}{easy}{' (!)' * missed}, {width:,.0f}"


def rows(name: str, options: argparse.Namespace) -> Iterator[tuple[bool, tuple[str, ...]]]:
    """Whether the bars are kept, and the row, for each epsilon and method of a data set."""
    path, domain = options.folder / f"{name}.csv", psd.Domain(bounds=BOUNDS[name])
    known = truth(path, domain)
    zeros = by_class(known, known.true == 0)
    for epsilon in options.epsilons:
        for method in options.methods:
            covers, width = measured(path, known, domain, method, epsilon, options)
            coverage, builds = covers.mean(axis=0), covers.mean(axis=1)
            pooled, slack = float(coverage.mean()), float(by_chance(builds))
            kept = POOLED[0] - slack <= pooled <= POOLED[1] + slack
            missed = coverage < EACH - by_chance(covers)
            cells = map(cell, coverage, missed.tolist(), width, zeros)
            shown = f"{100 * pooled:.1f}" + ("" if kept else " (!)")
            yield kept and not missed.any(), (name, epsilon, method, shown, *cells)


def parsed(arguments: list[str]) -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    parser.add_argument("--data", type=items, default=list(BOUNDS), help="data sets")
    parser.add_argument("--methods", type=items, default=list(METHODS), help="methods")
    parser.add_argument("--epsilons", type=items, default=["0.1", "1"])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--folder", type=Path, default=beside, help="where the data sets are")
    parser.add_argument("-o", "--output", type=Path, help="page to write instead of printing it")
    return parser.parse_args(arguments)


def main() -> None:
    """Print or write the table."""
    options = parsed(sys.argv[1:])
    found = []
    for name in options.data:
        for row in rows(name, options):
            found.append(row)
            print(*row[1][:4], file=sys.stderr, flush=True)
    heads = ("data", "epsilon", "method", "pooled", *CLASSES)
    table = [heads, ["---"] * len(heads), *(row for _, row in found)]
    text = INTRODUCTION.format(
        command=shlex.join(["python", "lab/calibration.py", *sys.argv[1:]]),
        version=psd.__version__,
        level=100 * options.confidence,
        runs=options.runs,
    ) + "".join(f"| {' | '.join(line)} |\n" for line in table)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    sys.exit(0 if all(kept for kept, _ in found) else 1)


if __name__ == "__main__":
    main()
