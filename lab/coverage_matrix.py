"""Whether intervals cover, and errors are predicted, on data that nothing was chosen on.

    python lab/coverage_matrix.py [--kind changed|given|lattices|hard] [--rows A;B] [--methods A,B]
        [--epsilons .1,1] [--delta 1e-6 --slices 12] [--list] [--data FOLDER] [--sets A,B]

The rows are variants of the point sets (`variants.py`): rounded, on streets, on a grid, thinned and
so on; with `--kind given` the sets as they are; with `--kind lattices` sets on lattices that were
chosen, their records where they come from, in the middle or at a fifth of the cells; with `--kind
hard` ways, traces, colonies, wards, and districts between streets, with and without named regions
(`hard_sets.py`). A row is chosen by a regular expression that matches a part of its name. Queries
are the eight classes of `psd/apps/evaluation/workload.py` and districts around random public seeds,
or those of the row. With a delta the counts have the noise of one of so many slices, each with at
most one record of a user. Exits with 1 if a bar is missed.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from common import chosen_by, study, tally_of, write_page
from coverage_measures import Measures, Truth, measure, truth_of
from data_sets import add_sets, chosen_sets
from hard_sets import hard_variants
from variants import KINDS, Variant

import psd
from psd.privacy.budget import Budget
from psd.privacy.loss import Loss, parse_delta, parse_epsilon
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release
from psd.publish.public_inputs import resolve_post_processing

POOLED, DECLARED, EACH, EACH_OTHER = (0.92, 0.99), 0.94, 0.88, 0.85
RATIO = (0.6, 1.6)
OFF_NOMINAL = 0.08
ERRORS = 2.0

ROWS = {**KINDS, "hard": hard_variants}

Row = tuple[bool, tuple[str, ...]]
"""Whether all bars are kept, and the cells."""

HEADS = (
    "data", "epsilon", "method", "boxes", "least class", "boxes not empty", "least class not empty",
    "districts", "districts not empty", "noise", "unevenness", "80 %", "50 %", "seconds",
)  # fmt: skip

INTRODUCTION = """# {title}

Made by `{command}` (psd {version}).

The table shows the share of queries, in percent, whose 95 % interval covers the true count: of
boxes ({classes} classes of 500; `psd/apps/evaluation/workload.py`), of the class with the least,
and of {districts} districts; of all and of those with a true count above 0. Then the root mean
square of the predicted error over that of the true one, for the noise and for the non-uniformity;
and the share that 80 % and 50 % intervals cover where the true count is at least 20. Where
coordinates are rounded and no resolution is declared, only queries with sides above two steps
count.

Figures are means of {runs} builds. A figure that misses its bar by more than two standard errors is
marked with (!). Bars: default method 92 to 99 % pooled (94 where a coordinate resolution is
declared) and 88 % in each class, other methods 85 % in each class; ratios 0.6 to 1.6; 80 and 50 %
intervals within 8 points. An empty figure has fewer than 20 queries, or no true error.
[Coverage](coverage.md) says what the rows are, and why some miss a bar.

