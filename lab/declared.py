"""What it is worth to declare a lattice or a coordinate resolution: scores with and without it.

    python lab/declared.py [--rows A;B] [--epsilons .1,1] [--runs 4]
        [--folder ../shared/data] [-o table.md]

The rows are those of `variants.py` that declare one. Their points and boxes are also used for a
release that does not declare it. Scores as in `accuracy.py`, with standard errors over the builds;
each column has its own builds.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from accuracy import items
from coverage_measures import Truth, truth_of
from tables import write_table
from variants import Variant, variants

import psd
from psd.ingest.tally import Batch, Tally
from psd.ingest.tally_builder import tally_batches
from psd.privacy.budget import Budget
from psd.privacy.epsilon import parse_epsilon
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release
from psd.publish.public_inputs import resolve_post_processing

HEADER = ("data", "epsilon", "not declared", "declared", "declared, uniform density")
LEAST_BASE = 0.001


def rows(variant: Variant, options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """One row for each epsilon."""
    xy, declared = variant.points(), variant.domain
    plain = psd.Domain(bounds=declared.bounds, crs=declared.crs)
    domains = [(plain, "smooth"), (declared, "smooth"), (declared, "uniform")]
    counts = [tally_batches([Batch(x=xy[:, 0], y=xy[:, 1])], domain) for domain, _ in domains]
    truth = truth_of(variant, xy, counts[1], 1)
    for epsilon in options.epsilons:
        scores = [
            [
                score(built(tally, domain, epsilon, density), truth, len(xy))
                for _ in range(options.runs)
            ]
            for tally, (domain, density) in zip(counts, domains, strict=True)
        ]
        yield (variant.name, epsilon, *(cell(values) for values in scores))


def built(tally: Tally, domain: psd.Domain, epsilon: str, density: str) -> psd.Release:
    """Release of the default method."""
    method = psd.method("auto")
    return draw_release(
        tally,
        domain,
        budget=Budget(parse_epsilon(epsilon)),
        method=method,
        unit=PrivacyUnit(),
        post_processing=resolve_post_processing(method, estimate=None, density=density),
    )


def score(release: psd.Release, truth: Truth, records: int) -> float:
    """Geometric mean over the classes of mean relative errors."""
    estimate = release.query(truth.boxes)["estimate"].to_numpy()
    error = np.abs(estimate - truth.true) / np.maximum(truth.true, LEAST_BASE * records)
    means = [error[truth.classes == number].mean() for number in np.unique(truth.classes)]
    return float(np.exp(np.log(means).mean()))


def cell(values: list[float]) -> str:
    """Mean of scores with its standard error."""
    return f"{np.mean(values):.4f} ± {np.std(values, ddof=1) / len(values) ** 0.5:.4f}"


def parsed() -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    parser.add_argument("--rows", default="declared;public grid", help="as of coverage_matrix.py")
    parser.add_argument("--epsilons", type=items, default=["0.1", "1"])
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--folder", type=Path, default=beside, help="where the data sets are")
    parser.add_argument("-o", "--output", type=Path, help="file to write instead of printing")
    return parser.parse_args()


def main() -> None:
    """Print the table, or write it."""
    options = parsed()
    parts = options.rows.split(";")
    chosen = [
        variant
        for name, variant in variants(options.folder).items()
        if any(re.search(part, name) for part in parts)
    ]
    write_table(
        options.output, HEADER, (row for variant in chosen for row in rows(variant, options))
    )


if __name__ == "__main__":
    main()
