"""From a source to a tally: what is read, whose rows are kept, what is paid on the way. Private."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from psd.bound_choice import BoundChoice, choose_bound
from psd.intake import Intake
from psd.sources import Columns, read
from psd.unit import Unit, unit_of

if TYPE_CHECKING:
    from psd.domain import Domain
    from psd.intake import Area
    from psd.noise import Noise
    from psd.tally import Tally
    from psd.unit import Count, Per

__all__ = ["Counted", "Wanted", "count_rows", "wanted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is read, and whose rows are kept. Public.

    Parameters
    ----------
    columns : Columns
        Names of the columns.
    unit : Unit
        Of privacy; the bound in it is a stand-in where one is chosen.
    choice : BoundChoice, optional
        How a bound is chosen.
    """

    columns: Columns
    unit: Unit
    choice: BoundChoice | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Counted:
    """Rows that were tallied. Private.

    Parameters
    ----------
    tally : Tally
        Private.
    unit : Unit
        Of the tally. Public.
    paid : int
        Nano-epsilon spent before the tally was made. Public.
    stated : dict
        What it was spent on, for the parameters of the release. Public.
    """

    tally: Tally
    unit: Unit
    paid: int = 0
    stated: dict[str, int | str] = field(default_factory=dict)

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
    unit = unit_of(
        columns.user, bound, per=per, time=columns.time, time_zone=columns.time_zone, count=count
    )
    return Wanted(columns=columns, unit=unit, choice=choice)


def count_rows(
    data: Any,
    domain: Domain,
    asked: Wanted,
    *,
    epsilon: int,
    noise: Noise,
    step: tuple[int, int] = (1, 1),
    area: Area | None = None,
    memory: int | None = None,
) -> Counted:
    """Read a source, choose a bound if one is to be chosen, and tally.

    Guarantees
    ----------
    - Reading comes first; then the question about users, which is charged; then the bound,
      the tally, and whatever a curator is asked about it.

    Parameters
    ----------
    data : object
        As in `psd.build`. Private.
    domain : Domain
        Public.
    asked : Wanted
        Public.
    epsilon : int
        Nano-epsilon of the whole release. Public.
    noise : Noise
        Mechanisms.
    step : tuple of int
        As in `psd.intake.Intake`. Public.
    area : Area, optional
        As in `psd.intake.Intake`. Public.
    memory : int, optional
        Bytes that reading may take, a third of them for the source.

    Returns
    -------
    Counted
    """
    columns = replace(asked.columns, memory=memory and memory // 3)
    kept = memory and memory * 2 // 3
    intake = Intake(domain, unit=asked.unit, step=step, area=area, memory=kept)
    for batch in read(data, columns, domain):
        intake.add(batch)
    if asked.choice is None:
        return Counted(tally=intake.tally(), unit=asked.unit)
    bound = choose_bound(intake.sizes(), asked.choice, epsilon, noise)
    unit = replace(asked.unit, max_contributions=bound)
    return Counted(
        tally=intake.tally(unit=unit),
        unit=unit,
        paid=asked.choice.price(epsilon),
        stated=asked.choice.stated(epsilon),
    )
