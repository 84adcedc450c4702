"""The curator's own: what it notes and hands on, which cells it knows, and limits to the unit."""

from dataclasses import replace
from fractions import Fraction
from functools import partial
from unittest.mock import Mock

import numpy as np
import pytest

from psd.curator.curator import Curator
from psd.curator.path_charges import split_rule
from psd.errors import BudgetError, InternalError, ParameterError
from psd.mechanisms import mechanisms
from psd.mechanisms.base import MAX_SENSITIVITY
from psd.mechanisms.laplace import LaplaceMechanism
from psd.mechanisms.permute_and_flip import PermuteAndFlip
from psd.mechanisms.price_maps import PriceMaps
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO, Loss
from psd.space.covariate import Covariate
from psd.space.growing_tree import Cells
from psd.testing import SCRIPTS, RecordingSampler, Script, small_domain, small_tally
from psd.testing.data import region_tally
from support.small_regions import SHAPES, drawn

# Nobody is in the east column but in one cell of the south.
MASK = [[1, 1, 0], [1, 1, 0], [1, 1, 1]]
FIRST = SCRIPTS[0]
ALL = SCRIPTS[1]


def curator(side=3, rows=(0, 4), k=1, script=FIRST, epsilon=NANO, **known):
    noise, tally = RecordingSampler(script), small_tally(side, rows, k)
    budget = Budget(epsilon)
    return Curator(tally, small_domain(side), budget=budget, sampler=noise, **known), noise


def mask(raster, side=3):
    return Covariate(domain=small_domain(side), raster=np.array(raster, np.uint16))


def test_what_is_public_is_handed_on_and_what_a_method_picks_is_stated_as_it_said():
    known = mask(MASK)
    assert curator(covariate=known)[0].covariate is known
    assert curator(boundary=known)[0].boundary is known
    made, _ = curator()
    assert made.covariate is None
    assert made.curve(2).boxes.tolist() == [[0, 0, 16, 1]]  # one line of codes
    made.declare("size", 7)
    made.declare("way", "grid")
    assert made.declared == {"size": 7, "way": "grid"}


def test_mass_is_that_of_the_covariate_times_the_share_inside_the_region():
    known, regions = mask(np.arange(1, 17).reshape(4, 4), 4), SHAPES["flat"]
    options = {"budget": Budget(NANO), "sampler": RecordingSampler(FIRST), "regions": regions}
    plain, weighted = (
        Curator(region_tally(regions, ()), small_domain(4), covariate=each, **options)
        for each in (None, known)
    )
    [cells], [same] = (each.cut_regions(each.root()) for each in (plain, weighted))
    plain.count(cells, NANO)
    [question] = plain.questions
    share = plain.mass(cells)
    assert (share < 1).any()
    assert weighted.mass(same).tolist() == (known.mass(question.boxes) * share).tolist()
    assert weighted.regions is regions
    assert question.regions.tolist() == [[n, n + 1] for n in range(regions.size)]


