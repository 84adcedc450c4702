"""Laws of estimates by every engine, and of joint answers.

Estimates are additive, monotone and whole at the root; totals of joint answers are unions, their
matrices covariances.
"""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import psd
from psd.query import boxes as engine
from psd.query.compiled_walk import walk_query_totals, walk_value_totals
from psd.query.traversal import traverse, weighted_total
from psd.release.post_processing import PostProcessing
from support.releases import changed
from support.trees import domain_of, grid_release, random_tree, release_of

pytestmark = pytest.mark.deep

SIDE = 16


def random_release(seed, density):
    tree = random_tree(np.random.default_rng(seed), lattice=(SIDE, SIDE), height=4, top=1000)
    return changed(release_of(tree), post_processing=PostProcessing(density=density))


def release_of_grid(size, density):
    domain, counts = domain_of((SIDE, SIDE)), np.random.default_rng(size).integers(0, 99, size**2)
    made = psd.Release.from_counts(
        psd.decompositions.grid_tree(domain, size), counts, 1.0, domain=domain
    )
    return changed(made, post_processing=PostProcessing(density=density))


RELEASES = [
    make(number, density)
    for density in ("uniform", "smooth")
    for make, number in ((random_release, 1), (random_release, 2), (release_of_grid, 5))
]


ENGINES = {
    "numpy": lambda release, boxes: weighted_total(
        traverse(release.tree, len(boxes), engine.box_fraction(release.index.fit, boxes)),
        release.index.fit.estimates.count,
    ),
    "compiled": lambda release, boxes: walk_value_totals(
        release.index.flat_tree, release.index.fit.estimates.count, boxes
    ),
    "compiled with errors": lambda release, boxes: (
        walk_query_totals(
            release.index.flat_tree, release.index.fit.estimates.count, boxes
        ).estimate
    ),
    "as asked": lambda release, boxes: release.query(boxes, errors=False).arrays["estimate"],
    "query": lambda release, boxes: release.query(boxes).table.estimate.to_numpy(),
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
        assert found.tolist() == pytest.approx(
            release.index.fit.estimates.count, rel=1e-9, abs=1e-9
        )
        assert found[0] == pytest.approx(release.total, rel=1e-12)


# Answers with their errors, and joint answers.

TREES = [
    release_of(random_tree(np.random.default_rng(seed), lattice=(SIDE, SIDE), height=4, top=top))
    for seed, top in [(1, 5), (2, 100), (3, 10_000), (4, 5)]
]
trees = st.sampled_from(TREES)


@st.composite
def wide_lines(draw, size):
    """Increasing coordinates, a thousandth apart, all but the last inside the domain."""
    values = sorted(draw(st.lists(numbers, min_size=size, max_size=size)))
    spaced = [value + 1e-3 * place for place, value in enumerate(values)]
    assume(spaced[-2] < SIDE)
    return spaced


@st.composite
def boxes(draw, most):
    size = draw(st.integers(1, most))
    sides = [(draw(wide_lines(2)), draw(wide_lines(2))) for _ in range(size)]
    return [(x[0], y[0], x[1], y[1]) for x, y in sides]


@law
@given(trees, wide_lines(2), wide_lines(2), st.floats(0.01, 0.99))
def test_every_row_is_consistent_in_itself(release, x, y, confidence):
    row = release.query([(x[0], y[0], x[1], y[1])], confidence=confidence).table.loc[0]
    assert 0 <= row["lower"] <= row["estimate"] + 1e-9
    assert row["estimate"] <= row["upper"]
    assert max(row["perturbation_error"], row["nonuniformity_error"]) <= row["error"]
    assert row["perturbation_error"] > 0
    assert row["nonuniformity_error"] >= 0


@law
@given(st.lists(st.integers(-50, 1000), min_size=16, max_size=16), st.integers(1, 4))
def test_the_whole_domain_is_the_root(counts, size):
    release = grid_release(np.reshape(counts[: size * size], (size, size)))
    answer = release.query([(0, 0, size, size)]).table.loc[0]
    assert answer["estimate"] == pytest.approx(max(sum(counts[: size * size]), 0))
    assert answer["nonuniformity_error"] == 0


@settings(law, max_examples=30)
@given(trees, wide_lines(4), wide_lines(3))
def test_a_total_of_disjoint_boxes_is_their_union(release, x, y):
    parts = [(x[i], y[j], x[i + 1], y[j + 1]) for i in range(3) for j in range(2)]
    whole = release.query([(x[0], y[0], x[-1], y[-1])]).table.loc[0]
    joint = release.query(parts).joint()
    total = joint.total()
    assert total.estimate == pytest.approx(whole["estimate"], rel=1e-9, abs=1e-9)
    assert total.perturbation_error == pytest.approx(whole["perturbation_error"], rel=1e-9)
    # The unevenness of leaves that the parts make up cancels, to the rounding of what it was.
    scale = 1e-6 * np.sqrt(np.diagonal(joint.nonuniformity_covariance).sum())
    error = whole["nonuniformity_error"]
    assert total.nonuniformity_error == pytest.approx(error, rel=1e-6, abs=scale)


@settings(law, max_examples=30)
@given(trees, boxes(8), st.floats(0.5, 0.99))
def test_matrices_are_covariances_and_intervals_are_wider(release, regions, confidence):
    joint = release.query(regions, confidence=confidence).joint()
    for part in (joint.perturbation_covariance, joint.nonuniformity_covariance):
        assert np.array_equal(part, part.T) or np.allclose(part, part.T, rtol=1e-12)
        assert np.linalg.eigvalsh(part).min() >= -1e-9 * max(part.max(), 1)
    assert confidence <= joint.level <= confidence ** (1 / len(regions))
    table = joint.answers
    assert (table.joint_lower <= table.lower + 1e-9).all()
    assert (table.joint_upper >= table.upper - 1e-9).all()


@settings(law, max_examples=30)
@given(trees, boxes(6), st.data())
def test_combinations_are_linear(release, regions, data):
    joint = release.query(regions).joint()
    i, j = (data.draw(st.integers(0, len(regions) - 1)) for _ in range(2))
    forth, back = joint.difference(i, j), joint.difference(j, i)
    assert forth.estimate == pytest.approx(-back.estimate)
    assert (forth.lower, forth.upper) == pytest.approx((-back.upper, -back.lower), abs=1e-6)
    c = joint.covariance
    expected = max(c[i, i] + c[j, j] - 2 * c[i, j], 0.0)
    assert forth.error**2 == pytest.approx(expected, rel=1e-9, abs=1e-9 * c.max())
    if i == j:
        assert (forth.estimate, forth.error) == (0, 0)


@settings(law, max_examples=30)
@given(trees, wide_lines(6), wide_lines(6))
def test_nested_counts_add_up_and_no_ring_is_negative(release, x, y):
    chain = [(x[2 - i], y[2 - i], x[3 + i], y[3 + i]) for i in range(3)]
    table = release.query(chain).nested()
    assert (table.ring >= 0).all()
    assert (np.diff(table.estimate) >= -1e-9).all()
    assert table.ring.cumsum().to_numpy() == pytest.approx(table.estimate.to_numpy(), abs=1e-6)
    assert table.ring_error[0] == pytest.approx(table.error[0])
