"""Read and tally records; choose a contribution bound and estimate bounds before. Private."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from psd._util.arrays import keep_freed_memory
from psd.curator.contribution_choice import choose_contribution_bound
from psd.curator.private_bounds import PrivateBounds, find_bounds
from psd.errors import BudgetError, ParameterError
from psd.ingest.memory_limit import split_memory
from psd.ingest.sources import OnCopy, check_repeatable, read, refuse_copy
from psd.ingest.tally_builder import TallyBuilder
from psd.privacy.unit import PrivacyUnit, counted_unit
from psd.publish.request import ReadRequest

if TYPE_CHECKING:
    from psd.ingest.strata import Area, Strata
    from psd.ingest.tally import Tally
    from psd.mechanisms.base import Sampler
    from psd.privacy.budget import Budget
    from psd.space.domain import Domain

__all__ = ["CountedRows", "allot_shares", "count_rows"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CountedRows:
    """Tally of the records that were read. Private.

    Parameters
    ----------
    tally : Tally
        Private.
    domain : Domain
        Of the tally. Public.
    unit : PrivacyUnit
        Unit by which records were bounded. Public.
    """

    tally: Tally
    domain: Domain
    unit: PrivacyUnit

    def __repr__(self) -> str:
        return "<counted rows: private>"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Reading:
    """Arguments common to all readings of one input."""

    data: Any
    request: ReadRequest
    unit: PrivacyUnit
    sampler: Sampler
    memory: int | None
    limits_cells: bool
    strata: Strata | None = None

    def count(
        self,
        domain: Domain,
        for_choice: Budget | None = None,
        *,
        step: tuple[int, int] = (1, 1),
        area: Area | None = None,
        on_copy: OnCopy | None = None,
        declared: Domain | None = None,
    ) -> CountedRows:
        """Read once; choose the bound if there is a budget for it.

        `declared` is the domain that the CRS of the input is compared with, if it is another one.
        """
        columns, choice = self.request.columns, self.request.contribution_choice
        assert columns is not None
        for_rows, for_parser = split_memory(self.memory)
        keep_freed_memory()
        builder = TallyBuilder(
            domain,
            unit=self.unit,
            step=step,
            area=area,
            slices=self.request.slices,
            strata=self.strata,
            memory=for_rows,
            limits_cells=self.limits_cells,
        )
        for batch in read(
            self.data,
            replace(columns, memory=for_parser),
            declared or domain,
            on_copy=on_copy,
        ):
            builder.add_batch(batch)
        if choice is None or for_choice is None:
            return CountedRows(tally=builder.build(), domain=domain, unit=self.unit)
        bound = choose_contribution_bound(builder.rows_per_unit(), choice, for_choice, self.sampler)
        unit = replace(self.unit, max_contributions=bound)
        return CountedRows(tally=builder.build(unit=unit), domain=domain, unit=unit)


def count_rows(
    data: Any,
    domain: Domain | PrivateBounds,
    request: ReadRequest,
    *,
    budget: Budget,
    sampler: Sampler,
    step: tuple[int, int] = (1, 1),
    area: Area | None = None,
    on_copy: OnCopy = refuse_copy,
    memory: int | None = None,
    limits_cells: bool = True,
    strata: Strata | None = None,
) -> CountedRows:
    """Read a source, choose a bound and estimate bounds if the request says so, and tally.

    Guarantees
    ----------
    - Reading comes first, then the question about users, which is charged, then the bound, the
      tally, and the questions to a curator.
    - Shares of the budget that leave nothing for the counts are refused before a record is read.
    - Private bounds are estimated in a first reading, of which only they are kept; records outside
      are dropped in the second one, each by itself.

    Parameters
    ----------
    data : object
        As in `psd.build`. Private.
    domain : Domain or PrivateBounds
        Public.
    request : ReadRequest
        Public.
    budget : Budget
        Of the whole release; shares of it are allotted before anything is read. Public.
    sampler : Sampler
        Draws the bound and the bounds.
    step, area
        As in `psd.ingest.tally_builder.TallyBuilder`. Public.
    on_copy : callable
        Called with a PRIVATE message if two files have equal content.
    memory : int, optional
        Bytes that reading may take, a third of them for the source.
    limits_cells : bool
        As in `psd.ingest.tally_builder.TallyBuilder`. Public.
    strata : Strata, optional
        Such as regions of the domain, which is not private then. Public.

    Returns
    -------
    CountedRows

    Raises
    ------
    InputDataError
        If the input cannot be read, or not twice where bounds are estimated.
    ParameterError
        If the shares of epsilon leave nothing for the counts.
    """
    for_choice, for_bounds = allot_shares(domain, request, budget)
    unit = counted_unit(request.unit, request.contribution_scope)
    reader = _Reading(
        data=data,
        request=request,
        unit=unit,
        sampler=sampler,
        memory=memory,
        limits_cells=limits_cells,
        strata=strata,
    )
    if not isinstance(domain, PrivateBounds):
        return reader.count(domain, for_choice, step=step, area=area, on_copy=on_copy)
    assert for_bounds is not None
    check_repeatable(data)
    first = reader.count(domain.outer, for_choice, on_copy=on_copy, declared=domain.widest)
    chosen_domain = find_bounds(first.tally, domain, for_bounds, sampler)
    return replace(reader, unit=first.unit).count(chosen_domain, step=step)


def allot_shares(
    domain: Domain | PrivateBounds, request: ReadRequest, budget: Budget
) -> tuple[Budget | None, Budget | None]:
    """Set apart the budgets of the choice of a bound and of private bounds, if there are any.

    Raises
    ------
    ParameterError
        If the shares leave nothing.
    """
    choice = request.contribution_choice
    try:
        for_choice = None if choice is None else choice.allot(budget)
        for_bounds = domain.allot(budget) if isinstance(domain, PrivateBounds) else None
        if budget.left:
            return for_choice, for_bounds
    except BudgetError:
        pass
    raise ParameterError(
        "share of epsilon must leave some for counting, got shares of private bounds and of a "
        "chosen bound that use up all of it; lower them"
    )
