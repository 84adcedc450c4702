"""Laws of answers and joint answers: intervals hold estimates, totals are unions, parts add up."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support.trees import grid_release, random_tree, release_of

pytestmark = pytest.mark.deep

SIZE = 16
RELEASES = [
    release_of(random_tree(np.random.default_rng(seed), lattice=(SIZE, SIZE), height=4, top=top))
    for seed, top in [(1, 5), (2, 100), (3, 10_000), (4, 5)]
]
releases = st.sampled_from(RELEASES)
numbers = st.one_of(
    st.integers(0, SIZE).map(float), st.floats(0, SIZE, allow_subnormal=False, width=32)
)


@st.composite
def lines(draw, size):
    """Increasing coordinates, a thousandth apart, all but the last inside the domain."""
    values = sorted(draw(st.lists(numbers, min_size=size, max_size=size)))
    spaced = [value + 1e-3 * place for place, value in enumerate(values)]
    assume(spaced[-2] < SIZE)
    return spaced


@st.composite
def boxes(draw, most):
    size = draw(st.integers(1, most))
    sides = [(draw(lines(2)), draw(lines(2))) for _ in range(size)]
    return [(x[0], y[0], x[1], y[1]) for x, y in sides]


law = settings(derandomize=True, max_examples=30, deadline=None)


@settings(law, max_examples=150)
@given(releases, lines(2), lines(2), st.floats(0.01, 0.99))
def test_every_row_is_consistent_in_itself(release, x, y, confidence):
    row = release.query([(x[0], y[0], x[1], y[1])], confidence=confidence).loc[0]
    assert 0 <= row["lower"] <= row["estimate"] + 1e-9
    assert row["estimate"] <= row["upper"]
    assert max(row["perturbation_error"], row["nonuniformity_error"]) <= row["error"]
    assert row["perturbation_error"] > 0
    assert row["nonuniformity_error"] >= 0


@settings(law, max_examples=150)
@given(st.lists(st.integers(-50, 1000), min_size=16, max_size=16), st.integers(1, 4))
def test_the_whole_domain_is_the_root(counts, size):
    release = grid_release(np.reshape(counts[: size * size], (size, size)))
    answer = release.query([(0, 0, size, size)]).loc[0]
    assert answer["estimate"] == pytest.approx(max(sum(counts[: size * size]), 0))
    assert answer["nonuniformity_error"] == 0


@law
@given(releases, lines(4), lines(3))
def test_a_total_of_disjoint_boxes_is_their_union(release, x, y):
    parts = [(x[i], y[j], x[i + 1], y[j + 1]) for i in range(3) for j in range(2)]
    whole = release.query([(x[0], y[0], x[-1], y[-1])]).loc[0]
    joint = release.joint(parts)
    total = joint.total()
    assert total.estimate == pytest.approx(whole["estimate"], rel=1e-9, abs=1e-9)
    assert total.perturbation_error == pytest.approx(whole["perturbation_error"], rel=1e-9)
    # The unevenness of leaves that the parts make up cancels, to the rounding of what it was.
    scale = 1e-6 * np.sqrt(np.diagonal(joint.nonuniformity_covariance).sum())
    error = whole["nonuniformity_error"]
    assert total.nonuniformity_error == pytest.approx(error, rel=1e-6, abs=scale)


@law
@given(releases, boxes(8), st.floats(0.5, 0.99))
def test_matrices_are_covariances_and_intervals_are_wider(release, regions, confidence):
    joint = release.joint(regions, confidence=confidence)
    for part in (joint.perturbation_covariance, joint.nonuniformity_covariance):
        assert np.array_equal(part, part.T) or np.allclose(part, part.T, rtol=1e-12)
        assert np.linalg.eigvalsh(part).min() >= -1e-9 * max(part.max(), 1)
    assert confidence <= joint.level <= confidence ** (1 / len(regions))
    table = joint.answers
    assert (table.joint_lower <= table.lower + 1e-9).all()
    assert (table.joint_upper >= table.upper - 1e-9).all()


@law
@given(releases, boxes(6), st.data())
def test_combinations_are_linear(release, regions, data):
    joint = release.joint(regions)
    i, j = (data.draw(st.integers(0, len(regions) - 1)) for _ in range(2))
    forth, back = joint.difference(i, j), joint.difference(j, i)
    assert forth.estimate == pytest.approx(-back.estimate)
    assert (forth.lower, forth.upper) == pytest.approx((-back.upper, -back.lower), abs=1e-6)
    c = joint.covariance
    expected = max(c[i, i] + c[j, j] - 2 * c[i, j], 0.0)
    assert forth.error**2 == pytest.approx(expected, rel=1e-9, abs=1e-9 * c.max())
    if i == j:
        assert (forth.estimate, forth.error) == (0, 0)


@law
@given(releases, lines(6), lines(6))
def test_nested_counts_add_up_and_no_ring_is_negative(release, x, y):
    chain = [(x[2 - i], y[2 - i], x[3 + i], y[3 + i]) for i in range(3)]
    table = release.nested(chain)
    assert (table.ring >= 0).all()
    assert (np.diff(table.estimate) >= -1e-9).all()
    assert table.ring.cumsum().to_numpy() == pytest.approx(table.estimate.to_numpy(), abs=1e-6)
    assert table.ring_error[0] == pytest.approx(table.error[0])
