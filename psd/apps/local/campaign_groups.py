"""Groups of a campaign: their shares, cells and protocols, by number of rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from psd.apps.local.device import SHARES
from psd.apps.local.partitions import grid_cells
from psd.apps.local.protocols import best_protocol, protocol_content
from psd.privacy.loss import NANO

__all__ = [
    "PLANS",
    "Plan",
    "closed_group",
    "grid_level",
    "level_groups",
    "open_group",
    "round_groups",
    "sigma",
    "split_shares",
]

# Groups that are asked together: a mean cell of the finest grid has this many standard deviations,
# and each level has 1.5 times the devices of the one above.
_TOGETHER = 1.5
_GROWTH = 1.5
_COARSEST = 2
_FINEST = (3, 7)

# Levels of the first grid of several rounds.
_FIRST = (1, 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a campaign of some rounds asks."""

    shares: tuple[float, ...]  # share of the devices of each round
    # Standard deviations of a mean cell of the first grid; an integer is its level.
    first: float | int
    # Standard deviations that a cell shall have in the end, with the devices that are left.
    target: float
    least: float  # standard deviations that a cell's own measurements must have for a cut


PLANS: Final = {
    2: Plan(shares=(0.35, 0.65), first=3.0, target=2.0, least=2.0),
    3: Plan(shares=(0.15, 0.25, 0.6), first=4.0, target=2.0, least=2.0),
    4: Plan(shares=(0.15, 0.2, 0.25, 0.4), first=4.0, target=1.4, least=2.0),
    7: Plan(shares=(1 / 7,) * 7, first=2, target=0.0, least=5**0.5),
}
"""Plans by their number of rounds; a target of 0 cuts one level a round."""


def level_groups(
    nano: int, devices: int, protocol: str | None, settings: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Groups that are asked together, one for each level of a quadtree."""
    finest = grid_level(_TOGETHER, sigma(nano, devices), *_FINEST)
    levels = range(_COARSEST, finest + 1)
    shares = split_shares([_GROWTH**i for i in range(len(levels))])
    return [
        open_group(share, grid_cells(level), nano, protocol, settings)
        for level, share in zip(levels, shares, strict=True)
    ]


def round_groups(
    nano: int, devices: int, rounds: int, protocol: str | None, settings: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Groups that are asked one after another; the first one has a grid, others have no cells."""
    plan = PLANS[rounds]
    shares = split_shares(plan.shares)
    level = plan.first
    if isinstance(level, float):
        level = grid_level(level, sigma(nano, devices * plan.shares[0]), *_FIRST)
    first = open_group(shares[0], grid_cells(level), nano, protocol, settings)
    return [first, *(closed_group(share) for share in shares[1:])]


def closed_group(share: int) -> dict[str, Any]:
    """Content of a group that is asked later."""
    return {"share": share, "cells": None, "protocol": None, "counted": None}


def open_group(
    share: int,
    cells: Sequence[str],
    nano: int,
    protocol: str | None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Content of a group that is asked; the settings take the place of the best ones."""
    best = best_protocol(nano, len(cells) + 1, protocol)
    return {
        "share": share,
        "cells": list(cells),
        "protocol": protocol_content(best, settings or {}),
        "counted": None,
    }


def split_shares(weights: Sequence[float]) -> list[int]:
    """Shares in parts of a million in proportion to weights; the first takes what is left over."""
    total = sum(weights)
    shares = [int(SHARES * weight / total) for weight in weights]
    shares[0] += SHARES - sum(shares)
    return shares


def sigma(nano: int, devices: float) -> float:
    """Standard deviation of the share of a rare answer, with optimised unary encoding."""
    growth = math.expm1(min(nano / NANO, 300.0))
    return math.sqrt(4 * (growth + 1) / growth**2 / devices)


def grid_level(factor: float, deviation: float, lowest: int, highest: int) -> int:
    """Level of a grid whose mean cell has about ``factor`` standard deviations of devices."""
    return min(max(round(math.log2(1 / (factor * deviation)) / 2), lowest), highest)
