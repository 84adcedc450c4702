"""One counting question, answered once and charged to a ledger. Private side.

With values it is two counts of weights of each, see `psd.privacy.values`, for one charge. It suits
few boxes that cells must not cut; a release answers any number of questions for one epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from psd._util.file_endings import file_of
from psd._util.instances import shown, type_text
from psd.errors import ParameterError
from psd.ingest.input_paths import is_path
from psd.privacy.loss import NANO
from psd.privacy.noise_laws.discrete_laplace import laplace_reach, laplace_tail
from psd.publish.area import bounds_from_text, with_stated_crs
from psd.publish.charging import own_account
from psd.publish.counting import RecordInput, check_public_files, inputs_of, points_of
from psd.publish.drawing import draw_counts
from psd.publish.fields import FIELDS, answer_guesses
from psd.publish.observer import SILENT, Observer
from psd.publish.pipeline import run_build
from psd.publish.request_values import request_from_values
from psd.publish.request_warnings import warn_of_columns, warn_of_request
from psd.space.windows import read_windows, warn_of_clock_changes

if TYPE_CHECKING:
    import os
    from decimal import Decimal

    from psd.api.release import Release
    from psd.curator.private_bounds import ContributionChoice
    from psd.decompositions import Curator
    from psd.ledger.account import Account
    from psd.ledger.ledger import Ledger
    from psd.mechanisms.base import Sampler
    from psd.privacy.budget import Budget
    from psd.privacy.values import Value
    from psd.publish.counting import CountedRows
    from psd.publish.public_inputs import PublicInputs
    from psd.publish.request import BuildRequest, BuildTerms
    from psd.space.box_tree import Tree


_READING = tuple(
    each.name
    for each in FIELDS
    if each.name == "values"
    or (each.group in ("Input", "Unit of privacy", "Time") and each.of_records and not each.private)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A noisy count with its error, and the means and sums that were asked for. Public.

    Parameters
    ----------
    estimate : float
        True count plus exact discrete Laplace noise; may be negative.
    error : float
        Standard deviation of the noise.
    lower, upper : float
        Interval that contains the true count with at least the requested probability.
    mean, sum : mapping of str to Answer
        Means and sums of values by name. A mean is within the bounds of its value. It has no
        interval, so that its ends are the bounds, where the noise allows that there is no record.
    """

    estimate: float
    error: float
    lower: float
    upper: float
    mean: Mapping[str, Answer] = field(default_factory=dict)
    sum: Mapping[str, Answer] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleCount:
    """The method of a single count: the domain is the only cell."""

    name: ClassVar[str] = "single-count"
    paper: ClassVar[str] = "Dwork, McSherry, Nissim, Smith, TCC 2006"
    charge_text: ClassVar[str] = "ask"

    def build(self, curator: Curator) -> Tree:
        """Count the domain with all of epsilon."""
        curator.count(curator.root(), curator.loss)
        return curator.tree()


