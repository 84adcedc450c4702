"""Bounds, CRS and lattice: what is refused, and on which side of an edge a point falls."""

import numpy as np
import pytest

from psd.errors import DomainError
from psd.space.domain import Domain

METRES = "EPSG:3857"


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        pytest.param((2, 0, 1, 1), "west", id="west above east"),
        pytest.param((179, 0, -179, 1), "antimeridian", id="across the antimeridian"),
        pytest.param((0, 2, 1, 1), "south", id="south above north"),
        pytest.param((1, 0, 1, 1), "west", id="no width"),
        pytest.param((0, 1, 1, 1), "south", id="no height"),
        pytest.param((float("nan"), 0, 1, 1), "finite", id="nan"),
        pytest.param((0, 0, float("inf"), 1), "finite", id="infinity"),
        pytest.param((0, 0, 1), "four numbers", id="three numbers"),
        pytest.param((0, 0, 1, 1, 1), "four numbers", id="five numbers"),
        pytest.param(("a", 0, 1, 1), "four numbers", id="a word"),
        pytest.param((None, 0, 1, 1), "four numbers", id="a missing number"),
        pytest.param(None, "four numbers", id="no bounds"),
        pytest.param((0, 0, 10**400, 1), "four numbers", id="beyond every float"),
        pytest.param((37, 126.4, 38, 127.6), "swapped", id="latitude first"),
        pytest.param((0, 0, 1, 90.001), "latitude", id="latitude above 90"),
        pytest.param((0, -90.001, 1, 1), "latitude", id="latitude below -90"),
        pytest.param((0, 0, 180.001, 1), "0 to 360", id="longitude above 180"),
        pytest.param((-180.001, 0, 1, 1), "longitude", id="longitude below -180"),
        pytest.param((13_900_000, 0, 13_901_000, 50), "metres", id="metres for x"),
        pytest.param((0, 4_400_000, 50, 4_401_000), "metres", id="metres for y"),
    ],
)
def test_bad_bounds_are_refused_with_a_hint(bounds, says):
    with pytest.raises(DomainError, match=says):
        Domain(bounds=bounds)


@pytest.mark.parametrize("bounds", [(-180, -90, 180, 90), (0, 0, 180, 90), (-180, -90, -179, -89)])
def test_the_whole_globe_and_its_corners_are_domains(bounds):
    assert Domain(bounds=bounds).bounds == bounds


@pytest.mark.parametrize("bounds", [(-1e308, 0, 1e308, 1), (0, -1e308, 1, 1e308)])
def test_bounds_whose_distance_is_no_float_are_refused(bounds):
    with pytest.raises(DomainError, match="finite width and height"):
        Domain(bounds=bounds, crs=METRES)


@pytest.mark.parametrize(
    ("bounds", "lattice"),
    [
        pytest.param(
            (1, 0, 1 + 2**-30, 1), (2**30, 1), id="cells below one unit in the last place"
        ),
        pytest.param((0, 1e9, 1, 1e9 + 1e-3), (1, 2**20), id="far from the origin"),
        # The first and the last cell have width here, 400 in between have none.
        pytest.param((1, 0, 1 + 600 * 2**-52, 1), (1000, 1), id="cells without width in between"),
        pytest.param((0, 0, 5e-324, 1), (1, 1), id="subnormal width"),
    ],
)
def test_bounds_too_narrow_for_their_lattice_are_refused(bounds, lattice):
    with pytest.raises(DomainError, match="too narrow"):
        Domain(bounds=bounds, crs=METRES, lattice=lattice)


@pytest.mark.parametrize("crs", ["EPSG:999999", "WGS", "", "\ud800", None, 3.5])
def test_unknown_crs_is_refused_with_an_example(crs):
    with pytest.raises(DomainError, match="EPSG:4326"):
        Domain(bounds=(0, 0, 1, 1), crs=crs)


@pytest.mark.parametrize(
    "lattice",
    [(0, 1), (1, 0), (2**30 + 1, 1), (1, 2, 3), (4,), (2.5, 3), ("a", 1), 4, None],
)
def test_bad_lattice_is_refused(lattice):
    with pytest.raises(DomainError, match="lattice"):
        Domain(bounds=(0, 0, 1, 1), lattice=lattice)


def test_fields_are_plain_and_canonical():
    domain = Domain(bounds=np.array([0, 0, 1, 2]), crs="epsg:4326", lattice=np.array([4, 8]))
    assert domain.bounds == (0.0, 0.0, 1.0, 2.0)
    assert {type(edge) for edge in domain.bounds} == {float}
    assert {type(size) for size in domain.lattice} == {int}
    assert domain.crs == "EPSG:4326"
    assert domain.geographic
    assert (domain.width, domain.height) == (1.0, 2.0)
    assert domain == Domain(bounds=(0, 0, 1, 2), lattice=(4, 8))


@pytest.mark.parametrize(
    "crs", ["EPSG:5179", "ESRI:102025", "+proj=aea +lat_1=29 +lat_2=45 +lon_0=127 +datum=WGS84"]
)
def test_crs_text_is_the_same_when_read_again(crs):
    once = Domain(bounds=(9e5, 1.9e6, 1e6, 2e6), crs=crs)
    assert not once.geographic
    assert Domain(bounds=once.bounds, crs=once.crs) == once


