"""Count records by the prices that their bids reach, and by region. Private side.

A level and a region take the place of the region of a release: they are strata, see
`psd.ingest.strata`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd.errors import InputDataError
from psd.ingest.tally import Tally

if TYPE_CHECKING:
    from psd._util.arrays import Integers
    from psd.apps.choosing.price_list import PriceList
    from psd.regions.hierarchy import RegionHierarchy

__all__ = ["BidLevels"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BidLevels:
    """Public prices, and regions if there are any, by which bids are counted.

    P1. The stratum of a record depends on its own bid and coordinates alone. A record without a
    finite number as its bid is in none; a bid above all prices counts as the largest of them, and
    one below all of them, also a negative one, reaches none.
    """

    prices: PriceList  # public
    regions: RegionHierarchy | None = None  # lowest regions by which bids are counted as well

    @property
    def parts(self) -> int:
        """Number of regions; 1 without any."""
        return 1 if self.regions is None else self.regions.size

    @property
    def size(self) -> int:
        """Number of strata."""
        return self.parts * (len(self.prices) + 1)

    def assign(
        self,
        x: NDArray[np.float64],
        y: NDArray[np.float64],
        bid: NDArray[np.float64] | None = None,
        /,
    ) -> NDArray[np.int32]:
        """Stratum of each record; -1 for one without a bid, or outside all regions. Private."""
        if bid is None:
            raise InputDataError("records have no bids; this kind of input has no such column")
        level = self.prices.levels(bid)
        if self.regions is None:
            return level
        region = self.regions.assign(x, y)
        both = region.astype(np.int64) * (len(self.prices) + 1) + level
        strata: NDArray[np.int32] = np.where((level < 0) | (region < 0), -1, both).astype(np.int32)
        return strata

    def reached(self, tally: Tally, cells: tuple[int, int] = (1, 1)) -> Integers:
        """Bids that reach each price or more: (parts, columns rows, prices) int64, private."""
        levels, columns = len(self.prices) + 1, cells[0]
        number = self.parts * cells[0] * cells[1]
        by_level = np.zeros((self.parts, cells[0] * cells[1], levels), np.int64)
        if tally.region is not None:
            part, level = np.divmod(tally.region.astype(np.int64), levels)
            cell = tally.rows.astype(np.int64) * columns + tally.columns
            # The cells of the lattice are parts as well, if there is more than one.
            cell = cell if number > self.parts else np.zeros_like(cell)
            np.add.at(by_level, (part, cell, level), tally.counts)
        # From the highest level down: who reaches a price reaches all below it.
        reached: Integers = np.cumsum(by_level[:, :, :0:-1], axis=2)[:, :, ::-1]
        return reached
