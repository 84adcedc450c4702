"""Choices of view: checked, given by the method or by the caller, and without effect on counts."""

from dataclasses import FrozenInstanceError, asdict

import numpy as np
import pandas as pd
import pytest

import psd
from psd.errors import ParameterError
from psd.publish.public_inputs import default_view, view_with
from psd.release.post_processing import ESTIMATES, View
from support.releases import changed
from support.trees import random_tree, release_of

DOMAIN = psd.Domain(bounds=(0, 0, 64, 64), crs="EPSG:3857", lattice=(64, 64))


def test_nothing_is_chosen_unless_told():
    assert asdict(View()) == {"estimate": "least-squares", "density": "uniform", "prune": 0}


def test_a_view_is_not_changed():
    with pytest.raises(FrozenInstanceError):
        View().estimate = "posterior"


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ({"estimate": "mean"}, "estimate 'mean' is none of least-squares, posterior, signed"),
        ({"estimate": None}, "estimate 'None' is none of"),
        ({"estimate": ["posterior"]}, "estimate .* is none of"),
        ({"density": "posterior"}, "density 'posterior' is none of uniform, smooth"),
        ({"prune": -1}, "prune '-1' is not a whole number"),
        ({"prune": 1.5}, "prune '1.5'"),
        ({"prune": True}, "prune 'True'"),
        ({"prune": "3"}, "prune '3'"),
        ({"prune": 2**53}, "prune '9007199254740992'"),
    ],
)
def test_other_choices_are_refused(choice, says):
    with pytest.raises(ParameterError, match=says):
        View(**choice)


@pytest.mark.parametrize("name", psd.methods())
def test_every_method_wants_some_view(name):
    assert isinstance(default_view(psd.method(name)), View)


def test_the_caller_chooses_over_the_method():
    cascade, quadtree = psd.method("cascade"), psd.method("quadtree")
    own = default_view(cascade)
    assert own != View()
    assert view_with(cascade, estimate=None, density=None) == own
    assert view_with(cascade, estimate="least-squares", density=None).density == own.density
    assert view_with(quadtree, estimate=None, density="smooth") == View(density="smooth")
    with pytest.raises(ParameterError, match="estimate"):
        view_with(quadtree, estimate="mean", density=None)


@pytest.mark.parametrize("method", ["quadtree", "cascade"])
@pytest.mark.parametrize(("estimate", "density"), [(None, None), ("posterior", "uniform")])
def test_a_build_carries_the_view_that_was_asked_for(method, estimate, density):
    rows = pd.DataFrame({"lon": [1.5, 9.0, 9.5], "lat": [2.0, 40.0, 41.0]})
    made = psd.build(
        rows, domain=DOMAIN, epsilon=1, method=method, estimate=estimate, density=density
    )
    assert made.view == view_with(psd.method(method), estimate=estimate, density=density)


@pytest.mark.parametrize("choice", [{"estimate": "mean"}, {"density": "rough"}])
def test_a_wrong_view_is_refused_before_anything_is_read(choice):
    with pytest.raises(ParameterError, match="is none of"):
        psd.build("missing.csv", domain=DOMAIN, epsilon=1, **choice)


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("density", ["uniform", "smooth"])
@pytest.mark.parametrize("prune", [0, 20])
def test_another_view_of_a_release_keeps_everything_but_the_answers(estimate, density, prune):
    first = release_of(random_tree(np.random.default_rng(5), top=60))
    # Computed once, and not taken along.
    _ = first.estimates, first.model.density, first.model.overdispersion_by_level
    view = View(estimate=estimate, density=density, prune=prune)
    other = changed(first, view=view)
    assert other.tree is first.tree
    assert (other.view, first.view) == (view, View())
    assert (other.epsilon, other.total) == (first.epsilon, first.total)
    assert np.array_equal(other.estimates.signed, first.estimates.signed)
    assert np.array_equal(other.estimates.variance, first.estimates.variance)
    assert (other.model.density is None) == (density == "uniform")
    box = [(3.3, 2.2, 31.0, 50.7)]
    same = other.query(box).estimate[0] == first.query(box).estimate[0]
    assert same == (view == View())
    assert other.with_view(View()).query(box).equals(first.query(box))
