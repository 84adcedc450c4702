"""Expected relative errors of a release, before any data is read.

Synthetic populations are built with the real methods and noise. A real one is less even than the
uniform and less clustered than the most clustered, so a plan shows a range over densities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from psd._util.declared_parameters import integer_between
from psd.apps.evaluation.workload import (
    AREAS,
    Epsilon,
    check_distinct,
    listed,
    parse_epsilons,
    resolve_methods,
)
from psd.apps.planning._constants import (
    MAX_PLAN_EPSILON,
    METHODS,
    RECORDS_IN_ALL_RUNS,
    SIMULATED_STEPS,
)
from psd.apps.planning.cube_plan import check_categories, check_windows, simulate_cube_errors
from psd.apps.planning.population import (
    DENSITIES,
    AssumedDensity,
    domain_area_km2,
    km2_of,
    square_domain,
)
from psd.apps.planning.simulation import (
    PlannedSeries,
    PlanRequest,
    UserArguments,
    simulate_errors,
    summarise_errors,
    value_measures,
)
from psd.decompositions import Decomposition
from psd.errors import ParameterError
from psd.privacy.loss import epsilon_text
from psd.privacy.values import Value, check_values
from psd.publish.area import with_stated_crs
from psd.publish.fields import check_known, refuse_tables
from psd.publish.request import MOST_APART
from psd.publish.request_values import domain_from_values, parse_values
from psd.space.bounds import check_ground
from psd.space.covariate import Covariate
from psd.space.domain import Domain, public_domain

if TYPE_CHECKING:
    import pandas

__all__ = ["METHODS"]

MEASURES = ("mean_error", "median_error", "error_90", "mean_records_off")

MAX_RECORDS = 10**11
"""Limit of the number of records: more than ten for each human being."""

_MAX_RUNS = 100

# Names of arguments that what is guessed in their place is answered by.
_OWN_ARGUMENTS = ("count", "epsilon", "area", "bounds", "crs", "method")

# How far below the target an error is that is near enough.
_CLOSE = 0.1

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """Expected errors. Public: they follow from public parameters alone.

    ``table`` has a row per epsilon, method, density, centres (``"on data"`` or ``"anywhere"``) and
    size of query: ``size_km2``, ``size_share`` of the area, ``mean_count``; ``mean_error``,
    ``median_error`` and ``error_90`` (90th percentile) of the relative errors,
    ``mean_records_off``, the mean absolute error in records; with a delta ``noise``, "laplace" or
    "gaussian"; of a cube ``window``, the number of slices that are answered as one, and
    ``category``, the part of the records with the label; with values ``mean_fare_off`` and
    ``sum_fare_off``, the mean absolute errors of means and sums. ``count`` is of records, and
    ``runs`` of populations of each density. ``min_cell`` is in metres, ``coordinate_resolution`` in
    units of the CRS; ``chosen`` is the law that a build chooses, with a delta, for each epsilon and
    method; ``solved`` is the epsilon for a relative error.
    """

    table: pandas.DataFrame
    area_km2: float
    count: int
    max_contributions: int
    runs: int
    coordinate_resolution: str | None = None
    min_cell: str | None = None
    series: PlannedSeries = PlannedSeries()  # noqa: RUF009 - frozen
    chosen: Mapping[tuple[str, str], str] = field(default_factory=dict)
    values: tuple[Value, ...] = ()
    solved: Decimal | None = None

    def to_frame(self) -> pandas.DataFrame:
        """A copy of `table`."""
        return self.table.copy()

    @property
    def ranges(self) -> pandas.DataFrame:
        """Smallest and largest value of each measure over the densities."""
        keys = ["epsilon", "method", "noise", "window", "category"]
        keys += ["centres", "size_km2", "size_share"]
        keys = [key for key in keys if key in self.table]
        groups = self.table.groupby(keys, sort=False)[[*MEASURES, *value_measures(self.values)]]
        low, high = groups.min().add_suffix("_low"), groups.max().add_suffix("_high")
        return low.join(high).reset_index()


def plan(
    count: int,
    *,
    epsilon: Epsilon | Sequence[Epsilon] | None = None,
    area: Any = None,
    bounds: Any = None,
    crs: str | None = None,
    domain: Domain | tuple[float, float, float, float] | None = None,
    methods: str | Decomposition | Sequence[str | Decomposition] = METHODS,
    method: str | Decomposition | None = None,
    sizes: Sequence[float] = AREAS,
    windows: Sequence[int] | None = None,
    categories: int | Sequence[float] | None = None,
    for_relative_error: float | None = None,
    density: str | Sequence[str] = DENSITIES,
    covariate: Covariate | None = None,
    values: Any = None,
    runs: int | None = None,
    seed: int = 0,
    progress: Progress = lambda finished, builds: None,
    **users: Unpack[UserArguments],
) -> Plan:
    """Predict the relative errors of a release by simulation.

    Guarantees
    ----------
    - Reads no data and no file: everything is simulated from the arguments.
    - Populations and queries depend on the seed alone. The noise is that of a build, so two plans
      differ by chance.

    Parameters
    ----------
    count : int
        Expected number of records, 1 to 10^11. Public: a guess or a published figure, never
        counted in the data.
    epsilon : str, int, float, Decimal or sequence of these
        Epsilons of the builds, each once; with `for_relative_error` the largest that may be the
        solution, 10 by default.
    area : float, path-like, GeoDataFrame, GeoSeries or geometry, optional
        Study area in km2: a square of this area, or the size of the bounds, which by default have
        their area on the ground. Or public polygons, or a file of them, whose area on the ellipsoid
        it is; a geometry is in ``crs``.
    bounds, crs : optional
        Study area, as in `psd.build`.
    domain : Domain or tuple of four numbers, optional
        Study area as one value. With a coordinate resolution, the simulated records are rounded to
        it.
    methods : str, Decomposition or sequence of these
        Methods, each once; by default auto and quadtree, or as in a build cube, of more than 8
        slices without values.
    method : str or Decomposition, optional
        The only method, under the name that it has in `psd.build`.
    sizes : sequence of float
        Shares of the area that queries cover, in (0, 1], each once.
    windows : sequence of int, optional
        With `slices` and a method that divides time, such as ``"cube"``: numbers of consecutive
        slices that are answered as one; by default 1, about the root of all, and all.
    categories : int or sequence of float, optional
        With windows: number of labels of a category, 2 to 100, of which each has as many records,
        or public parts of the records that have each, which sum to 1. Queries are of one label.
        The simulated labels do not depend on the place or the time.
    for_relative_error : float, optional
        With windows: mean relative error, in (0, 1], for which epsilon is solved, of queries of one
        size centred on data in one window, under the assumed density where it is largest.
    density : {"uniform", "clustered", "coastal", "places"} or sequence of these
        Assumed densities, each once; see `psd.apps.planning.population.AssumedDensity`.
    covariate : Covariate, optional
        Public density. The assumed densities then apply only inside the cells of its raster. The
        simulated releases are built without it.
    values : mapping of str to pair of float, optional
        Values of the release with their public bounds, as in `psd.build`. The simulated ones rise
        from a quarter between the bounds in the west to three quarters in the east, and those of
        one place differ by up to a quarter to both sides; so means are typical, not worst. The
        noise of a mean near a bound is up to 1.41 times as large as in the middle.
    runs : int, optional
        Populations of each density; by default `default_runs` of the count.
    seed : int
        Seed of the populations and queries.
    progress : callable
        Called with the number of finished builds and the number of all builds.
    **users
        Bounds of users, slices and delta, as in `psd.apps.planning.simulation.UserArguments`.

    Returns
    -------
    Plan

    Raises
    ------
    ParameterError
        If an argument is wrong; raised before anything is drawn.

    Notes
    -----
    The relative error of a query is ``|estimate - true| / max(true, 0.001 count)``, as in
    `psd.apps.evaluation.evaluate`. Queries are 200 rectangles of each size and kind of centre per
    run. The count is that of the records after contributions are bounded; the error of the bound
    itself is not predicted.

    Examples
    --------
    >>> import psd
    >>> expected = psd.plan(
    ...     10_000,
    ...     area=100.0,
    ...     epsilon=1,
    ...     methods=["quadtree"],
    ...     density="uniform",
    ...     sizes=[0.01],
    ...     runs=1,
    ... )
    >>> expected.table[["method", "centres", "size_km2"]].values.tolist()
    [['quadtree', 'anywhere', 1.0], ['quadtree', 'on data', 1.0]]
    """
    refuse_tables({"crs": crs})
    public = {"bounds": bounds, "crs": crs, "domain": domain, "values": values}
    given = parse_values(with_stated_crs(public))
    stated = domain_from_values(given, domain)
    area_km2 = km2_of(area, crs)
    # Of domain and area one may follow from the other.
    if stated is not None:
        domain = public_domain(stated)
        check_ground(domain.bounds, domain.crs)
        area_km2 = domain_area_km2(domain) if area_km2 is None else area_km2
    elif area_km2 is None:
        raise ParameterError("area, in km2, or bounds must be given, got neither")
    else:
        domain = square_domain(area_km2)
    if method is not None:
        if methods is not METHODS:
            raise ParameterError("methods must be left out with method, which is the only one")
        methods = [method]
    if "regions" in users:
        raise ParameterError(
            "regions must be left out here; psd.apps.planning.plan_regions(regions, ...) predicts "
            "their errors",
            name="regions",
        )
    check_known("argument", users, (*UserArguments.__annotations__, *_OWN_ARGUMENTS))
    series, bound = PlannedSeries.of(**users)
    if methods is METHODS and series.slices > MOST_APART and not given.get("values"):
        methods = "cube"  # as in a build that names none
    resolved = resolve_methods(methods)
    lengths = check_windows(resolved, series.slices, windows)
    parts = check_categories(categories, lengths)
    largest = None
    if for_relative_error is not None:
        if not lengths or len(lengths) > 1 or len(sizes) > 1:
            raise ParameterError(
                "for_relative_error must be given with method cube, slices, one size and one "
                f"window, got {len(sizes)} sizes and {len(lengths)} windows",
                name="for_relative_error",
            )
        if not isinstance(for_relative_error, int | float) or not 0 < for_relative_error <= 1:
            raise ParameterError(
                f"for_relative_error must be above 0 % and at most 100 %, got {for_relative_error}",
                name="for_relative_error",
            )
        epsilon = MAX_PLAN_EPSILON if epsilon is None else epsilon
    elif epsilon is None:
        raise ParameterError("epsilon must be given, got none", name="epsilon")
    epsilons = parse_epsilons(epsilon)
    if for_relative_error is not None:
        if len(epsilons) > 1:
            raise ParameterError(
                "epsilon must be one with for_relative_error, the largest that may be the "
                f"solution, got {len(epsilons)}",
                name="epsilon",
            )
        largest = epsilons[0]
    for size in sizes:
        if not 0 < size <= 1:
            raise ParameterError(
                f"sizes must be above 0 % and at most 100 % of the area, got {100 * size:g} %"
            )
    request = PlanRequest(
        domain=domain,
        area_km2=area_km2,
        count=integer_between(1, MAX_RECORDS)("count", count),
        epsilons=epsilons,
        methods=resolved,
        shares=check_distinct(
            "sizes", [float(size) for size in sizes], [str(float(size)) for size in sizes]
        ),
        max_contributions=bound,
        series=series,
        values=check_values(given.get("values", ())),
        windows=lengths,
        categories=parts,
    )
    if lengths and request.values:
        raise ParameterError("values must be left out of a plan of cubes", name="values")
    if lengths and request.count * series.slices > MAX_RECORDS:
        raise ParameterError(
            f"count must be at most {MAX_RECORDS // series.slices:,} in each of "
            f"{series.slices:,} slices, got {request.count:,}",
            name="count",
        )
    _ = request.unit  # refuses bounds that contradict each other
    names = listed(density)
    assumed = [
        AssumedDensity(kind=kind, covariate=covariate)
        for kind in check_distinct("density", names, list(names))
    ]
    if runs is None:
        runs = default_runs(request.count * (series.slices if lengths else 1))
    runs = integer_between(1, _MAX_RUNS)("runs", runs)
    seed = integer_between(0, 2**32 - 1)("seed", seed)
    builds = len(assumed) * runs * len(request.methods) * len(request.epsilons) * len(series.laws)
    times = 1 if largest is None else SIMULATED_STEPS
    progress(0, times * builds)
    simulate = simulate_cube_errors if lengths else simulate_errors
    finished = 0

    def table_of(request: PlanRequest) -> pandas.DataFrame:
        """Summary of the errors of all builds."""
        nonlocal finished
        errors: list[pandas.DataFrame] = []
        for population, run in product(assumed, range(runs)):
            # The generator of a run does not depend on the density.
            for table in simulate(request, population, np.random.default_rng((seed, run))):
                errors.append(table)
                finished += 1
                progress(finished, times * builds)
        return summarise_errors(request, errors)

    solved = None
    if largest is None or for_relative_error is None:
        table = table_of(request)
    else:
        solved, table = _solve(request, for_relative_error, largest, table_of)
        request = replace(request, epsilons=(solved,))
        progress(times * builds, times * builds)
    chosen = {}
    if series.delta is not None:
        chosen = {
            (epsilon_text(nano), method.name): series.chosen(method, nano, bound or 1)
            for nano, method in product(request.epsilons, request.methods)
        }
    return Plan(
        table=table,
        area_km2=request.area_km2,
        count=request.count,
        max_contributions=bound or 1,
        runs=runs,
        coordinate_resolution=domain.coordinate_resolution,
        min_cell=domain.min_cell,
        series=series,
        chosen=chosen,
        values=request.values,
        solved=None if solved is None else Decimal(epsilon_text(solved)),
    )


def _solve(
    request: PlanRequest,
    target: float,
    largest: int,
    table_of: Callable[[PlanRequest], pandas.DataFrame],
) -> tuple[int, pandas.DataFrame]:
    """Least epsilon that was tried whose simulated error is at most a target, and its table."""
    [method] = request.methods
    tried, low, power = largest, 1, 0.5  # the error is above the target at the second
    best: tuple[int, pandas.DataFrame] | None = None
    last: tuple[int, float] | None = None
    for _ in range(SIMULATED_STEPS):
        table = table_of(replace(request, epsilons=(tried,)))
        people = table[table["centres"] == "on data"]
        if "noise" in people:
            law = request.series.chosen(method, tried, request.max_contributions or 1)
            people = people[people["noise"] == law]
        error = max(float(people["mean_error"].max()), 1e-9)
        if error <= target:
            best = tried, table
            if error >= (1 - _CLOSE) * target:
                break
        elif best is None:
            raise ParameterError(
                f"for_relative_error must be at least {100 * error:.3g} %, which epsilon "
                f"{epsilon_text(largest)} gives, got {100 * target:.3g} %; ask for larger areas or "
                "windows, or allow a larger epsilon",
                name="for_relative_error",
            )
        else:
            low = tried
        # A power of epsilon through the last two errors, which differ by chance.
        if last is not None:
            power = np.log(error / last[1]) / np.log(last[0] / tried)
            power = min(max(power, 0.25), 1.0)
        last = tried, error
        step = tried * (error / target) ** (1 / power)
        if not low < step < best[0]:  # half-way, as a ratio
            step = (low * best[0]) ** 0.5
        tried = int(float(f"{step:.2g}"))
        if not low < tried < best[0]:
            break
    assert best is not None  # of the largest epsilon at least
    return best


def default_runs(count: int) -> int:
    """Populations of each density so that a plan takes seconds, 1 to 5."""
    return min(max(RECORDS_IN_ALL_RUNS // count, 1), 5)
