"""Scores and coverage of two versions of the estimates, on the same builds.

    python lab/versions.py [--data A,B] [--methods A,B] [--epsilons .1,1]
        [--builds 8] [--folder ../shared/data] [-o table.md]

A score is the geometric mean over the eight classes of `psd/evaluation/workload.py` of the mean
relative error. The ratio is that of version 2 to version 1 build by build, with its standard error.
Coverage is that of 95 % intervals: of all queries, and of the class with the least. The data sets
are public, so their true errors may be published.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from accuracy import BOUNDS, items
from calibration import truth
from tables import write_table

import psd
from psd.evaluation.true_counts import TrueCounts
from psd.privacy.budget import Budget
from psd.privacy.epsilon import parse_epsilon
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release
from psd.release.post_processing import INFERENCE_VERSIONS

HEADER = ("data", "epsilon", "method", "score 1", "score 2", "ratio", "covered 1", "covered 2")


def figures(release: psd.Release, known: TrueCounts) -> tuple[float, np.ndarray]:
    """Score of a release, and its coverage by class in percent."""
    answers = release.query(known.queries.boxes)
    error = np.abs(answers["estimate"].to_numpy() - known.true) / known.base
    holds = ((answers["lower"] <= known.true) & (known.true <= answers["upper"])).to_numpy()
    classes = known.queries.classes
    each = [classes == name for name in dict.fromkeys(classes.tolist())]
    score = float(np.exp(np.mean([np.log(error[which].mean()) for which in each])))
    return score, np.array([100 * holds[which].mean() for which in each])


def rows(options: argparse.Namespace, data: str) -> Iterator[tuple[str, ...]]:
    """One row for each epsilon and method of a data set."""
    domain = psd.Domain(bounds=BOUNDS[data])
    known = truth(options.folder / f"{data}.csv", domain)
    for epsilon in options.epsilons:
        for method in options.methods:
            scores, covered = [], []
            for _ in range(options.builds):
                release = draw_release(
                    known.counts,
                    domain,
                    budget=Budget(parse_epsilon(epsilon)),
                    method=psd.method(method),
                    unit=PrivacyUnit(),
                )
                views = [
                    figures(psd.Release(replace(release.record, inference=version)), known)
                    for version in INFERENCE_VERSIONS
                ]
                scores.append([score for score, _ in views])
                covered.append([classes for _, classes in views])
            score, ratio = np.array(scores), np.divide(*np.array(scores).T[::-1])
            error = ratio.std(ddof=1) / len(ratio) ** 0.5
            shares = np.mean(covered, axis=0)
            yield (
                data,
                epsilon,
                method,
                *(f"{mean:.4f}" for mean in score.mean(axis=0)),
                f"{ratio.mean():.3f} ± {error:.3f}",
                *(f"{of_classes.mean():.1f}, {of_classes.min():.1f}" for of_classes in shares),
            )


def parsed() -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    parser.add_argument("--data", type=items, default=list(BOUNDS), help="data sets")
    parser.add_argument("--methods", type=items, default=["auto"])
    parser.add_argument("--epsilons", type=items, default=["0.1", "1"])
    parser.add_argument("--builds", type=int, default=8)
    parser.add_argument("--folder", type=Path, default=beside, help="where the data sets are")
    parser.add_argument("-o", "--output", type=Path, help="file to write instead of printing")
    return parser.parse_args()


def main() -> None:
    """Print the table, or write it."""
    options = parsed()
    every = (row for data in options.data for row in rows(options, data))
    write_table(options.output, HEADER, every)


if __name__ == "__main__":
    main()
