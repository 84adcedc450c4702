"""Add one slice to a stream: read, count, draw, keep the answer, publish. Private side.

Steps of an addition: 1. lock the state; check the slice, and that the series file belongs to the
stream; 2. read and tally; 3. draw, with random bytes that are on the disk before a draw reads them;
4. write the release of the slice into the state; 5. write the public series, by rename. A process
that is killed before step 4 is over has published nothing, and the same draws are made again from
the stored bytes. One that is killed later has the answer in the state, and the next call publishes
it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd._util.atomic_write import write_file
from psd._util.untrusted_parquet import MAX_ROWS
from psd.api.series import SeriesRelease
from psd.errors import InputDataError, LedgerError, ParameterError
from psd.ingest.sources import check_input, resolve_inputs
from psd.ledger.account import Account
from psd.mechanisms.random_words import bytes_from
from psd.privacy.budget import Budget
from psd.publish.drawing import draw_release
from psd.publish.observer import Observer
from psd.publish.refusals import withhold_faults
from psd.publish.series import slice_budgets
from psd.release.file import decode_release, encode_release, stated_digest
from psd.release.record import ReleaseRecord
from psd.release.series import SeriesRecord
from psd.release.series_file import digest_of, encode_series
from psd.space.time_slices import TimeSlices
from psd.streams.counting import CountedSlice, bounded_period, count_slice
from psd.streams.plan import StreamPlan, check_offered, read_public_inputs, stream_charge
from psd.streams.state import State
from psd.streams.words import WordTape

if TYPE_CHECKING:
    from psd.publish.public_inputs import PublicInputs
    from psd.publish.request import BuildRequest

__all__ = ["Addition"]


@dataclass(slots=True, kw_only=True)
class Addition:
    """An addition to a stream whose state is open and locked."""

    state: State
    path: Path
    plan: StreamPlan
    request: BuildRequest
    slices: TimeSlices
    digests: dict[int, str]
    stated: str | None
    series: SeriesRecord | None = None

    @classmethod
    def of(cls, state: State, path: Path, *, checks_output: bool = True) -> Addition:
        """Read the state, and check that the series file belongs to it."""
        plan = StreamPlan.from_rows(state.plan())
        request = plan.build_request()
        output = Path(plan.output)
        addition = cls(
            state=state,
            path=path,
            plan=plan,
            request=request,
            slices=check_offered(request),
            digests=state.digests(),
            stated=(stated_digest(output) or "") if output.exists() else None,
        )
        if checks_output:
            addition._check_output()
        return addition

    def _check_output(self) -> None:
        """Refuse to replace a file that this stream has not written."""
        ours = list(self.digests.values())[-2:]  # a killed process leaves the last but one
        if self.stated is not None and self.stated not in ours:
            raise InputDataError(
                f"{self.plan.output} is not the series that this stream has written last, so it is "
                "not replaced; move it away, and the stream writes its own"
            )

    @property
    def last(self) -> int:
        """Number of the last slice that was added; -1 if there is none."""
        return max(self.digests, default=-1)

    @property
    def is_published(self) -> bool:
        """Whether the series file holds all slices that were added."""
        return self.stated == self.digests.get(self.last)

    def is_unpublished(self, number: int) -> bool:
        """Whether a slice was drawn by a process that was killed before it published it."""
        return number == self.last and not self.is_published

    def number_of(self, name: str) -> int:
        """Return the number of a slice.

        Raises
        ------
        ParameterError
            If it is not in the list.
        """
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
        warn: Callable[[str], None] | None,
    ) -> None:
        """Read, count and draw a slice, and write its answer into the state."""
        inputs = read_public_inputs(self.request)
        account = self._account(warn)
        assert self.request.columns is not None
        check_input(data, self.request.columns)
        if account is not None:  # links are followed once, as in a build
            data, observer = (
                resolve_inputs(data),
                replace(observer, private_copy=observer.private_fault),
            )

        def count_and_draw() -> tuple[CountedSlice, ReleaseRecord]:
            with bytes_from(WordTape(self.state, number)):
                counted = self._count(number, data, inputs, memory, observer, account)
                observer.progress("counting with noise")
                return counted, self._draw(number, counted, inputs)

        if account is None:
            counted, record = count_and_draw()
        else:
            charge = stream_charge(self.request)
            counted, record = withhold_faults(
                count_and_draw, observer, charge=lambda: account.charge_fault(charge)
            )
        self._keep(number, counted, record)

    def _account(self, warn: Callable[[str], None] | None) -> Account | None:
        """Account that paid for the stream, after a check that its ledger has the charge."""
        plan = self.plan
        if plan.ledger is None or plan.dataset is None:
            return None
        options: dict[str, Any] = {} if warn is None else {"warn": warn}
        account = Account(plan.ledger, plan.dataset, analyst=plan.analyst, **options)
        state = account.ledger.state()
        if state.id != plan.statement["ledger"] or plan.statement["charge"] not in state.charges:
            raise LedgerError(
                f"ledger {plan.ledger} does not have the charge of this stream; an older copy was "
                "restored, or it is another ledger: restore the latest one"
            )
        return account

    def _count(
        self,
        number: int,
        data: Any,
        inputs: PublicInputs,
        memory: str | int | None,
        observer: Observer,
        account: Account | None,
    ) -> CountedSlice:
        """Count the records of a slice."""
        period = self._period(number)
        return count_slice(
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

    def _period(self, number: int) -> str:
        """Period over which the records of a unit are bounded; empty if it lies in one slice."""
        name = self.slices.names[number]
        return bounded_period(self.request.unit, self.slices.by, name) or ""

    def _draw(self, number: int, counted: CountedSlice, inputs: PublicInputs) -> ReleaseRecord:
        """Draw the release of a slice, with its part of the epsilon of the stream."""
        request = self.request
        scope, statement = request.contribution_scope, self.plan.statement
        budget = Budget(request.nano_epsilon, on_first_spend=lambda: statement)
        budget.open()
        parts = slice_budgets(budget, len(self.slices), request.unit, scope)
        release = draw_release(
            counted.tally,
            request.domain,  # type: ignore[arg-type] # public: private bounds have no slices
            budget=parts[number],
            method=request.method,
            unit=request.unit,
            post_processing=inputs.post_processing,
            covariate=inputs.covariate,
            boundary=inputs.boundary,
            regions=request.regions,
            about=request.about,
        )
        return release.record

    def _keep(self, number: int, counted: CountedSlice, record: ReleaseRecord) -> None:
        """Write the answer of a slice into the state, with the digest of the series."""
        self.series = self._series_with(number, record)
        self.digests[number] = digest_of(self.series)
        self.state.add_slice(
            number,
            encode_release(self.series.releases[-1]),
            self.digests[number],
            period=self._period(number),
            contributions=counted.contributions,
        )

    def _series_with(self, number: int, record: ReleaseRecord) -> SeriesRecord:
        """Return the series of the slices in the state, and one more."""
        releases = [*self._releases(), record]
        # A newer version of the library continues what an older one began.
        first = releases[0]
        releases[-1] = replace(record, library=first.library, inference=first.inference)
        return self._series_of([*self.digests, number], releases)

    def _releases(self) -> list[ReleaseRecord]:
        """Return the releases in the state."""
        contents = self.state.releases()
        return [decode_release(item, "the state", max_nodes=MAX_ROWS)[0] for item in contents]

    def _series_of(self, numbers: list[int], releases: list[ReleaseRecord]) -> SeriesRecord:
        """Join releases to a series."""
        names = tuple(self.slices.names[number] for number in numbers)
        return SeriesRecord(
            slices=replace(self.slices, names=names),
            releases=tuple(releases),
            scope=self.request.contribution_scope,
        )

    def note_end(self, warn: Callable[[str], None] | None) -> None:
        """Record in the ledger that the stream is complete, once it is."""
        account = self._account(warn) if self.last == len(self.slices) - 1 else None
        charge = str(self.plan.statement.get("charge"))
        if account is not None and not account.ledger.state().charges[charge].done:
            account.ledger.finish(charge, digest=self.digests[self.last])

    def publish(self) -> SeriesRelease:
        """Write the public series, by rename."""
        if self.series is None:
            self.series = self._series_of([*self.digests], self._releases())
        write_file(self.plan.output, encode_series(self.series), overwrite=True)
        return SeriesRelease(self.series)
