"""Private medians of a million points: rank error and time, beside OpenDP and diffprivlib.

All three get the same points, the same public range and the same epsilon. OpenDP chooses among
given candidates, so it is given the 2^16 that a finer list would only slow down.

    python lab/bench_quantile.py
"""

import sys
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from common import study, tally_of, timed, write_table

import psd
from psd.curator.curator import Curator
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.loss import parse_epsilon

POINTS = 10**6
REPEATS = 100
EPSILONS = ("0.05", "0.1", "0.5", "1")
CANDIDATES = 2**16
DOMAIN = psd.Domain(bounds=(0, 0, 1, 1), crs="EPSG:3857", lattice=(2**30, 1))


def points() -> np.ndarray:
    """Skewed coordinates in [0, 1)."""
    return np.random.default_rng(1).beta(2, 5, POINTS)


def rank_error(x: np.ndarray, median: float) -> float:
    """How many points lie between a released and the true median."""
    return abs(float(np.count_nonzero(x < median)) - len(x) / 2)


def ours(x: np.ndarray, epsilon: str) -> Callable[[], float]:
    """The curator's median on a lattice of 2^30 lines."""
    counts = tally_of(np.stack([x, np.full(len(x), 0.5)], axis=1), DOMAIN)
    nano = parse_epsilon(epsilon)

    def draw() -> float:
        curator = Curator(counts, DOMAIN, budget=Budget(nano), sampler=SecureSampler())
        line = curator.quantile(curator.root(), axis=0, loss=nano)
        return float(DOMAIN.edges(0, line)[0])

    return draw


def opendp(x: np.ndarray, epsilon: str) -> Callable[[], float]:
    """OpenDP's private quantile over a list of candidates."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    candidates = np.linspace(0, 1, CANDIDATES + 1)[1:-1].tolist()

    def made(scale: float) -> dp.Measurement:
        return dp.m.make_private_quantile(
            *space, dp.max_divergence(), candidates=candidates, alpha=0.5, scale=scale
        )

    # The loss is proportional to 1 / scale; one trial tells the factor.
    measure = made(made(1.0).map(1) / float(epsilon))
    values = x.tolist()
    return lambda: float(measure(values))


def diffprivlib(x: np.ndarray, epsilon: str) -> Callable[[], float]:
    """diffprivlib's quantile over the intervals between points."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from diffprivlib.tools import quantile
    return lambda: float(quantile(x, 0.5, epsilon=float(epsilon), bounds=(0, 1)))


def run() -> Iterator[tuple[str, ...]]:
    """Mean rank error and time per library and epsilon."""
    x = points()
    for make, repeats in ((ours, REPEATS), (opendp, 3), (diffprivlib, 10)):
        for epsilon in EPSILONS:
            try:
                draw = make(x, epsilon)
            except ImportError as error:
                print(f"without {error.name}, which is not installed", file=sys.stderr)
                break
            spent, medians = timed(lambda d=draw, n=repeats: [d() for _ in range(n)])  # type: ignore[misc]
            errors = [rank_error(x, median) for median in medians]
            yield (
                make.__name__.replace("ours", "psd"),
                epsilon,
                f"{np.mean(errors):.3g}",
                f"{1 / float(epsilon):g}",
                f"{spent / repeats:.3f}",
            )


def main() -> None:
    header = ("library", "epsilon", "mean rank error", "1 / epsilon", "CPU s each")
    write_table(study(__doc__).parse_args().output, header, run())


if __name__ == "__main__":
    main()
