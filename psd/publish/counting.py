"""Where the counts of a build come from: records, an engine, or tallies of parts. Private."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from psd._apps import load_member
from psd._util.arrays import keep_freed_memory
from psd._util.postgres import is_address
from psd.accounting import selection_rho
from psd.curator.private_bounds import PrivateBounds, choose_contribution_bound, find_bounds
from psd.errors import BudgetError, InputDataError, ParameterError
from psd.ingest.engine import Engine
from psd.ingest.engine import engine as find_engine
from psd.ingest.memory_limit import memory_for_rows, split_memory
from psd.ingest.partial_tally import CountedRegions, PartialTally, merge
from psd.ingest.sources import OnCopy, check_input, check_repeatable, files_of, read, refuse_copy
from psd.ingest.tally_builder import TallyBuilder
from psd.ledger.charges import ChargeRequest
from psd.privacy.budget import Budget
from psd.privacy.unit import PrivacyUnit, counted_unit
from psd.publish.charging import charge_request
from psd.publish.fields import public_files
from psd.publish.request import BuildRequest, BuildTerms, ReadRequest
from psd.regions.files import refuse_record_files
from psd.space.domain import Domain

if TYPE_CHECKING:
    from psd.decompositions import Decomposition
    from psd.ingest.tally import Area, Strata, Tally
    from psd.mechanisms.base import Sampler
    from psd.privacy.budget import Cost
    from psd.privacy.loss import LossMeasure
    from psd.publish.observer import Observer
    from psd.space.boundary import Boundary

__all__ = ["CountedRows", "RecordInput", "coarsest_step", "inputs_of"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CountedRows:
    """Tally of the records that were read. Private."""

    tally: Tally  # private
    domain: Domain
    unit: PrivacyUnit  # unit by which records were bounded

    def __repr__(self) -> str:
        return "<counted rows: private>"


@runtime_checkable
class CountInput(Protocol):
    """Input of a build."""

    def paid(self, measure: LossMeasure) -> Cost:
        """What was spent earlier on these counts; it is part of the release."""

    def complete(self, terms: BuildTerms) -> BuildRequest:
        """Complete the terms with what the source states; refuse a contradiction."""

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
    """Records that are read in this process."""

    data: Any  # private; as in `psd.build`
    memory: str | int | None = None  # limit on the memory that reading takes
    # Whether more occupied cells than fit into the limit are refused. How many are occupied depends
    # on the records, so with a ledger they are not.
    limits_cells: bool = True
    strata: Strata | None = None  # by which records are counted, in place of regions

    def paid(self, measure: LossMeasure) -> Cost:
        """Return 0: what these counts cost is spent in the build."""
        return 0

    def complete(self, terms: BuildTerms) -> BuildRequest:
        """Refuse terms without bounds, and a limit of memory that is none."""
        request = terms.of_records()
        memory_for_rows(self.memory)
        return request

    def charge_request(self, request: BuildRequest) -> ChargeRequest:
        """Charge of the region of the records, if these are rows of CSV."""
        return charge_request(request, self.data)

    def check_public(self, request: BuildRequest) -> None:
        """Refuse paths without a file, and inputs that cannot be read as often as needed."""
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
        observer.progress("reading")
        counted = count_rows(
            self.data,
            request.domain,
            request,
            budget=budget,
            sampler=sampler,
            step=_method_step(request, observer),
            area=boundary,
            on_copy=observer.private_copy,
            memory=memory_for_rows(self.memory),
            limits_cells=self.limits_cells,
            is_cube=request.is_cube,
            strata=self.strata or request.regions or request.category,
        )
        return _report_counts(counted, observer)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class EngineInput:
    """Records that are read and counted elsewhere; nothing is estimated there."""

    data: Any  # private; as the engine reads it
    engine: Engine

    def paid(self, measure: LossMeasure) -> Cost:
        """Return 0: nothing was estimated."""
        return 0

    def complete(self, terms: BuildTerms) -> BuildRequest:
        """Refuse terms without bounds, and what the engine cannot do."""
        request = terms.of_records()
        if not hasattr(self.engine, "tally"):
            raise ParameterError(
                "engine must have a function tally, as Spark(url=...) of the app spark, got a "
                f"value of type {type(self.engine).__name__}"
            )
        broken_rules = {
            "bounds must be public": isinstance(request.domain, PrivateBounds),
            "max_contributions must be a number": request.contribution_choice is not None,
            "values must be left out": bool(request.values),
            "category must be left out": request.category is not None,
            "where must be left out": request.columns.where is not None
            and not getattr(self.engine, "filters", False),
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
        domain = request.domain
        assert isinstance(domain, Domain)  # `complete` refuses private bounds
        observer.progress("reading")
        step = _method_step(request, observer)
        unit = counted_unit(request.unit, request.contribution_scope)
        tally = self.engine.tally(
            self.data,
            request.columns,
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

    P1. The release is the one of the records themselves, wherever `psd.ingest.partial_tally.merge`
    gives the tally of all records together.
    P2. What earlier builds spent on a bound, or on bounds, of these counts is part of each release.
    """

    tally: PartialTally  # private

    def paid(self, measure: LossMeasure) -> Cost:
        """What earlier builds spent on a contribution bound or on bounds.

        Proof in rho: all was paid for draws of the exponential mechanism. Those of one part have
        epsilons e_i that sum to its ``paid``, and cost the sum of e_i^2 / 8 [1]_, at most
        ``paid``^2 / 8. Rhos of several parts, and of the release, add up.

        .. [1] Cesar, Rogers. "Bounding, Concentrating, and Truncating." ALT 2021. arXiv:2004.07223.
        """
        if measure.is_pure:
            return self.tally.paid
        return sum(selection_rho(origin.paid) for origin in self.tally.origins)

    def complete(self, terms: BuildTerms) -> BuildRequest:
        """Complete the terms with domain, unit and slices of the tally."""
        rules = self.tally.rules
        if CountedRegions.of(terms.regions) != rules.regions:
            if rules.regions is None:
                raise ParameterError(
                    "regions must be left out for tallies that were counted without any"
                )
            got = "none" if terms.regions is None else "others"
            raise ParameterError(
                f"regions must be those by which the tallies were counted, got {got}"
            )
        if terms.values and not terms.is_tallied:  # a completed request has those of the tallies
            raise ParameterError(
                "values must be left out for tallies, which state the values that they hold; count "
                "the records with values"
            )
        if terms.category is not None:
            raise ParameterError(
                "category must be left out for tallies, which count no categories; build from the "
                "records",
                name="category",
            )
        if terms.boundary is not None:
            raise ParameterError("boundary must be left out for tallies, which were counted before")
        domain = terms.domain if isinstance(terms.domain, Domain) else rules.domain
        step = coarsest_step(terms.method, domain)
        if any(width % counted for width, counted in zip(step, rules.step, strict=True)):
            raise ParameterError(
                f"method must divide no finer than the tally, {rules.step[0]} x {rules.step[1]} "
                f"lattice cells, got {terms.method.name}; count the records again for this method"
            )
        request = terms.of_tallies(
            rules.domain, self.tally.unit, rules.slices, rules.contribution_scope, rules.values
        )

        # Something must be left for counts, of what was not spent on the tallies earlier.
        budget = Budget(request.loss)
        paid = self.paid(budget.measure)
        if paid >= budget.total:
            spent = budget.measure.text(paid)
            least = f"above {spent}" if budget.measure.is_pure else f"large enough for rho {spent}"
            raise ParameterError(
                f"epsilon must be {least}, which private bounds or a chosen bound of these tallies "
                f"cost, got {request.epsilon:f}; give more, or count the records with public ones"
            )
        return request

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
    """Input of a build: tallies, a `CountInput`, or records; `on_copy` hears of equal tallies."""
    source: CountInput | None = data if isinstance(data, CountInput) else None
    items = data if isinstance(data, Sequence) and not isinstance(data, str) else [data]
    if items and all(isinstance(item, PartialTally) for item in items):
        source = TallyInput(tally=merge(list(items), on_copy=on_copy))
    if source is None:
        if engine is None:
            return RecordInput(data=data, memory=memory)
        if memory is None:
            return EngineInput(data=data, engine=engine)
    elif engine is None and memory is None:
        return source
    name = "engine" if memory is None else "memory"
    raise ParameterError(f"{name} must be left out; no records are read in this process")


