"""From the reports of options and numbers to a table of estimates with errors and intervals."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from psd._util.arrays import Floats
from psd._util.csv_text import guard_text
from psd.apps.local.campaigns import load_campaign
from psd.apps.local.counting import GroupCounts, count_support
from psd.apps.local.device import Campaign
from psd.apps.local.distributions import BINS, estimate_distribution
from psd.apps.local.protocols import LocalProtocol
from psd.apps.local.protocols._numbers import NumberProtocol, SingleValueProtocol, UnbiasedProtocol
from psd.errors import InputDataError, ParameterError

__all__ = ["QUANTILE", "AnswerRow", "encode_table", "tabulate"]

QUANTILE: Final = 1.959963984540054
"""Quantile of the normal distribution for intervals of 95 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRow:
    """One estimate.

    Parameters
    ----------
    answer : str
        Option, ``mean``, ``LOW to HIGH`` of a bin, or a single value.
    estimate : float
        Devices with the option or in the bin, the mean, or the reports of the single value.
    error : float
        Standard deviation of the estimate. Of a bin, the root of the mean squared error of samples
        from the estimated distribution. Of a single value, the largest root of the mean squared
        error of one report, in the units of the range.
    low, high : float
        Interval of 95 %. Of a single value, ``error`` to both sides of it, within the range.
    """

    answer: str
    estimate: float
    error: float
    low: float
    high: float


def tabulate(campaign: str, folder: str) -> list[AnswerRow]:
    """Estimates of a campaign that asks for options or numbers, from its parts.

    Guarantees
    ----------
    - It reads reports alone, so it costs no epsilon.

    Parameters
    ----------
    campaign : str
        File of the campaign.
    folder : str
        Folder of its parts, which `psd.apps.local.collection` wrote.

    Raises
    ------
    ParameterError
        If the campaign is not valid, or asks for places.
    InputDataError
        If parts are missing, damaged or of another campaign, or there is no report.
    """
    loaded = load_campaign(campaign)
    if loaded.question not in ("options", "numbers"):
        raise ParameterError(
            f"campaign must ask for options or numbers, got {loaded.question}; `aggregate` makes "
            "the release of places, and `tabulate_words` the table of words"
        )
    [counts] = count_support(loaded, Path(folder)).groups
    if not counts.reports:
        raise InputDataError("campaign must have reports; collect more lines")
    protocol = counts.protocol
    if isinstance(protocol, LocalProtocol):
        return _option_rows(loaded, protocol, counts)
    if isinstance(protocol, UnbiasedProtocol):
        return [_mean_row(loaded, protocol, counts)]
    if isinstance(protocol, SingleValueProtocol):
        return _single_rows(loaded, protocol, counts)
    assert isinstance(protocol, NumberProtocol)
    return _bin_rows(loaded, protocol, counts)


def encode_table(rows: Sequence[Any]) -> bytes:
    """CSV file of a table, of at least one row of a dataclass."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [field.name for field in fields(rows[0])], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _field_text(value) for name, value in asdict(row).items()})
    return out.getvalue().encode()


def _field_text(value: Any) -> str:
    """Text of a field: numbers with six digits, and no text that would be a formula."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(guard_text(value)) if isinstance(value, str) else f"{value:.6g}"


def _interval(estimate: float, error: float) -> dict[str, float]:
    """Fields of an estimate with its interval."""
    margin = QUANTILE * error
    return {
        "estimate": estimate,
        "error": error,
        "low": estimate - margin,
        "high": estimate + margin,
    }


def _option_rows(
    campaign: Campaign, protocol: LocalProtocol, counts: GroupCounts
) -> list[AnswerRow]:
    """Number of devices with each option."""
    p, q, n = float(protocol.p), float(protocol.q), counts.reports
    shares = (counts.support / n - q) / (p - q)
    names = [*campaign.groups[counts.group].partition.cells, "none of these"]
    rows = []
    for name, share in zip(names, shares.tolist(), strict=True):
        fixed, growth = float(protocol.variance(0)), float(protocol.variance(1))
        variance = fixed + min(max(share, 0.0), 1.0) * (growth - fixed)
        rows.append(AnswerRow(answer=name, **_interval(share * n, (variance * n) ** 0.5)))
    return rows


def _mean_row(campaign: Campaign, protocol: UnbiasedProtocol, counts: GroupCounts) -> AnswerRow:
    """Mean of the numbers; its error is that of the reports, and so of the numbers too."""
    low, high = campaign.groups[counts.group].partition.starts
    step, n = (high - low) / (protocol.answers - 1), counts.reports
    values = np.array([float(value) for value in protocol.decoded()])
    mean = float(counts.support @ values) / n
    spread = float(counts.support @ (values - mean) ** 2) / max(n - 1, 1)
    return AnswerRow(answer="mean", **_interval(low + mean * step, (spread / n) ** 0.5 * step))


def _single_rows(
    campaign: Campaign, protocol: SingleValueProtocol, counts: GroupCounts
) -> list[AnswerRow]:
    """Reports of each value; each is an answer of its own, with its error."""
    low, high = campaign.groups[counts.group].partition.starts
    step = (high - low) / (protocol.answers - 1)
    error = float(protocol.squared_errors().max()) ** 0.5 * step
    rows = []
    for output in np.flatnonzero(counts.support).tolist():
        value = low + output * step
        row = AnswerRow(
            answer=f"{value:.6g}",
            estimate=int(counts.support[output]),
            error=error,
            low=max(value - error, low),
            high=min(value + error, high),
        )
        rows.append(row)
    return rows


def _bin_rows(campaign: Campaign, protocol: NumberProtocol, counts: GroupCounts) -> list[AnswerRow]:
    """Number of devices in each of 64 even parts of the range."""
    low, high = campaign.groups[counts.group].partition.starts
    shares, errors = estimate_distribution(protocol.matrix(), counts.support)
    edges: Floats = np.linspace(low, high, BINS + 1)
    return [
        AnswerRow(
            answer=f"{edges[i]:.6g} to {edges[i + 1]:.6g}",
            **_interval(float(shares[i]) * counts.reports, float(errors[i]) * counts.reports),
        )
        for i in range(BINS)
    ]
