"""Gaussian over Laplace noise in series: when a delta pays, and what `--noise auto` chooses.

    python lab/gaussian.py [--slices 1,4,12,52] [--rows 1,4] [--epsilons .3,1,3]
        [--methods auto,quadtree] [--runs 3] [--delta 1e-6] [--jobs 2] [--kept rows.json]
        [--data FOLDER] [--sets A,B] [-o docs/measured/data/gaussian.csv]
    python lab/gaussian.py --cubes [--records 60000] [--slices 56,168] [--epsilons .3,1,3]
        [--runs 3] [-o docs/measured/data/gaussian-cubes.csv]

Series of T slices with the rows of a public data set in each, where every user has at most m rows
in a slice and T m in all. All slices have the same rows, and their noise is independent and of one
law. So a run draws one slice, with the budget and the sensitivity that `psd.publish.drawing` gives
it in a series of T slices. The score is the geometric mean of the relative errors of the eight
classes of `psd/apps/evaluation/workload.py`. Builds that were measured are kept in a file and not
measured again. Exits with 1 if a bar is missed.

With ``--cubes`` it is one cube of T hours of made-up towns, whose users have k records in all and M
in a slice. The score is the geometric mean over squares and windows of `lab/cube.py`. *Signal* is
what `psd.publish.noise_choice` compares with a factor: Gaussian noise is chosen above it.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from common import holds, means_by_class, study, whole_numbers, write_page
from cube import Timed, errors_of, queries
from data_sets import PointSet, add_sets, chosen_sets

import psd
from psd.accounting import PICO
from psd.apps.evaluation.true_counts import TrueCounts
from psd.apps.evaluation.true_errors import class_errors, geometric_mean
from psd.privacy.budget import Budget
from psd.privacy.loss import Loss, parse_delta, parse_epsilon
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release, slice_budgets, squared_of
from psd.publish.noise_choice import LEVEL_FACTORS, NoisePlan, chosen_law

LAWS = ("laplace", "gaussian")

# Largest score of Gaussian over that of Laplace noise: slices, method, epsilon (any without one).
BARS = (
    (52, "auto", "0.3", 0.75),
    (52, "auto", None, 0.65),
    (52, "quadtree", None, 0.40),
    (12, "auto", None, 0.85),
)
WORSE = 1.08
"""Largest score of the chosen law over the better one."""

COVERED = {"auto": ((0.92, 0.99), 0.88), "quadtree": ((0.0, 1.0), 0.85)}
"""Bars of the coverage of 95 % intervals, of all queries and of each class, as in coverage.md."""

INTRODUCTION = """# Gaussian noise in series

Made by `{command}` (psd {version}).

Series of T slices with all rows of a data set in each; every user has at most m rows in a slice and
T m in all, delta {delta}, means of {runs} runs. The score is the geometric mean of the relative
errors in eight classes of boxes, as in [accuracy](accuracy.md). With a probability of at most
{delta} a series with Gaussian noise may reveal more than its epsilon allows
([delta](../guide/delta.md)); Laplace noise spends no delta.

- *ratio*: the score with discrete Gaussian over that with discrete Laplace noise; below 1, a delta
  of {delta} pays.
- *chosen*: the law that `--noise auto` has; *over better*: its score over the better of the two.
- *covered*: share of queries whose 95 % interval of the Gaussian series covers the true count, in
  percent; *least class*: that of the class with the least; *covered, Laplace*: of Laplace series.

A figure that misses its bar is marked with (!). Bars: the ratio at m = 1 and T = 52 at most .65
with auto (.75 at epsilon .3) and .40 with quadtree, and at T = 12 at most .85 with auto;
*over better* at most 1.08; with auto covered 92 to 99 % and least class 88 %, with quadtree least
class 85 %.

"""

OF_CUBES = """# Gaussian noise in cubes

Made by `{command}` (psd {version}).

Cubes of T hours and {records:,} records of made-up towns; every user has k records, M in a slice;
delta {delta}, means of {runs} runs. The columns are those of series. *Signal* over epsilon is
compared with {factor} by `--noise auto`.

"""
OF_USERS = ((4, 1), (16, 1), (16, 4), (None, 1))
"""k and M of users; all slices without a k."""

CUBE_HEADS = (
    "T", "k", "M", "epsilon", "Laplace", "Gaussian", "ratio", "signal", "chosen", "over better",
)  # fmt: skip

HEADS = (
    "data", "method", "epsilon", "T", "m", "Laplace", "Gaussian", "ratio", "chosen", "over better",
    "covered", "least class", "covered, Laplace",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One build: a slice of a series."""

    data: str
    method: str
    epsilon: str
    slices: int
    rows: int
    law: str
    run: int

    @property
    def key(self) -> str:
        """Name of the build in the file of kept rows."""
        return " ".join(map(str, astuple(self)))

    @property
    def unit(self) -> PrivacyUnit:
        """A user with m rows in each slice."""
        return PrivacyUnit(
            kind="user", max_contributions=self.slices * self.rows, max_per_slice=self.rows
        )


