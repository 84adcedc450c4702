"""Choices beside releases: how far each falls short of the best site, and how long choices take.

    python lab/choices.py [--runs 8] [--lists 4] [--epsilons .05,.1,.5,1] [--share .02]
        [--data FOLDER] [--sets A,B] [-o table.md]
    python lab/choices.py --time [--rows 1000000]

The first command takes a share of the rows of a point set of a city, and candidates at other rows
of it: 200 catchments of 2 km, 50 of 1 km and 50 of 300 m, several lists of each. The shortfall of
`choose` is the expected one, by its exact law; that of a release is the mean over builds of the
method auto at the same epsilon, of which the catchment with the largest answer is taken.

The second command writes made-up rows with bids, and compares, in one process, 10,000 sites with
one `psd.ask` on the same file, and maps of 16 zones over 64 x 64 cells and 1,000 prices with one
build of it. Times are CPU seconds of all threads of the process.
"""

import argparse
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely
from common import cpu_seconds, study, tally_of, write_table
from data_sets import PointSet, add_sets, chosen_sets

import psd
from psd.apps.choosing import CandidateAreas, PriceList, PriceMap, Sites, choose
from psd.mechanisms.choice_laws import permute_and_flip_probabilities
from psd.mechanisms.permute_and_flip import choice_rate
from psd.privacy.loss import parse_epsilon

SIZES = ((200, 2000.0), (50, 1000.0), (50, 300.0))
HEADER = (
    "data", "sites", "radius", "best has", "epsilon", "choose falls short by",
    "release falls short by", "better",
)  # fmt: skip


