"""What `psd plan` expects of public data sets beside what is true of them.

    python lab/plans.py [--epsilons .1,1] [--runs 3] [--data FOLDER] [--sets A,B]
        [-o docs/measured/data/plans.csv]
    python lab/plans.py --cubes [--records 60000] [--epsilons .1,1] [--runs 3]
        [-o docs/measured/data/plans-cubes.csv]

The plan knows the number of rows, rounded to two digits, and nothing else of a data set. With
``--cubes`` it is that of a cube of the made-up city of ``data/hours``, whose windows lie anywhere
in its 504 hours.
"""

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from common import study, write_page
from cube import Query, errors_of, sets
from data_sets import PointSet, add_sets, chosen_sets

import psd
from psd.apps.evaluation.comparison import compare
from psd.apps.evaluation.workload import draw_workload
from psd.apps.planning.plan import METHODS, plan

INTRODUCTION = """# Plans and truth

Made by `{command}` (psd {version}).

The columns `least` and `most` have the smallest and largest mean relative error that `psd plan`
expects over its assumed densities. It uses the number of records, rounded to two digits, and
nothing else of a data set. The column `true` has the true error, on the rectangles of
`psd check compare`. Figures are means of {runs} populations and of {runs} builds.

"""

OF_CUBES = """# Plans of cubes and truth

Made by `{command}` (psd {version}).

The columns are those of plans, for squares and windows of a cube: {runs} populations, and as many
builds of {records:,} records. Centres are on data, windows anywhere in time.

"""

HEADER = ("data", "epsilon", "method", "centres", "size", "least", "most", "true", "outside")
OF_WINDOWS = ("epsilon", "window", "size", "least", "most", "true", "outside")
WINDOWS, SIZES, STARTS = (1, 24, 504), (0.0001, 0.001, 0.01, 0.1), 3
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


def rows_of_cubes(options: argparse.Namespace, beside: list[float]) -> Iterator[tuple[str, ...]]:
    """Rows of windows of a cube, as `rows`."""
    [city] = sets(argparse.Namespace(sets="city", records=options.records))
    point = city.table[["lon", "lat"]].to_numpy()
    slices = len(city.slices)
    slice_ = city.slices.index(city.table.time.to_numpy().astype("datetime64[us]"))
    for epsilon in options.epsilons:
        common: dict[str, Any] = {"domain": psd.Domain(bounds=city.bounds), "epsilon": epsilon}
        planned = plan(
            rounded(len(point) // slices), methods="cube", slices=slices, windows=WINDOWS,
            sizes=SIZES, max_contributions=1, runs=options.runs, **common,
        ).ranges  # fmt: skip
        planned = planned[planned.centres == "on data"].set_index(["window", "size_share"])
        planned = planned[["mean_error_low", "mean_error_high"]]
        true: dict[tuple[int, float], list[float]] = {}
        for run in range(options.runs):
            cube = psd.build(
                city.table, method="cube", slices=city.slices, time="time", per="record", **common
            )
            drawn = draw_workload(
                point[:, 0], point[:, 1], city.bounds, seed=run, areas=SIZES, per_class=100
            )
            random = np.random.default_rng(run)
            for width in WINDOWS:
                for first in random.integers(0, slices - width + 1, STARTS).tolist():
                    kept = point[(slice_ >= first) & (slice_ < first + width)]
                    for size in SIZES:
                        boxes = drawn.boxes[drawn.classes == f"on data {100 * size:g} %"]
                        inside = (kept >= boxes[:, None, :2]) & (kept < boxes[:, None, 2:])
                        query = Query(
                            width, size, boxes, np.full(len(boxes), first),
                            inside.all(axis=2).sum(axis=1).astype(float),
                        )  # fmt: skip
                        error = float(errors_of(cube, city, query).mean())
                        true.setdefault((width, size), []).append(error)
        for (width, size), errors in true.items():
            [[low, high]] = planned.loc[[(width, size)]].to_numpy()
            found = float(np.mean(errors))
            beside.append(max(low / found, found / high, 1.0))
            mark = "" if beside[-1] == 1 else f"x {beside[-1]:.2f}"
            numbers = (f"{value:.4f}" for value in (low, high, found))
            yield (epsilon, str(width), f"{100 * size:g} %", *numbers, mark)


def main() -> None:
    parser = study(__doc__, epsilons="0.1,1", runs=3)
    add_sets(parser)
    parser.add_argument("--cubes", action="store_true", help="plans of cubes")
    parser.add_argument("--records", type=int, default=60_000, help="of the city of cubes")
    options = parser.parse_args()
    beside: list[float] = []
    page: tuple[str, tuple[str, ...], Iterator[tuple[str, ...]]]
    page = (INTRODUCTION, HEADER, rows(options, beside))
    if options.cubes:
        page = (OF_CUBES, OF_WINDOWS, rows_of_cubes(options, beside))
    write_page(options.output, *page, runs=options.runs, records=options.records)
    inside, all_ = sum(factor == 1 for factor in beside), len(beside)
    print(f"\n{inside} of {all_} inside; the farthest is outside by a factor {max(beside):.2f}.")


if __name__ == "__main__":
    main()