@cache
def prepared(folder: Path | None, name: str) -> tuple[PointSet, TrueCounts]:
    """A data set and its true counts, once for each process."""
    one = chosen_sets(argparse.Namespace(data=folder, sets=[name]))[0]
    return one, one.truth()


def measured(folder: Path | None, delta: str, cell: Cell) -> dict[str, float]:
    """Score of a build, and the coverage of its intervals."""
    one, truth = prepared(folder, cell.data)
    nano = parse_epsilon(cell.epsilon)
    is_pure = cell.law == "laplace"
    loss = Loss.pure(nano) if is_pure else Loss.gaussian(nano, parse_delta(delta))
    slices = psd.TimeSlices.parse(
        "day", f"2024-01-01..{np.datetime64('2024-01-01') + np.timedelta64(cell.slices - 1, 'D')}"
    )
    budget = slice_budgets(Budget(loss), cell.slices, cell.unit, "series")[0]
    release = draw_release(
        replace(truth.counts, contributions=cell.unit.contributions),
        one.domain,
        budget=budget,
        method=psd.decompositions.method(cell.method),
        unit=cell.unit,
        squared_sensitivity=squared_of(budget, cell.unit, "series", slices),
    )
    covered = holds(release.query(truth.queries.boxes).table, truth.true)
    classes = means_by_class(truth.queries.classes, covered)
    return {
        "score": geometric_mean(class_errors(release, truth)),
        "covered": float(classes.mean()),
        **{f"class {n}": float(share) for n, share in enumerate(classes)},
    }


def cells_of(options: argparse.Namespace) -> Iterator[Cell]:
    """All builds."""
    axes = (options.names, options.methods, options.epsilons, options.slices, options.rows)
    for data, method, epsilon, slices, rows in product(*axes):
        for law, run in product(LAWS, range(options.runs)):
            yield Cell(
                data=data, method=method, epsilon=epsilon, slices=slices, rows=rows, law=law,
                run=run,
            )  # fmt: skip


