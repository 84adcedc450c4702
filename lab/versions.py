"""Scores and coverage of two versions of the estimates, on the same builds.

    python lab/versions.py [--methods A,B] [--epsilons .1,1] [--builds 8]
        [--data FOLDER] [--sets A,B] [-o table.md]

A score is the geometric mean over the eight classes of `psd/apps/evaluation/workload.py` of the
mean relative error. The ratio is that of version 2 to version 1 build by build, with its standard
error. Coverage is that of 95 % intervals: of all queries, and of the class with the least.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from common import draw, holds, means_by_class, study, with_error, write_table
from data_sets import PointSet, add_sets, chosen_sets

import psd
from psd.apps.evaluation.evaluate import geometric_mean
from psd.apps.evaluation.true_counts import TrueCounts
from psd.release.post_processing import INFERENCE_VERSIONS

HEADER = ("data", "epsilon", "method", "score 1", "score 2", "ratio", "covered 1", "covered 2")


def figures(release: psd.Release, known: TrueCounts) -> tuple[float, np.ndarray]:
    """Score of a release, and its coverage by class in percent."""
    answers, classes = release.query(known.queries.boxes).table, known.queries.classes
    error = np.abs(answers["estimate"].to_numpy() - known.true) / known.base
    score = geometric_mean(means_by_class(classes, error))
    return score, 100 * means_by_class(classes, holds(answers, known.true))


def rows(options: argparse.Namespace, one: PointSet) -> Iterator[tuple[str, ...]]:
    """One row for each epsilon and method of a data set."""
    known = one.truth()
    for epsilon in options.epsilons:
        for method in options.methods:
            scores, covered = [], []
            for _ in range(options.builds):
                release = draw(known.counts, one.domain, method, epsilon)
                views = [
                    figures(psd.Release(replace(release.model.record, inference=version)), known)
                    for version in INFERENCE_VERSIONS
                ]
                scores.append([score for score, _ in views])
                covered.append([classes for _, classes in views])
            score, shares = np.array(scores), np.mean(covered, axis=0)
            yield (
                one.name,
                epsilon,
                method,
                *(f"{mean:.4f}" for mean in score.mean(axis=0)),
                with_error(np.divide(*score.T[::-1]), 3),
                *(f"{of_classes.mean():.1f}, {of_classes.min():.1f}" for of_classes in shares),
            )


def main() -> None:
    parser = study(__doc__, methods="auto", epsilons="0.1,1", builds=8)
    add_sets(parser)
    options = parser.parse_args()
    every = (row for one in chosen_sets(options) for row in rows(options, one))
    write_table(options.output, HEADER, every)


if __name__ == "__main__":
    main()
