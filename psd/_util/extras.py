"""Packages that are extras: what needs one that is not installed says so in one sentence."""

from __future__ import annotations

from psd.errors import MissingExtraError

__all__ = ["require_matplotlib"]


def require_matplotlib(purpose: str) -> None:
    """Check that matplotlib is installed.

    Raises
    ------
    MissingExtraError
        If it is not.
    """
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            f"{purpose} needs matplotlib; install it with pip install 'psd-publisher[plot]'",
            extra="plot",
        ) from None
