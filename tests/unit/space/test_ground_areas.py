"""Areas on the ground: those of geographiclib, in every kind of CRS."""

import numpy as np
import pytest
import shapely
from pyproj import CRS, Transformer

import psd
from psd.space.ground_areas import (
    area_unit,
    east_west_scale,
    ground_areas,
    ground_densities,
    ground_width,
    shape_ground_areas,
)
from support.trees import EQUATOR_SCALE

ROTATED = (
    "+proj=ob_tran +o_proj=longlat +o_lon_p=0 +o_lat_p=39.25 +lon_0=18 +ellps=WGS84 "
    "+to_meter=0.0174532925199433 +type=crs"
)

# Web Mercator at 60 degrees north, at the equator, and over the seam; degrees; grads, and a
# projection of them; US feet; around a pole; nearly to one (a sphere's equidistant cylinder, and
# since PROJ 9.8 an ellipsoid's, whose pole is nearer); over a world; the 180th meridian; the moon.
PLANES = {
    "EPSG:3857": [(0, 8.2e6, 2e5, 8.6e6), (-1e5, -1e5, 1e5, 1e5), (19.9e6, 7e6, 20.2e6, 7.5e6)],
    "EPSG:4326": [(126, 37, 127, 38), (10, 80, 60, 90)],
    "EPSG:4807": [(0, 48, 4, 52)],
    "EPSG:4902": [(0, 50, 2, 52)],
    "EPSG:27572": [(5e5, 1.6e6, 1.1e6, 2.6e6)],
    "EPSG:2263": [(9e5, 1e5, 1.1e6, 3e5)],
    "EPSG:3031": [(-3e6, -3e6, 3e6, 3e6), (-1e3, -2e3, 1e3, 1e3)],
    "EPSG:4087": [(-1e6, 9e6, 1e6, 1e7)],
    "ESRI:54009": [(-1e6, -1e6, 1e6, 1e6), (15e6, 0, 16e6, 1e6)],
    "EPSG:3832": [(2e6, -2e6, 5e6, 2e6)],
    "EPSG:27700": [(0, 0, 7e5, 1.2e6)],
    "EPSG:3035": [(2.5e6, 1.5e6, 6e6, 5e6)],
    "IAU_2015:30100": [(0, 10, 40, 60)],
    "IAU_2015:30110": [(-1e6, -1e6, 1e6, 1e6)],
}


def geodesic_area(domain, shape):
    """Area of a polygon by geographiclib, its sides divided into 400."""
    crs = CRS.from_user_input(domain.crs)
    base = crs if crs.is_geographic and not crs.is_derived else crs.source_crs
    unit = np.degrees(base.axis_info[0].unit_conversion_factor)
    to_base = Transformer.from_crs(crs, base, always_xy=True)
    west, south, east, north = shape.bounds
    fine = shapely.segmentize(shape, max(east - west, north - south) / 400)
    degrees = shapely.transform(fine, lambda v: np.column_stack(to_base.transform(*v.T)) * unit)
    return abs(crs.get_geod().geometry_area_perimeter(degrees)[0]) / 1e6


