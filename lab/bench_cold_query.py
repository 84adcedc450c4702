"""Processor time of `psd query` of one box in a fresh process, by the number of nodes.

    python lab/bench_cold_query.py [--nodes 10000,100000,670000,4000000] [--runs 3]
        [-o docs/measured/data/cold-query.csv]

Releases are cascades of simulated records with an epsilon of 10. The first box is queried with an
empty cache of fits; the next one, elsewhere, with the cache that the first has filled. Then all
cells are fitted, by a polygon with an empty cache. Times are those of the child process, user and
system, the least of some runs. Answers must be equal to 1e-9 to those without a cache. The exit
code is 1 if the next box of at most LIMIT_NODES nodes takes more than LIMIT seconds.
"""

import csv
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from common import PSD, draw, run_python, study, whole_numbers, write_table

import psd
from psd.apps.planning.population import AssumedDensity, draw_population
from psd.estimation.fit_cache import VARIABLE

LIMIT, LIMIT_NODES = 1.0, 700_000
NODES_PER_RECORD = 3.17
DOMAIN = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))
FIRST = ("127.2", "37.7", "127.25", "37.75")
NEXT = ("126.9", "37.4", "126.95", "37.45")
HEADER = (
    "nodes", "file MB", "first box s", "its cache MB", "next box s", "all cells s", "cache MB",
)  # fmt: skip


def save_release(nodes: int, path: Path) -> int:
    """Write a release of about a number of nodes; return their number."""
    records = max(int(nodes / NODES_PER_RECORD), 100)
    density = AssumedDensity(kind="clustered")
    people = draw_population(records, DOMAIN, density, np.random.default_rng(0))
    release = draw(people, DOMAIN, "cascade", "10")
    release.save(path)
    return len(release.tree)


def query(path: Path, cache: str, *regions: str) -> tuple[float, str]:
    """Processor time of one query in a process, and its answer."""
    cost = run_python(PSD, "query", path, *regions, "--format", "csv", **{VARIABLE: cache})
    return cost.cpu, cost.printed


def check_equal(answers: list[str]) -> None:
    """Refuse answers of which a number differs by more than rounding."""
    rows = [next(csv.DictReader(text.splitlines())) for text in answers]
    for name in ("estimate", "error", "lower", "upper"):
        numbers = np.array([float(row[name]) for row in rows])
        if np.ptp(numbers) > 1e-9 * np.abs(numbers).max():
            raise SystemExit(f"answers differ: {name} {numbers}")


def cached_megabytes(cache: Path) -> str:
    """Size of the files of a cache."""
    return f"{sum(file.stat().st_size for file in cache.glob('*')) / 1e6:.1f}"


def measure(nodes: list[int], runs: int) -> Iterator[tuple[str, ...]]:
    """One row per release."""
    missed = False
    west, south, east, north = NEXT
    ring = [(west, south), (east, south), (east, north), (west, north), (west, south)]
    wkt = "POLYGON ((" + ", ".join(" ".join(point) for point in ring) + "))"
    for size in nodes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            path, polygon = folder / "release.psd.parquet", folder / "box.wkt"
            polygon.write_text(wkt)
            number = save_release(size, path)
            caches = [folder / f"cache-{run}" for run in range(runs)]
            first = [query(path, str(cache), "--box", *FIRST) for cache in caches]
            after_boxes = cached_megabytes(caches[0])
            later = [query(path, str(cache), "--box", *NEXT) for cache in caches]
            of_all = ("--polygons", str(polygon), "--polygons-crs", "EPSG:4326")
            every, _ = query(path, str(folder / "cache-of-all"), *of_all)
            for box, answers in ((FIRST, first), (NEXT, later)):
                check_equal([text for _, text in (*answers, query(path, "off", "--box", *box))])
            fastest = [min(seconds for seconds, _ in column) for column in (first, later)]
            yield (
                f"{number:,}",
                f"{path.stat().st_size / 1e6:.1f}",
                f"{fastest[0]:.2f}",
                after_boxes,
                f"{fastest[1]:.2f}",
                f"{every:.2f}",
                cached_megabytes(folder / "cache-of-all"),
            )
            missed = missed or (number <= LIMIT_NODES and fastest[1] > LIMIT)
    if missed:
        raise SystemExit(f"the limit of the next box is {LIMIT} s up to {LIMIT_NODES:,} nodes")


def main() -> None:
    parser = study(__doc__, runs=3)
    default = [10**4, 10**5, 670_000, 4 * 10**6]
    parser.add_argument("--nodes", type=whole_numbers, default=default)
    options = parser.parse_args()
    write_table(options.output, HEADER, measure(options.nodes, options.runs))


if __name__ == "__main__":
    main()
