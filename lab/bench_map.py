"""Sizes and times of map pages, by the number of leaves.

    python lab/bench_map.py [--leaves 1000,10000,100000] [--runs 3]
        [-o docs/measured/data/map-pages.csv]

Releases are cascades and a quadtree of simulated records. Pages are opened in Debian's Chromium
without a network and without a graphics card. The first paint is the time from opening a page to
the first picture with cells; the first answer is that to a box, with the time that it takes to
prepare the density, and the next one is that to another box. Times are the least of some runs. The
empty page has a release of one cell. The exit code is 1 if a page of at most LIMIT_LEAVES leaves is
larger than LIMIT MB, or is first painted after more than RATIO times the time of the empty page.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import draw, study, whole_numbers, write_table

import psd
from psd.apps.planning.population import AssumedDensity, draw_population
from psd.apps.web.map_page import map_page
from psd.testing.data import release_from_counts

LIMIT, LIMIT_LEAVES, RATIO = 6.0, 110_000, 3.0
RECORDS_PER_LEAF = 0.42
DOMAIN = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))
BOXES = ("[126.91, 37.42, 126.98, 37.47]", "[126.83, 37.31, 127.12, 37.66]")
FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
HEADER = (
    "method", "leaves", "page MB", "write s", "first paint s", "of the empty page",
    "first answer s", "next answer s",
)  # fmt: skip


def make_release(name: str, leaves: int) -> psd.Release:
    """Release of about a number of leaves."""
    records = max(int(leaves * RECORDS_PER_LEAF), 100)
    density = AssumedDensity(kind="clustered")
    people = draw_population(records, DOMAIN, density, np.random.default_rng(0))
    settings = {"height": round(np.log(leaves) / np.log(4))} if name == "quadtree" else {}
    return draw(people, DOMAIN, psd.decompositions.method(name, settings), "10")


def open_page(browser: Any, path: Path) -> tuple[float, float, float]:
    """Seconds to the first paint, to the first answer and to the next one."""
    page = browser.new_context(offline=True, viewport={"width": 1200, "height": 800}).new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=map]", timeout=300_000)
    paint = page.evaluate("performance.getEntriesByName('psd-cells')[0].startTime")
    answers = [
        page.evaluate(
            "(box) => { const start = performance.now(); psdMap.answer([{ box: JSON.parse(box) }]);"
            " return performance.now() - start; }",
            box,
        )
        for box in BOXES
    ]
    page.context.close()
    first, following = answers
    return paint / 1e3, first / 1e3, following / 1e3


def measure(leaves: list[int], runs: int) -> Iterator[tuple[str, ...]]:
    """One row per page."""
    from playwright.sync_api import sync_playwright

    pages = [("empty", 1), *(("cascade", size) for size in leaves), ("quadtree", max(leaves))]
    missed, empty = False, 0.0
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for name, size in pages:
            release = release_from_counts([[0]], domain=_one_cell()) if size == 1 else None
            release = release or make_release(name, size)
            start, path = time.perf_counter(), Path(folder) / f"{name}-{size}.html"
            path.write_text(map_page(release), encoding="utf-8")
            seconds = time.perf_counter() - start
            times = np.min([open_page(browser, path) for _ in range(runs)], axis=0)
            empty = empty or float(times[0])
            number, megabytes = int(release.tree.is_leaf.sum()), path.stat().st_size / 1e6
            yield (
                name,
                f"{number:,}",
                f"{megabytes:.1f}",
                f"{seconds:.1f}",
                f"{times[0]:.2f}",
                f"{times[0] / empty:.2f}",
                *(f"{each:.3f}" for each in times[1:]),
            )
            slow = times[0] > RATIO * empty or megabytes > LIMIT
            missed = missed or bool(number <= LIMIT_LEAVES and slow)
        browser.close()
    if missed:
        raise SystemExit(f"the limits are {LIMIT} MB and {RATIO} times the empty page")


def _one_cell() -> psd.Domain:
    """The same bounds as one cell."""
    return psd.Domain(bounds=DOMAIN.bounds, lattice=(1, 1))


def main() -> None:
    parser = study(__doc__, runs=3)
    parser.add_argument("--leaves", type=whole_numbers, default=[1000, 10**4, 10**5])
    options = parser.parse_args()
    write_table(options.output, HEADER, measure(options.leaves, options.runs))


if __name__ == "__main__":
    main()
