"""Design a campaign: groups, grids and protocols from epsilon and the expected number of devices.

Everything follows from public numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psd._util.declared_parameters import integer_between
from psd.apps.local.campaign_groups import PLANS, level_groups, round_groups
from psd.apps.local.campaigns import campaign_of
from psd.apps.local.device import DEPTH, Campaign
from psd.apps.local.stated_laws import resolve_law
from psd.errors import DomainError, ParameterError
from psd.space.domain import Domain

__all__ = ["campaign_content", "design"]

MAX_DEVICES = 10**12


def design(
    bounds: Sequence[float],
    epsilon: str | float | None,
    devices: int,
    *,
    crs: str = "EPSG:4326",
    title: str = "",
    rounds: int = 4,
    protocol: str | None = None,
    settings: Mapping[str, int | str] | None = None,
) -> Campaign:
    """Design a campaign, and give its first round.

    With one round, groups of devices are asked together, each for the cell of a grid of another
    size. With several, the first group is asked for the cell of a coarse grid, and `next_round`
    cuts the cells with many devices for the group after it.

    Guarantees
    ----------
    - A device answers in one group, so the campaign costs epsilon, which is not divided.

    Parameters
    ----------
    bounds : sequence of float
        West, south, east, north. Public, never derived from the points.
    epsilon : str or float, optional
        Epsilon of a report. None if the settings ``p``, ``q`` and ``flips`` of ``rappor`` state
        its law.
    devices : int
        Expected number of devices; it decides how fine the cells are.
    crs : str
        Reference system of the bounds.
    title : str
        What people read about the campaign.
    rounds : int
        1, 2, 3, 4 or 7.
    protocol : str, optional
        Protocol of the groups; the one with the least variance by default.
    settings : mapping, optional
        Settings of the protocol of all groups, in place of the best ones; see `design_options`.

    Raises
    ------
    ParameterError
        If epsilon, the number of devices or of rounds, or the protocol is not valid.
    DomainError
        If the bounds are not valid.

    Examples
    --------
    >>> campaign = design((126.4, 37, 127.6, 38), 1, 100_000, rounds=1)
    >>> [(len(g.partition.cells), g.share) for g in campaign.groups]
    [(16, 400000), (64, 600000)]
    """
    nano, stated = resolve_law(epsilon, protocol, settings)
    count = integer_between(1, MAX_DEVICES)("devices", devices)
    if rounds == 1:
        groups = level_groups(nano, count, protocol, stated)
    elif rounds in PLANS:
        groups = round_groups(nano, count, rounds, protocol, stated)
    else:
        raise ParameterError(f"rounds must be 1, 2, 3, 4 or 7, got {rounds!r}", name="rounds")
    return campaign_of(campaign_content(bounds, crs, title, nano, count, groups))


def campaign_content(
    bounds: Sequence[float],
    crs: str,
    title: str,
    nano: int,
    devices: int,
    groups: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Content of the first campaign of its rounds."""
    if len(bounds) != 4:
        raise DomainError("bounds must be four numbers: west, south, east, north", name="bounds")
    west, south, east, north = bounds
    domain = Domain(bounds=(west, south, east, north), crs=crs, min_cell=None)
    return {
        "psd-campaign": 1,
        "question": "places",
        "title": title,
        "domain": {
            "bounds": [repr(float(edge)) for edge in domain.bounds],
            "crs": domain.crs,
            "lattice": [2**DEPTH, 2**DEPTH],
        },
        "nano_epsilon": nano,
        "devices": devices,
        "groups": list(groups),
        "earlier": [],
    }
