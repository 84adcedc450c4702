"""Noisy sums over people: the question from which shared models are learnt. Private side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn, SupportsIndex

import numpy as np

from psd._util.arrays import Floats, Integers
from psd.curator.clipping import STEP_BITS, clip_to_steps
from psd.errors import InternalError, ParameterError
from psd.mechanisms.base import Sampler
from psd.mechanisms.gaussian import GaussianMechanism
from psd.privacy.budget import Budget

if TYPE_CHECKING:
    from psd.privacy.count_noise import PersonPart, Statistic

__all__ = ["PersonSums"]


class PersonSums:
    """Holds the regions of each person's records, and answers with noisy sums over people.

    persons, regions: (n,) int64, in any order, private; budget: rho of all questions, in 1e-12.

    P1. All answers together are rho-zCDP for adding or removing one person, rho being the total of
    the budget; a question that costs more than is left is refused before anything is drawn.

    P2. A part of a person is computed from the records of this person and public numbers, is
    clipped, and is added to sums that get noise. It is not returned, kept or shown.
    """

    def __init__(
        self, persons: Integers, regions: Integers, *, budget: Budget, sampler: Sampler
    ) -> None:
        order = np.lexsort((regions, persons))  # so that a part depends on no order of records
        persons, regions = persons[order], regions[order]
        starts = np.flatnonzero(np.diff(persons)) + 1
        self._persons = np.split(regions, starts) if len(regions) else []
        self._budget = budget
        self._sampler = sampler

    @property
    def rho(self) -> int:
        """Rho in units of 1e-12 that is left."""
        return self._budget.left

    def sums(self, part: PersonPart, statistics: Sequence[Statistic], rho: int) -> list[Floats]:
        """Noisy sums of the parts of all people, one table for each statistic.

        `part` makes rows and values for each statistic of the regions of one person. Returns (rows,
        width) float64 for each; a part has norm 1.

        Sensitivity: 1 in the L2 norm of each statistic, 2^20 in steps.
        Charged to: every person, rho once.
        Proof: the part of a person is a function of this person's records and of public numbers,
        among them earlier answers. So one person more or less changes the sum of a statistic by
        this person's own clipped part. `clip_to_steps` gives integers whose squares sum to at
        most 2^40, over all rows of the statistic; a row that a part names twice is added once, so
        the change is at most that. Discrete Gaussian noise of parameter 2^40 / (2 rho_i) on every
        number of statistic i costs rho_i [1]_: the squares of the changes of its numbers sum to at
        most 2^40. Each statistic has noise of its own. The rho_i sum to at most rho,
        and the rhos of all questions to at most the budget, since costs in rho add up under
        adaptive composition. The noise does not depend on how many people there are, and no
        answer is left out where no person added to it.

        .. [1] Canonne, Kamath, Steinke. "The Discrete Gaussian for Differential Privacy."
           NeurIPS 2020. arXiv:2004.00010.
        """
        # Parts of rho in proportion to shares, rounded down; charged before a record is read.
        shares = [statistic.share for statistic in statistics]
        costs = [rho * share // sum(shares) for share in shares]
        if min(costs) < 1:
            raise ParameterError(
                "epsilon must be large enough for its shares of rho; give more, or a larger delta"
            )
        self._budget.spend(sum(costs))

        # Exact sums of the clipped parts.
        totals = [np.zeros((size.rows, size.width), np.int64) for size in statistics]
        for regions in self._persons:
            for total, (rows, values) in zip(totals, part(regions.copy()), strict=True):
                if values.shape != (len(rows), total.shape[1]):
                    raise InternalError("a part must have one value for each column of its rows")
                total[rows] += clip_to_steps(values)  # a row that comes twice is added once
        return [self._noisy(total, cost) for total, cost in zip(totals, costs, strict=True)]

    def _noisy(self, total: Integers, rho: int) -> Floats:
        """Sum with noise of a cost; each number has noise of its own."""
        mechanism = GaussianMechanism(
            true=total.ravel(),
            rho=np.full(total.size, rho, np.int64),
            squared_sensitivity=1 << 2 * STEP_BITS,
        )
        steps = self._sampler.draw(mechanism).reshape(total.shape)
        return np.ldexp(steps, -STEP_BITS)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("sums over people cannot be copied: the budget is for one set of answers")
