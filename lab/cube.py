"""Errors of windows of a cube, beside those of a tree for each slice, and whether they are stated.

    python lab/cube.py [--sets city] [--epsilons .1,1] [--builds 4] [--queries 100]
        [--records 418000] [--data FOLDER] [--slices 2019-01..2019-12]
        [-o docs/measured/data/cube.csv]

Sets: the made-up city of 504 hours of ``data/hours``; with ``--data FOLDER`` stops of London by day
and contributions of Andorra by month. Queries are squares of .1, 1 and 10 % of the area, placed on
records, times windows of four lengths, placed on records too; the same queries are asked of both.
For each class: the mean relative errors of both (of at least .001 of the records that a window has
on the mean), the share of 95, 80 and 50 % intervals of the cube that hold the truth, in percent,
the predicted over the true root mean square of its errors, and the mean half width of the 95 %
intervals. The last row of a set has the geometric means of errors and widths, and what intervals
of all classes hold together.
"""

import argparse
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from common import ROOT, study, write_table
from numpy.typing import NDArray

import psd
from psd.estimation.fit import predicts_published
from psd.query.answer_table import answer_intervals
from psd.query.areas import BoxAreas
from psd.query.cubes import Windows, cube_totals
from psd.query.index import QueryIndex, fitted
from psd.space.time_slices import slices_from_text

HEADER = ("data", "epsilon", "window", "squares")
FIGURES = (
    "error of slices", "error of the cube", "covered", "covered 80", "covered 50",
    "predicted over true", "half width",
)  # fmt: skip
LEVELS = (0.95, 0.8, 0.5)
SHARES = (0.001, 0.01, 0.1)
SEED = 5

Floats = NDArray[np.float64]


class Timed(NamedTuple):
    """Records with times, and the slices and windows that they are asked in."""

    name: str
    table: pd.DataFrame
    bounds: tuple[float, float, float, float]
    slices: psd.TimeSlices
    widths: tuple[int, ...]


class Query(NamedTuple):
    """Squares of one class, a window for each, and the true counts."""

    width: int
    share: float
    boxes: Floats
    first: NDArray[np.int64]
    true: Floats


def errors_of(release: psd.Release, one: Timed, query: Query) -> Floats:
    """Relative errors of answers, of at least .001 of the records that a window has on the mean."""
    firsts, at = np.unique(query.first, return_inverse=True)
    windows = [",".join(one.slices.names[n : n + query.width]) for n in firsts.tolist()]
    answers = release.query(query.boxes, when=windows).table.estimate.to_numpy()
    found = answers.reshape(len(windows), -1)[at, np.arange(len(at))]
    least = np.maximum(query.true, 0.001 * len(one.table) * query.width / len(one.slices))
    errors: Floats = np.abs(found - query.true) / least
    return errors


def sets(options: argparse.Namespace) -> Iterator[Timed]:
    """The sets that the options name."""
    spec = importlib.util.spec_from_file_location("hours", ROOT / "data" / "hours" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    hours = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hours)
    chosen = options.sets.split(",")
    if "city" in chosen:
        slices = psd.TimeSlices.parse("hour", "2024-01-01T00..2024-01-21T23")
        yield Timed("city", hours.city(options.records), hours.BOUNDS, slices, (1, 24, 168, 504))
    for name, file, column, by, bounds, widths in (
        ("london", "london_stop_search", "timestamp", "day", (-0.52, 51.28, 0.34, 51.7),
         (1, 7, 28, 364)),
        ("andorra", "osm_andorra_2016", "date", "month", (1.4, 42.42, 1.8, 42.67), (1, 3, 12, 36)),
    ):  # fmt: skip
        if name not in chosen:
            continue
        table = pd.read_csv(Path(options.data) / f"{file}.csv")
        time = pd.to_datetime(table[column], utc=True).dt.tz_localize(None)
        unit = {"day": "D", "month": "M"}[by]
        ends = time.to_numpy().astype(f"datetime64[{unit}]")
        slices = psd.TimeSlices.parse(by, f"{ends.min()}..{ends.max()}")  # type: ignore[arg-type]
        inside = table.lon.between(bounds[0], bounds[2]) & table.lat.between(bounds[1], bounds[3])
        rows = pd.DataFrame({"lon": table.lon, "lat": table.lat, "time": time})[inside]
        yield Timed(name, rows, bounds, slices, tuple(w for w in widths if w <= len(slices)))


