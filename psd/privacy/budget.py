"""The budget of one release: every draw is paid from it before it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from psd.errors import BudgetError, InternalError, ParameterError
from psd.privacy.epsilon import parse_epsilon
from psd.privacy.loss import Loss
from psd.privacy.loss_measure import EPSILON, RHO, LossMeasure
from psd.privacy.statements import BUDGET_STATEMENTS, SELECTIONS

__all__ = ["Budget", "Cost", "Statement", "spent_before_counting"]

Cost: TypeAlias = int
"""A whole number of nano-epsilon, or of 1e-12 of rho; costs of a path add up without rounding."""

Statement: TypeAlias = Mapping[str, int | str]
"""What a release declares of its budget, by the names of `psd.privacy.statements`."""

_NOTHING: Statement = MappingProxyType({})

_PURPOSES = {
    "bound": "choosing max_contributions",
    "bounds": "private bounds",
    "counting": "counting the tally",
    "totals": "running totals",
    "slices": "the slices of a stream",
}


class Budget:
    """The total that one release may cost, the part that was spent, and its purposes.

    P1. `spent` never passes `total`: `spend` raises before it adds. A refused spend changes
    nothing.

    P2. An allotment is deducted at once. Nothing that was spent or allotted is returned.

    P3. ``on_first_spend`` returns before the first amount is spent from this budget or a part of
    it, and is not called again. If it raises, nothing is spent.

    P4. Costs are integers.

    Basic composition adds the costs of questions about the same records; the parts that `allot` and
    `in_sequence` make share one total. Parts that read disjoint records cost the largest of them
    [1]_: `in_parallel` makes them, and its caller has the proof that they are disjoint.

    References
    ----------
    .. [1] McSherry. "Privacy Integrated Queries." SIGMOD 2009, theorems 3 and 4.
    """

    def __init__(
        self,
        total: Cost | Loss,
        *,
        on_first_spend: Callable[[], Statement] | None = None,
        spent: Cost = 0,
        parent: Budget | None = None,
    ) -> None:
        self._loss = total if isinstance(total, Loss) else None
        self._currency = parent.measure if parent else _measure_of(self._loss)
        if isinstance(total, Loss):
            total = total.epsilon if total.is_pure else total.rho
        if not 0 <= spent <= total:
            raise ParameterError(f"total of a budget must be at least {max(spent, 0)}, got {total}")
        self._total = total
        self._spent = spent
        self._parent = parent
        self._on_first_spend = on_first_spend
        self._is_open = False
        self._statement: dict[str, int | str] = {}

    @property
    def measure(self) -> LossMeasure:
        """What the costs are counted in: epsilon, or rho."""
        return self._currency

    @property
    def loss(self) -> Loss:
        """Loss of the release: that of the whole release for a part in rho, else the total."""
        if self._parent is not None and not self._currency.is_pure:
            return self._parent.loss
        return Loss.pure(self._total) if self._loss is None else self._loss

    @property
    def total(self) -> Cost:
        """Cost that may be spent in all."""
        return self._total

    @property
    def release_total(self) -> Cost:
        """Cost of the whole release, which this budget may be a part of."""
        return self._total if self._parent is None else self._parent.release_total

    @property
    def spent(self) -> Cost:
        """Cost spent or allotted so far."""
        return self._spent

    @property
    def left(self) -> Cost:
        """Cost that may still be spent or allotted."""
        return self._total - self._spent

    @property
    def statement(self) -> Statement:
        """What the release states of this budget: allotments, then what ``on_first_spend`` gave."""
        parent = _NOTHING if self._parent is None else self._parent.statement
        return MappingProxyType({**parent, **self._statement})

    def spend(self, amount: Cost) -> None:
        """Pay for a draw that is made next; nothing changes if less than the amount is left."""
        if amount < 0:
            raise ParameterError(f"a draw must cost at least 0, got {amount}")
        if amount > self.left:
            raise BudgetError(
                f"a draw costs {self._text(amount)}, and {self._currency.text(self.left)} of "
                f"{self._currency.text(self._total)} is left; nothing was drawn",
                requested=self._currency.decimal(amount),
                left=self._currency.decimal(self.left),
            )
        self.open()
        self._spent += amount

    def open(self) -> None:
        """Charge the release as a whole, unless that was done; `spend` does so before it adds."""
        if self._parent is not None:
            self._parent.open()
        elif not self._is_open:
            if self._on_first_spend is not None:
                self._statement.update(self._on_first_spend())
            self._is_open = True

    def allot(
        self, name: str, share: Fraction, *, draws: int = 1, states: Statement = _NOTHING
    ) -> Budget:
        """Deduct a share of the total for a question that the release states by its name."""
        # Rounded down to an integer that is the same for each draw.
        each = int(self._total * share / draws)
        if each == 0:
            raise ParameterError(
                f"{self._currency.name} must be large enough for its shares, got "
                f"{self._currency.text(self._total)}; the share {float(share):g} for "
                f"{_PURPOSES[name]} is below {self._currency.least_text}"
            )
        return self._part(name, draws * each, states)

    def reserve(self, name: str, amount: Cost) -> None:
        """Take out what was spent earlier on the counts that the release is made from."""
        self._part(name, amount, _NOTHING)

    def _part(self, name: str, amount: Cost, states: Statement) -> Budget:
        """Take an amount out, and state it."""
        stated = {f"{name}_{self._currency.name}": self._currency.text(amount), **states}
        if not stated.keys() <= BUDGET_STATEMENTS:
            raise InternalError(f"a budget states what is not declared public for {name}")
        if amount > self.left:
            raise BudgetError(
                f"{_PURPOSES[name]} costs {self._text(amount)}, and "
                f"{self._currency.text(self.left)} of {self._currency.text(self._total)} is left",
                requested=self._currency.decimal(amount),
                left=self._currency.decimal(self.left),
            )
        self._spent += amount
        self._statement.update(stated)
        return Budget(amount, parent=self)

    def _text(self, amount: Cost) -> str:
        """Name of the measure and an amount."""
        return f"{self._currency.name} {self._currency.text(amount)}"

    def in_parallel(self, number: int) -> tuple[Budget, ...]:
        """Give all that is left to each of several parts; they cost the largest of them together.

        The caller proves that their questions are about disjoint records.
        """
        parts = [Budget(self._total, spent=self._spent, parent=self) for _ in range(number)]
        self._spent = self._total
        return tuple(parts)

    def in_sequence(self, number: int) -> tuple[Budget, ...]:
        """Divide all that is left into equal parts, rounded down; their costs add up."""
        each = self.left // number
        self._spent = self._total
        return tuple(Budget(each, parent=self) for _ in range(number))


def _measure_of(loss: Loss | None) -> LossMeasure:
    """Epsilon of a pure loss, rho of another one."""
    return EPSILON if loss is None or loss.is_pure else RHO


def spent_before_counting(statement: Mapping[str, int | str | None]) -> Cost:
    """Nano-epsilon that a release states as spent before its counts."""
    names = [name for name in BUDGET_STATEMENTS if name.endswith("_epsilon")]
    pure = sum(parse_epsilon(str(statement[name])) for name in names if name in statement)
    # What is paid in rho, the choice of a limit and the four sides of private bounds, are draws of
    # the exponential mechanism. The epsilon of one that costs rho_c is sqrt(8 rho_c), the parameter
    # that it was drawn with (`LossMeasure.of_selections`), and the epsilons of the draws add up.
    return pure + sum(
        draws * _selection_epsilon(Fraction(str(statement[name])) / draws)
        for name, draws in SELECTIONS.items()
        if name in statement
    )


def _selection_epsilon(rho: Fraction) -> Cost:
    """Nano-epsilon of an exponential mechanism that costs a rho."""
    return int(RHO.of_selections(np.array([int(rho * RHO.parts)]))[0])
