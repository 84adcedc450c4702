"""Errors of named regions and of boxes when regions are nodes, beside the default without regions.

    python lab/regions.py [--data A,B] [--districts 30,600] [--epsilons .1,1]
        [--builds 4] [--share .17] [--folder ../shared/data] [-o table.md]

Districts are the Voronoi cells of a fixed random sample of the points of a data set; true counts
are by exact assignment. Of the default method without regions, districts are answered as polygons.
The error is the mean relative error over the districts, |estimate - true| / max(true, 1); covered
is the share of districts whose true count is in the 95 % interval; unions are 200 of 2 to 10
districts; crossing are 200 polygons of 24 sides around points, of .01 to 10 % of the bounds, that
cut districts. The score is that of boxes, as in ``accuracy.py``. The data sets are public, so their
true errors may be published.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import shapely
from accuracy import BOUNDS, items
from tables import write_table

import psd
from psd.api.region_release import RegionRelease
from psd.evaluation.evaluate import class_errors, geometric_mean
from psd.evaluation.true_counts import PointRecorder, TrueCounts, true_counts
from psd.evaluation.workload import draw_workload
from psd.ingest.sources import Columns, read
from psd.ingest.tally import Tally
from psd.ingest.tally_builder import tally_batches
from psd.privacy.budget import Budget
from psd.privacy.epsilon import parse_epsilon
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release
from psd.space.polygon_hierarchy import hierarchy_from_polygons
from psd.space.region_hierarchy import RegionHierarchy

HEADER = (
    *("data", "districts", "epsilon", "error", "default", "ratio"),
    *("covered", "unions covered", "crossing covered", "score", "default's", "ratio"),
)

_SEED = 19
_UNIONS = 200
_CROSSING, _SIDES = 200, 24


@dataclass(frozen=True, kw_only=True, eq=False)
class Districts:
    """Districts over a data set, its tallies and its true counts."""

    table: gpd.GeoDataFrame
    regions: RegionHierarchy
    tally: Tally
    plain: Tally
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


def counts_inside(shapes: gpd.GeoSeries, points: np.ndarray) -> np.ndarray:
    """Number of points in each polygon."""
    x, y = points.T
    order = np.argsort(x)
    x, y = x[order], y[order]
    counts = []
    for shape in shapes:
        west, south, east, north = shape.bounds
        part = slice(*np.searchsorted(x, (west, np.nextafter(east, np.inf))))
        near = (y[part] >= south) & (y[part] <= north)
        shapely.prepare(shape)
        counts.append(shapely.contains_xy(shape, x[part][near], y[part][near]).sum())
    return np.array(counts)


def districts(path: Path, domain: psd.Domain, number: int) -> Districts:
    """Districts of a data set; the sample of its points is fixed."""
    seen, columns = PointRecorder(domain), Columns(x="lon", y="lat")
    plain = tally_batches(seen.record(read(path, columns, domain)), domain)
    points = np.unique(np.stack(seen.points, axis=1), axis=0)
    random = np.random.default_rng(_SEED)
    table = voronoi(points[random.choice(len(points), number, replace=False)], domain)
    regions = hierarchy_from_polygons(table, domain, ids="district")
    tally = tally_batches(read(path, columns, domain), domain, regions=regions)
    ids = regions.levels[0].ids
    crossing = crossing_polygons(points, domain)
    sizes = random.integers(2, 11, _UNIONS)
    return Districts(
        table=table.set_index("district").loc[list(ids)].reset_index(),
        regions=regions,
        tally=tally,
        plain=plain,
        true=np.bincount(np.asarray(tally.region), tally.counts, number),
        boxes=true_counts(
            draw_workload(*seen.points, domain.bounds), seen.points, plain, domain, bounded=False
        ),
        unions=[[ids[i] for i in random.choice(number, size, replace=False)] for size in sizes],
        crossing=crossing,
        crossing_true=counts_inside(crossing, np.stack(seen.points, axis=1)),
    )


def built(
    known: Districts, epsilon: str, inside: str = "", share: str | None = None
) -> psd.Release:
    """A release with regions and this inside them, or the default without regions."""
    parts: dict[str, Any] = {"budget": Budget(parse_epsilon(epsilon)), "unit": PrivacyUnit()}
    if not inside:
        return draw_release(known.plain, known.regions.domain, method=psd.method("auto"), **parts)
    method = psd.decompositions.Regions(inside=inside, levels_share=share)
    return draw_release(
        known.tally, known.regions.domain, method=method, regions=known.regions, **parts
    )


def measured(known: Districts, epsilon: str, share: str | None) -> tuple[float, ...]:
    """Figures of one build of each kind: errors, coverage in percent, scores."""
    release, default = built(known, epsilon, "auto", share), built(known, epsilon)
    assert isinstance(release, RegionRelease)
    answers, plain = release.query_regions(), default.query(known.table)
    base = np.maximum(known.true, 1)
    errors = [np.abs(each["estimate"].to_numpy() - known.true) / base for each in (answers, plain)]
    index = {name: number for number, name in enumerate(known.regions.levels[0].ids)}
    together = release.query_regions(ids=known.unions)
    sums = np.array([known.true[[index[name] for name in union]].sum() for union in known.unions])
    scores = [geometric_mean(class_errors(each, known.boxes)) for each in (release, default)]
    across = release.query(known.crossing)
    covers = [
        covered(each, true)
        for each, true in ((answers, known.true), (together, sums), (across, known.crossing_true))
    ]
    return (*(error.mean() for error in errors), *covers, *scores)


def covered(answers: gpd.GeoDataFrame, true: np.ndarray) -> float:
    """Percent of answers whose interval has the true count."""
    return 100 * float(((answers["lower"] <= true) & (true <= answers["upper"])).mean())


def rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """One row for each data set, number of districts and epsilon; and one of their means."""
    for number in map(int, options.districts):
        for epsilon in options.epsilons:
            by_data = []
            for data in options.data:
                domain = psd.Domain(bounds=BOUNDS[data])
                known = districts(options.folder / f"{data}.csv", domain, number)
                builds = np.array(
                    [measured(known, epsilon, options.share) for _ in range(options.builds)]
                )
                by_data.append(builds.mean(axis=0))
                yield (data, str(number), epsilon, *cells(by_data[-1]))
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


def parser(description: str, districts: str, epsilons: str, builds: int) -> argparse.ArgumentParser:
    """Options of a benchmark of districts, with these defaults."""
    options = argparse.ArgumentParser(description=description)
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    options.add_argument("--data", type=items, default=list(BOUNDS), help="data sets")
    options.add_argument("--districts", type=items, default=items(districts))
    options.add_argument("--epsilons", type=items, default=items(epsilons))
    options.add_argument("--builds", type=int, default=builds)
    options.add_argument("--folder", type=Path, default=beside, help="where the data sets are")
    options.add_argument("-o", "--output", type=Path, help="file to write instead of printing")
    return options


def parsed() -> argparse.Namespace:
    """Options of the command line."""
    options = parser(__doc__.splitlines()[0], "30,600", "0.1,1", 4)
    options.add_argument(
        "--share", help="share of epsilon for the regions; by default the method's"
    )
    return options.parse_args()


def main() -> None:
    """Print the table, or write it."""
    options = parsed()
    write_table(options.output, HEADER, rows(options))


if __name__ == "__main__":
    main()
