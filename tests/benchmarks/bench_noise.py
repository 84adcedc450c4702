"""Draws per second of the noise samplers, beside OpenDP's vector discrete Laplace mechanism.

Each row is the best of several runs, so that other work on the machine counts least. Ratios are
to OpenDP at scale 10 in the same run. Run it with ``python tests/benchmarks/bench_noise.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from psd.mechanisms.laplace import discrete_laplace, discrete_laplace_each

SIZE = 10**6
REPEATS = 5
BARS = {"one scale, 10": 20, "scale per draw, all distinct, about 10": 8}


def run(size: int = SIZE, repeats: int = REPEATS) -> list[dict[str, str | float]]:
    """Time OpenDP and every sampler: name, draws per second, ratio, and the bar if there is one."""
    baseline, samplers = _opendp(size), _samplers(size)
    seconds = {name: _best(draw, repeats) for name, draw in samplers.items()}
    reference = _best(baseline, repeats)
    rows = [("OpenDP, one scale, 10", reference), *seconds.items()]
    return [
        {
            "name": name,
            "draws_per_second": size / taken,
            "ratio": reference / taken,
            "bar": BARS.get(name, float("nan")),
        }
        for name, taken in rows
    ]


def _samplers(size: int) -> dict[str, Callable[[], object]]:
    """Name the cases; the scales about 10 are those of budgets in billionths."""
    some = np.random.default_rng(0)
    numerators = np.arange(10**9, 10**9 + size)
    denominators = some.integers(95 * 10**6, 105 * 10**6, size)
    tens, ones = np.full(size, 10), np.ones(size, dtype=np.int64)
    levels = np.sort(some.integers(1, 21, size))
    return {
        "one scale, 1/10": lambda: discrete_laplace(1, 10, size),
        "one scale, 1": lambda: discrete_laplace(1, 1, size),
        "one scale, 10": lambda: discrete_laplace(10, 1, size),
        "one scale, 1000": lambda: discrete_laplace(1000, 1, size),
        "one scale, 10**6": lambda: discrete_laplace(10**6, 1, size),
        "scale per draw, all equal, 10": lambda: discrete_laplace_each(tens, ones),
        "scale per draw, 20 runs of equal ones": lambda: discrete_laplace_each(levels, ones),
        "scale per draw, all distinct, about 10": lambda: discrete_laplace_each(
            numerators, denominators
        ),
        "scale per draw, all distinct, about 10**7": lambda: discrete_laplace_each(
            numerators, denominators // 10**6
        ),
    }


def _opendp(size: int) -> Callable[[], object]:
    """Build OpenDP's mechanism on a vector of zeros."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    measurement = dp.m.make_laplace(*space, scale=10.0)
    zeros = [0] * size
    return lambda: measurement(zeros)


def _best(draw: Callable[[], object], repeats: int) -> float:
    """Take the shortest of several runs, in seconds."""
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        draw()
        taken.append(time.perf_counter() - start)
    return min(taken)


def main() -> None:
    """Print the table."""
    print(f"{'sampler':45}{'draws/s':>12}{'ratio':>8}{'bar':>6}")
    for row in run():
        bar = "" if row["bar"] != row["bar"] else f"{row['bar']:.0f}"
        print(f"{row['name']:45}{row['draws_per_second']:12,.0f}{row['ratio']:8.1f}{bar:>6}")


if __name__ == "__main__":
    main()
