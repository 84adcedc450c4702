"""Count one slice of a stream, and draw its answers with parts of epsilon. Private side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from psd.apps.streams.plan import Total, next_total, toeplitz_squared_sensitivity, tree_levels
from psd.curator.curator import Curator
from psd.ingest.contribution_bounding import running_number
from psd.ingest.memory_limit import memory_for_rows, split_memory
from psd.ingest.sources import read
from psd.ingest.tally_builder import TallyBuilder
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import STATEMENTS, TOTALS_FACTOR, Budget, method_parameters
from psd.privacy.loss import Loss
from psd.privacy.unit import PrivacyUnit, counted_unit
from psd.publish.counting import coarsest_step
from psd.publish.drawing import draw_release, slice_budgets, slice_tally, squared_of
from psd.release.record import ReleaseRecord
from psd.space.time_slices import By, TimeSlices

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from fractions import Fraction

    from psd.apps.streams.plan import Counter, StreamRequest
    from psd.apps.streams.state import Block
    from psd.ingest.tally import Tally
    from psd.publish.observer import Observer
    from psd.publish.public_inputs import PublicInputs
    from psd.space.boundary import Boundary
    from psd.space.box_tree import Tree


_DAY = len("2026-01-05")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CountedSlice:
    """Tally of a slice, and the records that it has of each unit. Private."""

    tally: Tally  # private
    # Private; kept records by id; empty if a unit lies in one slice.
    contributions: dict[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "<CountedSlice: private>"


def bounded_period(unit: PrivacyUnit, by: By, name: str) -> str | None:
    """Period over whose slices the records of a unit are bounded; None if it lies in one slice."""
    if unit.kind == "user":
        return "all"
    return name[:_DAY] if unit.kind == "user-day" and by == "hour" else None


def count_slice(
    data: Any,
    request: StreamRequest,
    name: str,
    *,
    key: bytes,
    contributions: Callable[[Sequence[str]], Sequence[int]],
    boundary: Boundary | None,
    observer: Observer,
    memory: str | int | None = None,
    limits_cells: bool = True,
) -> CountedSlice:
    """Read an input and count the records of one slice of a stream, within a limit on memory.

    Private: `data`, `contributions` (the records that earlier slices have of each id) and what the
    observer gets. The key of the hash that chooses the kept records is the same for all slices.

    P1. A record of another slice is left out, by itself, and never refused.
    P2. Which records of a unit are kept is a function of its own records in this slice and in
    earlier ones, and of the key. In all slices together at most k are, and in each slice at most
    cap: the limit of a slice, or k without one.

    A record lies in one slice, a function of its time and of the clock changes of the zone, which
    are the same in all additions where the proof needs it, see `psd.apps.streams.addition`.

    Proof for a user who is bounded in all slices together. Let r be what is left of k after the
    earlier slices, a function of the user's own records in them. The cap records of this slice with
    the smallest hashes, and of these the first r, are a function of the user's records and the key.
    So one user more or less changes no record of another user, and adds at most k records to the
    tallies of all slices, at most cap of them to each: the condition under which
    `psd.publish.drawing.draw_series` is private, in epsilon and in rho with S^2 = k cap. Earlier
    answers change nothing: neither r nor the choice depends on one.
    """
    time_slice = TimeSlices(by=request.slices.by, names=(name,), time_zone=request.slices.time_zone)
    unit = counted_unit(request.unit, request.contribution_scope)
    is_bounded = (
        request.contribution_scope == "series"
        and bounded_period(unit, time_slice.by, name) is not None
    )
    observer.progress("reading")
    domain = request.domain
    for_rows, for_parser = split_memory(memory_for_rows(memory))
    builder = TallyBuilder(
        domain,
        unit=unit,
        step=(1, 1) if is_bounded else coarsest_step(request.method, domain),
        area=boundary,
        slices=time_slice,
        strata=request.regions,
        memory=for_rows,
        limits_cells=limits_cells,
    )
    columns = replace(request.columns, memory=for_parser)
    for batch in read(data, columns, domain, on_copy=observer.private_copy):
        builder.add_batch(batch)
    counted = (
        first_records(builder, unit, time_slice, key, contributions)
        if is_bounded
        else CountedSlice(tally=builder.build(key))
    )
    observer.private_report(counted.tally.report)
    return replace(counted, tally=slice_tally(counted.tally, 0))


def first_records(
    builder: TallyBuilder,
    unit: PrivacyUnit,
    time_slice: TimeSlices,
    key: bytes,
    contributions: Callable[[Sequence[str]], Sequence[int]],
) -> CountedSlice:
    """Keep what the bound leaves for each unit after earlier slices."""
    # Rows of a user stand together, in the order of their hashes.
    rows = builder.user_rows(key)
    names = rows.names.to_pylist()
    left = unit.max_contributions - np.array(contributions(names), np.int64)
    # Rows of a unit are numbered in their order; those within what is left of its bound stay.
    first = np.flatnonzero(running_number([rows.users]) < left[rows.users])
    columns = ("users", "hashes", "columns", "rows", "time")
    rows = replace(rows, **{column: getattr(rows, column)[first] for column in columns})
    records = np.bincount(rows.users, minlength=len(names))
    width = None if builder.strata is None else builder.domain.lattice[0]
    report = builder.report
    report["over the limit"] = (
        report["read"]
        - sum(report.get(name, 0) for name in ("not selected", "without coordinates", "outside"))
        - len(first)
    )
    report["kept"] = len(first)
    tally = rows.tally(time_slice, width)
    return CountedSlice(
        tally=replace(tally, contributions=unit.contributions, report=report),
        contributions={names[number]: int(records[number]) for number in np.flatnonzero(records)},
    )


def slices_part(epsilon: int, counter: Counter | None) -> int:
    """Loss of the slices: all of it, or half of epsilon if a counter draws the totals."""
    return epsilon if counter in (None, "slices") else epsilon // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceDraws:
    """What is drawn for a slice."""

    request: StreamRequest  # of the stream
    inputs: PublicInputs  # files of the request
    slices: TimeSlices  # all of the stream
    counter: Counter | None  # of the totals, if there are any
    statement: Mapping[str, int | str]  # what each slice states of the stream
    delta: Fraction | None = None  # what Gaussian noise of the totals spends

    def draw_slice(self, number: int, tally: Tally) -> ReleaseRecord:
        """Release of a slice, whose tally is private, with its part of the loss of the stream.

        P1. The slices together cost at most the loss of the stream. Budgets and squared sensitivity
        are those of `psd.publish.drawing.draw_series`, whose proof holds, in epsilon and in rho: by
        `psd.apps.streams.drawing.count_slice` one unit has at most k records in the tallies of all
        slices, and at most cap of them in each, though the tallies are made one after another. In
        rho every slice has all of rho, and S^2 = k cap.
        """
        request, budget = self.request, self._budget("totals")
        scope = request.contribution_scope
        parts = slice_budgets(budget, len(self.slices), request.unit, scope)
        squared = squared_of(budget, request.unit, scope, self.slices)
        release = draw_release(
            tally,
            self.request.domain,
            budget=parts[number],
            method=request.method,
            unit=request.unit,
            squared_sensitivity=squared,
            post_processing=self.inputs.post_processing,
            covariate=self.inputs.covariate,
            boundary=self.inputs.boundary,
            regions=request.regions,
            about=request.about,
        )
        return release.index.record

    def draw_total(
        self, steps: range, tally: Tally, blocks: Mapping[tuple[int, int], Block]
    ) -> Total:
        """Running total by a counter with noise of its own; private: tally, blocks."""
        assert self.counter is not None  # a total is drawn only by a counter
        return next_total(
            self.counter, steps, tally, blocks, self._draw_counts, number=len(self.slices)
        )

    def total_record(self, record: ReleaseRecord, tree: Tree) -> ReleaseRecord:
        """Record of a total, from that of its slice."""
        statement = {
            **self._budget("slices").statement,
            "counter": str(self.counter),
            TOTALS_FACTOR: str(tree.noise.factor),
        }
        parameters = method_parameters(self.request.method).with_statement(STATEMENTS, statement)
        if self.counter != "toeplitz":
            return replace(record, tree=tree, parameters=parameters)
        loss = self._loss
        return replace(record, tree=tree, parameters=parameters, rho=loss.rho, delta=loss.delta)

    def _draw_counts(self, tally: Tally) -> Tree:
        """Counts of a block of steps, or of the weighted sum of all steps so far."""
        slices, squared = len(self.slices), None
        if self.counter == "toeplitz":
            k = self.request.unit.contributions
            budget, squared = Budget(self._loss), toeplitz_squared_sensitivity(slices) * k**2
        else:
            budget = self._budget("slices").in_sequence(tree_levels(slices))[0]
        curator = Curator(
            tally,
            self.request.domain,
            budget=budget,
            sampler=SecureSampler(),
            squared_sensitivity=squared,
            covariate=self.inputs.method_covariate,
            boundary=self.inputs.mask,
        )
        return self.request.method.build(curator)

    @property
    def _loss(self) -> Loss:
        """Loss of totals with Gaussian noise: the epsilon that the slices leave, and delta."""
        assert self.delta is not None  # Gaussian noise is for a delta
        total = self.request.nano_epsilon
        return Loss.gaussian(total - slices_part(total, self.counter), self.delta)

    def _budget(self, withheld: str) -> Budget:
        """Loss of the stream, without that of the slices or of the totals."""
        budget = Budget(self.request.loss, on_first_spend=lambda: self.statement)
        budget.open()
        total = budget.total
        # In rho all of it is for the slices: their totals are sums.
        slices = slices_part(total, self.counter)
        if slices < total:
            budget.reserve(withheld, slices if withheld == "slices" else total - slices)
        return budget
