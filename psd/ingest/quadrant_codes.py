"""Records or occupied cells as codes in quadrant order. Private side."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from psd.ingest.code_ranks import CodeRanks
from psd.space.quadrant_order import QuadrantOrder
from psd.space.smallest_cell import Blocks

__all__ = ["CellCounts", "QuadrantCodes", "run_starts"]

CellCounts = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Codes of occupied cells, ascending, and their counts."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class QuadrantCodes:
    """Codes of records, or of occupied cells and their counts, in quadrant order. Private.

    Parameters
    ----------
    order : QuadrantOrder
        Order of the lattice; of a coarser one if lattice cells are counted together.
    entries : CodeRanks
        A code for each record, or the distinct ones.
    counts : ndarray, shape (n,), int64, or None
        Count of each distinct code; None if each code stands for one record.
    step : tuple of int
        Lattice columns and rows of a cell of the order.
    """

    order: QuadrantOrder
    entries: CodeRanks
    counts: NDArray[np.int64] | None
    step: tuple[int, int] = (1, 1)

    @classmethod
    def of_ascending(
        cls, order: QuadrantOrder, codes: NDArray[np.integer], counts: NDArray[np.int64] | None
    ) -> QuadrantCodes:
        """Codes in ascending order, and the count of each if they are distinct."""
        return cls(
            order=order, entries=CodeRanks(codes, order.levels, is_sorted=True), counts=counts
        )

    @property
    def codes(self) -> NDArray[np.integer]:
        """The codes, ascending; they are sorted when this is first read."""
        return self.entries.ascending()

    def __repr__(self) -> str:
        return "<QuadrantCodes: private>"

    def distinct(self) -> QuadrantCodes:
        """Count the records of each distinct code."""
        if self.counts is not None:
            return self
        starts = run_starts(self.codes)
        counts = np.diff(np.append(starts, len(self.codes)))
        entries = CodeRanks(self.codes[starts], self.order.levels, is_sorted=True)
        return replace(self, entries=entries, counts=counts)

    def cells(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Lattice columns and rows of the codes; those of the south-west cell of several."""
        columns, rows = self.order.cells(self.codes.astype(np.int64))
        return (columns * self.step[0]).astype(np.int32), (rows * self.step[1]).astype(np.int32)

    def in_blocks(self, blocks: Blocks) -> QuadrantCodes:
        """Codes of blocks of lattice cells, on the coarser lattice of these blocks."""
        if self.step == blocks.step and self.order.lattice == blocks.coarse_lattice:
            return replace(self, step=(1, 1))
        order = QuadrantOrder(blocks.coarse_lattice)
        columns, rows = self.cells()
        codes = order.codes(blocks.to_blocks(columns, 0), blocks.to_blocks(rows, 1))
        if self.counts is None:
            entries = CodeRanks(codes, order.levels, is_sorted=False)
            return QuadrantCodes(order=order, entries=entries, counts=None)
        by_code = np.argsort(codes, kind="stable")
        codes, counts = codes[by_code], self.counts[by_code]
        starts = run_starts(codes)
        counts = np.add.reduceat(counts, starts) if len(starts) else counts
        return QuadrantCodes.of_ascending(order, codes[starts], counts)

    def by_row(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
        """Columns, rows and counts of the distinct cells, by row, then column."""
        distinct = self.distinct()
        columns, rows = distinct.cells()
        order = np.lexsort((columns, rows))
        assert distinct.counts is not None  # `distinct` counts them
        return columns[order], rows[order], distinct.counts[order]


def run_starts(codes: NDArray[np.integer]) -> NDArray[np.int64]:
    """Indices where runs of equal codes start."""
    is_first = np.ones(len(codes), bool)
    np.not_equal(codes[1:], codes[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)
