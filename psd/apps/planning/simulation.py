"""Simulated builds: errors of queries on populations that were drawn from an assumed density."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats
from psd.apps.evaluation.true_counts import (
    cell_centres,
    count_in_boxes,
    extend_to_edges,
    relative_base,
)
from psd.apps.evaluation.workload import draw_workload
from psd.apps.planning._constants import CENTRES, QUERIES
from psd.apps.planning.planned_series import PlannedSeries
from psd.apps.planning.population import AssumedDensity, draw_population
from psd.decompositions import Decomposition
from psd.privacy.budget import Budget
from psd.privacy.loss import epsilon_text
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release, squared_of
from psd.query.boxes import box_estimates
from psd.space.domain import Domain

if TYPE_CHECKING:
    import pandas

    from psd.ingest.tally import Tally

__all__ = ["PlanRequest", "simulate_errors", "summarise_errors"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """Checked public arguments of a plan.

    Parameters
    ----------
    domain : Domain
        Study area.
    area_km2 : float
        Area of the domain.
    count : int
        Expected number of records.
    epsilons : tuple of int
        Nano-epsilons.
    methods : tuple of Decomposition
        Methods.
    shares : tuple of float
        Shares of the area that queries cover.
    max_contributions : int or None
        Bound per user, in all slices together; None if a record is the unit of privacy.
    series : PlannedSeries, optional
        Time slices and delta; a single release without delta by default.
    """

    domain: Domain
    area_km2: float
    count: int
    epsilons: tuple[int, ...]
    methods: tuple[Decomposition, ...]
    shares: tuple[float, ...]
    max_contributions: int | None
    series: PlannedSeries = PlannedSeries()  # noqa: RUF009 - frozen

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


def simulate_errors(
    request: PlanRequest, density: AssumedDensity, random: np.random.Generator
) -> Iterator[pandas.DataFrame]:
    """Draw a population and yield the errors of all queries, build by build.

    Parameters
    ----------
    request : PlanRequest
        Arguments of the plan.
    density : AssumedDensity
        Density of the population.
    random : numpy.random.Generator
        Generator of the population and the queries; the noise of the builds is not drawn from it.
    """
    import pandas as pd

    people = draw_population(
        request.count,
        request.domain,
        density,
        random,
        contributions=request.max_contributions or 1,
    )
    boxes, kinds, sizes, true = _draw_queries(request, people, random)
    base = relative_base(true, request.count)
    for epsilon in request.epsilons:
        for method, law in product(request.methods, request.series.laws):
            budget = Budget(request.series.loss(epsilon, law))
            release = draw_release(
                people,
                request.domain,
                budget=budget,
                method=method,
                unit=request.unit,
                squared_sensitivity=squared_of(budget, request.unit, "series", None),
            )
            difference = np.abs(box_estimates(release.index, boxes) - true)
            yield pd.DataFrame(
                {
                    "epsilon": epsilon_text(epsilon),
                    "method": method.name,
                    "noise": law,
                    "density": density.kind,
                    "centres": kinds,
                    "size_share": sizes,
                    "count": true,
                    "relative_error": difference / base,
                    "absolute_error": difference,
                }
            )


def _draw_queries(
    request: PlanRequest, people: Tally, random: np.random.Generator
) -> tuple[Floats, NDArray[np.str_], Floats, NDArray[np.int64]]:
    """Boxes, the kinds of their centres, their sizes and their true counts."""
    x, y, weight = cell_centres(request.domain, people)
    centres = random.choice(len(x), CENTRES, p=weight / weight.sum())
    seed = int(random.integers(2**31))
    queries = draw_workload(
        x[centres],
        y[centres],
        request.domain.bounds,
        seed=seed,
        areas=request.shares,
        per_class=QUERIES,
    )
    kinds = np.where(np.char.startswith(queries.classes, "on data"), "on data", "anywhere")
    sizes = np.tile(np.repeat(request.shares, QUERIES), 2)
    true = count_in_boxes(x, y, weight, extend_to_edges(queries.boxes, request.domain))
    return queries.boxes, kinds, sizes, true


def summarise_errors(request: PlanRequest, errors: list[pandas.DataFrame]) -> pandas.DataFrame:
    """Summarise the errors of all builds: one row per kind of query.

    Parameters
    ----------
    request : PlanRequest
        Arguments of the plan.
    errors : list of DataFrame
        Tables of `simulate_errors`.
    """
    import pandas as pd

    keys = ["epsilon", "method", "noise", "density", "centres", "size_share"]
    groups = pd.concat(errors).groupby(keys, sort=False)
    table = groups.agg(
        mean_count=("count", "mean"),
        mean_error=("relative_error", "mean"),
        median_error=("relative_error", "median"),
        error_90=("relative_error", lambda column: column.quantile(0.9)),
        mean_records_off=("absolute_error", "mean"),
    ).reset_index()
    table.insert(5, "size_km2", table["size_share"] * request.area_km2)
    return table.drop(columns="noise") if request.series.delta is None else table
