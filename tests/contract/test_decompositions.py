"""One suite for every registered decomposition; a new file is tested without touching this one."""

import dataclasses
import importlib

import pytest

import psd
from psd.decompositions import method_class
from psd.privacy.epsilon import NANO
from psd.testing import SCRIPTS
from psd.testing.method import (
    DATA_SETS,
    check_any_lattice_and_epsilon,
    check_counts,
    check_form,
    check_parameters_survive,
    check_release,
    check_replay,
    check_tree_is_sound,
)
from support.hilbert_oracle import spent
from support.privacy.replay import small_cases

METHODS = small_cases()


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
def test_it_has_the_form_of_a_method(method):
    check_form(method)
    check_parameters_survive(method)


@pytest.mark.parametrize("rows", DATA_SETS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_tree_is_sound_for_any_data(method, rows, script):
    curator, tree = check_tree_is_sound(method, DATA_SETS[rows], script)
    x, y = tree.boxes[tree.is_leaf, :2].T
    assert set(spent(curator.questions, 8)[x, y].tolist()) == {NANO}


@pytest.mark.parametrize("method", METHODS)
def test_same_answers_same_tree(method):
    check_replay(method)


@pytest.mark.parametrize("method", METHODS)
def test_any_lattice_and_any_epsilon(method):
    check_any_lattice_and_epsilon(method)


@pytest.mark.parametrize("method", METHODS)
def test_counts_are_those_of_the_boxes(method):
    check_counts(method)


@pytest.mark.parametrize("method", METHODS)
def test_a_release_is_built_saved_loaded_and_queried(method):
    check_release(method)
