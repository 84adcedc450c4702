"""Mean error of named regions over many builds, and how often the interval of their sum holds.

    python lab/region_bias.py [--districts 600] [--epsilons .1] [--builds 200] [--levels]
        [--data FOLDER] [--sets A,B] [-o table.md]

Districts are those of ``regions.py``, estimates are signed. The counts of regions decide how finely
their cells are divided and are averaged with the sums of these cells, so estimates could drift. The
error is that of a district, a mean over all of them, with its standard error over builds; covered
is the share of builds whose sum of all districts has the true one in its 95 % interval. With
`--levels` the districts are in boroughs and parts of the country, as in ``region_levels.py``; the
regions of each level have the same sum. The data sets are public, so their true errors may be
published.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from common import draw, write_table
from data_sets import PointSet, chosen_sets
from region_levels import three_levels
from regions import Districts, districts, parser

import psd
from psd.estimation.least_squares import infer_counts
from psd.regions.polygon_hierarchy import hierarchy_from_polygons
from psd.space.region_tree import RegionTree

HEADER = ("data", "districts", "epsilon", "builds", "mean error", "without settling", "covered")

_Z = 1.96


def errors(known: Districts, epsilon: str) -> tuple[float, float, bool]:
    """Error of the sum of one build, settled and not, and whether its interval holds."""
    method = psd.decompositions.Regions()
    release = draw(known.tally, known.regions.domain, method, epsilon, regions=known.regions)
    tree = release.tree
    assert isinstance(tree, RegionTree)
    settled, plain = (infer_counts(tree, empty=tree.outside, settled=s) for s in (True, False))
    off = settled.signed[0] - known.true.sum()
    return off, plain.signed[0] - known.true.sum(), abs(off) <= _Z * settled.variance[0] ** 0.5


def in_levels(known: Districts, one: PointSet) -> Districts:
    """The same districts below boroughs and parts of the country."""
    table, parents = three_levels(known.table), ["borough", "part"]
    regions = hierarchy_from_polygons(table, one.domain, ids="district", parents=parents)
    return replace(known, regions=regions, tally=one.tally(strata=regions))


def rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """One row for each data set, number of districts and epsilon."""
    for one in chosen_sets(options):
        for number in options.districts:
            known = districts(one, number)
            if options.levels:
                known = in_levels(known, one)
            for epsilon in options.epsilons:
                builds = np.array([errors(known, epsilon) for _ in range(options.builds)])
                mean = builds[:, :2].mean(axis=0) / number
                error = builds[:, :2].std(axis=0, ddof=1) / number / len(builds) ** 0.5
                means = (f"{m:+.3f} ± {e:.3f}" for m, e in zip(mean, error, strict=True))
                holds = f"{100 * builds[:, 2].mean():.1f}"
                yield (one.name, str(number), epsilon, str(len(builds)), *means, holds)


def main() -> None:
    options = parser(__doc__, "600", "0.1", 200)
    options.add_argument("--levels", action="store_true", help="districts in boroughs and parts")
    chosen = options.parse_args()
    write_table(chosen.output, HEADER, rows(chosen))


if __name__ == "__main__":
    main()