def test_questions_are_noted_by_their_names_and_in_whole_numbers():
    made, _ = curator(side=4)
    root = made.root()
    made.count(root, np.array([NANO // 4], np.int32))
    made.quantile(root, axis=0, loss=[NANO // 4])
    made.homogeneous_split(root, axis=0, loss=NANO // 4, bins=4, lines=3)
    made.privtree_shape(root, NANO // 4, height=1)
    kinds = [question.kind for question in made.questions]
    assert kinds == ["count", "quantile", "homogeneous_split", "privtree_shape"]
    assert {question.loss.dtype for question in made.questions} == {np.dtype(np.int64)}
    assert [question.loss.tolist() for question in made.questions] == [[NANO // 4]] * 4


def test_counts_are_whole_numbers_also_where_nobody_is():
    made, noise = curator(boundary=mask(MASK))
    cells = made.root()
    cells = made.cut(cells, x=[2])
    cells = made.cut(cells, y=[1, 1])
    found = made.count(cells, NANO)
    assert found.dtype == np.int64
    outside = (cells.boxes == [2, 0, 3, 1]).all(axis=1) | (cells.boxes == [2, 1, 3, 3]).all(axis=1)
    empty = outside & ~made.inside_boundary(cells)
    assert empty.any()
    assert (found[empty] == 0).all()
    assert len(noise.draws[0].true) == (~empty).sum()
    # The one cell of the east column where somebody can be has a mass of exactly 1.
    masses = made.boundary.mass(cells.boxes)
    assert {0, 1} <= set(masses.tolist())
    assert made.inside_boundary(cells).tolist() == (masses > 0).tolist()


def test_shapes_draw_for_no_node_where_nobody_can_be():
    raster = np.zeros((4, 4))
    raster[:2, :2] = 1
    made, noise = curator(side=4, script=ALL, boundary=mask(raster, 4))
    leaves = made.privtree_shape(made.root(), NANO, height=3)  # and none for a single lattice cell
    assert [len(call.true) for call in noise.draws] == [1, 1]
    assert len(leaves) == 7
    free, noise = curator(side=4, script=ALL)
    assert len(free.privtree_shape(free.root(), NANO, height=3)) == 16
    assert [len(call.true) for call in noise.draws] == [1, 4]
    # Nor for one outside its region.
    regions = drawn(("a a a a", "a a a a", "a a . .", "a a . ."), ((0,),))
    noise = RecordingSampler(ALL)
    options = {"budget": Budget(NANO), "sampler": noise, "regions": regions}
    made = Curator(region_tally(regions, ()), small_domain(4), **options)
    [region] = made.cut_regions(made.root())
    made.privtree_shape(region, NANO, height=3)
    assert [len(call.true) for call in noise.draws] == [1, 3]  # the northeast has no record


def test_cells_that_nobody_was_given_are_refused(subtests):
    absent, integers = "numbers of nodes that do not exist", "an array of integers"
    for layer, nodes, words in (
        *((layer, [0], f"layer {layer} does not exist") for layer in (1, -1)),
        *((0, nodes, absent) for nodes in ([3], [-1])),
        *((0, nodes, integers) for nodes in ([0.0], [[0]])),
    ):
        made, noise = curator()
        made.cut(made.root(), x=[1])
        cells = Cells(layer=layer, nodes=np.array(nodes), boxes=np.zeros((1, 4), np.int64))
        with subtests.test(words), pytest.raises(ParameterError, match=words):
            made.count(cells, 1)
        assert not noise.draws


def test_the_finest_quantile_is_a_fraction_of_2_to_the_14_and_the_largest_scale_2_to_the_42():
    made, noise = curator()
    made.quantile(made.root(), axis=0, loss=NANO // 2, p=1, q=2**14)
    assert noise.draws[0].sensitivity.tolist() == [2**14 - 1]
    with pytest.raises(ParameterError, match="0 < p < q <= 16384"):
        made.quantile(made.root(), axis=0, loss=NANO // 2, p=1, q=2**14 + 1)
    k = 2**33
    made, noise = curator(k=k)
    with pytest.raises(ParameterError, match="too small for 8589934592 records per user"):
        made.count(made.root(), k * NANO // 2**42 - 1)
    made.count(made.root(), k * NANO // 2**42)
    assert len(noise.draws) == 1


def test_nodes_that_change_after_the_charge_change_no_question(monkeypatch):
    """The caller keeps the array, and alters it while answers are drawn, or in another thread."""

    def drawing(step, biased):
        cells.nodes[:] = 2
        return np.ones(len(biased), bool)

    def before(*rule):
        cells.nodes[:] = 2
        return split_rule(*rule)

    altering = Script("altering", *[None] * 2, compare=drawing)
    for script, rule in ((altering, split_rule), (ALL, before)):
        monkeypatch.setattr("psd.curator.curator.split_rule", rule)
        made, _ = curator(side=4, script=script)
        cells = made.cut(made.root(), x=[2])[np.array([0])]
        leaves = made.privtree_shape(cells, NANO, height=1)
        assert (leaves.boxes[:, 2] <= 2).all()
        assert made.questions[0].boxes.tolist() == [[0, 0, 2, 4]]


def test_cells_that_change_after_they_were_cut_change_no_later_question():
    """A cut beside the middle waits until a node is counted; until then it has its own nodes."""
    true = []
    for altered in (False, True):
        made, noise = curator(side=4, rows=(0, 1, 2, 3, 12))
        halves = made.cut(made.root(), x=[2])
        made.count(halves, NANO // 2)
        west, east = halves.nodes
        half = Cells(layer=0, nodes=np.array([west]), boxes=np.zeros((1, 4), np.int64))
        parts = made.cut(half, x=[1], y=[1])
        if altered:
            half.nodes[:] = east
        made.count(parts, NANO // 2)
        assert made.questions[1].boxes[0].tolist() == [0, 0, 1, 1]
        true.append(noise.draws[1].true.tolist())
    assert true[0] == true[1]


def test_a_shape_has_so_many_nodes_and_no_more(monkeypatch):
    for most, leaves in ((4, 1), (5, 4), (20, 4), (21, 16), (40, 16)):
        monkeypatch.setattr("psd.curator.path_charges.MAX_SHAPE_NODES", most)
        made, _ = curator(side=8, script=ALL)
        assert len(made.privtree_shape(made.root(), NANO, height=20)) == leaves
        assert (len(made.tree()), made.spent) == (leaves + leaves // 3, NANO)


class Rows:
    """Candidates are the rows of the lattice, scored by their records."""

    shape, is_monotone = (3,), True

    def sensitivity(self, contributions):
        return contributions

    def scores(self, tally, domain):
        return np.bincount(tally.rows, tally.counts, self.shape[0]).astype(np.int64)


def test_a_choice_is_charged_to_the_whole_domain_before_it_is_drawn():
    made, noise = curator(rows=(1, 1, 1), k=2)
    root = made.root()
    assert made.choose(root, Rows(), PermuteAndFlip, NANO // 2) in range(3)
    (question,) = made.questions
    assert (question.kind, question.boxes.tolist()) == ("choose", [[0, 0, 3, 3]])
    assert (question.loss.tolist(), made.spent) == ([NANO // 2], NANO // 2)
    [mechanism] = [draw.mechanism for draw in noise.draws]
    assert (mechanism.sensitivity, mechanism.is_monotone) == (2, True)
    with pytest.raises(BudgetError):
        made.choose(root, Rows(), PermuteAndFlip, NANO // 2 + 1)
    assert len(made.questions) == len(noise.draws) == 1
    made.choose(made.root(), Rows(), PermuteAndFlip, NANO // 2)  # the layers add up
    assert made.spent == NANO


class Bins(Rows):
    """Candidates are maps of one or two zones over the four lattice cells, with three prices."""

    shape = (4, 3)

    def scores(self, tally, domain):
        return np.arange(12).reshape(4, 3)


MAPS = {"zones": (1, 2), "layout": "halving-tree"}


def test_a_choice_is_drawn_by_what_the_caller_and_the_objective_say():
    made, noise = curator(side=2, rows=(0,), k=2)
    given = partial(PriceMaps, **MAPS)
    assert made.choose(made.root(), Bins(), given, NANO // 2).shape == (4, 2)
    [mechanism] = [draw.mechanism for draw in noise.draws]
    assert mechanism.scores.tolist() == np.arange(12).reshape(4, 3).tolist()
    assert (mechanism.zones, mechanism.layout) == (MAPS["zones"], MAPS["layout"])
    assert given.keywords == MAPS, "what the caller holds gets no score"
    assert (mechanism.epsilon, mechanism.sensitivity) == (NANO // 2, 2)
    assert mechanism.is_monotone is True


def test_a_choice_may_have_one_candidate_and_the_largest_sensitivity():
    made, noise = curator(rows=(0,))
    objective = Rows()
    objective.shape, objective.sensitivity = (1,), lambda k: MAX_SENSITIVITY
    objective.scores = Mock(return_value=np.array([1], np.int32))
    assert made.choose(made.root(), objective, PermuteAndFlip, NANO) == 0
    assert objective.scores.call_args.args[1] is made.domain
    assert noise.draws[0].mechanism.scores.dtype == np.int64


def test_a_choice_with_wrong_public_numbers_is_refused(subtests):
    for change, epsilon, words in (
        ({"shape": (0,)}, 1, "must have candidates"),
        ({"sensitivity": lambda k: 0}, 1, "sensitivity from 1"),
        ({"sensitivity": lambda k: 2**32 + 1}, 1, "sensitivity from 1"),
        ({}, 0, "above 0"),
    ):
        made, objective = curator()[0], Rows()
        vars(objective).update(change)
        with subtests.test(words), pytest.raises(ParameterError, match=words):
            made.choose(made.root(), objective, PermuteAndFlip, epsilon)
        assert made.spent == 0
    made, objective = curator()[0], Rows()
    with pytest.raises(ParameterError, match="root of a layer"):
        made.choose(made.cut(made.root(), x=[1]), objective, PermuteAndFlip, 1)
    in_rho = curator(epsilon=Loss.gaussian(NANO, Fraction(1, 10**6)))[0]
    with pytest.raises(ParameterError, match="paid in epsilon, got a budget in rho"):
        in_rho.choose(in_rho.root(), objective, PermuteAndFlip, 1)
    assert in_rho.spent == 0
    objective.scores = lambda tally, domain: np.array([len(tally.counts)])
    with pytest.raises(InternalError):  # it has no score for each candidate
        made.choose(made.root(), objective, PermuteAndFlip, NANO)


class Spy(PermuteAndFlip):
    """A mechanism of the caller, which could keep the scores."""


class Number(int):
    """A number with code of the caller."""


def test_no_function_of_the_caller_is_given_a_score(subtests):
    seen = []
    spies = {
        "Spy": Spy,
        "<lambda>": lambda **given: seen.append(given) or PermuteAndFlip(**given),
        "append": partial(seen.append),
        "LaplaceMechanism": LaplaceMechanism,  # over no scores
        "PriceMaps": partial(PriceMaps, **MAPS),  # over scores of two axes
    }
    names = ("scores", "epsilon", "sensitivity", "is_monotone", "other")
    cases = [(words, mechanism, Rows()) for words, mechanism in spies.items()]
    cases += [(f"got {name}", partial(PermuteAndFlip, **{name: 1}), Rows()) for name in names]
    cases += [
        ("got none", PriceMaps, Bins()),
        ("got layout", partial(PriceMaps, layout="runs"), Bins()),
        ("by name", partial(PriceMaps, np.zeros((4, 3)), **MAPS), Bins()),
        ("must be integers", partial(PriceMaps, zones=(1, Number(2)), layout="runs"), Bins()),
    ]
    for words, mechanism, objective in cases:
        made, noise = curator(side=2, rows=(0,))
        objective.scores = Mock(return_value=np.zeros(objective.shape))
        with subtests.test(words), pytest.raises(ParameterError, match=words):
            made.choose(made.root(), objective, mechanism, NANO)
        assert (made.spent, seen, noise.draws) == (0, [], [])
        assert not objective.scores.called


class Lie(np.ndarray):
    """Nodes that are others when they are asked."""

    def tolist(self):
        return [0]


class Name(str):
    """A name with code of the caller."""

    def __eq__(self, other):
        raise AssertionError("code of the caller runs")

    __hash__ = str.__hash__


class Layer:
    """A layer that is another one when it is asked again."""

    def __init__(self, *layers):
        self.layers = list(layers)

    def __ge__(self, other):
        return True

    __lt__ = __ge__

    def __index__(self):
        return self.layers.pop(0) if len(self.layers) > 1 else self.layers[0]


def test_a_choice_is_charged_to_the_cells_that_were_checked():
    """The records of the whole domain are scored, so all of it pays, whatever the caller does."""
    made, _ = curator(side=2, rows=(0,))
    children = made.cut(made.root(), x=[1], y=[1])
    lying = replace(children[1:2], nodes=children.nodes[1:2].view(Lie))
    with pytest.raises(ParameterError, match="root of a layer"):
        made.choose(lying, Rows(), PermuteAndFlip, NANO)
    assert made.spent == 0
    nodes, objective = np.zeros(1, np.int64), Rows()

    def sensitivity(contributions):
        nodes[0] = children.nodes[1]
        return contributions

    objective.sensitivity = sensitivity
    made.choose(replace(children[:1], nodes=nodes), objective, PermuteAndFlip, made.loss)
    with pytest.raises(BudgetError):
        made.count(children[:1], np.array([1]))


def test_cells_are_of_one_layer_from_the_check_to_the_draw():
    made, noise = curator(side=2, rows=(0,))
    first, second = made.root(), made.root()
    made.count(replace(first, layer=Layer(0, 1)), np.array([made.loss // 4]))
    (question,) = made.questions
    assert question.boxes.tolist() == [[0, 0, *made.domain.lattice]]
    assert [layer.charges.total > 0 for layer in made._layers] == [True, False]
    assert len(noise.draws) == 1
    assert second.layer == 1


class Nodes(Cells):
    """Cells that name other nodes when they are asked again."""

    answers = None

    @property
    def nodes(self):
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    @nodes.setter
    def nodes(self, value):
        """Set nothing."""


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_cut_is_of_the_cells_that_were_checked(times):
    """With the box of another node a part would have the records of cells that were not charged."""
    made, noise = curator(side=2, rows=(0, 1, 2, 3))
    leaves = made.cut(made.root(), x=[1], y=[1])
    made.count(leaves[1:], np.full(3, made.loss))
    lying = object.__new__(Nodes)
    object.__setattr__(lying, "layer", 0)
    object.__setattr__(lying, "answers", [leaves.nodes[:1]] * times + [np.zeros(1, np.int64)])
    parts = made.cut(lying, x=[1], y=[1])
    made.count(parts, np.full(len(parts), made.loss))
    assert parts.boxes.tolist() == leaves.boxes[:1].tolist()
    assert noise.draws[-1].true.tolist() == [1]


def test_neither_names_nor_the_table_of_mechanisms_take_code():
    made, _ = curator(side=2, rows=(0,))
    named = partial(PriceMaps, **{Name("zones"): (1, 2), "layout": "runs"})
    with pytest.raises(ParameterError, match="names of parameters"):
        made.choose(made.root(), Bins(), named, NANO)
    with pytest.raises(TypeError):
        mechanisms()["spy"] = Spy
    assert made.spent == 0


def test_what_changes_behind_the_curator_changes_no_choice():
    """The mechanism and what is said of the scores are read before the scores are made."""
    made, noise = curator(side=2, rows=(0,))
    given, objective = partial(PriceMaps, **MAPS), Bins()

    def scores(tally, domain):
        given.keywords["epsilon"] = 10 * NANO
        objective.is_monotone, objective.sensitivity = False, lambda contributions: 0
        return np.zeros((4, 3), np.int64)

    objective.scores = scores
    made.choose(made.root(), objective, given, NANO)
    [mechanism] = [draw.mechanism for draw in noise.draws]
    said = (mechanism.epsilon, mechanism.sensitivity, mechanism.is_monotone)
    assert said == (NANO, 1, True)
