"""Simulated builds: errors of queries on populations that were drawn from an assumed density."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd._util.declared_parameters import integer_between
from psd.apps.evaluation.true_counts import (
    cell_centres,
    count_in_boxes,
    extend_to_edges,
    relative_base,
)
from psd.apps.evaluation.workload import draw_workload
from psd.apps.planning._constants import CENTRES, QUERIES
from psd.apps.planning.population import AssumedDensity, draw_population
from psd.decompositions import Decomposition
from psd.errors import ParameterError
from psd.privacy.budget import Budget
from psd.privacy.loss import Loss, epsilon_text, parse_delta
from psd.privacy.unit import MAX_CONTRIBUTIONS, PrivacyUnit
from psd.privacy.values import WEIGHT, Value
from psd.publish.drawing import draw_release, squared_of
from psd.publish.noise_choice import NoisePlan, chosen_law
from psd.query.boxes import box_estimates
from psd.space.domain import Domain

if TYPE_CHECKING:
    import pandas

    from psd.ingest.tally import Tally
    from psd.publish.noise_choice import Law


MAX_SLICES = 10_000


class UserArguments(TypedDict, total=False):
    """Arguments of a plan about users, slices and delta."""

    # Largest number of records of a user in all slices; by default slices times max_per_slice.
    max_contributions: int | None
    # One of them is planned, and has the count.
    slices: int | None
    # Largest number of records of a user in a slice, by default 1.
    max_per_slice: int | None
    # With this probability at most, more may be revealed than epsilon allows.
    delta: str | float | Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSeries:
    """Slices of a series that is planned, and the delta that it may spend. Public."""

    slices: int = 1  # time slices; 1 for a single release
    max_per_slice: int | None = None  # bound on the records of a user in each slice
    delta: Fraction | None = None  # of Gaussian noise, planned beside Laplace noise

    @classmethod
    def of(cls, **users: Unpack[UserArguments]) -> tuple[PlannedSeries, int | None]:
        """Series of the arguments, and the bound of all slices together, by default k = T M."""
        delta = None if users.get("delta") is None else parse_delta(users["delta"])  # type: ignore[arg-type]
        k, slices = users.get("max_contributions"), users.get("slices")
        if k is not None:
            k = _positive("max_contributions", k, MAX_CONTRIBUTIONS)
        if slices is None:
            if users.get("max_per_slice") is not None:
                raise ParameterError("slices must be given with max_per_slice=, which limits each")
            return cls(delta=delta), k
        number = _positive("slices", slices, MAX_SLICES)
        limit = _positive("max_per_slice", users.get("max_per_slice", 1), MAX_CONTRIBUTIONS)
        k = number * limit if k is None else k
        return cls(slices=number, max_per_slice=limit, delta=delta), k

    @property
    def laws(self) -> tuple[Law, ...]:
        """Laws that are planned beside each other."""
        return ("laplace",) if self.delta is None else ("laplace", "gaussian")

    def loss(self, epsilon: int, law: Law) -> Loss:
        """Loss of a build with a law; epsilon: nano-epsilon."""
        if law == "laplace" or self.delta is None:
            return Loss.pure(epsilon)
        return Loss.gaussian(epsilon, self.delta)

    def chosen(self, method: Decomposition, epsilon: int, contributions: int) -> Law:
        """Law that a build chooses by itself."""
        plan = NoisePlan(
            epsilon=epsilon,
            delta=self.delta,
            contributions=contributions,
            per_question=self.max_per_slice or contributions,
            slices=self.slices,
        )
        return chosen_law(method, plan)


def _positive(name: str, value: object, largest: int) -> int:
    """An integer from 1."""
    checked: int = integer_between(1, largest)(name, value)
    return checked


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """Checked public arguments of a plan."""

    domain: Domain  # study area
    area_km2: float
    count: int  # expected number of records
    epsilons: tuple[int, ...]  # nano-epsilons
    methods: tuple[Decomposition, ...]
    shares: tuple[float, ...]  # of the area that queries cover
    max_contributions: int | None  # of a user in all slices; None if a record is the unit
    series: PlannedSeries = PlannedSeries()
    values: tuple[Value, ...] = ()
    windows: tuple[int, ...] = ()  # numbers of slices, of a method that divides time
    categories: tuple[float, ...] = ()  # parts of the records with each label

    @property
    def unit(self) -> PrivacyUnit:
        """Unit of privacy."""
        if self.max_contributions is None:
            return PrivacyUnit()
        return PrivacyUnit(
            kind="user",
            max_contributions=self.max_contributions,
            max_per_slice=self.series.max_per_slice,
        )


def with_values(people: Tally, values: int, shares: Floats | float = 0.5) -> Tally:
    """Synthetic records with so many values; shares: their place between the bounds, (n,)."""
    if not values:
        return people
    weights = np.floor(shares * people.counts * WEIGHT).astype(np.int64)
    return replace(people, values=np.repeat(weights[:, None], values, axis=1), record_weight=WEIGHT)


def value_measures(values: Sequence[Value]) -> list[str]:
    """Columns of a plan about values: mean absolute errors in the units of the values."""
    return [f"{kind}_{value.name}_off" for value in values for kind in ("mean", "sum")]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedQueries:
    """Queries of each kind of centre and each size."""

    boxes: Floats  # (queries, 4) float64
    kinds: NDArray[np.str_]  # (queries,) "on data" or "anywhere"
    sizes: Floats  # (queries,) float64; shares of the area


def draw_queries(
    request: PlanRequest, x: Floats, y: Floats, weight: Integers, random: np.random.Generator
) -> PlannedQueries:
    """Draw queries, half of them centred on synthetic records; x, y, weight: (n,) of these."""
    centres = random.choice(len(x), CENTRES, p=weight / weight.sum())
    drawn = draw_workload(
        x[centres],
        y[centres],
        request.domain.bounds,
        seed=int(random.integers(2**31)),
        areas=request.shares,
        per_class=QUERIES,
    )
    return PlannedQueries(
        boxes=drawn.boxes,
        kinds=np.where(np.char.startswith(drawn.classes, "on data"), "on data", "anywhere"),
        sizes=np.tile(np.repeat(request.shares, QUERIES), 2),
    )


def simulate_errors(
    request: PlanRequest, density: AssumedDensity, random: np.random.Generator
) -> Iterator[pandas.DataFrame]:
    """Draw a population and yield the errors of all queries, build by build."""
    import pandas as pd

    people = draw_population(
        request.count,
        request.domain,
        density,
        random,
        contributions=request.max_contributions or 1,
    )
    x, y, weight = cell_centres(request.domain, people)
    queries = draw_queries(request, x, y, weight, random)
    boxes = queries.boxes
    true = count_in_boxes(x, y, weight, extend_to_edges(boxes, request.domain))
    base = relative_base(true, request.count)
    # Values rise from west to east, and those of one place differ; so a mean is not that of all.
    west, east = request.domain.bounds[::2]
    shares = 0.25 + 0.5 * (x - west) / (east - west) + random.uniform(-0.25, 0.25, len(x))
    people = with_values(people, len(request.values), np.clip(shares, 0.0, 1.0))
    if people.values is not None:
        extended = extend_to_edges(boxes, request.domain)
        true_upper = count_in_boxes(x, y, people.values[:, 0], extended) / WEIGHT
    for epsilon in request.epsilons:
        for method, law in product(request.methods, request.series.laws):
            budget = Budget(request.series.loss(epsilon, law))
            # The noise of the builds is not drawn from `random`.
            release = draw_release(
                people,
                request.domain,
                budget=budget,
                method=method,
                unit=request.unit,
                squared_sensitivity=squared_of(budget, request.unit, "series", None),
                values=request.values,
            )
            of_values = {}
            for number, value in enumerate(request.values):
                parts = release.index.value_parts(number)
                upper, lower = (np.maximum(box_estimates(part, boxes), 0.0) for part in parts)
                records = upper + lower
                # Place of the mean between the bounds, by the weights towards them.
                share = np.where(records > 0, upper / np.maximum(records, 1e-9), 0.5)
                off = value.width * np.abs(share - true_upper / np.maximum(true, 1))
                off[true == 0] = np.nan  # a query without a record has no mean
                total = value.upper * upper + value.lower * lower
                whole = value.lower * true + value.width * true_upper
                of_values[f"mean_{value.name}_off"] = off
                of_values[f"sum_{value.name}_off"] = np.abs(total - whole)
            difference = np.abs(box_estimates(release.index, boxes) - true)
            yield pd.DataFrame(
                {
                    "epsilon": epsilon_text(epsilon),
                    "method": method.name,
                    "noise": law,
                    "density": density.kind,
                    "centres": queries.kinds,
                    "size_share": queries.sizes,
                    "count": true,
                    "relative_error": difference / base,
                    "absolute_error": difference,
                    **of_values,
                }
            )


def summarise_errors(request: PlanRequest, errors: list[pandas.DataFrame]) -> pandas.DataFrame:
    """Summarise tables of `simulate_errors`: one row per kind of query."""
    import pandas as pd

    axes = [name for name in ("window", "category") if name in errors[0]]
    keys = ["epsilon", "method", "noise", "density", *axes, "centres", "size_share"]
    groups = pd.concat(errors).groupby(keys, sort=False)
    table = groups.agg(
        mean_count=("count", "mean"),
        mean_error=("relative_error", "mean"),
        median_error=("relative_error", "median"),
        error_90=("relative_error", lambda column: column.quantile(0.9)),
        mean_records_off=("absolute_error", "mean"),
        **{name: (name, "mean") for name in value_measures(request.values)},
    ).reset_index()
    table.insert(len(keys) - 1, "size_km2", table["size_share"] * request.area_km2)
    return table.drop(columns="noise") if request.series.delta is None else table
