"""The local engine: batches of the sources, DuckDB's among them, counted as they stream by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psd.errors import ParameterError
from psd.intake import tally
from psd.sources import read

if TYPE_CHECKING:
    from psd.domain import Domain
    from psd.sources import Columns
    from psd.tally import Tally
    from psd.unit import Unit

__all__ = ["Local", "made"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """Everything that `psd.sources` reads, in this process."""

    def tally(
        self,
        data: Any,
        columns: Columns,
        domain: Domain,
        *,
        unit: Unit,
        key: bytes | None = None,
        step: tuple[int, int] = (1, 1),
    ) -> Tally:
        """Counts of kept rows per occupied cell, see `psd.intake.tally`."""
        return tally(read(data, columns, domain), domain, unit=unit, key=key, step=step)


def made(url: str | None) -> Local:
    """The engine of this process, which is nowhere else.

    Raises
    ------
    ParameterError
        If an address is given.
    """
    if url is not None:
        raise ParameterError("the engine duckdb runs in this process and takes no url; see spark")
    return Local()
