"""Areas on the ground, by the unit of the CRS."""

import numpy as np
import pytest
import shapely

import psd
from psd.space.ground_areas import area_unit, ground_areas, shape_ground_areas


def test_areas_on_the_ground():
    domain = psd.Domain(bounds=(126, 37, 127, 38), lattice=(10, 10))
    boxes = np.array([[0.0, 0, 10, 10], [0, 0, 10, 5], [0, 5, 10, 10]])
    from pyproj import Geod

    # Along parallels, so a polygon of many short sides.
    x = np.linspace(126, 127, 400)
    ring = np.concatenate([x, x[::-1]]), np.repeat([37.0, 38.0], 400)
    exact = abs(Geod(ellps="WGS84").polygon_area_perimeter(*ring)[0]) / 1e6
    found = ground_areas(domain, boxes)
    assert found[0] == pytest.approx(exact, rel=1e-6)
    assert found[0] == pytest.approx(found[1] + found[2])
    assert found[1] > found[2]
    assert area_unit(domain) == "km2"
    domain = psd.Domain(bounds=(126, 37, 127, 38), lattice=(10, 10))
    whole, hole = shapely.box(126, 37, 127, 38), shapely.box(126.2, 37.3, 126.4, 37.9)
    shapes = np.array([whole, hole, whole.difference(hole), shapely.MultiPolygon([hole])])
    areas = shape_ground_areas(domain, shapes)
    boxes = np.array([[0.0, 0, 10, 10], [2, 3, 4, 9]])
    assert areas[:2] == pytest.approx(ground_areas(domain, boxes), rel=1e-9)
    assert areas[2] == pytest.approx(areas[0] - areas[1], rel=1e-9)
    assert areas[3] == areas[1]
    # A triangle has straight sides in longitude and latitude: its halves differ as those of a box.
    triangle = np.array([shapely.Polygon([(126, 37), (127, 37), (127, 38)]),
                         shapely.Polygon([(126, 37), (127, 38), (126, 38)])])  # fmt: skip
    assert shape_ground_areas(domain, triangle).sum() == pytest.approx(areas[0], rel=1e-6)


def test_areas_in_feet_and_in_no_unit():
    feet = psd.Domain(bounds=(1e6, 2e5, 1.1e6, 3e5), crs="EPSG:2263", lattice=(1, 1))
    box = np.array([[0.0, 0, 1, 1]])
    assert ground_areas(feet, box) == pytest.approx(1e10 * (1200 / 3937) ** 2 / 1e6)
    nowhere = 'ENGCRS["hall",EDATUM["floor"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],'
    hall = psd.Domain(bounds=(0, 0, 5, 4), crs=nowhere + 'LENGTHUNIT["metre",1]]', lattice=(1, 1))
    assert ground_areas(hall, box) == pytest.approx(20)
    assert area_unit(hall) == "square unit"
    feet = psd.Domain(bounds=(1e6, 2e5, 1.1e6, 3e5), crs="EPSG:2263", lattice=(1, 1))
    shape = np.array([shapely.box(1e6, 2e5, 1.1e6, 3e5)])
    assert shape_ground_areas(feet, shape) == pytest.approx(1e10 * (1200 / 3937) ** 2 / 1e6)
    hall = psd.Domain(bounds=(0, 0, 5, 4), crs='LOCAL_CS["site",UNIT["metre",1]]', lattice=(1, 1))
    assert shape_ground_areas(hall, np.array([shapely.box(0, 0, 5, 4)])) == pytest.approx(20)
