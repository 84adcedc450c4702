"""What a campaign asks, costs and can say, before a report is collected.

A shuffler passes on the reports of a group in a random order, without who sent which: each hides
among the others and costs less in the central model (Feldman, McMillan, Talwar, "Hiding Among the
Clones", FOCS 2021, theorem 3.1 and its proof).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from psd.apps.local.campaigns import load_campaign
from psd.apps.local.device import NANO, SHARES, Campaign, report_line
from psd.apps.local.protocols import LocalProtocol, report_protocol_of
from psd.apps.local.protocols.numbers import NumberProtocol, SingleValueProtocol, UnbiasedProtocol
from psd.errors import ParameterError
from psd.privacy.loss import epsilon_text


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """What a group is asked, for the expected devices.

    ``answers``: the cells, and *outside*. ``p`` and ``q``: probability that a report supports the
    true answer, and another one; numbers have none. ``report_bytes``: length of a line.
    ``deviation``: standard deviation of the number of few devices in a cell or with an option, from
    this group alone; of a number, the largest root of the mean squared error of one report, in
    units of the range. ``false_report``: devices by which one false report moves an estimate at
    most; of a mean, a share of the range. ``shuffled_epsilon``: central epsilon of its reports once
    a shuffler mixed them.
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
    """What a campaign (its digest) asks and costs; delta is that of shuffled reports.

    A device answers once, so ``device_epsilon`` is that of a report; asked again, it sends the same
    report, which costs nothing. With ``rappor`` it sends another one, and this is the epsilon of
    any number of them.
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
        (`shuffled_epsilon`).
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


# Fewer reports give a larger epsilon, so a result for this many holds for more.
_REPORTS = 10**8

# exp(-epsilon) is below a float's step beyond; no report hides there.
_LARGEST = 30.0

# Standard deviations of the number of clones that are summed; the rest is added as if it told all.
_DEVIATIONS = 9.0


def shuffled_epsilon(epsilon: float, reports: int, delta: float) -> float:
    """Central epsilon, at a delta, of reports of one epsilon that are shuffled in one group.

    P1. Replacing the answer of one device changes the law of the shuffled reports by at most
    (result, delta), whatever the protocol, if each report is epsilon-locally private.
    """
    from scipy.optimize import brentq

    count = min(reports, _REPORTS)
    if epsilon > _LARGEST or shuffled_delta(0.0, epsilon, count) <= delta:
        return epsilon if epsilon > _LARGEST else 0.0

    def beyond(candidate: float) -> float:
        return math.log(max(shuffled_delta(candidate, epsilon, count), 1e-300) / delta)

    if beyond(epsilon) >= 0:
        return epsilon
    result = float(brentq(beyond, 0.0, epsilon, xtol=1e-13, rtol=1e-12))
    step = 1e-12
    while beyond(result) > 0:
        result, step = result + step, 2 * step
    return min(result, epsilon)


def shuffled_delta(central: float, epsilon: float, reports: int) -> float:
    """Delta of shuffled reports at a central epsilon, for the pair of the clone theorem.

    P2. The pair is P = (A + D, C - A + 1 - D) and Q = (A + 1 - D, C - A + D) with C ~ Bin(n - 1,
    e^-epsilon), A ~ Bin(C, 1/2) and D ~ Bern(r), r = e^epsilon / (e^epsilon + 1). For C = c the
    first number is a with probability r f(a) + (1 - r) g(a) under P, and (1 - r) f(a) + r g(a)
    under Q, where f(a) = Bin(a - 1; c, 1/2), g(a) = Bin(a; c, 1/2) and f / g = a / (c + 1 - a).
    With E = e^central, P > E Q iff this quotient is above x = (E r - (1 - r)) / (r - E (1 - r)); so
    the sum over a of P - E Q is two binomial tails. The pair is symmetric, so delta is the same in
    both directions.
    """
    from scipy.stats import binom

    growth, keep = math.exp(central), 1 / (1 + math.exp(-epsilon))
    if keep <= growth * (1 - keep):
        return 0.0
    quotient = (growth * keep - (1 - keep)) / (keep - growth * (1 - keep))
    clones, chance = reports - 1, math.exp(-epsilon)
    # Numbers of clones c beyond some deviations are left out, and their probability is added.
    wide = _DEVIATIONS * math.sqrt(clones * chance * (1 - chance)) + 1
    low, high = max(0, int(clones * chance - wide)), min(clones, int(clones * chance + wide) + 1)
    c = np.arange(low, high + 1)
    # The least a with f / g above the quotient, and the tails of g and f from there, (c,).
    first = np.floor(quotient * (c + 1) / (1 + quotient)) + 1
    g = binom.sf(first - 1, c, 0.5)
    f = g + binom.pmf(first - 1, c, 0.5)
    excess = (keep - growth * (1 - keep)) * f + ((1 - keep) - growth * keep) * g
    summed = (binom.pmf(c, clones, chance) * np.maximum(excess, 0)).sum()
    left_out = binom.cdf(low - 1, clones, chance) + binom.sf(high, clones, chance)
    return float(summed + left_out)


def check_delta(delta: float | str | None) -> float:
    """Delta as a number."""
    try:
        number = float(delta) if delta is not None else math.nan
    except (TypeError, ValueError):
        number = math.nan
    if not 0 < number < 1:
        raise ParameterError(
            f"delta must be a number above 0 and below 1, got {delta!r}; a usual one is 1e-6",
            name="delta",
        )
    return number
