"""Laws that every set of answers keeps: additive over disjoint boxes, monotone, bounded."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import psd
from support.trees import domain_of, random_tree, release_of

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
    """Increasing coordinates, at least a thousandth apart."""
    values = sorted(draw(st.lists(numbers, min_size=size, max_size=size)))
    return [value + 1e-3 * place for place, value in enumerate(values)]


law = settings(derandomize=True, max_examples=150, deadline=None)


@law
@given(releases, lines(3), lines(3))
def test_disjoint_boxes_add_up(release, x, y):
    whole = (x[0], y[0], x[2], y[2])
    parts = [
        (x[i], y[j], x[i + 1], y[j + 1])
        for i in range(2)
        for j in range(2)
        if x[i] < SIZE and y[j] < SIZE
    ]
    if x[0] >= SIZE or y[0] >= SIZE:
        return
    answers = release.query([whole, *parts]).estimate
    assert answers[1:].sum() == pytest.approx(answers[0], rel=1e-9, abs=1e-6)


@law
@given(releases, lines(4), lines(4))
def test_a_larger_box_holds_at_least_as_much(release, x, y):
    if x[1] >= SIZE or y[1] >= SIZE:
        return
    inner, outer = release.query([(x[1], y[1], x[2], y[2]), (x[0], y[0], x[3], y[3])]).estimate
    assert -1e-9 <= inner <= outer + 1e-6 * (1 + outer)
    assert outer <= release.total * (1 + 1e-9) + 1e-9


@law
@given(releases, lines(2), lines(2), st.floats(0.01, 0.99))
def test_every_row_is_consistent_in_itself(release, x, y, confidence):
    if x[0] >= SIZE or y[0] >= SIZE:
        return
    row = release.query([(x[0], y[0], x[1], y[1])], confidence=confidence).loc[0]
    assert 0 <= row["lower"] <= row["estimate"] + 1e-9
    assert row["estimate"] <= row["upper"]
    assert max(row["perturbation_error"], row["nonuniformity_error"]) <= row["error"]
    assert row["perturbation_error"] > 0
    assert row["nonuniformity_error"] >= 0


@law
@given(st.lists(st.integers(-50, 1000), min_size=16, max_size=16), st.integers(1, 4))
def test_the_whole_domain_is_the_root(counts, size):
    domain = domain_of((4, 4))
    tree = psd.grid_tree(domain, size)
    release = psd.Release.from_counts(tree, counts[: size * size], 1.0, domain=domain)
    answer = release.query([(0, 0, 4, 4)]).loc[0]
    assert answer["estimate"] == pytest.approx(max(sum(counts[: size * size]), 0))
    assert answer["nonuniformity_error"] == 0
