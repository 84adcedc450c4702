"""With a coordinate resolution, each value has its cell, and boxes hold the values inside them."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from psd.errors import DomainError
from psd.space.domain import Domain

LOCAL = 'LOCAL_CS["here"]'

steps = st.one_of(
    st.sampled_from(["0.1", "0.0001", "0.3", "25", "1", "0.05", "1e-7", "7.3", "120"]),
    st.decimals("0.0001", 50, places=4).filter(bool).map(str),
)


@st.composite
def domains(draw):
    """Domains of few values, at bounds that are values, beside values, or anywhere."""
    step, bounds = Decimal(draw(steps)), []
    sides = [sorted((draw(st.integers(-3000, 3000)), draw(st.integers(-3000, 3000)))) for _ in "xy"]
    for low, high in sides:
        shifts = [draw(st.sampled_from(["0", "-0.5", "0.5", "0.25", "1e-9"])) for _ in "xx"]
        bounds.append(
            [float((n + Decimal(s)) * step) for n, s in zip((low, high), shifts, strict=True)]
        )
    (west, east), (south, north) = bounds
    assume(west < east and south < north)
    try:
        return Domain(bounds=(west, south, east, north), crs=LOCAL, coordinate_resolution=step)
    except DomainError:
        assume(False)


def values(domain, axis):
    """Every value inside the bounds, as a parser reads it, and in exact numbers."""
    step = Fraction(domain.coordinate_resolution)
    low, high = domain.bounds[axis], domain.bounds[axis + 2]
    first, last = int(Fraction(low) / step) - 2, int(Fraction(high) / step) + 2
    exact = [number * step for number in range(first, last + 1)]
    return [value for value in exact if low <= float(value) <= high]


@settings(derandomize=True, max_examples=200, deadline=None)
@given(domains())
def test_each_value_inside_the_bounds_is_the_middle_of_its_own_cell(domain):
    for axis in (0, 1):
        exact = values(domain, axis)
        assert len(exact) == domain.lattice[axis]
        read = np.array([float(value) for value in exact])
        other = np.full(len(read), domain.bounds[1 - axis])
        cells = domain.quantise(*((read, other) if axis == 0 else (other, read)))[axis]
        assert np.array_equal(cells, np.arange(len(read)))
        assert np.array_equal(domain.centres(axis, cells), read)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(domains(), st.randoms(use_true_random=False))
def test_a_point_falls_in_the_cell_of_the_nearest_value(domain, random):
    for axis in (0, 1):
        low, high = domain.bounds[axis], domain.bounds[axis + 2]
        points = np.array([random.uniform(low, high) for _ in range(30)] + [low, high])
        points = np.clip(points, low, high)
        other = np.full(len(points), domain.bounds[1 - axis])
        cells = domain.quantise(*((points, other) if axis == 0 else (other, points)))[axis]
        edges = domain.edges(axis, cells), domain.edges(axis, cells + 1)
        assert ((edges[0] <= points) & (points <= edges[1])).all()
        exact = values(domain, axis)
        step = Fraction(domain.coordinate_resolution)
        for point, cell in zip(points.tolist(), cells.tolist(), strict=True):
            distance = abs(Fraction(point) - exact[cell])
            nearest = min(
                abs(Fraction(point) - value) for value in exact[max(cell - 1, 0) : cell + 2]
            )
            assert distance <= nearest + step / 10**9


@settings(derandomize=True, max_examples=200, deadline=None)
@given(domains(), st.randoms(use_true_random=False))
def test_a_box_holds_the_values_on_its_west_edge_and_not_those_on_its_east_edge(domain, random):
    step = Fraction(domain.coordinate_resolution)
    exact = [values(domain, axis) for axis in (0, 1)]
    floats = [[float(value) for value in of_axis] for of_axis in exact]
    for _ in range(10):
        box, held = [], []
        for axis in (0, 1):
            # Values, and the middles between them. A box that begins at the far bound is empty.
            ends = [
                random.choice(exact[axis]) + step * Fraction(random.choice((-1, 0, 1)), 2)
                for _ in range(2)
            ]
            low, high = sorted(map(float, ends))
            far = domain.bounds[axis + 2]
            held.append(
                [
                    low <= value and (value < high or high >= far) and low < far
                    for value in floats[axis]
                ]
            )
            box.append((low, high))
        (west, east), (south, north) = box
        lines = domain.to_lattice(np.array([[west, south, east, north]]))[0]
        assert np.array_equal(lines, np.rint(lines))
        for axis in (0, 1):
            first, last = int(lines[axis]), int(lines[axis + 2])
            assert held[axis] == [first <= n < last for n in range(domain.lattice[axis])]


@settings(derandomize=True, max_examples=100, deadline=None)
@given(domains(), st.randoms(use_true_random=False))
def test_own_edges_come_back_as_lattice_lines(domain, random):
    columns, rows = domain.lattice
    west, south = random.randrange(columns), random.randrange(rows)
    box = np.array(
        [[west, south, random.randint(west + 1, columns), random.randint(south + 1, rows)]]
    )
    assert np.array_equal(domain.to_lattice(domain.from_lattice(box)), box)


@settings(derandomize=True, max_examples=100, deadline=None)
@given(domains())
def test_every_cell_has_a_width(domain):
    for axis in (0, 1):
        edges = domain.edges(axis, np.arange(domain.lattice[axis] + 1))
        assert (np.diff(edges) > 0).all()
        assert (edges[0], edges[-1]) == (domain.bounds[axis], domain.bounds[axis + 2])