@pytest.mark.parametrize(
    ("bounds", "crs"),
    [
        pytest.param((126.4, 37.0, 127.6, 38.0), "EPSG:5179", id="degrees for metres"),
        pytest.param((5e6, 5e6, 6e6, 6e6), "EPSG:27700", id="another country"),
    ],
)
def test_bounds_outside_the_area_of_a_crs_are_refused(bounds, crs):
    with pytest.raises(DomainError, match="outside the area"):
        Domain(bounds=bounds, crs=crs)


def cells(domain, *points):
    x, y = np.array(points, float).T
    columns, rows, inside = domain.quantise(x, y)
    return list(zip(columns.tolist(), rows.tolist(), strict=True)), inside.tolist()


def test_cells_hold_their_west_and_south_edge_and_the_last_ones_the_far_edges():
    domain = Domain(bounds=(0, 0, 3, 2), crs=METRES, lattice=(3, 2))
    placed, _ = cells(domain, (0, 0), (1, 1), (np.nextafter(1, 0), 1), (3, 2), (3, 0), (0, 2))
    assert placed == [(0, 0), (1, 1), (0, 1), (2, 1), (2, 0), (0, 1)]


@pytest.mark.parametrize(
    "point",
    [
        pytest.param((np.nextafter(3, 4), 1), id="just east"),
        pytest.param((np.nextafter(0, -1), 1), id="just west"),
        pytest.param((1, np.nextafter(2, 3)), id="just north"),
        pytest.param((1, -1e-300), id="just south"),
        pytest.param((np.nan, 1), id="nan"),
        pytest.param((1, np.nan), id="nan for y"),
        pytest.param((np.inf, 1), id="infinity"),
        pytest.param((1, -np.inf), id="minus infinity"),
    ],
)
def test_points_beyond_the_bounds_are_outside(point):
    domain = Domain(bounds=(0, 0, 3, 2), crs=METRES, lattice=(3, 2))
    assert cells(domain, point, (1, 1)) == ([(1, 1)], [False, True])


def test_the_corner_of_the_globe_is_in_the_last_cell():
    domain = Domain(bounds=(-180, -90, 180, 90))
    last = 2**20 - 1
    placed, inside = cells(domain, (180, 90), (-180, -90), (-0.0, -0.0), (0.0, 0.0))
    assert placed == [(last, last), (0, 0), (2**19, 2**19), (2**19, 2**19)]
    assert all(inside)


def test_negative_zero_is_zero_at_a_bound():
    domain = Domain(bounds=(0, -1, 1, 0), crs=METRES, lattice=(4, 4))
    assert cells(domain, (-0.0, -0.0)) == ([(0, 3)], [True])


def test_no_point_is_no_cell():
    columns, rows, inside = Domain(bounds=(0, 0, 1, 1)).quantise(np.empty(0), np.empty(0))
    assert (len(columns), len(rows), len(inside)) == (0, 0, 0)


def test_typed_edges_snap_to_the_lattice_and_others_do_not():
    domain = Domain(bounds=(0, 0, 3, 3), crs=METRES, lattice=(3, 3))
    boxes = np.array([[1 - 5e-7, 1 + 5e-7, 2 + 2e-6, 2.5]])
    assert domain.to_lattice(boxes).tolist() == [[1.0, 1.0, 2 + 2e-6, 2.5]]


def test_boxes_are_clipped_to_the_domain():
    domain = Domain(bounds=(10, 20, 13, 23), crs=METRES, lattice=(3, 3))
    boxes = np.array([[-1e308, 21, 1e308, 1e9], [11, -5, 12, 21.5]])
    assert domain.to_lattice(boxes).tolist() == [[0, 1, 3, 3], [1, 0, 2, 1.5]]


@pytest.mark.parametrize(
    ("bounds", "lattice"),
    [
        pytest.param((126.4, 37.0, 127.6, 38.0), (2**20, 2**20), id="Seoul"),
        pytest.param((0.1, 0.2, 0.3, 0.7), (3, 7), id="no binary fractions"),
        pytest.param((1.4e7, 4.5e6, 1.4e7 + 900, 4.5e6 + 900), (2**20, 2**20), id="narrow and far"),
    ],
)
def test_own_edges_come_back_as_whole_lattice_lines(bounds, lattice):
    domain = Domain(bounds=bounds, crs=METRES, lattice=lattice)
    rng = np.random.default_rng(1)
    lines = np.sort(rng.integers(0, np.array(lattice * 100) + 1).reshape(50, 2, 2), axis=1)
    lines = np.vstack([lines.reshape(50, 4), [[0, 0, *lattice]]])
    assert np.array_equal(domain.to_lattice(domain.from_lattice(lines)), lines)


def test_the_outer_edges_are_the_bounds():
    domain = Domain(bounds=(0.1, 0.2, 0.7, 0.9), crs=METRES, lattice=(7, 3))
    assert domain.from_lattice(np.array([[0, 0, 7, 3]])).tolist() == [[0.1, 0.2, 0.7, 0.9]]
