"""Files of candidates: points with a radius, or polygons, each with an id."""

import geopandas as gpd
import pytest
import shapely

from psd.errors import DomainError, InputDataError, ParameterError
from psd.space.candidate_files import read_catchments

POINTS = "id,lon,lat\na,127,37.5\nb,127.1,37.6\n"


def text(folder, content, name="c.csv"):
    path = folder / name
    path.write_text(content)
    return path


def test_points_of_a_table(tmp_path):
    places = read_catchments(text(tmp_path, POINTS), radius=500)
    assert places.ids == ("a", "b")
    assert places.centres.tolist() == [[127, 37.5], [127.1, 37.6]]


@pytest.mark.parametrize("names", ["id,Longitude,LATITUDE", "id,x,y", "id,easting,northing"])
def test_other_names_of_coordinates(tmp_path, names):
    places = read_catchments(
        text(tmp_path, f"{names}\n7,1,2\n007,3,4\n"), radius=5, crs="EPSG:3857"
    )
    assert places.ids == ("7", "007")
    assert places.centres.tolist() == [[1, 2], [3, 4]]


def test_polygons_of_a_table(tmp_path):
    rows = 'id,wkt\na,"POLYGON((0 0,1 0,1 1,0 1,0 0))"\nb,"POLYGON((2 0,3 0,3 1,2 1,2 0))"\n'
    places = read_catchments(text(tmp_path, rows))
    assert places.bounds == (0, 0, 3, 1)


def test_a_layer_is_transformed(tmp_path):
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


@pytest.mark.parametrize(
    ("content", "options", "kind", "told"),
    [
        ("name,lon,lat\na,1,1\nb,2,2\n", {"radius": 5}, InputDataError, "no column id"),
        ("id,lon\na,1\nb,2\n", {"radius": 5}, InputDataError, "no columns lon and lat"),
        ("id,lon,lat\na,1,1\nb,x,2\n", {"radius": 5}, InputDataError, "line 3"),
        ("id,lon,lat\na,1,1\nb,inf,2\n", {"radius": 5}, InputDataError, "line 3"),
        ("id,lon,lat\n", {"radius": 5}, ParameterError, "at least 2, got 0"),
        ("id,lon,lat\na,1,1\n,2,2\n", {"radius": 5}, ParameterError, "empty"),
        (POINTS, {}, ParameterError, "radius must be given"),
        ("id,lon,lat\na,1,1\na ,2,2\n", {"radius": 5}, ParameterError, "'a' twice"),
        ('id,wkt\na,"POINT(0 0)"\nb,home\n', {"radius": 5}, InputDataError, "line 3: its wkt"),
        ('id,wkt\na,\nb,"POINT(0 0)"\n', {"radius": 5}, InputDataError, "line 2: its wkt"),
        (
            'id,wkt\na,"{""type"": ""FeatureCollection"", ""features"": []}"\n',
            {"radius": 5}, InputDataError, "line 2: its wkt",
        ),
        (
            'id,wkt\na,"POLYGON((0 0,1 0,1 1,0 0))"\nb,"POLYGON((2 0,3 0,3 1,2 0))"\n',
            {"radius": 5}, ParameterError, "radius must be left out",
        ),
        ('id,wkt\na,"POINT(0 0)"\nb,"POINT(2 0)"\n', {}, ParameterError, "radius must be given"),
        (
            'id,wkt\na,"POINT(0 0)"\nb,"POLYGON((2 0,3 0,3 1,2 0))"\n', {}, ParameterError,
            "points with a radius, or polygons",
        ),
    ],
)  # fmt: skip
def test_wrong_files_are_refused(tmp_path, content, options, kind, told):
    with pytest.raises(kind, match=told):
        read_catchments(text(tmp_path, content), **options)


def test_a_missing_file_and_a_layer_without_crs_are_refused(tmp_path):
    with pytest.raises(InputDataError, match="does not exist"):
        read_catchments(tmp_path / "none.csv", radius=5)
    shapes = gpd.GeoDataFrame({"id": [1, 2]}, geometry=[shapely.box(0, 0, 1, 1)] * 2)
    with pytest.warns(UserWarning, match="crs"):
        shapes.to_file(tmp_path / "s.fgb")
    with pytest.raises(DomainError, match="no CRS"):
        read_catchments(tmp_path / "s.fgb")
