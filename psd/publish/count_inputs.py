"""Where the counts of a build come from: records, an engine, or tallies of parts. Private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from psd.accounting import selection_rho
from psd.curator.private_bounds import PrivateBounds
from psd.errors import ParameterError
from psd.ingest.memory_limit import memory_for_rows, parse_memory
from psd.ingest.partial_tally import CountedRegions, CountingRules, PartialTally, merge
from psd.ingest.sources import OnCopy, check_input, check_repeatable, refuse_copy
from psd.ledger.charges import ChargeRequest
from psd.privacy.budget import Budget
from psd.privacy.unit import counted_unit
from psd.publish.charging import charge_request
from psd.publish.count_rows import CountedRows, count_rows
from psd.publish.drawing import coarsest_step
from psd.publish.request import BuildRequest, ReadRequest
from psd.space.domain import Domain

if TYPE_CHECKING:
    from psd.decompositions import Decomposition
    from psd.ingest.engine import Engine
    from psd.ingest.strata import Strata
    from psd.mechanisms.base import Sampler
    from psd.privacy.budget import Cost
    from psd.privacy.loss_measure import LossMeasure
    from psd.publish.observer import Observer
    from psd.regions.hierarchy import RegionHierarchy
    from psd.space.boundary import Boundary

__all__ = ["CountInput", "EngineInput", "RecordInput", "TallyInput", "count_input"]


@runtime_checkable
class CountInput(Protocol):
    """Input of a build."""

    def paid(self, measure: LossMeasure) -> Cost:
        """What was spent earlier on these counts; it is part of the release."""

    def complete(self, request: BuildRequest) -> BuildRequest:
        """Complete the request with what the source states; refuse a contradiction."""

    def charge_request(self, request: BuildRequest) -> ChargeRequest:
        """Return the charge for a ledger."""

    def check_public(self, request: BuildRequest) -> None:
        """Refuse what can be refused before a record is read, such as a path without a file."""

    def count(
        self,
        request: BuildRequest,
        *,
        budget: Budget,
        sampler: Sampler,
        boundary: Boundary | None,
        observer: Observer,
    ) -> CountedRows:
        """Count the records of the request."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RecordInput:
    """Records that are read in this process.

    Parameters
    ----------
    data : object or list of objects
        As in `psd.build`. Private.
    memory : str or int, optional
        Limit on the memory that reading takes.
    limits_cells : bool
        Whether more occupied cells than fit into the limit are refused. How many are occupied
        depends on the records, so with a ledger they are not.
    strata : Strata, optional
        By which records are counted, in place of regions. Public.
    """

    data: Any
    memory: str | int | None = None
    limits_cells: bool = True
    strata: Strata | None = None

    def paid(self, measure: LossMeasure) -> Cost:
        """Return 0: what these counts cost is spent in the build."""
        return 0

    def complete(self, request: BuildRequest) -> BuildRequest:
        """Return the request unchanged."""
        _check_complete(request)
        memory_for_rows(None if self.memory is None else parse_memory(self.memory))
        return request

    def charge_request(self, request: BuildRequest) -> ChargeRequest:
        """Charge of the region of the records, if these are rows of CSV."""
        return charge_request(request, self.data)

    def check_public(self, request: BuildRequest) -> None:
        """Refuse paths without a file, and inputs that cannot be read as often as needed."""
        assert request.columns is not None
        check_input(self.data, request.columns)
        if isinstance(request.domain, PrivateBounds):
            check_repeatable(self.data)

    def count(
        self,
        request: BuildRequest,
        *,
        budget: Budget,
        sampler: Sampler,
        boundary: Boundary | None,
        observer: Observer,
    ) -> CountedRows:
        """Read and count."""
        assert request.domain is not None
        observer.progress("reading")
        memory = memory_for_rows(None if self.memory is None else parse_memory(self.memory))
        counted = count_rows(
            self.data,
            request.domain,
            request.read_request,
            budget=budget,
            sampler=sampler,
            step=_method_step(request, observer),
            area=boundary,
            on_copy=observer.private_copy,
            memory=memory,
            limits_cells=self.limits_cells,
            strata=self.strata or request.regions,
        )
        return _report_counts(counted, observer)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class EngineInput:
    """Records that are read and counted elsewhere; nothing is estimated there.

    Parameters
    ----------
    data : object or list of objects
        As the engine reads it. Private.
    engine : Engine
        Reads and counts.
    """

    data: Any
    engine: Engine

    def paid(self, measure: LossMeasure) -> Cost:
        """Return 0: nothing was estimated."""
        return 0

    def complete(self, request: BuildRequest) -> BuildRequest:
        """Return the request unchanged, if the engine can do it."""
        _check_complete(request)
        if not hasattr(self.engine, "tally"):
            raise ParameterError(
                "engine must have a function tally, as Spark(url=...) of the app spark, got a "
                f"value of type {type(self.engine).__name__}"
            )
        broken_rules = {
            "bounds must be public": isinstance(request.domain, PrivateBounds),
            "max_contributions must be a number": request.contribution_choice is not None,
        }
        for rule, is_broken in broken_rules.items():
            if is_broken:
                raise ParameterError(f"{rule} with an engine; build in this process")
        return request

    def charge_request(self, request: BuildRequest) -> ChargeRequest:
        """Charge everywhere: the engine has its own rules of what is CSV."""
        return charge_request(request, self.data, by_fields=False)

    def check_public(self, request: BuildRequest) -> None:
        """Nothing: paths are those of the cluster."""

    def count(
        self,
        request: BuildRequest,
        *,
        budget: Budget,
        sampler: Sampler,
        boundary: Boundary | None,
        observer: Observer,
    ) -> CountedRows:
        """Count by the engine."""
        domain, columns = request.domain, request.columns
        assert domain is not None
        assert columns is not None
        assert not isinstance(domain, PrivateBounds)
        observer.progress("reading")
        step = _method_step(request, observer)
        unit = counted_unit(request.unit, request.contribution_scope)
        tally = self.engine.tally(
            self.data,
            columns,
            domain,
            unit=unit,
            step=step,
            area=boundary,
            slices=request.slices,
            strata=request.regions,
        )
        return _report_counts(CountedRows(tally=tally, domain=domain, unit=unit), observer)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TallyInput:
    """Records that were tallied before, in one part or in several.

    Guarantees
    ----------
    - The release is the one that the records themselves would give, wherever
      `psd.ingest.partial_tally.merge` gives the tally of all records together.
    - Epsilon that an earlier build spent on a contribution bound, or on bounds, of these counts is
      part of every release of them.

    Parameters
    ----------
    tally : PartialTally
        Private.
    """

    tally: PartialTally

    def paid(self, measure: LossMeasure) -> Cost:
        """What earlier builds spent on a contribution bound or on bounds.

        Proof in rho: all of it was paid for draws of the exponential mechanism. Those of one part
        have epsilons e_i that sum to its ``paid``, and cost the sum of e_i^2 / 8 [1]_, at most
        ``paid``^2 / 8. Rhos of several parts, and of the release, add up.

        References
        ----------
        .. [1] Cesar, Rogers. "Bounding, Concentrating, and Truncating." ALT 2021.
           https://arxiv.org/abs/2004.07223
        """
        if measure.is_pure:
            return self.tally.paid
        return sum(selection_rho(origin.paid) for origin in self.tally.origins)

    def complete(self, request: BuildRequest) -> BuildRequest:
        """Complete the request with domain, unit and slices of the tally."""
        rules = self.tally.rules
        reading = ReadRequest(
            columns=None,
            unit=self.tally.unit,
            slices=rules.slices,
            contribution_scope=rules.contribution_scope,
        )
        _check_regions(request.regions, rules)
        if request.boundary is not None:
            raise ParameterError("boundary must be left out for tallies, which were counted before")
        domain = request.domain if isinstance(request.domain, Domain) else rules.domain
        _check_step(request.method, domain, rules)
        request = request.complete(rules.domain, reading)
        self._check_paid(request)
        return request

    def _check_paid(self, request: BuildRequest) -> None:
        """Refuse an epsilon of which nothing is left for counts."""
        budget = Budget(request.loss)
        paid = self.paid(budget.measure)
        if paid >= budget.total:
            spent = budget.measure.text(paid)
            least = f"above {spent}" if budget.measure.is_pure else f"large enough for rho {spent}"
            raise ParameterError(
                f"epsilon must be {least}, which private bounds or a chosen bound of these tallies "
                f"cost, got {request.epsilon:f}; give more, or count the records with public ones"
            )

    def charge_request(self, request: BuildRequest) -> ChargeRequest:
        """Charge everywhere: the records of several parts may have been placed by several rules."""
        return charge_request(request, origins=self.tally.origins)

    def check_public(self, request: BuildRequest) -> None:
        """Nothing: the tallies have been read."""

    def count(
        self,
        request: BuildRequest,
        *,
        budget: Budget,
        sampler: Sampler,
        boundary: Boundary | None,
        observer: Observer,
    ) -> CountedRows:
        """Return the counts."""
        assert isinstance(request.domain, Domain)  # the tally's, with the smallest cell to build
        return CountedRows(tally=self.tally.tally, domain=request.domain, unit=self.tally.unit)


