"""Mean error of named regions over many builds, and how often the interval of their sum holds.

    python lab/region_bias.py [--data A,B] [--districts 600] [--epsilons .1]
        [--builds 200] [--folder ../shared/data] [--levels] [-o table.md]

Districts are those of ``regions.py``, estimates are signed. The counts of regions decide how finely
their cells are divided and are averaged with the sums of these cells, so estimates could drift. The
error is that of a district, a mean over all of them, with its standard error over builds; covered
is the share of builds whose sum of all districts has the true one in its 95 % interval. With
`--levels` the districts are in boroughs and parts of the country, as in ``region_levels.py``; the
regions of each level have the same sum. The data sets are public, so their true errors may be
published.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from accuracy import BOUNDS
from region_levels import three_levels
from regions import Districts, districts, parser
from tables import write_table

import psd
from psd.estimation.least_squares import infer_counts
from psd.ingest.sources import Columns, read
from psd.ingest.tally_builder import tally_batches
from psd.privacy.budget import Budget
from psd.privacy.epsilon import parse_epsilon
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release
from psd.space.polygon_hierarchy import hierarchy_from_polygons
from psd.space.region_tree import RegionTree

HEADER = ("data", "districts", "epsilon", "builds", "mean error", "without settling", "covered")

_Z = 1.96


def errors(known: Districts, epsilon: str) -> tuple[float, float, bool]:
    """Error of the sum of one build, settled and not, and whether its interval holds."""
    tree = draw_release(
        known.tally,
        known.regions.domain,
        method=psd.decompositions.Regions(),
        regions=known.regions,
        budget=Budget(parse_epsilon(epsilon)),
        unit=PrivacyUnit(),
    ).tree
    assert isinstance(tree, RegionTree)
    settled, plain = (infer_counts(tree, empty=tree.outside, settled=s) for s in (True, False))
    off = settled.signed[0] - known.true.sum()
    return off, plain.signed[0] - known.true.sum(), abs(off) <= _Z * settled.variance[0] ** 0.5


def in_levels(known: Districts, path: Path) -> Districts:
    """The same districts below boroughs and parts of the country."""
    domain, columns = known.regions.domain, Columns(x="lon", y="lat")
    table, parents = three_levels(known.table), ["borough", "part"]
    regions = hierarchy_from_polygons(table, domain, ids="district", parents=parents)
    tally = tally_batches(read(path, columns, domain), domain, regions=regions)
    return replace(known, regions=regions, tally=tally)


def rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """One row for each data set, number of districts and epsilon."""
    for data in options.data:
        for number in map(int, options.districts):
            domain = psd.Domain(bounds=BOUNDS[data])
            known = districts(options.folder / f"{data}.csv", domain, number)
            if options.levels:
                known = in_levels(known, options.folder / f"{data}.csv")
            for epsilon in options.epsilons:
                builds = np.array([errors(known, epsilon) for _ in range(options.builds)])
                mean = builds[:, :2].mean(axis=0) / number
                error = builds[:, :2].std(axis=0, ddof=1) / number / len(builds) ** 0.5
                means = (f"{m:+.3f} ± {e:.3f}" for m, e in zip(mean, error, strict=True))
                holds = f"{100 * builds[:, 2].mean():.1f}"
                yield (data, str(number), epsilon, str(len(builds)), *means, holds)


def main() -> None:
    """Print the table, or write it."""
    options = parser(__doc__.splitlines()[0], "600", "0.1", 200)
    options.add_argument("--levels", action="store_true", help="districts in boroughs and parts")
    chosen = options.parse_args()
    write_table(chosen.output, HEADER, rows(chosen))


if __name__ == "__main__":
    main()
