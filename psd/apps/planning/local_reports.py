"""Simulated campaigns of an assumed population: support counts drawn by their exact laws.

No report is drawn, so the time does not depend on the number of devices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psd._util.arrays import Floats, Integers
from psd.apps.local.aggregation import Counted, release_of
from psd.apps.local.bulk import find_answers
from psd.apps.local.device import SHARES, Campaign
from psd.apps.local.protocols import protocol_of
from psd.apps.local.rounds import round_after

if TYPE_CHECKING:
    from psd.api.release import Release

__all__ = ["draw_campaign"]


def draw_campaign(
    campaign: Campaign, x: Floats, y: Floats, devices: Integers, random: np.random.Generator
) -> Release:
    """Draw the release of a campaign and its later rounds.

    Parameters
    ----------
    campaign : Campaign
        Campaign of the first round.
    x, y : ndarray, shape (n,), float64
        Points of an assumed population. Public.
    devices : ndarray, shape (n,), int64
        Devices at each point.
    random : numpy.random.Generator
        Generator of all draws.

    Notes
    -----
    The devices of each point draw their groups. Of the reports of a group, a cell with k devices
    is supported by Binomial(k, p) of these devices and Binomial(reports - k, q) of the others:
    that is the exact law of each count. Counts of different cells are drawn independently, which
    they are for ``unary``; for the other protocols their correlations are slightly negative.
    """
    shares = np.array([group.share for group in campaign.groups]) / SHARES
    in_groups = random.multinomial(devices, shares)
    counted: list[Counted] = []
    for number in range(len(campaign.groups)):
        if campaign.groups[number].draw is None:
            campaign = round_after(campaign, release_of(campaign, counted), counted)
        answers = find_answers(campaign, number, x, y)
        counted.append(_draw_counts(campaign, number, answers, in_groups[:, number], random))
    return release_of(campaign, counted)


def _draw_counts(
    campaign: Campaign,
    number: int,
    answers: Integers,
    devices: Integers,
    random: np.random.Generator,
) -> Counted:
    """Support counts of a group whose devices have these answers."""
    group = campaign.groups[number]
    protocol = protocol_of(group)
    p, q = float(protocol.p), float(protocol.q)
    assert group.partition is not None  # as its draw, by `round_after`
    true = np.zeros(protocol.answers, np.int64)
    np.add.at(true, answers, devices)
    reports = int(true.sum())
    support = random.binomial(true, p) + random.binomial(reports - true, q)
    return Counted(
        cells=group.partition.cells,
        protocol=protocol.name,
        settings=protocol.settings,
        p=protocol.p,
        q=protocol.q,
        reports=reports,
        support=support[:-1],
        outside=int(support[-1]),
    )