def count_input(
    data: Any,
    *,
    engine: Engine | None = None,
    memory: str | int | None = None,
    on_copy: OnCopy = refuse_copy,
) -> CountInput:
    """Return the input of a build for some data.

    Parameters
    ----------
    data : object
        A `PartialTally` or a list of them, a `CountInput`, or records as in `psd.build`. Private.
    engine : Engine, optional
        Where records are counted.
    memory : str or int, optional
        Limit on the memory that reading takes.
    on_copy : callable
        Called with a PRIVATE message if two tallies are of files of equal content.

    Raises
    ------
    ParameterError
        If an engine or memory is given for data that are not read.
    InputDataError
        If tallies cannot be merged.
    """
    source = data if isinstance(data, CountInput) else _as_tallies(data, on_copy)
    if source is None and engine is None:
        return RecordInput(data=data, memory=memory)
    if memory is not None or (source is not None and engine is not None):
        name = "memory" if memory is not None else "engine"
        raise ParameterError(f"{name} must be left out; no records are read in this process")
    if source is not None:
        return source
    assert engine is not None
    return EngineInput(data=data, engine=engine)


def _as_tallies(data: Any, on_copy: OnCopy) -> TallyInput | None:
    """Source of tallies, or None if the data are something else."""
    items = data if isinstance(data, Sequence) and not isinstance(data, str) else [data]
    if not items or not all(isinstance(item, PartialTally) for item in items):
        return None
    return TallyInput(tally=merge(list(items), on_copy=on_copy))


