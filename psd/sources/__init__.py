"""Where points come from, one file per kind of input. Private side.

A file ``psd/sources/<name>.py`` offers ``accepts(data)`` and ``batches(data, columns, domain)``;
the first that accepts an input reads it. A source only parses: bounding and counting are done
once, for all of them, in `psd.tally`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psd import registry
from psd.errors import InputDataError

if TYPE_CHECKING:
    from psd.domain import Domain
    from psd.tally import Batch

__all__ = ["Columns", "read"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Names of the columns to read.

    Parameters
    ----------
    x, y : str
        Coordinates in the CRS of the domain; not used where the input has geometries.
    user : str, optional
        Opaque id of the person or device.
    time : str, optional
        Moment of the row.
    time_zone : str
        Zone of the wall clock that moments are brought to; those without a zone are on it.
    """

    x: str = "lon"
    y: str = "lat"
    user: str | None = None
    time: str | None = None
    time_zone: str = "UTC"

    def __iter__(self) -> Iterator[str]:
        yield from (name for name in (self.x, self.y, self.user, self.time) if name is not None)


def read(data: Any, columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Rows of an input, batch by batch.

    Parameters
    ----------
    data : path, list of paths, DataFrame or GeoDataFrame
        Private.
    columns : Columns
        Names of the columns. Public.
    domain : Domain
        Public; geometries are brought to its CRS.

    Yields
    ------
    Batch

    Raises
    ------
    InputDataError
        If no source accepts the input, or it cannot be read as asked.
    """
    for name in registry.names(__name__):
        source = registry.load(__name__, "source", name)
        if source.accepts(data):
            yield from source.batches(data, columns, domain)
            return
    raise InputDataError(
        f"input of type {type(data).__name__} is none that can be read: a CSV file, a list of "
        "them, a DataFrame or a GeoDataFrame"
    )
