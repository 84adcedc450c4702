"""Cubes with regions by record and replay: records of a user in any slices and regions.

A record lies in one region and one slice, so the layer over both and the layer over regions alone
cost together what the build claims, and the users who lose most reach it.
"""

from functools import partial

import numpy as np
import pytest

from psd.apps.auditing.pairs import transcript_rho
from psd.errors import BudgetError, ParameterError
from psd.privacy.loss import NANO
from psd.space.cube_tree import check_cube
from psd.space.region_axis import RegionAxis
from psd.space.region_tree import PAIRS, RegionTree
from psd.testing import SCRIPTS, LeakError, RecordingSampler
from support.privacy.cube_replay import LOSS, RHO, compare_layers
from support.privacy.region_cube_replay import (
    CUBE,
    EVERY_LEVEL,
    RegionSpace,
    cube_of_halves,
)
from support.privacy.replay import largest_loss
from support.privacy.slices_replay import UNITS_OF_SLICES, loss_of, placed, user
from support.small_regions import SHAPES

DEEP = pytest.mark.deep
METHODS = {"cube": CUBE, "every level": EVERY_LEVEL}
LOSSES = pytest.mark.parametrize("loss", [NANO, LOSS], ids=["epsilon", "rho"])
EACH = pytest.mark.parametrize("shape", SHAPES)
METHOD = pytest.mark.parametrize("method", METHODS)


def compare(first, second):
    """As `compare_layers`; questions must also be about the same regions."""
    compare_layers(first, second)
    for one, two in zip(first[0][0].questions, second[0][0].questions, strict=True):
        if not np.array_equal(one.regions, two.regions):
            raise LeakError("questions about other regions than on the other data set")


