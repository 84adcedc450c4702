"""Several methods at several epsilons on the same data, beside each other. Private.

Every method is built several times, with noise of its own each time, and judged by the true
counts of the same rectangles. Nothing that is built is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from psd._util.fields import integer_between
from psd._util.processes import available_processors, map_tasks
from psd.decompositions import Decomposition, method, methods
from psd.errors import InputDataError, ParameterError
from psd.evaluation.evaluate import class_errors, geometric_mean
from psd.evaluation.true_counts import Sightings, Truth, truth_of
from psd.evaluation.workload import workload
from psd.ingest.sources import Columns, read
from psd.ingest.tally_builder import tally_batches
from psd.privacy.budget import Budget
from psd.privacy.epsilon import epsilon_text, parse_epsilon
from psd.privacy.statements import method_parameters
from psd.privacy.unit import PrivacyUnit, privacy_unit
from psd.publish.drawing import draw_release
from psd.publish.request_arguments import ColumnArguments
from psd.space.domain import Domain

if TYPE_CHECKING:
    import pandas

__all__ = ["COMPARISON_NOTICE", "EPSILONS", "MOST_EPSILONS", "RUNS", "Comparison", "compare"]

COMPARISON_NOTICE = (
    "PRIVATE: true errors reveal true counts; do not publish this. Choosing a method, a height or "
    "an epsilon by this table is a look at the data that the epsilon of a later release does not "
    "cover."
)

EPSILONS = ("0.1", "1")
RUNS = 3
MOST_EPSILONS = 20
_MOST_RUNS = 1_000
_MOST_JOBS = 256


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Comparison:
    """True errors of several methods at several epsilons. Private.

    Parameters
    ----------
    table : DataFrame
        One row per method and epsilon, in the order asked for: ``method``, ``epsilon`` as
        text, the mean relative error of each of the eight classes under its name, ``score``
        (their geometric mean), ``score_error`` (standard error of the score over the runs; NaN
        for one run) and ``runs``.
    builds : DataFrame
        One row per build: ``method``, ``epsilon``, ``run``, the eight classes and ``score``.
    classes : tuple of str
        Names of the classes of `psd.evaluation.workload`.
    """

    table: pandas.DataFrame
    builds: pandas.DataFrame
    classes: tuple[str, ...]

    def __repr__(self) -> str:
        return "<Comparison: private>"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class _Data:
    """What every build and its evaluation need of the data. Private."""

    truth: Truth
    domain: Domain
    unit: PrivacyUnit

    def __repr__(self) -> str:
        return "<data: private>"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """One build. Public."""

    method: Decomposition
    epsilon: int
    run: int


def compare(
    data: Any,
    *,
    domain: Domain,
    epsilons: Sequence[str | float | Decimal] = EPSILONS,
    methods: Sequence[str | Decomposition] | None = None,
    runs: int = RUNS,
    jobs: int | None = None,
    max_contributions: int | None = None,
    progress: Callable[[int, int], None] = lambda done, whole: None,
    **names: Unpack[ColumnArguments],
) -> Comparison:
    """Build every method at every epsilon several times and compare with the data. Private.

    Guarantees
    ----------
    - The input is read once, and all methods are judged by the same rectangles.
    - Builds share no random state, in one process or in several.
    - No file is written.

    Parameters
    ----------
    data : object or list of objects
        Points, as in `psd.build`. Private.
    domain : Domain
        Bounds, CRS and lattice. Public.
    epsilons : sequence of str, int, float or Decimal
        Budgets, each once, at most 20.
    methods : sequence of str or Decomposition, optional
        Methods, each once; all with their defaults where not given.
    runs : int
        Builds of each method at each epsilon, 1 to 1,000.
    jobs : int, optional
        Parallel processes, 1 to 256; as many as there are processors where not given.
    max_contributions : int, optional
        As in `psd.build`.
    progress : callable
        Told the number of finished builds and of all builds; no other number.
    **names
        Columns x, y, user, geometry and the layer, as in `psd.build`.

    Returns
    -------
    Comparison

    Raises
    ------
    ParameterError
        If a method or an epsilon is unknown or stands twice, or another parameter is wrong;
        before anything is read.
    InputDataError
        If the input cannot be read, or no record lies inside the bounds.
    DomainError
        If the points do not lie where the domain says.

    Notes
    -----
    Errors are relative to all rows, as in `psd.evaluation.evaluate.evaluate`: where users are
    bounded, what the bound leaves out is part of the error.

    Each class is averaged over the runs, and the score is the geometric mean of these averages.
    Its standard error is the standard deviation of the scores of the single runs over the root
    of their number.
    """
    columns = Columns(**names)
    unit = privacy_unit(columns.user, max_contributions)
    tasks = _tasks(_checked_methods(methods), _checked_epsilons(epsilons), runs)
    jobs = available_processors() if jobs is None else integer_between(1, _MOST_JOBS)("jobs", jobs)
    found = _read(data, domain, columns, unit)
    progress(0, len(tasks))
    errors = map_tasks(
        _errors, found, tasks, jobs=jobs, done=lambda number: progress(number, len(tasks))
    )
    classes = tuple(dict.fromkeys(found.truth.queries.classes.tolist()))
    return _comparison(tasks, np.array(errors), classes)


def _checked_methods(asked: Sequence[str | Decomposition] | None) -> list[Decomposition]:
    """Methods, each once."""
    chosen = methods() if asked is None else asked
    made = [method(item) if isinstance(item, str) else item for item in chosen]
    for each in made:
        method_parameters(each)  # refuses an undeclared field before a row is read
    _refuse_twice("method", [each.name for each in made])
    return made


def _checked_epsilons(asked: Sequence[str | float | Decimal]) -> list[int]:
    """Nano-epsilons, each once."""
    nano = [parse_epsilon(value) for value in asked]
    _refuse_twice("epsilon", [epsilon_text(value) for value in nano])
    if len(nano) > MOST_EPSILONS:
        raise ParameterError(f"{len(nano)} epsilons are more than {MOST_EPSILONS}")
    return nano


def _refuse_twice(what: str, given: list[str]) -> None:
    """Refuse none at all, and what stands several times."""
    if not given:
        raise ParameterError(f"no {what} is given to compare")
    for item in given:
        if given.count(item) > 1:
            raise ParameterError(f"{what} {item} is given {given.count(item)} times")


def _tasks(methods: list[Decomposition], epsilons: list[int], runs: int) -> list[_Task]:
    """All builds, the runs of a method at an epsilon one after another."""
    runs = integer_between(1, _MOST_RUNS)("runs", runs)
    return [
        _Task(method=method, epsilon=epsilon, run=run)
        for epsilon in epsilons
        for method in methods
        for run in range(1, runs + 1)
    ]


def _read(data: Any, domain: Domain, columns: Columns, unit: PrivacyUnit) -> _Data:
    """Tally and true counts of the workload, from one reading."""
    seen = Sightings(domain)
    counts = tally_batches(seen.of(read(data, columns, domain)), domain, unit=unit)
    points = seen.points
    if not len(points[0]):
        raise InputDataError("no record lies inside the bounds, so there are no errors to compare")
    queries = workload(*points, domain.bounds)
    truth = truth_of(queries, points, counts, domain, bounded=unit.has_user)
    return _Data(truth=truth, domain=domain, unit=unit)


def _errors(found: _Data, task: _Task) -> NDArray[np.float64]:
    """Build once; the errors of the eight classes, and nothing else of the release."""
    release = draw_release(
        found.truth.counts,
        found.domain,
        budget=Budget(task.epsilon),
        method=task.method,
        unit=found.unit,
    )
    return class_errors(release, found.truth)


def _comparison(
    tasks: list[_Task], errors: NDArray[np.float64], classes: tuple[str, ...]
) -> Comparison:
    """Tables of the errors of all builds."""
    import pandas as pd

    builds = pd.DataFrame(
        {
            "method": [task.method.name for task in tasks],
            "epsilon": [epsilon_text(task.epsilon) for task in tasks],
            "run": [task.run for task in tasks],
            **dict(zip(classes, errors.T, strict=True)),
            "score": [geometric_mean(row) for row in errors],
        }
    )
    groups = builds.groupby(["method", "epsilon"], sort=False)
    table = groups[list(classes)].mean()
    table["score"] = [geometric_mean(row) for row in table.to_numpy()]
    table["score_error"] = groups["score"].sem()
    table["runs"] = groups.size()
    return Comparison(table=table.reset_index(), builds=builds, classes=classes)