def part(one: Timed, text: str) -> Timed:
    """The records in some slices, asked in windows of one, a third and all of them."""
    slices = slices_from_text(text, "UTC")
    held = slices.index(one.table.time.to_numpy().astype("datetime64[us]")) >= 0
    widths = sorted({1, max(2, len(slices) // 3), len(slices)})
    return one._replace(
        table=one.table[held].reset_index(drop=True), slices=slices, widths=tuple(widths)
    )


def queries(one: Timed, number: int) -> Iterator[Query]:
    """Queries of each class."""
    random = np.random.default_rng(SEED)
    point = one.table[["lon", "lat"]].to_numpy()
    slice_ = one.slices.index(one.table.time.to_numpy().astype("datetime64[us]"))
    low, size = np.array(one.bounds[:2]), np.subtract(one.bounds[2:], one.bounds[:2])
    order = np.argsort(slice_, kind="stable")
    in_time = point[order]
    begin = np.searchsorted(slice_[order], np.arange(len(one.slices) + 1))
    for width in one.widths:
        for share in SHARES:
            at, side = random.integers(0, len(point), number), size * share**0.5
            corner = point[at] - side * random.random((number, 2))
            corner = np.clip(corner, low, low + size - side)
            first = slice_[at] - random.integers(0, width, number)
            first = np.clip(first, 0, len(one.slices) - width)
            boxes = np.concatenate([corner, corner + side], axis=1)
            true = np.empty(number)
            for row, (box, start) in enumerate(zip(boxes, first, strict=True)):
                kept = in_time[begin[start] : begin[start + width]]
                true[row] = ((kept >= box[:2]) & (kept < box[2:])).all(axis=1).sum()
            yield Query(width, share, boxes, first, true)


def of_slices(release: psd.Release, classes: list[Query]) -> list[Floats]:
    """Estimates of a release for each slice, by class; each slice is fitted once.

    As windows of a series are: one slice has its published answer, several the unbiased ones.
    """
    boxes = np.concatenate([query.boxes for query in classes])
    areas = BoxAreas(given=None, boxes=boxes, ids=list(range(len(boxes))))
    records = release.record.releases  # type: ignore[union-attr]
    slices = fitted([QueryIndex(record=record, is_kept=False) for record in records])
    totals = [areas.totals(index) for index in slices]
    signed = np.concatenate([np.zeros((1, len(boxes))), np.cumsum([t.signed for t in totals], 0)])
    found, at = [], 0
    for query in classes:
        column = np.arange(at, at := at + len(query.boxes))
        sums = signed[query.first + query.width, column] - signed[query.first, column]
        if query.width == 1:
            sums = np.stack([t.estimate for t in totals])[query.first, column]
        found.append(np.maximum(sums, 0.0))
    return found


def of_cube(release: psd.Release, query: Query) -> tuple[Floats, Floats, Floats]:
    """Estimates of a cube, their errors, and intervals of `LEVELS`, (levels, 2, queries).

    Each square is asked in its own window alone.
    """
    fit, number = release._cube.fit, len(query.boxes)
    estimate, error, ends = np.empty(number), np.empty(number), np.empty((len(LEVELS), 2, number))
    for first in np.unique(query.first).tolist():
        at = np.flatnonzero(query.first == first)
        window = Windows.of_cells([np.arange(first, first + query.width)], fit.record.sizes)
        areas = BoxAreas(given=None, boxes=query.boxes[at], ids=list(range(len(at))))
        [totals] = cube_totals(fit, areas, window)
        estimate[at] = np.maximum(totals.estimate, 0.0)
        noise = totals.noise_variance(predicts_published(fit.record.plane))
        error[at] = np.sqrt(noise + totals.nonuniformity_variance)
        for level, each in enumerate(LEVELS):
            ends[level][:, at] = answer_intervals(totals, each)
    return estimate, error, ends


def rows(options: argparse.Namespace, one: Timed) -> Iterator[tuple[str, ...]]:
    """Rows of a set."""
    classes = list(queries(one, options.queries))
    for epsilon in options.epsilons:
        how = {"epsilon": epsilon, "bounds": one.bounds, "slices": one.slices, "time": "time"}
        # One release at a time: the fits of a series take memory.
        apart: list[list[Floats]] = [[] for _ in classes]
        together: list[list[tuple[Floats, Floats, Floats]]] = [[] for _ in classes]
        for _ in range(options.builds):
            release = psd.build(one.table, method="auto", **how)
            cube = psd.build(one.table, method="cube", **how)
            for number, found in enumerate(of_slices(release, classes)):
                apart[number].append(found)
                together[number].append(of_cube(cube, classes[number]))
        means, held = [], []
        for query, series, cubes in zip(classes, apart, together, strict=True):
            floor = 0.001 * len(one.table) * query.width / len(one.slices)
            least, true = np.maximum(query.true, floor), query.true
            estimate, error, ends = (np.stack(each) for each in zip(*cubes, strict=True))
            off = [float(np.mean(np.abs(x - true) / least)) for x in (np.stack(series), estimate)]
            holds = (ends[:, :, 0] <= true) & (true <= ends[:, :, 1])
            held.append(100 * holds.mean(axis=(0, 2)))
            ratio = np.sqrt((error**2).mean() / ((estimate - true) ** 2).mean())
            half = float((ends[:, 0, 1] - ends[:, 0, 0]).mean() / 2)
            means.append((*off, half))
            yield (
                one.name, epsilon, str(query.width), f"{query.share:g}",
                *(f"{each:.3f}" for each in off), *(f"{each:.1f}" for each in held[-1]),
                f"{ratio:.2f}", f"{half:.1f}",
            )  # fmt: skip
        *off, half = np.exp(np.log(means).mean(axis=0))
        pooled = np.mean(held, axis=0)
        yield (
            one.name, epsilon, "all", "all", *(f"{each:.4f}" for each in off),
            *(f"{each:.1f}" for each in pooled), "", f"{half:.1f}",
        )  # fmt: skip


def main() -> None:
    parser = study(__doc__, epsilons="0.1,1", builds=4)
    parser.add_argument("--sets", default="city", help="city, london, andorra, with commas")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of london and andorra")
    parser.add_argument("--queries", type=int, default=100, help="of each class")
    parser.add_argument("--slices", help="of the sets, in place of all")
    parser.add_argument("--records", type=int, default=418_000, help="of the made-up city")
    options = parser.parse_args()
    chosen = (part(one, options.slices) if options.slices else one for one in sets(options))
    every = (row for one in chosen for row in rows(options, one))
    write_table(options.output, HEADER + FIGURES, every)


if __name__ == "__main__":
    main()