def coarsest_step(method: Decomposition, domain: Domain) -> tuple[int, int]:
    """Columns and rows that a method never divides, counted together; by public values, unread.

    ``method.step(lattice)`` of a method that limits its own cells; else the method is adaptive, and
    it is the smallest cell of the domain, ``domain.cell_step``.
    """
    step: Callable[[tuple[int, int]], tuple[int, int]] | None = getattr(method, "step", None)
    return domain.cell_step if step is None else step(domain.lattice)


def _method_step(request: BuildRequest, observer: Observer) -> tuple[int, int]:
    """Lattice columns and rows that are counted together; one each for a tally that is kept."""
    if observer.private_tally is not None or isinstance(request.domain, PrivateBounds):
        return (1, 1)
    return coarsest_step(request.method, request.domain)


def _report_counts(counted: CountedRows, observer: Observer) -> CountedRows:
    """Report the counts to the observer, and return them."""
    observer.private_report(counted.tally.report)
    if observer.private_tally is not None:
        observer.private_tally(counted.tally)
    return counted


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
    is_cube: bool = False,
    strata: Strata | None = None,
) -> CountedRows:
    """Read a source, choose a bound and estimate bounds if the request says so, and tally.

    data: as in `psd.build`, private; all else public. `budget`: of the whole release. `on_copy`
    gets a private message if files have equal content. `strata` need a `Domain`, which is public.
    P3. Reading comes first, then the question about users, which is charged, then the bound, the
    tally, and the questions to a curator.
    P4. Shares of the budget that leave nothing for the counts are refused before a record is read.
    P5. Private bounds are estimated in a first reading, of which only they are kept; the second one
    drops records outside, each by itself.
    """
    for_choice, for_bounds = allot_shares(domain, request, budget)
    unit = counted_unit(request.unit, request.contribution_scope)
    for_rows, for_parser = split_memory(memory)
    columns, choice = replace(request.columns, memory=for_parser), request.contribution_choice

    def read_once(
        domain: Domain,
        unit: PrivacyUnit,
        for_choice: Budget | None,
        *,
        declared: Domain | None = None,
        on_copy: OnCopy | None = None,
        **how: Any,
    ) -> CountedRows:
        """Read once; choose the bound, if paid for. The CRS is compared with that of `declared`."""
        keep_freed_memory()
        builder = TallyBuilder(
            domain,
            unit=unit,
            slices=request.slices,
            strata=strata,
            memory=for_rows,
            limits_cells=limits_cells,
            is_cube=is_cube,
            **how,
        )
        for batch in read(data, columns, declared or domain, on_copy=on_copy):
            builder.add_batch(batch)
        if choice is None or for_choice is None:
            return CountedRows(tally=builder.build(), domain=domain, unit=unit)
        bound = choose_contribution_bound(builder.rows_per_unit(), choice, for_choice, sampler)
        unit = replace(unit, max_contributions=bound)
        return CountedRows(tally=builder.build(unit=unit), domain=domain, unit=unit)

    how: dict[str, Any] = {"step": step, "values": request.values}
    if not isinstance(domain, PrivateBounds):
        return read_once(domain, unit, for_choice, on_copy=on_copy, area=area, **how)
    assert for_bounds is not None  # private bounds always have a share
    check_repeatable(data)
    first = read_once(domain.outer, unit, for_choice, on_copy=on_copy, declared=domain.widest)
    chosen_domain = find_bounds(first.tally, domain, for_bounds, sampler)
    return read_once(chosen_domain, first.unit, None, **how)