def cells_of(domain, sides):
    """Boxes in the corners, in the middle, and all: each with a part of the sides of the domain."""
    at, size = np.array([0, sides // 2, sides - 1]), np.array(domain.lattice * 2) / sides
    return np.array([[a, b, a + 1, b + 1] for a in at for b in at]) * size


CASES = [(crs, bounds) for crs, each in PLANES.items() for bounds in each]


@pytest.mark.parametrize(("crs", "bounds"), [*CASES, (ROTATED, (-10, -10, 15, 12))])
def test_areas_are_those_of_geographiclib(crs, bounds, subtests):
    domain = psd.Domain(bounds=bounds, crs=crs, min_cell=None)
    assert area_unit(domain) == "km2"
    for sides in (1, 9, 100):
        with subtests.test(sides=sides):
            boxes = np.unique(cells_of(domain, sides), axis=0)
            shapes = shapely.box(*domain.from_lattice(boxes).T)
            exact = [geodesic_area(domain, shape) for shape in shapes]
            assert ground_areas(domain, boxes) == pytest.approx(exact, rel=1e-5)
            assert shape_ground_areas(domain, shapes) == pytest.approx(exact, rel=1e-5)
            halves = shapely.polygons([shape.exterior.coords[:3] for shape in shapes[::4]])
            exact = [geodesic_area(domain, shape) for shape in halves]
            assert shape_ground_areas(domain, halves) == pytest.approx(exact, rel=2e-5)


def test_areas_of_any_polygon():
    domain = psd.Domain(bounds=(126, 37, 127, 38), lattice=(10, 10))
    whole, hole = shapely.box(126, 37, 127, 38), shapely.box(126.2, 37.3, 126.4, 37.9)
    parts = shapely.MultiPolygon([hole, shapely.box(126.5, 37.1, 126.9, 37.9)])
    shapes = np.array([whole, hole, whole - hole, parts, shapely.Polygon()])
    areas = shape_ground_areas(domain, shapes)
    assert areas[2] == pytest.approx(areas[0] - areas[1], rel=1e-5)
    assert areas[3] > areas[1]
    assert areas[4] == 0
    # Straight sides in longitude and latitude: the halves of a box differ.
    south = shapely.Polygon([(126, 37), (127, 37), (127, 38)])
    halves = shape_ground_areas(domain, np.array([south, whole - south]))
    assert halves == pytest.approx([geodesic_area(domain, s) for s in (south, whole - south)], 1e-5)
    assert halves.sum() == pytest.approx(areas[0], rel=1e-5)
    assert halves[0] > 1.001 * halves[1]
    # A sector with a corner in the pole, and a ring around it.
    pole = psd.Domain(bounds=(-3e6, -3e6, 3e6, 3e6), crs="EPSG:3031")
    sector = shapely.Polygon([(0, 0), (2e6, 0), (2e6, 1e6)])
    ring = shapely.Point(0, 0).buffer(2e6) - shapely.Point(0, 0).buffer(1e6)
    outer, inner = (
        geodesic_area(pole, shapely.Polygon(r)) for r in (ring.exterior, *ring.interiors)
    )
    found = shape_ground_areas(pole, np.array([sector, ring]))
    assert found == pytest.approx([geodesic_area(pole, sector), outer - inner], rel=1e-5)


def test_the_world_and_what_lies_outside_it():
    earth = 510_065_621.72  # km2 of the ellipsoid of WGS 84
    whole = np.array([[0.0, 0, 2**20, 2**20]])
    degrees = psd.Domain(bounds=(-180, -90, 180, 90))
    assert ground_areas(degrees, whole) == pytest.approx([earth], rel=1e-6)
    mollweide = psd.Domain(bounds=(-18.1e6, -9.1e6, 18.1e6, 9.1e6), crs="ESRI:54009")
    assert ground_areas(mollweide, whole) == pytest.approx([earth], rel=1e-3)
    cells = ground_areas(mollweide, cells_of(mollweide, 60))
    assert cells[[0, 2, 6, 8]].tolist() == [0] * 4  # corners of the map
    assert cells[4] == pytest.approx(36.2 * 18.2 / 3600 * 1e6 * EQUATOR_SCALE, rel=1e-2)
    # Half of a cell across the edge of the world, 18,040 km from its middle.
    across = mollweide.to_lattice(np.array([[18.03e6, -5e3, 18.05e6, 5e3]]))
    assert ground_areas(mollweide, across) == pytest.approx([200 * 0.48], rel=0.05)
    assert np.isnan(ground_densities(np.ones(1), cells[:1])).all()


def test_a_local_crs_has_square_units():
    nowhere = 'ENGCRS["hall",EDATUM["floor"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],'
    for crs in (nowhere + 'LENGTHUNIT["metre",1]]', 'LOCAL_CS["site",UNIT["metre",1]]'):
        hall = psd.Domain(bounds=(0, 0, 5, 4), crs=crs, lattice=(1, 1))
        assert area_unit(hall) == "square unit"
        assert ground_areas(hall, np.array([[0.0, 0, 1, 1]])) == pytest.approx(20)
        assert shape_ground_areas(hall, np.array([shapely.box(0, 0, 5, 4)])) == pytest.approx(20)
        assert np.isnan(ground_width(hall, 1))
        assert east_west_scale(hall, 1) == 1


def test_lengths_on_the_ground():
    sixty = psd.Domain(bounds=(0, 8.2e6, 2e5, 8.6e6), crs="EPSG:3857")
    assert ground_width(sixty, 8_399_738) == pytest.approx(100_252, rel=1e-4)  # 60 degrees north
    grads = psd.Domain(bounds=(0, 48, 4, 52), crs="EPSG:4807")
    assert east_west_scale(grads, 50.0) == pytest.approx(np.sqrt(0.5))
    assert east_west_scale(sixty, np.array([1.0, 8e6])).tolist() == [1, 1]


def test_a_hostile_domain_has_few_parts():
    wide = psd.Domain(bounds=(-1e12, -1e12, 1e12, 1e12), crs="EPSG:3857", min_cell=None)
    assert np.isfinite(ground_areas(wide, np.array([[0.0, 0, 2**20, 2**20]]))).all()
