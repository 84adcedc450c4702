"""True relative errors of budgets for a declared size class, beside those that declare nothing.

    python lab/workload.py [--classes tiny,small] [--epsilons .1,1] [--methods "grid, workload"]
        [--runs 6] [--height 8] [--boxes 1000] [--data FOLDER] [--sets A,B] [-o table.md]

For each class, boxes at uniform positions and boxes centred on random points; each row is protected
by itself. The data sets are public, so their true errors may be published. Coverage is the share of
95 % intervals that hold the true count, in percent.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from common import draw, holds, items, means_by_class, study, write_table
from data_sets import Bounds, PointSet, add_sets, chosen_sets

import psd
from psd.apps.evaluation.true_counts import TrueCounts
from psd.apps.evaluation.true_errors import class_errors
from psd.apps.evaluation.workload import Workload
from psd.decompositions import Decomposition
from psd.decompositions._workload_shares import CLASSES, class_boxes

HEADER = ("data", "epsilon", "class", "method")
FIGURES = ("uniform", "error", "on data", "error", "covered, uniform", "covered, on data")
SIZES = (32, 64, 128, 192, 256, 320, 384, 512, 640, 768, 1024)


def candidates(name: str, height: int) -> Iterator[tuple[str, Decomposition]]:
    """Methods for a class, by what the table calls them."""
    for budget in ("geometric", "uniform", "leaf"):
        yield (
            f"quadtree {height}, {budget}",
            psd.decompositions.method("quadtree", {"height": f"{height}", "budget": budget}),
        )
    declared = {"height": f"{height}", "budget": "workload", "workload": name}
    yield f"quadtree {height}, workload", psd.decompositions.method("quadtree", declared)
    if name == "tiny":
        yield "grid, workload", psd.decompositions.method("grid", {"workload": "tiny"})
        for size in SIZES:
            yield f"grid {size}", psd.decompositions.method("grid", {"size": f"{size}"})
    for other in ("grid", "adaptive-grid", "privtree", "cascade"):
        yield other, psd.decompositions.method(other)


def queries(name: str, size: int, x: np.ndarray, y: np.ndarray, bounds: Bounds) -> Workload:
    """Boxes of a class: shapes of the class, uniform positions and centres on points."""
    random = np.random.default_rng(2024)
    west, south, east, north = bounds
    shapes = random.permutation(class_boxes(name))[: 2 * size]
    sides = shapes[:, 2:] - shapes[:, :2]
    centres = random.random((2 * size, 2))
    drawn = random.integers(0, len(x), size)
    low, spans = np.array([west, south]), np.array([east - west, north - south])
    centres[size:] = (np.stack([x, y], axis=1)[drawn] - low) / spans
    corner = np.clip(centres - sides / 2, 0, 1 - sides)
    boxes = np.concatenate([corner, corner + sides], axis=1) * np.tile(spans, 2) + np.tile(low, 2)
    return Workload(boxes=boxes, classes=np.repeat(["uniform", "on data"], size))


def views(called: str, release: psd.Release) -> Iterator[tuple[str, psd.Release]]:
    """The release by its name, and with posterior medians where it declares tiny boxes."""
    yield called, release
    if release.record.post_processing.estimate == "signed" and called == "grid, workload":
        medians = replace(release.record.post_processing, estimate="posterior")
        yield f"{called}, posterior", release.replace(post_processing=medians)


def figures(runs: list[tuple[np.ndarray, np.ndarray]]) -> Iterator[str]:
    """Mean error of each class with its standard error, then the mean coverages."""
    errors, covered = (np.array(part) for part in zip(*runs, strict=True))
    error = np.std(errors, 0) / max(len(runs) - 1, 1) ** 0.5
    yield from (f"{part[i]:.4f}" for i in (0, 1) for part in (errors.mean(0), error))
    yield from (f"{part:.1f}" for part in covered.mean(0))


def rows(options: argparse.Namespace, one: PointSet) -> Iterator[tuple[str, ...]]:
    """One row per class, epsilon, method and view of a data set."""
    for name in options.classes:
        truth: TrueCounts = one.truth(partial(queries, name, options.boxes))
        classes = truth.queries.classes
        for epsilon in options.epsilons:
            for called, method in candidates(name, options.height):
                if options.methods and called not in options.methods:
                    continue
                runs: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
                for _ in range(options.runs):
                    release = draw(truth.counts, one.domain, method, epsilon)
                    for shown, view in views(called, release):
                        covered = holds(view.query(truth.queries.boxes).table, truth.true)
                        covered = 100 * means_by_class(classes, covered)
                        runs.setdefault(shown, []).append((class_errors(view, truth), covered))
                for shown, builds in runs.items():
                    yield (one.name, epsilon, name, shown, *figures(builds))


def main() -> None:
    parser = study(__doc__, epsilons="0.05,0.1,1", runs=6)
    add_sets(parser)
    parser.add_argument("--classes", type=items, default=list(CLASSES))
    parser.add_argument("--methods", nargs="+", help="names of methods in the table")
    parser.add_argument("--height", type=int, default=8, help="of the quadtrees")
    parser.add_argument("--boxes", type=int, default=1000, help="per class and kind, up to 2048")
    options = parser.parse_args()
    every = (row for one in chosen_sets(options) for row in rows(options, one))
    write_table(options.output, HEADER + FIGURES, every)


if __name__ == "__main__":
    main()
