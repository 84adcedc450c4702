"""The cascade: what is refused, heights, extremes of epsilon, roughness, users, and defaults."""

from decimal import Decimal

import numpy as np
import pytest

from psd.decompositions import cascade
from psd.decompositions._constants import CASCADE_MAX_ROUGHNESS
from psd.decompositions.cascade import Cascade
from psd.errors import ParameterError
from psd.privacy.loss import NANO
from psd.testing import SCRIPTS, RecordingSampler, Script, run_method, small_domain, small_tally
from support.noise import noise_variance

MANY = Script("many", lambda step, true: true + 10_000, lambda step, scores: 0)


def built(method, *, side=16, rows=(), epsilon=NANO, k=1, script=SCRIPTS[0]):
    tally = small_tally(side, rows, k)
    return run_method(method, tally, small_domain(side), epsilon, RecordingSampler(script))


def paths(tree):
    """Nano-epsilon from the root to each leaf."""
    spent = tree.loss.copy()
    for level in tree.levels[1:]:
        spent[level] += spent[tree.parent[level]]
    return set(spent[tree.is_leaf].tolist())


def test_settings_out_of_range_are_refused():
    for name, values in {
        "signal": (0, 1_000_001),
        "height": (-1, 21),
        "step_share": (Decimal(1),),
        "total_share": (Decimal(1), Decimal(0)),
    }.items():
        for value in values:
            with pytest.raises(ParameterError, match=name):
                Cascade(**{name: value})


@pytest.mark.parametrize("epsilon", [1, 2, 3, 10, 49, 50, 1000 * NANO])
@pytest.mark.parametrize("script", [*SCRIPTS, MANY], ids=lambda script: script.name)
def test_every_path_spends_all_even_where_shares_are_nothing(epsilon, script):
    curator, tree = built(Cascade(), epsilon=epsilon, rows=(0, 5, 5), script=script)
    assert curator.spent == epsilon
    assert paths(tree) == {epsilon}


@pytest.mark.parametrize("rows", [(), (0,) * 5_000])
@pytest.mark.parametrize("side", [1, 2, 7])
def test_empty_and_crowded_data_on_any_lattice(rows, side):
    _, tree = built(Cascade(signal=1), side=side, rows=rows)
    assert paths(tree) == {NANO}


@pytest.mark.parametrize("height", range(7))
def test_the_height_is_kept(height):
    # A node that is its own last tier has one child, a cell of the same size.
    _, tree = built(Cascade(signal=1, height=height), side=64, script=MANY, epsilon=9 * NANO)
    boxes = tree.boxes
    assert (boxes[:, 2] - boxes[:, 0]).min() == 64 >> height
    assert paths(tree) == {9 * NANO}


def test_nobody_is_sixteen_cells_below_the_total():
    _, tree = built(Cascade())
    assert len(tree) == 1 + 4 + 16
    assert tree.loss.tolist() == [NANO // 50, *[0] * 4, *[NANO - NANO // 50] * 16]


def test_without_a_share_for_steps_there_is_one_tier_below_the_total():
    curator, _ = built(Cascade(signal=1, step_share=Decimal(0)), side=64, script=MANY)
    assert len([q for q in curator.questions if len(q.loss)]) == 2


def test_tiers_are_disjoint_and_levels_between_them_are_free():
    curator, tree = built(Cascade(signal=1), side=64, script=MANY)
    depths = sorted(set(tree.level[tree.loss > 0].tolist()))
    assert len(depths) > 2
    assert (tree.loss[np.isin(tree.level, depths, invert=True)] == 0).all()
    assert curator.spent == NANO


def test_more_rows_of_a_user_are_a_smaller_epsilon():
    rows = tuple(np.random.default_rng(2).integers(0, 256, 100))
    _, one = built(Cascade(signal=1), rows=rows, epsilon=NANO)
    _, four = built(Cascade(signal=1), rows=rows, epsilon=4 * NANO, k=4)
    _, loud = built(Cascade(signal=1), rows=rows, epsilon=4 * NANO)
    assert np.array_equal(one.boxes, four.boxes)
    assert len(loud) > len(four)


@pytest.mark.parametrize("k", [1, 5])
def test_roughness_is_between_its_limits(k):
    rng = np.random.default_rng(k)
    counts = rng.integers(-50, 10_000, 400) * rng.integers(0, 2, 400)
    owner, nano = np.repeat(np.arange(100), 4), np.full(400, NANO // 3)
    factor = cascade.family_roughness(counts, owner, noise_variance(nano, k), np.ones(400))
    assert factor.min() == 1 / CASCADE_MAX_ROUGHNESS
    assert factor.max() <= CASCADE_MAX_ROUGHNESS
    assert (factor.reshape(100, 4) == factor.reshape(100, 4)[:, :1]).all()


def test_roughness_of_families():
    for counts, factor in (
        ([100, 100, 100, 100], CASCADE_MAX_ROUGHNESS),  # even: larger cells
        ([4000, 0, 0, 0], 1 / CASCADE_MAX_ROUGHNESS),  # all in one: smaller cells
        ([-5, 3, 1, 1], 1.0),  # no mean to speak of
        ([-5, 3, 1, 0], 1.0),  # negative mean
        ([70], 1.0),  # no siblings
    ):
        owner, size = np.zeros(len(counts), np.int64), len(counts)
        noise = noise_variance(np.full(size, NANO), 1)
        found = cascade.family_roughness(np.array(counts), owner, noise, np.ones(size))
        assert found.tolist() == [factor] * size
