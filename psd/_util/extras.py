"""How psd is installed, and what says so where a package of an extra is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from psd.errors import MissingExtraError

__all__ = ["CONTACT", "INSTALL", "SOURCE", "install_text", "picture_text", "require_matplotlib"]

# Placeholders until psd has a public address. No other file names one.
SOURCE: Final = "https://example.org/psd"
"""Where the source of psd is, with its tracker."""

CONTACT: Final = "psd@example.org"

# No index of packages has psd: `psd` of PyPI is another program, and a name that nobody holds yet
# may be taken by anyone. So no text may tell a user to install psd by a name.
INSTALL: Final = f"run `pip install .` in the folder of its source, {SOURCE}"
"""How psd is installed, for whoever has no copy of its source."""


def install_text(extra: str) -> str:
    """How psd is installed again with an extra."""
    return f"run pip install '.[{extra}]' in the folder of the source of psd"


@contextmanager
def needs_extra(extra: str, need: str, otherwise: str = "") -> Iterator[None]:
    """Refuse imports of the block that fail: what needs which library, and what to do without."""
    try:
        yield
    except ImportError:
        raise MissingExtraError(f"{need}; {install_text(extra)}{otherwise}", extra=extra) from None


def require_matplotlib(purpose: str) -> None:
    """Check that matplotlib is installed."""
    with needs_extra("plot", f"{purpose} needs matplotlib"):
        import matplotlib.figure  # noqa: F401


def picture_text(text: str) -> str:
    """Text of anyone for matplotlib, which takes what is between two dollar signs for a formula."""
    return text.replace("$", r"\$")
