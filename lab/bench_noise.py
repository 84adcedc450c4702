"""Draws per CPU second of the noise samplers, beside OpenDP's vector mechanisms on integers.

    python lab/bench_noise.py

Each row is the best of several runs, so that other work on the machine counts least. Ratios are
to OpenDP in the same run: discrete Laplace noise to its Laplace mechanism at scale 10, discrete
Gaussian noise of sigma s to its Gaussian mechanism at the same s, on a tenth of the draws.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from common import cpu_seconds, study, write_table

from psd.mechanisms.gaussian import discrete_gaussian, discrete_gaussian_each
from psd.mechanisms.laplace import discrete_laplace, discrete_laplace_each

SIZE = 10**6
REPEATS = 5
BARS = {"one scale, 10": 20, "scale per draw, all distinct, about 10": 8}
SIGMAS = (1, 10, 100, 1000, 4096)
GAUSSIAN_BAR = 20

Row = tuple[str, str, str, str]


def run(size: int = SIZE, repeats: int = REPEATS) -> list[Row]:
    """Time OpenDP and every sampler: name, draws per second, ratio, and the bar if there is one."""
    baseline, samplers = _opendp(size), _samplers(size)
    seconds = {name: cpu_seconds(draw, repeats) for name, draw in samplers.items()}
    reference = cpu_seconds(baseline, repeats)
    rows = [("OpenDP, one scale, 10", reference), *seconds.items()]
    laplace = [_row(name, size / taken, reference / taken, BARS.get(name)) for name, taken in rows]
    return [*laplace, *_gaussian(size, repeats)]


def _row(name: str, speed: float, ratio: float, bar: int | None = None) -> Row:
    """Format one row."""
    return name, f"{speed:,.0f}", f"{ratio:.3g}", "" if bar is None else str(bar)


def _gaussian(size: int, repeats: int) -> list[Row]:
    """Time discrete Gaussian noise, each sigma beside OpenDP's."""
    rows = []
    for sigma in SIGMAS:
        theirs = size / 10 / cpu_seconds(_opendp_gaussian(size // 10, sigma), repeats)
        ours = size / cpu_seconds(partial(discrete_gaussian, sigma**2, 1, size), repeats)
        rows.append(_row(f"OpenDP, Gaussian, sigma {sigma}", theirs, 1))
        rows.append(_row(f"Gaussian, sigma {sigma}", ours, ours / theirs, GAUSSIAN_BAR))
    few = size // 10
    slow = {
        "Gaussian, sigma 10**6": lambda: discrete_gaussian(10**12, 1, few),
        "Gaussian, all distinct, sigma about 10": lambda: discrete_gaussian_each(
            10**11, np.arange(10**9, 10**9 + few)
        ),
    }
    for name, draw in slow.items():
        ours = few / cpu_seconds(draw, repeats)
        rows.append(_row(name, ours, ours / theirs))
    return rows


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


def _opendp_gaussian(size: int, sigma: int) -> Callable[[], object]:
    """Build OpenDP's Gaussian mechanism on a vector of zeros; it is discrete on integers."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    measurement = dp.m.make_gaussian(*space, scale=float(sigma))
    zeros = [0] * size
    return lambda: measurement(zeros)


def main() -> None:
    write_table(study(__doc__).parse_args().output, ("name", "draws/s", "ratio", "bar"), run())


if __name__ == "__main__":
    main()
