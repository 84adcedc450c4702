"""Build a release from a request and its data; all builds use `publish`.

1. The request is completed and checked; public files are read. 2. The ledger checks that the charge
   fits. 3. Records are read and counted. 4. The ledger is charged. 5. Noise is drawn.

`psd.publish.refusals` states which conditions stop a build, and what the message shows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from psd._util.instances import check_instance, refuse_class
from psd.errors import InputDataError
from psd.ingest.sources import resolve_inputs
from psd.ledger.account import Account
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.publish.charging import PendingCharge
from psd.publish.count_inputs import CountInput, RecordInput, count_input
from psd.publish.drawing import draw_release
from psd.publish.fields import public_files
from psd.publish.insecure import refuse_paid
from psd.publish.observer import SILENT, Observer
from psd.publish.public_inputs import PublicInputs, resolve_public_inputs
from psd.publish.refusals import dry_run_method, mask_errors
from psd.publish.request import BuildRequest
from psd.publish.series import draw_series, slice_budgets, squared_of
from psd.space.domain import Domain

if TYPE_CHECKING:
    from collections.abc import Callable

    from psd.api.release import Release
    from psd.ingest.engine import Engine
    from psd.mechanisms.base import Sampler
    from psd.privacy.budget import Statement
    from psd.publish.count_rows import CountedRows

__all__ = ["Draw", "answer", "publish"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Draw(Protocol[T_co]):
    """What is drawn from the counts of a request, once these are charged."""

    def __call__(
        self,
        request: BuildRequest,
        counted: CountedRows,
        inputs: PublicInputs,
        budget: Budget,
        sampler: Sampler,
    ) -> T_co:
        """Draw the result."""


def publish(
    request: BuildRequest,
    data: Any,
    *,
    engine: Engine | None = None,
    memory: str | int | None = None,
    account: Account | None = None,
    sampler: Sampler | None = None,
    observer: Observer = SILENT,
) -> Release:
    """Build the release of a request.

    Guarantees
    ----------
    - The release is ``request.epsilon``-differentially private for adding or removing one unit of
      the request; twice epsilon for replacing one. With Gaussian noise it is
      ``(request.epsilon, request.delta)``-differentially private, and ``request.loss.rho``-zCDP;
      for replacing one, four times rho.
    - It holds the noisy answers, public parameters and nothing else.
    - Reading comes first: an input whose form is refused costs no epsilon. Whether it is refused
      does not depend on where records lie; with an account the reason is not stated.
    - With an account, epsilon is charged to it before anything is drawn, or nothing is drawn. A
      build that reads other columns, or another time zone, than the dataset registers is charged
      before it reads, because its form could tell values of these columns.
    - With an account, links among the input files are followed once, before the first check.

    Parameters
    ----------
    request : BuildRequest
        Public.
    data : object or list of objects
        Records as in `psd.build`, tallies, or a `psd.publish.count_inputs.CountInput`. Private.
    engine : Engine, optional
        Where records are read and counted.
    memory : str or int, optional
        Limit on the memory that reading takes, such as ``"2GB"``.
    account : Account, optional
        Dataset of a ledger that is charged.
    sampler : Sampler, optional
        For tests and demonstrations; a release of another sampler than `SecureSampler` cannot be
        saved.
    observer : Observer
        Functions that are called while the build runs.

    Returns
    -------
    Release
        A series if the request, or its tallies, have slices.

    Raises
    ------
    ParameterError
        If the request does not fit the data, such as no bounds for records.
    InputDataError
        If the input cannot be read.
    BudgetError, LedgerError
        If the account cannot be charged.
    """
    return answer(
        request,
        data,
        _draw,
        engine=engine,
        memory=memory,
        account=account,
        sampler=sampler,
        observer=observer,
    )


def answer(
    request: BuildRequest,
    data: Any,
    draw: Draw[T],
    *,
    engine: Engine | None = None,
    memory: str | int | None = None,
    account: Account | None = None,
    sampler: Sampler | None = None,
    observer: Observer = SILENT,
) -> T:
    """Check, read, count, charge and draw, in this order; `publish` draws a release.

    Guarantees
    ----------
    - As `publish`, for whatever the method of the request asks the curator.

    Parameters
    ----------
    request, data, engine, memory, account, sampler, observer
        As `publish`.
    draw : Draw
        Makes the result of the counts, by the questions that ``request.method.build`` asks.

    Raises
    ------
    ParameterError, InputDataError, BudgetError, LedgerError
        As `publish`.
    """
    if account is not None:
        check_instance("account", account, Account, 'psd.ledger.Account("city.ledger", "visits")')
    refuse_class("sampler", sampler)
    if account is not None:  # a refusal would tell whether files are equal, at no cost
        observer = replace(observer, private_copy=observer.private_fault)
        account.refuse_records(
            public_files(
                {
                    "regions": request.region_source,
                    "boundary": request.boundary,
                    "covariate": request.covariate,
                }
            )
        )
    source = _count_input(data, engine, memory, observer, withholds=account is not None)
    source, fault = (source, None) if account is None else _follow_links(source)
    request = source.complete(request)
    inputs = _read_public_inputs(request)
    if request.slices is not None:
        _ = slice_budgets(
            Budget(request.loss), len(request.slices), request.unit, request.contribution_scope
        )
    sampler = SecureSampler() if sampler is None else sampler
    refuse_paid(sampler, account)
    pending = PendingCharge(account, source.charge_request(request))
    budget = _budget_of(request, source, on_first_spend=pending.charge)

    def count_and_draw() -> T:
        counted = source.count(
            request, budget=budget, sampler=sampler, boundary=inputs.boundary, observer=observer
        )
        budget.open()
        observer.progress("counting with noise")
        return draw(request, counted, inputs, budget, sampler)

    if account is None:
        return count_and_draw()
    if fault is not None:  # after the ledger, which may refuse the build for another reason
        raise fault
    source.check_public(request)
    dry_run_method(request, inputs, _budget_of(request, source))
    if not pending.reads_as_registered:
        budget.open()
        pending.charge_fault()  # whether these columns can be read is one bit, at a fixed price
    return mask_errors(count_and_draw, observer, charge=pending.charge_fault)


def _budget_of(
    request: BuildRequest,
    source: CountInput,
    *,
    on_first_spend: Callable[[], Statement] | None = None,
) -> Budget:
    """Budget of a request, without what was spent earlier on the counts of its source."""
    budget = Budget(request.loss, on_first_spend=on_first_spend)
    paid = source.paid(budget.measure)
    if paid:
        budget.reserve("counting", paid)
    return budget


def _count_input(
    data: Any,
    engine: Engine | None,
    memory: str | int | None,
    observer: Observer,
    *,
    withholds: bool,
) -> CountInput:
    """Where the counts come from; faults of tallies may be withheld from all but the observer."""

    def count_of_data() -> CountInput:
        return count_input(data, engine=engine, memory=memory, on_copy=observer.private_copy)

    return mask_errors(count_of_data, observer) if withholds else count_of_data()


def _follow_links(source: CountInput) -> tuple[CountInput, InputDataError | None]:
    """Follow the links of input files once; the fault if a file is missing or repeated.

    A limit of memory no longer refuses occupied cells, whose number depends on the records.
    """
    if not isinstance(source, RecordInput):
        return source, None
    try:
        return replace(source, data=resolve_inputs(source.data), limits_cells=False), None
    except InputDataError as error:
        return source, error


def _read_public_inputs(request: BuildRequest) -> PublicInputs:
    """Read the public files of a request."""
    assert request.post_processing is not None
    return resolve_public_inputs(
        request.domain if isinstance(request.domain, Domain) else None,
        request.post_processing,
        covariate=request.covariate,
        boundary=request.boundary,
    )


def _draw(
    request: BuildRequest,
    counted: CountedRows,
    inputs: PublicInputs,
    budget: Budget,
    sampler: Sampler,
) -> Release:
    """Draw the release of the counts, or the series of their slices."""
    scope = request.contribution_scope
    common: dict[str, Any] = {
        "budget": budget,
        "method": request.method,
        "unit": request.unit if scope == "slice" else counted.unit,
        "post_processing": inputs.post_processing,
        "covariate": inputs.covariate,
        "boundary": inputs.boundary,
        "regions": request.regions,
        "about": request.about,
        "sampler": sampler,
    }
    if request.slices is None:
        squared = squared_of(budget, common["unit"], scope, None)
        return draw_release(counted.tally, counted.domain, squared_sensitivity=squared, **common)
    return draw_series(counted.tally, counted.domain, request.slices, scope=scope, **common)
