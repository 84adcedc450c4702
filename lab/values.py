"""Counts, sums and means of values, beside OpenDP, and how often their intervals cover.

    python lab/values.py [--sets fares,prices] [--districts 30,100,600] [--epsilons 0.1,1]
        [--answers 11000] [--opendp polars|plain|PYTHON] [--sample 53] [--least 1] [-o table.md]
    python lab/values.py --cut [--sets fares,prices] [--runs 12] [-o table.md]

Fares and prices are the made-up ones of data/trips; other sets are made of them: ``thinned`` keeps
a fifth of the rides, ``shuffled`` gives fares to other rides, ``halves`` has two kinds of values,
one on each side of the city, ``spots`` has a few dear quarters, ``bounds`` has values at both
bounds alone, by place, ``constant`` has one value, and ``symmetric`` has bounds symmetric about 0.
Districts are the Voronoi cells of a random sample of the places, by its number ``--sample``; they
are counted by name, and nothing inside them (``--method none``). The figures are of those with at
least ``--least`` records.

A row has runs x districts answers of at least ``--answers``. OpenDP has the same records, bounds
and epsilon: number and sum by district, of its documented group-by, with half of epsilon each; the
mean is their quotient. By default it is run with polars in an environment of its own, which pip
makes in a temporary folder (900 MB); PYTHON names an interpreter that has ``opendp[polars]``, and
``plain`` draws noise of the same scales by `make_laplace` of the installed OpenDP. Answers of both
are clamped: numbers at 0, means at the bounds, and sums at 0 where no value is below.

Ratios are of root mean square errors over districts and runs. Covered are 95 % intervals of means
and of sums; of means, those of small districts (fewer than 20 / epsilon records) stand alone too,
if there are ten of them. Means without an interval are counted apart. A bar that is missed is
marked, and exits with 1: .75 for numbers, .55 for sums and .5 for means, 92 to 97 % for intervals,
1 % without one in districts that are not small. Bars of sums and means are for bounds from 0.

``--cut`` asks for squares around places and polygons of 24 sides, which cut cells and districts.
Three columns have predicted errors of means over true ones, as root mean squares of the answers
with an interval; so has one for the errors of sums. The non-uniformity error is true of answers by
the exact weights in the cells of a release, and the noise makes the rest; where regions have cells,
the error of both stands alone.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import shapely
from common import ROOT, draw, items, study, whole_numbers, write_table
from regions import crossing_polygons, voronoi

import psd
from psd.ingest.sources import Columns, read
from psd.ingest.tally import Tally
from psd.ingest.tally_builder import tally_batches
from psd.privacy.values import Value
from psd.query.areas import read_areas
from psd.query.index import QueryIndex
from psd.regions.polygon_hierarchy import hierarchy_from_polygons
from psd.space.box_tree import locate

HEADER = (
    *("data", "districts", "epsilon", "runs", "records", "number", "sum", "mean"),
    *("mean covered", "small covered", "sum covered", "no interval", "small without"),
)
CUT_HEADER = (
    *("data", "released", "epsilon", "areas", "rms of means", "noise", "non-uniformity", "error"),
    *("mean covered", "sum error", "sum covered", "no interval"),
)
BOUNDS = (126.4, 37.0, 127.6, 38.0)
DOMAIN = psd.Domain(bounds=BOUNDS, crs="EPSG:4326")
BARS = {"number": 0.75, "sum": 0.55, "mean": 0.5}
COVERED, MOST_WITHOUT = (0.92, 0.97), 0.01
SMALL, FEW = 20, 10
SETS = (
    *("fares", "prices", "thinned", "shuffled", "halves", "spots", "bounds", "constant"),
    "symmetric",
)
_SEED = 53
_AREAS = 200


@dataclass(frozen=True, kw_only=True, eq=False)
class Valued:
    """Records with a value, columns lon, lat and v, and its public bounds."""

    name: str
    table: pd.DataFrame
    value: Value

    def batches(self):
        return read(self.table, Columns(x="lon", y="lat", values=("v",)), DOMAIN)


def valued(name: str) -> Valued:
    """One of the sets."""
    random = np.random.default_rng(_SEED)
    file, column, high = ("homes", "price", 2e6) if name == "prices" else ("rides", "fare", 60.0)
    table = pd.read_csv(ROOT / "data" / "trips" / f"{file}.csv").rename(columns={column: "v"})
    table = table[["lon", "lat", "v"]].dropna()
    inside = DOMAIN.quantise(table["lon"].to_numpy(), table["lat"].to_numpy())[2]
    table, low = table[inside].reset_index(drop=True), 0.0
    if name == "thinned":
        table = table.sample(frac=0.2, random_state=_SEED).reset_index(drop=True)
    elif name == "shuffled":
        table["v"] = random.permutation(table["v"])
    elif name == "halves":
        is_west = table["lon"] < table["lon"].median()
        table["v"] = np.where(is_west, 12.0, 42.0) + 3 * random.standard_normal(len(table))
    elif name == "spots":
        places = table[["lon", "lat"]].to_numpy()
        apart = places[:, None] - places[random.choice(len(places), 12, replace=False)]
        near = np.exp(-(apart**2).sum(axis=2) / 2 / 10 ** random.uniform(-4, -2.6, 12))
        table["v"] = 12 + near @ random.uniform(5, 30, 12) + 4 * random.standard_normal(len(table))
    elif name == "bounds":
        chance = np.clip((table["lat"] - 37.2) / 0.6, 0, 1)
        table["v"] = np.where(random.random(len(table)) < chance, high, low)
    elif name == "constant":
        table["v"] = 18.0
    elif name == "symmetric":
        table["v"], low, high = table["v"] - 15, -30.0, 30.0
    return Valued(name=name, table=table, value=Value("v", low, high))


class Districts:
    """Voronoi districts over a set, its tally by them, and true numbers and sums."""

    def __init__(self, one: Valued, number: int, sample: int = _SEED, least: int = 1) -> None:
        points = np.unique(one.table[["lon", "lat"]].to_numpy(), axis=0)
        chosen = np.random.default_rng(sample).choice(len(points), number, replace=False)
        districts = voronoi(points[chosen], DOMAIN)
        self.regions = hierarchy_from_polygons(districts, DOMAIN, ids="district")
        self.tally = tally_batches(one.batches(), DOMAIN, strata=self.regions, values=[one.value])
        assert self.tally.values is not None
        region, weights = np.asarray(self.tally.region), self.tally.values[:, 0]
        self.number = np.bincount(region, self.tally.counts, number)
        self.used = self.number >= max(least, 1)
        upper = np.bincount(region, weights, number) / self.tally.record_weight
        self.sum = one.value.lower * self.number + one.value.width * upper


# --- OpenDP -------------------------------------------------------------------------------------

# All runs are one group-by, by run and district: the noise of a group depends on no other.
POLARS = """
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np, polars as pl, opendp.prelude as dp
dp.enable_features("contrib")
path, epsilon, runs, low, high = sys.argv[1], *map(float, sys.argv[2:])
given, runs = np.load(path), int(runs)
number, total = np.tile(given["number"], runs), np.tile(given["sum"], runs)
table = pl.DataFrame({"d": np.repeat(np.arange(len(number)), number),
                      "v": np.repeat(total / np.maximum(number, 1), number)}).lazy()
