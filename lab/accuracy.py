"""True relative errors of every method on public data sets, beside figures of other programs.

    python lab/accuracy.py [--methods A,B] [--epsilons .1,1] [--runs 3] [--jobs N] [--min-cell M]
        [--data FOLDER] [--sets A,B] [-o docs/measured/data/accuracy.csv]

N is paid for where a method uses it, the bounds are public, and each row is protected by itself.
"""

import argparse
import sys
from collections.abc import Iterator
from functools import partial

from common import CLASSES, study, write_page
from data_sets import PointSet, add_sets, chosen_sets

import psd
from psd.apps.evaluation.comparison import compare

# Scores on the same rectangles, measured once with three seeds.
PEERS = ("best peer", "oracle", "adaptive grid", "PrivTree", "cascade sketch")
FIGURES = {
    ("uk_road_accidents", "0.1"): (".0728 (PrivTree)", ".0594", ".0686", ".0695", ".0527"),
    ("uk_road_accidents", "1"): (".0182 (adaptive grid)", ".0161", ".0157", ".0194", ".0128"),
    ("london_stop_search", "0.1"): (".0755 (PrivTree)", ".0662", ".0712", ".0775", ".0588"),
    ("london_stop_search", "1"): (".0250 (adaptive grid)", ".0223", ".0239", ".0237", ".0171"),
}
HEADER = ("data", "epsilon", "method", "score", "standard error", *CLASSES, *PEERS)

INTRODUCTION = """# Accuracy table

Made by `{command}` (psd {version}).

The table shows the mean relative error |estimate - true| / max(true, 0.001 N) in eight classes of
500 rectangles (U: uniform centres, D: centred on data; 0.01 to 10 % of the area;
`psd/apps/evaluation/workload.py`). Figures are means of {runs} builds with the default parameters;
the unit of privacy is one record. The score is the geometric mean of the eight classes, with its
standard error over the builds. The smallest score of each data set and epsilon is bold.

The columns on the right have scores on the same rectangles of two sets, measured once: the best
single public implementation that is private as coded; an oracle that takes the best of these in
every class, which no single one reaches; and prototypes of an adaptive grid, of PrivTree and of the
cascade.

"""


def rows(one: PointSet, options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """One row per epsilon and method of a data set."""
    found = compare(
        one.table,
        domain=psd.Domain(bounds=one.bounds, crs=one.crs, min_cell=options.min_cell),
        methods=options.methods,
        epsilon=options.epsilons,
        runs=options.runs,
        jobs=options.jobs,
        progress=partial(tell, one.name),
        x="lon",
        y="lat",
    )
    least = found.table.groupby("epsilon")["score"].transform("min")
    for record, best in zip(found.table.to_dict("records"), least, strict=True):
        score = f"{record['score']:.4f}"
        yield (
            one.name,
            record["epsilon"],
            record["method"],
            f"**{score}**" if record["score"] == best else score,
            "" if record["runs"] == 1 else f"{record['score_error']:.4f}",
            *(f"{record[cell]:.4f}" for cell in found.classes),
            *FIGURES.get((one.name, record["epsilon"]), ("",) * len(PEERS)),
        )


def tell(name: str, done: int, whole: int) -> None:
    """Say on stderr how far a data set is."""
    if sys.stderr.isatty() or done == whole:
        end = "\n" if done == whole else ""
        print(f"\r{name}: {done} of {whole} builds", end=end, file=sys.stderr, flush=True)


def main() -> None:
    parser = study(__doc__, methods=None, epsilons="0.05,0.1,0.5,1", runs=3, jobs=None)
    add_sets(parser)
    parser.add_argument("--min-cell", default="usual", help="smallest cell in metres, 0 for none")
    options = parser.parse_args()
    every = (row for one in chosen_sets(options) for row in rows(one, options))
    write_page(options.output, INTRODUCTION, HEADER, every, runs=options.runs)


if __name__ == "__main__":
    main()
