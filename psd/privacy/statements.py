"""What a release states about its budget beside the parameters of its method.

One table of names. A part of the library that spends epsilon before the method does, or that
charges a ledger, states what it spent under names from this table, and no others are accepted by
`psd._util.declared_parameters.DeclaredParameters.with_statement`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

from psd._util.declared_parameters import DeclaredParameters, declared
from psd.errors import ParameterError

__all__ = [
    "BUDGET_STATEMENTS",
    "RECEIPT_STATEMENTS",
    "SELECTIONS",
    "STATEMENTS",
    "STREAM_STATEMENTS",
    "TOTALS_FACTOR",
    "method_parameters",
]

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

STATEMENTS: Final = BUDGET_STATEMENTS | RECEIPT_STATEMENTS | STREAM_STATEMENTS
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