"""


def marked(values: list[float], low: float, high: float, scale: float = 100) -> tuple[bool, str]:
    """Whether the mean of values is between bars, and it as text."""
    finite = np.array([value for value in values if np.isfinite(value)])
    if not len(finite):
        return True, ""
    mean = float(finite.mean())
    margin = ERRORS * float(finite.std(ddof=1)) / len(finite) ** 0.5 if len(finite) > 1 else 0.0
    kept = low - margin <= mean <= high + margin
    return kept, f"{scale * mean:.{1 if scale > 1 else 2}f}" + ("" if kept else " (!)")


def judged(builds: list[Measures], default: bool, declared: bool) -> tuple[bool, list[str]]:
    """Whether all bars are kept, and the cells of a row."""
    low, high = POOLED if default else (0.0, 1.0)
    if default and declared:
        low = DECLARED
    each = EACH if default else EACH_OTHER

    def least(classes: list[list[float]]) -> list[float]:
        """Values of the class whose mean is the least."""
        means = np.array(classes).mean(axis=0)
        means = np.where(np.isfinite(means), means, np.inf)
        return [build[int(np.argmin(means))] for build in classes]

    cells = [
        marked([b.pooled for b in builds], low, high),
        marked(least([b.classes for b in builds]), each, 1.0),
        marked([b.pooled_nonempty for b in builds], low, 1.0),
        marked(least([b.classes_nonempty for b in builds]), each, 1.0),
        marked([b.districts for b in builds], each, 1.0),
        marked([b.districts_nonempty for b in builds], each, 1.0),
        marked([b.noise_ratio for b in builds], *RATIO, scale=1),
        marked([b.unevenness_ratio for b in builds], *RATIO, scale=1),
        marked([b.at_80 for b in builds], 0.8 - OFF_NOMINAL, 0.8 + OFF_NOMINAL),
        marked([b.at_50 for b in builds], 0.5 - OFF_NOMINAL, 0.5 + OFF_NOMINAL),
    ]
    return all(kept for kept, _ in cells), [text for _, text in cells]


def rows(variant: Variant, options: argparse.Namespace) -> Iterator[Row]:
    """Rows of a variant, for each epsilon and method."""
    xy, domain = variant.points(), variant.domain
    if variant.boundary is not None:
        xy = xy[variant.boundary.contains(xy[:, 0], xy[:, 1])]
    counts = tally_of(xy, domain, variant.hierarchy)
    truth: Truth = truth_of(variant, xy, counts, options.districts)
    for epsilon in options.epsilons:
        for method in options.methods:
            start, builds = time.perf_counter(), []
            decomposition = psd.decompositions.method(method)
            if variant.regions is not None:
                decomposition = psd.decompositions.Regions(inside=method)
            with_density = variant.boundary is not None or variant.covariate is not None
            choice = resolve_post_processing(
                decomposition, estimate=None, density="covariate" if with_density else None
            )
            for _ in range(options.runs):
                release = draw_release(
                    counts,
                    domain,
                    budget=Budget(loss_of(epsilon, options.delta)),
                    squared_sensitivity=options.slices if options.delta else None,
                    method=decomposition,
                    unit=PrivacyUnit(),
                    post_processing=choice,
                    boundary=variant.boundary,
                    covariate=variant.covariate,
                    regions=variant.hierarchy,
                )
                builds.append(measure(release, truth))
            kept, cells = judged(builds, method == "auto", domain.coordinate_resolution is not None)
            seconds = f"{time.perf_counter() - start:.0f}"
            yield kept, (variant.name, epsilon, method, *cells, seconds)


def loss_of(epsilon: str, delta: str | None) -> Loss:
    """Loss of a build: pure without a delta."""
    nano = parse_epsilon(epsilon)
    return Loss.pure(nano) if delta is None else Loss.gaussian(nano, parse_delta(delta))


def rows_of(options: argparse.Namespace, name: str) -> list[Row]:
    """Rows of one variant, which holds functions, so that processes are given its name."""
    found = ROWS[options.kind](chosen_sets(options))
    return list(rows(next(row for row in found if row.name == name), options))


def measured(options: argparse.Namespace, names: list[str], kept: list[bool]) -> Iterator[tuple]:
    """Cells of the rows of some variants, in their order; and whether each keeps its bars."""
    with ProcessPoolExecutor(options.jobs) as pool:
        for of_variant in pool.map(partial(rows_of, options), names):
            for is_kept, cells in of_variant:
                kept.append(is_kept)
                yield cells


def main() -> None:
    parser = study(__doc__, methods="auto", epsilons="0.05,0.1,1,3", runs=10, districts=600, jobs=2)
    add_sets(parser)
    parser.add_argument("--kind", choices=list(ROWS), default="changed", help="of rows")
    parser.add_argument("--rows", help="regular expressions in names of rows, separated by ;")
    parser.add_argument("--delta", help="Gaussian noise; without it, Laplace noise")
    parser.add_argument("--slices", type=int, default=12, help="of a series with a delta")
    parser.add_argument("--title", default="Coverage matrix", help="of the page")
    parser.add_argument("--list", action="store_true", help="print the names of all rows")
    options = parser.parse_args()
    found = ROWS[options.kind](chosen_sets(options))
    names = chosen_by(options.rows, [row.name for row in found])
    if options.list:
        print(*names, sep="\n")
        return
    values = {name: getattr(options, name) for name in ("title", "districts", "runs")}
    kept: list[bool] = []
    cells = measured(options, names, kept)
    write_page(options.output, INTRODUCTION, HEADS, cells, classes=8, **values)
    sys.exit(0 if all(kept) else 1)


if __name__ == "__main__":
    main()
