"""Add one slice to a stream: read, count, draw, keep the answer, publish. Private side.

Steps: 1. lock the state; check the slice, that the series file belongs to the stream, and that the
ledger has no slice that the state has not; 2. read and tally; 3. draw, with random bytes that are
on the disk before a draw reads them; 4. write the release into the state; 5. record the slice in
the ledger; 6. write the public series, by rename. One killed before step 4 is over has published
nothing, and draws the same from the stored bytes; after one killed later, the next call goes on.

P1. Two copies of a state publish one series, if a ledger paid. Proof. What is published was
recorded first, in a transaction that refuses a state which has not all draws that the ledger has,
by their random ids. An id is made afresh for each answer that enters a state. So two copies that
drew at once, one slice or two, have different ids, and one of them is refused whatever it drew: no
refusal compares answers. Two slices of two copies would each keep K records of a user. A copy that
was made before a slice was drawn is refused before a record is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from psd._util.wall_clock import zone_rules
from psd.apps.streams.drawing import SliceDraws, bounded_period, count_slice
from psd.apps.streams.outputs import Output, PublishedSeries
from psd.apps.streams.plan import (
    StreamPlan,
    check_paid,
    fault_charge,
    read_public_inputs,
    sum_of_slices,
)
from psd.apps.streams.state import SLICES, TOTALS, Block, RandomTape, State
from psd.errors import InputDataError, LedgerError, ParameterError
from psd.ingest.sources import check_input, resolve_inputs
from psd.ledger.account import Account
from psd.ledger.charges import check_drawn
from psd.ledger.state import MAX_FAULTS
from psd.mechanisms.random_words import bytes_from, system_bytes
from psd.privacy.loss import parse_delta
from psd.publish.charging import charge_request
from psd.publish.observer import Observer
from psd.publish.refusals import mask_errors
from psd.release.record import ReleaseRecord
from psd.space.time_slices import TimeSlices

if TYPE_CHECKING:
    from psd.apps.streams.plan import StreamRequest


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class _Answer:
    """What was drawn for a slice, and what the state keeps beside it. Private."""

    records: tuple[ReleaseRecord, ...]
    contributions: Mapping[str, int]
    blocks: Mapping[tuple[int, int], Block] | None = None


@dataclass(slots=True, kw_only=True)
class Addition:
    """An addition to a stream whose state is open and locked."""

    state: State
    plan: StreamPlan
    request: StreamRequest
    slices: TimeSlices
    outputs: list[Output]
    account: Account | None = None

    @classmethod
    def of(cls, state: State, *, checks_outputs: bool = True) -> Addition:
        """Read the state, and check that the series files belong to it."""
        plan = StreamPlan.from_rows(state.plan())
        request = plan.build_request()
        slices, scope = request.slices, request.contribution_scope
        files = [plan.output, *([] if plan.totals is None else [plan.totals])]
        outputs = [
            Output.of(state, number, path, slices, scope) for number, path in enumerate(files)
        ]
        drawn = state.draws().keys()
        if not drawn <= {*range(len(slices))} or any(o.digests.keys() != drawn for o in outputs):
            raise InputDataError(
                "state has draws and answers that do not belong to the same slices of its list; "
                "restore a copy"
            )
        if checks_outputs:
            for output in outputs:
                output.check()
        return cls(state=state, plan=plan, request=request, slices=slices, outputs=outputs)

    @property
    def digests(self) -> dict[int, str]:
        """Digest of the series after each slice that was added."""
        return self.outputs[SLICES].digests

    @property
    def last(self) -> int:
        """Number of the last slice that was added; -1 if there is none."""
        return max(self.digests, default=-1)

    @property
    def is_published(self) -> bool:
        """Whether the series files hold all slices that were added."""
        return all(output.is_published for output in self.outputs)

    def is_unpublished(self, number: int) -> bool:
        """Whether a slice was drawn by a process that was killed before it published it."""
        return number == self.last and not self.is_published

    def number_of(self, name: str) -> int:
        """Return the number of a slice of the list."""
        names = self.slices.names
        if name not in names:
            raise ParameterError(
                f"slice must be one of the {len(names):,} of the stream, {names[0]} to "
                f"{names[-1]}, got {str(name)[:80]!r}; the list was fixed when it was created"
            )
        return names.index(name)

    def check_turn(self, number: int, *, skip: bool) -> None:
        """Refuse slices that were added, are too late, or whose turn has not come."""
        names, following = self.slices.names, self.last + 1
        if number in self.digests:
            raise ParameterError(
                f"slice {names[number]} was added before, and each is added once; its answer stays"
            )
        if number < following:
            raise ParameterError(
                f"slice {names[number]} comes too late, {names[self.last]} was added before it; it "
                "stays left out"
            )
        if number > following and not skip:
            raise ParameterError(
                f"slice must be {names[following]}, which comes next, got {names[number]}; pass "
                f"skip=True to leave out {number - following:,} for good"
            )

    def add(
        self,
        number: int,
        data: Any,
        *,
        memory: str | int | None,
        observer: Observer,
    ) -> None:
        """Read, count and draw a slice, and write its answer into the state."""
        self._check_clock()
        inputs, account = read_public_inputs(self.request), self.account
        if account is not None:
            self._check_faults(account)
        check_input(data, self.request.columns)
        if account is not None:  # links are followed once, as in a build
            data, observer = (
                resolve_inputs(data),
                replace(observer, private_copy=observer.private_fault),
            )
            account.warn_elsewhere(charge_request(self.request, data))

        def count_and_draw() -> _Answer:
            with bytes_from(RandomTape(self.state, number)):
                period = self._period(number)
                counted = count_slice(
                    data,
                    self.request,
                    self.slices.names[number],
                    key=bytes.fromhex(self.plan.key),
                    contributions=lambda ids: self.state.contributions(period, ids),
                    boundary=inputs.boundary,
                    observer=observer,
                    memory=memory,
                    limits_cells=account is None,
                )
                observer.progress("counting with noise")
                draws = SliceDraws(
                    request=self.request,
                    inputs=inputs,
                    slices=self.slices,
                    counter=self.plan.counter,
                    statement=self.plan.statement,
                    delta=None if self.plan.delta is None else parse_delta(self.plan.delta),
                )
                record = draws.draw_slice(number, counted.tally)
                answer = _Answer(records=(record,), contributions=counted.contributions)
                if self.plan.totals is None:
                    return answer
                if self.plan.counter == "slices":
                    last = self.outputs[TOTALS].last_release()
                    earlier = [] if last is None else [last.tree]
                    total = sum_of_slices(record.tree, earlier, len(self.digests) + 1)
                else:
                    steps = range(self.last + 1, number + 1)
                    total = draws.draw_total(steps, counted.tally, self.state.blocks())
                tree = total.tree(record.tree.noise.squared_sensitivity)
                records = (record, draws.total_record(record, tree))
                return replace(answer, records=records, blocks=total.blocks)

        def withheld(work: Callable[[], T]) -> T:
            if account is None:
                return work()
            charge = partial(account.charge_fault, fault_charge(self.request))
            return mask_errors(work, observer, charge=charge)

        answer = withheld(count_and_draw)
        pairs = zip(self.outputs, answer.records, strict=True)
        stored = [output.add(number, record) for output, record in pairs]
        # The state grows with the units of the slice, so a full disk may depend on them.
        withheld(
            lambda: self.state.add_slice(
                number,
                stored,
                draw=system_bytes(16).hex(),
                period=self._period(number),
                contributions=answer.contributions,
                blocks=answer.blocks,
                keeps_blocks=self.plan.counter == "toeplitz",
            )
        )

    def _check_clock(self) -> None:
        """Refuse other clock changes than those by which earlier slices were counted."""
        # By these a record that was counted may lie in a later slice. A user whose records are
        # bounded in all slices together, or in each, has no more of them in the tallies than
        # before.
        zone = self.slices.time_zone
        if self.request.unit.kind != "user" and zone_rules(zone) != self.plan.clock:
            raise InputDataError(
                f"time zone {zone} must have the clock changes of when the stream was created, and "
                "it has others, by which a record could be counted in two slices; set PYTHONTZPATH "
                "to a folder with the time zones of then"
            )

    def _check_faults(self, account: Account) -> None:
        """Refuse an addition whose fault would show one bit more, at no cost."""
        # At most `MAX_FAULTS` additions to streams of a dataset may end by a fault that costs
        # nothing.
        free = account.opened.faults.get(account.dataset, 0)
        if free < MAX_FAULTS or account.fault_price(fault_charge(self.request)):
            return
        raise LedgerError(
            f"{MAX_FAULTS} additions to streams of dataset {account.dataset!r} lacked memory or "
            "disk at no cost, and it has nothing left that another one would cost; raise its "
            "budget to go on"
        )

    def open_account(self, warn: Callable[[str], None] | None) -> None:
        """Compare the state with the ledger that paid for the stream, before a record is read."""
        plan = self.plan
        if plan.ledger is None or plan.dataset is None:
            return
        options: dict[str, Any] = {} if warn is None else {"warn": warn}
        self.account = Account(plan.ledger, plan.dataset, analyst=plan.analyst, **options)
        state = self.account.opened
        charge = state.charges.get(self._charge)
        if state.id != plan.statement.get("ledger") or charge is None:
            raise LedgerError(
                f"ledger {plan.ledger} does not have the charge of this stream; an older copy was "
                "restored, or it is another ledger: restore the latest one"
            )
        if (charge.dataset, charge.analyst) != (plan.dataset, plan.analyst):
            raise LedgerError(
                f"state must name the dataset and the analyst of charge {charge.id}, and it names "
                "others; it was edited: restore a copy"
            )
        check_paid(self.request, plan, charge, state.dataset(plan.dataset))
        check_drawn(charge.drawn, self._draws)

    def record(self) -> None:
        """Record in the ledger the slices that the state has, before they are published."""
        if self.account is None:
            return
        opened, kept = self.account.opened, self._draws
        # One slice is new, unless an older copy of the ledger was restored.
        for name in kept:
            if name not in opened.charges[self._charge].drawn:
                drawn = self.state.drawn_slice(self.slices.names.index(name))
                self.account.ledger.draw_slice(self._charge, name, drawn, kept, opened)

    @property
    def _draws(self) -> dict[str, str]:
        """Random ids of the draws that the state has, by the slice's name."""
        return {self.slices.names[number]: draw for number, draw in self.state.draws().items()}

    @property
    def _charge(self) -> str:
        """Id of the charge of the stream."""
        return str(self.plan.statement.get("charge"))

    def _period(self, number: int) -> str:
        """Period over which the records of a unit are bounded; empty if it lies in one slice."""
        name = self.slices.names[number]
        return bounded_period(self.request.unit, self.slices.by, name) or ""

    def note_end(self) -> None:
        """Record in the ledger that the stream is complete, once it is."""
        if self.account is None or self.last < len(self.slices) - 1:
            return
        if not self.account.opened.charges[self._charge].done:
            self.account.ledger.finish(self._charge, digest=self.digests[self.last])

    def publish(self) -> PublishedSeries:
        """Write the public series, each by rename; return that of the slices."""
        return [output.publish() for output in self.outputs][SLICES]
