"""Cubes by record and replay: users with records anywhere in space and time.

The answers of both layers are recorded on one data set and replayed on another. The loss of the
layers together may not pass that of the build, and the users who lose most reach it, so that the
checks see what they claim to see. In rho, a cell of t slices has the squared sensitivity
k min(k, M t), k being the records of a user and M those in one slice.
"""

from dataclasses import replace
from fractions import Fraction
from functools import partial
from unittest.mock import Mock, patch

import numpy as np
import pytest

from psd.apps.auditing.pairs import transcript_rho
from psd.curator.curator import Curator
from psd.curator.points import SlicedNodes
from psd.errors import BudgetError, ParameterError
from psd.privacy.budget import Budget
from psd.privacy.count_noise import CountNoise
from psd.privacy.loss import NANO, PICO
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import cube_terms, draw_cube
from psd.space.box_tree import check_tree
from psd.space.cube_tree import SliceCap, check_cube
from psd.space.domain import Domain
from psd.space.growing_tree import refine_plane
from psd.testing import SCRIPTS, RecordingSampler, small_domain
from support.privacy.cube_replay import (
    CUBE,
    LEVELS,
    LOSS,
    MEDIANS,
    RHO,
    Space,
    are_inside,
    cells_of,
    compare_layers,
    cube_of_rows,
    cube_tally,
    days,
    rho_of_users,
    worst_exact_loss,
)
from support.privacy.exact_loss import ROUNDING
from support.privacy.replay import largest_loss
from support.privacy.slices_replay import UNITS_OF_SLICES, loss_of, placed, user

DEEP = pytest.mark.deep
METHODS = {"cube": CUBE, "levels": LEVELS, "medians": MEDIANS}
# A median has a choice among two lines at least.
SIDE = {"cube": 2, "levels": 2, "medians": 3}
UNITS = {
    "one": (user(1), "series"),
    "two": (user(2), "series"),
    "two in two slices": (user(2, 1), "series"),
    "one in each slice": (user(1), "slice"),
}