def measure_all(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Measures of all builds by their keys; those of the file of kept rows are not repeated."""
    kept = options.kept
    done = json.loads(kept.read_text()) if kept and kept.is_file() else {}
    missing = [cell for cell in cells_of(options) if cell.key not in done]
    measure = partial(measured, options.data, options.delta)
    with ProcessPoolExecutor(options.jobs) as pool:
        found = pool.map(measure, missing)
        for number, (cell, build) in enumerate(zip(missing, found, strict=True), 1):
            done[cell.key] = build
            if kept and (number % 10 == 0 or number == len(missing)):
                kept.write_text(json.dumps(done, indent=0))
    return done


def rows_of(options: argparse.Namespace, done: dict[str, dict[str, float]]) -> Iterator[list[str]]:
    """One row for each pair of laws."""
    axes = (options.names, options.methods, options.epsilons, options.slices, options.rows)
    for data, method, epsilon, slices, rows in product(*axes):
        cells = {
            law: [
                done[Cell(data=data, method=method, epsilon=epsilon, slices=slices, rows=rows,
                          law=law, run=run).key]
                for run in range(options.runs)
            ]
            for law in LAWS
        }  # fmt: skip
        scores = {law: float(np.mean([m["score"] for m in found])) for law, found in cells.items()}
        plan = NoisePlan(
            epsilon=parse_epsilon(epsilon), delta=parse_delta(options.delta),
            contributions=slices * rows, per_question=rows, slices=slices,
        )  # fmt: skip
        chosen = chosen_law(psd.decompositions.method(method), plan)
        ratio = scores["gaussian"] / scores["laplace"]
        bar = bar_of(method, epsilon, slices, rows)
        gaussian, (pooled, each) = cells["gaussian"], COVERED.get(method, COVERED["quadtree"])
        covered = float(np.mean([m["covered"] for m in gaussian]))
        least = min(float(np.mean([m[f"class {n}"] for m in gaussian])) for n in range(8))
        over = scores[chosen] / min(scores.values())
        yield [
            data, method, epsilon, str(slices), str(rows),
            f"{scores['laplace']:.4f}", f"{scores['gaussian']:.4f}",
            marked(f"{ratio:.2f}", bar is None or ratio <= bar), chosen,
            marked(f"{over:.2f}", over <= WORSE),
            marked(f"{100 * covered:.1f}", pooled[0] <= covered <= pooled[1]),
            marked(f"{100 * least:.1f}", least >= each),
            f"{100 * float(np.mean([m['covered'] for m in cells['laplace']])):.1f}",
        ]  # fmt: skip


def towns(records: int, k: int, most: int, slices: int) -> Timed:
    """Records around the homes of users in 40 towns, in k / M hours each, with a daily peak."""
    random = np.random.default_rng(1)
    users, hours = records // k, min(k // most, slices)
    center, weight = random.uniform(1, 15, (40, 2)), random.pareto(1.2, 40) + 0.2
    home = center[random.choice(40, users, p=weight / weight.sum())]
    home = home + random.normal(0, 0.4, (users, 2))
    peak = 1 + 0.8 * np.sin(np.arange(slices) / 24 * 2 * np.pi)
    # Of exponential times over their rates, the least ones are a draw without replacement.
    order = np.argsort(random.exponential(size=(users, slices)) / peak, axis=1)[:, :hours]
    user = np.repeat(np.arange(users), hours * most)
    point = np.clip(home[user] + random.normal(0, 0.8, (len(user), 2)), 0, 15.99)
    begin = np.datetime64("2024-01-01T00")
    table = pd.DataFrame({
        "lon": point[:, 0], "lat": point[:, 1], "user": user.astype(str),
        "time": (begin + np.repeat(order.ravel(), most)).astype("datetime64[s]"),
    })  # fmt: skip
    names = psd.TimeSlices.parse("hour", f"{begin}..{begin + (slices - 1)}")
    return Timed("towns", table, (0, 0, 16, 16), names, (1, slices // 7, slices))


def rows_of_cubes(options: argparse.Namespace) -> Iterator[list[str]]:
    """One row for each pair of laws of a cube."""
    for slices, (records, most) in product(options.slices, OF_USERS):
        k = slices if records is None else records
        one = towns(options.records, k, most, slices)
        classes = list(queries(one, 60))
        for epsilon in options.epsilons:
            scores: dict[str, float] = {}
            for law in LAWS:
                logs = []
                for _ in range(options.runs):
                    cube = psd.build(
                        one.table, bounds=one.bounds, epsilon=epsilon, method="cube", noise=law,  # type: ignore[arg-type]
                        delta=options.delta, slices=one.slices, time="time", user="user",
                        max_contributions=k, max_per_slice=most,
                    )  # fmt: skip
                    logs += [np.log(errors_of(cube, one, query).mean()) for query in classes]
                scores[law] = float(np.exp(np.mean(logs)))
            plan = NoisePlan(
                epsilon=parse_epsilon(epsilon), delta=parse_delta(options.delta),
                contributions=k, per_question=most, slices=slices,
            )  # fmt: skip
            chosen = chosen_law(psd.decompositions.method("cube"), plan)
            signal = 2 * (plan.rho / PICO * k / plan.of_axis) ** 0.5 / float(epsilon)
            yield [
                str(slices), str(k), str(most), epsilon,
                *(f"{scores[law]:.4f}" for law in LAWS),
                f"{scores['gaussian'] / scores['laplace']:.2f}", f"{signal:.2f}", chosen,
                f"{scores[chosen] / min(scores.values()):.2f}",
            ]  # fmt: skip


def bar_of(method: str, epsilon: str, slices: int, rows: int) -> float | None:
    """Largest ratio of the laws in a row, or None without a bar."""
    for of_slices, of_method, of_epsilon, bar in BARS:
        if (of_slices, of_method) == (slices, method) and of_epsilon in (None, epsilon):
            return bar if rows == 1 else None
    return None


def marked(text: str, holds: bool) -> str:
    """A figure, marked if it misses its bar."""
    return text if holds else f"{text} (!)"


def main() -> int:
    parser = study(__doc__, methods="auto,quadtree", epsilons="0.3,1,3", runs=3, jobs=2)
    add_sets(parser, "seoul,city-towns")
    parser.add_argument("--slices", type=whole_numbers, help="[1,4,12,52; of cubes 56,168]")
    parser.add_argument("--rows", type=whole_numbers, default=[1, 4], help="of a user in a slice")
    parser.add_argument("--delta", default="1e-6")
    parser.add_argument("--kept", type=Path, help="file of rows that were measured")
    parser.add_argument("--cubes", action="store_true", help="cubes in place of series")
    parser.add_argument("--records", type=int, default=60_000, help="of a cube")
    options = parser.parse_args()
    options.slices = options.slices or ([56, 168] if options.cubes else [1, 4, 12, 52])
    if options.cubes:
        write_page(
            options.output, OF_CUBES, CUBE_HEADS, rows_of_cubes(options), delta=options.delta,
            runs=options.runs, records=options.records, factor=LEVEL_FACTORS["cube"],
        )  # fmt: skip
        return 0
    options.names = [one.name for one in chosen_sets(options)]
    rows = list(rows_of(options, measure_all(options)))
    write_page(options.output, INTRODUCTION, HEADS, rows, delta=options.delta, runs=options.runs)
    return int(any("(!)" in cell for row in rows for cell in row))


if __name__ == "__main__":
    sys.exit(main())
