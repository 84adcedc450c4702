"""Numbers of reports as text."""

from __future__ import annotations

__all__ = ["number_or_dash", "percent_text"]


def percent_text(share: float) -> str:
    """Write a share in percent with three digits."""
    return f"{100 * share:.3g} %"


def number_or_dash(value: float, form: str) -> str:
    """Write a number, or a dash for NaN."""
    return "-" if value != value else form.format(value)
