"""Engines that read and count records outside this process. Private side.

An engine is a module, of an app or of the entry points ``psd.engines``, with ``open_engine(url)``.
All make the tally of `psd.ingest.tally_builder`, cell by cell, so no release states its engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from psd._util import plugins

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.ingest.tally import Area, Strata, Tally
    from psd.privacy.unit import PrivacyUnit
    from psd.space.domain import Domain
    from psd.space.time_slices import TimeSlices


class Engine(Protocol):
    """Reads and counts records; with a true attribute ``filters``, those the filter selects."""

    def tally(
        self,
        data: Any,
        columns: Columns,
        domain: Domain,
        *,
        unit: PrivacyUnit,
        key: bytes | None = None,
        step: tuple[int, int] = (1, 1),
        area: Area | None = None,
        slices: TimeSlices | None = None,
        strata: Strata | None = None,
    ) -> Tally:
        """Count as `tally_batches` does; `data` is private and as the engine reads it.

        Raises `InputDataError` if a record, inside the domain or not, is refused; quotes no value.
        """


def engines() -> tuple[str, ...]:
    """Return the names of the engines."""
    return plugins.names(__name__)


def engine(name: str, url: str) -> Engine:
    """Open an engine by its name."""
    opened: Engine = plugins.load(__name__, "engine", name).open_engine(url)
    return opened
