r"""What `psd plan` expects of public data sets beside what is true of them.

    python lab/plans.py [--runs 3] [--folder ../shared/data] \
        > docs/measured/plan-table.md

The plan knows the number of rows, rounded to two digits, and nothing else of a data set. The data
sets are public, so their true errors may be published.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from accuracy import BOUNDS

import psd
from psd.evaluation.compare import compare
from psd.planning.plan import METHODS, plan

INTRODUCTION = """# Plans and truth

Made by `python lab/plans.py > docs/measured/plan-table.md`.

The columns `least` and `most` have the smallest and largest mean relative error that `psd plan`
expects over its assumed densities. It uses the number of records, rounded to two digits, and
nothing else of a data set. The column `true` has the true error, on the rectangles of
`psd compare`. Figures are means of three populations and of three builds.
"""

TOP = Path(__file__).resolve().parents[1]
SEOUL = (126.4, 37.0, 127.6, 38.0)
EPSILONS = ("0.1", "1")
CLASSES = [f"{kind} {size} %" for kind in ("uniform", "on data") for size in (0.01, 0.1, 1, 10)]


def rounded(count: int) -> int:
    """Two digits and zeros."""
    return round(count, 2 - len(str(count)))


def rows(path: Path, domain: psd.Domain, runs: int) -> Iterator[tuple[Any, ...]]:
    """Data set, epsilon, method, class, range and truth."""
    count = rounded(len(pd.read_csv(path, usecols=[0])))
    planned = plan(count, domain=domain, epsilons=EPSILONS, runs=runs).ranges
    keys = ["epsilon", "method", "centres", "size_share"]
    expected = planned.set_index(keys)[["mean_error_low", "mean_error_high"]]
    true = compare(path, domain=domain, methods=METHODS, epsilons=EPSILONS, runs=runs).table
    for record in true.to_dict("records"):
        for name in CLASSES:
            kind, size, _ = name.rsplit(" ", 2)
            centres = "anywhere" if kind == "uniform" else kind
            key = (record["epsilon"], record["method"], centres, float(size) / 100)
            low, high = expected.loc[[key]].to_numpy()[0]
            yield path.stem, *key, low, high, record[name]


def main() -> None:
    """Print the table and how often the truth is inside."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=TOP.parent / "shared" / "data")
    options = parser.parse_args()
    sets = [(options.folder / f"{name}.csv", bounds) for name, bounds in BOUNDS.items()]
    sets.append((TOP / "data" / "seoul" / "visits.csv", SEOUL))
    found = [
        row for path, bounds in sets for row in rows(path, psd.Domain(bounds=bounds), options.runs)
    ]
    print(INTRODUCTION)
    print("| data | epsilon | method | centres | size | least | most | true | |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    beside = []
    for name, epsilon, method, centres, size, low, high, true in found:
        factor = max(low / true, true / high, 1.0)
        beside.append(factor)
        mark = "" if factor == 1 else f"outside, x {factor:.2f}"
        numbers = " | ".join(f"{value:.4f}" for value in (low, high, true))
        line = f"{name} | {epsilon} | {method} | {centres} | {100 * size:g} % | {numbers} | {mark}"
        print(f"| {line} |")
    inside = sum(factor == 1 for factor in beside)
    print(
        f"\n{inside} of {len(found)} inside; the farthest is outside by a factor {max(beside):.2f}."
    )


if __name__ == "__main__":
    main()
