"""True relative errors of every method on the shared data sets, in the classes of the workload.

    python tests/benchmarks/accuracy.py [--runs 5] [--data ../shared/data]

The points are read from the folder that stands beside the project; N is paid for where a method
uses it, and the bounds are public.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import psd
from psd.evaluation import evaluate

BOUNDS = {
    "uk_road_accidents": (-7.6, 49.8, 1.9, 60.9),
    "london_stop_search": (-0.55, 51.25, 0.35, 51.72),
}
EPSILONS = ("0.1", "1")
CLASSES = ("U .01 %", "U .1 %", "U 1 %", "U 10 %", "D .01 %", "D .1 %", "D 1 %", "D 10 %")


def rows(folder: Path, runs: int) -> Iterator[dict[str, str]]:
    """One row per data set, epsilon and method; means over some runs."""
    for name, bounds in BOUNDS.items():
        for epsilon in EPSILONS:
            for method in psd.methods():
                cells = []
                for _ in range(runs):
                    path = folder / f"{name}.csv"
                    domain = psd.Domain(bounds=bounds)
                    release = psd.build(path, domain=domain, epsilon=epsilon, method=method)
                    cells.append(evaluate(release, path).summary["true_relative_error"])
                mean = np.mean(cells, axis=0)
                yield {
                    "data": name,
                    "epsilon": epsilon,
                    "method": method,
                    "score": f"{np.exp(np.log(mean).mean()):.4f}",
                    **{k: f"{v:.4f}" for k, v in zip(CLASSES, mean, strict=True)},
                }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    default = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    parser.add_argument("--data", type=Path, default=default)
    options = parser.parse_args()
    for number, row in enumerate(rows(options.data, options.runs)):
        if number == 0:
            print(f"| {' | '.join(row)} |\n|{' --- |' * len(row)}")
        print(f"| {' | '.join(row.values())} |", flush=True)


if __name__ == "__main__":
    main()
