"""Errors of synthetic points, beside those of their release and of a public peer.

    python lab/points.py [--epsilons .1,1] [--runs 5] [--peer] [--data FOLDER] [--sets A,B]
    python lab/points.py --size 1e7

Points of `Release.to_points` are counted in the boxes of `psd/apps/evaluation/workload.py`, and the
release answers the same boxes. The score is the geometric mean over eight classes of the mean
relative error. Bar: the score of the points is at most 1.1 times that of the release, by no more
than two standard errors.

``--peer`` installs dpmm in a temporary environment and lets its MST make one table of longitudes
and latitudes in each of several numbers of bins. It gets the bounds, the number of records, the
same epsilon and a delta of 1e-5, which psd does not spend. The row is that of the bins with the
best score, which are known by looking at the true counts.

``--size`` measures `psd export R points.parquet --points -n SIZE`, and the peak of its memory.
Bars: 20 CPU seconds and 1 GB for 10^7 points.
"""

import argparse
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from common import CLASSES, PSD, draw, means_by_class, run_python, study, write_table
from data_sets import PointSet, add_sets, chosen_sets

from psd.apps.evaluation.true_counts import TrueCounts, count_in_boxes, extend_to_edges
from psd.apps.evaluation.true_errors import class_errors

BAR, SECONDS, MEGABYTES = 1.1, 20.0, 1024.0
PEER, BINS = "dpmm==0.1.9", (32, 64, 128)
HEADER = ("data", "epsilon", "what", "score", "beside the release", "±", *CLASSES, "bar")

TABLE = """
import sys, warnings
warnings.filterwarnings("ignore")
import pandas as pd
from dpmm.pipelines import MSTPipeline
source, target, epsilon, bins, *bounds = sys.argv[1:]
west, south, east, north = map(float, bounds)
table = pd.read_csv(source)
domain = {"lon": {"lower": west, "upper": east}, "lat": {"lower": south, "upper": north}}
model = MSTPipeline(
    epsilon=float(epsilon), delta=1e-5, proc_epsilon=None, binner_type="uniform",
    n_bins=int(bins), n_jobs=1,
)
model.fit(table, domain=domain, random_state=1)
model.generate(n_records=len(table), random_state=1).to_csv(target, index=False)
"""


def errors_of_points(x: np.ndarray, y: np.ndarray, truth: TrueCounts, one: PointSet) -> np.ndarray:
    """Mean relative error of the counts of points, by class."""
    boxes = extend_to_edges(truth.queries.boxes, one.domain)
    found = count_in_boxes(x, y, np.ones(len(x), np.int64), boxes)
    return means_by_class(truth.queries.classes, np.abs(found - truth.true) / truth.base)


def score(errors: np.ndarray) -> float:
    """Geometric mean of the classes, of means over the builds."""
    return float(np.exp(np.log(errors.mean(axis=0)).mean()))


def log_scores(errors: np.ndarray) -> np.ndarray:
    """Logarithm of the score of each build."""
    return np.asarray(np.log(errors).mean(axis=1))


