"""Noise, quantiles, builds, queries and starts of the program, beside peers in the same run.

    python lab/run.py [--largest 10000000] [--only noise,quantile,build,query,start]

Times are CPU seconds, so that other work on the machine counts least; ratios are to a peer that is
measured in the same run.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import bench_noise
import bench_quantile
import numpy as np
import pandas as pd
from common import PSD, cpu_seconds, items, run_python, study, tally_of
from data_sets import SEOUL, SEOUL_BOUNDS

import psd
from psd.apps.evaluation.true_counts import count_in_boxes
from psd.curator.curator import Curator
from psd.ingest.tally import Tally
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO

DOMAIN = psd.Domain(bounds=SEOUL_BOUNDS)
SIZES = (10**5, 10**6, 10**7)

Row = Mapping[str, object]


def points(size: int) -> pd.DataFrame:
    """Rows like those of the sample: its visits, drawn again and moved by some 100 m."""
    rng = np.random.default_rng(size)
    sample = pd.read_csv(SEOUL, usecols=["user_id", "lon", "lat"])
    rows = sample.iloc[rng.integers(0, len(sample), size)].reset_index(drop=True)
    copy = rng.integers(0, max(1, size // len(sample)), size).astype(str)
    return pd.DataFrame(
        {
            "user_id": rows["user_id"] + "-" + copy,
            "lon": (rows["lon"] + rng.normal(0, 0.001, size)).round(6),
            "lat": (rows["lat"] + rng.normal(0, 0.001, size)).round(6),
        }
    )


def bench_build(largest: int) -> Iterator[Row]:
    """`psd build` on a CSV, beside pandas merely reading it, and its part after ingestion."""
    with tempfile.TemporaryDirectory() as folder:
        for size in [size for size in SIZES if size <= largest]:
            path, table = Path(folder) / f"{size}.csv", points(size)
            table.to_csv(path, index=False)
            reading = run_python("import pandas, sys; pandas.read_csv(sys.argv[1])", path).cpu
            counts = tally_of(table[["lon", "lat"]].to_numpy(), DOMAIN)
            for name in psd.methods():
                for unit in ((), ("--user", "user_id", "--max-contributions", "10")):
                    yield _build_row(name, size, unit, path, reading, counts)
            path.unlink()


def _build_row(
    name: str, size: int, unit: tuple[str, ...], path: Path, reading: float, counts: Tally
) -> Row:
    """One method, size and unit."""
    target = path.with_suffix(".psd.parquet")
    cost = run_python(
        PSD, "build", path, "-o", target, "--overwrite", "--epsilon", 1, "--method", name,
        "--bounds", *SEOUL_BOUNDS, *unit,
    )  # fmt: skip
    method = psd.decompositions.method(name)
    after = cpu_seconds(
        lambda: method.build(Curator(counts, DOMAIN, budget=Budget(NANO), sampler=SecureSampler()))
    )
    return {
        "method": name,
        "rows": f"{size:,}",
        "unit": "user" if unit else "record",
        "of pandas.read_csv": round(cost.cpu / reading, 2),
        "after ingestion, of pandas": round(after / reading, 2),
        "CPU s": round(cost.cpu, 2),
        "peak MB": round(cost.memory),
    }


def bench_query(size: int) -> Iterator[Row]:
    """Boxes of the four sizes of the usual workload, with both errors, beside counting points."""
    rng, table = np.random.default_rng(1), points(size)
    x, y, one = table["lon"].to_numpy(), table["lat"].to_numpy(), np.ones(size, np.int64)
    for name in psd.methods():
        release = psd.build(table, domain=DOMAIN, epsilon=1, method=name)
        release.query([SEOUL_BOUNDS])
        for area in (1e-4, 1e-3, 1e-2, 1e-1):
            boxes = _boxes(rng, area, 2_000)
            seconds = cpu_seconds(partial(release.query, boxes), 3) / len(boxes)
            peer = cpu_seconds(partial(count_in_boxes, x, y, one, boxes[:100]), 3) / 100
            yield {
                "method": name,
                "cells": f"{len(release.tree):,}",
                "area of the boxes": f"{100 * area:g} %",
                "times counting points": f"{peer / seconds:,.1f}",
                "queries per CPU second": f"{1 / seconds:,.0f}",
            }


def _boxes(rng: np.random.Generator, area: float, size: int) -> np.ndarray:
    """Rectangles of one area, aspect 1/4 to 4, anywhere inside the bounds."""
    aspect = np.exp(rng.uniform(np.log(0.25), np.log(4), size))
    w, h = np.sqrt(area * aspect), np.sqrt(area / aspect)
    x, y = rng.uniform(0, 1 - w), rng.uniform(0, 1 - h)
    unit = np.stack([x, y, x + w, y + h], axis=1)
    return np.array(SEOUL_BOUNDS[:2] * 2) + unit * np.array([DOMAIN.width, DOMAIN.height] * 2)


def bench_start() -> Iterator[Row]:
    """Start of the command line against a bare interpreter; the limit is 0.4 s."""
    bare = min(run_python("pass").cpu for _ in range(5))
    for words in (["--help"], ["build", "--help"], ["query", "--help"], ["methods"]):
        seconds = min(run_python(PSD, *words).cpu for _ in range(5))
        yield {
            "command": f"psd {' '.join(words)}",
            "of bare python": round(seconds / bare, 1),
            "CPU s": round(seconds, 3),
            "of the limit 0.4 s": round(seconds / 0.4, 2),
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
    parser = study(__doc__)
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="rows of a built file")
    parser.add_argument("--points", type=int, default=10**6, help="of queried releases")
    parser.add_argument("--only", type=items, default=list(SECTIONS), help="sections")
    options = parser.parse_args()
    if options.output:
        sys.stdout = options.output.open("w", encoding="utf-8")
    for name in options.only:
        show(name, SECTIONS[name](options))


SECTIONS: dict[str, Callable[[argparse.Namespace], Iterable[Row]]] = {
    "noise": lambda options: bench_noise.run(),
    "quantile": lambda options: bench_quantile.run(),
    "build": lambda options: bench_build(options.largest),
    "query": lambda options: bench_query(options.points),
    "start": lambda options: bench_start(),
}

if __name__ == "__main__":
    main()
