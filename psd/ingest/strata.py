"""Strata: what a record is counted under, beside its cell and its time slice. Private side.

Regions are strata, and so are levels of a value that each record has, which an app may define.
Engines and `psd.ingest.tally_builder` know no more of them than what stands here.

Time slices are not: they bound the records of users as well, so their times are kept with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from psd.space.certain_cells import CertainCells

__all__ = ["Area", "HasCertainCells", "Strata"]


class Strata(Protocol):
    """Public parts of all possible records, numbered from 0.

    P1. A record is in one stratum or in none. Which one is a public function of this record's own
    coordinates and value; no other record, and no order of records, has an effect.

    Why counts by stratum cost what counts by cell cost. With strata a record is counted under the
    key (slice, stratum, cell), where it was counted under (slice, cell) without. The key is a
    function of this record and of public input: a record has one key or is dropped. So all that
    holds for counts by cell holds for counts by key, with the keys as the cells of a larger
    lattice: one record more or less changes the count of one key by one, and the records of a unit
    that are kept change the counts by at most k in sum, since at most k of them are kept, of
    whichever keys. A question of the curator about a stratum reads the keys of this stratum, so the
    loss at a key is the sum of epsilon over the questions whose node has this key, as it is at a
    cell.
    """

    @property
    def size(self) -> int:
        """Number of strata. Public."""

    def assign(
        self,
        x: NDArray[np.float64],
        y: NDArray[np.float64],
        value: NDArray[np.float64] | None = None,
        /,
    ) -> NDArray[np.int32]:
        """Stratum of each record inside the bounds, -1 for none.

        x, y: (n,) float64, in the CRS of the domain; value: (n,) float64 or None, see
        `psd.ingest.tally.Batch.bid`. All private; returns (n,) int, private.
        """


class Area(Protocol):
    """A public part of the domain; records outside of it are dropped before every question."""

    def contains(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether points lie in it."""


@runtime_checkable
class HasCertainCells(Protocol):
    """Strata, or an area, that a raster decides for most coordinates; engines use it."""

    def certain_cells(self) -> CertainCells | None:
        """Cells whose points are all in one stratum, or all in none; an area is stratum 0."""
