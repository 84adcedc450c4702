"""Coverage and error of sums over the slices of a series, on public points.

    python lab/slice_sums.py [--data A,B] [--slices 4,12,52] [--epsilons .1,1]
        [--methods auto,quadtree] [--delta 1e-6] [--boxes 100] [--folder ../shared/data]
        [-o table.md]

Every record gets a day at random, from a public seed, so a record is in one slice and each slice
has all of epsilon. With a delta every record is of a user of its own, who may have one in each
slice, and the noise is Gaussian noise for that. The boxes are those of the usual workload, half
of them centred on points, and their true counts are of all days together. For each row: the share
of 95 % intervals of `SeriesRelease.total` that hold the true count, in percent; the same if
unevenness were added like noise; and the root mean square error in records of the sum of unbiased
estimates, which `total` gives, and of the sum of published answers, which are never negative.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from accuracy import BOUNDS, items
from numpy.typing import NDArray
from tables import write_table

import psd
from psd.evaluation.workload import draw_workload
from psd.ingest.sources import Columns, read
from psd.query.answer_table import answer_columns
from psd.query.boxes import checked_totals, parse_boxes
from psd.query.slice_sums import sum_over_slices
from psd.query.totals import QueryTotals

HEADER = ("data", "slices", "epsilon", "method", "boxes")
FIGURES = ("covered", "if unevenness were independent", "error", "error of published sums")
SEED = 7

Floats = NDArray[np.float64]


def points(path: Path, bounds: tuple[float, float, float, float]) -> tuple[Floats, Floats]:
    """Coordinates of the records inside the bounds."""
    batches = list(read([path], Columns(), psd.Domain(bounds=bounds)))
    x, y = (np.concatenate([getattr(batch, name) for batch in batches]) for name in "xy")
    inside = (x >= bounds[0]) & (x < bounds[2]) & (y >= bounds[1]) & (y < bounds[3])
    return x[inside], y[inside]


def series_of(
    x: Floats, y: Floats, domain: psd.Domain, days: int, epsilon: str, method: str, delta: str
) -> psd.SeriesRelease:
    """Series with a day at random for each record; with Gaussian noise if there is a delta."""
    law: dict[str, Any] = {
        "delta": delta,
        "noise_law": "gaussian",
        "user": "user",
        "max_contributions": days,
        "max_per_slice": 1,
    }
    last = np.datetime64("2024-01-01") + days - 1
    day = np.random.default_rng(SEED).integers(0, days, len(x))
    time = (np.datetime64("2024-01-01") + day).astype("datetime64[s]")
    return psd.build(
        pd.DataFrame({"lon": x, "lat": y, "time": time, "user": np.arange(len(x)).astype(str)}),
        domain=domain,
        slices=psd.TimeSlices.parse("day", f"2024-01-01..{last}"),
        time="time",
        epsilon=epsilon,
        method=method,
        **(law if delta else {}),
    )


def true_counts(x: Floats, y: Floats, boxes: Floats) -> Floats:
    """Records in each box."""
    inside = [((x >= w) & (x < e) & (y >= s) & (y < n)).sum() for w, s, e, n in boxes]
    return np.array(inside, np.float64)


def covered(totals: QueryTotals, series: psd.SeriesRelease, true: Floats) -> NDArray[np.bool_]:
    """Whether the intervals of totals hold the true counts."""
    answers = answer_columns(totals, series.releases[0].model, confidence=0.95, threshold=0.3)
    return (answers["lower"] <= true) & (true <= answers["upper"])


def independent(parts: list[QueryTotals]) -> QueryTotals:
    """Totals as if unevenness were independent from slice to slice."""
    summed = sum_over_slices(parts)
    uneven = np.sum([part.nonuniformity_variance for part in parts], axis=0)
    return QueryTotals(
        **{name: getattr(summed, name) for name in QueryTotals.__dataclass_fields__}
        | {"leaf_variance": uneven}
    )


def rows(options: argparse.Namespace, name: str) -> Iterator[tuple[str, ...]]:
    """Rows of a data set."""
    domain = psd.Domain(bounds=BOUNDS[name])
    x, y = points(options.folder / f"{name}.csv", BOUNDS[name])
    workload = draw_workload(x, y, BOUNDS[name], per_class=options.boxes)
    true = true_counts(x, y, workload.boxes)
    on_data = np.char.startswith(workload.classes.astype(str), "on data")
    for days in options.slices:
        for epsilon in options.epsilons:
            for method in options.methods:
                series = series_of(x, y, domain, int(days), epsilon, method, options.delta)
                indexes = [release.index for release in series.releases]
                parts = [checked_totals(i, *parse_boxes(workload.boxes)) for i in indexes]
                total = sum_over_slices(parts)
                own = covered(total, series, true)
                other = covered(independent(parts), series, true)
                published = np.sum([np.maximum(part.estimate, 0) for part in parts], axis=0)
                for kind, at in (("uniform", ~on_data), ("on data", on_data)):
                    errors = [np.maximum(total.estimate, 0) - true, published - true]
                    figures = [f"{100 * each[at].mean():.1f}" for each in (own, other)]
                    figures += [f"{np.sqrt((each[at] ** 2).mean()):,.0f}" for each in errors]
                    yield (name, days, epsilon, method, kind, *figures)


def parsed() -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=items, default=["uk_road_accidents", "london_stop_search"])
    parser.add_argument("--slices", type=items, default=["4", "12", "52"])
    parser.add_argument("--epsilons", type=items, default=["0.1", "1"])
    parser.add_argument("--methods", type=items, default=["auto", "quadtree"])
    parser.add_argument("--delta", default="")
    parser.add_argument("--boxes", type=int, default=100)
    parser.add_argument("--folder", type=Path, default=Path("../shared/data"))
    parser.add_argument("-o", "--output", type=Path)
    return parser.parse_args()


def main() -> None:
    """Print the table, or write it."""
    options = parsed()
    every = (row for data in options.data for row in rows(options, data))
    write_table(options.output, HEADER + FIGURES, every)


if __name__ == "__main__":
    main()
