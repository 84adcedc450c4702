"""Small lattices and all data sets on them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from psd.ingest.tally import Tally
from psd.space.domain import Domain

__all__ = ["Rows", "data_sets", "neighbour_pairs", "neighbours", "small_domain", "small_tally"]

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
    """
    extra = neighbours(side, k)
    step = max(n for n in range(1, every + 1) if every % n == 0 and n <= max(1, len(extra) // 3))
    later, first = divmod(shift, every // step)
    for number, rows in enumerate(itertools.islice(data_sets(side), first, None, every // step)):
        yield rows, extra[(number + later) % step :: step]
