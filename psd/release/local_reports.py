"""What a local release states of its reports: how many, by which law, level by level.

In a local release the counts of a level are support counts: numbers of reports that support a
cell. With these numbers a reader computes estimates and variances (`psd.estimation.least_squares`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from psd.errors import ParameterError

__all__ = ["LevelReports", "LocalReports", "is_local_header", "local_header", "parse_local"]

MAX_REPORTS: Final = 2**53

_PROTOCOL = re.compile(r"[a-z][a-z0-9-]{0,39}", re.ASCII)
_FRACTION = re.compile(r"(0|[1-9]\d{0,60})/([1-9]\d{0,60})", re.ASCII)
_DIGEST = re.compile(r"[A-Za-z0-9_-]{22}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelReports:
    """Reports that measured a level of the tree.

    Parameters
    ----------
    level : int
        Level of the tree.
    protocol : str
        Name of the protocol.
    reports : int
        Number of reports.
    p : Fraction
        Probability that a report supports the cell of its device.
    q : Fraction
        Probability that it supports another cell; below p.
    outside : int
        Number of reports that support the answer *outside*.

    Raises
    ------
    ParameterError
        If a value is out of range.
    """

    level: int
    protocol: str
    reports: int
    p: Fraction
    q: Fraction
    outside: int

    def __post_init__(self) -> None:
        """Check the values."""
        if not _PROTOCOL.fullmatch(self.protocol):
            raise ParameterError("protocol of a level must be small letters, digits and hyphens")
        if not (0 <= self.level < 256 and 0 <= self.outside <= self.reports < MAX_REPORTS):
            raise ParameterError("a level must have as many reports as support its answers")
        if not 0 <= self.q < self.p <= 1:
            raise ParameterError("p and q of a level must be probabilities, p above q")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalReports:
    """Reports of a campaign.

    Parameters
    ----------
    campaign : str
        Digest of the last campaign file.
    levels : tuple of LevelReports
        Measured levels, from the root down; each device is in one of them.

    Raises
    ------
    ParameterError
        If there is no report, or levels are not in their order.
    """

    campaign: str
    levels: tuple[LevelReports, ...]

    def __post_init__(self) -> None:
        """Check the levels."""
        if not _DIGEST.fullmatch(self.campaign):
            raise ParameterError("campaign of a local release must be a digest")
        numbers = [level.level for level in self.levels]
        if numbers != sorted(set(numbers)) or not self.reports:
            raise ParameterError("a local release must have reports, level by level")

    @property
    def reports(self) -> int:
        """Number of all reports."""
        return sum(level.reports for level in self.levels)


def local_header(local: LocalReports | None) -> dict[str, Any] | None:
    """JSON value of the reports of a local release."""
    if local is None:
        return None
    levels = [
        {
            "level": level.level,
            "protocol": level.protocol,
            "reports": level.reports,
            "p": _fraction_text(level.p),
            "q": _fraction_text(level.q),
            "outside": level.outside,
        }
        for level in local.levels
    ]
    return {"campaign": local.campaign, "levels": levels}


def is_local_header(value: Any) -> bool:
    """Whether a JSON value is null or that of the reports of a local release."""
    try:
        parse_local(value)
    except (ParameterError, KeyError, TypeError, ValueError):
        return False
    return True


def parse_local(value: Any) -> LocalReports | None:
    """Reports of a JSON value.

    Raises
    ------
    ParameterError
        If it is not such a value.
    """
    if value is None:
        return None
    if not isinstance(value, dict) or value.keys() != {"campaign", "levels"}:
        raise ParameterError("local must have the keys campaign and levels")
    if not (isinstance(value["campaign"], str) and isinstance(value["levels"], list)):
        raise ParameterError("local must have a digest and a list of levels")
    levels = tuple(_parse_level(entry) for entry in value["levels"][:256])
    return LocalReports(campaign=value["campaign"], levels=levels)


def _parse_level(value: Any) -> LevelReports:
    """Reports of a level."""
    if not isinstance(value, dict) or value.keys() != set(LevelReports.__dataclass_fields__):
        raise ParameterError("a level must have its fields and no others")
    if not all(type(value[name]) is int for name in ("level", "reports", "outside")):
        raise ParameterError("level, reports and outside must be integers")
    p, q = (_parse_fraction(value[name]) for name in ("p", "q"))
    return LevelReports(**{**value, "protocol": str(value["protocol"]), "p": p, "q": q})


def _fraction_text(value: Fraction) -> str:
    """Text of a fraction."""
    return f"{value.numerator}/{value.denominator}"


def _parse_fraction(text: Any) -> Fraction:
    """Fraction of a text in lowest terms."""
    parts = _FRACTION.fullmatch(text) if isinstance(text, str) else None
    fraction = Fraction(int(parts[1]), int(parts[2])) if parts else Fraction(0)
    if _fraction_text(fraction) != text:
        raise ParameterError("p and q of a level must be fractions in lowest terms")
    return fraction