@answer_guesses({})
def ask(
    data: Any,
    area: Any,
    *,
    epsilon: str | float | Decimal,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    crs: str | None = None,
    coordinate_resolution: str | float | Decimal | None = None,
    confidence: float = 0.95,
    x: str | None = None,
    y: str | None = None,
    wkt: str | None = None,
    geometry: str | None = None,
    layer: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    skip_rows: int | None = None,
    input_crs: str | None = None,
    where: str | None = None,
    table: str | None = None,
    query: str | None = None,
    memory: str | int | None = None,
    user: str | None = None,
    max_contributions: int | Literal["auto"] | ContributionChoice | None = None,
    choice_share: str | float | Decimal | None = None,
    choice_over: int | None = None,
    choice_limit: int | None = None,
    per: Literal["day", "user-slice", "slice", "record"] | None = None,
    count: Literal["records", "users"] = "records",
    time: str | None = None,
    time_zone: str | None = None,
    slices: Any = None,
    when: Any = None,
    max_per_slice: int | None = None,
    values: Mapping[str, tuple[float, float]] | None = None,
    mean: str | Sequence[str] = (),
    sum: str | Sequence[str] = (),
    account: Account | None = None,
    sampler: Sampler | None = None,
    observer: Observer | Mapping[str, Callable[..., None]] = SILENT,
) -> Answer:
    """Count the records, or users, in one box or polygon, with noise of the whole epsilon.

    Guarantees
    ----------
    - The answer is epsilon-differentially private for adding or removing one unit of
      `psd.build`, and epsilon is charged to the ledger before it is drawn.
    - An area without a record is answered like any other; only what cannot be read is refused.

    Parameters
    ----------
    data : object or list of objects
        As in `psd.build`. Private.
    area : four numbers, str, path-like, GeoDataFrame, GeoSeries or geometry
        West, south, east, north; points on its edges are in it. It is the domain of the question, a
        lattice of one cell, so that no edge is moved. Or polygons, or a file of them: records in
        their union are counted. Never derived from the points. Public.
    epsilon : str, int, float or Decimal
        Cost of the answer. Public.
    ledger, dataset, analyst
        Dataset of a ledger that is charged, as in `psd.build`.
    crs : str, optional
        Of the answer, a box and the columns, as in `psd.build`. Public.
    coordinate_resolution : str, int, float or Decimal, optional
        Step to which the coordinates are rounded, as in `psd.Domain`. It does not change the answer
        of a box; state the one that the dataset registers, so that charges for disjoint boxes do
        not add up. Public.
    confidence : float
        Of the interval, in (0, 1). Public.
    x, y, wkt, geometry, layer, table, query, where
        Which records are read, as in `psd.build`.
    delimiter, decimal, encoding, skip_rows, input_crs
        How they are read, as in `psd.build`.
    memory : str or int, optional
        As in `psd.build`.
    user, max_contributions, choice_share, choice_over, choice_limit, per, count, max_per_slice
        Unit of privacy, as in `psd.build`. Records of a user are bounded among those in the area.
        Public.
    time, time_zone : str, optional
        Column of times, for days of users and slices, and their zone. Public.
    slices : str or TimeSlices, optional
        Time slices, as in `psd.build`. Records in any of them are counted together, and a charge of
        CSV counts at their times alone. Public.
    when : str or psd.space.time_slices.TimeWindow, optional
        Window of the slices, such as ``"weekdays 07-09"``, as in `psd.Release.query`; only records
        in it are counted. Public.
    values : mapping of str to pair of float, optional
        Public bounds of columns, as in `psd.build`, each of which must be asked for.
    mean, sum : str or sequence of str
        Names of values whose mean or sum is answered beside the count, for the same epsilon. Counts
        have sqrt(2) times the noise then, with V values sqrt(2 V) times. Public.
    account : Account, optional
        Open account, in place of ``ledger``, ``dataset`` and ``analyst``; its `finish` notes that
        the answer was given.
    sampler, observer
        As in `psd.build`.

    Returns
    -------
    Answer

    Raises
    ------
    ParameterError, DomainError
        If a public parameter is wrong.
    InputDataError
        If the input cannot be read. The sentence is fixed: the reason goes to the observer. It
        costs nothing, unless memory or disk gave out.
    BudgetError, LedgerError
        If the account cannot be charged.

    Examples
    --------
    >>> import tempfile, pandas as pd, psd
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = psd.Ledger.create(folder.name + "/city.ledger")
    >>> ledger.register("visits", budget=1)
    >>> points = pd.DataFrame({"lon": [126.98, 127.03], "lat": [37.57, 37.50]})
    >>> box = (126.9, 37.5, 127, 37.6)
    >>> answer = psd.ask(points, box, epsilon="0.5", ledger=ledger, dataset="visits")
    >>> round(answer.error, 2), ledger.remaining("visits")
    (2.8, Decimal('0.5'))
    >>> folder.cleanup()

    Notes
    -----
    The question is `psd.curator.curator.Curator.count` of one cell, which has the proof, P9 with
    values. The errors and the intervals follow from the noise that was drawn. The interval of a
    mean is Fieller's (`psd.query.joint.fieller_interval`) with the quantiles of the sum of two
    Laplace variables in place of those of a normal one.
    """
    stated = locals()
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence must be between 0 and 1, got {confidence}")
    asked: dict[str, tuple[Any, ...]] = {}
    for kind, names in (("mean", mean), ("sum", sum)):
        is_list = isinstance(names, Sequence | Set) and not isinstance(names, str)
        asked[kind] = tuple(names if is_list else () if names is None else [names])
    data = points_of(data)
    public = with_stated_crs(
        {
            **{name: stated[name] for name in (*_READING, "crs", "coordinate_resolution")},
            **_area_of(area),
            "lattice": (1, 1) if coordinate_resolution is None else None,
            "min_cell": None if coordinate_resolution is None else "0",
            "epsilon": epsilon,
            "method": SingleCount(),
        },
        data,
    )
    inputs = inputs_of(data, table, query)
    check_public_files(public, inputs)
    own = own_account(ledger, dataset, analyst, account, public)
    if own is None and account is None:
        raise ParameterError(
            "ledger and dataset must be given, since each answer costs its epsilon; "
            'psd.Ledger.create("city.ledger").register("visits", budget=1) makes them'
        )
    request = _in_window(request_from_values(public), when)
    _check_asked(asked, [value.name for value in request.values])
    warn_of_request(request)
    warn_of_columns(inputs, request, per=per, has_ledger=True)
    release = run_build(
        request,
        RecordInput(data=inputs, memory=memory),
        _draw_together,
        account=own or account,
        sampler=sampler,
        observer=Observer.of(observer),
    )
    if own is not None:
        own.finish()
    noisy, paid = int(release.tree.count[0]), int(release.tree.loss[0])
    noise, scale = release.tree.noise, release.unit.scale  # of one record, or of one user
    reach: float = noise.tail_bound(paid, 1 - confidence)
    if request.values:
        # As many draws of a count's noise as there are sums, and half a count of rounding.
        laws = [1.0] * (2 * len(request.values))
        reach = laplace_reach(laws, 1 - confidence) * noise.sensitivity * NANO / paid + 0.5
    named: dict[str, dict[str, Answer]] = {"mean": {}, "sum": {}}
    for kind, names in asked.items():
        for name in names:
            number = release.index.record.value_named(name)
            parts = [release.index.record.value_part(number, side) for side in (0, 1)]
            answer = _mean_answer if kind == "mean" else _sum_answer
            named[kind][name] = answer(
                request.values[number],
                [int(part.tree.count[0]) / part.scale for part in parts],
                parts[0].tree.noise.sensitivity * NANO / paid / parts[0].scale,
                1 - confidence,
            )
    return Answer(
        estimate=noisy / scale,
        error=math.sqrt(noise.variance(np.array([paid]))[0]) / scale,
        lower=(noisy - reach) / scale,
        upper=(noisy + reach) / scale,
        mean=named["mean"],
        sum=named["sum"],
    )


