"""The curator's shape: its rule, its limits, and what it does not do."""

from fractions import Fraction

import numpy as np
import pytest

import psd.curator.path_charges
from psd.curator.curator import Curator
from psd.curator.path_charges import split_rule
from psd.errors import BudgetError, ParameterError
from psd.mechanisms.certified_thresholds import exp_enclosure
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO
from psd.space.growing_tree import Cells
from psd.testing import SCRIPTS, RecordingSampler, small_domain, small_tally
from support.privacy.samplers import exceeds

ECHO, ALL, _ = SCRIPTS


def curator(side=8, rows=(), k=1, script=ALL, epsilon=NANO):
    budget, noise = Budget(epsilon), RecordingSampler(script)
    return Curator(small_tally(side, rows, k), small_domain(side), budget=budget, sampler=noise)


def asked_about(asked):
    """How many nodes drew at each level."""
    return [len(call.answer) for call in asked._sampler.draws]


def test_rule():
    for epsilon, k, delta in (
        *(("0.5", 1, 7), ("1", 1, 4), ("1.65", 1, 2)),
        *(("8", 1, 1), ("1000", 1, 1), ("1", 4, 13)),
    ):
        rule = split_rule(np.array([round(Fraction(epsilon) * NANO)]), k)
        scale = Fraction(rule.numerator, int(rule.denominator[0]))
        assert scale == Fraction(7 * k, 3) / Fraction(epsilon)
        assert rule.delta.tolist() == [delta]
    rule = split_rule(np.array([1, NANO, 1]), 4_000)
    assert rule.delta.tolist() == [12_938_747_370_453, 12_939, 12_938_747_370_453]
    assert split_rule(np.array([1_000 * NANO]), 10**9).numerator < 2**63
    above, unit = psd.curator.path_charges._LN_4, Fraction(1, 10**18)
    assert exp_enclosure(above.numerator, above.denominator, 128)[1] <= 2**126
    below = above - unit
    assert exp_enclosure(below.numerator, below.denominator, 128)[0] >= 2**126


def test_a_test_has_the_scale_and_the_cost_of_the_family_of_each_node():
    rule = split_rule(np.array([NANO, NANO // 2]), 1)
    counts, family = np.array([0, 3, 9, 9, 0, 3, 9]), np.array([0, 0, 0, 1, 1, 1, 1])
    assert rule.biased(counts, 0, family).tolist() == counts.tolist()
    assert rule.biased(counts, 1, family).tolist() == [-4, -1, 5, 2, -7, -4, 2]
    assert rule.biased(counts, 3, family).tolist() == [-4, -4, -3, -7, -7, -7, -7]
    test = rule.test(counts, 1, family)
    assert test.values.tolist() == rule.biased(counts, 1, family).tolist()
    assert test.numerator == rule.numerator
    assert test.denominator.tolist() == [3 * NANO] * 3 + [3 * NANO // 2] * 4
    assert test.cost.tolist() == [NANO] * 3 + [NANO // 2] * 4


def test_a_shape_is_charged_once_however_deep_and_empty_nodes_draw_like_others():
    for rows in ((), (0,) * 50):
        asked = curator(rows=rows)
        leaves = asked.privtree_shape(asked.root(), NANO // 2, height=20)
        assert (len(leaves), asked_about(asked)) == (64, [1, 4, 16])
        (question,) = asked.questions
        assert (question.kind, question.boxes.tolist()) == ("privtree_shape", [[0, 0, 8, 8]])
        assert asked.spent == NANO // 2
        asked.count(leaves, NANO // 2)
        assert asked.spent == NANO
    # Height and lattice end a shape.
    for height, leaves in ((0, 1), (1, 4), (2, 16), (30, 64)):
        asked = curator()
        assert len(asked.privtree_shape(asked.root(), NANO, height=height)) == leaves
    # Thin cells have two parts, and lattice cells none.
    for side, leaves, draws in ((3, 9, [1, 3]), (1, 1, [])):
        asked = curator(side=side)
        assert len(asked.privtree_shape(asked.root(), NANO, height=20)) == leaves
        assert (asked_about(asked), asked.spent) == (draws, NANO)


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
    assert not tree.loss.any()


def test_depth_counts_from_the_cells_that_were_asked():
    asked = curator(rows=(0, 63, 63))
    cells = asked.cut(asked.root(), x=[4], y=[4])
    asked.privtree_shape(cells[np.array([0, 3])], [NANO, NANO // 2], height=2)
    first, second = asked._sampler.draws
    assert first.true.tolist() == [1, 2]
    assert second.true.tolist() == [-3, -4, -4, -4, -7, -7, -7, -5]
    assert second.loss.tolist() == [3 * NANO] * 4 + [3 * NANO // 2] * 4
    assert asked.spent == NANO
    # No cells, no draw.
    asked = curator()
    none = asked.root()[np.zeros(0, np.int64)]
    assert len(asked.privtree_shape(none, NANO, height=3)) == 0
    assert exceeds(np.zeros(0, np.int64), 7, np.zeros(0, np.int64)).tolist() == []


def test_a_refused_shape_draws_and_cuts_nothing():
    asked = curator()
    root = asked.root()
    below = "height must be at least 0, got -1"
    for epsilon, height, words in (
        (0, 3, "epsilon"),
        (NANO + 1, 3, "asks for more than its budget"),
        (NANO, -1, below),
    ):
        with pytest.raises((BudgetError, ParameterError), match=words):
            asked.privtree_shape(root, epsilon, height=height)
        assert (asked.spent, asked_about(asked), len(asked.tree())) == (0, [], 1)
    asked.cut(root, x=[4])
    with pytest.raises(ParameterError, match="cut before"):
        asked.privtree_shape(root, NANO, height=3)
    assert asked.spent == 0


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
