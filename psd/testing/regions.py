"""Hierarchies of regions on a small lattice, drawn cell by cell, and records in them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd.curator.curator import ChargedQuestion
from psd.errors import InternalError
from psd.ingest.tally import Tally

__all__ = [
    "LatticeLevel",
    "LatticeRegions",
    "region_data_sets",
    "region_keys",
    "region_tally",
    "spent_by_key",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatticeLevel:
    """Level of a `LatticeRegions`; see `psd.space.region_frame.NamedLevel`."""

    name: str
    ids: tuple[str, ...]
    parent: NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, eq=False)
class LatticeRegions:
    """Regions as shares of the cells of a small lattice; see `psd.space.region_frame.Regions`."""

    # (regions, rows, columns) float64; part of each lattice cell in each lowest region, of which
    # several may have one where an outline crosses it.
    area: Floats
    # For each level, the parent of each region; zeros for the first.
    parents: Sequence[Sequence[int]]
    levels: tuple[LatticeLevel, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Name the regions."""
        levels = tuple(
            LatticeLevel(
                name=f"level{tier}",
                ids=tuple(f"{tier}-{index}" for index in range(len(parent))),
                parent=np.array(parent, np.int32),
            )
            for tier, parent in enumerate(self.parents)
        )
        object.__setattr__(self, "levels", levels)

    @property
    def size(self) -> int:
        """Number of the lowest regions."""
        return len(self.area)

    @property
    def boxes(self) -> NDArray[np.int64]:
        """Lattice boxes around the lowest regions."""
        boxes = []
        for part in self.area > 0:
            rows, columns = np.flatnonzero(part.any(axis=1)), np.flatnonzero(part.any(axis=0))
            boxes.append((columns[0], rows[0], columns[-1] + 1, rows[-1] + 1))
        return np.array(boxes, np.int64)

    def meets(self, region: NDArray[np.int32], boxes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether a record of each region may lie in the box beside it."""
        return self._sums(self.area > 0, region, boxes) > 0

    def clipped_area(self, region: NDArray[np.int32], boxes: Integers | Floats) -> Floats:
        """Lattice cells of each region in the box beside it, whose sides are lattice lines."""
        return self._sums(self.area, region, boxes.astype(np.int64))

    def shapes(self, level: int = -1) -> NDArray[np.object_]:
        """Polygons, which regions of lattice cells do not have."""
        raise InternalError(f"level {level} has no polygons")

    @staticmethod
    def _sums(values: NDArray[Any], region: NDArray[np.int32], boxes: NDArray[np.int64]) -> Floats:
        """Sums of values over boxes."""
        parts = zip(region.tolist(), boxes.tolist(), strict=True)
        sums = (values[r, y0:y1, x0:x1].sum() for r, (x0, y0, x1, y1) in parts)
        return np.fromiter(sums, np.float64, len(region))


def region_keys(regions: LatticeRegions) -> list[tuple[int, int]]:
    """Pairs of a lattice cell, column + columns * row, and a region that a record can have."""
    # A record may lie wherever its region has an area.
    flat = (regions.area > 0).reshape(regions.size, -1)
    return [(int(cell), int(region)) for region, cell in np.argwhere(flat)]


def region_tally(regions: LatticeRegions, keys: Sequence[tuple[int, int]], k: int = 1) -> Tally:
    """Count records by lattice cell and region (`region_keys`), at most k of one user."""
    columns = regions.area.shape[2]
    pairs, counts = np.unique(
        np.array(keys, np.int64).reshape(-1, 2)[:, ::-1], axis=0, return_counts=True
    )
    return Tally(
        columns=(pairs[:, 1] % columns).astype(np.int32),
        rows=(pairs[:, 1] // columns).astype(np.int32),
        counts=counts.astype(np.int64),
        region=pairs[:, 0].astype(np.int32),
        contributions=k,
    )


def region_data_sets(regions: LatticeRegions, size: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield all data sets of at most ``size`` records."""
    for number in range(size + 1):
        yield from itertools.combinations_with_replacement(region_keys(regions), number)


def spent_by_key(
    questions: Iterable[ChargedQuestion], keys: Sequence[tuple[int, int]], columns: int
) -> Integers:
    """Sum the nano-epsilons of all questions at each pair of a lattice cell and a region."""
    cell, region = np.array(keys, np.int64).T
    x, y = cell % columns, cell // columns
    total = np.zeros(len(keys), np.int64)
    for question in questions:
        x0, y0, x1, y1 = question.boxes.T[:, :, None]
        inside = (x >= x0) & (x < x1) & (y >= y0) & (y < y1)
        if question.regions is not None:
            first, stop = question.regions.T[:, :, None]
            inside &= (region >= first) & (region < stop)
        total += (inside * question.loss[:, None]).sum(axis=0)
    return total
