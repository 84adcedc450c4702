"""Errors of a cube with categories, beside those of a tree for each slice and each category.

    python lab/categories.py [--sets city] [--epsilons .1,1] [--builds 2] [--queries 40]
        [--records 418000] [--data FOLDER] [-o docs/measured/data/categories.csv]

Sets and windows are those of ``lab/cube.py``. Five made-up categories are of two kinds: with the
same shares everywhere, and with shares of their own around each of 80 places. Queries are squares
of .1, 1 and 10 % of the area and windows of four lengths, both placed on a record, of the category
of this record; the same queries are asked of both. For each class: the mean relative errors of both
(of at least .001 of the records that a window and a category have on the mean), the share of 95 %
intervals of the cube that hold the truth, in percent, and the predicted over the true root mean
square of its errors. The last row of a set has the geometric means of the errors, and in the last
column the ratio of both.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from common import study, write_table
from cube import SEED, SHARES, Timed, sets
from numpy.typing import NDArray

import psd

HEADER = ("data", "categories", "epsilon", "window", "squares")
FIGURES = ("error of trees", "error of the cube", "covered", "predicted over true")
KINDS = ("alike", "by place")
LABELS = ("a", "b", "c", "d", "e")
PLACES = 80

Integers = NDArray[np.int64]


def made_up(one: Timed, kind: str) -> Integers:
    """Number of the category of each record."""
    random = np.random.default_rng(SEED)
    point = one.table[["lon", "lat"]].to_numpy()
    place = np.zeros(len(point), np.int64)
    shares = random.dirichlet(np.full(len(LABELS), 3.0), 1)
    if kind == "by place":
        size = np.subtract(one.bounds[2:], one.bounds[:2])
        center = point[random.integers(0, len(point), PLACES)]
        far = [(((point - each) / size) ** 2).sum(axis=1) for each in center]
        place = np.argmin(far, axis=0)
        shares = random.dirichlet(np.full(len(LABELS), 0.7), PLACES)
    drawn = random.random(len(point))[:, None] > np.cumsum(shares, axis=1)[place]
    return np.minimum(drawn.sum(axis=1), len(LABELS) - 1)


def questions(one: Timed, category: Integers, number: int) -> Iterator[pd.DataFrame]:
    """Of each class: squares, first slices of windows, categories, and true counts."""
    random = np.random.default_rng(SEED)
    point = one.table[["lon", "lat"]].to_numpy()
    slice_ = one.slices.index(one.table.time.to_numpy().astype("datetime64[us]"))
    low, size = np.array(one.bounds[:2]), np.subtract(one.bounds[2:], one.bounds[:2])
    for width in one.widths:
        for share in SHARES:
            at, side = random.integers(0, len(point), number), size * share**0.5
            corner = np.clip(point[at] - side * random.random((number, 2)), low, low + size - side)
            first = np.clip(
                slice_[at] - random.integers(0, width, number), 0, len(one.slices) - width
            )
            asked = pd.DataFrame(
                np.hstack([corner, corner + side]), columns=["west", "south", "east", "north"]
            ).assign(first=first, category=category[at], width=width, share=share)
            true = []
            for box_low, start, label in zip(corner, first, category[at], strict=True):
                kept = (slice_ >= start) & (slice_ < start + width)
                inside = point[kept & (category == label)]
                is_met = (inside >= box_low) & (inside < box_low + side)
                true.append(int(is_met.all(axis=1).sum()))
            yield asked.assign(true=true)


def answers(
    releases: list[psd.Release], slices: psd.TimeSlices, asked: pd.DataFrame
) -> pd.DataFrame:
    """Answers to questions, of one cube or of a release for each category."""
    found = []
    pairs: list[list[int]] = asked[["first", "category"]].drop_duplicates().values.tolist()
    for first, category in pairs:
        rows = asked[(asked["first"] == first) & (asked["category"] == category)]
        names = slices.names[first : first + rows.width.iloc[0]]
        label = LABELS[category] if len(releases) == 1 else None
        release = releases[0 if label else category]
        boxes = rows[["west", "south", "east", "north"]].to_numpy()
        table = release.query(boxes, when=",".join(names), category=label).table
        found.append(table[["estimate", "error", "lower", "upper"]].set_index(rows.index))
    return pd.concat(found).sort_index()


def rows(options: argparse.Namespace, one: Timed, kind: str) -> Iterator[tuple[str, ...]]:
    """Rows of a set with one kind of categories."""
    category = made_up(one, kind)
    table = one.table.assign(category=np.array(LABELS)[category])
    classes = list(questions(one, category, options.queries))
    for epsilon in options.epsilons:
        how = {"epsilon": epsilon, "bounds": one.bounds, "slices": one.slices, "time": "time"}
        off: list[list[float]] = [[0.0, 0.0] for _ in classes]
        cubes: list[list[pd.DataFrame]] = [[] for _ in classes]
        for _ in range(options.builds):
            cube = psd.build(
                table, method="cube", category="category", labels=LABELS, other_labels="drop", **how
            )
            trees = [
                psd.build(table[category == number], method="cascade", **how)
                for number in range(len(LABELS))
            ]
            for number, asked in enumerate(classes):
                floor = 0.001 * len(table) * asked.width / len(one.slices) / len(LABELS)
                least = np.maximum(asked.true, floor)
                for which, releases in enumerate((trees, [cube])):
                    found = answers(releases, one.slices, asked)
                    error = (np.abs(found.estimate - asked.true) / least).mean()
                    off[number][which] += float(error) / options.builds
                cubes[number].append(found.assign(true=asked.true))
        for asked, errors, frames in zip(classes, off, cubes, strict=True):
            every = pd.concat(frames)
            holds = (every.lower <= every.true) & (every.true <= every.upper)
            ratio = np.sqrt((every.error**2).mean() / ((every.estimate - every.true) ** 2).mean())
            yield (
                one.name, kind, epsilon, str(asked.width[0]), f"{asked.share[0]:g}",
                f"{errors[0]:.3f}", f"{errors[1]:.3f}",
                f"{100 * holds.mean():.1f}", f"{ratio:.2f}",
            )  # fmt: skip
        means = np.exp(np.log(off).mean(axis=0))
        last = (f"{means[0]:.4f}", f"{means[1]:.4f}", "", f"{means[1] / means[0]:.3f}")
        yield (one.name, kind, epsilon, "all", "all", *last)


def main() -> None:
    parser = study(__doc__, epsilons="0.1,1", builds=2)
    parser.add_argument("--sets", default="city", help="city, london, andorra, with commas")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of london and andorra")
    parser.add_argument("--queries", type=int, default=40, help="of each class")
    parser.add_argument("--records", type=int, default=418_000, help="of the made-up city")
    options = parser.parse_args()
    every = (row for one in sets(options) for kind in KINDS for row in rows(options, one, kind))
    write_table(options.output, HEADER + FIGURES, every)


if __name__ == "__main__":
    main()
