"""Regions of a cube, for `Cube`: levels summed over time, and regions by slices in one tree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Rows
from psd.decompositions._constants import (
    CASCADE_STEP_SHARE,
    CUBE_FIRST_BITS,
    CUBE_LAST_BITS,
    CUBE_LEVEL_BITS,
    CUBE_LOWEST_SHARE,
    CUBE_STEP_SHARE,
    CUBE_TIME_BITS,
    CUBE_TIME_FIRST,
    CUBE_TIME_OFFSET,
)
from psd.decompositions.cascade import family_roughness
from psd.errors import ParameterError
from psd.space.growing_tree import Cells
from psd.space.region_axis import RegionAxis

if TYPE_CHECKING:
    from decimal import Decimal

    from psd.decompositions._base import Curator

# Halvings of one tier at most, and a number of them that no division reaches.
_MOST_BITS, _ALL = 20, 64


def count_levels(curator: Curator, root: Cells, loss: int) -> NDArray[np.int64]:
    """Count every level of regions; returns the lowest, (regions,), which has most of the loss."""
    levels = curator.cut_regions(root)
    above = len(levels) - 1
    paid = int(loss * (1 - Fraction(CUBE_LOWEST_SHARE))) // max(above, 1)
    for cells in levels[:-1]:
        if paid:
            curator.count(cells, paid)
    return curator.count(levels[-1], loss - paid * above)


def divide_regions(
    curator: Curator,
    cells: Cells,
    totals: NDArray[np.int64],
    loss: int,
    *,
    signal: int,
    slice_share: Decimal,
    lowest: NDArray[np.int64],
) -> None:
    """Divide a root over time and regions, counting tiers; lowest: (regions,), noisy counts."""
    schedule = _Schedule.of_curator(curator, signal, slice_share)
    before = np.append(0.0, np.cumsum(np.maximum(lowest, 1)))
    left, rough = np.full(len(cells), loss), np.ones(len(cells))
    plan = schedule.plan(curator, cells, totals, left, rough, CUBE_FIRST_BITS)
    while len(cells):
        cells, plan = schedule.divide(curator, cells, plan)
        counts = curator.count(cells, plan.now)
        onward = np.flatnonzero(plan.later > 0)
        cells, plan, counts = cells[onward], plan[onward], counts[onward]
        if not len(cells):
            return
        # Cells of one tier are compared that lie in one cell of the tier above, beside their
        # records in all slices.
        first, stop, slices = _spans(cells)
        weight = (before[stop] - before[first]) * slices
        variance = curator.noise_variance(cells, plan.now)
        rough = family_roughness(counts, plan.owner, variance, weight)
        plan = schedule.plan(curator, cells, counts, plan.later, rough, 0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Schedule:
    """How a node divides its halvings among time and regions."""

    axis: RegionAxis
    signal: int
    # Share of a tier that divides time alone, of another one before the last, and of one of these
    # inside a slice.
    steps: tuple[Fraction, Fraction, Fraction]
    slices: int
    starts: tuple[NDArray[np.int64], ...]  # of each level: first lowest region of each region

    @classmethod
    def of_curator(cls, curator: Curator, signal: int, slice_share: Decimal) -> _Schedule:
        """Schedule of the axes of a curator."""
        time, axis = curator.axes
        if not isinstance(axis, RegionAxis):
            raise ParameterError("axes must be time and regions")
        frame, levels = axis.frame, range(len(axis.regions.levels))
        return cls(
            axis=axis,
            signal=signal,
            steps=(Fraction(slice_share), Fraction(CUBE_STEP_SHARE), Fraction(CASCADE_STEP_SHARE)),
            slices=time.size,
            starts=tuple(frame.first[frame.named(tier)].astype(np.int64) for tier in levels),
        )

    def plan(
        self,
        curator: Curator,
        cells: Cells,
        counts: NDArray[np.int64],
        left: NDArray[np.int64],
        rough: NDArray[np.float64],
        least: int,
    ) -> _Plan:
        """Halvings of time and regions to the next tier of each cell, its loss, and the rest."""
        first, stop, slices = _spans(cells)
        # Halvings that the records of a cell pay for.
        signal = curator.signal_to_noise(cells, counts, left)
        bits = np.log2(np.maximum(signal / (self.signal * rough), 0.25))
        bits = np.maximum(bits, least)
        of_time, of_regions = np.log2(slices), np.log2(stop - first)

        # Levels below a cell that its records suffice for, nearly: a slice is divided to the next.
        own = self.axis.tiers(first, stop)
        reached = np.zeros(len(cells), np.int64)
        for tier, starts in enumerate(self.starts):
            number = np.searchsorted(starts, stop) - np.searchsorted(starts, first)
            reached += (tier > own) & (np.log2(np.maximum(number, 1)) <= bits + CUBE_LEVEL_BITS)
        is_one, below = slices == 1, len(self.starts) - 1 - own
        by_level = is_one & (reached > 0)
        is_first = ~is_one & (signal >= CUBE_TIME_FIRST * slices)

        # Time first: all of its halvings, or half of them if they are many.
        halvings = np.ceil(of_time)
        halvings = np.where(halvings > CUBE_TIME_BITS, np.ceil(halvings / 2), halvings)
        # No tier comes after this one if few halvings are left, or if these reach single cells.
        last = (bits <= CUBE_LAST_BITS) | (bits >= of_time + of_regions)
        wanted = np.minimum(np.where(last, bits, np.ceil(bits / 2)), _MOST_BITS)
        time, region = self._allocate(slices, stop - first, wanted)
        time = np.where(is_first, halvings.astype(np.int64), np.where(by_level, 0, time))
        region = np.where(is_first, 0, np.where(by_level, _ALL, region))
        last &= ~is_first & ~by_level

        # Loss of a tier out of what is left; computed once for each distinct value.
        values, index = np.unique(left, return_inverse=True)
        steps = np.array(
            [[int(e * step) for step in self.steps] for e in values.tolist()], np.int64
        )
        now = steps[index, np.where(is_first, 0, np.where(is_one, 2, 1))]
        now = np.where(by_level, left // np.minimum(reached + 1, np.maximum(below, 1)), now)
        # A cell that cannot be divided further is counted once, with all that is left.
        last |= (now == 0) | ((time == 0) & (region == 0))
        return _Plan(
            time=time,
            region=region,
            tier=np.where(by_level, own + 1, len(self.starts)),
            now=np.where(last, left, now),
            later=np.where(last, 0, left - now),
            owner=np.arange(len(cells)),
        )

    def _allocate(
        self, slices: NDArray[np.int64], regions: NDArray[np.int64], bits: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Halvings of time, which is ahead by some, and of regions, one by one to the longer."""
        # Lengths, (n, 2), of time and of regions, beside those of both whole axes.
        length = np.stack([slices, regions], axis=1).astype(np.float64)
        whole = np.array([self.slices / 2.0**CUBE_TIME_OFFSET, self.axis.size])
        halves, left = np.zeros(length.shape, np.int64), bits.copy()
        while True:
            # The axis that is longer in parts of its whole is halved, unless its length is 1.
            relative = np.where(length > 1, np.log2(length / whole), -np.inf)
            made = (relative.max(axis=1) > -np.inf) & (left >= 0.5)
            if not made.any():
                return halves[:, 0], halves[:, 1]
            is_cut = made[:, None] & (relative.argmax(axis=1)[:, None] == np.arange(2))
            halves += is_cut
            length = np.where(is_cut, length / 2, length)
            left -= made

    def divide(self, curator: Curator, cells: Cells, plan: _Plan) -> tuple[Cells, _Plan]:
        """Divide cells down to their next tier: time first. One cell stays one child."""
        time, axis = curator.axes[0], self.axis
        done, is_new = [], True
        # In rounds: each cell is halved in time or in regions until nothing of its plan is left.
        while len(cells):
            first, stop, slices = _spans(cells)
            by_time = (plan.time > 0) & (slices > 1)
            by_region = ~by_time & (plan.region > 0) & (axis.tiers(first, stop) < plan.tier)
            by_region &= stop - first > 1
            is_due = ~by_time & ~by_region
            due = cells[is_due]
            # A cell that was not divided gets one child in its stead, for the next count.
            done.append((curator.cut(due) if is_new else due, plan[is_due]))
            parts = []
            if by_time.any():
                assert cells.spans is not None
                cut, above = cells[by_time], plan[by_time]
                lines = time.lines(cells.spans[by_time, 0], cells.spans[by_time, 1])
                below = replace(above, time=above.time - 1)[np.repeat(np.arange(len(cut)), 2)]
                parts.append((curator.cut(cut, {time.name: lines}), below))
            if by_region.any():
                cut, above = cells[by_region], plan[by_region]
                lines = axis.lines(first[by_region], stop[by_region])
                below = replace(above, region=above.region - 1)[np.repeat(np.arange(len(cut)), 2)]
                parts.append((curator.cut(cut, {axis.name: lines}), below))
            if not parts:
                break
            cells, plan = (
                Cells.join([each for each, _ in parts]),
                _Plan.join([each for _, each in parts]),
            )
            is_new = False
        return Cells.join([each for each, _ in done]), _Plan.join([each for _, each in done])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Plan(Rows):
    """For each open cell: halvings to its next tier, the loss of that tier, and the rest."""

    time: NDArray[np.int64]
    region: NDArray[np.int64]
    tier: NDArray[np.int64]  # level at which regions are not divided further
    now: NDArray[np.int64]
    later: NDArray[np.int64]
    owner: NDArray[np.int64]  # number of the cell of the tier above


def _spans(cells: Cells) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """First lowest region of each cell, the one after the last, and its number of slices."""
    assert cells.spans is not None  # of a layer over time and regions
    begin, end, first, stop = cells.spans.T
    return first, stop, end - begin