def peer_errors(
    python: Path, one: PointSet, truth: TrueCounts, epsilon: str
) -> tuple[int, np.ndarray]:
    """Number of bins of the table with the best score, and its errors by class, shape (1, 8)."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "points.csv", Path(folder) / "table.csv"
        pd.DataFrame(one.inside, columns=["lon", "lat"]).to_csv(source, index=False)
        for bins in BINS:
            words = [source, target, epsilon, bins, *one.bounds]
            subprocess.run(
                [str(python), "-c", TABLE, *map(str, words)], check=True, capture_output=True
            )
            x, y = pd.read_csv(target)[["lon", "lat"]].to_numpy().T
            found[bins] = errors_of_points(x, y, truth, one)[None]
            print(one.name, epsilon, bins, f"{score(found[bins]):.4f}", file=sys.stderr, flush=True)
    best = min(found, key=lambda bins: score(found[bins]))
    return best, found[best]


def rows(options: argparse.Namespace, python: Path | None) -> Iterator[tuple[str, ...]]:
    """Rows of the release, of its points and of the peer, per data set and epsilon."""
    for one in chosen_sets(options):
        truth = one.truth()
        for epsilon in options.epsilons:
            of_release, of_points = [], []
            for seed in range(options.runs):
                release = draw(truth.counts, one.domain, "auto", epsilon)
                places = release.to_points(seed=seed).geometry
                of_release.append(class_errors(release, truth))
                of_points.append(
                    errors_of_points(places.x.to_numpy(), places.y.to_numpy(), truth, one)
                )
            base, mine = np.array(of_release), np.array(of_points)
            # Release and points of a build have the same noise: their ratio varies less than both.
            ratio = score(mine) / score(base)
            spread = float(np.std(log_scores(mine) - log_scores(base), ddof=1)) * ratio
            spread /= len(mine) ** 0.5
            yield (one.name, epsilon, "release", *cells(base), "")
            held = "yes" if ratio <= BAR + 2 * spread else "no"
            yield (one.name, epsilon, "points", *cells(mine, ratio, spread), held)
            if python is not None:
                bins, theirs = peer_errors(python, one, truth, epsilon)
                ratio = score(theirs) / score(base)
                yield (one.name, epsilon, f"MST, {bins} bins", *cells(theirs, ratio), "")


def cells(errors: np.ndarray, ratio: float = 1.0, spread: float = 0.0) -> tuple[str, ...]:
    """Score, its ratio to the release's, and the mean error of each class."""
    shown = f"{spread:.3f}" if spread else ""
    return f"{score(errors):.4f}", f"{ratio:.3f}", shown, *(f"{e:.4f}" for e in errors.mean(axis=0))


def large(size: int) -> Iterator[tuple[str, ...]]:
    """CPU seconds and memory of an export of many points."""
    one = next(iter(chosen_sets(argparse.Namespace(data=None, sets=["seoul"]))))
    with tempfile.TemporaryDirectory() as folder:
        path, target = Path(folder) / "r.psd.parquet", Path(folder) / "points.parquet"
        draw(one.tally(), one.domain, "auto", "1").save(path)
        cost = run_python(PSD, "export", path, target, "--points", "-n", size, "--seed", 1)
        megabytes = target.stat().st_size / 1e6
    held = cost.cpu <= SECONDS * max(size / 1e7, 1) and cost.memory <= MEGABYTES
    seconds = f"{cost.cpu:.1f}", f"{cost.wall:.1f}"
    yield (f"{size:,}", *seconds, f"{cost.memory:.0f}", f"{megabytes:.0f}", "yes" if held else "no")


def main() -> None:
    parser = study(__doc__, epsilons="0.1,1", runs=5)
    add_sets(parser)
    parser.add_argument("--peer", action="store_true", help="install and run the peer as well")
    parser.add_argument("--size", type=float, help="measure an export of this many points alone")
    options = parser.parse_args()
    if options.size:
        header = ("points", "CPU seconds", "wall-clock seconds", "MB of memory", "MB", "bars")
        write_table(options.output, header, checked(large(int(options.size))))
    elif options.peer:
        with tempfile.TemporaryDirectory() as folder:
            venv.create(folder, with_pip=True)
            python = Path(folder) / "bin" / "python"
            subprocess.run([str(python), "-m", "pip", "install", "-q", PEER], check=True)
            write_table(options.output, HEADER, checked(rows(options, python)))
    else:
        write_table(options.output, HEADER, checked(rows(options, None)))


def checked(every: Iterator[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """The rows; in the end the study fails if one missed a bar."""
    missed = 0
    for row in every:
        missed += row[-1] == "no"
        yield row
    if missed:
        raise SystemExit(f"{missed} rows miss a bar")


if __name__ == "__main__":
    main()
