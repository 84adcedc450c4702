"""Planted bugs of regions: records in several of them, levels beside each other, empty ones."""

from dataclasses import replace

import numpy as np

from privacy.planted_bugs.bug import around, instead, like, planted
from psd.ingest.tally import split_columns

REPLAY = "tests/privacy/test_region_replay.py::"
METHOD = "tests/unit/decompositions/test_regions.py::"
KEYS = "tests/unit/ingest/test_wide_columns.py::"


@planted(test=REPLAY + "test_loss_beside_no_record_is_at_most_epsilon[flat-stepwise]")
@like("an outline that belongs to both of its sides")
@around("psd.curator.points.Points.cut_regions")
def record_in_two_regions(original, self, frame):
    """A record counts in its region and in the one before it."""
    original(self, replace(frame, stop=np.minimum(frame.stop + 1, frame.stop[0])))


@planted(test=REPLAY + "test_levels_that_cost_more_than_epsilon_together_are_refused[1]")
@like("families that overlap, accounted as if they were disjoint")
@around("psd.curator.curator.region_frame")
def levels_of_regions_beside_each_other(original, *args):
    """The levels of regions are accounted beside each other, each with all of epsilon."""
    frame = original(*args)
    parent = np.minimum(frame.parent, 0)
    return replace(frame, parent=parent, level=parent + 1)


@planted(test=REPLAY + "test_loss_beside_no_record_is_at_most_epsilon[wide-stepwise]")
@like("cells without a record left out of the release")
@around("psd.curator.curator.Curator._inside_boundary")
def empty_regions_skipped(original, self, growing, cells):
    """Regions without a record are published as empty, without noise."""
    points = next(layer.points for layer in self._layers if layer.growing is growing)
    return original(self, growing, cells) & (points.count(cells.nodes) > 0)


@planted(test=METHOD + "test_every_path_spends_exactly_epsilon[deep-cascade-1000000000]")
@like("shares that sum above epsilon")
@instead("psd.decompositions._regions.root_shares")
def all_shares_for_each_level(total, weights, degree):
    """Each level of regions is given the epsilon of all levels together."""
    return (total,) * len(weights)


@planted(test=KEYS + "test_each_record_has_one_key[fine-all-small]")
@like("a record that is classified by its neighbours")
@around("psd.regions.kinds.polygons.PolygonRegions.assign")
def region_of_the_record_before(original, self, x, y):
    """A record that lies in no region gets the region of the record before it."""
    region = original(self, x, y)
    last = np.maximum.accumulate(np.where(region >= 0, np.arange(len(region)), -1))
    return np.where(last >= 0, region[last], region)


@planted(test=KEYS + "test_a_user_moves_the_counts_by_no_more_than_the_limit[all-user]")
@like("a limit that holds in each part of a table, but not for the whole of it")
@instead("psd.ingest.tally_builder.TallyBuilder._units")
def users_bounded_in_each_region(self, partition):
    """The records of a user are bounded in each region, and not in all regions together."""
    _, region = split_columns(partition.codes % self._width, self.domain.lattice[0])
    return np.unique(partition.users * self._strata + region, return_inverse=True)[1]


@planted(test=KEYS + "test_order_and_batches_have_no_effect[all-user]")
@like("bounding by the order or the partition of a file")
@around("psd.ingest.tally_builder.keep_smallest")
def regions_left_out_of_the_hash(original, units, salt, cells, time, k, values):
    """Records of a cell in two regions are equal where records of a user are selected."""
    return original(units, salt, (cells[0] % 2, cells[1]), time, k, values)
