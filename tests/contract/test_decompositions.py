"""One suite for every registered decomposition; a new file is tested without touching this one."""

import dataclasses
import importlib
import json

import numpy as np
import pytest

import psd
from psd._util.fields import declared, from_settings
from psd.decompositions import method_class
from psd.estimation.least_squares import infer
from psd.privacy.epsilon import NANO
from psd.space.box_tree import MAX_CHILDREN, check_tree
from psd.testing import (
    SCRIPTS,
    RecordingSampler,
    ReplayingSampler,
    compare_runs,
    run_method,
    small_domain,
    small_tally,
)
from support.hilbert_oracle import spent
from support.privacy.replay import small_cases

METHODS = small_cases()
ROWS = {
    "empty": (),
    "one point": (0,),
    "all in one place": (5,) * 1_000,
    "far corner": (63,) * 10,
    "spread": tuple(range(64)) * 3,
}


@pytest.mark.parametrize("name", psd.methods())
def test_file_registers_itself(name):
    kind = method_class(name)
    module = importlib.import_module(kind.__module__)
    assert module.method is kind
    assert (kind.name, module.__name__.rsplit(".", 1)[1].replace("_", "-")) == (name, name)
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen
    assert kind.__bases__ == (object,), "no inheritance between variants"


@pytest.mark.parametrize("name", psd.methods())
def test_docstring_has_guarantees_parameters_and_paper(name):
    kind = method_class(name)
    for section in ("Guarantees", "Parameters", "References", "Examples"):
        assert section in kind.__doc__
    for field in dataclasses.fields(kind):
        assert f"{field.name} : " in kind.__doc__
        assert field.metadata["doc"]
    assert "References" in importlib.import_module(kind.__module__).__doc__
    assert kind.paper


@pytest.mark.parametrize("method", METHODS)
def test_parameters_survive_the_release_file(method):
    stored = json.loads(json.dumps(dict(declared(method))))
    texts = {name: str(value) for name, value in stored.items() if value is not None}
    assert from_settings(type(method), texts) == method


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_tree_is_sound_for_any_data(method, rows, script):
    domain = small_domain(8)
    curator, tree = run_method(
        method, small_tally(8, ROWS[rows]), domain, NANO, RecordingSampler(script)
    )
    check_tree(tree, domain.lattice)
    assert tree.children.max() <= MAX_CHILDREN
    assert curator.spent == NANO >= tree.max_path_epsilon
    assert set(_spent_at_leaves(curator, tree)) == {NANO}
    estimates = infer(tree)
    for values in (estimates.signed, estimates.count):
        children = np.bincount(tree.parent[1:], values[1:], len(tree))
        assert np.allclose(children[~tree.is_leaf], values[~tree.is_leaf], atol=1e-6)
    assert (estimates.count >= 0).all()


def _spent_at_leaves(curator, tree):
    """Nano-epsilon of all questions about each leaf's first lattice cell."""
    x, y = tree.boxes[tree.is_leaf, :2].T
    return spent(curator.questions, 8)[x, y].tolist()


@pytest.mark.parametrize("method", METHODS)
def test_same_answers_same_tree(method):
    domain, tally = small_domain(8), small_tally(8, ROWS["spread"])
    recorder = RecordingSampler(SCRIPTS[2])
    first = run_method(method, tally, domain, NANO, recorder)
    compare_runs(first, run_method(method, tally, domain, NANO, ReplayingSampler(recorder.draws)))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("side", [1, 2, 3, 7])
@pytest.mark.parametrize("epsilon", [2, 1_000, NANO, 1_000 * NANO])
def test_any_lattice_and_any_epsilon(method, side, epsilon):
    curator, tree = run_method(
        method, small_tally(side, (0,)), small_domain(side), epsilon, RecordingSampler()
    )
    check_tree(tree, (side, side))
    assert curator.spent == epsilon


@pytest.mark.parametrize("method", METHODS)
def test_counts_are_those_of_the_boxes(method):
    """With noise that adds nothing, each measured count is the number of points in its box."""
    side = 8
    rows = np.random.default_rng(7).integers(0, side * side, 200)
    _, tree = run_method(
        method, small_tally(side, tuple(rows)), small_domain(side), NANO, RecordingSampler()
    )
    x, y = rows % side, rows // side
    x0, y0, x1, y1 = tree.boxes[tree.epsilon > 0].T[:, :, None]
    true = ((x >= x0) & (x < x1) & (y >= y0) & (y < y1)).sum(axis=1)
    assert tree.count[tree.epsilon > 0].tolist() == true.tolist()
