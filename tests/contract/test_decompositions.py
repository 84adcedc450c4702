"""One suite for every registered decomposition; a new file is tested without touching this one."""

import dataclasses
import importlib

import numpy as np
import pandas as pd
import pytest

import psd
from psd.decompositions import method_class
from psd.privacy.loss import NANO
from psd.statistics.raster import density_raster
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


LATTICES = {
    "37 x 11": ((0, 0, 36, 10), "1"),
    "1 x 5": ((0, 0, 4, 40), "10"),
    "1 x 1": ((0, 0, 4, 4), "10"),
    "3,000,001 x 2": ((0, 0, 300, 0.0001), "0.0001"),
}


@pytest.mark.deep
@pytest.mark.parametrize("lattice", LATTICES)
@pytest.mark.parametrize("name", psd.methods())
def test_a_coordinate_resolution_of_any_lattice_is_built_and_no_cell_is_below_it(name, lattice):
    bounds, step = LATTICES[lattice]
    domain = psd.Domain(bounds=bounds, crs="EPSG:3857", coordinate_resolution=step)
    assert " x ".join(f"{size:,}" for size in domain.lattice) == lattice
    rng = np.random.default_rng(7)
    x, y = (domain.centres(axis, rng.integers(0, domain.lattice[axis], 300)) for axis in (0, 1))
    release = psd.build(
        pd.DataFrame({"x": x, "y": y}), domain=domain, epsilon=100, method=name, x="x", y="y"
    )
    assert release.query([bounds]).table.estimate[0] == pytest.approx(300, abs=3)
    middle = [(*bounds[:2], (bounds[0] + bounds[2]) / 2, bounds[3])]
    expected = (x < middle[0][2]).sum()
    if domain.lattice[0] < 100:  # every value is a cell at this epsilon
        assert release.query(middle).table.estimate[0] == pytest.approx(expected, abs=25)
    assert density_raster(release.index.fit, 3, 2).count.sum() == pytest.approx(
        release.total, abs=1e-6
    )


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


@pytest.mark.deep
@pytest.mark.parametrize("method", METHODS)
def test_a_release_is_built_saved_loaded_and_queried(method):
    check_release(method)
