"""Every point inside has exactly one cell, the one whose published edges hold it."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from psd.errors import DomainError
from psd.space.domain import Domain

numbers = st.floats(-2e7, 2e7, allow_subnormal=True)
widths = st.floats(1e-9, 4e7)
sizes = st.one_of(st.integers(1, 12), st.sampled_from([1000, 2**20, 2**30 - 1, 2**30]))


@st.composite
def domains(draw):
    west, south = draw(numbers), draw(numbers)
    bounds = (west, south, west + draw(widths), south + draw(widths))
    try:
        return Domain(bounds=bounds, crs="EPSG:3857", lattice=(draw(sizes), draw(sizes)))
    except DomainError:
        assume(False)


def neighbours(values):
    """Values and the floats on either side of each."""
    return np.concatenate([np.nextafter(values, -np.inf), values, np.nextafter(values, np.inf)])


@settings(derandomize=True, max_examples=300, deadline=None)
@given(domains(), st.randoms(use_true_random=False), st.sampled_from([0, 1]))
def test_a_point_falls_in_the_cell_whose_published_edges_hold_it(domain, random, axis):
    cells = domain.lattice[axis]
    lines = np.array([random.randrange(cells + 1) for _ in range(20)] + [0, cells])
    low, high = domain.bounds[axis], domain.bounds[axis + 2]
    between = [low + random.random() * (high - low) for _ in range(20)]
    values = np.concatenate([neighbours(domain.edges(axis, lines)), between])
    here = np.full(len(values), domain.bounds[1 - axis])
    *placed, inside = domain.quantise(*((values, here) if axis == 0 else (here, values)))
    assert np.array_equal(inside, (values >= low) & (values <= high))
    index, kept = placed[axis], values[inside]
    assert ((index >= 0) & (index < cells)).all()
    assert (domain.edges(axis, index) <= kept).all()
    assert ((kept < domain.edges(axis, index + 1)) | ((kept == high) & (index == cells - 1))).all()


@settings(derandomize=True, max_examples=300, deadline=None)
@given(domains(), st.randoms(use_true_random=False), st.sampled_from([0, 1]))
def test_every_cell_has_a_width(domain, random, axis):
    cells = domain.lattice[axis]
    lines = np.array([random.randrange(cells) for _ in range(50)] + [0, cells - 1])
    assert (domain.edges(axis, lines) < domain.edges(axis, lines + 1)).all()


@settings(derandomize=True, max_examples=300, deadline=None)
@given(domains(), st.randoms(use_true_random=False))
def test_own_edges_come_back_as_lattice_lines(domain, random):
    columns, rows = domain.lattice
    west, south = random.randrange(columns), random.randrange(rows)
    box = np.array(
        [[west, south, random.randint(west + 1, columns), random.randint(south + 1, rows)]]
    )
    assert np.array_equal(domain.to_lattice(domain.from_lattice(box)), box)
