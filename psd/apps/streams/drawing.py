"""Draw a slice of a stream and what its counter needs, with parts of epsilon. Private side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from psd.apps.streams.counters import toeplitz_squared_sensitivity, tree_levels
from psd.apps.streams.totals import Total, next_total
from psd.curator.curator import Curator
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import STATEMENTS, TOTALS_FACTOR, Budget, method_parameters
from psd.privacy.loss import Loss
from psd.publish.drawing import draw_release, slice_budgets, squared_of
from psd.release.record import ReleaseRecord

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from psd.apps.streams.counters import Counter
    from psd.apps.streams.plan import StreamRequest
    from psd.apps.streams.state import Block
    from psd.ingest.tally import Tally
    from psd.publish.public_inputs import PublicInputs
    from psd.space.box_tree import Tree
    from psd.space.time_slices import TimeSlices

__all__ = ["SliceDraws", "slices_part"]


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

        P1. The slices together cost at most the loss of the stream.

        Budgets and squared sensitivity are those of `psd.publish.drawing.draw_series`, whose proof
        holds, in epsilon and in rho: by `psd.apps.streams.counting.count_slice` one unit has at
        most k records in the tallies of all slices, and at most cap of them in each, though the
        tallies are made one after another. In rho every slice has all of rho, and S^2 = k cap.
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
        # In rho all of it is for the slices: their totals are sums, see `psd.apps.streams.choice`.
        slices = slices_part(total, self.counter)
        if slices < total:
            budget.reserve(withheld, slices if withheld == "slices" else total - slices)
        return budget
