"""The next round of a campaign: where many devices are, cells are cut; the others are asked again.

It follows from public numbers and the reports of earlier rounds, so it costs no epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from psd.api.release import Release
from psd.apps.local.aggregation import Counted, aggregate_campaign, counted_content
from psd.apps.local.campaign_design import PLANS, grid_cells, open_group, sigma
from psd.apps.local.campaigns import campaign_of, load_campaign
from psd.apps.local.device import DEPTH, MAX_ANSWERS, SHARES, Campaign
from psd.errors import ParameterError
from psd.estimation.least_squares import measure_record

__all__ = ["round_after"]

# Levels below which no cell is cut; a cell has a millionth of the domain.
_DEEPEST = 10


def next_round(campaign: str, folder: str) -> Campaign:
    """Campaign of the next round, from the reports of this one.

    Guarantees
    ----------
    - Its groups are those of the campaign before it: a device keeps its group and answers once.
    - It states the support counts of all earlier rounds, and the digests of their campaigns.

    Parameters
    ----------
    campaign : str
        File of the campaign.
    folder : str
        Folder of its parts.

    Raises
    ------
    ParameterError
        If the campaign is not valid, or has no further round.
    InputDataError
        If parts are missing, damaged or of another campaign, or the round has no reports.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from psd.apps import local
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name)
    >>> campaign = local.design((126.4, 37, 127.6, 38), 4, 2000, rounds=2)
    >>> local.write_campaign(campaign, path / "c.json")
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"lon": [127.0] * 2000, "lat": 37.5})
    >>> rows.to_csv(path / "rows.csv", index=False)
    >>> files = f"{path}/c.json", f"{path}/rows.csv", f"{path}/lines"
    >>> local.randomize(*files, store=f"{path}/store") > 0
    True
    >>> collected = local.collect(f"{path}/c.json", [f"{path}/lines"], f"{path}/parts")
    >>> following = next_round(f"{path}/c.json", f"{path}/parts")
    >>> len(following.earlier)
    1
    >>> folder.cleanup()
    """
    loaded = load_campaign(campaign)
    _open_round(loaded)
    return round_after(loaded, *aggregate_campaign(loaded, Path(folder)))


def round_after(campaign: Campaign, release: Release, counted: Sequence[Counted]) -> Campaign:
    """Campaign of the next round, from the release and the counts of all rounds so far."""
    number = _open_round(campaign)
    cells = _next_cells(release, counted, number, campaign)
    groups = [dict(group) for group in campaign.content["groups"]]
    # The next round keeps the protocol and the settings that are not those by default.
    nano, asked, stated = campaign.nano_epsilon, groups[number]["cells"], groups[number]["protocol"]
    usual = open_group(0, asked, nano, None)["protocol"]["name"]
    protocol = None if stated["name"] == usual else stated["name"]
    best = open_group(0, asked, nano, stated["name"])["protocol"]
    settings = {key: value for key, value in stated.items() if best.get(key) != value}
    groups[number] |= {"cells": None, "protocol": None, "counted": counted_content(counted[-1])}
    share = groups[number + 1]["share"]
    groups[number + 1] = open_group(share, cells, nano, protocol, settings)
    earlier = [*campaign.earlier, campaign.digest]
    return campaign_of({**campaign.content, "groups": groups, "earlier": earlier})


def _open_round(campaign: Campaign) -> int:
    """Number of the one group that is asked; later ones are still to come."""
    numbers = [number for number, group in enumerate(campaign.groups) if group.draw is not None]
    if len(campaign.groups) not in PLANS or len(numbers) > 1:
        raise ParameterError(
            "campaign must be designed for 2, 3, 4 or 7 rounds, got one whose groups are asked "
            "together; aggregate makes its release"
        )
    if numbers[0] == len(campaign.groups) - 1:
        raise ParameterError("campaign must have a further round, got its last one; aggregate it")
    return numbers[0]


def _next_cells(
    release: Release, counted: Sequence[Counted], number: int, campaign: Campaign
) -> list[str]:
    """Cells of the next round: those of this one, each cut a number of times."""
    rounds = len(campaign.groups)
    plan, cells = PLANS[rounds], counted[-1].cells
    shares = [group.share / SHARES for group in campaign.groups]
    reports = sum(group.reports for group in counted)
    devices = reports / sum(shares[: number + 1])
    tree, values = release.tree, measure_record(release.index.record)
    precision = 1 / values.variance
    total = np.where(precision > 0, precision * values.value, 0.0)
    # A leaf that was asked several times stands below itself; its measurements are pooled.
    for level in tree.levels[2:]:
        up = tree.parent[level]
        is_same = (tree.boxes[level] == tree.boxes[up]).all(axis=1)
        precision[level] += np.where(is_same, precision[up], 0.0)
        total[level] += np.where(is_same, total[up], 0.0)
    # Share of each leaf, (leaves,): its estimate, and deviation and mean of its own measurements.
    leaves = tree.levels[-1]
    pooled = precision[leaves]
    share = release.index.fit.estimates.count[leaves] / reports
    deviation, measured = 1 / np.sqrt(pooled) / reports, total[leaves] / pooled / reports
    depth = np.array([len(cell) for cell in cells])
    if plan.target:
        # Quartered until cells have `target` deviations of the reports to come, a part in each
        # round.
        left = sigma(campaign.nano_epsilon, devices * sum(shares[number + 1 :]))
        deeper = 0.5 * np.log2(np.maximum(share, 1e-12) / (plan.target * left))
        deeper = np.where(share < plan.least * deviation, 0.0, np.clip(deeper, 0, DEPTH))
        cuts = np.rint(deeper / (rounds - 1 - number)).astype(np.int64)
    else:
        noise = sigma(campaign.nano_epsilon, counted[-1].reports)
        cuts = (measured > plan.least * noise).astype(np.int64)
    return _cut_cells(cells, np.minimum(cuts, _DEEPEST - depth))


def _cut_cells(cells: Sequence[str], cuts: NDArray[np.int64]) -> list[str]:
    """Cells after their cuts, at most as many as a campaign may have."""
    while (4.0**cuts).sum() > MAX_ANSWERS - 1:
        cuts = np.minimum(cuts, cuts.max() - 1)
    endings = [grid_cells(depth) for depth in range(int(cuts.max()) + 1)]
    return [cell + end for cell, cut in zip(cells, cuts, strict=True) for end in endings[cut]]
