"""Engines that read and count records outside this process. Private side.

An engine is a module that offers ``open_engine(url)``, which returns an `Engine`: of an app, or of
another package, by an entry point of the group ``psd.engines``. Every engine makes
the tally that `psd.ingest.tally_builder` makes of the same records, cell by cell; a release does
not state which engine was used.
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
    """Interface of an engine, which reads and counts records.

    One that leaves out the records that the filter of the columns does not select, as
    `psd.ingest.selection` decides, has the attribute ``filters``, which is true.
    """

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
        """Count kept records per slice, stratum and cell, as `tally_batches` does.

        Parameters
        ----------
        data : object or list of objects
            As the engine reads it. Private.
        columns : Columns
            Names of the columns to read, and the CRS of the coordinates. Public.
        domain, unit, key, step, area, slices, strata
            As in `psd.ingest.tally_builder.tally_batches`.

        Raises
        ------
        InputDataError
            If a record, inside the domain or not, is refused; the message quotes no value.
        """


def engines() -> tuple[str, ...]:
    """Return the names of the engines."""
    return plugins.names(__name__)


def engine(name: str, url: str) -> Engine:
    """Open an engine by its name."""
    opened: Engine = plugins.load(__name__, "engine", name).open_engine(url)
    return opened
