"""Build a release, or another answer, from a request and its data; all builds are a `run_build`.

Steps: complete and check the request, and read public files; check that the charge fits the ledger;
read and count records; charge the ledger; draw. `psd.publish.refusals` states what stops a build.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from psd._util.instances import check_instance, refuse_class
from psd.curator.private_bounds import PrivateBounds
from psd.errors import InputDataError, ParameterError
from psd.ingest.sources import resolve_inputs
from psd.ledger.account import Account
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.publish.charging import PendingCharge
from psd.publish.counting import RecordInput, count_input
from psd.publish.drawing import slice_budgets
from psd.publish.fields import public_files
from psd.publish.insecure import SeededSampler
from psd.publish.observer import SILENT, Observer
from psd.publish.public_inputs import PublicInputs, resolve_public_inputs
from psd.publish.refusals import dry_run_method, mask_errors, masked_error
from psd.publish.request import BuildRequest, BuildTerms

if TYPE_CHECKING:
    from psd.ingest.engine import Engine
    from psd.mechanisms.base import Sampler
    from psd.publish.counting import CountedRows

__all__ = ["run_build"]

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


def run_build(
    terms: BuildTerms,
    data: Any,
    draw: Draw[T],
    *,
    engine: Engine | None = None,
    memory: str | int | None = None,
    account: Account | None = None,
    sampler: Sampler | None = None,
    observer: Observer = SILENT,
) -> T:
    """Build what is drawn from the counts of a request, such as its release.

    data: records as in `psd.build`, tallies, or a `psd.publish.counting.CountInput`, private; all
    else public. `draw` makes the result of the counts, by questions to the curator; a release is a
    series if the request, or its tallies, have slices. One of another sampler than `SecureSampler`
    cannot be saved.
    P1. A release, as `psd.publish.drawing.draw_counts` draws it, is
    ``request.epsilon``-differentially private for adding or removing one unit of the request; twice
    epsilon for replacing one. With Gaussian noise it is ``(request.epsilon,
    request.delta)``-differentially private, and ``request.loss.rho``-zCDP; for replacing one, four
    times rho.
    P2. It holds the noisy answers, public parameters and nothing else.
    P3. Reading comes first: an input whose form is refused costs no epsilon. Whether it is refused
    does not depend on where records lie; with an account the reason is not stated.
    P4. With an account, epsilon is charged to it before anything is drawn, or nothing is drawn. A
    build that reads other columns, or another time zone, than the dataset registers is charged
    before it reads, because its form could tell values of these columns.
    P5. With an account, links among the input files are followed once, before the first check.
    """
    if account is not None:
        check_instance("account", account, Account, 'psd.ledger.Account("city.ledger", "visits")')
        # A refusal would tell whether files are equal, at no cost.
        observer = replace(observer, private_copy=observer.private_fault)
        files: dict[str, Any] = {"regions": terms.region_source}
        files |= {"boundary": terms.boundary, "covariate": terms.covariate}
        account.refuse_records(public_files(files))
    refuse_class("sampler", sampler)

    # 1. Complete the request by its source, and read public files.
    how: dict[str, Any] = {"engine": engine, "memory": memory, "on_copy": observer.private_copy}
    if account is None:
        source = count_input(data, **how)
    else:  # faults of tallies are told to the observer alone
        source = mask_errors(lambda: count_input(data, **how), observer)
    missing = None
    if account is not None and isinstance(source, RecordInput):
        # Links are followed once. A limit of memory no longer refuses occupied cells, whose number
        # depends on the records.
        try:
            source = replace(source, data=resolve_inputs(source.data), limits_cells=False)
        except InputDataError as error:
            missing = error
    request = source.complete(terms)
    inputs = resolve_public_inputs(
        request.domain,
        request.post_processing,
        covariate=request.covariate,
        boundary=request.boundary,
    )
    if request.slices is not None:  # refuse a loss that is too small for them
        number = len(request.slices)
        slice_budgets(Budget(request.loss), number, request.unit, request.contribution_scope)
    sampler = SecureSampler() if sampler is None else sampler
    if account is not None and isinstance(sampler, SeededSampler):
        raise ParameterError(
            "account must be left out with a seeded sampler; its result is not a release"
        )

    # 2. Check that the charge fits, and that the method can be built; the charge comes later.
    pending = None
    if account is not None:
        pending = PendingCharge(account, source.charge_request(request))
    budget = Budget(request.loss, on_first_spend=None if pending is None else pending.charge)
    dry = Budget(request.loss)
    earlier = source.paid(budget.measure)
    if earlier:
        budget.reserve("counting", earlier)
        dry.reserve("counting", earlier)
    if pending is not None:
        if missing is not None:  # after the ledger, which may refuse the build for another reason
            raise missing
        source.check_public(request)
        dry_run_method(request, inputs, dry)
        if not pending.reads_as_registered:
            budget.open()
            pending.charge_reading()  # whether these can be read is one bit, at a fixed price

    try:
        # 3. Read and count.
        counted = source.count(
            request, budget=budget, sampler=sampler, boundary=inputs.boundary, observer=observer
        )
        # 4. Charge, unless a first question was charged while counting.
        budget.open()
        # 5. Draw.
        observer.progress("counting with noise")
        return draw(request, counted, inputs, budget, sampler)
    except Exception as error:
        if pending is None:
            raise
        fault = error
    raise masked_error(fault, observer, charge=pending.charge_fault)


def report_reading(
    terms: BuildTerms,
    data: Any,
    *,
    engine: Engine | None = None,
    memory: str | int | None = None,
    withholds: bool,
    observer: Observer,
) -> None:
    """Read and count the records of a request for the private report alone.

    P6. Nothing is drawn, charged, returned or kept. It costs no epsilon, because nobody but the
    holder of the data sees it; so it must not choose a parameter of a release.
    P7. With ``withholds``, as for data of a ledger, a fault of the input goes to
    ``observer.private_fault`` alone, and the call ends as any other.
    """
    source = count_input(data, engine=engine, memory=memory, on_copy=observer.private_copy)
    request = source.complete(terms)
    inputs = resolve_public_inputs(
        request.domain,
        request.post_processing,
        covariate=request.covariate,
        boundary=request.boundary,
    )
    domain = request.domain
    # Bounds that a build would estimate are the outer ones, a limit it would choose the largest.
    if isinstance(domain, PrivateBounds):
        domain = replace(domain.outer, lattice=domain.lattice)
    request = replace(request, domain=domain, contribution_choice=None)

    def count() -> None:
        source.count(
            request,
            budget=Budget(request.loss),
            sampler=SeededSampler(0),  # nothing is left that would ask it
            boundary=inputs.boundary,
            observer=observer,
        )

    if not withholds:
        count()
        return
    with suppress(InputDataError):
        mask_errors(count, observer)
