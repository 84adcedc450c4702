"""Errors of named regions by the way in which their counts are published.

    python lab/region_practice.py [--districts 600] [--epsilons 1] [--builds 2]
        [--data FOLDER] [--sets A,B] [-o table.md]

Districts are those of ``regions.py``. Ways with a guarantee: regions as nodes with cells inside,
regions alone, plain discrete Laplace noise on the count of each district with all of epsilon (cut
at 0), and the default without regions, which answers districts by adding up squares. Ways without a
guarantee, as offices do by hand: counts below 10 are suppressed, read as 5; and counts are rounded
at random to multiples of 5. The error is that of `regions.py`; rms is the root mean square error
over the districts, in records; missing is the share of districts without a number. The data sets
are public, so their true errors may be published. The last row of each data set and epsilon is the
plan of regions with cells inside, with the true counts as populations: its errors are predicted
standard deviations, and its relative errors means of these over the counts.
"""

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from common import write_table
from data_sets import chosen_sets
from regions import Districts, built, districts, parser

import psd
from psd.mechanisms.laplace import LaplaceMechanism
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.loss import parse_epsilon

HEADER = (
    *("data", "districts", "epsilon", "published as", "guarantee"),
    *("rms", "error", "missing"),
)
SMALL, BASE = 10, 5

Way = Callable[[Districts, str], np.ndarray]


def of_regions(inside: str) -> Way:
    """A release with regions."""

    def counts(known: Districts, epsilon: str) -> np.ndarray:
        release = built(known, epsilon, inside)
        assert release.levels
        return release.query()["estimate"].to_numpy()

    return counts


def by_squares(known: Districts, epsilon: str) -> np.ndarray:
    """The default without regions."""
    return built(known, epsilon).query(known.table)["estimate"].to_numpy()


def plain_noise(known: Districts, epsilon: str) -> np.ndarray:
    """Noise on each count, with all of epsilon: districts are disjoint."""
    nano = np.full(len(known.true), parse_epsilon(epsilon))
    true = known.true.astype(np.int64)
    noisy = SecureSampler().draw(LaplaceMechanism(true=true, epsilon=nano, sensitivity=1))
    return np.maximum(noisy, 0)


def suppressed(known: Districts, epsilon: str) -> np.ndarray:
    """Exact counts but small ones, which have no number."""
    return np.where(known.true < SMALL, np.nan, known.true)


def rounded(known: Districts, epsilon: str) -> np.ndarray:
    """Counts rounded to one of the two nearest multiples, so that the mean is the count."""
    down, rest = np.divmod(known.true, BASE)
    up = np.random.default_rng().random(len(rest)) < rest / BASE
    return BASE * (down + up)


WAYS: dict[str, tuple[str, Way]] = {
    "regions, cells inside": ("yes", of_regions("auto")),
    "regions alone": ("yes", of_regions("none")),
    "plain Laplace": ("yes", plain_noise),
    "squares": ("yes", by_squares),
    f"suppression below {SMALL}": ("no", suppressed),
    f"rounding to {BASE}": ("no", rounded),
}


def measured(known: Districts, counts: np.ndarray) -> tuple[float, ...]:
    """Figures of counts of districts."""
    missing = np.isnan(counts)
    read = np.where(missing, SMALL / 2, counts)
    off = read - known.true
    relative = np.abs(off) / np.maximum(known.true, 1)
    return (
        float(np.mean(off**2)),
        float(relative.mean()),
        100 * float(missing.mean()),
    )


def rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """One row for each data set, number of districts, epsilon and way."""
    for one in chosen_sets(options):
        for number in options.districts:
            known = districts(one, number)
            for epsilon in options.epsilons:
                for way, (guarantee, counts) in WAYS.items():
                    each = [measured(known, counts(known, epsilon)) for _ in range(options.builds)]
                    square, error, missing = np.array(each).mean(axis=0)
                    yield (
                        *(one.name, str(number), epsilon, way, guarantee),
                        *(f"{np.sqrt(square):.1f}", f"{error:.4f}", f"{missing:.1f} %"),
                    )
                yield (one.name, str(number), epsilon, "(plan)", "", *planned(known, epsilon))


def planned(known: Districts, epsilon: str) -> tuple[str, ...]:
    """Predicted errors of regions with cells inside."""
    expected = psd.apps.planning.plan_regions(
        known.regions,
        domain=known.regions.domain,
        epsilon=[epsilon],
        population=known.true.tolist(),
    ).table
    return f"{expected['error'][0]:.1f}", f"{expected['mean_error'][0]:.4f}", ""


def main() -> None:
    options = parser(__doc__, "600", "1", 2).parse_args()
    write_table(options.output, HEADER, rows(options))


if __name__ == "__main__":
    main()
