"""How far published answers spread when only the noise is drawn again, beside what they predict.

    python lab/spread.py [--data A,B] [--methods A,B] [--epsilons .1,1] [--draws 200]
        [--queries 60] [--folder ../shared/data] [-o table.md]

A release is built once; its cells are kept, and every count that was measured is drawn again at its
own epsilon. Each cell of the table has two ratios to the predicted perturbation error, all of them
root mean squares over the queries of a class: that of the standard deviation of the answers, and
that of their distance from the answer that the same cells give without noise. The second is larger
where a view pulls answers to one side. The data sets are public, so their true counts may be used.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from accuracy import BOUNDS, items
from tables import write_table

import psd
from psd.evaluation.true_counts import PointRecorder
from psd.evaluation.workload import draw_workload
from psd.ingest.sources import Columns, read
from psd.ingest.tally import Tally
from psd.ingest.tally_builder import tally_batches
from psd.mechanisms.laplace import LaplaceMechanism
from psd.privacy.budget import Budget
from psd.privacy.epsilon import parse_epsilon
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release
from psd.space.box_tree import locate

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.releases import changed

METHODS = ("auto", "grid", "quadtree", "kd-hybrid", "kd-standard", "htree")
CLASSES = [f"{kind} {area} %" for kind in "UD" for area in (".01", ".1", "1", "10")]


def queries(points: tuple[np.ndarray, np.ndarray], domain: psd.Domain, each: int) -> np.ndarray:
    """The first boxes of each of the eight classes, class by class."""
    boxes = draw_workload(*points, domain.bounds).boxes.reshape(len(CLASSES), -1, 4)
    return boxes[:, :each].reshape(-1, 4)


def exact(release: psd.Release, counts: Tally) -> np.ndarray:
    """True count of every cell of a release."""
    tree = release.tree
    true = np.zeros(len(tree), np.int64)
    np.add.at(true, locate(tree, counts.columns, counts.rows), counts.counts)
    for level in reversed(tree.levels[1:]):
        np.add.at(true, tree.parent[level], true[level])
    return true


def answers(release: psd.Release, count: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """What the cells of a release answer in its view if these are their counts."""
    tree = replace(release.tree, count=np.where(release.tree.epsilon > 0, count, 0))
    return changed(release, tree=tree).query(boxes)["estimate"].to_numpy()


def noisy_counts(true: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
    """Counts with the noise of a release of records."""
    return LaplaceMechanism(true=true, epsilon=epsilon, sensitivity=1).sample()


def ratios(
    release: psd.Release, true: np.ndarray, boxes: np.ndarray, draws: int
) -> tuple[np.ndarray, np.ndarray]:
    """Spread and distance of the answers over their predicted errors, for every class."""
    measured = release.tree.epsilon > 0
    count = true.copy()
    drawn = []
    for _ in range(draws):
        count[measured] = noisy_counts(true[measured], release.tree.epsilon[measured])
        drawn.append(answers(release, count, boxes))
    predicted = release.query(boxes)["perturbation_error"].to_numpy()
    distance = np.array(drawn) - answers(release, true, boxes)
    spread, off = distance.std(axis=0, ddof=1), np.sqrt((distance**2).mean(axis=0))

    def mean(error: np.ndarray) -> np.ndarray:
        return np.sqrt((error**2).reshape(len(CLASSES), -1).mean(axis=1))

    return mean(spread) / mean(predicted), mean(off) / mean(predicted)


def rows(options: argparse.Namespace, data: str) -> Iterator[tuple[str, ...]]:
    """One row per epsilon and method of a data set."""
    domain = psd.Domain(bounds=BOUNDS[data])
    seen = PointRecorder(domain)
    counts = tally_batches(
        seen.record(read(options.folder / f"{data}.csv", Columns(x="lon", y="lat"), domain)), domain
    )
    boxes = queries(seen.points, domain, options.queries)
    for epsilon in options.epsilons:
        for name in options.methods:
            release = draw_release(
                counts,
                domain,
                budget=Budget(parse_epsilon(epsilon)),
                method=psd.method(name),
                unit=PrivacyUnit(),
            )
            found = ratios(release, exact(release, counts), boxes, options.draws)
            cells = (f"{a:.2f} / {b:.2f}" for a, b in zip(*found, strict=True))
            yield (data, epsilon, name, *cells)


def parsed() -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    parser.add_argument("--data", type=items, default=["uk_road_accidents", "london_stop_search"])
    parser.add_argument("--methods", type=items, default=METHODS)
    parser.add_argument("--epsilons", type=items, default=["0.1", "1"])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--queries", type=int, default=60, help="per class, up to 500")
    parser.add_argument("--folder", type=Path, default=beside, help="where the data sets are")
    parser.add_argument("-o", "--output", type=Path, help="file to write instead of printing")
    return parser.parse_args()


def main() -> None:
    """Print the table, or write it."""
    options = parsed()
    header = ("data", "epsilon", "method", *CLASSES)
    every = (row for data in options.data for row in rows(options, data))
    write_table(options.output, header, every)


if __name__ == "__main__":
    main()
