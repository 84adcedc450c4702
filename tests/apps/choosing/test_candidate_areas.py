"""CandidateAreas: which points a candidate serves, the files of candidates, and what is refused."""

import math
import warnings

import geopandas as gpd
import numpy as np
import pytest
import shapely
from pyproj import Geod

from psd.apps.choosing.candidate_areas import CandidateAreas
from psd.apps.choosing.files import read_catchments
from psd.errors import DomainError, InputDataError, ParameterError
from support.tables import refused_calls

METRES = "EPSG:3857"
GRADS = (
    'GEOGCRS["grads",DATUM["any",ELLIPSOID["WGS 84",6378137,298.257223563]],CS[ellipsoidal,2],'
    'AXIS["longitude",east],AXIS["latitude",north],ANGLEUNIT["grad",0.015707963267948967]]'
)


def two(**options):
    return CandidateAreas.around(
        ["a", "b"], [[0, 0], [10, 0]], **{"radius": 2, "crs": METRES} | options
    )


def inside(places, which, points):
    x, y = np.array(points, np.float64).T
    return places.contains(np.full(len(x), which), x, y).tolist()


def test_circles_and_polygons_hold_their_edges():
    assert inside(two(), 0, [(2, 0), (0, -2), (2.001, 0), (1.5, 1.5)]) == [True, True, False, False]
    feet = CandidateAreas.around(["a", "b"], [[9e5, 2e5], [9.1e5, 2e5]], 304.8006096, "EPSG:2263")
    assert inside(feet, 0, [(9e5 + 999.9, 2e5), (9e5 + 1000.1, 2e5)]) == [True, False]
    places = CandidateAreas.around(["a", "b"], [[179.9, 0], [170, 0]], 50_000)
    assert places.bounds[2] == 180
    assert two().bounds == (-2, -2, 12, 2)
    ring = shapely.box(0, 0, 4, 4) - shapely.box(1, 1, 2, 2)
    other = shapely.MultiPolygon([shapely.box(5, 5, 6, 6), shapely.box(7, 7, 8, 8)])
    places = CandidateAreas(ids=("a", "b"), crs=METRES, polygons=np.array([ring, other]))
    assert inside(places, 0, [(0, 0), (1.5, 1.5), (3, 3), (5, 5)]) == [True, False, True, False]
    assert inside(places, 1, [(5.5, 5.5), (7.5, 7.5), (6.5, 6.5)]) == [True, True, False]
    assert places.bounds == (0, 0, 8, 8)
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


@pytest.mark.parametrize("latitude", [0, 37.5, -51.5, 70])
@pytest.mark.parametrize(("crs", "unit"), [("EPSG:4326", 1), (GRADS, 0.9)])
def test_a_circle_in_degrees_or_grads_is_one_on_the_ground(latitude, crs, unit):
    centres = np.array([[12, latitude], [13, latitude]]) / unit
    places = CandidateAreas.around(["a", "b"], centres, 2000, crs)
    azimuths = np.linspace(0, 360, 37)
    for factor, expected in ((0.998, True), (1.002, False)):
        many = np.full(len(azimuths), 1.0)
        x, y, _ = Geod(ellps="WGS84").fwd(
            12 * many, latitude * many, azimuths, 2000 * factor * many
        )
        assert inside(places, 0, np.stack([x, y], axis=1) / unit) == [expected] * len(azimuths)


@pytest.mark.parametrize("radius", [1e-300, 5e-324])
def test_no_calculation_warns_of_a_point(radius):
    """A warning on stderr could tell whether there is a record."""
    places = CandidateAreas.around(["a", "b"], [[0, 0], [3, 0]], radius, METRES)
    which, one = np.array([0, 1]), np.ones(2)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert places.contains(which, one, one).tolist() == [False, False]
        spans = places.spans(which, -one, one)
    assert (spans.inner_left > spans.inner_right).all()
    assert [str(warning.message) for warning in told] == []


HALL = 'ENGCRS["x",EDATUM["y"],CS[Cartesian,2],AXIS["a",east],AXIS["b",north],SCALEUNIT["u",0]]'


