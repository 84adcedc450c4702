"""Every point inside has exactly one cell, the one whose published edges hold it.

With a coordinate resolution, each value has its cell, and boxes hold the values inside them.
"""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from psd.errors import DomainError
from psd.space.domain import Domain

numbers = st.floats(-2e7, 2e7, allow_subnormal=True)
widths = st.floats(1e-9, 4e7)
sizes = st.one_of(st.integers(1, 12), st.sampled_from([1000, 2**20, 2**30 - 1, 2**30]))
steps = st.one_of(
    st.sampled_from(["0.1", "0.0001", "0.3", "25", "1", "0.05", "1e-7", "7.3", "120"]),
    st.decimals("0.0001", 50, places=4).filter(bool).map(str),
)


def domain_or_none(**options):
    try:
        return Domain(**options)
    except DomainError:
        assume(False)


@st.composite
def domains(draw):
    west, south = draw(numbers), draw(numbers)
    bounds = (west, south, west + draw(widths), south + draw(widths))
    return domain_or_none(bounds=bounds, crs="EPSG:3857", lattice=(draw(sizes), draw(sizes)))


@st.composite
def rounded_domains(draw):
    """Domains of few values, at bounds that are values, beside values, or anywhere."""
    step, sides = Decimal(draw(steps)), []
    for _ in "xy":
        ends = sorted((draw(st.integers(-3000, 3000)), draw(st.integers(-3000, 3000))))
        shifts = [draw(st.sampled_from(["0", "-0.5", "0.5", "0.25", "1e-9"])) for _ in "xx"]
        sides.append([float((n + Decimal(s)) * step) for n, s in zip(ends, shifts, strict=True)])
    (west, east), (south, north) = sides
    assume(west < east and south < north)
    local, bounds = 'LOCAL_CS["here"]', (west, south, east, north)
    return domain_or_none(bounds=bounds, crs=local, coordinate_resolution=step)


def law(examples):
    return settings(derandomize=True, max_examples=examples, deadline=None)


randoms = st.randoms(use_true_random=False)
either = st.one_of(domains(), rounded_domains())


def neighbours(values):
    """Values and the floats on either side of each."""
    return np.concatenate([np.nextafter(values, -np.inf), values, np.nextafter(values, np.inf)])


def quantised(domain, axis, values):
    """Cells of coordinates along one axis, of those inside, and which are inside."""
    here = np.full(len(values), domain.bounds[1 - axis])
    *placed, inside = domain.quantise(*((values, here) if axis == 0 else (here, values)))
    return placed[axis], inside


def check_edges(domain, random, axis):
    cells = domain.lattice[axis]
    lines = np.array([random.randrange(cells + 1) for _ in range(20)] + [0, cells])
    low, high = domain.bounds[axis], domain.bounds[axis + 2]
    between = [low + random.random() * (high - low) for _ in range(20)]
    values = np.concatenate([neighbours(domain.edges(axis, lines)), between])
    index, inside = quantised(domain, axis, values)
    assert np.array_equal(inside, (values >= low) & (values <= high))
    kept = values[inside]
    assert ((index >= 0) & (index < cells)).all()
    assert (domain.edges(axis, index) <= kept).all()
    assert ((kept < domain.edges(axis, index + 1)) | ((kept == high) & (index == cells - 1))).all()


placed_points = given(domains(), randoms, st.sampled_from([0, 1]))
test_a_point_falls_in_the_cell_whose_published_edges_hold_it = law(60)(placed_points(check_edges))
test_many_points_fall_in_such_cells = pytest.mark.deep(law(300)(placed_points(check_edges)))


@pytest.mark.deep
@law(600)
@given(either, randoms)
def test_every_cell_has_a_width_and_own_edges_come_back_as_lattice_lines(domain, random):
    for axis, cells in enumerate(domain.lattice):
        lines = np.array([random.randrange(cells) for _ in range(50)] + [0, cells - 1])
        lines = np.arange(cells) if cells < 10_000 else lines
        assert (domain.edges(axis, lines) < domain.edges(axis, lines + 1)).all()
        ends = domain.edges(axis, np.array([0, cells])).tolist()
        assert ends == [domain.bounds[axis], domain.bounds[axis + 2]]
    columns, rows = domain.lattice
    west, south = random.randrange(columns), random.randrange(rows)
    east, north = random.randint(west + 1, columns), random.randint(south + 1, rows)
    box = np.array([[west, south, east, north]])
    assert np.array_equal(domain.to_lattice(domain.from_lattice(box)), box)


def values(domain, axis):
    """Every value inside the bounds, as a parser reads it, and in exact numbers."""
    step = Fraction(domain.coordinate_resolution)
    low, high = domain.bounds[axis], domain.bounds[axis + 2]
    first, last = int(Fraction(low) / step) - 2, int(Fraction(high) / step) + 2
    exact = [number * step for number in range(first, last + 1)]
    return [value for value in exact if low <= float(value) <= high]


@pytest.mark.deep
@law(200)
@given(rounded_domains())
def test_each_value_inside_the_bounds_is_the_middle_of_its_own_cell(domain):
    for axis in (0, 1):
        read = np.array([float(value) for value in values(domain, axis)])
        assert len(read) == domain.lattice[axis]
        cells, _ = quantised(domain, axis, read)
        assert np.array_equal(cells, np.arange(len(read)))
        assert np.array_equal(domain.centres(axis, cells), read)


@pytest.mark.deep
@law(200)
@given(rounded_domains(), randoms)
def test_a_point_falls_in_the_cell_of_the_nearest_value(domain, random):
    for axis in (0, 1):
        low, high = domain.bounds[axis], domain.bounds[axis + 2]
        points = np.array([random.uniform(low, high) for _ in range(30)] + [low, high])
        points = np.clip(points, low, high)
        cells, _ = quantised(domain, axis, points)
        edges = domain.edges(axis, cells), domain.edges(axis, cells + 1)
        assert ((edges[0] <= points) & (points <= edges[1])).all()
        exact = values(domain, axis)
        step = Fraction(domain.coordinate_resolution)
        for point, cell in zip(points.tolist(), cells.tolist(), strict=True):
            near = [abs(Fraction(point) - value) for value in exact[max(cell - 1, 0) : cell + 2]]
            assert abs(Fraction(point) - exact[cell]) <= min(near) + step / 10**9


@pytest.mark.deep
@law(200)
@given(rounded_domains(), randoms)
def test_a_box_holds_the_values_on_its_west_edge_and_not_those_on_its_east_edge(domain, random):
    step = Fraction(domain.coordinate_resolution)
    exact = [values(domain, axis) for axis in (0, 1)]
    for _ in range(10):
        box, held = [], []
        for axis, far in enumerate(domain.bounds[2:]):
            # Values, and the middles between them. A box that begins at the far bound is empty.
            halves = [step * Fraction(random.choice((-1, 0, 1)), 2) for _ in range(2)]
            low, high = sorted(float(random.choice(exact[axis]) + half) for half in halves)
            end = np.inf if high >= far else high
            held.append([low < far and low <= value < end for value in map(float, exact[axis])])
            box.append((low, high))
        (west, east), (south, north) = box
        lines = domain.to_lattice(np.array([[west, south, east, north]]))[0]
        assert np.array_equal(lines, np.rint(lines))
        for axis in (0, 1):
            first, last = int(lines[axis]), int(lines[axis + 2])
            assert held[axis] == [first <= n < last for n in range(domain.lattice[axis])]
