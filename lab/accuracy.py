"""True relative errors of every method on public data sets, beside figures of other programs.

    python lab/accuracy.py [--data A,B] [--methods A,B] [--epsilons .1,1] [--runs 3]
        [--jobs N] [--min-cell M] [--folder ../shared/data] [-o docs/measured/accuracy-table.md]

The points are read from the folder that stands beside the project; N is paid for where a method
uses it, the bounds are public, and each row is protected by itself. The data sets are public, so
their true errors may be published.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psd
from psd.evaluation.compare import Comparison, compare

BOUNDS = {
    "uk_road_accidents": (-7.6, 49.8, 1.9, 60.9),
    "london_stop_search": (-0.55, 51.25, 0.35, 51.72),
    "osm_andorra_2016": (1.40, 42.42, 1.79, 42.66),
}
CLASSES = ("U .01 %", "U .1 %", "U 1 %", "U 10 %", "D .01 %", "D .1 %", "D 1 %", "D 10 %")

# Scores on the same rectangles, measured once with three seeds.
PEERS = ("best peer", "oracle", "adaptive grid", "PrivTree", "cascade sketch")
FIGURES = {
    ("uk_road_accidents", "0.1"): (".0728 (PrivTree)", ".0594", ".0686", ".0695", ".0527"),
    ("uk_road_accidents", "1"): (".0182 (adaptive grid)", ".0161", ".0157", ".0194", ".0128"),
    ("london_stop_search", "0.1"): (".0755 (PrivTree)", ".0662", ".0712", ".0775", ".0588"),
    ("london_stop_search", "1"): (".0250 (adaptive grid)", ".0223", ".0239", ".0237", ".0171"),
}

INTRODUCTION = """# Accuracy table

Made by `{command}` (psd {version}).

The table shows the mean relative error |estimate - true| / max(true, 0.001 N) in eight classes of
500 rectangles (U: uniform centres, D: centred on data; 0.01 to 10 % of the area;
`psd/evaluation/workload.py`). Figures are means of {runs} builds with the default parameters; the
unit of privacy is one record. The score is the geometric mean of the eight classes, with its
standard error over the builds. The smallest score of each data set and epsilon is bold.

The columns on the right have scores on the same rectangles, measured once: the best single public
implementation that is private as coded; an oracle that takes the best of these in every class,
which no single one reaches; and prototypes of an adaptive grid, of PrivTree and of the cascade.

"""


def rows(name: str, found: Comparison) -> Iterator[tuple[str, ...]]:
    """One row per epsilon and method of a data set."""
    least = found.table.groupby("epsilon")["score"].transform("min")
    for record, best in zip(found.table.to_dict("records"), least, strict=True):
        score = f"{record['score']:.4f}"
        yield (
            name,
            record["epsilon"],
            record["method"],
            f"**{score}**" if record["score"] == best else score,
            "" if record["runs"] == 1 else f"{record['score_error']:.4f}",
            *(f"{record[cell]:.4f}" for cell in found.classes),
            *FIGURES.get((name, record["epsilon"]), ("",) * len(PEERS)),
        )


def page(options: argparse.Namespace, command: str) -> str:
    """The table as Markdown, under the command that made it."""
    lines = ["data", "epsilon", "method", "score", "standard error", *CLASSES, *PEERS]
    table = [f"| {' | '.join(lines)} |", f"|{' --- |' * len(lines)}"]
    for name in options.data:
        found = compare(
            options.folder / f"{name}.csv",
            domain=psd.Domain(bounds=BOUNDS[name], min_cell=options.min_cell),
            methods=options.methods,
            epsilons=options.epsilons,
            runs=options.runs,
            jobs=options.jobs,
            progress=partial(tell, name),
        )
        table += [f"| {' | '.join(row)} |" for row in rows(name, found)]
    introduction = INTRODUCTION.format(command=command, version=psd.__version__, runs=options.runs)
    return introduction + "\n".join(table) + "\n"


def tell(name: str, done: int, whole: int) -> None:
    """Say on stderr how far a data set is."""
    if sys.stderr.isatty() or done == whole:
        end = "\n" if done == whole else ""
        print(f"\r{name}: {done} of {whole} builds", end=end, file=sys.stderr, flush=True)


def items(text: str) -> list[str]:
    """Parts of a text with commas."""
    return text.split(",")


def parsed(arguments: list[str]) -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    parser.add_argument("--data", type=items, default=list(BOUNDS), help="data sets")
    parser.add_argument("--methods", type=items, help="all where not given")
    parser.add_argument("--epsilons", type=items, default=["0.05", "0.1", "0.5", "1"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--jobs", type=int, help="parallel processes")
    parser.add_argument("--min-cell", default="usual", help="smallest cell in metres, 0 for none")
    parser.add_argument("--folder", type=Path, default=beside, help="where the data sets are")
    parser.add_argument("-o", "--output", type=Path, help="page to write instead of printing it")
    options = parser.parse_args(arguments)
    for name in options.data:
        if name not in BOUNDS or not (options.folder / f"{name}.csv").is_file():
            parser.error(f"data set {name} is none of {', '.join(BOUNDS)} in {options.folder}")
    return options


def main() -> None:
    """Print or write the table."""
    options = parsed(sys.argv[1:])
    text = page(options, shlex.join(["python", "lab/accuracy.py", *sys.argv[1:]]))
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
