"""Files of candidates: points with a radius, or polygons, each with an id."""

import geopandas as gpd
import pytest
import shapely

from psd.errors import DomainError, InputDataError, ParameterError
from psd.space.candidate_files import read_catchments
from support.tables import refused_calls

POINTS = "id,lon,lat\na,127,37.5\nb,127.1,37.6\n"


def text(folder, content, name="c.csv"):
    path = folder / name
    path.write_text(content)
    return path


def test_points_of_a_table(tmp_path):
    places = read_catchments(text(tmp_path, POINTS), radius=500)
    assert places.ids == ("a", "b")
    assert places.centres.tolist() == [[127, 37.5], [127.1, 37.6]]


def test_other_names_of_coordinates(tmp_path, subtests):
    for names in ("id,Longitude,LATITUDE", "id,x,y", "id,easting,northing"):
        path = text(tmp_path, f"{names}\n7,1,2\n007,3,4\n")
        places = read_catchments(path, radius=5, crs="EPSG:3857")
        with subtests.test(names):
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


def rows(*lines, columns="id,lon,lat"):
    return "\n".join([columns, *lines, ""])


def shapes(*lines):
    return rows(*lines, columns="id,wkt")


def test_wrong_files_are_refused(tmp_path, subtests):
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


def test_a_missing_file_and_a_layer_without_crs_are_refused(tmp_path):
    with pytest.raises(InputDataError, match="does not exist"):
        read_catchments(tmp_path / "none.csv", radius=5)
    shapes = gpd.GeoDataFrame({"id": [1, 2]}, geometry=[shapely.box(0, 0, 1, 1)] * 2)
    with pytest.warns(UserWarning, match="crs"):
        shapes.to_file(tmp_path / "s.fgb")
    with pytest.raises(DomainError, match="no CRS"):
        read_catchments(tmp_path / "s.fgb")
