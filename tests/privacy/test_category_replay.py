"""Cubes with categories by record and replay: records of a user in any slices and categories.

All categories share the epsilon of a unit, so the loss of all layers together may not pass that of
the build, and the users who lose most reach it. More categories never lower the noise.
"""

from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from psd.apps.auditing.pairs import transcript_rho
from psd.curator.curator import Curator
from psd.errors import ParameterError
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO
from psd.space.box_tree import check_tree
from psd.space.categories import CategoryAxis
from psd.space.cube_tree import check_cube
from psd.space.growing_tree import refine_plane
from psd.testing import SCRIPTS, RecordingSampler, small_domain
from support.privacy.category_replay import (
    CUBE,
    EVERY_AXIS,
    Categories,
    cube_of_labels,
    labels,
    middles,
)
from support.privacy.cube_replay import LOSS, RHO, compare_layers
from support.privacy.replay import largest_loss
from support.privacy.slices_replay import UNITS_OF_SLICES, loss_of, placed, user

DEEP = pytest.mark.deep
METHODS = {"cube": CUBE, "every axis": EVERY_AXIS}
LOSSES = pytest.mark.parametrize("loss", [NANO, LOSS], ids=["epsilon", "rho"])
SLICES = pytest.mark.parametrize("slices", [0, 2], ids=["category alone", "two slices"])