def check_pairs(space, method, size, *, sets, users):
    """The loss of a part of all pairs: so many data sets of up to ``size`` records, and users."""
    added, points = list(space.users()), space.data_sets(size)
    step, worst, pairs = max(len(added) // users, 1), 0, 0
    rule = {} if space.loss == NANO else {"measure": transcript_rho, "claim": RHO}
    for number, data in enumerate(points[:: max(len(points) // sets, 1)]):
        others = [data + more for more in added[::-1][number % step :: step]]
        build, pairs = partial(space.build, method), pairs + len(others)
        worst = max(worst, largest_loss(build, data, others, compare=compare, **rule))
    claim = 1 if space.loss == NANO else RHO
    assert pairs >= sets * users
    assert claim / 2 < worst <= claim


@pytest.mark.parametrize("k", [1, 2])
@LOSSES
@METHOD
def test_no_answer_of_a_few_pairs_tells_more_than_the_loss(method, loss, k):
    space = RegionSpace(slices=2, unit=user(k), loss=loss)
    check_pairs(space, METHODS[method], 1, sets=2, users=5)


@DEEP
@LOSSES
@METHOD
@EACH
def test_no_answer_tells_more_than_the_loss(shape, method, loss):
    space = RegionSpace(slices=3, unit=user(2, 1), loss=loss, shape=shape)
    check_pairs(space, METHODS[method], 2, sets=8, users=10)


@pytest.mark.nightly
@LOSSES
@METHOD
@EACH
def test_no_answer_of_thousands_of_pairs_tells_more_than_the_loss(shape, method, loss):
    """Over 5,000 pairs in all, of data sets of up to three records."""
    space = RegionSpace(slices=3, unit=user(2, 1), loss=loss, shape=shape)
    check_pairs(space, METHODS[method], 3, sets=18, users=18)


@pytest.mark.parametrize("slices", [1, 5, 40])
@EACH
@pytest.mark.parametrize("data", ["none", "one", "all"])
def test_every_path_of_both_layers_spends_epsilon(data, shape, slices):
    space = RegionSpace(slices=slices, shape=shape, loss=50 * NANO)
    points = {"none": [], "one": [(0, 3)] * 2_000, "all": space.points * 20}[data]
    for script in SCRIPTS:
        noise = RecordingSampler(script)
        (curator, plane), (_, joint) = space.build(CUBE, points, noise)
        assert curator.spent == 50 * NANO
        loss = np.concatenate([question.loss for question in curator.questions])
        inside = space.are_inside(curator.questions, space.points)
        assert (loss @ inside == 50 * NANO).all()
        assert isinstance(plane, RegionTree)
        assert plane.children.max() <= PAIRS
        check_cube(joint, (4, 4))
        # Every node of the layer over time and regions is one of the tree of regions.
        nodes = RegionAxis(space.regions).nodes_of(*joint.spans[:, 2:].T)
        assert np.array_equal(plane.frame.first[nodes], joint.spans[:, 2])
        assert np.array_equal(plane.frame.stop[nodes], joint.spans[:, 3])


@pytest.mark.parametrize("epsilon", [2, 3, 9])
def test_a_few_parts_of_epsilon_are_spent(epsilon):
    space = RegionSpace(slices=3, shape="deep", loss=epsilon)
    (curator, _), _ = space.build(CUBE, [], RecordingSampler())
    assert curator.spent == epsilon


@EACH
def test_counts_are_those_of_brute_force(shape):
    random, space = np.random.default_rng(1), RegionSpace(slices=7, shape=shape, loss=9 * NANO)
    points = [space.points[n] for n in random.integers(0, len(space.points), 400)]
    noise = RecordingSampler()
    curator, _ = space.build(EVERY_LEVEL, points, noise)[0]
    inside = space.are_inside(curator.questions, points).sum(axis=1)
    assert np.concatenate([draw.true for draw in noise.draws]).tolist() == inside.tolist()


def test_more_regions_never_lower_the_noise():
    """S_c^2 of a cell follows from its slices alone, k min(k, M t)."""
    for shape in ("one", "wide"):
        space, noise = (
            RegionSpace(slices=4, unit=user(4, 1), loss=LOSS, shape=shape),
            (RecordingSampler(SCRIPTS[1])),
        )
        curator = space.curator([(0, 0)], noise)
        time, region = curator.axes
        curator.count(curator.cut_regions(curator.root())[-1], 1_000)
        root = curator.root(["time", "region"])
        curator.count(root, 1_000)
        parts = curator.cut(root, {"region": region.lines(*root.spans[:, 2:].T)})
        curator.count(parts, 1_000)
        halves = curator.cut(parts, {"time": time.lines(*parts.spans[:, :2].T)})
        curator.count(halves, 1_000)
        found = [sorted(set(draw.sensitivity.tolist())) for draw in noise.draws]
        assert found == [[16], [16], [16], [8]]


@pytest.mark.parametrize("first", [0, 1])
def test_layers_pay_from_one_budget(first):
    """The layer of regions and that over time have together what the build has."""
    space = RegionSpace(slices=2)
    curator = space.curator([(0, 0)], RecordingSampler())
    regions = curator.cut_regions(curator.root())[-1]
    layers = [regions, curator.root(["time", "region"])]
    curator.count(layers[first], NANO // 2)
    with pytest.raises(BudgetError):
        curator.count(layers[1 - first], NANO // 2 + 1)
    curator.count(layers[1 - first], NANO // 2)


@UNITS_OF_SLICES
@LOSSES
def test_rows_of_a_user_are_bounded_before_both_layers(loss, unit, bound):
    rule = {} if loss == NANO else {"measure": transcript_rho, "claim": RHO}
    rule |= {"runs": cube_of_halves, "loss": loss}
    heaps = [[(name, day, 0) for day in range(4)] * 3 for name in "abcd"]
    worst = max(loss_of(rows, unit, bound, **rule) for rows in heaps)
    assert worst == pytest.approx(float(1 if loss == NANO else RHO), rel=1e-6)


@DEEP
@LOSSES
@METHOD
def test_rows_of_all_users_cost_no_more(method, loss):
    rule = {} if loss == NANO else {"measure": transcript_rho, "claim": RHO}
    rule |= {"runs": cube_of_halves, "loss": loss, "method": METHODS[method]}
    worst = max(loss_of(added, user(2, 1), "series", **rule) for added in placed(2))
    assert 0 < worst <= (1 if loss == NANO else RHO)


def test_a_curator_of_regions_has_their_axis_after_time():
    space = RegionSpace(slices=2)
    time, region = space.terms[1]["axes"]
    for axes in [(region,), (region, time), (time,)]:
        with pytest.raises(ParameterError, match="axes must be"):
            space.curator([], RecordingSampler(), axes=axes)
    few = RegionSpace(slices=2, shape="one").terms[1]["axes"]
    with pytest.raises(ParameterError, match="counted by"):
        space.curator([(0, len(space.points) // 2 - 1)], RecordingSampler(), axes=few)
