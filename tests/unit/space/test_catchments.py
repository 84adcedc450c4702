"""Catchments: which points a candidate serves, and what is refused."""

import math
import warnings

import numpy as np
import pytest
import shapely
from pyproj import Geod

from psd.errors import DomainError, ParameterError
from psd.space.catchments import Catchments
from support.tables import refused_calls

METRES = "EPSG:3857"


def two(**options):
    return Catchments.around(
        ["a", "b"], [[0, 0], [10, 0]], **{"radius": 2, "crs": METRES} | options
    )


def inside(places, which, points):
    x, y = np.array(points, np.float64).T
    return places.contains(np.full(len(x), which), x, y).tolist()


def test_a_circle_holds_its_edge():
    assert inside(two(), 0, [(2, 0), (0, -2), (2.001, 0), (1.5, 1.5)]) == [True, True, False, False]


def test_a_circle_in_feet_is_measured_in_metres():
    feet = Catchments.around(["a", "b"], [[9e5, 2e5], [9.1e5, 2e5]], 304.8006096, "EPSG:2263")
    assert inside(feet, 0, [(9e5 + 999.9, 2e5), (9e5 + 1000.1, 2e5)]) == [True, False]


@pytest.mark.parametrize("latitude", [0, 37.5, -51.5, 70])
def test_a_circle_in_degrees_is_one_on_the_ground(latitude):
    places = Catchments.around(["a", "b"], [[12, latitude], [13, latitude]], 2000)
    azimuths = np.linspace(0, 360, 37)
    for factor, expected in ((0.998, True), (1.002, False)):
        many = np.full(len(azimuths), 1.0)
        x, y, _ = Geod(ellps="WGS84").fwd(
            12 * many, latitude * many, azimuths, 2000 * factor * many
        )
        assert inside(places, 0, np.stack([x, y], axis=1)) == [expected] * len(azimuths)


def test_polygons_hold_their_edge_and_not_their_holes():
    ring = shapely.box(0, 0, 4, 4) - shapely.box(1, 1, 2, 2)
    other = shapely.MultiPolygon([shapely.box(5, 5, 6, 6), shapely.box(7, 7, 8, 8)])
    places = Catchments(ids=("a", "b"), crs=METRES, polygons=np.array([ring, other]))
    assert inside(places, 0, [(0, 0), (1.5, 1.5), (3, 3), (5, 5)]) == [True, False, True, False]
    assert inside(places, 1, [(5.5, 5.5), (7.5, 7.5), (6.5, 6.5)]) == [True, True, False]
    assert places.bounds == (0, 0, 8, 8)


@pytest.mark.parametrize("radius", [1e-300, 5e-324])
def test_no_calculation_warns_of_a_point(radius):
    """A warning on stderr could tell whether there is a record."""
    places = Catchments.around(["a", "b"], [[0, 0], [3, 0]], radius, METRES)
    which, one = np.array([0, 1]), np.ones(2)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert places.contains(which, one, one).tolist() == [False, False]
        spans = places.spans(which, -one, one)
    assert (spans.inner_left > spans.inner_right).all()
    assert [str(warning.message) for warning in told] == []


def test_the_bounds_of_circles_end_at_the_limits_of_degrees():
    places = Catchments.around(["a", "b"], [[179.9, 0], [170, 0]], 50_000)
    assert places.bounds[2] == 180
    assert two().bounds == (-2, -2, 12, 2)


def test_strips_have_all_points_and_no_other_inside():
    places, rng = two(), np.random.default_rng(1)
    south = rng.uniform(-3, 2.5, 200)
    which, north = np.zeros(200, np.int64), south + rng.uniform(0, 1, 200)
    spans = places.spans(which, south, north)
    for _ in range(20):
        x, y = rng.uniform(-3, 3, 200), rng.uniform(south, north)
        served = places.contains(which, x, y)
        assert (~served | ((x >= spans.left) & (x <= spans.right))).all()
        assert (served | ~((x >= spans.inner_left) & (x <= spans.inner_right))).all()
    assert (spans.inner_left <= spans.inner_right).any()


HALL = 'ENGCRS["x",EDATUM["y"],CS[Cartesian,2],AXIS["a",east],AXIS["b",north],SCALEUNIT["u",0]]'


def test_wrong_candidates_are_refused(subtests):
    both, apart = ["a", "b"], [[0, 0], [1, 1]]
    table = [
        ("at least 2, got 0", [], np.empty((0, 2)), 5, METRES),
        ("at least 2, got 1", ["a"], [[0, 0]], 5, METRES),
        ("got 'a' twice", ["a", "a"], apart, 5, METRES),
        ("an empty one", ["a", " "], apart, 5, METRES),
        ("finite", both, [[0, 0], [1, math.nan]], 5, METRES),
        ("above 0, got 0", both, apart, 0, METRES),
        *(("above 0", both, apart, radius, METRES) for radius in (-1, math.nan)),
        ("at most 100000 m", both, apart, 2e5, "EPSG:4326"),
    ]
    refused_calls(subtests, ParameterError, table, Catchments.around)
    table = [
        ("swapped", both, [[0, 0], [1, 89]], 5, "EPSG:4326"),
        ("crs", both, apart, 5, "EPSG:nothing"),
        ("radius must be left out|crs", both, apart, 5, HALL),
    ]
    refused_calls(subtests, DomainError, table, Catchments.around)
    square, crossing = shapely.box(0, 0, 1, 1), [(0, 0), (1, 1), (1, 0), (0, 1.5)]
    shapes = [shapely.LineString([(0, 0), (1, 1)]), shapely.Point(0, 0), shapely.Polygon()]
    shapes += [shapely.Polygon(crossing), shapely.Polygon([*crossing[:3], (0, 1)])]  # of area 0
    for shape in shapes:
        with subtests.test(shape=shape), pytest.raises(ParameterError, match="polygon"):
            Catchments(ids=("a", "b"), crs=METRES, polygons=np.array([square, shape]))
