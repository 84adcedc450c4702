"""Compare methods at several epsilons on the same data and rectangles, storing none. Private."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from psd._util.declared_parameters import integer_between
from psd._util.instances import check_names
from psd._util.processes import available_processors, map_tasks
from psd.apps.evaluation._constants import EPSILONS, RUNS
from psd.apps.evaluation.true_counts import PointRecorder, TrueCounts, true_counts
from psd.apps.evaluation.true_errors import class_errors, geometric_mean
from psd.apps.evaluation.workload import Epsilon, draw_workload, parse_epsilons, resolve_methods
from psd.decompositions import Decomposition
from psd.decompositions import methods as all_methods
from psd.errors import InputDataError, ParameterError
from psd.ingest.sources import Columns, read
from psd.ingest.tally_builder import tally_batches
from psd.privacy.budget import Budget
from psd.privacy.loss import epsilon_text
from psd.privacy.unit import PrivacyUnit, privacy_unit
from psd.publish.drawing import draw_release
from psd.publish.request_values import ColumnArguments
from psd.space.domain import Domain, public_domain

if TYPE_CHECKING:
    import pandas

__all__ = ["EPSILONS", "RUNS"]

COMPARISON_NOTICE = (
    "PRIVATE: true errors reveal true counts; do not publish this. If you choose a method, a "
    "height or an epsilon by this table, that choice reveals something about the data that the "
    "epsilon of a later release does not cover."
)

MAX_EPSILONS = 20
_MAX_RUNS = 1_000
_MAX_JOBS = 256


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Comparison:
    """True errors of several methods at several epsilons. Private.

    ``table`` has a row per method and epsilon: the mean relative error of each of the eight
    ``classes``, ``score`` (their geometric mean), ``score_error`` (its standard error over the
    ``runs``; NaN for one run). ``builds`` has a row per build.
    """

    table: pandas.DataFrame
    builds: pandas.DataFrame
    classes: tuple[str, ...]

    def __repr__(self) -> str:
        return "<Comparison: private>"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class _Data:
    """Data that every build and its evaluation use. Private."""

    truth: TrueCounts
    domain: Domain
    unit: PrivacyUnit

    def __repr__(self) -> str:
        return "<data: private>"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """Parameters of one build. Public."""

    method: Decomposition
    epsilon: int
    run: int


def compare(
    data: Any,
    *,
    domain: Domain | tuple[float, float, float, float],
    epsilon: Epsilon | Sequence[Epsilon] = EPSILONS,
    methods: Sequence[str | Decomposition] | None = None,
    runs: int = RUNS,
    jobs: int | None = None,
    max_contributions: int | None = None,
    progress: Callable[[int, int], None] = lambda finished, builds: None,
    **names: Unpack[ColumnArguments],
) -> Comparison:
    """Build every method at every epsilon several times and compare with the data. Private.

    Guarantees
    ----------
    - The input is read once, and all methods are evaluated on the same rectangles.
    - Builds share no random state, in one process or in several.
    - No file is written.

    Parameters
    ----------
    data : object or list of objects
        Points, as in `psd.build`. Private.
    domain : Domain or tuple of four numbers
        Bounds, CRS and lattice. Public.
    epsilon : str, int, float or Decimal, or sequence of these
        Epsilons of the builds; at most 20, each once.
    methods : sequence of str or Decomposition, optional
        Methods, each once; by default all methods with their default parameters.
    runs : int
        Builds of each method at each epsilon, 1 to 1,000.
    jobs : int, optional
        Parallel processes, 1 to 256; by default one per processor.
    max_contributions : int, optional
        As in `psd.build`.
    progress : callable
        Called with the number of finished builds and the number of all builds.
    **names
        Columns x, y, user, geometry and the layer, as in `psd.build`.

    Returns
    -------
    Comparison

    Raises
    ------
    ParameterError
        If a method is unknown, a method or an epsilon is repeated, or another parameter is wrong;
        raised before any data is read.
    InputDataError
        If the input cannot be read, or no record lies inside the bounds.
    DomainError
        If the coordinates do not fit the CRS or the bounds of the domain.

    Examples
    --------
    >>> import pandas as pd, psd
    >>> points = pd.DataFrame({"lon": [126.98, 127.03] * 50, "lat": [37.57, 37.50] * 50})
    >>> comparison = psd.apps.evaluation.compare(
    ...     points,
    ...     domain=(126.4, 37, 127.6, 38),
    ...     epsilon="1",
    ...     methods=["grid", psd.decompositions.Quadtree(height=4)],
    ...     runs=2,
    ...     jobs=1,
    ... )
    >>> comparison
    <Comparison: private>
    >>> comparison.table[["method", "epsilon", "runs"]].values.tolist()
    [['grid', '1', 2], ['quadtree', '1', 2]]

    Notes
    -----
    Errors are relative to all records, as in `psd.apps.evaluation.evaluate`. If
    contributions are bounded, the records that the bound leaves out are part of the error.

    Each class is averaged over the runs, and the score is the geometric mean of these averages.
    Its standard error is the standard deviation of the scores of the single runs over the root
    of their number.
    """
    check_names("argument", names, ColumnArguments.__annotations__)
    domain = public_domain(domain)
    columns = Columns(**names)
    unit = privacy_unit(columns.user, max_contributions)
    chosen = resolve_methods(list(all_methods()) if methods is None else methods)
    nano = parse_epsilons(epsilon)
    if len(nano) > MAX_EPSILONS:
        raise ParameterError(
            f"epsilon must have at most {MAX_EPSILONS} values, got {len(nano)}; "
            "compare them in several calls"
        )
    runs = integer_between(1, _MAX_RUNS)("runs", runs)
    # All builds; the runs of a method at an epsilon are consecutive.
    tasks = [
        _Task(method=method, epsilon=epsilon, run=run)
        for epsilon, method, run in product(nano, chosen, range(1, runs + 1))
    ]
    jobs = available_processors() if jobs is None else integer_between(1, _MAX_JOBS)("jobs", jobs)
    # One reading gives the tally, and the points that the workload is drawn from.
    recorder = PointRecorder(domain)
    counts = tally_batches(recorder.record(read(data, columns, domain)), domain, unit=unit)
    points = recorder.points
    if not len(points[0]):
        raise InputDataError("no record lies inside the bounds, so there are no errors to compare")
    queries = draw_workload(*points, domain.bounds)
    truth = true_counts(queries, points, counts, domain, bounded=unit.has_user)
    shared = _Data(truth=truth, domain=domain, unit=unit)
    progress(0, len(tasks))
    errors = map_tasks(
        _build_errors, shared, tasks, jobs=jobs, done=lambda number: progress(number, len(tasks))
    )
    classes = tuple(dict.fromkeys(shared.truth.queries.classes.tolist()))
    return _tabulate(tasks, np.array(errors), classes)


def _build_errors(shared: _Data, task: _Task) -> NDArray[np.float64]:
    """Build a release once and return the errors of the eight classes."""
    release = draw_release(
        shared.truth.counts,
        shared.domain,
        budget=Budget(task.epsilon),
        method=task.method,
        unit=shared.unit,
    )
    return class_errors(release, shared.truth)


def _tabulate(
    tasks: list[_Task], errors: NDArray[np.float64], classes: tuple[str, ...]
) -> Comparison:
    """Tables of the errors of all builds, (builds, classes)."""
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
    # Of the means over the runs, not the mean of their scores.
    table["score"] = [geometric_mean(row) for row in table.to_numpy()]
    table["score_error"] = groups["score"].sem()
    table["runs"] = groups.size()
    return Comparison(table=table.reset_index(), builds=builds, classes=classes)