def _in_window(request: BuildTerms, when: Any) -> BuildTerms:
    """The request with the slices of a window alone."""
    if request.slices is None:
        if when is not None:
            raise ParameterError(
                f"when must be given with slices, of which it is a window, got {shown(when)} alone",
                name="when",
            )
        return request
    if request.contribution_scope == "slice":
        raise ParameterError(
            "per must not be slice, got slice; one answer is of all slices together, so give the "
            "number of records in all of them, and max_per_slice",
            name="per",
        )
    if when is None:
        return request
    windows, is_list = read_windows(when, request.slices)
    if is_list:
        raise ParameterError(f"when must be one window, got {len(windows):,}", name="when")
    warn_of_clock_changes(windows, request.slices)
    names = [request.slices.names[number] for number in windows[0].numbers]
    return replace(request, slices=replace(request.slices, names=tuple(names)))


def _draw_together(
    request: BuildRequest,
    counted: CountedRows,
    inputs: PublicInputs,
    budget: Budget,
    sampler: Sampler,
) -> Release:
    """Draw the count of all slices.

    P1. Records outside all slices are dropped before any bound, each by its own time, and the
    records of a unit in all slices are bounded together. So the sum over slices changes by what the
    unit may contribute, as that of a tally without slices does.
    """
    counted = replace(counted, tally=replace(counted.tally, slice=None))
    return draw_counts(request, counted, inputs, budget, sampler)


