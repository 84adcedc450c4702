"""What it is worth to declare a lattice or a coordinate resolution: scores with and without it.

    python lab/declared.py [--rows A;B] [--epsilons .1,1] [--runs 4]
        [--data FOLDER] [--sets A,B] [-o table.md]

The rows are those of `variants.py` that declare one. Their points and boxes are also used for a
release that does not declare it. Scores as in `accuracy.py`, with standard errors over the builds;
each column has its own builds.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from common import chosen_by, draw, study, tally_of, with_error, write_table
from coverage_measures import Truth, truth_of
from data_sets import add_sets, chosen_sets
from variants import Variant, changed_variants

import psd
from psd.apps.evaluation.true_errors import geometric_mean
from psd.ingest.tally import Tally
from psd.publish.public_inputs import resolve_post_processing

HEADER = ("data", "epsilon", "not declared", "declared", "declared, uniform density")
LEAST_BASE = 0.001


def rows(variant: Variant, options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """One row for each epsilon."""
    xy, declared = variant.points(), variant.domain
    plain = psd.Domain(bounds=declared.bounds, crs=declared.crs)
    domains = [(plain, "smooth"), (declared, "smooth"), (declared, "uniform")]
    counts = [tally_of(xy, domain) for domain, _ in domains]
    truth = truth_of(variant, xy, counts[1], 1)
    for epsilon in options.epsilons:
        scores = [
            [
                score(built(tally, domain, epsilon, density), truth, len(xy))
                for _ in range(options.runs)
            ]
            for tally, (domain, density) in zip(counts, domains, strict=True)
        ]
        yield (variant.name, epsilon, *map(with_error, scores))


def built(tally: Tally, domain: psd.Domain, epsilon: str, density: str) -> psd.Release:
    """Release of the default method."""
    view = resolve_post_processing(
        psd.decompositions.method("auto"), estimate=None, density=density
    )
    return draw(tally, domain, "auto", epsilon, post_processing=view)


def score(release: psd.Release, truth: Truth, records: int) -> float:
    """Geometric mean over the classes of mean relative errors."""
    estimate = release.query(truth.boxes)["estimate"].to_numpy()
    error = np.abs(estimate - truth.true) / np.maximum(truth.true, LEAST_BASE * records)
    means = [error[truth.classes == number].mean() for number in np.unique(truth.classes)]
    return geometric_mean(np.array(means))


def main() -> None:
    parser = study(__doc__, epsilons="0.1,1", runs=4)
    add_sets(parser)
    parser.add_argument("--rows", default="declared;public grid", help="as of coverage_matrix.py")
    options = parser.parse_args()
    known = {variant.name: variant for variant in changed_variants(chosen_sets(options))}
    chosen = [known[name] for name in chosen_by(options.rows, known)]
    every = (row for variant in chosen for row in rows(variant, options))
    write_table(options.output, HEADER, every)


if __name__ == "__main__":
    main()
