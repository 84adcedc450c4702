"""Planted bugs of cubes: caps of cells, layers that are not paid for, records in other slices."""

from dataclasses import replace

import numpy as np

from privacy.planted_bugs.bug import around, instead, like, planted
from psd.space.cube_tree import noises_by

REPLAY = "tests/privacy/test_cube_replay.py::"
PLACEMENTS = REPLAY + "test_users_of_all_placements_cost_rho_and_no_more"
FINE = REPLAY + "test_no_answer_about_records_in_a_fine_lattice_tells_more_than_the_loss"
PAIRS = REPLAY + "test_no_answer_of_a_few_pairs_tells_more_than_the_loss"
CAP = "the bound of one slice taken for that of a cell of several"


@planted(test=PLACEMENTS + "[levels-4-1-True-echo]", like=CAP)
@instead("psd.curator.curator.noises_by")
def cap_of_one_slice_for_cells_of_several(noise, cap, slices):
    """A cell of several slices has the noise of a cell of one."""
    yield from noises_by(noise, cap, np.ones_like(slices))


@planted(test=REPLAY + "test_medians_of_several_slices_have_the_cap_of_these", like=CAP)
@instead("psd.curator.curator.Curator._sensitivity")
def cap_of_one_slice_for_medians(self, growing, nodes):
    """Counts have the cap of their cell, and medians that of one slice."""
    [(noise, _)] = noises_by(self.noise, self._cap, np.ones(1, np.int64))
    return np.full(len(nodes), noise.sensitivity)


@planted(test=REPLAY + "test_layers_pay_from_one_budget[axes0]")
@like("questions about all slices that nobody adds to those about each")
@around("psd.curator.curator.Curator._charge")
def second_layer_of_a_cube_not_charged(original, self, kind, cells, loss):
    """The layer over space and time is asked for nothing, once the plane is paid."""
    if cells.layer == 0:
        original(self, kind, cells, loss)
    else:
        self._questions.append((kind, self._layers[cells.layer].growing, cells.nodes, loss))


@planted(test=REPLAY + "test_records_of_empty_slices_change_no_sensitivity")
@like("categories and groups from the data")
@around("psd.curator.curator.Curator._noises")
def empty_slices_left_out_of_a_cap(original, self, growing, nodes):
    """The cap of a cell follows from the slices in it that have a record."""
    if not growing.axes:
        yield from original(self, growing, nodes)
        return
    filled = np.isin(np.arange(self.axes[0].size), self._tally.slice)
    before = np.append(0, np.cumsum(filled))
    first, stop = growing.spans[nodes].T
    yield from noises_by(self.noise, self._cap, np.maximum(before[stop] - before[first], 1))


@planted(test=PAIRS + "[levels-epsilon-two]")
@like("a record that one layer counts in several disjoint cells")
@around("psd.curator.curator.Curator.root")
def records_of_a_cube_in_all_slices(original, self, axes=()):
    """The cells of the layer over space and time hold the records of all slices."""
    sound = self._tally
    if axes:
        slices = self.axes[0].size
        arrays = {
            name: np.tile(getattr(sound, name), slices) for name in ("columns", "rows", "counts")
        }
        when = np.repeat(np.arange(slices), len(sound.counts))
        self._tally = replace(sound, **arrays, slice=when)
    root = original(self, axes)
    self._tally = sound
    return root


@planted(
    test=REPLAY + "test_no_answer_about_records_in_a_fine_lattice_tells_more_than_the_loss[levels]"
)
@like("cumulative counts given out as counts of their parts")
@around("psd.curator.points.SlicedNodes.cut")
def part_after_a_line_of_time_has_what_was_before(original, self, cut):
    """Where codes are divided in time, the later part has the records of the earlier too."""
    number = original(self, cut)
    before, after = cut.child[:, 0], cut.child[:, 4]
    if number is not None and (both := (before >= 0) & (after >= 0)).any():
        first = cut.child[cut.child >= 0].min()
        number[after[both] - first] += number[before[both] - first]
    return number


@planted(test="tests/unit/curator/test_points.py::test_the_last_slice_ends_with_the_records")
@like("a number one beyond the largest of its type, which is 0 again")
@around("psd.curator.points.SlicedNodes.__init__")
def last_slice_ends_at_the_first_code(original, self, codes):
    """Codes of 32 bits have 0 for the end of the last slice, which loses all records before it."""
    original(self, codes)
    if codes.codes.dtype == np.uint32 and codes.slices * 4**codes.order.levels == 2**32:
        self._stop[-1] = 0