def allot_shares(
    domain: Domain | PrivateBounds, request: ReadRequest, budget: Budget
) -> tuple[Budget | None, Budget | None]:
    """Set apart the budgets of choosing a bound and of private bounds; something must be left."""
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


_PUBLIC = ("bounds", "boundary", "covariate", "regions")


def check_public_files(values: Mapping[str, Any], data: Any) -> None:
    """Refuse public files, and tables, of these values that are inputs of records as well."""
    items = data if isinstance(data, list) else [data]
    for name in _PUBLIC:
        value = values.get(name)
        if not isinstance(value, str | None) and any(value is item for item in items):
            raise ParameterError(
                f"{name} must be public, never derived from the data, got the records themselves",
                name=name,
            )
    paths = public_files(values)
    if paths:
        refuse_record_files(paths, files_of(items))


def points_of(data: Any) -> Any:
    """Data as the sources take them: a list of inputs, each GeoSeries a table."""
    items = data if isinstance(data, list | tuple) else [data]
    # A list of pairs without a point could not be told from a list without an input.
    if any(isinstance(item, list | tuple) for item in items):
        raise InputDataError(
            "data must be a table, an array, a file or a list of these, got points one by one; "
            "np.array(points) is an array of them"
        )
    return [
        item.to_frame("geometry")
        if hasattr(item, "to_crs") and not hasattr(item, "columns")  # a GeoSeries
        else item
        for item in items
    ]


def inputs_of(inputs: Sequence[Any], table: str | None, query: str | None) -> list[Any]:
    """Inputs for the sources: addresses of databases with table or query, others unchanged."""
    addresses = [isinstance(item, str) and is_address(item) for item in inputs]
    if not any(addresses):
        for key, value in (("table", table), ("query", query)):
            if value is not None:
                raise ParameterError(
                    f"{key} must be given with an input postgresql://... alone", name=key
                )
        return list(inputs)
    from psd.ingest.sources.postgis import PostGIS

    return [
        PostGIS(item, table=table, query=query) if is_there else item
        for item, is_there in zip(inputs, addresses, strict=True)
    ]


def inputs_and_engine(
    inputs: Sequence[Any], table: str | None, query: str | None, engine: Engine | str | None
) -> tuple[list[Any], Engine | None]:
    """Inputs, and the engine that reads them; None for this process."""
    if engine is None or engine in ("", "duckdb"):
        return inputs_of(inputs, table, query), None
    if isinstance(engine, str):
        name, _, address = engine.partition(":")
        if not address:
            raise ParameterError(
                f"engine must have an address, such as spark://host:7077, got {name[:80]!r}",
                name="engine",
            )
    if query is not None:
        raise ParameterError("query must be left out with engine spark:...; give table or paths")
    tables = [] if table is None else [load_member("spark.SparkTable")(table)]
    if not isinstance(engine, str):
        return [*inputs, *tables], engine
    return [*inputs, *tables], find_engine(name, engine if address.startswith("//") else address)
