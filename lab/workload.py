"""True relative errors of budgets for a declared size class, beside those that declare nothing.

    python lab/workload.py [--data A,B] [--classes tiny,small] [--epsilons .1,1]
        [--methods "grid, workload"] [--runs 6] [--height 8] [--boxes 1000]
        [--folder ../shared/data] [-o table.md]

For each class, boxes at uniform positions and boxes centred on random points; the public points
are read from the folder that stands beside the project, and each row is protected by itself. The
data sets are public, so their true errors may be published. Coverage is the share of 95 % intervals
that hold the true count, in percent.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from accuracy import BOUNDS, items
from tables import write_table

import psd
from psd.decompositions import Decomposition
from psd.decompositions._workload_shares import CLASSES, class_boxes
from psd.evaluation.evaluate import class_errors
from psd.evaluation.true_counts import PointRecorder, TrueCounts, true_counts
from psd.evaluation.workload import Workload
from psd.ingest.sources import Columns, read
from psd.ingest.tally_builder import tally_batches
from psd.privacy.budget import Budget
from psd.privacy.epsilon import parse_epsilon
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release

HEADER = ("data", "epsilon", "class", "method")
FIGURES = ("uniform", "error", "on data", "error", "covered, uniform", "covered, on data")
SIZES = (32, 64, 128, 192, 256, 320, 384, 512, 640, 768, 1024)


def candidates(name: str, height: int) -> Iterator[tuple[str, Decomposition]]:
    """Methods for a class, by what the table calls them."""
    for budget in ("geometric", "uniform", "leaf"):
        yield (
            f"quadtree {height}, {budget}",
            psd.method("quadtree", {"height": f"{height}", "budget": budget}),
        )
    declared = {"height": f"{height}", "budget": "workload", "workload": name}
    yield f"quadtree {height}, workload", psd.method("quadtree", declared)
    if name == "tiny":
        yield "grid, workload", psd.method("grid", {"workload": "tiny"})
        for size in SIZES:
            yield f"grid {size}", psd.method("grid", {"size": f"{size}"})
    for other in ("grid", "adaptive-grid", "privtree", "cascade"):
        yield other, psd.method(other)


def queries(
    name: str, points: tuple[np.ndarray, np.ndarray], domain: psd.Domain, size: int
) -> Workload:
    """Boxes of a class: shapes of the class, uniform positions and centres on points."""
    random = np.random.default_rng(2024)
    west, south, east, north = domain.bounds
    shapes = random.permutation(class_boxes(name))[: 2 * size]
    sides = shapes[:, 2:] - shapes[:, :2]
    centres = random.random((2 * size, 2))
    drawn = random.integers(0, len(points[0]), size)
    low, spans = np.array([west, south]), np.array([east - west, north - south])
    centres[size:] = (np.stack(points, axis=1)[drawn] - low) / spans
    corner = np.clip(centres - sides / 2, 0, 1 - sides)
    boxes = np.concatenate([corner, corner + sides], axis=1) * np.tile(spans, 2) + np.tile(low, 2)
    return Workload(boxes=boxes, classes=np.repeat(["uniform", "on data"], size))


def truths(path: Path, domain: psd.Domain, classes: list[str], size: int) -> dict[str, TrueCounts]:
    """True counts of the boxes of every class, from one reading."""
    seen = PointRecorder(domain)
    counts = tally_batches(seen.record(read(path, Columns(x="lon", y="lat"), domain)), domain)
    return {
        name: true_counts(
            queries(name, seen.points, domain, size), seen.points, counts, domain, bounded=False
        )
        for name in classes
    }


def views(called: str, release: psd.Release) -> Iterator[tuple[str, psd.Release]]:
    """The release by its name, and with posterior medians where it declares tiny boxes."""
    yield called, release
    if release.post_processing.estimate == "signed" and called == "grid, workload":
        medians = replace(release.post_processing, estimate="posterior")
        yield f"{called}, posterior", release.with_post_processing(medians)


def coverage(release: psd.Release, truth: TrueCounts) -> list[float]:
    """Share of each class whose interval holds the true count, in percent."""
    answers = release.query(truth.queries.boxes)
    holds = (answers["lower"] <= truth.true) & (truth.true <= answers["upper"])
    classes = dict.fromkeys(truth.queries.classes.tolist())
    return [100 * holds[truth.queries.classes == name].mean() for name in classes]


def figures(runs: list[tuple[np.ndarray, list[float]]]) -> Iterator[str]:
    """Mean error of each class with its standard error, then the mean coverages."""
    errors, covered = (np.array(part) for part in zip(*runs, strict=True))
    error = np.std(errors, 0) / max(len(runs) - 1, 1) ** 0.5
    yield from (f"{part[i]:.4f}" for i in (0, 1) for part in (errors.mean(0), error))
    yield from (f"{part:.1f}" for part in covered.mean(0))


def rows(options: argparse.Namespace, data: str) -> Iterator[tuple[str, ...]]:
    """One row per class, epsilon, method and view of a data set."""
    domain = psd.Domain(bounds=BOUNDS[data])
    found = truths(options.folder / f"{data}.csv", domain, options.classes, options.boxes)
    for epsilon in options.epsilons:
        for name, truth in found.items():
            for called, method in candidates(name, options.height):
                if options.methods and called not in options.methods:
                    continue
                runs: dict[str, list[tuple[np.ndarray, list[float]]]] = {}
                for _ in range(options.runs):
                    budget = Budget(parse_epsilon(epsilon))
                    release = draw_release(
                        truth.counts, domain, budget=budget, method=method, unit=PrivacyUnit()
                    )
                    for shown, view in views(called, release):
                        measured = class_errors(view, truth), coverage(view, truth)
                        runs.setdefault(shown, []).append(measured)
                for shown, builds in runs.items():
                    yield (data, epsilon, name, shown, *figures(builds))


def parsed() -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    parser.add_argument("--data", type=items, default=list(BOUNDS), help="data sets")
    parser.add_argument("--classes", type=items, default=list(CLASSES))
    parser.add_argument("--epsilons", type=items, default=["0.05", "0.1", "1"])
    parser.add_argument("--methods", nargs="+", help="names of methods in the table")
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--height", type=int, default=8, help="of the quadtrees")
    parser.add_argument("--boxes", type=int, default=1000, help="per class and kind, up to 2048")
    parser.add_argument("--folder", type=Path, default=beside, help="where the data sets are")
    parser.add_argument("-o", "--output", type=Path, help="file to write instead of printing")
    return parser.parse_args()


def main() -> None:
    """Print the table, or write it."""
    options = parsed()
    every = (row for data in options.data for row in rows(options, data))
    write_table(options.output, HEADER + FIGURES, every)


if __name__ == "__main__":
    main()