def sample(one: PointSet, share: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A share of the rows inside the bounds, and the others."""
    rows = pd.DataFrame(one.inside, columns=["lon", "lat"])
    is_taken = np.random.default_rng(24).random(len(rows)) < share
    return rows[is_taken], rows[~is_taken]


def candidates(one: PointSet, others: pd.DataFrame, number: int, radius: float, seed: int) -> Sites:
    """Catchments around rows that are not in the sample."""
    chosen = others.sample(number, random_state=round(radius) + seed)
    ids = [str(index) for index in range(number)]
    places = CandidateAreas.around(ids, chosen[["lon", "lat"]].to_numpy(), radius)
    return Sites(catchments=places, bounds=one.bounds)


def true_scores(rows: pd.DataFrame, sites: Sites) -> np.ndarray:
    """Rows in each catchment."""
    return sites.scores(tally_of(rows.to_numpy(), sites.domain), sites.domain)


def expected_shortfall(scores: np.ndarray, epsilon: str) -> float:
    """Mean distance of the score of a choice to the best, by the law of the draw."""
    numerator, denominator = choice_rate(parse_epsilon(epsilon), 1, is_monotone=True)
    gaps = scores.max() - scores
    chances = permute_and_flip_probabilities(gaps * (numerator / denominator))
    return float((chances * gaps).sum())


def outlines(sites: Sites) -> gpd.GeoSeries:
    """Catchments as polygons that a release answers."""
    boxes = sites.catchments.boxes[:, None]
    centres, radii = boxes[..., :2] / 2 + boxes[..., 2:] / 2, (boxes[..., 2:] - boxes[..., :2]) / 2
    angles = np.linspace(0, 2 * np.pi, 96, endpoint=False)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return gpd.GeoSeries(shapely.polygons(centres + radii * circle), crs=sites.catchments.crs)


def release_shortfalls(
    one: PointSet, rows: pd.DataFrame, listed: list[Sites], epsilon: str, runs: int
) -> np.ndarray:
    """Mean distance of the catchment with the largest answer to the best, for each list."""
    best, shapes = [true_scores(rows, sites) for sites in listed], [outlines(s) for s in listed]
    short = np.zeros(len(listed))
    together, ends = pd.concat(shapes), np.cumsum([len(shape) for shape in shapes])
    for _ in range(runs):
        release = psd.build(rows, domain=one.domain, epsilon=epsilon)
        answers = np.split(release.query(together)["estimate"].to_numpy(), ends[:-1])
        chosen = [scores[each.argmax()] for scores, each in zip(best, answers, strict=True)]
        short += [scores.max() - score for scores, score in zip(best, chosen, strict=True)]
    return short / runs


def shortfalls(options: argparse.Namespace, one: PointSet) -> Iterator[tuple[str, ...]]:
    """Rows of the table."""
    rows, others = sample(one, options.share)
    lists, seeds = options.lists, range(options.lists)
    listed = [candidates(one, others, *size, seed) for size in SIZES for seed in seeds]
    true = [true_scores(rows, sites) for sites in listed]
    released = {e: release_shortfalls(one, rows, listed, e, options.runs) for e in options.epsilons}
    for number, (sites, radius) in enumerate(SIZES):
        part = slice(number * lists, (number + 1) * lists)
        best = np.mean([scores.max() for scores in true[part]])
        for epsilon in options.epsilons:
            choice = np.mean([expected_shortfall(scores, epsilon) for scores in true[part]])
            release = released[epsilon][part].mean()
            yield (
                one.name, f"{sites}", f"{radius:g} m", f"{best:.0f}", epsilon, f"{choice:.2f}",
                f"{release:.2f}", "choose" if choice < release else "release",
            )  # fmt: skip


def made_up(path: Path, number: int) -> None:
    """File of points around a centre, with bids."""
    rng = np.random.default_rng(24)
    x, y = rng.normal(0, 0.08, (2, number))
    bid = rng.lognormal(2, 0.6, number)
    table = pd.DataFrame({"lon": 127 + x, "lat": 37.5 + y, "bid": bid}).round(6)
    table.to_csv(path, index=False)


def times(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """Rows of the table of times; each ratio is of one run."""
    box = (126.75, 37.25, 127.25, 37.75)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bids.csv"
        made_up(path, options.rows)
        ledger = psd.Ledger.create(folder + "/l")
        ledger.register("bids", 900)
        account = psd.ledger.Account(ledger, "bids")
        pay: dict[str, Any] = {"epsilon": "0.1", "account": account}
        rng = np.random.default_rng(25)
        centres = np.clip(rng.normal(0, 0.08, (10_000, 2)), -0.2, 0.2) + np.array([127, 37.5])
        ids = [str(index) for index in range(10_000)]
        for radius in (300.0, 2000.0):
            sites = Sites(catchments=CandidateAreas.around(ids, centres, radius), bounds=box)
            asked = cpu_seconds(lambda: psd.ask(path, box, **pay), 3)
            chosen = cpu_seconds(partial(choose, path, sites, **pay), 3)
            what = f"10,000 sites of {radius:g} m"
            yield what, "psd.ask", f"{asked:.2f} s", f"{chosen:.2f} s", f"{chosen / asked:.1f}"
        grid = psd.Domain(bounds=box, lattice=(64, 64))
        maps = PriceMap(
            bid="bid", prices=PriceList.parse("0.1..100/0.1"), zones=(16,), domain=grid, depth=6
        )
        built = cpu_seconds(
            lambda: psd.build(path, domain=psd.Domain(bounds=box), epsilon="0.1"), 3
        )
        drawn = cpu_seconds(lambda: choose(path, maps, **pay), 3)
        what = "64 x 64 cells, 1,000 prices, 16 zones"
        yield what, "psd.build", f"{built:.2f} s", f"{drawn:.2f} s", f"{drawn / built:.1f}"


def main() -> None:
    parser = study(__doc__, epsilons="0.05,0.1,0.5,1", runs=8)
    add_sets(parser, "city-streets")
    parser.add_argument("--lists", type=int, default=4, help="lists of sites of each size")
    parser.add_argument("--share", type=float, default=0.02, help="share of the rows")
    parser.add_argument("--time", action="store_true", help="measure times instead")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the file, with --time")
    options = parser.parse_args()
    if options.time:
        header = ("choice", "beside", "its CPU time", "CPU time of the choice", "ratio")
        write_table(options.output, header, times(options))
    else:
        every = (row for one in chosen_sets(options) for row in shortfalls(options, one))
        write_table(options.output, HEADER, every)


if __name__ == "__main__":
    main()
