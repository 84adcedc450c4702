"""What may stop a build after its input was opened, and what an analyst learns of it. Private side.

The rule: the exit of a build, its message, the ledger and the files it writes are the same for
every input of the same form, wherever the records lie.

1. Public parameters are checked before anything is read, `rehearse`.
2. While records are read, a refusal is a function of their form: whether a file is a CSV, a
   coordinate is a number, an id or a time is there. The form is checked over all records, by rules
   that read no bounds, no area, no slices and no counts. Records that lie outside are dropped one
   by one, and an input without a record inside gives a release like any other.
3. With a ledger a refusal is one fixed sentence, `UNREADABLE`. Its reason goes to
   `psd.publish.observer.Observer.private_fault` alone.
4. What stops a build otherwise (memory, disk, an engine, a defect) may depend on how many records
   lie inside. With a ledger it is charged, and told by the same sentence.

Proof: let D and D' be two inputs that differ in one unit of privacy and have the same form. By 2 no
refusal of form separates them. By 4 all other ends of a build before its draws cost the same as the
release; a build that ends so has charged epsilon and shown one bit. The bit of a build that ends
otherwise is not covered by the guarantee, but it is paid for like a release, so that the budget
bounds how often it is shown. Inputs of another form are told apart at no cost: the person who may
choose the input, or its columns, learns whether every record has an id, a time and numbers, and one
sentence does not say more. A ledger registers the columns, so an analyst cannot choose them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from psd.curator.curator import Curator
from psd.curator.private_bounds import PrivateBounds
from psd.errors import (
    BudgetError,
    DomainError,
    InputDataError,
    LedgerError,
    MissingExtraError,
    ParameterError,
    RandomnessError,
    ResourceError,
)
from psd.ingest.tally_builder import TallyBuilder
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.publish.count_rows import allot_shares
from psd.publish.series import slice_budgets, slice_tally

if TYPE_CHECKING:
    from psd.publish.charging import PendingCharge
    from psd.publish.observer import Observer
    from psd.publish.public_inputs import PublicInputs
    from psd.publish.request import BuildRequest

__all__ = ["UNREADABLE", "rehearse", "withhold_faults"]

UNREADABLE = (
    "the input could not be read to its end; the holder of the data can read the reason in the "
    "private report"
)
"""All that is told of a fault in the input where a ledger is used."""

# Faults of the form of an input. They say nothing of where records lie.
_FORM = (InputDataError, DomainError)

# Faults of the request, the ledger or the machine before a record is read.
_PUBLIC = (ParameterError, BudgetError, LedgerError, MissingExtraError, RandomnessError)


@contextmanager
def withhold_faults(pending: PendingCharge, observer: Observer) -> Iterator[None]:
    """Replace each fault of an input by one sentence, and charge those that are not of its form.

    Without an account nothing is replaced: the person who builds holds the data.

    Guarantees
    ----------
    - With an account, the sentence and the exit code do not depend on the fault.
    - A fault that is not of the form is charged before it is told.
    """
    if not pending.has_account:
        yield
        return
    fault: Exception
    try:
        yield
        return
    except _PUBLIC:
        raise
    except _FORM as error:
        fault = error
        is_charged = isinstance(error, ResourceError)
    except Exception as error:
        fault, is_charged = error, True
    observer.private_fault(f"{type(fault).__name__}: {fault}")
    if is_charged:
        pending.charge()
    raise InputDataError(UNREADABLE)


def rehearse(request: BuildRequest, inputs: PublicInputs) -> None:
    """Build once from no records at all, so that parameters are refused before a charge.

    Nothing of the data is read and the result is dropped.

    Raises
    ------
    ParameterError, DomainError, BudgetError
        If a method cannot be built with these parameters.
    """
    domain = request.domain
    if isinstance(domain, PrivateBounds):
        domain = replace(domain.outer, lattice=domain.lattice)
    assert domain is not None
    counts = TallyBuilder(domain, unit=request.unit, slices=request.slices).build()
    budget = Budget(request.nano_epsilon)
    allot_shares(request.domain or domain, request.reading, budget)
    if request.slices is not None:
        shares = (len(request.slices), request.unit, request.contribution_scope)
        counts, budget = slice_tally(counts, 0), slice_budgets(budget, *shares)[0]
    curator = Curator(
        counts,
        domain,
        budget=budget,
        sampler=SecureSampler(),
        covariate=inputs.steering,
        boundary=inputs.mask,
    )
    request.method.build(curator)
