"""Private choice of max_contributions, the number of records kept of each user. Private side.

One question about the numbers of records of users is answered, by counting users. The curator gets
the rest of epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from psd._util.declared_parameters import check_parameters, integer_between, public_field
from psd.curator._constants import (
    BOUND_STEPS,
    CHOICE_MAX,
    CHOICE_OVER,
    CHOICE_SHARE,
    SMALL_BOUNDS,
)
from psd.errors import ParameterError
from psd.mechanisms.exponential_mechanism import Candidates, ExponentialMechanism
from psd.privacy.budget import share
from psd.privacy.loss import NANO
from psd.privacy.unit import MAX_CONTRIBUTIONS

if TYPE_CHECKING:
    from psd.mechanisms.base import Sampler
    from psd.privacy.budget import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class ContributionChoice:
    """How max_contributions is chosen privately. Public."""

    share: Decimal = public_field(CHOICE_SHARE, share, "share of epsilon for the choice")
    # 250 / epsilon by default.
    over: int | None = public_field(
        None, integer_between(0, 2**53), "users with more records than the bound"
    )
    limit: int = public_field(CHOICE_MAX, integer_between(1, MAX_CONTRIBUTIONS), "largest bound")

    name: ClassVar[str] = "max_contributions"

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_parameters(self)
        if self.share == 0:
            raise ParameterError("share must be above 0, got 0; a choice costs epsilon")

    def allot(self, budget: Budget) -> Budget:
        """Deduct the share of the choice from the budget of a release, and state it."""
        stated = {"bound_over": self.target(_epsilon_of(budget)), "bound_most": self.limit}
        return budget.allot("bound", Fraction(self.share), states=stated)

    def target(self, epsilon: int) -> int:
        """Number of users that may have more records than the bound."""
        return -(-CHOICE_OVER * NANO // epsilon) if self.over is None else self.over


def candidate_bounds(limit: int) -> NDArray[np.int64]:
    """Public list of candidates: 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, ... up to the largest one."""
    decades = range(len(str(limit)))
    bounds = [*SMALL_BOUNDS, *(step * 10**decade for decade in decades for step in BOUND_STEPS)]
    return np.array([*(bound for bound in bounds if bound < limit), limit], np.int64)


def choose_contribution_bound(
    rows: NDArray[np.int64], choice: ContributionChoice, budget: Budget, sampler: Sampler
) -> int:
    """Choose the smallest bound that about t units of privacy exceed; spends all of its budget.

    rows: (units,) int64, records of each unit of privacy inside the domain, private; all else
    public. `budget` is that of `ContributionChoice.allot`.

    Sensitivity: 1 of the score -max(over(c) - t, t - over(b), 0), where over(c) is the number of
    units with more than c records, b the next smaller bound (without one, its term is 0) and t a
    public number. It is not multiplied by k, because units are counted and not their records.
    Charged to: every point of the domain, all of the allotted budget once. No other question reads
    these numbers, and the curator of the records gets what the release has left.
    Proof: a unit more or less changes over(c) by 1 for the bounds c below its own number of
    records and no other unit's number, so both differences change by at most 1, and the largest of
    numbers that change by at most 1 does so too. The exponential mechanism with weights
    exp(epsilon score / 2) over the public list of bounds, epsilon being the allotted budget, is
    then epsilon-private for the unit [1]_. In rho, epsilon^2 / 8 is the allotted budget: all scores
    change by at most 1, so the log-ratios of the answers lie in an interval of length epsilon, and
    the choice is (epsilon^2 / 8)-zCDP. The bound is public from there on, and what the
    curator answers for a fixed bound is private for the same unit: the two add up.

    A question that counts records must pay for all records of a user: the number of records that a
    bound drops changes by as much as the largest bound.

    With the score -abs(over(c) - t), all bounds that no user exceeds would be equally good, and if
    users have few records the choice among them would be random.

    References
    ----------
    .. [1] McSherry, Talwar. "Mechanism Design via Differential Privacy." FOCS 2007.
    """
    target, price = choice.target(_epsilon_of(budget)), budget.left
    bounds = candidate_bounds(choice.limit)
    # Units with more records than each bound, (bounds,).
    over = len(rows) - np.searchsorted(np.sort(rows), bounds, side="right")
    candidates = Candidates(
        group=np.zeros(len(bounds), np.int64),
        first=bounds,
        length=np.ones(len(bounds), np.int64),
        score=-count_misses(over, target),
    )
    budget.spend(price)
    selection = ExponentialMechanism(
        candidates=candidates,
        epsilon=budget.measure.of_selections(np.array([price])),
        sensitivity=np.array([1]),
    )
    return int(sampler.draw(selection)[0])


def count_misses(over: NDArray[np.int64], target: int) -> NDArray[np.int64]:
    """Units by which too many exceed each bound, or too few exceed the next smaller one.

    over: (bounds,) int64, units with more records than each bound, private; target: public.
    """
    too_few = np.append(0, target - over[:-1])
    misses: NDArray[np.int64] = np.maximum(np.maximum(over - target, too_few), 0)
    return misses


def _epsilon_of(budget: Budget) -> int:
    """Nano-epsilon of a release; in rho, that of pure mechanisms which cost as much."""
    return int(budget.measure.of_pure(np.array([budget.release_total]))[0])
