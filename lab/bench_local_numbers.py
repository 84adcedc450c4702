"""Distributions of numbers by square-wave: errors of intervals, and coverage of bins.

Run: python lab/bench_local_numbers.py [RUNS]

Reports are drawn from the exact law of each step. The error is the mean absolute error of 1,000
random intervals whose ends are those of the 64 bins, in thousandths of the devices; coverage is
the share of bins whose interval of 95 % holds the number of devices.
"""

import sys

import numpy as np

from psd.local.device import NANO, STEPS
from psd.local.distributions import BINS, estimate_distribution
from psd.local.protocols import protocol_class


def clipped_normal(generator, size):
    return np.clip(generator.normal(0.49, 0.3, size), 0, 1)


def two_peaks(generator, size):
    first = generator.random(size) < 0.5
    return np.where(first, generator.normal(0.35, 0.05, size), generator.normal(0.75, 0.08, size))


def beta(generator, size):
    return generator.beta(0.6, 6, size)


SHAPES = {"clipped normal": clipped_normal, "two peaks": two_peaks, "beta(.6, 6)": beta}


def measure(shape, devices, epsilon, seed):
    """Error of intervals and coverage of bins, of one run."""
    generator = np.random.default_rng(seed)
    values = np.clip(SHAPES[shape](generator, devices), 0, 1)
    steps = np.bincount(np.rint(values * (STEPS - 1)).astype(int), minlength=STEPS)
    matrix = protocol_class("square-wave").best(epsilon * NANO).matrix()
    draws = [generator.multinomial(n, row) for n, row in zip(steps, matrix, strict=True) if n]
    counts = np.sum(draws, axis=0)
    shares, errors = estimate_distribution(matrix, counts)
    true = steps.reshape(BINS, -1).sum(axis=1) / devices
    covered = (np.abs(shares - true) <= 1.96 * errors).mean()
    ends = np.sort(generator.integers(0, BINS + 1, (1000, 2)), axis=1)
    wrong = np.concatenate([[0], np.cumsum(shares - true)])
    return np.abs(wrong[ends[:, 1]] - wrong[ends[:, 0]]).mean() * 1e3, covered


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    print("| numbers | devices | epsilon | error of an interval, 1e-3 | coverage of bins |")
    print("|---|---|---|---|---|")
    for shape in SHAPES:
        for devices in (10**4, 10**5):
            for epsilon in (1, 4):
                results = [measure(shape, devices, epsilon, seed) for seed in range(runs)]
                error, covered = np.mean(results, axis=0)
                print(
                    f"| {shape} | {devices:,} | {epsilon} | {error:.1f} | {covered:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
