"""The schedule of regions by slices: slices with many records are counted level by level."""

import numpy as np
import pytest

from psd.decompositions.cube import Cube
from psd.privacy.loss import NANO
from psd.testing import SCRIPTS, RecordingSampler
from support.privacy.region_cube_replay import RegionSpace


def build(points, *, shape="deep", slices=6, epsilon=NANO, method=None):
    """Both layers of records at points, without noise."""
    space, noise = RegionSpace(slices=slices, shape=shape, loss=epsilon), RecordingSampler()
    (curator, plane), (_, joint) = space.build(method or Cube(), points, noise)
    return curator, plane, joint


def everywhere(records, slices=6):
    """Many records at each point."""
    return RegionSpace(slices=slices, shape="deep").points * records


def test_slices_with_many_records_are_counted_level_by_level():
    _, plane, joint = build(everywhere(100))
    left = NANO - plane.max_path_loss
    lengths = joint.lengths[:, 0]
    # No span of several slices is counted.
    assert not joint.loss[lengths > 1].any()
    one = np.flatnonzero((lengths == 1) & (joint.loss > 0))
    spans, axis = joint.spans[one, 2:], joint.axes[1]
    total = np.diff(spans)[:, 0] == axis.size
    assert set(joint.loss[one[total]].tolist()) == {int(left * Cube().total_share)}
    # The regions of each level have an even share in each slice; a region without siblings on the
    # levels below it, all that is left.
    rest = left - int(left * Cube().total_share)
    parts = joint.loss[one[~total]]
    assert set(np.rint(parts / (rest / 3)).astype(int).tolist()) == {1, 2}
    number = np.diff(spans[~total])[:, 0]
    assert (np.abs(parts[number > 1] - rest / 3) <= 2).all()
    assert joint.is_leaf.sum() == 6 * axis.size


def test_few_records_stay_together():
    _, _, joint = build([(0, 0)] * 30, slices=100)
    leaf = joint.is_leaf
    assert (joint.lengths[leaf, 0] * np.diff(joint.spans[leaf, 2:])[:, 0]).max() > 1
    assert leaf.sum() < 100


def test_the_layer_of_regions_counts_every_level_and_the_lowest_with_most_of_the_loss():
    _, plane, _ = build(everywhere(10))
    frame = plane.frame
    losses = [plane.loss[frame.named(tier)] for tier in range(3)]
    spent = sum(int(loss[0]) for loss in losses)
    for loss, share in zip(losses, (1 / 8, 1 / 8, 3 / 4), strict=True):
        assert np.ptp(loss) == 0
        assert int(loss[0]) == pytest.approx(spent * share, abs=2)


def test_a_slice_is_divided_to_a_level_that_its_records_nearly_suffice_for():
    points, slices = RegionSpace(slices=6, shape="wide").points * 8, 6
    # Of a slice for two parts or less; there are six regions.
    for signal in (30, 60):
        _, plane, joint = build(points, shape="wide", method=Cube(signal=signal))
        leaf = joint.is_leaf
        assert (joint.lengths[leaf, 0] == 1).all()
        assert leaf.sum() == slices * plane.regions.size


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_any_answers_make_a_tree(script):
    space = RegionSpace(slices=9, shape="wide", loss=5 * NANO)
    (curator, _), (_, joint) = space.build(
        Cube(signal=1), everywhere(3, 9), RecordingSampler(script)
    )
    assert curator.spent == 5 * NANO
    assert joint.children.max() <= 2
