"""What a build reports while it runs: stages, and private counts for the holder of the data."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from psd._util.instances import check_names, type_text
from psd.errors import ParameterError
from psd.ingest.sources import refuse_copy

if TYPE_CHECKING:
    from psd.ingest.tally import Tally

__all__ = ["SILENT", "Observer"]


_LOG = logging.getLogger("psd")


def _log_stage(stage: str) -> None:
    """Log a stage at INFO. P1. Names of stages depend on no data. Nothing else is logged."""
    _LOG.info("%s", stage)


def _ignore(*_: object) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Observer:
    """Functions that a build calls."""

    # Called with the name of each stage; the names depend on no data. By default they are logged as
    # INFO under the name ``psd``.
    progress: Callable[[str], None] = _log_stage
    # Called with the numbers of time slices that are drawn and of all, both public; for a screen,
    # since a log would keep when each was drawn.
    slices_done: Callable[[int, int], None] = _ignore
    # Private: called with the numbers of records read, outside and dropped. A caller that shows
    # them must mark them as private.
    private_report: Callable[[dict[str, int]], None] = _ignore
    # Private: called with the reason why an input could not be read, where a ledger is used.
    private_fault: Callable[[str], None] = _ignore
    # Private: called with a message that names two files of equal content. By default the build is
    # refused; a build with a ledger calls `private_fault` instead.
    private_copy: Callable[[str], None] = refuse_copy
    # Private: called with the exact tally, which true errors of bounded users need. A caller that
    # stores it must keep it secret.
    private_tally: Callable[[Tally], None] | None = None

    @classmethod
    def of(cls, functions: Observer | Mapping[str, Callable[..., None]]) -> Observer:
        """Observer of a mapping of functions by the names of the fields."""
        if isinstance(functions, cls):
            return functions
        if not isinstance(functions, Mapping):
            raise ParameterError(
                'observer must be a mapping of functions, such as {"progress": print}, got '
                f"{type_text(functions)}",
                name="observer",
            )
        check_names("observer", functions, [field.name for field in fields(cls)])
        return cls(**functions)

    def __repr__(self) -> str:
        return "<Observer>"


SILENT = Observer()
"""Reports nothing but the stages, in the log."""
