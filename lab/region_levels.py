"""Errors of three levels of regions in one release, beside those of each level alone.

    python lab/region_levels.py [--epsilons .1,1] [--builds 20] [--data FOLDER] [--sets A,B]
        [-o table.md]

The lowest level has the 600 districts of ``regions.py``; each is in the nearest of 60 boroughs, and
each borough in the nearest of 6 parts of the country. Alone, a level has the share of epsilon that
it has among the three, and all cells below it the rest. The error is the root mean square one of
the signed estimates; sums differ by the largest difference between a region and its parts.
"""

import argparse
from collections.abc import Iterator
from decimal import Decimal

import geopandas as gpd
import numpy as np
import shapely
from common import draw, study, write_table
from data_sets import add_sets, chosen_sets
from regions import districts

import psd
from psd.decompositions._regions import default_share
from psd.ingest.tally import Tally
from psd.regions.hierarchy import RegionHierarchy
from psd.regions.polygon_hierarchy import hierarchy_from_polygons
from psd.space.region_tree import RegionTree

HEADER = ("data", "epsilon", "builds", "level", "regions", "error", "alone", "ratio", "sums differ")

LEVELS = ("part", "borough", "district")
_SIZES = (6, 60)
_SEED = 23


def nearest(centres: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """Number of the seed that is nearest to each centre."""
    return np.square(centres[:, None] - seeds[None]).sum(axis=2).argmin(axis=1)


def three_levels(table: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """Districts with the names of their borough and part."""
    random = np.random.default_rng(_SEED)
    centres = shapely.get_coordinates(shapely.centroid(table.geometry.to_numpy()))
    seeds = centres[random.choice(len(centres), _SIZES[1], replace=False)]
    tops = seeds[random.choice(len(seeds), _SIZES[0], replace=False)]
    borough = nearest(centres, seeds)
    return table.assign(
        borough=[f"b{n:02d}" for n in borough],
        part=[f"p{n}" for n in nearest(seeds, tops)[borough]],
    )


def hierarchies(table: gpd.GeoDataFrame, domain: psd.Domain) -> dict[str, RegionHierarchy]:
    """The three levels together, and each alone."""
    alone = {name: table.dissolve(name, as_index=False) for name in LEVELS}
    together = hierarchy_from_polygons(table, domain, ids="district", parents=["borough", "part"])
    return {"": together} | {
        name: hierarchy_from_polygons(alone[name], domain, ids=name) for name in LEVELS
    }


def drawn(
    tally: Tally, regions: RegionHierarchy, epsilon: str, share: Decimal
) -> tuple[list[np.ndarray], float]:
    """Signed estimates of the regions of every level, and how far sums of parts are off."""
    method = psd.decompositions.Regions(levels_share=share)
    release = draw(tally, regions.domain, method, epsilon, regions=regions)
    signed, tree = release.index.fit.estimates.signed, release.tree
    assert isinstance(tree, RegionTree)
    levels = [signed[tree.named(tier)] for tier in range(len(regions.levels))]
    parents = [level.parent for level in regions.levels[1:]]
    pairs = zip(parents, levels[1:], levels, strict=False)
    off = [np.abs(np.bincount(up, low) - high).max() for up, low, high in pairs]
    return levels, max([*off, abs(levels[0].sum() - signed[0])])


def rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """One row for each data set, epsilon and level."""
    for one in chosen_sets(options):
        regions = hierarchies(three_levels(districts(one, 600).table), one.domain)
        tallies = {name: one.tally(strata=each) for name, each in regions.items()}
        true = [np.bincount(np.asarray(tallies[""].region), tallies[""].counts, regions[""].size)]
        for level in reversed(regions[""].levels[1:]):
            true.insert(0, np.bincount(level.parent, true[0]))
        for epsilon in options.epsilons:
            share = default_share(true[0].sum() * float(epsilon) / regions[""].size)
            each = (share / len(LEVELS)).quantize(Decimal("1e-6"))
            squares, sums = np.zeros((2, len(LEVELS))), 0.0
            for _ in range(options.builds):
                together, off = drawn(tallies[""], regions[""], epsilon, 3 * each)
                sums = max(sums, off)
                for tier, name in enumerate(LEVELS):
                    (alone,), _ = drawn(tallies[name], regions[name], epsilon, each)
                    index = {ident: n for n, ident in enumerate(regions[name].levels[0].ids)}
                    order = [index[ident] for ident in regions[""].levels[tier].ids]
                    for kind, counts in enumerate((together[tier], alone[order])):
                        squares[kind, tier] += np.square(counts - true[tier]).mean()
            errors = np.sqrt(squares / options.builds)
            for tier, name in enumerate(LEVELS):
                a, b = errors[:, tier]
                figures = (f"{a:.2f}", f"{b:.2f}", f"{a / b:.3f}", f"{sums:.1e}")
                yield one.name, epsilon, str(options.builds), name, str(len(true[tier])), *figures


def main() -> None:
    parser = study(__doc__, epsilons="0.1,1", builds=20)
    add_sets(parser)
    options = parser.parse_args()
    write_table(options.output, HEADER, rows(options))


if __name__ == "__main__":
    main()