def check_pairs(space, method, size, *, sets, users):
    """The loss of a part of all pairs: so many data sets of up to ``size`` records, and users."""
    added, points = list(space.users()), space.data_sets(size)
    step, worst, pairs = max(len(added) // users, 1), 0, 0
    rule = {} if space.loss == NANO else {"measure": transcript_rho, "claim": RHO}
    for number, data in enumerate(points[:: max(len(points) // sets, 1)]):
        others = [data + more for more in added[::-1][number % step :: step]]
        build, pairs = partial(space.build, method), pairs + len(others)
        worst = max(worst, largest_loss(build, data, others, compare=compare_layers, **rule))
    claim = 1 if space.loss == NANO else RHO
    assert pairs >= sets * users
    assert claim / 2 < worst <= claim


@pytest.mark.parametrize("k", [1, 2])
@LOSSES
@SLICES
@pytest.mark.parametrize("method", METHODS)
def test_no_answer_of_a_few_pairs_tells_more_than_the_loss(method, slices, loss, k):
    check_pairs(Categories(2, slices, user(k), "series", loss), METHODS[method], 1, sets=2, users=5)


@pytest.mark.parametrize("k", [1, 2])
@LOSSES
def test_no_answer_of_three_layers_tells_more_than_the_loss(loss, k, monkeypatch):
    """Where categories have many records, a layer divides space for each of them by itself."""
    monkeypatch.setattr("psd.decompositions.cube.CUBE_LABEL_SIGNAL", -(10**9))
    space, noise = Categories(2, 2, user(k), "series", loss), RecordingSampler()
    (curator, _), _ = space.build(CUBE, [], noise)
    assert curator.layers == 3
    check_pairs(space, CUBE, 1, sets=2, users=5)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("has_labels", [True, False], ids=["each category", "all categories"])
@LOSSES
def test_no_answer_with_a_layer_of_times_tells_more_than_the_loss(loss, has_labels, k, monkeypatch):
    monkeypatch.setattr("psd.decompositions.cube.CUBE_LABEL_SIGNAL", 10**9 * (-1) ** has_labels)
    monkeypatch.setattr("psd.decompositions.cube._is_coarse", lambda *_: True)
    space, noise = Categories(2, 2, user(k), "series", loss), RecordingSampler()
    (curator, _), _ = space.build(CUBE, [], noise)
    assert curator.layers == 3 + has_labels
    check_pairs(space, CUBE, 1, sets=2, users=5)


@DEEP
@pytest.mark.parametrize("number", [3, 4])
@LOSSES
@SLICES
@pytest.mark.parametrize("method", METHODS)
def test_no_answer_tells_more_than_the_loss(method, slices, loss, number):
    space = Categories(2, slices, user(2), "series", loss, labels=number)
    check_pairs(space, METHODS[method], 2, sets=8, users=10)


@pytest.mark.parametrize("slices", [0, 1, 5, 20])
@pytest.mark.parametrize("number", [1, 2, 8])
@pytest.mark.parametrize("data", [[], [(0, 3)] * 500, "everywhere"], ids=["none", "one", "all"])
def test_every_path_of_all_layers_spends_epsilon(data, number, slices):
    space = Categories(4, slices, loss=50 * NANO, labels=number)
    data = space.points * 20 if data == "everywhere" else data
    for script in SCRIPTS:
        noise = RecordingSampler(script)
        (curator, plane), (_, joint) = space.build(CUBE, data, noise)
        assert curator.spent == 50 * NANO
        boxes, spans, loss = space.cells_of(curator.questions)
        assert (loss @ space.are_inside(boxes, spans, space.points) == 50 * NANO).all()
        check_tree(plane, (4, 4))
        check_cube(joint, (4, 4))
        refine_plane(joint, plane)


@pytest.mark.parametrize("slices", [0, 11])
@pytest.mark.parametrize("seed", range(3))
def test_counts_are_those_of_brute_force(seed, slices):
    random, side = np.random.default_rng(seed), 8
    space = Categories(side, slices, loss=900 * NANO, labels=5)
    points = [space.points[n] for n in random.integers(0, len(space.points), 400)]
    curator = space.curator(points, RecordingSampler())
    names = [axis.name for axis in curator.axes]
    joint, plane = curator.root(names), curator.root()
    whole = np.array([[edge for axis in curator.axes for edge in (0, axis.size)]])
    for step in range(4):
        assert (
            curator.count(joint, NANO).tolist()
            == space.are_inside(joint.boxes, joint.spans, points).sum(axis=1).tolist()
        )
        spans = np.repeat(whole, len(plane), axis=0)
        inside = space.are_inside(plane.boxes, spans, points).sum(axis=1)
        assert curator.count(plane, NANO).tolist() == inside.tolist()
        sides = {"x": joint.middle(0)} if step % 2 else {}
        joint = curator.cut(joint, middles(curator, joint, names[-1:]), **sides)
        plane = curator.cut(plane, x=plane.middle(0), y=plane.middle(1))


def test_more_categories_never_lower_the_noise():
    """S_c^2 of a cell follows from its slices alone; without slices it is k^2."""
    for slices, wanted in ((4, [[16], [8], [8]]), (0, [[16], [16], [16]])):
        for number in (2, 8):
            space, noise = Categories(2, slices, user(4, 1 if slices else None), "series", LOSS,
                                      labels=number), RecordingSampler(SCRIPTS[1])  # fmt: skip
            curator = space.curator([(0, 0)], noise)
            names = [axis.name for axis in curator.axes]
            root = curator.root(names)
            curator.count(root, 1_000)
            halves = curator.cut(root, middles(curator, root, names))
            curator.count(halves, 1_000)
            one = curator.cut(halves, middles(curator, halves, ["category"]))
            curator.count(one, 1_000)
            found = [sorted(set(draw.sensitivity.tolist())) for draw in noise.draws]
            assert found == wanted


def test_layers_over_a_category_alone_have_the_noise_of_all_slices():
    space, noise = Categories(2, 4, user(4, 1), "series", LOSS), RecordingSampler(SCRIPTS[1])
    curator = space.curator([(0, 0)], noise)
    root = curator.root(["category"])
    parts = curator.cut(root, middles(curator, root, []) | {"category": [1]})
    curator.count(parts, 1_000)
    assert [draw.sensitivity.tolist() for draw in noise.draws] == [[16, 16]]


# Rows of a user on all days and in both columns, so with all labels.
HEAP = [("u", day, column) for day in range(4) for column in range(2)] * 2


@UNITS_OF_SLICES
@LOSSES
def test_rows_of_a_user_are_bounded_over_all_categories(loss, unit, bound):
    rule = {} if loss == NANO else {"measure": transcript_rho, "claim": RHO}
    rule |= {"runs": cube_of_labels, "loss": loss}
    assert 0 < loss_of(HEAP, unit, bound, **rule) <= (1 if loss == NANO else RHO)


@DEEP
@pytest.mark.parametrize("other", [True, False], ids=["other", "no other"])
@LOSSES
def test_rows_of_all_users_cost_no_more(loss, other):
    rule = {} if loss == NANO else {"measure": transcript_rho, "claim": RHO}
    category = CategoryAxis("kind", ("a", "b"), (-1, -1), other)
    rule |= {"runs": partial(cube_of_labels, category=category), "loss": loss}
    worst = max(loss_of(added, user(2), "series", **rule) for added in placed(2))
    assert 0 < worst <= (1 if loss == NANO else RHO)


@pytest.mark.parametrize("other", [True, False])
def test_a_label_says_whether_a_record_is_dropped_and_its_place_does_not(other):
    """Records with every label lie in every cell of the lattice."""
    category = CategoryAxis("kind", ("a", "b"), (-1, -1), other)
    texts = ["a", "b", "z", None]
    x, y, label = (each.ravel() for each in np.meshgrid(range(4), range(4), range(4)))
    read = Batch(x=x + 0.5, y=y + 0.5, label=pa.array([texts[n] for n in label], pa.large_string()))
    counts = tally_batches([read], small_domain(4), strata=category)
    cells = {0: 1, 1: 1} | ({2: 2} if other else {})
    found = list(zip(counts.columns, counts.rows, counts.region, counts.counts, strict=True))
    assert sorted(found) == sorted(
        (x, y, label, number) for x in range(4) for y in range(4) for label, number in cells.items()
    )


def test_a_category_is_an_axis_and_no_region():
    space = Categories(2, 2)
    tally, terms = space.tally([(0, 0)]), space.terms[1]
    for axes in ((labels(2), *terms["axes"][:1]), (labels(2), labels(2))):
        with pytest.raises(ParameterError, match="axes must be time, category or both"):
            Curator(tally, small_domain(2), budget=Budget(NANO), sampler=RecordingSampler(),
                    axes=axes)  # fmt: skip
    with pytest.raises(ParameterError, match="axes must be those that the tally was counted by"):
        Curator(space.tally([(0, 7)]), small_domain(2), budget=Budget(NANO),
                sampler=RecordingSampler(), axes=(labels(1),))  # fmt: skip
