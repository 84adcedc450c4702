"""The curator's shape: its rule, its limits, and what it does not do."""

from fractions import Fraction

import numpy as np
import pytest

import psd.curator.privtree_split
from psd.curator.curator import Curator
from psd.curator.privtree_split import split_rule
from psd.errors import BudgetError, ParameterError
from psd.mechanisms.certified_thresholds import exp_enclosure
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.epsilon import NANO
from psd.space.growing_tree import Cells
from psd.testing import SCRIPTS, RecordingSampler, small_domain, small_tally
from support.privacy.samplers import exceeds

ECHO, ALL, _ = SCRIPTS


def curator(side=8, rows=(), k=1, script=ALL, epsilon=NANO):
    noise = RecordingSampler(script)
    return Curator(
        small_tally(side, rows, k), small_domain(side), budget=Budget(epsilon), sampler=noise
    )


def asked_about(asked):
    """How many nodes drew at each level."""
    return [len(call.answer) for call in asked._sampler.draws]


@pytest.mark.parametrize(
    ("epsilon", "k", "delta"),
    [("0.5", 1, 7), ("1", 1, 4), ("1.65", 1, 2), ("8", 1, 1), ("1000", 1, 1), ("1", 4, 13)],
)
def test_rule(epsilon, k, delta):
    rule = split_rule(np.array([round(Fraction(epsilon) * NANO)]), k)
    assert Fraction(rule.numerator, int(rule.denominator[0])) == Fraction(7 * k, 3) / Fraction(
        epsilon
    )
    assert rule.delta.tolist() == [delta]


def test_bound_of_ln_4():
    above, unit = psd.curator.privtree_split._LN_4, Fraction(1, 10**18)
    assert exp_enclosure(above.numerator, above.denominator, 128)[1] <= 2**126
    below = above - unit
    assert exp_enclosure(below.numerator, below.denominator, 128)[0] >= 2**126


def test_rule_of_extremes():
    rule = split_rule(np.array([1, NANO, 1]), 4_000)
    assert rule.delta.tolist() == [12_938_747_370_453, 12_939, 12_938_747_370_453]
    assert split_rule(np.array([1_000 * NANO]), 10**9).numerator < 2**63


