"""Select the records of a batch that are counted; compute their lattice cells. Private side."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from psd.errors import InputDataError
from psd.ingest.tally import Batch

if TYPE_CHECKING:
    from psd.apps.choosing.bid_levels import BidLevels
    from psd.regions.hierarchy import RegionHierarchy
    from psd.space.domain import Domain
    from psd.space.time_slices import TimeSlices

__all__ = ["Area", "FilteredBatch", "RecordFilter"]


class Area(Protocol):
    """A public part of the domain; records outside of it are dropped before every question."""

    def contains(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether points lie in it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class FilteredBatch:
    """Records of a batch that are counted. Private.

    Parameters
    ----------
    inside : ndarray, shape (n,), bool
        Whether each record of the batch is counted.
    columns, rows : ndarray, shape (m,), int32
        Cells of the full lattice of the records that are counted.
    time : ndarray, shape (m,), int64, or None
        Microseconds of local time.
    region : ndarray, shape (m,), int32, or None
        Lowest region of the records that are counted.
    """

    inside: NDArray[np.bool_]
    columns: NDArray[np.int32]
    rows: NDArray[np.int32]
    time: NDArray[np.int64] | None
    region: NDArray[np.int32] | None = None

    def __repr__(self) -> str:
        return "<FilteredBatch: private>"


class RecordFilter:
    """Drops records without coordinates, outside the domain, its area, all regions or all slices.

    Guarantees
    ----------
    - Whether a record is dropped, and its region, depends only on that record.
    - Whether the input is refused does not depend on where records lie: a record without a time
      is refused wherever it lies, and records that all lie outside are not refused. A coordinate
      beyond the limits of the CRS is outside.

    Parameters
    ----------
    domain : Domain
        Public.
    area : Area or None
        Public.
    slices : TimeSlices or None
        Public.
    needs_time : bool
        Whether every record must have a time. Public.
    regions : RegionHierarchy or BidLevels, optional
        Of the domain; records in none of them are dropped, and with levels those without a bid.
        Public.
    """

    def __init__(
        self,
        domain: Domain,
        *,
        area: Area | None,
        slices: TimeSlices | None,
        needs_time: bool,
        regions: RegionHierarchy | BidLevels | None = None,
    ) -> None:
        self.domain, self.area, self.slices, self.regions = domain, area, slices, regions
        self._needs_time = needs_time
        self.report = Counter({"read": 0, "without coordinates": 0, "outside": 0})
        """Records read and dropped so far. Private."""

    def filter_batch(self, batch: Batch) -> FilteredBatch:
        """Select the records of a batch that are counted."""
        if batch.time is None and self._needs_time:
            raise InputDataError(
                "records have no time, and days and slices need one; name its column with time="
            )
        if batch.time is not None and np.isnat(batch.time).any():
            raise InputDataError("records have no time; remove them, or build without time=")
        columns, rows, inside = self.domain.quantise(batch.x, batch.y)
        bidless = self._count_bidless(batch, inside)
        time = None if batch.time is None else batch.time[inside]
        region = None
        if self.regions is not None:
            bid = () if batch.bid is None else (batch.bid[inside],)
            region = self.regions.assign(batch.x[inside], batch.y[inside], *bid)
        selected = self._select(batch, inside, time, region)
        if selected is not None and not selected.all():
            columns, rows = columns[selected], rows[selected]
            time = None if time is None else time[selected]
            region = None if region is None else region[selected]
            inside[np.flatnonzero(inside)[~selected]] = False
        missing = int(np.count_nonzero(np.isnan(batch.x) | np.isnan(batch.y)))
        self.report["read"] += len(inside)
        self.report["without coordinates"] += missing
        self.report["outside"] += len(inside) - missing - len(columns) - bidless
        return FilteredBatch(
            inside=inside,
            columns=columns,
            rows=rows,
            time=None if time is None else time.astype("datetime64[us]").astype(np.int64),
            region=region,
        )

    def _count_bidless(self, batch: Batch, inside: NDArray[np.bool_]) -> int:
        """Count the records in the bounds without a number as their bid; 0 if none is read."""
        if batch.bid is None:
            return 0
        bidless = int(np.count_nonzero(~np.isfinite(batch.bid[inside])))
        self.report["without a bid"] += bidless
        return bidless

    def _select(
        self,
        batch: Batch,
        inside: NDArray[np.bool_],
        time: NDArray[np.datetime64] | None,
        region: NDArray[np.int32] | None,
    ) -> NDArray[np.bool_] | None:
        """Whether records in the bounds are in the area, a region and a slice; None for all."""
        selected = None if region is None else region >= 0
        if self.area is not None:
            within = self.area.contains(batch.x[inside], batch.y[inside])
            selected = within if selected is None else selected & within
        if time is not None and self.slices is not None:
            within = self.slices.index(time) >= 0
            selected = within if selected is None else selected & within
        return selected
