"""From a source to a tally: what is read, whose rows are kept, what is paid on the way. Private."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from psd.curator.contribution_choice import BoundChoice, choose_bound
from psd.curator.private_bounds import PrivateBounds, find_bounds
from psd.errors import BudgetError, ParameterError
from psd.ingest.sources import Columns, check_repeatable, read
from psd.ingest.tally_builder import TallyBuilder
from psd.privacy.unit import PrivacyUnit, privacy_unit

if TYPE_CHECKING:
    from psd.ingest.engines import Engine
    from psd.ingest.tally import Tally
    from psd.ingest.tally_builder import Area
    from psd.mechanisms.base import Sampler
    from psd.privacy.budget import Budget
    from psd.privacy.unit import Count, Per
    from psd.space.domain import Domain
    from psd.space.time_slices import TimeSlices

__all__ = ["Counted", "Wanted", "count_rows", "wanted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is read, and whose rows are kept. Public.

    Parameters
    ----------
    columns : Columns
        Names of the columns.
    unit : PrivacyUnit
        Of privacy; the bound in it is a stand-in where one is chosen.
    choice : BoundChoice, optional
        How a bound is chosen.
    """

    columns: Columns
    unit: PrivacyUnit
    choice: BoundChoice | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Counted:
    """Rows that were tallied. Private.

    Parameters
    ----------
    tally : Tally
        Private.
    domain : Domain
        Of the tally. Public.
    unit : PrivacyUnit
        Of the tally. Public.
    """

    tally: Tally
    domain: Domain
    unit: PrivacyUnit

    def __repr__(self) -> str:
        return "<counted rows: private>"


def wanted(
    columns: Columns,
    *,
    max_contributions: int | str | BoundChoice | None,
    per: Per | None = None,
    count: Count = "rows",
) -> Wanted:
    """What is read, from the arguments of `psd.build`.

    Raises
    ------
    ParameterError
        If arguments do not go together.
    """
    choice = None
    if max_contributions == "auto":
        choice = BoundChoice()
    elif isinstance(max_contributions, BoundChoice):
        choice = max_contributions
    bound: Any = max_contributions if choice is None else choice.most
    unit = privacy_unit(
        columns.user, bound, per=per, time=columns.time, time_zone=columns.time_zone, count=count
    )
    return Wanted(columns=columns, unit=unit, choice=choice)


def count_rows(
    data: Any,
    place: Domain | PrivateBounds,
    asked: Wanted,
    *,
    budget: Budget,
    sampler: Sampler,
    step: tuple[int, int] = (1, 1),
    area: Area | None = None,
    slices: TimeSlices | None = None,
    memory: int | None = None,
    engine: Engine | None = None,
) -> Counted:
    """Read a source, find what is to be found for a price, and tally.

    Guarantees
    ----------
    - Reading comes first; then the question about users, which is charged; then the bound,
      the tally, and whatever a curator is asked about it.
    - Shares of the budget that leave nothing for the counts are refused before a row is read.
    - Bounds are found in a first reading, of which nothing but them is kept; rows outside are
      dropped in the second one, each by itself.

    Parameters
    ----------
    data : object
        As in `psd.build`. Private.
    place : Domain or PrivateBounds
        Public.
    asked : Wanted
        Public.
    budget : Budget
        Of the whole release; shares of it are allotted before anything is read. Public.
    sampler : Sampler
        Draws what is to be found.
    step : tuple of int
        As in `psd.ingest.tally_builder.TallyBuilder`. Public.
    area : Area, optional
        As in `psd.ingest.tally_builder.TallyBuilder`. Public.
    slices : TimeSlices, optional
        As in `psd.ingest.tally_builder.TallyBuilder`; bounds are then public. Public.
    memory : int, optional
        Bytes that reading may take, a third of them for the source.
    engine : Engine, optional
        Reads and counts elsewhere; with bounds that are given.

    Returns
    -------
    Counted

    Raises
    ------
    InputDataError
        If bounds are to be found in an input that cannot be read twice, or it cannot be read.
    ParameterError
        If something is to be found in the data that an engine does not find, or the engine is
        none.
    """
    for_choice, for_bounds = _allotted(place, asked, budget)
    if engine is not None:
        if not hasattr(engine, "tally"):
            raise ParameterError(f"engine {engine!r} is none; give for instance psd.Spark(url=...)")
        return _elsewhere(engine, data, place, asked, step, area=area, memory=memory)
    if isinstance(place, PrivateBounds):
        assert for_bounds is not None
        check_repeatable(data)
        first = _counted(data, place.outer, asked, for_choice, sampler, memory=memory)
        domain = find_bounds(first.tally, place, for_bounds, sampler)
        known = replace(asked, unit=first.unit, choice=None)
        return _counted(data, domain, known, None, sampler, step=step, memory=memory, anywhere=True)
    how = {"step": step, "area": area, "slices": slices, "memory": memory}
    return _counted(data, place, asked, for_choice, sampler, **how)  # type: ignore[arg-type]


def _allotted(
    place: Domain | PrivateBounds, asked: Wanted, budget: Budget
) -> tuple[Budget | None, Budget | None]:
    """Budgets of the choice of a bound and of private bounds, where they are asked for."""
    try:
        for_choice = None if asked.choice is None else asked.choice.allot(budget)
        for_bounds = place.allot(budget) if isinstance(place, PrivateBounds) else None
        if budget.left:
            return for_choice, for_bounds
    except BudgetError:
        pass
    raise ParameterError(
        "the shares of epsilon for bounds and for the choice of a bound leave nothing to count "
        "with; lower them"
    )


def _elsewhere(
    engine: Engine,
    data: Any,
    place: Domain | PrivateBounds,
    asked: Wanted,
    step: tuple[int, int],
    *,
    area: Area | None,
    memory: int | None,
) -> Counted:
    """One reading on an engine, which finds nothing by itself."""
    found_here = {
        "private bounds": isinstance(place, PrivateBounds),
        "max_contributions auto": asked.choice is not None,
        "a boundary": area is not None,
        "memory": memory is not None,
    }
    for what, is_given in found_here.items():
        if is_given:
            raise ParameterError(f"{what} does not go with an engine; build in this process")
    assert not isinstance(place, PrivateBounds)
    tally = engine.tally(data, asked.columns, place, unit=asked.unit, step=step)
    return Counted(tally=tally, domain=place, unit=asked.unit)


def _counted(
    data: Any,
    domain: Domain,
    asked: Wanted,
    for_choice: Budget | None,
    sampler: Sampler,
    *,
    step: tuple[int, int] = (1, 1),
    area: Area | None = None,
    slices: TimeSlices | None = None,
    memory: int | None = None,
    anywhere: bool = False,
) -> Counted:
    """One reading."""
    columns = replace(asked.columns, memory=memory and memory // 3)
    kept = memory and memory * 2 // 3
    builder = TallyBuilder(
        domain,
        unit=asked.unit,
        step=step,
        area=area,
        slices=slices,
        memory=kept,
        anywhere=anywhere,
    )
    for batch in read(data, columns, domain):
        builder.add_batch(batch)
    if asked.choice is None or for_choice is None:
        return Counted(tally=builder.build(), domain=domain, unit=asked.unit)
    bound = choose_bound(builder.rows_per_unit(), asked.choice, for_choice, sampler)
    unit = replace(asked.unit, max_contributions=bound)
    return Counted(tally=builder.build(unit=unit), domain=domain, unit=unit)
