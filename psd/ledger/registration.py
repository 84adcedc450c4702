"""Check the arguments of a registration; convert them to fields of an entry. Private side."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, get_args

from psd._util.declared_parameters import integer_between
from psd._util.instances import check_choice
from psd._util.wall_clock import check_zone
from psd.errors import ParameterError
from psd.ingest.input_names import NAMELESS, input_names
from psd.ingest.sources import Columns
from psd.ledger.charges import check_name
from psd.ledger.state import LedgerState, registered_reading
from psd.privacy.loss import delta_text, epsilon_text, parse_delta, parse_epsilon, rho_within
from psd.privacy.unit import MAX_CONTRIBUTIONS

UnitKind = Literal["record", "user", "user-day"]

Amount = str | float | Decimal


def dataset_body(
    name: str,
    budget: Amount,
    *,
    unit: UnitKind,
    time_zone: str | None,
    max_contributions: int | None,
    delta: Amount | None,
    caps: Mapping[str, Amount],
    columns: Columns | None,
    coordinate_resolution: Amount | None,
) -> dict[str, Any]:
    """Make the fields of a dataset from the arguments of `psd.ledger.ledger.Ledger.register`."""
    bound, nano = _checked_unit(unit, time_zone, max_contributions), budget_nano("budget", budget)
    for kind, called in (("dataset", name), *(("analyst", who) for who in caps)):
        check_name(kind, called)
    parsed = None if delta is None else parse_delta(delta)
    if parsed is not None and not rho_within(nano, parsed):
        raise ParameterError(
            f"budget must have a rho of at least 1e-12 with delta {delta_text(parsed)}, got "
            f"{epsilon_text(nano)}; raise the budget or the delta"
        )
    nano_caps = {}
    for who, cap in caps.items():
        nano_caps[who] = budget_nano("cap", cap)
        if nano_caps[who] > nano:
            raise ParameterError(
                f"the cap of {who} must be at most the budget {epsilon_text(nano)}, got "
                f"{epsilon_text(nano_caps[who])}; the two may be swapped"
            )
    return {
        "name": name,
        "budget": nano,
        "unit": unit,
        "time_zone": (time_zone or "UTC") if unit == "user-day" else None,
        "bound": bound,
        "delta": None if parsed is None else delta_text(parsed),
        "caps": nano_caps,
        "reading": registered_reading(columns, unit, time_zone, coordinate_resolution),
    }


def _checked_unit(unit: str, time_zone: str | None, bound: int | None) -> int | None:
    """Check the arguments of a unit; return its contribution limit."""
    check_choice("unit", unit, get_args(UnitKind))
    if unit != "user-day" and time_zone is not None:
        raise ParameterError(
            f"time_zone must be left out unless unit is user-day, got unit {unit!r}"
        )
    if unit == "record" and bound is not None:
        raise ParameterError("max_contributions must be left out for unit 'record'")
    check_zone(time_zone or "UTC")
    check = integer_between(1, MAX_CONTRIBUTIONS)
    return None if bound is None else int(check("max_contributions", bound))


def budget_nano(name: str, value: str | float | Decimal) -> int:
    """Parse a budget or a cap to nano-epsilon."""
    try:
        return parse_epsilon(value)
    except ParameterError as error:
        raise ParameterError(str(error).replace("epsilon", name, 1)) from None


def input_marks(state: LedgerState, inputs: Sequence[Any]) -> list[str]:
    """Compute the marks of inputs, each once."""
    names = input_names(list(inputs), has_tallies=True)
    for number, name in enumerate(names, 1):
        if name == NAMELESS:
            raise ParameterError(
                f"inputs must be files, tables or tallies that can be recognised again, but input "
                f"{number} of {len(names)} cannot; a file must exist, a table in memory has no "
                "name, and a vector file, or a file in folders such as day=2024-01-31, must have "
                "no second hard link"
            )
    return list(dict.fromkeys(map(state.mark, names)))


def comparable_name(name: str) -> str:
    """Normalise a name for comparisons."""
    return unicodedata.normalize("NFKC", name).casefold()
