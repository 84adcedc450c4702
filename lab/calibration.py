"""How often the intervals cover, how wide they are, and where true zeros make it easy.

    python lab/calibration.py [--methods A,B] [--epsilons .1,1] [--runs 10] [--confidence .95]
        [--data FOLDER] [--sets A,B] [-o docs/measured/data/calibration.csv]

Every row is the mean over the runs' builds of one method on one public data set; all eight
classes of `psd/apps/evaluation/workload.py`. Exits with 1 if a bar is missed by more than two
standard errors: 92 to 99 % pooled over the classes, 88 % in each. The data sets are public, so
their true errors may be published.
"""

import argparse
import sys
from collections.abc import Iterator

import numpy as np
from common import CLASSES, draw, holds, means_by_class, study, write_page
from data_sets import PointSet, add_sets, chosen_sets
from numpy.typing import NDArray

from psd.apps.evaluation.true_counts import TrueCounts

METHODS = "auto,grid,quadtree,kd-standard,kd-hybrid,htree"
POOLED, EACH, EASY = (0.92, 0.99), 0.88, 0.995

INTRODUCTION = """# Calibration table

Made by `{command}` (psd {version}).

The table shows the share of queries, in percent, whose {level:g} % interval covers the true count,
and the mean width of the intervals in records. There are eight classes of 500 rectangles (U:
uniform centres, D: centred on data; 0.01 to 10 % of the area; `psd/apps/evaluation/workload.py`).
Figures are means of {runs} builds with the default parameters; the unit of privacy is one record.
Pooled coverage has to be between 92 and 99 %, and that of each class at least 88 %; a figure
outside these limits by more than two standard errors is marked with (!). A class above 99.5 % has,
in brackets, its share of queries whose true count is 0, which every interval from 0 covers.

"""


def measured(
    one: PointSet, known: TrueCounts, method: str, epsilon: str, options: argparse.Namespace
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Coverage of each build per class, and mean width per class."""
    covers, widths = [], []
    for _ in range(options.runs):
        release = draw(known.counts, one.domain, method, epsilon)
        answers = release.query(known.queries.boxes, confidence=options.confidence).table
        width = answers["upper"].to_numpy() - answers["lower"].to_numpy()
        covers.append(means_by_class(known.queries.classes, holds(answers, known.true)))
        widths.append(means_by_class(known.queries.classes, width))
    return np.array(covers), np.mean(widths, axis=0)


def by_chance(covers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Two standard errors of a mean over builds, the first axis."""
    if len(covers) == 1:
        return np.zeros(covers.shape[1:])
    return np.asarray(2 * covers.std(axis=0, ddof=1) / len(covers) ** 0.5)


def cell(coverage: float, missed: bool, width: float, zeros: float) -> str:
    """One class as text."""
    easy = f" [{100 * zeros:.0f}]" if coverage > EASY else ""
    return f"{100 * coverage:.1f}{easy}{' (!)' * missed}, {width:,.0f}"


def rows(
    one: PointSet, options: argparse.Namespace, every: list[bool]
) -> Iterator[tuple[str, ...]]:
    """One row for each epsilon and method of a data set; and whether its bars are kept."""
    known = one.truth()
    zeros = means_by_class(known.queries.classes, known.true == 0)
    for epsilon in options.epsilons:
        for method in options.methods:
            covers, width = measured(one, known, method, epsilon, options)
            coverage, builds = covers.mean(axis=0), covers.mean(axis=1)
            pooled, slack = float(coverage.mean()), float(by_chance(builds))
            kept = POOLED[0] - slack <= pooled <= POOLED[1] + slack
            missed = coverage < EACH - by_chance(covers)
            cells = map(cell, coverage, missed.tolist(), width, zeros)
            shown = f"{100 * pooled:.1f}" + ("" if kept else " (!)")
            every.append(kept and not missed.any())
            yield (one.name, epsilon, method, shown, *cells)


def main() -> None:
    parser = study(__doc__, methods=METHODS, epsilons="0.1,1", runs=10)
    add_sets(parser)
    parser.add_argument("--confidence", type=float, default=0.95)
    options = parser.parse_args()
    kept: list[bool] = []
    every = (row for one in chosen_sets(options) for row in rows(one, options, kept))
    header, level = ("data", "epsilon", "method", "pooled", *CLASSES), 100 * options.confidence
    write_page(options.output, INTRODUCTION, header, every, level=level, runs=options.runs)
    sys.exit(0 if all(kept) else 1)


if __name__ == "__main__":
    main()
