"""Bounds, CRS and lattice: what is refused, and on which side of an edge a point falls."""

import numpy as np
import pytest

from psd.errors import DomainError
from psd.space.domain import Domain, public_domain
from support.tables import refused

METRES = "EPSG:3857"


def test_bad_bounds_are_refused_with_a_hint(subtests):
    table = [
        ("west", (2, 0, 1, 1), (1, 0, 1, 1)),
        ("antimeridian", (179, 0, -179, 1)),
        ("south", (0, 2, 1, 1), (0, 1, 1, 1)),
        ("finite", (float("nan"), 0, 1, 1), (0, 0, float("inf"), 1)),
        ("four numbers", (0, 0, 1), (0, 0, 1, 1, 1), ("a", 0, 1, 1), (None, 0, 1, 1), None),
        ("four numbers", (0, 0, 10**400, 1)),
        ("swapped", (37, 126.4, 38, 127.6)),
        ("latitude", (0, 0, 1, 90.001), (0, -90.001, 1, 1)),
        ("0 to 360", (0, 0, 180.001, 1)),
        ("longitude", (-180.001, 0, 1, 1)),
        ("metres", (13_900_000, 0, 13_901_000, 50), (0, 4_400_000, 50, 4_401_000)),
    ]
    refused(subtests, DomainError, table, lambda bounds: Domain(bounds=bounds))
    table = [("finite width and height", (-1e308, 0, 1e308, 1), (0, -1e308, 1, 1e308))]
    refused(subtests, DomainError, table, lambda bounds: Domain(bounds=bounds, crs=METRES))
    for bounds in ((-180, -90, 180, 90), (0, 0, 180, 90), (-180, -90, -179, -89)):
        assert Domain(bounds=bounds).bounds == bounds
    table = [("EPSG:4326", "EPSG:999999", "WGS", "", "\ud800", None, 3.5)]
    refused(subtests, DomainError, table, lambda crs: Domain(bounds=(0, 0, 1, 1), crs=crs))
    table = [("lattice", (0, 1), (1, 0), (2**30 + 1, 1), (1, 2, 3), (4,), (2.5, 3), 4, None)]
    table += [("lattice", ("a", 1))]
    refused(subtests, DomainError, table, lambda size: Domain(bounds=(0, 0, 1, 1), lattice=size))
    for name, bounds, lattice in (
        ("cells below one unit in the last place", (1, 0, 1 + 2**-30, 1), (2**30, 1)),
        ("far from the origin", (0, 1e9, 1, 1e9 + 1e-3), (1, 2**20)),
        # The first and the last cell have width here, 400 in between have none.
        ("cells without width in between", (1, 0, 1 + 600 * 2**-52, 1), (1000, 1)),
        ("subnormal width", (0, 0, 5e-324, 1), (1, 1)),
    ):
        with subtests.test(name), pytest.raises(DomainError, match="too narrow"):
            Domain(bounds=bounds, crs=METRES, lattice=lattice)


def test_fields_are_plain_and_canonical():
    domain = Domain(bounds=np.array([0, 0, 1, 2]), crs="epsg:4326", lattice=np.array([4, 8]))
    assert domain.bounds == (0.0, 0.0, 1.0, 2.0)
    assert {type(edge) for edge in domain.bounds} == {float}
    assert {type(size) for size in domain.lattice} == {int}
    assert domain.crs == "EPSG:4326"
    assert domain.geographic
    assert (domain.width, domain.height) == (1.0, 2.0)
    assert domain == Domain(bounds=(0, 0, 1, 2), lattice=(4, 8))
    projected = "+proj=aea +lat_1=29 +lat_2=45 +lon_0=127 +datum=WGS84"
    for crs in ("EPSG:5179", "ESRI:102025", projected):
        once = Domain(bounds=(9e5, 1.9e6, 1e6, 2e6), crs=crs)
        assert not once.geographic
        assert Domain(bounds=once.bounds, crs=once.crs) == once
    # Degrees for metres, and another country.
    for bounds, crs in (
        ((126.4, 37.0, 127.6, 38.0), "EPSG:5179"),
        ((5e6, 5e6, 6e6, 6e6), "EPSG:27700"),
    ):
        with pytest.raises(DomainError, match="outside the area"):
            Domain(bounds=bounds, crs=crs)


def cells(domain, *points):
    x, y = np.array(points, float).T
    columns, rows, inside = domain.quantise(x, y)
    return list(zip(columns.tolist(), rows.tolist(), strict=True)), inside.tolist()


def test_points_beyond_the_bounds_are_outside(subtests):
    domain = Domain(bounds=(0, 0, 3, 2), crs=METRES, lattice=(3, 2))
    beside = [(np.nextafter(3, 4), 1), (np.nextafter(0, -1), 1), (1, np.nextafter(2, 3))]
    nowhere = [(np.nan, 1), (1, np.nan), (np.inf, 1), (1, -np.inf)]
    for point in (*beside, (1, -1e-300), *nowhere):
        with subtests.test(point=point):
            assert cells(domain, point, (1, 1)) == ([(1, 1)], [False, True])
    domain = Domain(bounds=(0, 0, 3, 2), crs=METRES, lattice=(3, 2))
    placed, _ = cells(domain, (0, 0), (1, 1), (np.nextafter(1, 0), 1), (3, 2), (3, 0), (0, 2))
    assert placed == [(0, 0), (1, 1), (0, 1), (2, 1), (2, 0), (0, 1)]
    domain = Domain(bounds=(-180, -90, 180, 90))
    last = 2**20 - 1
    placed, inside = cells(domain, (180, 90), (-180, -90), (-0.0, -0.0), (0.0, 0.0))
    assert placed == [(last, last), (0, 0), (2**19, 2**19), (2**19, 2**19)]
    assert all(inside)
    domain = Domain(bounds=(0, -1, 1, 0), crs=METRES, lattice=(4, 4))
    assert cells(domain, (-0.0, -0.0)) == ([(0, 3)], [True])
    assert [len(found) for found in domain.quantise(np.empty(0), np.empty(0))] == [0, 0, 0]


def test_typed_edges_snap_to_the_lattice_and_boxes_are_clipped_to_the_domain():
    domain = Domain(bounds=(0, 0, 3, 3), crs=METRES, lattice=(3, 3))
    boxes = np.array([[1 - 5e-7, 1 + 5e-7, 2 + 2e-6, 2.5]])
    assert domain.to_lattice(boxes).tolist() == [[1.0, 1.0, 2 + 2e-6, 2.5]]
    domain = Domain(bounds=(0.1, 0.2, 0.7, 0.9), crs=METRES, lattice=(7, 3))
    assert domain.from_lattice(np.array([[0, 0, 7, 3]])).tolist() == [[0.1, 0.2, 0.7, 0.9]]
    domain = Domain(bounds=(10, 20, 13, 23), crs=METRES, lattice=(3, 3))
    boxes = np.array([[-1e308, 21, 1e308, 1e9], [11, -5, 12, 21.5]])
    assert domain.to_lattice(boxes).tolist() == [[0, 1, 3, 3], [1, 0, 2, 1.5]]


def test_four_numbers_are_a_domain_in_degrees():
    domain = Domain(bounds=(126.4, 37, 127.6, 38), crs="EPSG:4326")
    assert public_domain((126.4, 37, 127.6, 38)) == domain
    assert public_domain(domain) is domain