def test_wrong_candidates_and_files_are_refused(subtests, tmp_path):
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
    refused_calls(subtests, ParameterError, table, CandidateAreas.around)
    table = [
        ("swapped", both, [[0, 0], [1, 89]], 5, "EPSG:4326"),
        ("crs", both, apart, 5, "EPSG:nothing"),
        ("radius must be left out|crs", both, apart, 5, HALL),
    ]
    refused_calls(subtests, DomainError, table, CandidateAreas.around)
    square, crossing = shapely.box(0, 0, 1, 1), [(0, 0), (1, 1), (1, 0), (0, 1.5)]
    others = [shapely.LineString([(0, 0), (1, 1)]), shapely.Point(0, 0), shapely.Polygon()]
    others += [shapely.Polygon(crossing), shapely.Polygon([*crossing[:3], (0, 1)])]  # of area 0
    for shape in others:
        with subtests.test(shape=shape), pytest.raises(ParameterError, match="polygon"):
            CandidateAreas(ids=("a", "b"), crs=METRES, polygons=np.array([square, shape]))
    origin, square = 'a,"POINT(0 0)"', 'b,"POLYGON((2 0,3 0,3 1,2 0))"'
    collection = 'a,"{""type"": ""FeatureCollection"", ""features"": []}"'
    table = [
        ("no column id", rows("a,1,1", "b,2,2", columns="name,lon,lat"), 5),
        ("no columns lon and lat", rows("a,1", "b,2", columns="id,lon"), 5),
        ("line 3", rows("a,1,1", "b,x,2"), 5),
        ("line 3", rows("a,1,1", "b,inf,2"), 5),
        ("line 3: its wkt", shapes(origin, "b,home"), 5),
        ("line 2: its wkt", shapes("a,", origin.replace("a", "b")), 5),
        ("line 2: its wkt", shapes(collection), 5),
    ]

    def use(content, radius):
        return read_catchments(text(tmp_path, content), radius=radius)

    refused_calls(subtests, InputDataError, table, use)
    table = [
        ("at least 2, got 0", rows(), 5),
        ("empty", rows("a,1,1", ",2,2"), 5),
        ("radius must be given", POINTS, None),
        ("'a' twice", rows("a,1,1", "a ,2,2"), 5),
        ("radius must be left out", shapes('a,"POLYGON((0 0,1 0,1 1,0 0))"', square), 5),
        ("radius must be given", shapes(origin, 'b,"POINT(2 0)"'), None),
        ("points with a radius, or polygons", shapes(origin, square), None),
    ]
    refused_calls(subtests, ParameterError, table, use)
    with pytest.raises(InputDataError, match="does not exist"):
        read_catchments(tmp_path / "none.csv", radius=5)
    layer = gpd.GeoDataFrame({"id": [1, 2]}, geometry=[shapely.box(0, 0, 1, 1)] * 2)
    with pytest.warns(UserWarning, match="crs"):
        layer.to_file(tmp_path / "s.fgb")
    with pytest.raises(DomainError, match="no CRS"):
        read_catchments(tmp_path / "s.fgb")


POINTS = "id,lon,lat\na,127,37.5\nb,127.1,37.6\n"


def text(folder, content, name="c.csv"):
    path = folder / name
    path.write_text(content)
    return path


def test_points_and_polygons_of_a_table_or_a_layer(tmp_path, subtests):
    places = read_catchments(text(tmp_path, POINTS), radius=500)
    assert places.ids == ("a", "b")
    assert places.centres.tolist() == [[127, 37.5], [127.1, 37.6]]
    rows = 'id,wkt\na,"POLYGON((0 0,1 0,1 1,0 1,0 0))"\nb,"POLYGON((2 0,3 0,3 1,2 1,2 0))"\n'
    places = read_catchments(text(tmp_path, rows))
    assert places.bounds == (0, 0, 3, 1)
    for names in ("id,Longitude,LATITUDE", "id,x,y", "id,easting,northing"):
        path = text(tmp_path, f"{names}\n7,1,2\n007,3,4\n")
        places = read_catchments(path, radius=5, crs="EPSG:3857")
        with subtests.test(names):
            assert places.ids == ("7", "007")
            assert places.centres.tolist() == [[1, 2], [3, 4]]
    points = gpd.GeoDataFrame({"id": [1, 2]}, geometry=gpd.points_from_xy([127, 128], [37, 38]))
    points.set_crs("EPSG:4326").to_crs("EPSG:5179").to_file(tmp_path / "p.gpkg")
    places = read_catchments(tmp_path / "p.gpkg", radius=100)
    assert places.ids == ("1", "2")
    assert places.centres.ravel() == pytest.approx([127, 37, 128, 38], abs=1e-7)
    shapes = points.assign(geometry=points.buffer(0.1)).set_crs("EPSG:4326")
    shapes.to_file(tmp_path / "s.geojson")
    assert read_catchments(tmp_path / "s.geojson").bounds == pytest.approx(
        (126.9, 36.9, 128.1, 38.1)
    )


def rows(*lines, columns="id,lon,lat"):
    return "\n".join([columns, *lines, ""])


def shapes(*lines):
    return rows(*lines, columns="id,wkt")