def test_biased_counts():
    rule = split_rule(np.array([NANO, NANO // 2]), 1)
    counts, family = np.array([0, 3, 9, 9, 0, 3, 9]), np.array([0, 0, 0, 1, 1, 1, 1])
    assert rule.biased(counts, 0, family).tolist() == counts.tolist()
    assert rule.biased(counts, 1, family).tolist() == [-4, -1, 5, 2, -7, -4, 2]
    assert rule.biased(counts, 3, family).tolist() == [-4, -4, -3, -7, -7, -7, -7]


def test_a_test_has_the_scale_and_the_cost_of_the_family_of_each_node():
    rule = split_rule(np.array([NANO, NANO // 2]), 1)
    counts, family = np.array([9, 0, 3]), np.array([1, 0, 1])
    test = rule.test(counts, 1, family)
    assert test.values.tolist() == rule.biased(counts, 1, family).tolist()
    assert test.numerator == rule.numerator
    assert test.denominator.tolist() == [3 * NANO // 2, 3 * NANO, 3 * NANO // 2]
    assert test.cost.tolist() == [NANO // 2, NANO, NANO // 2]


def test_a_shape_is_charged_once_however_deep():
    asked = curator()
    leaves = asked.privtree_shape(asked.root(), NANO // 2, height=20)
    assert (len(leaves), asked_about(asked)) == (64, [1, 4, 16])
    assert (asked.spent, len(asked.questions)) == (NANO // 2, 1)
    assert (asked.questions[0].kind, asked.questions[0].boxes.tolist()) == (
        "privtree_shape",
        [[0, 0, 8, 8]],
    )
    asked.count(leaves, NANO // 2)
    assert asked.spent == NANO


def test_the_answer_is_the_shape_alone():
    asked = curator(rows=(0,) * 50, script=ECHO)
    leaves = asked.privtree_shape(asked.root(), NANO, height=2)
    assert type(leaves) is Cells
    assert leaves.boxes.tolist() == [
        [4, 0, 8, 4], [0, 4, 4, 8], [4, 4, 8, 8],
        [0, 0, 2, 2], [2, 0, 4, 2], [0, 2, 2, 4], [2, 2, 4, 4],
    ]  # fmt: skip
    tree = asked.tree()
    assert not tree.count.any()
    assert not tree.epsilon.any()


def test_empty_nodes_draw_like_others():
    asked = curator(rows=(0,) * 50)
    asked.privtree_shape(asked.root(), NANO, height=20)
    assert asked_about(asked) == [1, 4, 16]


@pytest.mark.parametrize(("height", "leaves"), [(0, 1), (1, 4), (2, 16), (30, 64)])
def test_height(height, leaves):
    asked = curator()
    assert len(asked.privtree_shape(asked.root(), NANO, height=height)) == leaves


def test_thin_cells_have_two_parts_and_lattice_cells_none():
    asked = curator(side=3)
    leaves = asked.privtree_shape(asked.root(), NANO, height=20)
    assert (len(leaves), asked_about(asked)) == (9, [1, 3])
    single = curator(side=1)
    assert len(single.privtree_shape(single.root(), NANO, height=20)) == 1
    assert (asked_about(single), single.spent) == ([], NANO)


def test_depth_counts_from_the_cells_that_were_asked():
    asked = curator(rows=(0, 63, 63))
    cells = asked.cut(asked.root(), x=[4], y=[4])
    asked.privtree_shape(cells[np.array([0, 3])], [NANO, NANO // 2], height=2)
    first, second = asked._sampler.draws
    assert first.true.tolist() == [1, 2]
    assert second.true.tolist() == [-3, -4, -4, -4, -7, -7, -7, -5]
    assert second.epsilon.tolist() == [3 * NANO] * 4 + [3 * NANO // 2] * 4
    assert asked.spent == NANO


def test_too_many_nodes_end_the_shape_at_a_level(monkeypatch):
    monkeypatch.setattr(psd.curator.privtree_split, "MAX_SHAPE_NODES", 40)
    asked = curator()
    leaves = asked.privtree_shape(asked.root(), NANO, height=20)
    assert (len(leaves), len(asked.tree()), asked.spent) == (16, 21, NANO)


@pytest.mark.parametrize("epsilon", [0, NANO + 1])
def test_a_refused_shape_draws_and_cuts_nothing(epsilon):
    asked = curator()
    with pytest.raises((BudgetError, ParameterError)):
        asked.privtree_shape(asked.root(), epsilon, height=3)
    assert (asked.spent, asked_about(asked), len(asked.tree())) == (0, [], 1)


def test_cells_that_were_cut_and_heights_below_0_are_refused():
    asked = curator()
    root = asked.root()
    with pytest.raises(ParameterError, match="height must be at least 0, got -1"):
        asked.privtree_shape(root, NANO, height=-1)
    asked.cut(root, x=[4])
    with pytest.raises(ParameterError, match="cut before"):
        asked.privtree_shape(root, NANO, height=3)
    assert asked.spent == 0


def test_no_cells_no_draw():
    asked = curator()
    none = asked.root()[np.zeros(0, np.int64)]
    assert len(asked.privtree_shape(none, NANO, height=3)) == 0
    assert exceeds(np.zeros(0, np.int64), 7, np.zeros(0, np.int64)).tolist() == []


@pytest.mark.parametrize("epsilon", [1, NANO // 1_000, 1_000 * NANO])
def test_any_epsilon_ends(epsilon):
    """At the floor a node has half a child on average; the scale may be as large as it likes."""
    noise = SecureSampler()
    asked = Curator(
        small_tally(1024, (0,), 4_000), small_domain(1024), budget=Budget(epsilon), sampler=noise
    )
    leaves = asked.privtree_shape(asked.root(), epsilon, height=20)
    area = np.diff(leaves.boxes[:, [0, 2]]) * np.diff(leaves.boxes[:, [1, 3]])
    assert area.sum() == 1024 * 1024
