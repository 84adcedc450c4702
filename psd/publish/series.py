"""From rows with times to a series: one tally, one curator per time slice. Private side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from psd.api.series import SeriesRelease
from psd.decompositions import Decomposition
from psd.decompositions import method as method_by_name
from psd.errors import InputDataError, ParameterError
from psd.ingest.memory_limit import memory_for_rows, parse_memory
from psd.ingest.sources import Columns
from psd.ingest.tally import Batch, Tally
from psd.ledger.account import Account
from psd.mechanisms.base import Sampler
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.epsilon import parse_epsilon
from psd.privacy.statements import method_parameters
from psd.privacy.unit import ContributionScope, Count, Per, PrivacyUnit
from psd.publish.build import DEFAULT_METHOD, release_of, step_of
from psd.publish.charging import PendingCharge, charge_request
from psd.publish.count_rows import count_rows, wanted
from psd.publish.insecure import refuse_paid
from psd.publish.public_inputs import known
from psd.space.domain import Domain

if TYPE_CHECKING:
    from psd.curator.contribution_choice import BoundChoice
    from psd.space.time_slices import TimeSlices

__all__ = ["build_series", "counted_unit", "of_slice", "series_of", "within"]


def build_series(
    data: Any,
    *,
    domain: Domain,
    epsilon: str | float | Decimal,
    slices: TimeSlices,
    time: str | None,
    method: Decomposition | str = DEFAULT_METHOD,
    x: str = "lon",
    y: str = "lat",
    user: str | None = None,
    max_contributions: int | Literal["auto"] | BoundChoice | None = None,
    per: Literal["day", "slice"] | None = None,
    count: Count = "rows",
    geometry: str | None = None,
    layer: str | None = None,
    memory: str | int | None = None,
    estimate: str | None = None,
    density: str | None = None,
    covariate: Any = None,
    boundary: Any = None,
    sampler: Sampler | None = None,
    progress: Callable[[str], None] = lambda stage: None,
    private_report: Callable[[dict[str, int]], None] = lambda report: None,
    private_tally: Callable[[Tally], None] | None = None,
    account: Account | None = None,
) -> SeriesRelease:
    """Build differentially private releases of how many rows are where in each time slice.

    Guarantees
    ----------
    - The series as a whole is epsilon-differentially private for adding or removing one unit of
      `psd.build`: one row, or, with ``user``, all rows of one user in all slices; see
      `series_of` for the proof.
    - Every slice of the list is there and has its noise, also one without a row; which slices
      there are is the caller's list and nothing else.
    - A single release of the series keeps its own epsilon for the rows of its slice.

    Parameters
    ----------
    data, domain, method, x, y, user, count, geometry, layer, memory, estimate, density, covariate
        As in `psd.build`, with public bounds; so are boundary, sampler, progress, private_report
        and account.
    epsilon : str, int, float or Decimal
        Privacy-loss budget of the whole series. Public.
    slices : TimeSlices
        Hours, days or months, and the zone of their clock. Public: never taken from the data.
    time : str
        Column of moments.
    max_contributions : int, "auto" or BoundChoice, optional
        k, the most rows kept of each user in all slices together; goes with ``user``.
    per : {"day", "slice"}, optional
        With "slice", k holds in each slice, and the slices share epsilon; with "day", a day of
        a user is the unit, as in `psd.build`.
    private_tally : callable, optional
        Given the exact tally of all slices. Whoever keeps it keeps it secret.

    Returns
    -------
    Series

    Raises
    ------
    ParameterError
        If a public parameter is wrong.
    InputDataError
        If the input cannot be read, or a row has no time.
    DomainError
        If the points do not lie where the domain says.
    """
    nano = parse_epsilon(epsilon)
    method = method_by_name(method) if isinstance(method, str) else method
    if not isinstance(domain, Domain):
        raise ParameterError("time slices go with public bounds (--bounds), and these are private")
    if time is None:
        raise ParameterError("time slices go with time (--time), the column of moments")
    given = known(
        method, domain, estimate=estimate, density=density, covariate=covariate, boundary=boundary
    )
    method_parameters(
        method
    )  # a method with a field that nobody declared public is not shown the data
    columns = Columns(
        x=x,
        y=y,
        user=user,
        geometry=geometry,
        layer=layer,
        time=time,
        time_zone=slices.time_zone,
    )
    bound: ContributionScope = "slice" if per == "slice" else "series"
    of_day: Per | None = None if per == "slice" else per
    asked = wanted(columns, max_contributions=max_contributions, per=of_day, count=count)
    if bound == "slice" and asked.choice is not None:
        raise ParameterError("a bound per slice is a number; auto chooses one for all slices")
    check_shares(nano, len(slices), asked.unit, bound)
    left = memory_for_rows(None if memory is None else parse_memory(memory))
    step = step_of(method, domain.lattice) if private_tally is None else (1, 1)
    sampler = SecureSampler() if sampler is None else sampler
    refuse_paid(sampler, account)
    pending = PendingCharge(
        account, charge_request(f"series {method.name}", nano, asked, domain, data)
    )
    budget = Budget(nano, on_first_spend=pending.charge)
    progress("reading")
    counted = count_rows(
        data,
        domain,
        replace(asked, unit=counted_unit(asked.unit, bound)),
        budget=budget,
        sampler=sampler,
        step=step,
        area=given.boundary,
        slices=slices,
        memory=left,
    )
    private_report(counted.tally.report)
    if private_tally is not None:
        private_tally(counted.tally)
    budget.open()
    progress("counting with noise")
    return series_of(
        counted.tally,
        domain,
        slices,
        bound=bound,
        budget=budget,
        method=method,
        unit=asked.unit if bound == "slice" else counted.unit,
        view=given.view,
        covariate=given.covariate,
        boundary=given.boundary,
        sampler=sampler,
    )


def counted_unit(unit: PrivacyUnit, bound: ContributionScope) -> PrivacyUnit:
    """Unit by which rows are bounded: that of the promise, or a user's part of one slice.

    Raises
    ------
    ParameterError
        If a bound per slice is asked for where no user is bounded.
    """
    if bound == "series":
        return unit
    if unit.kind != "user" or unit.weight:
        raise ParameterError(
            "a bound per slice (--per slice) goes with --user and --max-contributions; other "
            "units are bounded within a slice as they are"
        )
    return PrivacyUnit(kind="user-slice", max_contributions=unit.max_contributions)


def check_shares(epsilon: int, slices: int, unit: PrivacyUnit, bound: ContributionScope) -> None:
    """Refuse a budget that leaves a slice without epsilon.

    Raises
    ------
    ParameterError
        If a bound per slice is asked for where no user is bounded, or leaves no epsilon.
    """
    counted_unit(unit, bound)
    if bound == "slice" and epsilon < slices:
        raise ParameterError(
            f"epsilon is too small to be shared among {slices:,} slices; name fewer, or bound the "
            "rows of users over all slices together"
        )


def slice_budgets(
    budget: Budget, slices: int, unit: PrivacyUnit, bound: ContributionScope
) -> tuple[Budget, ...]:
    """Budgets of all slices, from that of their series; `series_of` has the proof.

    Raises
    ------
    ParameterError
        As `check_shares`.
    """
    check_shares(budget.left, slices, unit, bound)
    return budget.in_parallel(slices) if bound == "series" else budget.in_sequence(slices)


def series_of(
    counts: Tally,
    domain: Domain,
    slices: TimeSlices,
    *,
    bound: ContributionScope = "series",
    budget: Budget,
    method: Decomposition,
    unit: PrivacyUnit,
    **how: Any,
) -> SeriesRelease:
    """Series of rows that have been tallied by slice.

    Guarantees
    ----------
    - The series is epsilon-differentially private for adding or removing one unit; of several
      series or releases of the same rows the epsilons add up.

    Parameters
    ----------
    counts : Tally
        Exact counts with the slice of each, bounded by `counted_unit`. Private.
    domain, slices
        Of the tally. Public.
    bound : {"series", "slice"}
        Of the tally. Public.
    budget : Budget
        Of the whole series. What was allotted before is part of what every slice states. Public.
    method : Decomposition
        How to cut space, the same for every slice. Public.
    unit : PrivacyUnit
        Of the promise. Public.
    **how
        As in `psd.publish.build.release_of`, the same for every slice.

    Returns
    -------
    Series

    Raises
    ------
    ParameterError
        If the tally is of other slices or of another unit.

    Notes
    -----
    Parallel where k bounds a unit in all slices together: the slice is one more coordinate of
    the cell. Every question of the curator of slice s reads the rows of slice s alone, so a row
    z in slice s(z) is in the cells of that curator's questions only, and the sum S(z) of epsilon
    over all questions of all slices whose cell contains z is at most what this curator enforces,
    epsilon. With every scale and sensitivity times k, the loss of a unit with m_z rows at z,
    m_1 + m_2 + ... at most k, is at most sum of S(z) m_z / k, so at most epsilon, in however many
    slices its rows lie. A row lies in one slice; all of the rows of a user's day, where they are
    the unit, are bounded together likewise.

    In sequence where k bounds a user in each slice: each of the T releases is epsilon / T
    -differentially private for all rows of a user in its slice, and basic composition adds the
    T losses [1]_. Epsilon / T is rounded down to whole nano-units, so the sum never passes
    epsilon.

    References
    ----------
    .. [1] McSherry. "Privacy Integrated Queries." SIGMOD 2009, theorems 3 and 4.
    """
    if counts.slice is None or counts.slice.max(initial=0) >= len(slices):
        raise ParameterError("the tally was not made with these time slices")
    budgets = slice_budgets(budget, len(slices), unit, bound)
    releases = [
        release_of(of_slice(counts, number), domain, budget=part, method=method, unit=unit, **how)
        for number, part in enumerate(budgets)
    ]
    return SeriesRelease.of(slices, releases, bound)


def of_slice(counts: Tally, number: int) -> Tally:
    """Counts of one slice, which stand together."""
    if counts.slice is None:
        raise ParameterError("the tally was made without time slices")
    low, high = np.searchsorted(counts.slice, [number, number + 1])
    return Tally(
        columns=counts.columns[low:high],
        rows=counts.rows[low:high],
        counts=counts.counts[low:high],
        contributions=counts.contributions,
    )


def within(batches: Iterable[Batch], slices: TimeSlices) -> Iterator[Batch]:
    """Coordinates of the rows that lie in some slice."""
    for batch in batches:
        if batch.time is None:
            raise InputDataError("the input has no times, which its time slices need")
        inside = slices.index(batch.time) >= 0
        yield Batch(x=batch.x[inside], y=batch.y[inside])
