"""What a campaign asks, costs and can say, before a report is collected."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from psd.apps.local.campaigns import load_campaign
from psd.apps.local.device import NANO, SHARES, Campaign, report_line
from psd.apps.local.protocols import LocalProtocol, report_protocol_of
from psd.apps.local.protocols.numbers import NumberProtocol, SingleValueProtocol, UnbiasedProtocol
from psd.apps.local.shuffling import check_delta, shuffled_epsilon
from psd.errors import ParameterError
from psd.privacy.loss import epsilon_text


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """What a group is asked.

    Parameters
    ----------
    group : int
        Number of the group.
    share : float
        Share of the devices.
    answers : int
        Number of answers: the cells, and *outside*.
    protocol, settings : str
        Protocol and its settings.
    p, q : float, optional
        Probability that a report supports the true answer, and another one. Numbers have none.
    report_bytes : int
        Length of a line.
    deviation : float
        Standard deviation of the number of devices in a cell, or of an option, with few of them,
        estimated from this group alone, if as many devices answer as are expected. Of a number,
        the largest root of the mean squared error of one report, in the units of the range.
    false_report : float
        Largest number of devices by which one false report moves the estimate of a cell or an
        option; or by which it moves a mean, as a share of the range.
    shuffled_epsilon : float, optional
        Central epsilon of its reports once a shuffler mixed them, if as many are shuffled as are
        expected in the group.
    """

    group: int
    share: float
    answers: int
    protocol: str
    settings: str
    p: float | None
    q: float | None
    report_bytes: int
    deviation: float | None
    false_report: float | None
    shuffled_epsilon: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What a campaign asks and costs.

    Parameters
    ----------
    campaign : str
        Digest.
    title : str
        What people read.
    epsilon : str
        Epsilon of a report.
    device_epsilon : str
        Epsilon of a device. It answers once, so it is that of a report; asked again, the device
        sends the same report, which costs nothing. With ``rappor`` it sends another report, and
        this is the epsilon of any number of them.
    devices : int
        Expected number of devices.
    groups : tuple of GroupDescription
        Groups that are asked now.
    delta : float, optional
        Delta of the central epsilons of shuffled reports.
    """

    campaign: str
    title: str
    epsilon: str
    device_epsilon: str
    devices: int
    groups: tuple[GroupDescription, ...]
    delta: float | None = None


def describe(
    campaign: str,
    *,
    shuffled: bool = False,
    delta: float | str | None = None,
    tickets: bool = False,
) -> Description:
    """Describe a campaign: epsilon, protocols, size of a report, errors, and false reports.

    Parameters
    ----------
    campaign : str
        File of the campaign.
    shuffled : bool
        Whether a shuffler, which the collector cannot look into, mixes the reports of each group.
        Then the description states what they are worth in the central model
        (`psd.apps.local.shuffling`).
    delta : float or str, optional
        Delta of the central model; required with ``shuffled``.
    tickets : bool
        Whether reports have tickets. A ticket tells who sent a report, so they exclude shuffling.

    Raises
    ------
    ParameterError
        If the campaign is not valid, or shuffling has no delta or tickets.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from psd.apps import local
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name)
    >>> campaign = local.design((126.4, 37, 127.6, 38), 4, 2000, rounds=1)
    >>> local.write_campaign(campaign, path / "c.json")
    >>> describe(f"{path}/c.json").epsilon
    '4'
    >>> folder.cleanup()
    """
    if tickets and shuffled:
        raise ParameterError(
            "shuffled must be without tickets, got both; a ticket tells who sent a report",
            name="shuffled",
        )
    if delta is not None and not shuffled:
        raise ParameterError("delta must be given with shuffled alone", name="delta")
    at = check_delta(delta) if shuffled else None
    loaded = load_campaign(campaign)
    groups = (
        _describe_group(loaded, number, at)
        for number, group in enumerate(loaded.groups)
        if group.draw is not None
    )
    costs = (getattr(group.draw, "lifetime", loaded.nano_epsilon) for group in loaded.groups)
    return Description(
        campaign=loaded.digest,
        title=loaded.title,
        epsilon=epsilon_text(loaded.nano_epsilon),
        device_epsilon=epsilon_text(max(costs)),
        devices=loaded.devices,
        groups=tuple(groups),
        delta=at,
    )


def _describe_group(campaign: Campaign, number: int, delta: float | None) -> GroupDescription:
    """Describe a group."""
    group = campaign.groups[number]
    protocol = report_protocol_of(group)
    share = Fraction(group.share, SHARES)
    expected = max(1.0, float(campaign.devices * share))
    p = q = deviation = moved = None
    if isinstance(protocol, LocalProtocol):
        p, q = float(protocol.p), float(protocol.q)
        deviation = math.sqrt(float(protocol.variance(0)) / expected) * campaign.devices
        moved = (1 - q) / (p - q) * campaign.devices / expected
    elif isinstance(protocol, NumberProtocol):
        # Largest error of one report, and by how many ranges a false one moves the sum.
        low, high = group.partition.starts
        step = (high - low) / (protocol.answers - 1)
        if isinstance(protocol, SingleValueProtocol):
            deviation, moved = math.sqrt(protocol.squared_errors().max()) * step, 1.0
        elif isinstance(protocol, UnbiasedProtocol):
            values = protocol.decoded()
            moved = float((max(values) - min(values)) / (protocol.answers - 1))
            deviation = math.sqrt(protocol.variances().max()) * step
    # The longest answer has the longest line.
    last = protocol.codes[1] - 1
    if protocol.report == "mask":
        answer = f'"{"0" * 2 * protocol.width}"'
    elif protocol.report == "pair":
        modulus = protocol.settings["modulus"]
        answer = f"[{last // modulus},{modulus - 1}]"
    else:
        answer = f"[{last}]"
    central = None
    if delta is not None:
        shuffled = max(1, int(expected))
        central = shuffled_epsilon(campaign.nano_epsilon / NANO, shuffled, delta)
    return GroupDescription(
        group=number,
        share=float(share),
        answers=protocol.answers,
        protocol=protocol.name,
        settings=", ".join(
            f"{key}={epsilon_text(value) if key in protocol.stated else value}"
            for key, value in protocol.settings.items()
        ),
        p=p,
        q=q,
        report_bytes=len(report_line(campaign.digest, number, "0" * 32, answer)) + 1,
        deviation=deviation,
        false_report=moved,
        shuffled_epsilon=central,
    )
