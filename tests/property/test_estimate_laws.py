"""Laws of estimates, kept by every engine: additive, monotone, whole at the root."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import psd
from psd.query import boxes as engine
from psd.query.compiled_walk import walk_query_totals, walk_value_totals
from psd.query.traversal import traverse, weighted_total
from psd.release.post_processing import PostProcessing
from support.releases import changed
from support.trees import domain_of, random_tree, release_of

pytestmark = pytest.mark.deep

SIDE = 16


def random_release(seed, density):
    tree = random_tree(np.random.default_rng(seed), lattice=(SIDE, SIDE), height=4, top=1000)
    return changed(release_of(tree), post_processing=PostProcessing(density=density))


def grid_release(size, density):
    domain, counts = domain_of((SIDE, SIDE)), np.random.default_rng(size).integers(0, 99, size**2)
    made = psd.Release.from_counts(psd.grid_tree(domain, size), counts, 1.0, domain=domain)
    return changed(made, post_processing=PostProcessing(density=density))


RELEASES = [
    make(number, density)
    for density in ("uniform", "smooth")
    for make, number in ((random_release, 1), (random_release, 2), (grid_release, 5))
]


ENGINES = {
    "numpy": lambda release, boxes: weighted_total(
        traverse(release.tree, len(boxes), engine.box_fraction(release.model, boxes)),
        release.estimates.count,
    ),
    "compiled": lambda release, boxes: walk_value_totals(
        release.index.flat_tree, release.estimates.count, boxes
    ),
    "compiled with errors": lambda release, boxes: (
        walk_query_totals(release.index.flat_tree, release.estimates.count, boxes).estimate
    ),
    "as asked": psd.Release.estimate,
    "query": lambda release, boxes: release.query(boxes).estimate.to_numpy(),
}
EACH_ENGINE = pytest.mark.parametrize("ask", ENGINES.values(), ids=ENGINES)
numbers = st.one_of(
    st.integers(0, SIDE).map(float), st.floats(0, SIDE, allow_subnormal=False, width=32)
)


@st.composite
def lines(draw, size):
    """Different coordinates in their order, at least a thousandth apart and inside the domain."""
    values = sorted(draw(st.lists(numbers, min_size=size, max_size=size)))
    spaced = np.array(values) * (1 - 2e-3 * size / SIDE) + 1e-3 * np.arange(size)
    return spaced.tolist()


law = settings(derandomize=True, max_examples=150, deadline=None)
releases = st.sampled_from(RELEASES)


@EACH_ENGINE
@law
@given(releases, lines(3), lines(3))
def test_the_parts_of_a_box_add_up_to_it(ask, release, x, y):
    whole = (x[0], y[0], x[2], y[2])
    parts = [(x[i], y[j], x[i + 1], y[j + 1]) for i in range(2) for j in range(2)]
    answers = ask(release, np.array([whole, *parts]))
    assert answers[1:].sum() == pytest.approx(answers[0], rel=1e-9, abs=1e-9)


@EACH_ENGINE
@law
@given(releases, lines(4), lines(4))
def test_a_larger_box_holds_no_less(ask, release, x, y):
    inner, outer = ask(release, np.array([[x[1], y[1], x[2], y[2]], [x[0], y[0], x[3], y[3]]]))
    rounding = 1e-12 * release.total
    assert -rounding <= inner <= outer + rounding
    assert outer <= release.total + rounding


@EACH_ENGINE
def test_a_cell_holds_its_count_and_the_root_the_whole_domain(ask):
    for release in RELEASES:
        found = ask(release, release.tree.boxes.astype(float))
        assert found.tolist() == pytest.approx(release.estimates.count, rel=1e-9, abs=1e-9)
        assert found[0] == pytest.approx(release.total, rel=1e-12)
