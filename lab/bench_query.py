"""Rectangles per second: a large release of every method, against fixed limits.

    python lab/bench_query.py [--methods A,B] [--runs 3] [--boxes 1000000]
        [--data FOLDER] [--sets A,B] [-o table.md]

10^5 boxes with estimate and both errors, and 10^6 estimates alone (with `--boxes` a tenth of that
number, and that number), in equal parts from the eight classes of `psd.apps.evaluation.workload`,
on a release of at least 100,000 nodes with the view that its method has. Reading the file, least
squares and the view are timed apart, and so is compiling. Times are of one core: processor time of
all threads, the least of some runs, so that other work on the machine counts least. Beside them, in
the same run, numpy's walk on 1,000 of the boxes. The exit code is 1 if a limit is missed; with
fewer boxes, of which fixed costs are a larger part, limits are shown and not judged.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from common import cpu_seconds, draw, study, tally_of, write_table
from data_sets import PointSet, add_sets, chosen_sets

import psd
from psd.apps.evaluation.workload import draw_workload
from psd.ingest.tally import Tally
from psd.query import boxes as engine

PER_SET = 4000
LEAST = 100_000
PEER = 1_000

# Each point stands so many times, so far from where it was (degrees): cells that follow the
# points are as many as the limits are for, at an ordinary epsilon.
COPIES, AROUND = 8, 0.02

# Parameters and epsilon that give 100,000 nodes; the defaults and 1 where not listed. PrivTree
# stops at 80,000 nodes with epsilon 1.
LARGE = {
    "grid": ({"size": "320"}, "1"),
    "htf": ({"height": "16"}, "1"),
    "htree": ({"size": "320"}, "1"),
    "kd-cell": ({"height": "18", "resolution": "512"}, "1"),
    "kd-hybrid": ({"height": "16"}, "1"),
    "kd-standard": ({"height": "16"}, "1"),
    "privtree": ({}, "2"),
    "quadtree": ({"height": "9"}, "1"),
}


def limits(method: str) -> tuple[float, float]:
    """Seconds for 10^5 boxes with both errors, and for 10^6 estimates."""
    return 1.0 if method in ("quadtree", "cascade") else 1.5, 1.0 if method == "grid" else 6.0


def points_of(one: PointSet) -> tuple[Tally, np.ndarray]:
    """Tally and points of a data set, every point several times around its place."""
    noise, xy = np.random.default_rng(0), np.tile(one.inside.T, (1, COPIES))
    for axis, (low, high) in enumerate(zip(one.bounds[:2], one.bounds[2:], strict=True)):
        xy[axis] = np.clip(xy[axis] + noise.normal(0, AROUND, xy.shape[1]), low, high)
    return tally_of(xy.T, one.domain), xy


def built(method: str, counts: Tally, domain: psd.Domain, folder: Path) -> Path:
    """Release file of a method, large enough."""
    settings, epsilon = LARGE.get(method, ({}, "1"))
    release = draw(counts, domain, psd.decompositions.method(method, settings), epsilon)
    if len(release.tree) < LEAST:
        sys.exit(f"{method} has {len(release.tree):,} nodes, not {LEAST:,}; see LARGE")
    path = folder / f"{method}.psd.parquet"
    release.save(path)
    return path


def ready(release: psd.Release) -> None:
    """Work out all that is worked out once per release."""
    assert release.index.flat_tree
    assert release.index.mesh is None or len(release.index.summed_area)


def peer(release: psd.Release, boxes: np.ndarray) -> float:
    """Boxes per second of numpy's walk, on a few of them from every class."""
    some = boxes[:PER_SET].reshape(8, 500, 4)[:, : PEER // 8].reshape(-1, 4)
    ids = [*range(len(some))]
    walk = engine._compiled_engine
    engine._compiled_engine = lambda index, queries: None
    try:
        return len(some) / cpu_seconds(lambda: engine.checked_totals(release.index, some, ids))
    finally:
        engine._compiled_engine = walk


def measured(method: str, path: Path, boxes: np.ndarray, runs: int) -> tuple[list[str], bool]:
    """One row of the table, and whether both limits were kept."""
    release = psd.load(path)
    loading = cpu_seconds(lambda: ready(release))
    some = boxes[: len(boxes) // 10]
    found = (
        cpu_seconds(lambda: release.query(some).table, runs),
        cpu_seconds(lambda: release.query(boxes, errors=False).arrays["estimate"], runs),
    )
    both, alone = (seconds * len(boxes) / 10**6 for seconds in limits(method))
    cells = [
        method,
        f"{len(release.tree):,}",
        f"{release.record.post_processing.estimate}, {release.record.post_processing.density}",
    ]
    cells += [f"{loading:.2f}"]
    for seconds, limit in zip(found, (both, alone), strict=True):
        cells += [f"{1000 * seconds:,.0f}", f"{1000 * limit:,.0f}", f"{seconds / limit:.2f}"]
    slow = peer(release, boxes)
    cells += [f"{len(some) / found[0]:,.0f}", f"{slow:,.0f}"]
    return cells, found[0] <= both and found[1] <= alone


def compiling(domain: psd.Domain) -> float:
    """Seconds to compile both forms of the walk, or to fetch them from where they are kept."""
    release = psd.Release.from_counts(
        psd.decompositions.grid_tree(domain, 2), [1, 2, 3, 4], 1.0, domain=domain
    )
    boxes, count = np.array([[0.0, 0, 1, 1]]), release.index.fit.estimates.count

    def first() -> None:
        from psd.query import compiled_walk as compiled

        compiled.walk_query_totals(release.index.flat_tree, count, boxes)
        compiled.walk_value_totals(release.index.flat_tree, count, boxes)

    return cpu_seconds(first)


def rows(one: PointSet, methods: list[str], boxes: int, runs: int, kept: list[bool]):
    """Rows of a data set."""
    counts, points = points_of(one)
    seeds = range(-(-boxes // PER_SET))
    drawn = [draw_workload(points[0], points[1], one.bounds, seed=n).boxes for n in seeds]
    with tempfile.TemporaryDirectory() as folder:
        for method in methods:
            path = built(method, counts, one.domain, Path(folder))
            cells, well = measured(method, path, np.concatenate(drawn), runs)
            kept.append(well)
            yield (one.name, *cells)


def main() -> None:
    parser = study(__doc__, methods=",".join(psd.methods()), runs=3)
    add_sets(parser, "city-towns")
    parser.add_argument("--boxes", type=int, default=10**6, help="estimates alone")
    options = parser.parse_args()
    kept: list[bool] = []
    sets = chosen_sets(options)
    seconds = compiling(sets[0].domain)
    print(f"Compiling, or fetching what was compiled before: {seconds:.1f} s\n", flush=True)
    some, many = f"{options.boxes // 10:,} boxes ms", f"{options.boxes:,} estimates ms"
    columns = ["data", "method", "nodes", "view", "loading s", some, "boxes limit", "boxes ratio"]
    columns += [many, "estimates limit", "estimates ratio", "boxes/s", "numpy boxes/s"]
    every = (
        row for one in sets for row in rows(one, options.methods, options.boxes, options.runs, kept)
    )
    write_table(options.output, columns, every)
    sys.exit(0 if all(kept) or options.boxes < 10**6 else 1)


if __name__ == "__main__":
    main()
