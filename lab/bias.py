"""Mean signed error of each method beside its root mean square error, over many builds.

    python lab/bias.py [--data A,B] [--times 1] [--methods A,B] [--epsilons .1,1]
        [--builds 200] [--queries 100] [--versions 1,2] [--view signed] [--parameters signal=5]
        [--folder ../shared/data] [-o table.md]

An error is an answer of the cells of a build less the answer that the same cells give with exact
counts, both with a uniform density: what noise and decisions by noisy counts cause, and nothing
else. Each cell of the table has the mean error over the root mean square error, both over all
builds and all queries of a class, in per cent, with the standard error of the mean over builds;
the last but one column has the same for the total of all leaves, and the last one the root mean
square errors themselves, in records. Versions of post-processing see the same builds.

``--times 10`` counts every record ten times, each copy moved at random by up to 0.1 % of the
domain; ``--times 0.1`` keeps a tenth of the records. The data sets are public, so their true errors
may be published.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from accuracy import BOUNDS, items
from spread import CLASSES, exact, queries
from tables import write_table

import psd
from psd.evaluation.true_counts import PointRecorder
from psd.ingest.sources import Columns, read
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from psd.privacy.budget import Budget
from psd.privacy.epsilon import parse_epsilon
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release
from psd.query.boxes import box_totals

METHODS = (
    "auto,cascade,adaptive-grid,grid,privtree,htree,htf,kd-hybrid,kd-cell,hilbert-rtree,quadtree"
)

# Farthest that a copy of a record is moved, as a share of the domain.
_MOVED = 0.001


def scaled(points: tuple[np.ndarray, np.ndarray], domain: psd.Domain, times: float) -> Batch:
    """Every record several times at places nearby, or a part of the records."""
    random = np.random.default_rng(1)
    x, y = points
    if times < 1:
        chosen = random.random(len(x)) < times
        return Batch(x=x[chosen], y=y[chosen])
    moved = []
    for values, size in ((x, domain.width), (y, domain.height)):
        copies = np.repeat(values, round(times))
        copies[len(values) :] += random.uniform(-_MOVED, _MOVED, len(copies) - len(values)) * size
        moved.append(copies)
    return Batch(x=moved[0], y=moved[1])


def errors(release: psd.Release, true: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Errors of the answers to boxes, then that of the total of all leaves."""
    off = release.estimates.count - true
    return np.append(box_totals(release.index, off, boxes), off[release.tree.is_leaf].sum())


def variants(release: psd.Release, options: argparse.Namespace) -> Iterator[psd.Release]:
    """The same counts with a uniform density and the estimates of each version."""
    choice = release.record.post_processing
    even = replace(choice, density="uniform", estimate=options.view or choice.estimate)
    for version in options.versions:
        yield psd.Release(replace(release.record, post_processing=even, inference=int(version)))


def figures(errors: np.ndarray) -> tuple[float, float, float]:
    """Mean error over the root mean square error, its standard error, and the latter."""
    size = np.sqrt((errors**2).mean())
    builds = errors.mean(axis=1)
    return builds.mean() / size, builds.std(ddof=1) / np.sqrt(len(builds)) / size, size


def rows(options: argparse.Namespace, data: str) -> Iterator[tuple[str, ...]]:
    """One row per epsilon and method of a data set."""
    domain = psd.Domain(bounds=BOUNDS[data])
    seen = PointRecorder(domain)
    for _ in seen.record(read(options.folder / f"{data}.csv", Columns(x="lon", y="lat"), domain)):
        pass
    counts = tally_batches([scaled(seen.points, domain, options.times)], domain)
    boxes = queries(seen.points, domain, options.queries)
    for epsilon in options.epsilons:
        for name in options.methods:
            method = psd.method(name, options.parameters)
            drawn = []
            for _ in range(options.builds):
                release = draw_release(
                    counts,
                    domain,
                    budget=Budget(parse_epsilon(epsilon)),
                    method=method,
                    unit=PrivacyUnit(),
                )
                true = exact(release, counts)
                drawn.append([errors(one, true, boxes) for one in variants(release, options)])
            for version, found in zip(
                options.versions, np.array(drawn).swapaxes(0, 1), strict=True
            ):
                parts = [*np.split(found[:, :-1], len(CLASSES), axis=1), found[:, -1:]]
                parts = [figures(part) for part in parts]
                cells = (f"{100 * mean:+.0f} ({100 * error:.0f})" for mean, error, _ in parts)
                sizes = (f"{size:.0f}" for _, _, size in parts)
                yield (data, epsilon, name, version, *cells, " ".join(sizes))


def parsed() -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    parser.add_argument("--data", type=items, default=["london_stop_search", "osm_andorra_2016"])
    parser.add_argument("--times", type=float, default=1.0, help="copies of each record, or a part")
    parser.add_argument("--methods", type=items, default=items(METHODS))
    parser.add_argument("--parameters", type=items, default=[], help="KEY=VALUE of the method")
    parser.add_argument("--epsilons", type=items, default=["0.1", "1"])
    parser.add_argument("--builds", type=int, default=200)
    parser.add_argument("--queries", type=int, default=100, help="per class, up to 500")
    parser.add_argument("--versions", type=items, default=["1", "2"], help="of post-processing")
    parser.add_argument("--view", help="estimate of all methods; by default that of the method")
    parser.add_argument("--folder", type=Path, default=beside, help="where the data sets are")
    parser.add_argument("-o", "--output", type=Path, help="file to write instead of printing")
    options = parser.parse_args()
    options.parameters = dict(item.split("=") for item in options.parameters)
    return options


def main() -> None:
    """Print the table, or write it."""
    options = parsed()
    header = ("data", "epsilon", "method", "version", *CLASSES, "total", "errors in records")
    every = (row for data in options.data for row in rows(options, data))
    write_table(options.output, header, every)


if __name__ == "__main__":
    main()
