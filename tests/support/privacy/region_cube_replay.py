"""Cubes of small data with regions: a record has a slice, a lattice cell and a lowest region.

A point is a slice and the number of a pair of a lattice cell and a region, as `region_keys` has
them.
"""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from psd.curator.curator import Curator
from psd.decompositions.cube import Cube
from psd.ingest.tally_builder import tally_batches
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO
from psd.privacy.unit import counted_unit
from psd.publish.drawing import cube_terms
from psd.testing import Run, small_domain
from psd.testing.data import region_keys, region_tally
from support.privacy.cube_replay import Space, days
from support.privacy.slices_replay import DAYS, batch
from support.small_regions import SHAPES, drawn


@dataclass(frozen=True)
class EveryLevel:
    """Total, levels of regions, and three levels over time and regions, with equal shares."""

    def build(self, curator):
        root = curator.root()
        levels = curator.cut_regions(root)
        share = curator.loss // (len(levels) + 4)
        curator.count(root, share)
        for cells in levels:
            curator.count(cells, share)
        time, region = curator.axes
        joint = curator.root([time.name, region.name])
        curator.count(joint, share)
        first, stop = joint.spans[:, :2].T
        halves = curator.cut(joint, {time.name: time.lines(first, stop)})
        curator.count(halves, share)
        # Time and regions in one cut.
        begin, end, first, stop = halves.spans.T
        lines = {time.name: time.lines(begin, end), region.name: region.lines(first, stop)}
        parts = curator.cut(halves, lines)
        curator.count(parts, curator.loss - (len(levels) + 3) * share)
        return curator.tree(1)


EVERY_LEVEL, CUBE = EveryLevel(), Cube(signal=1)


@dataclass(frozen=True)
class RegionSpace(Space):
    """Regions of a small lattice with slices."""

    side: int = 4
    shape: str = "flat"

    @property
    def regions(self):
        """The hierarchy."""
        return SHAPES[self.shape]

    @property
    def terms(self):
        """Unit in all slices, and arguments of the curator."""
        measure = Budget(self.loss).measure
        stated = (self.unit, self.scope, days(self.slices), measure, None, self.regions)
        return cube_terms(*stated)

    @property
    def whole(self):
        """Unit in all slices and regions together."""
        return self.terms[0]

    def tally(self, points):
        """Records at points, by slice, then by region and cell."""
        keys = region_keys(self.regions)
        at, counts = np.unique(
            np.array(points, np.int64).reshape(-1, 2), axis=0, return_counts=True
        )
        cell, region = np.array(keys, np.int64)[at[:, 1]].T
        found = region_tally(self.regions, (), self.whole.contributions)
        return replace(
            found,
            columns=(cell % self.side).astype(np.int32),
            rows=(cell // self.side).astype(np.int32),
            counts=counts.astype(np.int64),
            region=region.astype(np.int32),
            slice=at[:, 0],
        )

    def curator(self, points, noise, **changes):
        """Curator of records at points."""
        options = {"budget": Budget(self.loss), "sampler": noise, **self.terms[1], **changes}
        noise.curator = curator = Curator(
            self.tally(points), small_domain(self.side), regions=self.regions, **options
        )
        return curator

    @property
    def points(self):
        """All points."""
        return list(product(range(self.slices), range(len(region_keys(self.regions)))))

    def are_inside(self, questions, points):
        """Which points lie in which cells, (cells, points), by comparing each with each."""
        when, number = np.array(points, np.int64).reshape(-1, 2).T
        cell, region = np.array(region_keys(self.regions), np.int64)[number].T
        at = np.stack([cell % self.side, cell // self.side, when, region])
        low, high = [], []
        for question in questions:
            rows, time = len(question.boxes), np.array([0, self.slices])
            spans = question.spans
            if spans is None:
                own = question.regions
                own = np.tile([0, self.regions.size], (rows, 1)) if own is None else own
                spans = np.concatenate([np.tile(time, (rows, 1)), own], axis=1)
            low.append(np.concatenate([question.boxes[:, :2], spans[:, 0::2]], axis=1))
            high.append(np.concatenate([question.boxes[:, 2:], spans[:, 1::2]], axis=1))
        low, high = (np.concatenate(each)[:, :, None] for each in (low, high))
        return ((at >= low) & (at < high)).all(axis=1)


# Rows of a user lie in the west or the east of two columns.
HALVES = drawn(("a b", "a b"), ((0, 0),))


def cube_of_halves(rows, unit, bound, noises, *, loss=NANO, method=EVERY_LEVEL):
    """One curator over all days and two regions of rows (user, day, column), bounded first."""

    class Halves:
        size, levels, boxes = HALVES.size, HALVES.levels, HALVES.boxes
        meets, clipped_area = HALVES.meets, HALVES.clipped_area

        def assign(self, x, y, value=None, /):
            return (x >= 1).astype(np.int32)

    halves = Halves()
    counts = tally_batches(
        [batch(rows)], small_domain(2), unit=counted_unit(unit, bound), key=b"fixed", slices=DAYS,
        strata=halves,
    )  # fmt: skip
    whole, terms = cube_terms(unit, bound, DAYS, Budget(loss).measure, None, halves)
    counts = replace(counts, contributions=whole.contributions)
    [noise] = noises(1)
    noise.curator = curator = Curator(
        counts, small_domain(2), budget=Budget(loss), sampler=noise, regions=halves, **terms
    )
    joint = method.build(curator)
    return [Run(curator, joint)]
