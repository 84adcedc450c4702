"""Planted bugs of cubes with regions: a layer that is not paid for, records in two regions."""

from dataclasses import replace

import numpy as np

from privacy.planted_bugs.bug import around, like, planted

REPLAY = "tests/privacy/test_region_cube_replay.py::"


@planted(test=REPLAY + "test_layers_pay_from_one_budget[0]")
@like("questions about all slices that nobody adds to those about each")
@around("psd.curator.curator.Curator._charge")
def layer_of_regions_not_charged(original, self, kind, cells, loss):
    """The regions of all time are asked for nothing, beside those of each slice."""
    if cells.layer or self.regions is None:
        original(self, kind, cells, loss)
    else:
        self._questions.append((kind, self._layers[cells.layer].growing, cells.nodes, loss))


@planted(test=REPLAY + "test_counts_are_those_of_brute_force[flat]")
@like("a record that one layer counts in several disjoint cells")
@around("psd.curator.curator.Curator.root")
def record_of_a_cube_in_two_regions(original, self, axes=()):
    """A record of any region is counted in the first one too, in the layer over time."""
    sound = self._tally
    if "region" in axes:
        names = ("columns", "rows", "counts", "slice")
        parts = {name: np.concatenate([getattr(sound, name)] * 2) for name in names}
        region = np.concatenate([sound.region, np.zeros_like(sound.region)])
        self._tally = replace(sound, **parts, region=region)
    root = original(self, axes)
    self._tally = sound
    return root


@planted(test=REPLAY + "test_more_regions_never_lower_the_noise")
@like("the bound of one slice taken for that of a cell of several")
@around("psd.curator.curator.Curator._noises")
def cap_divided_among_regions(original, self, growing, nodes):
    """A cell of few regions has the noise of few slices, as if a user were in few of them."""
    if not growing.axes or growing.axes[-1].name != "region":
        yield from original(self, growing, nodes)
        return
    first, stop = growing.spans[nodes, 2:4].T
    for noise, at in original(self, growing, nodes):
        for number in np.unique((stop - first)[at]).tolist():
            part = noise.squared_sensitivity * number // growing.axes[-1].size
            own = at[(stop - first)[at] == number]
            yield replace(noise, squared_sensitivity=max(part, 1)), own
