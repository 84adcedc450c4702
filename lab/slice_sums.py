"""Coverage and error of sums over the slices of a series, on public points.

    python lab/slice_sums.py [--slices 4,12,52] [--epsilons .1,1] [--methods auto,quadtree]
        [--delta 1e-6] [--boxes 100] [--data FOLDER] [--sets A,B] [-o table.md]

Every record gets a day at random, from a public seed, so a record is in one slice and each slice
has all of epsilon. With a delta every record is of a user of its own, who may have one in each
slice, and the noise is Gaussian noise for that. The boxes are those of the usual workload, half
of them centred on points, and their true counts are of all days together. For each row: the share
of 95 % intervals of `Release.total` that hold the true count, in percent; the same if
unevenness were added like noise; and the root mean square error in records of the sum of unbiased
estimates, which `total` gives, and of the sum of published answers, which are never negative.
"""

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from common import items, study, write_table
from data_sets import PointSet, add_sets, chosen_sets
from numpy.typing import NDArray

import psd
from psd.apps.evaluation.true_counts import count_in_boxes
from psd.apps.evaluation.workload import draw_workload
from psd.query.answer_table import answer_columns
from psd.query.boxes import checked_totals, parse_boxes
from psd.query.index import QueryIndex, in_sums, peers_in
from psd.query.totals import QueryTotals, SliceSum
from psd.release.series import SeriesRecord

HEADER = ("data", "slices", "epsilon", "method", "boxes")
FIGURES = ("covered", "if unevenness were independent", "error", "error of published sums")
SEED = 7

Floats = NDArray[np.float64]


def series_of(
    x: Floats, y: Floats, domain: psd.Domain, days: int, epsilon: str, method: str, delta: str
) -> psd.Release:
    """Series with a day at random for each record; with Gaussian noise if there is a delta."""
    law: dict[str, Any] = {
        "delta": delta,
        "noise": "gaussian",
        "user": "user",
        "max_contributions": days,
        "max_per_slice": 1,
    }
    last = np.datetime64("2024-01-01") + np.timedelta64(days - 1, "D")
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


def covered(totals: QueryTotals, series: psd.Release, true: Floats) -> NDArray[np.bool_]:
    """Whether the intervals of totals hold the true counts."""
    answers = answer_columns(
        totals, series[next(iter(series))].index.record, confidence=0.95, threshold=0.3
    )
    return (answers["lower"] <= true) & (true <= answers["upper"])


def summed(parts: list[QueryTotals]) -> QueryTotals:
    """Totals of all slices together."""
    total = SliceSum()
    for part in parts:
        total.add(part)
    return total.totals


def independent(parts: list[QueryTotals]) -> QueryTotals:
    """Totals as if unevenness were independent from slice to slice."""
    uneven = np.sum([part.nonuniformity_variance for part in parts], axis=0)
    return QueryTotals(
        **{name: getattr(summed(parts), name) for name in QueryTotals.__dataclass_fields__}
        | {"leaf_variance": uneven}
    )


def rows(options: argparse.Namespace, one: PointSet) -> Iterator[tuple[str, ...]]:
    """Rows of a data set."""
    domain, (x, y) = one.domain, one.inside.T
    workload = draw_workload(x, y, one.bounds, per_class=options.boxes)
    true = count_in_boxes(x, y, np.ones(len(x), np.int64), workload.boxes).astype(float)
    asked = parse_boxes(workload.boxes)
    on_data = np.char.startswith(workload.classes.astype(str), "on data")
    for days in options.slices:
        for epsilon in options.epsilons:
            for method in options.methods:
                series = series_of(x, y, domain, int(days), epsilon, method, options.delta)
                record = series.record
                assert isinstance(record, SeriesRecord)
                indexes = [QueryIndex(record=each) for each in record.releases]
                peers = peers_in(record.releases)
                of_slices, parts = (
                    [checked_totals(in_sums(i, [kind], peers)[kind], *asked) for i in indexes]
                    for kind in (False, True)
                )
                total = summed(parts)
                own = covered(total, series, true)
                other = covered(independent(parts), series, true)
                published = np.sum([np.maximum(part.estimate, 0) for part in of_slices], axis=0)
                for kind, at in (("uniform", ~on_data), ("on data", on_data)):
                    errors = [np.maximum(total.estimate, 0) - true, published - true]
                    figures = [f"{100 * each[at].mean():.1f}" for each in (own, other)]
                    figures += [f"{np.sqrt((each[at] ** 2).mean()):,.0f}" for each in errors]
                    yield (one.name, days, epsilon, method, kind, *figures)


def main() -> None:
    parser = study(__doc__, methods="auto,quadtree", epsilons="0.1,1")
    add_sets(parser, "seoul,city-towns")
    parser.add_argument("--slices", type=items, default=["4", "12", "52"])
    parser.add_argument("--delta", default="", help="Gaussian noise")
    parser.add_argument("--boxes", type=int, default=100, help="per class")
    options = parser.parse_args()
    every = (row for one in chosen_sets(options) for row in rows(options, one))
    write_table(options.output, HEADER + FIGURES, every)


if __name__ == "__main__":
    main()