def _check_asked(asked: Mapping[str, Sequence[str]], names: Sequence[str]) -> None:
    """Check that means and sums are those of values, and that each value is asked for."""
    for kind, given in asked.items():
        for name in given:
            is_text = isinstance(name, str)
            if not is_text or name not in names:
                # What is no name may be a column of records.
                raise ParameterError(
                    f"{kind} must be a column that values= names with its bounds "
                    f"({', '.join(names) or 'it names none'}), got "
                    f"{shown(name) if is_text else type_text(name)}",
                    name=kind,
                )
    for name in names:
        if not any(name in given for given in asked.values()):
            raise ParameterError(
                f"values must be asked for with mean= or sum=, got {name!r} in neither; each value "
                "takes a part of epsilon",
                name="values",
            )


def _mean_answer(value: Value, counts: Sequence[float], rate: float, outside: float) -> Answer:
    """Mean of a value of two counts of weights, in records, whose noise has the scale `rate`.

    P1. The interval has all shares p for which (1 - p) A - p B is within the range that its noise
    leaves with at most the probability `outside`. Its law is exact, so it contains the true share
    with at least the rest. Cut at 0, A and B are moved towards what they count, and the distance
    over its deviation grows to both sides of A / (A + B).
    """
    upper, lower = (max(count, 0.0) for count in counts)
    records = upper + lower
    share = upper / records if records > 0 else 0.5
    error = value.width / 2
    if records > 0:
        deviation = math.sqrt(2) * rate * math.hypot(1 - share, share)
        error = min(error, value.width * deviation / records)

    def is_possible(p: float) -> bool:
        distance = abs((1 - p) * upper - p * lower) / rate
        return laplace_tail([1 - p, p], distance) >= outside

    # Bisection from the estimate towards each bound: `near` is possible, `far` is not.
    ends = []
    for end in (0.0, 1.0):
        near, far = share, end
        if is_possible(far):
            near = far
        for _ in range(60):
            middle = (near + far) / 2
            near, far = (middle, far) if is_possible(middle) else (near, middle)
        ends.append(value.lower + value.width * near)
    return Answer(
        estimate=value.lower + value.width * share, error=error, lower=ends[0], upper=ends[1]
    )


def _sum_answer(value: Value, counts: Sequence[float], rate: float, outside: float) -> Answer:
    """Sum of a value of two counts of weights, in records, whose noise has the scale `rate`."""
    weights = value.upper, value.lower
    total = weights[0] * counts[0] + weights[1] * counts[1]
    reach = rate * laplace_reach(weights, outside)
    error = math.sqrt(2) * rate * math.hypot(*weights)
    return Answer(estimate=total, error=error, lower=total - reach, upper=total + reach)


def _area_of(area: Any) -> dict[str, Any]:
    """Bounds of an area, and its boundary unless it is a box."""
    is_geometry = hasattr(area, "geom_type") and not hasattr(area, "geometry")
    is_box = is_geometry and not area.is_empty and area.equals(area.envelope)
    is_text = isinstance(area, str) and bounds_from_text(area) is not None
    if isinstance(area, str) and not is_text and not Path(file_of(area)).exists():
        raise ParameterError(
            "area must be west, south, east and north, polygons or a file of them, got "
            f"{area[:80]!r}",
            name="area",
        )
    if is_text or is_box or not (is_path(area) or is_geometry or hasattr(area, "geometry")):
        return {"bounds": area}
    return {"bounds": area, "boundary": area}
