"""All benchmarks: noise, build, query, memory, start-up. One command, ratios within one run.

python lab/run.py [--largest 10000000] [--only noise,quantile,build,query,start]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import bench_noise
import bench_quantile
import numpy as np
import pandas as pd

import psd
from psd.curator.curator import Curator
from psd.ingest.sources import Columns, read
from psd.ingest.tally import Tally
from psd.ingest.tally_builder import tally_batches
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.epsilon import NANO

BOUNDS = (126.40, 37.00, 127.60, 38.00)
DOMAIN = psd.Domain(bounds=BOUNDS)
SAMPLE = Path(__file__).resolve().parents[1] / "data" / "seoul" / "visits.csv"
SIZES = (10**5, 10**6, 10**7)

Row = Mapping[str, object]


def points(size: int) -> pd.DataFrame:
    """Rows like those of the sample: its visits, drawn again and moved by some 100 m."""
    rng = np.random.default_rng(size)
    sample = pd.read_csv(SAMPLE, usecols=["user_id", "lon", "lat"])
    rows = sample.iloc[rng.integers(0, len(sample), size)].reset_index(drop=True)
    copy = rng.integers(0, max(1, size // len(sample)), size).astype(str)
    return pd.DataFrame(
        {
            "user_id": rows["user_id"] + "-" + copy,
            "lon": (rows["lon"] + rng.normal(0, 0.001, size)).round(6),
            "lat": (rows["lat"] + rng.normal(0, 0.001, size)).round(6),
        }
    )


def timed(action: Callable[[], object], repeats: int = 1) -> float:
    """Best wall time of a few runs, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


# Peak memory is read by the process itself: what the parent had counts into its children's usage.
WRAPPER = """
import atexit, re, sys
def peak():
    with open("/proc/self/status") as status:
        print(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1], file=sys.stderr)
atexit.register(peak)
"""
PSD = "from psd_cli.main import main; main()"


def child(script: str, *words: str) -> tuple[float, float]:
    """Wall time and peak memory (MB) of a Python script in a process of its own."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", WRAPPER + script, *words], capture_output=True, text=True, check=True
    )
    return time.perf_counter() - start, int(done.stderr.split()[-1]) / 1024


def bench_build(largest: int) -> Iterator[Row]:
    """`psd build` on a CSV, beside pandas merely reading it, and its part after ingestion."""
    with tempfile.TemporaryDirectory() as folder:
        for size in [size for size in SIZES if size <= largest]:
            path = Path(folder) / f"{size}.csv"
            points(size).to_csv(path, index=False)
            read_time, _ = child(f"import pandas; pandas.read_csv({str(path)!r})")
            counts = tally_batches(read(path, Columns(), DOMAIN), DOMAIN)
            for name in psd.methods():
                for unit in ((), ("--user", "user_id", "--max-contributions", "10")):
                    yield _build_row(name, size, unit, path, read_time, counts)
            path.unlink()


def _build_row(
    name: str, size: int, unit: tuple[str, ...], path: Path, read_time: float, counts: Tally
) -> Row:
    """One method, size and unit."""
    target = path.with_suffix(".psd.parquet")
    seconds, memory = child(
        PSD, "build", str(path), "-o", str(target), "--overwrite", "--epsilon", "1",
        "--method", name, "--bounds", *map(str, BOUNDS), *unit,
    )  # fmt: skip
    method = psd.method(name)
    after = timed(
        lambda: method.build(Curator(counts, DOMAIN, budget=Budget(NANO), sampler=SecureSampler()))
    )
    return {
        "method": name,
        "rows": f"{size:,}",
        "unit": "user" if unit else "record",
        "build s": round(seconds, 2),
        "of pandas.read_csv": round(seconds / read_time, 2),
        "after ingestion s": round(after, 2),
        "peak MB": round(memory),
    }


def bench_query() -> Iterator[Row]:
    """Boxes of the four sizes of the usual workload, with both errors."""
    rng = np.random.default_rng(1)
    for name in psd.methods():
        release = psd.build(points(10**6), domain=DOMAIN, epsilon=1, method=name)
        release.query([BOUNDS])
        for area in (1e-4, 1e-3, 1e-2, 1e-1):
            boxes = _boxes(rng, area, 2_000)
            seconds = timed(partial(release.query, boxes), 3)
            yield {
                "method": name,
                "cells": f"{len(release.tree):,}",
                "area of the boxes": f"{100 * area:g} %",
                "queries per second": f"{len(boxes) / seconds:,.0f}",
            }


def _boxes(rng: np.random.Generator, area: float, size: int) -> np.ndarray:
    """Rectangles of one area, aspect 1/4 to 4, anywhere inside the bounds."""
    aspect = np.exp(rng.uniform(np.log(0.25), np.log(4), size))
    w, h = np.sqrt(area * aspect), np.sqrt(area / aspect)
    x, y = rng.uniform(0, 1 - w), rng.uniform(0, 1 - h)
    unit = np.stack([x, y, x + w, y + h], axis=1)
    return np.array(BOUNDS[:2] * 2) + unit * np.array([DOMAIN.width, DOMAIN.height] * 2)


def bench_start() -> Iterator[Row]:
    """Start of the command line against a bare interpreter; the limit is 0.4 s."""
    bare = min(child("pass")[0] for _ in range(5))
    for words in (["--help"], ["build", "--help"], ["query", "--help"], ["methods"]):
        seconds = min(child(PSD, *words)[0] for _ in range(5))
        yield {
            "command": f"psd {' '.join(words)}",
            "seconds": round(seconds, 3),
            "of the limit 0.4 s": round(seconds / 0.4, 2),
            "bare python s": round(bare, 3),
        }


def show(title: str, rows: Iterable[Row]) -> None:
    """Print rows as they come, as a Markdown table."""
    print(f"\n## {title}\n")
    for number, row in enumerate(rows):
        if number == 0:
            print(f"| {' | '.join(row)} |\n|{' --- |' * len(row)}")
        print(f"| {' | '.join(map(_shown, row.values()))} |", flush=True)


def _shown(value: object) -> str:
    """Numbers with the digits that mean something; nothing where there is no number."""
    if isinstance(value, float):
        return "" if value != value else f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"
    return str(value)


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    parser.add_argument("--only", default="noise,quantile,build,query,start")
    options = parser.parse_args()
    benches: dict[str, Callable[[], Iterable[Row]]] = {
        "noise": lambda: bench_noise.run(),
        "quantile": bench_quantile.run,
        "build": lambda: bench_build(options.largest),
        "query": bench_query,
        "start": bench_start,
    }
    for name in options.only.split(","):
        show(name, benches[name]())


if __name__ == "__main__":
    main()
