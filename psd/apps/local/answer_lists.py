"""Files of public lists, such as options or words: a line each."""

from __future__ import annotations

from pathlib import Path

from psd.errors import ParameterError

__all__ = ["read_list"]


def read_list(path: str, name: str) -> list[str]:
    """Lines of a file in UTF-8."""
    try:
        return Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise ParameterError(f"{name} must be a file of lines in UTF-8", name=name) from None
