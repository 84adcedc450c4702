"""Errors of windows of a cube, beside those of a tree for each slice, and whether they are stated.

    python lab/cube.py [--sets city] [--epsilons .1,1] [--builds 2] [--queries 100]
        [--records 418000] [--data FOLDER] [-o docs/measured/data/cube.csv]

Sets: the made-up city of 504 hours of ``data/hours``; with ``--data FOLDER`` stops of London by day
and contributions of Andorra by month. Queries are squares of .1, 1 and 10 % of the area, placed on
records, times windows of four lengths, placed on records too; the same queries are asked of both.
For each class: the mean relative errors of both (of at least .001 of the records that a window has
on the mean), the share of 95 % intervals of the cube that hold the truth, in percent, and the
predicted over the true root mean square of its errors. The last row of a set has the geometric
means of the errors.
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

HEADER = ("data", "epsilon", "window", "squares")
FIGURES = ("error of slices", "error of the cube", "covered", "predicted over true")
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


def queries(one: Timed, number: int) -> Iterator[Query]:
    """Queries of each class."""
    random = np.random.default_rng(SEED)
    point = one.table[["lon", "lat"]].to_numpy()
    slice_ = one.slices.index(one.table.time.to_numpy().astype("datetime64[us]"))
    low, size = np.array(one.bounds[:2]), np.subtract(one.bounds[2:], one.bounds[:2])
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
                kept = point[(slice_ >= start) & (slice_ < start + width)]
                true[row] = ((kept >= box[:2]) & (kept < box[2:])).all(axis=1).sum()
            yield Query(width, share, boxes, first, true)


def asked(release: psd.Release, slices: psd.TimeSlices, query: Query) -> pd.DataFrame:
    """Answers of each square in its own window."""
    found: list[pd.DataFrame] = [pd.DataFrame()] * len(query.boxes)
    for first in np.unique(query.first).tolist():
        at = np.flatnonzero(query.first == first)
        names = slices.names[first : first + query.width]
        when = names[0] if query.width == 1 else ",".join(names)
        answers = release.query(query.boxes[at], when=when).table
        for row, number in enumerate(at.tolist()):
            found[number] = answers.iloc[row : row + 1]
    return pd.concat(found, ignore_index=True)


def rows(options: argparse.Namespace, one: Timed) -> Iterator[tuple[str, ...]]:
    """Rows of a set."""
    classes = list(queries(one, options.queries))
    for epsilon in options.epsilons:
        how = {"epsilon": epsilon, "bounds": one.bounds, "slices": one.slices, "time": "time"}
        builds = {
            method: [psd.build(one.table, method=method, **how) for _ in range(options.builds)]
            for method in ("auto", "cube")
        }
        errors: dict[str, list[float]] = {"auto": [], "cube": []}
        for query in classes:
            floor = 0.001 * len(one.table) * query.width / len(one.slices)
            least = np.maximum(query.true, floor)
            found = {
                method: [asked(release, one.slices, query) for release in releases]
                for method, releases in builds.items()
            }
            for method, answers in found.items():
                off = [np.abs(each.estimate - query.true) / least for each in answers]
                errors[method].append(float(np.mean(off)))
            cubes = pd.concat(found["cube"], ignore_index=True)
            true = np.tile(query.true, options.builds)
            holds = (cubes.lower <= true) & (true <= cubes.upper)
            ratio = np.sqrt((cubes.error**2).mean() / ((cubes.estimate - true) ** 2).mean())
            yield (
                one.name, epsilon, str(query.width), f"{query.share:g}",
                f"{errors['auto'][-1]:.3f}", f"{errors['cube'][-1]:.3f}",
                f"{100 * holds.mean():.1f}", f"{ratio:.2f}",
            )  # fmt: skip
        means = (f"{np.exp(np.log(each).mean()):.4f}" for each in errors.values())
        yield (one.name, epsilon, "all", "all", *means, "", "")


def main() -> None:
    parser = study(__doc__, epsilons="0.1,1", builds=2)
    parser.add_argument("--sets", default="city", help="city, london, andorra, with commas")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of london and andorra")
    parser.add_argument("--queries", type=int, default=100, help="of each class")
    parser.add_argument("--records", type=int, default=418_000, help="of the made-up city")
    options = parser.parse_args()
    every = (row for one in sets(options) for row in rows(options, one))
    write_table(options.output, HEADER + FIGURES, every)


if __name__ == "__main__":
    main()
