"""Errors of a cube of hours in windows of some hours, with and without its layer of times.

    python lab/times.py [--epsilons .1,.3,1] [--builds 8] [--records 200000] [--queries 25]
        [-o docs/measured/data/times.csv]

The made-up city of ``lab/cube.py`` in two weeks of hours, with and without five made-up categories;
questions are about all of them. Queries are the whole area and squares of 5 % of it, placed on a
record. For each window: the root mean squared errors of both, the share of 95 % intervals of the
cube with the layer that hold the truth, in percent, and its predicted over true errors. Cubes whose
hours have too few records, or so many that they come first, have no such layer, and no row.
"""

import argparse
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
from categories import LABELS, made_up
from common import study, write_table
from cube import SEED, Timed, part, sets

import psd
from psd.decompositions.cube import _is_coarse
from psd.release.cube import CubeRecord

HEADER = ("categories", "epsilon", "window", "area")
FIGURES = ("error without", "error with", "covered", "predicted over true")
WEEKS = "2024-01-01T00..2024-01-14T23"
WINDOWS = ("weekdays 07-09", "weekends 12-18", "02-04", "2024-01-10T08", "2024-01-10")
SHARES = (0.05, 1.0)


def squares(one: Timed, number: int) -> Iterator[np.ndarray]:
    """Squares of each share of the area."""
    random = np.random.default_rng(SEED)
    point = one.table[["lon", "lat"]].to_numpy()
    low, size = np.array(one.bounds[:2]), np.subtract(one.bounds[2:], one.bounds[:2])
    for share in SHARES:
        side = size * share**0.5
        at = random.integers(0, len(point), number if share < 1 else 1)
        corner = np.clip(point[at] - side * random.random((len(at), 2)), low, low + size - side)
        yield np.hstack([corner, corner + side])


def rows(options: argparse.Namespace, one: Timed, has_labels: bool) -> Iterator[tuple[str, ...]]:
    """Rows of the city, with categories or without."""
    table = one.table.assign(label=np.array(LABELS)[made_up(one, "alike")])
    how: dict[str, Any] = {
        "bounds": one.bounds,
        "slices": one.slices,
        "time": "time",
        "method": "cube",
    }
    if has_labels:
        how |= {"category": "label", "labels": LABELS, "other_labels": "drop"}
    point, every = table[["lon", "lat"]].to_numpy(), list(squares(one, options.queries))
    slice_ = one.slices.index(table.time.to_numpy().astype("datetime64[us]"))
    true = {}
    for window in WINDOWS:
        during = point[np.isin(slice_, one.slices.window(window).numbers)]
        for number, boxes in enumerate(every):
            inside = (during >= boxes[:, None, :2]) & (during <= boxes[:, None, 2:])
            true[window, number] = inside.all(axis=2).sum(axis=1)
    for epsilon in options.epsilons:
        found: dict[tuple[str, int, bool], list[np.ndarray]] = {}
        for _ in range(options.builds):
            for is_with in (False, True):
                rule = _is_coarse if is_with else lambda *_: False
                with patch("psd.decompositions.cube._is_coarse", rule):
                    made = psd.build(table, epsilon=epsilon, **how)
                assert isinstance(made.record, CubeRecord)
                has_times = made.record.times is not None
                for window, number in true:
                    answers = made.query(every[number], when=window).table
                    columns = answers[["estimate", "error", "lower", "upper"]].to_numpy()
                    found.setdefault((window, number, is_with), []).append(columns)
        for (window, number), counts in true.items() if has_times else ():
            without, cube = (np.stack(found[window, number, each]) for each in (False, True))
            off = [np.sqrt(((each[..., 0] - counts) ** 2).mean()) for each in (without, cube)]
            holds = (cube[..., 2] <= counts) & (counts <= cube[..., 3])
            ratio = np.sqrt((cube[..., 1] ** 2).mean()) / off[1]
            yield (
                "five" if has_labels else "none", epsilon, window, f"{SHARES[number]:g}",
                *(f"{each:.1f}" for each in off), f"{100 * holds.mean():.1f}", f"{ratio:.2f}",
            )  # fmt: skip


def main() -> None:
    parser = study(__doc__, epsilons="0.1,0.3,1", builds=8)
    parser.add_argument("--queries", type=int, default=25, help="squares")
    parser.add_argument("--records", type=int, default=200_000, help="of three weeks")
    options = parser.parse_args()
    options.sets, options.data = "city", None
    [city] = (part(one, WEEKS) for one in sets(options))
    every = (row for has_labels in (False, True) for row in rows(options, city, has_labels))
    write_table(options.output, HEADER + FIGURES, every)


if __name__ == "__main__":
    main()
