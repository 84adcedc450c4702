"""Planted bugs of regions: records in several of them, levels beside each other, empty ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import psd.curator.curator
import psd.decompositions._regions
import psd.ingest.tally_builder
from privacy.planted_bugs.bug import planted, replaced
from psd.curator.curator import Curator
from psd.curator.points import Points
from psd.ingest.tally_builder import TallyBuilder
from psd.ingest.wide_columns import split_columns
from psd.space.region_kinds.polygons import PolygonRegions

REPLAY = "tests/privacy/test_region_replay.py::"
KEYS = "tests/unit/ingest/test_wide_columns.py::"


@planted(
    test=REPLAY + "test_loss_is_at_most_epsilon_and_all_of_it[flat-stepwise]",
    like="an outline that belongs to both of its sides",
)
def record_in_two_regions():
    """A record counts in its region and in the one before it."""
    original = Points.cut_regions

    def cut_regions(self, frame):
        original(self, replace(frame, stop=np.minimum(frame.stop + 1, frame.stop[0])))

    return replaced(Points, "cut_regions", cut_regions)


@planted(
    test=REPLAY + "test_levels_that_cost_more_than_epsilon_together_are_refused[1]",
    like="families that overlap, accounted as if they were disjoint",
)
def levels_of_regions_beside_each_other():
    """The levels of regions are accounted beside each other, each with all of epsilon."""
    original = psd.curator.curator.region_frame

    def flat(regions, lattice):
        frame = original(regions, lattice)
        parent = np.minimum(frame.parent, 0)
        return replace(frame, parent=parent, level=parent + 1)

    return replaced(psd.curator.curator, "region_frame", flat)


@planted(
    test=REPLAY + "test_loss_is_at_most_epsilon_and_all_of_it[wide-stepwise]",
    like="cells without a record left out of the release",
)
def empty_regions_skipped():
    """Regions without a record are published as empty, without noise."""
    original = Curator._inside_boundary

    def occupied(self, growing, cells):
        points = next(layer.points for layer in self._layers if layer.growing is growing)
        return original(self, growing, cells) & (points.count(cells.nodes) > 0)

    return replaced(Curator, "_inside_boundary", occupied)


@planted(
    test="tests/unit/decompositions/test_regions.py::"
    "test_every_path_spends_exactly_epsilon[deep-cascade-1000000000]",
    like="shares that sum above epsilon",
)
def all_shares_for_each_level():
    """Each level of regions is given the epsilon of all levels together."""
    return replaced(
        psd.decompositions._regions,
        "root_shares",
        lambda total, weights, degree: (total,) * len(weights),
    )


@planted(
    test=KEYS + "test_each_record_has_one_key[fine-all-small]",
    like="a record that is classified by its neighbours",
)
def region_of_the_record_before():
    """A record that lies in no region gets the region of the record before it."""
    original = PolygonRegions.assign

    def assign(self, x, y):
        region = original(self, x, y)
        last = np.maximum.accumulate(np.where(region >= 0, np.arange(len(region)), -1))
        return np.where(last >= 0, region[last], region)

    return replaced(PolygonRegions, "assign", assign)


@planted(
    test=KEYS + "test_a_user_moves_the_counts_by_no_more_than_the_limit[all-user]",
    like="a limit that holds in each part of a table, but not for the whole of it",
)
def users_bounded_in_each_region():
    """The records of a user are bounded in each region, and not in all regions together."""

    def units(self, partition):
        _, region = split_columns(partition.codes % self._width, self.domain.lattice[0])
        return np.unique(partition.users * self._regions + region, return_inverse=True)[1]

    return replaced(TallyBuilder, "_units", units)


@planted(
    test=KEYS + "test_order_and_batches_have_no_effect[all-user]",
    like="bounding by the order or the partition of a file",
)
def regions_left_out_of_the_hash():
    """Records of a cell in two regions are equal where records of a user are selected."""
    original = psd.ingest.tally_builder.keep_smallest

    def keep(units, salt, cells, time, k):
        return original(units, salt, (cells[0] % 2, cells[1]), time, k)

    return replaced(psd.ingest.tally_builder, "keep_smallest", keep)