margin = dp.polars.Margin(by=["d"], max_length=int(number.max()), max_groups=len(number),
                          invariant="keys")
context = dp.Context.compositor(
    data=table, privacy_unit=dp.unit_of(contributions=1),
    privacy_loss=dp.loss_of(epsilon=epsilon), split_evenly_over=1, margins=[margin])
value = pl.col("v").fill_nan(0.0).fill_null(0.0).dp.sum(bounds=(low, high))
found = context.query().group_by("d").agg(dp.len(), value).release().collect()
answers = np.zeros((2, len(number)))
answers[:, found["d"].to_numpy()] = found["len"].to_numpy(), found["v"].to_numpy()
np.save(path + ".npy", answers.reshape(2, runs, -1).transpose(1, 0, 2))
"""


def with_polars(python: str, known: Districts, value: Value, epsilon: str, runs: int) -> np.ndarray:
    """Numbers and sums by OpenDP's group-by in another interpreter, (runs, 2, districts)."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/known.npz"
        np.savez(path, number=known.number.astype(np.int64), sum=known.sum)
        words = [path, epsilon, str(runs), repr(value.lower), repr(value.upper)]
        subprocess.run([python, "-c", POLARS, *words], check=True)
        answers: np.ndarray = np.load(path + ".npy")
    return answers


