"""Mean signed error of each method beside its root mean square error, over many builds.

    python lab/bias.py [--times 1] [--methods A,B] [--epsilons .1,1] [--builds 200]
        [--queries 100] [--view signed] [--parameters signal=5]
        [--data FOLDER] [--sets A,B] [-o table.md]

An error is an answer of the cells of a build less the answer that the same cells give with exact
counts, both with a uniform density: what noise and decisions by noisy counts cause, and nothing
else. Each cell of the table has the mean error over the root mean square error, both over all
builds and all queries of a class, in per cent, with the standard error of the mean over builds;
the last but one column has the same for the total of all leaves, and the last one the root mean
square errors themselves, in records.

``--times 10`` counts every record ten times, each copy moved at random by up to 0.1 % of the
domain; ``--times 0.1`` keeps a tenth of the records.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from common import CLASSES, draw, exact_counts, items, study, tally_of, write_table
from data_sets import PointSet, add_sets, chosen_sets
from spread import queries

import psd
from psd.ingest.tally import Tally
from psd.query.boxes import box_totals

METHODS = (
    "auto,cascade,adaptive-grid,grid,privtree,htree,htf,kd-hybrid,kd-cell,hilbert-rtree,quadtree"
)

# Farthest that a copy of a record is moved, as a share of the domain.
_MOVED = 0.001


def scaled(one: PointSet, times: float) -> Tally:
    """Counts of every record several times at places nearby, or of a part of the records."""
    random, xy = np.random.default_rng(1), one.inside
    if times < 1:
        return tally_of(xy[random.random(len(xy)) < times], one.domain)
    moved = []
    for axis, size in enumerate((one.domain.width, one.domain.height)):
        copies = np.repeat(xy[:, axis], round(times))
        copies[len(xy) :] += random.uniform(-_MOVED, _MOVED, len(copies) - len(xy)) * size
        moved.append(copies)
    return tally_of(np.stack(moved, axis=1), one.domain)


def errors(release: psd.Release, true: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Errors of the answers to boxes, then that of the total of all leaves."""
    off = release.index.fit.estimates.count - true
    return np.append(box_totals(release.index, off, boxes), off[release.tree.is_leaf].sum())


def evenly(release: psd.Release, view: str | None) -> psd.Release:
    """The same counts with a uniform density, and another view where one is asked for."""
    choice = release.record.post_processing
    return release.replace(
        post_processing=replace(choice, density="uniform", estimate=view or choice.estimate)
    )


def figures(errors: np.ndarray) -> tuple[float, float, float]:
    """Mean error over the root mean square error, its standard error, and the latter."""
    size = np.sqrt((errors**2).mean())
    builds = errors.mean(axis=1)
    return builds.mean() / size, builds.std(ddof=1) / np.sqrt(len(builds)) / size, size


def rows(options: argparse.Namespace, one: PointSet) -> Iterator[tuple[str, ...]]:
    """One row per epsilon and method of a data set."""
    counts, boxes = scaled(one, options.times), queries(one, options.queries)
    parameters = dict(item.split("=") for item in options.parameters)
    for epsilon in options.epsilons:
        for name in options.methods:
            method, drawn = psd.decompositions.method(name, parameters), []
            for _ in range(options.builds):
                release = draw(counts, one.domain, method, epsilon)
                true = exact_counts(release.tree, counts)
                drawn.append(errors(evenly(release, options.view), true, boxes))
            found = np.array(drawn)
            parts = [*np.split(found[:, :-1], len(CLASSES), axis=1), found[:, -1:]]
            found_figures = [figures(part) for part in parts]
            cells = (f"{100 * mean:+.0f} ({100 * error:.0f})" for mean, error, _ in found_figures)
            sizes = (f"{size:.0f}" for _, _, size in found_figures)
            yield (one.name, epsilon, name, *cells, " ".join(sizes))


def main() -> None:
    parser = study(__doc__, methods=METHODS, epsilons="0.1,1", builds=200)
    add_sets(parser)
    parser.add_argument("--times", type=float, default=1.0, help="copies of each record, or a part")
    parser.add_argument("--parameters", type=items, default=[], help="KEY=VALUE of the method")
    parser.add_argument("--queries", type=int, default=100, help="per class, up to 500")
    parser.add_argument("--view", help="estimate of all methods; by default that of the method")
    options = parser.parse_args()
    header = ("data", "epsilon", "method", *CLASSES, "total", "errors in records")
    every = (row for one in chosen_sets(options) for row in rows(options, one))
    write_table(options.output, header, every)


if __name__ == "__main__":
    main()
