"""How far published answers spread when only the noise is drawn again, beside what they predict.

    python lab/spread.py [--methods A,B] [--epsilons .1,1] [--draws 200] [--queries 60]
        [--data FOLDER] [--sets A,B] [-o table.md]

A release is built once; its cells are kept, and every count that was measured is drawn again at its
own epsilon. Each cell of the table has two ratios to the predicted perturbation error, all of them
root mean squares over the queries of a class: that of the standard deviation of the answers, and
that of their distance from the answer that the same cells give without noise. The second is larger
where a view pulls answers to one side.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from common import CLASSES, draw, exact_counts, study, write_table
from data_sets import PointSet, add_sets, chosen_sets

import psd
from psd.apps.evaluation.workload import draw_workload
from psd.mechanisms.laplace import LaplaceMechanism
from support.releases import changed

METHODS = "auto,grid,quadtree,kd-hybrid,kd-standard,htree"


def queries(one: PointSet, each: int) -> np.ndarray:
    """The first boxes of each of the eight classes, class by class."""
    boxes = draw_workload(one.inside[:, 0], one.inside[:, 1], one.bounds).boxes.reshape(
        len(CLASSES), -1, 4
    )
    return boxes[:, :each].reshape(-1, 4)


def answers(release: psd.Release, count: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """What the cells of a release answer in its view if these are their counts."""
    tree = replace(release.tree, count=np.where(release.tree.loss > 0, count, 0))
    return changed(release, tree=tree).query(boxes)["estimate"].to_numpy()


def noisy_counts(true: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
    """Counts with the noise of a release of records."""
    return LaplaceMechanism(true=true, epsilon=epsilon, sensitivity=1).sample()


def ratios(
    release: psd.Release, true: np.ndarray, boxes: np.ndarray, draws: int
) -> tuple[np.ndarray, np.ndarray]:
    """Spread and distance of the answers over their predicted errors, for every class."""
    measured = release.tree.loss > 0
    count = true.copy()
    drawn = []
    for _ in range(draws):
        count[measured] = noisy_counts(true[measured], release.tree.loss[measured])
        drawn.append(answers(release, count, boxes))
    predicted = release.query(boxes)["perturbation_error"].to_numpy()
    distance = np.array(drawn) - answers(release, true, boxes)
    spread, off = distance.std(axis=0, ddof=1), np.sqrt((distance**2).mean(axis=0))

    def mean(error: np.ndarray) -> np.ndarray:
        return np.sqrt((error**2).reshape(len(CLASSES), -1).mean(axis=1))

    return mean(spread) / mean(predicted), mean(off) / mean(predicted)


def rows(options: argparse.Namespace, one: PointSet) -> Iterator[tuple[str, ...]]:
    """One row per epsilon and method of a data set."""
    counts, boxes = one.tally(), queries(one, options.queries)
    for epsilon in options.epsilons:
        for name in options.methods:
            release = draw(counts, one.domain, name, epsilon)
            found = ratios(release, exact_counts(release.tree, counts), boxes, options.draws)
            cells = (f"{a:.2f} / {b:.2f}" for a, b in zip(*found, strict=True))
            yield (one.name, epsilon, name, *cells)


def main() -> None:
    parser = study(__doc__, methods=METHODS, epsilons="0.1,1")
    add_sets(parser)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--queries", type=int, default=60, help="per class, up to 500")
    options = parser.parse_args()
    every = (row for one in chosen_sets(options) for row in rows(options, one))
    write_table(options.output, ("data", "epsilon", "method", *CLASSES), every)


if __name__ == "__main__":
    main()
