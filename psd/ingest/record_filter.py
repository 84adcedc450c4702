"""Select the records of a batch that are counted; compute their lattice cells. Private side."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd.errors import InputDataError
from psd.ingest.tally import Batch

if TYPE_CHECKING:
    from psd.ingest.strata import Area, Strata
    from psd.space.domain import Domain
    from psd.space.time_slices import TimeSlices

__all__ = ["FilteredBatch", "RecordFilter"]


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
    stratum : ndarray, shape (m,), int32, or None
        Stratum of the records that are counted.
    """

    inside: NDArray[np.bool_]
    columns: NDArray[np.int32]
    rows: NDArray[np.int32]
    time: NDArray[np.int64] | None
    stratum: NDArray[np.int32] | None = None

    def __repr__(self) -> str:
        return "<FilteredBatch: private>"


class RecordFilter:
    """Drops records that are not selected, without coordinates, or outside domain, area or slices.

    Guarantees
    ----------
    - Whether a record is dropped, and its stratum, depends only on that record.
    - Records are dropped before anything is bounded, so a record that is not selected takes no
      place among those that are kept of a user.
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
    strata : Strata, optional
        Records in none of them are dropped. Public.
    """

    def __init__(
        self,
        domain: Domain,
        *,
        area: Area | None,
        slices: TimeSlices | None,
        needs_time: bool,
        strata: Strata | None = None,
    ) -> None:
        self.domain, self.area, self.slices, self.strata = domain, area, slices, strata
        self._needs_time = needs_time
        self.report = Counter({"read": 0, "without coordinates": 0, "outside": 0})
        """Records read and dropped so far. Private."""

    def filter_batch(self, batch: Batch) -> FilteredBatch:
        """Select the records of a batch that are counted."""
        if batch.time is None and self._needs_time:
            raise InputDataError(
                "records have no time, and days and slices need one; name its column with time=NAME"
            )
        if batch.time is not None and np.isnat(batch.time).any():
            raise InputDataError("records have no time; remove them, or build without time=")
        match, batch = batch.match, batch.selected()
        columns, rows, inside = self.domain.quantise(batch.x, batch.y)
        bidless = self._count_bidless(batch, inside)
        time = None if batch.time is None else batch.time[inside]
        stratum = None
        if self.strata is not None:
            bid = None if batch.bid is None else batch.bid[inside]
            stratum = self.strata.assign(batch.x[inside], batch.y[inside], bid)
        selected = self._select(batch, inside, time, stratum)
        if selected is not None and not selected.all():
            columns, rows = columns[selected], rows[selected]
            time = None if time is None else time[selected]
            stratum = None if stratum is None else stratum[selected]
            inside[np.flatnonzero(inside)[~selected]] = False
        missing = int(np.count_nonzero(np.isnan(batch.x) | np.isnan(batch.y)))
        self.report["read"] += len(inside)
        if match is not None:
            self.report["read"] += len(match) - len(inside)
            self.report["not selected"] += len(match) - len(inside)
        self.report["without coordinates"] += missing
        self.report["outside"] += len(inside) - missing - len(columns) - bidless
        if match is not None:
            selected = match.copy()
            selected[match] = inside
            inside = selected
        return FilteredBatch(
            inside=inside,
            columns=columns,
            rows=rows,
            time=None if time is None else time.astype("datetime64[us]").astype(np.int64),
            stratum=stratum,
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
        stratum: NDArray[np.int32] | None,
    ) -> NDArray[np.bool_] | None:
        """Whether records in the bounds are in the area, a stratum and a slice; None for all."""
        selected = None if stratum is None else stratum >= 0
        if self.area is not None:
            within = self.area.contains(batch.x[inside], batch.y[inside])
            selected = within if selected is None else selected & within
        if time is not None and self.slices is not None:
            within = self.slices.index(time) >= 0
            selected = within if selected is None else selected & within
        return selected
