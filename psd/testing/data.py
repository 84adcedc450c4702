"""Test data: small lattices and all data sets on them, hierarchies, releases with chosen counts."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psd._util.arrays import Floats, Integers
from psd.curator.curator import ChargedQuestion
from psd.errors import InternalError, ParameterError
from psd.ingest.tally import Tally
from psd.space.domain import Domain
from psd.space.grids import grid_tree

if TYPE_CHECKING:
    from psd.api.release import Release


Rows = tuple[int, ...]
"""Lattice cell of each record: column + side * row."""


def small_domain(side: int) -> Domain:
    """Return a square domain whose integer coordinates are lattice lines.

    Examples
    --------
    >>> small_domain(4).lattice
    (4, 4)
    """
    return Domain(bounds=(0, 0, side, side), crs="EPSG:3857", lattice=(side, side))


def small_tally(side: int, rows: Sequence[int], k: int = 1) -> Tally:
    """Count records on a small lattice.

    Parameters
    ----------
    side : int
        Columns and rows of the lattice.
    rows : sequence of int
        Cell of each record, see `Rows`.
    k : int
        Largest number of records of one user.

    Examples
    --------
    >>> small_tally(2, [0, 0, 3]).counts.tolist()
    [2, 1]
    """
    codes, counts = np.unique(np.array(rows, np.int64), return_counts=True)
    return Tally(
        columns=(codes % side).astype(np.int32),
        rows=(codes // side).astype(np.int32),
        counts=counts.astype(np.int64),
        contributions=k,
    )


def data_sets(side: int, size: int = 3) -> Iterator[Rows]:
    """Yield all data sets of at most ``size`` records on a lattice.

    Examples
    --------
    >>> len(list(data_sets(2)))
    35
    """
    for number in range(size + 1):
        yield from itertools.combinations_with_replacement(range(side * side), number)


def neighbours(side: int, k: int) -> list[Rows]:
    """List all sets of 1 to k records that one added user can have.

    Examples
    --------
    >>> len(neighbours(2, 1)), len(neighbours(2, 2))
    (4, 14)
    """
    cells = range(side * side)
    return [
        rows
        for size in range(1, k + 1)
        for rows in itertools.combinations_with_replacement(cells, size)
    ]


def neighbour_pairs(
    side: int, k: int, every: int = 1, shift: int = 0
) -> Iterator[tuple[Rows, list[Rows]]]:
    """Yield data sets of at most three records, each with the records that its neighbours add.

    With ``every`` above 1, only every n-th pair is yielded; the parts of all values of ``shift``
    below ``every`` together are all pairs. A part has few data sets with several neighbours each,
    because the build on a data set is recorded once for all its neighbours.

    Examples
    --------
    >>> rows, added = next(neighbour_pairs(2, 1))
    >>> rows, len(added)
    ((), 4)
    """
    extra = neighbours(side, k)
    step = max(n for n in range(1, every + 1) if every % n == 0 and n <= max(1, len(extra) // 3))
    later, first = divmod(shift, every // step)
    for number, rows in enumerate(itertools.islice(data_sets(side), first, None, every // step)):
        yield rows, extra[(number + later) % step :: step]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatticeLevel:
    """Level of a `LatticeRegions`; see `psd.space.region_tree.NamedLevel`."""

    name: str
    ids: tuple[str, ...]
    parent: NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, eq=False)
class LatticeRegions:
    """Regions as shares of the cells of a small lattice; see `psd.space.region_tree.Regions`."""

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
    # Sorted by region, then by cell, as a tally has them.
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
        # Each box against each pair, (questions, keys).
        x0, y0, x1, y1 = question.boxes.T[:, :, None]
        inside = (x >= x0) & (x < x1) & (y >= y0) & (y < y1)
        if question.regions is not None:
            first, stop = question.regions.T[:, :, None]
            inside &= (region >= first) & (region < stop)
        total += (inside * question.loss[:, None]).sum(axis=0)
    return total


def release_from_counts(
    counts: ArrayLike, *, epsilon: str | float | Decimal = 1, domain: Domain | None = None
) -> Release:
    """Return a release of a grid with these noisy counts.

    Parameters
    ----------
    counts : array_like of int, shape (rows, columns)
        Noisy counts, the first row in the south.
    epsilon : str, int, float or Decimal
        Epsilon of each count.
    domain : Domain, optional
        Bounds of the grid; by default each cell is one unit wide, in metres.

    Raises
    ------
    ParameterError
        If the counts are not a table of integers.

    Examples
    --------
    >>> release = release_from_counts([[5, 1], [0, 2]])
    >>> release.query([(0, 0, 2, 1)])["estimate"].round(1).tolist()
    [6.0]
    """
    from psd.api.release import Release

    table = np.asarray(counts)
    if table.ndim != 2 or table.dtype.kind not in "iu" or table.size == 0:
        raise ParameterError(f"counts must be a table of integers, got shape {table.shape}")
    rows, columns = table.shape
    if domain is None:
        domain = Domain(bounds=(0, 0, columns, rows), crs="EPSG:3857", lattice=(columns, rows))
    tree = grid_tree(domain, (columns, rows))
    return Release.from_counts(tree, table, str(epsilon), domain=domain)
