"""Expected errors of named regions, and the epsilon for an expected error. Public.

They are those of least squares on the tree of a build with public populations, as releases state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from psd._util.arrays import Floats, sum_by
from psd._util.declared_parameters import integer_between
from psd._util.instances import check_choice
from psd.apps.evaluation.workload import Epsilon, parse_epsilons
from psd.apps.planning._constants import MAX_PLAN_EPSILON, SOLVE_STEPS
from psd.apps.planning.cube_plan import check_windows
from psd.apps.planning.plan import MAX_RECORDS
from psd.apps.planning.population import (
    Populations,
    draw_region_population,
    read_populations,
    region_populations,
)
from psd.apps.planning.region_cube_plan import in_slices, window_errors
from psd.apps.planning.simulation import PlannedSeries, UserArguments, with_values
from psd.decompositions import Decomposition, Regions, as_region_method
from psd.errors import ParameterError
from psd.estimation.fit import fit_least_squares
from psd.privacy.budget import Budget
from psd.privacy.loss import epsilon_text
from psd.privacy.unit import PrivacyUnit
from psd.privacy.values import Value, check_values
from psd.publish.area import with_stated_crs
from psd.publish.drawing import draw_release, squared_of
from psd.publish.fields import check_known, refuse_tables
from psd.publish.insecure import SeededSampler
from psd.publish.public_inputs import (
    PublicInputs,
    resolve_post_processing,
    resolve_public_inputs,
)
from psd.publish.request_values import (
    boundary_from_values,
    hierarchy_from_values,
    parse_values,
    public_domain_from_values,
    regions_from_values,
    with_gaps,
)
from psd.query.answer_table import judge_estimates, relative_to, reliability_limits
from psd.regions.hierarchy import RegionHierarchy
from psd.space.bounds import check_ground
from psd.space.domain import Domain
from psd.space.region_tree import RegionTree

if TYPE_CHECKING:
    import pandas

    from psd.ingest.tally import Tally
    from psd.publish.noise_choice import Law


# Solved epsilons have three digits; this is the least that they are.
_LEAST_NANO = 1_000

_CLOSE = 0.005

# Names of arguments that what is guessed in their place is answered by.
_OWN_ARGUMENTS = ("count", "epsilon", "region_id", "bounds", "crs", "method")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegionPlan:
    """Expected errors of the regions of each level. Public.

    ``table`` has a row per epsilon and level, with a delta per ``noise`` ("laplace" or "gaussian"),
    and of a cube per ``window``, the number of slices that are answered as one: ``error``, the root
    mean square over the regions of the predicted standard deviation, in records; ``mean_error``,
    ``median_error`` and ``error_90`` (90th percentile) of the relative errors, error / population,
    of regions with a population; and the numbers of regions that are ``good``, ``use_with_care``
    and ``poor``. With values ``mean_fare_error`` and ``sum_fare_error`` are root mean squares of
    standard deviations: of means at one of their bounds, the largest ones; in the middle it is 0.71
    times as large. ``count`` is of records, in each slice; ``max_contributions`` of a user, in all
    slices together; ``inside``: what the lowest regions have; ``chosen`` and ``solved`` as in
    `psd.apps.planning.plan.Plan`.
    """

    table: pandas.DataFrame
    count: float
    max_contributions: int
    solved: Decimal | None
    inside: str
    series: PlannedSeries = PlannedSeries()  # noqa: RUF009 - frozen
    chosen: Mapping[tuple[str, str], str] = field(default_factory=dict)
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Request:
    """Checked arguments, and the synthetic records."""

    hierarchy: RegionHierarchy
    expected: Floats
    people: Tally
    method: Regions | Decomposition
    inputs: PublicInputs
    unit: PrivacyUnit
    series: PlannedSeries
    seed: int
    values: tuple[Value, ...] = ()
    windows: tuple[int, ...] = ()  # of a cube

    def chosen(self, epsilon: int) -> Law:
        """Law that a build chooses by itself."""
        return self.series.chosen(self.method, epsilon, self.unit.contributions)


def plan_regions(
    regions: Any,
    *,
    epsilon: Epsilon | Sequence[Epsilon] = (),
    region_id: Any = None,
    region_parent: Any = None,
    gaps: str | None = None,
    tolerance: float | None = None,
    repair: bool | None = None,
    bounds: Any = None,
    crs: str | None = None,
    domain: Domain | tuple[float, float, float, float] | None = None,
    population: Populations = None,
    count: int | None = None,
    method: str | Regions | Decomposition = "auto",
    windows: Sequence[int] | None = None,
    for_relative_error: float | None = None,
    values: Any = None,
    for_mean_error: tuple[str, float] | None = None,
    for_sum_error: tuple[str, float] | None = None,
    level: str | None = None,
    covariate: Any = None,
    boundary: Any = None,
    seed: int = 0,
    **users: Unpack[UserArguments],
) -> RegionPlan:
    """Predict the errors of named regions on every level, or solve for epsilon.

    Guarantees
    ----------
    - Reads no records: public regions and population, and what is drawn from a seed. The same
      arguments give the same plan.

    Parameters
    ----------
    regions, region_id, region_parent, gaps, tolerance, repair
        Public regions, as in `psd.build`.
    epsilon : str, int, float, Decimal or sequence of these
        Epsilons of the plan, each once. With a relative error the largest that may be the solution,
        10 by default.
    bounds, crs : optional
        Of the release, as in `psd.build`: by default those of the boundary, else of the regions.
    domain : Domain or tuple of four numbers, optional
        Of the release, as one value.
    population : str, mapping or sequence, optional
        Public numbers of the lowest regions: a column of their file or table, numbers by id, or
        numbers in the order of the hierarchy. By default all regions have the same number.
    count : int, optional
        Expected number of records, 1 to 10^11, to which populations are scaled; by default their
        sum. With slices, in one of them. Public: a guess or a published figure, never counted in
        the data.
    method : {"auto", "cascade", "none", "cube"} or Regions or Decomposition
        What is inside the lowest regions, and how epsilon is shared out; or with slices a cube.
    windows : sequence of int, optional
        With slices and method ``"cube"``: numbers of consecutive slices that are answered as one;
        by default 1, about the root of all, and all.
    for_relative_error : float, optional
        Mean relative error of the regions of a level for which epsilon is solved, above 0 and at
        most 1, in one window of a cube. The plan is then of this epsilon. With a delta, of the law
        that a build chooses.
    values : mapping of str to pair of float, optional
        Values of the release with their public bounds, as in `psd.build`.
    for_mean_error, for_sum_error : tuple of str and float, optional
        A value and the error of its means or sums, in its unit, for which epsilon is solved.
    level : str, optional
        Level of the error that epsilon is solved for; the lowest by default.
    covariate, boundary : optional
        Public, as of `psd.build`. The synthetic records of a region follow the covariate and lie
        inside the boundary, and so does what is inside the region.
    seed : int
        Seed of the positions of the synthetic records, and of their noise.
    **users
        Bounds of users, slices and delta, as in `psd.apps.planning.simulation.UserArguments`.

    Returns
    -------
    RegionPlan

    Raises
    ------
    ParameterError
        If an argument is wrong, or no epsilon up to the largest one gives the relative error.
    InputDataError, DomainError
        If the files of the regions cannot be read.

    Notes
    -----
    Records are spread in each lowest region evenly, or as the covariate says. The real method
    shares epsilon out and divides the regions; the error of a region is the standard deviation of
    its least-squares estimate in that tree. With slices it is that of one slice; a sum over n
    slices has sqrt(n) times this error. Of a cube it is that of an answer, by the noise and by
    uneven cells, in windows of slices whose shares differ from region to region. The errors of
    bounding contributions are not predicted.

    Examples
    --------
    >>> import psd
    >>> expected = psd.apps.planning.plan_regions(
    ...     psd.regions.CellRegions(kind="grid-cells", cells="2,4"),
    ...     domain=psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857"),
    ...     epsilon=1,
    ...     count=16_000,
    ...     method="none",
    ... )
    >>> expected.table[["level", "regions", "error"]].round(1).values.tolist()
    [['4m', 4, 2.5], ['2m', 16, 2.5]]
    """
    check_known("argument", users, (*UserArguments.__annotations__, *_OWN_ARGUMENTS))
    refuse_tables({"crs": crs, "region_id": region_id, "region_parent": region_parent})
    public = {
        "bounds": bounds,
        "crs": crs,
        "domain": domain,
        "boundary": boundary,
        "regions": regions,
        "region_id": region_id,
        "region_parent": region_parent,
        "gaps": gaps,
        "tolerance": tolerance,
        "repair": repair,
        "values": values,
    }
    given = with_gaps(parse_values(with_stated_crs(public)), domain)
    source, limits = regions_from_values(given), boundary_from_values(given)
    area = public_domain_from_values(given, domain, limits, source)
    check_ground(area.bounds, area.crs)
    series, k = PlannedSeries.of(**users)
    method = as_region_method(method)
    is_cube = not isinstance(method, Regions)
    if is_cube and series.slices == 1:
        raise ParameterError(
            f"slices must be given with method {method.name}, which counts regions in time",
            name="slices",
        )
    lengths = check_windows([method], series.slices, windows)
    own = resolve_post_processing(method, estimate=None, density="uniform")
    inputs = resolve_public_inputs(area, own, covariate=covariate, boundary=limits)
    hierarchy = hierarchy_from_values(source, given, area, inputs.boundary)
    if isinstance(population, str):
        if isinstance(source, RegionHierarchy):
            raise ParameterError("population must be numbers with a psd.regions.RegionHierarchy")
        population = read_populations(source, population, given.get("region_id", ()))
    if count is not None:
        count = integer_between(1, MAX_RECORDS)("count", count)
    expected = region_populations(hierarchy, population, count)
    unit = PrivacyUnit()
    if k is not None:
        limit = series.max_per_slice
        unit = PrivacyUnit(kind="user", max_contributions=k, max_per_slice=limit)
    seed = integer_between(0, 2**32 - 1)("seed", seed)
    of_values = check_values(given.get("values", ()))
    if is_cube and of_values:
        raise ParameterError("values must be left out of a plan of cubes", name="values")
    number = float(expected.sum()) * (series.slices if is_cube else 1)
    if number > MAX_RECORDS:
        raise ParameterError(
            f"count must be at most {MAX_RECORDS // series.slices:,} in each of "
            f"{series.slices:,} slices",
            name="count",
        )
    # One population for all epsilons, so that errors differ by the epsilons alone.
    random = np.random.default_rng(seed)
    people = draw_region_population(
        hierarchy,
        expected * series.slices if is_cube else expected,
        random,
        unit.contributions,
        covariate=inputs.covariate,
        area=inputs.boundary,
    )
    if is_cube:
        people = in_slices(people, series.slices, random)
    request = _Request(
        hierarchy=hierarchy,
        expected=expected,
        people=with_values(people, len(of_values)),
        values=of_values,
        method=method,
        inputs=inputs,
        unit=unit,
        series=series,
        seed=seed,
        windows=lengths,
    )
    names = [each.name for each in hierarchy.levels]
    if level is not None:
        check_choice("level", level, names)
    solved = None
    targets = {
        "for_relative_error": for_relative_error,
        "for_mean_error": for_mean_error,
        "for_sum_error": for_sum_error,
    }
    asked = [name for name, target in targets.items() if target is not None]
    if len(asked) > 1:
        raise ParameterError(f"{asked[1]} must be left out with {asked[0]}", name=asked[1])
    if asked:
        [kind], tier = asked, len(names) - 1 if level is None else names.index(level)
        largest = parse_epsilons(epsilon or (MAX_PLAN_EPSILON,))
        if len(largest) > 1:
            raise ParameterError(
                f"epsilon must be one with {kind}, the largest that may be the solution, got "
                f"{len(largest)}",
                name="epsilon",
            )
        if len(lengths) > 1:
            raise ParameterError(
                f"windows must be one with {kind}, got {len(lengths)}", name="windows"
            )
        goal = _goal(request, kind, targets[kind], tier)
        solved = _solve(request, goal, largest[0])
    nanos = parse_epsilons(epsilon) if solved is None else (solved,)
    return RegionPlan(
        table=_plan_table(request, nanos),
        count=float(expected.sum()),
        max_contributions=unit.contributions,
        solved=None if solved is None else Decimal(epsilon_text(solved)),
        inside=getattr(method, "inside", "none"),
        series=series,
        chosen={}
        if series.delta is None
        else {(epsilon_text(nano), method.name): request.chosen(nano) for nano in nanos},
        values=request.values,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Goal:
    """An error of the regions of a level for which epsilon is solved."""

    name: str  # of the argument
    target: float
    tier: int
    value: Value | None = None  # whose means or sums have the error; None for counts

    def error(self, request: _Request, epsilon: int) -> float:
        """Error at an epsilon, under the law that a build chooses."""
        [window] = request.windows or (1,)
        population = _populations_of(request, self.tier) * window
        [levels] = _predict(request, epsilon, request.chosen(epsilon))
        errors, parts = levels[self.tier]
        if self.value is None:
            return float(relative_to(population, errors)[population > 0].mean())
        of_value = _value_errors(self.value, population, parts)
        return of_value["mean" if self.name == "for_mean_error" else "sum"]

    def text(self, error: float) -> str:
        return f"{100 * error:.3g} %" if self.value is None else f"{error:.3g}"


def _goal(request: _Request, kind: str, target: Any, tier: int) -> _Goal:
    """Check what epsilon is solved for."""
    value, error = None, target
    if kind != "for_relative_error":
        named = {each.name: each for each in request.values}
        is_pair = isinstance(target, tuple | list) and len(target) == 2
        if not is_pair or target[0] not in named:
            raise ParameterError(
                f"{kind} must be a column that values= names with its bounds "
                f"({', '.join(named) or 'it names none'}) and an error, got {str(target)[:80]!r}",
                name=kind,
            )
        value, error = named[target[0]], target[1]
    largest = 1.0 if value is None else float("inf")
    if not isinstance(error, int | float) or not 0 < error <= largest or error == float("inf"):
        raise ParameterError(
            f"{kind} must be above 0 % and at most 100 %, got {error!r}; it is the mean of error / "
            "population"
            if value is None
            else f"{kind} must have an error above 0, in the unit of {value.name!r}, got {error!r}",
            name=kind,
        )
    return _Goal(name=kind, target=float(error), tier=tier, value=value)


def _value_errors(value: Value, population: Floats, parts: Floats) -> dict[str, float]:
    """Root mean square errors of means and sums, from deviations of counts of weights, (n,)."""
    counted = population > 0
    # At a bound the deviation of a mean is the whole one; elsewhere it is down to sqrt(1/2) of it.
    # A mean lies between its bounds, and so do its errors: half the width from the middle.
    means = np.minimum(value.width * parts[counted] / population[counted], value.width / 2)
    sums = np.hypot(value.lower, value.upper) * parts[counted]
    return {"mean": float(np.sqrt(np.mean(means**2))), "sum": float(np.sqrt(np.mean(sums**2)))}


def _predict(request: _Request, epsilon: int, law: Law) -> list[list[tuple[Floats, Floats]]]:
    """Deviations by slice or window, then by level: of counts, and of weights of a value or 0."""
    budget = Budget(request.series.loss(epsilon, law))
    if request.windows:
        of_windows = window_errors(
            request.people,
            request.hierarchy,
            request.series.slices,
            request.windows,
            budget=budget,
            method=request.method,
            unit=request.unit,
            post_processing=request.inputs.post_processing,
            covariate=request.inputs.covariate,
            boundary=request.inputs.boundary,
            sampler=SeededSampler(request.seed),
        )
        return [[(each, np.zeros(len(each))) for each in levels] for levels in of_windows]
    release = draw_release(
        request.people,
        request.hierarchy.domain,
        budget=budget,
        method=request.method,
        unit=request.unit,
        squared_sensitivity=squared_of(budget, request.unit, "series", None),
        post_processing=request.inputs.post_processing,
        covariate=request.inputs.covariate,
        boundary=request.inputs.boundary,
        regions=request.hierarchy,
        values=request.values,
        sampler=SeededSampler(request.seed),
    )
    record, tree = release.index.record, release.tree
    assert isinstance(tree, RegionTree)
    errors = np.sqrt(fit_least_squares(record).variance)
    parts = np.zeros(len(tree))
    if request.values:
        part = record.value_part(0, 0)
        parts = np.sqrt(fit_least_squares(part).variance)
    # Virtual nodes between the levels have no name and no row.
    tiers = [tree.named(tier) for tier in range(len(request.hierarchy.levels))]
    return [[(errors[nodes], parts[nodes]) for nodes in tiers]]


def _populations_of(request: _Request, tier: int) -> Floats:
    """Expected records of the regions of a level."""
    return sum_by(
        request.hierarchy.ancestors(tier), request.expected, len(request.hierarchy.levels[tier])
    )


def _solve(request: _Request, goal: _Goal, limit: int) -> int:
    """Least epsilon, to three digits, whose error is at most that of the goal."""
    error, target = goal.error(request, limit), goal.target
    if error > target:
        name = request.hierarchy.levels[goal.tier].name
        raise ParameterError(
            f"{goal.name} must be at least {goal.text(error)} on level {name}, which epsilon "
            f"{epsilon_text(limit)} gives, got {goal.text(target)}; merge regions, or allow a "
            "larger epsilon",
            name=goal.name,
        )
    solved = tried = limit
    for _ in range(SOLVE_STEPS):
        # Errors are about in proportion to 1 / epsilon, so a few steps find it.
        tried = _three_digits(min(max(tried * error / target, _LEAST_NANO), limit), limit)
        if tried == solved:
            break
        error = goal.error(request, tried)
        if error <= target:
            solved = min(tried, solved)
            if error >= (1 - _CLOSE) * target:
                break
        else:
            # An error just above would move epsilon by less than its last digit.
            error = max(error, (1 + _CLOSE) * target)
    return solved


def _three_digits(nano: float, limit: int) -> int:
    """An epsilon rounded up to three digits: 123_456_789 to 124_000_000."""
    step: int = 10 ** max(int(np.floor(np.log10(nano))) - 2, 0)
    return min(int(np.ceil(nano / step)) * step, limit)


def _plan_table(request: _Request, nanos: Sequence[int]) -> pandas.DataFrame:
    import pandas as pd

    limits = reliability_limits(0.3)
    rows = []
    builds = [
        (nano, law, window, levels)
        for nano, law in product(nanos, request.series.laws)
        for window, levels in zip(
            request.windows or (1,), _predict(request, nano, law), strict=True
        )
    ]
    for nano, law, window, levels in builds:
        for tier, (error, parts) in enumerate(levels):
            population = _populations_of(request, tier) * window
            relative = relative_to(population, error)
            rank = judge_estimates(relative, population, limits).rank
            # A region without people has no relative error.
            counted = relative[population > 0]
            rows.append(
                {
                    "epsilon": epsilon_text(nano),
                    "noise": law,
                    **({"window": window} if request.windows else {}),
                    "level": request.hierarchy.levels[tier].name,
                    "regions": len(error),
                    "mean_population": float(population.mean()),
                    "error": float(np.sqrt(np.mean(error**2))),
                    "mean_error": float(counted.mean()),
                    "median_error": float(np.median(counted)),
                    "error_90": float(np.quantile(counted, 0.9)),
                    "good": int((rank == 0).sum()),
                    "use_with_care": int((rank == 1).sum()),
                    "poor": int((rank == 2).sum()),
                    **{
                        f"{kind}_{value.name}_error": off
                        for value in request.values
                        for kind, off in _value_errors(value, population, parts).items()
                    },
                }
            )
    table = pd.DataFrame(rows)
    return table.drop(columns="noise") if request.series.delta is None else table
