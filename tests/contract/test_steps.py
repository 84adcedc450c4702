"""Lattice cells that a method never divides may be counted together: the answers are the same."""

import numpy as np
import pytest

import psd
from psd.decompositions import Grid, Quadtree, method, methods
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from psd.privacy.budget import Budget
from psd.privacy.unit import PrivacyUnit
from psd.publish.counting import coarsest_step
from psd.publish.drawing import draw_release
from support.privacy.samplers import ExactSampler

DOMAIN = psd.Domain(bounds=(0, 0, 16, 16), crs="EPSG:3857", lattice=(96, 64))
NAMED = [
    *(Quadtree(height=3), Quadtree(height=5, budget="leaf"), Quadtree(height=7)),
    *(Grid(size=8), Grid(size=32), Grid(size=5)),
]


def batches():
    random = np.random.default_rng(3)
    x, y = random.gamma(2, 2, (2, 3_000)) % 16
    yield Batch(x=x, y=y)


def answers(method, step):
    counts = tally_batches(batches(), DOMAIN, step=step)
    how = {"budget": Budget(10**9), "unit": PrivacyUnit(), "sampler": ExactSampler()}
    return draw_release(counts, DOMAIN, method=method, **how).tree


@pytest.mark.parametrize("method", NAMED, ids=repr)
def test_the_tree_is_the_same(method):
    step = coarsest_step(method, DOMAIN)
    coarse, fine = answers(method, step), answers(method, (1, 1))
    np.testing.assert_array_equal(coarse.boxes, fine.boxes)
    np.testing.assert_array_equal(coarse.count, fine.count)


def test_steps_follow_from_the_parameters():
    assert coarsest_step(Quadtree(height=3), DOMAIN) == (12, 8)
    assert coarsest_step(Quadtree(height=7), DOMAIN) == (1, 1)
    assert coarsest_step(Grid(size=32), DOMAIN) == (3, 2)
    assert coarsest_step(Grid(size=5), DOMAIN) == (1, 1)
    assert coarsest_step(Quadtree(height=10), psd.Domain(bounds=(0, 0, 1, 1))) == (1024, 1024)
    # Methods that look at the data name none.
    others = {*methods()} - {"quadtree", "grid"}
    assert {coarsest_step(method(name), DOMAIN) for name in others} == {(1, 1)}


def test_too_coarse_a_step_is_noticed():
    method = Quadtree(height=5)
    coarse, fine = answers(method, (6, 4)), answers(method, (1, 1))
    assert (coarse.count != fine.count).any()
