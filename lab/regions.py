"""Errors of named regions and of boxes when regions are nodes, beside the default without regions.

    python lab/regions.py [--districts 30,600] [--epsilons .1,1] [--builds 4] [--share .17]
        [--data FOLDER] [--sets A,B] [-o table.md]

Districts are the Voronoi cells of a fixed random sample of the points of a data set; true counts
are by exact assignment. Of the default method without regions, districts are answered as polygons.
The error is the mean relative error over the districts, |estimate - true| / max(true, 1); covered
is the share of districts whose true count is in the 95 % interval; unions are 200 of 2 to 10
districts; crossing are 200 polygons of 24 sides around points, of .01 to 10 % of the bounds, that
cut districts. The score is that of boxes, as in ``accuracy.py``. The data sets are public, so their
true errors may be published.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

import geopandas as gpd
import numpy as np
import shapely
from common import counts_in_shapes, draw, holds, study, whole_numbers, write_table
from data_sets import PointSet, add_sets, chosen_sets

import psd
from psd.apps.evaluation.true_counts import TrueCounts
from psd.apps.evaluation.true_errors import class_errors, geometric_mean
from psd.ingest.tally import Tally
from psd.regions.hierarchy import RegionHierarchy
from psd.regions.polygon_hierarchy import hierarchy_from_polygons

HEADER = (
    *("data", "districts", "epsilon", "error", "default", "ratio"),
    *("covered", "unions covered", "crossing covered", "score", "default's", "ratio"),
)

_SEED = 19
_UNIONS = 200
_CROSSING, _SIDES = 200, 24


@dataclass(frozen=True, kw_only=True, eq=False)
class Districts:
    """Districts over a data set, its tally by them, and the true counts."""

    table: gpd.GeoDataFrame
    regions: RegionHierarchy
    tally: Tally
    true: np.ndarray
    boxes: TrueCounts
    unions: list[list[str]]
    crossing: gpd.GeoSeries
    crossing_true: np.ndarray


def voronoi(points: np.ndarray, domain: psd.Domain) -> gpd.GeoDataFrame:
    """Voronoi cells of points, clipped to the bounds."""
    box = shapely.box(*domain.bounds)
    cells = shapely.voronoi_polygons(shapely.multipoints(points), extend_to=box)
    cells = shapely.intersection(shapely.get_parts(cells), box)
    names = [f"d{number:03d}" for number in range(len(cells))]
    return gpd.GeoDataFrame({"district": names}, geometry=cells, crs=domain.crs)


def crossing_polygons(points: np.ndarray, domain: psd.Domain) -> gpd.GeoSeries:
    """Polygons around points of a data set, their areas spread evenly over three decades."""
    random = np.random.default_rng(_SEED + 1)
    centres = points[random.choice(len(points), _CROSSING, replace=False)]
    size = np.array([domain.width, domain.height])
    share = 10 ** random.uniform(-4, -1, _CROSSING)
    angle = np.arange(_SIDES) * (2 * np.pi / _SIDES)
    corners = np.stack([np.cos(angle), np.sin(angle)], axis=1) / np.sqrt(np.pi)
    rings = centres[:, None] + np.sqrt(share)[:, None, None] * corners * size
    return gpd.GeoSeries(shapely.polygons(rings), crs=domain.crs)


def districts(one: PointSet, number: int) -> Districts:
    """Districts of a data set; the sample of its points is fixed."""
    domain, boxes = one.domain, one.truth()
    points = np.unique(one.inside, axis=0)
    random = np.random.default_rng(_SEED)
    table = voronoi(points[random.choice(len(points), number, replace=False)], domain)
    regions = hierarchy_from_polygons(table, domain, ids="district")
    tally = one.tally(strata=regions)
    ids = regions.levels[0].ids
    crossing = crossing_polygons(points, domain)
    sizes = random.integers(2, 11, _UNIONS)
    return Districts(
        table=table.set_index("district").loc[list(ids)].reset_index(),
        regions=regions,
        tally=tally,
        true=np.bincount(np.asarray(tally.region), tally.counts, number),
        boxes=boxes,
        unions=[[ids[i] for i in random.choice(number, size, replace=False)] for size in sizes],
        crossing=crossing,
        crossing_true=counts_in_shapes(one.inside, crossing.to_numpy()),
    )


def built(
    known: Districts, epsilon: str, inside: str = "", share: str | None = None
) -> psd.Release:
    """A release with regions and this inside them, or the default without regions."""
    if not inside:
        return draw(known.boxes.counts, known.regions.domain, "auto", epsilon)
    method = psd.decompositions.Regions(
        inside=inside, levels_share=None if share is None else Decimal(share)
    )
    return draw(known.tally, known.regions.domain, method, epsilon, regions=known.regions)


def measured(known: Districts, epsilon: str, share: str | None) -> tuple[float, ...]:
    """Figures of one build of each kind: errors, coverage in percent, scores."""
    release, default = built(known, epsilon, "auto", share), built(known, epsilon)
    assert release.levels
    answers, plain = release.query().table, default.query(known.table).table
    base = np.maximum(known.true, 1)
    errors = [np.abs(each["estimate"].to_numpy() - known.true) / base for each in (answers, plain)]
    index = {name: number for number, name in enumerate(known.regions.levels[0].ids)}
    together = release.query(known.unions).table
    sums = np.array([known.true[[index[name] for name in union]].sum() for union in known.unions])
    scores = [geometric_mean(class_errors(each, known.boxes)) for each in (release, default)]
    across = release.query(known.crossing).table
    pairs = ((answers, known.true), (together, sums), (across, known.crossing_true))
    covers = [100 * float(holds(each, true).mean()) for each, true in pairs]
    return (*(error.mean() for error in errors), *covers, *scores)


def rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """One row for each data set, number of districts and epsilon; and one of their means."""
    for number in options.districts:
        for epsilon in options.epsilons:
            by_data = []
            for one in chosen_sets(options):
                known = districts(one, number)
                builds = np.array(
                    [measured(known, epsilon, options.share) for _ in range(options.builds)]
                )
                by_data.append(builds.mean(axis=0))
                yield (one.name, str(number), epsilon, *cells(by_data[-1]))
            figures = np.array(by_data)
            means = np.exp(np.log(figures).mean(axis=0))
            means[2:5] = figures[:, 2:5].mean(axis=0)
            yield ("**all**", str(number), epsilon, *cells(means))


def cells(values: np.ndarray) -> tuple[str, ...]:
    """Texts of the figures of a row."""
    error, default, alone, together, across, score, plain = values
    return (
        f"{error:.4f}",
        f"{default:.4f}",
        f"{error / default:.3f}",
        f"{alone:.1f}",
        f"{together:.1f}",
        f"{across:.1f}",
        f"{score:.4f}",
        f"{plain:.4f}",
        f"{score / plain:.3f}",
    )


def parser(doc: str | None, districts: str, epsilons: str, builds: int) -> argparse.ArgumentParser:
    """Options of a study of districts, with these defaults."""
    options = study(doc, epsilons=epsilons, builds=builds)
    add_sets(options)
    default = whole_numbers(districts)
    options.add_argument("--districts", type=whole_numbers, default=default, help="with commas")
    return options


def main() -> None:
    options = parser(__doc__, "30,600", "0.1,1", 4)
    options.add_argument(
        "--share", help="share of epsilon for the regions; by default the method's"
    )
    chosen = options.parse_args()
    write_table(chosen.output, HEADER, rows(chosen))


if __name__ == "__main__":
    main()
