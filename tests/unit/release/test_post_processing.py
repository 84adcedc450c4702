"""Choices of view: checked, given by the method or by the caller, and without effect on counts."""

from dataclasses import FrozenInstanceError, asdict
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest

import psd
from psd.errors import ParameterError
from psd.publish.public_inputs import default_post_processing, resolve_post_processing
from psd.release.post_processing import ESTIMATES, PostProcessing
from support.releases import changed
from support.tables import refused
from support.trees import random_tree, release_of

DOMAIN = psd.Domain(bounds=(0, 0, 64, 64), crs="EPSG:3857", lattice=(64, 64))


def test_nothing_is_chosen_unless_told_and_other_choices_are_refused(subtests):
    view = PostProcessing()
    assert asdict(view) == {"estimate": "least-squares", "density": "uniform", "prune": 0}
    with pytest.raises(FrozenInstanceError):
        view.estimate = "posterior"
    estimates, densities = "least-squares, posterior, signed, integer", "uniform, smooth, covariate"
    table = [
        (f"estimate must be one of {estimates}, got 'mean'", {"estimate": "mean"}),
        ("estimate must be one of .*, got 'None'", {"estimate": None}),
        ("estimate must be one of", {"estimate": ["posterior"]}),
        (f"density must be one of {densities}, got 'posterior'", {"density": "posterior"}),
        ("prune must be an integer of at least 0, got '-1'", {"prune": -1}),
        ("prune must be .* got '1.5'", {"prune": 1.5}),
        ("prune must be .* got 'True'", {"prune": True}),
        ("prune must be .* got '3'", {"prune": "3"}),
        ("prune must be .* got '9007199254740992'", {"prune": 2**53}),
    ]
    refused(subtests, ParameterError, table, lambda choice: PostProcessing(**choice))
    # Before anything is read.
    build = partial(psd.build, "missing.csv", domain=DOMAIN, epsilon=1)
    table = [("must be one of", {"estimate": "mean"}, {"density": "rough"})]
    refused(subtests, ParameterError, table, lambda choice: build(**choice))


def test_the_caller_chooses_over_the_method():
    for name in psd.methods():
        assert isinstance(default_post_processing(psd.decompositions.method(name)), PostProcessing)
    cascade, quadtree = psd.decompositions.method("cascade"), psd.decompositions.method("quadtree")
    own = default_post_processing(cascade)
    assert own != PostProcessing()
    assert resolve_post_processing(cascade, estimate=None, density=None) == own
    chosen = resolve_post_processing(cascade, estimate="least-squares", density=None)
    assert chosen.density == own.density
    chosen = resolve_post_processing(quadtree, estimate=None, density="smooth")
    assert chosen == PostProcessing(density="smooth")
    with pytest.raises(ParameterError, match="estimate"):
        resolve_post_processing(quadtree, estimate="mean", density=None)


def test_a_build_carries_the_view_that_was_asked_for(subtests):
    rows = pd.DataFrame({"lon": [1.5, 9.0, 9.5], "lat": [2.0, 40.0, 41.0]})
    views = {"estimate": None, "density": None}, {"estimate": "posterior", "density": "uniform"}
    for name, view in product(["quadtree", "cascade"], views):
        made = psd.build(rows, domain=DOMAIN, epsilon=1, method=name, **view)
        with subtests.test(name, view=view):
            assert made.record.post_processing == resolve_post_processing(
                psd.decompositions.method(name), **view
            )


@pytest.mark.deep
def test_another_view_of_a_release_keeps_everything_but_the_answers(subtests):
    first = release_of(random_tree(np.random.default_rng(5), top=60))
    # Computed once, and not taken along.
    _ = first.index.fit.estimates, first.index.fit.density, first.index.fit.dispersion
    box = [(3.3, 2.2, 31.0, 50.7)]
    for estimate, density, prune in product(ESTIMATES, ["uniform", "smooth"], [0, 20]):
        view = PostProcessing(estimate=estimate, density=density, prune=prune)
        other = changed(first, post_processing=view)
        with subtests.test(view=view):
            assert other.tree is first.tree
            assert (other.record.post_processing, first.record.post_processing) == (
                view,
                PostProcessing(),
            )
            assert (other.epsilon, other.total) == (first.epsilon, first.total)
            assert np.array_equal(
                other.index.fit.estimates.signed, first.index.fit.estimates.signed
            )
            assert np.array_equal(
                other.index.fit.estimates.variance, first.index.fit.estimates.variance
            )
            assert (other.index.fit.density is None) == (density == "uniform")
            same = other.query(box).table.estimate[0] == first.query(box).table.estimate[0]
            assert same == (view == PostProcessing())
            again = other.replace(post_processing=PostProcessing())
            assert again.query(box).table.equals(first.query(box).table)
