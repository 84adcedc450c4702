"""Numbers of reports as text."""

from __future__ import annotations

from psd.query.reliability import relative_text

__all__ = ["number_or_dash", "percent_text"]


def percent_text(share: float) -> str:
    """Write a share in percent with three digits; see `psd.query.reliability.relative_text`.

    Examples
    --------
    >>> percent_text(0.12345), percent_text(369714453.7)
    ('12.3 %', 'above 1,000 %')
    """
    return relative_text(share).replace("%", " %")


def number_or_dash(value: float, form: str) -> str:
    """Write a number, or a dash for NaN."""
    return "-" if value != value else form.format(value)