def plain(known: Districts, value: Value, epsilon: str, runs: int) -> np.ndarray:
    """Noise of the same scales by `make_laplace`, (runs, 2, districts)."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    half = float(epsilon) / 2
    largest = max(abs(value.lower), abs(value.upper))
    whole = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    real = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    of_number = dp.m.make_laplace(*whole, scale=1 / half)
    of_sum = dp.m.make_laplace(*real, scale=largest / half)
    number, total = known.number.astype(int).tolist(), known.sum.tolist()
    return np.array([[of_number(number), of_sum(total)] for _ in range(runs)], float)


def peer_of(opendp: str, folder: str):
    """How OpenDP answers, by the option."""
    if opendp == "plain":
        return plain
    if opendp == "polars":
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        opendp = f"{folder}/bin/python"
        subprocess.run([opendp, "-m", "pip", "install", "-q", "opendp[polars]"], check=True)
    return lambda *arguments: with_polars(opendp, *arguments)


# --- districts ----------------------------------------------------------------------------------


def rows(options: argparse.Namespace, missed: list[str]) -> Iterator[tuple[str, ...]]:
    """One row for each set, number of districts and epsilon."""
    with tempfile.TemporaryDirectory() as folder:
        peer = peer_of(options.opendp, folder)
        for one in map(valued, options.sets):
            for number in options.districts:
                known = Districts(one, number, options.sample, options.least)
                for epsilon in options.epsilons:
                    runs = -(-options.answers // number)
                    theirs = peer(known, one.value, epsilon, runs)
                    yield row(one, known, epsilon, theirs, missed)


def row(
    one: Valued, known: Districts, epsilon: str, theirs: np.ndarray, missed: list[str]
) -> tuple[str, ...]:
    """Figures of builds and of as many answers of OpenDP."""
    value, used = one.value, known.used
    number, total = known.number[used], known.sum[used]
    mean = total / number
    true = {"number": number, "sum": total, "mean": mean}
    squares: dict[str, Any] = {name: [] for name in true}
    held, none = [], []
    for answer in theirs:
        release = draw(
            known.tally,
            DOMAIN,
            psd.decompositions.Regions(inside="none"),
            epsilon,
            regions=known.regions,
            values=[value],
        )
        ours = release.query(mean="v", sum="v").table[used]
        counted, summed = np.maximum(answer[0, used], 0.0), answer[1, used]
        summed = np.maximum(summed, 0.0) if value.lower >= 0 else summed
        of_peer = {
            "number": counted,
            "sum": summed,
            "mean": np.clip(summed / np.maximum(counted, 1), value.lower, value.upper),
        }
        columns = {"number": "estimate", "sum": "sum_v", "mean": "mean_v"}
        for name, expected in true.items():
            mine = ours[columns[name]].to_numpy()
            squares[name].append(((mine - expected) ** 2, (of_peer[name] - expected) ** 2))
        held.append([holds(ours, name, true[name]) for name in ("mean", "sum")])
        none.append(without_interval(ours, value))
    ratios = {name: ratio(np.array(each)) for name, each in squares.items()}
    cover, empty = np.array(held), np.array(none)
    small = np.broadcast_to(number * float(epsilon) < SMALL, empty.shape)
    figures = {
        "mean covered": share(cover[:, 0], ~empty),
        "small covered": share(cover[:, 0], ~empty & small),
        "sum covered": share(cover[:, 1], ~small | True),
        "no interval": share(empty, ~small),
        "small without": share(empty, small),
    }
    label = (one.name, str(len(known.number)), epsilon)
    has_bars = value.lower == 0
    texts = [
        mark(figure, f"{figure:.2f}", (not has_bars and name != "number") or figure <= BARS[name])
        for name, figure in ratios.items()
    ]
    few = int((small[0]).sum()) < FEW
    for name in ("mean covered", "small covered", "sum covered"):
        figure = np.nan if few and name == "small covered" else figures[name]
        good = np.isnan(figure) or COVERED[0] <= figure <= COVERED[1]
        texts.append(mark(figure, f"{100 * figure:.1f} %", good))
    figure = figures["no interval"]
    texts.append(mark(figure, f"{100 * figure:.1f} %", np.isnan(figure) or figure <= MOST_WITHOUT))
    texts.append(mark(0, f"{100 * figures['small without']:.0f} %", True))
    texts = ["" if "nan" in text else text for text in texts]
    missed.extend(" ".join(label) for text in texts if text.startswith("**"))
    return (*label, str(len(theirs)), f"{np.median(number):.0f}", *texts)


def mark(figure: float, text: str, good: bool) -> str:
    """A figure, in bold where it misses its bar."""
    return text if good or np.isnan(figure) else f"**{text}**"


def ratio(pairs: np.ndarray) -> float:
    """Ratio of root mean squares, of pairs (runs, 2, districts)."""
    ours, theirs = pairs.mean(axis=(0, 2))
    return float(np.sqrt(ours / theirs)) if theirs > 0 else np.nan


def share(values: np.ndarray, among: np.ndarray) -> float:
    """Share of some answers."""
    return float(values[among].mean()) if among.any() else np.nan


def holds(answers: pd.DataFrame, name: str, true: np.ndarray) -> np.ndarray:
    """Whether intervals hold true numbers, to rounding."""
    low, high = (answers[f"{name}_v_{end}"].to_numpy() for end in ("lower", "upper"))
    slack = 1e-5 * np.maximum(np.abs(true), 1e-9)  # weights are rounded down
    return (low <= true + slack) & (true - slack <= high)


def without_interval(answers: pd.DataFrame, value: Value) -> np.ndarray:
    """Whether the ends of the interval of a mean are the bounds."""
    low, high = (answers[f"mean_v_{end}"].to_numpy() for end in ("lower", "upper"))
    return (low <= value.lower) & (high >= value.upper)


# --- areas that cut cells -----------------------------------------------------------------------


def cut_rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """One row for each set, kind of release, epsilon and kind of areas."""
    for one in map(valued, options.sets):
        points = one.table[["lon", "lat"]].to_numpy()
        clamped = np.clip(one.table["v"].to_numpy(float), one.value.lower, one.value.upper)
        known = Districts(one, 100)
        cells = tally_batches(one.batches(), DOMAIN, values=[one.value])
        shapes = {"squares": squares_around(points), "polygons": crossing_polygons(points, DOMAIN)}
        how: dict[str, Any] = {"values": [one.value]}
        inside = psd.decompositions.Regions(inside="auto")
        released: dict[str, Any] = {
            "cells": partial(draw, cells, DOMAIN, "auto", **how),
            "districts, cells": partial(
                draw, known.tally, DOMAIN, inside, regions=known.regions, **how
            ),
        }
        for kind, build in released.items():
            for epsilon in options.epsilons:
                releases = [build(epsilon) for _ in range(options.runs)]
                for name, areas in shapes.items():
                    near = shapely.STRtree(shapely.points(points)).query(
                        areas.to_numpy(), predicate="contains"
                    )
                    number, total = (
                        np.bincount(near[0], weights, len(areas))
                        for weights in (None, clamped[near[1]])
                    )
                    exact = cells if kind == "cells" else None
                    figures = cut_figures(releases, areas, one.value, exact, number, total)
                    yield (one.name, kind, epsilon, name, *figures)


def squares_around(points: np.ndarray):
    """Boxes around places, their areas spread evenly over three decades."""
    import geopandas as gpd

    random = np.random.default_rng(_SEED)
    half = np.sqrt(10 ** random.uniform(-4, -1, _AREAS))[:, None] / 2
    half = half * [BOUNDS[2] - BOUNDS[0], BOUNDS[3] - BOUNDS[1]]
    centre = points[random.choice(len(points), _AREAS, replace=False)]
    low, high = (np.clip(centre + s * half, BOUNDS[:2], BOUNDS[2:]) for s in (-1, 1))
    return gpd.GeoSeries(shapely.box(*low.T, *high.T), crs=DOMAIN.crs)


def without_noise(release: psd.Release, areas: Any, cells: Tally) -> np.ndarray:
    """Means of areas by the exact weights in the cells of a release, and its densities."""
    tree, value = release.tree, release.index.record.values[0]
    asked, totals = read_areas(areas, DOMAIN, tree), []
    assert cells.values is not None
    upper = cells.values[:, 0] / cells.record_weight
    for part, weights in zip(
        release.index.value_parts(0), (upper, cells.counts - upper), strict=True
    ):
        found = np.bincount(locate(tree, cells.columns, cells.rows), weights, len(tree))
        exact = found.astype(np.float64)
        for level in reversed(tree.levels[1:]):
            np.add.at(exact, tree.parent[level], exact[level])
        known = replace(part.fit, estimates=replace(part.fit.estimates, count=exact))
        vars(known)["density"] = part.fit.density
        index = QueryIndex(record=part.record)
        vars(index)["fit"] = known
        totals.append(asked.totals(index).estimate)
    return value.lower + value.width * totals[0] / np.maximum(totals[0] + totals[1], 1e-9)


def cut_figures(
    releases: Sequence[psd.Release],
    areas: Any,
    value: Value,
    cells: Tally | None,
    number: np.ndarray,
    total: np.ndarray,
) -> tuple[str, ...]:
    """Figures of answers of several releases about the same areas."""
    used = number > 0
    mean, total = total[used] / number[used], total[used]
    squares: dict[str, list[np.ndarray]] = {
        name: [] for name in ("noise", "shape", "error", "sum", "mean held", "sum held", "none")
    }
    for release in releases:
        table = release.query(areas, mean="v", sum="v").table[used]
        none = without_interval(table, value)
        off = table["mean_v"].to_numpy() - mean
        parts = {"error": ("mean_v_error", off), "sum": ("sum_v_error", table["sum_v"] - total)}
        if cells is not None:
            shape = without_noise(release, areas, cells)[used] - mean
            parts |= {
                "noise": ("mean_v_perturbation_error", off - shape),
                "shape": ("mean_v_nonuniformity_error", shape),
            }
        for name, (column, true) in parts.items():
            pair = np.array([table[column], true], float) ** 2
            squares[name].append(pair if name == "sum" else pair[:, ~none])
        squares["mean held"].append(holds(table, "mean", mean)[~none])
        squares["sum held"].append(holds(table, "sum", total))
        squares["none"].append(none)

    def predicted(name: str) -> str:
        if not squares[name]:
            return ""
        own, true = np.concatenate(squares[name], axis=1).mean(axis=1)
        return f"{np.sqrt(own / true):.2f}"

    rms = np.sqrt(np.concatenate(squares["error"], axis=1)[1].mean())
    held = {name: np.concatenate(squares[f"{name} held"]).mean() for name in ("mean", "sum")}
    return (
        f"{rms:,.2f}" if rms < 1000 else f"{rms:,.0f}",
        *map(predicted, ("noise", "shape", "error")),
        f"{100 * held['mean']:.1f} %",
        predicted("sum"),
        f"{100 * held['sum']:.1f} %",
        f"{100 * np.concatenate(squares['none']).mean():.0f} %",
    )


def main() -> int:
    parser = study(__doc__, epsilons="0.1,1", runs=12)
    parser.add_argument("--sets", type=items, default=list(SETS), help="with commas [all]")
    parser.add_argument("--districts", type=whole_numbers, default=[30, 100, 600])
    parser.add_argument("--answers", type=int, default=11_000, help="runs x districts, at least")
    parser.add_argument("--opendp", default="polars", help="polars, plain or an interpreter")
    parser.add_argument("--sample", type=int, default=_SEED, help="number of the districts")
    parser.add_argument("--least", type=int, default=1, help="records of a district")
    parser.add_argument("--cut", action="store_true", help="areas that cut cells")
    options = parser.parse_args()
    missed: list[str] = []
    if options.cut:
        write_table(options.output, CUT_HEADER, cut_rows(options))
    else:
        write_table(options.output, HEADER, rows(options, missed))
    if missed:
        print(f"missed bars: {'; '.join(dict.fromkeys(missed))}", file=sys.stderr)
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
