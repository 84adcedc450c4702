"""The budget of one release: every draw is paid from it before it is made.

What is spent beside the counts of the method is stated under the names of `STATEMENTS` only. Shares
of losses are integers, rounded down, the last with the remainder: a path sums to exactly the total.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np

from psd._util.declared_parameters import DeclaredParameters, declared
from psd.errors import BudgetError, InternalError, ParameterError
from psd.privacy.loss import EPSILON, RHO, Loss, LossMeasure, parse_decimal, parse_epsilon

__all__ = ["STATEMENTS", "TOTALS_FACTOR", "Budget", "method_parameters"]

Cost: TypeAlias = int
"""A whole number of nano-epsilon, or of 1e-12 of rho; costs of a path add up without rounding."""

Statement: TypeAlias = Mapping[str, int | str]
"""What a release declares of its budget, by the names of `psd.privacy.budget`."""

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

    Costs about the same records add up; parts of `allot` and `in_sequence` share one total. Parts
    that read disjoint records cost the largest of them [1]_: the caller of `in_parallel` has the
    proof.

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
        is_pure = self._loss is None or self._loss.is_pure
        self._currency = parent.measure if parent else (EPSILON if is_pure else RHO)
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
        """Give all that is left to each of several parts, which the caller proves disjoint."""
        parts = [Budget(self._total, spent=self._spent, parent=self) for _ in range(number)]
        self._spent = self._total
        return tuple(parts)

    def in_sequence(self, number: int) -> tuple[Budget, ...]:
        """Divide all that is left into equal parts, rounded down; their costs add up."""
        each = self.left // number
        self._spent = self._total
        return tuple(Budget(each, parent=self) for _ in range(number))


def spent_before_counting(statement: Mapping[str, int | str | None]) -> Cost:
    """Nano-epsilon that a release states as spent before its counts."""
    names = [name for name in BUDGET_STATEMENTS if name.endswith("_epsilon")]
    spent = sum(parse_epsilon(str(statement[name])) for name in names if name in statement)
    # What is paid in rho, the choice of a limit and the four sides of private bounds, are draws of
    # the exponential mechanism. The epsilon of one that costs rho_c is sqrt(8 rho_c), the parameter
    # that it was drawn with (`LossMeasure.of_selections`), and the epsilons of the draws add up.
    for name, draws in SELECTIONS.items():
        if name in statement:
            rho = int(Fraction(str(statement[name])) / draws * RHO.parts)  # of each draw
            spent += draws * int(RHO.of_selections(np.array([rho]))[0])
    return spent


BUDGET_STATEMENTS: Final = frozenset({
    # the private choice of k: its price, what it aimed at and the largest k it could choose
    "bound_epsilon",
    "bound_rho",
    "bound_over",
    "bound_most",
    # private bounds: their price and the records that may lie beyond each side
    "bounds_epsilon",
    "bounds_rho",
    "bounds_beyond",
    # what counting the parts of a tally cost before the release
    "counting_epsilon",
    "counting_rho",
    # what the other part of a stream costs: its running totals, or its slices
    "totals_epsilon",
    "slices_epsilon",
})  # fmt: skip
"""Names under which a release states what was spent before its method began."""

SELECTIONS: Final = MappingProxyType({"bound_rho": 1, "bounds_rho": 4})
"""Draws of the exponential mechanism that the amount of a name pays for, evenly."""

RECEIPT_STATEMENTS: Final = frozenset({"ledger", "charge"})
"""Names under which a release states which charge of which ledger paid for it."""

TOTALS_FACTOR: Final = "totals_factor"
"""Name under which a running total states its variance over that of a count."""

STREAM_STATEMENTS: Final = frozenset({"stream_slices", "counter", TOTALS_FACTOR})
"""Names under which a slice of a stream states how many slices its epsilon is for in all, and a
running total how it was computed, and `TOTALS_FACTOR`."""

AXES: Final = "axes"
"""Name under which a cube states the further axes of its layers, such as time."""

STATEMENTS: Final = BUDGET_STATEMENTS | RECEIPT_STATEMENTS | STREAM_STATEMENTS | {AXES}
"""All of them; a method may not have a parameter of such a name."""


def method_parameters(method: Any) -> DeclaredParameters:
    """Declared parameters of a method to be built; names of `STATEMENTS` are refused."""
    # Before a record is read, so that a method with a mistake costs nothing.
    parameters = declared(method)
    for name in (*parameters, *parameters.picks):
        if name in STATEMENTS:
            raise ParameterError(
                f"{name} of {method.name} states the budget of a release; rename it in the method"
            )
    return parameters


def share(name: str, value: str | float | Decimal) -> Decimal:
    """Read a share of epsilon, a decimal in [0, 1).

    Raises
    ------
    ParameterError
        If the value is not a decimal number in [0, 1).

    Examples
    --------
    >>> share("total_share", "0.05")
    Decimal('0.05')
    """
    number = parse_decimal(name, value)
    if not 0 <= number < 1:
        raise ParameterError(f"{name} must be in [0, 1), got {value}; it is a share of epsilon")
    return number


def weighted_shares(total: int, weights: Sequence[int]) -> tuple[int, ...]:
    """Share ``total`` in proportion to integer weights, the remainder to the last one.

    P1. Every share but the last is rounded down; the shares sum to exactly ``total``.
    """
    weight_sum = sum(weights)
    if total < 0 or weight_sum <= 0 or min(weights) < 0:
        raise ParameterError("shares need a total of at least 0 and weights that sum above 0")
    shares = [total * weight // weight_sum for weight in weights[:-1]]
    return (*shares, total - sum(shares))


def split_total(loss: int, share: Decimal) -> tuple[int, int]:
    """Split a loss into what is left for the method, and a share of it, at least 1 each.

    Parameters
    ----------
    loss : int
        In parts of its measure.
    share : Decimal
        Part of the loss, for example for a noisy total that decides the size of a method.

    Returns
    -------
    left, paid : int
        They sum to the loss.

    Raises
    ------
    ParameterError
        If the loss is 1, which cannot be split.

    Examples
    --------
    >>> split_total(1_000, Decimal("0.02"))
    (980, 20)
    """
    if loss < 2:
        raise ParameterError("epsilon 1e-9 cannot be split; give the size of the method")
    paid = max(1, int(loss * Fraction(share)))
    return loss - paid, paid


def uniform_shares(total: int, levels: int) -> tuple[int, ...]:
    """Give every level the same share of the loss.

    Examples
    --------
    >>> uniform_shares(9, 3)
    (3, 3, 3)
    """
    return weighted_shares(total, (1,) * levels)


def geometric_shares(total: int, levels: int, *, fanout: int = 4) -> tuple[int, ...]:
    """Share a loss so that each level gets cbrt(fanout / 2) times the level above.

    .. [1] Cormode, Procopiuc, Srivastava, Shen, Yu. "Differentially Private Spatial
       Decompositions." ICDE 2012, section 4.2. https://doi.org/10.1109/ICDE.2012.16
    """
    # With fan-out 4 the ratio 2^(1/3) is the optimum for rectangles, which touch about twice as
    # many maximal nodes on each level down [1]_; with fan-out 2 two binary levels make one such
    # step.
    doublings = Fraction(1) if fanout == 4 else Fraction(1, 2)
    return weighted_shares(total, [_cube_root_power(level * doublings) for level in range(levels)])


def root_shares(total: int, weights: Sequence[Decimal], degree: int) -> tuple[int, ...]:
    """Share a loss in proportion to a root of weights, the remainder to the last one.

    P2. Minimises the sum of ``weight / share^(degree - 1)`` over shares of this total: at the
    optimum the derivatives ``weight / share^degree`` are equal, so a share is in proportion to the
    root of its weight. Counts with noise of scale 1 / share have a mean absolute error in
    proportion to 1 / share, so degree 2 minimises the sum of weighted absolute errors; they have a
    variance in proportion to 1 / share^2, so degree 3 minimises the sum of weighted squared errors.
    """
    roots = [_integer_root(int(weight * 2 ** (32 * degree)), degree) for weight in weights]
    return weighted_shares(total, roots)


def cube_root(value: int) -> int:
    """floor(value^(1/3) * 2^64), by integers, the same everywhere."""
    return _integer_root(value << 3 * 64, 3)


def _cube_root_power(exponent: Fraction) -> int:
    """floor(2^(exponent / 3) * 2^64) for a multiple of 1/2, by integers, the same everywhere."""
    sixths = int(exponent * 2)
    return _integer_root(1 << (sixths + 6 * 64), 6)


def _integer_root(value: int, degree: int) -> int:
    """Largest integer whose ``degree``-th power is at most ``value`` (Newton from above)."""
    guess = 1 << -(-value.bit_length() // degree)
    while True:
        better = ((degree - 1) * guess + value // guess ** (degree - 1)) // degree
        if better >= guess:
            return guess
        guess = better
