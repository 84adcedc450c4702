"""What relative error to expect, worked out before any data is touched.

Populations are drawn from public assumptions, built with the real methods and their real noise,
and asked for boxes whose counts are known, because nobody in them exists. Real populations are
neither even nor as clustered as the roughest, so a plan shows a range over several densities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats
from psd._util.fields import integer_between
from psd.decompositions import Decomposition, method
from psd.errors import ParameterError
from psd.evaluation.true_counts import SANITY, centres, inside_boxes
from psd.evaluation.workload import AREAS, workload
from psd.planning.population import DENSITIES, AssumedDensity, population
from psd.privacy.budget import Budget
from psd.privacy.epsilon import epsilon_text, parse_epsilon
from psd.privacy.unit import MAX_CONTRIBUTIONS, PrivacyUnit
from psd.publish.drawing import draw_release
from psd.space.covariate import Covariate
from psd.space.domain import Domain

if TYPE_CHECKING:
    import pandas

    from psd.ingest.tally import Tally

__all__ = [
    "MEASURES",
    "METHODS",
    "Plan",
    "area_of",
    "default_runs",
    "plan",
    "square",
]

METHODS = ("auto", "quadtree")

MEASURES = ("mean_error", "median_error", "error_90", "mean_records_off")

# The whole of humanity, and room.
MOST_RECORDS = 10**11

# No study area is larger than the Earth.
MOST_KM2 = 5.2e8

_QUERIES = 200
_MOST_RUNS = 100
_CENTRES = 10_000
_TIME = 200_000

# Where parallels and meridians stay straight lines.
_EQUAL_AREA = "EPSG:6933"

# Edges of projected bounds are cut into so many pieces, since they are curves on the globe.
_EDGE_POINTS = 101

Progress = Callable[[int, int], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """Errors to expect. Public: made of public parameters alone.

    Parameters
    ----------
    table : DataFrame
        One row per epsilon, method, density, kind of centres and size of query: ``epsilon`` as
        text, ``method``, ``density``, ``centres`` (``"on data"`` or ``"anywhere"``),
        ``size_km2``, ``size_share`` of the area, ``mean_count`` of the queries, and of their
        relative errors ``mean_error``, ``median_error`` and ``error_90`` (nine in ten queries
        have less); ``mean_records_off`` is the mean absolute error.
    area_km2 : float
        Of the domain.
    count : int
        Records that are expected.
    max_contributions : int
        Most records of one user; 1 where a record is the unit of privacy.
    runs : int
        Populations of each density, each built once by each method at each epsilon.
    """

    table: pandas.DataFrame
    area_km2: float
    count: int
    max_contributions: int
    runs: int

    @property
    def ranges(self) -> pandas.DataFrame:
        """Least and most of the assumed densities: ``mean_error_low``, ``mean_error_high``, ..."""
        keys = ["epsilon", "method", "centres", "size_km2", "size_share"]
        groups = self.table.groupby(keys, sort=False)[list(MEASURES)]
        low, high = groups.min().add_suffix("_low"), groups.max().add_suffix("_high")
        return low.join(high).reset_index()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """One call: what is public about it, checked."""

    domain: Domain
    area_km2: float
    count: int
    epsilons: tuple[int, ...]
    methods: tuple[Decomposition, ...]
    shares: tuple[float, ...]
    contributions: int | None

    @property
    def unit(self) -> PrivacyUnit:
        """Unit of privacy."""
        if self.contributions is None:
            return PrivacyUnit()
        return PrivacyUnit(kind="user", max_contributions=self.contributions)


def plan(
    count: int,
    *,
    domain: Domain,
    epsilons: Sequence[str | float | Decimal],
    area_km2: float | None = None,
    methods: Sequence[str | Decomposition] = METHODS,
    sizes: Sequence[float] = AREAS,
    max_contributions: int | None = None,
    densities: Sequence[str] = DENSITIES,
    covariate: Covariate | None = None,
    runs: int | None = None,
    seed: int = 0,
    progress: Progress = lambda done, whole: None,
) -> Plan:
    """Relative errors to expect of releases that do not exist yet.

    Guarantees
    ----------
    - Reads no data and no file: everything is simulated from the arguments.
    - Populations and queries depend on the seed alone; the noise is that of a build, so two
      plans differ by chance.

    Parameters
    ----------
    count : int
        Records that are expected, 1 to 10^11. Public: a guess or a published figure, never
        counted in the data.
    domain : Domain
        Study area; `square` makes one of an area alone.
    epsilons : sequence of str, int, float or Decimal
        Budgets, each once.
    area_km2 : float, optional
        Area of the domain; worked out from its CRS where not given.
    methods : sequence of str or Decomposition
        Methods, each once.
    sizes : sequence of float
        Shares of the area that queries cover, in (0, 1].
    max_contributions : int, optional
        k, the most records of one user, where the user is the unit of privacy.
    densities : sequence of {"uniform", "clustered", "coastal", "places"}
        Assumed densities, see `psd.planning.population.AssumedDensity`.
    covariate : Covariate, optional
        Public density: the assumed ones then rule only inside the cells of its raster. The
        planned releases are built without it.
    runs : int, optional
        Populations of each density; as many as `default_runs` says where not given.
    seed : int
        Of the populations and queries.
    progress : callable
        Told the number of finished builds and of all builds.

    Returns
    -------
    Plan

    Raises
    ------
    ParameterError
        If a parameter is wrong, before anything is drawn.

    Notes
    -----
    The relative error of a query is |estimate - true| / max(true, 0.001 count), as in
    `psd.evaluation.evaluate`. Queries are 200 rectangles of each size and kind of centre per run.
    What a bound per user leaves out is not predicted: the count is that of the rows that are kept.

    Examples
    --------
    >>> found = plan(
    ...     10_000,
    ...     domain=square(100.0),
    ...     epsilons=["1"],
    ...     methods=["quadtree"],
    ...     densities=["uniform"],
    ...     sizes=[0.01],
    ...     runs=1,
    ... )
    >>> found.table[["method", "centres", "size_km2"]].values.tolist()
    [['quadtree', 'anywhere', 1.0], ['quadtree', 'on data', 1.0]]
    """
    question = _Question(
        domain=domain,
        area_km2=area_of(domain) if area_km2 is None else area_km2,
        count=integer_between(1, MOST_RECORDS)("count", count),
        epsilons=_once("epsilon", [parse_epsilon(value) for value in epsilons]),
        methods=_methods(methods),
        shares=_once("size", [_share(size) for size in sizes]),
        contributions=_contributions(max_contributions),
    )
    assumed = [
        AssumedDensity(kind=kind, covariate=covariate) for kind in _once("density", densities)
    ]
    runs = (
        default_runs(question.count)
        if runs is None
        else integer_between(1, _MOST_RUNS)("runs", runs)
    )
    seed = integer_between(0, 2**32 - 1)("seed", seed)
    builds = len(assumed) * runs * len(question.methods) * len(question.epsilons)
    progress(0, builds)
    found = []
    for density in assumed:
        for run in range(runs):
            for answers in _answers(question, density, np.random.default_rng((seed, run))):
                found.append(answers)
                progress(len(found), builds)
    return Plan(
        table=_table(question, found),
        area_km2=question.area_km2,
        count=question.count,
        max_contributions=question.contributions or 1,
        runs=runs,
    )


def default_runs(count: int) -> int:
    """Populations of each density that take seconds, 1 to 5."""
    return min(max(_TIME // count, 1), 5)


def square(area_km2: float) -> Domain:
    """A square of some area in metres of its own, for plans that need no place.

    Raises
    ------
    ParameterError
        If the area is not above 0 and at most that of the Earth.
    """
    if not 0 < area_km2 <= MOST_KM2:
        raise ParameterError(
            f"area {area_km2:g} km2 is not above 0 and at most {MOST_KM2:,.0f} km2, the whole Earth"
        )
    side = 1_000 * float(np.sqrt(area_km2))
    return Domain(bounds=(0, 0, side, side), crs='LOCAL_CS["study area",UNIT["metre",1]]')


def area_of(domain: Domain) -> float:
    """Square kilometres inside the bounds, on the ellipsoid where the CRS has one."""
    from pyproj import CRS, Transformer

    west, south, east, north = domain.bounds
    crs = CRS.from_user_input(domain.crs)
    if crs.geodetic_crs is None:
        unit = crs.axis_info[0].unit_conversion_factor or 1.0
        return float((east - west) * (north - south) * unit**2) / 1e6
    if crs.is_geographic:
        there = Transformer.from_crs(crs, _EQUAL_AREA, always_xy=True)
        x, y = there.transform([west, east], [south, north])
        return float((x[1] - x[0]) * (y[1] - y[0])) / 1e6
    x, y = np.linspace(west, east, _EDGE_POINTS), np.linspace(south, north, _EDGE_POINTS)
    around = (
        np.concatenate([x, np.full_like(y, east), x[::-1], np.full_like(y, west)]),
        np.concatenate([np.full_like(x, south), y, np.full_like(x, north), y[::-1]]),
    )
    there = Transformer.from_crs(crs, crs.geodetic_crs, always_xy=True)
    geod = crs.get_geod()
    assert geod is not None
    return abs(float(geod.polygon_area_perimeter(*there.transform(*around))[0])) / 1e6


def _once(what: str, given: Sequence[T]) -> tuple[T, ...]:
    """Values of a list that is not empty and holds each once."""
    if not given:
        raise ParameterError(f"no {what} is given to plan for")
    for item in given:
        if list(given).count(item) > 1:
            shown = epsilon_text(item) if isinstance(item, int) else item
            raise ParameterError(f"{what} {shown} is given {list(given).count(item)} times")
    return tuple(given)


def _share(size: float) -> float:
    """Share of the area, or a clear refusal."""
    if not 0 < size <= 1:
        raise ParameterError(
            f"a query of {100 * size:g} % of the area is none; sizes are above 0 and at most 100 %"
        )
    return float(size)


def _methods(asked: Sequence[str | Decomposition]) -> tuple[Decomposition, ...]:
    """Methods, each once."""
    made = [method(item) if isinstance(item, str) else item for item in asked]
    _once("method", [item.name for item in made])
    return tuple(made)


def _contributions(bound: int | None) -> int | None:
    """Bound per user, or none."""
    return (
        None if bound is None else integer_between(1, MAX_CONTRIBUTIONS)("max_contributions", bound)
    )


def _answers(
    question: _Question, density: AssumedDensity, random: np.random.Generator
) -> Iterator[pandas.DataFrame]:
    """Errors of all queries about one population, build by build."""
    import pandas as pd

    bound = question.contributions or 1
    people = population(question.count, question.domain, density, random, contributions=bound)
    boxes, kinds, sizes, true = _queries(question, people, random)
    base = np.maximum(true, SANITY * question.count)
    for epsilon in question.epsilons:
        for chosen in question.methods:
            release = draw_release(
                people, question.domain, budget=Budget(epsilon), method=chosen, unit=question.unit
            )
            off = np.abs(release.estimate(boxes) - true)
            yield pd.DataFrame(
                {
                    "epsilon": epsilon_text(epsilon),
                    "method": chosen.name,
                    "density": density.kind,
                    "centres": kinds,
                    "size_share": sizes,
                    "count": true,
                    "error": off / base,
                    "off": off,
                }
            )


def _queries(
    question: _Question, people: Tally, random: np.random.Generator
) -> tuple[Floats, NDArray[np.str_], Floats, NDArray[np.int64]]:
    """Boxes, the kinds of their centres, their sizes and what they hold."""
    x, y, weight = centres(question.domain, people)
    some = random.choice(len(x), _CENTRES, p=weight / weight.sum())
    seed = int(random.integers(2**31))
    asked = workload(
        x[some],
        y[some],
        question.domain.bounds,
        seed=seed,
        areas=question.shares,
        per_class=_QUERIES,
    )
    kinds = np.where(np.char.startswith(asked.classes, "on data"), "on data", "anywhere")
    sizes = np.tile(np.repeat(question.shares, _QUERIES), 2)
    return asked.boxes, kinds, sizes, inside_boxes(x, y, weight, asked.boxes)


def _table(question: _Question, found: list[pandas.DataFrame]) -> pandas.DataFrame:
    """Summaries of all queries alike."""
    import pandas as pd

    keys = ["epsilon", "method", "density", "centres", "size_share"]
    groups = pd.concat(found).groupby(keys, sort=False)
    table = groups.agg(
        mean_count=("count", "mean"),
        mean_error=("error", "mean"),
        median_error=("error", "median"),
        error_90=("error", lambda errors: errors.quantile(0.9)),
        mean_records_off=("off", "mean"),
    ).reset_index()
    table.insert(4, "size_km2", table["size_share"] * question.area_km2)
    return table
