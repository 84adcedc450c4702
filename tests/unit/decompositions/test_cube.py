"""The schedule of a cube: slices with many records first, and others together."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import psd
from psd.curator.points import SlicedNodes
from psd.decompositions.cube import Cube
from psd.ingest.tally import Tally
from psd.privacy.loss import NANO
from support.cubes import DOMAIN, SLICES, cube, town

LONG = psd.TimeSlices.parse("hour", "2024-01-01T00..2024-01-09T07")  # 200 hours


def paths(tree):
    """Nano-epsilon from the root to each leaf."""
    spent = tree.loss.copy()
    for level in tree.levels[1:]:
        spent[level] += spent[tree.parent[level]]
    return set(spent[tree.is_leaf].tolist())


def whole(tree):
    """Nodes of all of space."""
    return (tree.boxes == tree.boxes[0]).all(axis=1)


def test_slices_with_many_records_are_counted_first():
    record = cube(data=town(100_000)).record
    tree = record.joint.tree
    one = tree.lengths[:, 0] == 1
    # No span of several slices is counted, and each slice is, with the share of a total.
    assert (tree.loss[~one] == 0).all()
    left = paths(tree).pop()
    first = one & whole(tree) & (tree.loss == int(left * Cube().total_share))
    assert first.sum() == len(SLICES)
    assert left + record.plane.tree.max_path_loss == NANO


def test_times_with_few_records_stay_together():
    table = town(100_000, slices=LONG)
    busy = table["time"] < np.datetime64("2024-01-05")
    tree = cube(data=table[busy], slices=LONG).record.joint.tree
    leaf = np.flatnonzero(tree.is_leaf)
    length, first = tree.lengths[leaf, 0], tree.spans[leaf, 0]
    assert len(paths(tree)) == 1
    assert (length[first >= 120] > 1).all()
    # The nights of this town are empty too.
    assert (length[first < 96] == 1).mean() > 0.9


@pytest.mark.parametrize(("records", "expected"), [(3_000_000, 0.02), (300, 0.2)])
def test_the_share_of_the_plane_follows_the_records_of_a_slice(records, expected):
    few = psd.TimeSlices.parse("hour", "2024-01-01T00..2024-01-01T01")
    table = town(min(records, 300), slices=few)
    release = cube(data=table, slices=few, epsilon="100" if records > 300 else "0.01")
    assert float(release.record.plane.parameters["plane_share"]) == expected


@pytest.mark.parametrize(
    "options",
    [{}, {"user": "user", "max_contributions": 2}, {"user": "user", "count": "users"}],
    ids=["records", "user", "users"],
)
@pytest.mark.parametrize("min_cell", [0, 0.0003])
def test_ranges_of_codes_have_the_counts_of_entries(options, min_cell, monkeypatch):
    """On a fine lattice the records of a node are ranges of ranks; the draws are then the same."""
    domain = replace(DOMAIN, lattice=(2**18, 3 * 2**16), min_cell=min_cell)
    ranges = mock.Mock(side_effect=SlicedNodes)
    monkeypatch.setattr("psd.curator.points.SlicedNodes", ranges)
    made = cube(data=town(900), domain=domain, **options)
    layers = len(cube(data=town(900), domain=domain, **options).record.layers)
    assert ranges.call_count == 2 * (layers - 1)  # of two builds, of all layers but the plane
    calls = ranges.call_count
    monkeypatch.setattr(Tally, "sliced_codes", lambda *_: None)
    assert cube(data=town(900), domain=domain, **options).digest == made.digest
    assert ranges.call_count == calls
