"""What `psd plan` expects of public data sets beside what is true of them.

    python lab/plans.py [--epsilons .1,1] [--runs 3] [--data FOLDER] [--sets A,B]
        [-o docs/measured/data/plans.csv]

The plan knows the number of rows, rounded to two digits, and nothing else of a data set.
"""

import argparse
from collections.abc import Iterator
from typing import Any

from common import study, write_page
from data_sets import PointSet, add_sets, chosen_sets

from psd.apps.evaluation.comparison import compare
from psd.apps.planning.plan import METHODS, plan

INTRODUCTION = """# Plans and truth

Made by `{command}` (psd {version}).

The columns `least` and `most` have the smallest and largest mean relative error that `psd plan`
expects over its assumed densities. It uses the number of records, rounded to two digits, and
nothing else of a data set. The column `true` has the true error, on the rectangles of
`psd check compare`. Figures are means of {runs} populations and of {runs} builds.

"""

HEADER = ("data", "epsilon", "method", "centres", "size", "least", "most", "true", "outside")
CLASSES = [f"{kind} {size} %" for kind in ("uniform", "on data") for size in (0.01, 0.1, 1, 10)]


def rounded(count: int) -> int:
    """Two digits and zeros."""
    return round(count, 2 - len(str(count)))


def compared(one: PointSet, options: argparse.Namespace) -> Iterator[tuple[Any, ...]]:
    """Epsilon, method, centres, size, range and truth of a data set."""
    common: dict[str, Any] = {
        "domain": one.domain,
        "epsilon": options.epsilons,
        "runs": options.runs,
    }
    planned = plan(rounded(len(one.table)), **common).ranges
    keys = ["epsilon", "method", "centres", "size_share"]
    expected = planned.set_index(keys)[["mean_error_low", "mean_error_high"]]
    true = compare(one.table[["lon", "lat"]], methods=METHODS, **common).table
    for record in true.to_dict("records"):
        for name in CLASSES:
            kind, size, _ = name.rsplit(" ", 2)
            centres = "anywhere" if kind == "uniform" else kind
            key = (record["epsilon"], record["method"], centres, float(size) / 100)
            low, high = expected.loc[[key]].to_numpy()[0]
            yield *key, low, high, record[name]


def rows(options: argparse.Namespace, beside: list[float]) -> Iterator[tuple[str, ...]]:
    """Rows of the table; the factor by which each truth is outside its range is added to a list."""
    for one in chosen_sets(options):
        for epsilon, method, centres, size, low, high, true in compared(one, options):
            beside.append(max(low / true, true / high, 1.0))
            mark = "" if beside[-1] == 1 else f"x {beside[-1]:.2f}"
            numbers = (f"{value:.4f}" for value in (low, high, true))
            yield (one.name, epsilon, method, centres, f"{100 * size:g} %", *numbers, mark)


def main() -> None:
    parser = study(__doc__, epsilons="0.1,1", runs=3)
    add_sets(parser)
    options = parser.parse_args()
    beside: list[float] = []
    write_page(options.output, INTRODUCTION, HEADER, rows(options, beside), runs=options.runs)
    inside, all_ = sum(factor == 1 for factor in beside), len(beside)
    print(f"\n{inside} of {all_} inside; the farthest is outside by a factor {max(beside):.2f}.")


if __name__ == "__main__":
    main()