def check_pairs(space, method, size, *, sets, users):
    """The loss of a part of all pairs: so many data sets of up to ``size`` records, and users."""
    added, points = list(space.users()), space.data_sets(size)
    step, worst, pairs = max(len(added) // users, 1), 0, 0
    rule = {} if space.loss == NANO else {"measure": transcript_rho, "claim": RHO}
    for number, data in enumerate(points[:: max(len(points) // sets, 1)]):
        # Those with most records stand last.
        others = [data + more for more in added[::-1][number % step :: step]]
        build, pairs = partial(space.build, method), pairs + len(others)
        worst = max(worst, largest_loss(build, data, others, compare=compare_layers, **rule))
    claim = 1 if space.loss == NANO else RHO
    assert pairs >= sets * users
    assert claim / 2 < worst <= claim


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("loss", [NANO, LOSS], ids=["epsilon", "rho"])
@pytest.mark.parametrize("method", METHODS)
def test_no_answer_of_a_few_pairs_tells_more_than_the_loss(method, loss, unit):
    check_pairs(Space(SIDE[method], 2, *UNITS[unit], loss), METHODS[method], 2, sets=2, users=6)


@pytest.mark.parametrize("method", METHODS)
def test_no_answer_about_records_in_a_fine_lattice_tells_more_than_the_loss(method, monkeypatch):
    """Records that are codes have ranges of ranks, and no cells, until lines are asked for."""
    ranges = Mock(side_effect=SlicedNodes)
    monkeypatch.setattr("psd.curator.points.SlicedNodes", ranges)
    for name, loss in (("two in two slices", LOSS), ("one in each slice", NANO)):
        space = Space(SIDE[method], 2, *UNITS[name], loss, has_codes=True)
        check_pairs(space, METHODS[method], 2, sets=2, users=6)
    assert ranges.call_count >= 24


@DEEP
@pytest.mark.parametrize("has_codes", [False, True], ids=["cells", "codes"])
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("loss", [NANO, LOSS], ids=["epsilon", "rho"])
@pytest.mark.parametrize("method", METHODS)
def test_no_answer_tells_more_than_the_loss(method, loss, unit, has_codes):
    """A part of the pairs of each case, beside up to three records: thousands in all."""
    users = 8 if unit == "one" else 11
    space = Space(SIDE[method], 2, *UNITS[unit], loss, has_codes)
    check_pairs(space, METHODS[method], 3, sets=18, users=users)


@DEEP
@pytest.mark.parametrize(("side", "slices"), [(4, 2), (2, 4), (3, 3)])
@pytest.mark.parametrize("loss", [NANO, LOSS], ids=["epsilon", "rho"])
def test_no_answer_of_more_cells_tells_more_than_the_loss(loss, side, slices):
    check_pairs(Space(side, slices, user(2, 1), "series", loss), CUBE, 2, sets=8, users=10)


@pytest.mark.parametrize("unit", ["one", "two in two slices"])
def test_all_answers_of_selections_together_tell_no_more_than_epsilon(unit):
    """Exact log-ratios, by the rates of the real mechanisms; counts use up their share."""
    space = Space(3, 2, *UNITS[unit])
    users = list(space.users(least=space.whole.contributions))[::4]
    worst = worst_exact_loss(space, MEDIANS, [], users, SCRIPTS[0])
    assert 0.6 <= worst <= 1 + ROUNDING


@DEEP
@pytest.mark.parametrize("unit", UNITS)
def test_all_answers_of_selections_tell_no_more_beside_others(unit):
    space = Space(3, 2, *UNITS[unit])
    users = list(space.users(least=space.whole.contributions))[::2]
    for points in ([], [(0, 8)], [(0, 0), (1, 1)]):
        assert 0.6 <= worst_exact_loss(space, MEDIANS, points, users, SCRIPTS[0]) <= 1 + ROUNDING


# Records of a user in all and in each slice, and whether a user can fill the cap of every cell.
CAPS = [(1, 1, True), (2, 1, True), (2, 2, True), (3, 2, False), (4, 1, True), (4, 2, True)]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
@pytest.mark.parametrize(("k", "limit", "is_filled"), CAPS)
@pytest.mark.parametrize("method", [CUBE, LEVELS], ids=["cube", "levels"])
def test_users_of_all_placements_cost_rho_and_no_more(method, k, limit, is_filled, script):
    space = Space(2, 4, user(k, limit), "series", LOSS)
    noise = RecordingSampler(script)
    curator, _ = space.build(method, [(0, 0), (3, 3), (3, 3)], noise)[1]
    worst = rho_of_users(space, curator, noise.draws, list(space.users()))
    # Of each cell the shares are rounded down to whole parts, so they add up to rho or less.
    assert 1 - Fraction(1, 10**6) <= worst <= 1 if is_filled else worst < 1


@pytest.mark.parametrize("method", [CUBE, LEVELS], ids=["cube", "levels"])
def test_one_sensitivity_for_all_cells_would_lose_more(method):
    """With k M, which is the rule of slices, cells of several slices cost up to k / M times."""
    space = Space(2, 4, user(4, 1), "series", LOSS)
    noise, users = RecordingSampler(SCRIPTS[1]), list(space.users(least=4))
    of_slices = CountNoise.gaussian(4)
    with patch(
        "psd.curator.curator.noises_by", lambda *given: [(of_slices, np.arange(len(given[2])))]
    ):
        curator, _ = space.build(method, [], noise)[1]
    worst = rho_of_users(space, curator, noise.draws, users)
    if method is LEVELS:
        # Three of five cells of a path have four slices, one has two, and one has one.
        assert worst == pytest.approx((3 * 4 + 2 + 1) / 5, rel=1e-6)
    assert worst > 1.3


# Users with more rows than are kept, in each slice and outside of them. Which are kept follows from
# the name; of one of these, they fill all cells that hold them.
HEAPS = [[(name, day, 0) for day in range(4)] * 3 for name in "abcd"]


@UNITS_OF_SLICES
@pytest.mark.parametrize("loss", [NANO, LOSS], ids=["epsilon", "rho"])
def test_rows_of_a_user_are_bounded_before_both_layers(loss, unit, bound):
    rule = {} if loss == NANO else {"measure": transcript_rho, "claim": RHO}
    rule |= {"runs": cube_of_rows, "loss": loss}
    claim = 1 if loss == NANO else RHO
    worst = max(loss_of(rows, unit, bound, **rule) for rows in HEAPS)
    assert worst == pytest.approx(float(claim), rel=1e-6)


@DEEP
@pytest.mark.parametrize("loss", [NANO, LOSS], ids=["epsilon", "rho"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("unit", [PrivacyUnit(), user(2, 1), user(2)], ids=["row", "2, 1", "2"])
def test_rows_of_all_users_cost_no_more(unit, method, loss):
    rule = {} if loss == NANO else {"measure": transcript_rho, "claim": RHO}
    rule |= {"runs": cube_of_rows, "loss": loss, "method": METHODS[method]}
    rows = placed(1 if unit.kind == "record" else 2)
    worst = max(loss_of(added, unit, "series", **rule) for added in rows)
    assert 0 < worst <= (1 if loss == NANO else RHO)


def test_a_user_whose_rows_are_heaped_in_one_slice_costs_less():
    """Of three rows in one slice two are kept with a limit of two, of four in each."""
    heaped = [("u", 0, 0)] * 3
    rule = {"runs": cube_of_rows, "loss": LOSS, "measure": transcript_rho, "claim": RHO}
    whole, limited = (loss_of(heaped, unit, "series", **rule) for unit in (user(3), user(3, 1)))
    assert whole == pytest.approx(float(RHO), rel=1e-6)
    assert limited < RHO / 3 + Fraction(1, 10**9)


DATA = {
    "empty": lambda side, slices: [],
    "one point": lambda side, slices: [(slices - 1, side * side - 1)] * 2_000,
    "everywhere": lambda side, slices: [
        (each % slices, each * 7 % (side * side)) for each in range(2_000)
    ],
}
SLICES = [1, 2, 9, pytest.param(100, marks=DEEP)]


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("slices", SLICES)
@pytest.mark.parametrize("epsilon", [1, 2, 3, NANO, 50 * NANO])
def test_every_path_of_one_layer_and_of_the_other_spend_epsilon(epsilon, slices, data):
    side = 8 if slices < 100 else 2
    for script in SCRIPTS if epsilon > 3 else SCRIPTS[:1]:
        space, noise = Space(side, slices, loss=epsilon), RecordingSampler(script)
        points = DATA[data](side, slices)
        (curator, plane), (_, joint) = space.build(CUBE, points, noise)
        assert curator.spent == epsilon
        boxes, spans, loss = cells_of(curator.questions)
        assert (loss @ are_inside(boxes, spans, space.points, side) == epsilon).all()
        check_tree(plane, (side, side))
        check_cube(joint, (side, side))
        refined, of_plane, of_joint = refine_plane(joint, plane)
        check_tree(refined, (side, side))
        assert np.array_equal(refined.boxes[of_plane], plane.boxes)
        assert np.array_equal(refined.boxes[of_joint], joint.boxes)


@pytest.mark.parametrize("slices", [1, 9])
@pytest.mark.parametrize("lattice", [(1, 1), (1, 7), (7, 5), (64, 3)])
def test_paths_spend_rho_on_any_lattice(lattice, slices):
    cells = np.random.default_rng(1).integers(0, [[slices], [lattice[0]], [lattice[1]]], (3, 500))
    tally = cube_tally([], 1, 4)
    tally = replace(
        tally, slice=np.sort(cells[0]), columns=cells[1].astype(np.int32),
        rows=cells[2].astype(np.int32), counts=np.ones(500, np.int64),
    )  # fmt: skip
    domain = Domain(bounds=(0, 0, *lattice), crs="EPSG:3857", lattice=lattice)
    terms = cube_terms(user(4, 2), "series", days(slices), Budget(LOSS).measure)[1]
    for script in SCRIPTS:
        noise = RecordingSampler(script)
        curator = Curator(tally, domain, budget=Budget(LOSS), sampler=noise, **terms)
        joint = CUBE.build(curator)
        plane = curator.tree()
        assert curator.spent == LOSS.rho
        assert plane.max_path_loss + joint.max_path_loss == LOSS.rho
        check_tree(plane, lattice)
        check_cube(joint, lattice)
        refine_plane(joint, plane)


@pytest.mark.parametrize("axes", [((), ("time",)), (("time",), ()), (("time",), ("time",))])
def test_layers_pay_from_one_budget(axes):
    """A second layer has nothing left where the first took all, and what is left of a half."""
    for first, second in ((NANO, 1), (NANO // 2, NANO // 2 + 1)):
        noise = RecordingSampler()
        curator = Space().curator([(0, 0), (1, 3)], noise)
        layers = [curator.root(names) for names in axes]
        curator.count(layers[0], first)
        with pytest.raises(BudgetError):
            curator.count(layers[1], second)
        assert (curator.spent, len(noise.draws)) == (first, 1)


def random_lines(random, cells, axes):
    """Lines of each cell, inside of it or on an edge, of two axes at most."""
    low = np.concatenate([cells.boxes[:, :2], cells.spans[:, :1]], axis=1)
    high = np.concatenate([cells.boxes[:, 2:], cells.spans[:, 1:]], axis=1)
    lines = random.integers(low, high + 1)
    kept = random.permuted(np.tile(np.arange(3) < axes, (len(cells), 1)), axis=1)
    x, y, when = np.where(kept, lines, low).T
    return {"time": when}, {"x": x, "y": y}


def brute_counts(cells, points, side):
    """Records in cells; those of the plane have all slices."""
    spans = np.tile([0, 2**40], (len(cells), 1)) if cells.spans is None else cells.spans
    return are_inside(cells.boxes, spans, points, side).sum(axis=1).tolist()


@pytest.mark.parametrize("asks_first", [False, True], ids=["counts", "a quantile first"])
@pytest.mark.parametrize("seed", range(6))
def test_counts_are_those_of_brute_force(seed, asks_first):
    """Cuts anywhere in x, y and time, one or two at once; a quantile sorts the entries again."""
    random, side, slices = np.random.default_rng(seed), 9, 11
    when, cells = random.integers(0, [[slices], [side * side]], (2, 400))
    points = np.stack([when, cells // 3 * 3], axis=1)
    noise = RecordingSampler()
    curator = Space(side, slices, loss=900 * NANO).curator(points, noise)
    joint, plane = curator.root(["time"]), curator.root()
    for step in range(5):
        if asks_first or step == 2 + seed % 2:
            check_scores(curator, noise, joint, points, side)
        lines, sides = random_lines(random, joint, 1 + (step + seed) % 2)
        joint = curator.cut(joint, lines, **sides)
        plane = curator.cut(plane, x=plane.middle(0), y=plane.middle(1) + (step == 1))
        plane = plane[(plane.boxes[:, 2:] > plane.boxes[:, :2]).all(axis=1)]
        if step % 2:
            continue  # two cuts wait for one count
        assert curator.count(joint, NANO).tolist() == brute_counts(joint, points, side)
        assert curator.count(plane, NANO).tolist() == brute_counts(plane, points, side)


def check_scores(curator, noise, cells, points, side):
    """Scores of a quantile in each cell, -abs(3 below - n), and the mechanism's candidates."""
    curator.quantile(cells, axis=1, loss=NANO, p=1, q=3)
    draw = noise.draws[-1]
    own = are_inside(cells.boxes, cells.spans, points, side)
    rows = points[:, 1] // side
    below = own[draw.group] & (rows < draw.line[:, None])
    is_thin = (cells.boxes[:, 3] - cells.boxes[:, 1] == 1)[draw.group]
    wanted = -np.abs(3 * below.sum(axis=1) - own.sum(axis=1)[draw.group])
    assert draw.true[~is_thin].tolist() == wanted[~is_thin].tolist()


def test_medians_of_several_slices_have_the_cap_of_these():
    """A user with a row in each of four slices moves all scores by four, up and down."""

    class Median:
        def build(self, curator):
            curator.quantile(curator.root(["time"]), axis=0, loss=curator.loss)
            return curator.tree()

    space = Space(3, 4, user(4, 1), "series", LOSS)
    # The four rows stand between two lines, and four others to the west of both.
    west, between = [(2, 0)] * 4, [(when, 1) for when in range(4)]
    rule = {"measure": transcript_rho, "claim": RHO, "compare": lambda *_: None}
    worst = largest_loss(partial(space.build, Median()), west, [west + between], **rule)
    assert worst == pytest.approx(float(RHO), rel=1e-6)


def test_records_of_empty_slices_change_no_sensitivity():
    """S_c^2 follows from the stated slices, and is that of no records at all."""
    sensitivities = []
    for points in ([], [(0, 0)], [(when, 0) for when in range(4)]):
        noise = RecordingSampler(SCRIPTS[1])
        curator = Space(2, 4, user(4, 1), "series", LOSS).curator(points, noise)
        root = curator.root(["time"])
        parts = curator.cut(root, {"time": [3]})
        curator.count(root, 1_000_000)
        curator.count(parts, 1_000_000)
        curator.quantile(parts, axis=0, loss=1_000_000)
        sensitivities.append([draw.sensitivity.tolist() for draw in noise.draws])
    # 4 min(4, t) of four, one and three slices; a quantile has the root of it, rounded up.
    assert sensitivities == [[[16], [4], [12], [4, 2]]] * 3


@pytest.mark.parametrize(
    ("loss", "changes"),
    [
        (NANO, {"cap": SliceCap(most=4, per_slice=1)}),
        (LOSS, {"cap": SliceCap(most=4, per_slice=1), "axes": ()}),
        (LOSS, {"cap": SliceCap(most=3, per_slice=1)}),
        (LOSS, {"cap": None, "squared_sensitivity": 4}),
        (LOSS, {"cap": None, "squared_sensitivity": 15}),
        (LOSS, {"squared_sensitivity": 15}),
    ],
    ids=[
        "epsilon",
        "no axes",
        "fewer records",
        "one number",
        "a number",
        "less than of all slices",
    ],
)
def test_noise_too_small_for_cells_of_several_slices_is_refused(loss, changes):
    space = Space(2, 4, user(4, 1), "series", loss)
    with pytest.raises(
        ParameterError, match=r"(cap|squared_sensitivity) must be (that of|at least)"
    ):
        space.curator([(0, 0)], RecordingSampler(), **changes)


def test_noise_of_all_records_of_a_unit_is_taken_without_a_cap():
    space = Space(2, 4, user(4, 1), "series", LOSS)
    curator = space.curator([(0, 0)], RecordingSampler(), cap=None, squared_sensitivity=16)
    assert curator.noise.squared_sensitivity == 16


def test_the_variance_of_a_count_is_that_of_the_noise_of_its_slices():
    """Half of the squared sensitivity over rho, k min(k, M t) = 4 t for t slices."""
    curator = Space(2, 4, user(4, 1), "series", LOSS).curator([], RecordingSampler())
    short, long = curator.cut(curator.root(["time"]), {"time": [1]}), curator.root()
    rho = np.array([LOSS.rho // 2, LOSS.rho // 4])
    expected = np.array([4, 12]) * PICO / (2 * rho)
    assert curator.noise_variance(short, rho) == pytest.approx(expected)
    assert curator.noise_variance(short, rho[0]) == pytest.approx([1, 3] * expected[:1])
    assert curator.noise_variance(long, rho[0]) == pytest.approx(4 * expected[:1])


@pytest.mark.parametrize(("bound", "slices"), [(1, 3), (2, 4)])
def test_a_bound_for_each_slice_is_one_of_all_slices(bound, slices):
    """k = T m in all, M = m in one slice: the noise of each cell follows from its slices."""
    cap = SliceCap(most=bound * slices, per_slice=bound)
    for loss in (NANO, LOSS):
        space, noise = Space(2, slices, user(bound), "slice", loss), RecordingSampler()
        points = [(0, 0), (slices - 1, 3)]
        release = draw_cube(
            cube_tally(points, 2, bound), small_domain(2), days(slices),
            scope="slice", budget=Budget(loss), method=CUBE, unit=user(bound),
            sampler=noise, covariate=None, boundary=None, regions=None, about=None, values=(),
        )  # fmt: skip
        # What the checks above look at is what is drawn.
        other = RecordingSampler()
        space.build(CUBE, points, other)
        for one, two in zip(noise.draws, other.draws, strict=True):
            for name in ("true", "loss", "sensitivity"):
                assert getattr(one, name).tolist() == getattr(two, name).tolist()
        unit = release.record.joint.unit
        assert (unit.max_contributions, unit.max_per_slice) == (cap.most, cap.per_slice)
        given = {each for draw in noise.draws for each in draw.sensitivity.tolist()}
        if loss == NANO:
            assert given == {bound * slices}
        else:
            squared = {cap.squared_sensitivity(number) for number in range(1, slices + 1)}
            assert given <= squared
            assert cap.squared_sensitivity(slices) in given
