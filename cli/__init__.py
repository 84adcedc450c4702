"""The ``psd`` command: parsing, calling the library function of the same name, and writing."""

from __future__ import annotations

import sys

__all__: list[str] = []


def _check_library() -> None:
    """Refuse in one sentence to run on another package that is called `psd`, as PyPI has one."""
    try:
        import psd

        is_ours = "PsdError" in psd.__all__
    except (ImportError, AttributeError):
        is_ours = False
    if not is_ours:
        sys.stderr.write(
            "psd: error: the package psd of this Python must be that of this command, got another "
            "one of that name, as PyPI has it; uninstall it (pip uninstall psd), and run "
            "pip install . in the folder of the source of this psd\n"
        )
        raise SystemExit(7)  # as where a package is missing


_check_library()
