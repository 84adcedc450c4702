"""Choices of view: checked, given by the method or by the caller, and without effect on counts."""

from dataclasses import FrozenInstanceError, asdict

import numpy as np
import pandas as pd
import pytest

import psd
from psd.errors import ParameterError
from psd.publish.public_inputs import default_post_processing, resolve_post_processing
from psd.release.post_processing import ESTIMATES, PostProcessing
from support.releases import changed
from support.trees import random_tree, release_of

DOMAIN = psd.Domain(bounds=(0, 0, 64, 64), crs="EPSG:3857", lattice=(64, 64))


def test_nothing_is_chosen_unless_told():
    assert asdict(PostProcessing()) == {
        "estimate": "least-squares",
        "density": "uniform",
        "prune": 0,
    }


def test_a_view_is_not_changed():
    with pytest.raises(FrozenInstanceError):
        PostProcessing().estimate = "posterior"


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        (
            {"estimate": "mean"},
            "estimate must be one of least-squares, posterior, signed, integer, got 'mean'",
        ),
        ({"estimate": None}, "estimate must be one of .*, got 'None'"),
        ({"estimate": ["posterior"]}, "estimate must be one of"),
        (
            {"density": "posterior"},
            "density must be one of uniform, smooth, covariate, got 'posterior'",
        ),
        ({"prune": -1}, "prune must be an integer of at least 0, got '-1'"),
        ({"prune": 1.5}, "prune must be .* got '1.5'"),
        ({"prune": True}, "prune must be .* got 'True'"),
        ({"prune": "3"}, "prune must be .* got '3'"),
        ({"prune": 2**53}, "prune must be .* got '9007199254740992'"),
    ],
)
def test_other_choices_are_refused(choice, says):
    with pytest.raises(ParameterError, match=says):
        PostProcessing(**choice)


@pytest.mark.parametrize("name", psd.methods())
def test_every_method_wants_some_view(name):
    assert isinstance(default_post_processing(psd.method(name)), PostProcessing)


def test_the_caller_chooses_over_the_method():
    cascade, quadtree = psd.method("cascade"), psd.method("quadtree")
    own = default_post_processing(cascade)
    assert own != PostProcessing()
    assert resolve_post_processing(cascade, estimate=None, density=None) == own
    assert (
        resolve_post_processing(cascade, estimate="least-squares", density=None).density
        == own.density
    )
    assert resolve_post_processing(quadtree, estimate=None, density="smooth") == PostProcessing(
        density="smooth"
    )
    with pytest.raises(ParameterError, match="estimate"):
        resolve_post_processing(quadtree, estimate="mean", density=None)


@pytest.mark.parametrize("method", ["quadtree", "cascade"])
@pytest.mark.parametrize(("estimate", "density"), [(None, None), ("posterior", "uniform")])
def test_a_build_carries_the_view_that_was_asked_for(method, estimate, density):
    rows = pd.DataFrame({"lon": [1.5, 9.0, 9.5], "lat": [2.0, 40.0, 41.0]})
    made = psd.build(
        rows, domain=DOMAIN, epsilon=1, method=method, estimate=estimate, density=density
    )
    assert made.post_processing == resolve_post_processing(
        psd.method(method), estimate=estimate, density=density
    )


@pytest.mark.parametrize("choice", [{"estimate": "mean"}, {"density": "rough"}])
def test_a_wrong_view_is_refused_before_anything_is_read(choice):
    with pytest.raises(ParameterError, match="must be one of"):
        psd.build("missing.csv", domain=DOMAIN, epsilon=1, **choice)


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("density", ["uniform", "smooth"])
@pytest.mark.parametrize("prune", [0, 20])
def test_another_view_of_a_release_keeps_everything_but_the_answers(estimate, density, prune):
    first = release_of(random_tree(np.random.default_rng(5), top=60))
    # Computed once, and not taken along.
    _ = first.estimates, first.model.density, first.model.unevenness
    view = PostProcessing(estimate=estimate, density=density, prune=prune)
    other = changed(first, post_processing=view)
    assert other.tree is first.tree
    assert (other.post_processing, first.post_processing) == (view, PostProcessing())
    assert (other.epsilon, other.total) == (first.epsilon, first.total)
    assert np.array_equal(other.estimates.signed, first.estimates.signed)
    assert np.array_equal(other.estimates.variance, first.estimates.variance)
    assert (other.model.density is None) == (density == "uniform")
    box = [(3.3, 2.2, 31.0, 50.7)]
    same = other.query(box).estimate[0] == first.query(box).estimate[0]
    assert same == (view == PostProcessing())
    assert other.with_post_processing(PostProcessing()).query(box).equals(first.query(box))
