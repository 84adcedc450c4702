"""The protocols of local campaigns: what the collector knows of each.

The device has its part in `psd.apps.local.device`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psd._util.instances import check_choice
from psd.apps.local.device import Group
from psd.apps.local.protocols.answers import (
    Hashing,
    Kary,
    LocalProtocol,
    ReportProtocol,
    Subset,
    Unary,
)
from psd.apps.local.protocols.numbers import (
    BoundedLaplace,
    BoundedStaircase,
    Duchi,
    Hybrid,
    Piecewise,
    SquareWave,
    Staircase,
)
from psd.apps.local.protocols.rappor import Rappor
from psd.errors import ParameterError

__all__ = [
    "REFUSED",
    "LocalProtocol",
    "ReportProtocol",
    "best_protocol",
    "list_protocols",
    "protocol_class",
    "protocol_content",
    "protocol_of",
    "report_protocol_of",
]

_CLASSES: dict[str, type[Any]] = {
    kind.name: kind
    for kind in (
        *(BoundedLaplace, BoundedStaircase, Duchi, Hashing, Hybrid, Kary, Piecewise, Rappor),
        *(SquareWave, Staircase, Subset, Unary),
    )
}

# Largest number of answers for which the best size of a subset is searched.
_SUBSETS = 256


def list_protocols() -> tuple[str, ...]:
    """Names of all protocols.

    Examples
    --------
    >>> [name for name in list_protocols() if "staircase" in name]
    ['bounded-staircase', 'staircase']
    """
    return tuple(_CLASSES)


REFUSED = "forced-yes"
"""Name of the coin that says yes on every head, which has epsilon infinite."""


def protocol_class(name: str) -> type[Any]:
    """Class of a protocol by its name."""
    if name == REFUSED:
        raise ParameterError(
            f"protocol must be private, got {REFUSED}: who says yes on every head never says no "
            "for a yes, so epsilon is infinite; use k-ary",
            name="protocol",
        )
    check_choice("protocol", name, _CLASSES)
    return _CLASSES[name]


def report_protocol_of(group: Group) -> ReportProtocol:
    """Protocol of a group that is asked in a campaign, of any question."""
    if group.protocol is None:
        raise ParameterError("group must be asked in the campaign, got one that is closed")
    protocol: ReportProtocol = protocol_class(group.protocol)(draw=group.draw)
    return protocol


def protocol_of(group: Group) -> LocalProtocol:
    """Protocol of a group that is asked for one of a number of answers."""
    protocol = report_protocol_of(group)
    if not isinstance(protocol, LocalProtocol):
        raise ParameterError(
            f"protocol must be of answers, got {protocol.name}, which is of numbers"
        )
    return protocol


def best_protocol(nano_epsilon: int, answers: int, name: str | None = None) -> LocalProtocol:
    """Protocol with the least variance of an answer that is rare; its seed of codes is empty."""
    # `subset` where it has few answers and beats `hashing`, else `hashing`.
    names = (name,) if name else ("subset", "hashing") if answers <= _SUBSETS else ("hashing",)
    choices = [protocol_class(each).best(nano_epsilon, answers) for each in names]
    if not all(isinstance(choice, LocalProtocol) for choice in choices):
        raise ParameterError(f"protocol must be of answers, got {name}, which is of numbers")
    best: LocalProtocol = min(choices, key=lambda protocol: protocol.variance(0))
    return best


def protocol_content(best: ReportProtocol, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Protocol of a campaign: its best settings, and others in their place."""
    names = sorted({*best.settings, *best.stated})
    for name in settings:
        if name not in names:
            raise ParameterError(
                f"settings must be those of the protocol, got {str(name)[:80]!r}; "
                f"{best.name} has {', '.join(names) or 'none'}",
                name="settings",
            )
    return {"name": best.name, **best.settings, **settings}
