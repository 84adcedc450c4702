"""What may stop a build after its input was opened, and what an analyst learns of it. Private side.

The rule: the exit of a build, its message, the ledger and the set of its files are the same for
every input of the same form, wherever the records lie.

1. Public parameters and paths of inputs are checked before anything is read, `dry_run_method`.
2. While records are read, a refusal is a function of their form: whether a file is a CSV, a
   coordinate is a number, an id or a time is there. All records are checked, by rules that read no
   bounds, boundary, slices or counts. Records outside are dropped one by one, and so are those that
   the transform to the CRS of the domain does not reach. An input without a record inside gives a
   release like any other.
3. With a ledger a refusal is one fixed sentence, `UNREADABLE`. Its reason goes to
   `psd.publish.observer.Observer.private_fault` alone.
4. What stops a build otherwise (memory, disk, an engine, a defect) may depend on how many records
   lie inside. With a ledger it is charged, at least a twentieth of the budget, and answered by the
   same sentence. A limit that the request sets, `memory=`, does not stop a build with a ledger.

Proof: let D and D' be two inputs that differ in one unit of privacy and have the same form. By 2 no
refusal of form separates them. By 4 all other ends of a build before its draws are charged like the
release, at a price that the request cannot lower (`LedgerState.fault_charge`). Such an end shows
one bit, which the guarantee of the release does not cover; at most `psd.ledger.state.MAX_FAULTS` of
them use up the budget of a place and time. Additions to streams, which were paid for before, have
no more of them than that while nothing is left: the ledger counts those that cost nothing, over all
streams of a dataset, so no copy of a state forgets them. Inputs of another form are distinguished
at no cost: who builds learns whether every record has an id, a time in range and numbers, and no
more, since the sentence is fixed: one bit for the input and the columns that a ledger registers,
for all bounds. A build that reads other columns, or another time zone, is charged before it reads,
and pays the price of a fault whatever comes of it, so each of their bits costs as much as any.

Not covered: how long a build takes, and a process that the system ends by a signal, which charges
nothing because no code runs after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from psd.curator.curator import Curator
from psd.curator.private_bounds import PrivateBounds
from psd.errors import (
    BudgetError,
    DomainError,
    InputDataError,
    LedgerError,
    MissingExtraError,
    ParameterError,
    PsdError,
    RandomnessError,
    ResourceError,
)
from psd.ingest.tally_builder import TallyBuilder
from psd.privacy.unit import counted_unit
from psd.publish.counting import allot_shares
from psd.publish.drawing import cube_terms, slice_budgets, slice_tally, squared_of
from psd.publish.insecure import SeededSampler

if TYPE_CHECKING:
    from psd.privacy.budget import Budget
    from psd.publish.observer import Observer
    from psd.publish.public_inputs import PublicInputs
    from psd.publish.request import BuildRequest

__all__ = ["dry_run_method", "mask_errors"]

T = TypeVar("T")

UNREADABLE = (
    "the input could not be read to its end; the holder of the data can read the reason in the "
    "private report, --report-private"
)
"""All that a build with a ledger says of a fault in its input."""

# Faults of the form of an input. They do not depend on where records lie.
_FORM = (InputDataError, DomainError)

# Faults of the request, the ledger or the machine before a record is read.
_PUBLIC = (ParameterError, BudgetError, LedgerError, MissingExtraError, RandomnessError)


def mask_errors(
    work: Callable[[], T], observer: Observer, *, charge: Callable[[], object] | None = None
) -> T:
    """Do work that reads an input for an account, and replace its faults by one sentence.

    work: reads an input, private. `observer` gets the reason. `charge` charges the account, once in
    any number of calls; it is left out before any count is read.
    P1. The sentence and the class of the error do not depend on the fault, and the error carries no
    other one as its context.
    P2. A fault that is not of the form is charged before it is answered, as ``charge`` does.
    """
    try:
        return work()
    except Exception as error:
        fault = error
    raise masked_error(fault, observer, charge=charge)  # outside, so that it is no context


def masked_error(
    fault: Exception, observer: Observer, *, charge: Callable[[], object] | None = None
) -> Exception:
    """Error to raise for a fault, as `mask_errors`; not in its handler, which is its context."""
    # Faults of the request, the ledger or the machine are public; all others are private.
    if isinstance(fault, _PUBLIC):
        return fault
    is_form = isinstance(fault, _FORM) and not isinstance(fault, ResourceError)
    if charge is not None and not is_form:
        charge()
    # The text of an unexpected error may quote records, so only its kind is told.
    is_own = isinstance(fault, PsdError)
    observer.private_fault(str(fault) if is_own else f"it failed with {type(fault).__name__}")
    return InputDataError(UNREADABLE)


def dry_run_method(request: BuildRequest, inputs: PublicInputs, budget: Budget) -> None:
    """Build once from no records at all, so that parameters are refused before a charge.

    No data is read, no random number drawn, and the result is dropped. `budget` is a copy of that
    of the build, without what tallies have spent earlier; it charges nothing.
    """
    domain = request.domain
    allot_shares(domain, request, budget)
    if isinstance(domain, PrivateBounds):
        domain = replace(domain.outer, lattice=domain.lattice)
    unit = counted_unit(request.unit, request.contribution_scope)
    regions, strata = request.regions, request.regions or request.category
    squared = squared_of(budget, request.unit, request.contribution_scope, request.slices)
    how: dict[str, Any] = {"slices": request.slices, "strata": strata, "values": request.values}
    counts = TallyBuilder(domain, unit=unit, **how).build()
    layers: dict[str, Any] = {"squared_sensitivity": squared}
    if request.is_cube:
        stated = (request.contribution_scope, request.slices, budget.measure, request.category)
        unit, layers = cube_terms(request.unit, *stated, regions)
        counts = replace(counts, contributions=unit.contributions)
    elif request.slices is not None:
        shares = (len(request.slices), request.unit, request.contribution_scope)
        counts, budget = slice_tally(counts, 0), slice_budgets(budget, *shares)[0]
    curator = Curator(
        counts,
        domain,
        budget=budget,
        sampler=SeededSampler(0),
        covariate=inputs.method_covariate,
        boundary=inputs.mask,
        regions=regions,
        **layers,
    )
    request.method.build(curator)
