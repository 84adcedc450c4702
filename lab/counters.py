"""Variance of running totals by each counter, drawn exactly, against closed forms.

``python lab/counters.py`` prints, for 52, 365 and 8,760 steps, the largest and the
mean variance of a total for noise of variance 1 per unit of rho, beside the closed form, and
exits with 1 if one differs by more than 3 %. The draws are those of `psd stream add`: discrete
Gaussian noise on the steps, the blocks, or the weighted sums, of cells without records.

``--pay`` prints instead which counter `psd stream create --totals` takes, and the predicted error
of a count in the last total, for a grid, one record per unit and delta 1e-6.

With unit noise a unit costs rho = 1/2. The tree gives each of its h levels a share 1 / h of rho.
"""

import sys

import numpy as np
from common import study, whole_numbers, write_table

from psd.apps.streams.creation import choose_counter
from psd.apps.streams.plan import (
    COUNTERS,
    StreamRequest,
    block_variance,
    blocks_closed,
    blocks_of,
    toeplitz_row,
    toeplitz_squared_sensitivity,
    tree_levels,
)
from psd.decompositions.grid import Grid
from psd.mechanisms.gaussian import GaussianMechanism
from psd.publish.request_values import request_from_values
from psd.space.time_slices import TimeSlices

STEPS = (52, 365, 8760)

# Largest and mean variance of a total with unit noise.
CLOSED: dict[str, dict[int, tuple[float, float]]] = {
    "slices": {52: (52, 26.5), 365: (365, 183), 8760: (8760, 4380.5)},
    "tree": {52: (19.73, 10.61), 365: (43.21, 21.99), 8760: (102.25, 50.64)},
    "toeplitz": {52: (5.394, 4.684), 365: (8.667, 7.737), 8760: (15.649, 14.390)},
}
TOLERANCE = 0.03

# Variance of the noise that stands for 1, so large that the law is close to the continuous one.
UNIT = 10**6
PICO = 10**12


def noise(squared_sensitivity, levels, cells):
    """Exact draws of variance squared_sensitivity * levels * UNIT."""
    rho = max(PICO // (2 * UNIT * levels), 1)
    mechanism = GaussianMechanism(
        true=np.zeros(cells, np.int64),
        rho=np.full(cells, rho, np.int64),
        squared_sensitivity=squared_sensitivity,
    )
    return mechanism.sample()


def sums(steps, cells):
    """Totals as sums of steps with noise."""
    return np.cumsum([noise(1, 1, cells) for _ in range(steps)], axis=0)


def tree(steps, cells):
    """Totals of blocks, each joined with its halves, as `psd.apps.streams.plan` does it."""
    levels, totals = tree_levels(steps), []
    blocks: dict[tuple[int, int], np.ndarray] = {}
    for step in range(steps):
        below = None
        for level in blocks_closed(step):
            if level:
                halves = (
                    blocks.pop((level - 1, step - 2 ** (level - 1))),
                    blocks.pop((level - 1, step)),
                )
                below = halves[0] + halves[1]
            own = noise(1, levels, cells).astype(float)
            if below is not None:
                weight = float(2 * block_variance(level - 1))
                own = (weight * own + below) / (weight + 1)
            blocks[level, step] = own
        totals.append(sum(blocks[at] for at in blocks_of(step + 1)))
    return np.array(totals)


def toeplitz(steps, cells):
    """Totals of the square root: the noise of all steps, times rows of B, by the FFT."""
    squared = toeplitz_squared_sensitivity(steps)
    drawn = np.array([noise(squared, 1, cells) for _ in range(steps)], float)
    size, row = 2 * steps, toeplitz_row(steps)
    spectrum = np.fft.rfft(drawn, size, axis=0) * np.fft.rfft(row, size)[:, None]
    return np.fft.irfft(spectrum, size, axis=0)[:steps]


TOTALS = {"slices": sums, "tree": tree, "toeplitz": toeplitz}


def measured(counter, steps, cells):
    """Largest and mean variance, in units of the noise; the largest is that of the closed form.

    The largest of many measured variances would be too large, so it is measured at the step where
    the closed form has it.
    """
    totals = TOTALS[counter](steps, cells)
    variances = np.mean(totals.astype(float) ** 2, axis=1) / UNIT
    return variances[largest_at(counter, steps)], variances.mean()


def largest_at(counter, steps):
    """Step with the largest variance."""
    if counter != "tree":
        return steps - 1
    exact = [sum(block_variance(level) for level, _ in blocks_of(t)) for t in range(1, steps + 1)]
    return int(np.argmax(np.array(exact, float)))


def choices(steps):
    """Rows: what `auto` takes, for numbers of slices and epsilons."""
    for number in steps:
        hours = np.datetime64("2026-01-01T00") + np.arange(number)
        slices = TimeSlices(by="hour", names=tuple(map(str, hours)))
        for epsilon in ("0.3", "1", "3"):
            request = request_from_values({
                "domain": (0, 0, 1, 1), "epsilon": epsilon, "delta": "1e-6", "noise": "laplace",
                "method": Grid(size=64), "slices": slices, "time": "t",
            })  # fmt: skip
            chosen = choose_counter(StreamRequest.of(request), "auto")
            errors = (f"{error:.1f}" for error in chosen.errors.values())
            yield (f"{number:,}", epsilon, *errors, chosen.name)


def variances(steps, cells, differs):
    """Rows: variances beside closed forms; and whether one differs."""
    for number in steps:
        for counter in COUNTERS:
            found = measured(counter, number, max(min(cells, 4 * 10**7 // number), 2_000))
            pairs = list(zip(found, CLOSED[counter][number], strict=True))
            differs += [abs(a / b - 1) > TOLERANCE for a, b in pairs]
            yield (f"{number:,}", counter, *(text for a, b in pairs for text in (f"{a:.4g}", b)))


def main():
    parser = study(__doc__)
    parser.add_argument("--pay", action="store_true", help="print which counter pays")
    parser.add_argument("--steps", type=whole_numbers, default=list(STEPS), help="some of them")
    parser.add_argument("--cells", type=int, default=20_000, help="cells, and draws of each step")
    options = parser.parse_args()
    differs: list[bool] = []
    if options.pay:
        header = ("slices", "epsilon", "by sums", "by the tree", "by toeplitz", "auto")
        write_table(options.output, header, choices(options.steps))
        return 0
    header = ("steps", "counter", "largest", "closed form", "mean", "closed form")
    write_table(options.output, header, variances(options.steps, options.cells, differs))
    return int(any(differs))


if __name__ == "__main__":
    sys.exit(main())