def _check_complete(request: BuildRequest) -> None:
    """Refuse a request without bounds or columns, which only tallies state."""
    if request.domain is None or request.columns is None:
        raise ParameterError(
            "bounds must be given for records, or a boundary, got neither; only tallies contain "
            "their own bounds"
        )


def _method_step(request: BuildRequest, observer: Observer) -> tuple[int, int]:
    """Lattice columns and rows that are counted together; one each for a tally that is kept."""
    assert request.domain is not None
    if observer.private_tally is not None or isinstance(request.domain, PrivateBounds):
        return (1, 1)
    return coarsest_step(request.method, request.domain)


def _check_step(method: Decomposition, domain: Domain, rules: CountingRules) -> None:
    """Refuse a method that may divide lattice cells which a tally counted together."""
    method_step = coarsest_step(method, domain)
    if any(width % counted for width, counted in zip(method_step, rules.step, strict=True)):
        raise ParameterError(
            f"method must divide no finer than the tally, {rules.step[0]} x {rules.step[1]} "
            f"lattice cells, got {method.name}; count the records again for this method"
        )


def _report_counts(counted: CountedRows, observer: Observer) -> CountedRows:
    """Report the counts to the observer, and return them."""
    observer.private_report(counted.tally.report)
    if observer.private_tally is not None:
        observer.private_tally(counted.tally)
    return counted


def _check_regions(regions: RegionHierarchy | None, rules: CountingRules) -> None:
    """Refuse regions other than those of a tally."""
    if CountedRegions.of(regions) == rules.regions:
        return
    if rules.regions is None:
        raise ParameterError("regions must be left out for tallies that were counted without any")
    got = "none" if regions is None else "others"
    raise ParameterError(f"regions must be those by which the tallies were counted, got {got}")
